//! All sockets of a run, and what is between them.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::task::Waker;

use asx_kernel::rng::mix64;
use asx_kernel::time::Time;
use asx_runtime::footprint::{self, Object};
use asx_runtime::net::{Address, Direction, SocketOption, SocketWait};
use asx_runtime::operation::is_task_waker;

use super::datagrams::{Datagrams, Flow};
use super::failures::{Cause, IoFailure};
use super::listener::Listener;
use super::pipe::Pipe;
use super::ports::{Ports, Protocol};
use super::settings::Settings;
use super::stream::{Phase, Stream};
use super::waiters::Waiters;
use super::{Driver, Faults, Names};
use crate::explore::TaskPath;

/// The name of the references to a socket, relative to that of its state.
const OWNERS: u64 = 0x6F77_6E65_7273_206F;

/// What stands in footprints for the state of a socket that is not in its pipes.
const STATE: u64 = 0x7374_6174_6520_6F66;

/// All that a run has of the network.
pub(super) struct Network {
    /// Which run it is: sockets of the one before are of no use.
    pub(super) epoch: u64,
    pub(super) sockets: Vec<Sock>,
    /// Two for each connection, one after the other.
    pub(super) pipes: Vec<Pipe>,
    pub(super) flows: Vec<Flow>,
    pub(super) carriers: BTreeMap<u64, Carrier>,
    pub(super) ports: Ports,
    pub(super) names: Names,
    /// What may still go wrong in this run, and whether anything may.
    pub(super) faults: Faults,
    pub(super) has_faults: bool,
    pub(super) cuts: Vec<Cut>,
    /// What comes with time, in the order in which it was begun.
    pub(super) events: Vec<(Time, Event)>,
    /// Who is to be woken once the lock is released, and wakers to be dropped then.
    pub(super) woken: Vec<Waker>,
    pub(super) dropped: Vec<Option<Waker>>,
    /// Sockets that were made outside of polls.
    unnamed: u64,
    /// Operations that failed in this run.
    pub(super) failures: Vec<IoFailure>,
    driver: Weak<dyn Driver>,
}

/// What a carrier delivers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carrier {
    Pipe(usize),
    Flow(usize),
}

/// Nothing gets through, one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Where somebody listens.
    pub(super) service: SocketAddr,
    /// Whether it is to there that nothing gets.
    pub(super) towards: bool,
}

/// What comes with time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// What was late comes: a pipe, or a flow.
    Release(Carrier),
    /// A cut is healed.
    Heal(Cut),
    /// A socket gives its peer up.
    GiveUp(usize),
}

/// One socket.
pub(super) struct Sock {
    /// The same in every run.
    pub(super) name: u64,
    pub(super) what: What,
    pub(super) local: Address,
    pub(super) settings: Settings,
    pub(super) waiters: Waiters,
    /// What went wrong since it was told last.
    pub(super) error: Option<ErrorKind>,
    /// Why its connection failed, and the task that closed it.
    pub(super) cause: Option<Cause>,
    pub(super) closer: Option<u64>,
    pub(super) is_open: bool,
}

/// Of which kind it is.
pub(super) enum What {
    Listener(Listener),
    Stream(Stream),
    Datagrams(Datagrams),
}

impl Sock {
    pub(super) fn new(name: u64, what: What, local: Address, settings: Settings) -> Sock {
        let waiters = Waiters::new();
        let error = None;
        let cause = None;
        let closer = None;
        Sock { name, what, local, settings, waiters, error, cause, closer, is_open: true }
    }

    /// What stands for its state in footprints.
    pub(super) fn state(&self) -> u64 {
        mix64(self.name ^ STATE)
    }
}

pub(super) fn unsupported() -> io::Error {
    ErrorKind::Unsupported.into()
}

impl Network {
    pub(super) fn new(driver: Weak<dyn Driver>) -> Network {
        Network {
            epoch: 0,
            sockets: Vec::new(),
            pipes: Vec::new(),
            flows: Vec::new(),
            carriers: BTreeMap::new(),
            ports: Ports::default(),
            names: Names::default(),
            faults: Faults::none(),
            has_faults: false,
            cuts: Vec::new(),
            events: Vec::new(),
            woken: Vec::new(),
            dropped: Vec::new(),
            unnamed: 0,
            failures: Vec::new(),
            driver,
        }
    }

