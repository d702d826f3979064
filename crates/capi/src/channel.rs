//! Channels of fixed-size elements, and the permits of their two-phase sends.
//!
//! Elements are copied in and out; the bytes lie in the channel's block (`store`).

use crate::abi::{
    AsxChannelId, AsxChannelInfo, AsxChannelReceiver, AsxChannelSender, AsxCx, AsxRegionId,
    AsxRuntime, AsxSendPermit, AsxStatus, AsxTaskId,
};
use crate::error::{Checked, Why};
use crate::ghost::{ASX_GHOST_CLOSED_CHANNEL, ASX_GHOST_PERMIT_REUSE};
use crate::guard::{self, Look, Out, Runtime, bytes, number, room};
use crate::state::{Core, Kernel};
use crate::store::{Block, Message, WORD};
use asx_kernel::channel::ChannelState;
use asx_kernel::ids::{ChannelId, TaskId};
use asx_kernel::session::{DropContext, PermitState};
use asx_kernel::status::Status;
use asx_kernel::world::{Answer, Offer, PermitId};
use core::ffi::c_void;
use core::task::Poll;

/// Both sides are open.
pub const ASX_CHANNEL_OPEN: i32 = 0;
/// No sender is left. Queued messages can be received.
pub const ASX_CHANNEL_SENDER_CLOSED: i32 = 1;
/// The receiver is gone.
pub const ASX_CHANNEL_RECEIVER_CLOSED: i32 = 2;
/// Neither side is left.
pub const ASX_CHANNEL_FULLY_CLOSED: i32 = 3;

/// The permit holds a slot.
pub const ASX_SEND_PERMIT_LIVE: i32 = 0;
/// The permit was tracked and dropped.
pub const ASX_SEND_PERMIT_LEAKED: i32 = 3;

/// The largest element.
pub const ASX_ELEMENT_MOST: usize = 1 << 20;

