//! Futures that lose nothing when they are dropped before they are done.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// A future that can be dropped half-way without losing anything: nothing was taken, sent or
/// promised. `select!` accepts only such futures.
///
/// It is a promise: implement it for a future of your own only if that holds at every await in it.
/// For a future of somebody else there is [`assume_cancel_safe`].
pub trait CancelSafe: Future {}

/// The future is only borrowed: it is still there when `select!` is done.
impl<F: Future + Unpin + ?Sized> CancelSafe for &mut F {}

/// As above.
impl<F: Future + ?Sized> CancelSafe for Pin<&mut F> {}

impl<F: CancelSafe + ?Sized> CancelSafe for Pin<Box<F>> {}

impl<F: CancelSafe + Unpin + ?Sized> CancelSafe for Box<F> {}

/// Makes any future one that `select!` takes.
///
/// It is a promise that `future` loses nothing when it is dropped half-way: what a crate says of
/// its futures, as tokio does for many, under "cancel safety". Nothing checks it. A future that
/// loses something belongs into `race`, or is borrowed (`&mut future`), so that it
/// is not dropped.
///
/// [`Cx::abandon_on_cancel`](crate::Cx::abandon_on_cancel) needs the same promise, and also ends
/// with a cancel of the task.
///
/// ```
/// # use asx::prelude::*;
/// use asx::assume_cancel_safe;
///
/// /// `wanted` is of a crate that knows nothing of asx.
/// async fn within_a_second<T>(cx: &Cx, wanted: impl Future<Output = T>) -> Option<T> {
///     select! {
///         value = assume_cancel_safe(wanted) => Some(value),
///         _ = cx.sleep(1.secs()) => None,
///     }
/// }
/// ```
pub fn assume_cancel_safe<F: Future>(future: F) -> AssumeCancelSafe<F> {
    AssumeCancelSafe { future }
}

pin_project! {
    /// The future of [`assume_cancel_safe`]; gives `F::Output`, that of the one it was given.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct AssumeCancelSafe<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for AssumeCancelSafe<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

impl<F: Future> CancelSafe for AssumeCancelSafe<F> {}
