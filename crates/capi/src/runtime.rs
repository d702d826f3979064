//! The runtime itself: creation and end, stepping, time, shutdown, diagnosis.

use crate::abi::{
    ASX_NONE, AsxDiagnosis, AsxProgress, AsxQueuesInfo, AsxRuntime, AsxStats, AsxStatus, AsxTaskId,
    AsxTime,
};
use crate::ahead::{CREATED, CREATION};
use crate::config::{
    ASX_FLAG_POOL, ASX_FLAG_SEED_FROM_ENTROPY, ASX_LOG_WARN, AsxRuntimeConfig, Hooks,
};
use crate::effects;
use crate::error::{Bad, Checked, Field, Why};
use crate::ghost::{ASX_GHOST_AFFINITY, ASX_GHOST_BORROW_EPOCH};
use crate::guard::{self, Look, Out, Runtime, number};
use crate::mailbox::Mailbox;
use crate::memory::{self, AsxAllocFn, AsxFreeFn, Reserve};
use crate::state::{Core, Kernel};
use crate::step;
use crate::sync::Ordering;
use alloc::boxed::Box;
use asx_kernel::lanes::{Lane, Suggestion};
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::Time;
use asx_kernel::world::{Answer, InvariantViolation};
use core::ffi::{c_char, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use core::time::Duration;

/// Cancel, timed, ready.
pub const ASX_SUGGEST_NONE: i32 = 0;
/// Timed before cancel, within bounds.
pub const ASX_SUGGEST_MEET_DEADLINES: i32 = 1;
/// As usual, with the limit of cancels in a row doubled.
pub const ASX_SUGGEST_DRAIN_OBLIGATIONS: i32 = 2;
/// As usual, with the limit of cancels in a row doubled.
pub const ASX_SUGGEST_DRAIN_REGIONS: i32 = 3;

/// Sets the functions that allocate the library's memory. Once per process, before the first
/// runtime is created.
///
/// - Parameters: both functions keep working until the process ends, on every thread that has a
///   runtime.
/// - Thread: any, before other calls.
/// - Ownership: `hook` stays the caller's.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for a NULL function; ASX_E_INVALID_TRANSITION when set
///   before or after a runtime was created; ASX_E_CAPABILITY_DENIED in a build that uses Rust's
///   allocator.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_set_allocator(
    give: Option<AsxAllocFn>,
    take: Option<AsxFreeFn>,
    hook: *mut c_void,
) -> AsxStatus {
    number(match (give, take) {
        (Some(give), Some(take)) => memory::set_allocator(give, take, hook),
        _ => Err(Status::InvalidArgument),
    })
}

/// Creates a runtime. The calling thread becomes its owner.
///
/// - Parameters: `config` points to a configuration from asx_runtime_config_init.
/// - Thread: any; it becomes the owner.
/// - Ownership: `*out` is the caller's until asx_runtime_destroy; memory and hooks of the
///   configuration must live as long.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL, for a value out of range, a size that never
///   was, or a `pool_memory` that another runtime has; ASX_E_RESOURCE_EXHAUSTED without memory,
///   when ASX_POOLS_MOST runtimes have a pool, or `pool_bytes` are too few for the limits of a
///   strict one (the log hook gets the size of asx_runtime_config_pool_size).
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_runtime_create(
    config: *const AsxRuntimeConfig,
    out: *mut *mut AsxRuntime,
) -> AsxStatus {
    number(guard::caught(|| {
        // SAFETY: rule 2 of `guard`: what the caller promises.
        let (mut config, out) = unsafe { (AsxRuntimeConfig::read(config)?, Out::new(out)?) };
        if config.flags & ASX_FLAG_SEED_FROM_ENTROPY != 0 {
            let entropy = config.entropy.ok_or(Bad::field(Field::Entropy))?;
            // SAFETY: rule 2: given together by the program.
            config.seed = unsafe { entropy(config.hook) };
        }
        out.set(create(&config)?);
        Ok(())
    }))
}

fn create(config: &AsxRuntimeConfig) -> Answer<*mut AsxRuntime> {
    config.kernel()?;
    let hooks = Hooks::of(config);
    let owner = guard::caller(&hooks);
    memory::seal();
    let reserve = match config.flags & ASX_FLAG_POOL {
        0 => Reserve::growing(CREATION.bytes)?,
        _ => {
            let size = config.pool_size().inspect_err(|_| tell_need(config, &hooks))?;
            Reserve::pool(size, config.pool_memory, config.is_strict())?
        }
    };
    let outside = reserve.alias();
    outside.enter();
    let made = build(config, owner, reserve);
    outside.leave();
    if made.is_err() {
        outside.release();
    }
    made
}

