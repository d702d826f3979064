//! The network and its sockets as the seam to the host has them.
//!
//! Everything is behind one lock. Wakers are called, and dropped, once it is released: they may be
//! anybody's.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

use asx_kernel::time::Time;
use asx_runtime::footprint;
use asx_runtime::net::{
    Address, Direction, Net, OptionName, ReadyEvent, Socket, SocketOption, SocketSetup, SocketWait,
    WaitSlot,
};
use asx_runtime::operation::guard;

use super::network::{Network, What, unsupported};
use super::settings::Settings;
use super::{Driver, Faults, Names};
use crate::explore::TaskPath;

/// The network of a lab.
pub(crate) struct SimNet {
    network: Mutex<Network>,
    /// For its sockets.
    me: Weak<SimNet>,
    /// Whether there is something in it: most programs have no sockets, and pay nothing for it.
    is_used: AtomicBool,
}

impl SimNet {
    pub(crate) fn new(driver: Weak<dyn Driver>) -> Arc<SimNet> {
        Arc::new_cyclic(|me| SimNet {
            network: Mutex::new(Network::new(driver)),
            me: me.clone(),
            is_used: AtomicBool::new(false),
        })
    }

    /// Says which hosts there are.
    pub(crate) fn set_names(&self, names: Names) {
        self.with(|network| network.names = names);
    }

    /// A run begins, in which so much may go wrong.
    pub(crate) fn start(&self, faults: Faults) {
        if !self.is_used.swap(!faults.is_none(), Relaxed) && faults.is_none() {
            return;
        }
        self.with(|network| network.start(faults));
    }

    /// A run is over: its sockets are of no use any more. What there was can still be told.
    pub(crate) fn end(&self) {
        if self.is_used.load(Relaxed) {
            self.lock().epoch += 1;
        }
    }

    /// A step of a carrier.
    pub(crate) fn deliver(&self, carrier: TaskPath) {
        self.with(|network| network.deliver(carrier.0));
    }

    /// When something comes with time next.
    pub(crate) fn next_event(&self) -> Option<Time> {
        if self.is_used.load(Relaxed) { self.lock().next_event() } else { None }
    }

    /// The time has come.
    pub(crate) fn fire(&self, now: Time) {
        if self.is_used.load(Relaxed) {
            self.with(|network| network.fire(now));
        }
    }

    /// The last socket operations of this run that failed, a line each.
    pub(crate) fn describe_failures(&self, called: &dyn Fn(u64) -> String) -> String {
        match self.is_used.load(Relaxed) {
            true => self.lock().describe_failures(called),
            false => String::new(),
        }
    }

    /// What a carrier of this run is called.
    pub(crate) fn called(&self, carrier: TaskPath) -> Option<String> {
        self.lock().called(carrier.0)
    }

    fn lock(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the network, and then wakes whom that concerns.
    fn with<R>(&self, f: impl FnOnce(&mut Network) -> R) -> R {
        let mut network = self.lock();
        let answer = f(&mut network);
        if network.woken.is_empty() && network.dropped.is_empty() {
            return answer;
        }
        let woken = std::mem::take(&mut network.woken);
        let dropped = std::mem::take(&mut network.dropped);
        drop(network);
        woken.into_iter().for_each(guard::wake);
        dropped.into_iter().for_each(guard::drop_waker);
        answer
    }

    /// Makes a socket of what `f` adds.
    fn open(
        &self,
        f: impl FnOnce(&mut Network) -> io::Result<usize>,
    ) -> io::Result<Arc<dyn Socket>> {
        self.is_used.store(true, Relaxed);
        let (id, epoch) = self.with(|network| (f(network), network.epoch));
        let id = id?;
        let net = self.me.upgrade().ok_or(ErrorKind::NotConnected)?;
        Ok(Arc::new(SimSocket { net, id, epoch }))
    }

    fn pair(
        &self,
        f: impl FnOnce(&mut Network) -> io::Result<[usize; 2]>,
    ) -> io::Result<[Arc<dyn Socket>; 2]> {
        let ids = self.with(f)?;
        let [one, other] = ids.map(|id| self.open(|_| Ok(id)));
        Ok([one?, other?])
    }
}

impl Net for SimNet {
    fn listen(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        at.check()?;
        self.open(|network| network.listen(at, setup))
    }

    fn connect(&self, to: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        to.check()?;
        self.open(|network| network.connect(to, setup))
    }

    fn datagrams(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>> {
        // One without a name is one that nobody can send to.
        if *at != Address::Unix(None) {
            at.check()?;
        }
        self.open(|network| network.datagrams(at, setup))
    }

    fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.with(|network| match network.lookup_mishap(host) {
            None => network.names.lookup(host, port),
            Some(_) => {
                let text = format!("the lookup of `{host}` failed for the time being");
                Err(io::Error::other(text))
            }
        })
    }

    fn try_lookup(&self, host: &str, port: u16) -> Option<io::Result<Vec<SocketAddr>>> {
        Some(self.lookup(host, port))
    }

    fn waits(&self) -> Vec<SocketWait> {
        self.lock().waits()
    }

    fn stream_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        self.pair(|network| Ok(network.connect_directly(Address::Unix(None), Settings::new(&[])?)))
    }

    fn datagram_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        self.pair(Network::datagram_pair)
    }
}

/// A socket of the network of a lab.
struct SimSocket {
    net: Arc<SimNet>,
    id: usize,
    epoch: u64,
}

impl SimSocket {
    fn with<R>(&self, f: impl FnOnce(&mut Network, usize) -> io::Result<R>) -> io::Result<R> {
        self.net.with(|network| match network.epoch == self.epoch {
            true => f(network, self.id),
            // Its run is over.
            false => Err(ErrorKind::NotConnected.into()),
        })
    }

