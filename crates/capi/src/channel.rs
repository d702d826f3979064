//! Channels of fixed-size elements, and the permits of their two-phase sends.
//!
//! Elements are copied in and out; the bytes lie in the channel's block (`store`).

use crate::abi::{AsxChannel, AsxChannelInfo, AsxPermit, AsxRegion, AsxRuntime, AsxTask};
use crate::error::Why;
use crate::ghost::{ASX_GHOST_CLOSED_CHANNEL, ASX_GHOST_PERMIT_REUSE};
use crate::guard::{self, Look, Out, Runtime, bytes, room};
use crate::state::{Core, Kernel};
use crate::store::{Block, Message, WORD};
use asx_kernel::channel::ChannelState;
use asx_kernel::ids::ChannelId;
use asx_kernel::session::{DropContext, PermitState};
use asx_kernel::status::Status;
use asx_kernel::world::{Answer, Offer, PermitId};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::task::Poll;

/// Both sides are open.
pub const ASX_CHANNEL_OPEN: i32 = 0;
/// No sender is left; what is queued can be received.
pub const ASX_CHANNEL_SENDER_CLOSED: i32 = 1;
/// The receiver is gone.
pub const ASX_CHANNEL_RECEIVER_CLOSED: i32 = 2;
/// Neither side is left.
pub const ASX_CHANNEL_FULLY_CLOSED: i32 = 3;

/// The permit holds a slot.
pub const ASX_PERMIT_LIVE: i32 = 0;
/// The permit was tracked and dropped.
pub const ASX_PERMIT_LEAKED: i32 = 3;

/// The largest element.
pub const ASX_ELEMENT_MOST: usize = 1 << 20;

