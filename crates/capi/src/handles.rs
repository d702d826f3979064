//! What handles say by themselves: the state in which they were made.
//!
//! The mask in a handle's bits is a snapshot. A program may look at it without a call; the library
//! believes nothing but what is in the slot. A mask is refused if it is no state at all (looked at
//! with the other arguments), or one that the thing cannot have had: it has not come so far, or was
//! never cancelled (looked at by the owner's thread only, and only if the mask is not that of a new
//! thing, which all have been).

use crate::abi::{
    AsxChannel, AsxObligation, AsxPermit, AsxRegion, AsxTask, AsxTimer, AsxTransfer, AsxWitness,
};
use crate::arguments;
use crate::error::{Bad, Checked, Fault, Why, check};
use crate::state::Core;
use asx_kernel::arena::Key;
use asx_kernel::handle::{Handle, Tag};
use asx_kernel::ids::{ChannelId, ObligationId, RegionId, TaskId};
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::wheel::TimerHandle;
use asx_kernel::world::PermitId;

/// Word and generation of a handle; zero of what is none.
pub(crate) type Raw = (u64, u64);

/// An argument of any type.
pub(crate) struct Argument<T>(pub(crate) T);

/// What arguments say that are no handles of regions and tasks: nothing.
pub(crate) trait Claims {
    /// # Safety
    /// None is needed: handles behind pointers have it, which are asked the same way.
    #[inline(always)]
    unsafe fn raw(&self) -> Raw {
        (0, 0)
    }

    /// Whether it claims more than the first state.
    ///
    /// # Safety
    /// As `raw`.
    #[inline(always)]
    unsafe fn is_later(&self) -> bool {
        false
    }

    /// Whether it is a handle, of whatever type, and stale.
    ///
    /// # Safety
    /// As `raw`.
    #[inline(always)]
    unsafe fn is_stale(&self, _: &Core) -> bool {
        false
    }
}

impl<T> Claims for Argument<T> {}

macro_rules! stale {
    ($($type:ident),*) => {$(
        impl Argument<$type> {
            /// # Safety
            /// None is needed.
            pub(crate) unsafe fn is_stale(&self, core: &Core) -> bool {
                core.is_stale((self.0.bits, self.0.generation))
            }
        }
    )*};
}

/// Of handles the method found first is this one.
macro_rules! claims {
    ($($type:ident),*) => {$(
        impl Argument<$type> {
            /// # Safety
            /// None is needed.
            #[inline(always)]
            pub(crate) unsafe fn raw(&self) -> Raw {
                (self.0.bits, self.0.generation)
            }

            /// # Safety
            /// None is needed.
            #[inline(always)]
            pub(crate) unsafe fn is_later(&self) -> bool {
                is_later(&(self.0.bits, 0))
            }
        }

        stale!($type);

        impl Argument<*const $type> {
            /// # Safety
            /// Rule 2 of `guard`.
            #[inline(always)]
            pub(crate) unsafe fn raw(&self) -> Raw {
                // SAFETY: rule 2.
                let handle = unsafe { arguments::maybe(self.0, Ok) };
                handle.ok().flatten().map_or((0, 0), |handle| (handle.bits, handle.generation))
            }

            /// # Safety
            /// Rule 2 of `guard`.
            #[inline(always)]
            pub(crate) unsafe fn is_later(&self) -> bool {
                // SAFETY: rule 2.
                is_later(&unsafe { self.raw() })
            }

            /// # Safety
            /// Rule 2 of `guard`.
            pub(crate) unsafe fn is_stale(&self, core: &Core) -> bool {
                // SAFETY: rule 2.
                core.is_stale(unsafe { self.raw() })
            }
        }
    )*};
}

claims!(AsxRegion, AsxTask);
stale!(AsxObligation, AsxChannel, AsxPermit, AsxWitness);

/// Whether a handle claims more than the first state.
#[inline(always)]
fn is_later(raw: &Raw) -> bool {
    (raw.0 >> 32) as u16 > NEW
}

/// Whether a word has this tag and one of the states up to `last`.
#[cfg_attr(feature = "inline", inline(always))]
#[cfg_attr(not(feature = "inline"), inline(never))]
fn is_snapshot(word: u64, tag: Tag, last: u16) -> bool {
    let mask = (word >> 32) as u16;
    word >> 48 == tag as u64 && mask.is_power_of_two() && mask <= last
}

macro_rules! handles {
    ($($type:ident => $id:ident, $tag:ident, $last:expr;)*) => {$(
        impl $type {
            /// The kernel's id, if the handle is of this type and has a state of it. A few
            /// comparisons, unlike the kernel's own way, which looks for the tag among all there
            /// are.
            #[inline(always)]
            pub(crate) fn id(self) -> Checked<$id> {
                check(is_snapshot(self.bits, Tag::$tag, $last), Why::Handle)?;
                Ok($id(Handle::from_raw(self.bits, self.generation).key()))
            }
        }
    )*};
}

