//! The show: tasks of three lanes, cancels, and bounds that can be moved while it runs.

use crate::trace::{self, Names};
use crate::work;
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::Lane;
use asx_runtime::{Cancelled, Cx, Recording, Scope, Task};
use asx_web::js::{Handles, js_error, open};
use asx_web::{Config, Program, PumpConfig, Runtime, Start};
use std::cell::{Cell, RefCell};
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
    names: Names,
    /// How many of each kind there were: tasks that compute, with deadlines, parents, cancelled.
    count: Cell<[u32; 4]>,
}

#[derive(Clone, Copy)]
enum Made {
    Compute,
    Deadline,
    Parent,
    Cancelled,
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
        let names = Names::default();
        let show = Start { name: "show".into(), ..Start::default() };
        let named = names.clone();
        let program = runtime.start_as(&show, async move |cx: Cx| {
            named.add(cx.id(), "show");
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
        let tasks = Rc::default();
        let count = Cell::default();
        Ok(Demo { runtime, _program: program, scope, tasks, names, count })
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
            let name = match deadline_ms {
                0 => format!("compute {}", self.next(Made::Compute)),
                _ => format!("deadline {}", self.next(Made::Deadline)),
            };
            let plan = self.scope.task(name.as_str());
            let task = match deadline_ms {
                0 => plan.spawn(body),
                ms => plan.within(Duration::from_millis(ms.into())).spawn(body),
            };
            self.names.add(task.id(), &name);
            self.tasks.borrow_mut().push(task);
        }
    }

    /// Starts a family: a task with children that sleep and compute by turns, for a while.
    pub fn family(&self, children: u32, rounds: u32) {
        let family = self.next(Made::Parent);
        let names = self.names.clone();
        let body = move |cx: Cx| async move {
            let inside = cx.clone();
            inside
                .scope(async |s: Scope<Cancelled>| {
                    for child in 1..=children {
                        let name = format!("child {family}.{child}");
                        let task = s.task(name.as_str()).spawn(async move |cx: Cx| {
                            for turn in 0..40_u64 {
                                cx.sleep(Duration::from_millis(60 + turn % 7 * 25)).await?;
                                work::spin(rounds);
                            }
                            Ok(())
                        });
                        names.add(task.id(), &name);
                    }
                    Ok(())
                })
                .await
        };
        let name = format!("parent {family}");
        let task = self.scope.task(name.as_str()).spawn(body);
        self.names.add(task.id(), &name);
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
            let name = format!("cancelled {}", self.next(Made::Cancelled));
            let task: Task<(), Cancelled> = self.scope.task(name.as_str()).spawn(body);
            self.names.add(task.id(), &name);
            task.cancel("pressure");
        }
    }

    /// Asks everything the page has started to stop. Tasks that have ended are not asked: which of
    /// them are still on the list depends on when the page last looked, which is on no tape.
    pub fn cancel_all(&self) -> usize {
        let mut tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        tasks.retain(|task| !task.is_finished());
        tasks.iter().filter(|task| task.cancel("the page")).count()
    }

    /// Lanes, pump and counts as JSON.
    pub fn stats(&self) -> String {
        self.tasks.borrow_mut().retain(|task| !task.is_finished());
        let [cancel, timed, ready] = Lane::ALL.map(|lane| self.runtime.queued(lane));
        let info = self.runtime.pump_info();
        let certificate = self.runtime.certificate();
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
        trace::lines(&self.runtime, "demo", &self.names).map_err(|error| error.into())
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

impl Demo {
    /// The number of another task of a kind.
    fn next(&self, made: Made) -> u32 {
        let mut count = self.count.get();
        count[made as usize] += 1;
        self.count.set(count);
        count[made as usize]
    }
}

/// The report page of a trace.
#[wasm_bindgen]
pub fn report(trace: &[u8]) -> Result<String, JsValue> {
    trace::report(trace).map_err(|error| error.into())
}