export! {
    /// Creates a channel with one sender: of a region, or free-standing.
    ///
    /// Pre: `region` is NULL or a region; `capacity` is 1 or more; `element_size` is at most
    /// ASX_ELEMENT_MOST; `out` is writable. Thread: the owner's. Owns: a region's channel is
    /// closed with it; a free-standing one is the caller's to close and release. Answers: ASX_OK;
    /// ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_REGION_NOT_OPEN; ASX_ADMISSION_CLOSED;
    /// ASX_RESOURCE_EXHAUSTED, also when there is no memory for its elements, or none left for
    /// them in the pool; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_create(
        rt,
        region: *const AsxRegion,
        capacity: usize,
        element_size: usize,
        out: *mut AsxChannel,
    ) {
        let region = guard::maybe(region, AsxRegion::id)?;
        let () = guard::ensure(capacity > 0)?;
        let () = guard::ensure(element_size <= ASX_ELEMENT_MOST)?;
        let out = Out::new(out)?;
        |core| {
            let runtime = guard::runtime(rt)?;
            let need = Block::need(capacity, element_size);
            core.make_room(runtime, 0, core.stores.promised().saturating_add(need))?;
            let slots = core.world.channel_slots() + 1;
            runtime.reserve.strictly(|| core.stores.try_reserve(slots))?;
            let block = runtime.reserve.strictly(|| Block::new(capacity, element_size))?;
            let channel = core.world.channel(region, capacity)?;
            core.stores.insert(channel, block);
            out.set(AsxChannel::of(channel));
            Ok(())
        }
    }

    /// Reserves a slot on behalf of a task, which waits in line if it must. A tracked permit is an
    /// obligation of the task's region: if that does not admit it, the task's turn has passed.
    ///
    /// Pre: `out` is writable. Thread: the owner's. Owns: the permit is the task's to resolve; the
    /// task's end aborts it. Answers: ASX_OK; ASX_WOULD_BLOCK, and the task is woken when it is
    /// its turn; ASX_CANCELLED; ASX_DISCONNECTED; ASX_RESOURCE_EXHAUSTED; ASX_REGION_NOT_OPEN;
    /// ASX_ADMISSION_CLOSED; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_INVALID_TRANSITION when
    /// the task is over; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_reserve(
        rt,
        channel: AsxChannel,
        task: AsxTask,
        tracked: i32,
        out: *mut AsxPermit,
    ) {
        let id = channel.id()?;
        let task = task.id()?;
        let out = Out::new(out)?;
        |core| {
            core.prepare_permit(rt, id, Some(task))?;
            match core.world.reserve(task, id, tracked != 0) {
                Ok(Poll::Pending) => Err(Status::WouldBlock),
                Ok(Poll::Ready(permit)) => {
                    out.set(AsxPermit::of(permit));
                    Ok(())
                }
                Err(status) => core.refused(status, channel),
            }
        }
    }

    /// Reserves a slot if one is free and nobody waits.
    ///
    /// Pre: `holder` is NULL or a task; `out` is writable. Thread: the owner's. Owns: as
    /// asx_channel_reserve; without a holder the permit is the caller's to resolve. Answers:
    /// ASX_OK; ASX_FULL; ASX_DISCONNECTED; ASX_RESOURCE_EXHAUSTED; ASX_REGION_NOT_OPEN;
    /// ASX_ADMISSION_CLOSED; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_INVALID_TRANSITION when
    /// the holder is over; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_try_reserve(
        rt,
        channel: AsxChannel,
        holder: *const AsxTask,
        tracked: i32,
        out: *mut AsxPermit,
    ) {
        let id = channel.id()?;
        let holder = guard::maybe(holder, AsxTask::id)?;
        let out = Out::new(out)?;
        |core| {
            core.prepare_permit(rt, id, holder)?;
            match core.world.try_reserve(holder, id, tracked != 0) {
                Ok(permit) => {
                    out.set(AsxPermit::of(permit));
                    Ok(())
                }
                Err(status) => core.refused(status, channel),
            }
        }
    }

    /// Fills a permit's slot. ASX_OK and ASX_DISCONNECTED use the permit up; others change nothing.
    ///
    /// Pre: `data` has `size` readable bytes, the channel's element size. Thread: the owner's.
    /// Owns: the element is copied; the permit is resolved. Answers: ASX_OK; ASX_DISCONNECTED when
    /// the receiver is gone; ASX_OBLIGATION_ALREADY_RESOLVED; ASX_OBLIGATION_LEAKED;
    /// ASX_INVALID_ARGUMENT for a wrong size; ASX_STALE_HANDLE; ASX_AFFINITY_VIOLATION;
    /// ASX_REENTRANT.
    fn asx_permit_send(rt, permit: AsxPermit, data: *const c_void, size: usize) {
        let id = permit.id()?;
        let data = bytes(data, size)?;
        |core| {
            let sent = core.send_permit(id, data);
            core.watch_permit(sent, permit)
        }
    }

    /// Gives a permit's slot back.
    ///
    /// Pre: none. Thread: the owner's. Owns: the permit is resolved. Answers: ASX_OK;
    /// ASX_OBLIGATION_ALREADY_RESOLVED; ASX_OBLIGATION_LEAKED; ASX_INVALID_ARGUMENT;
    /// ASX_STALE_HANDLE; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_permit_abort(rt, permit: AsxPermit) {
        let id = permit.id()?;
        |core| {
            let aborted = core.world.abort(id);
            core.watch_permit(aborted, permit)
        }
    }

    /// Lets a permit go without resolving it: an abort, or a leak if it is tracked.
    ///
    /// Pre: `leaked` is NULL or writable: whether an obligation leaked. Thread: the owner's. Owns:
    /// the permit is gone. Answers: as asx_permit_abort.
    fn asx_permit_drop(rt, permit: AsxPermit, leaked: *mut i32) {
        let id = permit.id()?;
        let leaked = Out::maybe(leaked)?;
        |core| {
            let dropped = core.world.drop_permit(id, DropContext::User);
            let status = dropped.map(|leak| leaked.set(i32::from(leak)));
            core.watch_permit(status, permit)
        }
    }

    /// Where a permit stands: ASX_PERMIT_LIVE or ASX_PERMIT_LEAKED. A resolved one is forgotten,
    /// and answers that it is.
    ///
    /// Pre: `state` is writable. Thread: the owner's. Owns: nothing. Answers: ASX_OK;
    /// ASX_OBLIGATION_ALREADY_RESOLVED; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE;
    /// ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_permit_state(rt, permit: AsxPermit, state: *mut i32) {
        let permit = permit.id()?;
        let state = Out::new(state)?;
        |core| {
            state.set(match core.world.permit(permit)? {
                PermitState::Leaked => ASX_PERMIT_LEAKED,
                _ => ASX_PERMIT_LIVE,
            });
            Ok(())
        }
    }

    /// Sends if there is room and nobody waits.
    ///
    /// Pre: `data` has `size` readable bytes, the channel's element size. Thread: the owner's.
    /// Owns: the element is copied. Answers: ASX_OK; ASX_FULL; ASX_DISCONNECTED;
    /// ASX_INVALID_ARGUMENT for a wrong size; ASX_STALE_HANDLE; ASX_RESOURCE_EXHAUSTED when there
    /// is no memory for one message more, with a pool never; ASX_AFFINITY_VIOLATION;
    /// ASX_REENTRANT.
    fn asx_channel_try_send(rt, channel: AsxChannel, data: *const c_void, size: usize) {
        let id = channel.id()?;
        let data = bytes(data, size)?;
        at once: size == WORD && send_at_once(rt, channel, data, WORD);
        |core| {
            let core = core.keeps_all();
            core.prepare_send(rt, id)?;
            let sent = core.put(id, data, |world, message| world.try_send(id, message));
            sent.or_else(|status| core.refused(status, channel))
        }
    }

    /// Sends, making room by evicting the oldest message if need be.
    ///
    /// Pre: as asx_channel_try_send; `old` is NULL or has `old_size` writable bytes, the channel's
    /// element size, for what is evicted, 0 if that is not wanted; `evicted` is NULL or writable:
    /// whether something was. Thread: the owner's. Owns: elements are copied. Answers: ASX_OK;
    /// ASX_FULL when there are permits only; ASX_DISCONNECTED; ASX_INVALID_ARGUMENT for a wrong
    /// size; ASX_STALE_HANDLE; ASX_RESOURCE_EXHAUSTED as asx_channel_try_send;
    /// ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_evict(
        rt,
        channel: AsxChannel,
        data: *const c_void,
        size: usize,
        old: *mut c_void,
        old_size: usize,
        evicted: *mut i32,
    ) {
        let id = channel.id()?;
        let data = bytes(data, size)?;
        let old = room(old.cast::<u8>(), old_size)?;
        let evicted = Out::maybe(evicted)?;
        |core| {
            let wrong = |block: &mut Block| !old.is_empty() && old.len() != block.element();
            if core.stores.block(id).is_ok_and(wrong) {
                core.blamed = Some(("old_size", Why::Element));
                return Err(Status::InvalidArgument);
            }
            core.prepare_send(rt, id)?;
            let sent = core.put(id, data, |world, message| world.evict(id, message));
            match sent {
                Ok(out) => {
                    evicted.set(i32::from(out.is_some()));
                    if let (Some(message), Ok(block)) = (out, core.stores.block(id)) {
                        block.take(message, old);
                    }
                    Ok(())
                }
                Err(status) => core.refused(status, channel),
            }
        }
    }

    /// Receives on behalf of a task, which waits if there is nothing.
    ///
    /// Pre: `data` has `size` writable bytes, the channel's element size. Thread: the owner's.
    /// Owns: the element is copied. Answers: ASX_OK; ASX_WOULD_BLOCK, and the task is woken when
    /// there is something; ASX_CANCELLED; ASX_DISCONNECTED; ASX_INVALID_ARGUMENT for a wrong size;
    /// ASX_STALE_HANDLE; ASX_INVALID_TRANSITION when the task is over; ASX_RESOURCE_EXHAUSTED
    /// without memory for a wait; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_recv(
        rt,
        channel: AsxChannel,
        task: AsxTask,
        data: *mut c_void,
        size: usize,
    ) {
        let id = channel.id()?;
        let task = task.id()?;
        let data = room(data.cast::<u8>(), size)?;
        |core| {
            let core = core.keeps_all();
            core.prepare_recv(rt, task)?;
            let received = core.take(id, data, |world| match world.recv(task, id)? {
                Poll::Pending => Err(Status::WouldBlock),
                Poll::Ready(message) => Ok(message),
            });
            received.or_else(|status| core.refused(status, channel))
        }
    }

    /// Receives if there is a message.
    ///
    /// Pre: as asx_channel_recv. Thread: the owner's. Owns: the element is copied. Answers:
    /// ASX_OK; ASX_EMPTY; ASX_DISCONNECTED; ASX_INVALID_ARGUMENT for a wrong size;
    /// ASX_STALE_HANDLE; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_try_recv(rt, channel: AsxChannel, data: *mut c_void, size: usize) {
        let id = channel.id()?;
        let data = room(data.cast::<u8>(), size)?;
        at once: size == WORD && recv_at_once(rt, channel, data, WORD);
        |core| {
            let core = core.keeps_all();
            let received = core.take(id, data, |world| world.try_recv(id));
            received.or_else(|status| core.refused(status, channel))
        }
    }

    /// Gives up the task's wait on a channel, if it has one; a channel that is gone has none.
    ///
    /// Pre: `waited` is NULL or writable: whether it had. Thread: the owner's. Owns: nothing.
    /// Answers: ASX_OK; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_AFFINITY_VIOLATION;
    /// ASX_REENTRANT.
    fn asx_channel_abandon(rt, channel: AsxChannel, task: AsxTask, waited: *mut i32) {
        let channel = channel.id()?;
        let task = task.id()?;
        let waited = Out::maybe(waited)?;
        |core| {
            waited.set(i32::from(core.world.abandon(task, channel)?));
            Ok(())
        }
    }

    /// One more sender.
    ///
    /// Pre: none. Thread: the owner's. Owns: one more to be closed. Answers: ASX_OK;
    /// ASX_DISCONNECTED once the last is gone; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE;
    /// ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_add_sender(rt, channel: AsxChannel) {
        let id = channel.id()?;
        |core| core.world.clone_sender(id).or_else(|status| core.refused(status, channel))
    }

    /// One sender fewer. After the last, the receiver drains what is queued.
    ///
    /// Pre: none. Thread: the owner's. Owns: the sender is gone. Answers: ASX_OK;
    /// ASX_DISCONNECTED once the last is gone; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE;
    /// ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_close_sender(rt, channel: AsxChannel) {
        let id = channel.id()?;
        |core| {
            let closed = core.world.drop_sender(id);
            core.closed(id);
            closed.or_else(|status| core.refused(status, channel))
        }
    }

    /// The receiver goes: unread messages are dropped, waiting senders woken.
    ///
    /// Pre: none. Thread: the owner's. Owns: the receiver is gone. Answers: ASX_OK;
    /// ASX_DISCONNECTED when it is gone; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE;
    /// ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_close_receiver(rt, channel: AsxChannel) {
        let id = channel.id()?;
        |core| {
            let closed = core.world.drop_receiver(id);
            core.closed(id);
            closed.or_else(|status| core.refused(status, channel))
        }
    }

    /// Frees the slot of a fully closed channel; its handle is stale from then on.
    ///
    /// Pre: none. Thread: the owner's. Owns: the channel is gone. Answers: ASX_OK;
    /// ASX_INVALID_TRANSITION when a side is open; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE;
    /// ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_release(rt, channel: AsxChannel) {
        let channel = channel.id()?;
        |core| {
            core.world.release_channel(channel)?;
            core.stores.remove(channel);
            Ok(())
        }
    }

    /// The state of a channel.
    ///
    /// Pre: `info` leads with its size. Thread: the owner's. Owns: nothing. Answers: ASX_OK;
    /// ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_channel_get_info(rt, channel: AsxChannel, info: *mut AsxChannelInfo) {
        let channel = channel.id()?;
        let info = Look::new(info)?;
        |core| {
            let view = core.world.channel_view(channel)?;
            info.set(AsxChannelInfo {
                struct_size: 0,
                state: match view.state {
                    ChannelState::Open => ASX_CHANNEL_OPEN,
                    ChannelState::SenderClosed => ASX_CHANNEL_SENDER_CLOSED,
                    ChannelState::ReceiverClosed => ASX_CHANNEL_RECEIVER_CLOSED,
                    ChannelState::FullyClosed => ASX_CHANNEL_FULLY_CLOSED,
                },
                capacity: view.capacity as u64,
                len: view.len as u64,
                reserved: view.reserved as u64,
                waiters: view.waiters as u64,
                senders: view.senders as u64,
                element_size: core.stores.block(channel).map_or(0, |block| block.element()) as u64,
            })
        }
    }
}

