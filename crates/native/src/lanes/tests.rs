//! The counts against what is there.

use super::*;
use crate::entries::{self, Keeps, yields};
use asx_kernel::rng::DetRng;
use asx_runtime::{Cancelled, Scope, Task};
use std::cell::RefCell;
use std::collections::VecDeque;

/// What is in the lanes: which task, where, and whether it is pinned. One that is asked to stop
/// while it waits has two entries.
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
        assert_eq!(lanes.leading.load(Acquire), self.count(|place, _| leads(place)));
        let deadline = |(_, place, _): &(u64, Place, bool)| place.deadline();
        assert_eq!(lanes.nearest(), self.0.iter().filter_map(deadline).min());
    }
}

/// Tasks for every place, some pinned.
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

/// Takes an entry in one of the ways there are: the lane it came from, and the entry.
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

/// The ways for lanes without a line.
fn take_of_all(lanes: &SharedLanes, rng: &mut DetRng, model: &Model) -> Option<(Lane, Runnable)> {
    match rng.below(2) {
        0 => lanes.pop_tied(|tied| rng.below(tied)).map(of_lane),
        _ => take(lanes, rng, model),
    }
}

/// A random history: how many entries were taken.
fn history(seed: u64, lanes: &SharedLanes, in_line: bool) -> usize {
    let mut model = Model::default();
    let mut taken = 0;
    let mut rng = DetRng::new(seed, 0);
    let plan = RefCell::new(DetRng::new(seed, 1));
    let tasks = RefCell::default();
    let drive = |host: &Keeps| {
        let mut coming = host.take();
        if in_line {
            // The root is pinned, and has no place in them.
            let (root, free) = coming.into_iter().partition(|entry| entry.pin().is_some());
            coming = free;
            VecDeque::into_iter(root).for_each(|entry| assert!(entry.run()));
        }
        coming.iter().for_each(|entry| model.put(entry));
        // Some at once, the rest one by one.
        lanes.push_all(coming.drain(..rng.below(coming.len() + 1)).collect());
        coming.into_iter().for_each(|entry| lanes.push(entry));
        model.agrees(lanes);
        for _ in 0..rng.below(8) {
            let found = match in_line {
                true => take(lanes, &mut rng, &model),
                false => take_of_all(lanes, &mut rng, &model),
            };
            let Some((lane, entry)) = found else { continue };
            model.took(lane, &entry);
            model.agrees(lanes);
            taken += 1;
            entry.run();
        }
        // One of those that wait, or that have ended.
        let tasks: &Vec<Task<_, _>> = &tasks.borrow();
        if rng.below(3) == 0 && !tasks.is_empty() {
            tasks[rng.below(tasks.len())].cancel("as it happens");
        }
    };
    entries::with(|s| *tasks.borrow_mut() = spawn(s, &mut plan.borrow_mut(), !in_line), drive);
    // What is left are second entries of tasks that have ended.
    lanes.expire();
    Model::default().agrees(lanes);
    taken
}

#[test]
fn the_counts_are_of_what_is_there() {
    let taken: usize = (0..200).map(|seed| history(seed, &SharedLanes::default(), false)).sum();
    let in_line: usize = (0..200).map(|seed| history(seed, &SharedLanes::in_line(), true)).sum();
    assert!(taken > 200 * 24 && in_line > 200 * 24, "{taken} {in_line}");
}
