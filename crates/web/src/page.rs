//! A page without a browser: one microtask queue, one macrotask queue, one host timer and a clock
//! that somebody moves. The runtime over it is the one of real pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use asx_kernel::pump::{Capabilities, HostCall};
use asx_kernel::rng::mix64;
use asx_kernel::time::{Time, nanos};

use crate::calls::HostCalls;
use crate::runtime::{Config, Runtime};

/// The event loop. Cheap to share.
#[derive(Debug, Default)]
pub struct Page {
    queues: Mutex<Queues>,
}

#[derive(Debug, Default)]
struct Queues {
    now: Time,
    microtasks: VecDeque<u32>,
    macrotasks: VecDeque<(HostCall, u32)>,
    timer: Option<(Time, u32)>,
    /// The token of the call that reports the end of the host turn.
    turn_end: Option<u32>,
    draws: u64,
    /// How often the clock was read, timers set, messages posted: what a page would notice.
    counts: Counts,
    reports: Vec<String>,
}

/// How often each facility was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Readings of the clock.
    pub clock: u64,
    /// Random numbers.
    pub entropy: u64,
    /// Host timers set.
    pub timers: u64,
    /// Messages posted and zero timeouts.
    pub handoffs: u64,
    /// Microtasks.
    pub microtasks: u64,
    /// The longest delay of a host timer.
    pub longest_ms: u32,
}

impl Page {
    /// A page that grants everything, and a runtime in it.
    pub fn open(config: Config) -> (Arc<Page>, Runtime) {
        Page::granting(config, Capabilities::all())
    }

    /// A page that grants this, and a runtime in it.
    pub fn granting(config: Config, granted: Capabilities) -> (Arc<Page>, Runtime) {
        let page = Arc::new(Page::default());
        let runtime = Runtime::new(config, granted, page.clone());
        (page, runtime)
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The time.
    pub fn time(&self) -> Time {
        self.lock().now
    }

    /// Sets the clock back. A host timer that is set rings after the same time as without that.
    pub fn turn_back(&self, by: Duration) {
        let mut queues = self.lock();
        queues.now = Time::from_nanos(queues.now.as_nanos().saturating_sub(nanos(by)));
        if let Some((at, _)) = &mut queues.timer {
            *at = Time::from_nanos(at.as_nanos().saturating_sub(nanos(by)));
        }
    }

    /// Moves the clock; it never goes back.
    pub fn set_time(&self, to: Time) {
        let mut queues = self.lock();
        queues.now = queues.now.max(to);
    }

    /// How often each facility was used.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// The lines that the runtime has reported.
    pub fn reports(&self) -> Vec<String> {
        self.lock().reports.clone()
    }

    /// How many microtasks and macrotasks wait.
    pub fn waiting(&self) -> (usize, usize) {
        let queues = self.lock();
        (queues.microtasks.len(), queues.macrotasks.len())
    }

    /// When the host timer rings, and with which token.
    pub fn timer(&self) -> Option<(Time, u32)> {
        self.lock().timer
    }

    /// Runs queued microtasks: how many.
    pub fn microtasks(&self, runtime: &Runtime) -> usize {
        let mut ran = 0;
        loop {
            let next = self.lock().microtasks.pop_front();
            let Some(token) = next else { return ran };
            let _ = runtime.called(token);
            ran += 1;
        }
    }

    /// Reports the end of the current turn, if the runtime asked for that. It is not counted as a
    /// macrotask.
    fn end_turn(&self, runtime: &Runtime) {
        let token = self.lock().turn_end.take();
        if let Some(token) = token {
            let _ = runtime.called(token);
        }
    }

    /// The end of the current turn, then the next macrotask with its microtasks: whether there was
    /// one.
    pub fn turn(&self, runtime: &Runtime) -> bool {
        self.microtasks(runtime);
        self.end_turn(runtime);
        let next = self.lock().macrotasks.pop_front();
        let had = next.is_some();
        if let Some((_, token)) = next {
            let _ = runtime.called(token);
        }
        self.microtasks(runtime);
        had
    }

    /// Has the host timer ring if its time has come: whether it did.
    pub fn ring(&self, runtime: &Runtime) -> bool {
        let due = {
            let mut queues = self.lock();
            let now = queues.now;
            queues.timer.take_if(|(at, _)| *at <= now)
        };
        let Some((_, token)) = due else { return false };
        self.end_turn(runtime);
        let _ = runtime.rang(token);
        self.microtasks(runtime);
        true
    }

    /// Turns the loop until nothing is left to do at this time.
    pub fn settle(&self, runtime: &Runtime) {
        self.microtasks(runtime);
        while self.turn(runtime) || self.ring(runtime) {}
    }

    /// Turns the loop, and moves the clock from host timer to host timer, until nothing is left.
    pub fn run(&self, runtime: &Runtime) {
        self.settle(runtime);
        while let Some((at, _)) = self.timer() {
            self.set_time(at);
            self.settle(runtime);
        }
    }

    /// The same, but not beyond a time.
    pub fn run_until(&self, runtime: &Runtime, end: Time) {
        self.settle(runtime);
        while let Some((at, _)) = self.timer().filter(|(at, _)| *at <= end) {
            self.set_time(at);
            self.settle(runtime);
        }
        self.set_time(end);
        self.settle(runtime);
    }
}

impl HostCalls for Page {
    fn call(&self, call: HostCall, token: u32) {
        let mut queues = self.lock();
        match call {
            HostCall::Microtask => {
                queues.counts.microtasks += 1;
                queues.microtasks.push_back(token);
            }
            call => {
                queues.counts.handoffs += 1;
                queues.macrotasks.push_back((call, token));
            }
        }
    }

    fn watch_turn(&self, _: HostCall, token: u32) {
        self.lock().turn_end = Some(token);
    }

    fn arm(&self, after_ms: u32, token: u32) {
        let mut queues = self.lock();
        queues.counts.timers += 1;
        queues.counts.longest_ms = queues.counts.longest_ms.max(after_ms);
        queues.timer = Some((queues.now + Duration::from_millis(after_ms.into()), token));
    }

    fn now(&self) -> Time {
        let mut queues = self.lock();
        queues.counts.clock += 1;
        queues.now
    }

    fn entropy(&self) -> u64 {
        let mut queues = self.lock();
        queues.counts.entropy += 1;
        queues.draws += 1;
        mix64(queues.draws)
    }

    fn report(&self, line: &str) {
        self.lock().reports.push(line.to_owned());
    }
}
