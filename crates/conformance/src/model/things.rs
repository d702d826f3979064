//! Ops on obligations, channels, permits and timers.

use super::ops::{Answer, ready, until};
use super::{Caller, Engine};
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::{Message, Name, Op};
use crate::value::Value;
use asx_kernel::ids::{ChannelId, ObligationId};
use asx_kernel::session::{DropContext, PermitState, Resolution};
use asx_kernel::status::Status;
use asx_kernel::wheel::TimerHandle;
use asx_kernel::world::PermitId;

type By<'a, 'b> = Option<&'a Caller<'b>>;

fn scope<'a>(caller: By<'a, '_>) -> Option<&'a str> {
    caller.map(|caller| &*caller.own.name)
}

fn message(value: Message, caller: By<'_, '_>) -> i64 {
    match value {
        Message::Value(value) => value,
        Message::Index => caller.map_or(0, |caller| caller.own.index),
    }
}

impl Engine {
    pub(super) fn thing_op(&mut self, op: &Op, caller: By<'_, '_>) -> Answer {
        match op {
            Op::Oblige { obligation, region } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let id = self.world.oblige(region)?;
                let full = self.obligations.bind(scope(caller), obligation, id);
                self.ordinals.note(Named::Obligation, id.ordinal(), full);
                ready(Reply::ok())
            }
            Op::Commit { obligation } => {
                let id = self.obligation(obligation, caller)?;
                ready(self.world.resolve(id, Resolution::Commit).into())
            }
            Op::Abort { obligation } => {
                let id = self.obligation(obligation, caller)?;
                ready(self.world.resolve(id, Resolution::Abort).into())
            }
            Op::TryReserve { .. }
            | Op::Send { .. }
            | Op::AbortPermit { .. }
            | Op::DropPermit { .. } => self.permit_op(op, caller),
            Op::Arm { .. } | Op::Disarm { .. } | Op::Update { .. } => self.timer_op(op, caller),
            _ => self.channel_op(op, caller),
        }
    }

    fn channel_op(&mut self, op: &Op, caller: By<'_, '_>) -> Answer {
        match op {
            Op::Channel { name, capacity, region } => {
                let region = region.as_ref().map(|region| self.region(region)).transpose()?;
                let channel = self.world.channel(region, *capacity)?;
                self.channels.bind(None, name, channel);
                self.ordinals.note(Named::Channel, channel.ordinal(), &**name);
            }
            Op::TrySend { channel, value } => {
                let (channel, value) = (self.channel(channel)?, message(*value, caller));
                self.world.try_send(channel, value).map_err(|(status, _)| status)?;
            }
            Op::Evict { channel, value } => {
                let (channel, value) = (self.channel(channel)?, message(*value, caller));
                let old = self.world.evict(channel, value).map_err(|(status, _)| status)?;
                return ready(Reply::ok().with("evicted", Value::maybe(old)));
            }
            Op::TryRecv { channel } => {
                let value = self.world.try_recv(self.channel(channel)?)?;
                return ready(Reply::ok().with("value", value));
            }
            Op::CloneSender { channel } => self.world.clone_sender(self.channel(channel)?)?,
            Op::DropSender { channel } => self.world.drop_sender(self.channel(channel)?)?,
            Op::DropReceiver { channel } => self.world.drop_receiver(self.channel(channel)?)?,
            _ => return Err(Status::Internal),
        }
        ready(Reply::ok())
    }

    fn permit_op(&mut self, op: &Op, caller: By<'_, '_>) -> Answer {
        match op {
            Op::TryReserve { channel, permit, tracked } => {
                let channel = self.channel(channel)?;
                let holder = caller.map(|caller| caller.task);
                let id = self.world.try_reserve(holder, channel, *tracked)?;
                self.bind_permit(scope(caller), permit, id, *tracked);
                ready(Reply::ok())
            }
            Op::Send { permit, value } => {
                let id = self.permit(permit, caller)?;
                let result = self.world.send(id, message(*value, caller));
                // Whether or not anybody heard it, the permit is used up.
                if !matches!(result, Err((Status::ObligationAlreadyResolved, _))) {
                    self.resolved.entry(id).or_insert(PermitState::Sent);
                }
                result.map_err(|(status, _)| status)?;
                ready(self.proof(id, "Committed"))
            }
            Op::AbortPermit { permit } => {
                let id = self.permit(permit, caller)?;
                self.world.abort(id)?;
                self.resolved.entry(id).or_insert(PermitState::Aborted);
                ready(self.proof(id, "Aborted"))
            }
            Op::DropPermit { permit } => {
                let id = self.permit(permit, caller)?;
                let panics = self.world.drop_permit(id, DropContext::User)?;
                let tracked = self.tracked.get(&id) == Some(&true);
                let state = if tracked { PermitState::Leaked } else { PermitState::Aborted };
                self.resolved.entry(id).or_insert(state);
                ready(Reply::ok().with("panics", panics))
            }
            _ => Err(Status::Internal),
        }
    }

    fn proof(&self, permit: PermitId, proof: &str) -> Reply {
        let tracked = self.tracked.get(&permit) == Some(&true);
        Reply::ok().with("proof", if tracked { proof } else { "none" })
    }

    fn timer_op(&mut self, op: &Op, caller: By<'_, '_>) -> Answer {
        match op {
            Op::Arm { timer, when, region, wakes } => {
                let region = self.region_or_own(region.as_ref(), caller)?;
                let wakes = wakes.as_ref().map(|task| self.task(task)).transpose()?;
                let handle = self.world.arm(region, until(*when), wakes)?;
                self.bind_timer(scope(caller), timer, handle);
                ready(Reply::ok())
            }
            Op::Disarm { timer, id, generation } => {
                let own = self.timer(timer, scope(caller))?;
                let handle = TimerHandle {
                    id: id.unwrap_or(own.id),
                    generation: generation.unwrap_or(own.generation),
                };
                ready(Reply::ok().with("cancelled", self.world.disarm(handle)))
            }
            Op::Update { timer, name, when, region, wakes } => {
                let old = self.timer(timer, scope(caller))?;
                let region = self.region_or_own(region.as_ref(), caller)?;
                let wakes = wakes.as_ref().map(|task| self.task(task)).transpose()?;
                let handle = self.world.update_timer(old, region, until(*when), wakes)?;
                self.bind_timer(scope(caller), name, handle);
                ready(Reply::ok())
            }
            _ => Err(Status::Internal),
        }
    }

    fn bind_timer(&mut self, scope: Option<&str>, name: &Name, handle: TimerHandle) {
        let full = self.timers.bind(scope, name, handle);
        self.ordinals.note(Named::Timer, handle.generation, full);
    }

    pub(super) fn bind_permit(
        &mut self,
        scope: Option<&str>,
        name: &Name,
        permit: PermitId,
        tracked: bool,
    ) {
        let full = self.permits.bind(scope, name, permit);
        self.tracked.insert(permit, tracked);
        self.ordinals.note(Named::Permit, permit.0.generation, full);
    }

    pub(super) fn channel(&self, name: &Name) -> Result<ChannelId, Status> {
        self.channels.find(None, name).ok_or(Status::StaleHandle)
    }

    pub(super) fn obligation(
        &self,
        name: &Name,
        caller: By<'_, '_>,
    ) -> Result<ObligationId, Status> {
        self.obligations.find(scope(caller), name).ok_or(Status::StaleHandle)
    }

    fn permit(&self, name: &Name, caller: By<'_, '_>) -> Result<PermitId, Status> {
        self.permits.find(scope(caller), name).ok_or(Status::StaleHandle)
    }

    pub(super) fn timer(&self, name: &Name, scope: Option<&str>) -> Result<TimerHandle, Status> {
        self.timers.find(scope, name).ok_or(Status::StaleHandle)
    }
}
