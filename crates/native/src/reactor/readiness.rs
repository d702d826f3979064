//! What one socket is ready for, and who waits for it.
//!
//! A word has a bit for each thing the operating system has told, and a count of how often it did.
//! Whoever finds that a socket is not ready after all clears the bit, unless the count says that
//! something was told since. Everything else is under one lock: who waits, and which tenant of the
//! place this is about. So nothing that is told of a socket that is gone reaches the one that has
//! its place: that would be told of an end that never came, and would try for ever.
//!
//! # Why no wakeup is lost
//! Who tells has the lock when it sets the bits and takes the waiters out. Who waits registers
//! under the lock, and then looks at the bits once more before it releases that. If it has the lock
//! first, it is among those who are taken out. If not, the lock orders its look after the bits. The
//! word itself is relaxed: what it tells of is in the operating system, and no memory of ours.

use std::net::{SocketAddr, SocketAddrV4};
use std::task::Waker;

use asx_runtime::net::{Address, Direction, ReadyEvent, SocketWait};
use asx_runtime::operation::{guard, is_task_waker};

use super::slots::Token;
use crate::prim::atomic::AtomicU32;
use crate::prim::atomic::Ordering::Relaxed;
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
/// What was closed may be opened again.
const REOPENABLE: u32 = 32;
/// The system holds urgent data: a read stops at its mark although more bytes may have arrived.
/// Reported with every event while the mark has not been passed.
pub(super) const URGENT: u32 = 64;

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

/// The word after an operation has found that nothing can be done in a direction now. An end that
/// may be over has one more try first: it may have been told with the last bytes, and then the
/// system says nothing of it again.
fn without(word: u32, direction: Direction) -> u32 {
    let open = forgotten(direction);
    let closed = match direction {
        Direction::Read => READ_CLOSED,
        Direction::Write => WRITE_CLOSED,
    };
    match word & REOPENABLE != 0 && word & closed != 0 {
        // As if it was told just now: who clears what was seen before that clears nothing.
        true => (word & !closed | open).wrapping_add(TOLD),
        // A read that would block has passed the mark, or a new event reports it again.
        false if direction == Direction::Read => word & !(open | URGENT),
        false => word & !open,
    }
}

#[derive(Debug, Default)]
pub(super) struct Readiness {
    word: AtomicU32,
    /// Counts those who had the place. It is looked at under the lock.
    tenant: AtomicU32,
    waiters: Mutex<Waiters>,
}

/// What a socket does with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It takes connections there.
    Listener,
    /// It is to be connected with that peer. It is, or it has failed, once it can be written to.
    Connecting,
    /// It is connected with that peer.
    Connection,
    /// It is bound there, for datagrams.
    Datagrams,
}

/// What a place is for: dumps tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// A socket, and the address that its role is about.
    Socket(Role, Address),
    /// Somebody else's descriptor, of this number. It may be opened again after an end, as a named
    /// pipe is by its next writer.
    Descriptor(i32),
}

impl About {
    /// What one who waits in this direction waits for.
    fn wait(&self, direction: Direction) -> String {
        let (role, at) = match (self, direction) {
            (About::Socket(role, at), _) => (role, at),
            (About::Descriptor(fd), Direction::Read) => {
                return format!("descriptor {fd} to be readable");
            }
            (About::Descriptor(fd), Direction::Write) => {
                return format!("descriptor {fd} to be writable");
            }
        };
        match (role, direction) {
            (Role::Listener, _) => format!("a connection to {at}"),
            (Role::Connecting, _) => format!("a connection to {at} to be there"),
            (Role::Connection, Direction::Read) => format!("bytes from {at}"),
            (Role::Connection, Direction::Write) => format!("room for bytes to {at}"),
            (Role::Datagrams, Direction::Read) => format!("a datagram to {at}"),
            (Role::Datagrams, Direction::Write) => format!("room for a datagram from {at}"),
        }
    }
}