/// Says how large a pool must be that is too small.
#[cold]
fn tell_need(config: &AsxRuntimeConfig, hooks: &Hooks) {
    if let Ok(need) = config.pool_need() {
        let text = format_args!("the pool needs {need} bytes for the limits");
        effects::tell(hooks, ASX_LOG_WARN, text);
    }
}

/// Makes a runtime of memory that is at hand, and everything ready in there that can be.
fn build(config: &AsxRuntimeConfig, owner: u64, reserve: Reserve) -> Answer<*mut AsxRuntime> {
    reserve.check(CREATION, 0)?;
    let core = Core::new(config)?;
    let rt = Box::new(Runtime::new(config, owner, reserve, Mailbox::new(), core));
    rt.reserve.check(CREATED, 0)?;
    // SAFETY: rule 3 of `guard`: nobody else has it yet.
    unsafe { rt.with(|core| core.make_ready(config, &rt))? };
    Ok(Box::into_raw(rt).cast::<AsxRuntime>())
}

/// Destroys a runtime and everything in it. Living tasks end as by a shutdown without a grace:
/// bodies are not polled again, cleanup stacks and finalizers run within their allowances as far as
/// they need not wait, and drop callbacks are called. The number of cleanup entries that were cut
/// off goes to the log hook.
///
/// - Parameters: `rt` is not used afterwards, by asx_external_wake neither.
/// - Ownership: `rt` is taken.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT
///   from inside a callback, and after one was left (asx_runtime_recover).
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_runtime_destroy(rt: *mut AsxRuntime) -> AsxStatus {
    let destroy = || {
        // SAFETY: rule 1 of `guard`: what the caller promises.
        let runtime = unsafe { Runtime::of(rt)? };
        runtime.check_thread()?;
        if runtime.is_lost() {
            // What it holds was being changed: it stays where it is.
            runtime.reserve.alias().release();
            return Ok(());
        }
        // Until the end: drop callbacks and the program's allocator are called on the way.
        runtime.occupy()?;
        // SAFETY: rule 3 of `guard`.
        unsafe { runtime.with(|core| core.may_end()) }.inspect_err(|_| runtime.vacate())?;
        step::wind_down(runtime);
        // SAFETY: rule 3 of `guard`: the last cleanup entry has returned.
        unsafe { runtime.with(Core::end) };
        effects::perform(runtime);
        // SAFETY: rule 3 of `guard`: the last drop callback has returned.
        unsafe { runtime.with(Core::end_storage) };
        effects::perform(runtime);
        let outside = runtime.reserve.alias();
        // SAFETY: made by `Box::into_raw` in `create`; the caller gives it up.
        drop(unsafe { Box::from_raw(rt.cast::<Runtime>()) });
        outside.release();
        Ok(())
    };
    let answer = guard::caught(destroy);
    // SAFETY: rule 1 of `guard`: a runtime that was refused its end is still there.
    unsafe { guard::answered(rt, signature!(asx_runtime_destroy(rt)), answer) }
}

/// Handles the timers, deadlines and outside wakes that are due at the time `now`, then polls up to
/// `max_steps` runnable tasks.
///
/// - Parameters: `now` is an instant, or ASX_NOW with a clock hook; one that has passed counts as
///   the current time. `progress` is NULL or begins with its struct_size.
/// - Returns: ASX_OK, whether or not work is left (see `progress`); ASX_E_INVALID_ARGUMENT;
///   ASX_E_CAPABILITY_DENIED when the clock hook returns ASX_NONE; ASX_E_AFFINITY_VIOLATION;
///   ASX_E_REENTRANT from inside a callback; ASX_E_INTERNAL.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_step(
    rt: *mut AsxRuntime,
    now: AsxTime,
    max_steps: u64,
    progress: *mut AsxProgress,
) -> AsxStatus {
    let signature = signature!(asx_step(rt, now, max_steps, progress));
    number(guard::caught(|| {
        // SAFETY: rules 1 and 2 of `guard`: what the caller promises.
        let (rt, progress) = unsafe { (Runtime::of(rt)?, Look::maybe(progress)) };
        step::drive(rt, signature, now, max_steps, false, progress)
    }))
}

