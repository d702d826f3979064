//! Any sequence of calls of the C functions, compared with the model: the same results and the same
//! journal. No call fails because of a forged or stale handle other than with an error.
#![no_main]

use asx_capi::channel::*;
use asx_capi::config::*;
use asx_capi::cx::asx_checkpoint;
use asx_capi::journal::asx_journal_digest;
use asx_capi::obligation::*;
use asx_capi::region::*;
use asx_capi::runtime::*;
use asx_capi::task::*;
use asx_capi::timer::*;
use asx_capi::*;
use asx_fuzz::Ops;
use asx_kernel::arena::Key;
use asx_kernel::cancel::Kind;
use asx_kernel::choose::Seeded;
use asx_kernel::ids::{ChannelId, ObligationId, RegionId, TaskId};
use asx_kernel::session::{DropContext, Resolution};
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use asx_kernel::world::{
    Answer, Ask, PermitId, PollEnd, RegionOptions, SleepUntil, Step, TaskError, TaskOptions, World,
};
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use core::task::Poll;
use core::time::Duration;
use libfuzzer_sys::fuzz_target;

/// A decoded call: its number, and numbers for its arguments.
#[derive(Clone, Copy, Debug)]
struct Action {
    code: usize,
    which: [usize; 4],
    number: u64,
    /// Whether to use a handle that was never issued.
    forged: bool,
}

fn action(ops: &mut Ops<'_>) -> Action {
    Action {
        code: ops.below(26),
        which: core::array::from_fn(|_| ops.byte() as usize),
        number: ops.number() % 5_000_000,
        forged: ops.below(16) == 15,
    }
}

/// Returns an object by number, or the fallback for a forged one.
fn pick<T: Copy>(things: &[T], which: usize, fallback: T) -> T {
    things.get(which % things.len().max(1)).copied().unwrap_or(fallback)
}

const NOBODY: Key = Key { generation: 1_000_000, index: 9 };

/// The state of the model.
struct Model {
    world: World<(), u64>,
    choose: Seeded,
    regions: Vec<RegionId>,
    tasks: Vec<TaskId>,
    channels: Vec<ChannelId>,
    obligations: Vec<ObligationId>,
    permits: Vec<PermitId>,
    timers: Vec<TimerHandle>,
}

fn waits<T>(answer: Answer<Poll<T>>) -> Answer<T> {
    match answer? {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err(Status::WouldBlock),
    }
}

fn first<T, P>(offer: Result<T, (Status, P)>) -> Answer<T> {
    offer.map_err(|(status, _)| status)
}

impl Model {
    fn act(&mut self, Action { code, which, number, forged }: Action) -> Answer {
        let [a, b, c, d] = which;
        let key = |key: Key| if forged { NOBODY } else { key };
        let region = RegionId(key(pick(&self.regions, a, RegionId(NOBODY)).0));
        let task = TaskId(key(pick(&self.tasks, b, TaskId(NOBODY)).0));
        let other = pick(&self.tasks, c, TaskId(NOBODY));
        let channel = ChannelId(key(pick(&self.channels, c, ChannelId(NOBODY)).0));
        let permit = PermitId(key(pick(&self.permits, d, PermitId(NOBODY)).0));
        let duty = ObligationId(key(pick(&self.obligations, d, ObligationId(NOBODY)).0));
        let gone = TimerHandle { id: 1 << 40, generation: 9 };
        let timer = pick(&self.timers, d, gone);
        let ask = Ask::new(Kind::ALL[d % Kind::ALL.len()]);
        let span = Duration::from_nanos(number);
        let world = &mut self.world;
        match code {
            0..=2 => {
                let spawned = world.spawn(region, TaskOptions::default(), ());
                self.tasks.push(first(spawned)?);
            }
            3 => self.regions.push(world.open_region(region, RegionOptions::default())?),
            4 => world.end_region(region)?,
            5 => drop(world.close_region(region, ask, (b % 2 == 1).then_some(span))?),
            6 => world.wake(task)?,
            7 => drop(world.cancel_task(task, ask)?),
            8 => world.checkpoint(task)?,
            9 => self.obligations.push(world.oblige(region)?),
            10 => world.resolve(duty, Resolution::Commit)?,
            11 => world.resolve(duty, Resolution::Abort)?,
            12 => {
                let scope = (d % 2 == 0).then_some(region);
                self.channels.push(world.channel(scope, 1 + b % 3)?);
            }
            13 => self.permits.push(waits(world.reserve(task, channel, d % 2 == 1))?),
            14 => self.permits.push(world.try_reserve(None, channel, d % 2 == 1)?),
            15 => first(world.send(permit, number))?,
            16 => world.abort(permit)?,
            17 => drop(world.drop_permit(permit, DropContext::User)?),
            18 => first(world.try_send(channel, number))?,
            19 => drop(first(world.evict(channel, number))?),
            20 => drop(waits(world.recv(task, channel))?),
            21 => drop(world.try_recv(channel)?),
            22 if d % 2 == 0 => world.drop_sender(channel)?,
            22 => world.drop_receiver(channel)?,
            23 => self.timers.push(world.arm(region, SleepUntil::After(span), Some(other))?),
            24 => drop(world.disarm(timer)),
            // The library refuses a task that waits for itself.
            _ if task == other => return Err(Status::InvalidArgument),
            _ => drop(waits(world.join(task, other))?),
        }
        Ok(())
    }
}

