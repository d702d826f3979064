//! Programs whose whole journal is compared: under a clock that stands still, with the page's real
//! microtasks and messages, they leave the same digest as without a browser.

use asx_kernel::journal::WhenFull;
use asx_runtime::{Cancelled, Cx, Recording, Scope};
use asx_web::js::{AbortSignal, EventTarget, Events, Overflow, PromiseError, js_error};
use asx_web::js::{Handles, abortable, cancel_on_abort, open, promise_of, settled, wait};
use asx_web::page::Page;
use asx_web::{Config, Runtime};
use js_sys::{Array, Promise};
use std::cell::RefCell;
use std::time::Duration;
use wasm_bindgen::prelude::*;

thread_local! {
    /// The runtimes of tests that look at them afterwards.
    static OPENED: RefCell<Vec<Runtime>> = const { RefCell::new(Vec::new()) };
}

fn config(burst: u32) -> Config {
    let mut config = Config { seed: Some(7), host_events: 10_000, ..Config::default() };
    config.settings.journal = Some(Recording::new(100_000, WhenFull::Overwrite));
    config.pump.microtask_burst_limit = burst;
    config.pump.burst_time_limit = None;
    // Some tests sleep for longer than the host's timers can be set at once.
    config.settings.wheel.max_timer_duration = Duration::MAX;
    config
}

/// Cancels in the midst of other work.
async fn pressure(cx: Cx) -> Result<JsValue, JsValue> {
    let done: Result<(), Cancelled> = cx
        .scope(async |s: Scope<Cancelled>| {
            let waits = |cx: Cx| async move { Err(cx.cancelled().await) };
            let waiters: Vec<_> = (0..40).map(|_| s.spawn(waits)).collect();
            let _busy = s.spawn(async |cx: Cx| {
                for _ in 0..500 {
                    cx.yield_now().await;
                }
                Ok(())
            });
            cx.yield_now().await;
            for task in &waiters {
                let _: &asx_runtime::Task<(), Cancelled> = task;
                task.cancel("enough");
            }
            Ok(())
        })
        .await;
    done.map(|()| JsValue::UNDEFINED).map_err(|cancelled| cancelled.to_string().into())
}

/// The digest of `pressure` without a browser.
#[wasm_bindgen]
pub fn digest_without_browser(burst: u32) -> String {
    let (page, runtime) = Page::open(config(burst));
    let program = runtime.start(pressure);
    page.run(&runtime);
    drop(program);
    digest(&runtime)
}

fn digest(runtime: &Runtime) -> String {
    runtime.recorded().map_or(String::new(), |recorded| format!("{:016x}", recorded.digest))
}

/// The same on the page's own event loop, over handles whose clock stands still.
#[wasm_bindgen]
pub fn run_pressure(handles: JsValue, burst: u32) -> Result<Promise, JsValue> {
    let runtime = open(&Handles::of_object(handles), config(burst));
    let program = runtime.start(pressure).map_err(|error| js_error(&error))?;
    let promise = promise_of(&program);
    OPENED.with(|opened| opened.borrow_mut().push(runtime));
    Ok(promise)
}

/// What the last runtime of these tests recorded: digest, host turns, and host events as JSON.
#[wasm_bindgen]
pub fn last_run() -> Array {
    OPENED.with(|opened| {
        let opened = opened.borrow();
        let Some(runtime) = opened.last() else { return Array::new() };
        let events = runtime.host_events(0);
        let events: Vec<_> = events.iter().map(asx_web::HostEvent::to_json).collect();
        let turns = runtime.pump_info().turn;
        let result = Array::new();
        result.push(&digest(runtime).into());
        result.push(&(turns as f64).into());
        result.push(&format!("[{}]", events.join(",")).into());
        result
    })
}

/// Takes a capability from the last runtime, or gives it back.
#[wasm_bindgen]
pub fn set_granted(name: &str, granted: bool) -> bool {
    let Some(capability) = asx_web::Capability::from_name(name) else { return false };
    OPENED.with(|opened| {
        opened.borrow().last().inspect(|runtime| match granted {
            true => runtime.grant(capability),
            false => runtime.revoke(capability),
        });
    });
    true
}

/// Ends the last runtime, with whatever lives in it.
#[wasm_bindgen]
pub fn drop_last() {
    let last = OPENED.with(|opened| opened.borrow_mut().pop());
    drop(last);
}

/// A task that ends its own runtime while it is polled, and then waits for what cannot come.
#[wasm_bindgen]
pub fn drop_inside(handles: JsValue) -> Result<Promise, JsValue> {
    run(handles, async move |cx: Cx, _| {
        drop_last();
        cx.yield_now().await;
        Err(asx_web::js::error_of(&cx.cancelled().await))
    })
}

