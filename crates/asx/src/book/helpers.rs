//! Helpers of your own that take closures, and those that are there.
//!
//! # The signature
//!
//! A helper that calls a closure with the context takes it like this: with the lifetime of the
//! context that it has itself, and with a type for the future.
//!
//! ```
//! use asx::prelude::*;
//!
//! /// Says how long something takes.
//! async fn timed<'a, M, F>(cx: &'a Cx, what: &str, op: M) -> F::Output
//! where
//!     M: FnOnce(&'a Cx) -> F, // FnMut, if it is called more than once
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
//!         // In a task, which may move to another thread, with a closure that borrows.
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
//! * `impl AsyncFn(&Cx) -> T` reads better and works, until it is called in a task that
//!   [`Scope::spawn`] starts, with a closure that borrows: "implementation of `Send` is not general
//!   enough". The compiler would have to know that its futures are `Send` for *every* lifetime of a
//!   context, and there is no way to say that. With `'a` there is one lifetime and one future, and
//!   it sees by itself whether that is `Send`.
//! * An `async |cx| ..` closure is `FnMut` unless it changes what it has captured. If it does, make
//!   the change outside of the future: `|cx| { attempts += 1; async move { .. } }`.
//! * What the helper gives to [`Cx::timeout`], [`race`](race()) and the like is the same context:
//!   `cx.timeout(limit, |cx| op(cx))`.
//!
//! # Those that are there
//!
//! [`retry`] is the model: it waits a little longer after each failure ([`Backoff`]), by a chance
//! that the lab can replay. [`race_ok`](race_ok()) takes the first success, [`hedge`] makes a
//! second attempt beside one that is slow. Whatever is given up is asked to stop and waited for:
//! when a helper returns, nothing of it runs on.
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
//!     // Once more after a `Busy`, within two seconds in all.
//!     let often = Backoff::new(1.millis()).attempts(3);
//!     let is_busy = |error: &AskError| *error == AskError::Busy;
//!     let answer = cx.timeout(2.secs(), async |cx| {
//!         retry_if(cx, often, async |cx| ask(cx, "secret").await, is_busy).await
//!     });
//!     assert_eq!(answer.await, Err(AskError::Forbidden));
//!
//!     // Whoever can answer.
//!     let answer =
//!         race_ok(cx, async |cx| ask(cx, "busy").await, async |cx| ask(cx, "spare").await);
//!     assert_eq!(answer.await.unwrap(), "an answer from spare");
//!
//!     // Once more beside it, if there is no answer after 50 ms.
//!     let answer = hedge(cx, 50.millis(), async |cx| ask(cx, "near").await);
//!     assert_eq!(answer.await.unwrap(), "an answer from near");
//! }
//! ```

#[cfg(doc)]
use crate::{Backoff, Cx, Scope, hedge, race, race_ok, retry};
