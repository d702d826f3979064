//! The time that this thread was on a processor: every peer runs on one, and the machine may have
//! other things to do.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds so far.
pub(crate) fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// What a call gives, and how long it took.
pub(crate) fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = now();
    let value = run();
    (now() - start, value)
}