/// How many pages of memory the module has.
#[wasm_bindgen]
pub fn memory_pages() -> usize {
    core::arch::wasm32::memory_size(0)
}

fn run<F>(handles: JsValue, body: impl FnOnce(Cx, Handles) -> F) -> Result<Promise, JsValue>
where
    F: Future<Output = Result<JsValue, JsValue>> + 'static,
{
    let handles = Handles::of_object(handles);
    let runtime = open(&handles, config(256));
    let program = runtime.start(|cx| body(cx, handles)).map_err(|error| js_error(&error))?;
    let promise = promise_of(&program);
    OPENED.with(|opened| opened.borrow_mut().push(runtime));
    Ok(promise)
}

fn said(error: PromiseError) -> JsValue {
    match error {
        PromiseError::Rejected(with) => with,
        PromiseError::Cancelled(cancelled) => asx_web::js::error_of(&cancelled),
    }
}

/// Sleeps, in milliseconds.
#[wasm_bindgen]
pub fn sleep(handles: JsValue, ms: f64) -> Result<Promise, JsValue> {
    run(handles, async move |cx: Cx, _| {
        let slept = cx.sleep(Duration::from_secs_f64(ms / 1e3)).await;
        slept.map(|()| JsValue::from_f64(ms)).map_err(|why| asx_web::js::error_of(&why))
    })
}

/// Waits for a promise in a task.
#[wasm_bindgen]
pub fn await_promise(handles: JsValue, promise: Promise) -> Result<Promise, JsValue> {
    run(handles, async move |cx: Cx, _| wait(&cx, &promise).await.map_err(said))
}

/// Fetches, and is cancelled when `signal` aborts: the request then aborts too.
#[wasm_bindgen]
pub fn fetch_until(handles: JsValue, url: String, signal: AbortSignal) -> Result<Promise, JsValue> {
    run(handles, async move |cx: Cx, handles: Handles| {
        let fetched: Result<JsValue, Cancelled> = cx
            .scope(async |s: Scope<Cancelled>| {
                let scope = s.clone();
                let _guard = cancel_on_abort(&signal, move |why| scope.cancel(why));
                let got = handles.fetch(&cx, &url.as_str().into()).await;
                Ok(got.unwrap_or_else(said))
            })
            .await;
        fetched.map_err(|why| asx_web::js::error_of(&why))
    })
}

/// A task that is cancelled aborts what it waits for, and waits until that has ended.
#[wasm_bindgen]
pub fn abort_by_timeout(handles: JsValue, begin: js_sys::Function) -> Result<Promise, JsValue> {
    run(handles, async move |cx: Cx, handles: Handles| {
        let begin = |signal: &AbortSignal| {
            begin.call1(&JsValue::UNDEFINED, signal).map(|promise| promise.unchecked_into())
        };
        let limit = Duration::from_millis(20);
        let waited: Result<JsValue, Cancelled> = cx
            .timeout(limit, async |cx: &Cx| {
                abortable(cx, &handles, begin).await.map_err(|error| match error {
                    PromiseError::Cancelled(cancelled) => cancelled,
                    PromiseError::Rejected(_) => unreachable!("it is cancelled first"),
                })
            })
            .await;
        waited.map_err(|why| asx_web::js::error_of(&why))
    })
}

/// Takes events one by one, a turn for each: how many, and how many were lost.
#[wasm_bindgen]
pub fn take_events(
    handles: JsValue,
    target: EventTarget,
    kind: String,
    count: u32,
    after: Promise,
) -> Result<Promise, JsValue> {
    run(handles, async move |cx: Cx, _| {
        let mut events = Events::new(&target, &kind, 4, Overflow::DropNewest);
        settled(&after).await?;
        for _ in 0..count {
            events.next(&cx).await.map_err(|why| asx_web::js::error_of(&why))?;
        }
        Ok(JsValue::from_f64(events.lost() as f64))
    })
}

/// A task that traps.
#[wasm_bindgen]
pub fn trap(handles: JsValue) -> Result<Promise, JsValue> {
    run(handles, async |cx: Cx, _| {
        cx.yield_now().await;
        std::arch::wasm32::unreachable()
    })
}

/// Starts a program with `start`, which only one may.
#[wasm_bindgen]
pub fn start_once(ms: u32) -> Result<(), JsValue> {
    let started = asx_web::start(async move |cx: Cx| {
        let _ = cx.sleep(Duration::from_millis(ms.into())).await;
    });
    started.map(drop).map_err(|error| js_error(&error))
}
