//! Polls that a host leaves in the middle, at a [point](crate::footprint::point), to go on with
//! them later: the lab does, on stacks of its own.

use crate::footprint;
use crate::task::context;
pub use crate::task::context::{Left, leave_poll, return_to_poll};

/// Says whether the [host](crate::Host::pause) is asked at points of this thread: what was said
/// before.
#[inline]
pub fn set_points(points: bool) -> bool {
    footprint::set_pause(points.then_some(context::pause)).is_some()
}