/// Sends, if that only moves an element; whether it has. What is to be refused is left to the call
/// in full.
///
/// # Safety
/// Rules 1 and 2 of `guard`.
#[inline(always)]
unsafe fn send_at_once(
    rt: *const AsxRuntime,
    channel: AsxChannel,
    data: *const c_void,
    size: usize,
) -> bool {
    // SAFETY: rules 1 and 2.
    let (Ok(data), Some(core)) = (unsafe { (bytes(data, size), Runtime::glance(rt)) }) else {
        return false;
    };
    let Ok(id) = channel.id() else { return false };
    let Ok(block) = core.stores.block(id) else { return false };
    let Ok(message) = block.put(id.0.index, data) else { return false };
    let sent = core.world.try_send_quietly(id, message);
    sent.map_err(|message| block.free(message)).is_ok()
}

/// Receives, if that only moves an element; whether it has. What is to be refused is left to the
/// call in full.
///
/// # Safety
/// Rules 1 and 2 of `guard`.
#[inline(always)]
unsafe fn recv_at_once(
    rt: *const AsxRuntime,
    channel: AsxChannel,
    data: *mut c_void,
    size: usize,
) -> bool {
    // SAFETY: rules 1 and 2.
    let (Ok(to), Some(core)) = (unsafe { (room(data.cast(), size), Runtime::glance(rt)) }) else {
        return false;
    };
    let Ok(id) = channel.id() else { return false };
    let Ok(block) = core.stores.block(id) else { return false };
    if to.len() != block.element() {
        return false;
    }
    let message = core.world.try_recv_quietly(id);
    message.map(|message| block.take(message, to)).is_some()
}

