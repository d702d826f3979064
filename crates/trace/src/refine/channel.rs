//! Channels: every sent message is received, evicted, dropped or still queued.

use super::{CheckResult, Refinement, breach, ensure};
use alloc::collections::BTreeMap;
use alloc::format;
use asx_kernel::journal::{Event, EventKind};

#[derive(Clone, Debug, Default)]
pub(super) struct ChannelSeen {
    capacity: u64,
    region: Option<u64>,
    /// The number of queued messages.
    queued: u64,
    /// The number of unresolved permits.
    reserved: u64,
    /// The number of waiting senders, by task.
    waiting: BTreeMap<Option<u64>, u64>,
    senders_gone: bool,
    receiver_gone: bool,
}

impl Refinement {
    pub(super) fn check_channel(&mut self, event: &Event) -> CheckResult {
        let id =
            event.subject.channel.ok_or_else(|| breach("no_channel", "the channel is missing"))?;
        let region = event.subject.region;
        if let EventKind::ChannelOpened { capacity } = event.kind {
            let seen = ChannelSeen { capacity, region, ..ChannelSeen::default() };
            ensure(capacity > 0, "channel_capacity", "the capacity of the channel is 0")?;
            let new = self.channels.insert(id, seen).is_none();
            return ensure(new, "channel_twice", "the channel was opened before");
        }
        let known = self.channels.contains_key(&id);
        ensure(known, "unknown_channel", "unknown channel")?;
        self.track_permit(id, event)?;
        let seen = self.channels.entry(id).or_default();
        ensure(seen.region == region, "channel_region", "the channel belongs to another region")?;
        seen.apply(event)?;
        let Some(task) = event.subject.task else { return Ok(()) };
        let seen = self.tasks.get(&task);
        let seen = seen.ok_or_else(|| breach("unknown_task", "unknown task"))?;
        ensure(seen.has_begun(), "task_unbegun", "the task has not begun")
    }

    /// Checks that no task that waits for a slot at the end of the record has ended.
    pub(super) fn check_waits(&self) -> CheckResult {
        // The receiver's end releases all waiting senders, without an event for each.
        for (id, seen) in self.channels.iter().filter(|(_, seen)| !seen.receiver_gone) {
            let waiting = seen.waiting.iter().filter(|(_, count)| **count > 0);
            let mut tasks = waiting.filter_map(|(task, _)| self.tasks.get(&(*task)?));
            let real = tasks.all(|task| !task.is_over());
            let text = format!("a sender waits for a slot of channel {id}, but its task has ended");
            ensure(real, "channel_waits", text)?;
        }
        Ok(())
    }

    /// Tracks a permit from its reservation to its resolution.
    fn track_permit(&mut self, channel: u64, event: &Event) -> CheckResult {
        let step = match event.kind {
            EventKind::SendReserved { permit } => {
                let new = self.permits.insert(permit, channel).is_none();
                ensure(new, "permit_twice", "the permit was reserved before")?;
                1
            }
            EventKind::Sent { permit: Some(permit) }
            | EventKind::SendRefused { permit }
            | EventKind::SendAborted { permit } => {
                let out = self.permits.remove(&permit);
                ensure(out == Some(channel), "permit_unknown", "the permit is not reserved")?;
                -1
            }
            _ => return Ok(()),
        };
        let region_seen = event.subject.region.and_then(|region| self.regions.get_mut(&region));
        region_seen.into_iter().for_each(|region_seen| region_seen.permits += step);
        Ok(())
    }
}

impl ChannelSeen {
    fn apply(&mut self, event: &Event) -> CheckResult {
        match event.kind {
            EventKind::SendReserved { .. } => {
                self.is_open("channel_reserve", "a permit is reserved, but the channel is closed")?;
                self.reserved += 1;
                self.stop_waiting(event.subject.task);
                self.fits()
            }
            EventKind::SendWaiting {} => {
                *self.waiting.entry(event.subject.task).or_insert(0) += 1;
                self.is_open("channel_wait", "a sender waits, but the channel is closed")
            }
            EventKind::SendLeft {} => {
                let there = self.stop_waiting(event.subject.task);
                ensure(there, "channel_left", "a sender stops waiting that did not wait")
            }
            EventKind::Sent { permit } => {
                self.reserved = self.reserved.saturating_sub(u64::from(permit.is_some()));
                ensure(
                    !self.receiver_gone,
                    "channel_unheard",
                    "a message is sent, but the receiver is closed",
                )?;
                ensure(
                    !self.senders_gone,
                    "channel_unsent",
                    "a message is sent, but all senders are closed",
                )?;
                self.queued += 1;
                self.fits()
            }
            EventKind::SendRefused { .. } => {
                self.reserved = self.reserved.saturating_sub(1);
                ensure(
                    self.receiver_gone,
                    "channel_refused",
                    "a send is refused, but the receiver is open",
                )
            }
            EventKind::SendAborted { .. } => {
                self.reserved = self.reserved.saturating_sub(1);
                Ok(())
            }
            EventKind::Evicted {} => {
                self.take("channel_evicted", "a message is evicted from an empty channel")
            }
            EventKind::Received {} => {
                ensure(!self.receiver_gone, "channel_received", "the receiver is closed")?;
                self.take("channel_empty", "a message is received from an empty channel")
            }
            EventKind::SendersGone {} => {
                let first = !core::mem::replace(&mut self.senders_gone, true);
                ensure(first, "senders_twice", "the senders were closed before")?;
                ensure(self.reserved == 0, "senders_permits", "a sender's permit is unresolved")
            }
            EventKind::ReceiverGone { dropped } => {
                let first = !core::mem::replace(&mut self.receiver_gone, true);
                ensure(first, "receiver_twice", "the receiver was closed before")?;
                let unread = core::mem::take(&mut self.queued);
                let text = format!("the channel had {unread} unread messages");
                ensure(dropped == unread, "channel_dropped", text)
            }
            _ => Ok(()),
        }
    }

    fn is_open(&self, code: &'static str, text: &str) -> CheckResult {
        ensure(!self.receiver_gone && !self.senders_gone, code, text)
    }

    /// Checks that messages and permits do not exceed the capacity.
    fn fits(&self) -> CheckResult {
        let used = self.queued.saturating_add(self.reserved);
        ensure(used <= self.capacity, "channel_full", "more messages and permits than the capacity")
    }

    fn take(&mut self, code: &'static str, text: &str) -> CheckResult {
        self.queued = self.queued.checked_sub(1).ok_or_else(|| breach(code, text))?;
        Ok(())
    }

    fn stop_waiting(&mut self, task: Option<u64>) -> bool {
        let Some(count) = self.waiting.get_mut(&task) else { return false };
        *count -= 1;
        if *count == 0 {
            self.waiting.remove(&task);
        }
        true
    }
}
