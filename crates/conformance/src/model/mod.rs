//! The model host: scenarios over `kernel::world`, single-threaded, under a stepped clock.
//!
//! `Engine` holds the world and the names; ops from the script and from bodies go through the
//! same functions, the latter on behalf of a `Caller`. A task's payload is its `Script`.

mod browser;
mod drive;
mod looks;
mod ops;
mod things;

use crate::body::{BodyRunner, TaskOps};
use crate::host::{Failure, Host, Ordinals, Record, Reply};
use crate::laws;
use crate::names::Names;
use crate::pattern::Named;
use crate::scenario::{Name, Op, Scenario, ScriptStep, Settings};
use asx_kernel::cancel::ChainLimits;
use asx_kernel::choose::Seeded;
use asx_kernel::ids::{ChannelId, ObligationId, RegionId, TaskId};
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::{SchedulerConfig, Suggestion};
use asx_kernel::outcome::Lattice;
use asx_kernel::session::PermitState;
use asx_kernel::status::Status;
use asx_kernel::wheel::{Coalesce, TimerHandle, WheelConfig};
use asx_kernel::world::{self, Limits, PermitId, World};
use browser::EventLoop;
use core::task::Poll;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The model.
#[derive(Default)]
pub struct Model {
    engine: Option<Engine>,
}

impl Model {
    /// A model with nothing in it.
    pub fn new() -> Model {
        Model::default()
    }
}

impl Host for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn can_run(&self, _: &Scenario) -> Result<(), String> {
        Ok(())
    }

    fn start(&mut self, scenario: &Arc<Scenario>, seed: u64) {
        self.engine = Some(Engine::new(Arc::clone(scenario), seed));
    }

    fn apply(&mut self, op: &Op) -> Reply {
        let Some(engine) = &mut self.engine else { return Status::Internal.into() };
        let reply = match engine.apply(op, None) {
            Poll::Ready(reply) => reply,
            Poll::Pending => Reply::status(Status::WouldBlock),
        };
        engine.kick();
        reply
    }

    fn take_failures(&mut self) -> Vec<Failure> {
        self.engine.as_mut().map(|engine| core::mem::take(&mut engine.failures)).unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        self.engine.as_ref().map_or(Ok(()), Engine::check)
    }

    fn record(&self) -> Record {
        self.engine.as_ref().map(Engine::record).unwrap_or_default()
    }
}

/// What a task is to the model.
struct Script {
    runner: BodyRunner,
    own: Own,
}

/// What belongs to one task, or to one entry of its cleanup stack.
#[derive(Clone)]
struct Own {
    name: Name,
    index: i64,
    /// The sleep it is in.
    sleep: Option<TimerHandle>,
}

/// The task on whose behalf an op is done.
struct Caller<'a> {
    task: TaskId,
    own: &'a mut Own,
}

/// A world with names.
struct Engine {
    scenario: Arc<Scenario>,
    seed: u64,
    world: World<Script, i64>,
    choose: Seeded,
    failures: Vec<Failure>,
    /// Polls run so far.
    polls: u64,
    tasks: Names<TaskId>,
    regions: Names<RegionId>,
    channels: Names<ChannelId>,
    permits: Names<PermitId>,
    obligations: Names<ObligationId>,
    timers: Names<TimerHandle>,
    /// Tracked permits, and how permits that the world has forgotten were resolved.
    tracked: BTreeMap<PermitId, bool>,
    resolved: BTreeMap<PermitId, PermitState>,
    ordinals: Ordinals,
    /// What the governor suggests.
    suggestion: Suggestion,
    browser: Option<EventLoop>,
}

impl Engine {
    fn new(scenario: Arc<Scenario>, seed: u64) -> Engine {
        let world = World::new(config(&scenario.config));
        let choose = Seeded::new(seed, scenario.config.workers);
        let browser = scenario.config.browser.as_ref().map(EventLoop::new);
        let mut engine = Engine {
            scenario,
            seed,
            world,
            choose,
            failures: Vec::new(),
            polls: 0,
            tasks: Names::default(),
            regions: Names::default(),
            channels: Names::default(),
            permits: Names::default(),
            obligations: Names::default(),
            timers: Names::default(),
            tracked: BTreeMap::new(),
            resolved: BTreeMap::new(),
            ordinals: Ordinals::default(),
            suggestion: Suggestion::NoPreference,
            browser,
        };
        let root = engine.world.root();
        engine.bind_region("root", root);
        engine
    }

    /// Does an op, for the script or for a task.
    fn apply(&mut self, op: &Op, caller: Option<Caller<'_>>) -> Poll<Reply> {
        self.bind_finalizers();
        match op {
            Op::Law(law) => Poll::Ready(laws::answer(law, self.seed)),
            Op::Check(subject) => {
                let scope = caller.as_ref().map(|caller| &*caller.own.name);
                Poll::Ready(self.look(subject, scope).unwrap_or_else(Reply::status))
            }
            Op::Browser(op) => Poll::Ready(self.browser_op(op, caller.is_some())),
            Op::Advance { .. }
            | Op::Fire
            | Op::Run { .. }
            | Op::StepOn { .. }
            | Op::RunFor { .. }
            | Op::Suggest { .. }
            | Op::SoftStop
            | Op::Shutdown { .. }
            | Op::Quiescent => Poll::Ready(self.drive(op)),
            _ => self.operate(op, caller),
        }
    }