/// An element has another size than the channel's.
const WRONG_SIZE: Option<(&str, Why)> = Some(("size", Why::Element));

impl Core {
    /// Copies an element in and offers it to the world; a refused one is forgotten.
    #[inline]
    fn put<T>(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        offer: impl FnOnce(&mut Kernel, Message) -> Offer<Message, T>,
    ) -> Answer<T> {
        let Ok(block) = self.stores.block(channel) else {
            // The channel is gone, or only its bytes, because both sides are closed.
            self.world.channel_view(channel)?;
            return Err(Status::Disconnected);
        };
        let message = block.put(channel.0.index, data).inspect_err(|_| self.blamed = WRONG_SIZE)?;
        offer(&mut self.world, message).map_err(|(status, message)| {
            block.free(message);
            status
        })
    }

    fn send_permit(&mut self, permit: PermitId, data: &[u8]) -> Answer {
        let (_, channel) = self.world.permit_of(permit)?;
        let message = match self.stores.block(channel) {
            Ok(block) => {
                block.put(channel.0.index, data).inspect_err(|_| self.blamed = WRONG_SIZE)?
            }
            // Its bytes are gone because both sides are: nothing can be queued, but the permit is
            // the kernel's to resolve.
            Err(_) => Message::NOWHERE,
        };
        self.world.send(permit, message).map_err(|(status, message)| {
            self.stores.free(message);
            status
        })
    }

