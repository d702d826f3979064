//! Timer wheels that need no runtime: deadlines, and wakers that are handed back when they expire.
//!
//! The wheel is the kernel's, of the same type as the wheel of a world: the library contains its
//! code once. The wakers are kept beside it, by the slot of their timer.
//!
//! A wheel has a separate memory pool, which grows like that of a runtime: a registration reserves
//! all it may need before it changes anything, so that an allocator without memory refuses the
//! registration and nothing else.
//!
//! Rules of the unsafe code:
//! 1. A wheel's pointer is NULL, or came from asx_timer_wheel_create and is not destroyed; no other
//!    thread is inside a call of the same wheel.
//! 2. As rule 2 of `guard`, for all other pointers.
//! 3. What is behind the pointer is borrowed by one call at a time: the flag `busy` is set for that
//!    long, and the program's allocator, the only thing of the program that runs meanwhile, finds
//!    it set.

use crate::abi::{ASX_NONE, AsxStatus, AsxTaskId, AsxTime, AsxTimerHandle, AsxWaker};
use crate::arguments::{Out, number, read};
use crate::config::size;
use crate::error::{Checked, Field, field};
use crate::guard::caught;
use crate::memory::{self, Reserve};
use crate::pool::Aside;
use crate::structs::options;
use alloc::boxed::Box;
use alloc::vec::Vec;
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::Time;
use asx_kernel::wheel::{Coalesce, Expired, WheelConfig};
use asx_kernel::world::{Answer, TimerToken, TimerWheel};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::marker::{PhantomData, PhantomPinned};
use core::mem::size_of;
use core::ptr::null_mut;
use core::time::Duration;

/// A timer wheel. Opaque to C.
#[repr(C)]
pub struct AsxTimerWheel {
    _opaque: [u8; 0],
    _stays: PhantomData<(*mut u8, PhantomPinned)>,
}

/// How a timer wheel is set up; see ASX_TIMER_WHEEL_CONFIG_INIT.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxTimerWheelConfig {
    /// sizeof(asx_timer_wheel_config).
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The time at which the wheel begins.
    pub now: AsxTime,
    /// Armed timers; ASX_NONE for no limit but memory.
    pub max_timers: u64,
    /// Timers at least this far away wait outside the wheel.
    pub max_wheel_ns: AsxTime,
    /// Timers further away than this are refused.
    pub max_timer_ns: AsxTime,
    /// Timers that are due within this grid expire together; 0: each at its time.
    pub coalesce_ns: AsxTime,
    /// The fewest timers that expire together.
    pub coalesce_group: u64,
}

/// What a wheel's pointer points to.
struct Owned {
    reserve: Reserve,
    busy: Cell<bool>,
    inner: UnsafeCell<Inner>,
}

struct Inner {
    wheel: TimerWheel,
    /// The wakers of the timers, by the id of the timer.
    wakers: Vec<AsxWaker>,
    /// Reusable buffer for expired timers.
    due: Vec<Expired<TimerToken>>,
    /// Registrations before memory is looked at again.
    adds: usize,
}

/// Registrations for which room is made at once.
const ADDS: usize = 8;
/// Wakers whose memory is kept while no timer is armed.
const KEEP: usize = 64;
/// Expired timers that are taken from the wheel at once.
const BATCH: usize = 16;
/// Bytes a timer may need in the lists it comes through, each of which may have doubled.
const TIMER: usize = 128;
/// Bytes for the first lists.
const LISTS: usize = 8 * 1024;

impl Owned {
    /// Runs something with what is behind the pointer.
    ///
    /// # Safety
    /// Rule 1.
    unsafe fn with<R>(
        wheel: *mut AsxTimerWheel,
        run: impl FnOnce(&Reserve, &mut Inner) -> Answer<R>,
    ) -> Answer<R> {
        let wheel = wheel.cast::<Owned>();
        if wheel.is_null() || !wheel.is_aligned() {
            return Err(Status::InvalidArgument);
        }
        // SAFETY: rule 1.
        let own = unsafe { &*wheel };
        if own.busy.replace(true) {
            return Err(Status::Reentrant);
        }
        own.reserve.enter();
        // SAFETY: rule 3.
        let result = caught(|| run(&own.reserve, unsafe { &mut *own.inner.get() }));
        own.reserve.leave();
        own.busy.set(false);
        result
    }
}

impl Inner {
    fn new(config: WheelConfig, now: AsxTime, reserve: &Reserve) -> Answer<Inner> {
        let mut due = Vec::new();
        let room = reserve.strictly(|| due.try_reserve(BATCH));
        room.map_err(|_| Status::ResourceExhausted)?;
        let wheel = TimerWheel::new(config, Time::from_nanos(now));
        Ok(Inner { wheel, wakers: Vec::new(), due, adds: 0 })
    }

