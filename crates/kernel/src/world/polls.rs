//! The step: the choice of the next task to poll, and the processing of the result of a poll.

use super::*;

impl<P, V> World<P, V> {
    /// Returns the next action at `now`. `choose` picks the worker if there is a choice.
    #[inline]
    pub fn next(&mut self, now: Time, choose: &mut impl Choose) -> Answer<Step> {
        self.step::<true>(0..self.scheduler.workers(), now, choose)
    }

    /// Like [`next`](World::next) for a world with one worker, without the stealing code.
    #[inline]
    pub fn next_alone(&mut self, now: Time, choose: &mut impl Choose) -> Answer<Step> {
        debug_assert_eq!(self.scheduler.workers(), 1);
        self.step::<false>(0..1, now, choose)
    }

    /// Returns the next action of this worker at `now`: idle if it has nothing to run.
    pub fn next_on(&mut self, worker: usize, now: Time, choose: &mut impl Choose) -> Answer<Step> {
        ensure(worker < self.scheduler.workers(), Status::InvalidArgument)?;
        self.step::<true>(worker..worker + 1, now, choose)
    }

    #[inline]
    fn step<const STEALS: bool>(
        &mut self,
        workers: Range<usize>,
        now: Time,
        choose: &mut impl Choose,
    ) -> Answer<Step> {
        ensure(self.current.is_none(), Status::Reentrant)?;
        self.set_now(now);
        loop {
            self.expire();
            let Some(worker) = self.pick_worker::<STEALS>(workers.clone(), choose) else {
                workers.for_each(|worker| self.scheduler.parked(worker));
                return Ok(Step::Idle { until: self.next_wake() });
            };
            if let Some(step) = self.dispatch::<STEALS>(worker, choose) {
                return Ok(step);
            }
        }
    }

    /// Picks one of the workers that can run something.
    fn pick_worker<const STEALS: bool>(
        &self,
        workers: Range<usize>,
        choose: &mut impl Choose,
    ) -> Option<usize> {
        if !STEALS {
            return self.scheduler.pending(0).any().then_some(0);
        }
        let can_run = |worker: &usize| self.scheduler.can_run(*worker);
        if workers.len() == 1 {
            return Some(workers.start).filter(can_run);
        }
        let mut runnable = workers.filter(can_run);
        let nth = choose.pick(Point::Worker, runnable.clone().count());
        runnable.nth(nth)
    }

