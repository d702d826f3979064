//! Foreign futures: those of other crates.
//!
//! A task can await a future of another crate like any other. Such a future does not know asx and
//! does not observe cancels. This chapter describes the ways to cancel it:
//!
//! | goal | write | the future |
//! |---|---|---|
//! | its output in any case | `future.await` | cancels and timeouts wait for it |
//! | to give it up on a cancel | [`cx.abandon_on_cancel(..)`][abandon] | is dropped on a cancel |
//! | to give it up in a [`select!`] | [`assume_cancel_safe(..)`][assume] | is dropped if it loses |
//! | to continue it after a [`select!`] | `&mut future`, `future.as_mut()` | stays |
//! | to stop it by its own API | [`Cx::cancelled`] in a [`select!`] | is stopped, and waited for |
//!
//! [abandon]: Cx::abandon_on_cancel
//! [assume]: assume_cancel_safe
//!
//! # A timeout without effect
//!
//! A [timeout](Cx::timeout) cancels the operation inside and waits until it ends. For a future that
//! does not observe cancels, it waits until that is ready:
//!
//! ```
//! # mod client {
//! #     /// A slow answer.
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
//!     // `client` is a crate without support for asx.
//!     let late = cx.timeout(1.millis(), async |_cx| {
//!         Ok::<_, Cancelled>(client::get(20.millis()).await)
//!     });
//!     assert_eq!(late.await, Ok("an answer")); // after 20 ms: the cancel was not observed
//!
//!     let late = cx.timeout(1.millis(), async |cx| {
//!         cx.abandon_on_cancel(client::get(20.millis())).await
//!     });
//!     assert!(late.await.is_err()); // after 1 ms
//! }
//! ```
//!
//! A timeout whose cancel has not been observed for a second is reported: as a warning of `tracing`
//! with its location, in [`Health::unheeded_timeouts`], and as a failure of a test in the lab.
//!
//! # Cancel safety
//!
//! A future may be dropped before it is ready if that loses nothing: no data was taken, sent or
//! reserved yet. The documentation of a crate describes this as "cancel safety". A receive of a
//! channel usually is cancel-safe, and so is a request whose answer is not needed. A `read_exact`
//! is not, because the bytes it has read are lost. Neither is a send that holds the message, or a
//! transaction between two of its steps.
//!
//! [`Cx::abandon_on_cancel`] and [`assume_cancel_safe`] state that a future is cancel-safe. This
//! cannot be checked, but the names can be searched for. `select!` does not accept a foreign future
//! without one of them, and the compiler's message says so.
//!
//! # A borrowed future
//!
//! A borrowed future is not dropped. `select!` therefore accepts `&mut future` and `Pin<&mut F>` of
//! *any* future, which is still there afterwards. This lets a loop do other work while a future is
//! pending, and shut a connection of a server down gracefully:
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
//! /// Serves a connection, of hyper for example, with a graceful shutdown.
//! async fn serve(cx: &Cx, connection: server::Connection) -> std::io::Result<()> {
//!     let mut connection = pin!(connection);
//!     let mut stopping = false;
//!     loop {
//!         select! {
//!             end = connection.as_mut() => return end,
//!             _ = cx.stopping(), if !stopping => {
//!                 stopping = true;
//!                 connection.as_mut().graceful_shutdown(); // completes requests in progress
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
//! # A future with its own stop mechanism
//!
//! Some crates have a way to stop an operation: a token, a handle, a `close`. Call it on a cancel
//! and wait for the end, so that nothing is lost and nothing continues to run:
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
//! #     /// Runs until its token is set; returns the amount of work done.
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
//!     job.await // the work done until then
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
//! # asx operations in foreign combinators
//!
//! Operations of asx may be awaited in combinators of other crates (`FuturesUnordered`,
//! `futures::join!`), which poll only woken futures: they still observe cancels. Outside of tasks,
//! on any thread or executor, they can be awaited with any context; see [`wait`].

#[cfg(doc)]
use crate::{Cx, Health, assume_cancel_safe, select, wait};