/// [`About`], as small as it is for most: every socket has one.
#[derive(Clone, Copy, Debug, Default)]
enum KnownAs {
    /// Nobody has the place, or nothing is known.
    #[default]
    Nothing,
    V4(Role, SocketAddrV4),
    /// A unix socket without a name.
    Unnamed(Role),
    Descriptor(i32),
    /// It is with [`More`].
    Elsewhere,
}

/// Who waits at a socket. Nearly always there is one, at most: a place takes little memory.
#[derive(Debug, Default)]
struct Waiters {
    known_as: KnownAs,
    /// The count of numbers that were given.
    last: u32,
    /// Of the first: its number, and its waker while it waits.
    number: u32,
    waker: Option<Waker>,
    more: Option<Box<More>>,
}

/// What few sockets have.
#[derive(Debug, Default)]
struct More {
    about: Option<About>,
    waiters: Vec<Waiter>,
}

/// The bit of a number that tells its direction.
const WRITES: u32 = 1 << 31;

fn direction_of(number: u32) -> Direction {
    if number & WRITES == 0 { Direction::Read } else { Direction::Write }
}

#[derive(Debug)]
struct Waiter {
    number: u32,
    waker: Waker,
}

impl Readiness {
    /// A socket that was just made has the place: whatever is tried first finds out. The number of
    /// the tenant.
    pub(super) fn begin(&self, about: Option<About>) -> u32 {
        let is_somebodys = matches!(about, Some(About::Descriptor(_)));
        lock(&self.waiters).describe(about);
        let bits = READABLE | WRITABLE | if is_somebodys { REOPENABLE } else { 0 };
        // Nobody else has the place: this is no race.
        let word = self.word.load(Relaxed);
        self.word.store((word & !BITS).wrapping_add(TOLD) | bits, Relaxed);
        self.tenant.load(Relaxed)
    }

    /// The socket is gone: the wakers of those whose wait was forgotten, to be dropped where no
    /// lock is held. Nothing that is told of it from now on counts.
    pub(super) fn end(&self) -> Vec<Waker> {
        let mut left = Vec::new();
        let mut waiters = lock(&self.waiters);
        self.tenant.store(self.tenant.load(Relaxed).wrapping_add(1), Relaxed);
        waiters.take(Direction::Read, &mut left);
        waiters.take(Direction::Write, &mut left);
        waiters.more = None;
        waiters.known_as = KnownAs::Nothing;
        left
    }

    /// What it is ready for in a direction, if it is.
    #[inline]
    pub(super) fn seen(&self, direction: Direction) -> Option<Seen> {
        let word = self.word.load(Relaxed);
        let is_gone = word & GONE != 0;
        (word & wanted(direction) != 0).then_some(Seen { ready: ReadyEvent(word & !BITS), is_gone })
    }

    /// Registers a waker, in place of the last one of this number, unless the socket is ready now:
    /// then it tells.
    pub(super) fn wait(
        &self,
        direction: Direction,
        number: &mut u32,
        waker: &Waker,
    ) -> Option<Seen> {
        let waker = waker.clone();
        let mut waiters = lock(&self.waiters);
        let old = waiters.add(direction, number, waker);
        let seen = self.seen(direction);
        drop(waiters);
        // Outside of the lock; its destructor may be the user's, and may panic.
        guard::drop_waker(old);
        seen
    }

    /// One who waited does not any more.
    pub(super) fn leave(&self, number: &mut u32) {
        if *number == 0 {
            return;
        }
        let left = lock(&self.waiters).remove(*number);
        *number = 0;
        guard::drop_waker(left);
    }

