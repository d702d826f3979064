//! The slab of registered sockets. A token is the index of a slot and the generation of its use.
//!
//! Slots are returned to the allocator only with the reactor. They are in chunks, which are in
//! directories, each twice as large as the one before, so that a slot is found without a lock.

use std::sync::OnceLock;

use super::readiness::{Description, Readiness};
use crate::prim::{Mutex, lock};

/// The number of slots in a chunk.
const CHUNK: usize = 64;
/// The number of directories: enough for two billion slots.
const DIRECTORIES: usize = 26;

/// A slot and its generation: the operating system returns it with each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) index: u32,
    generation: u32,
}

/// On 32-bit targets there are fewer of each.
const GENERATION_SHIFT: u32 = usize::BITS / 2;

impl Token {
    #[cfg(test)]
    pub(super) const FIRST: Token = Token { index: 0, generation: 0 };

    pub(super) fn pack(self) -> usize {
        let generation = (self.generation as usize) << GENERATION_SHIFT;
        generation | self.index as usize
    }

    pub(super) fn unpack(word: usize) -> Token {
        let index = word & ((1 << GENERATION_SHIFT) - 1);
        Token { index: index as u32, generation: (word >> GENERATION_SHIFT) as u32 }
    }

    /// Compares the generation, as far as a token has bits for it.
    pub(super) fn has_generation(self, generation: u32) -> bool {
        let mask = u32::MAX >> (32 - GENERATION_SHIFT);
        generation & mask == self.generation
    }
}

type Chunk = OnceLock<Box<[Readiness]>>;

#[derive(Debug, Default)]
pub(super) struct Slots {
    directories: [OnceLock<Box<[Chunk]>>; DIRECTORIES],
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    slots: Vec<u32>,
    /// The number of slots that were ever handed out.
    used: u32,
    closed: bool,
    /// For each descriptor the slot of the last socket that was registered with that number.
    by_descriptor: Vec<u32>,
}

impl Free {
    /// Makes the socket in this slot the one with this descriptor number.
    fn claim(&mut self, fd: i32, index: u32) {
        let Ok(number) = usize::try_from(fd) else { return };
        if self.by_descriptor.len() <= number {
            self.by_descriptor.resize(number + 1, u32::MAX);
        }
        self.by_descriptor[number] = index;
    }
}

impl Slots {
    /// Takes a slot, unless none is left or the reactor is closed. All of it is done under the
    /// lock: `close` either precedes, or its caller finds the slot. `fd` is the number of a
    /// descriptor that the runtime has created or taken over, so that no other slot has it. A
    /// foreign descriptor is [claimed](Slots::claim).
    pub(super) fn take(&self, description: Option<Description>, fd: Option<i32>) -> Option<Token> {
        let mut free = lock(&self.free);
        if free.closed {
            return None;
        }
        let index = match free.slots.pop() {
            Some(index) => index,
            None => {
                let index = free.used;
                let fits = (index as usize) < (1 << GENERATION_SHIFT.min(31)) - 1;
                free.used = index.checked_add(1).filter(|_| fits)?;
                index
            }
        };
        let (directory, chunk, at) = split(index);
        let chunks = self
            .directories
            .get(directory)?
            .get_or_init(|| (0..1 << directory).map(|_| Chunk::new()).collect());
        let slots =
            chunks.get(chunk)?.get_or_init(|| (0..CHUNK).map(|_| Readiness::default()).collect());
        let generation = slots.get(at)?.begin(description);
        if let Some(fd) = fd {
            free.claim(fd, index);
        }
        Some(Token {
            index,
            generation: Token::unpack((generation as usize) << GENERATION_SHIFT).generation,
        })
    }

    /// Calls `f`, which registers the descriptor of the socket in this slot. If `f` fails, the
    /// number remains with the previous socket, which may have registered the same descriptor. No
    /// registration ends by its number meanwhile.
    pub(super) fn claim(
        &self,
        fd: i32,
        index: u32,
        f: impl FnOnce() -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut free = lock(&self.free);
        f()?;
        free.claim(fd, index);
        Ok(())
    }

    /// Calls `f` if no other socket was registered with this number since the one in this slot.
    /// None can be registered during the call.
    pub(super) fn if_last<R>(&self, fd: i32, index: u32, f: impl FnOnce() -> R) -> Option<R> {
        let free = lock(&self.free);
        let last = usize::try_from(fd).ok().and_then(|number| free.by_descriptor.get(number));
        (last == Some(&index)).then(f)
    }

    /// Hands out no more slots.
    pub(super) fn close(&self) {
        lock(&self.free).closed = true;
    }

