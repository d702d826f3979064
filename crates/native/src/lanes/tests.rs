//! Compares the counters with the entries.

use super::*;
use crate::entries::{self, EntryHost, yields};
use asx_kernel::rng::DetRng;
use asx_runtime::{Cancelled, Scope, Task};
use std::cell::RefCell;
use std::collections::VecDeque;

/// The entries in the lanes: task id, place, and whether it is pinned. A task that was cancelled
/// while it waited has two entries.
#[derive(Default)]
struct Model(Vec<(u64, Place, bool)>);

impl Model {
    fn put(&mut self, entry: &Runnable) {
        self.0.push((entry.id(), entry.place(), entry.pin().is_some()));
    }

    fn took(&mut self, lane: Lane, entry: &Runnable) {
        let which = |(id, place, _): &(u64, Place, bool)| (*id, place.lane()) == (entry.id(), lane);
        let at = self.0.iter().position(which).expect("it was there");
        self.0.swap_remove(at);
    }

    fn count(&self, which: impl Fn(Place, bool) -> bool) -> usize {
        self.0.iter().filter(|(_, place, pinned)| which(*place, *pinned)).count()
    }

    fn agrees(&self, lanes: &SharedLanes) {
        let len = |lane| self.count(|place, _| place.lane() == lane);
        let free = |lane| self.count(|place, pinned| place.lane() == lane && !pinned);
        assert_eq!(Lane::ALL.map(|lane| lanes.len(lane)), Lane::ALL.map(len));
        assert_eq!(lanes.total(), self.0.len());
        assert_eq!(lanes.stealable(), self.count(|_, pinned| !pinned));
        for wanted in [&Lane::ALL[..], &Lane::ALL[..1], &Lane::ALL[1..], &Lane::ALL[2..], &[]] {
            let any = wanted.iter().any(|lane| free(*lane) > 0);
            assert_eq!(lanes.has_stealable(wanted), any, "{wanted:?}");
        }
        let [cancel, timed, ready] = Lane::ALL.map(|lane| len(lane) > 0);
        assert_eq!(lanes.pending(), Pending { cancel, timed, ready });
        assert_eq!(lanes.leading.load(Acquire), self.count(|place, _| precedes_default(place)));
        let deadline = |(_, place, _): &(u64, Place, bool)| place.deadline();
        assert_eq!(lanes.nearest(), self.0.iter().filter_map(deadline).min());
    }
}

/// Spawns tasks for every place, some of them pinned.
fn spawn(s: &Scope<Cancelled>, rng: &mut DetRng, pins: bool) -> Vec<Task<(), Cancelled>> {
    let one = |_| {
        let mut task = s.task("one of many");
        match rng.below(4) {
            0 => task = task.deadline(Time::from_nanos(10 + rng.below(5) as u64)),
            1 => task = task.priority(127 + rng.below(3) as u8),
            _ => {}
        }
        if pins && rng.below(3) == 0 {
            task = task.pinned_to(0);
        }
        task.spawn(yields)
    };
    (0..12).map(one).collect()
}

fn of_lane((place, entry): (Place, Runnable)) -> (Lane, Runnable) {
    (place.lane(), entry)
}

/// Takes an entry by a random method. Returns its lane and the entry.
fn take(lanes: &SharedLanes, rng: &mut DetRng, model: &Model) -> Option<(Lane, Runnable)> {
    let lane = Lane::ALL[rng.below(3)];
    match rng.below(5) {
        0 | 1 => lanes.pop(lane).map(of_lane),
        2 => lanes.pop_leading().map(of_lane),
        3 => {
            let wanted = &Lane::ALL[rng.below(3)..];
            let free = |place: Place, pinned: bool| wanted.contains(&place.lane()) && !pinned;
            let stolen = lanes.steal(wanted);
            assert_eq!(stolen.is_some(), model.count(free) > 0);
            stolen.map(of_lane)
        }
        _ => None,
    }
}

/// [`take`] or `pop_tied`, which is for lanes without a FIFO.
fn take_of_all(lanes: &SharedLanes, rng: &mut DetRng, model: &Model) -> Option<(Lane, Runnable)> {
    match rng.below(2) {
        0 => lanes.pop_tied(|tied| rng.below(tied)).map(of_lane),
        _ => take(lanes, rng, model),
    }
}

/// Runs a random history; returns the number of entries taken.
fn history(seed: u64, lanes: &SharedLanes, with_fifo: bool) -> usize {
    let mut model = Model::default();
    let mut taken = 0;
    let mut rng = DetRng::new(seed, 0);
    let plan = RefCell::new(DetRng::new(seed, 1));
    let tasks = RefCell::default();
    let drive = |host: &EntryHost| {
        let mut coming = host.take();
        if with_fifo {
            // The root is pinned, and may not be in lanes with a FIFO.
            let (root, free) = coming.into_iter().partition(|entry| entry.pin().is_some());
            coming = free;
            VecDeque::into_iter(root).for_each(|entry| assert!(entry.run()));
        }
        coming.iter().for_each(|entry| model.put(entry));
        // Some are added together, the others one by one.
        lanes.push_all(coming.drain(..rng.below(coming.len() + 1)).collect());
        coming.into_iter().for_each(|entry| lanes.push(entry));
        model.agrees(lanes);
        for _ in 0..rng.below(8) {
            let found = match with_fifo {
                true => take(lanes, &mut rng, &model),
                false => take_of_all(lanes, &mut rng, &model),
            };
            let Some((lane, entry)) = found else { continue };
            model.took(lane, &entry);
            model.agrees(lanes);
            taken += 1;
            entry.run();
        }
        // Cancel a task, which may wait or have completed.
        let tasks: &Vec<Task<_, _>> = &tasks.borrow();
        if rng.below(3) == 0 && !tasks.is_empty() {
            tasks[rng.below(tasks.len())].cancel("as it happens");
        }
    };
    entries::run_with(
        |s| *tasks.borrow_mut() = spawn(s, &mut plan.borrow_mut(), !with_fifo),
        drive,
    );
    // Second entries of completed tasks are left.
    lanes.expire();
    Model::default().agrees(lanes);
    taken
}

#[test]
fn counters_match_the_entries_of_random_histories() {
    let taken: usize = (0..200).map(|seed| history(seed, &SharedLanes::default(), false)).sum();
    let with_fifo: usize =
        (0..200).map(|seed| history(seed, &SharedLanes::with_fifo(), true)).sum();
    assert!(taken > 200 * 24 && with_fifo > 200 * 24, "{taken} {with_fifo}");
}