    /// The tasks that wait, and for what. Wakers of others are left out: to clone one may be
    /// somebody's code, and is not done under a lock.
    pub(super) fn waits(&self, all: &mut Vec<SocketWait>) {
        let waiters = lock(&self.waiters);
        let first = waiters.waker.iter().map(|waker| (waiters.number, waker));
        let more = waiters.more.iter().flat_map(|more| &more.waiters);
        let those = first.chain(more.map(|waiter| (waiter.number, &waiter.waker)));
        for (number, waker) in those.filter(|(_, waker)| is_task_waker(waker)) {
            let direction = direction_of(number);
            let what = match (waiters.about(), direction) {
                (Some(about), direction) => about.wait(direction),
                (None, Direction::Read) => String::from("a socket to be readable"),
                (None, Direction::Write) => String::from("a socket to be writable"),
            };
            all.push(SocketWait { waker: waker.clone(), what });
        }
    }

    /// The system has told something of the one that has this token, if it is still here: those who
    /// waited for it are to be woken.
    pub(super) fn tell(&self, token: Token, bits: u32, woken: &mut Vec<Waker>) {
        let mut waiters = lock(&self.waiters);
        if token.is_of(self.tenant.load(Relaxed)) {
            self.set(&mut waiters, bits, woken);
        }
    }

    /// Whoever waits here looks again.
    pub(super) fn tell_all(&self, woken: &mut Vec<Waker>) {
        self.set(&mut lock(&self.waiters), READABLE | WRITABLE, woken);
    }

    /// Nothing can be written any more.
    pub(super) fn tell_write_closed(&self, woken: &mut Vec<Waker>) {
        self.set(&mut lock(&self.waiters), WRITE_CLOSED, woken);
    }

    /// The reactor is gone: whoever waits here, or will.
    pub(super) fn tell_gone(&self, woken: &mut Vec<Waker>) {
        self.set(&mut lock(&self.waiters), GONE, woken);
    }

    fn set(&self, waiters: &mut Waiters, bits: u32, woken: &mut Vec<Waker>) {
        if bits & WRITABLE != 0 {
            waiters.connected();
        }
        let mut word = self.word.load(Relaxed);
        loop {
            let new = word.wrapping_add(TOLD) | bits;
            match self.word.compare_exchange(word, new, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(other) => word = other,
            }
        }
        for direction in [Direction::Read, Direction::Write] {
            if bits & wanted(direction) != 0 {
                waiters.take(direction, woken);
            }
        }
    }

    /// Clears a direction after a short read or write. Does nothing for a read while urgent data is
    /// reported: it may have stopped at the mark, and no event follows for the bytes behind it.
    ///
    /// Urgent data that arrived after `seen` is reported by an event that `clear` observes, or by
    /// one that is still to come.
    pub(super) fn clear_after_short(&self, direction: Direction, seen: ReadyEvent) {
        if direction == Direction::Write || self.word.load(Relaxed) & URGENT == 0 {
            self.clear(direction, seen);
        }
    }

    /// It was not ready after all, unless more was told since it was seen.
    pub(super) fn clear(&self, direction: Direction, seen: ReadyEvent) {
        let mut word = self.word.load(Relaxed);
        while word & !BITS == seen.0 {
            let new = without(word, direction);
            if new == word {
                return;
            }
            match self.word.compare_exchange(word, new, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(other) => word = other,
            }
        }
    }
}

/// The token of the first tenant of the first place.
#[cfg(test)]
const FIRST: Token = Token::FIRST;

/// A socket is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) ready: ReadyEvent,
    /// It will never be anything else: the reactor is gone.
    pub(super) is_gone: bool,
}

impl Waiters {
    fn describe(&mut self, about: Option<About>) {
        self.known_as = match about {
            None => KnownAs::Nothing,
            Some(About::Socket(role, Address::Inet(SocketAddr::V4(at)))) => KnownAs::V4(role, at),
            Some(About::Socket(role, Address::Unix(None))) => KnownAs::Unnamed(role),
            Some(About::Descriptor(fd)) => KnownAs::Descriptor(fd),
            Some(about) => {
                self.more.get_or_insert_default().about = Some(about);
                KnownAs::Elsewhere
            }
        };
    }