/// The state of the library.
struct Side {
    rt: *mut AsxRuntime,
    regions: Vec<AsxRegionId>,
    tasks: Vec<AsxTaskId>,
    channels: Vec<AsxChannelId>,
    obligations: Vec<AsxObligationId>,
    permits: Vec<AsxSendPermit>,
    timers: Vec<AsxTimerHandle>,
    /// The calls of the next poll, their results, and the result of the poll.
    script: Vec<Action>,
    answers: Vec<i32>,
    end: i32,
}

const NO_REGION: AsxRegionId = AsxRegionId { bits: 1 << 48 | 1 << 32 | 9, generation: 1_000_000 };
const NO_TASK: AsxTaskId = AsxTaskId { bits: 2 << 48 | 1 << 32 | 9, generation: 1_000_000 };
const NO_DUTY: AsxObligationId =
    AsxObligationId { bits: 3 << 48 | 1 << 32 | 9, generation: 1_000_000 };
const NO_CHANNEL: AsxChannelId =
    AsxChannelId { bits: 6 << 48 | 1 << 32 | 9, generation: 1_000_000 };
/// Returns a permit that was never issued.
fn no_permit(rt: *mut AsxRuntime) -> AsxSendPermit {
    AsxSendPermit { rt, bits: 7 << 48 | 9, generation: 1_000_000 }
}

unsafe extern "C" fn poll(_: *mut AsxCx, ctx: *mut c_void) -> i32 {
    let side = ctx.cast::<Side>();
    // SAFETY: `ctx` points to the side, which outlives the runtime and is not borrowed while the
    // library runs.
    unsafe {
        for action in core::mem::take(&mut (*side).script) {
            let answer = act(side, action);
            (*side).answers.push(answer);
        }
        (*side).end
    }
}