/// Polls tasks until none is runnable at the time `now`.
///
/// - Parameters: as asx_step.
/// - Returns: ASX_OK when idle; ASX_E_RESOURCE_EXHAUSTED when the profile's bound was reached with
///   work left; ASX_E_INVALID_ARGUMENT; ASX_E_CAPABILITY_DENIED when the clock hook returns
///   ASX_NONE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT from inside a callback; ASX_E_INTERNAL.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_run_until_idle(
    rt: *mut AsxRuntime,
    now: AsxTime,
    progress: *mut AsxProgress,
) -> AsxStatus {
    let signature = signature!(asx_run_until_idle(rt, now, progress));
    number(guard::caught(|| {
        // SAFETY: rules 1 and 2 of `guard`: what the caller promises.
        let (rt, progress) = unsafe { (Runtime::of(rt)?, Look::maybe(progress)) };
        step::drive(rt, signature, now, u64::MAX, true, progress)
    }))
}

/// Wakes a task from any thread, signal handler or interrupt. The task is runnable at the next
/// step.
///
/// - Parameters: the runtime is not being destroyed.
/// - Thread: any; the one call that is.
/// - Returns: ASX_OK, also for a task that is over or was released a moment ago, which nothing
///   happens to; ASX_E_INVALID_ARGUMENT for NULL or a handle of another type; ASX_E_STALE_HANDLE
///   for a task that never existed, or a slot that was reused.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_external_wake(rt: *mut AsxRuntime, task: AsxTaskId) -> AsxStatus {
    let wake = || {
        // SAFETY: rule 1 of `guard`: what the caller promises. Only atomics are touched.
        let rt = unsafe { Runtime::of(rt)? };
        rt.mailbox.post(task.id()?.0)
    };
    number(wake())
}

