//! A step of a carrier: one segment, or one end, from where it was sent to where it is read.

use std::io::ErrorKind;
use std::time::Duration;

use asx_runtime::footprint;
use asx_runtime::net::Direction;

use super::failures::Cause;
use super::mishap::Mishap;
use super::names::plain;
use super::network::{Carrier, Cut, Event, Network};
use super::pipe::{Mark, Pipe};
use super::stream::Phase;

/// After this time one who connects and gets no answer gives up, as Linux does.
const CONNECT_GIVE_UP: Duration = Duration::from_secs(127);

/// The rest of a segment comes when the first piece was read, or after this time.
const AFTER_CHUNK: Duration = Duration::from_millis(1);

/// What stands for all cuts in footprints.
const CUTS: u64 = 0x6375_7473_206F_6620;

impl Network {
    /// A step of a carrier.
    pub(super) fn deliver(&mut self, path: u64) {
        match self.carriers.get(&path).copied() {
            Some(Carrier::Pipe(at)) => self.deliver_pipe(at),
            Some(Carrier::Flow(at)) => self.deliver_flow(at),
            None => {}
        }
    }

    fn deliver_pipe(&mut self, at: usize) {
        let pipe = &mut self.pipes[at];
        pipe.is_enabled = false;
        footprint::touch(pipe.sent, true);
        footprint::touch(pipe.received, true);
        match pipe.syn {
            true => self.deliver_connection(at),
            false => self.deliver_segment(at),
        }
        self.refresh(at);
    }

    /// Says whether the carrier of a pipe can run, if that has changed; what is sent to a unix
    /// socket arrives here.
    pub(super) fn refresh(&mut self, at: usize) {
        let pipe = &self.pipes[at];
        let can_run = pipe.is_deliverable(self.is_read(pipe)) && !self.is_cut(at);
        if pipe.is_direct {
            if can_run {
                let bytes = self.deliverable(at);
                self.carry(at, bytes);
                self.refresh(at);
            }
            return;
        }
        if can_run != pipe.is_enabled {
            self.enable(pipe.path, can_run);
            self.pipes[at].is_enabled = can_run;
        }
    }

    /// How many bytes can be delivered now.
    pub(super) fn deliverable(&self, at: usize) -> usize {
        let pipe = &self.pipes[at];
        match self.is_read(pipe) {
            true => pipe.queue.len().min(pipe.free()),
            false => pipe.queue.len(),
        }
    }

    fn deliver_segment(&mut self, at: usize) {
        let bytes = self.deliverable(at);
        match self.segment_mishap(at, bytes) {
            None => self.carry(at, bytes),
            Some(Mishap::Chunk(bytes)) => {
                self.carry(at, bytes);
                self.hold(at, AFTER_CHUNK);
                self.pipes[at].is_chunked = true;
            }
            Some(Mishap::Delay(time)) => self.hold(at, time),
            Some(Mishap::Reset) => self.reset_both(at),
            Some(Mishap::HalfOpen) => self.go_dead(at),
            Some(Mishap::Partition(time)) => self.cut(at, time),
            Some(_) => {}
        }
    }

    /// Delivers so many bytes, or the end that is next.
    fn carry(&mut self, at: usize, bytes: usize) {
        let is_read = self.is_read(&self.pipes[at]);
        let pipe = &mut self.pipes[at];
        pipe.segments += 1;
        let (from, to) = (pipe.from, pipe.to);
        if pipe.queue.is_empty() {
            if pipe.fin == Mark::Sent {
                pipe.fin = Mark::Arrived;
                if let Some(to) = to.filter(|_| is_read) {
                    self.change(to);
                    self.wake(to, Direction::Read);
                }
            } else {
                pipe.rst = Mark::Arrived;
                if let Some(to) = to.filter(|_| is_read) {
                    self.fail(to, ErrorKind::ConnectionReset, Cause::Peer);
                }
            }
            return;
        }
        let is_refused = to.is_some_and(|to| is_read && self.takes_no_more(to));
        if is_refused {
            return self.refuse(at);
        }
        let pipe = &mut self.pipes[at];
        if is_read {
            pipe.carry(bytes);
            if let Some(to) = to {
                self.wake(to, Direction::Read);
            }
        } else {
            // Nobody reads any more: the sender is told, and gets no more room until it is.
            pipe.is_dead = true;
            return self.reset(at ^ 1);
        }
        if let Some(from) = from {
            self.wake(from, Direction::Write);
        }
    }