export! {
    /// Creates a channel with one sender and one receiver: of a region, or free-standing.
    ///
    /// - Parameters: `region` is NULL or a region; `capacity` is 1 or more; `element_size` is at
    ///   most ASX_ELEMENT_MOST; `sender` and `receiver` are writable.
    /// - Ownership: a region's channel is closed with it; a free-standing one is the caller's to
    ///   close and release.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
    ///   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED, also when there is no memory for its
    ///   elements, or none left for them in the pool; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_create(
        rt,
        region: *const AsxRegionId,
        capacity: usize,
        element_size: usize,
        sender: *mut AsxChannelSender,
        receiver: *mut AsxChannelReceiver,
    ) {
        let region = guard::maybe(region, AsxRegionId::id)?;
        let () = guard::ensure(capacity > 0)?;
        let () = guard::ensure(element_size <= ASX_ELEMENT_MOST)?;
        let sender = Out::new(sender)?;
        let receiver = Out::new(receiver)?;
        |core| {
            let runtime = guard::runtime(rt)?;
            let need = Block::need(capacity, element_size);
            core.make_room(runtime, 0, core.stores.promised().saturating_add(need))?;
            let slots = core.world.channel_slots() + 1;
            runtime.reserve.strictly(|| core.stores.try_reserve(slots))?;
            let block = runtime.reserve.strictly(|| Block::new(capacity, element_size))?;
            let channel = core.world.channel(region, capacity)?;
            core.stores.insert(channel, block);
            let channel = AsxChannelId::of(channel);
            sender.set(AsxChannelSender { rt, channel });
            receiver.set(AsxChannelReceiver { rt, channel });
            Ok(())
        }
    }

    /// Reserves a slot on behalf of a task, which waits in line if it must. Checked in this order:
    /// a cancel of the task, the receiver, the line, the capacity.
    ///
    /// - Parameters: `cx` is of the sender's runtime; `out` is writable.
    /// - Ownership: the permit is the task's to resolve; the task's end aborts it.
    /// - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when it is its turn;
    ///   ASX_E_CANCELLED, and nothing has changed; ASX_E_DISCONNECTED when the receiver is gone;
    ///   ASX_E_RESOURCE_EXHAUSTED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE;
    ///   ASX_E_REGION_NOT_OPEN; ASX_E_INVALID_TRANSITION when the task is over;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_reserve(
        sender: *mut AsxChannelSender as rt,
        cx: *mut AsxCx,
        out: *mut AsxSendPermit,
    ) {
        let (channel, id) = AsxChannelId::both(guard::read(sender)?.channel)?;
        let task = guard::on(cx, rt)?;
        let out = Out::new(out)?;
        |core| core.reserve(rt, (channel, id), task, false, out)
    }

    /// Reserves a slot as asx_channel_reserve does, with a permit that is also an obligation of the
    /// task's region: if it is dropped without being resolved it is recorded as leaked. If the
    /// region does not admit the obligation, the task's turn has passed.
    ///
    /// - Parameters: as asx_channel_reserve.
    /// - Ownership: the permit is the task's to resolve; the task's end aborts it.
    /// - Returns: as asx_channel_reserve; ASX_E_REGION_NOT_OPEN; ASX_E_ADMISSION_CLOSED.
    fn asx_channel_reserve_tracked(
        sender: *mut AsxChannelSender as rt,
        cx: *mut AsxCx,
        out: *mut AsxSendPermit,
    ) {
        let (channel, id) = AsxChannelId::both(guard::read(sender)?.channel)?;
        let task = guard::on(cx, rt)?;
        let out = Out::new(out)?;
        |core| core.reserve(rt, (channel, id), task, true, out)
    }

    /// Reserves a slot if one is free and no sender waits. Does not check for a cancel.
    ///
    /// - Parameters: `holder` is NULL or a task; `tracked` is nonzero for a permit that is also an
    ///   obligation; `out` is writable.
    /// - Ownership: as asx_channel_reserve; without a holder the permit is the caller's to resolve.
    /// - Returns: ASX_OK; ASX_E_FULL; ASX_E_DISCONNECTED; ASX_E_RESOURCE_EXHAUSTED;
    ///   ASX_E_REGION_NOT_OPEN; ASX_E_ADMISSION_CLOSED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE;
    ///   ASX_E_INVALID_TRANSITION when the holder is over; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_channel_try_reserve(
        sender: *mut AsxChannelSender as rt,
        holder: *const AsxTaskId,
        tracked: i32,
        out: *mut AsxSendPermit,
    ) {
        let (channel, id) = AsxChannelId::both(guard::read(sender)?.channel)?;
        let holder = guard::maybe(holder, AsxTaskId::id)?;
        let out = Out::new(out)?;
        |core| {
            core.prepare_permit(rt, id, holder)?;
            match core.world.try_reserve(holder, id, tracked != 0) {
                Ok(permit) => {
                    out.set(AsxSendPermit::of(rt, permit));
                    Ok(())
                }
                Err(status) => core.refused(status, channel),
            }
        }
    }

    /// Sends a message into the permit's slot. ASX_OK and ASX_E_DISCONNECTED resolve the permit;
    /// after any other status it is unchanged.
    ///
    /// - Parameters: `value` has as many readable bytes as the channel's elements; NULL if that is
    ///   0.
    /// - Ownership: the message is copied; the permit is resolved.
    /// - Returns: ASX_OK; ASX_E_DISCONNECTED when the receiver is gone;
    ///   ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_send_permit_send(permit: *mut AsxSendPermit as rt, value: *const c_void) {
        let (permit, id) = AsxSendPermit::both(guard::read(permit)?)?;
        |core| {
            let sent = core.send_permit(id, value);
            core.watch_permit(sent, permit)
        }
    }

    /// Aborts a permit as asx_send_permit_abort does, and returns a status.
    ///
    /// - Ownership: the permit is resolved.
    /// - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_send_permit_try_abort(permit: *mut AsxSendPermit as rt) {
        let (permit, id) = AsxSendPermit::both(guard::read(permit)?)?;
        |core| {
            let aborted = core.world.abort(id);
            core.watch_permit(aborted, permit)
        }
    }

    /// Drops a permit without resolving it. A tracked permit is recorded as leaked, any other is
    /// aborted.
    ///
    /// - Parameters: `leaked` is NULL or writable: whether an obligation leaked.
    /// - Ownership: the permit is gone.
    /// - Returns: as asx_send_permit_try_abort.
    fn asx_send_permit_drop(permit: *mut AsxSendPermit as rt, leaked: *mut i32) {
        let (permit, id) = AsxSendPermit::both(guard::read(permit)?)?;
        let leaked = Out::maybe(leaked)?;
        |core| {
            let dropped = core.world.drop_permit(id, DropContext::User);
            let status = dropped.map(|leak| leaked.set(i32::from(leak)));
            core.watch_permit(status, permit)
        }
    }

    /// Reads the state of a permit: ASX_SEND_PERMIT_LIVE or ASX_SEND_PERMIT_LEAKED. A resolved
    /// permit is forgotten, which the call reports.
    ///
    /// - Parameters: `state` is writable.
    /// - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_send_permit_state(permit: *mut AsxSendPermit as rt, state: *mut i32) {
        let id = guard::read(permit)?.id()?;
        let state = Out::new(state)?;
        |core| {
            state.set(match core.world.permit(id)? {
                PermitState::Leaked => ASX_SEND_PERMIT_LEAKED,
                _ => ASX_SEND_PERMIT_LIVE,
            });
            Ok(())
        }
    }

    /// Sends if there is room and no sender waits.
    ///
    /// - Parameters: `value` has as many readable bytes as the channel's elements; NULL if that is
    ///   0.
    /// - Ownership: the message is copied.
    /// - Returns: ASX_OK; ASX_E_FULL; ASX_E_DISCONNECTED; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED when there is no memory for one message more,
    ///   with a pool never; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_try_send(sender: *mut AsxChannelSender as rt, value: *const c_void) {
        let (channel, id) = AsxChannelId::both(guard::read(sender)?.channel)?;
        at once: send_at_once;
        |core| {
            let core = core.keeps_all();
            core.prepare_send(rt, id)?;
            let sent = core.put(id, value, |world, message| world.try_send(id, message));
            sent.or_else(|status| core.refused(status, channel))
        }
    }

    /// Sends at once: into a free slot even if senders wait, else in the place of the oldest
    /// message.
    ///
    /// - Parameters: `value` as for asx_channel_try_send; `old` is NULL or has as many writable
    ///   bytes as the channel's elements, for the message that had to go; `evicted` is NULL or
    ///   writable: whether there was one.
    /// - Ownership: messages are copied.
    /// - Returns: ASX_OK; ASX_E_FULL when there are permits only; ASX_E_DISCONNECTED;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_RESOURCE_EXHAUSTED as
    ///   asx_channel_try_send; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_evict(
        sender: *mut AsxChannelSender as rt,
        value: *const c_void,
        old: *mut c_void,
        evicted: *mut i32,
    ) {
        let (channel, id) = AsxChannelId::both(guard::read(sender)?.channel)?;
        let evicted = Out::maybe(evicted)?;
        |core| {
            core.prepare_send(rt, id)?;
            let sent = core.put(id, value, |world, message| world.evict(id, message));
            match sent {
                Ok(out) => {
                    evicted.set(i32::from(out.is_some()));
                    if let (Some(message), Ok(block)) = (out, core.stores.block(id)) {
                        let size = if old.is_null() { 0 } else { block.element() };
                        block.take(message, room(old.cast::<u8>(), size)?);
                    }
                    Ok(())
                }
                Err(status) => core.refused(status, channel),
            }
        }
    }

    /// Receives a message on behalf of a task, which waits if there is none. A cancel of the task
    /// is checked first.
    ///
    /// - Parameters: `cx` is of the receiver's runtime; `out` has as many writable bytes as the
    ///   channel's elements; NULL if that is 0.
    /// - Ownership: the message is copied.
    /// - Returns: ASX_OK; ASX_E_WOULD_BLOCK, and the task is woken when there is something;
    ///   ASX_E_CANCELLED, and nothing was received; ASX_E_DISCONNECTED when there is no message and
    ///   no sender; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the
    ///   task is over; ASX_E_RESOURCE_EXHAUSTED without memory for a wait;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_recv(
        receiver: *mut AsxChannelReceiver as rt,
        cx: *mut AsxCx,
        out: *mut c_void,
    ) {
        let (channel, id) = AsxChannelId::both(guard::read(receiver)?.channel)?;
        let task = guard::on(cx, rt)?;
        |core| {
            let core = core.keeps_all();
            core.prepare_recv(rt, task)?;
            let received = core.take(id, out, |world| match world.recv(task, id)? {
                Poll::Pending => Err(Status::WouldBlock),
                Poll::Ready(message) => Ok(message),
            });
            received.or_else(|status| core.refused(status, channel))
        }
    }

    /// Receives a message if there is one. Does not check for a cancel.
    ///
    /// - Parameters: `out` has as many writable bytes as the channel's elements; NULL if that is 0.
    /// - Ownership: the message is copied.
    /// - Returns: ASX_OK; ASX_E_EMPTY; ASX_E_DISCONNECTED; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_try_recv(receiver: *mut AsxChannelReceiver as rt, out: *mut c_void) {
        let (channel, id) = AsxChannelId::both(guard::read(receiver)?.channel)?;
        at once: recv_at_once;
        |core| {
            let core = core.keeps_all();
            let received = core.take(id, out, |world| world.try_recv(id));
            received.or_else(|status| core.refused(status, channel))
        }
    }

    /// Ends the task's wait on a channel, if there is one. A channel that is gone has none.
    ///
    /// - Parameters: `waited` is NULL or writable: whether it had.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_channel_abandon(rt, channel: AsxChannelId, task: AsxTaskId, waited: *mut i32) {
        let channel = channel.id()?;
        let task = task.id()?;
        let waited = Out::maybe(waited)?;
        |core| {
            waited.set(i32::from(core.world.abandon(task, channel)?));
            Ok(())
        }
    }

    /// Adds a sender to the channel.
    ///
    /// - Parameters: `out` is writable, and may be `sender` itself.
    /// - Ownership: one more sender to be closed.
    /// - Returns: ASX_OK; ASX_E_DISCONNECTED once the last is closed; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_sender_clone(
        sender: *mut AsxChannelSender as rt,
        out: *mut AsxChannelSender,
    ) {
        let (channel, id) = AsxChannelId::both(guard::read(sender)?.channel)?;
        let out = Out::new(out)?;
        |core| match core.world.clone_sender(id) {
            Ok(()) => {
                out.set(AsxChannelSender { rt, channel });
                Ok(())
            }
            Err(status) => core.refused(status, channel),
        }
    }

    /// Closes a sender. After the last one is closed, the receiver gets the queued messages, then
    /// ASX_E_DISCONNECTED.
    ///
    /// - Ownership: the sender is gone.
    /// - Returns: ASX_OK; ASX_E_DISCONNECTED once the last is closed; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_sender_close(sender: *mut AsxChannelSender as rt) {
        let (channel, id) = AsxChannelId::both(guard::read(sender)?.channel)?;
        |core| {
            let closed = core.world.drop_sender(id);
            core.closed(id);
            closed.or_else(|status| core.refused(status, channel))
        }
    }

    /// Closes the receiver. Queued messages are dropped, and waiting senders are woken.
    ///
    /// - Ownership: the receiver is gone.
    /// - Returns: ASX_OK; ASX_E_DISCONNECTED when it is closed; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_receiver_close(receiver: *mut AsxChannelReceiver as rt) {
        let (channel, id) = AsxChannelId::both(guard::read(receiver)?.channel)?;
        |core| {
            let closed = core.world.drop_receiver(id);
            core.closed(id);
            closed.or_else(|status| core.refused(status, channel))
        }
    }

    /// Frees the slot of a fully closed channel. Its handle becomes stale.
    ///
    /// - Ownership: the channel is gone.
    /// - Returns: ASX_OK; ASX_E_INVALID_TRANSITION when a side is open; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_channel_release(rt, channel: AsxChannelId) {
        let channel = channel.id()?;
        |core| {
            core.world.release_channel(channel)?;
            core.stores.remove(channel);
            Ok(())
        }
    }

    /// Reads the state of a channel.
    ///
    /// - Parameters: `info` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_channel_get_info(rt, channel: AsxChannelId, info: *mut AsxChannelInfo) {
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

