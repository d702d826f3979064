//! Timers: a task's own waits, and those of a region.

use super::records::TimerOwner;
use super::{SMALL_BYTES, SleepUntil, World};
use crate::ids::{RegionId, TaskId};
use crate::journal::{EventKind, Subject};
use crate::region::Operation;
use crate::status::{Coded, Status};
use crate::time::Time;
use crate::wheel::{RegisterError, TimerHandle};

impl<P, V> World<P, V> {
    /// Arms a region-scoped timer, which may wake a task.
    pub fn arm(
        &mut self,
        region: RegionId,
        until: SleepUntil,
        wakes: Option<TaskId>,
    ) -> Result<TimerHandle, Status> {
        self.admit_timer(region)?;
        self.room_for(SMALL_BYTES)?;
        let deadline = self.instant(until);
        let registered = self.wheel.register(deadline, TimerOwner::Region(region, wakes));
        let handle = registered.map_err(|error| self.refused_timer(&error))?;
        self.armed(region, wakes, handle, deadline);
        Ok(handle)
    }

    /// Cancels a timer; false, and nothing happens, if it is not armed any more.
    pub fn disarm(&mut self, handle: TimerHandle) -> bool {
        let Some(owner) = self.wheel.cancel(handle) else { return false };
        self.disowned(handle, owner);
        true
    }

    /// Arms a new timer in place of an old one. If that fails the old one stays; an old one that
    /// is over is no hindrance.
    pub fn update_timer(
        &mut self,
        old: TimerHandle,
        region: RegionId,
        until: SleepUntil,
        wakes: Option<TaskId>,
    ) -> Result<TimerHandle, Status> {
        self.admit_timer(region)?;
        if self.wheel.get(old).is_none() {
            self.room_for(SMALL_BYTES)?;
        }
        let deadline = self.instant(until);
        let updated = self.wheel.update(old, deadline, TimerOwner::Region(region, wakes));
        let (handle, before) = updated.map_err(|error| self.refused_timer(&error))?;
        if let Some(owner) = before {
            self.disowned(old, owner);
        }
        self.armed(region, wakes, handle, deadline);
        Ok(handle)
    }

    pub(super) fn arm_for_task(
        &mut self,
        task: TaskId,
        deadline: Time,
    ) -> Result<TimerHandle, Status> {
        self.room_for(SMALL_BYTES)?;
        let owner = TimerOwner::Task(task);
        let registered = self.wheel.register(deadline, owner);
        let handle = registered.map_err(|error| self.refused_timer(&error))?;
        self.task_mut(task)?.timers.push(handle);
        self.note_timer(handle, owner, EventKind::TimerArmed { deadline: deadline.as_nanos() });
        Ok(handle)
    }

    /// The wheel counts from its own time: it is brought up to now without firing anything.
    fn instant(&mut self, until: SleepUntil) -> Time {
        self.wheel.advance(self.now);
        match until {
            SleepUntil::After(span) => self.now + span,
            SleepUntil::At(time) => time,
        }
    }

    fn admit_timer(&mut self, region: RegionId) -> Result<(), Status> {
        let current = self.current.and_then(|(task, _)| self.tasks.get(task.0));
        let operation = match current {
            Some(record) if record.finalizer => Operation::ArmFinalizerTimer,
            _ => Operation::ArmTimer,
        };
        self.admit(region, operation).map(drop)
    }

    fn refused_timer(&mut self, error: &RegisterError<TimerOwner>) -> Status {
        let status = error.status();
        if status == Status::ResourceExhausted {
            self.note(Subject::default(), EventKind::ResourceExhausted { what: "timers" });
        }
        status
    }

    fn armed(
        &mut self,
        region: RegionId,
        wakes: Option<TaskId>,
        handle: TimerHandle,
        deadline: Time,
    ) {
        if let Some(record) = self.regions.get_mut(region.0) {
            record.timers.insert(handle);
        }
        let kind = EventKind::TimerArmed { deadline: deadline.as_nanos() };
        self.note_timer(handle, TimerOwner::Region(region, wakes), kind);
    }

    fn disowned(&mut self, handle: TimerHandle, owner: TimerOwner) {
        match owner {
            TimerOwner::Task(task) => {
                if let Some(record) = self.tasks.get_mut(task.0) {
                    record.timers.retain(|own| *own != handle);
                }
            }
            TimerOwner::Region(region, _) => {
                if let Some(record) = self.regions.get_mut(region.0) {
                    record.timers.remove(&handle);
                }
            }
        }
        self.note_timer(handle, owner, EventKind::TimerCancelled {});
    }
}