    /// Whether an end of a TCP connection has ended both directions: as with Linux, what comes then
    /// resets it.
    fn takes_no_more(&self, id: usize) -> bool {
        self.stream(id).is_ok_and(|stream| {
            stream.shut_read && stream.shut_write && !self.pipes[stream.incoming].is_direct
        })
    }

    /// What comes through a pipe is not wanted any more: its receiver has a connection that is
    /// reset, and the sender is told, ahead of what the receiver had still to send.
    fn refuse(&mut self, at: usize) {
        let pipe = &mut self.pipes[at];
        pipe.is_dead = true;
        if let Some(to) = pipe.to {
            self.fail(to, ErrorKind::ConnectionReset, Cause::ThisSide);
        }
        let back = &mut self.pipes[at ^ 1];
        back.is_dead = false;
        if back.fin == Mark::Sent {
            back.fin = Mark::None;
        }
        self.reset(at ^ 1);
    }

    /// A connection arrives where somebody listens, or nobody does.
    fn deliver_connection(&mut self, at: usize) {
        let Some((client, to)) = self.pipes[at].from.zip(self.pipes[at].to_address.inet()) else {
            return;
        };
        let listener = self.ports.listener(plain(to), self.sockets[client].name);
        match self.connection_mishap(at, listener.is_some()) {
            Some(Mishap::Delay(time)) => return self.hold(at, time),
            Some(Mishap::Partition(time)) => return self.cut(at, time),
            Some(Mishap::Refusal) => {
                return self.fail(client, ErrorKind::ConnectionRefused, Cause::Fault);
            }
            Some(Mishap::HalfOpen) => {
                self.kill(at);
                let time = self.now() + CONNECT_GIVE_UP;
                return self.events.push((time, Event::GiveUp(client)));
            }
            _ => {}
        }
        match listener {
            Some(listener) if self.admit(listener, at) => self.establish(listener, at),
            Some(_) => {}
            None if self.sockets[client].local == self.pipes[at].to_address => {
                self.establish_alone(client, at);
            }
            None => self.fail(client, ErrorKind::ConnectionRefused, Cause::NoListener),
        }
    }

    /// A socket has connected to the port that it is bound to: TCP knows that as a connection that
    /// both ends have begun, and both are this one. What it writes it reads.
    fn establish_alone(&mut self, client: usize, at: usize) {
        let room = self.sockets[client].settings.recv_buffer;
        let pipe = &mut self.pipes[at];
        (pipe.syn, pipe.to, pipe.recv_room) = (false, Some(client), room);
        self.change(client);
        if let Some(stream) = self.stream_mut(client) {
            (stream.phase, stream.incoming) = (Phase::Established, stream.outgoing);
        }
        self.wake_all(client);
    }

    /// A connection is over at one end, because of this.
    pub(super) fn fail(&mut self, id: usize, error: ErrorKind, cause: Cause) {
        let Ok(stream) = self.stream(id).cloned() else { return };
        if stream.is_reset || stream.phase == Phase::Failed {
            return;
        }
        self.change(id);
        // Once the peer has sent its end, only what is written is in vain; unix sockets do not tell
        // the difference.
        let incoming = &self.pipes[stream.incoming];
        let has_ended = incoming.fin == Mark::Arrived && !incoming.is_direct;
        let is_reset = error == ErrorKind::ConnectionReset;
        let told = if has_ended && is_reset { ErrorKind::BrokenPipe } else { error };
        self.sockets[id].error = Some(told);
        self.sockets[id].cause = Some(cause);
        if let Some(stream) = self.stream_mut(id) {
            match stream.phase {
                Phase::Connecting => stream.phase = Phase::Failed,
                Phase::Established | Phase::Failed => stream.is_reset = true,
            }
        }
        self.kill(stream.outgoing);
        self.wake_all(id);
    }

