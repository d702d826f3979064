//! Sockets for datagrams.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;

use asx_kernel::rng::mix64;
use asx_kernel::time::Time;
use asx_runtime::footprint;
use asx_runtime::net::{Address, Direction, SocketOption, SocketSetup};

use super::mishap::Mishap;
use super::names::{as_v6, meant, plain, seen_from};
use super::network::{Carrier, Cut, Event, Network, Sock, What, unsupported};
use super::ports::Protocol;
use super::settings::{Settings, UNIX_DATAGRAMS};

/// The longest datagram of UDP.
const LONGEST: usize = 65_507;

/// What a datagram of a unix socket takes in the send buffer besides its bytes.
const UNIX_OVERHEAD: usize = 32;

/// How many datagrams may wait at a unix socket: what Linux allows.
const MOST_UNIX: usize = 10;

/// A name is that of a socket of another kind; a datagram is too long; no address is given; the
/// address is of another family.
#[cfg(target_os = "linux")]
pub(super) mod errors {
    pub(in super::super) const EPROTOTYPE: i32 = 91;
    pub(super) const EMSGSIZE: i32 = 90;
    pub(super) const EDESTADDRREQ: i32 = 89;
    pub(super) const EAFNOSUPPORT: i32 = 97;
}
#[cfg(not(target_os = "linux"))]
pub(super) mod errors {
    pub(in super::super) const EPROTOTYPE: i32 = 41;
    pub(super) const EMSGSIZE: i32 = 40;
    pub(super) const EDESTADDRREQ: i32 = 39;
    pub(super) const EAFNOSUPPORT: i32 = 47;
}

/// A socket for datagrams.
#[derive(Debug)]
pub(super) struct Datagrams {
    /// What stands for those that have come in footprints.
    pub(super) received: u64,
    queue: VecDeque<Datagram>,
    bytes: usize,
    pub(super) peer: Option<Address>,
    /// The peer of a unix socket.
    peer_socket: Option<usize>,
    /// Whether there was no room at the unix socket it last sent to; and who waits for room here.
    pub(super) is_blocked: bool,
    blocked: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Datagram {
    bytes: Vec<u8>,
    from: Address,
}

/// What one socket of UDP sends to one address.
#[derive(Debug)]
pub(super) struct Flow {
    /// The carrier. Even: see [`is_carrier`](super::is_carrier).
    pub(super) path: u64,
    sent: u64,
    pub(super) from: usize,
    pub(super) to: SocketAddr,
    pub(super) queue: VecDeque<Vec<u8>>,
    /// Those that come late; others do not wait for them.
    late: VecDeque<(Time, Vec<u8>)>,
    /// Datagrams that have come, or were lost.
    pub(super) delivered: u64,
    is_enabled: bool,
}

impl Datagrams {
    pub(super) fn is_readable(&self) -> bool {
        !self.queue.is_empty()
    }

    fn new(name: u64) -> Datagrams {
        Datagrams {
            received: mix64(name ^ 0x64),
            queue: VecDeque::new(),
            bytes: 0,
            peer: None,
            peer_socket: None,
            is_blocked: false,
            blocked: Vec::new(),
        }
    }
}

/// A number for an address.
fn hash(to: SocketAddr) -> u64 {
    let bytes = match to.ip() {
        std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(ip) => ip.octets(),
    };
    bytes.iter().fold(to.port().into(), |hash, byte| mix64(hash ^ u64::from(*byte)))
}

impl Network {
    fn datagrams_of(&self, id: usize) -> io::Result<&Datagrams> {
        match &self.sockets[id].what {
            What::Datagrams(datagrams) => Ok(datagrams),
            What::Listener(_) | What::Stream(_) => Err(unsupported()),
        }
    }

    fn datagrams_mut(&mut self, id: usize) -> io::Result<&mut Datagrams> {
        match &mut self.sockets[id].what {
            What::Datagrams(datagrams) => Ok(datagrams),
            What::Listener(_) | What::Stream(_) => Err(unsupported()),
        }
    }

    pub(super) fn is_datagrams(&self, id: usize) -> bool {
        self.datagrams_of(id).is_ok()
    }

    /// A socket for datagrams.
    pub(super) fn datagrams(&mut self, at: &Address, setup: &SocketSetup) -> io::Result<usize> {
        let mut settings = match at {
            Address::Inet(at) => Settings::of_inet(&setup.options, Protocol::Udp, at.is_ipv6())?,
            Address::Unix(_) => Settings::of_unix(&setup.options)?,
        };
        let is_set = |option: &SocketOption| matches!(option, SocketOption::SendBuffer(_));
        if matches!(at, Address::Unix(_)) && !setup.options.iter().any(is_set) {
            settings.send_buffer = UNIX_DATAGRAMS;
        }
        let name = self.new_name();
        let socket = self.sockets.len();
        let local = match at {
            Address::Inet(at) => self.bind(Protocol::Udp, *at, settings, socket, name)?,
            Address::Unix(Some(path)) => {
                self.ports.bind_path(path, socket)?;
                at.clone()
            }
            Address::Unix(None) => Address::Unix(None),
        };
        let what = What::Datagrams(Datagrams::new(name));
        Ok(self.add(Sock::new(name, what, local, settings)))
    }

