//! Tasks and what they live in, whatever the host: contexts, regions, scopes, cancels, combinators,
//! time, and the seam to the host.
//!
//! Every law (who may step where, who wakes, who goes next) is a call into `asx-kernel`; this crate
//! adds what makes it usable from several threads: cells, short locks, wakers and futures. What is
//! built on top of it (channels, locks, a host's own waits) uses [`operation`].

#[doc(hidden)]
pub mod audit;
mod blocking;
mod budget;
mod cancel_safe;
mod cancel_view;
mod cancel_wakers;
mod cell;
mod channel_record;
mod collect;
mod combine;
mod context;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
mod core;
mod cx;
mod dump;
pub mod footprint;
mod force;
mod grace;
mod guard;
mod journal;
mod latency;
#[cfg_attr(loom, allow(dead_code, reason = "the models know no channels of regions"))]
mod limits;
mod local;
#[cfg(all(test, loom))]
mod model;
mod node;
pub mod operation;
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
mod shield;
mod spans;
mod spawn;
mod spinlock;
mod start;
mod stop;
mod supervise;
mod task;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(not(test), allow(dead_code, reason = "the crate's own tests use more of it"))]
mod test_util;
#[doc(hidden)]
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(loom, allow(dead_code, reason = "the models wake threads, not counters"))]
pub mod testing;
pub mod time;
mod wait;
pub mod waits;
mod why;

pub use self::core::{Core, Health, Host, Settings};
pub use asx_journal::{Dispatch, Recorded, Recording};
#[doc(hidden)]
pub use cancel_safe::CancelSafe;
pub use cell::{Activity, Runnable};
pub use combine::{
    BoxFuture, Child, Group, NextChild, group, join, join_all, join3, join4, race, race_all, race3,
    race4, try_join, try_join_all, try_join3, try_join4,
};
pub use cx::{Cx, UntilCancelled, YieldNow};
pub use dump::{Dump, RegionInfo, TaskInfo};
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
