//! Connections: what a task does at one end of one.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use asx_kernel::rng::mix64;
use asx_runtime::footprint;
use asx_runtime::net::{Address, Direction, SocketSetup};

use super::names::{meant, plain, seen_from};
use super::network::{Carrier, Event, Network, Sock, What, unsupported};
use super::pipe::{Mark, Pipe};
use super::ports::{Bound, Protocol};
use super::settings::Settings;

/// After this time a sender whose bytes nobody takes gives its peer up, as Linux does.
const GIVE_UP: Duration = Duration::from_secs(15 * 60);

/// Buffers that are read or written at once: what Linux takes.
const MOST_BUFFERS: usize = 1024;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Connecting,
    Failed,
    Established,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) peer: Address,
    pub(super) incoming: usize,
    pub(super) outgoing: usize,
    pub(super) phase: Phase,
    pub(super) shut_read: bool,
    pub(super) shut_write: bool,
    /// The peer, a unix socket, reads no more: a write is told so, but nobody is woken for it.
    pub(super) is_refused: bool,
    pub(super) is_reset: bool,
}

impl Network {
    pub(super) fn stream(&self, id: usize) -> io::Result<&Stream> {
        match &self.sockets[id].what {
            What::Stream(stream) => Ok(stream),
            What::Listener(_) | What::Datagrams(_) => Err(unsupported()),
        }
    }

    pub(super) fn stream_mut(&mut self, id: usize) -> Option<&mut Stream> {
        match &mut self.sockets[id].what {
            What::Stream(stream) => Some(stream),
            What::Listener(_) | What::Datagrams(_) => None,
        }
    }

    /// Adds the two directions of a connection: the number of the first.
    pub(super) fn add_pipes(&mut self, there: Pipe, back: Pipe) -> usize {
        let first = self.pipes.len();
        for pipe in [there, back] {
            if !pipe.is_direct {
                self.carriers.insert(pipe.path, Carrier::Pipe(self.pipes.len()));
            }
            self.pipes.push(pipe);
        }
        first
    }

    /// A socket that begins to connect.
    pub(super) fn connect(&mut self, to: &Address, setup: &SocketSetup) -> io::Result<usize> {
        match to {
            Address::Inet(to) => self.connect_tcp(*to, setup),
            Address::Unix(Some(path)) => self.connect_unix(path, setup),
            Address::Unix(None) => Err(ErrorKind::InvalidInput.into()),
        }
    }

    fn connect_tcp(&mut self, to: SocketAddr, setup: &SocketSetup) -> io::Result<usize> {
        let settings = Settings::of_inet(&setup.options, Protocol::Tcp, to.is_ipv6())?;
        let to = meant(to);
        let service = plain(to);
        if !self.names.is_local(service.ip()) {
            return Err(ErrorKind::NetworkUnreachable.into());
        }
        let name = self.new_name();
        let (mut ip, port) = match &setup.local {
            Some(Address::Inet(at)) if at.is_ipv4() != to.is_ipv4() => {
                return Err(ErrorKind::InvalidInput.into());
            }
            Some(Address::Inet(at)) if at.ip().is_unspecified() => (seen_from(to.ip()), at.port()),
            Some(Address::Inet(at)) => (at.ip(), at.port()),
            Some(Address::Unix(_)) | None => (seen_from(to.ip()), 0),
        };
        if !self.names.is_local(ip.to_canonical()) {
            return Err(ErrorKind::AddrNotAvailable.into());
        }
        if ip.is_unspecified() {
            ip = seen_from(to.ip());
        }
        let socket = self.sockets.len();
        let Settings { reuse_address, reuse_port, only_v6, .. } = settings;
        let bound = Bound { socket, ip, listens: false, reuse_address, reuse_port, only_v6 };
        let port = self.ports.bind(Protocol::Tcp, port, bound, name)?;
        let local = Address::Inet(SocketAddr::new(ip, port));
        let peer = Address::Inet(to);
        let mut there = Pipe::new(mix64(name ^ 1), local.clone(), peer.clone(), false);
        let mut back = Pipe::new(mix64(name ^ 2), peer.clone(), local.clone(), false);
        (there.service, there.towards, there.syn) = (Some(service), true, true);
        (there.from, there.send_room) = (Some(socket), settings.send_buffer);
        (back.service, back.to, back.recv_room) =
            (Some(service), Some(socket), settings.recv_buffer);
        let outgoing = self.add_pipes(there, back);
        let stream = Stream::new(peer, outgoing + 1, outgoing, Phase::Connecting);
        self.add(Sock::new(name, What::Stream(stream), local, settings));
        self.refresh(outgoing);
        Ok(socket)
    }

