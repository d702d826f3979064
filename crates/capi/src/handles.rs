//! What handles say by themselves: the state in which they were made.
//!
//! The mask in a handle's word is a snapshot. A program may look at it without a call; the library
//! believes nothing but what is in the slot. A mask is refused if it is no state at all (looked at
//! with the other arguments), or one that the thing cannot have had: it has not come so far, or was
//! never cancelled (looked at by the owner's thread only, and only if the mask is not that of a new
//! thing, which all have been).

use crate::abi::{AsxRegion, AsxTask};
use crate::guard::{self, ensure};
use crate::state::Core;
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::world::Answer;

/// A state that a handle claims.
#[derive(Clone, Copy)]
pub(crate) enum Claim {
    Region(RegionId, u16),
    Task(TaskId, u16),
}

/// An argument of any type.
pub(crate) struct Argument<T>(pub(crate) T);

/// What arguments claim that are no handles: nothing.
pub(crate) trait Claims {
    /// # Safety
    /// None is needed: handles behind pointers have it, which are asked the same way.
    #[inline(always)]
    unsafe fn claim(&self) -> Option<Claim> {
        None
    }
}

impl<T> Claims for Argument<T> {}

/// Of handles the method found first is this one.
macro_rules! claims {
    ($($type:ident => $claim:ident, $first:expr;)*) => {$(
        impl Argument<$type> {
            /// # Safety
            /// None is needed.
            #[inline(always)]
            pub(crate) unsafe fn claim(&self) -> Option<Claim> {
                let mask = (self.0.word >> 32) as u16;
                if mask == $first.mask() {
                    return None;
                }
                Some(Claim::$claim(self.0.id().ok()?, mask))
            }
        }

        impl Argument<*const $type> {
            /// # Safety
            /// Rule 2 of `guard`.
            #[inline(always)]
            pub(crate) unsafe fn claim(&self) -> Option<Claim> {
                // SAFETY: rule 2.
                let handle = unsafe { guard::maybe(self.0, Ok) }.ok()??;
                // SAFETY: none is needed.
                unsafe { Argument(handle).claim() }
            }
        }
    )*};
}

claims! {
    AsxRegion => Region, RegionState::Open;
    AsxTask => Task, TaskState::Created;
}

impl Core {
    /// Refuses masks that the things cannot have had. Of a thing that is gone nothing is known: the
    /// call itself says so.
    #[inline(always)]
    pub(crate) fn check_claims(&self, claims: &[Option<Claim>]) -> Answer {
        claims.iter().flatten().try_for_each(|claim| self.check_claim(*claim))
    }

    #[inline(never)]
    fn check_claim(&self, claim: Claim) -> Answer {
        let reached = match claim {
            Claim::Region(region, mask) => self.world.region_reached(region, mask),
            Claim::Task(task, mask) => self.world.task_reached(task, mask),
        };
        ensure(reached.unwrap_or(true))
    }

    /// A task's handle, as it is now.
    pub(crate) fn task_handle(&self, task: TaskId) -> AsxTask {
        let handle = self.world.task_snapshot(task);
        AsxTask { word: handle.word(), generation: handle.generation() }
    }

    /// A region's handle, as it is now.
    pub(crate) fn region_handle(&self, region: RegionId) -> AsxRegion {
        let handle = self.world.region_snapshot(region);
        AsxRegion { word: handle.word(), generation: handle.generation() }
    }
}
