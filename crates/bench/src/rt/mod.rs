//! Runtimes side by side: tasks, channels, timers, a small service.
//!
//! Each runtime is one file that implements the traits below in its own idiom: plain functions
//! which build a runtime, run the workload inside it from a task of its own, and answer the
//! figure per operation. Set-up and tear-down are outside the clock. All have their IO and timers
//! switched on, as a service would. [`roster`] is the list of who takes part.

mod asx;
mod channels;
mod cost;
mod meter;
mod smol;
mod tokio;

use std::time::Duration;

use asx_kernel::rng::DetRng;

use crate::harness::{Case, Flavour, Unit};
use crate::instructions::{Counted, Program};
use asx::Asx;
use channels::{AsyncChannel, Flume, Kanal, Mpsc, Over};
use meter::Clock;
use smol::Smol;
use tokio::Tokio;

/// Spawning, waiting, yielding, cancelling.
trait Tasks: 'static {
    /// Spawns all, then awaits all. Per task.
    fn spawn_join(tasks: u32) -> f64;
    /// Spawns one and awaits it, again and again. Per task.
    fn spawn_await(tasks: u32) -> f64;
    /// All tasks at once, each yielding `times` times. Per yield.
    fn yields(tasks: u32, times: u32) -> f64;
    /// Each task spawns the next; the last one says so. Per task.
    fn chain_spawn(tasks: u32) -> f64;
    /// Cancels children that are all parked and waits until each is gone. Per task.
    fn cancel(tasks: u32) -> f64;
    /// Tasks parked for ever, handles dropped. Bytes of resident memory per task.
    fn park(tasks: u32) -> f64;
}

/// Messages between tasks.
trait Channels: 'static {
    /// Two tasks, two channels of one place. Per round trip.
    fn ping_pong(rounds: u32) -> f64;
    /// That many producers, one consumer. Per message; `messages` is for all producers together.
    fn stream(producers: u32, capacity: usize, messages: u32) -> f64;
}

/// Timers inside the runtime.
trait Timers: 'static {
    /// Each of the `live` timers has been polled once, as has each that replaces one. The
    /// runtime gets a turn every [`SWAPS_PER_TURN`]. Per swap.
    fn churn(live: Vec<Duration>, swaps: Vec<Swap>) -> f64;
    /// Registers all timers, polled once, and waits until all have woken. Processor time per
    /// timer.
    fn fire(delays: Vec<Duration>) -> f64;
    /// Spawns tasks that sleep, and awaits them all. Per task, by the given clock.
    fn sleeps(tasks: u32, nap: Duration, clock: fn() -> Clock) -> f64;
}

/// All of it together.
trait Service: 'static {
    /// Requests come [`BATCH`] at a time. Each is a task: under a timeout it sends itself with a
    /// place for the answer through a bounded channel to a worker and awaits the answer. The
    /// first of each batch gets none and is cancelled once the others have ended. Per request.
    fn mixed(requests: u32) -> f64;
}

/// The timer to replace, and how far away the new one is.
type Swap = (usize, Duration);

const SWAPS_PER_TURN: usize = 256;
const BATCH: u32 = 100;
/// Places in the service's channel.
const BACKLOG: usize = 64;
/// Never reached: what it costs to have it is measured.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How much smaller than full size the workloads are.
#[derive(Clone, Copy)]
pub(crate) struct Scale(pub(crate) u32);

impl Scale {
    pub(crate) fn of(self, full: u32) -> u32 {
        full / self.0
    }
}

/// The cases of this folder: against peers, and against asx itself with something switched off.
pub(crate) fn cases(scale: Scale) -> Vec<Case> {
    let mut cases = roster(scale).cases;
    cases.extend(cost::cases(scale));
    cases
}

/// Runs the parked tasks of this peer in this process, which should be a fresh one.
pub(crate) fn park(peer: &str, tasks: u32) -> Option<f64> {
    let parks = roster(Scale(1)).parks;
    parks.into_iter().find(|(name, _)| *name == peer).map(|(_, park)| park(tasks))
}

/// The programs of `--instructions` without sockets.
pub(crate) fn programs() -> Vec<Program> {
    let mut programs = programs_of::<Asx<1>, Asx<1>>("asx_ct").to_vec();
    programs.extend(programs_of::<Tokio<1>, Over<Tokio<1>, Mpsc>>("tokio_ct"));
    programs
}

