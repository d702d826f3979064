//! Operations of a task inside its poll: looking at the cancel, waiting, spending.

use super::*;

impl<P, V> World<P, V> {
    /// Looks at the cancel: CANCELLED if one was requested, which the task has now seen.
    pub fn checkpoint(&mut self, task: TaskId) -> Answer {
        self.observe(task)
    }

    /// Whether the task is cancelled; if so it has now seen it.
    pub fn is_cancelled(&mut self, task: TaskId) -> Answer<bool> {
        match self.observe(task) {
            Ok(()) => Ok(false),
            Err(Status::Cancelled) => Ok(true),
            Err(status) => Err(status),
        }
    }

    /// Until the matching [`unshield`](World::unshield) nothing is checked.
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
    pub fn push_cleanup(&mut self, task: TaskId, payload: P) -> Result<(), (Status, P)> {
        match self.tasks.get_mut(task.0) {
            Some(record) if record.life.state() == TaskState::Completed => {
                Err((Status::InvalidTransition, payload))
            }
            Some(record) => {
                record.stack.push(Entry::Payload(payload));
                Ok(())
            }
            None => Err((Status::StaleHandle, payload)),
        }
    }

    /// Spends cost; BUDGET_EXHAUSTED spends nothing and starts the cancel.
    pub fn spend(&mut self, task: TaskId, cost: u64) -> Answer {
        match self.live_task(task)?.budget.consume_cost(cost) {
            Ok(()) => Ok(()),
            Err(exhausted) => {
                self.exhaust(task, exhausted);
                Err(exhausted.status())
            }
        }
    }

    /// Begins a sleep, bounded by the task's deadline. Wait for it with [`slept`](World::slept).
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

    /// Whether the sleep is over.
    pub fn slept(&mut self, task: TaskId, timer: TimerHandle) -> Answer<Poll<()>> {
        self.observe(task)?;
        let pending = self.task_ref(task)?.timers.contains(&timer);
        Ok(if pending { Poll::Pending } else { Poll::Ready(()) })
    }

    /// Waits for another task to end: how it ended.
    pub fn join(&mut self, task: TaskId, target: TaskId) -> Answer<Poll<Severity>> {
        self.task_ref(target)?;
        self.observe(task)?;
        let ended = self.task_ref(target)?.outcome.as_ref().map(Lattice::severity);
        Ok(self.watch(task, Watched::Task(target), ended))
    }

    /// Waits for a region to close: its outcome.
    pub fn closed(&mut self, task: TaskId, region: RegionId) -> Answer<Poll<Severity>> {
        let outcome = self.region(region)?.outcome;
        self.observe(task)?;
        Ok(self.watch(task, Watched::Region(region), outcome))
    }

    /// Waits for the soft stop.
    pub fn stopping(&mut self, task: TaskId) -> Answer<Poll<()>> {
        self.observe(task)?;
        Ok(self.watch(task, Watched::Stop, self.stopping.then_some(())))
    }

    /// What was waited for, or a place among those who wait for it.
    fn watch<T>(&mut self, task: TaskId, what: Watched, happened: Option<T>) -> Poll<T> {
        let watches = |wait: &Wait| matches!(wait, Wait::Watch(own, _) if *own == what);
        let Some(record) = self.tasks.get_mut(task.0) else { return Poll::Pending };
        if let Some(happened) = happened {
            record.waits.retain(|wait| !watches(wait));
            return Poll::Ready(happened);
        }
        if !record.waits.iter().any(watches) {
            self.asked += 1;
            record.waits.push(Wait::Watch(what, self.asked));
            self.watchers.insert((what, self.asked), task);
        }
        Poll::Pending
    }

    /// It has happened: wakes those who wait for it.
    pub(super) fn happened(&mut self, what: Watched) {
        let all = (what, 0)..=(what, u64::MAX);
        while let Some((key, task)) = self.watchers.range(all.clone()).next() {
            let (key, task) = (*key, *task);
            self.watchers.remove(&key);
            self.wake_task(task);
        }
    }

    /// The task, if it has not completed.
    pub(super) fn live_task(&mut self, task: TaskId) -> Answer<&mut TaskRecord<P>> {
        let record = self.task_mut(task)?;
        if record.life.state() == TaskState::Completed {
            return Err(Status::InvalidTransition);
        }
        Ok(record)
    }

    /// The cancel check that every checked operation begins with.
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

    /// Takes the task out of one queue it waits in.
    pub(super) fn end_wait(&mut self, task: TaskId, wait: Wait) {
        match wait {
            Wait::Send(channel, waiter) => {
                let Some(record) = self.channels.get_mut(channel.0) else { return };
                let wake = record.law.leave(waiter).wake;
                self.note_channel(channel, Some(task), EventKind::SendLeft {});
                self.account_channel(channel);
                self.wake_all(wake);
            }
            Wait::Recv(channel) => {
                if let Some(record) = self.channels.get_mut(channel.0)
                    && record.law.receiver_waiting() == Some(&task)
                {
                    record.law.cancel_recv();
                }
            }
            Wait::Watch(what, asked) => drop(self.watchers.remove(&(what, asked))),
        }
    }
}
