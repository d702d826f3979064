//! Roots: how a host runs a program.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::region::RegionState;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use pin_project_lite::pin_project;

use crate::Cx;
use crate::core::alarm::Alarm;
use crate::core::timer_token::TimerToken;
use crate::dump::Dump;
use crate::error::SpawnError;
use crate::raw::outcome::Outcome;
use crate::region::{Policy, Region};
use crate::spawn::{Plan, spawn};

/// A program: the task its body runs in, in a region of its own.
///
/// Its future may borrow and need not be `Send`, so that [`Root::run`] keeps the thread until all
/// of it is over.
#[derive(Debug)]
pub struct Root;

impl Root {
    /// Runs `body` as a task pinned to `worker`, which is the calling thread. `drive` runs the
    /// worker until it is told that the waker was used; it is called until everything has ended.
    ///
    /// # Safety
    /// The calling thread is the only one that runs tasks pinned to `worker` (rule 6 of cells).
    pub unsafe fn run<F, B, T>(
        parent: &Arc<Region>,
        worker: u16,
        body: F,
        waker: &Waker,
        mut drive: impl FnMut(),
    ) -> Result<Outcome<T, Infallible>, SpawnError>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        // The thread may have been elsewhere for long.
        parent.core.note_time(parent.core.now());
        let opened = parent.open_child(Policy::CollectAll, Budget::INFINITE, None);
        let region = opened.map_err(SpawnError::new)?;
        let guard = AbortOnUnwind;
        let plan = Plan { pin: worker, ..Plan::default() };
        let mut value = None;
        let slot = &mut value;
        let body = |cx| Kept { body: body(cx), slot };
        // SAFETY: rules 6 and 7 of cells: pinned to this thread's worker, and this function does
        // not return or unwind before the task has ended and its result was taken.
        let (spawned, mut task) = unsafe { spawn(&region, plan, body) };
        let outcome = loop {
            match task.poll_end(waker) {
                Poll::Ready(outcome) => break outcome,
                Poll::Pending => drive(),
            }
        };
        region.end();
        let mut watch = Watch { region: &region, armed: None, told: false };
        while !region.poll_closed(waker) {
            watch.look(waker);
            drive();
        }
        drop(watch);
        std::mem::forget(guard);
        drop(task);
        Region::recycle(region);
        spawned.map_err(SpawnError::new)?;
        // A program that was asked to stop still has its say.
        match (value, outcome) {
            (Some(value), _) => Ok(Ok(value)),
            (None, Err(error)) => Ok(Err(error)),
            (None, Ok(())) => unreachable!("a body that ends leaves its value"),
        }
    }
}

/// How long a program may take to close after its body has ended before somebody is told.
const HELD_UP: Duration = Duration::from_secs(5);

/// Tells, once, what keeps a program from its end that has nothing left to do: the future of a
/// scope that is kept somewhere, or was forgotten, may never be polled or dropped.
struct Watch<'a> {
    region: &'a Arc<Region>,
    /// When it is to be told, and what wakes the thread for it.
    armed: Option<(Time, TimerHandle)>,
    told: bool,
}

impl Watch<'_> {
    /// The region is not closed.
    #[cold]
    fn look(&mut self, waker: &Waker) {
        let core = &self.region.core;
        if self.told || !core.host.time_passes() {
            return;
        }
        match self.armed {
            None => {
                let due = core.host.now() + HELD_UP;
                let wake = TimerToken::alarm(Alarm::Wake(waker.clone()));
                let handle = core.alarms.register(&*core.host, due, wake);
                self.armed = handle.ok().map(|handle| (due, handle));
            }
            Some((due, _)) if due <= core.host.now() => {
                self.told = true;
                report(&held_up(&Dump::of(self.region)));
            }
            Some(_) => {}
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if let Some((_, handle)) = self.armed {
            drop(self.region.core.alarms.cancel(handle));
        }
    }
}

/// What to tell of a program that does not close.
fn held_up(dump: &Dump) -> String {
    let seconds = HELD_UP.as_secs();
    let mut text = format!(
        "asx: the body of a program ended {seconds} s ago, and what it started has not:\n{dump}"
    );
    let parents: Vec<_> = dump.regions.iter().filter_map(|region| region.parent).collect();
    for region in &dump.regions {
        let open = region.state == RegionState::Open && region.tasks.is_empty();
        if open && !parents.contains(&region.id) {
            text += &format!(
                "region r{} is open and nothing runs in it: the future of its scope was forgotten \
                 (`mem::forget`), or is kept somewhere where it is neither polled nor dropped\n",
                region.id
            );
        }
    }
    text
}

fn report(text: &str) {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        tracing::warn!("{text}");
        return;
    }
    // It may be closed, which is no reason to panic.
    let _ = io::stderr().write_all(text.as_bytes());
}

pin_project! {
    /// A body whose value stays with who runs it. Not an async block, which would have room for the
    /// body twice, and move it.
    struct Kept<'a, B, T> {
        #[pin]
        body: B,
        slot: &'a mut Option<T>,
    }
}

impl<B: Future<Output = T>, T> Future for Kept<'_, B, T> {
    type Output = Result<(), Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        **this.slot = Some(ready!(this.body.poll(cx)));
        Poll::Ready(Ok(()))
    }
}

/// Nothing may unwind past a root: it would free what its tasks borrow.
struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}
