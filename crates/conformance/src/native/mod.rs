//! The hosts of the real runtime: scenarios over it, on workers that are stepped.
//!
//! Regions, tasks, channels and timers are those of `asx-runtime`, run under a manual clock by the
//! workers of `asx-native`, by those of `asx-lab`, or by the event loop of `asx-web`. A scripted
//! task is a real future (`script`) that drives its `BodyRunner` from inside its polls. What the
//! journal says is what the runtime recorded: the host itself records nothing. Names and what a
//! check cannot ask the runtime are kept in `Book`.

mod able;
mod browser;
mod channels;
mod gate;
mod joins;
mod looks;
mod ops;
mod script;
mod steps;
mod waits;

use crate::host::{Failure, Host, Ordinals, Record, Reply};
use crate::laws;
use crate::names::Names;
use crate::pattern::Named;
use crate::scenario::{Name, Op, Scenario, Settings};
use crate::value::Value;
use asx_kernel::cancel::ChainLimits;
use asx_kernel::choose::{Choose, Seeded};
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::{Lane, TieBreak};
use asx_kernel::outcome::Severity;
use asx_kernel::quiescence::{Census, NotQuiescent};
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Coalesce, TimerHandle, WheelConfig};
use asx_native::stepped::Setup;
use asx_runtime::probe::{ChannelProbe, RegionProbe, TaskProbe};
use asx_runtime::{Core, Limits, Task};
use asx_trace::refine::Refinement;
use channels::Held;
use core::task::Poll;
use gate::Gate;
use script::{Caller, ScriptError};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use steps::Steps;

/// The native runtime, stepped.
#[derive(Default)]
pub struct Native {
    engine: Option<Engine>,
    /// Workers in place of the scenario's; 0: as the scenario says.
    workers: usize,
    /// Of the lab's workers: what they ask, for a run under a seed. Else they are those of threads.
    oracle: Option<Oracle>,
    /// Whether it is asked which of equals goes first, whatever scenarios say.
    ties: bool,
    /// Whether an event loop drives it, as in a page.
    web: bool,
}

/// Makes the oracle for a run under a seed on so many workers.
type Oracle = Box<dyn FnMut(u64, usize) -> Box<dyn Choose>>;

impl Native {
    /// A host with nothing in it.
    pub fn new() -> Native {
        Native::default()
    }

    /// A host with so many workers, whatever scenarios say: then the order of events is another,
    /// but not what they come to.
    pub fn with_workers(workers: usize) -> Native {
        Native { workers, ..Native::default() }
    }

    /// The same runtime on the virtual workers of the lab.
    pub fn in_lab() -> Native {
        let oracle: Oracle = Box::new(|seed, workers| Box::new(Seeded::new(seed, workers)));
        Native { oracle: Some(oracle), ..Native::default() }
    }

    /// The same on so many workers (0: as scenarios say) that ask this oracle, also which of equals
    /// goes first.
    pub fn asking(workers: usize, oracle: impl Fn() -> Box<dyn Choose> + 'static) -> Native {
        let oracle: Oracle = Box::new(move |_, _| oracle());
        Native { oracle: Some(oracle), workers, ties: true, ..Native::default() }
    }
}

impl Native {
    /// The same runtime in a page, driven by the pump over an event loop that the script turns.
    pub fn in_page() -> Native {
        Native { web: true, ..Native::default() }
    }
}

impl Host for Native {
    fn name(&self) -> &'static str {
        match self.web {
            true => "web",
            false if self.oracle.is_some() => "lab",
            false => "native",
        }
    }

    fn can_run(&self, scenario: &Scenario) -> Result<(), String> {
        if scenario.config.tie_break == TieBreak::TaskKey && self.oracle.is_none() {
            return Err("its queues are first in, first out: task keys order the lab's".to_owned());
        }
        if self.web { able::can_run_in_page(scenario) } else { able::can_run(scenario) }
    }

    fn start(&mut self, scenario: &Arc<Scenario>, seed: u64) {
        // The old run ends first: its futures know their world.
        self.engine = None;
        let mut setup = setup(&scenario.config, seed, self.workers);
        if self.ties {
            setup.tie_break = TieBreak::Seeded;
        }
        let run = match &mut self.oracle {
            Some(oracle) => {
                let oracle = oracle(seed, setup.workers.max(1));
                steps::of_lab(setup, oracle)
            }
            None if self.web => browser::of_page(setup, scenario.config.browser.as_ref()),
            None => steps::of_threads(setup),
        };
        self.engine = Some(Engine::new(Arc::clone(scenario), seed, run));
    }

    fn apply(&mut self, op: &Op) -> Reply {
        let Some(engine) = &mut self.engine else { return Status::Internal.into() };
        match engine.apply(op) {
            Poll::Ready(reply) => reply,
            Poll::Pending => Reply::status(Status::WouldBlock),
        }
    }

    fn take_failures(&mut self) -> Vec<Failure> {
        let engine = self.engine.as_mut();
        engine.map(|engine| core::mem::take(&mut engine.world.book().failures)).unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        self.engine.as_ref().map_or(Ok(()), Engine::check)
    }

    fn record(&self) -> Record {
        self.engine.as_ref().map(Engine::record).unwrap_or_default()
    }
}

