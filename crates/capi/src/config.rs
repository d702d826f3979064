//! How a runtime is set up: limits, profile, hooks.
//!
//! The struct may grow. A caller compiled against an older header passes a smaller `struct_size`;
//! what it does not have keeps the profile's default. One compiled against a newer header passes a
//! larger one; that is refused if it asks for something this library does not know.

use crate::abi::{ASX_NONE, AsxClock, AsxRuntime, AsxStatus, AsxTaskId, AsxTime, AsxTransfer};
use crate::arguments::{self, Out};
use crate::error::{Bad, Checked, Field, field};
use crate::pool::SMALL_CALLS;
use crate::structs;
use asx_kernel::cancel::ChainLimits;
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::{SchedulerConfig, TieBreak};
use asx_kernel::status::Status;
use asx_kernel::wheel::{Coalesce, WheelConfig, refs_of};
use asx_kernel::world::{Answer, Config, Limits, Living};
use core::ffi::{c_char, c_void};
use core::mem::{align_of, size_of};
use core::time::Duration;

/// No limits but memory.
pub const ASX_PROFILE_CORE: i32 = 0;
/// Everything bounded; all memory is reserved at creation.
pub const ASX_PROFILE_EMBEDDED: i32 = 1;
/// Work per call is bounded, and calls that reach the bound are counted.
pub const ASX_PROFILE_HFT: i32 = 2;
/// As embedded, with a watchdog for every task.
pub const ASX_PROFILE_AUTOMOTIVE: i32 = 3;

/// Misuse is watched for, counted and reported through the ghost hook.
pub const ASX_FLAG_GHOSTS: u32 = 1;
/// The seed is drawn from the entropy hook.
pub const ASX_FLAG_SEED_FROM_ENTROPY: u32 = 2;
/// All memory is reserved at creation, as in the embedded profile. At most ASX_POOLS_MOST runtimes
/// of a process can have such a pool at once.
pub const ASX_FLAG_POOL: u32 = 4;

/// Requests beyond the pool are refused: the allocator is not used after the creation. Only with
/// ASX_FLAG_POOL. The default in the embedded and automotive profiles. Without this flag the
/// allocator provides further blocks when the pool is used up (`pool_spills`).
pub const ASX_FLAG_STRICT: u32 = 64;
/// There is no journal: nothing is recorded, nothing can be read, and there is no digest, so that
/// runs cannot be compared. Nothing else differs. Always set in builds without ASX_FEATURE_JOURNAL.
pub const ASX_FLAG_NO_JOURNAL: u32 = 16;

/// The oldest event makes room.
pub const ASX_TRACE_OVERWRITE: i32 = 0;
/// New work is refused.
pub const ASX_TRACE_REFUSE: i32 = 1;

/// Tasks that are equal by priority or deadline run in the order in which they were queued.
pub const ASX_TIE_FIFO: i32 = 0;
/// Tasks that are equal by priority or deadline run in an order drawn from the seed: for
/// exploration.
pub const ASX_TIE_SEEDED: i32 = 1;
/// Tasks that are equal by priority or deadline run in the order of their ids. The default.
pub const ASX_TIE_TASK_KEY: i32 = 2;

/// Answers 64 random bits.
pub type AsxEntropyFn = unsafe extern "C" fn(hook: *mut c_void) -> u64;
/// Answers a number that no other thread has.
pub type AsxThreadFn = unsafe extern "C" fn(hook: *mut c_void) -> u64;
/// Takes a line of text, which is not kept; it ends with a NUL that `size` does not count.
pub type AsxLogFn =
    unsafe extern "C" fn(hook: *mut c_void, level: i32, text: *const c_char, size: usize);

/// A misuse that was noticed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxGhost {
    /// One of the ASX_GHOST_ constants.
    pub kind: i32,
    /// The status that the call returned.
    pub status: AsxStatus,
    /// The bits of the handle it was about.
    pub bits: u64,
    /// The generation of the handle it was about.
    pub generation: u64,
    /// The task that was being polled, zero if none.
    pub task: AsxTaskId,
    /// The function that was called; "asx" in a build without ASX_FEATURE_NAMES.
    pub call: *const c_char,
    /// The caller's file as given to asx_set_location, or NULL.
    pub file: *const c_char,
    /// The caller's line as given to asx_set_location, or 0.
    pub line: u32,
    /// Zero.
    pub reserved: u32,
}

