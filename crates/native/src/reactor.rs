//! The reactor: what the operating system tells of sockets becomes wakes of tasks.
//!
//! It has no thread. Workers look here from time to time, and one that has nothing to do sleeps
//! here (`idle` says who, and why no event is missed). Whoever it is gets the events, and wakes the
//! tasks that wait for them into its own queue.
//!
//! Edge-triggered: a socket is registered once, for both directions, and the system tells only what
//! is new. What it told is kept with the socket ([`readiness`]) until an operation finds that it is
//! used up.

pub(crate) mod presence;
mod readiness;
mod slots;

use std::io;
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use asx_runtime::net::{Direction, ReadyEvent, SocketWait, WaitSlot};
use asx_runtime::operation::guard;
use mio::Interest;
use mio::event::{Event, Source};

use crate::parker::Interrupt;
use crate::prim::atomic::Ordering::{Relaxed, SeqCst};
use crate::prim::atomic::{AtomicUsize, fence};
use crate::prim::{Mutex, MutexGuard};
use presence::Presence;
pub(crate) use readiness::About;
#[cfg(not(loom))]
pub(crate) use readiness::Role;
use readiness::{READ_CLOSED, READABLE, Readiness, URGENT, WRITABLE, WRITE_CLOSED};
use slots::{Slots, Token};

/// Events that are taken at once, at most.
const EVENTS: usize = 256;
/// The interest in sockets of the runtime: both directions, and urgent data.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTEREST: Interest = BOTH.add(Interest::PRIORITY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTEREST: Interest = BOTH;
/// The interest in watched descriptors.
const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
/// Whether a short count proves that a TCP buffer is empty or full. A read also stops at the mark
/// of urgent data, so this needs a selector that reports such data. On Windows a new event also
/// requires an attempt that returned `WouldBlock`.
const SHORT_IS_CONCLUSIVE: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// The token of interrupts: no place has it.
const INTERRUPT: mio::Token = mio::Token(usize::MAX);

/// The reactor of a runtime: made with its first socket.
#[derive(Debug, Default)]
pub(crate) struct Reactor {
    /// Whether the runtime has threads of its own, which look here at all times.
    has_threads: bool,
    /// If not: threads that are in `block_on`, and so look here. Without any, who waits at a socket
    /// would wait for ever.
    running: AtomicUsize,
    made: OnceLock<Made>,
    slots: Slots,
    /// Sockets that are registered: without any nobody sleeps here.
    sources: AtomicUsize,
    /// Whether a worker that is parked sees events.
    pub(crate) presence: Presence,
}

#[derive(Debug)]
struct Made {
    registry: mio::Registry,
    interrupt: mio::Waker,
    /// Held by whoever is in here, or looks.
    driver: Mutex<Driver>,
}

#[derive(Debug)]
struct Driver {
    poll: mio::Poll,
    events: mio::Events,
}

impl Interrupt for Reactor {
    fn interrupt(&self) {
        if let Some(made) = self.made.get() {
            // It fails only if the system is out of memory. Whoever sleeps gets up for the next
            // event or timer then.
            let _ = made.interrupt.wake();
        }
    }
}

impl Made {
    fn new() -> io::Result<Made> {
        let poll = mio::Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let interrupt = mio::Waker::new(&registry, INTERRUPT)?;
        let driver = Mutex::new(Driver { poll, events: mio::Events::with_capacity(EVENTS) });
        Ok(Made { registry, interrupt, driver })
    }
}

impl Reactor {
    /// Registers a socket, which has this descriptor, for both directions: whether it is the only
    /// one now. Then nobody may be in here, and a worker must be told.
    pub(crate) fn register(
        self: &Arc<Self>,
        source: &mut (impl Source + ?Sized),
        fd: i32,
        about: Option<About>,
    ) -> io::Result<(Registration, bool)> {
        let made = match self.made.get() {
            Some(made) => made,
            None => {
                let new = Made::new()?;
                // Another thread may have been faster.
                self.made.get_or_init(|| new)
            }
        };
        let refused = || io::Error::other("the runtime is gone, or has too many sockets");
        let is_watched = matches!(about, Some(About::Descriptor(_)));
        let own = (!is_watched).then_some(fd);
        let token = self.slots.take(about, own).ok_or_else(refused)?;
        let interest = if is_watched { BOTH } else { INTEREST };
        let at = mio::Token(token.pack());
        let mut register = || source.register(&made.registry, at, interest);
        let registered = match is_watched {
            true => self.slots.claim(fd, token.place, register),
            false => register(),
        };
        if let Err(error) = registered {
            self.release(token.place);
            return Err(error);
        }
        // The notification that follows for the first one fences.
        let is_first = self.sources.fetch_add(1, Relaxed) == 0;
        Ok((Registration { reactor: self.clone(), place: token.place }, is_first))
    }