    /// Two sockets that are connected, and whose bytes arrive at once: unix sockets. The first has
    /// no name, the second has that of a listener, if there is one.
    pub(super) fn connect_directly(&mut self, to: Address, settings: Settings) -> [usize; 2] {
        let name = self.new_name();
        let unnamed = Address::Unix(None);
        let pipe = |nth: u64, from: &Address, to: &Address| {
            let mut pipe = Pipe::new(mix64(name ^ nth), from.clone(), to.clone(), true);
            (pipe.send_room, pipe.recv_room) = (settings.send_buffer, settings.recv_buffer);
            pipe
        };
        let mut there = pipe(1, &unnamed, &to);
        let mut back = pipe(2, &to, &unnamed);
        let one = self.sockets.len();
        let other = one + 1;
        (there.from, there.to) = (Some(one), Some(other));
        (back.from, back.to) = (Some(other), Some(one));
        let first = self.add_pipes(there, back);
        let stream = Stream::new(to.clone(), first + 1, first, Phase::Established);
        self.add(Sock::new(name, What::Stream(stream), unnamed.clone(), settings));
        let stream = Stream::new(unnamed, first, first + 1, Phase::Established);
        self.add(Sock::new(mix64(name ^ 3), What::Stream(stream), to, settings));
        [one, other]
    }

    pub(super) fn is_stream_ready(&self, id: usize, stream: &Stream, direction: Direction) -> bool {
        let pipe = match direction {
            Direction::Read => {
                let pipe = &self.pipes[stream.incoming];
                footprint::touch(pipe.received, true);
                pipe
            }
            Direction::Write => {
                let pipe = &self.pipes[stream.outgoing];
                footprint::touch(pipe.sent, true);
                pipe
            }
        };
        let is_over =
            stream.phase == Phase::Failed || stream.is_reset || self.sockets[id].error.is_some();
        match direction {
            _ if stream.phase == Phase::Connecting => false,
            _ if is_over => true,
            Direction::Read => {
                !pipe.buffer.is_empty() || pipe.fin == Mark::Arrived || stream.shut_read
            }
            Direction::Write => {
                let has_room = pipe.queue.len() < pipe.send_room;
                let is_left = self.is_left_by_reader(pipe) || self.is_hung_up(stream);
                has_room || stream.shut_write || is_left
            }
        }
    }

    /// Whether both directions of a unix socket are over, by whomever.
    fn is_hung_up(&self, stream: &Stream) -> bool {
        let reads_no_more = stream.shut_read || self.pipes[stream.incoming].fin != Mark::None;
        stream.is_refused && reads_no_more
    }

    /// Whether what is written goes nowhere, and its writer knows at once.
    fn is_left_by_reader(&self, pipe: &Pipe) -> bool {
        pipe.is_direct && !self.is_read(pipe)
    }

    /// Whether the receiver of a pipe is open, or not there yet.
    pub(super) fn is_read(&self, pipe: &Pipe) -> bool {
        pipe.to.is_none_or(|to| self.sockets[to].is_open)
    }

