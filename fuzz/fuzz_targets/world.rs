//! The world under any sequence of operations: every invariant holds after each, and every shutdown
//! ends.
#![no_main]

use asx_fuzz::Ops;
use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::choose::Seeded;
use asx_kernel::ids::{ChannelId, ObligationId, RegionId, TaskId};
use asx_kernel::lanes::{Priority, SchedulerConfig, TieBreak};
use asx_kernel::session::{DropContext, Resolution};
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use asx_kernel::world::{
    Ask, Config, PermitId, Policy, PollEnd, RegionOptions, SleepUntil, Step, TaskError,
    TaskOptions, World,
};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;

struct Run {
    world: World<(), u64>,
    choose: Seeded,
    regions: Vec<RegionId>,
    tasks: Vec<TaskId>,
    channels: Vec<ChannelId>,
    obligations: Vec<ObligationId>,
    permits: Vec<PermitId>,
    timers: Vec<TimerHandle>,
}

fuzz_target!(|bytes: &[u8]| {
    let mut ops = Ops::new(bytes);
    let tie_break = if ops.flag() { TieBreak::Seeded } else { TieBreak::Fifo };
    let workers = 1 + ops.below(3);
    let scheduler =
        SchedulerConfig { workers, tie_break, cancel_streak_limit: ops.below(4) as u32 };
    let mut config = Config { scheduler, journal_capacity: 64, ..Config::default() };
    if ops.flag() {
        config.limits.tasks = ops.below(8);
        config.limits.memory = ops.below(10_000);
        config.wheel.limit = ops.below(4);
    }
    let world = World::new(config);
    let mut run = Run {
        regions: vec![world.root()],
        world,
        choose: Seeded::new(7, workers),
        tasks: Vec::new(),
        channels: Vec::new(),
        obligations: Vec::new(),
        permits: Vec::new(),
        timers: Vec::new(),
    };
    while !ops.is_done() {
        if ops.below(4) == 0 {
            run.step(&mut ops)
        } else {
            run.act(&mut ops, None)
        }
        run.world.check().expect("an invariant holds after every operation");
    }
    run.shut_down();
});

impl Run {
    fn act(&mut self, ops: &mut Ops<'_>, current: Option<TaskId>) {
        let region = *ops.pick(&self.regions).expect("the root is always there");
        let task = ops.pick(&self.tasks).copied();
        let channel = ops.pick(&self.channels).copied();
        let kind = Kind::ALL[ops.below(Kind::ALL.len())];
        let world = &mut self.world;
        match ops.below(24) {
            0..=2 => {
                let deadline = ops.flag().then(|| Time::from_nanos(ops.number()));
                let poll_quota = if ops.flag() { ops.below(4) as u64 } else { u64::MAX };
                let budget =
                    Budget { deadline, poll_quota, cost_quota: None, priority: Priority(0) };
                let options = TaskOptions { budget, priority: None, pinned: ops.flag() };
                self.tasks.extend(world.spawn(region, options, ()).ok());
            }
            3 => {
                let policy = if ops.flag() { Policy::FailFast } else { Policy::CollectAll };
                let options = RegionOptions { policy, ..RegionOptions::default() };
                self.regions.extend(world.open_region(region, options));
            }
            4 => drop(world.end_region(region)),
            5 => {
                let force = ops.flag().then(|| Duration::from_nanos(ops.number()));
                let _ = world.close_region(region, Ask::new(kind), force);
            }
            6 => drop(world.defer(region, ())),
            7 => drop(task.map(|task| world.cancel_task(task, Ask::new(kind)))),
            8 => drop(task.map(|task| world.wake(task))),
            9 => self.obligations.extend(world.oblige(region)),
            10 => {
                let resolution = if ops.flag() { Resolution::Commit } else { Resolution::Abort };
                let _ = ops.pick(&self.obligations).map(|id| world.resolve(*id, resolution));
            }
            11 => {
                let scope = ops.flag().then_some(region);
                self.channels.extend(world.channel(scope, ops.below(4)));
            }
            12 => drop(channel.map(|channel| world.try_send(channel, 1))),
            13 => drop(channel.map(|channel| world.evict(channel, 2))),
            14 => drop(channel.map(|channel| world.try_recv(channel))),
            15 => drop(channel.map(|channel| world.drop_receiver(channel))),
            16 => drop(channel.map(|channel| world.drop_sender(channel))),
            17 => {
                let tracked = ops.flag();
                let holder = if ops.flag() { task } else { current };
                let permit = channel.map(|c| world.try_reserve(holder, c, tracked));
                self.permits.extend(permit.and_then(Result::ok));
            }
            18 => {
                if let Some(permit) = ops.pick(&self.permits).copied() {
                    match ops.below(3) {
                        0 => drop(world.send(permit, 3)),
                        1 => drop(world.abort(permit)),
                        _ => drop(world.drop_permit(permit, DropContext::User)),
                    }
                }
            }
            19 => {
                let until = SleepUntil::At(Time::from_nanos(ops.number()));
                self.timers.extend(world.arm(region, until, task));
            }
            20 => drop(ops.pick(&self.timers).map(|timer| world.disarm(*timer))),
            21 => {
                let now = world.now() + Duration::from_nanos(ops.number());
                world.set_now(now);
            }
            22 => drop(world.spawn_finalizer(region, ())),
            _ => drop(world.release_region(region)),
        }
    }

