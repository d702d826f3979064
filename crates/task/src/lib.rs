//! Tasks and everything they need on every host: contexts, regions, scopes, cancels, time, and the
//! interface to the host.
//!
//! Every law (who may step where, who wakes, who goes next) is a call into `asx-kernel`; this crate
//! adds what makes it usable from several threads: cells, short locks, wakers and futures. What is
//! built on top of it (channels, locks, a host's own waits) uses [`operation`].

#![cfg_attr(
    target_family = "wasm",
    allow(
        clippy::absurd_extreme_comparisons,
        clippy::drop_non_drop,
        clippy::modulo_one,
        clippy::unnecessary_min_or_max,
        reason = "buffers and shards have the size 0 or 1 on wasm"
    )
)]

mod abandon;
pub mod backtrace;
mod blocking;

mod cancel_safe;
mod cancelled;
mod channel_record;
mod collect;
#[doc(hidden)]
pub mod combinator;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
mod core;
mod dump;
mod error;
pub mod footprint;
mod force;
mod handle;
pub mod holders;
pub mod hosted;
mod inline_map;
mod local;
mod locals;
#[cfg(all(test, loom))]
mod model;
#[cfg(not(target_family = "wasm"))]
pub mod net;
pub mod operation;
#[cfg(feature = "lab")]
pub mod pausing;
mod permit_record;
mod pinned;
mod prim;
#[doc(hidden)]
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
pub mod probe;
mod proceed;
mod quiescence;
mod raw;
mod region;
mod root;
mod runtime;
mod runtime_handle;
mod scope;
mod shield;
#[cfg(not(any(loom, target_family = "wasm")))]
mod socket_record;
mod spawn;
mod spinlock;
mod start;
mod stop;
mod supervise;

#[cfg(any(test, feature = "testing"))]
#[cfg_attr(not(test), allow(dead_code, reason = "the crate's own tests use more of it"))]
mod test_util;
#[doc(hidden)]
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(loom, allow(dead_code, reason = "the models wake threads, not counters"))]
pub mod testing;
pub mod time;
mod wait;
mod wait_list;
#[cfg(feature = "lab")]
mod wait_notes;
pub mod waits;
mod why;

pub use self::core::latency::Unheeded;
pub use self::core::limits::Limits;
#[cfg(not(any(loom, target_family = "wasm")))]
pub use self::core::long_poll::PollMonitor;
pub use self::core::metrics::{Metrics, WorkerMetrics};
pub use self::core::timers::TimeDenied;
pub use self::core::{Core, Health, Host, Settings};
pub use abandon::AbandonOnCancel;
pub use asx_journal::{Dispatch, Recorded, Recording};
pub use cancel_safe::{AssumeCancelSafe, CancelSafe, assume_cancel_safe};
pub use cancelled::UntilCancelled;
pub use dump::{Activity, Dump, LockHolder, ObligationInfo, RegionInfo, TaskInfo};
pub use error::{
    AdmissionError, CancelError, FinalizerError, ObligationError, SpawnError, TimerError,
};
pub use handle::{Task, TaskValue};
pub use local::Local;
pub use operation::Operation;
pub use quiescence::{ChannelInfo, QuiescenceError, TimerInfo};
#[doc(hidden)]
pub use raw::audit;
pub use raw::outcome::{Cancelled, Outcome, Panic, TaskError};
pub use raw::{Begun, RunContext, Runnable};
pub use region::grace::Grace;
pub use region::resources::Obligation;
pub use region::{Policy, Region};
pub use root::Root;
pub use runtime::cx::{Cx, YieldNow};
pub use runtime_handle::Handle;
pub use scope::{Scope, ScopeBuilder, TaskBuilder};
pub use start::{NotReady, Ready, Starting};
pub use stop::Stopping;
pub use supervise::Restart;
pub use why::Why;