    /// Asks the world for a message and copies its element out.
    #[inline]
    fn take(
        &mut self,
        channel: ChannelId,
        to: &mut [MaybeUninit<u8>],
        ask: impl FnOnce(&mut Kernel) -> Answer<Message>,
    ) -> Answer {
        let block = self.stores.block(channel);
        if block.as_ref().is_ok_and(|block| to.len() != block.element()) {
            self.blamed = WRONG_SIZE;
            return Err(Status::InvalidArgument);
        }
        let message = ask(&mut self.world)?;
        if let Ok(block) = block {
            block.take(message, to);
        }
        Ok(())
    }

    /// Frees the bytes of a channel that is closed on both sides.
    fn closed(&mut self, channel: ChannelId) {
        self.collect();
        let view = self.world.channel_view(channel);
        if view.is_ok_and(|view| view.state == ChannelState::FullyClosed) {
            self.stores.remove(channel);
        }
    }

    /// Passes a refusal on; the ghosts are told of closed channels.
    fn refused(&mut self, status: Status, channel: AsxChannel) -> Answer {
        if status == Status::Disconnected {
            let by = self.current_handle();
            let handle = (channel.bits, channel.generation);
            self.ghosts.note(ASX_GHOST_CLOSED_CHANNEL, status.number(), handle, by);
        }
        Err(status)
    }

    /// Passes an answer on; the ghosts are told of permits used again.
    fn watch_permit(&mut self, answer: Answer, permit: AsxPermit) -> Answer {
        if let Err(status @ (Status::ObligationAlreadyResolved | Status::ObligationLeaked)) = answer
        {
            let by = self.current_handle();
            let handle = (permit.bits, permit.generation);
            self.ghosts.note(ASX_GHOST_PERMIT_REUSE, status.number(), handle, by);
        }
        answer
    }
}
