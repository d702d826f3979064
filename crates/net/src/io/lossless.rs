//! A wrapper for cancel-safe operations of several steps.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_runtime::CancelSafe;
use pin_project_lite::pin_project;

pin_project! {
    /// A cancel-safe operation of several steps. It keeps its partial result in its reader or
    /// writer, so dropping it loses nothing and `select!` accepts it.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Lossless<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Lossless<F> {
    /// Marks a future as cancel-safe. The caller guarantees that dropping it at any of its await
    /// points loses nothing.
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
