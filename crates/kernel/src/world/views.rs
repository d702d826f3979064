//! Snapshots of objects.

use super::*;

/// A snapshot of a region.
#[derive(Clone, Debug)]
pub struct RegionView {
    /// Its state.
    pub state: RegionState,
    /// The fold of its children's outcomes, once Closed.
    pub outcome: Option<Severity>,
    /// The fold so far, with its payload. Among equals it is the outcome of the child created
    /// first.
    pub fold: Option<TaskOutcome>,
    /// The first failure, in a fail-fast region.
    pub first_cause: Option<TaskOutcome>,
    /// The reason with which it was closed, if any.
    pub reason: Option<Reason>,
    /// Live tasks.
    pub tasks: usize,
    /// Open child regions.
    pub children: usize,
    /// Outstanding obligations.
    pub obligations: usize,
    /// Finalizers not yet started.
    pub finalizers: usize,
    /// Bytes of storage in use.
    pub storage: usize,
    /// The effective budget.
    pub budget: Budget,
}

impl RegionView {
    fn of(record: &RegionRecord<impl Sized>) -> RegionView {
        RegionView {
            state: record.word.state(),
            outcome: record.outcome(),
            fold: record.fold.outcome().cloned(),
            first_cause: record.first_cause.clone(),
            reason: record.reason.clone(),
            tasks: record.tasks.len(),
            children: record.children.len(),
            obligations: record.obligations.len(),
            finalizers: record.finalizers.len(),
            storage: record.storage,
            budget: record.options.budget,
        }
    }
}

/// A snapshot of a task.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// Its state.
    pub state: TaskState,
    /// Its region.
    pub region: RegionId,
    /// The outcome, once Completed.
    pub outcome: Option<TaskOutcome>,
    /// The current state of its cancel.
    pub witness: Option<Witness>,
    /// Cleanup polls still allowed, once cancelled.
    pub polls_left: Option<u64>,
    /// The current budget.
    pub budget: Budget,
    /// The lane it is queued in.
    pub lane: Option<Lane>,
    /// Whether it was aborted.
    pub overrun: bool,
    /// The number of polls begun.
    pub polls: u64,
    /// The number of polls begun since a cancel that it has not observed.
    pub polls_since_request: u64,
    /// The error of its cleanup.
    pub cleanup_error: Option<TaskError>,
    /// Whether it is a finalizer.
    pub finalizer: bool,
}

impl TaskView {
    fn of(task: TaskId, record: &TaskRecord<impl Sized>) -> TaskView {
        TaskView {
            state: record.life.state(),
            region: record.region,
            outcome: record.outcome.clone(),
            witness: witness(task, record),
            polls_left: record.life.cancel().map(|cancel| cancel.cleanup.polls),
            budget: record.budget,
            lane: record.queued.map(|(_, place)| place.lane()),
            overrun: record.overrun,
            polls: record.polls,
            polls_since_request: record.polls_since_request,
            cleanup_error: record.cleanup_error.clone(),
            finalizer: record.finalizer,
        }
    }
}

fn witness(task: TaskId, record: &TaskRecord<impl Sized>) -> Option<Witness> {
    let region = record.region;
    let epoch = record.life.epoch();
    let phase = record.phase?;
    let reason = record.life.cancel()?.reason.clone();
    Some(Witness { task, region, epoch, phase, reason })
}

/// A snapshot of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelView {
    /// Which sides are open.
    pub state: ChannelState,
    /// The number of slots.
    pub capacity: usize,
    /// Committed messages.
    pub len: usize,
    /// Reserved slots that are not resolved.
    pub reserved: usize,
    /// Senders in line.
    pub waiters: usize,
    /// Sender handles.
    pub senders: usize,
}

impl ChannelView {
    fn of(law: &Channel<impl Sized, TaskId>) -> ChannelView {
        ChannelView {
            state: law.state(),
            capacity: law.capacity(),
            len: law.len(),
            reserved: law.reserved(),
            waiters: law.waiters(),
            senders: law.senders(),
        }
    }
}

impl<P, V> World<P, V> {
    /// Returns a snapshot of a region.
    pub fn region(&self, region: RegionId) -> Answer<RegionView> {
        self.region_ref(region).map(RegionView::of)
    }

    /// Returns a snapshot of a task.
    pub fn task(&self, task: TaskId) -> Answer<TaskView> {
        self.task_ref(task).map(|record| TaskView::of(task, record))
    }

    /// Returns a snapshot of a region, including retired ones.
    pub fn kept_region(&self, region: RegionId) -> Answer<RegionView> {
        self.regions.get(region.0).map(RegionView::of).ok_or(Status::StaleHandle)
    }

    /// Returns a snapshot of a task, including retired ones.
    pub fn kept_task(&self, task: TaskId) -> Answer<TaskView> {
        let record = self.tasks.get(task.0).ok_or(Status::StaleHandle)?;
        Ok(TaskView::of(task, record))
    }

    /// Returns a snapshot of a channel.
    pub fn channel_view(&self, channel: ChannelId) -> Answer<ChannelView> {
        self.channel_ref(channel).map(|record| ChannelView::of(&record.law))
    }

    /// Returns a handle with the current state of a region, including retired ones. The state of a
    /// removed region is Closed.
    pub fn region_snapshot(&self, region: RegionId) -> Handle {
        let record = self.regions.get(region.0);
        region.handle(record.map_or(RegionState::Closed, |record| record.word.state()).mask())
    }

    /// Returns a handle with the current state of a task, including retired ones. The state of a
    /// removed task is Completed.
    pub fn task_snapshot(&self, task: TaskId) -> Handle {
        let record = self.tasks.get(task.0);
        task.handle(record.map_or(TaskState::Completed, |record| record.life.state()).mask())
    }

    /// Whether a region can have reached the state of a mask; `None` if it was removed.
    pub fn region_reached(&self, region: RegionId, mask: u16) -> Option<bool> {
        Some(mask <= self.regions.get(region.0)?.word.state().mask())
    }

    /// Whether a task can have reached the state of a mask; `None` if it was removed.
    pub fn task_reached(&self, task: TaskId, mask: u16) -> Option<bool> {
        let life = &self.tasks.get(task.0)?.life;
        let cancel = [TaskState::CancelRequested, TaskState::Cancelling, TaskState::Finalizing];
        let needs_cancel = cancel.iter().any(|state| state.mask() == mask);
        Some(mask <= life.state().mask() && (!needs_cancel || life.cancel().is_some()))
    }

    /// Returns the opaque handle of a region, with a snapshot of its state.
    pub fn region_handle(&self, region: RegionId) -> Answer<Handle> {
        Ok(region.handle(self.region_ref(region)?.word.state().mask()))
    }

    /// Returns the opaque handle of a task, with a snapshot of its state.
    pub fn task_handle(&self, task: TaskId) -> Answer<Handle> {
        Ok(task.handle(self.task_ref(task)?.life.state().mask()))
    }
}