/// Aborts a permit: its slot is free again. If the call is refused nothing changes; asx_last_error
/// reports why, and asx_send_permit_try_abort returns the status.
///
/// - Ownership: the permit is resolved.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_send_permit_abort(permit: *mut AsxSendPermit) {
    // SAFETY: the caller's promise is that of the function called.
    unsafe { asx_send_permit_try_abort(permit) };
}

/// A call of asx_channel_try_send in full.
type SendInFull = unsafe fn(*mut AsxChannelSender, *const c_void) -> AsxStatus;
/// A call of asx_channel_try_recv in full.
type RecvInFull = unsafe fn(*mut AsxChannelReceiver, *mut c_void) -> AsxStatus;

/// Sends an element if that only moves it, or else makes the full call.
///
/// Elements of a word are sent here. Other sizes have a separate function, because of its larger
/// frame.
///
/// # Safety
/// Rules 1 and 2 of `guard`.
#[inline(always)]
unsafe fn send_at_once(
    sender: *mut AsxChannelSender,
    value: *const c_void,
    in_full: SendInFull,
) -> AsxStatus {
    // SAFETY: rules 1 and 2; the core is not used after the last call in here.
    unsafe {
        let Ok(AsxChannelSender { rt, channel }) = guard::read(sender) else {
            return in_full(sender, value);
        };
        let Some(core) = Runtime::glance(rt) else { return in_full(sender, value) };
        let Ok(id) = channel.id() else { return in_full(sender, value) };
        let Ok(block) = core.stores.block(id) else { return in_full(sender, value) };
        if block.element() != WORD {
            return send_any_size(sender, value, rt, id, in_full);
        }
        let Ok(data) = bytes(value, WORD) else { return in_full(sender, value) };
        let Ok(message) = block.put(id.0.index, data) else { return in_full(sender, value) };
        match core.world.try_send_quietly(id, message) {
            Ok(()) => number(Ok(())),
            Err(_) => in_full(sender, value),
        }
    }
}