export! {
    /// Reads the time of the runtime.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_now(rt, out: *mut AsxTime) {
        let out = Out::new(out)?;
        |core| {
            out.set(core.world.now().as_nanos());
            Ok(())
        }
    }

    /// Sets the time of the runtime without polling anything. An earlier time changes nothing.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for ASX_NOW; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_advance(rt, now: AsxTime) {
        let () = guard::ensure(now != crate::abi::ASX_NOW)?;
        |core| {
            core.world.set_now(Time::from_nanos(now));
            Ok(())
        }
    }

    /// Handles timers, deadlines, graces and watchdogs that are due, without polling anything.
    ///
    /// - Parameters: `fired` is NULL or writable: how many timers fired.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_fire_timers(rt, fired: *mut u64) {
        let fired = Out::maybe(fired)?;
        |core| {
            core.world.allow_timers(usize::try_from(core.max_steps).unwrap_or(usize::MAX));
            fired.set(core.world.expire() as u64);
            core.expire_watchdogs();
            Ok(())
        }
    }

    /// Reads the earliest instant at which a timer, deadline, grace or watchdog is due.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_EMPTY when nothing will; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_next_deadline(rt, out: *mut AsxTime) {
        let out = Out::new(out)?;
        |core| {
            out.set(core.next_deadline().ok_or(Status::Empty)?.as_nanos());
            Ok(())
        }
    }

    /// Sets the suggestion of the governor to the scheduler, from the next decision on.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown mode; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_set_governor_mode(rt, mode: i32) {
        let mode = suggestion(mode)?;
        |core| {
            core.world.suggest(mode);
            Ok(())
        }
    }

    /// Announces that the runtime is about to stop: wakes the tasks that wait in asx_task_stopping.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_soft_stop(rt) {
        |core| {
            core.world.soft_stop();
            Ok(())
        }
    }

    /// Shuts down in steps: a soft stop now; the root is closed after `soft_ns`; tasks that still
    /// live `force_ns` later are completed by force. Each finalizer has `force_ns` again, as with
    /// asx_region_close. Keep stepping until asx_quiescent returns ASX_OK.
    ///
    /// - Parameters: `force_ns` may be ASX_NONE: nothing is forced.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_RESOURCE_EXHAUSTED without memory for one
    ///   more than the first; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_shutdown(rt, soft_ns: AsxTime, force_ns: AsxTime) {
        |core| {
            // For the first there always is what it needs.
            if core.shut {
                core.prepare(rt, 0)?;
            }
            core.shut = true;
            core.refill(guard::runtime(rt)?);
            let force = (force_ns != ASX_NONE).then(|| Duration::from_nanos(force_ns));
            core.world.shutdown(Duration::from_nanos(soft_ns), force)
        }
    }

    /// Checks whether everything has ended. If not, reports what is still alive.
    ///
    /// - Parameters: `diagnosis` is NULL or begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_TASKS_STILL_ACTIVE, ASX_E_OBLIGATIONS_UNRESOLVED,
    ///   ASX_E_REGIONS_NOT_CLOSED, ASX_E_TIMERS_PENDING or ASX_E_CHANNEL_NOT_DRAINED, the first in
    ///   this order; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_quiescent(rt, diagnosis: *mut AsxDiagnosis) {
        let diagnosis = Look::maybe(diagnosis)?;
        |core| {
            let not = core.world.quiescent().err();
            let all = not.as_ref().map(|not| not.counts()).unwrap_or_default();
            let count = |status| {
                all.iter().find(|(of, _)| *of == status).map_or(0, |(_, count)| *count as u64)
            };
            diagnosis.set(AsxDiagnosis {
                struct_size: 0,
                reserved: 0,
                tasks: count(Status::TasksStillActive),
                obligations: count(Status::ObligationsUnresolved),
                regions: count(Status::RegionsNotClosed),
                timers: count(Status::TimersPending),
                channels: count(Status::ChannelNotDrained),
            })?;
            all.first().map_or(Ok(()), |(status, _)| Err(*status))
        }
    }

    /// Writes the tree of everything alive as text for people.
    ///
    /// - Parameters: `text` has room for `room` bytes; `size` is NULL or writable: the length of
    ///   the whole text.
    /// - Returns: ASX_OK; ASX_E_FULL when it was cut; ASX_E_CAPABILITY_DENIED in a build without
    ///   ASX_FEATURE_DUMP; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_dump(rt, text: *mut c_char, room: usize, size: *mut usize) {
        let text = guard::room(text.cast::<u8>(), room)?;
        let size = Out::maybe(size)?;
        |core| {
            guard::has(cfg!(feature = "dump"))?;
            guard::put_text(text, format_args!("{}", Dump(&core.world)), size)
        }
    }

    /// Checks every invariant. The text names a broken one by its id and the finding. After
    /// ASX_E_INTERNAL only asx_runtime_destroy may be called.
    ///
    /// - Parameters: as asx_dump.
    /// - Returns: ASX_OK; ASX_E_INTERNAL when one is broken; ASX_E_CAPABILITY_DENIED in a build
    ///   without ASX_FEATURE_DUMP; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_verify(rt, text: *mut c_char, room: usize, size: *mut usize) {
        let text = guard::room(text.cast::<u8>(), room)?;
        let size = Out::maybe(size)?;
        |core| {
            guard::has(cfg!(feature = "dump"))?;
            core.look_at_kept(usize::MAX);
            verified(core.world.check(), text, size)
        }
    }

    /// Draws a number from the runtime's random stream, which is determined by the seed.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_random(rt, out: *mut u64) {
        let out = Out::new(out)?;
        |core| {
            out.set(core.random.next_u64());
            Ok(())
        }
    }

    /// Reads the state of timers and run queues, and the counters of the scheduler.
    ///
    /// - Parameters: `info` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_get_queues(rt, info: *mut AsxQueuesInfo) {
        let info = Look::new(info)?;
        |core| {
            let world = &core.world;
            let timers = core.world.timers();
            let certificate = world.scheduler().certificate(0);
            info.set(AsxQueuesInfo {
                struct_size: 0,
                reserved: 0,
                timers: timers.len() as u64,
                next_timer: timers.next_deadline().map_or(ASX_NONE, Time::as_nanos),
                timer_storage: timers.storage() as u64,
                cancel: world.queued_in(Lane::Cancel) as u64,
                timed: world.queued_in(Lane::Timed) as u64,
                ready: world.queued_in(Lane::Ready) as u64,
                cancel_dispatches: certificate.cancel,
                timed_dispatches: certificate.timed,
                ready_dispatches: certificate.ready,
                fallback_dispatches: certificate.fallback,
                base_exceedances: certificate.base_exceedances,
                effective_exceedances: certificate.effective_exceedances,
                max_limit: certificate.max_effective_limit,
                certificate: certificate.witness_hash(),
            })
        }
    }

    /// Reads the counters of the runtime.
    ///
    /// - Parameters: `stats` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_get_stats(rt, stats: *mut AsxStats) {
        let stats = Look::new(stats)?;
        |core| {
            let rt = Runtime::of(rt)?;
            core.note_strays(rt);
            let pool = rt.reserve.stats();
            stats.set(AsxStats {
                struct_size: 0,
                reserved: 0,
                polls: core.polls,
                overruns: core.overruns,
                watchdogs: core.watchdogs_expired(),
                external_wakes: core.external_wakes,
                ghosts: core.ghosts.counts,
                memory: core.world.memory() as u64,
                pool_size: pool.size,
                pool_used: pool.used,
                pool_peak: pool.peak,
                pool_spills: pool.spills,
                cleanups_cut: core.world.cleanups_cut(),
                watchdogs_forced: core.watchdogs_forced(),
                obligations_leaked: core.world.leaks(),
            })
        }
    }

    /// Sets the source position of the next call, for reports of misuse and leaks. ASX_CALL uses
    /// it.
    ///
    /// - Parameters: `file` is NULL or a text that lives until that call is over, and as long as
    ///   the runtime if it reserves an obligation: __FILE__ does.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_set_location(rt, file: *const c_char, line: u32) {
        |core| {
            core.ghosts.set_location(file, line);
            Ok(())
        }
    }

    /// Declares that the program borrows some of its data until asx_borrow_end, at most until the
    /// poll under way ends. The ghost monitors check this.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK, in a conflict too; ASX_E_INVALID_ARGUMENT; ASX_E_RESOURCE_EXHAUSTED when
    ///   `max_borrows` were not ended, or without memory; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_borrow_begin(rt, exclusive: i32, out: *mut u64) {
        let out = Out::new(out)?;
        |core| {
            let reserve = &guard::runtime(rt)?.reserve;
            reserve.strictly(|| core.borrows.try_reserve())?;
            let (token, conflict) = core.borrows.begin(exclusive != 0);
            if conflict {
                let task = core.current_handle();
                core.ghosts.note(ASX_GHOST_BORROW_EPOCH, 0, (token, 0), task);
            }
            out.set(token);
            Ok(())
        }
    }

    /// Ends a borrow.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for a borrow that is not held;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_borrow_end(rt, borrow: u64) {
        |core| core.borrows.end(borrow).inspect_err(|status| {
            let task = core.current_handle();
            core.ghosts.note(ASX_GHOST_BORROW_EPOCH, status.number(), (borrow, 0), task);
        })
    }
}