    /// Two unix sockets that are connected to each other.
    pub(super) fn datagram_pair(&mut self) -> io::Result<[usize; 2]> {
        let unnamed = Address::Unix(None);
        let setup = SocketSetup::default();
        let one = self.datagrams(&unnamed, &setup)?;
        let other = self.datagrams(&unnamed, &setup)?;
        for (id, peer) in [(one, other), (other, one)] {
            let datagrams = self.datagrams_mut(id)?;
            (datagrams.peer, datagrams.peer_socket) = (Some(unnamed.clone()), Some(peer));
        }
        Ok([one, other])
    }

    /// Binds a socket to one peer.
    pub(super) fn connect_to(&mut self, id: usize, to: &Address) -> io::Result<()> {
        self.datagrams_of(id)?;
        self.change(id);
        let peer_socket = match (to, &self.sockets[id].local) {
            (Address::Inet(to), Address::Inet(local)) => {
                let to = meant(*to);
                if local.is_ipv4() && to.is_ipv6() {
                    return Err(io::Error::from_raw_os_error(errors::EAFNOSUPPORT));
                }
                if local.ip().is_unspecified() {
                    let local = SocketAddr::new(seen_from(to.ip()), local.port());
                    self.sockets[id].local = Address::Inet(local);
                }
                None
            }
            (Address::Unix(Some(path)), Address::Unix(_)) => Some(self.unix_receiver(id, path)?),
            _ => return Err(ErrorKind::InvalidInput.into()),
        };
        self.leave_peer(id, peer_socket)?;
        let datagrams = self.datagrams_mut(id)?;
        let peer = to.inet().map_or_else(|| to.clone(), |to| Address::Inet(meant(to)));
        (datagrams.peer, datagrams.peer_socket) = (Some(peer), peer_socket);
        Ok(())
    }

    /// A unix socket is bound to another peer than before, or to none: what it has not read yet is
    /// lost, and the old peer is told, if it was bound to this one.
    fn leave_peer(&mut self, id: usize, new: Option<usize>) -> io::Result<()> {
        let datagrams = self.datagrams_mut(id)?;
        let Some(old) = datagrams.peer_socket.filter(|old| Some(*old) != new) else {
            return Ok(());
        };
        footprint::touch(datagrams.received, true);
        if datagrams.queue.is_empty() {
            return Ok(());
        }
        datagrams.queue.clear();
        datagrams.bytes = 0;
        self.unblock(id);
        let was_bound_back = self.datagrams_of(old)?.peer_socket == Some(id) && old != id;
        if self.sockets[old].is_open && was_bound_back {
            self.change(old);
            self.sockets[old].error = Some(ErrorKind::ConnectionReset);
            self.wake_all(old);
        }
        Ok(())
    }

    /// The socket for datagrams at a name, to which this one may send.
    fn unix_receiver(&self, id: usize, path: &Path) -> io::Result<usize> {
        let receiver = self.ports.at_path(path)?;
        let wrong_kind = |_| io::Error::from_raw_os_error(errors::EPROTOTYPE);
        self.datagrams_of(receiver).map_err(wrong_kind)?;
        self.check_may_send(id, receiver)?;
        Ok(receiver)
    }

    /// A unix socket that is bound to a peer takes nothing of others.
    fn check_may_send(&self, id: usize, receiver: usize) -> io::Result<()> {
        self.look_at(receiver);
        match self.datagrams_of(receiver)?.peer_socket {
            // One that is closed is bound to nobody.
            Some(peer) if peer != id && self.sockets[receiver].is_open => {
                Err(ErrorKind::PermissionDenied.into())
            }
            _ => Ok(()),
        }
    }

