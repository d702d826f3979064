//! Futures of others, given up when the task is to stop.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::CancelSafe;
use crate::raw::foreign_wakers::Registration;
use crate::raw::outcome::Cancelled;
use crate::runtime::cx::Cx;
use crate::wait::Wait;

impl Cx {
    /// Awaits a future that knows nothing of cancels, and gives it up when there is one: its
    /// output, or the cancel.
    ///
    /// A future of another crate does not look whether the task is to stop. A
    /// [`timeout`](Cx::timeout) around it, a lost `race` and a cancel of the task
    /// wait until it is done by itself. This makes an operation of it, like those of asx: at each
    /// poll, the first included, it looks for a cancel of the task or of the part of it around, and
    /// is woken by one. Then the future is dropped, and the answer is the cancel. Inside a
    /// [`shield`](Cx::shield) there is none.
    ///
    /// It is a promise that `future` loses nothing when it is dropped half-way, as with
    /// [`assume_cancel_safe`](crate::assume_cancel_safe). What must be taken to its end is awaited
    /// as it is, or in a shield; to keep it for later, give it away borrowed (`&mut future`).
    ///
    /// ```
    /// use asx::prelude::*;
    /// use asx::cancel::Kind;
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) {
    ///     let forever = std::future::pending::<u32>(); // of a crate that knows nothing of asx
    ///     let answer: Result<u32, Cancelled> =
    ///         cx.timeout(1.millis(), async |cx| cx.abandon_on_cancel(forever).await).await;
    ///     assert_eq!(answer.unwrap_err().kind(), Kind::Timeout);
    /// }
    /// ```
    #[track_caller]
    pub fn abandon_on_cancel<F: IntoFuture>(
        &self,
        future: F,
    ) -> AbandonOnCancel<'_, F::IntoFuture> {
        AbandonOnCancel {
            cx: self,
            at: Location::caller(),
            registration: Registration::NONE,
            future: Some(future.into_future()),
        }
    }
}

pin_project! {
    /// The future of [`Cx::abandon_on_cancel`]; gives `Result<F::Output, Cancelled>`: the output of
    /// the future it was given, or the cancel for which that was given up.
    #[must_use = "futures do nothing unless awaited"]
    pub struct AbandonOnCancel<'a, F> {
        cx: &'a Cx,
        at: &'static Location<'static>,
        registration: Registration,
        // There until it is done or given up.
        #[pin]
        future: Option<F>,
    }
}

impl<F: Future> Future for AbandonOnCancel<'_, F> {
    type Output = Result<F::Output, Cancelled>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let proceeds = match this.cx.poll_proceed(context, this.registration) {
            Poll::Ready(proceeds) => proceeds,
            Poll::Pending => return Poll::Pending,
        };
        if let Err(cancelled) = proceeds {
            // Now, and not when this is dropped: whoever is told may count on it.
            this.future.set(None);
            return Poll::Ready(Err(cancelled));
        }
        let Some(future) = this.future.as_mut().as_pin_mut() else {
            panic!("polled after it was done");
        };
        match future.poll(context) {
            Poll::Ready(output) => {
                this.future.set(None);
                Poll::Ready(Ok(output))
            }
            Poll::Pending => {
                this.cx.waits(Wait::Signal, this.at, context.waker(), this.registration);
                Poll::Pending
            }
        }
    }
}

impl<F: Future> CancelSafe for AbandonOnCancel<'_, F> {}

impl<F> fmt::Debug for AbandonOnCancel<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AbandonOnCancel({})", self.at)
    }
}