    /// What is on its way is lost, and nothing more is delivered.
    pub(super) fn kill(&mut self, at: usize) {
        let pipe = &mut self.pipes[at];
        footprint::touch(pipe.sent, true);
        footprint::touch(pipe.received, false);
        pipe.is_dead = true;
        pipe.queue.clear();
        self.refresh(at);
    }

    /// A connection is reset at both ends.
    fn reset_both(&mut self, at: usize) {
        for at in [at, at ^ 1] {
            self.kill(at);
            if let Some(to) = self.pipes[at].to {
                self.fail(to, ErrorKind::ConnectionReset, Cause::Fault);
            }
        }
    }

    /// Nothing is delivered any more, in either direction, and nobody is told.
    fn go_dead(&mut self, at: usize) {
        for at in [at, at ^ 1] {
            let pipe = &mut self.pipes[at];
            footprint::touch(pipe.sent, true);
            footprint::touch(pipe.received, true);
            pipe.is_dead = true;
            self.refresh(at);
            self.expect_answer(at);
        }
    }

    /// A socket whose peer does not answer gives it up.
    pub(super) fn give_up(&mut self, id: usize) {
        if self.sockets[id].is_open {
            self.fail(id, ErrorKind::TimedOut, Cause::NoAnswer);
        }
    }

    /// What is next in a pipe comes after a time.
    fn hold(&mut self, at: usize, time: Duration) {
        self.pipes[at].is_held = true;
        let time = self.now() + time;
        self.events.push((time, Event::Release(Carrier::Pipe(at))));
    }

    /// Whether nothing gets through a pipe now.
    fn is_cut(&self, at: usize) -> bool {
        if !self.has_faults {
            return false;
        }
        footprint::touch(CUTS, false);
        let pipe = &self.pipes[at];
        // A connection takes an answer to be there.
        let is_cut = |cut: &Cut| {
            Some(cut.service) == pipe.service && (cut.towards == pipe.towards || pipe.syn)
        };
        self.cuts.iter().any(is_cut)
    }

    /// Whether nothing gets to an address now.
    pub(super) fn is_unreachable(&self, to: std::net::SocketAddr) -> bool {
        if !self.has_faults {
            return false;
        }
        footprint::touch(CUTS, false);
        self.cuts.contains(&Cut { service: to, towards: true })
    }

    /// From now on nothing gets through in the direction of a pipe, for a time.
    fn cut(&mut self, at: usize, time: Duration) {
        let Pipe { service: Some(service), towards, .. } = self.pipes[at] else { return };
        self.cut_off(Cut { service, towards }, time);
    }

    pub(super) fn cut_off(&mut self, cut: Cut, time: Duration) {
        footprint::touch(CUTS, true);
        self.cuts.push(cut);
        let time = self.now() + time;
        self.events.push((time, Event::Heal(cut)));
        self.refresh_all(cut);
    }

    /// What is on its way gets through again.
    pub(super) fn heal(&mut self, cut: Cut) {
        footprint::touch(CUTS, true);
        if let Some(at) = self.cuts.iter().position(|other| *other == cut) {
            self.cuts.remove(at);
        }
        self.refresh_all(cut);
    }

    fn refresh_all(&mut self, cut: Cut) {
        for at in 0..self.pipes.len() {
            if self.pipes[at].service == Some(cut.service) {
                self.refresh(at);
            }
        }
    }
}