/// The same for an element of any size, of a channel that has been checked.
///
/// # Safety
/// Rules 1, 2 and 3 of `guard`: the caller may have the core, and does not hold it.
#[inline(never)]
unsafe fn send_any_size(
    sender: *mut AsxChannelSender,
    value: *const c_void,
    rt: *const AsxRuntime,
    id: ChannelId,
    in_full: SendInFull,
) -> AsxStatus {
    let send = |core: &mut Core| {
        let block = core.stores.block(id).ok()?;
        // SAFETY: rule 2: the caller of the library has given an element.
        let data = unsafe { bytes(value, block.element()) }.ok()?;
        let message = block.put(id.0.index, data).ok()?;
        core.world.try_send_quietly(id, message).map_err(|message| block.free(message)).ok()
    };
    // SAFETY: rules 1 and 3.
    let sent = unsafe { Runtime::of(rt).is_ok_and(|rt| rt.with(send).is_some()) };
    // SAFETY: the caller's promise is that of the full call.
    if sent { number(Ok(())) } else { unsafe { in_full(sender, value) } }
}

/// Receives an element if that only moves it, or else makes the full call.
///
/// # Safety
/// Rules 1 and 2 of `guard`.
#[inline(always)]
unsafe fn recv_at_once(
    receiver: *mut AsxChannelReceiver,
    out: *mut c_void,
    in_full: RecvInFull,
) -> AsxStatus {
    // SAFETY: rules 1 and 2; the core is not used after the last call in here.
    unsafe {
        let Ok(AsxChannelReceiver { rt, channel }) = guard::read(receiver) else {
            return in_full(receiver, out);
        };
        let Some(core) = Runtime::glance(rt) else { return in_full(receiver, out) };
        let Ok(id) = channel.id() else { return in_full(receiver, out) };
        let Ok(block) = core.stores.block(id) else { return in_full(receiver, out) };
        if block.element() != WORD {
            return recv_any_size(receiver, out, rt, id, in_full);
        }
        let Ok(to) = room(out.cast::<u8>(), WORD) else { return in_full(receiver, out) };
        match core.world.try_recv_quietly(id) {
            Some(message) => {
                message.unpack(to);
                number(Ok(()))
            }
            None => in_full(receiver, out),
        }
    }
}