/// The tree of what lives, written where it is wanted.
struct Dump<'a>(&'a Kernel);

impl fmt::Display for Dump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.dump_into(f);
        Ok(())
    }
}

/// What a check of the invariants has found, as status and text.
fn verified(
    found: Result<(), InvariantViolation>,
    text: &mut [MaybeUninit<u8>],
    size: Out<usize>,
) -> Answer {
    let _ = match &found {
        Ok(()) => guard::put_text(text, format_args!(""), size),
        Err(broken) => guard::put_text(text, format_args!("{broken}"), size),
    };
    found.map_err(|broken| broken.status())
}

fn suggestion(mode: i32) -> Checked<Suggestion> {
    match mode {
        ASX_SUGGEST_NONE => Ok(Suggestion::NoPreference),
        ASX_SUGGEST_MEET_DEADLINES => Ok(Suggestion::MeetDeadlines),
        ASX_SUGGEST_DRAIN_OBLIGATIONS => Ok(Suggestion::DrainObligations),
        ASX_SUGGEST_DRAIN_REGIONS => Ok(Suggestion::DrainRegions),
        _ => Err(Bad::new(Why::Range)),
    }
}

impl Core {
    /// Takes over the calls from wrong threads, which could not report themselves.
    pub(crate) fn note_strays(&mut self, rt: &Runtime) {
        if rt.strays.load(Ordering::Relaxed) == 0 {
            return;
        }
        let strays = rt.strays.swap(0, Ordering::Relaxed);
        let status = Status::AffinityViolation.number();
        self.ghosts.note_many(strays, ASX_GHOST_AFFINITY, status, (0, 0), AsxTaskId::NONE);
    }

    /// Refuses the end of a runtime from inside of it.
    fn may_end(&self) -> Answer {
        if self.stepping || self.current.is_some() { Err(Status::Reentrant) } else { Ok(()) }
    }

    /// The runtime is about to go: every body that was not dropped yet is due.
    fn end(&mut self) {
        self.collect();
        self.drop_bodies();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_broken_invariant_is_internal_and_named() {
        let mut text = [MaybeUninit::new(b'?'); 64];
        let mut size = 0;
        let mut told = |found| {
            // SAFETY: rule 2 of `guard`: the place outlives the call.
            let out = unsafe { Out::new(&raw mut size) }.unwrap();
            let answer = verified(found, &mut text, out);
            // SAFETY: all of it was a value from the beginning.
            let bytes = text.map(|byte| unsafe { byte.assume_init() });
            (answer, String::from_utf8_lossy(&bytes[..size]).into_owned())
        };
        let broken =
            InvariantViolation { id: "INV-TK-01", what: "t1 has an entry too many".into() };
        let named = "INV-TK-01: t1 has an entry too many";
        assert_eq!(told(Err(broken)), (Err(Status::Internal), named.to_owned()));
        assert_eq!(told(Ok(())), (Ok(()), String::new()));
    }
}
