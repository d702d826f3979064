//! The noted wait of a task in one word, for dumps: its kind, location and time.
//!
//! ```text
//!   63     62    61   60 .. 32       31 .. 3              2 .. 0
//! [ STALE | BORN | 0 | time of note | location - ORIGIN  | wait ]
//! [ STALE | BORN | 1 | address of the location           | wait ]   (far: no time)
//! ```
//!
//! The compiler puts the `Location`s of a program into the same few megabytes as [`ORIGIN`], except
//! in programs of several libraries. With shorter pointers the second form is always used, as times
//! are not read there.

use std::panic::Location;

use crate::wait::Wait;

/// The word; 0 if no wait is noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitWord(pub(super) u64);

/// The wait is older than the last poll.
const STALE: u64 = 1 << 63;
/// The location is that of the spawn.
const BORN: u64 = 1 << 62;
/// The location is an address.
const FAR: u64 = 1 << 61;
const MARKS: u64 = STALE | BORN | FAR;
const KIND: u64 = 7;

/// The first bit of the time, which ends below the flags.
const TIME_SHIFT: u32 = 32;
const TIME_MASK: u32 = (1 << (61 - TIME_SHIFT)) - 1;

/// An address leaves three low bits for the kind of wait. Shorter pointers that do not leave them
/// have room above.
const ADDRESS_SHIFT: u32 = if align_of::<Location<'static>>() >= 8 { 0 } else { 3 };
/// The maximum distance of a near location from the first one.
const NEAR: u64 = 1 << TIME_SHIFT;

/// A location of the program.
static ORIGIN: u64 = 0;

impl WaitWord {
    /// A wait at this location from now on, in the time of [`Coarse`](crate::core::coarse::Coarse).
    #[inline]
    pub(super) fn waits(on: Wait, at: &'static Location<'static>, now: u32) -> WaitWord {
        WaitWord::place(at, on as u64, now)
    }

    /// A spawn at this location.
    #[inline]
    pub(super) fn born(at: Option<&'static Location<'static>>) -> WaitWord {
        at.map_or(WaitWord(0), |at| WaitWord::place(at, BORN, 0))
    }

    #[inline]
    fn place(at: &'static Location<'static>, mark: u64, now: u32) -> WaitWord {
        let address = std::ptr::from_ref(at).expose_provenance() as u64;
        let near = address.wrapping_sub(first_near());
        if cfg!(target_pointer_width = "64") && near < NEAR {
            return WaitWord(u64::from(now & TIME_MASK) << TIME_SHIFT | near | mark);
        }
        let far = address << ADDRESS_SHIFT;
        // No address is that high.
        WaitWord(if far & MARKS == 0 { far | FAR | mark } else { 0 })
    }

    /// The same wait, marked as older than the last poll.
    #[inline]
    pub(super) fn aged(self) -> WaitWord {
        let is_wait = self.0 != 0 && self.0 & BORN == 0;
        WaitWord(if is_wait { self.0 | STALE } else { self.0 })
    }

    pub(super) fn is_stale(self) -> bool {
        self.0 & STALE != 0
    }

    /// The wait, if one is noted.
    pub(super) fn wait(self) -> Option<(Wait, &'static Location<'static>)> {
        let at = self.at().filter(|_| self.0 & BORN == 0)?;
        Some((Wait::ALL[(self.0 & KIND) as usize], at))
    }

    /// The age of the wait in steps of the clock, if the word has its time.
    #[cfg_attr(target_family = "wasm", allow(dead_code, reason = "nobody reads times there"))]
    pub(super) fn age(self, now: u32) -> Option<u32> {
        let is_timed = self.0 != 0 && self.0 & (FAR | BORN) == 0;
        let noted = (self.0 >> TIME_SHIFT) as u32;
        let age = now.wrapping_sub(noted) & TIME_MASK;
        // An age of half the range means that the clock was read slightly before the note.
        is_timed.then_some(if age > TIME_MASK / 2 { 0 } else { age })
    }

    /// The location of the spawn, if no wait was noted since.
    pub(super) fn spawned_at(self) -> Option<&'static Location<'static>> {
        self.at().filter(|_| self.0 & BORN != 0)
    }

    fn at(self) -> Option<&'static Location<'static>> {
        if self.0 == 0 {
            return None;
        }
        let address = if self.0 & FAR == 0 {
            first_near().wrapping_add(self.0 & (NEAR - 1) & !KIND)
        } else {
            (self.0 & !(MARKS | KIND)) >> ADDRESS_SHIFT
        };
        let at = std::ptr::with_exposed_provenance::<Location<'static>>(address as usize);
        // SAFETY: only `place` makes such words, from references that live for ever; `aged` adds a
        // mark to what it made.
        unsafe { at.as_ref() }
    }
}

/// The address of the first near location. A multiple of eight, as all locations are.
#[inline]
fn first_near() -> u64 {
    ((&raw const ORIGIN).addr() as u64).wrapping_sub(NEAR / 2)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_what_was_put_into_it() {
        let here = Location::caller();
        for on in Wait::ALL {
            for now in [0, 1, 7, TIME_MASK, TIME_MASK + 9] {
                let word = WaitWord::waits(on, here, now);
                assert_eq!((word.wait(), word.spawned_at()), (Some((on, here)), None));
                assert_eq!((word.is_stale(), word.aged().is_stale()), (false, true));
                assert_eq!(word.aged().wait(), word.wait());
                if word.0 & FAR == 0 {
                    assert_eq!((word.age(now), word.age(now.wrapping_add(5))), (Some(0), Some(5)));
                    assert_eq!(word.age(now.wrapping_sub(5)), Some(0), "not in the future");
                }
            }
        }
        let born = WaitWord::born(Some(here));
        assert_eq!((born.wait(), born.spawned_at(), born.age(9)), (None, Some(here), None));
        assert_eq!(born.aged(), born, "nothing is stale that is no wait");
    }

    #[test]
    fn a_far_place_is_told_without_a_time() {
        // On the heap, and kept: nothing is leaked.
        static KEPT: std::sync::OnceLock<Box<Location<'static>>> = std::sync::OnceLock::new();
        let far: &'static Location<'static> = KEPT.get_or_init(|| Box::new(*Location::caller()));
        let word = WaitWord::waits(Wait::Join, far, 1);
        assert_eq!(word.wait().map(|(on, at)| (on, at.line())), Some((Wait::Join, far.line())));
        let address = std::ptr::from_ref(far).expose_provenance() as u64;
        let forced = WaitWord(address << ADDRESS_SHIFT | FAR);
        assert_eq!((forced.age(1), forced.wait()), (None, Some((Wait::ALL[0], far))));
        assert_eq!(forced.aged().wait(), forced.wait());
    }

    #[test]
    fn nothing_is_known_of_an_empty_word() {
        let word = WaitWord::born(None);
        assert_eq!((word.wait(), word.spawned_at(), word.age(1)), (None, None, None));
        assert_eq!(word.aged(), word);
    }
}
