//! Roots: how a host runs a program.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use asx_kernel::budget::Budget;
use asx_kernel::status::Status;
use pin_project_lite::pin_project;

use crate::Cx;
use crate::outcome::Outcome;
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
    ) -> Result<Outcome<T, Infallible>, Status>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        let region = parent.open_child(Policy::CollectAll, Budget::INFINITE, None)?;
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
        while !region.poll_closed(waker) {
            drive();
        }
        std::mem::forget(guard);
        drop(task);
        Region::retire(region);
        spawned?;
        // A program that was asked to stop still has its say.
        match (value, outcome) {
            (Some(value), _) => Ok(Ok(value)),
            (None, Err(stop)) => Ok(Err(stop)),
            (None, Ok(())) => Err(Status::Internal),
        }
    }
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
