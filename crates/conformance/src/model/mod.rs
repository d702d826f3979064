//! The model host: scenarios over `kernel::world`, single-threaded, under a stepped clock.
//!
//! `Engine` holds the world; a task's payload is its `Script`, polled from `Engine::poll`.

mod api;
mod browser;
mod queries;

use crate::api::{Caller, HostApi as _, Polled, Scripted};
use crate::body::{BodyEnd, BodyRunner, TaskOps};
use crate::book::Book;
use crate::host::{Failure, Host, Record, Reply};
use crate::interpreter;
use crate::scenario::{Op, Scenario, ScriptStep, Settings};
use asx_kernel::choose::Seeded;
use asx_kernel::ids::TaskId;
use asx_kernel::lanes::{SchedulerConfig, Suggestion};
use asx_kernel::status::Status;
use asx_kernel::wheel::TimerHandle;
use asx_kernel::world::{self, PollEnd, TaskError, World};
use browser::EventLoop;
use core::task::Poll;
use std::sync::{Arc, Mutex};

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
        let reply = interpreter::apply(engine, op);
        engine.kick();
        reply
    }

    fn take_failures(&mut self) -> Vec<Failure> {
        let engine = self.engine.as_ref();
        engine.map(|engine| core::mem::take(&mut engine.book().failures)).unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        self.engine.as_ref().map_or(Ok(()), Engine::check)
    }

    fn record(&self) -> Record {
        self.engine.as_ref().map(interpreter::record).unwrap_or_default()
    }
}

/// What a task is to the model.
struct Script {
    own: Scripted,
    /// The sleep it is in.
    sleep: Option<TimerHandle>,
}

impl Script {
    fn new(own: Scripted) -> Script {
        Script { own, sleep: None }
    }
}

/// A world with names.
struct Engine {
    scenario: Arc<Scenario>,
    seed: u64,
    world: World<Script, i64>,
    choose: Seeded,
    book: Mutex<Book<Engine>>,
    /// Polls run so far.
    polls: u64,
    /// What the governor suggests.
    suggestion: Suggestion,
    browser: Option<EventLoop>,
}

impl Engine {
    fn new(scenario: Arc<Scenario>, seed: u64) -> Engine {
        let engine = Engine {
            world: World::new(config(&scenario.config)),
            choose: Seeded::new(seed, scenario.config.workers),
            browser: scenario.config.browser.as_ref().map(EventLoop::new),
            scenario,
            seed,
            book: Mutex::default(),
            polls: 0,
            suggestion: Suggestion::NoPreference,
        };
        engine.book().bind_region("root", engine.world.root());
        engine
    }

    /// Runs the task's script until it waits or ends, and tells the world.
    fn poll(&mut self, task: TaskId) {
        self.polls += 1;
        self.name_finalizers();
        let Some(mut script) = self.world.take_payload(task) else { return };
        let Script { own: Scripted { name, index, runner }, sleep } = &mut script;
        let end = runner.poll(&mut InTask { engine: self, task, name, index: *index, sleep });
        let end = match end {
            BodyEnd::Pending => PollEnd::Pending,
            BodyEnd::Done => PollEnd::Ready,
            BodyEnd::Cancelled => PollEnd::Cancelled,
            BodyEnd::Panicked(message) => PollEnd::Panicked(message.into()),
            BodyEnd::Failed { status, message } => {
                PollEnd::Failed(TaskError { status, message: message.into() })
            }
        };
        if self.world.polled(task, script, end).is_err() {
            let what = format!("end of a poll of `{}`", self.book().task_name(task.ordinal()));
            self.book().failures.push(Failure::new(0, what, "accepted", "refused"));
        }
        self.world.take_released();
        self.world.take_dropped();
        let failures = self.book().failures.len();
        if failures < 50
            && let Err(broken) = self.check()
        {
            let name = self.book().task_name(task.ordinal());
            let what = format!("invariants after a poll of `{name}`");
            self.book().failures.push(Failure::new(0, what, "no violation", broken));
        }
    }

    fn check(&self) -> Result<(), String> {
        self.world.check().map_err(|broken| broken.to_string())?;
        let pump = self.browser.as_ref().map_or(Ok(()), EventLoop::check);
        pump.map_err(str::to_owned)
    }
}

/// A poll under way: the body's view of the engine.
struct InTask<'a> {
    engine: &'a mut Engine,
    task: TaskId,
    name: &'a str,
    index: i64,
    sleep: &'a mut Option<TimerHandle>,
}

impl TaskOps for InTask<'_> {
    fn poll_op(&mut self, step: &ScriptStep) -> Poll<Reply> {
        let current = Polled { task: self.task, sleep: self.sleep };
        let caller = Caller { name: self.name, index: self.index, current };
        interpreter::perform(self.engine, &step.op, caller)
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
        let own = Scripted { name: self.name.into(), index: self.index, runner: entry };
        match self.engine.world.push_cleanup(self.task, Script::new(own)) {
            Ok(()) => Status::Ok,
            Err((status, _)) => status,
        }
    }

    fn report(&mut self, failure: Failure) {
        self.engine.book().report(self.name, failure);
    }
}

fn config(config: &Settings) -> world::Config {
    world::Config {
        scheduler: SchedulerConfig {
            workers: config.workers,
            cancel_streak_limit: config.cancel_streak_limit,
            tie_break: config.tie_break.0,
        },
        wheel: config.timers.wheel(),
        chain: config.chain_limits(),
        limits: config.limits.of_kernel(),
        journal_capacity: config.journal_capacity,
        when_full: config.when_full.0,
        ..world::Config::default()
    }
}