    /// Forgets everything: a run begins.
    pub(super) fn start(&mut self, faults: Faults) {
        self.epoch += 1;
        for id in 0..self.sockets.len() {
            self.forget_waiters(id);
        }
        self.sockets.clear();
        self.pipes.clear();
        self.flows.clear();
        self.carriers.clear();
        self.ports.clear();
        self.faults = faults;
        self.has_faults = !faults.is_none();
        self.cuts.clear();
        self.events.clear();
        self.unnamed = 0;
        self.failures.clear();
    }

    /// The name of a socket that is made now: after the task that makes it.
    pub(super) fn new_name(&mut self) -> u64 {
        match Object::new().name() {
            0 => {
                self.unnamed += 1;
                mix64(self.unnamed)
            }
            name => name,
        }
    }

    pub(super) fn add(&mut self, socket: Sock) -> usize {
        self.sockets.push(socket);
        self.sockets.len() - 1
    }

    pub(super) fn driver(&self) -> Option<Arc<dyn Driver>> {
        self.driver.upgrade()
    }

    pub(super) fn now(&self) -> Time {
        self.driver().map_or(Time::ZERO, |driver| driver.time())
    }

    /// The state of a socket is looked at.
    pub(super) fn look_at(&self, id: usize) {
        footprint::touch(self.sockets[id].state(), false);
    }

    /// The state of a socket changes.
    pub(super) fn change(&self, id: usize) {
        footprint::touch(self.sockets[id].state(), true);
    }

    /// One of several owners of a socket drops its reference. The last one closes the socket, so
    /// these drops depend on each other, and on nothing else.
    pub(super) fn drop_reference(&self, id: usize) {
        footprint::touch(self.sockets[id].state() ^ OWNERS, true);
    }

    /// Those who wait at a socket in a direction are to be woken.
    pub(super) fn wake(&mut self, id: usize, direction: Direction) {
        self.sockets[id].waiters.take(direction, &mut self.woken);
    }

    pub(super) fn wake_all(&mut self, id: usize) {
        self.sockets[id].waiters.take_all(&mut self.woken);
    }

    /// What went wrong with a socket: told once.
    pub(super) fn take_error(&mut self, id: usize) -> Option<io::Error> {
        self.look_at(id);
        let error = self.sockets[id].error.take()?;
        self.change(id);
        Some(error.into())
    }

    /// Makes a carrier run, or not, if that is new.
    pub(super) fn enable(&self, path: u64, can_run: bool) {
        footprint::touch(path, true);
        let Some(driver) = self.driver() else { return };
        match can_run {
            true => driver.enable(TaskPath(path)),
            false => driver.disable(TaskPath(path)),
        }
    }

    /// Whether an operation in this direction is worth a try.
    pub(super) fn is_ready(&self, id: usize, direction: Direction) -> bool {
        let socket = &self.sockets[id];
        self.look_at(id);
        match &socket.what {
            What::Listener(listener) => {
                footprint::touch(listener.object, true);
                direction == Direction::Read && listener.is_ready()
            }
            What::Stream(stream) => self.is_stream_ready(id, stream, direction),
            What::Datagrams(datagrams) => {
                footprint::touch(datagrams.received, true);
                match direction {
                    Direction::Read => datagrams.is_readable() || socket.error.is_some(),
                    Direction::Write => !datagrams.is_blocked,
                }
            }
        }
    }

    /// A socket is closed.
    pub(super) fn close(&mut self, id: usize) {
        if !std::mem::replace(&mut self.sockets[id].is_open, false) {
            return;
        }
        self.change(id);
        self.note_closer(id);
        self.forget_waiters(id);
        self.release(id);
        match &self.sockets[id].what {
            What::Listener(_) => self.close_listener(id),
            What::Stream(_) => self.close_stream(id),
            What::Datagrams(_) => self.close_datagrams(id),
        }
    }

    /// Where it was bound others may be.
    fn release(&mut self, id: usize) {
        let protocol = match &self.sockets[id].what {
            What::Datagrams(_) => Protocol::Udp,
            What::Listener(_) | What::Stream(_) => Protocol::Tcp,
        };
        match &self.sockets[id].local {
            Address::Inet(at) => self.ports.release(protocol, at.port(), id),
            Address::Unix(Some(path)) => self.ports.release_path(path, id),
            Address::Unix(None) => {}
        }
    }

