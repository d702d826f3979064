//! What a task of JavaScript gets.

use crate::millis;
use crate::options::Options;
use asx_runtime::{Cancelled, Cx, Scope, Task, Why};
use asx_web::js::{AbortGuard, AbortSignal, Handles, PromiseError};
use asx_web::js::{abortable, cancel_on_abort, error_of};
use js_sys::{Function, Promise};
use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Runs a function of JavaScript as the body of a task: until its promise is settled and all that
/// it started has ended.
pub(crate) async fn run(cx: Cx, handles: Handles, body: Function) -> Result<JsValue, JsValue> {
    let inside = cx.clone();
    let ended: Result<Result<JsValue, JsValue>, Cancelled> = cx
        .scope(async |s: Scope<Cancelled>| {
            let children = Children::default();
            let mut guard = None;
            let begin = |signal: &AbortSignal| {
                // The body waits for what it started, so that is to stop too.
                let inside_it = children.clone();
                guard = Some(cancel_on_abort(signal, move |why| cancel_all(&inside_it, why)));
                let context = Context {
                    cx: inside.clone(),
                    scope: s.clone(),
                    handles: handles.clone(),
                    signal: signal.clone(),
                    children,
                };
                let given = body.call1(&JsValue::UNDEFINED, &context.into())?;
                Ok(Promise::resolve(&given))
            };
            let ended = abortable(&inside, &handles, begin).await;
            drop(guard);
            Ok(ended.map_err(|error| match error {
                PromiseError::Rejected(with) => with,
                PromiseError::Cancelled(cancelled) => error_of(&cancelled),
            }))
        })
        .await;
    ended.unwrap_or_else(|cancelled| Err(error_of(&cancelled)))
}

/// A task's context for JavaScript.
#[wasm_bindgen]
pub struct Context {
    cx: Cx,
    scope: Scope<Cancelled>,
    handles: Handles,
    signal: AbortSignal,
    /// What was started here and may live.
    children: Children,
}

type Children = Rc<RefCell<Vec<Rc<Task<(), Cancelled>>>>>;

fn cancel_all(children: &Children, why: Why) {
    let all = std::mem::take(&mut *children.borrow_mut());
    for child in all {
        child.cancel(why.clone());
    }
}

#[wasm_bindgen]
impl Context {
    /// The number of the task.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> f64 {
        self.cx.id().ordinal() as f64
    }

    /// Aborts when the task is asked to stop.
    #[wasm_bindgen(getter)]
    pub fn signal(&self) -> AbortSignal {
        self.signal.clone()
    }

    /// The time, in milliseconds.
    pub fn now(&self) -> f64 {
        self.cx.now().as_nanos() as f64 / 1e6
    }

    /// A promise of a later time.
    pub fn sleep(&self, ms: f64) -> Promise {
        self.child(Options::named("sleep"), async move |cx: Cx| {
            let slept = cx.sleep(millis(ms)).await;
            slept.map(|()| JsValue::UNDEFINED).map_err(|cancelled| error_of(&cancelled))
        })
    }

    /// Lets everything that is runnable go first.
    #[wasm_bindgen(js_name = yieldNow)]
    pub fn yield_now(&self) -> Promise {
        self.child(Options::named("yield"), async |cx: Cx| {
            cx.yield_now().await;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Starts a task inside this one; `options` as for tasks of the runtime.
    pub fn spawn(&self, body: Function, options: &JsValue) -> Result<Promise, JsValue> {
        let options = Options::read(options, "task")?;
        let handles = self.handles.clone();
        Ok(self.child(options, async move |cx: Cx| run(cx, handles, body).await))
    }

    /// Asks everything that was started here to stop; this task goes on.
    #[wasm_bindgen(js_name = cancelChildren)]
    pub fn cancel_children(&self, why: Option<String>) {
        let why = why.unwrap_or_else(|| "cancelled".to_owned());
        cancel_all(&self.children, why.into());
    }
}

impl Context {
    /// A task inside this one as a promise.
    fn child<F, B>(&self, options: Options, body: F) -> Promise
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<JsValue, JsValue>> + 'static,
    {
        let mut answer = None;
        let promise = Promise::new(&mut |resolve, reject| answer = Some(Answer(resolve, reject)));
        let answer = Rc::new(RefCell::new(answer));
        let told = answer.clone();
        let Options { start, signal } = options;
        let mut plan = self.scope.task(start.name);
        if let Some(priority) = start.priority {
            plan = plan.priority(priority);
        }
        if let Some(limit) = start.within {
            plan = plan.within(limit);
        }
        // It goes with the task.
        let guard: Rc<RefCell<Option<AbortGuard>>> = Rc::default();
        let kept = guard.clone();
        let spawned = plan.try_spawn_local(move |cx| {
            let body = body(cx);
            async move {
                let _guard = kept;
                // Told in any case: a task that is ended by force drops this.
                let told = Told(told);
                let result = body.await;
                told.tell(result);
                Ok::<(), Cancelled>(())
            }
        });
        match spawned {
            Ok(task) => {
                let task = Rc::new(task);
                if let Some(signal) = signal {
                    let task = Rc::downgrade(&task);
                    *guard.borrow_mut() = Some(cancel_on_abort(&signal, move |why| {
                        if let Some(task) = task.upgrade() {
                            task.cancel(why);
                        }
                    }));
                }
                let mut children = self.children.borrow_mut();
                children.retain(|child| !child.is_finished());
                children.push(task);
            }
            Err(status) => {
                let error = js_sys::Error::new(status.text());
                error.set_name(status.name());
                Told(answer).tell(Err(error.into()));
            }
        }
        promise
    }
}

/// How a promise is settled.
struct Answer(Function, Function);

struct Told(Rc<RefCell<Option<Answer>>>);

impl Told {
    fn tell(&self, result: Result<JsValue, JsValue>) {
        let Some(Answer(resolve, reject)) = self.0.borrow_mut().take() else { return };
        // Neither runs code of the page now, so neither can fail.
        let _ = match result {
            Ok(value) => resolve.call1(&JsValue::UNDEFINED, &value),
            Err(error) => reject.call1(&JsValue::UNDEFINED, &error),
        };
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.tell(Err(js_sys::Error::new("the task was ended by force").into()));
    }
}