    /// Sends a datagram: to the peer if no address is given.
    pub(super) fn send(
        &mut self,
        id: usize,
        bytes: &[u8],
        to: Option<&Address>,
    ) -> io::Result<usize> {
        self.look_at(id);
        let datagrams = self.datagrams_of(id)?;
        match &self.sockets[id].local {
            Address::Inet(local) => {
                let is_given = to.is_some();
                let to = to.or(datagrams.peer.as_ref()).and_then(Address::inet);
                let Some(to) = to else {
                    return Err(io::Error::from_raw_os_error(errors::EDESTADDRREQ));
                };
                if local.is_ipv4() != to.is_ipv4() && local.is_ipv4() {
                    return Err(io::Error::from_raw_os_error(errors::EAFNOSUPPORT));
                }
                if is_given && to.port() == 0 {
                    return Err(ErrorKind::InvalidInput.into());
                }
                self.send_udp(id, bytes, plain(meant(to)))
            }
            Address::Unix(_) => {
                let peer = datagrams.peer_socket;
                if to.is_none() && peer.is_none() {
                    return Err(ErrorKind::NotConnected.into());
                }
                if bytes.len() > self.sockets[id].settings.send_buffer - UNIX_OVERHEAD {
                    return Err(io::Error::from_raw_os_error(errors::EMSGSIZE));
                }
                if let Some(error) = self.take_error(id) {
                    return Err(error);
                }
                let receiver = match to {
                    Some(Address::Unix(Some(path))) => self.unix_receiver(id, path)?,
                    Some(_) => return Err(ErrorKind::InvalidInput.into()),
                    None => peer.ok_or(ErrorKind::NotConnected)?,
                };
                self.check_may_send(id, receiver)?;
                self.send_unix(id, bytes, receiver)
            }
        }
    }

    fn send_udp(&mut self, id: usize, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        if bytes.len() > LONGEST {
            return Err(io::Error::from_raw_os_error(errors::EMSGSIZE));
        }
        let is_broadcast = to.ip() == std::net::Ipv4Addr::BROADCAST;
        if is_broadcast && !self.sockets[id].settings.broadcast {
            return Err(ErrorKind::PermissionDenied.into());
        }
        if !self.names.is_local(to.ip()) {
            return Err(ErrorKind::NetworkUnreachable.into());
        }
        // What could not be sent in any case does not tell what went wrong before.
        if let Some(error) = self.take_error(id) {
            return Err(error);
        }
        let at = self.flow(id, to);
        let flow = &mut self.flows[at];
        footprint::touch(flow.sent, true);
        flow.queue.push_back(bytes.to_vec());
        self.refresh_flow(at);
        Ok(bytes.len())
    }

    /// What a socket sends to an address.
    fn flow(&mut self, from: usize, to: SocketAddr) -> usize {
        let name = mix64(self.sockets[from].name ^ hash(to));
        let path = mix64(name) & !1;
        if let Some(Carrier::Flow(at)) = self.carriers.get(&path) {
            return *at;
        }
        let at = self.flows.len();
        self.carriers.insert(path, Carrier::Flow(at));
        let sent = mix64(name ^ 0x73);
        self.flows.push(Flow {
            path,
            sent,
            from,
            to,
            queue: VecDeque::new(),
            late: VecDeque::new(),
            delivered: 0,
            is_enabled: false,
        });
        at
    }

    /// What was late in a flow comes now.
    pub(super) fn release_flow(&mut self, at: usize, now: Time) {
        let flow = &mut self.flows[at];
        footprint::touch(flow.sent, true);
        while let Some(due) = flow.late.iter().position(|(time, _)| *time <= now) {
            flow.queue.extend(flow.late.remove(due).map(|(_, bytes)| bytes));
        }
        self.refresh_flow(at);
    }

    /// Says whether the carrier of a flow can run, if that has changed.
    pub(super) fn refresh_flow(&mut self, at: usize) {
        let flow = &self.flows[at];
        let can_run = !flow.queue.is_empty();
        if can_run != flow.is_enabled {
            self.enable(flow.path, can_run);
            self.flows[at].is_enabled = can_run;
        }
    }

    /// A step of the carrier of a flow: one datagram comes, or is lost.
    pub(super) fn deliver_flow(&mut self, at: usize) {
        let flow = &mut self.flows[at];
        flow.is_enabled = false;
        footprint::touch(flow.sent, true);
        let to = flow.to;
        match self.datagram_mishap(at) {
            Some(Mishap::Delay(time)) => {
                let time = self.now() + time;
                let flow = &mut self.flows[at];
                let late = flow.queue.pop_front().map(|bytes| (time, bytes));
                flow.late.extend(late);
                self.events.push((time, Event::Release(Carrier::Flow(at))));
                return self.refresh_flow(at);
            }
            Some(Mishap::Partition(time)) => {
                self.cut_off(Cut { service: to, towards: true }, time);
            }
            Some(Mishap::Drop) => {
                self.flows[at].queue.pop_front();
                self.flows[at].delivered += 1;
                return self.refresh_flow(at);
            }
            Some(Mishap::Duplicate) => {
                let copy = self.flows[at].queue.front().cloned();
                self.flows[at].queue.extend(copy);
            }
            Some(Mishap::Reorder) => self.flows[at].queue.swap(0, 1),
            _ => {}
        }
        let Some(bytes) = self.flows[at].queue.pop_front() else { return };
        self.flows[at].delivered += 1;
        if !self.is_unreachable(to) {
            self.receive(self.flows[at].from, to, bytes);
        }
        self.refresh_flow(at);
    }

