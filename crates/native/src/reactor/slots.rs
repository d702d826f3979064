//! Where sockets are known by number: a token is the number of a place, and of its tenant.
//!
//! Places are never given back to the allocator before the reactor goes: they are in chunks, which
//! are in directories, each twice as large as the one before, so that a place is found without a
//! lock.

use std::sync::OnceLock;

use super::readiness::{About, Readiness};
use crate::prim::{Mutex, lock};

/// Places of a chunk.
const CHUNK: usize = 64;
/// Directories: enough for two billion places.
const DIRECTORIES: usize = 26;

/// A place, and its tenant: what the operating system gives back with each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) place: u32,
    tenant: u32,
}

/// On 32 bits there are fewer of each.
const TENANT_SHIFT: u32 = usize::BITS / 2;

impl Token {
    #[cfg(test)]
    pub(super) const FIRST: Token = Token { place: 0, tenant: 0 };

    pub(super) fn pack(self) -> usize {
        let tenant = (self.tenant as usize) << TENANT_SHIFT;
        tenant | self.place as usize
    }

    pub(super) fn unpack(word: usize) -> Token {
        let place = word & ((1 << TENANT_SHIFT) - 1);
        Token { place: place as u32, tenant: (word >> TENANT_SHIFT) as u32 }
    }

    /// The number of the tenant, as far as a token has bits for it.
    pub(super) fn is_of(self, tenant: u32) -> bool {
        let mask = u32::MAX >> (32 - TENANT_SHIFT);
        tenant & mask == self.tenant
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
    places: Vec<u32>,
    /// Places that were ever handed out.
    used: u32,
    closed: bool,
    /// For each descriptor the place of the last socket that was registered with that number.
    by_descriptor: Vec<u32>,
}

impl Free {
    /// From now on a number is that of the socket at a place.
    fn claim(&mut self, fd: i32, place: u32) {
        let Ok(number) = usize::try_from(fd) else { return };
        if self.by_descriptor.len() <= number {
            self.by_descriptor.resize(number + 1, u32::MAX);
        }
        self.by_descriptor[number] = place;
    }
}

impl Slots {
    /// A place for one more, if there is any, and they are not closed. All under the lock: whoever
    /// closes them finds this place, or it is not handed out. `fd`: the number of a descriptor that
    /// is this runtime's own, made just now or handed over, so that nobody else has registered it;
    /// one that may be somebody's is [claimed](Slots::claim).
    pub(super) fn take(&self, about: Option<About>, fd: Option<i32>) -> Option<Token> {
        let mut free = lock(&self.free);
        if free.closed {
            return None;
        }
        let place = match free.places.pop() {
            Some(place) => place,
            None => {
                let place = free.used;
                let fits = (place as usize) < (1 << TENANT_SHIFT.min(31)) - 1;
                free.used = place.checked_add(1).filter(|_| fits)?;
                place
            }
        };
        let (directory, chunk, at) = split(place);
        let chunks = self
            .directories
            .get(directory)?
            .get_or_init(|| (0..1 << directory).map(|_| Chunk::new()).collect());
        let places =
            chunks.get(chunk)?.get_or_init(|| (0..CHUNK).map(|_| Readiness::default()).collect());
        let tenant = places.get(at)?.begin(about);
        if let Some(fd) = fd {
            free.claim(fd, place);
        }
        Some(Token { place, tenant: Token::unpack((tenant as usize) << TENANT_SHIFT).tenant })
    }

    /// Calls `f`, which registers a descriptor for the one that has the place. If it fails, the
    /// number belongs to whom it did before, who may have registered the same descriptor. Nobody
    /// ends a registration by its number meanwhile.
    pub(super) fn claim(
        &self,
        fd: i32,
        place: u32,
        f: impl FnOnce() -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut free = lock(&self.free);
        f()?;
        free.claim(fd, place);
        Ok(())
    }

    /// Calls `f` if no other socket was registered with this number since the one that has the
    /// place, and none can be meanwhile.
    pub(super) fn if_last<R>(&self, fd: i32, place: u32, f: impl FnOnce() -> R) -> Option<R> {
        let free = lock(&self.free);
        let last = usize::try_from(fd).ok().and_then(|number| free.by_descriptor.get(number));
        (last == Some(&place)).then(f)
    }