    /// Runs one poll with a few operations.
    fn step(&mut self, ops: &mut Ops<'_>) {
        let now = self.world.now();
        let step = self.world.next(now, &mut self.choose).expect("no poll is under way");
        let Step::Poll { task, .. } = step else { return };
        self.world.take_payload(task).expect("the payload of the poll under way");
        for _ in 0..ops.below(4) {
            self.act(ops, Some(task));
            let channel = ops.pick(&self.channels).copied();
            let world = &mut self.world;
            let answer = match (ops.below(6), channel) {
                (0, Some(channel)) => world.recv(task, channel).map(drop),
                (1, Some(channel)) => world.reserve(task, channel, ops.flag()).map(|poll| {
                    if let std::task::Poll::Ready(permit) = poll {
                        self.permits.push(permit);
                    }
                }),
                (2, _) => {
                    let until = SleepUntil::After(Duration::from_nanos(ops.number()));
                    world.sleep(task, until).map(|timer| self.timers.push(timer))
                }
                (3, _) => {
                    let _ = world.push_cleanup(task, ());
                    Ok(())
                }
                (4, _) => world.stopping(task).map(drop),
                _ => world.checkpoint(task),
            };
            if answer == Err(Status::Cancelled) {
                break;
            }
            self.world.check().expect("an invariant holds inside a poll");
        }
        let end = match ops.below(6) {
            0 => PollEnd::Ready,
            1 => PollEnd::Failed(TaskError { status: None, message: "e".into() }),
            2 => PollEnd::Panicked("p".into()),
            3 => PollEnd::Cancelled,
            4 => {
                let _ = self.world.wake(task);
                PollEnd::Pending
            }
            _ => PollEnd::Pending,
        };
        self.world.polled(task, (), end).expect("the poll under way");
    }

    /// With a grace period every shutdown ends. Only free-standing channels may still hold
    /// messages.
    fn shut_down(&mut self) {
        let world = &mut self.world;
        world.shutdown(Duration::ZERO, Some(Duration::from_millis(1))).expect("the root is there");
        for _ in 0..10_000 {
            match world.next(world.now(), &mut self.choose).expect("no poll is under way") {
                Step::Poll { task, .. } => {
                    world.take_payload(task).expect("the payload of the poll under way");
                    world.polled(task, (), PollEnd::Ready).expect("the poll under way");
                }
                Step::Idle { until: Some(until) } => world.set_now(until),
                Step::Idle { until: None } => break,
            }
        }
        let left: Vec<_> = world.quiescent().err().map(|e| e.all()).unwrap_or_default();
        assert!(left.iter().all(|code| *code == Status::ChannelNotDrained), "{left:?}");
        world.check().expect("an invariant holds at the end");
    }
}