    fn about(&self) -> Option<About> {
        match self.known_as {
            KnownAs::Nothing => None,
            KnownAs::V4(role, at) => Some(About::Socket(role, Address::Inet(at.into()))),
            KnownAs::Unnamed(role) => Some(About::Socket(role, Address::Unix(None))),
            KnownAs::Descriptor(fd) => Some(About::Descriptor(fd)),
            KnownAs::Elsewhere => self.more.as_ref()?.about.clone(),
        }
    }

    /// The wait for a connection is over.
    fn connected(&mut self) {
        let role = match (&mut self.known_as, &mut self.more) {
            (KnownAs::V4(role, _), _) => role,
            (KnownAs::Elsewhere, Some(more)) => match &mut more.about {
                Some(About::Socket(role, _)) => role,
                _ => return,
            },
            _ => return,
        };
        if *role == Role::Connecting {
            *role = Role::Connection;
        }
    }

    /// Puts a waker in; the old one of this number comes out.
    fn add(&mut self, direction: Direction, number: &mut u32, waker: Waker) -> Option<Waker> {
        if *number != 0
            && let Some(old) = self.find(*number)
        {
            return Some(std::mem::replace(old, waker));
        }
        // Numbers come again after billions of waits: two of one number need not wait at a time.
        self.last = (self.last.wrapping_add(1) & !WRITES).max(1);
        *number = match direction {
            Direction::Read => self.last,
            Direction::Write => self.last | WRITES,
        };
        if self.waker.is_none() {
            self.number = *number;
            self.waker = Some(waker);
        } else {
            let more = self.more.get_or_insert_default();
            more.waiters.push(Waiter { number: *number, waker });
        }
        None
    }

    fn find(&mut self, number: u32) -> Option<&mut Waker> {
        if self.number == number {
            return self.waker.as_mut();
        }
        let mut more = self.more.iter_mut().flat_map(|more| &mut more.waiters);
        more.find(|waiter| waiter.number == number).map(|waiter| &mut waiter.waker)
    }

    fn remove(&mut self, number: u32) -> Option<Waker> {
        if self.number == number {
            return self.waker.take();
        }
        let more = &mut self.more.as_mut()?.waiters;
        let at = more.iter().position(|waiter| waiter.number == number)?;
        Some(more.swap_remove(at).waker)
    }

