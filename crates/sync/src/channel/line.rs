//! Who waits for something that all of them get at once: a line that is woken as a whole.
//!
//! Used under a lock, so it calls nobody: wakers to wake or to drop are handed out.

use std::collections::VecDeque;
use std::panic::Location;
use std::task::{Context, Poll, Waker, ready};

use asx_task::operation::{Registration, Wait, guard};
use asx_task::{Cancelled, Cx};

use crate::prim::{Shared, lock};

/// Those who wait, in the order of asking. Ids only grow, so the line is sorted by them.
#[derive(Default)]
pub(super) struct Line {
    waiting: VecDeque<(u64, Waker)>,
    next: u64,
}

/// A place in a line, `None` before the first wait.
pub(super) type Place = Option<u64>;

impl Line {
    /// Takes everybody out, to be woken.
    pub(super) fn wake_all(&mut self) -> VecDeque<(u64, Waker)> {
        std::mem::take(&mut self.waiting)
    }

    /// Gives up the place: its waker, to be dropped, unless it was taken out before.
    pub(super) fn leave(&mut self, place: &mut Place) -> Option<Waker> {
        let at = self.position(place.take()?)?;
        self.waiting.remove(at).map(|(_, waker)| waker)
    }

    /// Waits, at the same place as before if it is still in line: the waker that is not kept.
    pub(super) fn wait(&mut self, place: &mut Place, waker: Waker) -> Option<Waker> {
        if let Some(at) = place.and_then(|id| self.position(id)) {
            return Some(std::mem::replace(&mut self.waiting[at].1, waker));
        }
        self.waiting.push_back((self.next, waker));
        *place = Some(self.next);
        self.next += 1;
        None
    }

    pub(super) fn will_wake(&self, place: Place, waker: &Waker) -> bool {
        let at = place.and_then(|id| self.position(id));
        at.is_some_and(|at| self.waiting[at].1.will_wake(waker))
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.waiting.binary_search_by_key(&id, |&(id, _)| id).ok()
    }
}

/// Wakes all that were taken out of a line.
pub(super) fn wake_all(waiting: VecDeque<(u64, Waker)>) {
    guard::wake_all(waiting.into_iter().map(|(_, waker)| waker));
}

/// An operation that waits in a line: once if it is a future, again and again if it is a stream.
/// Who drops it [leaves](LineWait::leave) first.
pub(super) struct LineWait {
    at: &'static Location<'static>,
    place: Place,
    registration: Registration,
}

impl LineWait {
    pub(super) fn new(at: &'static Location<'static>) -> LineWait {
        LineWait { at, place: None, registration: Registration::NONE }
    }

    /// Whether to stop; then what `look` finds, or a wait for it in `line`, told as one for `on`.
    pub(super) fn poll<S, R>(
        &mut self,
        cx: &Cx,
        on: Wait,
        state: &Shared<S>,
        line: fn(&mut S) -> &mut Line,
        context: &mut Context<'_>,
        look: impl FnMut(&mut S) -> Option<R>,
    ) -> Poll<Result<R, Cancelled>> {
        let LineWait { at, place, registration } = self;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            self.leave(state, line);
            return Poll::Ready(Err(cancelled));
        }
        let found = poll_line(state, line, place, context.waker(), look);
        match &found {
            Poll::Pending => cx.waits(on, at, context.waker(), registration),
            Poll::Ready(_) => self.leave(state, line),
        }
        found.map(Ok)
    }

    /// Waits no longer.
    pub(super) fn leave<S>(&mut self, state: &Shared<S>, line: fn(&mut S) -> &mut Line) {
        leave_line(state, line, &mut self.place);
        self.registration = Registration::NONE;
    }
}

/// What `look` finds, or a wait in `line`. A waker is cloned only to be kept, and outside the lock.
fn poll_line<S, R>(
    state: &Shared<S>,
    line: fn(&mut S) -> &mut Line,
    place: &mut Place,
    waker: &Waker,
    mut look: impl FnMut(&mut S) -> Option<R>,
) -> Poll<R> {
    {
        let state = &mut *lock(state);
        if let Some(found) = look(state) {
            return Poll::Ready(found);
        }
        if line(state).will_wake(*place, waker) {
            return Poll::Pending;
        }
    }
    let token = waker.clone();
    let (found, spare) = {
        let state = &mut *lock(state);
        match look(state) {
            Some(found) => (Poll::Ready(found), Some(token)),
            None => (Poll::Pending, line(state).wait(place, token)),
        }
    };
    guard::drop_waker(spare);
    found
}

/// Gives up a place in `line`, if there is one.
fn leave_line<S>(state: &Shared<S>, line: fn(&mut S) -> &mut Line, place: &mut Place) {
    if place.is_some() {
        let waker = line(&mut lock(state)).leave(place);
        guard::drop_waker(waker);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use asx_task::testing::Count;

    fn waker() -> Waker {
        Waker::from(Arc::<Count>::default())
    }

    #[test]
    #[cfg_attr(miri, ignore = "copies of a waker made of an `Arc` are not known as such there")]
    fn a_wait_keeps_its_place_and_its_waker_until_another_comes() {
        let state = Shared::new(Line::default());
        let mut place = None;
        let first = waker();
        let second = waker();
        let poll = |place: &mut Place, waker: &Waker| {
            poll_line(&state, |line: &mut Line| line, place, waker, |_| None::<()>)
        };
        assert!(poll(&mut None, &waker()).is_pending());
        assert!(poll(&mut place, &first).is_pending());
        assert!(poll(&mut None, &waker()).is_pending());
        assert!(poll(&mut place, &first).is_pending());
        assert!(lock(&state).will_wake(place, &first));
        assert!(poll(&mut place, &second).is_pending());
        assert!(lock(&state).will_wake(place, &second));
        assert_eq!((place, lock(&state).waiting.len()), (Some(1), 3));
        leave_line(&state, |line| line, &mut place);
        let left: Vec<u64> = lock(&state).wake_all().into_iter().map(|(id, _)| id).collect();
        assert_eq!((left, place), (vec![0, 2], None));
    }

    #[test]
    fn who_was_taken_out_joins_at_the_end_again() {
        let mut line = Line::default();
        let mut place = None;
        assert!(line.wait(&mut place, waker()).is_none());
        assert_eq!(line.wake_all().len(), 1);
        assert!(line.wait(&mut None, waker()).is_none());
        assert!(line.wait(&mut place, waker()).is_none());
        assert_eq!((place, line.waiting.len()), (Some(2), 2));
        assert!(line.leave(&mut Some(0)).is_none(), "it is no longer in line");
    }
}
