//! Whether there is to be a record. A page that asks for none does not carry what would write it:
//! the recorder is reached only through what [`Recording::new`] leaves.

use std::fmt;
#[cfg(target_family = "wasm")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use asx_kernel::journal::WhenFull;

use super::Recorder;

/// What is recorded: so many events are retained, and this happens beyond that.
#[derive(Clone, Copy)]
pub struct Recording {
    capacity: usize,
    when_full: WhenFull,
    /// Not named anywhere else, so that without a journal nothing is left that could make one.
    make: fn(usize, WhenFull, bool) -> Recorder,
}

/// A recorder was made. Where nobody can set it, the compiler knows that it is not, and leaves out
/// everything behind it: a page is loaded before it runs. Elsewhere that is not worth the look.
#[cfg(target_family = "wasm")]
static MADE: AtomicBool = AtomicBool::new(false);

impl Recording {
    /// The last `capacity` events, or the first, as `when_full` says.
    pub fn new(capacity: usize, when_full: WhenFull) -> Recording {
        Recording { capacity, when_full, make }
    }

    /// A recorder like that. `passes`: the time passes by itself, and not only when it is set.
    pub fn recorder(self, passes: bool) -> Recorder {
        (self.make)(self.capacity, self.when_full, passes)
    }
}

fn make(capacity: usize, when_full: WhenFull, passes: bool) -> Recorder {
    #[cfg(target_family = "wasm")]
    MADE.store(true, Relaxed);
    Recorder::new(capacity, when_full, passes)
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording({}, {:?})", self.capacity, self.when_full)
    }
}

/// Whether there may be a recorder; where this says no, the compiler leaves out what would use it.
#[inline(always)]
pub fn may_record() -> bool {
    #[cfg(target_family = "wasm")]
    return MADE.load(Relaxed);
    #[cfg(not(target_family = "wasm"))]
    true
}
