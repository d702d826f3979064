//! The reduction itself: one run after another, races turned into runs that are owed.

use super::state::State;
use super::wakeup::{First, NONE, Owed, Wakeups};
use crate::explore::bounded::Levels;
use crate::explore::tally::Tally;
use crate::explore::trace::{Print, Race, Trace, pick_hash};
use crate::explore::{Access, Limits, Point, Progress, Strategy, TaskPath, Verdict};

/// The object that stands for the cancels that are left.
const LIMIT: u64 = 0x6C69_6D69_7420_6F66;

/// Of longer runs races are not looked at: there are more of them than could ever be reversed, and
/// to find them takes the square of the length. Nothing is proved then.
const LONGEST: usize = 4000;

/// The exploration proper.
#[derive(Debug)]
pub(super) struct Reduction {
    trace: Trace,
    wakeups: Wakeups,
    /// The state before each step of the current run; those from `depth` on are spare.
    states: Vec<State>,
    depth: usize,
    /// The first step of this run that was not taken by the run before.
    fresh: usize,
    /// The next step of this run, and the next choice in it.
    at: usize,
    pick: usize,
    is_inside: bool,
    /// Everything that can go on sleeps: the rest of the run is known, and must not be looked at.
    is_blocked: bool,
    has_diverged: bool,
    /// The trees of the state after the last one.
    guide: u32,
    owed: Owed,
    /// At most so many cancels in a run; whether this step asked for one, and how many it got.
    cancels: usize,
    asked: bool,
    injected: usize,
    /// Whether the task of this step has let others go first.
    has_yielded: bool,
    /// How often a cancel was refused.
    refused: usize,
    /// A run of this level has ended.
    is_over: bool,
    pub(super) tally: Tally,
    /// A choice was made between two steps: what depends on it is unknown, and the run is for
    /// nothing.
    pub(super) is_wasted: bool,
}

impl Reduction {
    pub(super) fn new() -> Reduction {
        Reduction {
            trace: Trace::new(),
            wakeups: Wakeups::new(),
            states: Vec::new(),
            depth: 0,
            fresh: 0,
            at: 0,
            pick: 0,
            is_inside: false,
            is_blocked: false,
            has_diverged: false,
            guide: NONE,
            owed: Owed::default(),
            cancels: usize::MAX,
            asked: false,
            injected: 0,
            has_yielded: false,
            refused: 0,
            is_over: false,
            tally: Tally::default(),
            is_wasted: false,
        }
    }

    /// Moves to the next branch that is owed. `false` if there is none.
    fn advance(&mut self) -> bool {
        while let Some(last) = self.depth.checked_sub(1) {
            let state = &mut self.states[last];
            while let Some((count, value)) = state.picks.last_mut() {
                *value += 1;
                if value < count {
                    return true;
                }
                state.picks.pop();
            }
            state.sleep.push((state.task, state.print));
            if let Some(child) = state.wake(&mut self.wakeups) {
                self.guide = child;
                return true;
            }
            self.depth = last;
        }
        false
    }

    /// The state before a step that no run took from here.
    fn enter(&mut self, enabled: &[TaskPath]) -> usize {
        if self.states.len() == self.depth {
            self.states.push(State::new());
        }
        let (past, rest) = self.states.split_at_mut(self.depth);
        let state = &mut rest[0];
        state.enabled.clear();
        state.enabled.extend_from_slice(self.trace.names.of(enabled));
        state.sleep.clear();
        state.cancels = 0;
        state.index = 0;
        let mut default = None;
        if let Some((past, step)) = past.last().zip(self.trace.steps.last()) {
            let awake = |(_, print): &&(u32, Print)| print.is_independent(step.print);
            state.sleep.extend(past.sleep.iter().filter(awake));
            state.cancels = past.cancels + past.injected;
            default = Some(past.task);
        }
        state.inherited = state.sleep.len();
        state.wakeups = std::mem::replace(&mut self.guide, NONE);
        if let Some(child) = state.wake(&mut self.wakeups) {
            self.guide = child;
        } else {
            let is_awake = |task: &&u32| state.sleep.iter().all(|(asleep, _)| asleep != *task);
            let mut choices = state.enabled.iter().filter(is_awake);
            let first = choices.clone().next().copied();
            match choices.find(|task| Some(**task) == default).copied().or(first) {
                Some(task) => state.start(task),
                None => {
                    self.is_blocked = true;
                    return 0;
                }
            }
        }
        self.depth += 1;
        self.find(enabled)
    }

