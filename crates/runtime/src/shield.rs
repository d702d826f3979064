//! Parts of a task that see no cancel from outside, for a while.
//!
//! A cancel that a shield hides cannot be obeyed before the shield ends; and what is inside may
//! wait for something that never comes. So from the first time it hides one, a shield holds for as
//! long as the runtime allows for cleanup. Then the overrun is reported and the shield is open:
//! what is inside is polled, sees the cancel and can still end by itself. Nothing is dropped.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use pin_project_lite::pin_project;

use crate::Cx;
use crate::cell::Armed;
use crate::core::Alarm;
use crate::cx::look;
use crate::foreign;
use crate::node::{Inside, Kind};

impl Cx {
    /// Runs `body` without seeing any cancel from outside it.
    ///
    /// It holds for a limited time from when there is such a cancel, 30 seconds unless the builder
    /// of the runtime has set another (`cleanup_time`). Then that is reported as an overrun
    /// ([`Health::overruns`](crate::Health::overruns)), and operations inside see the cancel. A
    /// time that was stated with the cancel ([`Scope::stop_within`](crate::Scope::stop_within), a
    /// shutdown) takes the place of that one.
    pub fn shield<'a, F, B>(&'a self, body: F) -> impl Future<Output = B::Output> + use<'a, F, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future,
    {
        let inside = Inside::new(Kind::Shield(Cell::new(false)), body(self));
        Shield { cx: self, patience: None, inside }
    }
}

pin_project! {
    /// The future of [`Cx::shield`].
    struct Shield<'a, F> {
        cx: &'a Cx,
        patience: Option<Box<Patience<'a>>>,
        #[pin]
        inside: Inside<F>,
    }
}

impl<F: Future> Future for Shield<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        loop {
            if let Poll::Ready(output) = this.inside.as_mut().poll(cx) {
                *this.patience = None;
                return Poll::Ready(output);
            }
            // Outside its own node again: the look is at what the body is shielded from.
            let Kind::Shield(open) = &this.inside.node.kind else { return Poll::Pending };
            if open.get() || !is_over(this.cx, this.patience, cx.waker()) {
                return Poll::Pending;
            }
            open.set(true);
            this.cx.core().shield_overrun(this.cx.task());
            // What waits inside with wakers of its own is to look, too.
            foreign::rouse_current();
        }
    }
}

/// Whether a shield has hidden a cancel for as long as it may; if not, `waker` is woken then.
fn is_over<'a>(cx: &'a Cx, patience: &mut Option<Box<Patience<'a>>>, waker: &Waker) -> bool {
    let Some(limit) = cx.core().cleanup_time else { return false };
    let now = match patience {
        Some(patience) => patience.is_over(waker),
        None if look(cx.task(), false).is_none() => return false,
        None => {
            let end = cx.now() + limit;
            patience.insert(Patience::new(cx, end, waker)).is_over(waker)
        }
    };
    // What still counts then is the time that was stated.
    now && !cx.region().has_stated_time()
}

/// The alarm for the end of a shield.
struct Patience<'a> {
    cx: &'a Cx,
    end: Time,
    waker: Waker,
    alarm: Option<TimerHandle>,
}

impl<'a> Patience<'a> {
    fn new(cx: &'a Cx, end: Time, waker: &Waker) -> Box<Patience<'a>> {
        let mut new = Box::new(Patience { cx, end, waker: waker.clone(), alarm: None });
        new.arm();
        new
    }

    /// Not one of the task's timers: no limit counts it.
    fn arm(&mut self) {
        let core = self.cx.core();
        let alarm = Armed::alarm(Alarm::Wake(self.waker.clone()));
        self.alarm = core.alarms.register(&*core.host, self.end, alarm).ok();
    }

    fn disarm(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            drop(self.cx.core().alarms.cancel(alarm));
        }
    }

    fn is_over(&mut self, waker: &Waker) -> bool {
        if self.end <= self.cx.now() {
            return true;
        }
        if !self.waker.will_wake(waker) {
            self.disarm();
            self.waker = waker.clone();
            self.arm();
        }
        false
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        self.disarm();
    }
}