    /// A finalizer gets its id, and so its name, only when its region starts it.
    fn bind_finalizers(&mut self) {
        let known = |task: &TaskId| self.ordinals.name(Named::Task, task.ordinal()).is_some();
        let started = self.world.payloads().filter(|(task, _)| !known(task));
        let started: Vec<_> = started.map(|(id, script)| (id, script.own.name.clone())).collect();
        for (task, name) in started {
            self.bind_task(&name, task);
        }
    }

    fn bind_task(&mut self, name: &str, task: TaskId) {
        self.tasks.bind(None, name, task);
        self.ordinals.note(Named::Task, task.ordinal(), name);
    }

    fn bind_region(&mut self, name: &str, region: RegionId) {
        self.regions.bind(None, name, region);
        self.ordinals.note(Named::Region, region.ordinal(), name);
    }

    fn check(&self) -> Result<(), String> {
        self.world.check().map_err(|broken| broken.to_string())?;
        let pump = self.browser.as_ref().map_or(Ok(()), EventLoop::check);
        pump.map_err(str::to_owned)
    }

    fn record(&self) -> Record {
        // A task may be gone by now: the journal still knows how it ended.
        let mut ended = BTreeMap::new();
        for event in self.world.journal().events() {
            if let (Some(task), EventKind::TaskEnded { outcome }) = (event.subject.task, event.kind)
            {
                ended.insert(task, outcome.name());
            }
        }
        let outcome = |task: TaskId| {
            let seen = self.world.task(task).ok().and_then(|view| view.outcome);
            let seen = seen.map(|outcome| outcome.severity().name());
            seen.or_else(|| ended.get(&task.ordinal()).copied())
        };
        let outcomes = self.tasks.iter().map(|(name, task)| (name.to_owned(), outcome(task)));
        Record {
            events: self.world.journal().events().copied().collect(),
            digest: self.world.journal().digest(),
            recorded: self.world.journal().recorded(),
            host_events: self.browser.as_ref().map(EventLoop::events).unwrap_or_default(),
            names: self.ordinals.clone(),
            outcomes: outcomes.collect(),
            not_quiescent: self.world.quiescent().err().map(|not| not.all()).unwrap_or_default(),
        }
    }
}

/// A poll under way: the body's view of the engine.
struct InTask<'a> {
    engine: &'a mut Engine,
    task: TaskId,
    own: &'a mut Own,
}

impl TaskOps for InTask<'_> {
    fn poll_op(&mut self, step: &ScriptStep) -> Poll<Reply> {
        self.engine.apply(&step.op, Some(Caller { task: self.task, own: self.own }))
    }

    fn wake_self(&mut self) {
        let _ = self.engine.world.wake(self.task);
    }

    fn observe(&mut self) {
        let _ = self.engine.world.checkpoint(self.task);
    }

    fn shield(&mut self, on: bool) {
        let world = &mut self.engine.world;
        let _ = if on { world.shield(self.task) } else { world.unshield(self.task) };
    }

    fn push_cleanup(&mut self, entry: BodyRunner) -> Status {
        let script = Script { runner: entry, own: Own { sleep: None, ..self.own.clone() } };
        match self.engine.world.push_cleanup(self.task, script) {
            Ok(()) => Status::Ok,
            Err((status, _)) => status,
        }
    }

    fn report(&mut self, mut failure: Failure) {
        failure.what = format!("task `{}`, {}", self.own.name, failure.what);
        self.engine.failures.push(failure);
    }
}

fn config(config: &Settings) -> world::Config {
    let limit = |name| config.limits.get(name).copied();
    let none = Limits::default();
    let timers = &config.timers;
    let wheel = WheelConfig::default();
    let coalesce =
        timers.coalesce.map(|(window, min_group_size)| Coalesce { window, min_group_size });
    world::Config {
        scheduler: SchedulerConfig {
            workers: config.workers,
            cancel_streak_limit: config.cancel_streak_limit,
            tie_break: config.tie_break,
        },
        wheel: WheelConfig {
            max_wheel_duration: timers.max_wheel_duration.unwrap_or(wheel.max_wheel_duration),
            max_timer_duration: timers.max_timer_duration.unwrap_or(wheel.max_timer_duration),
            limit: timers.limit.unwrap_or(wheel.limit),
            coalesce,
            first_id: timers.first_id.unwrap_or(wheel.first_id),
            first_generation: timers.first_generation.unwrap_or(wheel.first_generation),
        },
        chain: ChainLimits { depth: config.chain.0, bytes: config.chain.1 },
        limits: Limits {
            tasks: limit("tasks").unwrap_or(none.tasks),
            regions: limit("regions").unwrap_or(none.regions),
            obligations: limit("obligations").unwrap_or(none.obligations),
            channels: limit("channels").unwrap_or(none.channels),
            ready_queue: limit("ready_queue").unwrap_or(none.ready_queue),
            timed_queue: limit("timed_queue").unwrap_or(none.timed_queue),
            cancel_queue: limit("cancel_queue").unwrap_or(none.cancel_queue),
            memory: limit("memory").unwrap_or(none.memory),
        },
        journal_capacity: config.journal_capacity,
        when_full: config.when_full,
        ..world::Config::default()
    }
}
