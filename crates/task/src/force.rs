//! Whether a future is being dropped by force on this thread.

use std::cell::Cell;

thread_local! {
    static FORCED: Cell<bool> = const { Cell::new(false) };
}

/// Runs what drops a future by force: a permit that goes with it is recorded as leaked, but does
/// not panic.
pub(crate) fn dropping_by_force<R>(drops: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            FORCED.set(self.0);
        }
    }
    let _restore = Restore(FORCED.replace(true));
    drops()
}

/// Whether a task is being ended by force on this thread: its future is dropped. Something that
/// panics when it is dropped unresolved does not panic then: nobody can resolve it any more.
pub fn is_dropping_by_force() -> bool {
    FORCED.get()
}
