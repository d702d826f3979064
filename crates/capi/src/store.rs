//! The bytes of messages: per channel one block of equal slots, made when the channel is.
//!
//! The kernel's channel carries slot numbers. A block has one slot more than the channel has
//! places, because an evicting send writes the new message before the old one leaves. Its memory
//! is reserved at once but not touched before it is needed: a giant capacity costs what is used.

use crate::state::Message;
use alloc::vec::Vec;
use asx_kernel::ids::ChannelId;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::mem::MaybeUninit;

/// The size of most elements, numbers and pointers, which are copied without a call.
const WORD: usize = 8;

/// The blocks, by the slot of their channel.
#[derive(Default)]
pub(crate) struct Stores {
    blocks: Vec<Option<Tenant>>,
}

/// A block and the channel it is of.
struct Tenant {
    generation: u64,
    block: Block,
}

/// A block of equal slots.
pub(crate) struct Block {
    element: usize,
    slots: u32,
    /// Slots that were used so far.
    made: u32,
    /// Their bytes.
    bytes: Vec<u8>,
    /// Those of them that are free.
    free: Vec<u32>,
}

impl Block {
    /// Room for `capacity` elements and one more; nothing if that is not to be had.
    pub(crate) fn new(capacity: usize, element: usize) -> Answer<Block> {
        let slots = capacity.checked_add(1).and_then(|slots| u32::try_from(slots).ok());
        let slots = slots.ok_or(Status::ResourceExhausted)?;
        let size = element.checked_mul(slots as usize).ok_or(Status::ResourceExhausted)?;
        let (mut bytes, mut free) = (Vec::new(), Vec::new());
        bytes.try_reserve_exact(size).map_err(|_| Status::ResourceExhausted)?;
        free.try_reserve_exact(slots as usize).map_err(|_| Status::ResourceExhausted)?;
        Ok(Block { element, slots, made: 0, bytes, free })
    }

    /// A slot that is free.
    fn slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            return Some(slot);
        }
        let slot = (self.made < self.slots).then_some(self.made)?;
        self.made += 1;
        // Within what is reserved.
        self.bytes.resize(self.made as usize * self.element, 0);
        Some(slot)
    }
}

impl Stores {
    /// Gives a channel its block, in place of that of the slot's last tenant.
    pub(crate) fn insert(&mut self, channel: ChannelId, block: Block) {
        let at = channel.0.index as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, || None);
        }
        if let Some(slot) = self.blocks.get_mut(at) {
            *slot = Some(Tenant { generation: channel.0.generation, block });
        }
    }

    /// Frees a channel's block.
    pub(crate) fn remove(&mut self, channel: ChannelId) {
        if let Some(slot) = self.blocks.get_mut(channel.0.index as usize) {
            slot.take_if(|tenant| tenant.generation == channel.0.generation);
        }
    }

    /// Bytes of an element of a channel.
    pub(crate) fn element(&self, channel: ChannelId) -> Answer<usize> {
        let tenant = self.blocks.get(channel.0.index as usize).and_then(Option::as_ref);
        let tenant = tenant.filter(|tenant| tenant.generation == channel.0.generation);
        tenant.map(|tenant| tenant.block.element).ok_or(Status::StaleHandle)
    }

    /// Copies an element in: INVALID_ARGUMENT if it has another size. FULL if every slot is taken,
    /// which the kernel does not let happen.
    pub(crate) fn put(&mut self, channel: ChannelId, data: &[u8]) -> Answer<Message> {
        let tenant = self.blocks.get_mut(channel.0.index as usize).and_then(Option::as_mut);
        let tenant = tenant.filter(|tenant| tenant.generation == channel.0.generation);
        let block = &mut tenant.ok_or(Status::StaleHandle)?.block;
        if data.len() != block.element {
            return Err(Status::InvalidArgument);
        }
        let slot = block.slot().ok_or(Status::Full)?;
        let at = slot as usize * block.element;
        if let Some(to) = block.bytes.get_mut(at..at + data.len()) {
            match data.as_array::<WORD>() {
                Some(word) => to.copy_from_slice(word),
                None => to.copy_from_slice(data),
            }
        }
        Ok(Message { channel: channel.0.index, slot })
    }

    /// Copies an element out and frees its slot.
    pub(crate) fn take(&mut self, message: Message, to: &mut [MaybeUninit<u8>]) {
        if let Some(block) = self.block(message.channel) {
            let at = message.slot as usize * block.element;
            let from = block.bytes.get(at..at + to.len()).unwrap_or_default();
            match from.as_array::<WORD>() {
                Some(word) if to.len() == WORD => _ = to.write_copy_of_slice(word),
                _ if to.len() == from.len() => _ = to.write_copy_of_slice(from),
                _ => {}
            }
            block.free.push(message.slot);
        }
    }

    /// Frees a slot.
    pub(crate) fn free(&mut self, message: Message) {
        if let Some(block) = self.block(message.channel) {
            block.free.push(message.slot);
        }
    }

    fn block(&mut self, channel: u32) -> Option<&mut Block> {
        Some(&mut self.blocks.get_mut(channel as usize)?.as_mut()?.block)
    }
}
