//! Tasks' own wakers take a shorter way: their clone only counts, so that it is made under the
//! lock. It must lead to the same end as the way of all other wakers.

use asx_kernel::rng::DetRng;
use asx_task::Runnable;
use asx_task::operation::is_task_waker;
use asx_task::probe::TaskProbe;
use asx_task::testing::{Count, keep_task, scheduled};
use std::sync::Arc;
use std::task::{Poll, Waker};

use super::*;

/// Somebody who waits: by a task's waker or by any other.
enum Who {
    Task(Cx),
    Other(Arc<Count>),
}

impl Who {
    fn task() -> Who {
        let (cx, _) = Cx::loose();
        keep_task(&cx);
        let who = Who::Task(cx);
        assert!(who.woken(), "it was spawned");
        who
    }

    fn waker(&self) -> Waker {
        match self {
            Who::Task(cx) => TaskProbe::of(cx).waker(),
            Who::Other(count) => Waker::from(count.clone()),
        }
    }

    /// Whether it was woken since the last call.
    fn woken(&self) -> bool {
        match self {
            Who::Task(cx) => {
                let woken = TaskProbe::of(cx).lane().is_some();
                let entry = scheduled(cx);
                assert_eq!(entry.is_some(), woken);
                // Its future waits for nothing, so that it waits for a wake after that.
                entry.is_some_and(Runnable::run)
            }
            Who::Other(count) => count.wakes() > 0,
        }
    }
}

/// What one step came to, as the users see it.
#[derive(Debug, PartialEq)]
enum Seen {
    Reserved(Poll<bool>),
    Sent(Poll<bool>),
    Received(Poll<Option<u64>>),
    Nothing,
}

/// One channel, three senders and a receiver, driven by a random stream.
fn history(seed: u64, capacity: usize, who: impl Fn() -> Who) -> Vec<(Seen, [bool; 4], usize)> {
    let mut rng = DetRng::new(seed, 0);
    let people: [Who; 4] = std::array::from_fn(|_| who());
    let (tx, rx) = bounded::<u64>(capacity);
    let shared = &*tx.shared;
    let mut places = [None; 3];
    let mut again = false;
    let mut permits = 0;
    let mut seen = Vec::new();
    for n in 0..200 {
        let sender = (rng.next_u64() % 3) as usize;
        let place = &mut places[sender];
        let waker = people[sender].waker();
        let step = match rng.next_u64() % 7 {
            0 | 1 => Seen::Reserved(shared.poll_reserve(place, &waker, |_| ()).map(|granted| {
                permits += usize::from(granted.is_ok());
                granted.is_ok()
            })),
            2 | 3 => {
                Seen::Sent(shared.poll_send(place, &mut Some(n), &waker).map(|sent| sent.is_ok()))
            }
            4 | 5 => {
                let waker = people[3].waker();
                let got = shared.poll_recv(again, &waker, Shared::take);
                again = got.is_pending();
                Seen::Received(got.map(Result::ok))
            }
            _ if permits > 0 && n % 2 == 0 => {
                permits -= 1;
                Seen::Sent(Poll::Ready(shared.fill(0, n).is_ok()))
            }
            _ => {
                shared.leave(place);
                Seen::Nothing
            }
        };
        check(&tx);
        seen.push((step, std::array::from_fn(|n| people[n].woken()), tx.len()));
    }
    (0..permits).for_each(|_| shared.free(0, asx_kernel::session::Resolution::Abort));
    places.iter_mut().for_each(|place| shared.leave(place));
    drop(rx);
    seen
}

#[test]
fn tasks_and_others_are_served_and_woken_alike() {
    let mut waits = 0;
    let mut wakes = 0;
    for (seed, capacity) in (0..100).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let tasks = history(seed, capacity, Who::task);
        let others = history(seed, capacity, || Who::Other(Arc::default()));
        assert_eq!(tasks, others);
        waits += tasks.iter().filter(|(seen, ..)| *seen == Seen::Sent(Poll::Pending)).count();
        wakes += tasks.iter().filter(|(_, woken, _)| woken.contains(&true)).count();
    }
    assert!(waits > 1000 && wakes > 1000, "{waits} {wakes}");
}

#[test]
fn the_clone_of_a_task_s_waker_counts_and_does_nothing_else() {
    let (cx, _) = Cx::loose();
    let task = TaskProbe::of(&cx);
    let first = task.waker();
    assert!(is_task_waker(&first) && !is_task_waker(Waker::noop()));
    let before = task.lane();
    let clone = Waker::clone(&first);
    assert!(is_task_waker(&clone) && clone.will_wake(&first));
    drop(clone);
    assert_eq!(task.lane(), before);
}
