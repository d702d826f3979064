//! The readiness of one socket, and the tasks that wait for it.
//!
//! A word has a bit for each kind of readiness that the operating system has reported, and a count
//! of its reports. An operation that finds the socket not ready clears the bit, unless the count
//! shows a report since. One lock guards everything else: the waiters, and the generation of the
//! slot. A report for a closed socket therefore never reaches the next socket in its slot, which
//! would see an end of stream that never came and retry forever.
//!
//! # Why no wakeup is lost
//! 1. A report sets the bits and removes the waiters under the lock.
//! 2. A waiting task registers under the lock, and checks the bits again before it releases it.
//! 3. If the task locks first, it is among the removed waiters. Otherwise the lock orders its check
//!    after the bits. The word itself is relaxed: it describes state of the operating system, not
//!    memory of this process.

use std::net::{SocketAddr, SocketAddrV4};
use std::task::Waker;

use asx_runtime::net::{Address, Direction, ReadyEvent, SocketWait};
use asx_runtime::operation::{guard, is_task_waker};

use super::slots::Token;
use crate::prim::atomic::AtomicU32;
use crate::prim::atomic::Ordering::Relaxed;
use crate::prim::{Mutex, lock};

/// Bytes or a connection have arrived.
pub(super) const READABLE: u32 = 1;
/// There is room for bytes to send.
pub(super) const WRITABLE: u32 = 2;
/// No more bytes will arrive. A read returns without blocking.
pub(super) const READ_CLOSED: u32 = 4;
/// No more bytes can be sent.
pub(super) const WRITE_CLOSED: u32 = 8;
/// The reactor was closed.
pub(super) const GONE: u32 = 16;
/// A closed direction may open again.
const REOPENABLE: u32 = 32;
/// The system holds urgent data: a read stops at its mark although more bytes may have arrived.
/// Reported with every event while the mark has not been passed.
pub(super) const URGENT: u32 = 64;

const BITS: u32 = 0xff;
/// One report of the system, in the count above the bits.
const REPORT: u32 = BITS + 1;

/// The bits that make an operation in a direction worth an attempt.
fn attempt_bits(direction: Direction) -> u32 {
    match direction {
        Direction::Read => READABLE | READ_CLOSED | GONE,
        Direction::Write => WRITABLE | WRITE_CLOSED | GONE,
    }
}

/// The bit to clear when an operation would block. A closed direction remains closed.
fn readiness_bit(direction: Direction) -> u32 {
    match direction {
        Direction::Read => READABLE,
        Direction::Write => WRITABLE,
    }
}

/// The word after an operation in a direction would block. For an end that may be over, one more
/// attempt comes first: the end may have been reported with the last bytes, and the system does not
/// report it again.
fn cleared(word: u32, direction: Direction) -> u32 {
    let open = readiness_bit(direction);
    let closed = match direction {
        Direction::Read => READ_CLOSED,
        Direction::Write => WRITE_CLOSED,
    };
    match word & REOPENABLE != 0 && word & closed != 0 {
        // Counts as a report: clearing an earlier state has no effect.
        true => (word & !closed | open).wrapping_add(REPORT),
        // A read that would block has passed the mark, or a new event reports it again.
        false if direction == Direction::Read => word & !(open | URGENT),
        false => word & !open,
    }
}

#[derive(Debug, Default)]
pub(super) struct Readiness {
    word: AtomicU32,
    /// The generation of the slot: the number of sockets that have had it. Read under the lock.
    generation: AtomicU32,
    waiters: Mutex<Waiters>,
}

/// The role of a socket with respect to its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It accepts connections there.
    Listener,
    /// It connects to that peer. It is connected, or has failed, once it is writable.
    Connecting,
    /// It is connected to that peer.
    Connection,
    /// It is bound there, for datagrams.
    Datagrams,
}

/// The description of a registered source, for dumps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Description {
    /// A socket, and the address of its role.
    Socket(Role, Address),
    /// A foreign descriptor with this number. It may open again after an end, as a named pipe does
    /// with its next writer.
    Descriptor(i32),
}

