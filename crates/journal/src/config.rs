//! The configuration of a record. The recorder is reached only through the function pointer that
//! [`Recording::new`] stores, so a wasm module that never requests a record does not contain the
//! recorder's code.

use std::fmt;
#[cfg(target_family = "wasm")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use asx_kernel::journal::WhenFull;

use super::Recorder;

/// What to record: the number of retained events and the behaviour beyond it.
#[derive(Clone, Copy)]
pub struct Recording {
    capacity: usize,
    when_full: WhenFull,
    /// The only reference to the recorder's constructor, so that a program without a journal does
    /// not link it.
    make: fn(usize, WhenFull, bool) -> Recorder,
}

/// Whether a recorder was created. If nothing in a wasm module can set this, the compiler removes
/// all recording code, which makes the page load faster. Other targets skip the check.
#[cfg(target_family = "wasm")]
static MADE: AtomicBool = AtomicBool::new(false);

impl Recording {
    /// Retains the last or the first `capacity` events, as `when_full` says.
    pub fn new(capacity: usize, when_full: WhenFull) -> Recording {
        Recording { capacity, when_full, make }
    }

    /// Creates a recorder. `passes` is true for a real clock, which advances by itself, and false
    /// for one that only advances when it is set.
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

/// Whether a recorder may exist. If this is constantly false, the compiler removes the code that
/// would use it.
#[inline(always)]
pub fn may_record() -> bool {
    #[cfg(target_family = "wasm")]
    return MADE.load(Relaxed);
    #[cfg(not(target_family = "wasm"))]
    true
}