    /// When something comes with time next.
    pub(super) fn next_event(&self) -> Option<Time> {
        self.events.iter().map(|(time, _)| *time).min()
    }

    /// The time has come: a step of the clock, which waits for all carriers.
    pub(super) fn fire(&mut self, now: Time) {
        for path in self.carriers.keys() {
            footprint::touch(*path, false);
        }
        let (mut due, later) = self.events.drain(..).partition(|(time, _)| *time <= now);
        self.events = later;
        let by_time: &mut Vec<(Time, Event)> = &mut due;
        by_time.sort_by_key(|(time, _)| *time);
        for (_, event) in due {
            match event {
                Event::Release(Carrier::Pipe(at)) => {
                    self.release_pipe(at);
                }
                Event::Release(Carrier::Flow(at)) => self.release_flow(at, now),
                Event::Heal(cut) => self.heal(cut),
                Event::GiveUp(id) => self.give_up(id),
            }
        }
    }

    /// What was late in a pipe comes.
    pub(super) fn release_pipe(&mut self, at: usize) {
        let pipe = &mut self.pipes[at];
        (pipe.is_held, pipe.is_chunked) = (false, false);
        self.refresh(at);
    }

    /// What a carrier is called.
    pub(super) fn called(&self, path: u64) -> Option<String> {
        let (from, to) = match self.carriers.get(&path)? {
            Carrier::Pipe(at) => {
                let pipe = &self.pipes[*at];
                (pipe.from_address.to_string(), pipe.to_address.to_string())
            }
            Carrier::Flow(at) => {
                let flow = &self.flows[*at];
                (self.sockets[flow.from].local.to_string(), flow.to.to_string())
            }
        };
        Some(format!("network, {from} to {to}"))
    }

    /// The tasks that wait at sockets, and for what. Wakers of others are left out: to clone one
    /// may be somebody's code.
    pub(super) fn waits(&self) -> Vec<SocketWait> {
        let mut all = Vec::new();
        for socket in &self.sockets {
            for (direction, waker) in socket.waiters.iter().filter(|it| is_task_waker(it.1)) {
                all.push(SocketWait { waker: waker.clone(), what: socket.wait(direction) });
            }
        }
        all
    }

    /// Nobody waits at a socket any more: their wakers are dropped.
    fn forget_waiters(&mut self, id: usize) {
        let mut left = Vec::new();
        self.sockets[id].waiters.take_all(&mut left);
        self.dropped.extend(left.into_iter().map(Some));
    }
}

impl Sock {
    /// What one who waits in a direction waits for.
    fn wait(&self, direction: Direction) -> String {
        let at = &self.local;
        match (&self.what, direction) {
            (What::Listener(_), _) => format!("a connection to {at}"),
            (What::Stream(stream), _) if stream.phase == Phase::Connecting => {
                format!("a connection to {} to be there", stream.peer)
            }
            (What::Stream(stream), Direction::Read) => format!("bytes from {}", stream.peer),
            (What::Stream(stream), Direction::Write) => {
                format!("room for bytes to {}", stream.peer)
            }
            (What::Datagrams(_), Direction::Read) => format!("a datagram to {at}"),
            (What::Datagrams(_), Direction::Write) => format!("room for a datagram from {at}"),
        }
    }
}

/// Settings.
impl Network {
    /// Changes a setting of a socket: a larger buffer has more room at once.
    pub(super) fn set_option(&mut self, id: usize, option: SocketOption) -> io::Result<()> {
        self.change(id);
        self.sockets[id].settings.set(option)?;
        let Settings { send_buffer, recv_buffer, .. } = self.sockets[id].settings;
        if let Ok(Stream { incoming, outgoing, .. }) = self.stream(id).cloned() {
            self.pipes[outgoing].send_room = send_buffer;
            self.pipes[incoming].recv_room = recv_buffer;
            for pipe in [&self.pipes[outgoing], &self.pipes[incoming]] {
                footprint::touch(pipe.sent, true);
                footprint::touch(pipe.received, true);
            }
            self.refresh(incoming);
            self.wake(id, Direction::Write);
        }
        Ok(())
    }
}
