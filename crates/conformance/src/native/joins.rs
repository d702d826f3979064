//! Joins: several tasks may wait for the end of one, of which there is one handle.
//!
//! Each of them polls the handle in turn, always with the same waker, which wakes all who are in
//! line, in the order they came. A finalizer has no handle: its line is woken when its future goes.

use super::World;
use crate::api::{Came, Done};
use asx_kernel::outcome::Severity;
use asx_kernel::status::Status;
use asx_runtime::{Cx, Outcome};
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Wake;

/// Those who wait for the end of a task.
#[derive(Default)]
pub(super) struct Line(Mutex<Places>);

#[derive(Default)]
struct Places {
    next: u64,
    waiting: Vec<(u64, Waker)>,
}

impl Line {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Keeps a place, or takes the last one.
    fn stand(&self, place: &mut Option<u64>, waker: &Waker) {
        // Cloned, and the old one dropped, outside the lock.
        let mut waker = waker.clone();
        let mut places = self.places();
        let kept = place.and_then(|place| places.waiting.iter_mut().find(|it| it.0 == place));
        match kept {
            Some(kept) => core::mem::swap(&mut kept.1, &mut waker),
            None => {
                places.next += 1;
                *place = Some(places.next);
                let next = places.next;
                places.waiting.push((next, waker));
                return;
            }
        }
        drop(places);
        drop(waker);
    }

    fn leave(&self, place: Option<u64>) {
        let left = {
            let waiting = &mut self.places().waiting;
            let at = waiting.iter().position(|it| Some(it.0) == place);
            at.map(|at| waiting.remove(at))
        };
        drop(left);
    }

    /// Wakes all, first come first.
    pub(super) fn wake_all(&self) {
        let waiting = core::mem::take(&mut self.places().waiting);
        waiting.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

impl Wake for Line {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }
}

/// A place in a line, which is given up when dropped.
struct Joining {
    line: Arc<Line>,
    place: Option<u64>,
}

impl Drop for Joining {
    fn drop(&mut self) {
        self.line.leave(self.place);
    }
}

impl World {
    /// Waits for the end of a task.
    pub(super) async fn join(&self, cx: &Cx, id: u64) -> Done<Came<Arc<World>>> {
        let entry = self.things().tasks.get(&id).map(|entry| entry.line.clone());
        let line = entry.ok_or(Status::StaleHandle)?;
        let mut joining = Joining { line, place: None };
        poll_fn(move |context| {
            if cx.checkpoint().is_err() {
                return Poll::Ready(Err(Status::Cancelled));
            }
            let Joining { line, place } = &mut joining;
            match self.poll_end(id, line) {
                Some(severity) => Poll::Ready(Ok(Came::Outcome(severity))),
                None => {
                    line.stand(place, context.waker());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// How a task has ended; if it has not, its line is woken when it does.
    fn poll_end(&self, id: u64, line: &Arc<Line>) -> Option<Severity> {
        let handle = self.things().tasks.get_mut(&id).and_then(|entry| entry.handle.take());
        let Some(mut handle) = handle else { return self.outcome_of(id) };
        let waker = Waker::from(line.clone());
        let ended = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
        let severity = match &ended {
            Poll::Ready(outcome) => Some(severity(outcome)),
            Poll::Pending => None,
        };
        if let Some(entry) = self.things().tasks.get_mut(&id) {
            entry.severity = entry.severity.or(severity);
            entry.handle = severity.is_none().then_some(handle);
        }
        severity.map(|severity| self.outcome_of(id).unwrap_or(severity))
    }
}

/// How severe an outcome is.
pub(super) fn severity<T, E>(outcome: &Outcome<T, E>) -> Severity {
    match outcome {
        Ok(_) => Severity::Ok,
        Err(stop) => stop.severity(),
    }
}