struct Engine {
    run: Box<dyn Steps>,
    world: Arc<World>,
    refinement: RefCell<Refinement>,
}

/// What the script and the futures share.
struct World {
    scenario: Arc<Scenario>,
    seed: u64,
    core: Arc<Core>,
    root: RegionProbe,
    /// Moves the clock.
    clock: Box<dyn Fn(Time) + Send + Sync>,
    /// The event loop, if one drives.
    page: Option<browser::Look>,
    /// What is granted where no event loop says so.
    gate: Option<Gate>,
    book: Mutex<Book>,
}

/// Who is who, and what became of it.
#[derive(Default)]
struct Book {
    failures: Vec<Failure>,
    names: Ordinals,
    tasks: Names<u64>,
    regions: Names<u64>,
    channels: Names<u64>,
    permits: Names<u64>,
    obligations: Names<(u64, u64)>,
    timers: Names<TimerHandle>,
    task: BTreeMap<u64, TaskEntry>,
    region: BTreeMap<u64, RegionProbe>,
    channel: BTreeMap<u64, ChannelProbe<i64>>,
    permit: BTreeMap<u64, Held>,
    tracked: BTreeMap<u64, bool>,
}

/// What the host knows of a task.
struct TaskEntry {
    probe: TaskProbe,
    handle: Option<Task<(), ScriptError>>,
    /// Who waits for its end.
    line: Arc<joins::Line>,
    polls: u64,
    polls_since_request: u64,
    /// What its body ended with.
    error: Option<ScriptError>,
    panic: Option<String>,
    cleanup_error: Option<String>,
    /// How it has ended, as its handle said.
    severity: Option<Severity>,
}

impl World {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Book {
    fn bind_task(&mut self, name: &str, probe: TaskProbe) {
        let id = probe.id();
        self.tasks.bind(None, name, id);
        self.names.note(Named::Task, id, name);
        self.task.entry(id).or_insert(TaskEntry {
            probe,
            handle: None,
            line: Arc::default(),
            polls: 0,
            polls_since_request: 0,
            error: None,
            panic: None,
            cleanup_error: None,
            severity: None,
        });
    }

    fn bind_region(&mut self, name: &str, region: RegionProbe) {
        self.regions.bind(None, name, region.id());
        self.names.note(Named::Region, region.id(), name);
        self.region.insert(region.id(), region);
    }
}

impl Engine {
    fn new(scenario: Arc<Scenario>, seed: u64, run: Box<dyn Steps>) -> Engine {
        let root = RegionProbe(run.root().clone());
        let browser = scenario.config.browser.as_ref().filter(|_| run.browser().is_none());
        let world = Arc::new(World {
            gate: browser.map(Gate::of),
            scenario,
            seed,
            core: run.core().clone(),
            root: root.clone(),
            clock: run.clock(),
            page: run.browser().map(browser::Browser::look),
            book: Mutex::default(),
        });
        world.book().bind_region("root", root);
        Engine { run, world, refinement: RefCell::default() }
    }

