//! Ops on obligations, channels, permits and timers.

use super::{Answer, Call, ready};
use crate::api::{ChannelOp, Handle, HostApi};
use crate::book::found;
use crate::host::Reply;
use crate::scenario::{Message, Name, Op};
use crate::value::Value;
use asx_kernel::session::{PermitState, Resolution};
use asx_kernel::status::Status;
use asx_kernel::wheel::TimerHandle;

impl<H: HostApi> Call<'_, '_, H> {
    pub(super) fn object_op(&mut self, op: &Op) -> Answer {
        match op {
            Op::Oblige { obligation, region } => {
                let region = self.region_or_own(region.as_ref())?;
                let id = self.host.oblige(region)?;
                self.host.book().bind_obligation(self.scope(), obligation, id);
            }
            Op::Commit { obligation } => {
                let obligation = self.obligation(obligation)?;
                self.host.resolve(obligation, Resolution::Commit)?;
            }
            Op::Abort { obligation } => {
                let obligation = self.obligation(obligation)?;
                self.host.resolve(obligation, Resolution::Abort)?;
            }
            Op::TryReserve { .. }
            | Op::Send { .. }
            | Op::AbortPermit { .. }
            | Op::DropPermit { .. } => return self.permit_op(op),
            Op::Arm { .. } | Op::Disarm { .. } | Op::Update { .. } => return self.timer_op(op),
            _ => return self.channel_op(op),
        }
        ready(Reply::ok())
    }

    fn channel_op(&mut self, op: &Op) -> Answer {
        match op {
            Op::Channel { name, capacity, region } => {
                let region = region.as_ref().map(|region| self.region(region)).transpose()?;
                let channel = self.host.channel(region, *capacity)?;
                self.host.book().bind_channel(name, channel);
            }
            Op::TrySend { channel, value } => {
                let value = self.message(*value);
                self.on_channel(channel, ChannelOp::Send(value))?;
            }
            Op::Evict { channel, value } => {
                let channel = self.channel(channel)?;
                let old = self.host.evict(channel, self.message(*value))?;
                return ready(Reply::ok().with("evicted", Value::maybe(old)));
            }
            Op::TryRecv { channel } => {
                let channel = self.channel(channel)?;
                let value = self.host.try_recv(channel)?;
                return ready(Reply::ok().with("value", value));
            }
            Op::CloneSender { channel } => self.on_channel(channel, ChannelOp::AddSender)?,
            Op::DropSender { channel } => self.on_channel(channel, ChannelOp::DropSender)?,
            Op::DropReceiver { channel } => self.on_channel(channel, ChannelOp::DropReceiver)?,
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn on_channel(&mut self, name: &Name, op: ChannelOp) -> Result<(), Status> {
        let channel = self.channel(name)?;
        self.host.channel_op(channel, op)
    }

    fn permit_op(&mut self, op: &Op) -> Answer {
        match op {
            Op::TryReserve { channel, permit, tracked } => {
                let channel = self.channel(channel)?;
                let holder = self.caller.as_mut().map(|caller| &mut caller.current);
                let id = self.host.try_reserve(channel, *tracked, holder)?;
                self.host.book().bind_permit(self.scope(), permit, id, *tracked);
                ready(Reply::ok())
            }
            Op::Send { permit, value } => {
                let permit = self.permit(permit)?;
                let sent = self.host.send(permit, self.message(*value));
                // Whether or not anybody heard it, the permit is used up.
                if sent != Err(Status::ObligationAlreadyResolved) {
                    self.resolved(permit, PermitState::Sent);
                }
                sent?;
                ready(self.proof(permit, "Committed"))
            }
            Op::AbortPermit { permit } => {
                let permit = self.permit(permit)?;
                self.host.abort(permit)?;
                self.resolved(permit, PermitState::Aborted);
                ready(self.proof(permit, "Aborted"))
            }
            Op::DropPermit { permit } => {
                let permit = self.permit(permit)?;
                let panics = self.host.drop_permit(permit)?;
                let tracked = self.is_tracked(permit);
                let state = if tracked { PermitState::Leaked } else { PermitState::Aborted };
                self.resolved(permit, state);
                ready(Reply::ok().with("panics", panics))
            }
            _ => Err(Status::Internal),
        }
    }

    fn timer_op(&mut self, op: &Op) -> Answer {
        match op {
            Op::Arm { timer, when, region, wakes } => {
                let region = self.region_or_own(region.as_ref())?;
                let wakes = wakes.as_ref().map(|task| self.task(task)).transpose()?;
                let armed = self.host.arm(None, region, *when, wakes)?;
                self.host.book().bind_timer(self.scope(), timer, armed);
                ready(Reply::ok())
            }
            Op::Disarm { timer, id, generation } => {
                let own = self.timer(timer)?;
                let handle = TimerHandle {
                    id: id.unwrap_or(own.id),
                    generation: generation.unwrap_or(own.generation),
                };
                ready(Reply::ok().with("cancelled", self.host.disarm(handle)?))
            }
            Op::Update { timer, name, when, region, wakes } => {
                let old = self.timer(timer)?;
                let region = self.region_or_own(region.as_ref())?;
                let wakes = wakes.as_ref().map(|task| self.task(task)).transpose()?;
                let armed = self.host.arm(Some(old), region, *when, wakes)?;
                self.host.book().bind_timer(self.scope(), name, armed);
                ready(Reply::ok())
            }
            _ => Err(Status::Internal),
        }
    }

    fn message(&self, value: Message) -> i64 {
        match value {
            Message::Value(value) => value,
            Message::Index(_) => self.caller.as_ref().map_or(0, |caller| caller.index),
        }
    }

    fn resolved(&self, permit: H::Permit, state: PermitState) {
        self.host.book().resolved.entry(permit.ordinal()).or_insert(state);
    }

    fn is_tracked(&self, permit: H::Permit) -> bool {
        self.host.book().tracked.contains(&permit.ordinal())
    }

    fn proof(&self, permit: H::Permit, proof: &str) -> Reply {
        Reply::ok().with("proof", if self.is_tracked(permit) { proof } else { "none" })
    }

    pub(super) fn permit(&self, name: &Name) -> Result<H::Permit, Status> {
        found(&self.host.book().permits, self.scope(), name)
    }

    pub(super) fn timer(&self, name: &Name) -> Result<TimerHandle, Status> {
        found(&self.host.book().timers, self.scope(), name)
    }
}
