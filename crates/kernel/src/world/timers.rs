//! Timers: a task's own waits, and those of a region.

use super::*;

impl<P, V> World<P, V> {
    /// Arms a region-scoped timer, which may wake a task.
    pub fn arm(
        &mut self,
        region: RegionId,
        until: SleepUntil,
        wakes: Option<TaskId>,
    ) -> Answer<TimerHandle> {
        self.admit_timer(region)?;
        let deadline = self.instant(until);
        self.arm_for(TimerOwner::Region(region, wakes), deadline)
    }

    /// Cancels a timer; false, and nothing happens, if it is not armed any more.
    pub fn disarm(&mut self, handle: TimerHandle) -> bool {
        let Some(owner) = self.wheel.cancel(handle) else { return false };
        self.disowned(handle, owner, EventKind::TimerCancelled {});
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
    ) -> Answer<TimerHandle> {
        self.admit_timer(region)?;
        if self.wheel.get(old).is_none() {
            self.room_for(SMALL_BYTES)?;
        }
        let deadline = self.instant(until);
        let owner = TimerOwner::Region(region, wakes);
        let updated = self.wheel.update(old, deadline, owner);
        let (handle, before) = updated.map_err(|error| self.refused_timer(&error))?;
        if let Some(owner) = before {
            self.disowned(old, owner, EventKind::TimerCancelled {});
        }
        self.armed(owner, handle, deadline);
        Ok(handle)
    }

    pub(super) fn arm_for(&mut self, owner: TimerOwner, deadline: Time) -> Answer<TimerHandle> {
        self.room_for(SMALL_BYTES)?;
        let registered = self.wheel.register(deadline, owner);
        let handle = registered.map_err(|error| self.refused_timer(&error))?;
        self.armed(owner, handle, deadline);
        Ok(handle)
    }

    fn instant(&self, until: SleepUntil) -> Time {
        match until {
            SleepUntil::After(span) => self.now + span,
            SleepUntil::At(time) => time,
        }
    }

    fn admit_timer(&mut self, region: RegionId) -> Answer {
        let current = self.current.and_then(|task| self.tasks.get(task.0));
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

    fn armed(&mut self, owner: TimerOwner, handle: TimerHandle, deadline: Time) {
        if let Some(timers) = self.timers_of(owner) {
            timers.insert(handle);
        }
        let kind = EventKind::TimerArmed { deadline: deadline.as_nanos() };
        self.note_timer(handle, owner, kind);
    }

    /// The timer is over: cancelled or fired.
    pub(super) fn disowned(&mut self, handle: TimerHandle, owner: TimerOwner, kind: EventKind) {
        if let Some(timers) = self.timers_of(owner) {
            timers.remove(&handle);
        }
        self.note_timer(handle, owner, kind);
    }

    fn timers_of(&mut self, owner: TimerOwner) -> Option<&mut BTreeSet<TimerHandle>> {
        match owner {
            TimerOwner::Task(task) => self.tasks.get_mut(task.0).map(|r| &mut r.timers),
            TimerOwner::Region(region, _) => self.regions.get_mut(region.0).map(|r| &mut r.timers),
        }
    }
}