    /// Advances the clock. An earlier time changes nothing.
    pub fn set_now(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.wheel.advance(now);
        }
    }

    /// Returns the next instant with a scheduled event.
    pub fn next_wake(&self) -> Option<Time> {
        let deadline = self.deadlines.first().map(|(time, _)| *time);
        let grace = self.graces.keys().next().map(|(time, _)| *time);
        [self.wheel.next_deadline(), deadline, grace].into_iter().flatten().min()
    }

    /// Sets the number of timers that may fire until the next call, for a host that must yield in
    /// between. Due timers beyond it remain due.
    pub fn allow_timers(&mut self, most: usize) {
        self.timer_allowance = most;
    }

    /// Processes expired timers, then passed deadlines, then grace periods, always before a
    /// dispatch. Returns the number of fired timers.
    pub fn expire(&mut self) -> usize {
        let fired = self.expire_timers();
        while let Some(&(deadline, task)) = self.deadlines.first()
            && deadline <= self.now
        {
            self.deadlines.pop_first();
            self.exhaust(task, Exhausted::Deadline);
        }
        while let Some((&(due, _), &(region, grace))) = self.graces.first_key_value()
            && due <= self.now
        {
            self.graces.pop_first();
            match grace {
                Grace::Close(force) => {
                    let _ = self.close_region(region, Ask::new(Kind::Shutdown), force);
                }
                // Tasks that outlast a zero-length grace must be polled before it may expire again.
                Grace::Force(again) if self.force_region(region, again) => break,
                Grace::Force(_) => {}
            }
        }
        fired
    }

    /// Fires the timers that are due and allowed. A fired timer only enqueues wakes.
    fn expire_timers(&mut self) -> usize {
        if self.wheel.storage() == 0 {
            return 0;
        }
        let mut due = take(&mut self.due);
        let fired = self.wheel.collect(self.now, self.timer_allowance, &mut due);
        if self.timer_allowance != usize::MAX {
            self.timer_allowance -= fired;
        }
        let worker = self.worker.take();
        for timer in due.drain(..) {
            let deadline = timer.deadline.as_nanos();
            self.note_timer(timer.handle, timer.token, EventKind::TimerFired { deadline });
            match timer.token.owner {
                TimerOwner::Task(wakes) | TimerOwner::Region(_, Some(wakes)) => {
                    self.wake_task(wakes)
                }
                TimerOwner::Region(_, None) => {}
            }
        }
        self.worker = worker;
        self.due = due;
        fired
    }

    /// Makes one decision. Returns `None` if the chosen task has no poll left to run.
    #[inline]
    fn dispatch<const STEALS: bool>(
        &mut self,
        worker: usize,
        choose: &mut impl Choose,
    ) -> Option<Step> {
        let decision = match STEALS {
            true => self.scheduler.next(worker, self.suggestion, choose)?,
            false => self.scheduler.next_alone(self.suggestion, choose)?,
        };
        let task = decision.token;
        self.note_decision(&decision);
        if !self.begin_poll(task, worker) {
            return None;
        }
        let part = self.tasks.get(task.0)?.part;
        Some(Step::Poll { worker, task, lane: decision.lane, part })
    }

    fn note_decision(&mut self, decision: &Decision<TaskId>) {
        let kind = EventKind::Decision {
            worker: decision.worker as u64,
            lane: decision.lane,
            decision_seq: decision.seq,
            decision_hash: decision.hash,
            cancel_streak: decision.streak.into(),
            limit: decision.limit.into(),
            fallback: decision.fallback,
        };
        self.note_task(decision.token, kind);
    }

    /// Consumes a poll and begins it. Returns false if none was left and the task was handled
    /// instead.
    #[inline]
    fn begin_poll(&mut self, task: TaskId, worker: usize) -> bool {
        let Some(record) = self.tasks.get_mut(task.0) else { return false };
        record.queued = None;
        let state = record.life.state();
        let bounded = state.acknowledged() || record.finalizer || record.part == Part::Cleanup;
        let allowed = match bounded {
            true if state.acknowledged() => record.life.consume_cleanup_poll(),
            true => record.budget.consume_poll().is_ok(),
            false => match record.budget.begin_poll(&mut record.noticed) {
                Ok(_) => true,
                Err(exhausted) => {
                    self.exhaust(task, exhausted);
                    return false;
                }
            },
        };
        if !allowed {
            self.force_complete(task);
            return false;
        }
        record.cleanup_polls += u64::from(bounded);
        record.polls_since_request += u64::from(state == TaskState::CancelRequested);
        record.polls += 1;
        record.polling = true;
        record.woken = false;
        let _ = record.life.poll();
        self.note_moved(task, state);
        (self.current, self.worker) = (Some(task), Some(worker));
        true
    }

    /// Iterates over the payloads that wait to be polled, with their tasks.
    pub fn payloads(&self) -> impl Iterator<Item = (TaskId, &P)> {
        self.tasks.iter().filter_map(|(key, record)| Some((TaskId(key), record.payload.as_ref()?)))
    }

    /// Removes and returns the payload of the task that is being polled.
    #[inline]
    pub fn take_payload(&mut self, task: TaskId) -> Option<P> {
        self.current.filter(|current| *current == task)?;
        self.tasks.get_mut(task.0)?.payload.take()
    }

    /// Reports the end of a poll. Returns the payload if it will not be polled again.
    #[inline]
    pub fn polled(&mut self, task: TaskId, payload: P, end: PollEnd) -> Offer<P, Option<P>> {
        if self.current != Some(task) {
            return Err((Status::InvalidArgument, payload));
        }
        self.current = None;
        let unused = self.settle_poll(task, payload, end);
        self.worker = None;
        Ok(unused)
    }

    #[inline]
    fn settle_poll(&mut self, task: TaskId, payload: P, end: PollEnd) -> Option<P> {
        let Some(record) = self.tasks.get_mut(task.0) else { return Some(payload) };
        record.polling = false;
        if record.life.state() == TaskState::Completed {
            return Some(payload);
        }
        if take(&mut record.cut_in_poll) {
            self.end_waits(task);
            self.run_stack(task);
            return Some(payload);
        }
        if end != PollEnd::Pending {
            self.part_ended(task, end);
            return Some(payload);
        }
        record.payload = Some(payload);
        if record.woken {
            self.enqueue(task, self.source());
        }
        None
    }

    #[inline(never)]
    fn part_ended(&mut self, task: TaskId, end: PollEnd) {
        let Some(record) = self.tasks.get(task.0) else { return };
        let state = record.life.state();
        let part = record.part;
        if end == PollEnd::Cancelled && part == Part::Body && state == TaskState::CancelRequested {
            let _ = self.acknowledge(task);
        }
        self.end_waits(task);
        let Some(record) = self.tasks.get_mut(task.0) else { return };
        let from = record.life.state();
        let in_cleanup = from.acknowledged() || part == Part::Cleanup;
        let outcome = match end {
            PollEnd::Ready | PollEnd::Pending => Ok(()),
            PollEnd::Failed(error) => Err(NoValue::Err(error)),
            PollEnd::Panicked(message) => Err(NoValue::Panicked(message)),
            PollEnd::Cancelled if in_cleanup => Ok(()),
            PollEnd::Cancelled => {
                let status = Some(Status::Cancelled);
                Err(NoValue::Err(TaskError { status, message: "gave up uncancelled".into() }))
            }
        };
        match outcome {
            Err(NoValue::Err(error)) if in_cleanup => {
                record.cleanup_error = Some(error);
                self.note_task(task, EventKind::CleanupError {});
            }
            outcome => record.ended = Some(record.ended.take().unwrap_or(Ok(())).join(outcome)),
        }
        if part == Part::Body {
            self.body_ended(task, from);
        }
        self.run_stack(task);
    }

    pub(super) fn body_ended(&mut self, task: TaskId, from: TaskState) {
        let Some(record) = self.tasks.get_mut(task.0) else { return };
        record.part = Part::Cleanup;
        let _ = record.life.body_ended();
        let finalizer = record.finalizer;
        let natural = record.life.cancel().map_or(Kind::User.cleanup(), |cancel| cancel.cleanup);
        if self.note_moved(task, from) {
            self.note_witness(task, false);
        } else if !finalizer {
            self.lift_budget(task, natural.polls);
        }
    }

    /// Runs the cleanup stack from its top: permits immediately, other entries by polls. Then
    /// completes the task.
    pub(super) fn run_stack(&mut self, task: TaskId) {
        while let Some(record) = self.tasks.get_mut(task.0) {
            match record.stack.pop() {
                Some(Entry::Permit(permit)) => {
                    let unwinding = matches!(record.ended, Some(Err(NoValue::Panicked(_))));
                    let forced = record.forced;
                    // Back on top, where resolving it finds it immediately.
                    record.stack.push(Entry::Permit(permit));
                    let _ = match (unwinding, forced) {
                        (true, _) => self.drop_permit(permit, DropContext::Unwinding).map(drop),
                        (_, true) => {
                            self.drop_permit(permit, DropContext::ForceCompleted).map(drop)
                        }
                        _ => self.abort(permit),
                    };
                }
                Some(Entry::Payload(payload)) => {
                    record.payload = Some(payload);
                    return self.enqueue(task, self.source());
                }
                None => {
                    let natural = record.ended.take().unwrap_or(Ok(()));
                    let seen = record.life.state().acknowledged();
                    let forced = record.forced;
                    let cancel = record.life.cancel().filter(|_| seen || forced);
                    let reason = cancel.map(|cancel| cancel.reason.clone());
                    let reason = reason.or_else(|| forced.then(|| self.out_of_polls(task)));
                    return self.finish(task, natural, reason);
                }
            }
        }
    }
}
