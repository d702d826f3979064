//! Channels: creation, sending without waiting, receiving, closing either side.

use super::*;

impl<P, V> World<P, V> {
    /// Creates a channel with one sender: in a region, or free-standing.
    pub fn channel(&mut self, scope: Option<RegionId>, capacity: usize) -> Answer<ChannelId> {
        let law = Channel::new(capacity).map_err(|error| error.status())?;
        if let Some(region) = scope {
            self.admit(region, Operation::Create)?;
        }
        self.room("channels", self.usage.channels, self.config.limits.channels)?;
        let bytes = capacity.saturating_mul(SMALL_BYTES).saturating_add(OBJECT_BYTES);
        self.room_for(bytes)?;
        let record = ChannelRecord { law, scope, permits: Set::new(), bytes, senders_gone: false };
        let key = self.channels.insert(record).map_err(|_| Status::ResourceExhausted)?;
        let channel = ChannelId(key);
        if let Some(region) = scope {
            self.region_mut(region)?.channels.insert(channel);
        }
        self.usage.channels += 1;
        self.usage.channel_bytes = self.usage.channel_bytes.saturating_add(bytes);
        let capacity = capacity as u64;
        self.note_channel(channel, None, EventKind::ChannelOpened { capacity });
        Ok(channel)
    }

    /// Sends if a slot is free and no sender waits. Returns the value otherwise.
    #[inline]
    pub fn try_send(&mut self, channel: ChannelId, value: V) -> Offer<V> {
        let (value, record) = with(value, self.usable(channel))?;
        let wake = record.law.try_send(value).map_err(refused)?;
        self.passed(channel, None, EventKind::Sent { permit: None }, wake);
        Ok(())
    }

    /// Like [`try_send`](World::try_send), but only if there is no journal, no waiter to wake and
    /// no need to allocate. Otherwise nothing changes.
    #[inline(always)]
    pub fn try_send_quietly(&mut self, channel: ChannelId, value: V) -> Result<(), V> {
        match self.journal.is_off() {
            true => match self.usable_inlined(channel) {
                Ok(record) => record.law.try_send_quietly(value),
                Err(_) => Err(value),
            },
            false => Err(value),
        }
    }

    /// Sends, evicting the oldest message if necessary. Returns the evicted message.
    pub fn evict(&mut self, channel: ChannelId, value: V) -> Offer<V, Option<V>> {
        let (value, record) = with(value, self.usable(channel))?;
        let evicted = record.law.send_evict_oldest(value).map_err(refused)?;
        if evicted.old.is_some() {
            self.note_channel(channel, None, EventKind::Evicted {});
        }
        self.note_channel(channel, None, EventKind::Sent { permit: None });
        self.wake_all(evicted.wake);
        Ok(evicted.old)
    }

    /// Receives on behalf of a task, which waits if no message is queued.
    pub fn recv(&mut self, task: TaskId, channel: ChannelId) -> Answer<Poll<V>> {
        self.waitable(task, channel)?;
        let wait = Wait::Recv(channel);
        let received = match self.usable(channel) {
            Ok(record) => record.law.recv(task),
            Err(status) => {
                self.quit_wait(task, wait);
                return Err(status);
            }
        };
        if let Recv::Waiting = received {
            self.add_wait(task, wait);
            return Ok(Poll::Pending);
        }
        self.forget_wait(task, wait);
        let Recv::Message { value, wake } = received else { return Err(Status::Disconnected) };
        self.passed(channel, Some(task), EventKind::Received {}, wake);
        Ok(Poll::Ready(value))
    }

    /// Receives if a message is queued.
    #[inline]
    pub fn try_recv(&mut self, channel: ChannelId) -> Answer<V> {
        let received = self.usable(channel)?.law.try_recv();
        let (value, wake) = received.map_err(|error| error.status())?;
        self.passed(channel, None, EventKind::Received {}, wake);
        Ok(value)
    }

    /// Like [`try_recv`](World::try_recv), but only if there is no journal and no sender waits for
    /// the slot. Otherwise nothing changes.
    #[inline(always)]
    pub fn try_recv_quietly(&mut self, channel: ChannelId) -> Option<V> {
        match self.journal.is_off() {
            true => self.usable_inlined(channel).ok()?.law.try_recv_quietly(),
            false => None,
        }
    }

    /// Records the transfer of a message and wakes the waiter. Does nothing if there is neither a
    /// journal nor a waiter.
    #[inline]
    fn passed(
        &mut self,
        channel: ChannelId,
        task: Option<TaskId>,
        kind: EventKind,
        wake: Option<TaskId>,
    ) {
        if !self.journal.is_off() || wake.is_some() {
            self.tell_passed(channel, task, kind, wake);
        }
    }

    #[inline(never)]
    fn tell_passed(
        &mut self,
        channel: ChannelId,
        task: Option<TaskId>,
        kind: EventKind,
        wake: Option<TaskId>,
    ) {
        self.note_channel(channel, task, kind);
        self.wake_all(wake);
    }

    /// Adds a sender; DISCONNECTED if the last one is gone.
    pub fn clone_sender(&mut self, channel: ChannelId) -> Answer {
        ensure(self.usable(channel)?.law.add_sender(), Status::Disconnected)
    }

    /// Removes a sender.
    pub fn drop_sender(&mut self, channel: ChannelId) -> Answer {
        let law = &mut self.channel_mut(channel)?.law;
        ensure(law.senders() > 0, Status::Disconnected)?;
        let wake = law.drop_sender();
        self.account_channel(channel);
        self.wake_all(wake);
        Ok(())
    }

