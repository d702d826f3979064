//! Closing trees of regions: every order of events, duty by duty.
//!
//! A store in memory logs each duty that it performs. A model, written as one sequence of `if`s,
//! determines the expected duties. After each action every region is settled again, which must not
//! cause further duties.

use asx_kernel::cascade::{self, RegionStore};
use asx_kernel::region::{RegionState, RegionWord};

use RegionState::{Closed, Closing, Draining, Finalizing, Open};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Moved(usize, RegionState, RegionState),
    Cancel(usize),
    Finalizer(usize),
    Timers(usize),
    Channels(usize),
    Leaks(usize, u32),
    Gone(usize),
}

/// The initial contents of a region.
#[derive(Clone, Copy, Default)]
struct Plan {
    parent: Option<usize>,
    tasks: u32,
    finalizers: u32,
    obligations: u32,
}

#[derive(Clone)]
struct Store {
    parents: Vec<Option<usize>>,
    words: Vec<RegionWord>,
    /// Finalizer tasks that are running.
    running: Vec<u32>,
    /// Whether a cancel closes child regions immediately, inside the cascade.
    eager: bool,
    log: Vec<Entry>,
}

impl Store {
    fn new(plans: &[Plan], eager: bool) -> Store {
        let mut words = vec![RegionWord::default(); plans.len()];
        for (region, plan) in plans.iter().enumerate() {
            (0..plan.tasks).for_each(|_| words[region].task_added());
            (0..plan.finalizers).for_each(|_| words[region].finalizer_added());
            (0..plan.obligations).for_each(|_| words[region].obligation_added());
            if let Some(parent) = plan.parent {
                words[parent].child_added();
            }
        }
        let parents = plans.iter().map(|plan| plan.parent).collect();
        Store { parents, words, running: vec![0; plans.len()], eager, log: Vec::new() }
    }

    fn close(&mut self, region: usize) {
        if self.words[region].close() {
            self.moved(region, Open, Closing);
        }
        cascade::settle(self, region);
    }

    fn assert_nothing_lives_in(&self, region: usize) {
        let word = &self.words[region];
        assert_eq!((word.live_tasks(), word.open_children(), word.finalizers()), (0, 0, 0));
        assert_eq!(self.running[region], 0);
        for (child, parent) in self.parents.iter().enumerate() {
            assert!(*parent != Some(region) || self.words[child].state() == Closed);
        }
    }
}

impl RegionStore for Store {
    type Region = usize;

    fn with_word<R>(&mut self, region: usize, f: impl FnOnce(&mut RegionWord) -> R) -> R {
        f(&mut self.words[region])
    }

    fn moved(&mut self, region: usize, from: RegionState, to: RegionState) {
        self.log.push(Entry::Moved(region, from, to));
        if to == Closed {
            self.assert_nothing_lives_in(region);
            assert_eq!(self.words[region].outstanding(), 0);
        }
    }

    fn cancel_children(&mut self, region: usize) {
        self.log.push(Entry::Cancel(region));
        let children = (0..self.parents.len()).filter(|child| self.parents[*child] == Some(region));
        if self.eager {
            children.collect::<Vec<_>>().into_iter().for_each(|child| self.close(child));
        }
    }

    fn start_finalizer(&mut self, region: usize) {
        self.running[region] += 1;
        self.log.push(Entry::Finalizer(region));
    }

    fn cancel_timers(&mut self, region: usize) {
        self.assert_nothing_lives_in(region);
        self.log.push(Entry::Timers(region));
    }

    fn release_channels(&mut self, region: usize) {
        self.log.push(Entry::Channels(region));
    }

    fn account_leaks(&mut self, region: usize) {
        assert_eq!(self.log.last(), Some(&Entry::Channels(region)));
        self.log.push(Entry::Leaks(region, self.words[region].outstanding()));
    }

    fn closed(&mut self, region: usize) -> Option<usize> {
        self.log.push(Entry::Gone(region));
        self.parents[region]
    }
}

#[derive(Clone)]
struct Room {
    parent: Option<usize>,
    state: RegionState,
    ending: bool,
    /// Live tasks, running finalizers and open child regions.
    alive: u32,
    waiting_finalizers: u32,
    obligations: u32,
}

#[derive(Clone)]
struct Model {
    rooms: Vec<Room>,
    eager: bool,
    log: Vec<Entry>,
}

impl Model {
    fn new(plans: &[Plan], eager: bool) -> Model {
        let room = |(region, plan): (usize, &Plan)| Room {
            parent: plan.parent,
            state: Open,
            ending: false,
            alive: plan.tasks + plans.iter().filter(|p| p.parent == Some(region)).count() as u32,
            waiting_finalizers: plan.finalizers,
            obligations: plan.obligations,
        };
        Model { rooms: plans.iter().enumerate().map(room).collect(), eager, log: Vec::new() }
    }

