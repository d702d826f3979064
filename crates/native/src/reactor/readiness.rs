//! What one socket is ready for, and who waits for it.
//!
//! A word has a bit for each thing the operating system has told, and a count of how often it did.
//! Whoever finds that a socket is not ready after all clears the bit, unless the count says that
//! something was told since.
//!
//! # Why no wakeup is lost
//! Who tells sets the bits, and then takes the waiters out under their lock. Who waits registers
//! under the lock, and then looks at the bits once more before it releases that. If it has the lock
//! first, it is among those who are taken out. If not, the lock orders its look after the bits.

use std::net::SocketAddr;
use std::task::Waker;

use asx_runtime::net::{Direction, ReadyEvent, SocketWait};
use asx_runtime::operation::{guard, is_task_waker};

use crate::prim::atomic::AtomicU32;
use crate::prim::atomic::Ordering::{AcqRel, Acquire};
use crate::prim::{Mutex, lock};

/// Bytes have come, or a connection.
pub(super) const READABLE: u32 = 1;
/// There is room for bytes to be sent.
pub(super) const WRITABLE: u32 = 2;
/// No more bytes come. A read tells, and need not wait for it.
pub(super) const READ_CLOSED: u32 = 4;
/// No more bytes go out.
pub(super) const WRITE_CLOSED: u32 = 8;
/// The reactor is gone.
pub(super) const GONE: u32 = 16;

const BITS: u32 = 0xff;
/// One more time that the system told something.
const TOLD: u32 = BITS + 1;

/// The bits that are worth a try in a direction.
fn wanted(direction: Direction) -> u32 {
    match direction {
        Direction::Read => READABLE | READ_CLOSED | GONE,
        Direction::Write => WRITABLE | WRITE_CLOSED | GONE,
    }
}

/// Nothing that was closed opens again: only this is forgotten when an operation would block.
fn forgotten(direction: Direction) -> u32 {
    match direction {
        Direction::Read => READABLE,
        Direction::Write => WRITABLE,
    }
}

#[derive(Debug, Default)]
pub(super) struct Readiness {
    word: AtomicU32,
    waiters: Mutex<Waiters>,
}

/// One who waits, and its number.
#[derive(Debug)]
struct Waiter {
    number: u32,
    waker: Waker,
}

/// What a socket is for, as dumps tell it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum About {
    /// It has no address that tells anything.
    #[default]
    Unknown,
    /// It takes connections there.
    Listener(SocketAddr),
    /// It is connected with this peer.
    Connection(SocketAddr),
    /// It is bound there, for datagrams.
    Datagrams(SocketAddr),
}

impl About {
    /// What one who waits in this direction waits for.
    fn wait(self, direction: Direction) -> String {
        match (self, direction) {
            (About::Unknown, Direction::Read) => String::from("a socket to be readable"),
            (About::Unknown, Direction::Write) => String::from("a socket to be writable"),
            (About::Listener(at), _) => format!("a connection to {at}"),
            (About::Connection(peer), Direction::Read) => format!("bytes from {peer}"),
            (About::Connection(peer), Direction::Write) => format!("room for bytes to {peer}"),
            (About::Datagrams(at), Direction::Read) => format!("a datagram to {at}"),
            (About::Datagrams(at), Direction::Write) => format!("room for a datagram from {at}"),
        }
    }
}

/// Nearly always there is one for each direction, at most.
#[derive(Debug, Default)]
struct Waiters {
    about: About,
    first: [Option<Waiter>; 2],
    more: Vec<(Direction, Waiter)>,
    numbers: u32,
}

impl Readiness {
    /// A socket that was just made: whatever is tried first finds out.
    pub(super) fn reset(&self, about: About) {
        lock(&self.waiters).about = about;
        let bits = READABLE | WRITABLE;
        let mut word = self.word.load(Acquire);
        loop {
            let new = (word & !BITS).wrapping_add(TOLD) | bits;
            match self.word.compare_exchange(word, new, AcqRel, Acquire) {
                Ok(_) => return,
                Err(other) => word = other,
            }
        }
    }

    /// What it is ready for in a direction, if it is.
    pub(super) fn seen(&self, direction: Direction) -> Option<Seen> {
        let word = self.word.load(Acquire);
        let is_gone = word & GONE != 0;
        (word & wanted(direction) != 0).then_some(Seen { ready: ReadyEvent(word & !BITS), is_gone })
    }

    /// Registers a waker, in place of the last one of this number, unless the socket is ready now.
    /// The old waker comes out, to be dropped where no lock is held.
    pub(super) fn wait(&self, direction: Direction, number: &mut u32, waker: &Waker) -> Waited {
        let waker = waker.clone();
        let mut waiters = lock(&self.waiters);
        let old = waiters.add(direction, number, waker);
        let seen = self.seen(direction);
        drop(waiters);
        Waited { seen, _old: old }
    }