/// The same for an element of any size, of a channel that has been checked.
///
/// # Safety
/// Rules 1, 2 and 3 of `guard`: the caller may have the core, and does not hold it.
#[inline(never)]
unsafe fn recv_any_size(
    receiver: *mut AsxChannelReceiver,
    out: *mut c_void,
    rt: *const AsxRuntime,
    id: ChannelId,
    in_full: RecvInFull,
) -> AsxStatus {
    let receive = |core: &mut Core| {
        let block = core.stores.block(id).ok()?;
        // SAFETY: rule 2: the caller of the library has room for an element.
        let to = unsafe { room(out.cast::<u8>(), block.element()) }.ok()?;
        block.take(core.world.try_recv_quietly(id)?, to);
        Some(())
    };
    // SAFETY: rules 1 and 3.
    let received = unsafe { Runtime::of(rt).is_ok_and(|rt| rt.with(receive).is_some()) };
    // SAFETY: the caller's promise is that of the full call.
    if received { number(Ok(())) } else { unsafe { in_full(receiver, out) } }
}

impl AsxChannelId {
    /// The handle and the kernel's id.
    #[inline(always)]
    fn both(self) -> Checked<(AsxChannelId, ChannelId)> {
        Ok((self, self.id()?))
    }
}

/// An element's pointer is NULL though elements have bytes.
const NO_VALUE: Option<(&str, Why)> = Some(("value", Why::Null));
const NO_OUT: Option<(&str, Why)> = Some(("out", Why::Null));

