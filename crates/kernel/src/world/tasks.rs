//! Tasks: spawning, waking, cancelling, ending.

use super::*;

impl<P, V> World<P, V> {
    /// Spawns a task into an open region.
    pub fn spawn(
        &mut self,
        region: RegionId,
        options: TaskOptions,
        payload: P,
    ) -> Offer<P, TaskId> {
        let (payload, mut record) = with(payload, self.admit_task(region, &options))?;
        record.payload = Some(payload);
        let task = self.insert_task(record);
        self.enqueue(task, self.source());
        Ok(task)
    }

    /// Records a task that failed to start: Created, then Completed with the error.
    pub fn spawn_failed(&mut self, region: RegionId, error: TaskError) -> Answer<TaskId> {
        let record = self.admit_task(region, &TaskOptions::default())?;
        let task = self.insert_task(record);
        self.finish(task, Err(NoValue::Err(error)), None);
        Ok(task)
    }

    /// Creates the record of a new task, which its region counts from now on.
    fn admit_task(&mut self, region: RegionId, options: &TaskOptions) -> Answer<TaskRecord<P>> {
        self.admit_child(region)?;
        let priority = options.priority.map_or(Priority::DEFAULT, Priority);
        let own = Budget { priority, ..options.budget };
        let budget = self.region_ref(region)?.options.budget.meet(own);
        self.room("tasks", self.usage.tasks, self.config.limits.tasks)?;
        self.room_in(if budget.deadline.is_some() { Lane::Timed } else { Lane::Ready })?;
        self.room_for(OBJECT_BYTES)?;
        let home = self.worker.unwrap_or(0);
        let parent = self.region_mut(region)?;
        parent.word.task_added();
        let record = TaskRecord::new(region, parent.take_order(), budget);
        Ok(TaskRecord { pinned: options.pinned, home, ..record })
    }

    /// Refuses if a lane has reached its limit.
    fn room_in(&mut self, lane: Lane) -> Answer {
        let limits = self.config.limits;
        let (what, limit) = match lane {
            Lane::Cancel => ("cancel_queue", limits.cancel_queue),
            Lane::Timed => ("timed_queue", limits.timed_queue),
            Lane::Ready => ("ready_queue", limits.ready_queue),
        };
        // Counting is needed only if there is a limit.
        if limit == usize::MAX {
            return Ok(());
        }
        self.room(what, self.queued_in(lane), limit)
    }

    /// Returns the number of entries in a lane, for all workers together.
    pub fn queued_in(&self, lane: Lane) -> usize {
        let local = (0..self.scheduler.workers()).map(Source::Local);
        local.chain([Source::Global]).map(|source| self.scheduler.lanes(source).len(lane)).sum()
    }

    /// Stores a record in a slot and in its region, which already counts it.
    pub(super) fn insert_task(&mut self, record: TaskRecord<P>) -> TaskId {
        let region = record.region;
        let budget = record.budget;
        let finalizer = record.finalizer;
        let Ok(key) = self.tasks.insert(record) else {
            unreachable!("four thousand million live tasks do not fit in memory")
        };
        let task = TaskId(key);
        if let Ok(record) = self.region_mut(region) {
            record.tasks.insert(task);
        }
        self.deadlines.extend(budget.deadline.map(|deadline| (deadline, task)));
        self.usage.tasks += 1;
        self.note_task(task, EventKind::TaskSpawned { priority: budget.priority.0, finalizer });
        task
    }

    /// Wakes a task from outside. A wake of a completed task is recorded and has no other effect.
    pub fn wake(&mut self, task: TaskId) -> Answer {
        let Ok(record) = self.task_ref(task) else {
            self.note_task(task, EventKind::StaleWake {});
            return Err(Status::StaleHandle);
        };
        let idle = record.queued.is_none() && !record.polling;
        if !idle || record.life.state() == TaskState::Completed {
            self.wake_task(task);
            return Ok(());
        }
        if self.current.is_none() {
            self.room_in(place(record).lane())?;
        }
        self.enqueue(task, self.source());
        Ok(())
    }