    fn apply(&mut self, op: &Op) -> Poll<Reply> {
        match op {
            Op::Law(law) => Poll::Ready(laws::answer(law, self.world.seed)),
            Op::Browser(op) => Poll::Ready(self.browser_op(op)),
            Op::StepOn { .. } if self.is_driven() => Poll::Ready(browser::driven()),
            Op::Check(subject) => {
                let answer = self.world.look(subject, None).unwrap_or_else(|status| {
                    self.look_at_run(subject).unwrap_or(Reply::status(status))
                });
                Poll::Ready(answer)
            }
            Op::Advance { when } => {
                let to = when.from(self.run.now());
                self.run.advance(to);
                Poll::Ready(Reply::ok())
            }
            Op::Fire => Poll::Ready(Reply::ok().with("fired", self.run.fire())),
            Op::Run { max_steps } => Poll::Ready(self.run(*max_steps).map_or_else(stuck, stepped)),
            Op::StepOn { count, worker } => Poll::Ready(self.steps(*count, *worker)),
            Op::RunFor { when, max_steps } => {
                let end = when.from(self.run.now());
                Poll::Ready(self.run_until(end, *max_steps).map_or_else(stuck, stepped))
            }
            Op::Suggest { mode } => {
                self.run.suggest(*mode);
                Poll::Ready(Reply::ok())
            }
            Op::SoftStop => {
                self.world.root.soft_stop();
                Poll::Ready(Reply::ok())
            }
            Op::Shutdown { soft, force_after } => {
                self.world.root.shutdown(*soft, *force_after);
                Poll::Ready(Reply::ok())
            }
            Op::Quiescent => Poll::Ready(match self.world.quiescent() {
                Ok(()) => Reply::ok().with("all", Value::List(Vec::new())),
                Err(not) => {
                    let all = Value::texts(not.all().into_iter().map(Status::name));
                    Reply::status(not.first()).with("all", all)
                }
            }),
            _ => self.world.operate(op, None),
        }
    }

    fn run(&mut self, max_steps: u64) -> Result<u64, u64> {
        if let Some(browser) = self.run.browser().filter(|browser| browser.drives) {
            return browser.run_loop(max_steps);
        }
        let mut steps = 0;
        while self.run.step(None).is_some() {
            steps += 1;
            if steps > max_steps {
                return Err(max_steps);
            }
        }
        Ok(steps)
    }

    fn run_until(&mut self, end: Time, max_steps: u64) -> Result<u64, u64> {
        let mut steps = 0;
        loop {
            steps += self.run(max_steps - steps).map_err(|_| max_steps)?;
            let next = self.run.next_wake().filter(|next| self.run.now() < *next);
            match next.filter(|next| *next <= end) {
                Some(next) => self.run.advance(next),
                None => break,
            }
        }
        self.run.advance(end);
        Ok(steps)
    }

    fn steps(&mut self, count: u64, worker: Option<usize>) -> Reply {
        if worker.is_some_and(|worker| worker >= self.run.workers()) {
            return Status::InvalidArgument.into();
        }
        let mut last = None;
        for _ in 0..count {
            last = self.run.step(worker);
        }
        let reply = Reply::ok().with("idle", last.is_none());
        match last {
            Some((task, lane)) => {
                let name = self.world.task_name(task);
                reply.with("task", name).with("lane", lane.name())
            }
            None => reply,
        }
    }

    fn check(&self) -> Result<(), String> {
        let recorded = self.world.core.recorded();
        let events = recorded.map(|recorded| recorded.events).unwrap_or_default();
        self.run.browser().map_or(Ok(()), |browser| browser.check())?;
        self.refinement.borrow_mut().advance(&events)
    }

    fn record(&self) -> Record {
        let Some(recorded) = self.world.core.recorded() else { return Record::default() };
        let mut ended = BTreeMap::new();
        for event in &recorded.events {
            if let (Some(task), EventKind::TaskEnded { outcome }) = (event.subject.task, event.kind)
            {
                ended.insert(task, outcome);
            }
        }
        let book = self.world.book();
        let tasks: Vec<_> = book.tasks.iter().map(|(name, id)| (name.to_owned(), id)).collect();
        let names = book.names.clone();
        drop(book);
        let outcome = |task: u64| ended.get(&task).copied().or_else(|| self.world.outcome_of(task));
        let outcome = |(name, task)| (name, outcome(task).map(Severity::name));
        let outcomes = tasks.into_iter().map(outcome).collect();
        Record {
            digest: recorded.digest,
            recorded: recorded.recorded,
            events: recorded.events,
            host_events: match (&self.world.gate, self.run.browser()) {
                (Some(gate), _) => gate.events(),
                (None, page) => page.map(browser::Browser::events).unwrap_or_default(),
            },
            names,
            outcomes,
            not_quiescent: self.world.quiescent().err().map(|not| not.all()).unwrap_or_default(),
        }
    }

