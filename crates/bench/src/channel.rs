//! One message through a bounded channel and out again, on one thread, without a runtime: the
//! cost of the channel itself. Where a peer has two phases, both are taken.
//!
//! `asx` is the bare law, as a single-threaded host uses it; `asx_mutex` is the law under a lock
//! taken once per call; both are the kernel's. `two_phase` is the same through the channels that
//! users have.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use asx_kernel::channel::Channel;

use crate::harness::Case;

const CAPACITY: usize = 1024;
const CYCLES: u64 = 200_000;

/// The cases of this file.
pub(crate) fn cases() -> Vec<Case> {
    let case = |workload, peer, run: fn() -> f64| Case::new(workload, peer, run);
    let peers = |workload| {
        let peers = [
            ("tokio", tokio as fn() -> f64),
            ("flume", flume),
            ("kanal", kanal),
            ("crossbeam", crossbeam),
        ];
        peers.map(|(peer, run)| case(workload, peer, run))
    };
    let mut cases = vec![case("channel_cycle", "asx", asx)];
    cases.push(case("channel_cycle", "asx_mutex", asx_mutex));
    cases.extend(peers("channel_cycle"));
    cases.push(case("two_phase", "asx", users));
    cases.extend(peers("two_phase"));
    cases
}

/// Nanoseconds per cycle; `cycle` answers the number it received.
fn timed(mut cycle: impl FnMut(u64) -> Option<u64>) -> f64 {
    let start = Instant::now();
    for number in 0..CYCLES {
        assert_eq!(cycle(black_box(number)), Some(number));
    }
    start.elapsed().as_nanos() as f64 / CYCLES as f64
}

fn asx() -> f64 {
    let mut channel = new_channel();
    timed(|number| {
        channel.try_reserve().ok()?;
        let _ = black_box(channel.send(number));
        channel.try_recv().ok().map(|(number, _)| number)
    })
}

fn asx_mutex() -> f64 {
    let channel = Mutex::new(new_channel());
    timed(|number| {
        channel.lock().ok()?.try_reserve().ok()?;
        let _ = black_box(channel.lock().ok()?.send(number));
        channel.lock().ok()?.try_recv().ok().map(|(number, _)| number)
    })
}

fn users() -> f64 {
    let (sender, mut receiver) = asx_runtime::channel::bounded(CAPACITY);
    timed(|number| {
        sender.try_reserve().ok()?.send(number);
        receiver.try_recv().ok()
    })
}

fn new_channel() -> Channel<u64, std::task::Waker> {
    Channel::new(CAPACITY).expect("the capacity is not zero")
}

fn tokio() -> f64 {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(CAPACITY);
    timed(|number| {
        sender.try_reserve().ok()?.send(number);
        receiver.try_recv().ok()
    })
}

fn flume() -> f64 {
    let (sender, receiver) = flume::bounded(CAPACITY);
    timed(|number| {
        sender.try_send(number).ok()?;
        receiver.try_recv().ok()
    })
}

fn kanal() -> f64 {
    let (sender, receiver) = kanal::bounded(CAPACITY);
    timed(|number| {
        sender.try_send(number).ok()?;
        receiver.try_recv().ok()?
    })
}

fn crossbeam() -> f64 {
    let (sender, receiver) = crossbeam_channel::bounded(CAPACITY);
    timed(|number| {
        sender.try_send(number).ok()?;
        receiver.try_recv().ok()
    })
}
