//! Real pages and workers: the event loop of a browser as the host.
//!
//! * [`start`], [`open`]: a runtime over the page's own facilities, or over those it is given;
//! * [`Handles`]: the facilities, as values: what is not in there cannot be reached;
//! * [`settled`], [`wait`]: promises as futures; [`promise_of`]: programs as promises;
//! * [`abortable`], [`Handles::fetch`], [`cancel_on_abort`]: abort signals and cancels, both ways;
//! * [`Events`]: events as a stream that never grows beyond its bound.

mod abort;
mod calls;
mod events;
mod promise;
mod sys;

pub use abort::{AbortGuard, abortable, cancel_on_abort};
pub use calls::Handles;
pub use events::{Events, Overflow};
pub use promise::{PromiseError, error_of, promise_of, settled, wait};
pub use sys::{AbortController, AbortSignal, EventTarget};

use std::cell::RefCell;
use std::future::Future;

use asx_runtime::Cx;
use wasm_bindgen::JsValue;

use crate::error::WebError;
use crate::program::Program;
use crate::runtime::{Config, Runtime};

thread_local! {
    /// The runtime of this page or worker, while its program goes on.
    static CURRENT: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// Starts a program in this page or worker, over the page's own clock, randomness, timers and
/// messages. It goes on by itself; the handle may be dropped.
///
/// # Errors
/// While another program of `start` goes on: there is one per page.
pub fn start<F, B, T>(body: F) -> Result<Program<T>, WebError>
where
    F: FnOnce(Cx) -> B,
    B: Future<Output = T> + 'static,
    T: 'static,
{
    start_with(&Handles::of_global(), Config::default(), body)
}

/// The same over these handles.
pub fn start_with<F, B, T>(
    handles: &Handles,
    config: Config,
    body: F,
) -> Result<Program<T>, WebError>
where
    F: FnOnce(Cx) -> B,
    B: Future<Output = T> + 'static,
    T: 'static,
{
    let current = CURRENT.with(|current| current.borrow().clone());
    if let Some(current) = current {
        return Err(current.started_twice());
    }
    let runtime = open(handles, config);
    let program = runtime.start(body)?;
    // The page lets go of the runtime when its drain is over.
    program.finally(|| drop(CURRENT.with(|current| current.borrow_mut().take())));
    CURRENT.with(|current| current.borrow_mut().replace(runtime));
    Ok(program)
}

/// A runtime over these handles. Several may live side by side; each ends what lives in it when it
/// is dropped.
pub fn open(handles: &Handles, config: Config) -> Runtime {
    calls::open(handles, config)
}

/// The runtime that [`start`] started, while its program goes on.
pub fn current() -> Option<Runtime> {
    CURRENT.with(|current| current.borrow().clone())
}

/// An error as JavaScript sees it: an `Error` with the registry's name as its `name`.
pub fn js_error(error: &(impl std::fmt::Display + asx_kernel::status::Coded)) -> JsValue {
    let js = js_sys::Error::new(&error.to_string());
    js.set_name(error.status().name());
    js.into()
}
