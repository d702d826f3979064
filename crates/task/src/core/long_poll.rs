//! Detection of tasks that were cancelled and stay inside one poll.
//!
//! A loop without an await never observes its cancel, and counting polls does not find it. Polls
//! are watched only while their task has an unobserved cancel:
//!
//! - A poll of a task that is already cancelled is published in a slot of its thread, and withdrawn
//!   when it ends.
//! - A cancel of a task that is being polled adds that poll to a list. A check that finds the task
//!   in no poll removes the entry, and so does the next poll of the task, or its end.
//!
//! A thread of the host that runs no tasks ([`PollMonitor`]) checks slots and list several times
//! within the limit, since all other threads may be inside such polls. It reports a poll that it
//! has seen for as long as the limit. Without such a thread no poll is watched.
//!
//! # Why no poll is missed
//! 1. The monitor stops after two checks in a row that saw no poll. The first of them makes
//!    `is_checked` false.
//! 2. A thread publishes its poll and then reads `is_checked`. If it reads false, it has the
//!    monitor check again.
//! 3. If it reads true, it read before the store of the first check arrived. The slot was written
//!    before that, and the second check, at least a millisecond later, sees it.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use asx_kernel::task::TaskState;
use asx_kernel::time::Time;

use super::latency::Unheeded;
use crate::core::Core;
use crate::raw::{Activity, Header, TaskRef};

/// Checks within the limit.
const CHECKS: u32 = 4;
/// The shortest time between two checks.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// A thread of a host that runs no tasks, for checks of polls that do not return.
pub trait PollMonitor {
    /// Has the thread call [`Region::check_long_polls`](crate::Region::check_long_polls) of the
    /// root at `due`. Returns false if it cannot; the next poll that is watched calls this again.
    fn check_at(&self, due: Time) -> bool;
}

/// The current poll of a thread, if its task had an unobserved cancel when the poll began.
///
/// Aligned so that slots share no cache line.
#[repr(align(128))]
#[derive(Default)]
struct Slot {
    /// The runtime of the task, by the address of its core.
    core: AtomicUsize,
    /// The number of the task; 0 outside of such polls.
    task: AtomicU64,
    /// The number of such polls on this thread so far.
    polls: AtomicU64,
}

/// The slots of all threads that ever had such a poll. Slots of threads that have ended are removed
/// by the next thread that adds one.
static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    static SLOT: Arc<Slot> = {
        let slot = Arc::new(Slot::default());
        let mut slots = lock(&SLOTS);
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        slot
    };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watched polls of a runtime.
pub(crate) struct LongPolls {
    /// How long a poll may take after a cancel; `None`: any time, and no poll is watched.
    limit: Option<Duration>,
    count: AtomicU64,
    /// A check is due that is not the last one, or there is no limit and no check is ever due.
    is_checked: AtomicBool,
    /// 0 if `State::running` is empty and no check has taken its entries.
    running: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Polls that were running when their task was cancelled.
    running: Vec<Running>,
    /// The polls in slots at the last check.
    seen: Vec<Seen>,
    /// The next check is the last one, unless it sees a poll.
    is_last: bool,
    /// During a check, which has taken `running`: the tasks that were removed meanwhile.
    removed: Option<Vec<u64>>,
}

impl State {
    /// Notes the polls in slots; returns those that have become late.
    fn see(&mut self, polls: Vec<InSlot>, now: Time, is_late: impl Fn(Time) -> bool) -> Vec<Late> {
        let before = std::mem::take(&mut self.seen);
        let mut late = Vec::new();
        for poll in polls {
            let known = before.iter().find(|seen| seen.poll == poll).copied();
            let mut seen = known.unwrap_or(Seen { poll, since: now, is_reported: false });
            if !seen.is_reported && is_late(seen.since) {
                seen.is_reported = true;
                late.push(Late { task: poll.task, since: seen.since });
            }
            self.seen.push(seen);
        }
        late
    }

