//! The bytes of messages: per channel one block of equal slots, made when the channel is.
//!
//! The kernel's channel carries slot numbers. A block has one slot more than the channel has
//! places, because an evicting send writes the new message before the old one leaves.

use crate::state::Message;
use alloc::vec::Vec;
use asx_kernel::ids::ChannelId;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::mem::MaybeUninit;

/// The blocks, by the slot of their channel.
#[derive(Default)]
pub(crate) struct Stores {
    blocks: Vec<Option<Block>>,
}

struct Block {
    generation: u64,
    element: usize,
    bytes: Vec<u8>,
    free: Vec<u32>,
}

/// A block that has no channel yet.
pub(crate) struct Fresh {
    element: usize,
    bytes: Vec<u8>,
    free: Vec<u32>,
}

impl Fresh {
    /// Room for `capacity` elements and one more; nothing if that is not to be had.
    pub(crate) fn new(capacity: usize, element: usize) -> Answer<Fresh> {
        let slots = capacity.checked_add(1).and_then(|slots| u32::try_from(slots).ok());
        let slots = slots.ok_or(Status::ResourceExhausted)?;
        let size = element.checked_mul(slots as usize).ok_or(Status::ResourceExhausted)?;
        let (mut bytes, mut free) = (Vec::new(), Vec::new());
        bytes.try_reserve_exact(size).map_err(|_| Status::ResourceExhausted)?;
        free.try_reserve_exact(slots as usize).map_err(|_| Status::ResourceExhausted)?;
        bytes.resize(size, 0);
        free.extend((0..slots).rev());
        Ok(Fresh { element, bytes, free })
    }
}

impl Stores {
    /// Gives a channel its block, in place of that of the slot's last tenant.
    pub(crate) fn insert(&mut self, channel: ChannelId, fresh: Fresh) {
        let at = channel.0.index as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, || None);
        }
        let Fresh { element, bytes, free } = fresh;
        if let Some(slot) = self.blocks.get_mut(at) {
            *slot = Some(Block { generation: channel.0.generation, element, bytes, free });
        }
    }

    /// Frees a channel's block.
    pub(crate) fn remove(&mut self, channel: ChannelId) {
        if let Some(slot) = self.blocks.get_mut(channel.0.index as usize) {
            slot.take_if(|block| block.generation == channel.0.generation);
        }
    }

    /// Bytes of an element of a channel.
    pub(crate) fn element(&self, channel: ChannelId) -> Answer<usize> {
        let block = self.blocks.get(channel.0.index as usize).and_then(Option::as_ref);
        let block = block.filter(|block| block.generation == channel.0.generation);
        block.map(|block| block.element).ok_or(Status::StaleHandle)
    }

    /// Copies an element in: INVALID_ARGUMENT if it has another size. FULL if every slot is taken,
    /// which the kernel does not let happen.
    pub(crate) fn put(&mut self, channel: ChannelId, data: &[u8]) -> Answer<Message> {
        let block = self.block(channel.0.index).ok_or(Status::StaleHandle)?;
        if block.generation != channel.0.generation {
            return Err(Status::StaleHandle);
        }
        if data.len() != block.element {
            return Err(Status::InvalidArgument);
        }
        let slot = block.free.pop().ok_or(Status::Full)?;
        let at = slot as usize * block.element;
        if let Some(to) = block.bytes.get_mut(at..at + data.len()) {
            to.copy_from_slice(data);
        }
        Ok(Message { channel: channel.0.index, slot })
    }

    /// Copies an element out and frees its slot.
    pub(crate) fn take(&mut self, message: Message, to: &mut [MaybeUninit<u8>]) {
        if let Some(block) = self.block(message.channel) {
            let at = message.slot as usize * block.element;
            let from = block.bytes.get(at..at + to.len()).unwrap_or_default();
            if from.len() == to.len() {
                to.write_copy_of_slice(from);
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
        self.blocks.get_mut(channel as usize)?.as_mut()
    }
}