    /// Makes room for one timer more, and for all of them to move and expire.
    fn prepare(&mut self, reserve: &Reserve) -> Answer {
        if self.adds > 0 {
            self.adds -= 1;
            return Ok(());
        }
        let some = self.make_room(ADDS, reserve);
        some.or_else(|_| self.make_room(1, reserve))
    }

    fn make_room(&mut self, more: usize, reserve: &Reserve) -> Answer {
        let wakers = self.wheel.storage().saturating_add(more);
        let grown = reserve.strictly(|| {
            self.wakers.try_reserve(wakers.saturating_sub(self.wakers.len()))?;
            self.wheel.try_reserve(more)
        });
        grown.map_err(|_| Status::ResourceExhausted)?;
        let refs = self.wheel.refs().saturating_add(more);
        let bytes = refs.saturating_mul(TIMER).saturating_add(LISTS);
        let piece = refs.saturating_mul(16).max(LISTS / 8);
        // Pieces are larger than what is asked for, by a quarter at most.
        reserve.check(Aside { bytes: bytes.saturating_add(bytes / 4), piece }, 0)?;
        self.adds = more - 1;
        Ok(())
    }

    /// Registers a timer, in place of an old one if there is one.
    fn register(
        &mut self,
        reserve: &Reserve,
        old: Option<AsxTimerHandle>,
        deadline: AsxTime,
        waker: AsxWaker,
    ) -> Answer<AsxTimerHandle> {
        self.prepare(reserve)?;
        let deadline = Time::from_nanos(deadline);
        let token = TimerToken::UNOWNED;
        let registered = match old {
            Some(old) => self.wheel.update(old.id(), deadline, token).map(|(handle, _)| handle),
            None => self.wheel.register(deadline, token),
        };
        let handle = registered.map_err(|refused| refused.status())?;
        let at = handle.id as usize;
        if self.wakers.len() <= at {
            // Within the reserved capacity.
            self.wakers.resize(at + 1, AsxWaker::NONE);
        }
        if let Some(slot) = self.wakers.get_mut(at) {
            *slot = waker;
        }
        Ok(AsxTimerHandle::of(handle))
    }

    /// Releases the memory of the wakers when no timer is armed, as the wheel does for its entries.
    fn settle(&mut self) {
        if self.wheel.is_empty() && self.wakers.len() > KEEP {
            self.wakers = Vec::new();
            self.adds = 0;
        }
    }
}

impl AsxTimerWheelConfig {
    fn defaults() -> AsxTimerWheelConfig {
        let wheel = WheelConfig::default();
        AsxTimerWheelConfig {
            struct_size: size_of::<AsxTimerWheelConfig>() as u32,
            reserved: 0,
            now: 0,
            max_timers: ASX_NONE,
            max_wheel_ns: wheel.max_wheel_duration.as_nanos() as u64,
            max_timer_ns: wheel.max_timer_duration.as_nanos() as u64,
            coalesce_ns: 0,
            coalesce_group: 0,
        }
    }

    fn kernel(&self) -> Checked<WheelConfig> {
        field(self.reserved == 0, Field::Reserved)?;
        Ok(WheelConfig {
            max_wheel_duration: Duration::from_nanos(self.max_wheel_ns),
            max_timer_duration: Duration::from_nanos(self.max_timer_ns),
            limit: size(self.max_timers),
            coalesce: (self.coalesce_ns > 0).then(|| Coalesce {
                window: Duration::from_nanos(self.coalesce_ns),
                min_group_size: size(self.coalesce_group),
            }),
            ..WheelConfig::default()
        })
    }
}

impl AsxWaker {
    /// Does nothing.
    pub const NONE: AsxWaker =
        AsxWaker { wake: None, data: null_mut(), task: AsxTaskId { bits: 0, generation: 0 } };
}

impl AsxTimerHandle {
    /// Names no timer.
    pub const NONE: AsxTimerHandle = AsxTimerHandle { id: 0, generation: 0 };
}

