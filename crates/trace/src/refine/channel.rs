//! Channels: what was sent is received, evicted, dropped or still there.

use super::{Judged, Refinement, breach, ensure};
use alloc::collections::BTreeMap;
use alloc::format;
use asx_kernel::journal::{Event, EventKind};

#[derive(Clone, Debug, Default)]
pub(super) struct ChannelSeen {
    capacity: u64,
    region: Option<u64>,
    /// Messages that wait.
    queued: u64,
    /// Permits that are out.
    reserved: u64,
    /// Senders that wait, by task.
    waiting: BTreeMap<Option<u64>, u64>,
    senders_gone: bool,
    receiver_gone: bool,
}

impl Refinement {
    pub(super) fn look_at_channel(&mut self, event: &Event) -> Judged {
        let id =
            event.subject.channel.ok_or_else(|| breach("no_channel", "no channel is named"))?;
        let region = event.subject.region;
        if let EventKind::ChannelOpened { capacity } = event.kind {
            let seen = ChannelSeen { capacity, region, ..ChannelSeen::default() };
            ensure(capacity > 0, "channel_capacity", "a channel without room")?;
            let new = self.channels.insert(id, seen).is_none();
            return ensure(new, "channel_twice", "a channel is opened twice");
        }
        let known = self.channels.contains_key(&id);
        ensure(known, "unknown_channel", "an unknown channel")?;
        self.look_at_permit(id, event)?;
        let seen = self.channels.entry(id).or_default();
        ensure(seen.region == region, "channel_region", "it belongs to another region")?;
        seen.look(event)?;
        let Some(task) = event.subject.task else { return Ok(()) };
        let seen = self.tasks.get(&task);
        let seen = seen.ok_or_else(|| breach("unknown_task", "an unknown task"))?;
        ensure(seen.has_begun(), "task_unbegun", "its task has not begun")
    }

    /// Whether everybody who waits for a slot at the end of the record is still there.
    pub(super) fn waits_are_real(&self) -> Judged {
        // Nobody waits for room in a channel whose receiver is gone, and nothing is said of it.
        for (id, seen) in self.channels.iter().filter(|(_, seen)| !seen.receiver_gone) {
            let waiting = seen.waiting.iter().filter(|(_, count)| **count > 0);
            let mut tasks = waiting.filter_map(|(task, _)| self.tasks.get(&(*task)?));
            let real = tasks.all(|task| !task.is_over());
            let text = format!("somebody waits for a slot of channel {id}, and is over");
            ensure(real, "channel_waits", text)?;
        }
        Ok(())
    }

    /// A permit is out from its reservation to its one end.
    fn look_at_permit(&mut self, channel: u64, event: &Event) -> Judged {
        let step = match event.kind {
            EventKind::SendReserved { permit } => {
                let new = self.permits.insert(permit, channel).is_none();
                ensure(new, "permit_twice", "a permit is handed out twice")?;
                1
            }
            EventKind::Sent { permit: Some(permit) }
            | EventKind::SendRefused { permit }
            | EventKind::SendAborted { permit } => {
                let out = self.permits.remove(&permit);
                ensure(out == Some(channel), "permit_unknown", "no such permit is out")?;
                -1
            }
            _ => return Ok(()),
        };
        let home = event.subject.region.and_then(|region| self.regions.get_mut(&region));
        home.into_iter().for_each(|home| home.permits += step);
        Ok(())
    }
}

impl ChannelSeen {
    fn look(&mut self, event: &Event) -> Judged {
        match event.kind {
            EventKind::SendReserved { .. } => {
                self.is_open("channel_reserve", "reserved although an end is gone")?;
                self.reserved += 1;
                self.stop_waiting(event.subject.task);
                self.fits()
            }
            EventKind::SendWaiting {} => {
                *self.waiting.entry(event.subject.task).or_insert(0) += 1;
                self.is_open("channel_wait", "a sender waits although an end is gone")
            }
            EventKind::SendLeft {} => {
                let there = self.stop_waiting(event.subject.task);
                ensure(there, "channel_left", "a sender leaves that did not wait")
            }
            EventKind::Sent { permit } => {
                self.reserved = self.reserved.saturating_sub(u64::from(permit.is_some()));
                ensure(!self.receiver_gone, "channel_unheard", "sent although nobody receives")?;
                ensure(!self.senders_gone, "channel_unsent", "sent although nobody sends")?;
                self.queued += 1;
                self.fits()
            }
            EventKind::SendRefused { .. } => {
                self.reserved = self.reserved.saturating_sub(1);
                ensure(
                    self.receiver_gone,
                    "channel_refused",
                    "refused although there is a receiver",
                )
            }
            EventKind::SendAborted { .. } => {
                self.reserved = self.reserved.saturating_sub(1);
                Ok(())
            }
            EventKind::Evicted {} => self.take("channel_evicted", "evicted although it is empty"),
            EventKind::Received {} => {
                ensure(!self.receiver_gone, "channel_received", "received although nobody does")?;
                self.take("channel_empty", "received although it is empty")
            }
            EventKind::SendersGone {} => {
                let first = !core::mem::replace(&mut self.senders_gone, true);
                ensure(first, "senders_twice", "its senders have gone before")?;
                ensure(self.reserved == 0, "senders_permits", "a permit of a sender is out")
            }
            EventKind::ReceiverGone { dropped } => {
                let first = !core::mem::replace(&mut self.receiver_gone, true);
                ensure(first, "receiver_twice", "its receiver has gone before")?;
                let unread = core::mem::take(&mut self.queued);
                let text = format!("{unread} messages are unread");
                ensure(dropped == unread, "channel_dropped", text)
            }
            _ => Ok(()),
        }
    }

    fn is_open(&self, code: &'static str, text: &str) -> Judged {
        ensure(!self.receiver_gone && !self.senders_gone, code, text)
    }

    /// Never more messages and permits than there is room.
    fn fits(&self) -> Judged {
        let used = self.queued.saturating_add(self.reserved);
        ensure(used <= self.capacity, "channel_full", "more in it than there is room")
    }

    fn take(&mut self, code: &'static str, text: &str) -> Judged {
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
