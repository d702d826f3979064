//! Promises as futures, programs as promises.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use asx_kernel::cancel::Kind;
use asx_runtime::{Cancelled, Cx, Operation, TaskError};
use js_sys::Promise;
use wasm_bindgen::prelude::*;

use crate::program::{Ended, Program};

/// Why waiting for a promise gave no value.
#[derive(Debug)]
pub enum PromiseError {
    /// It was rejected with this.
    Rejected(JsValue),
    /// The task was asked to stop.
    Cancelled(Cancelled),
}

impl fmt::Display for PromiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PromiseError::Rejected(with) => write!(f, "the promise was rejected: {with:?}"),
            PromiseError::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl std::error::Error for PromiseError {}

/// A callback of JavaScript.
type Callback = Closure<dyn FnMut(JsValue)>;

#[derive(Default)]
struct Slot {
    result: Option<Result<JsValue, JsValue>>,
    waker: Option<Waker>,
    /// What the promise calls. It keeps this slot until it is settled, whoever waits: JavaScript
    /// must never call what is gone.
    callbacks: Option<[Callback; 2]>,
}

impl Slot {
    fn settle(slot: &Rc<RefCell<Slot>>, result: Result<JsValue, JsValue>) {
        let (waker, callbacks) = {
            let mut slot = slot.borrow_mut();
            slot.result = Some(result);
            (slot.waker.take(), slot.callbacks.take())
        };
        // Never inside the borrow.
        drop(callbacks);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A promise as a future, whatever was said to the task.
pub fn settled(promise: &Promise) -> impl Future<Output = Result<JsValue, JsValue>> + use<> {
    let slot: Rc<RefCell<Slot>> = Rc::default();
    let ok = slot.clone();
    let err = slot.clone();
    let done = Closure::once(move |value| Slot::settle(&ok, Ok(value)));
    let failed = Closure::once(move |error| Slot::settle(&err, Err(error)));
    // What `then` gives is the promise of nothing, and nobody's.
    drop(promise.then2(&done, &failed));
    slot.borrow_mut().callbacks = Some([done, failed]);
    poll_fn(move |cx| {
        if let Some(result) = slot.borrow_mut().result.take() {
            return Poll::Ready(result);
        }
        // Cloned and dropped outside the borrow.
        let waker = cx.waker().clone();
        let old = slot.borrow_mut().waker.replace(waker);
        drop(old);
        Poll::Pending
    })
}

/// A promise as a cancel-checked future: when the task is asked to stop it waits no longer, and the
/// promise goes on without it.
pub async fn wait(cx: &Cx, promise: &Promise) -> Result<JsValue, PromiseError> {
    let mut settled = Box::pin(settled(promise));
    let settled = Operation::run(cx, |context| settled.as_mut().poll(context)).await;
    settled.map_err(PromiseError::Cancelled)?.map_err(PromiseError::Rejected)
}

/// A program as a promise: of its value when everything in it has ended, or of why there is none.
pub fn promise_of(program: &Program<Result<JsValue, JsValue>>) -> Promise {
    let mut ends = None;
    let promise = Promise::new(&mut |resolve, reject| ends = Some((resolve, reject)));
    program.on_end(move |ended| {
        let Some((resolve, reject)) = ends else { return };
        let (tell, what) = match ended {
            Ended::Value(Ok(value)) => (resolve, value),
            Ended::Value(Err(error)) => (reject, error),
            Ended::Stopped(stop) => (reject, stop_error(&stop)),
            Ended::Lost(error) => (reject, super::js_error(&error)),
        };
        let _ = tell.call1(&JsValue::UNDEFINED, &what);
    });
    promise
}

/// A cancel as JavaScript sees it: the `DOMException` that the platform rejects with in such a
/// case, `TimeoutError` if time was over and `AbortError` else. Its `kind` is that of the cancel it
/// all began with, and its message says so to people.
pub fn error_of(cancelled: &Cancelled) -> JsValue {
    let root = cancelled.reason().chain().last().unwrap_or(cancelled.reason());
    let name = match root.kind {
        Kind::Timeout | Kind::Deadline => "TimeoutError",
        _ => "AbortError",
    };
    let message = root.message.as_deref().unwrap_or(match root.kind {
        Kind::Timeout => "the task timed out",
        Kind::Deadline => "the task was not done by its deadline",
        Kind::PollQuota => "the task was polled as often as it may be",
        Kind::CostBudget => "the task has spent what it may spend",
        Kind::FailFast => "a task beside it failed",
        Kind::RaceLost => "another branch was quicker",
        Kind::LinkedExit => "a task it is linked to has ended",
        Kind::ParentCancelled => "the task around it has ended",
        Kind::ResourceUnavailable => "something the task needs is not to be had",
        Kind::Shutdown => "the runtime is shutting down",
        Kind::User => "the task was cancelled",
    });
    super::sys::cancel_error(message, name, root.kind.name())
}

fn stop_error<E: fmt::Debug>(stop: &TaskError<E>) -> JsValue {
    match stop {
        TaskError::Cancelled(cancelled) => error_of(cancelled),
        other => js_sys::Error::new(&format!("{other:?}")).into(),
    }
}