/// # Safety
/// `side` points to a side with a live runtime, and is not borrowed.
unsafe fn act(side: *mut Side, Action { code, which, number, forged }: Action) -> i32 {
    // SAFETY: the caller's promise.
    let side = unsafe { &mut *side };
    let rt = side.rt;
    let [a, b, c, d] = which;
    let region = if forged { NO_REGION } else { pick(&side.regions, a, NO_REGION) };
    let task = if forged { NO_TASK } else { pick(&side.tasks, b, NO_TASK) };
    let other = pick(&side.tasks, c, NO_TASK);
    let channel = if forged { NO_CHANNEL } else { pick(&side.channels, c, NO_CHANNEL) };
    let nobody = no_permit(rt);
    let mut permit = if forged { nobody } else { pick(&side.permits, d, nobody) };
    let duty = if forged { NO_DUTY } else { pick(&side.obligations, d, NO_DUTY) };
    let timer = pick(&side.timers, d, AsxTimerHandle { id: 1 << 40, generation: 9 });
    let kind = (d % Kind::ALL.len()) as i32;
    let data = (&raw const number).cast::<c_void>();
    let mut value = 0_u64;
    let to = (&raw mut value).cast::<c_void>();
    let tracked = (d % 2) as i32;
    let mut cx = AsxCx { rt, task };
    let mut sender = AsxChannelSender { rt, channel };
    let mut receiver = AsxChannelReceiver { rt, channel };
    let (cx, permit) = (&raw mut cx, &raw mut permit);
    let (sender, receiver) = (&raw mut sender, &raw mut receiver);
    // SAFETY: the runtime is live; every pointer is to a local, or NULL where that is allowed.
    unsafe {
        match code {
            0..=2 => {
                let ctx = core::ptr::from_mut(side).cast();
                let body = AsxBody { poll: Some(poll), ctx, drop: None };
                let mut out = NO_TASK;
                let status = asx_task_spawn(rt, region, body, null(), &mut out);
                keep(status, &mut side.tasks, out)
            }
            3 => {
                let mut out = NO_REGION;
                let status = asx_region_open(rt, region, null(), &mut out);
                keep(status, &mut side.regions, out)
            }
            4 => asx_region_end(rt, region),
            5 => {
                let force = if b % 2 == 1 { number } else { ASX_NONE };
                asx_region_close(rt, region, kind, null(), force, null_mut())
            }
            6 => asx_task_wake(rt, task),
            7 => asx_task_cancel(rt, task, kind, null(), null_mut()),
            8 => asx_checkpoint(cx),
            9 => {
                let mut out = NO_DUTY;
                let status = asx_obligation_reserve(rt, region, &mut out);
                keep(status, &mut side.obligations, out)
            }
            10 => asx_obligation_commit(rt, duty),
            11 => asx_obligation_abort(rt, duty),
            12 => {
                let scope = if d % 2 == 0 { &raw const region } else { null() };
                let status = asx_channel_create(rt, scope, 1 + b % 3, 8, sender, receiver);
                keep(status, &mut side.channels, (*sender).channel)
            }
            13 => {
                let mut out = nobody;
                let status = match tracked {
                    0 => asx_channel_reserve(sender, cx, &mut out),
                    _ => asx_channel_reserve_tracked(sender, cx, &mut out),
                };
                keep(status, &mut side.permits, out)
            }
            14 => {
                let mut out = nobody;
                let status = asx_channel_try_reserve(sender, null(), tracked, &mut out);
                keep(status, &mut side.permits, out)
            }
            15 => asx_send_permit_send(permit, data),
            16 => asx_send_permit_try_abort(permit),
            17 => asx_send_permit_drop(permit, null_mut()),
            18 => asx_channel_try_send(sender, data),
            19 => asx_channel_evict(sender, data, to, null_mut()),
            20 => asx_channel_recv(receiver, cx, to),
            21 => asx_channel_try_recv(receiver, to),
            22 if d % 2 == 0 => asx_channel_sender_close(sender),
            22 => asx_channel_receiver_close(receiver),
            23 => {
                let when = AsxWhen { ns: number, mode: ASX_WHEN_AFTER, reserved: 0 };
                let mut out = timer;
                let status = asx_region_timer_arm(rt, region, when, &other, &mut out);
                keep(status, &mut side.timers, out)
            }
            24 => asx_region_timer_cancel(rt, timer, null_mut()),
            _ => {
                let mut outcome = 0;
                asx_task_join(rt, task, other, &mut outcome)
            }
        }
    }
}

fn keep<T>(status: i32, things: &mut Vec<T>, thing: T) -> i32 {
    if status == 0 {
        things.push(thing);
    }
    status
}

fn number(answer: Answer) -> i32 {
    answer.err().unwrap_or(Status::Ok).number()
}