handles! {
    AsxRegion => RegionId, Region, RegionState::Closed.mask();
    AsxTask => TaskId, Task, TaskState::Completed.mask();
}

/// Things whose handles are made once, with the first state: one comparison.
macro_rules! stateless {
    ($($type:ident => $id:ident, $tag:ident;)*) => {$(
        impl $type {
            /// The kernel's id, if the handle is of this type.
            #[inline(always)]
            pub(crate) fn id(self) -> Checked<$id> {
                check(self.bits >> 32 == (Tag::$tag as u64) << 16 | NEW as u64, Why::Handle)?;
                Ok($id(Key { generation: self.generation, index: self.bits as u32 }))
            }

            /// The handle of an id.
            pub(crate) fn of(id: $id) -> $type {
                let handle = id.handle(NEW);
                $type { bits: handle.word(), generation: handle.generation() }
            }
        }
    )*};
}

stateless! {
    AsxObligation => ObligationId, Obligation;
    AsxChannel => ChannelId, Channel;
}

/// The mask of the first state.
const NEW: u16 = 1;

/// The tag of permits, which the kernel's handles do not have.
const PERMIT: u64 = (Tag::Channel as u64) + 1;

impl AsxPermit {
    /// The kernel's id, if the handle is of this type.
    pub(crate) fn id(self) -> Checked<PermitId> {
        check(self.bits >> 32 == PERMIT << 16, Why::Handle)?;
        Ok(PermitId(Key { generation: self.generation, index: self.bits as u32 }))
    }

    /// The handle of an id.
    pub(crate) fn of(id: PermitId) -> AsxPermit {
        AsxPermit { bits: (PERMIT << 48) | u64::from(id.0.index), generation: id.0.generation }
    }
}

impl AsxTimer {
    /// The kernel's handle.
    pub(crate) fn id(self) -> TimerHandle {
        TimerHandle { id: self.id, generation: self.generation }
    }

    /// How reports of misuse name it: a word as others have it, and the generation.
    pub(crate) fn told(self) -> (u64, u64) {
        ((Tag::Timer as u64) << 48 | u64::from(self.id as u32), self.generation)
    }

    /// The handle of an id.
    pub(crate) fn of(handle: TimerHandle) -> AsxTimer {
        AsxTimer { id: handle.id, generation: handle.generation }
    }
}

impl AsxTransfer {
    /// None has been made.
    pub(crate) const NONE: AsxTransfer =
        AsxTransfer { struct_size: 0, reserved: 0, from: 0, to: 0, epoch: 0 };
}

impl AsxTask {
    /// No task.
    pub(crate) const NONE: AsxTask = AsxTask { bits: 0, generation: 0 };
}

impl Core {
    /// Refuses masks that the things cannot have had, of which those of arguments are, in their
    /// places. Of a thing that is gone nothing is known: the call itself says so.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_claims(&self, claims: &[Raw]) -> Result<(), Fault> {
        let cannot_have_been = |raw: &Raw| {
            let handle = Handle::from_raw(raw.0, raw.1);
            let key = handle.key();
            let mask = handle.mask();
            let reached = match handle.tag() {
                Some(Tag::Region) => self.world.region_reached(RegionId(key), mask),
                _ => self.world.task_reached(TaskId(key), mask),
            };
            is_later(raw) && reached == Some(false)
        };
        match claims.iter().position(cannot_have_been) {
            None => Ok(()),
            Some(at) => Err(Fault::at(at as u8 + 1, Bad::new(Why::State))),
        }
    }

    /// Whether a handle names something that is gone or was never there.
    #[inline(never)]
    pub(crate) fn is_stale(&self, (word, generation): Raw) -> bool {
        let handle = Handle::from_raw(word, generation);
        let key = handle.key();
        match handle.tag() {
            Some(Tag::Region) => self.world.region_handle(RegionId(key)).is_err(),
            Some(Tag::Task) => self.world.task_handle(TaskId(key)).is_err(),
            Some(Tag::Obligation) => {
                self.world.obligation(ObligationId(key)) == Err(Status::StaleHandle)
            }
            Some(Tag::Channel) => self.world.channel_view(ChannelId(key)).is_err(),
            Some(Tag::CancelWitness) => self.witnesses.get(key).is_none(),
            _ => {
                word >> 48 == PERMIT && self.world.permit(PermitId(key)) == Err(Status::StaleHandle)
            }
        }
    }

    /// A task's handle, as it is now.
    pub(crate) fn task_handle(&self, task: TaskId) -> AsxTask {
        let handle = self.world.task_snapshot(task);
        AsxTask { bits: handle.word(), generation: handle.generation() }
    }

    /// A region's handle, as it is now.
    pub(crate) fn region_handle(&self, region: RegionId) -> AsxRegion {
        let handle = self.world.region_snapshot(region);
        AsxRegion { bits: handle.word(), generation: handle.generation() }
    }
}
