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
//! The compiler cannot infer the type of the value of a task whose body never ends. Annotate its
//! return type: `s.spawn(async |cx: Cx| -> Result<(), _> { loop { .. } })`. Such a task ends with
//! the error of a cancel:
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
//! A [`Cx`] gives a task access to time, to scopes and to its cancellation. There is no implicit
//! runtime: functions that wait, spawn or sleep take a `&Cx`. Cloning it is cheap; a task owns one
//! and passes it (`cx: &Cx`) to the functions it calls.
//!
//! A runtime provides the first one: [`main`](macro@main) runs `main` on a new runtime, and
//! [`Runtime`] is for programs that configure and own it.
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
//! The first error of a child cancels the others. The scope waits for them and returns that error:
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
//!                 cx.sleep(60.minutes()).await?; // is cancelled, and `?` returns the error
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
//! The result of a task is an [`Outcome`]: a value, or a [`TaskError`] that says whether it failed,
//! was cancelled or panicked. [`Task::value`] returns the value or the error of the task itself.
//!
//! # 3. Cancellation
//!
//! Cancellation is cooperative. A task observes a cancel at its next await of an operation that
//! waits (`sleep`, `recv`, `reserve`, locks, the await of a task) and in [`Cx::checkpoint`]. The
//! operation returns [`Cancelled`], which has the reason, and the task cleans up. The scope waits
//! for it. An error type therefore implements `From<Cancelled>`, so that `?` converts it.
//!
//! * [`Cx::shield`] runs code that must not be interrupted, for at most half a minute after a
//!   cancel ([`Builder::cleanup_time`], [`Cx::shield_for`]).
//! * [`Scope::defer`] registers a finalizer, which runs at the end of the scope.
//! * [`Cx::timeout`] cancels a part of the task at a time limit. An inner timeout can only shorten
//!   an outer one. A value that the part returns after it has observed the cancel is dropped;
//!   [`Cx::timeout_or_late`] returns it.
//! * [`Cx::abandon_on_cancel`] drops a foreign future on a cancel, which such a future does not
//!   observe itself ([more](book::foreign_futures)).
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
//! A task that has to undo its work defers that in a scope, before the work. The scope runs its
//! finalizers before it returns, the last one first, whether its body returns a value, an error, a
//! panic or a cancel. Cancels do not reach finalizers, so they may wait.
//!
//! All cleanup is limited in polls and time: by the kind of the cancel, for a runtime
//! ([`Builder::cleanup_polls`], [`Builder::cleanup_time`]), for a scope
//! ([`ScopeBuilder::cleanup_time`]) or for one cancel ([`Why::cleanup_time`]). A time that is
//! stated there, in [`Scope::stop_within`] or in a shutdown replaces the limit of polls. Cleanup
//! that takes longer is aborted and reported. Cleanup that does not wait belongs in `Drop`.
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
//!             cx.yield_now().await; // cleanup that waits
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
//!     let shared = log.clone();
//!     cx.scope(async |s| {
//!         let task = s.spawn(async move |cx: Cx| migrate(&cx, shared).await);
//!         task.cancel("end of the maintenance window");
//!         assert!(matches!(task.await, Err(TaskError::Cancelled(_))));
//!         assert_eq!(*log.lock().unwrap(), ["unlock the table"]);
//!         Ok(())
//!     })
//!     .await
//! }
//! ```
//!
//! # 4. Concurrency within a task
//!
//! Tasks of a scope run in parallel and own their data. Operations within one task run concurrently
//! and may borrow:
//!
//! | | ends when | the others |
//! |---|---|---|
//! | [`join()`], [`join!`], [`join_all`] | all have ended | |
//! | [`try_join()`], [`try_join!`], [`try_join_all`] | all have, or one has failed | cancelled |
//! | [`race()`], [`race!`], [`race_all`] | one has ended | cancelled |
//! | [`race_ok()`], [`race_ok!`], [`race_ok_all`] | one has succeeded | cancelled |
//! | [`group`] | the body and all its children have ended | cancelled if the body fails |
//! | [`select!`] | one is ready | dropped: only for cancel-safe futures |
//!
//! Operations that are cancelled are also waited for.
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
//! A send has two phases. `reserve` waits for a slot; a cancel at this point loses no message.
//! The [`Permit`](channel::Permit) it returns sends without a wait, so that no cancel can interrupt
//! it. [`channel`] has further kinds of channels, [`sync`] has locks and signals.
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
//! # 6. Observability
//!
//! [`Cx::handle`] returns a [`Handle`], which can be sent anywhere:
//!
//! * [`Handle::dump`] lists live tasks and regions with their origin, the operations they wait for
//!   and their deadlines. Scopes and tasks can be named ([`ScopeBuilder::name`], [`Scope::task`]).
//! * [`Handle::metrics`] returns counters of the workers.
//! * [`Handle::stop`] begins a shutdown.
//! * [`Handle::quiescence`] checks that nothing is alive. Otherwise it returns the codes of the
//!   failures and a list of everything alive ([`QuiescenceError`]). A runtime that is shut down or
//!   dropped while tasks are alive reports the list.
//!
//! Failures without a receiver are counted ([`Health`]): cleanup that took too long and was
//! aborted, cancels that are not observed, lost panics, and leaked obligations and tracked permits
//! (with their task and location). The native host also writes them to the error output, once for
//! each cause, unless a `tracing` subscriber receives them. A `main` that does not end within the
//! grace period of a shutdown exits with the status [`ENDED_BY_FORCE`] and a line that names the
//! aborted tasks; [`Runtime::try_block_on`] returns an error instead ([`BlockOnError::Ended`]).
//!
//! With the feature `tracing` every scope and every task is a span (target `asx`, names `region`
//! and `task`, level info). Events of your code are therefore recorded in the span of their task,
//! on any thread. Spans close with their `outcome`. Cancels (debug), panics (error), cleanup
//! overruns and leaked obligations (warn) are events in them.
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
//! With the feature `lab`, [`#[asx::test]`](macro@test) runs a test under many schedules. The
//! program, tasks and channels are those of production, on one thread, with a chosen order of polls
//! and a clock that jumps to the next timer. The lab searches for a run that panics, returns an
//! error, deadlocks, never ends, or leaks.
//!
//! ```toml
//! [dev-dependencies]
//! asx = { version = "0.1", features = ["lab"] }
//! ```
//!
//! Cargo unifies features: asx is compiled with the lab for tests, examples and benches of your
//! crate, but not for your program. Measure performance without it.
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
//! // The attribute expands to this: a program and a check of it.
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
//! A failing test reports the failure and its location, the waiting tasks, and the schedule in
//! words, after making it as short as possible. It writes a trace of the run into `target/asx`, and
//! prints the command that repeats this schedule: `ASX_REPLAY=token cargo test name`.
//!
//! * Tasks are identified by name and origin: `left (main/1)` is the first task that `main`
//!   spawned.
//! * The behaviour of a program must depend only on the order of its polls: use [`Cx::now`] for the
//!   time and [`Cx::random`] for random numbers. Some runs are repeated; if they differ, the test
//!   fails and names the step.
//! * There are no other threads in the lab: waiting for one, or for an external event, never ends.
//!   `#[asx::test(native)]` runs a test once on threads instead, `#[asx::test(lab, native)]` after
//!   the lab.
//!
//! # 8. The network
//!
//! [`net`] has TCP, UDP and unix sockets, name lookups and readiness of foreign descriptors; [`io`]
//! has errors, buffers, lines, frames and copies. Each operation takes a context. A cancelled read,
//! accept or receive has taken no data, so [`select!`] accepts these. [`net::serve`] runs a task
//! for each connection and shuts down gracefully. On unix, `asx::signal` receives Ctrl-C and other
//! signals.
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
//! * [Foreign futures](book::foreign_futures): how they take part in cancels and timeouts
//! * [Helper functions](book::helpers): closures with a context, `retry`, `hedge`

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
/// return any type that `main` may return. When it returns, everything it started has ended.
///
/// `cx.handle()` observes and stops the runtime. A `main` that does not end within the grace period
/// of a shutdown is aborted: a line on the error output names the aborted tasks, and the process
/// exits with the status 124 (`asx::ENDED_BY_FORCE`).
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
/// * `workers = 4`: the number of worker threads; by default one per processor.
/// * `current_thread`: only the main thread runs tasks.
/// * `name = "shop"`: the prefix of the threads' names.
pub use asx_macros::main;
/// Runs an async test in the lab: under many schedules, each of which can be repeated.
///
/// The function is `async`, takes the context as `cx: &Cx`, as `cx: Cx`, or not at all, and returns
/// `()` or a `Result` whose error is `Debug`. It becomes a `#[test]`; other attributes
/// (`#[should_panic]`, `#[ignore = ".."]`) are kept. The facade's feature `lab` must be enabled.
///
/// ```
/// # #[cfg(test)]
/// # mod tests {
/// use asx::prelude::*;
///
/// #[asx::test(seeds = 500, cancel = "every await")]
/// async fn a_sent_message_arrives(cx: &Cx) -> Result<(), Cancelled> {
///     let (tx, mut rx) = channel::bounded(1);
///     cx.scope(async |s| {
///         let sent = s.task("feed").spawn(async move |cx: Cx| Ok(tx.send(&cx, 7).await.is_ok()));
///         let got = rx.recv(cx).await;
///         // Either may be cancelled here, but no message is lost after it was sent.
///         assert!(got.is_ok() || !matches!(sent.await, Ok(true)));
///         Ok(())
///     })
///     .await
/// }
/// # }
/// ```
///
/// A long test reports its progress every ten seconds. A passing test prints a line
/// (`cargo test -- --show-output`) with the number of runs, the number of cancels and faults tried,
/// and the limit that ended the search. If a disturbance requested here (`cancel`, `faults`,
/// `late_clocks`, `network`) was never tried, the test fails. With `ASX_REPLAY=token` only the
/// schedule of a report is run; a token of another test, or an outdated one, fails the test.
///
/// Settings, in parentheses and separated by commas. For the lab:
///
/// * `seeds = 1000` (or `runs = 1000`): the largest number of runs without cancels and faults; 1000
///   by default. Runs with them come on top.
/// * `total = 10000`: the largest number of runs in all; ten times `seeds` by default.
/// * `seed = 7`: the seed of random choices; 0 by default.
/// * `strategy = "mixed"`: how schedules are chosen; or `random`, `uniform`, `pos`, `pct(3)`,
///   `guided`, `dfs`, `dpor`, `bounded`.
/// * `steps = 10000`: the number of polls after which a run counts as endless.
/// * `time = "2s"`: the longest time of the search, in `ms`, `s` or `m`; ten seconds by default.
/// * `min_time = "1s"`: the shortest time of an incomplete search; one second by default, or the
///   environment variable `ASX_LAB_TIME`. Tests that set `seeds`, `total` or `strategy` have none.
/// * `cancel = "every await"`: also cancels each task at each of its awaits, one cancel in a run. A
///   run with a cancel may return an error.
/// * `faults`: also injects faults, one in a run: where the program calls `cx.fault("disk full")`,
///   and spurious wakeups. `late_clocks`: also a late clock.
/// * `disturbances = 2`: the largest number of cancels and faults in a run, after each was tried
///   alone; 2 by default.
/// * `exact_time`: time stands still while a task is runnable. By default it also passes then in
///   some runs, as on a busy machine.
/// * `network`: injects all faults that the simulated network of the lab has: late and split
///   segments, broken connections, and others.
/// * `virtual_workers = 2`: runs the scheduler with that number of virtual workers.
/// * `transparent`: promises that tasks share only channels, locks and other asx objects, so that
///   far fewer schedules have to be tried.
///
/// Other hosts:
///
/// * `native`: runs the test on threads, once, and not in the lab: for tests with other threads or
///   anything else outside the control of the lab.
/// * `workers = 4`: the same with that number of worker threads.
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

/// Checks of programs under many schedules: the API behind [`test`](macro@test).
#[cfg(feature = "lab")]
pub mod lab {
    pub use asx_lab::*;
}

/// The reasons of cancels.
pub mod cancel {
    pub use asx_kernel::cancel::{Kind, Reason};
}

/// The events recorded by a runtime; see [`Builder::journal`].
pub mod journal {
    pub use asx_kernel::journal::{Event, EventKind, Subject};
    pub use asx_runtime::Recorded;
}

/// Sleeps, timeouts, intervals, and durations.
pub mod time {
    pub use asx_kernel::time::Time;
    pub use asx_runtime::time::*;
}

/// The items most programs use: `use asx::prelude::*;`.
pub mod prelude {
    pub use asx_runtime::channel::ChannelExt;
    pub use asx_runtime::time::DurationExt;
    pub use asx_runtime::{
        Cancelled, Cx, Outcome, Scope, Task, TaskError, channel, group, join, race, select,
        try_join,
    };
}

/// Compiles the program in the README. Its test and output are in `tests/suite/readme.rs`.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
