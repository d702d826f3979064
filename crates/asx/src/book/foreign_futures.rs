//! Futures of others.
//!
//! A future of another crate can be awaited in a task like any other. It knows nothing of asx, so
//! it does not look whether the task is to stop. Where that matters is what this chapter is about:
//!
//! | you want | write | the future |
//! |---|---|---|
//! | its output, whatever happens | `future.await` | is waited for by cancels and timeouts |
//! | to give it up on a cancel | [`cx.abandon_on_cancel(..)`][abandon] | is dropped on a cancel |
//! | to give it up in a [`select!`] | [`assume_cancel_safe(..)`][assume] | is dropped if it loses |
//! | to go on with it after a [`select!`] | `&mut future`, `future.as_mut()` | stays |
//! | to stop it by its own means | [`Cx::cancelled`] in a [`select!`] | is told, and waited for |
//!
//! [abandon]: Cx::abandon_on_cancel
//! [assume]: assume_cancel_safe
//!
//! # A timeout that does nothing
//!
//! A [timeout](Cx::timeout) asks what is in it to stop, and waits until it has. A future that does
//! not look is waited for until it is done:
//!
//! ```
//! # mod client {
//! #     /// An answer that takes its time.
//! #     pub async fn get(takes: std::time::Duration) -> &'static str {
//! #         let cx = asx::Cx::current().unwrap();
//! #         let end = cx.now() + takes;
//! #         while cx.now() < end { cx.yield_now().await; }
//! #         "an answer"
//! #     }
//! # }
//! use asx::prelude::*;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) {
//!     // `client` is a crate that knows nothing of asx.
//!     let late = cx.timeout(1.millis(), async |_cx| {
//!         Ok::<_, Cancelled>(client::get(20.millis()).await)
//!     });
//!     assert_eq!(late.await, Ok("an answer")); // after 20 ms: nothing in there has looked
//!
//!     let late = cx.timeout(1.millis(), async |cx| {
//!         cx.abandon_on_cancel(client::get(20.millis())).await
//!     });
//!     assert!(late.await.is_err()); // after 1 ms
//! }
//! ```
//!
//! A timeout in which nothing has looked for a second after its time is reported: as a warning of
//! `tracing` that names its line, in [`Health::unheeded_timeouts`], and as a failure of a test in
//! the lab.
//!
//! # What loses nothing
//!
//! To drop a future half-way is right if that loses nothing: nothing was taken, sent or promised
//! yet. What a crate says about "cancel safety" tells. Mostly a receive of a channel is fine, and
//! so is a request whose answer nobody needs. A `read_exact` is not (what it has read is gone), nor
//! is a send that holds the message, nor a transaction between two of its steps.
//!
//! [`Cx::abandon_on_cancel`] and [`assume_cancel_safe`] are how you say that it is fine. Nothing
//! can check it, so the words are there to be searched for. Without one of them `select!` does not
//! take the future, and the compiler's message says so.
//!
//! # A future that is kept
//!
//! What is borrowed is not dropped. So `select!` takes `&mut future` and `Pin<&mut F>` of *any*
//! future: it is still there afterwards. That is how a loop does other things while something takes
//! its time, and how a connection of a server is told to end:
//!
//! ```
//! # mod server {
//! #     use std::future::Future;
//! #     use std::pin::Pin;
//! #     use std::task::{Context, Poll, Waker};
//! #     #[derive(Default)]
//! #     pub struct Connection { told: bool, waker: Option<Waker> }
//! #     impl Connection {
//! #         pub fn graceful_shutdown(mut self: Pin<&mut Self>) {
//! #             self.told = true;
//! #             self.waker.take().map(Waker::wake);
//! #         }
//! #     }
//! #     impl Future for Connection {
//! #         type Output = Result<(), std::io::Error>;
//! #         fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
//! #             self.waker = Some(cx.waker().clone());
//! #             if self.told { Poll::Ready(Ok(())) } else { Poll::Pending }
//! #         }
//! #     }
//! # }
//! use asx::prelude::*;
//! use std::pin::pin;
//!
//! /// A connection of hyper, for example: it ends in order when it is told to.
//! async fn serve(cx: &Cx, connection: server::Connection) -> std::io::Result<()> {
//!     let mut connection = pin!(connection);
//!     let mut told = false;
//!     loop {
//!         select! {
//!             end = connection.as_mut() => return end,
//!             _ = cx.stopping(), if !told => {
//!                 told = true;
//!                 connection.as_mut().graceful_shutdown(); // finishes what is begun
//!             }
//!         }
//!     }
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     cx.scope(async |s| {
//!         let connection = server::Connection::default();
//!         let served = s.spawn(async move |cx: Cx| Ok(serve(&cx, connection).await));
//!         s.stop();
//!         assert!(matches!(served.await, Ok(Ok(()))));
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! # A future with a handle of its own
//!
//! Some crates have a way to stop what they do: a token, a handle, a `close`. Let the task tell it,
//! and wait for the end, so that nothing is lost and nothing runs on:
//!
//! ```
//! # mod job {
//! #     use std::future::{Future, poll_fn};
//! #     use std::sync::{Arc, Mutex};
//! #     use std::task::{Poll, Waker};
//! #     #[derive(Clone, Default)]
//! #     pub struct Token(Arc<Mutex<(bool, Option<Waker>)>>);
//! #     impl Token {
//! #         pub fn stop(&self) {
//! #             let mut inner = self.0.lock().unwrap();
//! #             inner.0 = true;
//! #             inner.1.take().map(Waker::wake);
//! #         }
//! #     }
//! #     /// Runs until its token says no: how much it has done.
//! #     pub fn run(token: Token) -> impl Future<Output = u32> {
//! #         poll_fn(move |context| {
//! #             let mut inner = token.0.lock().unwrap();
//! #             inner.1 = Some(context.waker().clone());
//! #             if inner.0 { Poll::Ready(7) } else { Poll::Pending }
//! #         })
//! #     }
//! # }
//! use asx::prelude::*;
//! use std::pin::pin;
//!
//! async fn work(cx: &Cx) -> u32 {
//!     let token = job::Token::default();
//!     let mut job = pin!(job::run(token.clone()));
//!     select! {
//!         done = job.as_mut() => return done,
//!         _ = cx.cancelled() => token.stop(),
//!     }
//!     job.await // what it has done until then
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) {
//!     let mut done = 0;
//!     let late: Result<(), Cancelled> = cx
//!         .timeout(1.millis(), async |cx| {
//!             done = work(cx).await;
//!             cx.checkpoint()
//!         })
//!         .await;
//!     assert!(late.is_err() && done == 7);
//! }
//! ```
//!
//! # The other way round
//!
//! Operations of asx may be awaited in combinators of other crates (`FuturesUnordered`,
//! `futures::join!`), which poll only what was woken: they hear of cancels all the same. What is
//! awaited outside of any task, on a thread or an executor of your own, works with any context; see
//! [`wait`].

#[cfg(doc)]
use crate::{Cx, Health, assume_cancel_safe, select, wait};
