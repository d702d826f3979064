//! The reactor: turns the operating system's socket events into wakeups of tasks.
//!
//! It has no thread. Workers poll it regularly, and an idle worker sleeps in it (`idle` says which
//! worker, and why no event is missed). The thread that receives events wakes the waiting tasks
//! into its own queue.
//!
//! Registrations are edge-triggered: a socket is registered once, for both directions, and the
//! system reports changes only. The reported readiness is kept beside the socket ([`readiness`])
//! until an operation finds it used up.

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
pub(crate) use readiness::Description;
#[cfg(not(loom))]
pub(crate) use readiness::Role;
use readiness::{READ_CLOSED, READABLE, Readiness, URGENT, WRITABLE, WRITE_CLOSED};
use slots::{Slots, Token};

/// The number of events taken by one poll, at most.
const EVENTS: usize = 256;
/// The events registered for sockets of the runtime: both directions, and urgent data.
#[cfg(any(target_os = "linux", target_os = "android"))]
const INTEREST: Interest = BOTH.add(Interest::PRIORITY);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const INTEREST: Interest = BOTH;
/// The events registered for watched descriptors.
const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
/// Whether a short count proves that a TCP buffer is empty or full. A read also stops at the mark
/// of urgent data, so this needs a selector that reports such data. On Windows a new event also
/// requires an attempt that returned `WouldBlock`.
const SHORT_IS_CONCLUSIVE: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// The token of interrupts, which is that of no slot.
const INTERRUPT: mio::Token = mio::Token(usize::MAX);

/// The reactor of a runtime. Its selector is created with the first socket.
#[derive(Debug, Default)]
pub(crate) struct Reactor {
    /// Whether the runtime has worker threads, which poll the reactor at all times.
    has_threads: bool,
    /// Without worker threads: the number of threads in `block_on`, which poll the reactor. With
    /// none of them, a task that waits for a socket would never be woken.
    running: AtomicUsize,
    selector: OnceLock<Selector>,
    slots: Slots,
    /// The number of registered sockets. Without any, no worker sleeps in the reactor.
    sources: AtomicUsize,
    /// Whether a parked worker sees events.
    pub(crate) presence: Presence,
}

#[derive(Debug)]
struct Selector {
    registry: mio::Registry,
    interrupt: mio::Waker,
    /// Held by the thread that sleeps in the reactor or polls it.
    driver: Mutex<Driver>,
}

#[derive(Debug)]
struct Driver {
    poll: mio::Poll,
    events: mio::Events,
}

impl Interrupt for Reactor {
    fn interrupt(&self) {
        if let Some(selector) = self.selector.get() {
            // Fails only if the system is out of memory. The sleeping worker then wakes for the
            // next event or timer.
            let _ = selector.interrupt.wake();
        }
    }
}

impl Selector {
    fn new() -> io::Result<Selector> {
        let poll = mio::Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let interrupt = mio::Waker::new(&registry, INTERRUPT)?;
        let driver = Mutex::new(Driver { poll, events: mio::Events::with_capacity(EVENTS) });
        Ok(Selector { registry, interrupt, driver })
    }
}

impl Reactor {
    /// Registers a socket with this descriptor for both directions. The flag of the result is true
    /// if it is the only registered socket. No worker may be in the reactor then, so one must be
    /// notified.
    pub(crate) fn register(
        self: &Arc<Self>,
        source: &mut (impl Source + ?Sized),
        fd: i32,
        description: Option<Description>,
    ) -> io::Result<(Registration, bool)> {
        let selector = match self.selector.get() {
            Some(selector) => selector,
            None => {
                let new = Selector::new()?;
                // Another thread may have initialized it meanwhile.
                self.selector.get_or_init(|| new)
            }
        };
        let refused = || io::Error::other("the runtime is gone, or has too many sockets");
        let is_watched = matches!(description, Some(Description::Descriptor(_)));
        let owned = (!is_watched).then_some(fd);
        let token = self.slots.take(description, owned).ok_or_else(refused)?;
        let interest = if is_watched { BOTH } else { INTEREST };
        let at = mio::Token(token.pack());
        let mut register = || source.register(&selector.registry, at, interest);
        let registered = match is_watched {
            true => self.slots.claim(fd, token.index, register),
            false => register(),
        };
        if let Err(error) = registered {
            self.release(token.index);
            return Err(error);
        }
        // The notification that follows for the first source fences.
        let is_first = self.sources.fetch_add(1, Relaxed) == 0;
        Ok((Registration { reactor: self.clone(), index: token.index }, is_first))
    }

