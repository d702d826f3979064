//! Runs that were seen before: [`Replay`] by the full log, [`Follow`] by the deviations.
//!
//! A replay is exact and says at which decision the program no longer matches. Following is
//! lenient: a deviation whose place does not come up is passed over, and the run is still a run.

use super::place::{Counts, default_task};
use super::{Access, Decision, Decisions, Point, Progress, Schedule, Strategy, TaskPath, Verdict};
use std::fmt;
use std::sync::Arc;

/// One run, decided as in a log.
///
/// *Guaranteed*: the run of the log, if the program is the same; otherwise where it first differs.
#[derive(Debug)]
pub struct Replay {
    log: Arc<Decisions>,
    at: usize,
    last: Option<TaskPath>,
    diverged: Option<Diverged>,
    progress: Progress,
}

/// Where a replayed run first differs from its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diverged {
    /// The number of the decision, from 0.
    pub at: usize,
    /// What the log says; nothing if it is at its end.
    pub expected: Option<Decision>,
    /// What was decided instead; nothing if the run was at its end.
    pub found: Option<Decision>,
}

impl Replay {
    /// Will run this log once.
    pub fn new(log: impl Into<Arc<Decisions>>) -> Replay {
        let log = log.into();
        Replay { log, at: 0, last: None, diverged: None, progress: Progress::default() }
    }

    /// Where the run differed from the log, if it did.
    pub fn diverged(&self) -> Option<Diverged> {
        self.diverged
    }

    /// The next decision of the log if it is one that this place can have; else `found` is what is
    /// done instead.
    fn next(&mut self, fits: impl Fn(Decision) -> bool, found: Decision) -> Decision {
        let expected = self.log.list().get(self.at).copied();
        let taken = expected.filter(|decision| self.diverged.is_none() && fits(*decision));
        if taken.is_none() && self.diverged.is_none() {
            self.diverged = Some(Diverged { at: self.at, expected, found: Some(found) });
        }
        self.at += 1;
        taken.unwrap_or(found)
    }
}

impl Strategy for Replay {
    fn begin(&mut self) -> bool {
        self.progress.runs == 0
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let default = default_task(enabled, self.last);
        let of = |picked: usize| Decision::Task {
            path: enabled[picked],
            picked: picked as u32,
            count: enabled.len() as u32,
        };
        let fits = |it| (0..enabled.len()).any(|picked| of(picked) == it);
        let picked = match self.next(fits, of(default)) {
            Decision::Task { picked, .. } => picked as usize,
            Decision::Pick { .. } => default,
        };
        self.last = Some(enabled[picked]);
        picked
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        let of =
            |picked: usize| Decision::Pick { point, picked: picked as u32, count: count as u32 };
        let fits = |it| (0..count).any(|picked| of(picked) == it);
        match self.next(fits, of(0)) {
            Decision::Pick { picked, .. } => picked as usize,
            Decision::Task { .. } => 0,
        }
    }

    fn needs_footprint(&self) -> bool {
        false
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {}

    fn end(&mut self, verdict: Verdict) {
        self.progress.count(verdict);
        let expected = self.log.list().get(self.at).copied();
        if self.diverged.is_none() && expected.is_some() {
            self.diverged = Some(Diverged { at: self.at, expected, found: None });
        }
        self.progress.diverged = u64::from(self.diverged.is_some());
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

impl fmt::Display for Diverged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |decision: Option<Decision>| match decision {
            None => String::from("the end"),
            Some(Decision::Task { path, picked, count }) => {
                format!("task {:06x} ({picked} of 0..{count})", path.tag())
            }
            Some(Decision::Pick { point, picked, count }) => {
                format!("{} {picked} of 0..{count}", point.name())
            }
        };
        let (expected, found) = (name(self.expected), name(self.found));
        write!(f, "decision {}: the log has {expected}, the run has {found}", self.at)
    }
}

/// One run by the default policy but for the deviations of a schedule.
///
/// *Guaranteed*: the run that the schedule was taken from, if the program is the same and no two of
/// its tasks have the same tag.
#[derive(Debug, Default)]
pub struct Follow {
    schedule: Schedule,
    used: Vec<bool>,
    counts: Counts,
    progress: Progress,
    is_over: bool,
}

impl Follow {
    /// Will follow this schedule once.
    pub fn new(schedule: Schedule) -> Follow {
        let used = vec![false; schedule.deviations.len()];
        Follow { schedule, used, ..Follow::default() }
    }

    /// How many deviations found no place in the run.
    pub fn unused(&self) -> usize {
        self.used.iter().filter(|used| !**used).count()
    }
}

impl Strategy for Follow {
    fn begin(&mut self) -> bool {
        self.counts.clear();
        !self.is_over
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let place = self.counts.task(0, enabled);
        let mut picked = place.default as usize;
        for (deviation, used) in self.schedule.deviations.iter().zip(&mut self.used) {
            if let Some(asked) = place.asked(*deviation, enabled).filter(|_| !*used) {
                (*used, picked) = (true, asked);
                break;
            }
        }
        self.counts.step(enabled[picked]);
        picked
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        let place = self.counts.pick(0, point, count as u32);
        for (deviation, used) in self.schedule.deviations.iter().zip(&mut self.used) {
            if let Some(asked) = place.asked(*deviation, &[]).filter(|_| !*used) {
                *used = true;
                return asked;
            }
        }
        0
    }

    fn needs_footprint(&self) -> bool {
        false
    }

    fn stepped(&mut self, _: TaskPath, _: &[Access]) {}

    fn end(&mut self, verdict: Verdict) {
        self.is_over = true;
        self.progress.count(verdict);
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
