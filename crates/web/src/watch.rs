//! Those who wait for tasks from outside: promises, handles of programs.
//!
//! They are futures too, but no tasks: they are polled at the end of a drain, when what they wait
//! for has told them. So a page learns of an end in the host turn in which it happened.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

#[derive(Default)]
pub(crate) struct Watches(pub(crate) Vec<Watch>);

struct Signal {
    adapter: Arc<Adapter>,
    set: AtomicBool,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.set.swap(true, Relaxed) {
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
        let signal = Arc::new(Signal { adapter: self.adapter.clone(), set: AtomicBool::new(true) });
        let watch = Watch { future: Box::pin(future), trapped: Box::new(trapped), signal };
        self.watches.borrow_mut().0.push(watch);
        self.adapter.attend();
    }

    /// Polls those that were told something, until none is left.
    pub(crate) fn tell_watches(&self) {
        loop {
            let told = {
                let watches = &mut self.watches.borrow_mut().0;
                let told = watches.iter().position(|watch| watch.signal.set.load(Relaxed));
                told.map(|at| watches.swap_remove(at))
            };
            let Some(mut watch) = told else { return };
            watch.signal.set.store(false, Relaxed);
            let waker = Waker::from(watch.signal.clone());
            let mut cx = Context::from_waker(&waker);
            if watch.future.as_mut().poll(&mut cx).is_pending() {
                self.watches.borrow_mut().0.push(watch);
            }
        }
    }

    /// The runtime is dead: nobody will be told anything else.
    pub(crate) fn give_up_watches(&self, trapped: Trapped) {
        let watches = std::mem::take(&mut self.watches.borrow_mut().0);
        for watch in watches {
            // What it waits for may be half-way through something: it stays as it is.
            std::mem::forget(watch.future);
            (watch.trapped)(trapped);
        }
    }
}