    /// Frees a slot without waiters.
    pub(super) fn release(&self, index: u32) {
        lock(&self.free).slots.push(index);
    }

    /// Returns the readiness in a slot, for its current socket.
    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&Readiness> {
        let (directory, chunk, at) = split(index);
        self.directories.get(directory)?.get()?.get(chunk)?.get()?.get(at)
    }

    /// Returns all slots that were ever handed out, and some more.
    pub(super) fn each(&self) -> impl Iterator<Item = &Readiness> {
        let directories = self.directories.iter().filter_map(OnceLock::get);
        let chunks = directories.flatten().filter_map(OnceLock::get);
        chunks.flatten()
    }
}

/// Returns the directory of a slot, the chunk in it, and the position in the chunk.
fn split(index: u32) -> (usize, usize, usize) {
    let from_first = index as usize / CHUNK + 1;
    let directory = from_first.ilog2() as usize;
    (directory, from_first - (1 << directory), index as usize % CHUNK)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::reactor::readiness::READABLE;
    use asx_runtime::net::Direction;

    #[test]
    fn every_index_maps_to_one_position() {
        let mut expected = (0, 0, 0);
        for index in 0..10_000 {
            assert_eq!(split(index), expected);
            expected.2 += 1;
            if expected.2 == CHUNK {
                expected = (expected.0, expected.1 + 1, 0);
            }
            if expected.1 == 1 << expected.0 {
                expected = (expected.0 + 1, 0, 0);
            }
        }
        assert!(split(i32::MAX as u32).0 < DIRECTORIES);
    }

    #[test]
    fn a_reused_slot_ignores_events_of_its_previous_socket() {
        let slots = Slots::default();
        let tokens: Vec<Token> = (0..1000).map(|fd| slots.take(None, Some(fd)).unwrap()).collect();
        for (index, token) in tokens.iter().enumerate() {
            assert_eq!(token.index as usize, index);
            assert_eq!(Token::unpack(token.pack()), *token);
        }
        let old = tokens[500];
        let readiness = slots.get(old.index).unwrap();
        assert!(readiness.end().is_empty());
        slots.release(old.index);
        let new = slots.take(None, Some(7)).unwrap();
        assert_eq!(new.index, 500);
        assert_ne!(new, old);
        readiness.clear(Direction::Read, readiness.seen(Direction::Read).unwrap().ready);
        readiness.report(old, READABLE, &mut Vec::new());
        assert_eq!(readiness.seen(Direction::Read), None, "an event of the previous socket");
        readiness.report(new, READABLE, &mut Vec::new());
        assert!(readiness.seen(Direction::Read).is_some());
    }

    #[test]
    fn no_slot_is_handed_out_after_close() {
        let slots = Slots::default();
        let token = slots.take(None, Some(7)).unwrap();
        slots.close();
        slots.release(token.index);
        assert_eq!(slots.take(None, Some(7)), None);
    }

    #[test]
    fn a_descriptor_number_belongs_to_the_last_registered_socket() {
        let slots = Slots::default();
        let first = slots.take(None, Some(7)).unwrap();
        let other = slots.take(None, Some(8)).unwrap();
        assert_eq!(slots.if_last(7, first.index, || 1), Some(1));
        assert_eq!(slots.if_last(8, first.index, || 1), None);
        assert_eq!(slots.if_last(9, first.index, || 1), None);
        // Its descriptor was closed, and another socket has that number.
        let second = slots.take(None, Some(7)).unwrap();
        assert_eq!(slots.if_last(7, first.index, || 1), None);
        assert_eq!(slots.if_last(7, second.index, || 1), Some(1));
        assert_eq!(slots.if_last(8, other.index, || 1), Some(1));
    }

    #[test]
    fn a_failed_claim_leaves_the_number_with_its_socket() {
        let slots = Slots::default();
        let first = slots.take(None, None).unwrap();
        slots.claim(7, first.index, || Ok(())).unwrap();
        let second = slots.take(None, None).unwrap();
        let refused = || Err(std::io::ErrorKind::AlreadyExists.into());
        assert!(slots.claim(7, second.index, refused).is_err());
        assert_eq!(slots.if_last(7, first.index, || 1), Some(1));
        slots.claim(7, second.index, || Ok(())).unwrap();
        assert_eq!(slots.if_last(7, first.index, || 1), None);
    }

    #[test]
    fn a_slot_takes_little_memory() {
        // Each open socket has one.
        assert!(size_of::<Readiness>() <= 56, "{}", size_of::<Readiness>());
    }
}