    /// Releases the slot of a socket that was closed.
    fn release(&self, index: u32) {
        // A wait that was leaked has left its waker here.
        let left = self.slots.get(index).map(Readiness::end).unwrap_or_default();
        left.into_iter().for_each(|waker| guard::drop_waker(Some(waker)));
        self.slots.release(index);
    }

    /// Returns true if any socket is registered.
    #[inline]
    pub(crate) fn has_sources(&self) -> bool {
        self.sources.load(Relaxed) > 0
    }

    /// Enters the reactor, if sockets are registered and no other thread is in it.
    pub(crate) fn enter(&self) -> Option<Driving<'_>> {
        if !self.has_sources() {
            return None;
        }
        let selector = self.selector.get()?;
        let driver = selector.driver.try_lock().ok()?;
        Some(Driving { slots: &self.slots, driver })
    }

    /// Returns the tasks that wait for sockets.
    pub(crate) fn waits(&self) -> Vec<SocketWait> {
        let mut all = Vec::new();
        self.slots.each().for_each(|readiness| readiness.waits(&mut all));
        all
    }

    /// Creates a reactor. Without worker threads it is polled by threads in `block_on` only.
    pub(crate) fn new(has_threads: bool) -> Reactor {
        Reactor { has_threads, ..Reactor::default() }
    }

    /// Counts a thread that entered `block_on`.
    pub(crate) fn start_running(&self) {
        self.running.fetch_add(1, SeqCst);
    }

    /// Counts a thread that left `block_on`. If no thread runs the runtime now, returns the wakers
    /// of all tasks that wait for a socket; these then fail.
    pub(crate) fn stop_running(&self) -> Vec<Waker> {
        let mut woken = Vec::new();
        if self.running.fetch_sub(1, SeqCst) == 1 && !self.has_threads {
            // A waiting task has either registered before this, or sees that no thread polls.
            fence(SeqCst);
            self.slots.each().for_each(|readiness| readiness.wake_all(&mut woken));
        }
        woken
    }

    /// Returns true if events of a socket will be seen. The caller has registered its waker.
    fn is_driven(&self) -> bool {
        self.has_threads || {
            fence(SeqCst);
            self.running.load(SeqCst) > 0
        }
    }

    /// Fails all waits for sockets, whose wakers it returns, and registers no more sockets.
    pub(crate) fn close(&self) -> Vec<Waker> {
        let mut woken = Vec::new();
        self.slots.close();
        self.slots.each().for_each(|readiness| readiness.set_gone(&mut woken));
        woken
    }
}

/// Exclusive access to the reactor.
pub(crate) struct Driving<'a> {
    slots: &'a Slots,
    driver: MutexGuard<'a, Driver>,
}

impl Driving<'_> {
    /// Waits for events, until it is interrupted or the timeout passes.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) {
        let Driver { poll, events } = &mut *self.driver;
        if poll.poll(events, timeout).is_err() {
            // Usually interrupted by a signal. There are no events.
            events.clear();
        }
    }

    /// Leaves the reactor. Records its events and adds the wakers of tasks that wait for them.
    pub(crate) fn leave(self, woken: &mut Vec<Waker>) {
        for event in &self.driver.events {
            if event.token() != INTERRUPT {
                let token = Token::unpack(event.token().0);
                if let Some(readiness) = self.slots.get(token.index) {
                    readiness.report(token, bits(event), woken);
                }
            }
        }
    }

    /// Returns true if there were events other than an interrupt.
    pub(crate) fn has_events(&self) -> bool {
        self.driver.events.iter().any(|event| event.token() != INTERRUPT)
    }
}

/// Converts an event to readiness bits.
fn bits(event: &Event) -> u32 {
    let mut bits = 0;
    let mut add = |holds: bool, bit: u32| bits |= if holds { bit } else { 0 };
    add(event.is_readable(), READABLE);
    add(event.is_writable(), WRITABLE);
    add(event.is_read_closed(), READ_CLOSED);
    add(event.is_write_closed() && !is_only_error(event), WRITE_CLOSED);
    add(event.is_priority(), URGENT);
    // The next operation returns the error.
    add(event.is_error(), READABLE | WRITABLE);
    bits
}

/// Whether the system reports an error of a socket that is still open, for an earlier datagram for
/// example. mio reports such a socket as closed for writing, but a later write may block.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_only_error(event: &Event) -> bool {
    // A closed socket is also reported as closed for reading.
    event.is_error() && !event.is_read_closed()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_only_error(_: &Event) -> bool {
    false
}

/// A registered socket. Dropping it releases the slot.
#[derive(Debug)]
pub(crate) struct Registration {
    reactor: Arc<Reactor>,
    index: u32,
}

impl Registration {
    fn readiness(&self) -> Option<&Readiness> {
        self.reactor.slots.get(self.index)
    }

