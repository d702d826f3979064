//! What the runtimes are measured with: clocks, a count-down, resident memory.

use std::future::poll_fn;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};

use rustix::time::{ClockId, clock_gettime};

/// A running clock.
pub(super) struct Clock {
    id: ClockId,
    start: f64,
}

impl Clock {
    /// Time that goes by.
    pub(super) fn wall() -> Clock {
        Clock::start(ClockId::Monotonic)
    }

    /// Processor time of the whole process.
    pub(super) fn cpu() -> Clock {
        Clock::start(ClockId::ProcessCPUTime)
    }

    /// Nanoseconds per operation since the start.
    pub(super) fn per(self, operations: u32) -> f64 {
        (nanos(self.id) - self.start) / f64::from(operations)
    }

    fn start(id: ClockId) -> Clock {
        Clock { id, start: nanos(id) }
    }
}

fn nanos(id: ClockId) -> f64 {
    let now = clock_gettime(id);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Counts down, from any thread; one task waits for zero. As a waker it counts wakes.
pub(super) struct Tally {
    left: AtomicU32,
    waiter: Mutex<Option<Waker>>,
}

impl Tally {
    /// Waits for this many hits.
    pub(super) fn new(left: u32) -> Arc<Tally> {
        Arc::new(Tally { left: AtomicU32::new(left), waiter: Mutex::new(None) })
    }

    /// One less to wait for.
    pub(super) fn hit(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let waiter = self.waiter.lock().expect("no panic under the lock").take();
            waiter.into_iter().for_each(Waker::wake);
        }
    }

    /// Until nothing is left.
    pub(super) async fn zero(&self) {
        poll_fn(|cx| {
            // First the waker, then the look: a hit in between finds the waker.
            *self.waiter.lock().expect("no panic under the lock") = Some(cx.waker().clone());
            if self.left.load(Ordering::Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Wake for Tally {
    fn wake(self: Arc<Self>) {
        self.hit();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.hit();
    }
}

/// How this process has grown.
pub(super) struct Growth(u64);

impl Growth {
    /// From here on.
    pub(super) fn start() -> Growth {
        Growth(resident().unwrap_or(0))
    }

    /// Bytes per task since the start.
    pub(super) fn per(self, tasks: u32) -> f64 {
        resident().unwrap_or(0).saturating_sub(self.0) as f64 / f64::from(tasks)
    }
}

/// Resident bytes of this process, where the system tells.
pub(super) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The parked tasks of this peer in a process of their own: memory that other workloads have
/// left behind would hide them.
pub(super) fn in_fresh_process(peer: &str, tasks: u32) -> f64 {
    let program = std::env::current_exe().expect("the path of this program");
    let tasks = tasks.to_string();
    let output = Command::new(program).args([crate::PARK, peer, &tasks]).output();
    let output = output.expect("this program starts again");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a number of bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Context;

    #[test]
    fn the_waiter_is_woken_by_the_last_hit_and_only_by_it() {
        let tally = Tally::new(2);
        let woken = Tally::new(1);
        let waker = Waker::from(woken.clone());
        let mut cx = Context::from_waker(&waker);
        let mut zero = pin!(tally.zero());
        assert!(zero.as_mut().poll(&mut cx).is_pending());
        tally.hit();
        assert_eq!(woken.left.load(Ordering::Relaxed), 1);
        assert!(zero.as_mut().poll(&mut cx).is_pending());
        tally.hit();
        assert_eq!(woken.left.load(Ordering::Relaxed), 0);
        assert!(zero.as_mut().poll(&mut cx).is_ready());
    }
}