/// Runs one step on both sides and compares them.
fn step(model: &mut Model, side: *mut Side, ops: &mut Ops<'_>, now: u64) {
    let script: Vec<Action> = (0..ops.below(4)).map(|_| action(ops)).collect();
    let end = ops.below(5) as i32;
    let mut wanted = Vec::new();
    let time = Time::from_nanos(now);
    if let Ok(Step::Poll { task, .. }) = model.world.next(time, &mut model.choose) {
        let payload = model.world.take_payload(task);
        wanted.extend(script.iter().map(|action| number(model.act(*action))));
        let end = match end {
            ASX_POLL_PENDING => PollEnd::Pending,
            ASX_POLL_READY => PollEnd::Ready,
            ASX_POLL_ERROR => PollEnd::Failed(TaskError { status: None, message: "failed".into() }),
            ASX_POLL_CANCELLED => PollEnd::Cancelled,
            _ => PollEnd::Panicked("panicked".into()),
        };
        let polled = payload.map(|payload| model.world.polled(task, payload, end).is_ok());
        assert_eq!(polled, Some(true));
        model.world.take_released();
        model.world.take_dropped();
    }
    // SAFETY: the side is live and not borrowed.
    let answers = unsafe {
        (*side).script = script;
        (*side).end = end;
        assert_eq!(asx_step((*side).rt, now, 1, null_mut()), 0);
        core::mem::take(&mut (*side).answers)
    };
    assert_eq!(answers, wanted);
}

fuzz_target!(|bytes: &[u8]| {
    let mut ops = Ops::new(bytes);
    let config = AsxRuntimeConfig::of_profile(ops.below(4) as i32);
    let mut config = config.expect("there are four profiles");
    config.watchdog_ns = ASX_NONE;
    config.max_steps = ASX_NONE;
    let kernel = asx_kernel::world::Config {
        journal_capacity: 64,
        limits: asx_kernel::world::Limits {
            tasks: config.max_tasks.min(1 << 40) as usize,
            regions: config.max_regions.min(1 << 40) as usize,
            obligations: config.max_obligations.min(1 << 40) as usize,
            channels: config.max_channels.min(1 << 40) as usize,
            ready_queue: config.max_ready.min(1 << 40) as usize,
            timed_queue: config.max_timed.min(1 << 40) as usize,
            cancel_queue: config.max_cancel.min(1 << 40) as usize,
            ..Default::default()
        },
        wheel: asx_kernel::wheel::WheelConfig {
            limit: usize::try_from(config.max_timers).unwrap_or(usize::MAX),
            ..Default::default()
        },
        scheduler: asx_kernel::lanes::SchedulerConfig {
            tie_break: asx_kernel::lanes::TieBreak::TaskKey,
            ..Default::default()
        },
        forced_cleanup: true,
        keep_ended: true,
        ..Default::default()
    };
    let world = World::new(kernel);
    let mut model = Model {
        regions: vec![world.root()],
        world,
        choose: Seeded::new(0, 1),
        tasks: Vec::new(),
        channels: Vec::new(),
        obligations: Vec::new(),
        permits: Vec::new(),
        timers: Vec::new(),
    };
    let mut rt = null_mut();
    // SAFETY: both pointers are to locals.
    assert_eq!(unsafe { asx_runtime_create(&config, &mut rt) }, 0);
    let mut root = NO_REGION;
    // SAFETY: the runtime is live.
    assert_eq!(unsafe { asx_region_root(rt, &mut root) }, 0);
    let side = Box::into_raw(Box::new(Side {
        rt,
        regions: vec![root],
        tasks: Vec::new(),
        channels: Vec::new(),
        obligations: Vec::new(),
        permits: Vec::new(),
        timers: Vec::new(),
        script: Vec::new(),
        answers: Vec::new(),
        end: 0,
    }));
    let mut now = 0;
    while !ops.is_done() {
        if ops.below(3) == 0 {
            now += ops.number() % 3_000_000;
            step(&mut model, side, &mut ops, now);
        } else {
            let action = action(&mut ops);
            let wanted = number(model.act(action));
            model.world.take_released();
            model.world.take_dropped();
            // SAFETY: the side is live and not borrowed.
            assert_eq!(unsafe { act(side, action) }, wanted, "{action:?}");
        }
        let mut digest = 0;
        // SAFETY: the runtime is live.
        unsafe {
            assert_eq!(asx_journal_digest(rt, &mut digest), 0);
            assert_eq!(asx_verify(rt, null_mut(), 0, null_mut()), 0);
        }
        assert_eq!(digest, model.world.journal().digest());
    }
    // SAFETY: both were created above; the runtime is destroyed before the data of its tasks.
    unsafe {
        assert_eq!(asx_runtime_destroy(rt), 0);
        drop(Box::from_raw(side));
    }
});
