//! When patience is over: the steps from a word to force.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_kernel::journal::EventKind;
use asx_kernel::region::RegionState;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::cell::{Armed, FREE, Runnable, TaskRef};
use crate::core::{Alarm, Core};
use crate::cx::Wait;
use crate::poll;
use crate::region::Region;

/// From forcing what can be ended at once to forcing the rest.
const FORCE_AGAIN: Duration = Duration::from_millis(10);

/// The alarms of one region.
#[derive(Default)]
pub(crate) struct Graces {
    cancels: Vec<TimerHandle>,
    force: Option<(Time, TimerHandle)>,
}

impl Graces {
    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.cancels.is_empty() && self.force.is_none()
    }

    /// The region has closed: nothing of it happens any more.
    pub(crate) fn cancel(self, core: &Core) -> Vec<Armed> {
        let all = self.cancels.into_iter().chain(self.force.map(|(_, alarm)| alarm));
        all.filter_map(|alarm| core.alarms.cancel(alarm)).collect()
    }
}

impl Region {
    /// Stops what is inside in three steps: it is told, after `soft` it is cancelled, and after
    /// `hard` more what still lives is ended by force.
    pub(crate) fn stop_within(self: &Arc<Self>, soft: Duration, hard: Duration, kind: Kind) {
        self.stop();
        self.cancel_after(soft, kind, Some(hard));
    }

    /// The same for good, without force unless asked; without patience it is cancelled at once.
    pub(crate) fn shutdown_after(self: &Arc<Self>, soft: Duration, force: Option<Duration>) {
        self.stop();
        if !soft.is_zero() {
            return self.cancel_after(soft, Kind::Shutdown, force);
        }
        self.close_as(Kind::Shutdown);
        if let Some(after) = force {
            self.force_after(after);
        }
    }

    /// Ends by force whatever lives in the regions inside, which are closed; this one stays open.
    #[cfg(feature = "lab")]
    pub fn abandon(&self) {
        let children: Vec<_> = self.lock().children.values().cloned().collect();
        for child in children {
            child.shutdown_after(Duration::ZERO, Some(Duration::ZERO));
        }
    }

    /// Asks the task with this number to stop, if it lives in here or below.
    #[cfg(feature = "lab")]
    pub fn cancel_number(&self, number: u64) -> bool {
        self.with_number(number, &|region, task| {
            let reason = Arc::new(region.reason(Kind::User));
            region.cancel_task(task, &reason, Kind::User.cleanup())
        })
    }

    /// Whether the task with this number lives in here or below, and waits.
    #[cfg(feature = "lab")]
    pub fn waits_number(&self, number: u64) -> bool {
        self.with_number(number, &|_, task| {
            let word = task.word.load();
            word.activity() == crate::Activity::Waiting && !word.is_completed()
        })
    }

    /// Wakes the task with this number, for no reason, if it lives in here or below.
    #[cfg(feature = "lab")]
    pub fn wake_number(&self, number: u64) -> bool {
        self.with_number(number, &|_, task| {
            task.lend_waker().wake_by_ref();
            true
        })
    }

    #[cfg(feature = "lab")]
    fn with_number(&self, number: u64, act: &dyn Fn(&Region, &TaskRef) -> bool) -> bool {
        let (mut found, mut answer) = (false, false);
        self.each_inside(|region| {
            let (mut task, mut children) = (None, Vec::new());
            if !found {
                let inner = region.lock();
                inner.each_task(|each| {
                    // SAFETY: the region keeps its tasks alive, and its lock is held.
                    let each = unsafe { TaskRef::borrowed(each) };
                    task = task.take().or((each.id() == number).then_some(each));
                });
                children.extend(inner.children.values().cloned());
            }
            if let Some(task) = task {
                (found, answer) = (true, act(region, &task));
                children.clear();
            }
            children
        });
        answer
    }

