//! Detection of tasks that were cancelled and stay inside one poll.
//!
//! A loop without an await never observes its cancel, and counting polls does not find it. Polls
//! are watched only while their task has an unobserved cancel:
//!
//! - A poll of a task that is already cancelled is added to the list when it begins.
//! - A cancel of a task that is being polled adds that poll.
//! - The end of a poll removes its entry.
//!
//! [`Core::check_long_polls`] reports entries that are older than the limit. The host calls it from
//! a thread that runs no tasks ([`PollMonitor`]), since all other threads may be inside such polls.
//! Hosts without such a thread check the list with the timers. The end of a poll reports the poll
//! if no check did. Polls of other tasks pay nothing.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use asx_kernel::task::TaskState;
use asx_kernel::time::Time;

use super::latency::Unheeded;
use crate::core::Core;
use crate::raw::{Activity, Header, TaskRef};

/// No check is due.
const NONE: u64 = u64::MAX;

/// A thread of a host that runs no tasks, for checks of polls that do not return.
pub trait PollMonitor {
    /// Has the thread call [`Core::check_long_polls`] at `due`. False if it cannot; the next poll
    /// that is watched calls this again.
    fn check_at(&self, due: Time) -> bool;
}

/// The watched polls of a runtime.
pub(crate) struct LongPolls {
    /// How long a poll may take after a cancel; `None`: any time, and no poll is watched.
    limit: Option<Duration>,
    /// When the list is checked with the timers, in nanoseconds.
    with_timers: AtomicU64,
    count: AtomicU64,
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    polls: Vec<Watched>,
    /// A check is due.
    is_scheduled: bool,
}

/// A poll of a task with an unobserved cancel.
struct Watched {
    task: u64,
    /// Weak: the entry does not keep the memory of a completed task.
    region: Weak<dyn LiveTasks>,
    since: Time,
}

/// A region whose tasks are found by their numbers.
pub(crate) trait LiveTasks: Send + Sync {
    /// The task with this number, if it has not ended.
    fn live_task(&self, id: u64) -> Option<TaskRef>;
}

impl LongPolls {
    pub(crate) fn new(limit: Option<Duration>) -> LongPolls {
        let [with_timers, count] = [NONE, 0].map(AtomicU64::new);
        LongPolls { limit, with_timers, count, list: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of polls that took too long.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// When the list is to be checked with the timers.
    #[inline]
    pub(crate) fn next_with_timers(&self) -> Option<Time> {
        Some(self.with_timers.load(Relaxed)).filter(|due| *due != NONE).map(Time::from_nanos)
    }

    /// Removes the entry of a task.
    fn remove(&self, task: u64) -> Option<Watched> {
        let mut list = self.lock();
        let at = list.polls.iter().position(|other| other.task == task)?;
        Some(list.polls.swap_remove(at))
    }
}

impl Core {
    /// Adds a poll that begins, of a task that was cancelled and has not observed it.
    #[cold]
    pub(crate) fn watch_poll(&self, task: &Header, region: &Arc<impl LiveTasks + 'static>) {
        let Some(limit) = self.long_polls.limit else { return };
        let since = self.host.now();
        let region: Weak<dyn LiveTasks> = Arc::downgrade(region) as _;
        let entry = Watched { task: task.id(), region, since };
        let is_first = {
            let mut list = self.long_polls.lock();
            match list.polls.iter_mut().find(|other| other.task == entry.task) {
                Some(known) => *known = entry,
                None => list.polls.push(entry),
            }
            !std::mem::replace(&mut list.is_scheduled, true)
        };
        if is_first {
            self.schedule_check(since + limit);
        }
    }

    /// Adds the current poll of a task that was cancelled during it.
    #[cold]
    pub(crate) fn watch_running(&self, task: &Header, region: &Arc<impl LiveTasks + 'static>) {
        // A blocking job may take any time.
        if !task.is_blocking() {
            self.watch_poll(task, region);
        }
    }

    /// Schedules the one check that is due. Only the thread that set `is_scheduled`, or the check
    /// itself, calls this.
    fn schedule_check(&self, due: Time) {
        match self.host.poll_monitor() {
            Some(monitor) if monitor.check_at(due) => {}
            Some(_) => self.long_polls.lock().is_scheduled = false,
            None => {
                self.long_polls.with_timers.store(due.as_nanos(), Relaxed);
                self.host.timer_moved(due);
            }
        }
    }

    /// Removes the entry of a poll that has ended, and reports the poll if it took too long.
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

    /// Checks the list with the timers, if that is due.
    #[inline]
    pub(crate) fn check_long_polls_with_timers(&self, now: Time) {
        if self.long_polls.next_with_timers().is_some_and(|due| due <= now) {
            self.long_polls.with_timers.store(NONE, Relaxed);
            self.check_long_polls(now);
        }
    }

    /// Reports the polls that have taken too long by now, each once, and schedules the next check
    /// if other polls are watched. For the host's [`PollMonitor`].
    #[cold]
    pub fn check_long_polls(&self, now: Time) {
        let Some(limit) = self.long_polls.limit else { return };
        let (late, next) = {
            let mut list = self.long_polls.lock();
            let is_late = |entry: &mut Watched| entry.since + limit <= now;
            let late: Vec<Watched> = list.polls.extract_if(.., is_late).collect();
            let next = list.polls.iter().map(|entry| entry.since + limit).min();
            list.is_scheduled = next.is_some();
            (late, next)
        };
        if let Some(next) = next {
            self.schedule_check(next);
        }
        for entry in late {
            // `None`: the task has ended.
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
