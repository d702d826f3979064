//! Structured concurrency for Rust: every task has an owner, cancellation is a protocol, and no
//! message is half-sent.
//!
//! ```
//! use asx::prelude::*;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     let words = ["every", "task", "has", "an", "owner"];
//!     let total = cx
//!         .scope(async |s| {
//!             let tasks = words.map(|word| s.spawn(async move |_cx: Cx| Ok(word.len())));
//!             let mut total = 0;
//!             for task in tasks {
//!                 total += task.await.unwrap_or(0);
//!             }
//!             Ok::<_, Cancelled>(total)
//!         })
//!         .await?; // everything started in the scope has ended here
//!     assert_eq!(total, 19);
//!     Ok(())
//! }
//! ```
//!
//! A task whose body never ends has no value the compiler could learn the type of: say what its
//! body returns, `s.spawn(async |cx: Cx| -> Result<(), _> { loop { .. } })`. Its way out is the
//! error of a cancel:
//!
//! ```
//! use asx::prelude::*;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     cx.scope(async |s| {
//!         let clock = s.spawn(async |cx: Cx| -> Result<(), _> {
//!             loop {
//!                 cx.sleep(1.secs()).await?;
//!                 println!("tick");
//!             }
//!         });
//!         clock.cancel("enough");
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! # 1. The context
//!
//! A [`Cx`] is what a task gets its powers from: time, scopes, and the question whether to stop.
//! Nothing is ambient: what has no context cannot wait, spawn or sleep. It is a cheap clone; a task
//! owns one and lends it (`cx: &Cx`) to what it calls.
//!
//! A runtime gives the first one: [`main`](macro@main) makes a runtime around `main`, and
//! [`Runtime`] is for programs that want it in their own hands.
//!
//! ```
//! use asx::prelude::*;
//!
//! # fn main() -> std::io::Result<()> {
//! let runtime = asx::Runtime::builder().workers(2).build()?;
//! let text = String::from("borrowed");
//! let length = runtime.block_on(async |cx: Cx| {
//!     cx.yield_now().await;
//!     text.len()
//! });
//! assert_eq!(length, 8);
//! # Ok(())
//! # }
//! ```
//!
//! # 2. Scopes and tasks
//!
//! [`Cx::scope`] opens a scope; [`Scope::spawn`] starts a task in it, which may run on another
//! thread. The scope returns when everything in it has ended. There are no detached tasks: a
//! [`Task`] handle that is dropped leaves the task to its scope.
//!
//! The first error of a child asks the others to stop, waits for them, and is the result of the
//! scope:
//!
//! ```
//! use asx::prelude::*;
//!
//! #[derive(Debug, PartialEq)]
//! enum AppError {
//!     Cancelled,
//!     Refused(u32),
//! }
//!
//! impl From<Cancelled> for AppError {
//!     fn from(_: Cancelled) -> Self {
//!         AppError::Cancelled
//!     }
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) {
//!     let result: Result<(), AppError> = cx
//!         .scope(async |s| {
//!             s.spawn(async |cx: Cx| {
//!                 cx.sleep(60.minutes()).await?; // ends early, with an error: `?` is the way out
//!                 Ok(())
//!             });
//!             s.spawn(async |_cx: Cx| Err::<(), _>(AppError::Refused(7)));
//!             Ok(())
//!         })
//!         .await;
//!     assert_eq!(result, Err(AppError::Refused(7)));
//! }
//! ```
//!
//! What a task comes to is an [`Outcome`]: a value, or a [`TaskError`] that says whether it
//! failed, was cancelled or panicked. [`Task::value`] is the value, or its error as it is.
//!
//! # 3. Cancellation
//!
//! To cancel is to ask. The task goes on until it looks: every operation that waits (`sleep`,
//! `recv`, `reserve`, locks, the await of a task) looks, and so does [`Cx::checkpoint`]. It then
//! gets [`Cancelled`], which says why, and cleans up; who asked waits for it. So an error type has
//! a `From<Cancelled>`, and `?` does the rest.
//!
//! * [`Cx::shield`] runs what must not be interrupted, for half a minute at most once there is a
//!   cancel ([`Builder::cleanup_time`], [`Cx::shield_for`]).
//! * [`Scope::defer`] registers what is to run last.
//! * [`Cx::timeout`] cancels a part of the task at a time limit. An inner timeout can only shorten
//!   an outer one. A value that the part returns after it has observed the cancel is dropped;
//!   [`Cx::timeout_or_late`] returns it.
//! * [`Cx::abandon_on_cancel`] gives up a future of another crate, which does not look by itself
//!   ([more](book::foreign_futures)).
//!
//! ```
//! use asx::prelude::*;
//! use asx::cancel::Kind;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) {
//!     let mut flushed = false;
//!     let result: Result<(), Cancelled> = cx
//!         .timeout(1.millis(), async |cx| {
//!             let slow = cx.sleep(60.minutes()).await;
//!             cx.shield(async |cx| {
//!                 cx.yield_now().await;
//!                 flushed = true;
//!             })
//!             .await;
//!             slow
//!         })
//!         .await;
//!     assert_eq!(result.unwrap_err().kind(), Kind::Timeout);
//!     assert!(flushed);
//! }
//! ```
//!
//! What a task has to undo, it defers in a scope of its own, before it does it. The scope runs it
//! before it returns, last deferred first, however the task ends: with a value, an error, a panic
//! or a cancel. No cancel reaches it, so it may wait; how often it is polled and how long it takes
//! is bounded, as is all cleanup: by kind of cancel, for a runtime ([`Builder::cleanup_polls`],
//! [`Builder::cleanup_time`]), for a scope ([`ScopeBuilder::cleanup_time`]) or for one cancel
//! ([`Why::cleanup_time`]). Where a time is stated, there or in [`Scope::stop_within`] and in a
//! shutdown, it takes the place of polls. What takes longer is ended by force, and reported. What
//! needs no waiting is the business of `Drop`, as ever.
//!
//! ```
//! use asx::prelude::*;
//! use std::sync::{Arc, Mutex};
//!
//! type Log = Arc<Mutex<Vec<&'static str>>>;
//!
//! async fn migrate(cx: &Cx, log: Log) -> Result<(), Cancelled> {
//!     cx.scope(async |s| {
//!         let undo = log.clone();
//!         s.defer(async move |cx: Cx| {
//!             cx.yield_now().await; // whatever takes time
//!             undo.lock().unwrap().push("unlock the table");
//!         })
//!         .expect("the scope is open");
//!         cx.sleep(60.minutes()).await // the work
//!     })
//!     .await
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     let log = Log::default();
//!     let told = log.clone();
//!     cx.scope(async |s| {
//!         let task = s.spawn(async move |cx: Cx| migrate(&cx, told).await);
//!         task.cancel("the night is over");
//!         assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
//!         assert_eq!(*log.lock().unwrap(), ["unlock the table"]);
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! # 4. Several things at once
//!
//! Tasks of a scope run in parallel and own what they use. Within one task things run concurrently
//! and may borrow:
//!
//! | | ends when | the others |
//! |---|---|---|
//! | [`join()`], [`join!`], [`join_all`] | all have ended | |
//! | [`try_join()`], [`try_join!`], [`try_join_all`] | all have, or one has failed | as below |
//! | [`race()`], [`race!`], [`race_all`] | one has ended | asked to stop, waited for |
//! | [`race_ok()`], [`race_ok!`], [`race_ok_all`] | one has succeeded | asked to stop, waited for |
//! | [`group`] | the body and all it added have ended | if the body fails: the same |
//! | [`select!`] | one is done | dropped: only for futures that lose nothing |
//!
//! ```
//! use asx::prelude::*;
//!
//! async fn ask(cx: &Cx, server: &str, takes: u64) -> Result<String, Cancelled> {
//!     cx.sleep(takes.millis()).await?;
//!     Ok(format!("an answer from {server}"))
//! }
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     let (near, far) = (String::from("near"), String::from("far"));
//!     let first = race(
//!         cx,
//!         async |cx| ask(cx, &far, 3_600_000).await,
//!         async |cx| ask(cx, &near, 1).await,
//!     );
//!     assert_eq!(first.await?, "an answer from near");
//!
//!     let both = try_join(
//!         cx,
//!         async |cx| ask(cx, &near, 1).await,
//!         async |cx| ask(cx, &far, 2).await,
//!     );
//!     assert_eq!(both.await?.1, "an answer from far");
//!
//!     let lengths = group(cx, async |g| {
//!         for server in [&near, &far] {
//!             g.add(async move |cx| ask(cx, server, 1).await);
//!         }
//!         let mut lengths = Vec::new();
//!         while let Some(answer) = g.next(cx).await? {
//!             lengths.push(answer?.len());
//!         }
//!         lengths.sort();
//!         Ok::<_, Cancelled>(lengths)
//!     });
//!     assert_eq!(lengths.await?, [18, 19]);
//!     Ok(())
//! }
//! ```
//!
//! # 5. Channels
//!
//! A send has two phases. `reserve` waits for a slot and can be cancelled with nothing at stake;
//! the [`Permit`](channel::Permit) it gives cannot fail half-way. See [`channel`] for more than the
//! bounded one, and [`sync`] for locks and signals.
//!
//! ```
//! use asx::prelude::*;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     let (tx, mut rx) = channel::bounded(8);
//!     cx.scope(async |s| {
//!         s.task("feed").spawn(async move |cx: Cx| {
//!             for order in 0..20 {
//!                 let Ok(permit) = tx.reserve(&cx).await else { break };
//!                 permit.send(order);
//!             }
//!             Ok(())
//!         });
//!         let mut beat = cx.interval(1.secs());
//!         let mut sum = 0;
//!         loop {
//!             select! {
//!                 order = rx.recv(cx) => match order {
//!                     Ok(order) => sum += order,
//!                     Err(_) => break,
//!                 },
//!                 tick = beat.tick(cx) => {
//!                     tick?;
//!                     println!("still here");
//!                 }
//!             }
//!         }
//!         assert_eq!(sum, 190);
//!         Ok::<_, Cancelled>(())
//!     })
//!     .await
//! }
//! ```
//!
//! # 6. Seeing what happens
//!
//! [`Cx::handle`] gives a [`Handle`], which goes anywhere. [`Handle::dump`] says what lives, where
//! it came from, what it waits for and until when; [`Handle::metrics`] what the workers have done;
//! [`Handle::stop`] begins to end it all. A scope has a name in dumps if it is given one
//! ([`ScopeBuilder::name`]), as tasks do ([`Scope::task`]). [`Handle::quiescence`] checks that
//! nothing is alive, and otherwise returns the codes of the failures and a list of what is
//! ([`QuiescenceError`]). A runtime that is shut down or dropped while tasks live reports the list.
//!
//! What goes wrong without anybody having to notice is counted ([`Health`]): cleanup that took too
//! long and was ended by force, cancels that nobody looks at, panics that went to nobody,
//! obligations and tracked permits that leaked (with the task that reserved each, and where). On
//! threads it is also told on the error output, once for each cause, unless `tracing` has a
//! subscriber that hears of it. A `main` that was told to stop and is ended by force exits with
//! the status [`ENDED_BY_FORCE`] and a line that names what was ended;
//! [`Runtime::try_block_on`] answers that as an error ([`BlockOnError::Ended`]).
//!
//! With the feature `tracing` every scope and every task is a span (target
//! `asx`, names `region` and `task`, level info), so that what your code tells `tracing` is told
//! with the task it happened in, whichever thread that was on. Spans close with their `outcome`;
//! cancels (debug), panics (error), cleanup that overran and obligations that leaked (warn) are
//! events in them.
//!
//! ```
//! use asx::prelude::*;
//! use tracing_subscriber::fmt::format::FmtSpan;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> Result<(), Cancelled> {
//!     tracing_subscriber::fmt().with_span_events(FmtSpan::CLOSE).init();
//!     cx.scope(async |s| {
//!         s.task("greeter").spawn(async |_cx: Cx| {
//!             // INFO ..task{id=2 name="greeter" priority=128}: greet: hello who="world"
//!             tracing::info!(target: "greet", who = "world", "hello");
//!             Ok(())
//!         });
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! # 7. Testing
//!
//! With the feature `lab`, [`#[asx::test]`](macro@test) runs a test not once but under many
//! schedules: the same program, tasks and channels as in production, on one thread, with the order
//! of polls chosen on purpose and with a clock that jumps to the next timer. It looks for a run
//! that panics, answers an error, deadlocks, never ends, or leaves something behind.
//!
//! ```toml
//! [dev-dependencies]
//! asx = { version = "0.1", features = ["lab"] }
//! ```
//!
//! Cargo unites features: what the lab needs is compiled into asx for tests, examples and benches
//! of your crate, and not into your program. So measure without it.
//!
#![cfg_attr(feature = "lab", doc = "```")]
#![cfg_attr(not(feature = "lab"), doc = "```ignore")]
//! use asx::prelude::*;
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//!
//! #[asx::test(seeds = 1000, cancel = "every await")]
//! async fn nothing_is_lost(cx: &Cx) -> Result<(), Cancelled> {
//!     let (tx, mut rx) = channel::bounded(1);
//!     cx.scope(async |s| {
//!         let sent = s.spawn(async move |cx: Cx| Ok(tx.send(&cx, 7).await.is_ok()));
//!         let got = rx.recv(cx).await;
//!         assert!(got.is_ok() || !matches!(sent.await, Ok(true)));
//!         Ok(())
//!     })
//!     .await
//! }
//!
//! // What the attribute is made of: a program and a check of it.
//! async fn count(cx: Cx) -> Result<(), Cancelled> {
//!     let count = Arc::new(AtomicU32::new(0));
//!     let total = count.clone();
//!     cx.scope(async |s| {
//!         for name in ["left", "right"] {
//!             let count = count.clone();
//!             s.task(name).spawn(async move |cx: Cx| {
//!                 let before = count.load(Relaxed);
//!                 cx.yield_now().await; // the other one may run here
//!                 count.store(before + 1, Relaxed);
//!                 Ok(())
//!             });
//!         }
//!         Ok::<_, Cancelled>(())
//!     })
//!     .await?;
//!     assert_eq!(total.load(Relaxed), 2);
//!     Ok(())
//! }
//!
//! let found = asx::lab::check(count).run().failure.expect("a bug");
//! assert_eq!(found.words, ["at step 3 run `right (main/2)` instead of `left (main/1)`"]);
//! assert!(asx::lab::check(count).replay(&found.token).unwrap().failure.is_some());
//! ```
//!
//! A test that fails says what went wrong and where, who waits for what, and the schedule in words,
//! made as short as it gets; it writes the run as a trace into `target/asx`, and prints the command
//! that runs that one schedule again: `ASX_REPLAY=token cargo test name`.
//!
//! * Tasks are called by their names and by where they were spawned: `left (main/1)` is the first
//!   task that `main` spawned.
//! * What a program does must depend on nothing but the order of its polls: the time is
//!   [`Cx::now`], random numbers are [`Cx::random`]. Some runs are made twice; if they differ, the
//!   test fails and says at which step.
//! * In the lab there are no other threads: what waits for one, or for the outside world, waits for
//!   ever. `#[asx::test(native)]` runs a test once on threads instead, `#[asx::test(lab, native)]`
//!   after the lab.
//!
//! # 8. The network
//!
//! [`net`] has TCP, UDP and unix sockets, names and descriptors of your own; [`io`]
//! errors, buffers, lines, frames and copies. Each operation takes a context. A read, an accept or
//! a datagram that is cancelled has taken nothing, so [`select!`] takes it; [`net::serve`] runs a
//! task for each connection and ends in order when it is told to stop. On unix, `asx::signal` hears
//! Ctrl-C and other signals.
//!
#![cfg_attr(feature = "net", doc = "```")]
#![cfg_attr(not(feature = "net"), doc = "```ignore")]
//! use asx::net::{TcpListener, TcpStream};
//! use asx::prelude::*;
//!
//! #[asx::main]
//! async fn main(cx: &Cx) -> asx::io::Result<()> {
//!     let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
//!     let mut client = TcpStream::connect(cx, listener.local_addr()?).await?;
//!     let (mut server, _from) = listener.accept(cx).await?;
//!     client.write_all(cx, b"hello").await?;
//!     let mut buffer = [0; 64];
//!     let count = cx.timeout(5.secs(), |cx| server.read(cx, &mut buffer)).await?;
//!     assert_eq!(&buffer[..count], b"hello");
//!     Ok(())
//! }
//! ```
//!
//! # 9. Further chapters
//!
//! * [From tokio](book::from_tokio): programs side by side
//! * [Futures of others](book::foreign_futures): how they take part in cancels and timeouts
//! * [Helpers of your own](book::helpers): closures that get the context, `retry`, `hedge`

pub mod book;

pub use asx_kernel::budget::{Budget, Exhausted};
pub use asx_kernel::ids::TaskId;
pub use asx_kernel::lanes::{Pending, Priority, Suggestion};
pub use asx_kernel::outcome::Severity;
pub use asx_kernel::region::RegionState;
pub use asx_kernel::status::Status;
pub use asx_kernel::task::TaskState;
/// Runs an async `main` on a runtime.
///
/// The function is `async` and takes the context as `cx: &Cx`, as `cx: Cx`, or not at all. It may
/// return whatever a `main` may. When it returns, everything it started has ended.
///
/// `cx.handle()` looks at the runtime and stops it. A `main` that was told to stop and did not end
/// in the time it was given is ended by force: then a line on the error output names what was, and
/// the process exits with the status 124 (`asx::ENDED_BY_FORCE`).
///
/// ```
/// use asx::prelude::*;
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     cx.sleep(1.millis()).await
/// }
/// ```
///
/// Settings, in parentheses and separated by commas:
///
/// * `workers = 4`: how many threads run tasks; as many as there are processors unless set.
/// * `current_thread`: only the main thread does.
/// * `name = "shop"`: what the threads are called.
pub use asx_macros::main;
/// Runs an async test in the lab: under many schedules, each of which can be run again.
///
/// The function is `async`, takes the context as `cx: &Cx`, as `cx: Cx`, or not at all, and gives
/// `()` or a `Result` whose error is `Debug`. It becomes a `#[test]`; other attributes
/// (`#[should_panic]`, `#[ignore = ".."]`) are kept. The facade's feature `lab` must be on.
///
/// ```
/// # #[cfg(test)]
/// # mod tests {
/// use asx::prelude::*;
///
/// #[asx::test(seeds = 500, cancel = "every await")]
/// async fn what_is_sent_arrives(cx: &Cx) -> Result<(), Cancelled> {
///     let (tx, mut rx) = channel::bounded(1);
///     cx.scope(async |s| {
///         let sent = s.task("feed").spawn(async move |cx: Cx| Ok(tx.send(&cx, 7).await.is_ok()));
///         let got = rx.recv(cx).await;
///         // Either may be cancelled here, but no message is sent and gone.
///         assert!(got.is_ok() || !matches!(sent.await, Ok(true)));
///         Ok(())
///     })
///     .await
/// }
/// # }
/// ```
///
/// A test that takes long says every ten seconds how far it is. One that passes prints a line
/// (`cargo test -- --show-output`): how many runs there were, how many of the cancels and faults
/// were tried, and which limit ended the search. A disturbance that is requested here (`cancel`,
/// `faults`, `late_clocks`, `network`) and was never tried fails the test. With `ASX_REPLAY=token`
/// the one schedule of a report is run; a token of another test, or one that no longer fits, fails
/// the test.
///
/// Settings, in parentheses and separated by commas. For the lab:
///
/// * `seeds = 1000` (or `runs = 1000`): how many runs at most without cancels and faults; 1000
///   unless set. Those with come on top.
/// * `total = 10000`: how many runs at most in all; ten times as many as `seeds` unless set.
/// * `seed = 7`: where random choices come from; 0 unless set.
/// * `strategy = "mixed"`: how schedules are chosen; or `random`, `uniform`, `pos`, `pct(3)`,
///   `guided`, `dfs`, `dpor`, `bounded`.
/// * `steps = 10000`: how many polls a run may take before it counts as endless.
/// * `time = "2s"`: how long to search at most; `ms`, `s` and `m` are known. Ten seconds
///   unless set.
/// * `min_time = "1s"`: how long to search at least while the search is incomplete; one second
///   unless set here or with the environment variable `ASX_LAB_TIME`. Tests that set `seeds`,
///   `total` or `strategy` make just their runs.
/// * `cancel = "every await"`: then each task is cancelled at each of its awaits as well, one
///   cancel a run. Where there was a cancel, an error is as good as a value.
/// * `faults`: then something goes wrong wherever it may, one fault a run: where the program asks
///   `cx.fault("disk full")`, and by wakes for nothing. `late_clocks`: also a clock that is late.
/// * `disturbances = 2`: how many cancels and faults there may be in a run, after each was tried
///   alone; 2 unless set.
/// * `exact_time`: time stands still while anything can run. Unless set, it also passes then, in
///   some of the runs, as on a machine that is busy.
/// * `network`: then everything goes wrong that may in the simulated network on which `asx::net`
///   runs in the lab: segments come late or in pieces, connections break, and so on.
/// * `virtual_workers = 2`: so many virtual workers run it by the law of the scheduler.
/// * `transparent`: tasks share nothing but channels, locks and other things of asx, so that far
///   fewer schedules have to be tried.
///
/// Where else it runs:
///
/// * `native`: on threads, once, and not in the lab: for what the lab can't control, such as
///   other threads.
/// * `workers = 4`: the same with so many threads.
/// * `lab, native` or `lab, workers = 4`: first in the lab, then on threads.
#[cfg(feature = "lab")]
pub use asx_macros::test;
#[cfg(not(feature = "lab"))]
#[doc(hidden)]
pub use asx_macros::test_without_lab as test;
pub use asx_native::{
    Adaptive, BlockOnError, BuildError, Builder, ENDED_BY_FORCE, Ended, Governor, Runtime, View,
    wait,
};
#[cfg(all(feature = "net", any(unix, windows)))]
pub use asx_net::{self as net, io, signal};
pub use asx_runtime::{
    AbandonOnCancel, Activity, AdmissionError, AssumeCancelSafe, Backoff, BoxFuture, CancelError,
    CancelSafe, Cancelled, ChannelInfo, Child, Cx, Dump, FinalizerError, Grace, Group, Handle,
    Health, Limits, Local, LockHolder, Metrics, NextChild, NotReady, Obligation, ObligationError,
    ObligationInfo, Outcome, Panic, Policy, QuiescenceError, Ready, RegionInfo, Restart, Scope,
    ScopeBuilder, SpawnError, Starting, Stopping, Task, TaskBuilder, TaskError, TaskInfo,
    TaskValue, TimerError, TimerInfo, Unheeded, UntilCancelled, WaitError, Why, WorkerMetrics,
    YieldNow, assume_cancel_safe, channel, group, hedge, join, join_all, join3, join4, race,
    race_all, race_ok, race_ok_all, race3, race4, retry, retry_if, select, sync, try_join,
    try_join_all, try_join3, try_join4, wait_errors_into,
};

/// Tests under every schedule: what [`test`](macro@test) is made of.
#[cfg(feature = "lab")]
pub mod lab {
    pub use asx_lab::*;
}

/// Why something was asked to stop.
pub mod cancel {
    pub use asx_kernel::cancel::{Kind, Reason};
}

/// What a runtime has recorded; see [`Builder::journal`].
pub mod journal {
    pub use asx_kernel::journal::{Event, EventKind, Subject};
    pub use asx_runtime::Recorded;
}

/// Sleeps, timeouts, intervals, and how to say how long.
pub mod time {
    pub use asx_kernel::time::Time;
    pub use asx_runtime::time::*;
}

/// What most programs use: `use asx::prelude::*;`.
pub mod prelude {
    pub use asx_runtime::channel::ChannelExt;
    pub use asx_runtime::time::DurationExt;
    pub use asx_runtime::{
        Cancelled, Cx, Outcome, Scope, Task, TaskError, channel, group, join, race, select,
        try_join,
    };
}

/// The program in the README compiles; `tests/suite/readme.rs` has its test and output.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