/// Takes a report of a misuse, which is not kept.
pub type AsxGhostFn = unsafe extern "C" fn(hook: *mut c_void, ghost: *const AsxGhost);

/// Reports that the watchdog of a task has expired, and the action: ASX_WATCHDOG_.
pub type AsxWatchdogFn =
    unsafe extern "C" fn(hook: *mut c_void, rt: *mut AsxRuntime, task: AsxTaskId, stage: i32);

/// How a runtime is set up: filled by asx_runtime_config_init, then changed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxRuntimeConfig {
    /// sizeof(asx_runtime_config).
    pub struct_size: u32,
    /// One of the ASX_PROFILE_ constants.
    pub profile: i32,
    /// Decides every free choice.
    pub seed: u64,
    /// Tasks not over; ASX_NONE for no limit, here and below.
    pub max_tasks: u64,
    /// Regions not closed, the root included: 0 is refused.
    pub max_regions: u64,
    /// Obligations not resolved.
    pub max_obligations: u64,
    /// Channels not fully closed.
    pub max_channels: u64,
    /// Armed timers.
    pub max_timers: u64,
    /// Ready entries beyond which spawns and wakes are refused.
    pub max_ready: u64,
    /// Timed entries beyond which spawns and wakes are refused.
    pub max_timed: u64,
    /// Cancel entries beyond which cancels of tasks are refused.
    pub max_cancel: u64,
    /// The estimate of memory in bytes.
    pub max_memory: u64,
    /// Events the journal keeps.
    pub max_trace: u64,
    /// Polls, and timers fired, in one call of asx_step; 0 is refused, since nothing could run.
    pub max_steps: u64,
    /// The treatment of events when the journal is full: ASX_TRACE_.
    pub trace_full: i32,
    /// The order of tasks that are equal by priority or deadline: ASX_TIE_.
    pub tie_break: i32,
    /// Cancel dispatches in a row while other work waits.
    pub cancel_streak_limit: u32,
    /// ASX_FLAG_.
    pub flags: u32,
    /// A task not kicked for so long is cancelled; ASX_NONE for no watchdog.
    pub watchdog_ns: AsxTime,
    /// Timers at least this far away wait outside the wheel.
    pub max_wheel_ns: AsxTime,
    /// Timers further away than this are refused.
    pub max_timer_ns: AsxTime,
    /// Timers that are due within this grid fire together; 0: each at its time.
    pub coalesce_ns: AsxTime,
    /// The fewest timers that fire together.
    pub coalesce_group: u64,
    /// The id of the first timer.
    pub first_timer_id: u64,
    /// The generation of the first timer.
    pub first_timer_generation: u64,
    /// Links of a chain of causes.
    pub chain_depth: u32,
    /// Bytes of a chain of causes.
    pub chain_bytes: u32,
    /// Bytes reserved with ASX_FLAG_POOL; 0: enough for the limits.
    pub pool_bytes: u64,
    /// Memory to use for the pool, of `pool_bytes` bytes, aligned to 16, of this runtime alone;
    /// NULL: allocated. How many are enough: asx_runtime_config_pool_size.
    pub pool_memory: *mut c_void,
    /// Passed to each hook. The clock has a separate pointer.
    pub hook: *mut c_void,
    /// The clock for ASX_NOW; without one, `clock.now` is NULL. If it returns ASX_NONE it has no
    /// time to give: the call returns ASX_E_CAPABILITY_DENIED and has no effect.
    pub clock: AsxClock,
    /// Lines for people; may be NULL. A build without ASX_FEATURE_DUMP has none.
    pub log: Option<AsxLogFn>,
    /// Seeds; may be NULL.
    pub entropy: Option<AsxEntropyFn>,
    /// Identifies the calling thread. NULL: pthread_self where there is one, else threads are not
    /// checked. Called by every function, on any thread. It must not call this library, which is
    /// not checked.
    pub thread: Option<AsxThreadFn>,
    /// Reports of misuse; may be NULL.
    pub ghost: Option<AsxGhostFn>,
    /// Registered finalizers (asx_region_defer) that have not been started.
    pub max_finalizers: u64,
    /// Entries of all tasks' cleanup stacks (asx_task_push_cleanup).
    pub max_cleanups: u64,
    /// Borrows (asx_borrow_begin) not ended.
    pub max_borrows: u64,
    /// Reports of watchdogs; may be NULL.
    pub watchdog: Option<AsxWatchdogFn>,
    /// A task that lives so long after its watchdog has cancelled it is completed by force;
    /// ASX_NONE: never.
    pub watchdog_grace_ns: AsxTime,
}