    fn look_at_run(&self, subject: &crate::scenario::Checked) -> Option<Reply> {
        use crate::scenario::Checked;
        Some(match subject {
            Checked::Lanes => {
                let [cancel, timed, ready] = Lane::ALL.map(|lane| self.run.queued(lane));
                Reply::ok()
                    .with("cancel", cancel)
                    .with("timed", timed)
                    .with("ready", ready)
                    .with("total", cancel + timed + ready)
            }
            Checked::Certificate(worker) => {
                let Some(certificate) = self.run.certificate(*worker) else {
                    return Some(Status::InvalidArgument.into());
                };
                looks::certificate(&certificate)
            }
            Checked::Clock => Reply::ok()
                .with("now", self.run.now())
                .with("next_wake", Value::maybe(self.run.next_wake())),
            _ => return None,
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // What still lives is ended, so that nothing keeps itself alive.
        self.world.root.close(asx_kernel::cancel::Kind::Shutdown, None, Some(Default::default()));
        for _ in 0..100_000 {
            let next = self.run.next_wake().unwrap_or_default();
            self.run.advance(next.max(self.run.now()));
            if self.run.step(None).is_none() && self.world.root.state() == RegionState::Closed {
                break;
            }
        }
        let book = core::mem::take(&mut *self.world.book());
        book.permit.into_values().for_each(Held::abort);
    }
}

impl World {
    fn task_name(&self, task: u64) -> String {
        let book = self.book();
        book.names.name(Named::Task, task).map_or_else(|| task.to_string(), str::to_owned)
    }

    fn quiescent(&self) -> Result<(), NotQuiescent> {
        let book = self.book();
        let live = |entry: &&TaskEntry| entry.probe.state() != TaskState::Completed;
        let open = |region: &&RegionProbe| region.state() != RegionState::Closed;
        let outstanding = book.region.values().map(|region| region.word().outstanding() as usize);
        let holds =
            |channel: &&ChannelProbe<i64>| channel.look(|law| law.len() + law.reserved()) > 0;
        Census {
            tasks: book.task.values().filter(live).count(),
            obligations: outstanding.sum(),
            regions: book.region.values().filter(open).count(),
            timers: self.core.probe_timers().0,
            channels: book.channel.values().filter(holds).count(),
        }
        .check()
    }
}

fn stepped(steps: u64) -> Reply {
    Reply::ok().with("steps", steps)
}

fn stuck(max_steps: u64) -> Reply {
    Reply::status(Status::Internal).note(format!("still running after {max_steps} steps"))
}

fn setup(config: &Settings, seed: u64, workers: usize) -> Setup {
    let timers = &config.timers;
    let wheel = WheelConfig::default();
    let coalesce =
        timers.coalesce.map(|(window, min_group_size)| Coalesce { window, min_group_size });
    let settings = asx_runtime::Settings {
        operations: u32::MAX,
        journal: Some(asx_runtime::Recording::new(config.journal_capacity, config.when_full)),
        wheel: WheelConfig {
            max_wheel_duration: timers.max_wheel_duration.unwrap_or(wheel.max_wheel_duration),
            max_timer_duration: timers.max_timer_duration.unwrap_or(wheel.max_timer_duration),
            limit: timers.limit.unwrap_or(wheel.limit),
            coalesce,
            first_id: timers.first_id.unwrap_or(wheel.first_id),
            first_generation: timers.first_generation.unwrap_or(wheel.first_generation),
        },
        chain: ChainLimits { depth: config.chain.0, bytes: config.chain.1 },
        limits: (!config.limits.is_empty()).then(|| limits(config)),
        ..asx_runtime::Settings::default()
    };
    Setup {
        workers: if workers == 0 { config.workers } else { workers },
        seed,
        tie_break: config.tie_break,
        cancel_streak_limit: config.cancel_streak_limit,
        settings,
    }
}

fn limits(config: &Settings) -> Limits {
    let limit = |name| config.limits.get(name).copied();
    let none = Limits::default();
    Limits {
        tasks: limit("tasks").unwrap_or(none.tasks),
        regions: limit("regions").unwrap_or(none.regions),
        obligations: limit("obligations").unwrap_or(none.obligations),
        channels: limit("channels").unwrap_or(none.channels),
        ready_queue: limit("ready_queue").unwrap_or(none.ready_queue),
        timed_queue: limit("timed_queue").unwrap_or(none.timed_queue),
        cancel_queue: limit("cancel_queue").unwrap_or(none.cancel_queue),
        memory: limit("memory").unwrap_or(none.memory),
    }
}

/// What an op comes to: an error is a reply too.
type Answer = Result<Poll<Reply>, Status>;

fn ready(reply: Reply) -> Answer {
    Ok(Poll::Ready(reply))
}

/// The scope in which a caller's names are looked up.
fn scope<'a>(caller: Option<&'a Caller<'_>>) -> Option<&'a str> {
    caller.map(|caller| &*caller.own.name)
}

/// Finds a name or says that there is no such thing.
fn found<T: Copy>(names: &Names<T>, scope: Option<&str>, name: &Name) -> Result<T, Status> {
    names.find(scope, name).ok_or(Status::StaleHandle)
}