fn programs_of<R: Tasks + Timers + Service, C: Channels>(peer: &'static str) -> [Program; 11] {
    let program = |name, sizes, run| Program { name, peer, sizes, counted: Counted::Itself(run) };
    [
        program("spawn_join", [2_000, 12_000], |n| _ = R::spawn_join(n)),
        program("spawn_await", [2_000, 12_000], |n| _ = R::spawn_await(n)),
        program("yield_1k", [10_000, 60_000], |n| _ = R::yields(1000, n / 1000)),
        program("chain_spawn", [2_000, 12_000], |n| _ = R::chain_spawn(n)),
        program("cancel_10k", [2_000, 12_000], |n| _ = R::cancel(n)),
        program("ping_pong", [5_000, 25_000], |n| _ = C::ping_pong(n)),
        program("spsc", [20_000, 120_000], |n| _ = C::stream(1, 1024, n)),
        program("mpsc_4p", [20_000, 120_000], |n| _ = C::stream(4, 64, n)),
        program("timer_churn", [5_000, 25_000], |n| {
            let (live, swaps) = swaps(4_096, n);
            R::churn(live, swaps);
        }),
        program("timer_fire", [2_000, 8_000], |n| _ = R::fire(slow_delays(n))),
        program("mixed_service", [1_000, 5_000], |n| _ = R::mixed(n)),
    ]
}

fn roster(scale: Scale) -> Roster {
    use Flavour::{Multi, Single};
    let mut roster = Roster { scale, cases: Vec::new(), parks: Vec::new() };
    roster.runtime::<Asx<2>>("asx_mt", Multi);
    roster.runtime::<Asx<1>>("asx_ct", Single);
    roster.channels::<Asx<2>>("asx_mt", Multi);
    roster.channels::<Asx<1>>("asx_ct", Single);
    roster.runtime::<Tokio<2>>("tokio_mt", Multi);
    roster.runtime::<Tokio<1>>("tokio_ct", Single);
    roster.runtime::<Smol<2>>("smol_2", Multi);
    roster.runtime::<Smol<1>>("smol_1", Single);
    roster.channels::<Over<Tokio<2>, Mpsc>>("tokio_mt", Multi);
    roster.channels::<Over<Tokio<1>, Mpsc>>("tokio_ct", Single);
    roster.channels::<Over<Smol<2>, AsyncChannel>>("smol_2", Multi);
    roster.channels::<Over<Smol<1>, AsyncChannel>>("smol_1", Single);
    roster.channels::<Over<Tokio<2>, AsyncChannel>>("async_channel_mt", Multi);
    roster.channels::<Over<Tokio<1>, AsyncChannel>>("async_channel_ct", Single);
    roster.channels::<Over<Tokio<2>, Flume>>("flume_mt", Multi);
    roster.channels::<Over<Tokio<1>, Flume>>("flume_ct", Single);
    roster.channels::<Over<Tokio<2>, Kanal>>("kanal_mt", Multi);
    roster.channels::<Over<Tokio<1>, Kanal>>("kanal_ct", Single);
    roster
}

type Park = fn(u32) -> f64;

/// Who takes part in what. A peer need not take part in everything.
struct Roster {
    scale: Scale,
    cases: Vec<Case>,
    /// [`Tasks::park`] by name, for the fresh process.
    parks: Vec<(&'static str, Park)>,
}

impl Roster {
    fn runtime<R: Tasks + Timers + Service>(&mut self, peer: &'static str, flavour: Flavour) {
        self.tasks::<R>(peer, flavour);
        self.timers::<R>(peer, flavour);
        self.service::<R>(peer, flavour);
    }

    fn tasks<R: Tasks>(&mut self, peer: &'static str, flavour: Flavour) {
        let scale = self.scale;
        let many = scale.of(100_000);
        let mut add = |workload, unit, run: Box<dyn FnMut() -> f64>| {
            self.cases.push(Case { workload, peer, unit, flavour, run });
        };
        add("spawn_join", Unit::Wall, Box::new(move || R::spawn_join(many)));
        add("spawn_await", Unit::Wall, Box::new(move || R::spawn_await(many)));
        add("yield_1k", Unit::Wall, Box::new(move || R::yields(1000, scale.of(1000))));
        add("chain_spawn", Unit::Wall, Box::new(move || R::chain_spawn(many)));
        add("cancel_10k", Unit::Wall, Box::new(move || R::cancel(scale.of(10_000))));
        let parked = move || meter::in_fresh_process(peer, scale.of(1_000_000));
        if meter::resident().is_some() {
            add("rss_parked", Unit::Bytes, Box::new(parked));
            self.parks.push((peer, R::park));
        }
    }

