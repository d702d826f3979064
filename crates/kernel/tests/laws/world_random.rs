//! Random programs on the world: every invariant after every step, and quiescence at the end.

use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::choose::Seeded;
use asx_kernel::ids::{ChannelId, ObligationId, RegionId, TaskId};
use asx_kernel::lanes::{Priority, SchedulerConfig, Suggestion, TieBreak};
use asx_kernel::rng::DetRng;
use asx_kernel::session::{DropContext, Resolution};
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use asx_kernel::world::{
    Ask, Config, Part, PermitId, Policy, PollEnd, RegionOptions, SleepUntil, Step, TaskError,
    TaskOptions, World,
};
use core::time::Duration;
use std::task::Poll;

/// The state of a random task between polls.
#[derive(Default)]
struct Actor {
    permits: Vec<PermitId>,
    sleep: Option<TimerHandle>,
    reserving: Option<ChannelId>,
    receiving: Option<ChannelId>,
    polls: u32,
    shielded: bool,
}

struct Run {
    world: World<Actor, u64>,
    choose: Seeded,
    rng: DetRng,
    regions: Vec<RegionId>,
    tasks: Vec<TaskId>,
    channels: Vec<ChannelId>,
    obligations: Vec<ObligationId>,
    timers: Vec<TimerHandle>,
    /// Whether to use `next_alone`, which requires a world of one worker.
    alone: bool,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = DetRng::new(seed, 77);
        let workers = 1 + rng.below(3);
        let tie_break = if rng.below(2) == 0 { TieBreak::Fifo } else { TieBreak::Seeded };
        let scheduler = SchedulerConfig { workers, tie_break, cancel_streak_limit: 3 };
        let mut config = Config { scheduler, ..Config::default() };
        if rng.below(3) == 0 {
            config.limits.tasks = 6;
            config.limits.ready_queue = 4;
            config.limits.obligations = 2;
            config.wheel.limit = 3;
            config.limits.memory = 8000;
        }
        let world = World::new(config);
        let regions = vec![world.root()];
        let choose = Seeded::new(seed, workers);
        let (tasks, channels, obligations, timers) = Default::default();
        let alone = false;
        Run { world, choose, rng, regions, tasks, channels, obligations, timers, alone }
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.rng.below(items.len())).copied()
    }

    fn ask(&mut self) -> Ask {
        Ask::new(Kind::ALL[self.rng.below(Kind::ALL.len())])
    }

    fn span(&mut self) -> Duration {
        let spans = [0, 1, 1_000, 1_000_000, 7_000_000, 300_000_000, 100_000_000_000_000];
        Duration::from_nanos(spans[self.rng.below(spans.len())])
    }

    fn task_options(&mut self) -> TaskOptions {
        let deadline = (self.rng.below(4) == 0).then(|| self.world.now() + self.span());
        let poll_quota = if self.rng.below(4) == 0 { self.rng.below(4) as u64 } else { u64::MAX };
        let cost_quota = (self.rng.below(4) == 0).then_some(5);
        let budget = Budget { deadline, poll_quota, cost_quota, priority: Priority(0) };
        let priority = (self.rng.below(3) == 0).then(|| self.rng.below(256) as u8);
        TaskOptions { budget, priority, pinned: self.rng.below(5) == 0 }
    }

    /// Performs an operation that is possible inside and outside of tasks.
    fn act(&mut self) {
        let region = self.pick(&self.regions.clone()).unwrap();
        let task = self.pick(&self.tasks.clone());
        let channel = self.pick(&self.channels.clone());
        let ask = self.ask();
        let span = self.span();
        match self.rng.below(24) {
            0..=4 => {
                let options = self.task_options();
                if let Ok(task) = self.world.spawn(region, options, Actor::default()) {
                    self.tasks.push(task);
                }
            }
            5 | 6 => {
                let policy =
                    if self.rng.below(2) == 0 { Policy::FailFast } else { Policy::CollectAll };
                let max_children = (self.rng.below(4) == 0).then_some(3);
                let options = RegionOptions { policy, max_children, ..RegionOptions::default() };
                self.regions.extend(self.world.open_region(region, options));
            }
            7 => drop(self.world.end_region(region)),
            8 if region != self.world.root() => {
                let force = (self.rng.below(2) == 0).then_some(span);
                let _ = self.world.close_region(region, ask, force);
            }
            9 => drop(self.world.defer(region, Actor::default())),
            10 => drop(task.map(|task| self.world.cancel_task(task, ask))),
            11 => drop(task.map(|task| self.world.wake(task))),
            12 => self.obligations.extend(self.world.oblige(region)),
            13 => {
                if let Some(id) = self.pick(&self.obligations.clone()) {
                    let commit = self.rng.below(2) == 0;
                    let how = if commit { Resolution::Commit } else { Resolution::Abort };
                    let _ = self.world.resolve(id, how);
                }
            }
            14 | 15 => {
                let scope = (self.rng.below(2) == 0).then_some(region);
                let capacity = self.rng.below(3);
                self.channels.extend(self.world.channel(scope, capacity));
            }
            16 => drop(channel.map(|channel| self.world.try_send(channel, 1).is_ok())),
            17 => drop(channel.map(|channel| self.world.evict(channel, 2).is_ok())),
            18 => drop(channel.map(|channel| self.world.try_recv(channel))),
            19 => drop(channel.map(|channel| self.world.drop_receiver(channel))),
            20 => drop(channel.map(|channel| self.world.drop_sender(channel))),
            21 => self.timers.extend(self.world.arm(region, SleepUntil::After(span), task)),
            22 => {
                if let Some(timer) = self.pick(&self.timers.clone()) {
                    if self.rng.below(2) == 0 {
                        self.world.disarm(timer);
                    } else {
                        let until = SleepUntil::After(span);
                        self.timers.extend(self.world.update_timer(timer, region, until, task));
                    }
                }
            }
            _ => {
                let _ = self.world.use_storage(region, 100);
                let spawned = self.world.spawn_finalizer(region, Actor::default());
                assert!(spawned.is_err() || self.world.region(region).unwrap().tasks > 0);
                let _ = self.world.release_region(region);
            }
        }
    }

    fn check(&self, seed: u64) {
        if let Err(broken) = self.world.check() {
            let journal: Vec<_> = self.world.journal().events().map(|e| e.to_string()).collect();
            panic!("seed {seed}: {broken}\n{}\n{}", journal.join("\n"), self.world.dump());
        }
    }

    /// Polls a random task: a few operations, until one has to wait.
    fn poll(&mut self, task: TaskId, actor: &mut Actor, part: Part, draining: bool) -> PollEnd {
        actor.polls += 1;
        if actor.polls > 12 || (draining && self.rng.below(2) == 0) {
            return PollEnd::Ready;
        }
        for _ in 0..3 {
            match self.poll_op(task, actor) {
                Ok(Poll::Ready(())) => {}
                Ok(Poll::Pending) => return PollEnd::Pending,
                Err(Status::Cancelled) if part == Part::Body => {
                    assert!(self.world.task(task).unwrap().state.acknowledged());
                    if self.rng.below(3) > 0 {
                        return PollEnd::Cancelled;
                    }
                }
                Err(Status::BudgetExhausted) => return PollEnd::Cancelled,
                Err(_) => {}
            }
        }
        match self.rng.below(8) {
            0 => PollEnd::Failed(TaskError { status: None, message: "failed".into() }),
            1 => PollEnd::Panicked("panicked".into()),
            2 | 3 => PollEnd::Ready,
            _ => {
                let _ = self.world.wake(task);
                PollEnd::Pending
            }
        }
    }

    fn poll_op(&mut self, task: TaskId, actor: &mut Actor) -> Result<Poll<()>, Status> {
        if let Some(channel) = actor.reserving {
            return self.reserve(task, actor, channel);
        }
        if let Some(channel) = actor.receiving {
            let answer = self.world.recv(task, channel);
            actor.receiving = matches!(answer, Ok(Poll::Pending)).then_some(channel);
            return answer.map(|poll| poll.map(drop));
        }
        if let Some(timer) = actor.sleep {
            let answer = self.world.slept(task, timer);
            actor.sleep = matches!(answer, Ok(Poll::Pending)).then_some(timer);
            return answer;
        }
        let channel = self.pick(&self.channels.clone());
        match (self.rng.below(12), channel, actor.permits.pop()) {
            (0, _, Some(permit)) => self.world.send(permit, 9).map_err(|(status, _)| status)?,
            (1, _, Some(permit)) => self.world.abort(permit)?,
            (2, _, Some(permit)) => drop(self.world.drop_permit(permit, DropContext::User)?),
            (_, _, Some(permit)) => actor.permits.push(permit),
            (3 | 4, Some(channel), None) => return self.reserve(task, actor, channel),
            (5, Some(channel), None) => {
                let answer = self.world.recv(task, channel);
                actor.receiving = matches!(answer, Ok(Poll::Pending)).then_some(channel);
                return answer.map(|poll| poll.map(drop));
            }
            (6, ..) => {
                let until = SleepUntil::After(self.span());
                actor.sleep = Some(self.world.sleep(task, until)?);
            }
            (7, ..) => self.world.spend(task, 2)?,
            (8, ..) => {
                let target = self.pick(&self.tasks.clone()).unwrap_or(task);
                if target != task {
                    return self.world.join(task, target).map(|poll| poll.map(drop));
                }
            }
            (9, ..) => {
                let _ = self.world.push_cleanup(task, Actor::default());
            }
            (10, ..) => {
                let toggle = actor.shielded;
                actor.shielded = !toggle;
                if toggle { self.world.unshield(task)? } else { self.world.shield(task)? }
            }
            _ => self.world.checkpoint(task)?,
        }
        self.act();
        Ok(Poll::Ready(()))
    }

    fn reserve(
        &mut self,
        task: TaskId,
        actor: &mut Actor,
        channel: ChannelId,
    ) -> Result<Poll<()>, Status> {
        let tracked = self.rng.below(3) == 0;
        let answer = self.world.reserve(task, channel, tracked);
        actor.reserving = matches!(answer, Ok(Poll::Pending)).then_some(channel);
        Ok(answer?.map(|permit| actor.permits.push(permit)))
    }

    fn next(&mut self) -> Result<Step, Status> {
        let now = self.world.now();
        match self.alone && self.world.scheduler().workers() == 1 {
            true => self.world.next_alone(now, &mut self.choose),
            false => self.world.next(now, &mut self.choose),
        }
    }

    /// Steps until idle. Returns the time of the next scheduled event.
    fn steps(&mut self, seed: u64, most: u32, draining: bool) -> Option<Time> {
        for _ in 0..most {
            let (task, part) = match self.next().unwrap() {
                Step::Idle { until } => return until,
                Step::Poll { task, part, .. } => (task, part),
            };
            self.check(seed);
            assert_eq!(self.next(), Err(Status::Reentrant));
            let mut actor = self.world.take_payload(task).unwrap();
            let end = self.poll(task, &mut actor, part, draining);
            self.check(seed);
            self.world.polled(task, actor, end).ok().unwrap();
            self.check(seed);
            self.world.take_released();
            self.world.take_dropped();
        }
        Some(self.world.now())
    }

    fn finish(&mut self, seed: u64) {
        let grace = Some(Duration::from_millis(10));
        self.world.shutdown(Duration::from_millis(1), grace).unwrap();
        for _ in 0..200 {
            let until = self.steps(seed, 50, true);
            let Some(until) = until else { break };
            self.world.set_now(until);
        }
        for channel in self.channels.clone() {
            let _ = self.world.drop_receiver(channel);
        }
        let quiescent = self.world.quiescent();
        assert_eq!(quiescent, Ok(()), "seed {seed}\n{}", self.world.dump());
    }
}

