//! The C functions beside the kernel they stand on: what the boundary costs.
//!
//! Both sides make the same calls in the same order, on one thread, with journals of the same size;
//! the peer `kernel` calls the world directly. In the `c_quiet` workloads neither has a journal.
//! There the peer `bare` is the one structure behind the operation, with nothing around it: a
//! channel's law, or the run queues. `copied` is the least that does what a channel of C does: the
//! law, a table that finds it and tells stale handles, and elements of any size, whose bytes are
//! copied; each operation is a call.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use asx_capi::channel::{asx_channel_create, asx_channel_try_recv, asx_channel_try_send};
use asx_capi::config::{ASX_FLAG_NO_JOURNAL, ASX_PROFILE_CORE, AsxRuntimeConfig};
use asx_capi::region::asx_region_root;
use asx_capi::runtime::{asx_run_until_idle, asx_runtime_create, asx_runtime_destroy};
use asx_capi::task::{asx_task_release, asx_task_spawn, asx_task_wake};
use asx_capi::timer::{asx_region_timer_arm, asx_region_timer_cancel};
use asx_capi::{
    ASX_POLL_PENDING, ASX_POLL_READY, ASX_WHEN_AFTER, AsxBody, AsxChannelId, AsxChannelReceiver,
    AsxChannelSender, AsxCx, AsxRegionId, AsxRuntime, AsxTaskId, AsxTimerHandle, AsxWhen,
};
use asx_kernel::arena::{Arena, Key};
use asx_kernel::channel::Channel;
use asx_kernel::choose::Seeded;
use asx_kernel::ids::TaskId;
use asx_kernel::lanes::{Place, Priority, Scheduler, SchedulerConfig, Source, Suggestion};
use asx_kernel::time::Time;
use asx_kernel::world::{Config, PollEnd, SleepUntil, Step, TaskOptions, World};

use crate::harness::Case;

/// Operations of a repetition.
const OPS: u64 = 20_000;
/// Tasks spawned before they are run, timers alive, messages queued.
const BATCH: usize = 64;
/// Events each journal keeps.
const TRACE: usize = 1024;

