//! Abort signals and cancels, both ways.

use std::future::{Future, poll_fn};
use std::task::{Poll, ready};

use asx_kernel::cancel::Kind;
use asx_runtime::{Cx, Operation, Why};
use js_sys::{Object, Promise, Reflect};
use wasm_bindgen::prelude::*;

use super::calls::Handles;
use super::promise::{PromiseError, error_of, settled};
use super::sys::{AbortController, AbortSignal, EventTarget};

/// Waits for a promise that can be aborted. When the task is asked to stop, the signal aborts with
/// the reason, and the task goes on waiting until the promise is settled: nothing is left behind.
///
/// `begin` gets the signal and makes the promise. It is not called if the task is asked to stop
/// already, or if it is awaited in another task than that of the context.
pub async fn abortable(
    cx: &Cx,
    handles: &Handles,
    begin: impl FnOnce(&AbortSignal) -> Result<Promise, JsValue>,
) -> Result<JsValue, PromiseError> {
    let mut operation = Operation::new(cx);
    let mut begin = Some(begin);
    let mut begun = None;
    let mut cancelled = None;
    poll_fn(|context| {
        if cancelled.is_none()
            && let Err(why) = ready!(operation.poll_proceed(context))
        {
            let Some((controller, _)) = &begun else {
                return Poll::Ready(Err(PromiseError::Cancelled(why)));
            };
            AbortController::abort(controller, &error_of(&why));
            cancelled = Some(why);
        }
        if let Some(begin) = begin.take() {
            let controller = handles.given().abort_controller().map_err(PromiseError::Rejected)?;
            let promise = begin(&controller.signal()).map_err(PromiseError::Rejected)?;
            begun = Some((controller, Box::pin(settled(&promise))));
        }
        let Some((_, settled)) = &mut begun else { return Poll::Pending };
        match (settled.as_mut().poll(context), &cancelled) {
            (Poll::Pending, _) => operation.pending(context),
            // What came all the same is given up, as the reason says.
            (Poll::Ready(_), Some(why)) => Poll::Ready(Err(PromiseError::Cancelled(why.clone()))),
            (Poll::Ready(result), None) => Poll::Ready(result.map_err(PromiseError::Rejected)),
        }
    })
    .await
}

impl Handles {
    /// Fetches, with the cancel of the task as the abort of the request.
    ///
    /// # Errors
    /// A cancel, or whatever `fetch` rejects with; also if the page gave no `fetch`.
    pub async fn fetch(&self, cx: &Cx, request: &JsValue) -> Result<JsValue, PromiseError> {
        abortable(cx, self, |signal| {
            let init = Object::new();
            Reflect::set(&init, &"signal".into(), signal)?;
            self.given().fetch(request, &init)
        })
        .await
    }
}

/// Has an abort of `signal` cancel something, at once if it is aborted already; until the guard is
/// dropped.
pub fn cancel_on_abort(signal: &AbortSignal, cancel: impl Fn(Why) + 'static) -> AbortGuard {
    let said = |signal: &AbortSignal| {
        let reason = signal.reason();
        let text = |name: &str| Reflect::get(&reason, &name.into()).ok()?.as_string();
        // What `AbortSignal.timeout` aborts with.
        let kind = match text("name").as_deref() {
            Some("TimeoutError") => Kind::Timeout,
            _ => Kind::User,
        };
        let message = text("message").or_else(|| reason.as_string());
        message.map_or(Why::from(kind), |message| Why::from(kind).message(message))
    };
    if signal.aborted() {
        cancel(said(signal));
        return AbortGuard { listening: None };
    }
    let target: EventTarget = signal.clone().unchecked_into();
    let watched = signal.clone();
    let listener = Closure::<dyn Fn()>::new(move || cancel(said(&watched)));
    target.add_event_listener("abort", listener.as_ref().unchecked_ref());
    AbortGuard { listening: Some((target, listener)) }
}

/// Ends a [`cancel_on_abort`] when it is dropped.
pub struct AbortGuard {
    listening: Option<(EventTarget, Closure<dyn Fn()>)>,
}

impl Drop for AbortGuard {
    fn drop(&mut self) {
        if let Some((target, listener)) = &self.listening {
            target.remove_event_listener("abort", listener.as_ref().unchecked_ref());
        }
    }
}

impl std::fmt::Debug for AbortGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AbortGuard({})", self.listening.is_some())
    }
}