    /// Where the task of the current step is among the enabled.
    fn find(&mut self, enabled: &[TaskPath]) -> usize {
        let state = &mut self.states[self.at];
        let path = TaskPath(self.trace.names.index.name(state.task));
        if enabled.get(state.index) == Some(&path) {
            return state.index;
        }
        let found = enabled.iter().position(|other| *other == path);
        self.has_diverged |= found.is_none();
        state.index = found.unwrap_or(0);
        state.index
    }

    /// Owes a run in which `task` takes its step before the one numbered `step`.
    fn reverse(&mut self, step: u32, task: u32) {
        let state = &mut self.states[step as usize];
        self.owed.without(&self.trace, step, task);
        // No other sleeper can come first here: none took a step before one that woke it.
        let asleep = state.sleep.iter().find(|(asleep, _)| *asleep == task);
        let print = asleep.map(|(_, print)| *print);
        let is_covered = self.owed.first(&self.trace, task, print) == First::Last;
        if print.is_none() || !is_covered {
            self.wakeups.insert(&mut state.wakeups, &self.trace, &mut self.owed);
        }
    }

    /// Owes what the races of this run ask for.
    fn reverse_races(&mut self) {
        let clock = self.trace.names.index.of(TaskPath::CLOCK.0);
        let mut next = 0;
        while let Some(race) = self.trace.race(next) {
            next += 1;
            let Race { step, task, .. } = race;
            // It has waited for all steps before it.
            if task == clock {
                continue;
            }
            let could_run = self.states[step as usize].enabled.contains(&task);
            if self.trace.is_possible(race, could_run) {
                self.reverse(step, task);
            }
        }
    }

    /// Notes the tasks that the last step kept from running.
    fn note_disabled(&mut self, enabled: &[TaskPath]) {
        let Some(last) = self.at.checked_sub(1) else { return };
        let state = &self.states[last];
        let mut next = 0;
        for task in &state.enabled {
            let path = TaskPath(self.trace.names.index.name(*task));
            // Both lists are in the driver's order, as a rule.
            if enabled.get(next) == Some(&path) {
                next += 1;
            } else if let Some(at) = enabled.iter().position(|other| *other == path) {
                next = at + 1;
            } else if *task != state.task {
                self.trace.disables(*task);
            }
        }
    }
}

impl Levels for Reduction {
    fn start(&mut self) -> bool {
        if self.is_over && !self.advance() {
            return false;
        }
        self.fresh = self.depth.saturating_sub(1);
        self.trace.truncate(self.fresh);
        (self.at, self.pick, self.is_inside) = (0, 0, false);
        (self.is_blocked, self.has_diverged) = (false, false);
        true
    }

    fn refused(&self) -> Limits {
        Limits { cancels: self.refused, ..Limits::ZERO }
    }

    fn restart(&mut self, limits: Limits) {
        self.trace.truncate(0);
        (self.depth, self.is_over) = (0, false);
        (self.cancels, self.refused) = (limits.cancels, 0);
    }

    fn finish(&mut self) {
        let cancels = if self.refused == 0 { usize::MAX } else { self.cancels };
        self.tally.exhaust(Limits { cancels, ..Limits::NONE });
    }
}

