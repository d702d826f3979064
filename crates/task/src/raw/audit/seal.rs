//! Whether something in an `Arc` lives, and its memory when it does not any more.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Arc, OnceLock, Weak};

use super::graves::{self, Alive, Epitaph};
use super::registry::Registry;

/// Says of something in an `Arc` whether it lives. It is the last field, so that it is dropped
/// after all others.
pub(crate) struct Seal<T: Send + Sync + 'static> {
    alive: Alive,
    own: OnceLock<(Weak<T>, String, u64)>,
}

impl<T: Send + Sync + 'static> Seal<T> {
    pub(crate) fn open() -> Seal<T> {
        Seal { alive: Alive::new(), own: OnceLock::new() }
    }

    /// What it is in, what that is called, and of which core it is.
    pub(crate) fn set(&self, own: &Arc<T>, kind: &str, number: u64, registry: &Registry) {
        let what = format!("{kind} {number}");
        let _ = self.own.set((Arc::downgrade(own), what, registry.number()));
    }

    pub(crate) fn check_alive(&self) {
        self.alive.check(|| graves::of(ptr::from_ref(self).addr()));
    }
}

thread_local! {
    /// What is being dropped on this thread: its `Arc` is done with it when the next comes here.
    static DYING: Dying = const { Dying(RefCell::new(Vec::new())) };
}

struct Dying(RefCell<Vec<(graves::Kept, Epitaph)>>);

impl Dying {
    fn bury(&self) {
        for (kept, epitaph) in self.0.take() {
            kept.bury(epitaph);
        }
    }
}

impl Drop for Dying {
    fn drop(&mut self) {
        self.bury();
    }
}

/// Buries what was dropped on this thread.
pub(super) fn bury_dropped() {
    let _ = DYING.try_with(Dying::bury);
}

impl<T: Send + Sync + 'static> Drop for Seal<T> {
    fn drop(&mut self) {
        bury_dropped();
        let here = ptr::from_ref(self).addr();
        let Some((own, what, core)) = self.own.take() else { return };
        let place = own.as_ptr().addr();
        let in_place = (place..place + size_of::<T>()).contains(&here);
        let epitaph = Epitaph::new(what, core);
        let kept = graves::Kept::new(own);
        if !in_place {
            // It was moved out of the `Arc` before, which has no use for its memory any more.
            return kept.bury(epitaph);
        }
        self.alive.end();
        // A thread that is about to end leaves it unpoisoned, and for ever.
        let mut dying = Some((kept, epitaph));
        let _ = DYING.try_with(|list| list.0.borrow_mut().extend(dying.take()));
        std::mem::forget(dying);
    }
}