    fn take(&mut self, direction: Direction, woken: &mut Vec<Waker>) {
        if direction_of(self.number) == direction {
            woken.extend(self.waker.take());
        }
        if let Some(more) = &mut self.more {
            let is_of = |waiter: &mut Waiter| direction_of(waiter.number) == direction;
            woken.extend(more.waiters.extract_if(.., is_of).map(|waiter| waiter.waker));
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::prim::{Arc, race};
    use std::sync::atomic::AtomicUsize;
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
                        readiness.wait(Direction::Read, &mut number, &waker).is_some()
                    }
                };
                let telling = move || {
                    let mut woken = Vec::new();
                    readiness.tell(FIRST, READABLE, &mut woken);
                    woken.into_iter().for_each(Waker::wake);
                };
                let (seen, ()) = race(swap, waiting, telling);
                assert!(seen || count.0.load(Relaxed) == 1);
            });
        }
    }

    /// Guards that the tenant is compared under the lock: an event that is on its way to a socket
    /// while that is closed, and another one gets its place, is not that one's.
    #[test]
    fn what_is_told_of_a_socket_that_is_gone_does_not_reach_the_next_one() {
        for swap in [false, true] {
            loom::model(move || {
                let readiness = Arc::new(Readiness::default());
                readiness.begin(None);
                let telling = {
                    let readiness = readiness.clone();
                    move || readiness.tell(FIRST, READ_CLOSED, &mut Vec::new())
                };
                let replacing = {
                    let readiness = readiness.clone();
                    move || {
                        assert!(readiness.end().is_empty());
                        readiness.begin(None);
                    }
                };
                race(swap, telling, replacing);
                let seen = readiness.seen(Direction::Read).unwrap();
                readiness.clear(Direction::Read, seen.ready);
                assert_eq!(readiness.seen(Direction::Read), None);
            });
        }
    }

    /// Guards the count in `clear`: what is told after a socket was seen ready is not forgotten.
    #[test]
    fn what_is_told_meanwhile_is_not_cleared() {
        for swap in [false, true] {
            loom::model(move || {
                let readiness = Arc::new(Readiness::default());
                readiness.tell(FIRST, READABLE, &mut Vec::new());
                let seen = readiness.seen(Direction::Read).unwrap();
                let clearing = {
                    let readiness = readiness.clone();
                    move || readiness.clear(Direction::Read, seen.ready)
                };
                let telling = {
                    let readiness = readiness.clone();
                    move || readiness.tell(FIRST, READABLE, &mut Vec::new())
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
            assert_eq!(readiness.wait(direction, number, Waker::noop()), None);
        }
        readiness.tell(FIRST, READABLE, &mut woken);
        assert_eq!(woken.len(), 3);
        readiness.tell(FIRST, WRITABLE, &mut woken);
        assert_eq!(woken.len(), 4);
        readiness.tell(FIRST, READ_CLOSED | WRITE_CLOSED, &mut woken);
        assert_eq!(woken.len(), 4, "nobody waits");
    }

    #[test]
    fn what_a_socket_is_for_is_known_until_it_is_gone() {
        let readiness = Readiness::default();
        for address in ["127.0.0.1:7", "[::1]:7"] {
            let address: SocketAddr = address.parse().unwrap();
            readiness.begin(Some(About::Socket(Role::Connection, address.into())));
            let told = lock(&readiness.waiters).about().unwrap().wait(Direction::Read);
            assert_eq!(told, format!("bytes from {address}"));
            // One more who waits, and does not any more.
            let mut numbers = [number(), number()];
            for number in &mut numbers {
                let _ = readiness.wait(Direction::Read, number, Waker::noop());
            }
            numbers.iter_mut().for_each(|number| readiness.leave(number));
            assert!(lock(&readiness.waiters).about().is_some());
            assert!(readiness.end().is_empty());
            assert!(lock(&readiness.waiters).about().is_none());
        }
    }

    #[test]
    fn every_kind_of_socket_is_told_by_its_address_and_direction() {
        let path = Address::Unix(Some("/run/s".into()));
        let listener = About::Socket(Role::Listener, path.clone());
        let datagrams = About::Socket(Role::Datagrams, path.clone());
        for (about, to_read, to_write) in [
            (listener, "a connection to /run/s", "a connection to /run/s"),
            (datagrams, "a datagram to /run/s", "room for a datagram from /run/s"),
            (
                About::Socket(Role::Connection, Address::Unix(None)),
                "bytes from an unnamed socket",
                "room for bytes to an unnamed socket",
            ),
            (About::Descriptor(7), "descriptor 7 to be readable", "descriptor 7 to be writable"),
        ] {
            let readiness = Readiness::default();
            readiness.begin(Some(about.clone()));
            let known = lock(&readiness.waiters).about();
            assert_eq!(known.as_ref(), Some(&about));
            assert_eq!(about.wait(Direction::Read), to_read);
            assert_eq!(about.wait(Direction::Write), to_write);
        }
    }

    #[test]
    fn who_connects_waits_for_that_until_there_is_room() {
        for address in ["127.0.0.1:7", "[::1]:7"] {
            let readiness = Readiness::default();
            let address: SocketAddr = address.parse().unwrap();
            readiness.begin(Some(About::Socket(Role::Connecting, address.into())));
            let told = || lock(&readiness.waiters).about().unwrap().wait(Direction::Write);
            assert_eq!(told(), format!("a connection to {address} to be there"));
            readiness.tell(FIRST, READABLE, &mut Vec::new());
            assert_eq!(told(), format!("a connection to {address} to be there"));
            readiness.tell(FIRST, WRITABLE, &mut Vec::new());
            assert_eq!(told(), format!("room for bytes to {address}"));
        }
    }

    #[test]
    fn an_end_of_a_descriptor_is_forgotten_when_twice_it_would_block() {
        let readiness = Readiness::default();
        readiness.begin(Some(About::Descriptor(7)));
        for direction in [Direction::Read, Direction::Write] {
            for told in [READ_CLOSED | WRITE_CLOSED, READABLE | READ_CLOSED | WRITE_CLOSED] {
                readiness.tell(FIRST, told, &mut Vec::new());
                // It may have come with the last bytes.
                readiness.clear(direction, readiness.seen(direction).unwrap().ready);
                readiness.clear(direction, readiness.seen(direction).unwrap().ready);
                assert_eq!(readiness.seen(direction), None);
            }
        }
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
        readiness.leave(&mut numbers[0]);
        assert_eq!(numbers[0], 0);
        let mut woken = Vec::new();
        readiness.tell(FIRST, READABLE, &mut woken);
        assert_eq!(woken.len(), 1);
        // It was taken out, and is registered anew under another number.
        let before = numbers[1];
        readiness.clear(Direction::Read, readiness.seen(Direction::Read).unwrap().ready);
        assert_eq!(readiness.wait(Direction::Read, &mut numbers[1], Waker::noop()), None);
        assert_ne!(numbers[1], before);
    }

    #[test]
    fn a_short_read_clears_readiness_unless_urgent_data_is_reported() {
        let readiness = Readiness::default();
        readiness.begin(None);
        let seen = |direction| readiness.seen(direction).map(|seen| seen.ready);
        for direction in [Direction::Read, Direction::Write] {
            readiness.clear_after_short(direction, seen(direction).unwrap());
            assert_eq!(seen(direction), None);
        }
        let before = seen(Direction::Read);
        readiness.tell(FIRST, READABLE | WRITABLE | URGENT, &mut Vec::new());
        for _ in 0..2 {
            readiness.clear_after_short(Direction::Read, seen(Direction::Read).unwrap());
        }
        assert_ne!(seen(Direction::Read), before);
        readiness.clear_after_short(Direction::Write, seen(Direction::Write).unwrap());
        assert_eq!(seen(Direction::Write), None, "a write does not stop at the mark");
        // A read that would block has read everything, and ends the exception.
        readiness.clear(Direction::Read, seen(Direction::Read).unwrap());
        assert_eq!(seen(Direction::Read), None);
        readiness.tell(FIRST, READABLE, &mut Vec::new());
        readiness.clear_after_short(Direction::Read, seen(Direction::Read).unwrap());
        assert_eq!(seen(Direction::Read), None);
    }

    #[test]
    fn a_short_read_clears_nothing_if_urgent_data_was_reported_meanwhile() {
        let readiness = Readiness::default();
        readiness.begin(None);
        let seen = readiness.seen(Direction::Read).unwrap().ready;
        readiness.tell(FIRST, READABLE | URGENT, &mut Vec::new());
        readiness.clear_after_short(Direction::Read, seen);
        readiness.clear(Direction::Read, seen);
        assert!(readiness.seen(Direction::Read).is_some());
    }

    #[test]
    fn only_what_was_seen_is_cleared_and_never_a_close() {
        let readiness = Readiness::default();
        readiness.begin(None);
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.tell(FIRST, READABLE, &mut Vec::new());
        readiness.clear(Direction::Read, seen.ready);
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.clear(Direction::Read, seen.ready);
        assert_eq!(readiness.seen(Direction::Read), None);
        assert!(readiness.seen(Direction::Write).is_some());
        readiness.tell(FIRST, READ_CLOSED, &mut Vec::new());
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.clear(Direction::Read, seen.ready);
        assert!(readiness.seen(Direction::Read).is_some_and(|seen| !seen.is_gone));
        readiness.tell_gone(&mut Vec::new());
        assert!(readiness.seen(Direction::Write).is_some_and(|seen| seen.is_gone));
    }
}