    /// Removes the entry of a task from `running`; returns the new length.
    fn remove_running(&mut self, task: u64) -> usize {
        self.running.retain(|other| other.task != task);
        self.removed.iter_mut().for_each(|removed| removed.push(task));
        self.running.len()
    }
}

/// A poll that was running when its task was cancelled.
struct Running {
    task: u64,
    /// Weak: the entry does not keep the memory of a completed task.
    region: Weak<dyn LiveTasks>,
    since: Time,
}

/// A poll in a slot. Fields that were read while another poll began describe no poll, and are
/// different at the next check.
#[derive(Clone, Copy, PartialEq, Eq)]
struct InSlot {
    /// The address of the slot.
    slot: usize,
    polls: u64,
    task: u64,
}

/// A poll that checks have seen.
#[derive(Clone, Copy)]
struct Seen {
    poll: InSlot,
    /// The time of the first of these checks.
    since: Time,
    is_reported: bool,
}

/// A poll in a slot that has taken too long.
struct Late {
    task: u64,
    since: Time,
}

/// Finds tasks of a region by their numbers.
pub(crate) trait LiveTasks: Send + Sync {
    /// The task of this region with this number, if it has not ended.
    fn live_task(&self, id: u64) -> Option<TaskRef>;

    /// The same of this region and all regions inside it.
    fn find_task(&self, id: u64) -> Option<TaskRef>;
}

impl LongPolls {
    pub(crate) fn new(limit: Option<Duration>) -> LongPolls {
        let limit = limit.filter(|limit| *limit < Duration::MAX);
        LongPolls {
            limit,
            count: AtomicU64::new(0),
            is_checked: AtomicBool::new(limit.is_none()),
            running: AtomicUsize::new(0),
            state: Mutex::default(),
        }
    }

    /// The number of polls that took too long.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    /// Removes the entry of a task that is in no poll, or in another one.
    #[cold]
    fn remove_running(&self, task: u64) {
        let mut state = lock(&self.state);
        let left = state.remove_running(task);
        // Entries that a check has taken come back.
        let taken = usize::from(state.removed.is_some());
        self.running.store(left + taken, Relaxed);
    }
}

impl Core {
    /// Publishes a poll that begins, of a task that was cancelled and has not observed it.
    #[inline]
    pub(crate) fn watch_poll(&self, task: &Header) {
        // Fails on a thread that is about to end: its poll is not watched. Without a limit the slot
        // is not read.
        let _ = SLOT.try_with(|slot| {
            slot.core.store(std::ptr::from_ref(self).addr(), Relaxed);
            slot.polls.store(slot.polls.load(Relaxed) + 1, Relaxed);
            slot.task.store(task.id(), Relaxed);
        });
        if self.long_polls.running.load(Relaxed) > 0 {
            self.long_polls.remove_running(task.id());
        }
        if !self.long_polls.is_checked.load(Relaxed) {
            self.begin_checks();
        }
    }

    /// Withdraws the poll of this thread, which began after the cancel of its task.
    #[inline]
    pub(crate) fn watched_poll_ended(&self) {
        let _ = SLOT.try_with(|slot| slot.task.store(0, Relaxed));
    }

    /// Adds the current poll of a task that was cancelled during it.
    #[cold]
    pub(crate) fn watch_running(&self, task: &Header, region: &Arc<impl LiveTasks + 'static>) {
        // A blocking job may take any time.
        if self.long_polls.limit.is_none() || task.is_blocking() {
            return;
        }
        let region: Weak<dyn LiveTasks> = Arc::downgrade(region) as _;
        let entry = Running { task: task.id(), region, since: self.host.now() };
        {
            let mut state = lock(&self.long_polls.state);
            state.running.push(entry);
            self.long_polls.running.store(state.running.len(), Relaxed);
        }
        if !self.long_polls.is_checked.load(Relaxed) {
            self.begin_checks();
        }
    }