fn random_run(seed: u64) -> (u64, u64) {
    finished(seed, Run::new(seed))
}

fn finished(seed: u64, mut run: Run) -> (u64, u64) {
    for _ in 0..25 {
        run.act();
        run.check(seed);
        if run.rng.below(3) == 0 {
            let suggestions = [
                Suggestion::NoPreference,
                Suggestion::MeetDeadlines,
                Suggestion::DrainObligations,
                Suggestion::DrainRegions,
            ];
            run.world.suggest(suggestions[run.rng.below(4)]);
            let steps = 1 + run.rng.below(6) as u32;
            run.steps(seed, steps, false);
        }
        if run.rng.below(4) == 0 {
            let later = run.world.now() + run.span();
            run.world.set_now(later);
        }
    }
    run.finish(seed);
    (run.world.journal().digest(), run.world.journal().recorded())
}

#[test]
fn invariants_hold_after_every_step_and_shutdown_ends_in_quiescence() {
    let events: u64 = (0..60).map(|seed| random_run(seed).1).sum();
    assert!(events > 2_500, "the programs have too few events: {events}");
}

#[test]
fn the_same_seed_gives_the_same_journal() {
    for seed in 1000..1005 {
        assert_eq!(random_run(seed), random_run(seed), "seed {seed}");
    }
    assert_ne!(random_run(1), random_run(2));
}

#[test]
fn a_world_with_one_worker_decides_like_one_that_can_steal() {
    let one_worker = |seed: &u64| Run::new(*seed).world.scheduler().workers() == 1;
    let seeds: Vec<u64> = (0..60).filter(one_worker).collect();
    assert!(seeds.len() > 9);
    for seed in seeds {
        let alone = Run { alone: true, ..Run::new(seed) };
        assert_eq!(finished(seed, alone), random_run(seed), "seed {seed}");
    }
}
