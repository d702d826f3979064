//! Where sockets are known by number: a token is the number of a place, and of its tenant.
//!
//! Places are never given back to the allocator before the reactor goes: they are in pages, each
//! twice as large as the one before, so that one is found without a lock.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::readiness::{About, Readiness};
use crate::prim::{Mutex, lock};

/// Places of the first page.
const FIRST: usize = 64;
/// Enough for two billion places.
const PAGES: usize = 26;

/// A place, and its tenant: what the operating system gives back with each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) place: u32,
    tenant: u32,
}

/// On 32 bits there are fewer of each.
const TENANT_SHIFT: u32 = usize::BITS / 2;

impl Token {
    pub(super) fn pack(self) -> usize {
        let tenant = (self.tenant as usize) << TENANT_SHIFT;
        tenant | self.place as usize
    }

    pub(super) fn unpack(word: usize) -> Token {
        let place = word & ((1 << TENANT_SHIFT) - 1);
        Token { place: place as u32, tenant: (word >> TENANT_SHIFT) as u32 }
    }
}

#[derive(Debug, Default)]
struct Slot {
    /// Who has the place now, or had it last.
    tenant: AtomicU32,
    readiness: Readiness,
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    pages: [OnceLock<Box<[Slot]>>; PAGES],
    free: Mutex<Free>,
}

#[derive(Debug, Default)]
struct Free {
    places: Vec<u32>,
    /// Places that were ever handed out.
    used: u32,
}

impl Slots {
    /// A place for one more, if there is any.
    pub(super) fn take(&self, about: About) -> Option<Token> {
        let place = {
            let mut free = lock(&self.free);
            match free.places.pop() {
                Some(place) => place,
                None => {
                    let place = free.used;
                    let fits = (place as usize) < (1 << TENANT_SHIFT.min(31)) - 1;
                    free.used = place.checked_add(1).filter(|_| fits)?;
                    place
                }
            }
        };
        let (page, at) = split(place);
        let slots = self
            .pages
            .get(page)?
            .get_or_init(|| (0..FIRST << page).map(|_| Slot::default()).collect());
        let slot = slots.get(at)?;
        slot.readiness.reset(about);
        // Tenants are numbered by as many bits as a token has for them.
        let mask = u32::MAX >> (32 - TENANT_SHIFT);
        Some(Token { place, tenant: slot.tenant.load(Acquire) & mask })
    }

    /// Gives a place back. Events for its tenant are stale from now on.
    pub(super) fn release(&self, token: Token) {
        if let Some(slot) = self.slot(token.place) {
            slot.tenant.fetch_add(1, Release);
            lock(&self.free).places.push(token.place);
        }
    }

    /// The readiness of who has this token, unless it has left.
    pub(super) fn get(&self, token: Token) -> Option<&Readiness> {
        let slot = self.slot(token.place)?;
        let mask = u32::MAX >> (32 - TENANT_SHIFT);
        (slot.tenant.load(Acquire) & mask == token.tenant).then_some(&slot.readiness)
    }

    fn slot(&self, place: u32) -> Option<&Slot> {
        let (page, at) = split(place);
        self.pages.get(page)?.get()?.get(at)
    }

    /// All places that were ever handed out.
    pub(super) fn each(&self) -> impl Iterator<Item = &Readiness> {
        let made = self.pages.iter().map_while(|page| page.get());
        made.flatten().map(|slot| &slot.readiness)
    }
}

/// The page of a place, and where it is there.
fn split(place: u32) -> (usize, usize) {
    let from_first = place as usize + FIRST;
    let page = (from_first / FIRST).ilog2() as usize;
    (page, from_first - (FIRST << page))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use asx_runtime::net::Direction;

    #[test]
    fn every_place_is_in_one_page() {
        let mut expected = (0, 0);
        for place in 0..10_000 {
            assert_eq!(split(place), expected);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(split(i32::MAX as u32).0 < PAGES);
    }

    #[test]
    fn a_place_is_used_again_and_its_last_tenant_is_unknown() {
        let slots = Slots::default();
        let tokens: Vec<Token> = (0..1000).map(|_| slots.take(About::Unknown).unwrap()).collect();
        for (place, token) in tokens.iter().enumerate() {
            assert_eq!(token.place as usize, place);
            assert_eq!(Token::unpack(token.pack()), *token);
        }
        let old = tokens[500];
        let readiness = slots.get(old).unwrap();
        readiness.clear(Direction::Read, readiness.seen(Direction::Read).unwrap().ready);
        slots.release(old);
        assert!(slots.get(old).is_none());
        let new = slots.take(About::Unknown).unwrap();
        assert_eq!(new.place, 500);
        assert_ne!(new, old);
        assert!(slots.get(old).is_none());
        assert!(slots.get(new).unwrap().seen(Direction::Read).is_some(), "worth a try at first");
    }
}