    /// A socket is gone.
    fn release(&self, place: u32) {
        // A wait that was forgotten left its waker.
        let left = self.slots.get(place).map(Readiness::end).unwrap_or_default();
        left.into_iter().for_each(|waker| guard::drop_waker(Some(waker)));
        self.slots.release(place);
    }

    /// Whether there is anything to look for.
    #[inline]
    pub(crate) fn has_sources(&self) -> bool {
        self.sources.load(Relaxed) > 0
    }

    /// Lets the caller in, if there is anything to look for and nobody else is in here.
    pub(crate) fn enter(&self) -> Option<Driving<'_>> {
        if !self.has_sources() {
            return None;
        }
        let made = self.made.get()?;
        let driver = made.driver.try_lock().ok()?;
        Some(Driving { slots: &self.slots, driver })
    }

    /// The tasks that wait at sockets.
    pub(crate) fn waits(&self) -> Vec<SocketWait> {
        let mut all = Vec::new();
        self.slots.each().for_each(|readiness| readiness.waits(&mut all));
        all
    }

    /// That of a runtime that has threads of its own, or runs only in `block_on`.
    pub(crate) fn new(has_threads: bool) -> Reactor {
        Reactor { has_threads, ..Reactor::default() }
    }

    /// Somebody is in `block_on`.
    pub(crate) fn start_running(&self) {
        self.running.fetch_add(1, SeqCst);
    }

    /// Somebody has left `block_on`. If nobody runs the runtime now, those are to be woken who wait
    /// for a socket: they find that out.
    pub(crate) fn stop_running(&self) -> Vec<Waker> {
        let mut woken = Vec::new();
        if self.running.fetch_sub(1, SeqCst) == 1 && !self.has_threads {
            // Who waits now has either registered before this, or sees that nobody looks.
            fence(SeqCst);
            self.slots.each().for_each(|readiness| readiness.tell_all(&mut woken));
        }
        woken
    }

    /// Whether anybody will see the events of a socket, at which the caller has registered.
    fn is_run(&self) -> bool {
        self.has_threads || {
            fence(SeqCst);
            self.running.load(SeqCst) > 0
        }
    }

    /// Nobody looks any more: what waits for a socket ends, and no socket is registered.
    pub(crate) fn close(&self) -> Vec<Waker> {
        let mut woken = Vec::new();
        self.slots.close();
        self.slots.each().for_each(|readiness| readiness.tell_gone(&mut woken));
        woken
    }
}

/// The caller is the one thread in the reactor.
pub(crate) struct Driving<'a> {
    slots: &'a Slots,
    driver: MutexGuard<'a, Driver>,
}

impl Driving<'_> {
    /// Waits for events, until it is interrupted, or for so long.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) {
        let Driver { poll, events } = &mut *self.driver;
        if poll.poll(events, timeout).is_err() {
            // A signal, as a rule. There are no events.
            events.clear();
        }
    }

    /// Takes the events, and leaves: who is to be woken for them.
    pub(crate) fn leave(self, woken: &mut Vec<Waker>) {
        for event in &self.driver.events {
            if event.token() != INTERRUPT {
                let token = Token::unpack(event.token().0);
                if let Some(readiness) = self.slots.get(token.place) {
                    readiness.tell(token, bits(event), woken);
                }
            }
        }
    }

    /// Whether there were events other than an interrupt.
    pub(crate) fn has_events(&self) -> bool {
        self.driver.events.iter().any(|event| event.token() != INTERRUPT)
    }
}

/// What an event says.
fn bits(event: &Event) -> u32 {
    let mut bits = 0;
    let mut add = |holds: bool, bit: u32| bits |= if holds { bit } else { 0 };
    add(event.is_readable(), READABLE);
    add(event.is_writable(), WRITABLE);
    add(event.is_read_closed(), READ_CLOSED);
    add(event.is_write_closed() && !is_only_error(event), WRITE_CLOSED);
    add(event.is_priority(), URGENT);
    // Whatever is tried next tells what is wrong.
    add(event.is_error(), READABLE | WRITABLE);
    bits
}

