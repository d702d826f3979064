//! Permits: each is a reserved slot that is resolved exactly once.

use super::*;

impl<P, V> World<P, V> {
    /// Reserves a slot on behalf of a task, which waits in line if necessary. A tracked permit is
    /// an obligation of the task's region.
    pub fn reserve(
        &mut self,
        task: TaskId,
        channel: ChannelId,
        tracked: bool,
    ) -> Answer<Poll<PermitId>> {
        self.waitable(task, channel)?;
        let waits = &self.task_ref(task)?.waits;
        let before = waits.iter().find_map(|wait| match wait {
            Wait::Send(on, waiter) if *on == channel => Some(*waiter),
            _ => None,
        });
        let wait = before.map(|waiter| Wait::Send(channel, waiter));
        let mut slot = before;
        let answer = match self.usable(channel) {
            Ok(record) => record.law.reserve(&mut slot, task),
            Err(status) => {
                if let Some(wait) = wait {
                    self.quit_wait(task, wait);
                }
                return Err(status);
            }
        };
        if let Some(wait) = wait.filter(|_| slot.is_none()) {
            self.forget_wait(task, wait);
        }
        match answer.map_err(|error| error.status())? {
            Reserve::Granted => self.granted(Some(task), channel, tracked).map(Poll::Ready),
            Reserve::Waiting(waiter) => {
                if before.is_none() {
                    self.add_wait(task, Wait::Send(channel, waiter));
                    self.note_channel(channel, Some(task), EventKind::SendWaiting {});
                }
                Ok(Poll::Pending)
            }
        }
    }

    /// Reserves a slot if one is free and no sender waits.
    pub fn try_reserve(
        &mut self,
        holder: Option<TaskId>,
        channel: ChannelId,
        tracked: bool,
    ) -> Answer<PermitId> {
        self.channel_ref(channel)?;
        if let Some(task) = holder {
            self.live_task(task)?;
        }
        self.usable(channel)?.law.try_reserve().map_err(|error| error.status())?;
        self.granted(holder, channel, tracked)
    }

    /// Fills the permit's slot. Returns the value with DISCONNECTED if the receiver is closed.
    pub fn send(&mut self, permit: PermitId, value: V) -> Offer<V> {
        let mut value = Some(value);
        let sent = self.resolve_permit(permit, PermitEvent::Send, &mut value);
        let status = sent.err().unwrap_or(Status::Disconnected);
        value.map_or(Ok(()), |value| Err((status, value)))
    }

    /// Releases the permit's slot.
    pub fn abort(&mut self, permit: PermitId) -> Answer {
        self.resolve_permit(permit, PermitEvent::Abort, &mut None).map(drop)
    }

    /// The holder drops the permit: an abort, or a leak if it is tracked. Returns whether the host
    /// must panic.
    pub fn drop_permit(&mut self, permit: PermitId, context: DropContext) -> Answer<bool> {
        self.resolve_permit(permit, PermitEvent::DropTracked(context), &mut None)
    }

    /// Returns the state of a permit: Live or Leaked. For a resolved one, returns the error.
    pub fn permit(&self, permit: PermitId) -> Answer<PermitState> {
        self.permit_of(permit).map(|(state, _)| state)
    }

    /// Like [`permit`](World::permit), with the permit's channel.
    pub fn permit_of(&self, permit: PermitId) -> Answer<(PermitState, ChannelId)> {
        let resolved = self.permits.was_issued(permit.0);
        let gone = if resolved { Status::ObligationAlreadyResolved } else { Status::StaleHandle };
        self.permits.get(permit.0).map(|record| (record.state, record.channel)).ok_or(gone)
    }

