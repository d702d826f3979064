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

/// A message: its bytes, or where they are. Two words, which calls pass in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// The slot of its channel.
    channel: u32,
    /// The bytes of an element of up to `WORD` bytes, followed by zeros; else its slot among the
    /// channel's bytes.
    word: u64,
}

impl Message {
    /// Of a channel whose bytes are gone.
    pub(crate) const NOWHERE: Message = Message { channel: u32::MAX, word: 0 };

    /// The message of an element of up to `WORD` bytes.
    #[inline(always)]
    fn packed(channel: u32, data: &[u8]) -> Message {
        let word = match data.as_array::<WORD>() {
            Some(word) => u64::from_le_bytes(*word),
            None => short_word(data),
        };
        Message { channel, word }
    }

    /// Copies the element of a message without a slot, or as much of it as is wanted.
    #[inline(always)]
    pub(crate) fn unpack(self, to: &mut [MaybeUninit<u8>]) {
        match to.len() {
            WORD => _ = to.write_copy_of_slice(&self.word.to_le_bytes()),
            _ => copy_short_word(self.word, to),
        }
    }
}

/// The bytes of an element of up to 7 bytes.
#[inline]
fn short_word(data: &[u8]) -> u64 {
    match *data {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => data.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Copies the first bytes of a word out. The sizes of numbers are copied without a call of
/// `memcpy`, which takes longer than the copy.
#[inline]
fn copy_short_word(word: u64, to: &mut [MaybeUninit<u8>]) {
    let word = word.to_le_bytes();
    let [a, b, c, d, ..] = word;
    match to.len() {
        0 => {}
        1 => _ = to.write_copy_of_slice(&[a]),
        2 => _ = to.write_copy_of_slice(&[a, b]),
        4 => _ = to.write_copy_of_slice(&[a, b, c, d]),
        _ => to.iter_mut().zip(word).for_each(|(to, from)| _ = to.write(from)),
    }
}

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
        match data.len() {
            ..=WORD => Ok(Message::packed(channel, data)),
            _ => self.put_slot(channel, data),
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
        Ok(Message { channel, word: u64::from(slot) })
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
        match self.element {
            ..=WORD => message.unpack(to),
            _ => self.take_slot(message.word as u32, to),
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
        if self.element > WORD {
            self.free.push(message.word as u32);
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