    pub(crate) fn reactor(&self) -> &Arc<Reactor> {
        &self.reactor
    }

    /// Waits until an operation is worth an attempt.
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
            None if self.reactor.is_driven() => Poll::Pending,
            None => {
                readiness.leave(&mut slot.0);
                Poll::Ready(Err(not_driven()))
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

    /// Records that this side has shut down writing, and wakes waiting writers, which fail. The
    /// system reports no event for a unix socket whose peer has no room.
    pub(crate) fn end_write(&self) {
        let mut woken = Vec::new();
        if let Some(readiness) = self.readiness() {
            readiness.set_write_closed(&mut woken);
        }
        woken.into_iter().for_each(guard::wake);
    }

    /// Ends the registration of a source that stays open. Does nothing if the descriptor was closed
    /// elsewhere and another socket has its number, which remains registered.
    pub(crate) fn deregister(&self, source: &mut (impl Source + ?Sized), fd: i32) {
        if let Some(selector) = self.reactor.selector.get() {
            // Fails if the descriptor was closed elsewhere, which ends the registration too.
            let deregister = || source.deregister(&selector.registry);
            let _ = self.reactor.slots.if_last(fd, self.index, deregister);
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.reactor.release(self.index);
        self.reactor.sources.fetch_sub(1, Relaxed);
    }
}

fn not_driven() -> io::Error {
    io::Error::other("no thread runs the runtime of the socket: call block_on on it")
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the runtime of the socket was dropped")
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

    /// A reactor that counts as polled.
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

    /// Waits for an event of a socket, and wakes the tasks that wait for it.
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
    fn an_event_wakes_the_waiting_task_and_stays_until_cleared() {
        let reactor = run();
        let (mut near, mut far) = pair();
        let (registration, is_first) = register(&reactor, &mut near).unwrap();
        assert!(is_first);
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut slot = WaitSlot::default();
        let mut poll = || registration.poll_ready(Direction::Read, &mut slot, &waker);
        let Poll::Ready(Ok(seen)) = poll() else { panic!("not ready after registration") };
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
    fn a_late_event_of_a_closed_socket_wakes_no_task() {
        let reactor = run();
        let (mut near, mut far) = pair();
        let (mut other, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        let (stays, is_first) = register(&reactor, &mut other).unwrap();
        assert!(!is_first);
        far.write_all(b"x").unwrap();
        let mut driving = reactor.enter().unwrap();
        assert!(reactor.enter().is_none(), "two threads entered");
        while !driving.has_events() {
            driving.wait(None);
        }
        let index = registration.index;
        drop(registration);
        // Another socket takes the slot meanwhile.
        let (mut third, _third_far) = pair();
        let (registration, _) = register(&reactor, &mut third).unwrap();
        assert_eq!(registration.index, index);
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
    fn an_interrupt_ends_the_wait_and_is_no_event() {
        let reactor = run();
        let (mut near, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let mut driving = reactor.enter().unwrap();
                // The first event reports that the socket is writable.
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
    fn closing_the_reactor_ends_every_wait() {
        let reactor = run();
        let (mut near, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        let mut slot = WaitSlot::default();
        let Poll::Ready(Ok(seen)) =
            registration.poll_ready(Direction::Read, &mut slot, Waker::noop())
        else {
            panic!("not ready after registration");
        };
        registration.clear_ready(Direction::Read, seen);
        assert!(registration.poll_ready(Direction::Read, &mut slot, Waker::noop()).is_pending());
        assert_eq!(reactor.close().len(), 1);
        let poll = registration.poll_ready(Direction::Read, &mut slot, Waker::noop());
        assert!(matches!(poll, Poll::Ready(Err(_))));
        let (mut late, _far) = pair();
        assert!(register(&reactor, &mut late).is_err());
    }

    /// A third-party waker whose destructor panics.
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
    fn a_panic_in_the_destructor_of_a_waker_is_contained() {
        let reactor = run();
        let (mut near, _far) = pair();
        let (registration, _) = register(&reactor, &mut near).unwrap();
        let Poll::Ready(Ok(seen)) =
            registration.poll_ready(Direction::Read, &mut WaitSlot::default(), Waker::noop())
        else {
            panic!("not ready after registration");
        };
        registration.clear_ready(Direction::Read, seen);
        let mut slots = [WaitSlot::default(), WaitSlot::default()];
        for slot in &mut slots {
            // The reactor has the last reference.
            let waker = Waker::from(Arc::new(Bad));
            assert!(registration.poll_ready(Direction::Read, slot, &waker).is_pending());
        }
        registration.leave(&mut slots[0]);
        // The other wait was leaked.
        drop(registration);
        assert!(!reactor.has_sources());
    }
}
