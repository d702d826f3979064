//! Those who wait for tasks from outside: promises, handles of programs.
//!
//! They are futures too, but no tasks: they are polled at the end of a drain, when what they wait
//! for has told them. So a page learns of an end in the host turn in which it happened.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use asx_kernel::pump::Trapped;

use crate::adapter::Adapter;
use crate::runtime::Inner;

/// A future that is watched, and whom to tell if it can never be ready.
pub(crate) struct Watch {
    future: Pin<Box<dyn Future<Output = ()>>>,
    trapped: Box<dyn FnOnce(Trapped)>,
    signal: Arc<Signal>,
}

/// All that are watched, by place; a place is used again when its future is over.
#[derive(Default)]
pub(crate) struct Watches {
    places: Vec<Option<Watch>>,
    vacant: Vec<usize>,
    told: Arc<Told>,
}

/// The places of those that were told something, in that order.
#[derive(Default)]
struct Told(Mutex<VecDeque<usize>>);

impl Told {
    fn push(&self, at: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(at);
    }

    fn pop(&self) -> Option<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// One that waits. Who uses its waker when it is over tells its place's next tenant something,
/// which any future must bear.
struct Signal {
    adapter: Arc<Adapter>,
    at: usize,
    told: Arc<Told>,
    /// Whether its place is among the told.
    set: AtomicBool,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.set.swap(true, Relaxed) {
            self.told.push(self.at);
            self.adapter.attend();
        }
    }
}

impl Inner {
    /// Watches a future until it is ready; `trapped` is called instead if the runtime dies.
    pub(crate) fn watch(
        &self,
        future: impl Future<Output = ()> + 'static,
        trapped: impl FnOnce(Trapped) + 'static,
    ) {
        let signal = {
            let watches = &mut *self.watches.borrow_mut();
            let at = watches.vacant.pop().unwrap_or(watches.places.len());
            if at == watches.places.len() {
                watches.places.push(None);
            }
            let told = watches.told.clone();
            let adapter = self.adapter.clone();
            let signal = Arc::new(Signal { adapter, at, told, set: AtomicBool::new(false) });
            let future = Box::pin(future);
            let trapped = Box::new(trapped);
            watches.places[at] = Some(Watch { future, trapped, signal: signal.clone() });
            signal
        };
        signal.wake();
    }

    /// Polls those that were told something, until none is left.
    pub(crate) fn tell_watches(&self) {
        loop {
            let told = {
                let watches = &mut *self.watches.borrow_mut();
                let Some(at) = watches.told.pop() else { return };
                watches.places.get_mut(at).and_then(Option::take).map(|watch| (at, watch))
            };
            let Some((at, mut watch)) = told else { continue };
            watch.signal.set.store(false, Relaxed);
            let waker = Waker::from(watch.signal.clone());
            let mut cx = Context::from_waker(&waker);
            let pending = watch.future.as_mut().poll(&mut cx).is_pending();
            let watches = &mut *self.watches.borrow_mut();
            // Gone if the runtime died meanwhile, and all were given up.
            let Some(place) = watches.places.get_mut(at) else { return };
            if pending {
                *place = Some(watch);
            } else {
                watches.vacant.push(at);
            }
        }
    }

    /// The runtime is dead: nobody will be told anything else.
    pub(crate) fn give_up_watches(&self, trapped: Trapped) {
        let watches = std::mem::take(&mut *self.watches.borrow_mut());
        for watch in watches.places.into_iter().flatten() {
            // What it waits for may be half-way through something: it stays as it is.
            std::mem::forget(watch.future);
            (watch.trapped)(trapped);
        }
    }
}
