//! A second attempt beside one that takes long.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use super::race_ok;
use asx_task::Cancelled;
use asx_task::Cx;

/// Does something, and once more beside it if that has not ended after a while, or has failed: the
/// value of the one that succeeds first.
///
/// So few slow answers of a server cost little: the other attempt is asked to stop (`RaceLost`) and
/// waited for. `op` is called for each attempt; it must not matter that both may have an effect. If
/// both fail, the error is that of the first.
///
/// ```
/// use asx::hedge;
/// use asx::prelude::*;
///
/// async fn ask(cx: &Cx, server: &str) -> Result<String, Cancelled> {
///     cx.sleep(1.millis()).await?;
///     Ok(format!("an answer from {server}"))
/// }
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     let mut servers = ["near", "far"].into_iter().cycle();
///     let answer = hedge(cx, 50.millis(), |cx| {
///         let server = servers.next().unwrap_or("none");
///         async move { ask(cx, server).await }
///     });
///     assert_eq!(answer.await?, "an answer from near");
///     Ok(())
/// }
/// ```
pub async fn hedge<'a, M, F, T, E>(cx: &'a Cx, after: Duration, mut op: M) -> Result<T, E>
where
    M: FnMut(&'a Cx) -> F,
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
{
    let failed = AtomicBool::new(false);
    let attempt = op(cx);
    let first = async |_: &Cx| {
        let result = attempt.await;
        failed.store(result.is_err(), Relaxed);
        result
    };
    let second = async |_: &Cx| {
        let mut wait = pin!(cx.sleep(after));
        // Both are polled together, the first one first: no one need wake the second.
        let due = poll_fn(|context| match failed.load(Relaxed) {
            true => Poll::Ready(Ok(())),
            false => wait.as_mut().poll(context),
        });
        due.await?;
        // The first may have failed because all is to stop.
        cx.checkpoint()?;
        op(cx).await
    };
    race_ok(cx, first, second).await
}
