//! Operations of a task inside its poll: looking at the cancel, waiting, spending.

use super::records::{Entry, Wait};
use super::{Part, SleepUntil, World};
use crate::ids::{RegionId, TaskId};
use crate::journal::EventKind;
use crate::outcome::Severity;
use crate::region::RegionState;
use crate::status::{Coded, Status};
use crate::task::TaskState;
use crate::wheel::TimerHandle;
use core::task::Poll;

impl<P, V> World<P, V> {
    /// Looks at the cancel: CANCELLED if one was requested, which the task has now seen.
    pub fn checkpoint(&mut self, task: TaskId) -> Result<(), Status> {
        self.observe(task)
    }

    /// Whether the task is cancelled; if so it has now seen it.
    pub fn is_cancelled(&mut self, task: TaskId) -> Result<bool, Status> {
        match self.observe(task) {
            Ok(()) => Ok(false),
            Err(Status::Cancelled) => Ok(true),
            Err(status) => Err(status),
        }
    }

    /// Until the matching [`unshield`](World::unshield) nothing is checked.
    pub fn shield(&mut self, task: TaskId) -> Result<(), Status> {
        let record = self.task_mut(task)?;
        record.shields = record.shields.checked_add(1).ok_or(Status::ResourceExhausted)?;
        Ok(())
    }

    /// Ends the innermost shield.
    pub fn unshield(&mut self, task: TaskId) -> Result<(), Status> {
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
    pub fn spend(&mut self, task: TaskId, cost: u64) -> Result<(), Status> {
        match self.live_task(task)?.budget.consume_cost(cost) {
            Ok(()) => Ok(()),
            Err(exhausted) => {
                self.exhaust(task, exhausted);
                Err(exhausted.status())
            }
        }
    }

    /// Begins a sleep, bounded by the task's deadline. Wait for it with [`slept`](World::slept).
    pub fn sleep(&mut self, task: TaskId, until: SleepUntil) -> Result<TimerHandle, Status> {
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
        self.arm_for_task(task, end)
    }

    /// Whether the sleep is over.
    pub fn slept(&mut self, task: TaskId, timer: TimerHandle) -> Result<Poll<()>, Status> {
        self.observe(task)?;
        let pending = self.task_ref(task)?.timers.contains(&timer);
        Ok(if pending { Poll::Pending } else { Poll::Ready(()) })
    }

    /// Waits for another task to end: how it ended.
    pub fn join(&mut self, task: TaskId, target: TaskId) -> Result<Poll<Severity>, Status> {
        use crate::outcome::Lattice;
        self.observe(task)?;
        let record = self.task_mut(target)?;
        if let Some(outcome) = &record.outcome {
            let severity = outcome.severity();
            self.forget_wait(task, Wait::Join(target));
            return Ok(Poll::Ready(severity));
        }
        if !record.joiners.contains(&task) {
            record.joiners.push(task);
        }
        self.add_wait(task, Wait::Join(target));
        Ok(Poll::Pending)
    }

    /// Waits for a region to close: its outcome.
    pub fn closed(&mut self, task: TaskId, region: RegionId) -> Result<Poll<Severity>, Status> {
        self.observe(task)?;
        let record = self.region_mut(region)?;
        if record.word.state() == RegionState::Closed {
            let severity = record.fold.severity();
            self.forget_wait(task, Wait::Close(region));
            return Ok(Poll::Ready(severity));
        }
        if !record.waiters.contains(&task) {
            record.waiters.push(task);
        }
        self.add_wait(task, Wait::Close(region));
        Ok(Poll::Pending)
    }

    /// Waits for the soft stop.
    pub fn stopping(&mut self, task: TaskId) -> Result<Poll<()>, Status> {
        self.observe(task)?;
        if self.stopping {
            self.forget_wait(task, Wait::Stop);
            return Ok(Poll::Ready(()));
        }
        if !self.stop_waiters.contains(&task) {
            self.stop_waiters.push(task);
        }
        self.add_wait(task, Wait::Stop);
        Ok(Poll::Pending)
    }

    /// The task, if it has not completed.
    pub(super) fn live_task(
        &mut self,
        task: TaskId,
    ) -> Result<&mut super::records::TaskRecord<P>, Status> {
        let record = self.task_mut(task)?;
        if record.life.state() == TaskState::Completed {
            return Err(Status::InvalidTransition);
        }
        Ok(record)
    }

    /// The cancel check that every checked operation begins with.
    pub(super) fn observe(&mut self, task: TaskId) -> Result<(), Status> {
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
                self.wake_all(wake);
            }
            Wait::Recv(channel) => {
                if let Some(record) = self.channels.get_mut(channel.0)
                    && record.law.receiver_waiting() == Some(&task)
                {
                    record.law.cancel_recv();
                }
            }
            Wait::Join(target) => {
                if let Some(record) = self.tasks.get_mut(target.0) {
                    record.joiners.retain(|joiner| *joiner != task);
                }
            }
            Wait::Close(region) => {
                if let Some(record) = self.regions.get_mut(region.0) {
                    record.waiters.retain(|waiter| *waiter != task);
                }
            }
            Wait::Stop => self.stop_waiters.retain(|waiter| *waiter != task),
        }
    }
}
