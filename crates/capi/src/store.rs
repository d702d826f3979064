//! The bytes of messages: per channel one block of equal slots, made when the channel is.
//!
//! The kernel's channel carries the element itself if it has at most 8 bytes, else a slot number. A
//! block has one slot more than the channel has places, because an evicting send writes the new
//! message before the old one leaves. Its memory is reserved at once but not touched before it is
//! needed: a giant capacity costs what is used.

use alloc::vec::Vec;
use asx_kernel::ids::ChannelId;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::mem::{MaybeUninit, size_of};

/// Elements up to this size, such as numbers and pointers, are stored in the message itself.
pub(crate) const WORD: usize = 8;

/// A message: its bytes, or where they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// The slot of its channel.
    pub(crate) channel: u32,
    /// Its slot among the channel's bytes, or `NO_SLOT`.
    pub(crate) slot: u32,
    /// The bytes of an element without a slot, followed by zeros.
    pub(crate) word: [u8; WORD],
}

impl Message {
    /// Of a channel whose bytes are gone.
    pub(crate) const NOWHERE: Message = Message { channel: u32::MAX, slot: 0, word: [0; WORD] };

    /// The message of an element that needs no slot.
    #[inline(always)]
    fn packed(channel: u32, data: &[u8]) -> Option<Message> {
        let word = match data.as_array::<WORD>() {
            Some(word) => *word,
            None if data.is_empty() => [0; WORD],
            None if data.len() < WORD => short_word(data),
            None => return None,
        };
        Some(Message { channel, slot: NO_SLOT, word })
    }

    /// Copies the element of a message without a slot, or as much of it as is wanted.
    #[inline(always)]
    fn unpack(&self, to: &mut [MaybeUninit<u8>]) {
        match to.len() {
            0 => {}
            WORD => _ = to.write_copy_of_slice(&self.word),
            _ => copy_short_word(self.word, to),
        }
    }
}

/// The bytes of an element of 1 to 7 bytes. The sizes of numbers are copied without a call of
/// `memcpy`, which takes longer than the copy.
#[inline]
fn short_word(data: &[u8]) -> [u8; WORD] {
    if let Some(four) = data.as_array::<4>() {
        return u64::from(u32::from_le_bytes(*four)).to_le_bytes();
    }
    let mut word = [0; WORD];
    word.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
    word
}

/// Copies the first bytes of a word out.
#[inline]
fn copy_short_word(word: [u8; WORD], to: &mut [MaybeUninit<u8>]) {
    match (word.first_chunk::<4>(), to.len()) {
        (Some(four), 4) => _ = to.write_copy_of_slice(four),
        _ => to.iter_mut().zip(word).for_each(|(to, from)| _ = to.write(from)),
    }
}

/// The slot of those.
const NO_SLOT: u32 = u32::MAX;

/// What the kernel may need for a slot of a channel: a permit or a message, its tables growing by
/// doubling. Measured, with room to spare: see the tests in C.
const PER_SLOT: usize = 640;

