//! The first success of two parts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::OnOk;
use super::tuple::Two;
use asx_task::Cx;

/// Runs two things at once in this task: the value of the one that succeeds first.
///
/// The other is then asked to stop (`RaceLost`) and waited for, so that it can clean up; what it
/// says is dropped. One that fails only leaves the answer to the other. If both fail, the error is
/// that of the one written first, whichever was faster: a cancel of the task, which both see, comes
/// out as one. A panic of either goes on here, after the other's end. More than two:
/// [`race_ok!`](crate::race_ok!), [`race_ok_all`](crate::race_ok_all).
///
/// ```
/// # use asx::{Cancelled, Cx, race_ok};
/// # async fn ask(cx: &Cx, server: &str) -> Result<String, Cancelled> { Ok(server.into()) }
/// async fn either(cx: &Cx) -> Result<String, Cancelled> {
///     race_ok(cx, async |cx| ask(cx, "main").await, async |cx| ask(cx, "spare").await).await
/// }
/// ```
#[cfg_attr(feature = "lab", track_caller)]
pub fn race_ok<'a, MakeA, MakeB, A, B, T, E>(
    cx: &'a Cx,
    a: MakeA,
    b: MakeB,
) -> impl Future<Output = Result<T, E>>
where
    MakeA: FnOnce(&'a Cx) -> A,
    MakeB: FnOnce(&'a Cx) -> B,
    A: Future<Output = Result<T, E>>,
    B: Future<Output = Result<T, E>>,
{
    Two::<OnOk, A, B>::new(cx, a(cx), b(cx))
}

impl<A, B, T, E> Future for Two<'_, OnOk, A, B>
where
    A: Future<Output = Result<T, E>>,
    B: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let first = ready!(self.as_mut().poll_all(cx));
        let this = self.project();
        let mut outputs = [this.a.take(), this.b.take()];
        // If none has decided, both have failed.
        match outputs[first.unwrap_or(0)].take() {
            Some(output) => Poll::Ready(output),
            None => panic!("polled after it was done"),
        }
    }
}
