//! Polls that a host leaves in the middle, at a [point](crate::footprint::point), to go on with
//! them later: the lab does, on stacks of its own.

use crate::footprint;
pub use crate::raw::poll_context::{Left, leave_poll, return_to_poll};
use crate::raw::{contain_panic, poll_context};
use crate::region::walk;

/// Says whether the [host](crate::Host::pause) is asked at points of this thread: what was said
/// before.
#[inline]
pub fn set_points(points: bool) -> bool {
    footprint::set_pause(points.then_some(pause)).is_some()
}

/// Has the host run others now, if it wants to and the poll can be left here: not while a panic
/// unwinds, nor within a callback or a walk that keeps its position on this thread.
fn pause() {
    #[cfg(all(debug_assertions, not(loom)))]
    assert!(!crate::spinlock::count::any(), "a point under a lock, for which others would wait");
    if can_be_left() {
        poll_context::with_current(|task| task.core().host.pause());
    }
}

/// Whether this thread has noted nothing about the poll but which one it is.
fn can_be_left() -> bool {
    !std::thread::panicking()
        && !crate::force::is_dropping_by_force()
        && !contain_panic::is_inside_callback()
        && !walk::is_walking()
}