/// The smallest configuration there was: struct_size, profile, seed.
const SMALLEST: usize = 16;
/// The largest that is looked at.
const LARGEST: usize = 4096;

impl AsxRuntimeConfig {
    /// The defaults of a profile.
    pub fn of_profile(profile: i32) -> Answer<AsxRuntimeConfig> {
        let wheel = WheelConfig::default();
        let core = AsxRuntimeConfig {
            struct_size: size_of::<AsxRuntimeConfig>() as u32,
            profile,
            seed: 0,
            max_tasks: ASX_NONE,
            max_regions: ASX_NONE,
            max_obligations: ASX_NONE,
            max_channels: ASX_NONE,
            max_timers: ASX_NONE,
            max_ready: ASX_NONE,
            max_timed: ASX_NONE,
            max_cancel: ASX_NONE,
            max_memory: ASX_NONE,
            max_trace: 65_536,
            max_steps: ASX_NONE,
            trace_full: ASX_TRACE_OVERWRITE,
            tie_break: ASX_TIE_TASK_KEY,
            cancel_streak_limit: SchedulerConfig::default().cancel_streak_limit,
            flags: 0,
            watchdog_ns: ASX_NONE,
            max_wheel_ns: wheel.max_wheel_duration.as_nanos() as u64,
            max_timer_ns: wheel.max_timer_duration.as_nanos() as u64,
            coalesce_ns: 0,
            coalesce_group: 0,
            first_timer_id: wheel.first_id,
            first_timer_generation: wheel.first_generation,
            chain_depth: 16,
            chain_bytes: 4096,
            pool_bytes: 0,
            pool_memory: core::ptr::null_mut(),
            hook: core::ptr::null_mut(),
            clock: AsxClock::NONE,
            log: None,
            entropy: None,
            thread: None,
            ghost: None,
            max_finalizers: ASX_NONE,
            max_cleanups: ASX_NONE,
            max_borrows: ASX_NONE,
            watchdog: None,
            watchdog_grace_ns: ASX_NONE,
        };
        let bounded = AsxRuntimeConfig {
            max_tasks: 64,
            max_regions: 32,
            max_obligations: 64,
            max_channels: 16,
            max_timers: 64,
            max_ready: 128,
            max_timed: 128,
            max_cancel: 128,
            max_trace: 256,
            max_steps: 64,
            flags: ASX_FLAG_POOL | ASX_FLAG_STRICT,
            max_finalizers: 64,
            max_cleanups: 128,
            max_borrows: 64,
            ..core
        };
        match profile {
            ASX_PROFILE_CORE => Ok(core),
            ASX_PROFILE_EMBEDDED => Ok(bounded),
            ASX_PROFILE_HFT => Ok(AsxRuntimeConfig { max_trace: 4096, max_steps: 256, ..core }),
            ASX_PROFILE_AUTOMOTIVE => Ok(AsxRuntimeConfig { watchdog_ns: 100_000_000, ..bounded }),
            _ => Err(Status::InvalidArgument),
        }
    }

    /// What lies behind a pointer: the caller's fields over the profile's defaults.
    ///
    /// # Safety
    /// If not NULL, the pointer is readable for the `struct_size` it leads with.
    pub(crate) unsafe fn read(from: *const AsxRuntimeConfig) -> Checked<AsxRuntimeConfig> {
        // SAFETY: the caller's promise; `prefix` reads no further than `struct_size`.
        let given = unsafe { structs::prefix(from, SMALLEST, LARGEST)? };
        let head = AsxRuntimeConfig::of_profile(given.profile()?);
        let head = head.map_err(|_| Bad::field(Field::Profile))?;
        Ok(AsxRuntimeConfig {
            struct_size: size_of::<AsxRuntimeConfig>() as u32,
            ..given.over(head)
        })
    }