/// Whether the system reports an error of a socket that it has not closed: of an earlier datagram,
/// for example. mio reports such a socket as closed for writing, but a later write may block.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_only_error(event: &Event) -> bool {
    // A socket that is closed is also reported as closed for reading.
    event.is_error() && !event.is_read_closed()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_only_error(_: &Event) -> bool {
    false
}

/// A socket that is registered, until this is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    reactor: Arc<Reactor>,
    place: u32,
}

impl Registration {
    fn readiness(&self) -> Option<&Readiness> {
        self.reactor.slots.get(self.place)
    }

    pub(crate) fn reactor(&self) -> &Arc<Reactor> {
        &self.reactor
    }

    /// Whether an operation is worth a try; if not, the waker is woken when it is.
    pub(crate) fn poll_ready(
        &self,
        direction: Direction,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Poll<io::Result<ReadyEvent>> {
        let Some(readiness) = self.readiness() else {
            return Poll::Ready(Err(gone()));
        };
        let seen =
            readiness.seen(direction).or_else(|| readiness.wait(direction, &mut slot.0, waker));
        match seen {
            None if self.reactor.is_run() => Poll::Pending,
            None => {
                readiness.leave(&mut slot.0);
                Poll::Ready(Err(not_run()))
            }
            Some(seen) if seen.is_gone => Poll::Ready(Err(gone())),
            Some(seen) => Poll::Ready(Ok(seen.ready)),
        }
    }

    pub(crate) fn clear_ready(&self, direction: Direction, seen: ReadyEvent) {
        if let Some(readiness) = self.readiness() {
            readiness.clear(direction, seen);
        }
    }

    /// Clears readiness after a short read or write, where that proves the buffer empty or full.
    pub(crate) fn clear_after_short(&self, direction: Direction, seen: ReadyEvent) {
        if SHORT_IS_CONCLUSIVE && let Some(readiness) = self.readiness() {
            readiness.clear_after_short(direction, seen);
        }
    }

    pub(crate) fn leave(&self, slot: &mut WaitSlot) {
        if let Some(readiness) = self.readiness() {
            readiness.leave(&mut slot.0);
        }
    }

    /// The socket's own side has ended the direction to the peer: whoever waits to write fails. The
    /// system does not say so of a unix socket whose peer has no room.
    pub(crate) fn end_write(&self) {
        let mut woken = Vec::new();
        if let Some(readiness) = self.readiness() {
            readiness.tell_write_closed(&mut woken);
        }
        woken.into_iter().for_each(guard::wake);
    }

    /// Ends the registration of a source that stays open. Nothing is done if the descriptor was
    /// closed by somebody else and another socket has its number: that is not deregistered.
    pub(crate) fn deregister(&self, source: &mut (impl Source + ?Sized), fd: i32) {
        if let Some(made) = self.reactor.made.get() {
            // It fails where somebody has closed the descriptor, which ends it as well.
            let deregister = || source.deregister(&made.registry);
            let _ = self.reactor.slots.if_last(fd, self.place, deregister);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.reactor.release(self.place);
        self.reactor.sources.fetch_sub(1, Relaxed);
    }
}

fn not_run() -> io::Error {
    io::Error::other("nobody runs the runtime of the socket: no program is running in it")
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the runtime of the socket is gone")
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::AtomicUsize as Counter;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(Counter);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn pair() -> (mio::net::TcpStream, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        (mio::net::TcpStream::from_std(near), far)
    }

    /// A reactor that somebody looks after.
    fn run() -> Arc<Reactor> {
        let reactor = Arc::new(Reactor::default());
        reactor.start_running();
        reactor
    }

    fn register(
        reactor: &Arc<Reactor>,
        socket: &mut mio::net::TcpStream,
    ) -> io::Result<(Registration, bool)> {
        #[cfg(unix)]
        let number = std::os::fd::AsRawFd::as_raw_fd(socket);
        #[cfg(windows)]
        let number = -1;
        reactor.register(socket, number, None)
    }

    /// Waits until there is an event for a socket, and wakes.
    fn drive(reactor: &Reactor) {
        let mut woken = Vec::new();
        while woken.is_empty() {
            let mut driving = reactor.enter().unwrap();
            driving.wait(None);
            driving.leave(&mut woken);
        }
        woken.into_iter().for_each(Waker::wake);
    }

    #[test]
    fn an_event_wakes_who_waits_and_stays_until_it_is_used_up() {
        let reactor = run();
        let (mut near, mut far) = pair();
        let (registration, is_first) = register(&reactor, &mut near).unwrap();
        assert!(is_first);
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut slot = WaitSlot::default();
        let mut poll = || registration.poll_ready(Direction::Read, &mut slot, &waker);
        let Poll::Ready(Ok(seen)) = poll() else { panic!("worth a try at first") };
        registration.clear_ready(Direction::Read, seen);
        assert!(poll().is_pending());
        far.write_all(b"x").unwrap();
        drive(&reactor);
        assert_eq!(count.0.load(Relaxed), 1);
        assert!(poll().is_ready() && poll().is_ready());
        drop(registration);
        assert!(!reactor.has_sources() && reactor.enter().is_none());
    }

    #[test]
    fn an_event_on_its_way_to_a_socket_that_is_gone_wakes_nobody() {
        let reactor = run();
        let (mut near, mut far) = pair();
        let (mut other, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        let (stays, is_first) = register(&reactor, &mut other).unwrap();
        assert!(!is_first);
        far.write_all(b"x").unwrap();
        let mut driving = reactor.enter().unwrap();
        assert!(reactor.enter().is_none(), "one at a time");
        while !driving.has_events() {
            driving.wait(None);
        }
        let place = registration.place;
        drop(registration);
        // The place is taken by another one meanwhile.
        let (mut third, _third_far) = pair();
        let (registration, _) = register(&reactor, &mut third).unwrap();
        assert_eq!(registration.place, place);
        let seen = registration.readiness().unwrap().seen(Direction::Read).unwrap();
        registration.clear_ready(Direction::Read, seen.ready);
        let mut slot = WaitSlot::default();
        let waiting = registration.poll_ready(Direction::Read, &mut slot, Waker::noop());
        assert!(waiting.is_pending());
        let mut woken = Vec::new();
        driving.leave(&mut woken);
        assert!(woken.is_empty());
        assert_eq!(registration.readiness().unwrap().seen(Direction::Read), None);
        drop(stays);
    }

    #[test]
    fn an_interrupt_ends_the_sleep_and_is_no_event() {
        let reactor = run();
        let (mut near, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let mut driving = reactor.enter().unwrap();
                // The first event says that the socket is writable.
                driving.wait(None);
                while driving.has_events() {
                    driving.wait(None);
                }
            });
            while !sleeper.is_finished() {
                reactor.interrupt();
                std::thread::yield_now();
            }
        });
        drop(registration);
    }

