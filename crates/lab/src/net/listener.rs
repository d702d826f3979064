//! Sockets that listen.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;

use asx_kernel::rng::mix64;
use asx_runtime::footprint;
use asx_runtime::net::{Address, Direction, SocketOption, SocketSetup};

use super::datagrams::errors::EPROTOTYPE;
use super::mishap::Mishap;
use super::names::as_v6;
use super::network::{Network, Sock, What, unsupported};
use super::ports::{Bound, Protocol};
use super::settings::Settings;
use super::stream::{Phase, Stream};

/// Connections that may wait to be accepted, unless that is set.
const BACKLOG: u32 = 1024;

/// There is no descriptor to spare.
const EMFILE: i32 = 24;

/// A socket that listens.
#[derive(Debug)]
pub(super) struct Listener {
    /// What stands for those who wait in footprints.
    pub(super) object: u64,
    /// The connections that wait to be accepted, and how many may.
    backlog: VecDeque<usize>,
    most: usize,
    /// Pipes of those for which there was no room.
    parked: Vec<usize>,
    /// Connections that were taken.
    accepted: u64,
}

impl Listener {
    pub(super) fn is_ready(&self) -> bool {
        !self.backlog.is_empty()
    }
}

impl Network {
    /// A socket that listens.
    pub(super) fn listen(&mut self, at: &Address, setup: &SocketSetup) -> io::Result<usize> {
        let mut settings = match at {
            Address::Inet(at) => Settings::of_inet(&setup.options, Protocol::Tcp, at.is_ipv6())?,
            Address::Unix(_) => Settings::of_unix(&setup.options)?,
        };
        let name = self.new_name();
        let socket = self.sockets.len();
        let local = match at {
            Address::Inet(at) => {
                let is_set =
                    |option: &SocketOption| matches!(option, SocketOption::ReuseAddress(_));
                settings.reuse_address |= !setup.options.iter().any(is_set);
                self.bind(Protocol::Tcp, *at, settings, socket, name)?
            }
            Address::Unix(Some(path)) => {
                self.ports.bind_path(path, socket)?;
                at.clone()
            }
            Address::Unix(None) => return Err(ErrorKind::InvalidInput.into()),
        };
        // As Linux counts.
        let most = setup.backlog.unwrap_or(BACKLOG) as usize + 1;
        let object = mix64(name ^ 0x6C);
        let backlog = VecDeque::new();
        let listener = Listener { object, backlog, most, parked: Vec::new(), accepted: 0 };
        Ok(self.add(Sock::new(name, What::Listener(listener), local, settings)))
    }

    /// Binds a socket to an address of the internet: to which.
    pub(super) fn bind(
        &mut self,
        protocol: Protocol,
        at: SocketAddr,
        settings: Settings,
        socket: usize,
        name: u64,
    ) -> io::Result<Address> {
        let ip = at.ip();
        if !ip.is_unspecified() && !self.names.is_local(ip.to_canonical()) {
            return Err(ErrorKind::AddrNotAvailable.into());
        }
        let Settings { reuse_address, reuse_port, only_v6, .. } = settings;
        let listens = protocol == Protocol::Tcp;
        let bound = Bound { socket, ip, listens, reuse_address, reuse_port, only_v6 };
        let port = self.ports.bind(protocol, at.port(), bound, name)?;
        Ok(Address::Inet(SocketAddr::new(ip, port)))
    }

    pub(super) fn listener_mut(&mut self, id: usize) -> io::Result<&mut Listener> {
        match &mut self.sockets[id].what {
            What::Listener(listener) => Ok(listener),
            What::Stream(_) | What::Datagrams(_) => Err(unsupported()),
        }
    }