impl Description {
    /// Describes what a task that waits in this direction waits for.
    fn wait(&self, direction: Direction) -> String {
        let (role, at) = match (self, direction) {
            (Description::Socket(role, at), _) => (role, at),
            (Description::Descriptor(fd), Direction::Read) => {
                return format!("descriptor {fd} to be readable");
            }
            (Description::Descriptor(fd), Direction::Write) => {
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

/// A compact [`Description`], since every socket has one.
#[derive(Clone, Copy, Debug, Default)]
enum Compact {
    /// The slot is vacant, or there is no description.
    #[default]
    Nothing,
    V4(Role, SocketAddrV4),
    /// An unnamed unix socket.
    Unnamed(Role),
    Descriptor(i32),
    /// The description is in [`Overflow`].
    InOverflow,
}

/// The tasks that wait for a socket. Space for one is inline, since there is rarely more.
#[derive(Debug, Default)]
struct Waiters {
    compact: Compact,
    /// The last number that was assigned.
    last: u32,
    /// The first waiter: its number, and its waker while it waits.
    number: u32,
    waker: Option<Waker>,
    overflow: Option<Box<Overflow>>,
}

/// Rarely used parts of [`Waiters`].
#[derive(Debug, Default)]
struct Overflow {
    description: Option<Description>,
    waiters: Vec<Waiter>,
}

/// The bit of a waiter's number that stands for writing.
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
    /// Initializes the slot for a new socket, for which the first operation is always worth an
    /// attempt. Returns the generation.
    pub(super) fn begin(&self, description: Option<Description>) -> u32 {
        let is_foreign = matches!(description, Some(Description::Descriptor(_)));
        lock(&self.waiters).describe(description);
        let bits = READABLE | WRITABLE | if is_foreign { REOPENABLE } else { 0 };
        // The slot is not shared yet: this is no race.
        let word = self.word.load(Relaxed);
        self.word.store((word & !BITS).wrapping_add(REPORT) | bits, Relaxed);
        self.generation.load(Relaxed)
    }

    /// Ends the use of the slot. Returns the wakers of leaked waits, to be dropped without a lock.
    /// Later reports for the socket are ignored.
    pub(super) fn end(&self) -> Vec<Waker> {
        let mut left = Vec::new();
        let mut waiters = lock(&self.waiters);
        self.generation.store(self.generation.load(Relaxed).wrapping_add(1), Relaxed);
        waiters.take(Direction::Read, &mut left);
        waiters.take(Direction::Write, &mut left);
        waiters.overflow = None;
        waiters.compact = Compact::Nothing;
        left
    }

    /// Returns the readiness in a direction, if there is any.
    #[inline]
    pub(super) fn seen(&self, direction: Direction) -> Option<Seen> {
        let word = self.word.load(Relaxed);
        let is_gone = word & GONE != 0;
        (word & attempt_bits(direction) != 0)
            .then_some(Seen { ready: ReadyEvent(word & !BITS), is_gone })
    }

    /// Registers a waker in place of the previous one of this waiter. Returns the readiness if the
    /// socket is ready now.
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
        // Without the lock: the destructor of a third-party waker may panic.
        guard::drop_waker(old);
        seen
    }

    /// Removes a waiter.
    pub(super) fn leave(&self, number: &mut u32) {
        if *number == 0 {
            return;
        }
        let left = lock(&self.waiters).remove(*number);
        *number = 0;
        guard::drop_waker(left);
    }

    /// Adds the tasks that wait, with a description of each wait. Third-party wakers are left out:
    /// cloning one may run user code, which must not happen under a lock.
    pub(super) fn waits(&self, all: &mut Vec<SocketWait>) {
        let waiters = lock(&self.waiters);
        let first = waiters.waker.iter().map(|waker| (waiters.number, waker));
        let overflow = waiters.overflow.iter().flat_map(|overflow| &overflow.waiters);
        let those = first.chain(overflow.map(|waiter| (waiter.number, &waiter.waker)));
        for (number, waker) in those.filter(|(_, waker)| is_task_waker(waker)) {
            let direction = direction_of(number);
            let what = match (waiters.description(), direction) {
                (Some(description), direction) => description.wait(direction),
                (None, Direction::Read) => String::from("a socket to be readable"),
                (None, Direction::Write) => String::from("a socket to be writable"),
            };
            all.push(SocketWait { waker: waker.clone(), what });
        }
    }

    /// Records a report for the socket with this token, if it is still in the slot. Adds the wakers
    /// of tasks that waited for it.
    pub(super) fn report(&self, token: Token, bits: u32, woken: &mut Vec<Waker>) {
        let mut waiters = lock(&self.waiters);
        if token.has_generation(self.generation.load(Relaxed)) {
            self.set(&mut waiters, bits, woken);
        }
    }

    /// Makes all waiting tasks check again.
    pub(super) fn wake_all(&self, woken: &mut Vec<Waker>) {
        self.set(&mut lock(&self.waiters), READABLE | WRITABLE, woken);
    }

    /// Records that writing was shut down.
    pub(super) fn set_write_closed(&self, woken: &mut Vec<Waker>) {
        self.set(&mut lock(&self.waiters), WRITE_CLOSED, woken);
    }

    /// Records that the reactor was closed, which fails current and later waits.
    pub(super) fn set_gone(&self, woken: &mut Vec<Waker>) {
        self.set(&mut lock(&self.waiters), GONE, woken);
    }

    fn set(&self, waiters: &mut Waiters, bits: u32, woken: &mut Vec<Waker>) {
        if bits & WRITABLE != 0 {
            waiters.connected();
        }
        let mut word = self.word.load(Relaxed);
        loop {
            let new = word.wrapping_add(REPORT) | bits;
            match self.word.compare_exchange(word, new, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(other) => word = other,
            }
        }
        for direction in [Direction::Read, Direction::Write] {
            if bits & attempt_bits(direction) != 0 {
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

    /// Clears a direction in which an operation would block, unless there was a report since
    /// `seen`.
    pub(super) fn clear(&self, direction: Direction, seen: ReadyEvent) {
        let mut word = self.word.load(Relaxed);
        while word & !BITS == seen.0 {
            let new = cleared(word, direction);
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

/// The first token of the first slot.
#[cfg(test)]
const FIRST: Token = Token::FIRST;

/// The readiness of a socket in a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) ready: ReadyEvent,
    /// The reactor was closed. This never changes.
    pub(super) is_gone: bool,
}

impl Waiters {
    fn describe(&mut self, description: Option<Description>) {
        self.compact = match description {
            None => Compact::Nothing,
            Some(Description::Socket(role, Address::Inet(SocketAddr::V4(at)))) => {
                Compact::V4(role, at)
            }
            Some(Description::Socket(role, Address::Unix(None))) => Compact::Unnamed(role),
            Some(Description::Descriptor(fd)) => Compact::Descriptor(fd),
            Some(description) => {
                self.overflow.get_or_insert_default().description = Some(description);
                Compact::InOverflow
            }
        };
    }

    fn description(&self) -> Option<Description> {
        match self.compact {
            Compact::Nothing => None,
            Compact::V4(role, at) => Some(Description::Socket(role, Address::Inet(at.into()))),
            Compact::Unnamed(role) => Some(Description::Socket(role, Address::Unix(None))),
            Compact::Descriptor(fd) => Some(Description::Descriptor(fd)),
            Compact::InOverflow => self.overflow.as_ref()?.description.clone(),
        }
    }

    /// Records that a connection attempt has completed.
    fn connected(&mut self) {
        let role = match (&mut self.compact, &mut self.overflow) {
            (Compact::V4(role, _), _) => role,
            (Compact::InOverflow, Some(overflow)) => match &mut overflow.description {
                Some(Description::Socket(role, _)) => role,
                _ => return,
            },
            _ => return,
        };
        if *role == Role::Connecting {
            *role = Role::Connection;
        }
    }

    /// Adds a waker; returns the previous one of this number.
    fn add(&mut self, direction: Direction, number: &mut u32, waker: Waker) -> Option<Waker> {
        if *number != 0
            && let Some(old) = self.find(*number)
        {
            return Some(std::mem::replace(old, waker));
        }
        // Numbers repeat after billions of waits: a repeated one is not in use any more.
        self.last = (self.last.wrapping_add(1) & !WRITES).max(1);
        *number = match direction {
            Direction::Read => self.last,
            Direction::Write => self.last | WRITES,
        };
        if self.waker.is_none() {
            self.number = *number;
            self.waker = Some(waker);
        } else {
            let overflow = self.overflow.get_or_insert_default();
            overflow.waiters.push(Waiter { number: *number, waker });
        }
        None
    }

    fn find(&mut self, number: u32) -> Option<&mut Waker> {
        if self.number == number {
            return self.waker.as_mut();
        }
        let mut overflow = self.overflow.iter_mut().flat_map(|overflow| &mut overflow.waiters);
        overflow.find(|waiter| waiter.number == number).map(|waiter| &mut waiter.waker)
    }

    fn remove(&mut self, number: u32) -> Option<Waker> {
        if self.number == number {
            return self.waker.take();
        }
        let overflow = &mut self.overflow.as_mut()?.waiters;
        let at = overflow.iter().position(|waiter| waiter.number == number)?;
        Some(overflow.swap_remove(at).waker)
    }

    fn take(&mut self, direction: Direction, woken: &mut Vec<Waker>) {
        if direction_of(self.number) == direction {
            woken.extend(self.waker.take());
        }
        if let Some(overflow) = &mut self.overflow {
            let has_generation = |waiter: &mut Waiter| direction_of(waiter.number) == direction;
            woken
                .extend(overflow.waiters.extract_if(.., has_generation).map(|waiter| waiter.waker));
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

    /// Guards the check under the lock in `wait`, and that a report sets the bits first: one of the
    /// two sees the other.
    #[test]
    fn a_waiter_sees_the_report_or_is_woken() {
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
                let reporting = move || {
                    let mut woken = Vec::new();
                    readiness.report(FIRST, READABLE, &mut woken);
                    woken.into_iter().for_each(Waker::wake);
                };
                let (seen, ()) = race(swap, waiting, reporting);
                assert!(seen || count.0.load(Relaxed) == 1);
            });
        }
    }

    /// Guards that the generation is compared under the lock: an event for a socket that is being
    /// closed does not reach the next socket in the slot.
    #[test]
    fn a_report_for_a_closed_socket_does_not_reach_the_next_one() {
        for swap in [false, true] {
            loom::model(move || {
                let readiness = Arc::new(Readiness::default());
                readiness.begin(None);
                let reporting = {
                    let readiness = readiness.clone();
                    move || readiness.report(FIRST, READ_CLOSED, &mut Vec::new())
                };
                let replacing = {
                    let readiness = readiness.clone();
                    move || {
                        assert!(readiness.end().is_empty());
                        readiness.begin(None);
                    }
                };
                race(swap, reporting, replacing);
                let seen = readiness.seen(Direction::Read).unwrap();
                readiness.clear(Direction::Read, seen.ready);
                assert_eq!(readiness.seen(Direction::Read), None);
            });
        }
    }

    /// Guards the count in `clear`: a report after the socket was seen ready is not cleared.
    #[test]
    fn a_concurrent_report_is_not_cleared() {
        for swap in [false, true] {
            loom::model(move || {
                let readiness = Arc::new(Readiness::default());
                readiness.report(FIRST, READABLE, &mut Vec::new());
                let seen = readiness.seen(Direction::Read).unwrap();
                let clearing = {
                    let readiness = readiness.clone();
                    move || readiness.clear(Direction::Read, seen.ready)
                };
                let reporting = {
                    let readiness = readiness.clone();
                    move || readiness.report(FIRST, READABLE, &mut Vec::new())
                };
                race(swap, clearing, reporting);
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
    fn a_report_wakes_waiters_of_its_direction_only() {
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
        readiness.report(FIRST, READABLE, &mut woken);
        assert_eq!(woken.len(), 3);
        readiness.report(FIRST, WRITABLE, &mut woken);
        assert_eq!(woken.len(), 4);
        readiness.report(FIRST, READ_CLOSED | WRITE_CLOSED, &mut woken);
        assert_eq!(woken.len(), 4, "no task waits");
    }

    #[test]
    fn a_description_is_kept_until_the_socket_is_closed() {
        let readiness = Readiness::default();
        for address in ["127.0.0.1:7", "[::1]:7"] {
            let address: SocketAddr = address.parse().unwrap();
            readiness.begin(Some(Description::Socket(Role::Connection, address.into())));
            let reported = lock(&readiness.waiters).description().unwrap().wait(Direction::Read);
            assert_eq!(reported, format!("bytes from {address}"));
            // More waiters, which leave again.
            let mut numbers = [number(), number()];
            for number in &mut numbers {
                let _ = readiness.wait(Direction::Read, number, Waker::noop());
            }
            numbers.iter_mut().for_each(|number| readiness.leave(number));
            assert!(lock(&readiness.waiters).description().is_some());
            assert!(readiness.end().is_empty());
            assert!(lock(&readiness.waiters).description().is_none());
        }
    }

    #[test]
    fn a_wait_is_described_by_role_address_and_direction() {
        let path = Address::Unix(Some("/run/s".into()));
        let listener = Description::Socket(Role::Listener, path.clone());
        let datagrams = Description::Socket(Role::Datagrams, path.clone());
        for (description, to_read, to_write) in [
            (listener, "a connection to /run/s", "a connection to /run/s"),
            (datagrams, "a datagram to /run/s", "room for a datagram from /run/s"),
            (
                Description::Socket(Role::Connection, Address::Unix(None)),
                "bytes from an unnamed socket",
                "room for bytes to an unnamed socket",
            ),
            (
                Description::Descriptor(7),
                "descriptor 7 to be readable",
                "descriptor 7 to be writable",
            ),
        ] {
            let readiness = Readiness::default();
            readiness.begin(Some(description.clone()));
            let known = lock(&readiness.waiters).description();
            assert_eq!(known.as_ref(), Some(&description));
            assert_eq!(description.wait(Direction::Read), to_read);
            assert_eq!(description.wait(Direction::Write), to_write);
        }
    }

    #[test]
    fn a_connecting_socket_is_described_as_such_until_it_is_writable() {
        for address in ["127.0.0.1:7", "[::1]:7"] {
            let readiness = Readiness::default();
            let address: SocketAddr = address.parse().unwrap();
            readiness.begin(Some(Description::Socket(Role::Connecting, address.into())));
            let reported =
                || lock(&readiness.waiters).description().unwrap().wait(Direction::Write);
            assert_eq!(reported(), format!("a connection to {address} to be there"));
            readiness.report(FIRST, READABLE, &mut Vec::new());
            assert_eq!(reported(), format!("a connection to {address} to be there"));
            readiness.report(FIRST, WRITABLE, &mut Vec::new());
            assert_eq!(reported(), format!("room for bytes to {address}"));
        }
    }

    #[test]
    fn the_end_of_a_descriptor_is_cleared_when_it_would_block_twice() {
        let readiness = Readiness::default();
        readiness.begin(Some(Description::Descriptor(7)));
        for direction in [Direction::Read, Direction::Write] {
            for reported in [READ_CLOSED | WRITE_CLOSED, READABLE | READ_CLOSED | WRITE_CLOSED] {
                readiness.report(FIRST, reported, &mut Vec::new());
                // The end may have been reported with the last bytes.
                readiness.clear(direction, readiness.seen(direction).unwrap().ready);
                readiness.clear(direction, readiness.seen(direction).unwrap().ready);
                assert_eq!(readiness.seen(direction), None);
            }
        }
    }

    #[test]
    fn a_waiter_is_registered_once_until_it_leaves() {
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
        readiness.report(FIRST, READABLE, &mut woken);
        assert_eq!(woken.len(), 1);
        // It was removed, and is registered again with another number.
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
        readiness.report(FIRST, READABLE | WRITABLE | URGENT, &mut Vec::new());
        for _ in 0..2 {
            readiness.clear_after_short(Direction::Read, seen(Direction::Read).unwrap());
        }
        assert_ne!(seen(Direction::Read), before);
        readiness.clear_after_short(Direction::Write, seen(Direction::Write).unwrap());
        assert_eq!(seen(Direction::Write), None, "a write does not stop at the mark");
        // A read that would block has read everything, and ends the exception.
        readiness.clear(Direction::Read, seen(Direction::Read).unwrap());
        assert_eq!(seen(Direction::Read), None);
        readiness.report(FIRST, READABLE, &mut Vec::new());
        readiness.clear_after_short(Direction::Read, seen(Direction::Read).unwrap());
        assert_eq!(seen(Direction::Read), None);
    }

    #[test]
    fn a_short_read_does_not_clear_a_later_report_of_urgent_data() {
        let readiness = Readiness::default();
        readiness.begin(None);
        let seen = readiness.seen(Direction::Read).unwrap().ready;
        readiness.report(FIRST, READABLE | URGENT, &mut Vec::new());
        readiness.clear_after_short(Direction::Read, seen);
        readiness.clear(Direction::Read, seen);
        assert!(readiness.seen(Direction::Read).is_some());
    }

    #[test]
    fn clear_affects_seen_readiness_only_and_never_a_close() {
        let readiness = Readiness::default();
        readiness.begin(None);
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.report(FIRST, READABLE, &mut Vec::new());
        readiness.clear(Direction::Read, seen.ready);
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.clear(Direction::Read, seen.ready);
        assert_eq!(readiness.seen(Direction::Read), None);
        assert!(readiness.seen(Direction::Write).is_some());
        readiness.report(FIRST, READ_CLOSED, &mut Vec::new());
        let seen = readiness.seen(Direction::Read).unwrap();
        readiness.clear(Direction::Read, seen.ready);
        assert!(readiness.seen(Direction::Read).is_some_and(|seen| !seen.is_gone));
        readiness.set_gone(&mut Vec::new());
        assert!(readiness.seen(Direction::Write).is_some_and(|seen| seen.is_gone));
    }
}
