//! What can be seen of each object.

use super::*;

/// A look at a region.
#[derive(Clone, Debug)]
pub struct RegionView {
    /// Its state.
    pub state: RegionState,
    /// The fold of its children's outcomes, once Closed.
    pub outcome: Option<Severity>,
    /// The first failure, in a fail-fast region.
    pub first_cause: Option<TaskOutcome>,
    /// Why it was closed, if with a reason.
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

/// A look at a task.
#[derive(Clone, Debug)]
pub struct TaskView {
    /// Its state.
    pub state: TaskState,
    /// Its region.
    pub region: RegionId,
    /// How it ended, once Completed.
    pub outcome: Option<TaskOutcome>,
    /// Its cancel, as far as it has come.
    pub witness: Option<Witness>,
    /// Cleanup polls still allowed, once cancelled.
    pub polls_left: Option<u64>,
    /// Its budget as it stands.
    pub budget: Budget,
    /// The lane it is queued in.
    pub lane: Option<Lane>,
    /// Whether it was completed by force.
    pub overrun: bool,
    /// Polls begun.
    pub polls: u64,
    /// Polls begun since a cancel it has not seen.
    pub polls_since_request: u64,
    /// An error that came out of its cleanup.
    pub cleanup_error: Option<TaskError>,
    /// Whether it is a finalizer.
    pub finalizer: bool,
}

/// A look at a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelView {
    /// Which sides are open.
    pub state: ChannelState,
    /// Slots in all.
    pub capacity: usize,
    /// Committed messages.
    pub len: usize,
    /// Permits granted and not resolved.
    pub reserved: usize,
    /// Senders in line.
    pub waiters: usize,
    /// Sender handles.
    pub senders: usize,
}

impl<P, V> World<P, V> {
    /// A look at a region.
    pub fn region(&self, region: RegionId) -> Answer<RegionView> {
        let record = self.region_ref(region)?;
        let state = record.word.state();
        Ok(RegionView {
            state,
            outcome: (state == RegionState::Closed).then(|| record.fold.severity()),
            first_cause: record.first_cause.clone(),
            reason: record.reason.clone(),
            tasks: record.tasks.len(),
            children: record.children.len(),
            obligations: record.obligations.len(),
            finalizers: record.finalizers.len(),
            storage: record.storage,
            budget: record.budget,
        })
    }

    /// A look at a task.
    pub fn task(&self, task: TaskId) -> Answer<TaskView> {
        let record = self.task_ref(task)?;
        let state = record.life.state();
        let cancel = record.life.cancel();
        Ok(TaskView {
            state,
            region: record.region,
            outcome: record.outcome.clone(),
            witness: cancel.zip(record.phase).map(|(cancel, phase)| Witness {
                task,
                region: record.region,
                epoch: record.life.epoch(),
                phase,
                reason: cancel.reason.clone(),
            }),
            polls_left: cancel.map(|cancel| cancel.cleanup.polls),
            budget: record.budget,
            lane: record.queued.map(|(_, place)| place.lane()),
            overrun: record.overrun,
            polls: record.polls,
            polls_since_request: record.polls_since_request,
            cleanup_error: record.cleanup_error.clone(),
            finalizer: record.finalizer,
        })
    }

    /// A look at a channel.
    pub fn channel_view(&self, channel: ChannelId) -> Answer<ChannelView> {
        let law = &self.channel_ref(channel)?.law;
        Ok(ChannelView {
            state: law.state(),
            capacity: law.capacity(),
            len: law.len(),
            reserved: law.reserved(),
            waiters: law.waiters(),
            senders: law.senders(),
        })
    }

    /// The opaque handle of a region, with a snapshot of its state.
    pub fn region_handle(&self, region: RegionId) -> Answer<Handle> {
        Ok(region.handle(self.region_ref(region)?.word.state().mask()))
    }

    /// The opaque handle of a task, with a snapshot of its state.
    pub fn task_handle(&self, task: TaskId) -> Answer<Handle> {
        Ok(task.handle(self.task_ref(task)?.life.state().mask()))
    }
}
