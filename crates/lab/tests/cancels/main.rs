//! Each primitive, with a cancel of each task at each of its awaits, and with a wake for nothing
//! there: whatever is cancelled or woken, nothing is lost, doubled or left behind.

mod channels;
mod closes;
mod locks;
mod parts;
mod tasks;
mod times;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use asx_lab::{Check, Grain, Judged, check};
use asx_runtime::Cx;

/// All of it is to be run, however busy the machine is.
const MINUTE: Duration = Duration::from_secs(60);

/// All cancels were tried, also between two operations of a poll, and no run has failed.
fn holds<F, B>(program: F)
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    passes(check(&program).cancel_at_every_await(), check(&program).faults());
}

/// The same for a program that counts on how much time has passed.
fn holds_in_exact_time<F, B>(program: F)
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    let cancelled = check(&program).exact_time().cancel_at_every_await();
    passes(cancelled, check(&program).exact_time().faults());
}

/// The same for a program that waits for one of two tasks, which are not both to be cancelled.
fn holds_with_one_cancel<F, B>(program: F)
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    let cancelled = check(&program).disturbances(1).cancel_at_every_await();
    passes(cancelled, check(&program).faults());
}

/// The same, with cancels at poll grain only, for a program of which a part that was begun must be
/// done.
fn holds_at_polls<F, B>(program: F)
where
    F: Fn(Cx) -> B,
    B: Future<Output: Judged>,
{
    let cancelled = check(&program).grain(Grain::Poll).cancel_at_every_await();
    passes(cancelled, check(&program).faults());
}

fn passes<F, G, B, C>(cancelled: Check<F>, woken: Check<G>)
where
    F: Fn(Cx) -> B,
    G: Fn(Cx) -> C,
    B: Future<Output: Judged>,
    C: Future<Output: Judged>,
{
    let report = cancelled.time(MINUTE).run();
    println!("{report}");
    assert!(report.failure.is_none(), "{report}");
    let (tried, all) = report.cancels.expect("cancels were asked for");
    assert!(tried == all && all > 0, "{report}");
    // And in other orders, without cancels, with wakes for nothing.
    let report = woken.time(MINUTE).run();
    println!("{report}");
    assert!(report.failure.is_none(), "{report}");
}

/// Lets the others go on, whatever was said to the task. A yield would not do: without preemptions
/// the task that has yielded goes on at once.
async fn pause(cx: &Cx) {
    let slept = cx.shield(|cx| cx.sleep(Duration::from_secs(1))).await;
    assert!(slept.is_ok());
}

/// A number that tasks share.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    fn add(&self, by: u32) -> u32 {
        self.0.fetch_add(by, Relaxed) + by
    }

    /// One more, until it is dropped.
    fn inside(&self) -> Inside {
        self.add(1);
        Inside(self.clone())
    }
}

struct Inside(Count);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}
