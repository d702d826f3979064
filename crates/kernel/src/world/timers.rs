//! Timers of tasks (their own waits) and of regions.

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

    /// Cancels a timer. Returns false, without any effect, if it is not armed. A task is woken when
    /// its sleep is cancelled: the sleep has ended.
    pub fn disarm(&mut self, handle: TimerHandle) -> bool {
        let owner = self.drop_timer(handle);
        if let Some(TimerOwner::Task(task)) = owner {
            self.wake_task(task);
        }
        owner.is_some()
    }

    /// Replaces a timer by a new one. If arming fails the old timer remains. An old timer that has
    /// ended is not an error.
    pub fn update_timer(
        &mut self,
        old: TimerHandle,
        region: RegionId,
        until: SleepUntil,
        wakes: Option<TaskId>,
    ) -> Answer<TimerHandle> {
        self.admit_timer(region)?;
        if self.wheel.get(old).is_none() {
            return self.arm(region, until, wakes);
        }
        let deadline = self.instant(until);
        let token = self.timer_token(TimerOwner::Region(region, wakes));
        let updated = self.wheel.update(old, deadline, token);
        let (handle, before) = updated.map_err(|error| self.refused_timer(&error))?;
        let deadline = deadline.as_nanos();
        self.note_timer(handle, token, EventKind::TimerArmed { deadline });
        if let Some(token) = before {
            self.note_timer(old, token, EventKind::TimerCancelled {});
        }
        Ok(handle)
    }

    pub(super) fn drop_timer(&mut self, handle: TimerHandle) -> Option<TimerOwner> {
        let token = self.wheel.cancel(handle)?;
        self.note_timer(handle, token, EventKind::TimerCancelled {});
        Some(token.owner)
    }

    pub(super) fn arm_for(&mut self, owner: TimerOwner, deadline: Time) -> Answer<TimerHandle> {
        self.room_for(SMALL_BYTES)?;
        // The wheel measures distances from its own time, so advance it first.
        self.wheel.advance(self.now);
        let token = self.timer_token(owner);
        let registered = self.wheel.register(deadline, token);
        let handle = registered.map_err(|error| self.refused_timer(&error))?;
        let deadline = deadline.as_nanos();
        self.note_timer(handle, token, EventKind::TimerArmed { deadline });
        Ok(handle)
    }

    fn timer_token(&mut self, owner: TimerOwner) -> TimerToken {
        self.timers_made += 1;
        TimerToken { owner, order: self.timers_made }
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

    fn refused_timer(&mut self, error: &RegisterError<TimerToken>) -> Status {
        let status = error.status();
        if status == Status::ResourceExhausted {
            self.note(Subject::default(), EventKind::ResourceExhausted { what: "timers" });
        }
        status
    }

    /// Records an event of a timer. The owner lists the timer from arming to its end.
    pub(super) fn note_timer(&mut self, handle: TimerHandle, token: TimerToken, kind: EventKind) {
        let mut subject = Subject { timer: Some(handle.generation), ..Subject::default() };
        let timers = match token.owner {
            TimerOwner::Task(task) => {
                subject.task = Some(task.ordinal());
                self.task_mut(task).map(|record| &mut record.timers)
            }
            TimerOwner::Region(region, _) => {
                subject.region = Some(region.ordinal());
                self.region_mut(region).map(|record| &mut record.timers)
            }
        };
        match (timers, kind) {
            (Ok(timers), EventKind::TimerArmed { .. }) => drop(timers.insert(token.order, handle)),
            (Ok(timers), _) => drop(timers.remove(&token.order)),
            (Err(_), _) => {}
        }
        self.note(subject, kind);
    }
}
