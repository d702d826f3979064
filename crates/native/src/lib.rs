//! The native host of asx: a work-stealing runtime on threads.
//!
//! * [`Runtime`]: the public interface;
//! * `program`, `block_on_slots`, `guest`: the threads in `block_on`;
//! * `worker`: selection of the next task, search and parking;
//! * `queue`, [`ring`]: a worker's run queue, from which other workers steal;
//! * [`idle`]: worker states, and the protocol that wakes a parked worker when there is work;
//! * [`parker`]: parks one thread;
//! * [`stepped`]: the same workers without threads, under a manual clock;
//! * `blocking`: threads for jobs that block;
//! * `poll_monitor`: a thread that checks polls which do not return.
//!
//! Besides plain tasks a scope can start blocking jobs, tasks that stay on their thread, tasks that
//! are restarted when they fail, and tasks that report when they are ready. All of them see the
//! values that were set around their scope:
//!
//! ```
//! use std::rc::Rc;
//! use std::time::Duration;
//!
//! use asx::{Cancelled, Cx, Local, Ready, Restart, Runtime, Scope};
//!
//! static USER: Local<String> = Local::new();
//!
//! async fn program(cx: &Cx) -> Result<(), Cancelled> {
//!     cx.scope(async |s: Scope<Cancelled>| {
//!         // Runs on a thread that may block.
//!         let file = s.spawn_blocking(|| Ok(std::fs::read("no such file").is_err()));
//!         assert!(file.await.unwrap());
//!
//!         // Not `Send`: the task never leaves this thread.
//!         let local = s.spawn_local(async |cx: Cx| {
//!             let shared = Rc::new(1);
//!             cx.yield_now().await;
//!             Ok(*shared)
//!         });
//!         assert_eq!(local.await.unwrap(), 1);
//!
//!         // `start` returns when the task has reported that it is ready.
//!         let server = s.start(async |cx: Cx, ready: Ready<u16>| {
//!             assert_eq!(*cx.local(&USER).unwrap(), "ann");
//!             ready.set(8080);
//!             cx.cancelled().await;
//!             Ok(())
//!         });
//!         let (port, server) = server.await.unwrap();
//!         assert_eq!(port, 8080);
//!         server.cancel("closing time");
//!
//!         // The first attempt panics, the second succeeds.
//!         let mut life = 0;
//!         let kept = s.supervise("kept", Restart::times(3, Duration::from_secs(60)), move || {
//!             life += 1;
//!             async move |_cx: Cx| Ok(assert!(life > 1))
//!         });
//!         kept.await.unwrap();
//!         Ok(())
//!     })
//!     .await
//! }
//!
//! let runtime = Runtime::builder().workers(2).blocking_threads(4).build()?;
//! runtime.block_on(async |cx: Cx| {
//!     cx.with_local(&USER, String::from("ann"), async |cx| program(cx).await).await
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block_on_slots;
mod blocking;
mod clock;
#[cfg(all(test, not(loom)))]
mod entries;
mod governor;
mod guest;
pub mod idle;
mod lane_queue;
mod lanes;
mod metrics;
#[cfg(all(any(unix, windows), not(loom)))]
mod net;
mod owner;
pub mod parker;
#[cfg(not(any(loom, miri, target_family = "wasm")))]
mod poll_monitor;
mod prim;
mod program;
mod queue;
#[cfg(any(unix, windows))]
#[cfg_attr(loom, allow(dead_code, reason = "the models have no sockets"))]
mod reactor;
#[cfg(not(any(unix, windows)))]
#[path = "reactor/absent.rs"]
mod reactor;
pub mod ring;
mod runtime;
mod shared;
pub mod stepped;
mod wait;
mod worker;

pub use asx_runtime::{Handle, Metrics, WorkerMetrics};
pub use governor::{Adaptive, Governor, View};
#[doc(hidden)]
pub use metrics::count_polls;
pub use program::{BlockOnError, ENDED_BY_FORCE, Ended};
pub use runtime::{BuildError, Builder, Runtime};
pub use wait::wait;