/// A workload, through the library and directly.
type Runs = (&'static str, fn() -> f64, fn() -> f64);

/// Whether there is a journal.
const WITH_JOURNAL: bool = true;
const WITHOUT: bool = false;

/// The cases of this file.
pub(crate) fn cases() -> Vec<Case> {
    let runs: [Runs; 6] = [
        ("c_spawn", C::spawn, Kernel::spawn),
        ("c_wake", C::wake::<WITH_JOURNAL>, Kernel::wake::<WITH_JOURNAL>),
        ("c_channel", C::channel::<WITH_JOURNAL, 8>, Kernel::channel::<WITH_JOURNAL>),
        ("c_timer", C::timer, Kernel::timer),
        ("c_quiet_wake", C::wake::<WITHOUT>, Kernel::wake::<WITHOUT>),
        ("c_quiet_channel", C::channel::<WITHOUT, 8>, Kernel::channel::<WITHOUT>),
    ];
    let both = |(workload, c, kernel): Runs| {
        [Case::new(workload, "asx", c), Case::new(workload, "kernel", kernel)]
    };
    let bare = [
        Case::new("c_quiet_wake", "bare", bare_wake),
        Case::new("c_quiet_channel", "bare", bare_channel),
        Case::new("c_quiet_channel", "copied", Copied::channel),
        Case::new("c_channel_size", "asx4", C::channel::<WITHOUT, 4>),
        Case::new("c_channel_size", "asx16", C::channel::<WITHOUT, 16>),
        Case::new("c_channel_size", "asx64", C::channel::<WITHOUT, 64>),
        Case::new("c_channel_size", "asx128", C::channel::<WITHOUT, 128>),
    ];
    runs.into_iter().flat_map(both).chain(bare).collect()
}

/// The run queues alone: one entry in, one decision out.
fn bare_wake() -> f64 {
    let mut scheduler = Scheduler::new(SchedulerConfig::default());
    let mut choose = Seeded::new(0, 1);
    let place = Place::ready(Priority::DEFAULT);
    timed(OPS, || {
        for op in 0..OPS {
            let _ = black_box(scheduler.enqueue(Source::Global, place, op, false));
            let _ = black_box(scheduler.next(0, Suggestion::NoPreference, &mut choose));
            let _ = black_box(scheduler.next(0, Suggestion::NoPreference, &mut choose));
        }
    })
}

/// A channel's law alone.
fn bare_channel() -> f64 {
    let Ok(mut channel) = Channel::<u64, TaskId>::new(BATCH) else { return f64::NAN };
    timed(OPS, || {
        for _ in 0..OPS as usize / BATCH {
            for message in 0..BATCH as u64 {
                let _ = black_box(channel.try_send(message));
            }
            for _ in 0..BATCH {
                let _ = black_box(channel.try_recv());
            }
        }
    })
}

/// A channel's law, and the bytes of its elements.
struct Copied {
    law: Channel<u32, TaskId>,
    element: usize,
    bytes: Vec<u8>,
    free: Vec<u32>,
}

impl Copied {
    fn new(capacity: usize, element: usize) -> Option<Copied> {
        let law = Channel::new(capacity).ok()?;
        let free = (0..=capacity as u32).rev().collect();
        Some(Copied { law, element, bytes: vec![0; (capacity + 1) * element], free })
    }

    #[inline(never)]
    fn send(table: &mut Arena<Copied>, channel: Key, data: &[u8]) -> Option<()> {
        let Copied { law, element, bytes, free } = table.get_mut(channel)?;
        (data.len() == *element).then_some(())?;
        let slot = free.pop()?;
        let at = slot as usize * *element;
        bytes.get_mut(at..)?.get_mut(..data.len())?.copy_from_slice(data);
        match law.try_send(slot) {
            Ok(wake) => drop(black_box(wake)),
            Err(_) => free.push(slot),
        }
        Some(())
    }

    #[inline(never)]
    fn recv(table: &mut Arena<Copied>, channel: Key, to: &mut [u8]) -> Option<()> {
        let Copied { law, element, bytes, free } = table.get_mut(channel)?;
        (to.len() == *element).then_some(())?;
        let (slot, wake) = law.try_recv().ok()?;
        let at = slot as usize * *element;
        to.copy_from_slice(bytes.get(at..)?.get(..to.len())?);
        free.push(slot);
        black_box(wake);
        Some(())
    }

    fn channel() -> f64 {
        let mut table = Arena::new();
        let made = Copied::new(BATCH, 8).and_then(|one| table.insert(one).ok());
        let Some(channel) = made else { return f64::NAN };
        timed(OPS, || {
            for _ in 0..OPS as usize / BATCH {
                for message in 0..BATCH as u64 {
                    black_box(Copied::send(&mut table, channel, &message.to_ne_bytes()));
                }
                for _ in 0..BATCH {
                    let mut message = [0; 8];
                    black_box(Copied::recv(&mut table, channel, &mut message));
                    black_box(message);
                }
            }
        })
    }
}

/// Nanoseconds per operation of `ops` of them.
fn timed(ops: u64, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / ops as f64
}

/// The world, called directly.
struct Kernel {
    world: World<i32, u64>,
    choose: Seeded,
}

impl Kernel {
    fn new(journal: bool) -> Kernel {
        let config = Config { journal, journal_capacity: TRACE, ..Config::default() };
        Kernel { world: World::new(config), choose: Seeded::new(0, 1) }
    }

    /// Polls all that can run.
    fn run(&mut self) {
        while let Ok(Step::Poll { task, .. }) = self.world.next(Time::ZERO, &mut self.choose) {
            let Some(answer) = self.world.take_payload(task) else { return };
            let end = if answer == ASX_POLL_READY { PollEnd::Ready } else { PollEnd::Pending };
            let _ = self.world.polled(task, answer, end);
            black_box(self.world.take_released());
            black_box(self.world.take_dropped());
        }
    }

    fn spawn() -> f64 {
        let mut own = Kernel::new(WITH_JOURNAL);
        let root = own.world.root();
        let mut tasks = Vec::with_capacity(BATCH);
        timed(OPS, || {
            for _ in 0..OPS as usize / BATCH {
                for _ in 0..BATCH {
                    let spawned = own.world.spawn(root, TaskOptions::default(), ASX_POLL_READY);
                    tasks.extend(spawned);
                }
                own.run();
                for task in tasks.drain(..) {
                    let _ = own.world.release_task(task);
                }
            }
        })
    }

    fn wake<const JOURNAL: bool>() -> f64 {
        let mut own = Kernel::new(JOURNAL);
        let root = own.world.root();
        let Ok(task) = own.world.spawn(root, TaskOptions::default(), ASX_POLL_PENDING) else {
            return f64::NAN;
        };
        own.run();
        timed(OPS, || {
            for _ in 0..OPS {
                let _ = own.world.wake(task);
                own.run();
            }
        })
    }

    fn channel<const JOURNAL: bool>() -> f64 {
        let mut own = Kernel::new(JOURNAL);
        let Ok(channel) = own.world.channel(None, BATCH) else { return f64::NAN };
        timed(OPS, || {
            for _ in 0..OPS as usize / BATCH {
                for message in 0..BATCH as u64 {
                    let _ = own.world.try_send(channel, message);
                }
                for _ in 0..BATCH {
                    let _ = black_box(own.world.try_recv(channel));
                }
            }
        })
    }

    fn timer() -> f64 {
        let mut own = Kernel::new(WITH_JOURNAL);
        let root = own.world.root();
        let arm = move |own: &mut Kernel, at: u64| {
            let span = Duration::from_nanos(1_000_000 + at * 7919 % 100_000_000);
            own.world.arm(root, SleepUntil::After(span), None).ok()
        };
        let mut timers: Vec<_> = (0..BATCH as u64).map(|at| arm(&mut own, at)).collect();
        timed(OPS, || {
            for op in 0..OPS {
                let slot = &mut timers[op as usize % BATCH];
                if let Some(timer) = slot.take() {
                    own.world.disarm(timer);
                }
                *slot = arm(&mut own, op);
            }
        })
    }
}

/// The same through the library.
struct C {
    rt: *mut AsxRuntime,
    root: AsxRegionId,
}

/// A poll that answers what its context says.
unsafe extern "C" fn poll(_: *mut AsxCx, ctx: *mut c_void) -> i32 {
    ctx as usize as i32
}

const NO_TASK: AsxTaskId = AsxTaskId { bits: 0, generation: 0 };

impl C {
    fn new(journal: bool) -> C {
        let mut own = C { rt: null_mut(), root: AsxRegionId { bits: 0, generation: 0 } };
        let Ok(config) = AsxRuntimeConfig::of_profile(ASX_PROFILE_CORE) else { return own };
        let flags = if journal { 0 } else { ASX_FLAG_NO_JOURNAL };
        let config = AsxRuntimeConfig { max_trace: TRACE as u64, flags, ..config };
        // SAFETY: the pointers are to locals; the runtime is destroyed by `drop`.
        unsafe {
            asx_runtime_create(&config, &mut own.rt);
            asx_region_root(own.rt, &mut own.root);
        }
        own
    }

    fn spawn_one(&self, answer: i32) -> AsxTaskId {
        let ctx = std::ptr::without_provenance_mut(answer as usize);
        let body = AsxBody { poll: Some(poll), ctx, drop: None };
        let mut task = NO_TASK;
        // SAFETY: the runtime lives; the pointers are to locals.
        unsafe { asx_task_spawn(self.rt, self.root, body, null(), &mut task) };
        task
    }

    fn run(&self) {
        // SAFETY: the runtime lives.
        unsafe { asx_run_until_idle(self.rt, 0, null_mut()) };
    }

    fn spawn() -> f64 {
        let own = C::new(WITH_JOURNAL);
        let mut tasks = Vec::with_capacity(BATCH);
        timed(OPS, || {
            for _ in 0..OPS as usize / BATCH {
                tasks.extend((0..BATCH).map(|_| own.spawn_one(ASX_POLL_READY)));
                own.run();
                for task in tasks.drain(..) {
                    // SAFETY: the runtime lives.
                    unsafe { asx_task_release(own.rt, task) };
                }
            }
        })
    }

    fn wake<const JOURNAL: bool>() -> f64 {
        let own = C::new(JOURNAL);
        let task = own.spawn_one(ASX_POLL_PENDING);
        own.run();
        timed(OPS, || {
            for _ in 0..OPS {
                // SAFETY: the runtime lives.
                unsafe { asx_task_wake(own.rt, task) };
                own.run();
            }
        })
    }

    fn channel<const JOURNAL: bool, const SIZE: usize>() -> f64 {
        let own = C::new(JOURNAL);
        let channel = AsxChannelId { bits: 0, generation: 0 };
        let mut sender = AsxChannelSender { rt: own.rt, channel };
        let mut receiver = AsxChannelReceiver { rt: own.rt, channel };
        // SAFETY: the runtime lives; the pointers are to locals.
        unsafe { asx_channel_create(own.rt, null(), BATCH, SIZE, &mut sender, &mut receiver) };
        timed(OPS, || {
            for _ in 0..OPS as usize / BATCH {
                for message in 0..BATCH {
                    let data = [message as u8; SIZE];
                    let data = (&raw const data).cast();
                    // SAFETY: the runtime lives; an element is there.
                    unsafe { asx_channel_try_send(&mut sender, data) };
                }
                for _ in 0..BATCH {
                    let mut message = [0_u8; SIZE];
                    let to = (&raw mut message).cast();
                    // SAFETY: the runtime lives; there is room for an element.
                    unsafe { asx_channel_try_recv(&mut receiver, to) };
                    black_box(message);
                }
            }
        })
    }

    fn timer() -> f64 {
        let own = C::new(WITH_JOURNAL);
        let arm = |at: u64| {
            let ns = 1_000_000 + at * 7919 % 100_000_000;
            let when = AsxWhen { ns, mode: ASX_WHEN_AFTER, reserved: 0 };
            let mut timer = AsxTimerHandle { id: 0, generation: 0 };
            // SAFETY: the runtime lives; the pointer is to a local.
            unsafe { asx_region_timer_arm(own.rt, own.root, when, null(), &mut timer) };
            timer
        };
        let mut timers: Vec<_> = (0..BATCH as u64).map(arm).collect();
        timed(OPS, || {
            for op in 0..OPS {
                let slot = &mut timers[op as usize % BATCH];
                // SAFETY: the runtime lives.
                unsafe { asx_region_timer_cancel(own.rt, *slot, null_mut()) };
                *slot = arm(op);
            }
        })
    }
}

impl Drop for C {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not used after this.
        unsafe { asx_runtime_destroy(self.rt) };
    }
}
