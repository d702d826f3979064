//! Futures that are made of several steps and yet lose nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_runtime::CancelSafe;
use pin_project_lite::pin_project;

pin_project! {
    /// An operation of several steps that keeps what it has got in its reader or writer, so that
    /// it loses nothing when it is dropped or cancelled: `select!` takes it.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Lossless<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Lossless<F> {
    /// A promise: at each await of the future, dropping it loses nothing.
    pub(crate) fn new(future: F) -> Lossless<F> {
        Lossless { future }
    }
}

impl<F: Future> Future for Lossless<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(context)
    }
}

impl<F: Future> CancelSafe for Lossless<F> {}
