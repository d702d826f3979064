//! For those who know tokio: programs side by side.
//!
//! | tokio | here |
//! |---|---|
//! | `spawn` | [`Scope::spawn`]; a clone of the scope may go to other tasks and threads |
//! | `JoinSet` | a scope; by the order of ends: a [`group`](group()) of handles that are awaited |
//! | `JoinHandle::abort` | [`Task::cancel`] asks; [`Scope::stop_within`] ends by force at last |
//! | `CancellationToken` | a scope: [`Scope::cancel`], or [`Scope::stop`] with [`Cx::stopping`] |
//! | `TaskTracker` | a scope: its end waits for all that is in it |
//! | `select!` | [`select!`] where losers lose nothing, else [`race!`], which waits for them |
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
//! Two things are new. *The context*: what waits takes a `cx`, which is how a cancel finds it.
//! *The end*: a scope returns when all in it has ended, so there is nothing to collect, to abort or
//! to forget.
//!
//! # Errors
//!
//! In tokio a task gives a `Result` in a `Result`: its own error, and whether it panicked or was
//! aborted. The other tasks go on, unless you abort them; those that were aborted are dropped at
//! some await.
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
//! Here the first error of a child asks the others to stop, waits for them, and is what the scope
//! returns. [`Task::value`] is the value of a task or its error as it is; a panic goes on.
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
//!     .await // the others have ended, and cleaned up
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
//! An error type of your own is made of a [`Cancelled`], and of a [`Disconnected`] if it uses
//! channels; one line has `?` do the rest:
//!
//! ```
//! use asx::channel::Disconnected;
//! use asx::prelude::*;
//!
//! #[derive(Debug)]
//! enum AppError {
//!     Cancelled(Cancelled),
//!     Alone,
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
//!         AppError::Alone
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
//! The same here; the order is the one written, unless it says `random(cx);`. Whether a future
//! loses something when it is dropped is a matter of its type: what might lose a message does not
//! compile.
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
//!                 tick?; // a cancel is seen here, if nowhere else
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
//!                 _ = work(id) => {} // dropped half-way, if the token was first
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
//! A scope is both token and tracker. Told to stop, tasks finish what they are at; asked after the
//! grace, they see a cancel at the next operation that waits; what ignores that too is ended by
//! force, and a [dump](Handle::dump) says who it was.
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
//!                     work(&cx, id).await?; // finished, unless the grace is over
//!                 }
//!                 clean_up(&cx, &cleaned).await;
//!                 Ok(())
//!             });
//!         }
//!         ctrl_c(cx).await?;
//!         s.stop_within(10.secs()); // told now; asked after 10 s; ended by force 10 s later
//!         Ok::<_, Cancelled>(())
//!     })
//!     .await?; // returns when all have ended
//!     # assert_eq!(total.load(Relaxed), 4);
//!     Ok(())
//! }
//! ```
//!
//! # Combinators of your own
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
//! The closure gets the context; a cancel ends the wait. [`retry`] is there, with a jitter;
//! [`helpers`] has more on the signature.
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
//! // tokio: the request is dropped after a second, whatever it was about to do
//! let answer = tokio::time::timeout(Duration::from_secs(1), client.get(url)).await?;
//! ```
//!
//! A timeout asks and waits. A future that does not look is given up only if you say that it loses
//! nothing by that ([`foreign_futures`] has the other ways):
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
//! Here a test runs under many schedules, with the same clock, and with each task cancelled at each
//! of its awaits if you ask for it. It fails if something is left behind, deadlocks, or ignores a
//! cancel, and says which schedule did it, to be run again.
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
//!         // The sender may be cancelled before it sends: that is what this test is about.
//!         if let Some(order) = rx.next(cx).await? {
//!             assert_eq!(order, 7);
//!         }
//!         Ok(())
//!     })
//!     .await
//! }
//! # // What the attribute is made of, so that it runs here.
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