    fn cancel_after(self: &Arc<Self>, soft: Duration, kind: Kind, force: Option<Duration>) {
        let host = &*self.core.host;
        let (when, alarm) = (host.now() + soft, Alarm::Cancel(Arc::downgrade(self), kind, force));
        let alarm = Armed::alarm(alarm);
        let Ok(alarm) = self.core.alarms.register(host, when, alarm) else { return };
        let mut inner = self.lock();
        if inner.word.state() == RegionState::Closed {
            drop(inner);
            return drop(self.core.alarms.cancel(alarm));
        }
        inner.graces.cancels.push(alarm);
    }

    /// Has what still lives after a while ended by force; of several whiles the shortest counts.
    pub(crate) fn force_after(self: &Arc<Self>, after: Duration) {
        if self.lock().word.state() == RegionState::Closed {
            return;
        }
        let host = &*self.core.host;
        let when = host.now() + after;
        let alarm = Armed::alarm(Alarm::Force(Arc::downgrade(self), after));
        let Ok(alarm) = self.core.alarms.register(host, when, alarm) else { return };
        let mut inner = self.lock();
        let earlier = inner.graces.force.is_some_and(|(earlier, _)| earlier <= when);
        let needless = earlier || inner.word.state() == RegionState::Closed;
        let rest = match needless {
            true => Some(alarm),
            false => inner.graces.force.replace((when, alarm)).map(|(_, later)| later),
        };
        drop(inner);
        drop(rest.and_then(|alarm| self.core.alarms.cancel(alarm)));
    }

    /// Ends by force what still lives in a closing region. Whoever only waits for what is inside is
    /// spared for a moment: it gets the chance to end by itself. What begins only then (finalizers)
    /// has the same patience again.
    pub(crate) fn force(self: &Arc<Self>, again: Duration) {
        self.lock().graces.force = None;
        if self.has_tasks() {
            let inner = self.lock();
            if inner.word.state() != RegionState::Closed {
                self.note(EventKind::GraceExpired {});
            }
            drop(inner);
            self.span.grace_expired();
        }
        let rest = self.force_inside();
        self.force_after(if rest { FORCE_AGAIN } else { again });
    }

    fn has_tasks(&self) -> bool {
        let mut any = false;
        self.each_inside(|region| {
            if any {
                return Vec::new();
            }
            let inner = region.lock();
            any = inner.word.live_tasks() > 0;
            if any { Vec::new() } else { inner.children.values().cloned().collect() }
        });
        any
    }

    /// Ends what is in here and below, own tasks first; whether anybody was spared, or is to end
    /// with its next poll.
    pub(crate) fn force_inside(&self) -> bool {
        let mut rest = false;
        self.each_inside(|region| {
            let mut tasks = Vec::new();
            let children: Vec<_> = {
                let inner = region.lock();
                if inner.word.state() != RegionState::Open {
                    // SAFETY: the region keeps its tasks alive, and its lock is held.
                    inner.each_task(|task| tasks.push(unsafe { TaskRef::borrowed(task) }));
                }
                inner.children.values().cloned().collect()
            };
            let all = tasks.len();
            let waits = |task: &TaskRef| matches!(task.wait(), Some((Wait::Scope | Wait::Join, _)));
            tasks.retain(|task| children.is_empty() || !waits(task));
            let ended = tasks.iter().filter(|task| region.force_task(task)).count();
            rest |= ended < all;
            children
        });
        rest
    }

    /// Ends a task now, if nobody polls it and it may be dropped here; else its next poll does.
    fn force_task(&self, task: &TaskRef) -> bool {
        let host = &*self.core.host;
        let here = task.pin == FREE || host.here() == Some(task.pin);
        if here && let Some(scheduled) = task.word.seize() {
            if scheduled {
                // The entry that is in some queue outlives the task: it needs its own reference.
                task.word.add_reference();
                if let Some(entry) = host.unschedule(task.id()) {
                    entry.give_up();
                }
            }
            // SAFETY: rule 1 of cells: the reference of the region, which goes with the task's end.
            let task = unsafe { TaskRef::from_raw(task.as_ptr()) };
            poll::force(ManuallyDrop::new(task));
            return true;
        }
        if task.word.force() {
            // SAFETY: it was made scheduled just now.
            host.schedule(unsafe { Runnable::new(task.as_ptr()) });
        }
        task.word.load().is_completed()
    }
}
