//! The hosts of the real runtime: scenarios over it, on workers that are stepped.
//!
//! Regions, tasks, channels and timers are those of `asx-runtime`, run under a manual clock by the
//! workers of `asx-native`, by those of `asx-lab`, or by the event loop of `asx-web`. A scripted
//! task is a real future (`script`) that drives its `BodyRunner` from inside its polls. What the
//! journal says is what the runtime recorded: the host itself records nothing. What a check cannot
//! ask the runtime is kept in `Things`.

mod api;
mod browser;
mod channels;
mod gate;
mod joins;
mod queries;
mod script;
mod steps;
mod support;
mod waits;

use crate::api::{Driver as _, HostApi as _};
use crate::book::Book;
use crate::host::{Failure, Host, Record, Reply};
use crate::interpreter;
use crate::scenario::{LimitKeys, Op, Scenario, ScriptStep, Settings};
use asx_kernel::choose::{Choose, Seeded};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::TieBreak;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::world::TaskError;
use asx_native::stepped::{GovernedBy, Setup};
use asx_runtime::probe::{ChannelProbe, RegionProbe, TaskProbe};
use asx_runtime::{Core, Task};
use asx_trace::refine::Refinement;
use browser::PageSettings;
use channels::Held;
use gate::Gate;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// How the page is set up, if an event loop drives it.
    page: Option<PageSettings>,
    /// Whether workers have the governor that a runtime has by default.
    default_governor: bool,
    /// The number of steps that the current run has taken.
    steps: Arc<AtomicU64>,
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

    /// The number of steps that the current run has taken: its decisions so far.
    pub fn steps(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.steps)
    }
}

impl Native {
    /// The same runtime in a page, driven by the pump over an event loop that the script turns. The
    /// clock is read before every step.
    pub fn in_page() -> Native {
        Native { page: Some(PageSettings::Exact), ..Native::default() }
    }

    /// Workers with the governor that a runtime has by default. It may prefer another lane than the
    /// model does, so that the order of dispatches is another where lanes compete.
    pub fn with_default_governor() -> Native {
        Native { default_governor: true, ..Native::default() }
    }

    /// A page that reads the clock as often as by default.
    pub fn in_default_page() -> Native {
        Native { page: Some(PageSettings::Default), ..Native::default() }
    }

    /// A page with all defaults: it keeps no events, so that only results, outcomes and states can
    /// be compared.
    pub fn in_silent_page() -> Native {
        Native { page: Some(PageSettings::Silent), ..Native::default() }
    }
}

impl Host for Native {
    fn name(&self) -> &'static str {
        match self.page {
            Some(PageSettings::Exact) => "web",
            Some(PageSettings::Default) => "web-defaults",
            Some(PageSettings::Silent) => "web-silent",
            None if self.oracle.is_some() => "lab",
            None if self.default_governor => "native-defaults",
            None => "native",
        }
    }

    fn can_run(&self, scenario: &Scenario) -> Result<(), String> {
        let workers = if self.workers == 0 { scenario.config.workers } else { self.workers };
        let threads = self.oracle.is_none() && self.page.is_none();
        if scenario.config.tie_break.0 == TieBreak::TaskKey && threads && workers > 1 {
            return Err("several workers take from separate queues: no order by task id".to_owned());
        }
        if scenario.config.when_full.0 == WhenFull::Refuse && !self.keeps_events() {
            return Err("no events are kept, so that there is nothing to be full".to_owned());
        }
        match self.page {
            Some(_) => support::can_run_in_page(scenario),
            None => support::can_run(scenario),
        }
    }

    fn hindrance(&self, scenario: &Scenario, step: &ScriptStep) -> Option<&'static str> {
        let unknown = support::without_events(scenario, step).filter(|_| !self.keeps_events());
        support::hindrance(step, self.page.is_some()).or(unknown)
    }

    fn keeps_events(&self) -> bool {
        self.page != Some(PageSettings::Silent)
    }

    fn keeps_order(&self) -> bool {
        !self.default_governor
    }

    fn start(&mut self, scenario: &Arc<Scenario>, seed: u64) {
        // The old run ends first: its futures know their world.
        self.engine = None;
        self.steps.store(0, Relaxed);
        let mut setup = setup(&scenario.config, seed, self.workers);
        if self.ties {
            setup.tie_break = TieBreak::Seeded;
        }
        setup.governed_by = match scenario.any_step(|step| matches!(step.op, Op::Suggest { .. })) {
            true => GovernedBy::Script,
            false if self.default_governor => GovernedBy::Adaptive,
            false => GovernedBy::Nobody,
        };
        let run = match &mut self.oracle {
            Some(oracle) => {
                let oracle = oracle(seed, setup.workers.max(1));
                steps::of_lab(setup, oracle)
            }
            None => match self.page {
                Some(page) => browser::of_page(setup, scenario.config.browser.as_ref(), page),
                None => steps::of_threads(setup),
            },
        };
        let steps = Arc::clone(&self.steps);
        self.engine = Some(Engine::new(Arc::clone(scenario), seed, run, steps));
    }

    fn apply(&mut self, op: &Op) -> Reply {
        let Some(engine) = &mut self.engine else { return Status::Internal.into() };
        interpreter::apply(engine, op)
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
    steps: Arc<AtomicU64>,
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
    book: Mutex<Book<Arc<World>>>,
    things: Mutex<Things>,
}

