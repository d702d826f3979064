//! Servers side by side. Each runs in a process of its own, so that its processor time is its own;
//! the load comes from this process, over the loopback. What decides is the server's processor time
//! per request: the clients are busy first.

mod asx;
mod load;
mod server;
mod smol;
mod tokio;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use asx_bench::harness::{Case, Flavour, Unit};

use crate::instructions::{Counted, Program};
use load::{Load, Trips};
use server::Server;

/// Asks this process to serve for one peer until its input ends; not for people.
pub(crate) const SERVE: &str = "--serve";

/// A runtime that serves.
trait Serve: 'static {
    /// Serves echoes at the listener, for ever.
    fn echo(listener: std::net::TcpListener) -> !;
    /// The same beside a task that blocks its thread for [`BLOCKED`] every second.
    fn echo_beside_a_block(listener: std::net::TcpListener) -> !;
    /// Cancels so many tasks, each parked in a read of a socket that stays open, and waits for
    /// their ends. Nanoseconds per task.
    fn cancel_reads(tasks: u32) -> f64;
}

const SETTLE: u32 = 100;
/// How long the blocking task blocks.
const BLOCKED: Duration = Duration::from_millis(100);
/// Bytes of a message, and what a server reads at once: so it knows that nothing is left.
const MESSAGE: usize = 64;
const BUFFER: usize = 128;

/// How many tasks have come to their read. They are about to park there: whoever waits for that
/// yields [`SETTLE`] times more.
#[derive(Clone, Default)]
struct Reading(Arc<AtomicU32>);

impl Reading {
    fn hit(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn count(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// What a server is started for.
#[derive(Clone, Copy)]
enum Kind {
    Echo,
    Blocked,
}

impl Kind {
    const ALL: [(Kind, &'static str); 2] = [(Kind::Echo, "echo"), (Kind::Blocked, "blocked")];

    fn name(self) -> &'static str {
        Kind::ALL[self as usize].1
    }
}

type Start = fn(std::net::TcpListener) -> !;

/// A runtime that takes part.
#[derive(Clone, Copy)]
struct Peer {
    name: &'static str,
    flavour: Flavour,
    echo: Start,
    beside_a_block: Start,
    cancel_reads: fn(u32) -> f64,
}

impl Peer {
    const fn of<S: Serve>(name: &'static str, flavour: Flavour) -> Peer {
        Peer {
            name,
            flavour,
            echo: S::echo,
            beside_a_block: S::echo_beside_a_block,
            cancel_reads: S::cancel_reads,
        }
    }
}

/// Who takes part.
const PEERS: [Peer; 6] = [
    Peer::of::<asx::Asx<2>>("asx_mt", Flavour::Multi),
    Peer::of::<asx::Asx<1>>("asx_ct", Flavour::Single),
    Peer::of::<tokio::Tokio<2>>("tokio_mt", Flavour::Multi),
    Peer::of::<tokio::Tokio<1>>("tokio_ct", Flavour::Single),
    Peer::of::<smol::Smol<2>>("smol_2", Flavour::Multi),
    Peer::of::<smol::Smol<1>>("smol_1", Flavour::Single),
];

/// Serves for one peer, as the first process has asked.
pub(crate) fn serve(peer: &str, kind: &str) -> Option<()> {
    let peer = PEERS.into_iter().find(|known| known.name == peer)?;
    let (kind, _) = Kind::ALL.into_iter().find(|(_, name)| *name == kind)?;
    server::serve(match kind {
        Kind::Echo => peer.echo,
        Kind::Blocked => peer.beside_a_block,
    })
}

/// The cases of this folder.
pub(crate) fn cases(scale: crate::rt::Scale) -> Vec<Case> {
    let mut cases = Vec::new();
    if !cfg!(target_os = "linux") {
        // Processor time of another process is read as Linux tells it.
        return cases;
    }
    for Peer { name: peer, flavour, cancel_reads, .. } in PEERS {
        let mut add = |workload, unit, run: Box<dyn FnMut() -> f64>| {
            cases.push(Case { workload, peer, unit, flavour, run });
        };
        for (workload, wall, connections, trips) in [
            ("echo_1_cpu", "echo_1_wall", 1, 20_000),
            ("echo_64_cpu", "echo_64_wall", 64, 100_000),
            ("echo_1k_cpu", "echo_1k_wall", 1024, 100_000),
        ] {
            let load = Load { connections, trips: scale.of(trips) };
            add(workload, Unit::Cpu, Box::new(move || echo(peer, load).server_cpu));
            add(wall, Unit::Wall, Box::new(move || echo(peer, load).wall));
        }
        let churn = scale.of(5_000);
        add("accept_close_cpu", Unit::Cpu, Box::new(move || accept_and_close(peer, churn)));
        let idle = scale.of(10_000);
        add("idle_connection", Unit::Bytes, Box::new(move || idle_connections(peer, idle)));
        // Two descriptors each.
        let reads = scale.of(8_000);
        add("cancel_reads", Unit::Wall, Box::new(move || cancel_reads(reads)));
        let times = scale.of(3_000);
        add("blocked_p99", Unit::Wall, Box::new(move || beside_a_block(peer, times)));
    }
    cases
}

/// The servers of `--instructions`.
pub(crate) fn programs() -> [Program; 2] {
    let program = |peer, run| Program {
        name: "echo_64",
        peer,
        sizes: [2_000, 12_000],
        counted: Counted::Server(run),
    };
    [
        program("asx_ct", |runner, trips| counted_echo(runner, "asx_ct", trips)),
        program("tokio_ct", |runner, trips| counted_echo(runner, "tokio_ct", trips)),
    ]
}

fn counted_echo(runner: &[String], peer: &str, trips: u32) {
    let server = Server::start_under(runner, peer, Kind::Echo);
    let mut clients = load::Clients::connect(server.address(), 64);
    clients.run(trips);
}

fn echo(peer: &str, load: Load) -> Trips {
    let server = Server::start(peer, Kind::Echo);
    // All connections are there, and warm.
    let mut clients = load::Clients::connect(server.address(), load.connections);
    clients.run(load.connections as u32 * 10);
    let before = server.cpu();
    let wall = clients.run(load.trips);
    let trips = f64::from(load.trips);
    Trips { server_cpu: (server.cpu() - before) / trips, wall: wall / trips }
}

fn accept_and_close(peer: &str, connections: u32) -> f64 {
    let server = Server::start(peer, Kind::Echo);
    load::connect_and_close(server.address(), 100);
    let before = server.cpu();
    load::connect_and_close(server.address(), connections);
    (server.cpu() - before) / f64::from(connections)
}

fn idle_connections(peer: &str, connections: u32) -> f64 {
    let server = Server::start(peer, Kind::Echo);
    let warm = load::Clients::connect(server.address(), 16);
    let before = server.resident();
    let mut clients = load::Clients::connect(server.address(), connections as usize);
    // Each has been served once: the server has them all.
    clients.run_each();
    let after = server.resident();
    drop(warm);
    after.saturating_sub(before) as f64 / f64::from(connections)
}

/// The 99th of 100 trips of a thousand connections, beside a task that blocks: nanoseconds.
fn beside_a_block(peer: &str, trips: u32) -> f64 {
    let server = Server::start(peer, Kind::Blocked);
    let connections = 1000.min(trips as usize);
    let mut clients = load::Clients::connect(server.address(), connections);
    clients.run_each();
    let mut times = clients.paced(trips, Duration::from_secs(2));
    times.sort_unstable();
    let at = (times.len() * 99 / 100).min(times.len() - 1);
    times[at].as_nanos() as f64
}