    fn channels<C: Channels>(&mut self, peer: &'static str, flavour: Flavour) {
        let many = self.scale.of(1_000_000);
        let mut add = |workload, run: Box<dyn FnMut() -> f64>| {
            self.cases.push(Case { workload, peer, unit: Unit::Wall, flavour, run });
        };
        add("ping_pong", Box::new(move || C::ping_pong(many / 10)));
        add("spsc", Box::new(move || C::stream(1, 1024, many)));
        add("mpsc_4p", Box::new(move || C::stream(4, 64, many)));
    }

    fn timers<R: Timers>(&mut self, peer: &'static str, flavour: Flavour) {
        let scale = self.scale;
        let mut add = |workload, unit, run: Box<dyn FnMut() -> f64>| {
            self.cases.push(Case { workload, peer, unit, flavour, run });
        };
        let churn = move || {
            let (live, swaps) = swaps(scale.of(16_384), scale.of(200_000));
            R::churn(live, swaps)
        };
        add("timer_churn", Unit::Wall, Box::new(churn));
        add("timer_fire", Unit::Cpu, Box::new(move || R::fire(delays(scale))));
        let sleepers = scale.of(10_000);
        let nap = Duration::from_millis(10);
        let wall = move || R::sleeps(sleepers, nap, Clock::wall);
        let cpu = move || R::sleeps(sleepers, nap, Clock::cpu);
        add("sleep_10k_wall", Unit::Wall, Box::new(wall));
        add("sleep_10k_cpu", Unit::Cpu, Box::new(cpu));
    }

    fn service<R: Service>(&mut self, peer: &'static str, flavour: Flavour) {
        let requests = self.scale.of(20_000);
        let run = Box::new(move || R::mixed(requests));
        let workload = "mixed_service";
        let unit = Unit::Wall;
        self.cases.push(Case { workload, peer, unit, flavour, run });
    }
}

/// Timers to begin with, and what becomes of them: deadlines 1 ms to 60 s away.
fn swaps(live: u32, swaps: u32) -> (Vec<Duration>, Vec<Swap>) {
    let mut rng = DetRng::new(1, 0);
    let mut far = || Duration::from_micros(1000 + rng.next_u64() % 59_999_000);
    let first = (0..live).map(|_| far()).collect();
    let mut which = DetRng::new(2, 0);
    let swaps = (0..swaps).map(|_| (which.below(live as usize), far())).collect();
    (first, swaps)
}

/// Deadlines within 1 s at full size, none before all timers are registered.
fn delays(scale: Scale) -> Vec<Duration> {
    let mut rng = DetRng::new(3, 0);
    let first = 100_000 / scale.0;
    let span = u64::from(900_000 / scale.0);
    let far = |_| Duration::from_micros(u64::from(first) + rng.next_u64() % span);
    (0..scale.of(100_000)).map(far).collect()
}

/// Deadlines for a program that is counted, which runs some fifty times slower: none passes before
/// all timers are registered, and about twenty pass in each millisecond.
fn slow_delays(count: u32) -> Vec<Duration> {
    let mut rng = DetRng::new(3, 0);
    let count = u64::from(count);
    let far = |_| Duration::from_micros(100 * count + rng.next_u64() % (50 * count));
    (0..count).map(far).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_runtime_takes_part_once_in_every_workload() {
        let mut peers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for case in roster(Scale(1)).cases {
            peers.entry(case.workload).or_default().push(case.peer);
        }
        for (workload, peers) in peers {
            for peer in ["asx_mt", "asx_ct", "tokio_mt", "tokio_ct", "smol_2", "smol_1"] {
                let times = peers.iter().filter(|name| **name == peer).count();
                assert_eq!(times, 1, "{peer} in {workload}");
            }
        }
    }

    #[test]
    fn timers_are_the_same_for_every_peer() {
        assert_eq!(swaps(10, 100), swaps(10, 100));
        assert_eq!(delays(Scale(100)), delays(Scale(100)));
        let (live, swaps) = swaps(10, 1000);
        let far = live.iter().chain(swaps.iter().map(|(_, far)| far));
        let range = Duration::from_millis(1)..Duration::from_secs(60);
        assert!(far.into_iter().all(|far| range.contains(far)));
        assert!(swaps.iter().all(|(at, _)| *at < 10));
    }
}