    #[test]
    fn when_the_reactor_closes_every_wait_ends() {
        let reactor = run();
        let (mut near, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        let mut slot = WaitSlot::default();
        let Poll::Ready(Ok(seen)) =
            registration.poll_ready(Direction::Read, &mut slot, Waker::noop())
        else {
            panic!("worth a try at first");
        };
        registration.clear_ready(Direction::Read, seen);
        assert!(registration.poll_ready(Direction::Read, &mut slot, Waker::noop()).is_pending());
        assert_eq!(reactor.close().len(), 1);
        let poll = registration.poll_ready(Direction::Read, &mut slot, Waker::noop());
        assert!(matches!(poll, Poll::Ready(Err(_))));
        let (mut late, _far) = pair();
        assert!(register(&reactor, &mut late).is_err());
    }

    /// A waker of the user's.
    struct Bad;

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("in the destructor of a waker");
        }
    }

    #[test]
    fn a_waker_whose_destructor_panics_ends_nothing() {
        let reactor = run();
        let (mut near, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        let Poll::Ready(Ok(seen)) =
            registration.poll_ready(Direction::Read, &mut WaitSlot::default(), Waker::noop())
        else {
            panic!("worth a try at first");
        };
        registration.clear_ready(Direction::Read, seen);
        let mut slots = [WaitSlot::default(), WaitSlot::default()];
        for slot in &mut slots {
            // The reactor's copy is the last one.
            let waker = Waker::from(Arc::new(Bad));
            assert!(registration.poll_ready(Direction::Read, slot, &waker).is_pending());
        }
        registration.leave(&mut slots[0]);
        // The other wait was forgotten.
        drop(registration);
        assert!(!reactor.has_sources());
    }
}
