//! Helper functions that take closures: writing them, and the existing ones.
//!
//! # The signature
//!
//! A helper that passes the context to a closure has this signature: the lifetime of its own
//! context parameter, and a type parameter for the future.
//!
//! ```
//! use asx::prelude::*;
//!
//! /// Prints how long an operation takes.
//! async fn timed<'a, M, F>(cx: &'a Cx, what: &str, op: M) -> F::Output
//! where
//!     M: FnOnce(&'a Cx) -> F, // FnMut if it is called more than once
//!     F: Future,
//! {
//!     let begun = cx.now();
//!     let output = op(cx).await;
//!     println!("{what} took {:?}", cx.now() - begun);
//!     output
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     cx.scope(async |s| {
//!         // In a task that may move to another thread, with a closure that borrows.
//!         s.spawn(async |cx: Cx| {
//!             let name = String::from("a nap");
//!             let naps = async |cx: &Cx| {
//!                 println!("{name} begins");
//!                 cx.sleep(1.millis()).await
//!             };
//!             timed(&cx, &name, naps).await
//!         });
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! * `impl AsyncFn(&Cx) -> T` is shorter, but fails to compile with a closure that borrows in a
//!   task started by [`Scope::spawn`]: "implementation of `Send` is not general enough". The
//!   compiler would need a bound that its futures are `Send` for *every* lifetime of a context,
//!   which cannot be expressed. With `'a` there is one lifetime and one future, whose `Send` is
//!   inferred.
//! * An `async |cx| ..` closure is `FnMut` unless it modifies its captures. If it does, modify them
//!   outside of the future: `|cx| { attempts += 1; async move { .. } }`.
//! * The helper passes the same context to [`Cx::timeout`], [`race`](race()) and the like:
//!   `cx.timeout(limit, |cx| op(cx))`.
//!
//! # Existing helpers
//!
//! * [`retry`] waits longer after each failure ([`Backoff`]), with random jitter that the lab can
//!   replay.
//! * [`race_ok`](race_ok()) returns the first success.
//! * [`hedge`] starts a second attempt beside a slow one.
//!
//! Other attempts are cancelled and waited for: no attempt is running when a helper returns.
//!
//! ```
//! use asx::prelude::*;
//! use asx::{Backoff, hedge, race_ok, retry_if};
//!
//! #[derive(Debug, PartialEq)]
//! enum AskError {
//!     Cancelled,
//!     Busy,
//!     Forbidden,
//! }
//!
//! impl From<Cancelled> for AskError {
//!     fn from(_: Cancelled) -> Self {
//!         AskError::Cancelled
//!     }
//! }
//!
//! async fn ask(cx: &Cx, server: &str) -> Result<String, AskError> {
//!     cx.sleep(1.millis()).await?;
//!     match server {
//!         "busy" => Err(AskError::Busy),
//!         "secret" => Err(AskError::Forbidden),
//!         server => Ok(format!("an answer from {server}")),
//!     }
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) {
//!     // Retries after a `Busy`, within two seconds in total.
//!     let often = Backoff::new(1.millis()).attempts(3);
//!     let is_busy = |error: &AskError| *error == AskError::Busy;
//!     let answer = cx.timeout(2.secs(), async |cx| {
//!         retry_if(cx, often, async |cx| ask(cx, "secret").await, is_busy).await
//!     });
//!     assert_eq!(answer.await, Err(AskError::Forbidden));
//!
//!     // The first success.
//!     let answer =
//!         race_ok(cx, async |cx| ask(cx, "busy").await, async |cx| ask(cx, "spare").await);
//!     assert_eq!(answer.await.unwrap(), "an answer from spare");
//!
//!     // A second attempt if there is no answer after 50 ms.
//!     let answer = hedge(cx, 50.millis(), async |cx| ask(cx, "near").await);
//!     assert_eq!(answer.await.unwrap(), "an answer from near");
//! }
//! ```

#[cfg(doc)]
use crate::{Backoff, Cx, Scope, hedge, race, race_ok, retry};