    /// A datagram has come to an address. If nobody is there, a sender that is bound to that
    /// address is told.
    fn receive(&mut self, from: usize, to: SocketAddr, bytes: Vec<u8>) {
        let Some(local) = self.sockets[from].local.inet() else { return };
        let sender = match local.ip().is_unspecified() {
            true => SocketAddr::new(seen_from(to.ip()), local.port()),
            false => plain(local),
        };
        let there = self.ports.receiver(to);
        let takes = |id: &usize| {
            let peer = self.datagrams_of(*id).ok().and_then(|it| it.peer.as_ref()?.inet());
            peer.is_none_or(|peer| plain(peer) == sender)
        };
        let Some(id) = there.filter(takes) else {
            let peer = self.datagrams_of(from).ok().and_then(|it| it.peer.as_ref()?.inet());
            if self.sockets[from].is_open && peer.map(plain) == Some(to) {
                self.change(from);
                self.sockets[from].error = Some(ErrorKind::ConnectionRefused);
                self.wake_all(from);
            }
            return;
        };
        let is_v6 = self.sockets[id].local.inet().is_some_and(|at| at.is_ipv6());
        let sender = Address::Inet(if is_v6 { as_v6(sender) } else { sender });
        let most = self.sockets[id].settings.recv_buffer;
        let Ok(datagrams) = self.datagrams_mut(id) else { return };
        footprint::touch(datagrams.received, true);
        if datagrams.bytes + bytes.len() > most {
            return;
        }
        datagrams.bytes += bytes.len();
        datagrams.queue.push_back(Datagram { bytes, from: sender });
        self.wake(id, Direction::Read);
    }

    fn send_unix(&mut self, id: usize, bytes: &[u8], receiver: usize) -> io::Result<usize> {
        if !self.sockets[receiver].is_open {
            self.look_at(receiver);
            // Who was bound to it is told once, and has no peer any more.
            if self.datagrams_of(id)?.peer_socket == Some(receiver) {
                self.change(id);
                self.leave_peer(id, None)?;
                let datagrams = self.datagrams_mut(id)?;
                (datagrams.peer, datagrams.peer_socket) = (None, None);
            }
            return Err(ErrorKind::ConnectionRefused.into());
        }
        let from = self.sockets[id].local.clone();
        let there = self.datagrams_mut(receiver)?;
        footprint::touch(there.received, true);
        if there.queue.len() >= MOST_UNIX {
            there.blocked.push(id);
            self.datagrams_mut(id)?.is_blocked = true;
            return Err(ErrorKind::WouldBlock.into());
        }
        there.queue.push_back(Datagram { bytes: bytes.to_vec(), from });
        there.bytes += bytes.len();
        self.wake(receiver, Direction::Read);
        Ok(bytes.len())
    }

    /// Takes a datagram, or looks at it: how much of it fits, and where it comes from.
    pub(super) fn recv(
        &mut self,
        id: usize,
        buffer: &mut [u8],
        peeks: bool,
    ) -> io::Result<(usize, Address)> {
        if let Some(error) = self.take_error(id) {
            return Err(error);
        }
        let datagrams = self.datagrams_mut(id)?;
        footprint::touch(datagrams.received, true);
        let Some(datagram) = datagrams.queue.front() else {
            return Err(ErrorKind::WouldBlock.into());
        };
        let count = datagram.bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&datagram.bytes[..count]);
        let from = datagram.from.clone();
        if !peeks {
            datagrams.bytes -= datagram.bytes.len();
            datagrams.queue.pop_front();
            self.unblock(id);
        }
        Ok((count, from))
    }

    /// There is room for those who found none.
    fn unblock(&mut self, id: usize) {
        let Ok(datagrams) = self.datagrams_mut(id) else { return };
        for sender in std::mem::take(&mut datagrams.blocked) {
            if let Ok(datagrams) = self.datagrams_mut(sender) {
                datagrams.is_blocked = false;
                footprint::touch(datagrams.received, true);
            }
            self.wake(sender, Direction::Write);
        }
    }

    pub(super) fn close_datagrams(&mut self, id: usize) {
        self.unblock(id);
    }

    /// The peer of a socket for datagrams.
    pub(super) fn datagram_peer(&self, id: usize) -> io::Result<Address> {
        let peer = self.datagrams_of(id)?.peer.clone();
        // With the port 0 it is none, though it can be sent to.
        let peer = peer.filter(|peer| peer.inet().is_none_or(|at| at.port() != 0));
        peer.ok_or_else(|| ErrorKind::NotConnected.into())
    }
}