    /// Hands out no more places.
    pub(super) fn close(&self) {
        lock(&self.free).closed = true;
    }

    /// Gives a place back that nobody waits at any more.
    pub(super) fn release(&self, place: u32) {
        lock(&self.free).places.push(place);
    }

    /// What is at a place, of whoever has it now.
    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&Readiness> {
        let (directory, chunk, at) = split(place);
        self.directories.get(directory)?.get()?.get(chunk)?.get()?.get(at)
    }

    /// All places that were ever handed out, and some more.
    pub(super) fn each(&self) -> impl Iterator<Item = &Readiness> {
        let directories = self.directories.iter().filter_map(OnceLock::get);
        let chunks = directories.flatten().filter_map(OnceLock::get);
        chunks.flatten()
    }
}

/// The directory of a place, the chunk in that, and where it is there.
fn split(place: u32) -> (usize, usize, usize) {
    let from_first = place as usize / CHUNK + 1;
    let directory = from_first.ilog2() as usize;
    (directory, from_first - (1 << directory), place as usize % CHUNK)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::reactor::readiness::READABLE;
    use asx_runtime::net::Direction;

    #[test]
    fn every_place_is_in_one_chunk() {
        let mut expected = (0, 0, 0);
        for place in 0..10_000 {
            assert_eq!(split(place), expected);
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
    fn a_place_is_used_again_and_its_last_tenant_is_unknown() {
        let slots = Slots::default();
        let tokens: Vec<Token> = (0..1000).map(|fd| slots.take(None, Some(fd)).unwrap()).collect();
        for (place, token) in tokens.iter().enumerate() {
            assert_eq!(token.place as usize, place);
            assert_eq!(Token::unpack(token.pack()), *token);
        }
        let old = tokens[500];
        let readiness = slots.get(old.place).unwrap();
        assert!(readiness.end().is_empty());
        slots.release(old.place);
        let new = slots.take(None, Some(7)).unwrap();
        assert_eq!(new.place, 500);
        assert_ne!(new, old);
        readiness.clear(Direction::Read, readiness.seen(Direction::Read).unwrap().ready);
        readiness.tell(old, READABLE, &mut Vec::new());
        assert_eq!(readiness.seen(Direction::Read), None, "for the tenant that has left");
        readiness.tell(new, READABLE, &mut Vec::new());
        assert!(readiness.seen(Direction::Read).is_some());
    }

    #[test]
    fn no_place_is_handed_out_after_they_are_closed() {
        let slots = Slots::default();
        let token = slots.take(None, Some(7)).unwrap();
        slots.close();
        slots.release(token.place);
        assert_eq!(slots.take(None, Some(7)), None);
    }

    #[test]
    fn a_number_belongs_to_who_was_registered_last() {
        let slots = Slots::default();
        let first = slots.take(None, Some(7)).unwrap();
        let other = slots.take(None, Some(8)).unwrap();
        assert_eq!(slots.if_last(7, first.place, || 1), Some(1));
        assert_eq!(slots.if_last(8, first.place, || 1), None);
        assert_eq!(slots.if_last(9, first.place, || 1), None);
        // Its descriptor was closed, and another one has that number.
        let second = slots.take(None, Some(7)).unwrap();
        assert_eq!(slots.if_last(7, first.place, || 1), None);
        assert_eq!(slots.if_last(7, second.place, || 1), Some(1));
        assert_eq!(slots.if_last(8, other.place, || 1), Some(1));
    }

    #[test]
    fn a_number_that_could_not_be_registered_again_stays_with_who_has_it() {
        let slots = Slots::default();
        let first = slots.take(None, None).unwrap();
        slots.claim(7, first.place, || Ok(())).unwrap();
        let second = slots.take(None, None).unwrap();
        let refused = || Err(std::io::ErrorKind::AlreadyExists.into());
        assert!(slots.claim(7, second.place, refused).is_err());
        assert_eq!(slots.if_last(7, first.place, || 1), Some(1));
        slots.claim(7, second.place, || Ok(())).unwrap();
        assert_eq!(slots.if_last(7, first.place, || 1), None);
    }

    #[test]
    fn a_place_takes_little_memory() {
        // Each socket has one, for as long as it is open.
        assert!(size_of::<Readiness>() <= 56, "{}", size_of::<Readiness>());
    }
}