    /// Creates a permit for a slot that was just reserved. If a tracked permit cannot get its
    /// obligation, the slot is released.
    fn granted(
        &mut self,
        holder: Option<TaskId>,
        channel: ChannelId,
        tracked: bool,
    ) -> Answer<PermitId> {
        let own = holder.and_then(|task| self.tasks.get(task.0)).map(|record| record.region);
        let region = own.or(self.channel_ref(channel)?.scope).unwrap_or(self.root);
        let obligation = match tracked.then(|| self.oblige(region)).transpose() {
            Ok(obligation) => obligation,
            Err(status) => {
                let wake = self.channel_mut(channel)?.law.abort();
                self.account_channel(channel);
                self.wake_all(wake);
                return Err(status);
            }
        };
        let record = PermitRecord { channel, holder, state: PermitState::Live, obligation };
        let key = self.permits.insert(record).map_err(|_| Status::ResourceExhausted)?;
        let permit = PermitId(key);
        self.channel_mut(channel)?.permits.insert(permit);
        if let Some(record) = holder.and_then(|task| self.tasks.get_mut(task.0)) {
            record.stack.push(Entry::Permit(permit));
        }
        let kind = EventKind::SendReserved { permit: permit.0.generation };
        self.note_channel(channel, holder, kind);
        Ok(permit)
    }

    /// Resolves a permit; all resolutions use this function. Takes the value if it was queued.
    /// Returns whether a leak must panic.
    fn resolve_permit(
        &mut self,
        permit: PermitId,
        event: PermitEvent,
        value: &mut Option<V>,
    ) -> Answer<bool> {
        self.permit(permit)?;
        let Some(record) = self.permits.get_mut(permit.0) else { return Err(Status::Internal) };
        let event = match (event, record.obligation) {
            (PermitEvent::DropTracked(_), None) => PermitEvent::Drop,
            (event, _) => event,
        };
        let (state, effect) = record.state.resolve(event)?;
        record.state = state;
        let record = *record;
        if state != PermitState::Leaked {
            self.permits.remove(permit.0);
        }
        if let Some(task) = record.holder.and_then(|task| self.tasks.get_mut(task.0)) {
            let held = |entry: &Entry<P>| matches!(entry, Entry::Permit(own) if *own == permit);
            // Search from the top, because the stack unwinds from there.
            if let Some(at) = task.stack.iter().rposition(held) {
                task.stack.remove(at);
            }
        }
        if let Ok(channel) = self.channel_mut(record.channel) {
            channel.permits.remove(&permit);
        }
        let (resolution, panics) = match effect {
            PermitEffect::Fill(_) => (Resolution::Commit, false),
            PermitEffect::Free(_) => (Resolution::Abort, false),
            PermitEffect::Leak { panics } => (Resolution::Leak, panics),
        };
        match resolution {
            Resolution::Commit => self.fill(record, permit.0.generation, value),
            _ => self.free_slot(record, permit.0.generation),
        }
        if let Some(obligation) = record.obligation {
            let _ = self.resolve(obligation, resolution);
        }
        self.account_channel(record.channel);
        Ok(panics)
    }

    /// Fills the slot of a permit with this number.
    fn fill(&mut self, record: PermitRecord, permit: u64, value: &mut Option<V>) {
        let PermitRecord { channel, holder, .. } = record;
        let Ok(usable) = self.usable(channel) else {
            // The region is past draining: the slot is freed and nothing is queued.
            return self.free_slot(record, permit);
        };
        let Some(message) = value.take() else { return };
        match usable.law.send(message) {
            Sent::Queued { wake } => {
                self.note_channel(channel, holder, EventKind::Sent { permit: Some(permit) });
                self.wake_all(wake);
            }
            Sent::Refused { value: back } | Sent::NoPermit { value: back } => {
                *value = Some(back);
                self.note_channel(channel, holder, EventKind::SendRefused { permit });
            }
        }
    }

    fn free_slot(&mut self, record: PermitRecord, permit: u64) {
        let Ok(channel) = self.channel_mut(record.channel) else { return };
        let wake = channel.law.abort();
        self.note_channel(record.channel, record.holder, EventKind::SendAborted { permit });
        self.wake_all(wake);
    }
}