impl Strategy for Reduction {
    fn begin(&mut self) -> bool {
        let goes_on = self.start();
        if !goes_on {
            self.finish();
        }
        goes_on
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        (self.is_inside, self.pick, self.asked, self.injected) = (true, 0, false, 0);
        self.has_yielded = false;
        if self.is_blocked {
            return 0;
        }
        if self.at > self.fresh {
            self.note_disabled(enabled);
        }
        if self.at == self.depth { self.enter(enabled) } else { self.find(enabled) }
    }

    fn pick(&mut self, point: Point, mut count: usize) -> usize {
        if !self.is_inside {
            self.is_wasted = true;
            return 0;
        }
        if self.is_blocked {
            return 0;
        }
        let state = &mut self.states[self.at];
        if point.is_injected() && self.cancels != usize::MAX {
            self.asked = true;
            if state.cancels + self.injected >= self.cancels {
                self.refused += 1;
                count = 1;
            }
        }
        if self.pick == state.picks.len() {
            self.has_diverged |= self.at < self.fresh;
            state.picks.push((count as u32, 0));
        }
        let (known, value) = state.picks[self.pick];
        self.has_diverged |= known != count as u32;
        self.pick += 1;
        self.injected += usize::from(point.is_injected() && value > 0);
        (value as usize).min(count - 1)
    }

    fn needs_footprint(&self) -> bool {
        !self.is_blocked && (self.at >= self.fresh || self.tally.is_watched())
    }

    fn yielded(&mut self) {
        self.has_yielded = true;
    }

    fn excludes(&mut self) {
        self.is_wasted = true;
    }

    fn stepped(&mut self, task: TaskPath, footprint: &[Access]) {
        self.is_inside = false;
        if self.is_blocked {
            return;
        }
        let state = &mut self.states[self.at];
        self.has_diverged |= self.pick != state.picks.len();
        if self.at < self.fresh {
            self.has_diverged |=
                !footprint.is_empty() && !self.trace.is_step(self.at, task, footprint);
        } else {
            let picks = state.picks.iter().fold(0, |hash, (_, value)| pick_hash(hash, *value));
            let limit = match self.injected {
                0 => Access::read(LIMIT),
                _ => Access::write(LIMIT),
            };
            let limit = self.asked.then_some(limit);
            self.trace.push(task, picks, footprint, limit, self.has_yielded);
            state.injected = self.injected;
            state.print = state.print.union(self.trace.steps[self.at].print);
        }
        self.at += 1;
    }

    fn end(&mut self, verdict: Verdict) {
        self.tally.ended(verdict);
        self.is_over = true;
        if self.is_wasted {
            return;
        }
        if self.has_diverged || self.at != self.trace.steps.len() {
            self.tally.progress.diverged += 1;
            return;
        }
        if self.trace.steps.len() > LONGEST {
            self.tally.progress.cut += 1;
            return;
        }
        if self.is_blocked {
            self.tally.progress.redundant += 1;
            return self.reverse_races();
        }
        if matches!(verdict, Verdict::Stopped(_)) {
            self.trace.stop();
            if let Some(last) = self.at.checked_sub(1) {
                self.states[last].print = Print::ALL;
            }
        }
        if verdict != Verdict::Cut {
            self.note_disabled(&[]);
        }
        self.reverse_races();
        self.tally.class(self.trace.class());
    }

    fn progress(&self) -> Progress {
        let mut progress = self.tally.progress;
        // The share of the tree that lies behind, if all branches of a state were equal.
        let mut share = 0.0;
        let mut left = 1.0;
        for state in &self.states[..self.depth] {
            let done = state.sleep.len() - state.inherited;
            left /= (done + 1 + self.wakeups.count(state.wakeups)) as f64;
            share += left * done as f64;
            for (count, value) in &state.picks {
                left /= f64::from(*count);
                share += left * f64::from(*value);
            }
        }
        share += if self.depth == 0 { 1.0 } else { left };
        progress.expected = Some(progress.runs as f64 / share);
        progress
    }
}
