//! Region timers. A task's own sleeps are in `task`.

use crate::abi::{
    ASX_NONE, ASX_TIMER_GONE, ASX_TIMER_OVERFLOW, ASX_TIMER_READY, AsxRegionId, AsxTaskId,
    AsxTimerHandle, AsxTimerInfo, AsxWhen,
};
use crate::ghost::ASX_GHOST_DOUBLE_CANCEL;
use crate::guard::{self, Look, Out};
use asx_kernel::time::Time;
use asx_kernel::wheel::Placement;

export! {
    /// Arms a timer of a region, which may wake a task.
    ///
    /// - Parameters: `wakes` is NULL or a task; `out` is writable.
    /// - Ownership: the timer is the region's.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
    ///   ASX_E_TIMER_DURATION_EXCEEDED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_region_timer_arm(
        rt,
        region: AsxRegionId,
        when: AsxWhen,
        wakes: *const AsxTaskId,
        out: *mut AsxTimerHandle,
    ) {
        let region = region.id()?;
        let when = when.checked()?;
        let wakes = guard::maybe(wakes, AsxTaskId::id)?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            out.set(AsxTimerHandle::of(core.keeps_all().world.arm(region, when, wakes)?));
            Ok(())
        }
    }

    /// Cancels a timer. For a timer that has ended or never existed nothing happens, which is no
    /// error.
    ///
    /// - Parameters: `cancelled` is NULL or writable: whether it was armed.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_timer_cancel(rt, timer: AsxTimerHandle, cancelled: *mut i32) {
        let cancelled = Out::maybe(cancelled)?;
        |core| {
            let armed = core.keeps_all().world.disarm(timer.id());
            if !armed {
                let by = core.current_handle();
                core.ghosts.note(ASX_GHOST_DOUBLE_CANCEL, 0, timer.told(), by);
            }
            cancelled.set(i32::from(armed));
            Ok(())
        }
    }

    /// Arms a new timer in place of an old one. If the new one is refused the old one stays. The
    /// old one may have ended.
    ///
    /// - Parameters: as asx_region_timer_arm.
    /// - Ownership: as asx_region_timer_arm.
    /// - Returns: as asx_region_timer_arm.
    fn asx_region_timer_update(
        rt,
        old: AsxTimerHandle,
        region: AsxRegionId,
        when: AsxWhen,
        wakes: *const AsxTaskId,
        out: *mut AsxTimerHandle,
    ) {
        let region = region.id()?;
        let when = when.checked()?;
        let wakes = guard::maybe(wakes, AsxTaskId::id)?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            out.set(AsxTimerHandle::of(core.world.update_timer(old.id(), region, when, wakes)?));
            Ok(())
        }
    }

    /// Reads the state of a timer. One that has ended is ASX_TIMER_GONE.
    ///
    /// - Parameters: `info` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_region_timer_get_info(rt, timer: AsxTimerHandle, info: *mut AsxTimerInfo) {
        let info = Look::new(info)?;
        |core| {
            let wheel = core.world.timers();
            let deadline = wheel.get(timer.id()).map(|(deadline, _)| deadline);
            info.set(AsxTimerInfo {
                struct_size: 0,
                level: match wheel.level_of(timer.id()) {
                    None => ASX_TIMER_GONE,
                    Some(Placement::Level(level)) => i32::from(level),
                    Some(Placement::Ready) => ASX_TIMER_READY,
                    Some(Placement::Overflow) => ASX_TIMER_OVERFLOW,
                },
                deadline: deadline.map_or(ASX_NONE, Time::as_nanos),
            })
        }
    }
}