    /// Cancels a task. Returns true the first time, and false if this only strengthens the cancel
    /// or the task is completed.
    pub fn cancel_task(&mut self, task: TaskId, ask: Ask) -> Answer<bool> {
        let record = self.task_ref(task)?;
        let state = record.life.state();
        if state == TaskState::Completed {
            return Ok(false);
        }
        let region = record.region;
        let finalizer = record.finalizer;
        let adds = match record.queued {
            Some((_, place)) => place.lane() != Lane::Cancel,
            None => !record.polling && !state.acknowledged(),
        };
        if adds && !finalizer {
            self.room_in(Lane::Cancel)?;
        }
        let reason = self.reason_for(region, ask);
        let cleanup = reason.kind.cleanup();
        Ok(self.request_cancel(task, reason, cleanup))
    }

    /// Frees a Completed task's slot, also if it is kept. Its handles are stale from then on.
    pub fn release_task(&mut self, task: TaskId) -> Answer {
        let record = self.tasks.get(task.0).ok_or(Status::StaleHandle)?;
        ensure(record.life.state() == TaskState::Completed, Status::InvalidTransition)?;
        let region = record.region;
        self.tasks.remove(task.0);
        if let Some(region) = self.regions.get_mut(region.0) {
            region.ended_tasks.remove(&task);
        }
        Ok(())
    }

    /// Returns the result that an explicit transition of the task would have. Nothing changes.
    pub fn try_task(&self, task: TaskId, to: TaskState) -> Answer {
        self.task_ref(task)?.life.state().check(to)
    }

    #[inline(always)]
    pub(super) fn task_ref(&self, task: TaskId) -> Answer<&TaskRecord<P>> {
        self.known_task(task).ok_or(Status::StaleHandle)
    }

    #[inline(always)]
    pub(super) fn task_mut(&mut self, task: TaskId) -> Answer<&mut TaskRecord<P>> {
        self.known_task_mut(task).ok_or(Status::StaleHandle)
    }

    fn known_task(&self, task: TaskId) -> Option<&TaskRecord<P>> {
        self.tasks.get(task.0).filter(|record| !record.retired)
    }

    fn known_task_mut(&mut self, task: TaskId) -> Option<&mut TaskRecord<P>> {
        self.tasks.get_mut(task.0).filter(|record| !record.retired)
    }

    pub(super) fn reason_for(&self, region: RegionId, ask: Ask) -> Reason {
        let origin_task = self.current;
        let mut reason = Reason::new(ask.kind, region, self.now);
        (reason.origin_task, reason.message) = (origin_task, ask.message);
        reason
    }

    /// Returns the queue for a wake at this moment: the polling worker's, or the global one.
    pub(super) fn source(&self) -> Source {
        self.worker.map_or(Source::Global, Source::Local)
    }

    pub(super) fn wake_task(&mut self, task: TaskId) {
        match self.live_task(task) {
            Ok(record) if record.polling => record.woken = true,
            Ok(record) if record.queued.is_some() => {}
            Ok(_) => self.enqueue(task, self.source()),
            Err(_) => self.note_task(task, EventKind::StaleWake {}),
        }
    }

    pub(super) fn enqueue(&mut self, task: TaskId, source: Source) {
        let Some(record) = self.tasks.get_mut(task.0) else { return };
        let source = if record.pinned { Source::Local(record.home) } else { source };
        let place = place(record);
        record.queued = Some((self.scheduler.enqueue(source, place, task, record.pinned), place));
    }

    /// Delivers a cancel to a task. Returns true the first time.
    pub(super) fn request_cancel(
        &mut self,
        task: TaskId,
        reason: Reason,
        cleanup: Cleanup,
    ) -> bool {
        let Ok(record) = self.live_task(task) else { return false };
        if record.finalizer {
            return false;
        }
        let from = record.life.state();
        record.life.request_cancel(reason, cleanup);
        let unseen = record.life.state() == TaskState::CancelRequested;
        let first = self.note_moved(task, from);
        self.note_witness(task, !first);
        self.requeue(task, unseen);
        first
    }

    /// Moves a queued task to its current place. Enqueues a parked one if `wake` is set.
    fn requeue(&mut self, task: TaskId, wake: bool) {
        let Ok(record) = self.task_mut(task) else { return };
        let place = place(record);
        match record.queued {
            _ if record.polling => record.woken |= wake,
            Some((_, old)) if old == place => {}
            Some((ticket, _)) => {
                self.scheduler.remove(ticket);
                self.enqueue(task, self.source());
            }
            None if wake => self.enqueue(task, self.source()),
            None => {}
        }
    }

