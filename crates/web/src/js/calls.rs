//! The page's facilities, as values, and the runtime's calls of them.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use asx_kernel::pump::{Capabilities, Capability, HostCall};
use asx_kernel::time::Time;
use wasm_bindgen::prelude::*;

use super::sys::{self, Connection};
use crate::calls::HostCalls;
use crate::runtime::{Config, Inner, Runtime};

/// What a page gives a runtime: an object with `clock`, `entropy`, `timer`, `post` and `microtask`,
/// each of which may be missing and is denied then, and with `fetch` and `abortController` for who
/// wants those. `report`, if it is there, is called with each line that the runtime reports.
/// Nothing is looked for elsewhere.
#[derive(Clone, Debug)]
pub struct Handles(pub(super) JsValue);

impl Handles {
    /// The facilities of this page or worker: the one place where globals are touched.
    pub fn of_global() -> Handles {
        Handles(sys::of_global())
    }

    /// Those in an object of the page's own making.
    pub fn of_object(object: JsValue) -> Handles {
        Handles(object)
    }

    /// What is there. Without `post`, hand-offs need `timer`.
    pub fn granted(&self) -> Capabilities {
        let mut granted = Capabilities::none();
        for capability in Capability::ALL {
            if sys::has(&self.0, capability.name()) {
                granted.grant(capability);
            }
        }
        granted
    }

    /// The object itself.
    pub fn as_object(&self) -> &JsValue {
        &self.0
    }

    pub(super) fn given(&self) -> &sys::Given {
        self.0.unchecked_ref()
    }
}

thread_local! {
    /// The connections of this thread's runtimes: values of JavaScript never leave their thread.
    static CONNECTIONS: RefCell<Connections> =
        const { RefCell::new(Connections { places: Vec::new(), vacant: Vec::new() }) };
}

/// By place; a place is used again when its runtime is gone.
struct Connections {
    places: Vec<Option<Rc<Joined>>>,
    vacant: Vec<usize>,
}

/// A connection, and what the page calls.
struct Joined {
    connection: Connection,
    _called: Closure<dyn Fn(u32)>,
    _rang: Closure<dyn Fn(u32)>,
    _trapped: Closure<dyn Fn(u32)>,
}

/// What can end a runtime from the page's side, in the order of `host.js`.
const SITES: [&str; 7] = [
    "a task trapped",
    "the page's clock failed",
    "the page's entropy failed",
    "the page's timer failed",
    "the page's post failed",
    "the page's microtask failed",
    "the page called back inside a host call",
];

/// The calls of one runtime: the place of its connection.
struct PageCalls {
    place: usize,
}

impl PageCalls {
    fn with<R>(&self, f: impl FnOnce(&Connection) -> R) -> Option<R> {
        let joined =
            CONNECTIONS.with_borrow(|all| all.places.get(self.place).cloned().flatten())?;
        Some(f(&joined.connection))
    }
}

impl HostCalls for PageCalls {
    fn call(&self, call: HostCall, token: u32) {
        self.with(|page| match call {
            HostCall::Microtask => page.microtask(token),
            HostCall::MessagePost => page.message(token),
            HostCall::TimeoutZero => page.timeout(token),
        });
    }

    fn resume(&self, token: u32) {
        self.with(|page| page.resume(token));
    }

    fn arm(&self, after_ms: u32, token: u32) {
        self.with(|page| page.arm(after_ms, token));
    }

    fn now(&self) -> Time {
        let ms = self.with(Connection::now).unwrap_or(0.0);
        Time::from_nanos((ms.max(0.0) * 1e6) as u64)
    }

    fn entropy(&self) -> u64 {
        self.with(Connection::entropy).unwrap_or(0)
    }

    fn report(&self, line: &str) {
        self.with(|page| page.report(line));
    }
}

impl Drop for PageCalls {
    fn drop(&mut self) {
        let gone = CONNECTIONS.with_borrow_mut(|all| {
            all.vacant.push(self.place);
            all.places.get_mut(self.place).and_then(Option::take)
        });
        if let Some(joined) = gone {
            // If the page is calling through it at this moment, what it calls goes when it returns:
            // the glue counts.
            joined.connection.close();
        }
    }
}

pub(super) fn open(handles: &Handles, mut config: Config) -> Runtime {
    let granted = handles.granted();
    config.pump.has_message_channel = granted.has(Capability::Post);
    let place = CONNECTIONS.with_borrow_mut(|all| {
        all.vacant.pop().unwrap_or_else(|| {
            all.places.push(None);
            all.places.len() - 1
        })
    });
    // Who may need the clock at once finds its connection there.
    let inner: Rc<RefCell<Weak<Inner>>> = Rc::default();
    let to = |inner: &Rc<RefCell<Weak<Inner>>>| {
        let inner = inner.clone();
        move || inner.borrow().upgrade().map(|inner| Runtime { inner })
    };
    let a = to(&inner);
    let b = to(&inner);
    let c = to(&inner);
    let called = Closure::<dyn Fn(u32)>::new(move |token| {
        let _ = a().map(|runtime| runtime.called(token));
    });
    let rang = Closure::<dyn Fn(u32)>::new(move |token| {
        let _ = b().map(|runtime| runtime.rang(token));
    });
    let trapped = Closure::<dyn Fn(u32)>::new(move |site| {
        let _ = c().map(|runtime| runtime.trap(site_name(site)));
    });
    let connection = sys::connect(
        &handles.0,
        called.as_ref().unchecked_ref(),
        rang.as_ref().unchecked_ref(),
        trapped.as_ref().unchecked_ref(),
    );
    let joined = Joined { connection, _called: called, _rang: rang, _trapped: trapped };
    let joined = Rc::new(joined);
    CONNECTIONS.with_borrow_mut(|all| all.places[place] = Some(joined.clone()));
    let runtime = Runtime::new(config, granted, Arc::new(PageCalls { place }));
    *inner.borrow_mut() = Rc::downgrade(&runtime.inner);
    // What of the page failed before there was a runtime to tell.
    if let Ok(site) = u32::try_from(joined.connection.broken()) {
        runtime.trap(site_name(site));
    }
    runtime
}

fn site_name(site: u32) -> &'static str {
    SITES.get(site as usize).copied().unwrap_or(SITES[0])
}
