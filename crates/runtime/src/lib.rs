//! The part of asx that users touch, whatever the host.
//!
//! Every law (who may step where, who wakes, who goes next) is a call into `asx-kernel`; this crate
//! adds what makes it usable from several threads: cells, short locks, wakers and futures.

#[doc(hidden)]
pub mod audit;
mod blocking;
mod budget;
mod cancel_safe;
mod cancel_view;
mod cancel_wakers;
mod cell;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
pub mod channel;
mod collect;
mod combine;
mod context;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
mod core;
mod cx;
mod dump;
mod error;
#[cfg(feature = "lab")]
pub mod footprint;
#[cfg(not(feature = "lab"))]
mod footprint;
mod grace;
mod guard;
mod journal;
mod latency;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
mod limits;
mod local;
#[cfg(all(test, loom))]
mod model;
#[cfg(not(target_family = "wasm"))]
pub mod net;
mod node;
mod operation;
mod outcome;
mod pinned;
mod poll;
mod prim;
#[doc(hidden)]
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
pub mod probe;
mod proceed;
mod region;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
mod resources;
mod root;
mod run;
mod scope;
mod select;
mod shield;
mod spans;
mod spawn;
mod spinlock;
mod start;
mod stop;
mod supervise;
pub mod sync;
mod task;
#[cfg(test)]
mod test_util;
pub mod time;
#[cfg(feature = "lab")]
pub mod waits;
#[cfg(not(feature = "lab"))]
mod waits;
mod why;

pub use self::core::{Core, Health, Host, Settings};
#[doc(hidden)]
pub use cancel_safe::CancelSafe;
pub use cell::{Activity, Runnable};
pub use combine::{
    BoxFuture, Child, Group, NextChild, group, join, join_all, join3, join4, race, race_all, race3,
    race4, try_join, try_join_all, try_join3, try_join4,
};
pub use cx::{Cx, UntilCancelled, YieldNow};
pub use dump::{Dump, RegionInfo, TaskInfo};
pub use error::{AdmissionError, ObligationError, SpawnError, TimerError};
pub use journal::{Dispatch, Recorded, Recording};
pub use latency::Unheeded;
pub use limits::Limits;
pub use local::Local;
pub use operation::Operation;
pub use outcome::{Cancelled, Outcome, Panic, Stop};
pub use region::{Policy, Region};
pub use resources::Obligation;
pub use root::Root;
pub use run::{Begun, RunContext};
pub use scope::{Scope, ScopeBuilder, TaskBuilder};
pub use start::{NotReady, Ready, Starting};
pub use stop::{Grace, Stopping};
pub use supervise::Restart;
pub use task::Task;
pub use why::Why;

/// What [`select!`] expands to.
#[doc(hidden)]
pub mod __select {
    pub use crate::select::{Branch, Either, Else, List, Nil, Select, cancel_safe, select};
}