    /// Takes bytes that have come, or looks at them.
    pub(super) fn read(
        &mut self,
        id: usize,
        buffers: &mut [IoSliceMut<'_>],
        peeks: bool,
    ) -> io::Result<usize> {
        self.look_at(id);
        let most = buffers.len().min(MOST_BUFFERS);
        let buffers = &mut buffers[..most];
        let stream = self.stream(id)?.clone();
        let at = stream.incoming;
        let pipe = &mut self.pipes[at];
        footprint::touch(pipe.received, true);
        let is_asked = buffers.iter().any(|buffer| !buffer.is_empty());
        let had_room = pipe.free() > 0;
        let count = pipe.copy(buffers);
        if count > 0 {
            if !peeks {
                pipe.buffer.drain(..count);
                if pipe.is_chunked {
                    footprint::touch(pipe.sent, false);
                    self.release_pipe(at);
                } else if pipe.is_direct || !had_room {
                    footprint::touch(pipe.sent, false);
                    self.refresh(at);
                }
            }
            return Ok(count);
        }
        let has_bytes = !pipe.buffer.is_empty();
        // What went wrong goes before the end at a unix socket.
        if has_bytes || pipe.fin == Mark::Arrived && !pipe.is_direct {
            return Ok(0);
        }
        let has_ended = pipe.fin == Mark::Arrived;
        if let Some(error) = self.take_error(id) {
            return Err(error);
        }
        match stream.phase {
            Phase::Failed => Err(ErrorKind::NotConnected.into()),
            _ if has_ended => Ok(0),
            Phase::Established if stream.is_reset || stream.shut_read || !is_asked => Ok(0),
            Phase::Established | Phase::Connecting => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Gives bytes to be sent.
    pub(super) fn write(&mut self, id: usize, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.look_at(id);
        let buffers = &buffers[..buffers.len().min(MOST_BUFFERS)];
        let stream = self.stream(id)?.clone();
        if stream.phase == Phase::Connecting {
            return Err(ErrorKind::WouldBlock.into());
        }
        let at = stream.outgoing;
        let is_left = stream.is_refused || self.is_left_by_reader(&self.pipes[at]);
        if !is_left && let Some(error) = self.take_error(id) {
            return Err(error);
        }
        let is_over = stream.is_reset || stream.shut_write || stream.phase == Phase::Failed;
        if is_over || is_left {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let pipe = &mut self.pipes[at];
        footprint::touch(pipe.sent, true);
        let was_empty = pipe.queue.is_empty();
        let is_asked = buffers.iter().any(|buffer| !buffer.is_empty());
        let count = pipe.push(buffers);
        if count == 0 && is_asked {
            return Err(ErrorKind::WouldBlock.into());
        }
        if count > 0 && (was_empty || pipe.is_direct) {
            footprint::touch(pipe.received, pipe.is_direct);
            self.refresh(at);
            self.expect_answer(at);
        }
        Ok(count)
    }

    /// If what was sent does not get through, its sender gives up some time.
    pub(super) fn expect_answer(&mut self, at: usize) {
        let pipe = &mut self.pipes[at];
        let waits = pipe.is_dead && !pipe.gives_up && !pipe.queue.is_empty();
        if let (true, Some(from)) = (waits, pipe.from) {
            pipe.gives_up = true;
            let time = self.now() + GIVE_UP;
            self.events.push((time, Event::GiveUp(from)));
        }
    }

    /// Ends one direction, or both.
    pub(super) fn shutdown(&mut self, id: usize, how: Shutdown) -> io::Result<()> {
        self.look_at(id);
        if !self.is_connected(id)? {
            return Err(ErrorKind::NotConnected.into());
        }
        self.change(id);
        self.note_closer(id);
        let Stream { incoming, outgoing, .. } = *self.stream(id)?;
        if how != Shutdown::Read {
            if let Some(stream) = self.stream_mut(id) {
                stream.shut_write = true;
            }
            self.finish(outgoing);
            self.wake(id, Direction::Write);
        }
        if how != Shutdown::Write {
            if let Some(stream) = self.stream_mut(id) {
                stream.shut_read = true;
            }
            self.wake(id, Direction::Read);
            // The peer of a unix socket cannot write from now on.
            let pipe = &self.pipes[incoming];
            if let (true, Some(peer)) = (pipe.is_direct, pipe.from) {
                self.change(peer);
                if let Some(stream) = self.stream_mut(peer) {
                    stream.is_refused = true;
                }
            }
        }
        for end in [Some(id), self.pipes[incoming].from].into_iter().flatten() {
            self.wake_if_hung_up(end);
        }
        Ok(())
    }

    /// One that waits for room at a unix socket is told when both directions are over: for those
    /// who poll, Linux has no word for less.
    fn wake_if_hung_up(&mut self, id: usize) {
        if self.stream(id).is_ok_and(|stream| self.is_hung_up(stream)) {
            self.wake(id, Direction::Write);
        }
    }

    /// Whether a connection is there, and not over in both directions. A unix socket has its peer
    /// for good.
    pub(super) fn is_connected(&self, id: usize) -> io::Result<bool> {
        let stream = self.stream(id)?;
        let [incoming, outgoing] = [stream.incoming, stream.outgoing].map(|at| &self.pipes[at]);
        footprint::touch(incoming.received, false);
        let ends = [incoming, outgoing].map(|pipe| pipe.fin == Mark::Arrived);
        let is_over = stream.is_reset || ends == [true; 2];
        Ok(stream.phase == Phase::Established && (incoming.is_direct || !is_over))
    }

    /// An end is sent, behind all bytes.
    fn finish(&mut self, at: usize) {
        let pipe = &mut self.pipes[at];
        if pipe.fin == Mark::None {
            footprint::touch(pipe.sent, true);
            footprint::touch(pipe.received, pipe.is_direct);
            pipe.fin = Mark::Sent;
            self.refresh(at);
        }
    }

    /// A reset is sent, behind all bytes that are on their way. Those for which there was no room
    /// at the receiver, and an end behind them, are still with the sender, and are lost; but not
    /// those of a unix socket, which are the receiver's as soon as they are written.
    pub(super) fn reset(&mut self, at: usize) {
        let pipe = &mut self.pipes[at];
        if pipe.rst == Mark::None {
            footprint::touch(pipe.sent, true);
            footprint::touch(pipe.received, pipe.is_direct);
            let room = pipe.free();
            if !pipe.is_direct && pipe.queue.len() > room {
                pipe.queue.truncate(room);
                pipe.fin = Mark::None;
            }
            pipe.rst = Mark::Sent;
            self.refresh(at);
        }
    }

    /// An end of a connection is closed. If not all that has come was read, or if that is how it
    /// lingers, the peer is told by a reset, else by an end.
    pub(super) fn close_stream(&mut self, id: usize) {
        let linger = self.sockets[id].settings.linger;
        let Ok(stream) = self.stream(id).cloned() else { return };
        let Stream { incoming, outgoing, phase, is_reset, .. } = stream;
        footprint::touch(self.pipes[incoming].received, true);
        match phase {
            Phase::Connecting => self.kill(outgoing),
            Phase::Established if !is_reset => {
                let is_read = self.pipes[incoming].buffer.is_empty();
                match is_read && linger != Some(Duration::ZERO) {
                    true => self.finish(outgoing),
                    false => self.reset(outgoing),
                }
            }
            Phase::Failed | Phase::Established => {}
        }
        footprint::touch(self.pipes[incoming].sent, false);
        self.refresh(incoming);
        // Who writes to a unix socket learns of it at once.
        if let (true, Some(peer)) = (self.pipes[incoming].is_direct, self.pipes[incoming].from) {
            self.change(peer);
            self.wake(peer, Direction::Write);
        }
    }
}

impl Stream {
    pub(super) fn new(peer: Address, incoming: usize, outgoing: usize, phase: Phase) -> Stream {
        Stream {
            peer,
            incoming,
            outgoing,
            phase,
            shut_read: false,
            shut_write: false,
            is_refused: false,
            is_reset: false,
        }
    }
}
