//! Operations of a task inside its poll: observing cancellation, waiting, spending.

use super::*;

impl<P, V> World<P, V> {
    /// Checks for cancellation: CANCELLED if it was requested, and the task has observed it now.
    pub fn checkpoint(&mut self, task: TaskId) -> Answer {
        self.observe(task)
    }

    /// Whether the task is cancelled. If so, it has observed it now.
    pub fn is_cancelled(&mut self, task: TaskId) -> Answer<bool> {
        match self.observe(task) {
            Ok(()) => Ok(false),
            Err(Status::Cancelled) => Ok(true),
            Err(status) => Err(status),
        }
    }

    /// Suspends cancellation checks until the matching [`unshield`](World::unshield).
    pub fn shield(&mut self, task: TaskId) -> Answer {
        let record = self.task_mut(task)?;
        record.shields = record.shields.checked_add(1).ok_or(Status::ResourceExhausted)?;
        Ok(())
    }

    /// Ends the innermost shield.
    pub fn unshield(&mut self, task: TaskId) -> Answer {
        let record = self.task_mut(task)?;
        record.shields = record.shields.checked_sub(1).ok_or(Status::InvalidTransition)?;
        Ok(())
    }

    /// Pushes an entry on the task's cleanup stack.
    pub fn push_cleanup(&mut self, task: TaskId, payload: P) -> Offer<P> {
        let (payload, record) = with(payload, self.live_task(task))?;
        record.stack.push(Entry::Payload(payload));
        Ok(())
    }

    /// Consumes cost. On BUDGET_EXHAUSTED, consumes nothing and starts the cancel.
    pub fn spend(&mut self, task: TaskId, cost: u64) -> Answer {
        let record = self.live_task(task)?;
        let Err(exhausted) = record.budget.consume_cost(cost) else { return Ok(()) };
        record.noticed.insert(exhausted);
        self.exhaust(task, exhausted);
        Err(exhausted.status())
    }

    /// Begins a sleep, bounded by the task's deadline. [`slept`](World::slept) waits for its end.
    pub fn sleep(&mut self, task: TaskId, until: SleepUntil) -> Answer<TimerHandle> {
        let now = self.now;
        let record = self.live_task(task)?;
        let span = match until {
            SleepUntil::After(span) => span,
            SleepUntil::At(time) => time - now,
        };
        let end = record.budget.wait_until(now, span);
        if let Err(exhausted) = end
            && !record.life.state().in_cancel_lane()
        {
            self.exhaust(task, exhausted);
            return Err(exhausted.status());
        }
        self.observe(task)?;
        let end = end.map_err(|exhausted| exhausted.status())?;
        self.arm_for(TimerOwner::Task(task), end)
    }

    /// Whether the sleep has ended.
    pub fn slept(&mut self, task: TaskId, timer: TimerHandle) -> Answer<Poll<()>> {
        self.observe(task)?;
        let pending = self.task_ref(task)?.timers.values().any(|own| *own == timer);
        Ok(if pending { Poll::Pending } else { Poll::Ready(()) })
    }

    /// Waits for another task to end. Returns the severity of its outcome.
    pub fn join(&mut self, task: TaskId, target: TaskId) -> Answer<Poll<Severity>> {
        self.watch(task, Watched::Task(target), |world| {
            Ok(world.task_ref(target)?.outcome.as_ref().map(Lattice::severity))
        })
    }

    /// Waits for a region to close. Returns the severity of its outcome.
    pub fn closed(&mut self, task: TaskId, region: RegionId) -> Answer<Poll<Severity>> {
        self.watch(task, Watched::Region(region), |world| Ok(world.region_ref(region)?.outcome()))
    }

    /// Waits for the soft stop.
    pub fn stopping(&mut self, task: TaskId) -> Answer<Poll<()>> {
        let look = |world: &Self| Ok(world.stopping.then_some(Severity::Ok));
        self.watch(task, Watched::NoValue, look).map(|poll| poll.map(drop))
    }