    /// Closes the receiver: unread messages are dropped, waiting senders woken.
    pub fn drop_receiver(&mut self, channel: ChannelId) -> Answer {
        self.close_receiver(channel).map(drop)
    }

    /// Closes the receiver and returns it if it was waiting.
    fn close_receiver(&mut self, channel: ChannelId) -> Answer<Option<TaskId>> {
        let law = &mut self.channel_mut(channel)?.law;
        ensure(!law.is_receiver_closed(), Status::Disconnected)?;
        let closed = law.close_receiver();
        let dropped = closed.messages.len() as u64;
        self.note_channel(channel, None, EventKind::ReceiverGone { dropped });
        if !closed.messages.is_empty() {
            self.dropped.push(closed.messages);
        }
        self.account_channel(channel);
        self.wake_all(closed.wakes);
        Ok(closed.receiver)
    }

    /// Frees the slot of a fully closed channel.
    pub fn release_channel(&mut self, channel: ChannelId) -> Answer {
        let record = self.channel_ref(channel)?;
        ensure(record.law.state() == ChannelState::FullyClosed, Status::InvalidTransition)?;
        let scope = record.scope;
        if let Some(region) = scope.and_then(|region| self.regions.get_mut(region.0)) {
            region.channels.remove(&channel);
        }
        self.channels.remove(channel.0);
        Ok(())
    }

    /// Closes both sides, as a closing region does. Neither side requested it, so both are woken.
    pub(super) fn close_channel(&mut self, channel: ChannelId) {
        let receiver = self.close_receiver(channel);
        while self.drop_sender(channel).is_ok() {}
        self.wake_all(receiver.ok().flatten());
    }

    /// Records that the last sender is gone, permits and waiters included. A fully closed channel
    /// no longer counts towards the limits.
    pub(super) fn account_channel(&mut self, channel: ChannelId) {
        let Some(record) = self.channels.get_mut(channel.0) else { return };
        let state = record.law.state();
        let gone = matches!(state, ChannelState::SenderClosed | ChannelState::FullyClosed);
        if state == ChannelState::FullyClosed {
            self.usage.channels -= usize::from(record.bytes > 0);
            self.usage.channel_bytes -= core::mem::take(&mut record.bytes);
        }
        if gone && !core::mem::replace(&mut record.senders_gone, gone) {
            self.note_channel(channel, None, EventKind::SendersGone {});
        }
    }

    /// Abandons the task's wait on a channel, because the waiting future was dropped. Returns false
    /// if there is none.
    pub fn abandon(&mut self, task: TaskId, channel: ChannelId) -> Answer<bool> {
        let on = |wait: &Wait| matches!(wait, Wait::Send(c, _) | Wait::Recv(c) if *c == channel);
        let waits = &mut self.task_mut(task)?.waits;
        let Some(at) = waits.iter().position(on) else { return Ok(false) };
        let wait = waits.swap_remove(at);
        self.end_wait(task, wait);
        Ok(true)
    }

    /// Checks for cancellation before a wait on a channel. A channel that was removed while the
    /// task waited is DISCONNECTED, not stale.
    pub(super) fn waitable(&mut self, task: TaskId, channel: ChannelId) -> Answer {
        if self.channels.get(channel.0).is_some() {
            return self.observe(task);
        }
        if !self.abandon(task, channel)? {
            return Err(Status::StaleHandle);
        }
        self.observe(task)?;
        Err(Status::Disconnected)
    }

    pub(super) fn channel_ref(&self, channel: ChannelId) -> Answer<&ChannelRecord<V>> {
        self.channels.get(channel.0).ok_or(Status::StaleHandle)
    }

    pub(super) fn channel_mut(&mut self, channel: ChannelId) -> Answer<&mut ChannelRecord<V>> {
        self.channels.get_mut(channel.0).ok_or(Status::StaleHandle)
    }

    /// Returns the channel, if its region permits its use.
    #[inline]
    pub(super) fn usable(&mut self, channel: ChannelId) -> Answer<&mut ChannelRecord<V>> {
        self.usable_inlined(channel)
    }

    /// The same for the short paths, which call nothing.
    #[inline(always)]
    fn usable_inlined(&mut self, channel: ChannelId) -> Answer<&mut ChannelRecord<V>> {
        let record = self.channels.get_mut(channel.0).ok_or(Status::StaleHandle)?;
        if let Some(region) = record.scope {
            let known = self.regions.get(region.0).filter(|record| !record.retired);
            let state = known.ok_or(Status::StaleHandle)?.word.state();
            state.admit(Operation::UseChannel)?;
        }
        Ok(record)
    }

    pub(super) fn wake_all(&mut self, tasks: impl IntoIterator<Item = TaskId>) {
        for task in tasks {
            self.wake_task(task);
        }
    }

    pub(super) fn note_channel(
        &mut self,
        channel: ChannelId,
        task: Option<TaskId>,
        kind: EventKind,
    ) {
        if self.journal.is_off() {
            return;
        }
        let task = task.or(self.current).map(TaskId::ordinal);
        let scope = self.channels.get(channel.0).and_then(|record| record.scope);
        let region = scope.map(RegionId::ordinal);
        let channel = Some(channel.ordinal());
        self.note(Subject { task, region, channel, timer: None }, kind);
    }
}

fn refused<V>(error: TrySendError<V>) -> (Status, V) {
    (error.status(), error.into_inner())
}