    fn go(&mut self, region: usize, to: RegionState) {
        self.log.push(Entry::Moved(region, self.rooms[region].state, to));
        self.rooms[region].state = to;
    }

    fn is(&self, region: usize, state: RegionState) -> bool {
        self.rooms[region].state == state
    }

    fn close(&mut self, region: usize) {
        if self.is(region, Open) {
            self.go(region, Closing);
        }
        self.climb(region);
    }

    fn climb(&mut self, region: usize) {
        let empty = self.rooms[region].alive == 0;
        if self.is(region, Open) && self.rooms[region].ending && empty {
            self.go(region, Closing);
        }
        if self.is(region, Closing) && !empty {
            self.go(region, Draining);
            self.log.push(Entry::Cancel(region));
            let children = (0..self.rooms.len()).filter(|c| self.rooms[*c].parent == Some(region));
            if self.eager {
                children.collect::<Vec<_>>().into_iter().for_each(|child| self.close(child));
            }
        }
        if !empty || !matches!(self.rooms[region].state, Closing | Draining | Finalizing) {
            return;
        }
        if !self.is(region, Finalizing) {
            self.go(region, Finalizing);
        }
        if self.rooms[region].waiting_finalizers > 0 {
            self.rooms[region].waiting_finalizers -= 1;
            self.rooms[region].alive += 1;
            self.log.push(Entry::Finalizer(region));
            return;
        }
        self.log.push(Entry::Timers(region));
        self.log.push(Entry::Channels(region));
        let leaks = std::mem::take(&mut self.rooms[region].obligations);
        if leaks > 0 {
            self.log.push(Entry::Leaks(region, leaks));
        }
        self.go(region, Closed);
        self.log.push(Entry::Gone(region));
        if let Some(parent) = self.rooms[region].parent {
            self.rooms[parent].alive -= 1;
            self.climb(parent);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Action {
    Task(usize),
    Finalizer(usize),
    Resolve(usize),
    End(usize),
    Close(usize),
}

/// Performs the action on both, if it is possible now.
fn act(store: &mut Store, model: &mut Model, action: Action) -> bool {
    match action {
        Action::Task(r) | Action::Finalizer(r) => {
            let finalizer = matches!(action, Action::Finalizer(_));
            let running = store.running[r];
            let enough = if finalizer { running } else { store.words[r].live_tasks() - running };
            if enough == 0 {
                return false;
            }
            store.running[r] -= u32::from(finalizer);
            cascade::task_done(store, r);
            model.rooms[r].alive -= 1;
            model.climb(r);
        }
        Action::Resolve(r) => {
            if store.words[r].outstanding() == 0 {
                return false;
            }
            store.words[r].obligation_done();
            model.rooms[r].obligations -= 1;
        }
        Action::End(r) => {
            store.words[r].end();
            cascade::settle(store, r);
            model.rooms[r].ending = true;
            model.climb(r);
        }
        Action::Close(r) => {
            store.close(r);
            model.close(r);
        }
    }
    true
}

/// Explores every order of the possible actions and counts the runs.
fn explore(store: &Store, model: &Model, left: &[Action], runs: &mut usize) {
    let mut stuck = true;
    for at in 0..left.len() {
        let mut store = store.clone();
        let mut model = model.clone();
        if !act(&mut store, &mut model, left[at]) {
            continue;
        }
        stuck = false;
        assert_eq!(store.log, model.log, "after {:?}", left[at]);
        for region in 0..store.words.len() {
            cascade::settle(&mut store, region);
            assert_eq!(store.words[region].state(), model.rooms[region].state);
            assert_eq!(store.words[region].outstanding(), model.rooms[region].obligations);
        }
        assert_eq!(store.log, model.log, "settled again after {:?}", left[at]);
        let rest: Vec<_> = left[..at].iter().chain(&left[at + 1..]).copied().collect();
        explore(&store, &model, &rest, runs);
    }
    if stuck {
        assert!(store.words.iter().all(|word| word.state() == Closed), "{:?}", store.log);
        *runs += 1;
    }
}

fn explore_all(plans: &[Plan], actions: &[Action], eager: bool) -> usize {
    let mut runs = 0;
    explore(&Store::new(plans, eager), &Model::new(plans, eager), actions, &mut runs);
    runs
}

#[test]
fn one_region_closes_correctly_in_every_order() {
    let plan = Plan { tasks: 2, finalizers: 2, obligations: 2, ..Plan::default() };
    let mut actions = vec![Action::Task(0), Action::Task(0), Action::Finalizer(0)];
    actions.extend([Action::Finalizer(0), Action::Resolve(0), Action::Close(0)]);
    assert_eq!(explore_all(&[plan], &actions, false), 72);
    actions[5] = Action::End(0);
    assert_eq!(explore_all(&[plan], &actions, false), 72);
}

#[test]
fn a_parent_and_two_children_close_correctly_in_every_order() {
    let plans = [
        Plan { tasks: 1, finalizers: 1, obligations: 1, parent: None },
        Plan { tasks: 1, obligations: 1, parent: Some(0), ..Plan::default() },
        Plan { finalizers: 1, parent: Some(0), ..Plan::default() },
    ];
    let common = [
        Action::Task(0),
        Action::Task(1),
        Action::Finalizer(0),
        Action::Finalizer(2),
        Action::Resolve(1),
    ];
    let closed_from_above = [&common[..], &[Action::Close(0)]].concat();
    assert_eq!(explore_all(&plans, &closed_from_above, true), 47);
    let closed_then_ended = [&common[..], &[Action::Close(0), Action::End(1)]].concat();
    assert_eq!(explore_all(&plans, &closed_then_ended, true), 305);
    let each_ends = [&common[..], &[Action::End(0), Action::End(1), Action::End(2)]].concat();
    assert_eq!(explore_all(&plans, &each_ends, false), 2040);
}

#[test]
fn a_chain_of_three_closes_correctly_in_every_order() {
    let plans = [
        Plan { finalizers: 1, ..Plan::default() },
        Plan { parent: Some(0), obligations: 1, ..Plan::default() },
        Plan { parent: Some(1), tasks: 1, finalizers: 1, ..Plan::default() },
    ];
    let common = [Action::Task(2), Action::Finalizer(0), Action::Finalizer(2), Action::Resolve(1)];
    let from_above = [&common[..], &[Action::Close(0), Action::Close(1)]].concat();
    assert_eq!(explore_all(&plans, &from_above, true), 54);
    let ends = [&common[..], &[Action::End(0), Action::Close(1), Action::End(2)]].concat();
    assert_eq!(explore_all(&plans, &ends, false), 232);
}

#[test]
fn a_closed_tree_cancels_downwards_and_closes_upwards() {
    let plans = [
        Plan { tasks: 1, finalizers: 2, obligations: 3, parent: None },
        Plan { tasks: 1, parent: Some(0), ..Plan::default() },
        Plan { parent: Some(0), ..Plan::default() },
    ];
    let mut store = Store::new(&plans, true);
    store.close(0);
    let mut log = vec![
        Entry::Moved(0, Open, Closing),
        Entry::Moved(0, Closing, Draining),
        Entry::Cancel(0),
        Entry::Moved(1, Open, Closing),
        Entry::Moved(1, Closing, Draining),
        Entry::Cancel(1),
        Entry::Moved(2, Open, Closing),
        Entry::Moved(2, Closing, Finalizing),
        Entry::Timers(2),
        Entry::Channels(2),
        Entry::Moved(2, Finalizing, Closed),
        Entry::Gone(2),
    ];
    assert_eq!(store.log, log);
    cascade::task_done(&mut store, 0);
    assert_eq!(store.log, log);
    cascade::task_done(&mut store, 1);
    log.extend([
        Entry::Moved(1, Draining, Finalizing),
        Entry::Timers(1),
        Entry::Channels(1),
        Entry::Moved(1, Finalizing, Closed),
        Entry::Gone(1),
        Entry::Moved(0, Draining, Finalizing),
        Entry::Finalizer(0),
    ]);
    assert_eq!(store.log, log);
    store.running[0] = 0;
    cascade::task_done(&mut store, 0);
    log.push(Entry::Finalizer(0));
    assert_eq!(store.log, log);
    store.words[0].obligation_done();
    store.running[0] = 0;
    cascade::task_done(&mut store, 0);
    log.extend([
        Entry::Timers(0),
        Entry::Channels(0),
        Entry::Leaks(0, 2),
        Entry::Moved(0, Finalizing, Closed),
        Entry::Gone(0),
    ]);
    assert_eq!(store.log, log);
}

#[test]
fn an_ended_scope_stays_open_for_its_children_to_spawn() {
    let plans = [Plan { tasks: 1, ..Plan::default() }];
    let mut store = Store::new(&plans, false);
    store.words[0].end();
    cascade::settle(&mut store, 0);
    assert_eq!((store.words[0].state(), store.log.len()), (Open, 0));
    store.words[0].task_added();
    cascade::task_done(&mut store, 0);
    assert_eq!((store.words[0].state(), store.log.len()), (Open, 0));
    cascade::task_done(&mut store, 0);
    let log = [
        Entry::Moved(0, Open, Closing),
        Entry::Moved(0, Closing, Finalizing),
        Entry::Timers(0),
        Entry::Channels(0),
        Entry::Moved(0, Finalizing, Closed),
        Entry::Gone(0),
    ];
    assert_eq!(store.log, log);
}
