//! The permits that scripts hold.

use super::World;
use asx_runtime::channel::OwnedPermit;
use asx_runtime::channel::session::TrackedPermit;
use asx_runtime::probe;
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

thread_local! {
    /// A panic of this thread is expected now, and its message is not printed.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Drops a permit. Returns the panic of the drop, if there is one, without printing its message: a
/// scenario that leaks a permit expects it.
pub(super) fn dropped(held: Held) -> Result<(), Box<dyn Any + Send>> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                print(info);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(held)));
    EXPECTED.set(before);
    dropped
}

/// A permit somebody holds.
pub(super) enum Held {
    Plain(OwnedPermit<i64>),
    Tracked(TrackedPermit<i64>),
}

impl Held {
    /// Gives it back.
    pub(super) fn abort(self) {
        match self {
            Held::Plain(permit) => permit.abort(),
            Held::Tracked(permit) => drop(permit.abort()),
        }
    }

    fn id(&self) -> u64 {
        match self {
            Held::Plain(permit) => probe::permit_id(permit),
            Held::Tracked(permit) => probe::tracked_id(permit),
        }
    }
}

impl World {
    /// Keeps a permit for its holder: its number.
    pub(super) fn hold(&self, held: Held) -> u64 {
        let id = held.id();
        self.things().permits.insert(id, held);
        id
    }

    /// The holder has ended: its permit is aborted, or lost if it panicked.
    pub(super) fn let_go(&self, id: u64, unwinding: bool) {
        let held = self.things().permits.remove(&id);
        match held {
            Some(Held::Tracked(permit)) if unwinding => {
                let unwound = catch_unwind(AssertUnwindSafe(move || {
                    let _permit = permit;
                    resume_unwind(Box::new(()));
                }));
                debug_assert!(unwound.is_err());
            }
            Some(held) => held.abort(),
            None => {}
        }
    }

    /// The holder was ended by force: its permit goes with it.
    pub(super) fn lose(&self, id: u64) {
        let held = self.things().permits.remove(&id);
        drop(held);
    }
}
