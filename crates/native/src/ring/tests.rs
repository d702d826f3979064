use super::*;
use asx_kernel::rng::DetRng;
use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    sync::atomic::{AtomicBool, AtomicUsize},
    thread,
};

fn entry(n: usize) -> NonNull<()> {
    NonNull::without_provenance(NonZeroUsize::MIN.saturating_add(n))
}

fn number(entry: NonNull<()>) -> usize {
    entry.addr().get() - 1
}

#[test]
fn owner_is_send_and_stealer_is_sync() {
    fn send<T: Send>() {}
    fn sync<T: Sync + Clone>() {}
    send::<Owner<*mut ()>>();
    send::<Stealer<*mut ()>>();
    sync::<Stealer<*mut ()>>();
}

#[test]
fn an_owner_sees_a_bounded_fifo() {
    check_bounded_fifo(Owner::pop);
    check_bounded_fifo(Owner::pop_unstolen);
}

fn check_bounded_fifo(pop: fn(&Owner<()>) -> Option<NonNull<()>>) {
    let mut rng = DetRng::new(1, 0);
    let ring = Owner::new();
    let mut model = VecDeque::new();
    let mut full = 0;
    let mut empty = 0;
    for n in 0..100_000 {
        // Long runs of one kind reach both the full and the empty ring.
        let pushes = if (n / (4 * CAPACITY)).is_multiple_of(2) { 7 } else { 1 };
        if rng.next_u64() % 8 < pushes {
            let pushed = ring.push(entry(n));
            if model.len() == CAPACITY {
                assert_eq!(pushed, Err(entry(n)));
                full += 1;
            } else {
                assert_eq!(pushed, Ok(()));
                model.push_back(entry(n));
            }
        } else {
            empty += usize::from(model.is_empty());
            assert_eq!(pop(&ring), model.pop_front());
        }
        assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
    }
    assert!(full > 100 && empty > 100, "{full} {empty}");
    assert!(ring.drain().eq(model));
    assert!(ring.is_empty());
}

#[test]
fn a_thief_takes_the_older_half_in_order() {
    for count in 0..=CAPACITY {
        let victim = Owner::new();
        let thief = Owner::new();
        for n in 0..count {
            victim.push(entry(n)).unwrap();
        }
        assert_eq!(victim.stealer().len(), count);
        let first = victim.stealer().steal_into(&thief);
        let half = count.div_ceil(2);
        assert_eq!(first, (count > 0).then(|| entry(0)));
        assert!(thief.drain().map(number).eq(1..half.max(1)), "{count}");
        assert!(victim.drain().map(number).eq(half..count), "{count}");
    }
}

#[test]
fn a_thief_takes_at_most_what_its_ring_holds() {
    for room in 0..4 {
        let victim = Owner::new();
        let thief = Owner::new();
        for n in 0..CAPACITY {
            victim.push(entry(n)).unwrap();
        }
        for n in 0..CAPACITY - room {
            thief.push(entry(1000 + n)).unwrap();
        }
        assert_eq!(victim.stealer().steal_into(&thief), Some(entry(0)));
        assert_eq!(thief.len(), CAPACITY);
        let moved = thief.drain().skip(CAPACITY - room).map(number);
        assert!(moved.eq(1..=room), "{room}");
        assert!(victim.drain().map(number).eq(room + 1..CAPACITY), "{room}");
    }
}

#[test]
fn stealing_from_the_own_ring_keeps_every_entry() {
    let ring = Owner::new();
    for n in 0..7 {
        ring.push(entry(n)).unwrap();
    }
    assert_eq!(ring.stealer().steal_into(&ring), Some(entry(0)));
    assert!(ring.drain().map(number).eq([4, 5, 6, 1, 2, 3]));
}

#[test]
fn with_thieves_each_entry_is_delivered_once() {
    const ENTRIES: usize = if cfg!(miri) { 2_000 } else { 200_000 };
    let owner = Owner::new();
    let seen: Vec<_> = (0..ENTRIES).map(|_| AtomicUsize::new(0)).collect();
    let deliver = |entry| seen[number(entry)].fetch_add(1, Relaxed);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            let victim = owner.stealer();
            scope.spawn(|| {
                let victim = victim;
                let own = Owner::new();
                // In this order: entries pushed before `done` was set are visible after it is read.
                while !done.load(Acquire) || !victim.is_empty() {
                    match victim.steal_into(&own) {
                        Some(first) => iter::once(first).chain(own.drain()).for_each(|entry| {
                            deliver(entry);
                        }),
                        None => thread::yield_now(),
                    }
                }
            });
        }
        for n in 0..ENTRIES {
            let mut back = owner.push(entry(n));
            while let Err(entry) = back {
                owner.pop().map(deliver);
                back = owner.push(entry);
            }
            if n % 3 == 0 {
                owner.pop().map(deliver);
            }
        }
        done.store(true, Release);
    });
    assert_eq!(owner.pop(), None);
    assert!(seen.iter().all(|count| count.load(Relaxed) == 1));
}
