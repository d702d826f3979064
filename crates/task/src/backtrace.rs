//! Where tasks wait, and who has used what they wait at: for hosts that tell of one run.
//!
//! With the feature `lab`, and between `begin` and `end` on a thread, each wait is noted with the
//! parts of its task around it (scopes, timeouts, joins), each task with the place where it was
//! spawned, and each channel with its handles and who sent and received last. Otherwise nothing is
//! noted; without the feature all of this is nothing, and costs nothing.

#[cfg(feature = "lab")]
use std::panic::Location;
#[cfg(feature = "lab")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(feature = "lab")]
use crate::raw::poll_context;
pub use crate::wait::{Side, Thing};
#[cfg(feature = "lab")]
use crate::wait_notes as on;
#[cfg(feature = "lab")]
pub use crate::wait_notes::{
    EndNotes, Frame, TaskNotes, ThingNotes, Use, WaitNotes, begin, end, forget, is_on, of_task,
};

/// What is noted of the uses of one channel or notification.
#[derive(Debug, Default)]
pub struct Usage(#[cfg(feature = "lab")] AtomicU64);

impl Usage {
    /// Of something new.
    pub const fn new() -> Usage {
        Usage(
            #[cfg(feature = "lab")]
            AtomicU64::new(0),
        )
    }

    /// The task that is being polled has sent or received, where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn used(&self, _side: Side) {
        #[cfg(feature = "lab")]
        self.used_at(_side, Location::caller());
    }

    /// The same, at a place that is known.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn used_at(&self, _side: Side, _at: &'static std::panic::Location<'static>) {
        #[cfg(feature = "lab")]
        if is_on() {
            on::note_use(self.number(), _side, by_current(_at));
        }
    }

    /// The wait that was noted last on this thread is for what that side does.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn awaits(&self, _thing: Thing, _side: Side) {
        #[cfg(feature = "lab")]
        if is_on() {
            on::note_thing(self.number(), _thing, _side);
        }
    }

    #[cfg(feature = "lab")]
    fn number(&self) -> u64 {
        match self.0.load(Relaxed) {
            0 => {
                let number = on::next_number();
                self.0.compare_exchange(0, number, Relaxed, Relaxed).err().unwrap_or(number)
            }
            number => number,
        }
    }
}

/// One handle of a channel, on the list of those that there are.
#[derive(Debug, Default)]
pub struct Endpoint {
    /// Under this number; 0: it is not on it.
    #[cfg(feature = "lab")]
    number: u64,
    /// The number of the channel.
    #[cfg(feature = "lab")]
    thing: u64,
}

impl Endpoint {
    /// A handle that is not on the list.
    pub const NOTHING: Endpoint = Endpoint {
        #[cfg(feature = "lab")]
        number: 0,
        #[cfg(feature = "lab")]
        thing: 0,
    };

    /// A new handle of this side, made where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn new(_usage: &Usage, _side: Side) -> Endpoint {
        #[cfg(feature = "lab")]
        return match is_on() {
            true => Endpoint::of_thing(_usage.number(), _side, Location::caller()),
            false => Endpoint::NOTHING,
        };
        #[cfg(not(feature = "lab"))]
        Endpoint {}
    }

    /// A new handle of the channel that this is one of, made where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn another(&self, _side: Side) -> Endpoint {
        #[cfg(feature = "lab")]
        return match self.thing != 0 && is_on() {
            true => Endpoint::of_thing(self.thing, _side, Location::caller()),
            false => Endpoint::NOTHING,
        };
        #[cfg(not(feature = "lab"))]
        Endpoint {}
    }

    /// A permit for a slot, reserved at `at` by the task that is being polled.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn permit(_usage: &Usage, _at: &'static std::panic::Location<'static>) -> Endpoint {
        #[cfg(feature = "lab")]
        return match is_on() {
            true => {
                let thing = _usage.number();
                Endpoint { number: on::note_permit(thing, by_current(_at)), thing }
            }
            false => Endpoint::NOTHING,
        };
        #[cfg(not(feature = "lab"))]
        Endpoint {}
    }

    #[cfg(feature = "lab")]
    fn of_thing(thing: u64, side: Side, at: &'static Location<'static>) -> Endpoint {
        Endpoint { number: on::note_end(thing, side, by_current(at)), thing }
    }

    /// The task that is being polled uses it.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn used(&self) {
        #[cfg(feature = "lab")]
        if self.number != 0 && is_on() {
            on::note_user(self.number, current());
        }
    }

    /// The task that is being polled has sent or received with it, where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn acts(&self, _side: Side) {
        #[cfg(feature = "lab")]
        if self.number != 0 && is_on() {
            on::note_user(self.number, current());
            on::note_use(self.thing, _side, by_current(Location::caller()));
        }
    }

    /// The wait that was noted last on this thread is for what that side of its channel does.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn awaits(&self, _thing: Thing, _side: Side) {
        #[cfg(feature = "lab")]
        if self.number != 0 && is_on() {
            on::note_user(self.number, current());
            on::note_thing(self.thing, _thing, _side);
        }
    }
}

#[cfg(feature = "lab")]
impl Drop for Endpoint {
    #[inline]
    fn drop(&mut self) {
        if self.number != 0 && is_on() {
            on::note_gone(self.number);
        }
    }
}

/// The number of the task that is being polled; 0: none is.
#[cfg(feature = "lab")]
fn current() -> u64 {
    poll_context::with_current(|task| task.id()).unwrap_or(0)
}

#[cfg(feature = "lab")]
fn by_current(at: &'static Location<'static>) -> Use {
    Use { task: current(), at }
}

#[cfg(all(test, not(feature = "lab")))]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_no_lab_there_is_nothing_to_note_with() {
        let sizes = [size_of::<Usage>(), size_of::<Endpoint>(), size_of::<crate::waits::Note>()];
        assert_eq!(sizes, [0; 3]);
        assert!(!std::mem::needs_drop::<Endpoint>() && !std::mem::needs_drop::<Usage>());
    }
}