    /// Takes a connection: the socket, and where it comes from.
    pub(super) fn accept(&mut self, id: usize) -> io::Result<(usize, Address)> {
        let listener = self.listener_mut(id)?;
        footprint::touch(listener.object, true);
        let Some(child) = listener.backlog.front().copied() else {
            return Err(ErrorKind::WouldBlock.into());
        };
        let place = (listener.object, listener.accepted);
        if self.accept_mishap(id, place) == Some(Mishap::Accept) {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        let listener = self.listener_mut(id)?;
        listener.backlog.pop_front();
        listener.accepted += 1;
        self.unpark(id);
        Ok((child, self.stream(child)?.peer.clone()))
    }

    /// There is room for those who came too late.
    fn unpark(&mut self, id: usize) {
        let Ok(listener) = self.listener_mut(id) else { return };
        for at in std::mem::take(&mut listener.parked) {
            self.pipes[at].is_parked = false;
            self.refresh(at);
        }
    }

    /// Somebody connects: whether there is room. If not, it waits until there is.
    pub(super) fn admit(&mut self, id: usize, pipe: usize) -> bool {
        let Ok(listener) = self.listener_mut(id) else { return false };
        footprint::touch(listener.object, true);
        let has_room = listener.backlog.len() < listener.most;
        if !has_room {
            listener.parked.push(pipe);
            self.pipes[pipe].is_parked = true;
        }
        has_room
    }

    /// The connection that a pipe asks for is there, and waits to be accepted.
    pub(super) fn establish(&mut self, id: usize, at: usize) {
        let settings = self.sockets[id].settings;
        let listens_at_v6 = self.sockets[id].local.inet().is_some_and(|at| at.is_ipv6());
        let shown = |address: &Address| match address {
            Address::Inet(at) if listens_at_v6 => Address::Inet(as_v6(*at)),
            other => other.clone(),
        };
        let Some(client) = self.pipes[at].from else { return };
        let name = mix64(self.sockets[client].name ^ 3);
        let peer = shown(&self.pipes[at].from_address);
        let local = shown(&self.pipes[at].to_address);
        let stream = Stream::new(peer, at, at + 1, Phase::Established);
        let child = self.add(Sock::new(name, What::Stream(stream), local, settings));
        let there = &mut self.pipes[at];
        (there.syn, there.to, there.recv_room) = (false, Some(child), settings.recv_buffer);
        let back = &mut self.pipes[at + 1];
        (back.from, back.send_room) = (Some(child), settings.send_buffer);
        self.change(client);
        if let Some(stream) = self.stream_mut(client) {
            stream.phase = Phase::Established;
        }
        self.wake_all(client);
        self.queue_up(id, child);
    }

    /// A connection waits to be accepted.
    fn queue_up(&mut self, id: usize, child: usize) {
        if let Ok(listener) = self.listener_mut(id) {
            footprint::touch(listener.object, true);
            listener.backlog.push_back(child);
        }
        self.wake(id, Direction::Read);
    }

    /// Connects to a name: at once, or not at all.
    pub(super) fn connect_unix(&mut self, path: &Path, setup: &SocketSetup) -> io::Result<usize> {
        let settings = Settings::of_unix(&setup.options)?;
        if matches!(setup.local, Some(Address::Inet(_))) {
            return Err(ErrorKind::InvalidInput.into());
        }
        let id = self.ports.at_path(path)?;
        if self.is_datagrams(id) {
            return Err(io::Error::from_raw_os_error(EPROTOTYPE));
        }
        let listener = self.listener_mut(id).map_err(|_| ErrorKind::ConnectionRefused)?;
        footprint::touch(listener.object, true);
        if listener.backlog.len() >= listener.most {
            return Err(ErrorKind::WouldBlock.into());
        }
        let local = self.sockets[id].local.clone();
        let [one, other] = self.connect_directly(local, settings);
        self.queue_up(id, other);
        Ok(one)
    }

    /// Nobody listens any more: those who wait to be accepted are reset, those who came too late
    /// are refused.
    pub(super) fn close_listener(&mut self, id: usize) {
        let Ok(listener) = self.listener_mut(id) else { return };
        footprint::touch(listener.object, true);
        for child in std::mem::take(&mut listener.backlog) {
            self.sockets[child].is_open = false;
            self.change(child);
            if let Ok(Stream { incoming, outgoing, .. }) = self.stream(child).cloned() {
                self.reset(outgoing);
                footprint::touch(self.pipes[incoming].received, true);
                self.refresh(incoming);
            }
        }
        self.unpark(id);
    }
}
