//! The show: tasks of three lanes, cancels, and bounds that can be moved while it runs.

use crate::{trace, work};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::Lane;
use asx_runtime::{Cancelled, Cx, Recording, Scope, Task};
use asx_web::js::{Handles, js_error, open};
use asx_web::{Config, Program, PumpConfig, Runtime};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use wasm_bindgen::prelude::*;

/// The page's own runtime.
#[wasm_bindgen]
pub struct Demo {
    runtime: Runtime,
    _program: Program<()>,
    scope: Scope<Cancelled>,
    tasks: Rc<RefCell<Vec<Task<(), Cancelled>>>>,
}

/// Events that are retained: the last minutes of the show.
const RETAINED: usize = 50_000;

#[wasm_bindgen]
impl Demo {
    /// A show with nothing in it, over these handles; over the page's own if there are none.
    #[wasm_bindgen(constructor)]
    pub fn new(handles: JsValue) -> Result<Demo, JsValue> {
        let handles = match handles.is_undefined() {
            true => Handles::of_global(),
            false => Handles::of_object(handles),
        };
        let mut config = Config { host_events: 2_000, ..Config::default() };
        config.settings.journal = Some(Recording::new(RETAINED, WhenFull::Overwrite));
        let runtime = open(&handles, config);
        let slot: Rc<RefCell<Option<Scope<Cancelled>>>> = Rc::default();
        let to = slot.clone();
        let program = runtime.start(async move |cx: Cx| {
            let _: Result<(), Cancelled> = cx
                .scope(async |s: Scope<Cancelled>| {
                    *to.borrow_mut() = Some(s.clone());
                    cx.cancelled().await;
                    Ok(())
                })
                .await;
        });
        let program = program.map_err(|error| js_error(&error))?;
        // The first drain opens the scope.
        runtime.pump().map_err(|error| js_error(&error))?;
        let scope = slot.borrow_mut().take().ok_or("the show did not open")?;
        Ok(Demo { runtime, _program: program, scope, tasks: Rc::default() })
    }

    /// How long drains go on; `naive`: without an end, as executors do that know no page.
    pub fn configure(&self, steps: u32, slice_ms: f64, naive: bool) -> bool {
        let config = self.runtime.pump_config();
        let time = Some(Duration::from_secs_f64(slice_ms.clamp(0.1, 1000.0) / 1e3));
        self.runtime.configure(match naive {
            true => {
                PumpConfig { microtask_burst_limit: u32::MAX, burst_time_limit: None, ..config }
            }
            false => PumpConfig { microtask_burst_limit: steps, burst_time_limit: time, ..config },
        })
    }

    /// Starts tasks that compute: `polls` polls of `rounds` each. With a deadline they are in the
    /// timed lane.
    pub fn compute(&self, count: u32, polls: u32, rounds: u32, deadline_ms: u32) {
        for _ in 0..count {
            let body = move |cx: Cx| async move {
                for _ in 0..polls {
                    cx.checkpoint()?;
                    work::spin(rounds);
                    cx.yield_now().await;
                }
                Ok(())
            };
            let name = if deadline_ms > 0 { "timed" } else { "ready" };
            let plan = self.scope.task(name);
            let task = match deadline_ms {
                0 => plan.spawn(body),
                ms => plan.within(Duration::from_millis(ms.into())).spawn(body),
            };
            self.tasks.borrow_mut().push(task);
        }
    }

    /// Starts a family: a task with children that sleep and compute by turns, for a while.
    pub fn family(&self, children: u32, rounds: u32) {
        let body = move |cx: Cx| async move {
            let inside = cx.clone();
            inside
                .scope(async |s: Scope<Cancelled>| {
                    for child in 0..children {
                        let _task = s.task(format!("child {child}")).spawn(async move |cx: Cx| {
                            for turn in 0..40_u64 {
                                cx.sleep(Duration::from_millis(60 + turn % 7 * 25)).await?;
                                work::spin(rounds);
                            }
                            Ok(())
                        });
                    }
                    Ok(())
                })
                .await
        };
        let task = self.scope.task("parent").spawn(body);
        self.tasks.borrow_mut().push(task);
    }

    /// Starts tasks that wait, cancels them all at once, and has each clean up in some polls.
    pub fn cancel_pressure(&self, count: u32, cleanup: u32, rounds: u32) {
        let body = move |cx: Cx| async move {
            let why = cx.cancelled().await;
            for _ in 0..cleanup {
                work::spin(rounds);
                cx.yield_now().await;
            }
            Err(why)
        };
        for _ in 0..count {
            let task: Task<(), Cancelled> = self.scope.task("cancelled").spawn(body);
            task.cancel("pressure");
        }
    }

    /// Asks everything the page has started to stop.
    pub fn cancel_all(&self) -> usize {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        tasks.iter().filter(|task| task.cancel("the page")).count()
    }

    /// Lanes, pump and counts as JSON.
    pub fn stats(&self) -> String {
        self.tasks.borrow_mut().retain(|task| !task.is_finished());
        let [cancel, timed, ready] = Lane::ALL.map(|lane| self.runtime.queued(lane));
        let (info, certificate) = (self.runtime.pump_info(), self.runtime.certificate());
        format!(
            "{{\"cancel\":{cancel},\"timed\":{timed},\"ready\":{ready},\"turn\":{},\"batch\":{},\
             \"state\":\"{:?}\",\"done\":[{},{},{},{}],\"timers\":{},\"events\":{}}}",
            info.turn,
            info.batch,
            info.state,
            certificate.cancel,
            certificate.timed,
            certificate.ready,
            certificate.fallback,
            self.runtime.core().live_timers(),
            self.runtime.events(),
        )
    }

    /// The tree of regions and tasks as JSON.
    pub fn tree(&self) -> String {
        self.runtime.dump().to_json()
    }

    /// The host events after a number, as a JSON list.
    pub fn host_events(&self, after: f64) -> String {
        let events = self.runtime.host_events(after as u64);
        let events: Vec<_> = events.iter().map(asx_web::HostEvent::to_json).collect();
        format!("[{}]", events.join(","))
    }

    /// What is recorded, as a trace.
    pub fn trace(&self) -> Result<Vec<u8>, JsValue> {
        trace::lines(&self.runtime, "demo").map_err(|error| error.into())
    }

    /// The digest of everything since the show began, in hexadecimal.
    pub fn digest(&self) -> String {
        self.runtime.recorded().map_or(String::new(), |it| format!("{:016x}", it.digest))
    }

    /// How many events that is the digest of.
    pub fn events(&self) -> f64 {
        self.runtime.events() as f64
    }
}

/// The report page of a trace.
#[wasm_bindgen]
pub fn report(trace: &[u8]) -> Result<String, JsValue> {
    trace::report(trace).map_err(|error| error.into())
}