    /// Records the task's transition if its state differs from `from`. Returns whether it does.
    pub(super) fn note_moved(&mut self, task: TaskId, from: TaskState) -> bool {
        let to = self.task_ref(task).map_or(from, |record| record.life.state());
        if from != to {
            self.note_task(task, EventKind::TaskMoved { from, to });
        }
        from != to
    }

    /// Records the progress of the task's cancel.
    pub(super) fn note_witness(&mut self, task: TaskId, strengthened: bool) {
        let Some(record) = self.tasks.get_mut(task.0) else { return };
        let Some(cancel) = record.life.cancel() else { return };
        let phase = record.life.state().phase().unwrap_or(Phase::Completed);
        record.phase = Some(phase);
        let epoch = record.life.epoch();
        let kind = cancel.reason.kind;
        let polls = cancel.cleanup.polls;
        self.note_task(task, EventKind::CancelWitness { epoch, phase, kind, polls, strengthened });
    }

    /// Starts the cancel for an exhausted part of the task's budget.
    pub(super) fn exhaust(&mut self, task: TaskId, what: Exhausted) {
        let Ok(record) = self.task_ref(task) else { return };
        let kind = what.kind();
        let deadline = record.budget.deadline;
        let reason = Reason::new(kind, record.region, self.now).with_task(task);
        if let Some(deadline) = deadline.filter(|_| what == Exhausted::Deadline) {
            self.deadlines.remove(&(deadline, task));
        }
        self.note_task(task, EventKind::BudgetExhausted { kind });
        self.request_cancel(task, reason, kind.cleanup());
    }

    /// The task observes its cancel: its timers and waits end, the allowance replaces its budget.
    pub(super) fn acknowledge(&mut self, task: TaskId) -> Answer {
        let record = self.task_mut(task)?;
        let from = record.life.state();
        record.life.acknowledge()?;
        self.lift_budget(task, u64::MAX);
        self.note_moved(task, from);
        self.note_witness(task, false);
        self.end_waits(task);
        Ok(())
    }

    /// Replaces the task's limits; the priority does not change.
    pub(super) fn lift_budget(&mut self, task: TaskId, poll_quota: u64) {
        let Some(record) = self.tasks.get_mut(task.0) else { return };
        if let Some(deadline) = record.budget.deadline.take() {
            self.deadlines.remove(&(deadline, task));
        }
        record.budget.cost_quota = None;
        record.budget.poll_quota = poll_quota;
    }

    /// Removes the task from every queue in which it waits and cancels its timers.
    pub(super) fn end_waits(&mut self, task: TaskId) {
        let Ok(record) = self.task_mut(task) else { return };
        let waits = take(&mut record.waits);
        let timers = take(&mut record.timers);
        for wait in waits {
            self.end_wait(task, wait);
        }
        for timer in timers.into_values() {
            self.drop_timer(timer);
        }
    }

    /// Completes a task that has used up its allowance or grace period.
    pub(super) fn force_complete(&mut self, task: TaskId) {
        let Ok(record) = self.live_task(task) else { return };
        record.overrun = true;
        record.cut_in_poll = false;
        let polls = record.cleanup_polls;
        let stack = take(&mut record.stack);
        let natural = record.ended.take();
        let cancel = record.life.cancel().map(|cancel| cancel.reason.clone());
        let at_work = record.part == Part::Cleanup && (record.payload.is_some() || record.polling);
        self.cleanups_cut += u64::from(at_work);
        for entry in stack.into_iter().rev() {
            match entry {
                Entry::Permit(permit) => {
                    let _ = self.drop_permit(permit, DropContext::ForceCompleted);
                }
                Entry::Payload(payload) => {
                    self.cleanups_cut += 1;
                    self.released.push_back(payload);
                }
            }
        }
        self.note_task(task, EventKind::CleanupOverrun { polls });
        let reason = cancel.unwrap_or_else(|| self.out_of_polls(task));
        self.finish(task, natural.unwrap_or(Ok(())), Some(reason));
    }

    /// Aborts a task at the end of its grace period. If the configuration says so, its cleanup
    /// stack runs first, within the remaining allowance, and only the body is cut off.
    pub(super) fn end_by_grace(&mut self, task: TaskId) {
        let runs = self.config.forced_cleanup;
        let Ok(record) = self.live_task(task) else { return };
        let cleans = record.stack.iter().any(|entry| matches!(entry, Entry::Payload(_)));
        if !runs || record.part == Part::Cleanup || !cleans {
            return self.force_complete(task);
        }
        (record.forced, record.overrun) = (true, true);
        let from = record.life.state();
        let polls = record.cleanup_polls;
        let polling = record.polling;
        record.cut_in_poll = polling;
        let body = record.payload.take();
        let queued = record.queued.take();
        self.released.extend(body);
        if let Some((ticket, _)) = queued {
            self.scheduler.remove(ticket);
        }
        self.note_task(task, EventKind::CleanupOverrun { polls });
        self.end_waits(task);
        self.body_ended(task, from);
        if !polling {
            self.run_stack(task);
        }
    }