/// Creates a timer wheel, which needs no runtime. Its functions may be called from any thread, and
/// from inside polls and hooks, but not by two threads at once, and not by the functions of
/// asx_set_allocator.
///
/// - Parameters: `config` is NULL or begins with its struct_size; NULL: the time is 0, and timers
///   are up to 7 days away; `out` is writable.
/// - Thread: any.
/// - Ownership: `*out` is the caller's until asx_timer_wheel_destroy.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_RESOURCE_EXHAUSTED without memory.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_wheel_create(
    config: *const AsxTimerWheelConfig,
    out: *mut *mut AsxTimerWheel,
) -> AsxStatus {
    number(caught(|| {
        // SAFETY: rule 2.
        let (config, out) =
            unsafe { (options(config, AsxTimerWheelConfig::defaults())?, Out::new(out)?) };
        let kernel = config.kernel()?;
        memory::seal();
        let need = size_of::<Owned>() * 5 / 4 + LISTS;
        let reserve = Reserve::growing(need)?;
        let outside = reserve.alias();
        outside.enter();
        let made = Inner::new(kernel, config.now, &reserve).map(|inner| {
            let inner = UnsafeCell::new(inner);
            Box::into_raw(Box::new(Owned { reserve, busy: Cell::new(false), inner }))
        });
        outside.leave();
        match made {
            Ok(wheel) => out.set(wheel.cast()),
            Err(_) => outside.release(),
        }
        made.map(drop)
    }))
}

/// Destroys a timer wheel. The wakers of its timers are not called.
///
/// - Parameters: `wheel` is not used afterwards.
/// - Thread: any.
/// - Ownership: `wheel` is taken.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL; ASX_E_REENTRANT from the functions of
///   asx_set_allocator.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_wheel_destroy(wheel: *mut AsxTimerWheel) -> AsxStatus {
    // SAFETY: rule 1.
    let free = unsafe { Owned::with(wheel, |reserve, _| Ok(reserve.alias())) };
    number(free.map(|reserve| {
        reserve.enter();
        // SAFETY: rule 1: made by `Box::into_raw`, and given up by the caller.
        drop(unsafe { Box::from_raw(wheel.cast::<Owned>()) });
        reserve.leave();
        reserve.release();
    }))
}

/// Registers a timer. A deadline that has passed is accepted, and due at once.
///
/// - Parameters: `out` is writable.
/// - Thread: any, one at a time.
/// - Ownership: `waker.data` stays the caller's, and must live until the timer is cancelled or
///   collected.
/// - Returns: ASX_OK; ASX_E_TIMER_DURATION_EXCEEDED; ASX_E_RESOURCE_EXHAUSTED when the limit is
///   reached, or without memory; ASX_E_INVALID_ARGUMENT; ASX_E_REENTRANT.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_try_register(
    wheel: *mut AsxTimerWheel,
    deadline: AsxTime,
    waker: AsxWaker,
    out: *mut AsxTimerHandle,
) -> AsxStatus {
    let register = || {
        // SAFETY: rule 2.
        let out = unsafe { Out::new(out)? };
        // SAFETY: rule 1.
        unsafe {
            Owned::with(wheel, |reserve, inner| {
                out.set(inner.register(reserve, None, deadline, waker)?);
                Ok(())
            })
        }
    };
    number(register())
}

/// Registers a timer as asx_timer_try_register does. If it is refused, `*out` is set to a handle
/// that names no timer, which asx_timer_cancel and asx_timer_update accept. asx_timer_try_register
/// leaves `*out` unchanged then.
///
/// - Parameters: as asx_timer_try_register.
/// - Thread: any, one at a time.
/// - Ownership: as asx_timer_try_register.
/// - Returns: as asx_timer_try_register.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_register(
    wheel: *mut AsxTimerWheel,
    deadline: AsxTime,
    waker: AsxWaker,
    out: *mut AsxTimerHandle,
) -> AsxStatus {
    // SAFETY: the caller's promise is that of the function called; rule 2.
    unsafe {
        let status = asx_timer_try_register(wheel, deadline, waker, out);
        if status != Status::Ok.number() {
            let _ = Out::new(out).map(|out| out.set(AsxTimerHandle::NONE));
        }
        status
    }
}

/// Sets the wheel's time to `now` and removes up to `max` timers that are due, in the order of
/// (deadline, registration). Their wakers are written, not called. Further ones stay due and come
/// first in the next call. An earlier time counts as the wheel's current time.
///
/// - Parameters: `out` has room for `max` wakers.
/// - Thread: any, one at a time.
/// - Ownership: the wakers are the caller's.
/// - Returns: how many were written; 0 for NULL, or from the functions of asx_set_allocator.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_collect_expired(
    wheel: *mut AsxTimerWheel,
    now: AsxTime,
    out: *mut AsxWaker,
    max: usize,
) -> usize {
    let collect = || {
        // SAFETY: rule 2.
        let room = unsafe { crate::arguments::room(out, max)? };
        let take = |_: &Reserve, inner: &mut Inner| {
            let now = Time::from_nanos(now);
            // Without room only the time moves.
            inner.wheel.advance(now);
            let mut places = room.iter_mut();
            let mut written = 0;
            while written < max {
                let most = BATCH.min(max - written);
                let taken = inner.wheel.collect(now, most, &mut inner.due);
                // The places come second: what is left of them is not taken when the batch is over.
                for (expired, to) in inner.due.drain(..).zip(places.by_ref()) {
                    let waker = inner.wakers.get(expired.handle.id as usize);
                    to.write(waker.copied().unwrap_or(AsxWaker::NONE));
                }
                written += taken;
                if taken < most {
                    break;
                }
            }
            inner.settle();
            Ok(written)
        };
        // SAFETY: rule 1.
        unsafe { Owned::with(wheel, take) }
    };
    collect().unwrap_or(0)
}

