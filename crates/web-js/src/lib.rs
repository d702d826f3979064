//! What is under the npm package: a runtime and its tasks for JavaScript.
//!
//! A task of JavaScript is a function that gets a context and gives a promise. What it starts
//! through its context is in a region of its own, and has ended when it has; a cancel aborts the
//! signal of its context, and the task goes on until its promise is settled. Functions, values and
//! promises are known to the package alone (`tasks`).
//!
//! Only for WebAssembly; `cargo xtask web` builds it and puts `pkg/asx.js` beside it.

#![cfg(target_arch = "wasm32")]

pub mod memory;
pub mod tasks;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::{ChainLimits, Kind};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::TieBreak;
use asx_kernel::pump::Capability;
use asx_kernel::status::Status;
use asx_runtime::hosted::HostRegion;
use asx_runtime::{Grace, Policy, Recording, Scope};
use asx_web::js::{Handles, js_error};
use asx_web::{Config, Runtime, Start, WebError};
use std::rc::Rc;
use std::time::Duration;
use tasks::{Body, Hooks, Rejected, Tasks};
use wasm_bindgen::prelude::*;

/// The handles of this page or worker.
#[wasm_bindgen]
pub fn page_handles() -> JsValue {
    Handles::of_global().as_object().clone()
}

/// A runtime in this page or worker.
#[wasm_bindgen]
pub struct Host {
    runtime: Runtime,
    /// The region of the tasks that the page starts.
    region: HostRegion,
    scope: Scope<Rejected>,
    tasks: Rc<Tasks>,
}

#[wasm_bindgen]
impl Host {
    /// A runtime over these handles. `slice_ms`: infinite for none. `journal`: how many events are
    /// retained, 0 for none. `limits`: the longest timer and the range of the timer wheel in
    /// milliseconds, then links and bytes of a chain of causes. `task_key`: equals run in the order
    /// of their numbers.
    #[wasm_bindgen(constructor)]
    pub fn new(
        handles: JsValue,
        hooks: Hooks,
        burst: u32,
        slice_ms: f64,
        journal: usize,
        limits: &[f64],
        task_key: bool,
    ) -> Result<Host, JsValue> {
        let mut config = Config::default();
        if let [timer_ms, wheel_ms, depth, bytes] = *limits {
            config.settings.wheel.max_timer_duration = millis(timer_ms);
            config.settings.wheel.max_wheel_duration = millis(wheel_ms);
            config.settings.chain = ChainLimits { depth: depth as usize, bytes: bytes as usize };
        }
        if task_key {
            config.scheduler.tie_break = TieBreak::TaskKey;
        }
        config.pump.microtask_burst_limit = burst;
        config.pump.burst_time_limit = slice_ms.is_finite().then(|| millis(slice_ms));
        if journal > 0 {
            config.settings.journal = Some(Recording::new(journal, WhenFull::Overwrite));
            config.host_events = journal;
        }
        let runtime = asx_web::js::open(&Handles::of_object(handles), config);
        let root = HostRegion::of(runtime.root().clone());
        let opened = root.open_scope(Policy::CollectAll, Budget::INFINITE);
        let (region, scope) = opened.map_err(refused)?;
        let tasks = Rc::new(Tasks::new(hooks, runtime.handle()));
        let told = Rc::downgrade(&tasks);
        runtime.when_stalled(move |denied| {
            if let Some(tasks) = told.upgrade() {
                tasks.hooks().stalled(&denied.to_string());
            }
        });
        Ok(Host { runtime, region, scope, tasks })
    }

    /// Starts a task whose body the package has in this slot, inside another one if that is given:
    /// its number. A `priority` below 0 is the usual one, a deadline that is no number is none.
    pub fn spawn(
        &self,
        parent: Option<u32>,
        slot: u32,
        name: Option<String>,
        priority: i32,
        deadline_ms: f64,
    ) -> Result<f64, JsValue> {
        let priority = u8::try_from(priority).ok();
        let within = (!deadline_ms.is_nan()).then(|| millis(deadline_ms));
        self.begin(parent, slot, name, priority, within, Body::Function)
    }

    /// The region of the tasks that a task starts, which has started one.
    pub fn region_inside(&self, parent: u32) -> Result<f64, JsValue> {
        self.tasks.region_inside(parent).map(|id| id as f64).map_err(refused)
    }

    /// Starts a task that sleeps.
    pub fn sleep(&self, parent: u32, slot: u32, ms: f64) -> Result<f64, JsValue> {
        self.begin(Some(parent), slot, None, None, None, Body::Sleep(millis(ms)))
    }

