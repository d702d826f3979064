//! The event loop of a page, turned by the script: the same pump and runtime as in a browser.

use super::Engine;
use super::steps::Steps;
use crate::api::HostApi as _;
use crate::book::found;
use crate::events::HostEvent;
use crate::host::Reply;
use crate::scenario::{self, BrowserOp, Name};
use crate::value::Value;
use asx_kernel::lanes::{Certificate, Lane, SchedulerConfig, Suggestion};
use asx_kernel::pump::{Capabilities, Capability, HostCall, PumpConfig, StaleTimer};
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::Time;
use asx_native::stepped::Setup;
use asx_runtime::{Core, Region, Settings};
use asx_web::page::Page;
use asx_web::{Config, Handle, Pumped, Runtime};
use std::sync::Arc;

/// How a page is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageSettings {
    /// The clock is read before every step, and all events are kept.
    Exact,
    /// The clock is read as often as by default, and all events are kept.
    Default,
    /// As by default: the same clock, and no events are kept.
    Silent,
}

/// A runtime in a page that the script turns.
pub(super) struct Browser {
    runtime: Runtime,
    page: Arc<Page>,
    /// Whether the event loop drives; if not, the script steps.
    pub(super) drives: bool,
}

/// What tasks may see of it.
#[derive(Clone)]
pub(super) struct Look {
    handle: Handle,
    page: Arc<Page>,
}

/// Host events that are kept: more than any scenario makes.
const EVENTS: usize = 1 << 20;

pub(super) fn of_page(
    setup: Setup,
    browser: Option<&scenario::Browser>,
    page: PageSettings,
) -> Box<dyn Steps> {
    let Setup { seed, tie_break, cancel_streak_limit, settings, .. } = setup;
    let pump = browser.map_or_else(PumpConfig::default, scenario::Browser::pump);
    let defaults = Config::default();
    let clock_check_every = match page {
        PageSettings::Exact => 1,
        PageSettings::Default | PageSettings::Silent => defaults.pump.clock_check_every,
    };
    let pump = PumpConfig { clock_check_every, ..pump };
    let (host_events, settings) = match page {
        PageSettings::Exact | PageSettings::Default => (EVENTS, settings),
        PageSettings::Silent => {
            (defaults.host_events, Settings { journal: defaults.settings.journal, ..settings })
        }
    };
    let granted = browser.map_or_else(Capabilities::all, scenario::Browser::granted);
    let config = Config {
        pump,
        scheduler: SchedulerConfig { workers: 1, cancel_streak_limit, tie_break },
        settings,
        seed: Some(seed),
        host_events,
    };
    let (page, runtime) = Page::granting(config, granted);
    Box::new(Browser { runtime, page, drives: browser.is_some() })
}

impl Browser {
    pub(super) fn look(&self) -> Look {
        let handle = self.runtime.handle();
        let page = self.page.clone();
        Look { handle, page }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.runtime.check().map_err(str::to_owned)
    }

    fn steps(&self) -> u64 {
        let certificate = self.runtime.certificate();
        certificate.cancel + certificate.timed + certificate.ready + certificate.fallback
    }

    fn is_due(&self) -> bool {
        self.runtime.core().next_wake().is_some_and(|next| next <= self.page.time())
    }

    /// Turns the loop until nothing is queued and nothing is due: how many steps that took.
    pub(super) fn run_loop(&self, max_steps: u64) -> Option<u64> {
        let before = self.steps();
        let mut turns = 0;
        loop {
            self.page.microtasks(&self.runtime);
            if self.page.waiting().1 > 0 {
                self.page.turn(&self.runtime);
            } else if !self.is_due() || self.host_timer().status != Status::Ok {
                break;
            }
            turns += 1;
            if self.steps() - before > max_steps || turns > max_steps {
                return None;
            }
        }
        // The loop has nothing to do, so its last turn is over.
        let _ = self.runtime.end_turn();
        Some(self.steps() - before)
    }

    fn host_timer(&self) -> Reply {
        self.page.microtasks(&self.runtime);
        let rang = self.runtime.host_timer();
        self.page.microtasks(&self.runtime);
        rang.into()
    }

    /// The next macrotask; a turn of the page's own if there is none.
    fn turn(&self) {
        if !self.page.turn(&self.runtime) {
            let _ = self.runtime.page_turn();
            self.page.microtasks(&self.runtime);
        }
    }

    pub(super) fn events(&self) -> Vec<HostEvent> {
        let events = self.runtime.host_events(0);
        events.iter().map(host_event).collect()
    }

    fn op(&self, op: &BrowserOp) -> Reply {
        match op {
            BrowserOp::Microtasks => Reply::ok().with("ran", self.page.microtasks(&self.runtime)),
            BrowserOp::Turn { count } => {
                let before = self.steps();
                (0..*count).for_each(|_| self.turn());
                Reply::ok().with("steps", self.steps() - before)
            }
            BrowserOp::Pump => match self.runtime.pump() {
                Ok(Pumped::Drained) => Reply::ok().with("answer", "begin"),
                Ok(Pumped::NotScheduled) => Reply::ok().with("answer", "not_scheduled"),
                Ok(Pumped::Deferred) => deferred(),
                Err(error) => Reply::status(error.status()).note(error.to_string()),
            },
            BrowserOp::HostTimer { .. } => self.host_timer(),
            BrowserOp::Suspend { when } => {
                self.page.set_time(when.from(self.page.time()));
                Reply::ok()
            }
            BrowserOp::Grant { capability } => {
                self.runtime.grant(capability.0);
                Reply::ok()
            }
            BrowserOp::Revoke { capability } => {
                self.runtime.revoke(capability.0);
                Reply::ok()
            }
            BrowserOp::Require { capability } => self.look().require(capability.0),
        }
    }
}

