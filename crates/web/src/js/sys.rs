//! What is called of JavaScript.

#![allow(missing_docs, reason = "they are JavaScript's")]

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/js/host.js")]
extern "C" {
    #[wasm_bindgen(js_name = ofGlobal)]
    pub(super) fn of_global() -> JsValue;

    pub(super) fn has(handles: &JsValue, name: &str) -> bool;

    pub(super) fn connect(
        handles: &JsValue,
        called: &Function,
        rang: &Function,
        trapped: &Function,
    ) -> Connection;
}

#[wasm_bindgen(module = "/src/js/error.js")]
extern "C" {
    #[wasm_bindgen(js_name = cancelError)]
    pub(super) fn cancel_error(message: &str, name: &str, kind: &str) -> JsValue;
}

#[wasm_bindgen]
extern "C" {
    /// A runtime's way to its page.
    pub(super) type Connection;
    #[wasm_bindgen(method)]
    pub(super) fn microtask(this: &Connection, token: u32);
    #[wasm_bindgen(method)]
    pub(super) fn resume(this: &Connection, token: u32);
    #[wasm_bindgen(method)]
    pub(super) fn message(this: &Connection, token: u32);
    #[wasm_bindgen(method)]
    pub(super) fn timeout(this: &Connection, token: u32);
    #[wasm_bindgen(method)]
    pub(super) fn arm(this: &Connection, ms: u32, token: u32);
    #[wasm_bindgen(method)]
    pub(super) fn now(this: &Connection) -> f64;
    #[wasm_bindgen(method)]
    pub(super) fn entropy(this: &Connection) -> u64;
    #[wasm_bindgen(method)]
    pub(super) fn report(this: &Connection, line: &str);
    #[wasm_bindgen(method)]
    pub(super) fn broken(this: &Connection) -> i32;
    #[wasm_bindgen(method)]
    pub(super) fn close(this: &Connection);

    /// The handles a page gives.
    pub(super) type Given;
    #[wasm_bindgen(method, catch)]
    pub(super) fn fetch(
        this: &Given,
        request: &JsValue,
        init: &JsValue,
    ) -> Result<Promise, JsValue>;
    #[wasm_bindgen(method, catch, js_name = abortController)]
    pub(super) fn abort_controller(this: &Given) -> Result<AbortController, JsValue>;

    /// What aborts.
    #[derive(Clone)]
    pub type AbortController;
    #[wasm_bindgen(method, getter)]
    pub fn signal(this: &AbortController) -> AbortSignal;
    #[wasm_bindgen(method)]
    pub fn abort(this: &AbortController, reason: &JsValue);

    /// What tells of an abort.
    #[derive(Clone)]
    pub type AbortSignal;
    #[wasm_bindgen(method, getter)]
    pub fn aborted(this: &AbortSignal) -> bool;
    #[wasm_bindgen(method, getter)]
    pub fn reason(this: &AbortSignal) -> JsValue;

    /// What events come from.
    #[derive(Clone)]
    pub type EventTarget;
    #[wasm_bindgen(method, js_name = addEventListener)]
    pub(super) fn add_event_listener(this: &EventTarget, kind: &str, listener: &Function);
    #[wasm_bindgen(method, js_name = removeEventListener)]
    pub(super) fn remove_event_listener(this: &EventTarget, kind: &str, listener: &Function);
}