/// What numbers mean.
#[derive(Default)]
struct Things {
    tasks: BTreeMap<u64, TaskEntry>,
    regions: BTreeMap<u64, RegionProbe>,
    channels: BTreeMap<u64, ChannelProbe<i64>>,
    permits: BTreeMap<u64, Held>,
}

/// What the host knows of a task.
struct TaskEntry {
    probe: TaskProbe,
    handle: Option<Task<(), TaskError>>,
    /// Who waits for its end.
    line: Arc<joins::Line>,
    polls: u64,
    polls_since_request: u64,
    /// What its body ended with.
    error: Option<TaskError>,
    panic: Option<String>,
    cleanup_error: Option<String>,
    /// How it has ended, as its handle said.
    severity: Option<Severity>,
}

impl TaskEntry {
    fn new(probe: TaskProbe, handle: Option<Task<(), TaskError>>) -> TaskEntry {
        TaskEntry {
            probe,
            handle,
            line: Arc::default(),
            polls: 0,
            polls_since_request: 0,
            error: None,
            panic: None,
            cleanup_error: None,
            severity: None,
        }
    }
}

impl World {
    fn things(&self) -> MutexGuard<'_, Things> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task(&self, id: u64) -> Result<TaskProbe, Status> {
        let things = self.things();
        things.tasks.get(&id).map(|entry| entry.probe.clone()).ok_or(Status::StaleHandle)
    }

    fn region(&self, id: u64) -> Result<RegionProbe, Status> {
        self.things().regions.get(&id).cloned().ok_or(Status::StaleHandle)
    }

    fn channel_by_id(&self, id: u64) -> Result<ChannelProbe<i64>, Status> {
        self.things().channels.get(&id).cloned().ok_or(Status::StaleHandle)
    }
}

impl Engine {
    fn new(
        scenario: Arc<Scenario>,
        seed: u64,
        run: Box<dyn Steps>,
        steps: Arc<AtomicU64>,
    ) -> Engine {
        let root = RegionProbe::of(run.root().clone());
        let browser = scenario.config.browser.as_ref().filter(|_| run.browser().is_none());
        let world = Arc::new(World {
            gate: browser.map(|browser| Gate::of(browser, run.core().clone())),
            scenario,
            seed,
            core: run.core().clone(),
            root: root.clone(),
            clock: run.clock(),
            page: run.browser().map(browser::Browser::look),
            book: Mutex::default(),
            things: Mutex::default(),
        });
        world.book().bind_region("root", root.id());
        world.things().regions.insert(root.id(), root);
        Engine { run, steps, world, refinement: RefCell::default() }
    }

    fn check(&self) -> Result<(), String> {
        let recorded = self.world.core.recorded();
        let events = recorded.map(|recorded| recorded.events).unwrap_or_default();
        self.run.browser().map_or(Ok(()), |browser| browser.check())?;
        self.refinement.borrow_mut().advance(&events)
    }

    fn record(&self) -> Record {
        let record = interpreter::record(&self.world);
        match self.run.browser() {
            Some(browser) => Record { host_events: browser.events(), ..record },
            None => record,
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // What still lives is ended, so that nothing keeps itself alive.
        self.world.root.close(asx_kernel::cancel::Kind::Shutdown, None, Some(Default::default()));
        for _ in 0..100_000 {
            let next = self.world.core.next_wake().unwrap_or_default();
            let _ = self.advance(next.max(self.world.now()));
            if self.run.step(None).is_none() && self.world.root.state() == RegionState::Closed {
                break;
            }
        }
        let things = core::mem::take(&mut *self.world.things());
        things.permits.into_values().for_each(Held::abort);
    }
}

fn setup(config: &Settings, seed: u64, workers: usize) -> Setup {
    let settings = asx_runtime::Settings {
        operations: u32::MAX,
        journal: Some(asx_runtime::Recording::new(config.journal_capacity, config.when_full.0)),
        wheel: config.timers.wheel(),
        chain: config.chain_limits(),
        limits: (config.limits != LimitKeys::default()).then(|| config.limits.of_kernel()),
        ..asx_runtime::Settings::default()
    };
    Setup {
        workers: if workers == 0 { config.workers } else { workers },
        seed,
        tie_break: config.tie_break.0,
        cancel_streak_limit: config.cancel_streak_limit,
        settings,
        ..Setup::default()
    }
}