    /// The same for an operation of a program, whose failure is noted.
    fn operate<R>(
        &self,
        operation: &'static str,
        f: impl FnOnce(&mut Network, usize) -> io::Result<R>,
    ) -> io::Result<R> {
        self.with(|network, id| {
            let result = f(network, id);
            network.note_result(id, operation, &result);
            result
        })
    }

    /// Reads from a stream, and notes its end.
    fn read_stream(&self, buffers: &mut [IoSliceMut<'_>], peeks: bool) -> io::Result<usize> {
        let is_asked = buffers.iter().any(|buffer| !buffer.is_empty());
        self.operate("read", |network, id| {
            let count = network.read(id, buffers, peeks)?;
            if count == 0 && is_asked {
                network.note_failure(id, "read", None);
            }
            Ok(count)
        })
    }

    fn is_datagrams(&self) -> bool {
        self.with(|network, id| Ok(network.is_datagrams(id))).unwrap_or(false)
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        let _after = footprint::operation();
        let _ = self.with(|network, id| {
            network.close(id);
            Ok(())
        });
    }
}

impl fmt::Debug for SimSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("SimSocket");
        if let Ok(local) = self.local_address() {
            text.field("local", &local);
        }
        if let Ok(peer) = self.peer_address() {
            text.field("peer", &peer);
        }
        text.finish_non_exhaustive()
    }
}

impl Socket for SimSocket {
    fn poll_ready(
        &self,
        direction: Direction,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Poll<io::Result<ReadyEvent>> {
        let is_ready = self.with(|network, id| {
            let is_untried = network.sockets[id].waiters.is_untried(direction);
            Ok(network.is_ready(id, direction) || is_untried)
        });
        match is_ready {
            Ok(true) => return Poll::Ready(Ok(ReadyEvent(0))),
            Ok(false) => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
        // To clone it may be somebody's code, and is not done under the lock.
        let waker = waker.clone();
        let _ = self.with(|network, id| {
            let old = network.sockets[id].waiters.add(direction, slot, waker);
            network.dropped.push(old);
            Ok(())
        });
        Poll::Pending
    }

    fn clear_ready(&self, direction: Direction, _: ReadyEvent) {
        let _ = self.with(|network, id| {
            network.sockets[id].waiters.tried(direction);
            Ok(())
        });
    }

    /// The simulated network has no urgent data: a short read has emptied the buffer.
    fn clear_after_short(&self, direction: Direction, seen: ReadyEvent) {
        self.clear_ready(direction, seen);
    }

    fn leave(&self, _: Direction, slot: &mut WaitSlot) {
        let _ = self.with(|network, id| {
            let old = network.sockets[id].waiters.remove(slot);
            network.dropped.push(old);
            Ok(())
        });
        slot.0 = 0;
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.is_datagrams() {
            true => self.recv_from(buffer).map(|(count, _)| count),
            false => self.read_stream(&mut [IoSliceMut::new(buffer)], false),
        }
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_stream(buffers, false)
    }

    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.is_datagrams() {
            true => self
                .operate("receive", |network, id| network.recv(id, buffer, true))
                .map(|(count, _)| count),
            false => self.read_stream(&mut [IoSliceMut::new(buffer)], true),
        }
    }

    fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        self.operate("write", |network, id| match network.is_datagrams(id) {
            true => network.send(id, buffer, None),
            false => network.write(id, &[IoSlice::new(buffer)]),
        })
    }

    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.operate("write", |network, id| network.write(id, buffers))
    }

    fn accept(&self) -> io::Result<(Arc<dyn Socket>, Address)> {
        let (child, from) = self.operate("accept", |network, id| network.accept(id))?;
        Ok((self.net.open(|_| Ok(child))?, from))
    }

    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)> {
        self.operate("receive", |network, id| network.recv(id, buffer, false))
    }

    fn send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize> {
        to.check()?;
        self.operate("send", |network, id| network.send(id, buffer, Some(to)))
    }

    fn connect_to(&self, to: &Address) -> io::Result<()> {
        to.check()?;
        self.with(|network, id| network.connect_to(id, to))
    }

    /// There is no point after this: the reference is dropped in the same step.
    fn release(&self) {
        footprint::point();
        let _ = self.with(|network, id| {
            network.drop_reference(id);
            Ok(())
        });
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let _after = footprint::operation();
        self.with(|network, id| network.shutdown(id, how))
    }

    fn local_address(&self) -> io::Result<Address> {
        self.with(|network, id| Ok(network.sockets[id].local.clone()))
    }

    fn peer_address(&self) -> io::Result<Address> {
        self.with(|network, id| {
            network.look_at(id);
            match &network.sockets[id].what {
                What::Stream(stream) if network.is_connected(id)? => Ok(stream.peer.clone()),
                What::Stream(_) | What::Listener(_) => Err(ErrorKind::NotConnected.into()),
                What::Datagrams(_) => network.datagram_peer(id),
            }
        })
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.with(|network, id| {
            let error = network.take_error(id);
            if let Some(error) = &error {
                network.note_failure(id, "connect", Some(error.kind()));
            }
            Ok(error)
        })
    }

    fn set_option(&self, option: SocketOption) -> io::Result<()> {
        let _after = footprint::operation();
        self.with(|network, id| {
            let is_unix = matches!(network.sockets[id].local, Address::Unix(_));
            if is_unix && matches!(option, SocketOption::NoDelay(_) | SocketOption::Ttl(_)) {
                return Err(unsupported());
            }
            network.set_option(id, option)
        })
    }

    fn option(&self, name: OptionName) -> io::Result<SocketOption> {
        let _after = footprint::operation();
        self.with(|network, id| {
            network.look_at(id);
            network.sockets[id].settings.get(name)
        })
    }
}
