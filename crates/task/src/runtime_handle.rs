//! What a program may do to the runtime it runs in.

use std::fmt;
use std::sync::Arc;

use crate::footprint::{self, Object};
use crate::region::Region;
use crate::{Cx, Dump, Grace, Health, Metrics, QuiescenceError};

/// Looks at a runtime, and stops it, from anywhere: from a signal handler's thread, say.
///
/// [`Cx::handle`] gives one.
#[derive(Clone)]
pub struct Handle {
    region: Arc<Region>,
}

impl Handle {
    /// The handle of everything in a region, for hosts.
    #[doc(hidden)]
    pub fn of(region: &Arc<Region>) -> Handle {
        Handle { region: region.clone() }
    }

    /// What lives, where, and what it waits for.
    pub fn dump(&self) -> Dump {
        let _after = footprint::operation();
        footprint::inspect();
        Dump::of(&self.region)
    }

    /// What the workers have done so far, and what went wrong in tasks. There are no workers on
    /// pages and in the lab.
    pub fn metrics(&self) -> Metrics {
        let _after = footprint::operation();
        footprint::inspect();
        let health = self.region.health();
        let metrics = self.region.core.host.metrics().unwrap_or_default();
        Metrics { health, ..metrics }
    }

    /// What went wrong in tasks without anybody having to notice.
    pub fn health(&self) -> Health {
        let _after = footprint::operation();
        footprint::inspect();
        self.region.health()
    }

    /// Checks whether nothing is alive: no task, no reserved obligation, no region that is not
    /// closed, no armed timer, and no channel of a scope with messages or permits.
    ///
    /// It covers what [`dump`](Handle::dump) covers: on threads the whole runtime, on pages and in
    /// the lab the program the handle was taken in. The root region of a runtime is open until the
    /// runtime is shut down, and that of a program until the program ends. Until then this is an
    /// error, and the list tells what else is alive.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use asx::{Runtime, Status};
    ///
    /// let runtime = Runtime::new()?;
    /// let alive = runtime.block_on(async |cx: Cx| {
    ///     let alive = cx.handle().quiescence().unwrap_err();
    ///     // The body of the program runs, in a region inside the root.
    ///     assert_eq!(alive.codes(), [Status::TasksStillActive, Status::RegionsNotClosed]);
    ///     assert!(alive.to_string().starts_with("not quiescent: TASKS_STILL_ACTIVE (1), "));
    ///     alive
    /// });
    /// assert_eq!((alive.tasks().count(), alive.dump.regions.len()), (1, 2));
    ///
    /// runtime.shutdown(1.secs()).unwrap();
    /// assert!(runtime.handle().quiescence().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The failures in the order of the check, and everything that is alive. While tasks run,
    /// regions are observed one after the other.
    pub fn quiescence(&self) -> Result<(), QuiescenceError> {
        let _after = footprint::operation();
        footprint::inspect();
        self.region.quiescence()
    }

    /// Begins to stop everything gently: told now ([`Cx::stopping`]), cancelled after `grace.soft`,
    /// ended by force after `grace.hard` more.
    ///
    /// On threads that is all programs of the runtime, which takes no others then. On pages and in
    /// the lab it is the program the handle was taken in.
    pub fn stop(&self, grace: impl Into<Grace>) {
        let grace = grace.into();
        let _after = footprint::operation();
        Object::COMMON.write();
        // Those that are ended by force from now on are.
        drop(self.region.core.take_forced());
        self.region.stop_all(grace);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl Cx {
    /// What it takes to look at the runtime and to stop it: a program under `#[asx::main]` has no
    /// other way to it.
    ///
    /// ```
    /// use asx::prelude::*;
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) -> Result<(), Cancelled> {
    ///     let handle = cx.handle();
    ///     cx.scope(async |s| {
    ///         s.task("clerk").spawn(async |cx: Cx| Ok(cx.stopping().await?));
    ///         println!("{}", handle.dump());
    ///         println!("{} polls", handle.metrics().workers.iter().map(|w| w.polls).sum::<u64>());
    ///         handle.stop(5.secs()); // as a signal would
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub fn handle(&self) -> Handle {
        let whole = self.core().host.stops_whole();
        Handle { region: self.task().region().top(whole) }
    }
}