    /// Returns the outcome of the watched event, or registers a waiter. A task that was registered
    /// in time gets the outcome even if the object was removed since.
    fn watch(
        &mut self,
        task: TaskId,
        what: Watched,
        look: impl FnOnce(&Self) -> Answer<Option<Severity>>,
    ) -> Answer<Poll<Severity>> {
        let waits = &self.task_ref(task)?.waits;
        let waiting = waits.iter().any(|wait| matches!(wait, Wait::Watch(of, _) if *of == what));
        let seen = waits.iter().find_map(|wait| match wait {
            Wait::Seen(of, outcome) if *of == what => Some(*outcome),
            _ => None,
        });
        let happened = if seen.is_some() { seen } else { look(self)? };
        self.observe(task)?;
        if let Some(outcome) = happened {
            self.forget_wait(task, Wait::Seen(what, outcome));
            return Ok(Poll::Ready(outcome));
        }
        if !waiting {
            self.asked += 1;
            self.watchers.insert((what, self.asked), task);
            self.add_wait(task, Wait::Watch(what, self.asked));
        }
        Ok(Poll::Pending)
    }

    /// Records that an event has happened and wakes its waiters, in order of registration.
    pub(super) fn happened(&mut self, what: Watched, outcome: Severity) {
        let all = (what, 0)..=(what, u64::MAX);
        while let Some((&(_, asked), &task)) = self.watchers.range(all.clone()).next() {
            self.watchers.remove(&(what, asked));
            if let Some(record) = self.tasks.get_mut(task.0) {
                record.waits.retain(|wait| *wait != Wait::Watch(what, asked));
                record.waits.push(Wait::Seen(what, outcome));
            }
            self.wake_task(task);
        }
    }

    /// Returns the task, if it has not completed.
    pub(super) fn live_task(&mut self, task: TaskId) -> Answer<&mut TaskRecord<P>> {
        let record = self.task_mut(task)?;
        ensure(record.life.state() != TaskState::Completed, Status::InvalidTransition)?;
        Ok(record)
    }

    /// The cancellation check at the beginning of every checked operation.
    pub(super) fn observe(&mut self, task: TaskId) -> Answer {
        let now = self.now;
        let record = self.live_task(task)?;
        if record.finalizer || record.shields > 0 || record.part == Part::Cleanup {
            return Ok(());
        }
        match record.life.state() {
            TaskState::Cancelling => return Err(Status::Cancelled),
            TaskState::CancelRequested => {}
            _ => match record.budget.check_deadline(now) {
                Ok(()) => return Ok(()),
                Err(exhausted) => self.exhaust(task, exhausted),
            },
        }
        self.acknowledge(task)?;
        Err(Status::Cancelled)
    }

    pub(super) fn forget_wait(&mut self, task: TaskId, wait: Wait) {
        if let Some(record) = self.tasks.get_mut(task.0) {
            record.waits.retain(|own| *own != wait);
        }
    }

    /// Ends a wait of the task.
    pub(super) fn quit_wait(&mut self, task: TaskId, wait: Wait) {
        self.end_wait(task, wait);
        self.forget_wait(task, wait);
    }

    /// Removes the task from one queue in which it waits.
    pub(super) fn end_wait(&mut self, task: TaskId, wait: Wait) {
        match wait {
            Wait::Send(channel, waiter) => {
                let Some(record) = self.channels.get_mut(channel.0) else { return };
                let left = record.law.leave(waiter);
                // A closed channel has no line to leave.
                if left.was_there {
                    self.note_channel(channel, Some(task), EventKind::SendLeft {});
                }
                self.account_channel(channel);
                self.wake_all(left.wake);
            }
            Wait::Recv(channel) => {
                if let Some(record) = self.channels.get_mut(channel.0)
                    && record.law.receiver_waiting() == Some(&task)
                {
                    record.law.cancel_recv();
                }
            }
            Wait::Watch(what, asked) => drop(self.watchers.remove(&(what, asked))),
            Wait::Seen(..) => {}
        }
    }
}