    /// One who waited does not any more.
    pub(super) fn leave(&self, direction: Direction, number: &mut u32) {
        if *number == 0 {
            return;
        }
        let left = lock(&self.waiters).remove(direction, *number);
        *number = 0;
        // Outside of the lock; its destructor may be the user's, and may panic.
        guard::drop_waker(left.map(|waiter| waiter.waker));
    }

    /// The tasks that wait, and for what. Wakers of others are left out: to clone one may be
    /// somebody's code, and is not done under a lock.
    pub(super) fn waits(&self, all: &mut Vec<SocketWait>) {
        let waiters = lock(&self.waiters);
        for direction in [Direction::Read, Direction::Write] {
            let first = waiters.first[direction as usize].as_ref();
            let more = waiters.more.iter().filter(|(of, _)| *of == direction);
            let those = first.into_iter().chain(more.map(|(_, waiter)| waiter));
            for waiter in those.filter(|waiter| is_task_waker(&waiter.waker)) {
                let waker = waiter.waker.clone();
                all.push(SocketWait { waker, what: waiters.about.wait(direction) });
            }
        }
    }

    /// Forgets who waits: their wakers, to be dropped where no lock is held.
    pub(super) fn empty(&self) -> Vec<Waker> {
        let mut left = Vec::new();
        let mut waiters = lock(&self.waiters);
        waiters.take(Direction::Read, &mut left);
        waiters.take(Direction::Write, &mut left);
        left
    }

    /// The system has told something: those who waited for it are to be woken.
    pub(super) fn tell(&self, bits: u32, woken: &mut Vec<Waker>) {
        let mut word = self.word.load(Acquire);
        loop {
            let new = word.wrapping_add(TOLD) | bits;
            match self.word.compare_exchange(word, new, AcqRel, Acquire) {
                Ok(_) => break,
                Err(other) => word = other,
            }
        }
        let mut waiters = lock(&self.waiters);
        for direction in [Direction::Read, Direction::Write] {
            if bits & wanted(direction) != 0 {
                waiters.take(direction, woken);
            }
        }
    }

    /// It was not ready after all, unless more was told since it was seen.
    pub(super) fn clear(&self, direction: Direction, seen: ReadyEvent) {
        let mut word = self.word.load(Acquire);
        while word & !BITS == seen.0 && word & forgotten(direction) != 0 {
            let new = word & !forgotten(direction);
            match self.word.compare_exchange(word, new, AcqRel, Acquire) {
                Ok(_) => return,
                Err(other) => word = other,
            }
        }
    }
}

/// A socket is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) ready: ReadyEvent,
    /// It will never be anything else: the reactor is gone.
    pub(super) is_gone: bool,
}

/// A waker was registered.
#[must_use = "the old waker is dropped with it, where no lock is held"]
pub(super) struct Waited {
    /// The socket is ready after all.
    pub(super) seen: Option<Seen>,
    _old: Option<Waker>,
}

impl Waiters {
    fn add(&mut self, direction: Direction, number: &mut u32, waker: Waker) -> Option<Waker> {
        if *number != 0
            && let Some(waiter) = self.find(direction, *number)
        {
            return Some(std::mem::replace(&mut waiter.waker, waker));
        }
        // Numbers come again after billions of waits: two of one number need not wait at a time.
        self.numbers = self.numbers.wrapping_add(1).max(1);
        *number = self.numbers;
        let waiter = Waiter { number: *number, waker };
        match &mut self.first[direction as usize] {
            first @ None => *first = Some(waiter),
            Some(_) => self.more.push((direction, waiter)),
        }
        None
    }

    fn find(&mut self, direction: Direction, number: u32) -> Option<&mut Waiter> {
        let first = self.first[direction as usize].as_mut();
        let more = self.more.iter_mut().filter(|(of, _)| *of == direction);
        let mut all = first.into_iter().chain(more.map(|(_, waiter)| waiter));
        all.find(|waiter| waiter.number == number)
    }

    fn remove(&mut self, direction: Direction, number: u32) -> Option<Waiter> {
        let first = &mut self.first[direction as usize];
        if first.as_ref().is_some_and(|first| first.number == number) {
            return first.take();
        }
        let is_it =
            |(of, waiter): &(Direction, Waiter)| *of == direction && waiter.number == number;
        let at = self.more.iter().position(is_it)?;
        Some(self.more.swap_remove(at).1)
    }

