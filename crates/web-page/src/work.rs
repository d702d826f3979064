//! The same work on three executors: this one, this one without bounds, and `spawn_local` of
//! wasm-bindgen-futures.

use asx_runtime::{Cancelled, Cx, Scope};
use asx_web::js::{Handles, open, promise_of};
use asx_web::{Config, Runtime};
use js_sys::Promise;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::hint::black_box;
use std::rc::Rc;
use std::task::Poll;
use wasm_bindgen::prelude::*;

/// Keeps the processor busy; the page finds out how many rounds make a microsecond.
#[wasm_bindgen]
pub fn spin(rounds: u32) -> u32 {
    (0..rounds).fold(1_u32, |x, n| black_box(x).wrapping_mul(0x9E37_79B9) ^ n)
}

/// Runs `tasks` tasks of `polls` polls, each of `rounds`, and says when all are done.
#[wasm_bindgen]
pub fn work(executor: &str, tasks: u32, polls: u32, rounds: u32) -> Promise {
    match executor {
        "spawn_local" => spawn_local(tasks, polls, rounds),
        "unbounded" => on_asx(unbounded(), tasks, polls, rounds),
        _ => on_asx(Config::default(), tasks, polls, rounds),
    }
}

/// Drains without an end, as executors do that know nothing of the page.
pub(crate) fn unbounded() -> Config {
    let mut config = Config::default();
    config.pump.microtask_burst_limit = u32::MAX;
    config.pump.burst_time_limit = None;
    config
}

fn on_asx(config: Config, tasks: u32, polls: u32, rounds: u32) -> Promise {
    let runtime = open(&Handles::of_global(), config);
    let body = async move |cx: Cx| {
        let done: Result<(), Cancelled> = cx
            .scope(async |s: Scope<Cancelled>| {
                for _ in 0..tasks {
                    let _task = s.spawn(async move |cx: Cx| {
                        for _ in 0..polls {
                            spin(rounds);
                            cx.yield_now().await;
                        }
                        Ok(())
                    });
                }
                Ok(())
            })
            .await;
        done.map(|()| JsValue::UNDEFINED).map_err(|cancelled| cancelled.to_string().into())
    };
    match runtime.start(body) {
        Ok(program) => {
            // The runtime lives until its program is over.
            let promise = promise_of(&program);
            KEPT.with(|kept| kept.borrow_mut().replace(runtime));
            promise
        }
        Err(error) => Promise::reject(&asx_web::js::js_error(&error)),
    }
}

thread_local! {
    /// The runtime of the last measurement.
    static KEPT: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

fn spawn_local(tasks: u32, polls: u32, rounds: u32) -> Promise {
    let left = Rc::new(Cell::new(tasks));
    let resolve: Rc<RefCell<Option<js_sys::Function>>> = Rc::default();
    let to = resolve.clone();
    let promise = Promise::new(&mut |done, _| *to.borrow_mut() = Some(done));
    for _ in 0..tasks {
        let left = left.clone();
        let resolve = resolve.clone();
        wasm_bindgen_futures::spawn_local(async move {
            for _ in 0..polls {
                spin(rounds);
                yield_now().await;
            }
            left.set(left.get() - 1);
            if left.get() == 0
                && let Some(resolve) = resolve.borrow_mut().take()
            {
                let _ = resolve.call0(&JsValue::UNDEFINED);
            }
        });
    }
    promise
}

fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}
