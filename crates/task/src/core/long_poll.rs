//! Detection of tasks that were cancelled and stay inside one poll.
//!
//! A loop that does not await anything never observes its cancel, and no count of polls finds it.
//! Polls are watched only while their task has an unobserved cancel:
//!
//! - A poll of a task that is already cancelled is entered in the list and removed when it ends.
//! - A cancel of a task that is being polled enters that poll.
//!
//! An entry that is older than the limit is found by the next thread that checks the timers, or by
//! the end of the poll. Polls of other tasks pay nothing.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use asx_kernel::task::TaskState;
use asx_kernel::time::Time;

use super::latency::Unheeded;
use crate::core::Core;
use crate::raw::{Activity, Header, TaskRef};
use crate::region::Region;

/// No check is due.
const NONE: u64 = u64::MAX;

/// The watched polls of a runtime.
pub(crate) struct LongPolls {
    /// How long a poll may take after a cancel; `None`: any time, and no poll is watched.
    limit: Option<Duration>,
    /// When the list is checked next, in nanoseconds.
    due: AtomicU64,
    count: AtomicU64,
    watched: Mutex<Vec<Watched>>,
}

/// A poll of a task with an unobserved cancel.
struct Watched {
    task: u64,
    /// Weak: a task that has ended is not kept.
    region: Weak<Region>,
    since: Time,
}

impl LongPolls {
    pub(crate) fn new(limit: Option<Duration>) -> LongPolls {
        let watched = Mutex::new(Vec::new());
        LongPolls { limit, due: AtomicU64::new(NONE), count: AtomicU64::new(0), watched }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many polls took too long.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// When the list is to be checked next.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        Some(self.due.load(Relaxed)).filter(|due| *due != NONE).map(Time::from_nanos)
    }

    /// Removes the entry of a task.
    fn remove(&self, task: u64) -> Option<Watched> {
        let mut watched = self.lock();
        let at = watched.iter().position(|other| other.task == task)?;
        Some(watched.swap_remove(at))
    }
}

impl Core {
    /// A poll of a task that was cancelled and has not observed it begins.
    #[cold]
    pub(crate) fn watch_poll(&self, task: &Header) {
        if self.long_polls.limit.is_some() {
            self.watch_poll_since(task, self.host.now());
        }
    }

    /// A task that is being polled was cancelled.
    #[cold]
    pub(crate) fn watch_running(&self, task: &Header, since: Time) {
        // A blocking job may take as long as it likes.
        if self.long_polls.limit.is_some() && !task.is_blocking() {
            self.watch_poll_since(task, since);
        }
    }

    fn watch_poll_since(&self, task: &Header, since: Time) {
        let Some(limit) = self.long_polls.limit else { return };
        let entry = Watched { task: task.id(), region: Arc::downgrade(&task.region), since };
        let due = (since + limit).as_nanos();
        let is_first = {
            let mut watched = self.long_polls.lock();
            match watched.iter_mut().find(|other| other.task == entry.task) {
                Some(known) => *known = entry,
                None => watched.push(entry),
            }
            let is_first = self.long_polls.due.load(Relaxed) == NONE;
            if is_first {
                self.long_polls.due.store(due, Relaxed);
            }
            is_first
        };
        if is_first {
            self.host.timer_moved(Time::from_nanos(due));
        }
    }

    /// A watched poll that began after the cancel is over.
    #[cold]
    pub(crate) fn watched_poll_ended(&self, task: &TaskRef) {
        let Some(limit) = self.long_polls.limit else { return };
        let Some(entry) = self.long_polls.remove(task.id()) else { return };
        if task.word.load().state() != TaskState::CancelRequested {
            return;
        }
        let took = self.host.now() - entry.since;
        if took >= limit {
            self.long_poll(task, took);
        }
    }

    /// Reports the polls that have taken too long by now.
    pub(crate) fn check_long_polls(&self, now: Time) {
        let is_due = self.long_polls.next().is_some_and(|due| due <= now);
        let Some(limit) = self.long_polls.limit.filter(|_| is_due) else { return };
        let late: Vec<Watched> = {
            let mut watched = self.long_polls.lock();
            let late = watched.extract_if(.., |entry| entry.since + limit <= now).collect();
            let next = watched.iter().map(|entry| (entry.since + limit).as_nanos()).min();
            self.long_polls.due.store(next.unwrap_or(NONE), Relaxed);
            late
        };
        for entry in late {
            // Else the task has ended.
            let task = entry.region.upgrade().and_then(|region| region.live_task(entry.task));
            let Some(task) = task else { continue };
            let word = task.word.load();
            let is_inside = word.activity() == Activity::Running;
            if is_inside && word.state() == TaskState::CancelRequested {
                self.long_poll(&task, now - entry.since);
            }
        }
    }

    fn long_poll(&self, task: &TaskRef, took: Duration) {
        // Once for each task.
        if !task.is_first_unheeded() {
            return;
        }
        self.long_polls.count.fetch_add(1, Relaxed);
        self.note_unheeded(task, Unheeded { inside: Some(took), ..Unheeded::of(task, 1) });
    }
}
