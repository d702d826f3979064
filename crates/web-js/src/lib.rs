//! What is under the npm package: a runtime, its tasks and their contexts for JavaScript.
//!
//! A task of JavaScript is a function that gets a context and gives a promise. It runs in a region
//! of its own, so what it starts through its context has ended when it has; a cancel aborts the
//! signal of its context, and the task goes on until its promise is settled.
//!
//! Only for WebAssembly; `cargo xtask web` builds it and puts `pkg/asx.js` beside it.

#![cfg(target_arch = "wasm32")]

pub mod context;
mod options;

use asx_kernel::journal::WhenFull;
use asx_kernel::pump::Capability;
use asx_kernel::status::Status;
use asx_runtime::{Grace, Recording, Why};
use asx_web::js::{AbortGuard, Handles, cancel_on_abort, js_error, promise_of};
use asx_web::{Config, Program, Runtime};
use js_sys::{Function, Promise};
use options::Options;
use std::rc::Rc;
use std::time::Duration;
use wasm_bindgen::prelude::*;

/// A runtime in this page or worker.
#[wasm_bindgen]
pub struct Host {
    runtime: Runtime,
    handles: Handles,
}

#[wasm_bindgen]
impl Host {
    /// A runtime over these handles; over the page's own if there are none. `journal`: how many
    /// events are retained, 0 for none.
    #[wasm_bindgen(constructor)]
    pub fn new(handles: JsValue, burst: u32, slice_ms: f64, journal: usize) -> Host {
        let handles = match handles.is_undefined() || handles.is_null() {
            true => Handles::of_global(),
            false => Handles::of_object(handles),
        };
        let mut config = Config::default();
        config.pump.microtask_burst_limit = burst;
        config.pump.burst_time_limit = Some(millis(slice_ms));
        if journal > 0 {
            config.settings.journal = Some(Recording::new(journal, WhenFull::Overwrite));
            config.host_events = journal;
        }
        Host { runtime: asx_web::js::open(&handles, config), handles }
    }

    /// Starts a task; `options` are a name, or an object with `name`, `priority`, `deadlineMs` and
    /// `signal`.
    pub fn spawn(&self, body: Function, options: &JsValue) -> Result<Spawned, JsValue> {
        let Options { start, signal } = Options::read(options, "main")?;
        let handles = self.handles.clone();
        let body = async move |cx| context::run(cx, handles, body).await;
        let started = self.runtime.start_as(&start, body);
        let program = Rc::new(started.map_err(|error| js_error(&error))?);
        let promise = promise_of(&program);
        let guard = signal.map(|signal| {
            let program = program.clone();
            cancel_on_abort(&signal, move |why| program.cancel(why))
        });
        Ok(Spawned { program, promise, _guard: guard })
    }

    /// The events after number `after`, as far as they are retained: a JSON object per line.
    pub fn journal(&self, after: f64) -> String {
        let events = self.runtime.recorded().map(|recorded| recorded.events).unwrap_or_default();
        let new = events.into_iter().filter(|event| event.seq as f64 > after);
        let lines = new.filter_map(|event| asx_trace::json_line(&event.into()).ok());
        lines.map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    /// How many events were recorded.
    pub fn events(&self) -> f64 {
        self.runtime.events() as f64
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

    /// Grants a capability, or takes it away; an error if there is none of this name.
    pub fn set_granted(&self, name: &str, granted: bool) -> Result<(), JsValue> {
        let unknown = || invalid(&format!("there is no capability `{name}`"));
        let capability = Capability::from_name(name).ok_or_else(unknown)?;
        match granted {
            true => self.runtime.grant(capability),
            false => self.runtime.revoke(capability),
        }
        Ok(())
    }

    /// Stops everything: told at once, cancelled after `soft_ms`, ended after `hard_ms` more.
    pub fn shutdown(&self, soft_ms: f64, hard_ms: f64) {
        self.runtime.shutdown(Grace { soft: millis(soft_ms), hard: millis(hard_ms) });
    }

    /// Why the runtime is dead, if it is.
    pub fn trapped(&self) -> Option<String> {
        self.runtime.trapped().map(|trapped| trapped.to_string())
    }
}

/// A task that was started.
#[wasm_bindgen]
pub struct Spawned {
    program: Rc<Program<Result<JsValue, JsValue>>>,
    promise: Promise,
    _guard: Option<AbortGuard>,
}

#[wasm_bindgen]
impl Spawned {
    /// What it comes to.
    #[wasm_bindgen(getter)]
    pub fn promise(&self) -> Promise {
        self.promise.clone()
    }

    /// The region it runs in.
    #[wasm_bindgen(getter)]
    pub fn region(&self) -> f64 {
        self.program.region() as f64
    }

    /// Asks it to stop.
    pub fn cancel(&self, why: Option<String>) {
        self.program.cancel(Why::from(why.unwrap_or_else(|| "cancelled".to_owned())));
    }
}

/// A span of JavaScript's milliseconds, as long as there can be one.
fn millis(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms.max(0.0) / 1e3).unwrap_or(Duration::MAX)
}

fn invalid(why: &str) -> JsValue {
    let error = js_sys::Error::new(why);
    error.set_name(Status::InvalidArgument.name());
    error.into()
}