/// The blocks, by the slot of their channel.
#[derive(Default)]
pub(crate) struct Stores {
    blocks: Vec<Option<Tenant>>,
    promised: usize,
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
        let mut bytes = Vec::new();
        let mut free = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| Status::ResourceExhausted)?;
        free.try_reserve_exact(slots as usize).map_err(|_| Status::ResourceExhausted)?;
        Ok(Block { element, slots, made: 0, bytes, free })
    }

    /// Bytes that such a block needs, and its channel may come to need in the kernel.
    pub(crate) fn need(capacity: usize, element: usize) -> usize {
        let each = element.saturating_add(size_of::<u32>() + PER_SLOT);
        capacity.saturating_add(1).saturating_mul(each)
    }

    /// Bytes that its channel may come to need in the kernel.
    pub(crate) fn promise(&self) -> usize {
        (self.slots as usize).saturating_mul(PER_SLOT)
    }

    /// Bytes of an element.
    #[inline]
    pub(crate) fn element(&self) -> usize {
        self.element
    }

    /// Copies an element in: INVALID_ARGUMENT if it has another size. FULL if every slot is taken,
    /// which the kernel does not let happen. `channel` is the slot of the block's channel.
    #[inline]
    pub(crate) fn put(&mut self, channel: u32, data: &[u8]) -> Answer<Message> {
        if data.len() != self.element {
            return Err(Status::InvalidArgument);
        }
        match Message::packed(channel, data) {
            Some(message) => Ok(message),
            None => self.put_slot(channel, data),
        }
    }

    /// The same for elements that need a slot.
    #[cfg_attr(feature = "inline", inline(always))]
    #[cfg_attr(not(feature = "inline"), inline(never))]
    fn put_slot(&mut self, channel: u32, data: &[u8]) -> Answer<Message> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.fresh().ok_or(Status::Full)?,
        };
        let at = slot as usize * data.len();
        if let Some(to) = self.bytes.get_mut(at..).and_then(|to| to.get_mut(..data.len())) {
            to.copy_from_slice(data);
        }
        Ok(Message { channel, slot, word: [0; WORD] })
    }

    /// A slot that was never used.
    #[inline(never)]
    fn fresh(&mut self) -> Option<u32> {
        let slot = (self.made < self.slots).then_some(self.made)?;
        self.made += 1;
        // Within what is reserved.
        self.bytes.resize(self.made as usize * self.element, 0);
        Some(slot)
    }

    /// Copies an element out, if it is wanted, and frees its slot.
    #[inline]
    pub(crate) fn take(&mut self, message: Message, to: &mut [MaybeUninit<u8>]) {
        if message.slot != NO_SLOT {
            self.take_slot(message.slot, to);
        } else {
            message.unpack(to);
        }
    }

    #[cfg_attr(feature = "inline", inline(always))]
    #[cfg_attr(not(feature = "inline"), inline(never))]
    fn take_slot(&mut self, slot: u32, to: &mut [MaybeUninit<u8>]) {
        let at = slot as usize * self.element;
        if let Some(from) = self.bytes.get(at..).and_then(|from| from.get(..to.len())) {
            to.write_copy_of_slice(from);
        }
        self.free.push(slot);
    }

    /// Frees a message's slot.
    #[inline]
    pub(crate) fn free(&mut self, message: Message) {
        if message.slot != NO_SLOT {
            self.free.push(message.slot);
        }
    }
}

impl Stores {
    /// Makes room for the block of a channel whose slot is below this.
    pub(crate) fn try_reserve(&mut self, slots: usize) -> Answer {
        let more = slots.saturating_sub(self.blocks.len());
        self.blocks.try_reserve(more).map_err(|_| Status::ResourceExhausted)
    }

    /// Gives a channel its block, in place of that of the slot's last tenant.
    pub(crate) fn insert(&mut self, channel: ChannelId, block: Block) {
        let at = channel.0.index as usize;
        if self.blocks.len() <= at {
            self.blocks.resize_with(at + 1, || None);
        }
        if let Some(slot) = self.blocks.get_mut(at) {
            self.promised = self.promised.saturating_add(block.promise());
            let old = slot.replace(Tenant { generation: channel.0.generation, block });
            self.withdraw(old);
        }
    }

    /// A block is gone, and what was promised with it.
    fn withdraw(&mut self, gone: Option<Tenant>) {
        let promise = gone.map_or(0, |tenant| tenant.block.promise());
        self.promised = self.promised.saturating_sub(promise);
    }

    /// Bytes that all channels may come to need in the kernel.
    pub(crate) fn promised(&self) -> usize {
        self.promised
    }

    /// Frees a channel's block.
    pub(crate) fn remove(&mut self, channel: ChannelId) {
        if let Some(slot) = self.blocks.get_mut(channel.0.index as usize) {
            let old = slot.take_if(|tenant| tenant.generation == channel.0.generation);
            self.withdraw(old);
        }
    }

    /// The block of a channel: STALE_HANDLE if it has none, or no longer.
    #[inline]
    pub(crate) fn block(&mut self, channel: ChannelId) -> Answer<&mut Block> {
        match self.blocks.get_mut(channel.0.index as usize) {
            Some(Some(tenant)) if tenant.generation == channel.0.generation => {
                Ok(&mut tenant.block)
            }
            _ => Err(Status::StaleHandle),
        }
    }

    /// Frees the slot of a message that nobody will receive.
    pub(crate) fn free(&mut self, message: Message) {
        if let Some(Some(tenant)) = self.blocks.get_mut(message.channel as usize) {
            tenant.block.free(message);
        }
    }
}
