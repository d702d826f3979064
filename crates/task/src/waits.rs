//! Who waits for whom, for hosts that explain why nothing goes on.
//!
//! With the feature `lab`, and while a host has [begun](crate::footprint::begin) a poll on its
//! thread, each wait for permits of a pool and each hold of them is on a list of that thread. With
//! what regions and cells know (who joins whom, who waits for which close) that is a graph, which
//! `waiters` draws. Each task also counts its wakers: one that waits and has none is lost. Without
//! the feature all of this is nothing, and costs nothing.

use std::panic::Location;
#[cfg(feature = "lab")]
use std::ptr;
#[cfg(feature = "lab")]
use std::sync::Arc;
use std::task::Waker;

#[cfg(feature = "lab")]
use crate::footprint;
#[cfg(feature = "lab")]
use crate::raw::{self, poll_context};
#[cfg(feature = "lab")]
use crate::region::Region;
#[cfg(feature = "lab")]
pub use crate::wait_list::{
    Given, Hold, Need, On, Waiter, clear, forget, held, is_clean, take_leaked, take_overruns,
};
#[cfg(feature = "lab")]
use crate::wait_list::{Survey, What, enter, grant, leave, take_back, with_needs};

/// A wait or a hold that is on the list: in the lab under a number, and 0 if it is not on it.
#[derive(Debug, Default)]
pub struct Note(#[cfg(feature = "lab")] u64);

impl Note {
    /// Nothing is on the list.
    pub const NOTHING: Note = Note(
        #[cfg(feature = "lab")]
        0,
    );

    /// The task that is being polled waits for permits of a pool, or for all of them.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    pub fn waits<P>(_pool: &P, _all: bool, _at: &'static Location<'static>) -> Note {
        #[cfg(feature = "lab")]
        return Note::new(_pool, Some(_at), What::Waits { all: _all });
        #[cfg(not(feature = "lab"))]
        Note()
    }

    /// The task that is being polled has taken some.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    pub fn holds<P>(_pool: &P, _at: Option<&'static Location<'static>>) -> Note {
        #[cfg(feature = "lab")]
        return Note::new(_pool, _at, What::Holds);
        #[cfg(not(feature = "lab"))]
        Note()
    }

    /// The task that is being polled waits for room in a channel, whose messages are waited for
    /// under that key.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    pub fn waits_for_room<P>(_room: &P, _messages: Key, _at: &'static Location<'static>) -> Note {
        #[cfg(feature = "lab")]
        return Note::new(_room, Some(_at), What::Room { messages: _messages.0, granted: false });
        #[cfg(not(feature = "lab"))]
        Note()
    }

    /// The task that is being polled waits for the message of a channel that has one receiver.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    pub fn waits_for_message(_messages: Key, _at: &'static Location<'static>) -> Note {
        #[cfg(feature = "lab")]
        return Note::enter(_messages.0, Some(_at), What::Message { granted: false });
        #[cfg(not(feature = "lab"))]
        Note()
    }

    /// A wait that was polled goes on: what it had been given is gone again, if there was anything.
    /// One that is not on the list yet is put there.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    pub fn go_on(&mut self, _begin: impl FnOnce() -> Note) {
        #[cfg(feature = "lab")]
        match self.0 {
            0 => *self = _begin(),
            number => take_back(number),
        }
    }

    #[cfg(feature = "lab")]
    #[inline]
    fn new<P>(pool: &P, at: Option<&'static Location<'static>>, what: What) -> Note {
        Note::enter(ptr::from_ref(pool).addr(), at, what)
    }

    #[cfg(feature = "lab")]
    #[inline]
    fn enter(pool: usize, at: Option<&'static Location<'static>>, what: What) -> Note {
        if !footprint::is_on() {
            return Note(0);
        }
        let task = poll_context::with_current(|task| task.id()).unwrap_or(0);
        Note(enter(pool, task, at, what))
    }
}

#[cfg(feature = "lab")]
impl Drop for Note {
    #[inline]
    fn drop(&mut self) {
        if self.0 != 0 {
            leave(self.0);
        }
    }
}

/// What the messages of a channel are waited for under.
#[derive(Clone, Copy, Debug)]
pub struct Key(#[cfg(feature = "lab")] usize);

impl Key {
    /// Those of a channel with one receiver.
    #[inline(always)]
    pub fn messages_of<C>(_channel: &C) -> Key {
        Key(
            #[cfg(feature = "lab")]
            // Nothing else is there: it is inside.
            (ptr::from_ref(_channel).addr() + 1),
        )
    }

    /// Those that are counted by the permits of a pool.
    #[inline(always)]
    pub fn of_pool<P>(_pool: &P) -> Key {
        Key(
            #[cfg(feature = "lab")]
            ptr::from_ref(_pool).addr(),
        )
    }
}

/// The head of the line of a pool was given what it waited for.
#[cfg_attr(not(feature = "lab"), inline(always))]
pub fn granted<P>(_pool: &P, _waker: &Waker) {
    #[cfg(feature = "lab")]
    grant(ptr::from_ref(_pool).addr(), raw::task_number(_waker));
}

/// A message came for the one receiver that waited for it.
#[cfg_attr(not(feature = "lab"), inline(always))]
pub fn came(_messages: Key, _waker: &Waker) {
    #[cfg(feature = "lab")]
    grant(_messages.0, raw::task_number(_waker));
}

/// Everything that lives in a region and below it, and who waits for whom.
///
/// # Safety
/// No task of the region's runtime is polled, and no handle of one used, on another thread
/// meanwhile: the wakers of those who wait are looked at.
#[cfg(feature = "lab")]
pub unsafe fn waiters(region: &Arc<Region>) -> Vec<Waiter> {
    let mut survey = Survey::default();
    region.survey(&mut survey);
    with_needs(survey)
}