fn deferred() -> Reply {
    Reply::status(Status::Reentrant).with("answer", "deferred")
}

fn host_event(event: &asx_web::HostEvent) -> HostEvent {
    let decided = event.decided.as_ref();
    let mut fields = vec![
        ("task_id", decided.map(|d| d.task_id.into())),
        ("region_id", decided.map(|d| d.region_id.into())),
        ("lane", decided.map(|d| d.lane.name().into())),
        ("decision_seq", decided.map(|d| d.decision_seq.into())),
        ("decision_hash", decided.map(|d| d.decision_hash.into())),
        ("host_turn_id", Some(event.host_turn_id.into())),
        ("microtask_batch_id", Some(event.microtask_batch_id.into())),
        ("cancel_streak", Some(u64::from(event.cancel_streak).into())),
        ("cancel_streak_limit", Some(u64::from(event.cancel_streak_limit).into())),
        ("error_class", event.error_class.map(|status| status.name().into())),
    ];
    let detail = event.detail.iter().map(|(name, value)| {
        let number = value.parse::<u64>().ok().filter(|_| *name == "timer");
        (*name, Some(number.map_or_else(|| value.as_str().into(), Value::from)))
    });
    fields.extend(detail);
    HostEvent { kind: event.kind, fields }
}

impl Look {
    fn require(&self, capability: Capability) -> Reply {
        match self.handle.require(capability, "scenario") {
            Ok(()) => Reply::ok().with("provenance", Value::none()),
            Err(denied) => Reply::status(denied.status()).with("provenance", denied.provenance),
        }
    }

    /// An op of a task on the page it runs in.
    pub(super) fn op(&self, op: &BrowserOp) -> Reply {
        match op {
            BrowserOp::Pump if self.handle.defer() => deferred(),
            BrowserOp::Pump => Reply::ok().with("answer", "not_scheduled"),
            BrowserOp::Require { capability } => self.require(capability.0),
            _ => Status::InvalidArgument.into(),
        }
    }

    pub(super) fn pump_fields(&self) -> Reply {
        let info = self.handle.pump_info();
        let (microtasks, macrotasks) = self.page.waiting();
        Reply::ok()
            .with("state", format!("{:?}", info.state))
            .with("turn", info.turn)
            .with("batch", info.batch)
            .with("outstanding", Value::maybe(info.outstanding.map(HostCall::name)))
            .with("pending", info.pending)
            .with("stalled", info.stalled)
            .with("deferred", info.deferred)
            .with("stale_timers", info.stale_timers)
            .with("macrotasks", macrotasks)
            .with("microtasks", microtasks)
    }

    /// How many tasks are queued in each lane.
    pub(super) fn queued(&self) -> [usize; 3] {
        Lane::ALL.map(|lane| self.handle.queued(lane))
    }
}

impl Engine {
    pub(super) fn turn_loop(&mut self, op: &BrowserOp) -> Reply {
        if let Some(gate) = &self.world.gate {
            return gate.op(op);
        }
        let Some(browser) = self.run.browser().filter(|browser| browser.drives) else {
            return Reply::status(Status::InvalidArgument).note("there is no [config.browser]");
        };
        match op {
            BrowserOp::HostTimer { timer: Some(name) } => self.late_ring(browser, name),
            op => browser.op(op),
        }
    }

    /// A host timer rings for exactly this timer, perhaps after its end.
    fn late_ring(&self, browser: &Browser, name: &Name) -> Reply {
        let handle = match found(&self.world.book().timers, None, name) {
            Ok(handle) => handle,
            Err(status) => return status.into(),
        };
        if self.world.core.probe_timer(handle).is_some() {
            return browser.host_timer();
        }
        let stale = StaleTimer { id: handle.id, generation: handle.generation };
        if let Err(error) = browser.runtime.late_ring(stale) {
            return error.status().into();
        }
        browser.page.microtasks(&browser.runtime);
        Status::StaleHandle.into()
    }
}

impl Steps for Browser {
    fn core(&self) -> &Arc<Core> {
        self.runtime.core()
    }

    fn root(&self) -> &Arc<Region> {
        self.runtime.root()
    }

    fn clock(&self) -> Box<dyn Fn(Time) + Send + Sync> {
        let page = self.page.clone();
        Box::new(move |to| page.set_time(to))
    }

    fn workers(&self) -> usize {
        1
    }

    fn step(&mut self, worker: Option<usize>) -> Option<(u64, Lane)> {
        if worker.is_some_and(|worker| worker > 0) { None } else { self.runtime.step() }
    }

    fn suggest(&mut self, suggestion: Suggestion) {
        self.runtime.suggest(suggestion);
    }

    fn queued(&self, lane: Lane) -> usize {
        self.runtime.queued(lane)
    }

    fn certificate(&self, worker: usize) -> Option<Certificate> {
        (worker == 0).then(|| self.runtime.certificate())
    }

    fn browser(&self) -> Option<&Browser> {
        Some(self)
    }
}
