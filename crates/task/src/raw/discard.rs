//! The drop of a cell: an unclaimed result, and the waker of the joiner.

use super::owner::TaskOwner;
use super::stage::{Holds, Slot, Stage};
use super::{Cell, Header};

impl<F, T, E> Drop for Cell<F, T, E> {
    fn drop(&mut self) {
        let Header { holds, joiner, owner, .. } = &mut self.header;
        let holds = holds.get_mut();
        if *holds != Holds::Nothing {
            let clear = |slot: *mut Slot<F, T, E>| {
                // SAFETY: rule 2, the last reference.
                Stage { holds, slot: unsafe { &mut *slot } }.clear();
            };
            owner.drop_result(|| self.slot.with_mut(clear));
        }
        // SAFETY: rule 3, the last reference.
        let joiner = joiner.with_mut(|joiner| std::mem::take(unsafe { &mut *joiner }));
        joiner.discard(owner.panics());
    }
}
