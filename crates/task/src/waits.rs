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
use crate::region::Region;
#[cfg(feature = "lab")]
use crate::task::{cell, context};
#[cfg(feature = "lab")]
pub use crate::wait_list::{Hold, Need, On, Waiter, clear, forget, held, is_clean, take_leaked};
#[cfg(feature = "lab")]
use crate::wait_list::{Survey, What, enter, grant, leave, with_needs};

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

    #[cfg(feature = "lab")]
    #[inline]
    fn new<P>(pool: &P, at: Option<&'static Location<'static>>, what: What) -> Note {
        if !footprint::is_on() {
            return Note(0);
        }
        let task = context::with_current(|task| task.id()).unwrap_or(0);
        Note(enter(ptr::from_ref(pool).addr(), task, at, what))
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

/// The head of the line of a pool was given what it waited for.
#[cfg_attr(not(feature = "lab"), inline(always))]
pub fn granted<P>(_pool: &P, _waker: &Waker) {
    #[cfg(feature = "lab")]
    if let Some(task) = cell::task_number(_waker) {
        grant(ptr::from_ref(_pool).addr(), task);
    }
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
