//! A reduced search leaves out orders of operations on different objects. Tasks that also share
//! state outside asx (an atomic, a standard lock) may tell those orders apart, so a check tries
//! orders without the reduction before it reports a proof.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex};

use asx_lab::{Grain, Report, check};
use asx_runtime::channel::bounded;
use asx_runtime::{Cancelled, Cx, Scope};

/// Operations of each task on a private channel.
const OPERATIONS: usize = 6;

/// One task counts its operations in an atomic, and another reads the count before each operation.
/// Both have used one channel of asx, so there is something to prove. Returns what was read.
async fn counts_seen(cx: &Cx) -> [usize; OPERATIONS] {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let seen = Arc::new(StdMutex::new([0; OPERATIONS]));
    let written = seen.clone();
    let (shared, _rx) = bounded::<()>(2);
    let other = shared.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |_: Cx| {
            let (own, _rx) = bounded(OPERATIONS);
            for _ in 0..OPERATIONS {
                own.try_send(()).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
            shared.try_send(()).unwrap();
            Ok(())
        });
        s.spawn(async move |_: Cx| {
            let (own, _rx) = bounded(OPERATIONS);
            for at in 0..OPERATIONS {
                written.lock().unwrap()[at] = counted.load(Ordering::Relaxed);
                own.try_send(()).unwrap();
            }
            other.try_send(()).unwrap();
            Ok(())
        });
        Ok(())
    })
    .await
    .unwrap();
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

/// Checks that one sequence of counts is never read.
fn never(sequence: [usize; OPERATIONS], grain: Option<Grain>) -> Report {
    let check = check(async |cx: Cx| assert_ne!(counts_seen(&cx).await, sequence));
    grain.map_or(check.clone(), |grain| check.grain(grain)).run()
}

/// The reader stops after some of its operations until the other task has made some, and then goes
/// on alone: two preemptions. Every such order is found, whichever operations it is between.
#[test]
fn orders_with_two_preemptions_are_found() {
    for before in 1..OPERATIONS {
        for count in 1..OPERATIONS {
            let mut sequence = [count; OPERATIONS];
            sequence[..before].fill(0);
            for grain in [None, Some(Grain::Operation)] {
                let report = never(sequence, grain);
                assert!(report.failure.is_some(), "{sequence:?}: {report}");
            }
        }
    }
}

/// A sequence that is not possible is proved, with the number of orders that were tried besides.
#[test]
fn a_proof_counts_the_orders_without_the_reduction() {
    let report = never([1, 0, 0, 0, 0, 0], None);
    let proof = report.proof.expect("a proof");
    assert!(proof.unreduced > 100, "{report}");
    let text = report.to_string();
    assert!(text.contains(&format!("only tried in {} orders", proof.unreduced)), "{text}");
    assert!(text.contains("code between two operations runs as one step"), "{text}");
}