    /// The kernel's configuration, if every value is in its range.
    pub(crate) fn kernel(&self) -> Checked<Config> {
        let known = ASX_FLAG_GHOSTS
            | ASX_FLAG_SEED_FROM_ENTROPY
            | ASX_FLAG_POOL
            | ASX_FLAG_NO_JOURNAL
            | ASX_FLAG_STRICT;
        field(self.flags & !known == 0, Field::Flags)?;
        field(!self.is_strict() || self.flags & ASX_FLAG_POOL != 0, Field::Flags)?;
        field(self.max_regions > 0, Field::MaxRegions)?;
        field(self.max_steps > 0, Field::MaxSteps)?;
        let given = !self.pool_memory.is_null();
        field(!given || self.flags & ASX_FLAG_POOL != 0, Field::PoolMemory)?;
        field(!given || self.pool_bytes > 0, Field::PoolBytes)?;
        let coalesce = (self.coalesce_ns > 0).then(|| Coalesce {
            window: Duration::from_nanos(self.coalesce_ns),
            min_group_size: size(self.coalesce_group),
        });
        Ok(Config {
            scheduler: SchedulerConfig {
                workers: 1,
                cancel_streak_limit: self.cancel_streak_limit,
                tie_break: match self.tie_break {
                    ASX_TIE_FIFO => TieBreak::Fifo,
                    ASX_TIE_SEEDED => TieBreak::Seeded,
                    ASX_TIE_TASK_KEY => TieBreak::TaskKey,
                    _ => return Err(Bad::field(Field::TieBreak)),
                },
            },
            wheel: WheelConfig {
                max_wheel_duration: Duration::from_nanos(self.max_wheel_ns),
                max_timer_duration: Duration::from_nanos(self.max_timer_ns),
                limit: size(self.max_timers),
                coalesce,
                first_id: self.first_timer_id,
                first_generation: self.first_timer_generation,
            },
            chain: ChainLimits {
                depth: self.chain_depth as usize,
                bytes: self.chain_bytes as usize,
            },
            limits: Limits {
                tasks: size(self.max_tasks),
                regions: size(self.max_regions),
                obligations: size(self.max_obligations),
                channels: size(self.max_channels),
                ready_queue: size(self.max_ready),
                timed_queue: size(self.max_timed),
                cancel_queue: size(self.max_cancel),
                memory: size(self.max_memory).min(usize::MAX - 1),
            },
            journal: self.has_journal(),
            journal_capacity: size(self.max_trace),
            when_full: match self.trace_full {
                ASX_TRACE_OVERWRITE => WhenFull::Overwrite,
                ASX_TRACE_REFUSE => WhenFull::Refuse,
                _ => return Err(Bad::field(Field::TraceFull)),
            },
            // A body in C has no destructor: what has to be undone is on the stack.
            forced_cleanup: true,
            keep_ended: true,
            tell_leaks: cfg!(feature = "dump"),
        })
    }

    /// Whether nothing may be asked of the allocator once the runtime is there.
    pub(crate) fn is_strict(&self) -> bool {
        self.flags & ASX_FLAG_STRICT != 0
    }

    /// Whether a runtime records what happens.
    pub(crate) fn has_journal(&self) -> bool {
        cfg!(feature = "journal") && self.flags & ASX_FLAG_NO_JOURNAL == 0
    }

    /// Bytes of the pool: as many as were told, if they are enough, else as the limits need.
    pub(crate) fn pool_size(&self) -> Answer<usize> {
        if self.pool_bytes == 0 {
            return self.pool_need();
        }
        let told = usize::try_from(self.pool_bytes).map_err(|_| Status::ResourceExhausted)?;
        let enough = !self.is_strict() || self.pool_need()? <= told;
        if enough { Ok(told) } else { Err(Status::ResourceExhausted) }
    }

    /// Bytes that are enough for the limits: the memory of everything that may live at once, and
    /// the memory that must be set aside then so that all of it can end.
    ///
    /// The tables of a strict pool have the size of their limits from the beginning
    /// (`Core::make_ready`), so that the bytes grow with the limits and not with the next power of
    /// two. The weights are measured: the fewest bytes with which `tests/c/memory.c` fills each
    /// limit, in both builds, and about a tenth more.
    pub(crate) fn pool_need(&self) -> Answer<usize> {
        let weights = [
            (self.max_tasks, 2150),
            (self.max_regions, 1300),
            (self.max_obligations, 300),
            (self.max_channels, 2050),
            (self.max_timers, 256),
            (self.max_finalizers, 1450),
            (self.max_cleanups, 600),
            (self.max_borrows, 64),
            (if self.has_journal() { self.max_trace } else { 0 }, EVENT),
        ];
        let weigh =
            |sum: u64, (count, weight): (u64, u64)| sum.checked_add(count.checked_mul(weight)?);
        let total = weights.into_iter().try_fold(POOL_BASE, weigh);
        let all = Living {
            tasks: size(self.max_tasks.saturating_add(self.max_finalizers)),
            regions: size(self.max_regions),
            small: size(self.max_obligations.saturating_add(self.max_channels)),
            timers: refs_of(size(self.max_timers)),
        };
        let chain = self.kernel()?.chain;
        let aside = all.headroom(chain).saturating_add(SMALL_CALLS) as u64;
        let total = total.and_then(|total| total.checked_add(aside.checked_mul(5)? / 4));
        let total = total.and_then(|total| usize::try_from(total).ok());
        total.ok_or(Status::InvalidArgument)
    }
}

