//! One of several futures of a combinator.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use asx_task::combinator::CancelScope;
use asx_task::{Cancelled, Panic};

pin_project! {
    /// A future in a cancel scope of its own, then its output until that is taken.
    #[project = PartProj]
    pub(super) enum Part<F: Future> {
        Live { #[pin] inside: CancelScope<F>, begun: bool },
        Ended { output: Option<F::Output> },
    }
}

impl<F: Future> Part<F> {
    #[cfg_attr(feature = "lab", track_caller)]
    pub(super) fn new(future: F) -> Part<F> {
        Part::Live { inside: CancelScope::new(future), begun: false }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Part::Live { .. })
    }

    /// Polls the future if it is live: how it ended, if it does so now. By then it is dropped; a
    /// panic in that is its panic.
    pub(super) fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<&F::Output, Panic>> {
        let PartProj::Live { inside, begun } = self.as_mut().project() else {
            return Poll::Pending;
        };
        *begun = true;
        let ended = match catch_unwind(AssertUnwindSafe(|| inside.poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => self.as_mut().end(Some(output)),
            Err(payload) => {
                // The first panic tells more than one that follows from it.
                let _ = self.as_mut().end(None);
                Err(Panic::new(payload))
            }
        };
        Poll::Ready(ended.map(|()| match self.into_ref().get_ref() {
            Part::Ended { output: Some(output) } => output,
            _ => unreachable!("it ended with an output just now"),
        }))
    }

    /// Asks the future to stop.
    pub(super) fn cancel(&self, cancelled: &Cancelled) {
        if let Part::Live { inside, .. } = self {
            inside.cancel(cancelled.clone());
        }
    }

    /// Asks the future to stop; if it has not begun it never does.
    pub(super) fn call_off(mut self: Pin<&mut Self>, cancelled: &Cancelled) -> Result<(), Panic> {
        self.cancel(cancelled);
        match &*self {
            Part::Live { begun: false, .. } => self.as_mut().end(None),
            _ => Ok(()),
        }
    }

    /// The output of a future that has ended, once.
    pub(super) fn take(self: Pin<&mut Self>) -> Option<F::Output> {
        match self.project() {
            PartProj::Ended { output } => output.take(),
            PartProj::Live { .. } => None,
        }
    }

    /// Drops the future: the panic of its destructor.
    fn end(mut self: Pin<&mut Self>, output: Option<F::Output>) -> Result<(), Panic> {
        catch_unwind(AssertUnwindSafe(|| self.set(Part::Ended { output }))).map_err(Panic::new)
    }
}