    /// Removes the entry of a task that was cancelled in its last poll.
    #[cold]
    pub(crate) fn running_ended(&self, task: &Header) {
        if self.long_polls.running.load(Relaxed) > 0 {
            self.long_polls.remove_running(task.id());
        }
    }

    #[cold]
    fn begin_checks(&self) {
        {
            let mut state = lock(&self.long_polls.state);
            if self.long_polls.is_checked.swap(true, Relaxed) {
                return;
            }
            state.is_last = false;
        }
        self.schedule_check(self.host.now());
    }

    /// Reports the polls that have taken too long by now, each once, and schedules the next check.
    pub(crate) fn check_long_polls(&self, root: &dyn LiveTasks, now: Time) {
        let Some(limit) = self.long_polls.limit else { return };
        let is_late = |since: Time| since + limit <= now;
        let running = {
            let mut state = lock(&self.long_polls.state);
            state.removed = Some(Vec::new());
            std::mem::take(&mut state.running)
        };
        let mut late = Vec::new();
        let mut still = Vec::new();
        // A cancel adds entries under the lock of a region. So the state is not locked here, where
        // regions are.
        for entry in running {
            let task = entry.region.upgrade().and_then(|region| region.live_task(entry.task));
            match task.filter(|task| has_unobserved_cancel(task)) {
                Some(task) if is_late(entry.since) => late.push((task, entry.since)),
                Some(_) => still.push(entry),
                None => {}
            }
        }
        let in_slots = self.polls_in_slots();
        let (goes_on, late_in_slots) = {
            let mut state = lock(&self.long_polls.state);
            let removed = state.removed.take().unwrap_or_default();
            still.retain(|entry| !removed.contains(&entry.task));
            state.running.append(&mut still);
            self.long_polls.running.store(state.running.len(), Relaxed);
            let late_in_slots = state.see(in_slots, now, is_late);
            let sees_any = !state.seen.is_empty() || !state.running.is_empty();
            let goes_on = sees_any || !state.is_last;
            self.long_polls.is_checked.store(sees_any, Relaxed);
            state.is_last = !sees_any;
            (goes_on, late_in_slots)
        };
        if goes_on {
            self.schedule_check(now);
        }
        for seen in late_in_slots {
            let task = root.find_task(seen.task).filter(|task| has_unobserved_cancel(task));
            late.extend(task.map(|task| (task, seen.since)));
        }
        for (task, since) in late {
            self.long_poll(&task, now - since);
        }
    }

    /// Schedules the next check.
    fn schedule_check(&self, now: Time) {
        let Some(limit) = self.long_polls.limit else { return };
        let due = now + (limit / CHECKS).max(MIN_INTERVAL);
        if !self.host.poll_monitor().is_some_and(|monitor| monitor.check_at(due)) {
            self.long_polls.is_checked.store(false, Relaxed);
        }
    }

    /// The polls of this runtime in slots.
    fn polls_in_slots(&self) -> Vec<InSlot> {
        let own = std::ptr::from_ref(self).addr();
        let slots: Vec<_> = lock(&SLOTS).iter().filter_map(Weak::upgrade).collect();
        let polls = slots.iter().filter_map(|slot| {
            let task = slot.task.load(Relaxed);
            let is_own = slot.core.load(Relaxed) == own;
            let polls = slot.polls.load(Relaxed);
            (is_own && task != 0).then(|| InSlot { slot: Arc::as_ptr(slot).addr(), polls, task })
        });
        polls.collect()
    }

    fn long_poll(&self, task: &TaskRef, took: Duration) {
        // Once for each task.
        if !task.is_first_unheeded() {
            return;
        }
        let unheeded = Unheeded { inside: Some(took), ..Unheeded::of(task, 1) };
        self.note_unheeded(task, &self.long_polls.count, unheeded);
    }
}

/// Whether the task is being polled and has not observed its cancel.
fn has_unobserved_cancel(task: &Header) -> bool {
    let word = task.word.load();
    word.activity() == Activity::Running && word.state() == TaskState::CancelRequested
}
