//! Compares the queue with a `VecDeque`, with the entries of real tasks.

use super::*;
use crate::blocking::Pool;
use crate::entries::{EntryHost, with_tasks};
use crate::shared;
use asx_kernel::rng::DetRng;
use asx_runtime::{Cancelled, Core, Cx, Host, Root, Settings};
use std::sync::Arc;
use std::task::Waker;

#[test]
fn entries_leave_in_fifo_order_from_ring_and_backlog() {
    (1..=2).for_each(check_fifo_order);
}

fn check_fifo_order(workers: usize) {
    let (queue, shared) = Queue::of(workers);
    let mut model = VecDeque::new();
    let mut rng = DetRng::new(3, 0);
    let mut longest = 0;
    let mut emptied = 0;
    with_tasks(4 * CAPACITY, |host| {
        let incoming = host.take();
        for entry in incoming {
            model.push_back(entry.id());
            queue.push(&shared, entry);
        }
        longest = longest.max(model.len());
        for _ in 0..rng.next_u64() % (2 * CAPACITY as u64) {
            assert_eq!((queue.len(&shared), shared.len()), (model.len(), model.len()));
            let entry = queue.pop(&shared);
            assert_eq!(entry.as_ref().map(Runnable::id), model.pop_front());
            let Some(entry) = entry else { break };
            assert!(entry.run());
        }
        emptied += usize::from(shared.len() == 0);
    });
    assert!(longest > 2 * CAPACITY && emptied > 0, "{longest} {emptied}");
    assert!(model.is_empty() && queue.pop(&shared).is_none());
}

#[test]
fn a_thief_takes_older_entries_in_order_from_ring_and_backlog() {
    for held in [1, 2, 5, CAPACITY, CAPACITY + 1, 3 * CAPACITY] {
        let (victim, shared) = Queue::of(2);
        let (thief, own) = Queue::of(2);
        let mut known = VecDeque::new();
        with_tasks(held, |host| {
            let incoming = host.take();
            for entry in incoming {
                known.push_back(entry.id());
                victim.push(&shared, entry);
            }
            // The thief takes a run of the oldest entries; the others stay in order.
            let mut taken = Vec::new();
            let first = thief.steal(&shared);
            let more = std::iter::from_fn(|| thief.pop(&own));
            for entry in first.into_iter().chain(more) {
                taken.push(entry.id());
                assert!(entry.run());
            }
            assert!(taken.iter().eq(known.drain(..taken.len()).collect::<Vec<_>>().iter()));
            assert_eq!(shared.len(), known.len());
            assert!(!taken.is_empty() || known.is_empty());
        });
    }
}

#[test]
fn entries_scheduled_after_shutdown_are_dropped_at_once() {
    use crate::clock::Clock;
    use crate::shared::{Remote, Rules};
    use std::collections::BTreeSet;

    let (_queue, ends) = Queue::of(2);
    let pool = Pool::new(1, "late");
    let clock = Clock::machine();
    let over = shared::Shared::new([Remote::new(ends)].into(), pool, Rules::default(), clock);
    over.closed.store(true, Release);

    let host = Arc::new(EntryHost::default());
    let core = Core::new(host.clone(), Settings::default());
    let body = async |cx: Cx| {
        let cancelled = cx.scope(async |s| {
            for _ in 0..5 {
                // Cancelled while it waits in a queue, so that it has two entries.
                s.spawn(async |_: Cx| Ok(())).cancel("before it began");
            }
            Ok::<_, Cancelled>(())
        });
        cancelled.await.unwrap();
    };
    // The first entry of each task is run, the other one is scheduled too late.
    let mut late = Vec::new();
    let mut root = None;
    let mut seen = BTreeSet::new();
    let drive = || {
        let entry = lock(&host.0).pop_front().expect("something to run");
        let id = entry.id();
        if seen.insert(id) || *root.get_or_insert(id) == id {
            root.get_or_insert(id);
            entry.run();
        } else {
            late.push(entry);
        }
    };
    // SAFETY: only this thread runs tasks.
    let ran = unsafe { Root::run(&core.root(), 0, body, Waker::noop(), drive) };
    ran.unwrap().unwrap();
    assert_eq!(late.len(), 5);
    let host = Arc::downgrade(&{ host });
    drop(core);
    assert!(host.upgrade().is_some(), "entries keep their tasks alive, and these the host");
    late.into_iter().for_each(|entry| over.schedule(entry));
    assert!(host.upgrade().is_none());
}

#[test]
fn steal_takes_nothing_from_an_only_worker() {
    let (queue, shared) = Queue::of(1);
    let (thief, _own) = Queue::of(2);
    with_tasks(3, |host| {
        let incoming = host.take();
        incoming.into_iter().for_each(|entry| queue.push(&shared, entry));
        assert!(shared.len() > 0 && thief.steal(&shared).is_none());
        while let Some(entry) = queue.pop(&shared) {
            assert!(entry.run());
        }
    });
}
