//! Channels and permits.

use super::script::{Caller, Entry};
use super::{Answer, World, found, ready, scope};
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::{Message, Name, Op};
use crate::value::Value;
use asx_kernel::session::LEAK_MESSAGE;
use asx_kernel::status::{Coded, Status};
use asx_runtime::channel::OwnedPermit;
use asx_runtime::channel::session::TrackedPermit;
use asx_runtime::probe::{self, ChannelProbe};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A permit somebody holds.
pub(super) enum Held {
    Plain(OwnedPermit<i64>),
    Tracked(TrackedPermit<i64>),
}

impl Held {
    /// Gives it back.
    pub(super) fn abort(self) {
        match self {
            Held::Plain(permit) => permit.abort(),
            Held::Tracked(permit) => drop(permit.abort()),
        }
    }

    fn id(&self) -> u64 {
        match self {
            Held::Plain(permit) => probe::permit_id(permit),
            Held::Tracked(permit) => probe::tracked_id(permit),
        }
    }
}

/// The holder has ended: its permit is aborted, or lost if it panicked.
pub(super) fn let_go(world: &World, id: u64, unwinding: bool) {
    let held = world.book().permit.remove(&id);
    match held {
        None => {}
        Some(Held::Plain(permit)) => permit.abort(),
        Some(Held::Tracked(permit)) if unwinding => {
            let unwound = catch_unwind(AssertUnwindSafe(move || {
                let _permit = permit;
                resume_unwind(Box::new(()));
            }));
            debug_assert!(unwound.is_err());
        }
        Some(Held::Tracked(permit)) => drop(permit.abort()),
    }
}

/// The holder was ended by force: its permit goes with it.
pub(super) fn lose(world: &World, id: u64) {
    let held = world.book().permit.remove(&id);
    drop(held);
}

fn message(value: Message, caller: Option<&Caller<'_>>) -> i64 {
    match value {
        Message::Value(value) => value,
        Message::Index => caller.map_or(0, |caller| caller.own.index),
    }
}

impl World {
    pub(super) fn channel(&self, name: &Name) -> Result<ChannelProbe<i64>, Status> {
        let book = self.book();
        let id = found(&book.channels, None, name)?;
        book.channel.get(&id).cloned().ok_or(Status::StaleHandle)
    }

    /// Names a permit; its number.
    pub(super) fn bind_permit(&self, task: Option<&str>, name: &Name, held: Held) -> u64 {
        let mut book = self.book();
        let id = held.id();
        let full = book.permits.bind(task, name, id);
        book.names.note(Named::Permit, id, full);
        book.tracked.insert(id, matches!(held, Held::Tracked(_)));
        book.permit.insert(id, held);
        id
    }

    pub(super) fn channel_op(&self, op: &Op, caller: Option<&Caller<'_>>) -> Answer {
        match op {
            Op::Channel { name, capacity, region } => {
                let region = region.as_ref().map(|region| self.region(region)).transpose()?;
                let channel = ChannelProbe::new(region.as_ref(), &self.root, *capacity)?;
                let mut book = self.book();
                book.channels.bind(None, name, channel.id());
                book.names.note(Named::Channel, channel.id(), &**name);
                book.channel.insert(channel.id(), channel);
            }
            Op::TrySend { channel, value } => {
                let (channel, value) = (self.channel(channel)?, message(*value, caller));
                channel.with_sender(|sender| sender.try_send(value)).map_err(|e| e.status())?;
            }
            Op::Evict { channel, value } => {
                let (channel, value) = (self.channel(channel)?, message(*value, caller));
                let sent = channel.with_sender(|sender| sender.send_evict_oldest(value));
                let old = sent.map_err(|error| error.status())?;
                return ready(Reply::ok().with("evicted", Value::maybe(old)));
            }
            Op::TryRecv { channel } => {
                let value = self.channel(channel)?.try_recv().map_err(|error| error.status())?;
                return ready(Reply::ok().with("value", value));
            }
            Op::CloneSender { channel } => self.channel(channel)?.add_sender()?,
            Op::DropSender { channel } => self.channel(channel)?.drop_sender()?,
            Op::DropReceiver { channel } => self.channel(channel)?.drop_receiver()?,
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    pub(super) fn permit_op(&self, op: &Op, caller: Option<&mut Caller<'_>>) -> Answer {
        match op {
            Op::TryReserve { channel, permit, tracked } => {
                let channel = self.channel(channel)?;
                let held = match tracked {
                    true => Held::Tracked(channel.try_reserve_tracked()?),
                    false => {
                        let held = channel.with_sender(|sender| sender.try_reserve_owned());
                        Held::Plain(held.map_err(|error| error.status())?)
                    }
                };
                let id = self.bind_permit(scope(caller.as_deref()), permit, held);
                if let Some(caller) = caller {
                    caller.stack.push(Entry::Permit(id));
                }
                ready(Reply::ok())
            }
            Op::Send { permit, value } => {
                let value = message(*value, caller.as_deref());
                let (tracked, sent) = match self.take(permit, caller)? {
                    Held::Plain(permit) => (false, permit.try_send(value)),
                    Held::Tracked(permit) => {
                        let (_proof, sent) = permit.try_send(value);
                        (true, sent)
                    }
                };
                sent.map_err(|_| Status::Disconnected)?;
                ready(Reply::ok().with("proof", if tracked { "Committed" } else { "none" }))
            }
            Op::AbortPermit { permit } => {
                let tracked = match self.take(permit, caller)? {
                    Held::Plain(permit) => {
                        permit.abort();
                        false
                    }
                    Held::Tracked(permit) => {
                        drop(permit.abort());
                        true
                    }
                };
                ready(Reply::ok().with("proof", if tracked { "Aborted" } else { "none" }))
            }
            Op::DropPermit { permit } => {
                let held = self.take(permit, caller)?;
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(held)));
                let panics = dropped.is_err_and(|payload| {
                    payload.downcast_ref::<&str>() == Some(&LEAK_MESSAGE)
                        || payload.downcast_ref::<String>().is_some_and(|text| text == LEAK_MESSAGE)
                });
                ready(Reply::ok().with("panics", panics))
            }
            _ => Err(Status::Internal),
        }
    }

    /// Takes a permit out of its holder's hands.
    fn take(&self, name: &Name, caller: Option<&mut Caller<'_>>) -> Result<Held, Status> {
        let mut book = self.book();
        let id = found(&book.permits, scope(caller.as_deref()), name)?;
        if let Some(caller) = caller {
            let held = |entry: &Entry| matches!(entry, Entry::Permit(own) if *own == id);
            if let Some(at) = caller.stack.iter().rposition(held) {
                caller.stack.remove(at);
            }
        }
        // Types do not let it come to this.
        book.permit.remove(&id).ok_or(Status::ObligationAlreadyResolved)
    }
}
