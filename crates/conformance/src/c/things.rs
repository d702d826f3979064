//! Ops on obligations, channels, permits and timers.

use super::ops::{Answer, blank, ready, when};
use super::{Caller, Shared, call};
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::{Message, Name, Op};
use crate::value::Value;
use asx_capi::{AsxChannel, AsxObligation, AsxPermit, AsxTask, AsxTimer};
use asx_kernel::session::PermitState;
use asx_kernel::status::Status;
use core::mem::size_of;
use core::ptr::null;

type By<'a, 'b> = Option<&'a Caller<'b>>;

/// The element size of every channel.
const SIZE: usize = size_of::<i64>();

fn scope<'a>(caller: By<'a, '_>) -> Option<&'a str> {
    caller.map(|caller| &*caller.own.name)
}

fn message(value: Message, caller: By<'_, '_>) -> i64 {
    match value {
        Message::Value(value) => value,
        Message::Index => caller.map_or(0, |caller| caller.own.index),
    }
}

/// A pointer to a handle, or NULL.
fn maybe<T>(handle: Option<&T>) -> *const T {
    handle.map_or(null(), core::ptr::from_ref)
}

impl Shared {
    pub(super) fn thing_op(&self, op: &Op, caller: By<'_, '_>) -> Answer {
        let rt = self.rt;
        match op {
            Op::Oblige { obligation, region } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let mut raw = blank!(AsxObligation);
                call!(obligation::asx_obligation_reserve(rt, region, &mut raw))?;
                self.book.with(|notes| {
                    let full = notes.obligations.bind(scope(caller), obligation, raw);
                    notes.ordinals.note(Named::Obligation, raw.generation, full);
                });
                ready(Reply::ok())
            }
            Op::Commit { obligation } => {
                let raw = self.obligation(obligation, caller)?;
                ready(call!(obligation::asx_obligation_commit(rt, raw)).into())
            }
            Op::Abort { obligation } => {
                let raw = self.obligation(obligation, caller)?;
                ready(call!(obligation::asx_obligation_abort(rt, raw)).into())
            }
            Op::TryReserve { .. }
            | Op::Send { .. }
            | Op::AbortPermit { .. }
            | Op::DropPermit { .. } => self.permit_op(op, caller),
            Op::Arm { .. } | Op::Disarm { .. } | Op::Update { .. } => self.timer_op(op, caller),
            _ => self.channel_op(op, caller),
        }
    }

    fn channel_op(&self, op: &Op, caller: By<'_, '_>) -> Answer {
        let rt = self.rt;
        match op {
            Op::Channel { name, capacity, region } => {
                let region = region.as_ref().map(|region| self.region(region)).transpose()?;
                let mut raw = blank!(AsxChannel);
                let of = maybe(region.as_ref());
                call!(channel::asx_channel_create(rt, of, *capacity, SIZE, &mut raw))?;
                self.book.with(|notes| {
                    notes.channels.bind(None, name, raw);
                    notes.ordinals.note(Named::Channel, raw.generation, &**name);
                });
            }
            Op::TrySend { channel, value } => {
                let (channel, value) = (self.channel(channel)?, message(*value, caller));
                let data = (&raw const value).cast();
                call!(channel::asx_channel_try_send(rt, channel, data, SIZE))?;
            }
            Op::Evict { channel, value } => {
                let (channel, value) = (self.channel(channel)?, message(*value, caller));
                let (mut old, mut evicted) = (0_i64, 0);
                let (data, to) = ((&raw const value).cast(), (&raw mut old).cast());
                let out = &mut evicted;
                call!(channel::asx_channel_evict(rt, channel, data, SIZE, to, SIZE, out))?;
                let old = (evicted != 0).then_some(old);
                return ready(Reply::ok().with("evicted", Value::maybe(old)));
            }
            Op::TryRecv { channel } => {
                let (channel, mut value) = (self.channel(channel)?, 0_i64);
                let to = (&raw mut value).cast();
                call!(channel::asx_channel_try_recv(rt, channel, to, SIZE))?;
                return ready(Reply::ok().with("value", value));
            }
            Op::CloneSender { channel } => {
                call!(channel::asx_channel_add_sender(rt, self.channel(channel)?))?;
            }
            Op::DropSender { channel } => {
                call!(channel::asx_channel_close_sender(rt, self.channel(channel)?))?;
            }
            Op::DropReceiver { channel } => {
                call!(channel::asx_channel_close_receiver(rt, self.channel(channel)?))?;
            }
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn permit_op(&self, op: &Op, caller: By<'_, '_>) -> Answer {
        let rt = self.rt;
        match op {
            Op::TryReserve { channel, permit, tracked } => {
                let (channel, holder) = (self.channel(channel)?, caller.map(|caller| caller.task));
                let (of, tracks) = (maybe(holder.as_ref()), i32::from(*tracked));
                let mut raw = blank!(AsxPermit);
                call!(channel::asx_channel_try_reserve(rt, channel, of, tracks, &mut raw))?;
                self.bind_permit(scope(caller), permit, raw, *tracked);
                ready(Reply::ok())
            }
            Op::Send { permit, value } => {
                let (raw, value) = (self.permit(permit, caller)?, message(*value, caller));
                let data = (&raw const value).cast();
                let sent = call!(channel::asx_permit_send(rt, raw, data, SIZE));
                // Whether or not anybody heard it, the permit is used up.
                if sent != Err(Status::ObligationAlreadyResolved) {
                    self.resolved(raw, PermitState::Sent);
                }
                sent?;
                ready(self.proof(raw, "Committed"))
            }
            Op::AbortPermit { permit } => {
                let raw = self.permit(permit, caller)?;
                call!(channel::asx_permit_abort(rt, raw))?;
                self.resolved(raw, PermitState::Aborted);
                ready(self.proof(raw, "Aborted"))
            }
            Op::DropPermit { permit } => {
                let (raw, mut leaked) = (self.permit(permit, caller)?, 0);
                call!(channel::asx_permit_drop(rt, raw, &mut leaked))?;
                let tracked = self.is_tracked(raw);
                let state = if tracked { PermitState::Leaked } else { PermitState::Aborted };
                self.resolved(raw, state);
                ready(Reply::ok().with("panics", leaked != 0))
            }
            _ => Err(Status::Internal),
        }
    }

    fn resolved(&self, permit: AsxPermit, state: PermitState) {
        self.book.with(|notes| {
            notes.resolved.entry(permit.generation).or_insert(state);
        });
    }

    fn is_tracked(&self, permit: AsxPermit) -> bool {
        self.book.with(|notes| notes.tracked.get(&permit.generation) == Some(&true))
    }

    fn proof(&self, permit: AsxPermit, proof: &str) -> Reply {
        Reply::ok().with("proof", if self.is_tracked(permit) { proof } else { "none" })
    }

    fn timer_op(&self, op: &Op, caller: By<'_, '_>) -> Answer {
        let rt = self.rt;
        let mut raw = AsxTimer { id: 0, generation: 0 };
        match op {
            Op::Arm { timer, when: until, region, wakes } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let wakes: Option<AsxTask> =
                    wakes.as_ref().map(|task| self.task(task)).transpose()?;
                let (until, wakes) = (when(*until), maybe(wakes.as_ref()));
                call!(timer::asx_timer_arm(rt, region, until, wakes, &mut raw))?;
                self.bind_timer(scope(caller), timer, raw);
                ready(Reply::ok())
            }
            Op::Disarm { timer, id, generation } => {
                let own = self.timer(timer, scope(caller))?;
                let handle = AsxTimer {
                    id: id.unwrap_or(own.id),
                    generation: generation.unwrap_or(own.generation),
                };
                let mut cancelled = 0;
                call!(timer::asx_timer_cancel(rt, handle, &mut cancelled))?;
                ready(Reply::ok().with("cancelled", cancelled != 0))
            }
            Op::Update { timer, name, when: until, region, wakes } => {
                let old = self.timer(timer, scope(caller))?;
                let region = self.region_or_own(region.as_ref(), caller)?;
                let wakes: Option<AsxTask> =
                    wakes.as_ref().map(|task| self.task(task)).transpose()?;
                let (until, wakes) = (when(*until), maybe(wakes.as_ref()));
                call!(timer::asx_timer_update(rt, old, region, until, wakes, &mut raw))?;
                self.bind_timer(scope(caller), name, raw);
                ready(Reply::ok())
            }
            _ => Err(Status::Internal),
        }
    }

    fn bind_timer(&self, scope: Option<&str>, name: &Name, timer: AsxTimer) {
        self.book.with(|notes| {
            let full = notes.timers.bind(scope, name, timer);
            notes.ordinals.note(Named::Timer, timer.generation, full);
        });
    }

    pub(super) fn bind_permit(
        &self,
        scope: Option<&str>,
        name: &Name,
        permit: AsxPermit,
        tracked: bool,
    ) {
        self.book.with(|notes| {
            let full = notes.permits.bind(scope, name, permit);
            notes.tracked.insert(permit.generation, tracked);
            notes.ordinals.note(Named::Permit, permit.generation, full);
        });
    }

    pub(super) fn channel(&self, name: &Name) -> Result<AsxChannel, Status> {
        self.book.with(|notes| notes.channels.find(None, name)).ok_or(Status::StaleHandle)
    }

    pub(super) fn obligation(
        &self,
        name: &Name,
        caller: By<'_, '_>,
    ) -> Result<AsxObligation, Status> {
        let found = self.book.with(|notes| notes.obligations.find(scope(caller), name));
        found.ok_or(Status::StaleHandle)
    }

    fn permit(&self, name: &Name, caller: By<'_, '_>) -> Result<AsxPermit, Status> {
        let found = self.book.with(|notes| notes.permits.find(scope(caller), name));
        found.ok_or(Status::StaleHandle)
    }

    pub(super) fn timer(&self, name: &Name, scope: Option<&str>) -> Result<AsxTimer, Status> {
        self.book.with(|notes| notes.timers.find(scope, name)).ok_or(Status::StaleHandle)
    }
}