    /// Whether the end of a grace period does not abort the task: its current poll ends its body,
    /// or the period has zero length and the task is cleaning up, which its polls bound.
    pub(super) fn outlasts_grace(&self, task: TaskId, grace: Duration) -> bool {
        let Ok(record) = self.task_ref(task) else { return false };
        let cleans = record.finalizer || record.part == Part::Cleanup;
        let goes_on = grace.is_zero() && cleans && record.queued.is_some();
        record.cut_in_poll || (self.config.forced_cleanup && goes_on)
    }

    /// Returns the reason for aborting a task that was not cancelled.
    pub(super) fn out_of_polls(&self, task: TaskId) -> Reason {
        let region = self.task_ref(task).map_or(self.root, |record| record.region);
        Reason::new(Kind::PollQuota, region, self.now).with_task(task)
    }

    /// Completes a task, with its natural outcome unless a cancel is stronger. All tasks complete
    /// here.
    pub(super) fn finish(&mut self, task: TaskId, natural: TaskOutcome, cancel: Option<Reason>) {
        self.end_waits(task);
        self.lift_budget(task, 0);
        let Some(record) = self.tasks.get_mut(task.0) else { return };
        let from = record.life.state();
        let region = record.region;
        let order = record.order;
        if record.life.complete().is_err() {
            return;
        }
        let cancelled = cancel.is_some();
        let cancel = cancel.map_or(Ok(()), |reason| Err(NoValue::Cancelled(reason)));
        let outcome = natural.join(cancel);
        self.released.extend(record.payload.take());
        record.outcome = Some(outcome.clone());
        if let Some((ticket, _)) = record.queued.take() {
            self.scheduler.remove(ticket);
        }
        self.usage.tasks -= 1;
        self.note_moved(task, from);
        if cancelled {
            self.note_witness(task, false);
        }
        self.note_task(task, EventKind::TaskEnded { outcome: outcome.severity() });
        self.happened(Watched::Task(task), outcome.severity());
        if let Ok(record) = self.region_mut(region) {
            record.tasks.remove(&task);
            record.ended_tasks.insert(task);
            record.fold.add(order, outcome.clone());
        }
        self.fail_fast(region, task, &outcome);
        cascade::task_done(self, region);
    }

    /// In a fail-fast region, cancels the siblings after the first failure.
    fn fail_fast(&mut self, region: RegionId, task: TaskId, outcome: &TaskOutcome) {
        let failed = matches!(outcome.severity(), Severity::Err | Severity::Panicked);
        let Some(record) = self.regions.get_mut(region.0) else { return };
        if !failed || record.options.policy != Policy::FailFast || record.first_cause.is_some() {
            return;
        }
        record.first_cause = Some(outcome.clone());
        let reason = Reason::new(Kind::FailFast, region, self.now).with_task(task);
        let cleanup = Kind::FailFast.cleanup();
        self.cancel_tasks(region, &reason, cleanup);
        let mut after = Unbounded;
        while let Some(record) = self.regions.get(region.0)
            && let Some(&child) = record.children.range((after, Unbounded)).next()
        {
            self.cancel_region(child, reason.clone(), cleanup);
            after = Excluded(child);
        }
    }

    /// Adds a wait of the task, unless it exists.
    pub(super) fn add_wait(&mut self, task: TaskId, wait: Wait) {
        if let Some(record) = self.tasks.get_mut(task.0)
            && !record.waits.contains(&wait)
        {
            record.waits.push(wait);
        }
    }
}

/// Returns the place of a runnable task in the lanes.
pub(super) fn place<P>(record: &TaskRecord<P>) -> Place {
    let own = record.budget.priority;
    match record.life.cancel() {
        Some(cancel) => Place::cancel(Priority(own.0.max(cancel.cleanup.priority))),
        None => record.budget.deadline.map_or(Place::ready(own), Place::timed),
    }
}