    /// Starts a task that lets everything that is runnable go first.
    pub fn yield_now(&self, parent: u32, slot: u32) -> Result<f64, JsValue> {
        self.begin(Some(parent), slot, None, None, None, Body::Yield)
    }

    /// Why what is runnable does not run, if a host call that is needed is denied.
    pub fn stalled(&self) -> Option<String> {
        self.runtime.stalled().map(|denied| denied.to_string())
    }

    /// The body of a task is settled.
    pub fn settled(&self, slot: u32, fulfilled: bool) {
        self.tasks.settled(slot, fulfilled);
    }

    /// Asks a task to stop.
    pub fn cancel(&self, slot: u32, kind: &str, why: Option<String>) -> Result<(), JsValue> {
        let kind = Kind::from_name(kind).unwrap_or(Kind::User);
        self.tasks.cancel(slot, kind, why.map(Into::into)).map_err(refused)
    }

    /// The time, in milliseconds.
    pub fn now(&self) -> f64 {
        self.runtime.now().as_nanos() as f64 / 1e6
    }

    /// The region of the tasks that the page starts.
    pub fn region(&self) -> f64 {
        self.region.id() as f64
    }

    /// The events after number `after`, as far as they are retained: a JSON object per line.
    pub fn journal(&self, after: f64) -> String {
        let events = self.runtime.recorded().map(|recorded| recorded.events).unwrap_or_default();
        let new = events.into_iter().filter(|event| event.seq as f64 > after);
        let lines = new.filter_map(|event| asx_trace::json_line(&event.into()).ok());
        lines.map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    /// The digest of everything that was recorded, in hexadecimal.
    pub fn digest(&self) -> Option<String> {
        self.runtime.recorded().map(|recorded| format!("{:016x}", recorded.digest))
    }

    /// The host events after number `after`, as a JSON list.
    pub fn host_events(&self, after: f64) -> String {
        let events = self.runtime.host_events(after as u64);
        let events: Vec<_> = events.iter().map(asx_web::HostEvent::to_json).collect();
        format!("[{}]", events.join(","))
    }

    /// What lives, where, and what it waits for, as JSON.
    pub fn dump(&self) -> String {
        self.runtime.dump().to_json()
    }

    /// What is alive, as JSON; nothing if the runtime is quiescent.
    pub fn quiescence(&self) -> Option<String> {
        self.runtime.quiescence().err().map(|alive| alive.to_json())
    }

    /// Grants a capability, or takes it away; an error if there is none of this name.
    pub fn set_granted(&self, name: &str, granted: bool) -> Result<(), JsValue> {
        let unknown =
            || error(Status::InvalidArgument, &format!("there is no capability `{name}`"));
        let capability = Capability::from_name(name).ok_or_else(unknown)?;
        match granted {
            true => self.runtime.grant(capability),
            false => self.runtime.revoke(capability),
        }
        Ok(())
    }

    /// Stops everything: told at once, cancelled after `soft_ms`, ended after `hard_ms` more. The
    /// package is told when it is over, if this is the `first` time.
    pub fn shutdown(&self, soft_ms: f64, hard_ms: f64, first: bool) {
        self.runtime.shutdown(Grace { soft: millis(soft_ms), hard: millis(hard_ms) });
        self.region.end();
        if first {
            let tasks = self.tasks.clone();
            self.runtime.when_closed(move || tasks.hooks().closed());
        }
    }

    /// Why the runtime is dead, if it is.
    pub fn trapped(&self) -> Option<String> {
        self.runtime.trapped().map(|trapped| trapped.to_string())
    }
}

impl Host {
    fn begin(
        &self,
        parent: Option<u32>,
        slot: u32,
        name: Option<String>,
        priority: Option<u8>,
        within: Option<Duration>,
        body: Body,
    ) -> Result<f64, JsValue> {
        if let Some(trapped) = self.runtime.trapped() {
            return Err(js_error(&WebError::Trapped(trapped)));
        }
        let scope = match parent {
            Some(parent) => &self.tasks.inside(parent).map_err(refused)?,
            None => &self.scope,
        };
        let unnamed = || self.tasks.unnamed(body, parent.is_some());
        let name = name.map_or_else(unnamed, Into::into);
        let how = Start { name, priority, within };
        self.tasks.spawn(scope, slot, how, body).map(|id| id as f64).map_err(refused)
    }
}

/// A span of JavaScript's milliseconds, as long as there can be one.
fn millis(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms.max(0.0) / 1e3).unwrap_or(Duration::MAX)
}

fn refused(status: Status) -> JsValue {
    error(status, status.text())
}

/// An error as the package tells it from those that nobody foresaw: named after a status.
fn error(status: Status, text: &str) -> JsValue {
    let error = js_sys::Error::new(text);
    error.set_name(status.name());
    error.into()
}
