//! Building blocks of combinators: futures that poll other futures in the same task.
//!
//! `asx-runtime` builds `join`, `race` and `group` from these. They are not part of the stable API.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use asx_kernel::cancel::Kind;
use pin_project_lite::pin_project;

use crate::Cx;
use crate::raw::foreign_wakers::Registration;
pub use crate::raw::mark_child_waker;
use crate::raw::outcome::Cancelled;
use crate::runtime::node::{self, Branch, Inside};

pin_project! {
    /// A future in a separate cancel scope of its task.
    ///
    /// A cancel of the scope reaches the operations that the future awaits, and nothing else of
    /// the task.
    pub struct CancelScope<F> {
        #[pin]
        inside: Inside<F>,
    }
}

impl<F> CancelScope<F> {
    /// Puts a future into a new cancel scope.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn new(future: F) -> CancelScope<F> {
        CancelScope { inside: Inside::new(node::Kind::Branch(Branch::default()), future) }
    }

    /// Cancels the scope. Only the first cancel counts.
    pub fn cancel(&self, cancelled: Cancelled) {
        if let Some(branch) = self.inside.branch() {
            branch.cancel(cancelled);
        }
    }
}

impl<F: Future> Future for CancelScope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().inside.poll(context)
    }
}

/// Returns a cancel of this kind that begins now, in the region of the context's task.
pub fn cancel_now(cx: &Cx, kind: Kind) -> Cancelled {
    cx.task().region().reason(kind).into()
}

/// Has a cancel of the task wake `waker` for as long as the registration lives. Without this, a
/// cancel wakes only the task's own waker.
#[inline]
pub fn wake_on_cancel(cx: &Cx, waker: &Waker, registration: &mut Registration) {
    registration.wait(cx.task(), waker);
}
