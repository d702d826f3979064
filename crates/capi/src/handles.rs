//! What handles say by themselves: the state in which they were made.
//!
//! The mask in a handle's bits is a snapshot. A program may look at it without a call; the library
//! believes nothing but what is in the slot. A mask is refused if it is no state at all (looked at
//! with the other arguments), or one that the thing cannot have had: it has not come so far, or was
//! never cancelled (looked at by the owner's thread only, and only if the mask is not that of a new
//! thing, which all have been).

use crate::abi::{
    AsxChannelId, AsxChannelReceiver, AsxChannelSender, AsxCx, AsxObligationId, AsxRegionId,
    AsxRuntime, AsxSendPermit, AsxTaskId, AsxTimerHandle, AsxTransfer, AsxWitnessId,
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

/// A first argument: the runtime, or something that names it.
pub(crate) trait NamesRuntime: Copy {
    /// The runtime; NULL if the argument is NULL or misaligned.
    ///
    /// # Safety
    /// Rule 2 of `guard`.
    unsafe fn runtime(self) -> *mut AsxRuntime;

    /// The handle of a task or region in it; zero of none.
    ///
    /// # Safety
    /// Rule 2 of `guard`.
    #[inline(always)]
    unsafe fn raw(self) -> Raw {
        (0, 0)
    }

    /// Whether the handle in it is stale.
    ///
    /// # Safety
    /// Rule 2 of `guard`.
    #[inline(always)]
    unsafe fn is_stale(self, _: &Core) -> bool {
        false
    }
}

impl NamesRuntime for *mut AsxRuntime {
    #[inline(always)]
    unsafe fn runtime(self) -> *mut AsxRuntime {
        self
    }
}

/// What is behind a pointer that may be anything a caller can give.
///
/// # Safety
/// Rule 2 of `guard`.
#[inline(always)]
unsafe fn peek<T: Copy>(from: *const T) -> Option<T> {
    if from.is_null() || !from.is_aligned() {
        return None;
    }
    // SAFETY: rule 2.
    Some(unsafe { from.read() })
}

macro_rules! names_runtime {
    ($($type:ident, $own:ident => $bits:expr;)*) => {$(
        impl NamesRuntime for *mut $type {
            #[inline(always)]
            unsafe fn runtime(self) -> *mut AsxRuntime {
                // SAFETY: rule 2.
                unsafe { peek(self) }.map_or(core::ptr::null_mut(), |own| own.rt)
            }

            unsafe fn is_stale(self, core: &Core) -> bool {
                let stale = |$own: $type| core.is_stale(($bits.bits, $bits.generation));
                // SAFETY: rule 2.
                unsafe { peek(self) }.is_some_and(stale)
            }
        }
    )*};
}

names_runtime! {
    AsxChannelSender, own => own.channel;
    AsxChannelReceiver, own => own.channel;
    AsxSendPermit, own => own;
}

impl NamesRuntime for *mut AsxCx {
    #[inline(always)]
    unsafe fn runtime(self) -> *mut AsxRuntime {
        // SAFETY: rule 2.
        unsafe { peek(self) }.map_or(core::ptr::null_mut(), |cx| cx.rt)
    }

    #[inline(always)]
    unsafe fn raw(self) -> Raw {
        // SAFETY: rule 2.
        unsafe { peek(self) }.map_or((0, 0), |cx| (cx.task.bits, cx.task.generation))
    }

    unsafe fn is_stale(self, core: &Core) -> bool {
        // SAFETY: rule 2.
        core.is_stale(unsafe { NamesRuntime::raw(self) })
    }
}

impl Argument<*mut AsxCx> {
    /// # Safety
    /// Rule 2 of `guard`.
    #[inline(always)]
    pub(crate) unsafe fn raw(&self) -> Raw {
        // SAFETY: rule 2.
        unsafe { NamesRuntime::raw(self.0) }
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

/// The task of a context that must be of this runtime.
///
/// # Safety
/// Rule 2 of `guard`.
#[inline(always)]
pub(crate) unsafe fn on(cx: *mut AsxCx, rt: *mut AsxRuntime) -> Checked<TaskId> {
    // SAFETY: rule 2.
    let AsxCx { rt: own, task } = unsafe { arguments::read(cx)? };
    check(own == rt, Why::Foreign)?;
    task.id()
}

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

claims!(AsxRegionId, AsxTaskId);
stale!(AsxObligationId, AsxChannelId, AsxWitnessId);

/// Whether a handle claims more than the first state.
#[inline(always)]
pub(crate) fn is_later(raw: &Raw) -> bool {
    (raw.0 >> 32) as u16 > NEW
}

/// Whether a word has this tag and one of the states up to `last`.
#[cfg_attr(feature = "inline", inline(always))]
#[cfg_attr(not(feature = "inline"), inline(never))]
fn is_snapshot(word: u64, tag: Tag, last: u16) -> Checked {
    let mask = (word >> 32) as u16;
    let is_one = mask.is_power_of_two() && mask <= last;
    if word >> 48 == tag as u64 && is_one { Ok(()) } else { Err(no_snapshot(word, tag)) }
}

/// Why a word is no handle of this type: its tag, or else its state.
#[cold]
fn no_snapshot(word: u64, tag: Tag) -> Bad {
    Bad::new(if word >> 48 == tag as u64 { Why::Mask } else { Why::Handle })
}

macro_rules! handles {
    ($($type:ident => $id:ident, $tag:ident, $last:expr;)*) => {$(
        impl $type {
            /// The kernel's id, if the handle is of this type and has a state of it. A few
            /// comparisons, unlike the kernel's own way, which looks for the tag among all there
            /// are.
            #[inline(always)]
            pub(crate) fn id(self) -> Checked<$id> {
                is_snapshot(self.bits, Tag::$tag, $last)?;
                Ok($id(Handle::from_raw(self.bits, self.generation).key()))
            }
        }
    )*};
}

handles! {
    AsxRegionId => RegionId, Region, RegionState::Closed.mask();
    AsxTaskId => TaskId, Task, TaskState::Completed.mask();
}

/// Things whose handles are made once, with the first state: one comparison.
macro_rules! stateless {
    ($($type:ident => $id:ident, $tag:ident;)*) => {$(
        impl $type {
            /// The kernel's id, if the handle is of this type.
            #[inline(always)]
            pub(crate) fn id(self) -> Checked<$id> {
                if self.bits >> 32 != (Tag::$tag as u64) << 16 | NEW as u64 {
                    return Err(no_snapshot(self.bits, Tag::$tag));
                }
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
    AsxObligationId => ObligationId, Obligation;
    AsxChannelId => ChannelId, Channel;
}

/// The mask of the first state.
const NEW: u16 = 1;

/// The tag of permits, which the kernel's handles do not have.
const PERMIT: u64 = (Tag::Channel as u64) + 1;

impl AsxSendPermit {
    /// The kernel's id, if the handle is of this type.
    pub(crate) fn id(self) -> Checked<PermitId> {
        check(self.bits >> 32 == PERMIT << 16, Why::Handle)?;
        Ok(PermitId(Key { generation: self.generation, index: self.bits as u32 }))
    }

    /// The handle of an id.
    pub(crate) fn of(rt: *mut AsxRuntime, id: PermitId) -> AsxSendPermit {
        let bits = (PERMIT << 48) | u64::from(id.0.index);
        AsxSendPermit { rt, bits, generation: id.0.generation }
    }
}

impl AsxTimerHandle {
    /// The kernel's handle.
    pub(crate) fn id(self) -> TimerHandle {
        TimerHandle { id: self.id, generation: self.generation }
    }

    /// How reports of misuse name it: a word as others have it, and the generation.
    pub(crate) fn told(self) -> (u64, u64) {
        ((Tag::Timer as u64) << 48 | u64::from(self.id as u32), self.generation)
    }

    /// The handle of an id.
    pub(crate) fn of(handle: TimerHandle) -> AsxTimerHandle {
        AsxTimerHandle { id: handle.id, generation: handle.generation }
    }
}

impl AsxTransfer {
    /// None has been made.
    pub(crate) const NONE: AsxTransfer =
        AsxTransfer { struct_size: 0, reserved: 0, from: 0, to: 0, epoch: 0 };
}

impl AsxTaskId {
    /// No task.
    pub(crate) const NONE: AsxTaskId = AsxTaskId { bits: 0, generation: 0 };
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
    pub(crate) fn task_handle(&self, task: TaskId) -> AsxTaskId {
        let handle = self.world.task_snapshot(task);
        AsxTaskId { bits: handle.word(), generation: handle.generation() }
    }

    /// A region's handle, as it is now.
    pub(crate) fn region_handle(&self, region: RegionId) -> AsxRegionId {
        let handle = self.world.region_snapshot(region);
        AsxRegionId { bits: handle.word(), generation: handle.generation() }
    }
}