impl AsxSendPermit {
    /// The handle and the kernel's id.
    fn both(self) -> Checked<(AsxSendPermit, PermitId)> {
        Ok((self, self.id()?))
    }
}

impl Core {
    /// Reserves a slot, or a place in the line of waiting senders.
    ///
    /// # Safety
    /// Rules 1 and 2 of `guard`, on the owner's thread.
    unsafe fn reserve(
        &mut self,
        rt: *mut AsxRuntime,
        (channel, id): (AsxChannelId, ChannelId),
        task: TaskId,
        tracked: bool,
        out: Out<AsxSendPermit>,
    ) -> Answer {
        // SAFETY: rule 1.
        unsafe { self.prepare_permit(rt, id, Some(task))? };
        match self.world.reserve(task, id, tracked) {
            Ok(Poll::Pending) => Err(Status::WouldBlock),
            Ok(Poll::Ready(permit)) => {
                out.set(AsxSendPermit::of(rt, permit));
                Ok(())
            }
            Err(status) => self.refused(status, channel),
        }
    }

    /// Copies an element in and offers it to the world; a refused one is forgotten.
    ///
    /// # Safety
    /// Rule 2 of `guard`: an element is readable, if not NULL.
    #[inline]
    unsafe fn put<T>(
        &mut self,
        channel: ChannelId,
        value: *const c_void,
        offer: impl FnOnce(&mut Kernel, Message) -> Offer<Message, T>,
    ) -> Answer<T> {
        let Ok(block) = self.stores.block(channel) else {
            // The channel is gone, or only its bytes, because both sides are closed.
            self.world.channel_view(channel)?;
            return Err(Status::Disconnected);
        };
        // SAFETY: rule 2.
        let data = unsafe { bytes(value, block.element()) };
        let data = data.inspect_err(|_| self.blamed = NO_VALUE)?;
        let message = block.put(channel.0.index, data)?;
        offer(&mut self.world, message).map_err(|(status, message)| {
            block.free(message);
            status
        })
    }

    /// Fills a permit's slot.
    ///
    /// # Safety
    /// Rule 2 of `guard`: an element is readable, if not NULL.
    unsafe fn send_permit(&mut self, permit: PermitId, value: *const c_void) -> Answer {
        let (_, channel) = self.world.permit_of(permit)?;
        let message = match self.stores.block(channel) {
            Ok(block) => {
                // SAFETY: rule 2.
                let data = unsafe { bytes(value, block.element()) };
                let data = data.inspect_err(|_| self.blamed = NO_VALUE)?;
                block.put(channel.0.index, data)?
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
    ///
    /// # Safety
    /// Rule 2 of `guard`: there is room for an element, if not NULL.
    #[inline]
    unsafe fn take(
        &mut self,
        channel: ChannelId,
        out: *mut c_void,
        ask: impl FnOnce(&mut Kernel) -> Answer<Message>,
    ) -> Answer {
        let block = self.stores.block(channel);
        let size = block.as_ref().map_or(0, |block| block.element());
        // SAFETY: rule 2.
        let to = unsafe { room(out.cast::<u8>(), size) };
        let to = to.inspect_err(|_| self.blamed = NO_OUT)?;
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
    fn refused(&mut self, status: Status, channel: AsxChannelId) -> Answer {
        if status == Status::Disconnected {
            let by = self.current_handle();
            let handle = (channel.bits, channel.generation);
            self.ghosts.note(ASX_GHOST_CLOSED_CHANNEL, status.number(), handle, by);
        }
        Err(status)
    }

    /// Passes an answer on; the ghosts are told of permits used again.
    fn watch_permit(&mut self, answer: Answer, permit: AsxSendPermit) -> Answer {
        if let Err(status @ (Status::ObligationAlreadyResolved | Status::ObligationLeaked)) = answer
        {
            let by = self.current_handle();
            let handle = (permit.bits, permit.generation);
            self.ghosts.note(ASX_GHOST_PERMIT_REUSE, status.number(), handle, by);
        }
        answer
    }
}