/// Bytes of a pool whatever the limits: the runtime itself, the slots of its timer wheel and some
/// texts.
const POOL_BASE: u64 = 92 * 1024;
/// An event of the journal.
const EVENT: u64 = size_of::<asx_kernel::journal::Event>() as u64 * 5 / 4;

/// A limit as the kernel has it.
pub(crate) fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Fills a configuration with the defaults of a profile.
///
/// - Parameters: `config` points to `struct_size` writable bytes.
/// - Thread: any.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL, an unknown profile or a size that never was.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_runtime_config_init(
    config: *mut AsxRuntimeConfig,
    struct_size: usize,
    profile: i32,
) -> AsxStatus {
    let fill = || {
        arguments::ensure(
            (SMALLEST..=LARGEST).contains(&struct_size)
                && struct_size.is_multiple_of(align_of::<AsxRuntimeConfig>()),
        )?;
        let defaults = AsxRuntimeConfig::of_profile(profile)?;
        let defaults = AsxRuntimeConfig { struct_size: struct_size as u32, ..defaults };
        // SAFETY: rule 2 of `guard`: the caller promises so many bytes.
        unsafe { structs::write_prefix(config, struct_size, &defaults)? };
        Ok(())
    };
    arguments::number(fill())
}

/// Computes how many bytes a pool needs for the limits of a configuration. A creation with
/// ASX_FLAG_POOL and no `pool_bytes` reserves this size; with ASX_FLAG_STRICT a smaller one is
/// refused.
///
/// - Parameters: `config` points to a configuration from asx_runtime_config_init; `out` is
///   writable.
/// - Thread: any.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for NULL, a value out of range, a size that never was,
///   or limits that have no end.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_runtime_config_pool_size(
    config: *const AsxRuntimeConfig,
    out: *mut u64,
) -> AsxStatus {
    let size = || {
        // SAFETY: rule 2 of `guard`: what the caller promises.
        let (config, out) = unsafe { (AsxRuntimeConfig::read(config)?, Out::new(out)?) };
        config.kernel()?;
        out.set(config.pool_need()? as u64);
        Ok(())
    };
    arguments::number(size())
}

/// Something for the log hook, made a text of when it is handed over.
pub(crate) enum Line {
    /// A task's watchdog has run out, or has ended it by force.
    Watchdog(TaskId, i32),
    /// An obligation was leaked: the region, its number, and where it was reserved, if known.
    Leaked(RegionId, u64, Option<(*const c_char, u32)>),
    /// So many cleanup entries were not run at the end.
    CutOff(u64),
    /// The runtime changes hands.
    Transfer(AsxTransfer),
}

/// Something broke, or was about to.
pub const ASX_LOG_WARN: i32 = 1;
/// Worth knowing.
pub const ASX_LOG_INFO: i32 = 2;

impl AsxClock {
    /// No clock.
    pub const NONE: AsxClock =
        AsxClock { now: None, wait_until: None, state: core::ptr::null_mut() };
}

/// The hooks, as they are called.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    pub(crate) hook: *mut c_void,
    pub(crate) clock: AsxClock,
    pub(crate) log: Option<AsxLogFn>,
    pub(crate) thread: Option<AsxThreadFn>,
    pub(crate) ghost: Option<AsxGhostFn>,
    pub(crate) watchdog: Option<AsxWatchdogFn>,
}

impl Hooks {
    pub(crate) fn of(config: &AsxRuntimeConfig) -> Hooks {
        let AsxRuntimeConfig { hook, clock, log, thread, ghost, watchdog, .. } = *config;
        Hooks { hook, clock, log, thread, ghost, watchdog }
    }
}