/// Cancels a timer. Its waker will not be collected.
///
/// - Parameters: `timer` is readable.
/// - Thread: any, one at a time.
/// - Ownership: the waker's data is the caller's again.
/// - Returns: true if the timer was armed; false for one that has expired, was cancelled or never
///   was, and for NULL.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_cancel(
    wheel: *mut AsxTimerWheel,
    timer: *const AsxTimerHandle,
) -> bool {
    let cancel = || {
        // SAFETY: rule 2.
        let timer = unsafe { read(timer)? };
        // SAFETY: rule 1.
        unsafe {
            Owned::with(wheel, |_, inner| {
                let cancelled = inner.wheel.cancel(timer.id()).is_some();
                inner.settle();
                Ok(cancelled)
            })
        }
    };
    cancel().unwrap_or(false)
}

/// Registers a timer in place of an old one, which is cancelled if it is still armed. If the new
/// one is refused the old one stays; asx_timer_try_update returns the status.
///
/// - Parameters: `old` is readable.
/// - Thread: any, one at a time.
/// - Ownership: as asx_timer_try_register.
/// - Returns: the handle of the new timer; when it is refused a copy of `*old`, or a handle that
///   names no timer for NULL.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_update(
    wheel: *mut AsxTimerWheel,
    old: *const AsxTimerHandle,
    deadline: AsxTime,
    waker: AsxWaker,
) -> AsxTimerHandle {
    // SAFETY: rule 2.
    let mut handle = unsafe { read(old) }.unwrap_or(AsxTimerHandle::NONE);
    // SAFETY: the caller's promise is that of the function called; the pointer is to a local.
    unsafe { asx_timer_try_update(wheel, old, deadline, waker, &raw mut handle) };
    handle
}

/// Registers a timer in place of an old one as asx_timer_update does, and returns a status.
///
/// - Parameters: `old` is readable; `out` is writable, and may be `old`.
/// - Thread: any, one at a time.
/// - Ownership: as asx_timer_try_register.
/// - Returns: as asx_timer_try_register.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_try_update(
    wheel: *mut AsxTimerWheel,
    old: *const AsxTimerHandle,
    deadline: AsxTime,
    waker: AsxWaker,
    out: *mut AsxTimerHandle,
) -> AsxStatus {
    let update = || {
        // SAFETY: rule 2.
        let (old, out) = unsafe { (read(old)?, Out::new(out)?) };
        // SAFETY: rule 1.
        unsafe {
            Owned::with(wheel, |reserve, inner| {
                out.set(inner.register(reserve, Some(old), deadline, waker)?);
                Ok(())
            })
        }
    };
    number(update())
}

/// Reads the deadline of the earliest armed timer.
///
/// - Parameters: `out` is writable.
/// - Thread: any, one at a time.
/// - Returns: ASX_OK; ASX_E_EMPTY when no timer is armed; ASX_E_INVALID_ARGUMENT; ASX_E_REENTRANT.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_wheel_next_deadline(
    wheel: *mut AsxTimerWheel,
    out: *mut AsxTime,
) -> AsxStatus {
    let next = || {
        // SAFETY: rule 2.
        let out = unsafe { Out::new(out)? };
        // SAFETY: rule 1.
        unsafe {
            Owned::with(wheel, |_, inner| {
                out.set(inner.wheel.next_deadline().ok_or(Status::Empty)?.as_nanos());
                Ok(())
            })
        }
    };
    number(next())
}

/// Returns the number of armed timers.
///
/// - Thread: any, one at a time.
/// - Returns: how many; 0 for NULL.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_timer_wheel_len(wheel: *mut AsxTimerWheel) -> usize {
    // SAFETY: rule 1.
    unsafe { Owned::with(wheel, |_, inner| Ok(inner.wheel.len())) }.unwrap_or(0)
}

/// Wakes a task, from any thread: the function of the wakers that asx_cx_waker makes.
///
/// - Parameters: `runtime` is a living runtime.
/// - Thread: any.
/// - Returns: nothing; a wake that asx_external_wake refuses is dropped.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_wake_task(runtime: *mut c_void, task: AsxTaskId) {
    // SAFETY: the caller's promise is that of the function called.
    unsafe { crate::runtime::asx_external_wake(runtime.cast(), task) };
}