    fn take(&mut self, direction: Direction, woken: &mut Vec<Waker>) {
        woken.extend(self.first[direction as usize].take().map(|waiter| waiter.waker));
        if !self.more.is_empty() {
            let is_of = |(of, _): &mut (Direction, Waiter)| *of == direction;
            woken.extend(self.more.extract_if(.., is_of).map(|(_, waiter)| waiter.waker));
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::prim::{Arc, race};
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Guards the look under the lock in `wait`, and that `tell` sets the bits first: one of the
    /// two sees the other.
    #[test]
    fn who_waits_sees_what_is_told_or_is_woken() {
        for swap in [false, true] {
            loom::model(move || {
                let readiness = Arc::new(Readiness::default());
                let count = std::sync::Arc::new(Count::default());
                let waiting = {
                    let readiness = readiness.clone();
                    let waker = Waker::from(count.clone());
                    move || {
                        let mut number = 0;
                        readiness.wait(Direction::Read, &mut number, &waker).seen.is_some()
                    }
                };
                let telling = move || {
                    let mut woken = Vec::new();
                    readiness.tell(READABLE, &mut woken);
                    woken.into_iter().for_each(Waker::wake);
                };
                let (seen, ()) = race(swap, waiting, telling);
                assert!(seen || count.0.load(Relaxed) == 1);
            });
        }
    }

    /// Guards the count in `clear`: what is told after a socket was seen ready is not forgotten.
    #[test]
    fn what_is_told_meanwhile_is_not_cleared() {
        for swap in [false, true] {
            loom::model(move || {
                let readiness = Arc::new(Readiness::default());
                readiness.tell(READABLE, &mut Vec::new());
                let seen = readiness.seen(Direction::Read).unwrap();
                let clearing = {
                    let readiness = readiness.clone();
                    move || readiness.clear(Direction::Read, seen.ready)
                };
                let telling = {
                    let readiness = readiness.clone();
                    move || readiness.tell(READABLE, &mut Vec::new())
                };
                race(swap, clearing, telling);
                assert!(readiness.seen(Direction::Read).is_some());
            });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn number() -> u32 {
        0
    }

    #[test]
    fn each_direction_is_told_for_itself() {
        let readiness = Readiness::default();
        let mut woken = Vec::new();
        let mut numbers = [0; 4];
        let [a, b, c, d] = &mut numbers;
        for (direction, number) in [
            (Direction::Read, a),
            (Direction::Read, b),
            (Direction::Write, c),
            (Direction::Read, d),
        ] {
            assert_eq!(readiness.wait(direction, number, Waker::noop()).seen, None);
        }
        readiness.tell(READABLE, &mut woken);
        assert_eq!(woken.len(), 3);
        readiness.tell(WRITABLE, &mut woken);
        assert_eq!(woken.len(), 4);
        readiness.tell(READ_CLOSED | WRITE_CLOSED, &mut woken);
        assert_eq!(woken.len(), 4, "nobody waits");
    }

    #[test]
    fn one_who_waits_again_is_there_once_and_one_who_left_is_not() {
        let readiness = Readiness::default();
        let mut numbers = [number(), number()];
        for _ in 0..3 {
            for number in &mut numbers {
                let _ = readiness.wait(Direction::Read, number, Waker::noop());
            }
        }
        readiness.leave(Direction::Read, &mut numbers[0]);
        assert_eq!(numbers[0], 0);
        let mut woken = Vec::new();
        readiness.tell(READABLE, &mut woken);
        assert_eq!(woken.len(), 1);
        // It was taken out, and is registered anew under another number.
        let before = numbers[1];
        readiness.clear(Direction::Read, readiness.seen(Direction::Read).unwrap().ready);
        assert_eq!(readiness.wait(Direction::Read, &mut numbers[1], Waker::noop()).seen, None);
        assert_ne!(numbers[1], before);
    }

    #[test]
    fn only_what_was_seen_is_cleared_and_never_a_close() {
        let readiness = Readiness::default();
        readiness.reset(About::Unknown);
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.tell(READABLE, &mut Vec::new());
        readiness.clear(Direction::Read, seen.ready);
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.clear(Direction::Read, seen.ready);
        assert_eq!(readiness.seen(Direction::Read), None);
        assert!(readiness.seen(Direction::Write).is_some());
        readiness.tell(READ_CLOSED, &mut Vec::new());
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.clear(Direction::Read, seen.ready);
        assert!(readiness.seen(Direction::Read).is_some_and(|seen| !seen.is_gone));
        readiness.tell(GONE, &mut Vec::new());
        assert!(readiness.seen(Direction::Write).is_some_and(|seen| seen.is_gone));
    }
}
