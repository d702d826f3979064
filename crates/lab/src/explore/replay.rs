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

    /// The next decision of the log if it is one that this place can have; else `found` says what
    /// is done instead.
    fn next(
        &mut self,
        fits: impl FnOnce(Decision) -> bool,
        found: impl FnOnce(Option<TaskPath>) -> Decision,
    ) -> Decision {
        let at = self.at;
        self.at += 1;
        let expected = self.log.list().get(at).copied();
        match expected {
            Some(decision) if self.diverged.is_none() && fits(decision) => decision,
            _ => {
                let found = found(self.last);
                self.diverged.get_or_insert(Diverged { at, expected, found: Some(found) });
                found
            }
        }
    }
}

impl Strategy for Replay {
    fn begin(&mut self) -> bool {
        self.progress.runs == 0
    }

    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize {
        let count = enabled.len() as u32;
        let fits = |it| match it {
            Decision::Task { path, picked, count: of } => {
                of == count && enabled.get(picked as usize) == Some(&path)
            }
            Decision::Pick { .. } => false,
        };
        let found = |last| {
            let picked = default_task(enabled, last);
            Decision::Task { path: enabled[picked], picked: picked as u32, count }
        };
        let picked = self.next(fits, found).picked() as usize;
        self.last = Some(enabled[picked]);
        picked
    }

    fn pick(&mut self, point: Point, count: usize) -> usize {
        let count = count as u32;
        let fits = |it| match it {
            Decision::Pick { point: what, picked, count: of } => {
                what == point && of == count && picked < count
            }
            Decision::Task { .. } => false,
        };
        self.next(fits, |_| Decision::Pick { point, picked: 0, count }).picked() as usize
    }

    fn watches(&self) -> bool {
        false
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
        let expected = name(self.expected);
        let found = name(self.found);
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

    fn watches(&self) -> bool {
        false
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every decision a log could have, at every place: it is taken if it is one of those that the
    /// place has, and else the run differs there, and goes on by default.
    #[test]
    fn a_decision_is_taken_where_it_could_have_been_made() {
        let tasks = [TaskPath(1), TaskPath(2), TaskPath(3)];
        let points = [Point::Entropy, Point::Select];
        let numbers = || (0..3_u32).flat_map(|picked| (1..4_u32).map(move |count| (picked, count)));
        let mut known: Vec<Decision> = Vec::new();
        for (picked, count) in numbers() {
            known.extend(tasks.map(|path| Decision::Task { path, picked, count }));
            known.extend(points.map(|point| Decision::Pick { point, picked, count }));
        }
        for expected in known {
            for count in 1..=3 {
                let enabled = &tasks[..count];
                let of = |picked: usize| Decision::Task {
                    path: tasks[picked],
                    picked: picked as u32,
                    count: count as u32,
                };
                check(expected, (0..count).map(of).collect(), |it| it.pick_task(enabled));
                for point in points.into_iter().filter(|_| count > 1) {
                    let count = count as u32;
                    let options = (0..count).map(|picked| Decision::Pick { point, picked, count });
                    check(expected, options.collect(), |it| it.pick(point, count as usize));
                }
            }
        }
    }

    fn check(expected: Decision, options: Vec<Decision>, ask: impl Fn(&mut Replay) -> usize) {
        let log = Decisions::of(vec![expected]);
        let mut replay = Replay::new(log);
        let picked = ask(&mut replay);
        let fits = options.iter().position(|option| *option == expected);
        assert_eq!(picked, fits.unwrap_or(0), "{expected:?} of {options:?}");
        let differs = Diverged { at: 0, expected: Some(expected), found: Some(options[0]) };
        assert_eq!(replay.diverged(), fits.is_none().then_some(differs));
    }
}
