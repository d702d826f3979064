//! From tokio: the same programs with tokio and with asx.
//!
//! | tokio | asx |
//! |---|---|
//! | `spawn` | [`Scope::spawn`]; a clone of the scope may go to other tasks and threads |
//! | `JoinSet` | a scope; in order of completion: a [`group`](group()) of awaited handles |
//! | `JoinHandle::abort` | [`Task::cancel`] is cooperative; [`Scope::stop_within`] aborts finally |
//! | `CancellationToken` | a scope: [`Scope::cancel`], or [`Scope::stop`] with [`Cx::stopping`] |
//! | `TaskTracker` | a scope, which waits for everything in it |
//! | `select!` | [`select!`] for cancel-safe futures, else [`race!`], which waits for losers |
//! | `join!`, `try_join!` | [`join!`], [`try_join!`] |
//! | `time::timeout` | [`Cx::timeout`] cancels and drains; [`Cx::abandon_on_cancel`] drops |
//! | (no equivalent) | [`Cx::timeout_or_late`] also returns a value that came after the limit |
//! | `blocking_send`, `blocking_recv` | [`wait`] in a [job](Scope::spawn_blocking) or thread |
//! | `spawn_blocking` | [`Scope::spawn_blocking`] |
//! | `LocalSet` | [`Scope::spawn_local`] |
//! | `task_local!` | [`Local`], inherited by children |
//! | `time::pause` | [`#[asx::test]`](macro@crate::test): the clock jumps to the next timer |
//! | `net`, `io::copy`, `BufReader` | the same names in `asx::net` and `asx::io` |
//! | `AsyncRead`, `AsyncWrite` | `TcpStream::bound`; tokio's own with the feature `tokio` |
//! | `signal::ctrl_c`, `signal::unix` | `asx::signal`, and [`Scope::stop`] or [`Handle::stop`] |
//!
//! There are two differences. Operations that wait take a *context* `cx`, by which a cancel reaches
//! them. A *scope* returns when everything in it has ended, so there are no handles to collect, to
//! abort or to forget.
//!
//! # Errors
//!
//! In tokio, awaiting a task gives a `Result` in a `Result`: the outer one for a panic or abort,
//! the inner one for the error of the task. Other tasks continue unless you abort them. An aborted
//! task is dropped at one of its awaits.
//!
//! ```ignore
//! // tokio
//! async fn total(urls: Vec<String>) -> anyhow::Result<usize> {
//!     let mut set = JoinSet::new();
//!     for url in urls {
//!         set.spawn(async move { fetch(&url).await });
//!     }
//!     let mut total = 0;
//!     while let Some(joined) = set.join_next().await {
//!         total += joined??; // on an error, `set` is dropped: the others are aborted
//!     }
//!     Ok(total)
//! }
//! ```
//!
//! In asx, the first error of a child cancels the others, and the scope waits for them and returns
//! it. [`Task::value`] returns the value of a task or its own error, and resumes a panic.
//!
//! ```
//! # use asx::prelude::*;
//! # async fn fetch(cx: &Cx, url: &str) -> anyhow::Result<usize> {
//! #     cx.sleep(1.millis()).await?;
//! #     anyhow::ensure!(url != "bad", "no such host");
//! #     Ok(url.len())
//! # }
//! // asx
//! async fn total(cx: &Cx, urls: Vec<String>) -> anyhow::Result<usize> {
//!     cx.scope(async |s| {
//!         let tasks = Vec::from_iter(
//!             urls.into_iter().map(|url| s.spawn(async move |cx: Cx| fetch(&cx, &url).await)),
//!         );
//!         let mut total = 0;
//!         for task in tasks {
//!             total += task.value().await?;
//!         }
//!         Ok(total)
//!     })
//!     .await // the others have ended and cleaned up
//! }
//! # #[asx::main]
//! # async fn main(cx: &Cx) {
//! #     let urls = |urls: &[&str]| urls.iter().map(|url| url.to_string()).collect::<Vec<_>>();
//! #     assert_eq!(total(cx, urls(&["one", "two"])).await.unwrap(), 6);
//! #     let failed = total(cx, urls(&["one", "bad", "two"])).await.unwrap_err();
//! #     assert_eq!(failed.to_string(), "no such host");
//! # }
//! ```
//!
//! An error type converts from [`Cancelled`], and from [`Disconnected`] if it uses channels. One
//! macro call adds the conversions from all other errors of waits:
//!
//! ```
//! use asx::channel::Disconnected;
//! use asx::prelude::*;
//!
//! #[derive(Debug)]
//! enum AppError {
//!     Cancelled(Cancelled),
//!     Disconnected,
//! }
//!
//! impl From<Cancelled> for AppError {
//!     fn from(cancelled: Cancelled) -> Self {
//!         AppError::Cancelled(cancelled)
//!     }
//! }
//!
//! impl From<Disconnected> for AppError {
//!     fn from(_: Disconnected) -> Self {
//!         AppError::Disconnected
//!     }
//! }
//!
//! asx::wait_errors_into!(AppError);
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), AppError> {
//!     let (tx, mut rx) = channel::bounded(1);
//!     tx.send(cx, 7).await?; // a SendError
//!     assert_eq!(rx.recv(cx).await?, 7); // a RecvError
//!     cx.sleep(1.millis()).await?; // a Cancelled
//!     Ok(())
//! }
//! ```
//!
//! # A loop over several things
//!
//! ```ignore
//! // tokio
//! async fn run(mut orders: mpsc::Receiver<u32>, mut quit: mpsc::Receiver<()>) -> u32 {
//!     let mut beat = tokio::time::interval(Duration::from_secs(1));
//!     let mut sum = 0;
//!     loop {
//!         tokio::select! {
//!             Some(order) = orders.recv() => sum += order,
//!             Some(()) = quit.recv() => break sum,
//!             _ = beat.tick() => println!("still here"),
//!         }
//!     }
//! }
//! ```
//!
//! In asx, branches are polled in the order written, unless `random(cx);` is added. Cancel safety
//! is part of a future's type: a future that might lose a message does not compile.
//!
//! ```
//! # use asx::prelude::*;
//! // asx
//! async fn run(
//!     cx: &Cx,
//!     mut orders: channel::Receiver<u32>,
//!     mut quit: channel::Receiver<()>,
//! ) -> Result<u32, Cancelled> {
//!     let mut beat = cx.interval(1.secs());
//!     let mut sum = 0;
//!     loop {
//!         select! {
//!             random(cx);
//!             Ok(order) = orders.recv(cx) => sum += order,
//!             Ok(()) = quit.recv(cx) => break Ok(sum),
//!             tick = beat.tick(cx) => {
//!                 tick?; // returns on a cancel
//!                 println!("still here");
//!             }
//!         }
//!     }
//! }
//! # #[asx::main]
//! # async fn main(cx: &Cx) -> Result<(), Cancelled> {
//! #     let (tx, orders) = channel::bounded(8);
//! #     let (stop, quit) = channel::bounded(1);
//! #     cx.scope(async |s| {
//! #         let sum = s.spawn(async move |cx: Cx| run(&cx, orders, quit).await);
//! #         for n in 1..=3 { tx.send(cx, n).await.unwrap(); }
//! #         while !tx.is_empty() { cx.yield_now().await; }
//! #         stop.send(cx, ()).await.unwrap();
//! #         assert_eq!(sum.value().await?, 6);
//! #         Ok(())
//! #     })
//! #     .await
//! # }
//! ```
//!
//! # Shutdown
//!
//! ```ignore
//! // tokio
//! let token = CancellationToken::new();
//! let tracker = TaskTracker::new();
//! for id in 0..4 {
//!     let token = token.clone();
//!     tracker.spawn(async move {
//!         loop {
//!             tokio::select! {
//!                 _ = token.cancelled() => break,
//!                 _ = work(id) => {} // dropped in the middle if the token was set first
//!             }
//!         }
//!         clean_up(id).await;
//!     });
//! }
//! tokio::signal::ctrl_c().await?;
//! token.cancel();
//! tracker.close();
//! if tokio::time::timeout(Duration::from_secs(10), tracker.wait()).await.is_err() {
//!     eprintln!("some tasks did not end"); // which, and where?
//! }
//! ```
//!
//! A scope is both token and tracker. A stop notifies its tasks, which complete their current work.
//! After the grace period they are cancelled, which they observe at their next wait. After another
//! one, tasks that ignore the cancel are aborted. A [dump](Handle::dump) names them.
//!
//! ```
//! # use asx::prelude::*;
//! # use std::sync::{Arc, atomic::{AtomicU32, Ordering::Relaxed}};
//! # async fn work(cx: &Cx, _id: u32) -> Result<(), Cancelled> { cx.sleep(1.millis()).await }
//! # async fn clean_up(cx: &Cx, cleaned: &AtomicU32) {
//! #     cx.yield_now().await;
//! #     cleaned.fetch_add(1, Relaxed);
//! # }
//! # async fn ctrl_c(cx: &Cx) -> Result<(), Cancelled> { cx.sleep(5.millis()).await }
//! // asx
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     # let count = Arc::new(AtomicU32::new(0));
//!     # let total = count.clone();
//!     cx.scope(async |s| {
//!         for id in 0..4 {
//!             # let cleaned = count.clone();
//!             s.spawn(async move |cx: Cx| {
//!                 while !cx.is_stopping() {
//!                     work(&cx, id).await?; // completes, unless the grace period has passed
//!                 }
//!                 clean_up(&cx, &cleaned).await;
//!                 Ok(())
//!             });
//!         }
//!         ctrl_c(cx).await?;
//!         s.stop_within(10.secs()); // notified now, cancelled after 10 s, aborted 10 s later
//!         Ok::<_, Cancelled>(())
//!     })
//!     .await?; // returns when all have ended
//!     # assert_eq!(total.load(Relaxed), 4);
//!     Ok(())
//! }
//! ```
//!
//! # Combinators
//!
//! ```ignore
//! // tokio
//! async fn retry<T, E, F>(mut op: impl FnMut() -> F) -> Result<T, E>
//! where
//!     F: Future<Output = Result<T, E>>,
//! {
//!     let mut wait = Duration::from_millis(50);
//!     loop {
//!         match op().await {
//!             Ok(value) => return Ok(value),
//!             Err(error) if wait > Duration::from_secs(1) => return Err(error),
//!             Err(_) => tokio::time::sleep(wait).await,
//!         }
//!         wait *= 2;
//!     }
//! }
//! ```
//!
//! The closure receives the context, and a cancel ends the wait. asx has a [`retry`] with jitter;
//! [`helpers`] explains the signature.
//!
//! ```
//! use asx::prelude::*;
//!
//! // asx
//! async fn retry<'a, T, E, F>(cx: &'a Cx, mut op: impl FnMut(&'a Cx) -> F) -> Result<T, E>
//! where
//!     F: Future<Output = Result<T, E>>,
//!     E: From<Cancelled>,
//! {
//!     let mut wait = 50.millis();
//!     loop {
//!         match op(cx).await {
//!             Ok(value) => return Ok(value),
//!             Err(error) if wait > 1.secs() => return Err(error),
//!             Err(_) => cx.sleep(wait).await?,
//!         }
//!         wait *= 2;
//!     }
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     cx.scope(async |s| {
//!         let task = s.spawn(async |cx: Cx| {
//!             let text = String::from("borrowed");
//!             retry(&cx, async |_cx| Ok::<_, Cancelled>(text.len())).await
//!         });
//!         assert_eq!(task.value().await?, 8);
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! # Futures of other crates
//!
//! ```ignore
//! // tokio: the request is dropped after a second, in any state
//! let answer = tokio::time::timeout(Duration::from_secs(1), client.get(url)).await?;
//! ```
//!
//! A timeout of asx cancels and waits. A future that does not observe the cancel is dropped only if
//! you state that it is cancel-safe ([`foreign_futures`] has other ways):
//!
//! ```
//! # use asx::prelude::*;
//! # struct Client;
//! # impl Client {
//! #     async fn get(&self, _url: &str) -> u32 { std::future::pending().await }
//! # }
//! # #[asx::main]
//! # async fn main(cx: &Cx) {
//! #     let (client, url) = (Client, "url");
//! // asx
//! let answer = cx.timeout(10.millis(), |cx| cx.abandon_on_cancel(client.get(url))).await;
//! # assert!(answer.is_err());
//! # }
//! ```
//!
//! # Testing
//!
//! ```ignore
//! // tokio: one schedule, with a clock that jumps
//! #[tokio::test(start_paused = true)]
//! async fn an_order_is_answered() {
//!     let (tx, mut rx) = mpsc::channel(1);
//!     tokio::spawn(async move {
//!         tokio::time::sleep(Duration::from_secs(5)).await;
//!         tx.send(7).await.unwrap();
//!     });
//!     assert_eq!(rx.recv().await, Some(7));
//! }
//! ```
//!
//! With asx a test runs under many schedules with the same kind of clock, and optionally with each
//! task cancelled at each of its awaits. It fails if a run leaks, deadlocks or ignores a cancel,
//! and prints the schedule so that it can be repeated.
//!
#![cfg_attr(feature = "lab", doc = "```")]
#![cfg_attr(not(feature = "lab"), doc = "```ignore")]
//! use asx::prelude::*;
//!
//! // asx
//! #[asx::test(seeds = 100, cancel = "every await")]
//! async fn an_order_is_answered(cx: &Cx) -> Result<(), Cancelled> {
//!     let (tx, mut rx) = channel::bounded(1);
//!     cx.scope(async |s| {
//!         s.spawn(async move |cx: Cx| {
//!             cx.sleep(5.secs()).await?;
//!             tx.send(&cx, 7).await.ok();
//!             Ok(())
//!         });
//!         // The sender may be cancelled before it sends: this test covers that.
//!         if let Some(order) = rx.next(cx).await? {
//!             assert_eq!(order, 7);
//!         }
//!         Ok(())
//!     })
//!     .await
//! }
//! # // The expansion of the attribute, so that it runs here.
//! # let report = asx::lab::check(async |cx: Cx| {
//! #     let (tx, mut rx) = channel::bounded(1);
//! #     cx.scope(async |s| {
//! #         s.spawn(async move |cx: Cx| {
//! #             cx.sleep(5.secs()).await?;
//! #             tx.send(&cx, 7).await.ok();
//! #             Ok(())
//! #         });
//! #         if let Some(order) = rx.next(&cx).await? {
//! #             assert_eq!(order, 7);
//! #         }
//! #         Ok::<_, Cancelled>(())
//! #     })
//! #     .await
//! # })
//! # .run();
//! # assert!(report.failure.is_none());
//! ```

#[cfg(doc)]
use crate::book::{foreign_futures, helpers};
#[cfg(doc)]
use crate::channel::Disconnected;
#[cfg(doc)]
use crate::{
    Cancelled, Cx, Handle, Local, Scope, Task, group, join, race, retry, select, try_join, wait,
};
