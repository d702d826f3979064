//! Parts of a task that see no cancel from outside, for a while.
//!
//! A cancel that a shield hides cannot be obeyed before the shield ends; and what is inside may
//! wait for something that never comes. So from the first time it hides one, a shield holds for as
//! long as the runtime allows for cleanup. Then the overrun is reported and the shield is open:
//! what is inside is polled, sees the cancel and can still end by itself. Nothing is dropped; but a
//! task that was cancelled itself has as much time again, and is then ended by force.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use pin_project_lite::pin_project;

use crate::Cx;
use crate::core::alarm::Alarm;
use crate::core::timer_token::TimerToken;
use crate::proceed::Charged;
use crate::raw::foreign_wakers;
use crate::runtime::cancel_view::{CancelView, Check};
use crate::runtime::node::{Inside, Kind};

impl Cx {
    /// Runs `body` without seeing any cancel from outside it.
    ///
    /// It holds for a limited time from when there is such a cancel, 30 seconds unless the builder
    /// of the runtime or of a scope has set another (`cleanup_time`). Then that is reported as an
    /// overrun ([`Health::overruns`](crate::Health::overruns)), and operations inside see the
    /// cancel. A time that was stated with the cancel
    /// ([`Scope::stop_within`](crate::Scope::stop_within), a shutdown,
    /// [`Why::cleanup_time`](crate::Why::cleanup_time)) takes the place of that one.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn shield<'a, F, B>(&'a self, body: F) -> impl Future<Output = B::Output> + use<'a, F, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future,
    {
        self.shield_with(None, body)
    }

    /// As [`shield`](Cx::shield), and holds for this long from when there is a cancel.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn shield_for<'a, F, B>(
        &'a self,
        time: Duration,
        body: F,
    ) -> impl Future<Output = B::Output> + use<'a, F, B>
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future,
    {
        self.shield_with(Some(time), body)
    }

    #[cfg_attr(feature = "lab", track_caller)]
    fn shield_with<'a, F, B>(&'a self, time: Option<Duration>, body: F) -> Charged<Shield<'a, B>>
    where
        F: FnOnce(&'a Cx) -> B,
    {
        let inside = Inside::new(Kind::Shield(Cell::new(false)), body(self));
        Charged::new(Shield { cx: self, time, patience: None, inside })
    }
}

pin_project! {
    /// The future of [`Cx::shield`]; gives `F::Output`.
    struct Shield<'a, F> {
        cx: &'a Cx,
        // How long it holds, if that was said.
        time: Option<Duration>,
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
            if open.get() || !is_over(this.cx, *this.time, this.patience, cx.waker()) {
                return Poll::Pending;
            }
            open.set(true);
            let task = this.cx.task();
            this.cx.core().shield_overrun(task);
            if task.word.load().state().in_cancel_lane() {
                task.region().shield_is_open(task);
            }
            // What waits inside with wakers of its own is to look, too.
            foreign_wakers::notify_current();
        }
    }
}

/// Whether a shield has hidden a cancel for as long as it may; if not, `waker` is woken then.
fn is_over<'a>(
    cx: &'a Cx,
    time: Option<Duration>,
    patience: &mut Option<Box<Patience<'a>>>,
    waker: &Waker,
) -> bool {
    let task = cx.task();
    let now = match patience {
        Some(patience) => patience.is_over(waker),
        None if CancelView::of(task).check(Check::UNSEEN).is_none() => return false,
        None => {
            let limit = time.or_else(|| cx.with_region(|region| region.cleanup_time()));
            let Some(limit) = limit else { return false };
            let end = cx.now() + limit;
            patience.insert(Patience::new(cx, end, waker)).is_over(waker)
        }
    };
    // What still counts then is the time that was stated with the cancel.
    let stated = || {
        let of_all = cx.with_region(|region| region.has_stated_time());
        of_all || task.region().time_for(task.id()).is_some()
    };
    now && !stated()
}

/// An alarm that wakes whoever waits for a time that is no timer of the task's.
pub(crate) struct Patience<'a> {
    cx: &'a Cx,
    end: Time,
    /// There is one until it is dropped.
    waker: Option<Waker>,
    alarm: Option<TimerHandle>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(cx: &'a Cx, end: Time, waker: &Waker) -> Box<Patience<'a>> {
        let mut new = Box::new(Patience { cx, end, waker: Some(waker.clone()), alarm: None });
        new.arm();
        new
    }

    /// Not one of the task's timers: no limit counts it.
    fn arm(&mut self) {
        let core = self.cx.core();
        let Some(waker) = self.waker.clone() else { return };
        let alarm = TimerToken::alarm(Alarm::Wake(waker));
        self.alarm = core.alarms.register(&*core.host, self.end, alarm).ok();
    }

    fn disarm(&mut self) {
        let core = self.cx.core();
        if let Some(armed) = self.alarm.take().and_then(|alarm| core.alarms.cancel(alarm)) {
            armed.discard(core);
        }
    }

    /// Whether the time has come; if not, `waker` is woken then.
    pub(crate) fn is_over(&mut self, waker: &Waker) -> bool {
        if self.end <= self.cx.now() {
            return true;
        }
        if self.waker.as_ref().is_none_or(|own| !own.will_wake(waker)) {
            let old = self.waker.replace(waker.clone());
            self.disarm();
            self.cx.core().drop_waker(old);
            self.arm();
        }
        false
    }
}

impl Drop for Patience<'_> {
    fn drop(&mut self) {
        self.disarm();
        self.cx.core().drop_waker(self.waker.take());
    }
}
