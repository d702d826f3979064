//! Whether a program is deterministic: the same decisions must lead to the same run.
//!
//! Whoever finds something wants to see it again, and a search that lets runs stand for others
//! relies on it. So some runs are made twice and compared, step by step: who could run, who did,
//! what else was decided, and what each step touched.

use std::sync::Arc;

use crate::explore::{Decision, Decisions, TaskPath};

/// What there is to compare of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// What was decided.
    pub(crate) log: Arc<Decisions>,
    /// A hash of what each step touched; empty if nobody looked.
    pub(crate) trail: Vec<u64>,
    /// How it failed.
    pub(crate) failure: Option<u64>,
}

/// Where two runs first differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The step, from 1.
    pub(crate) step: u64,
    /// In words.
    pub(crate) text: String,
}

impl Seen {
    /// Where another run of the same decisions differs from this one.
    pub(crate) fn differs(
        &self,
        again: &Seen,
        name: impl Fn(TaskPath) -> String,
    ) -> Option<Difference> {
        let decided = self.decided_otherwise(again, name);
        let touched = self.touched_otherwise(again);
        let first = decided.into_iter().chain(touched).min_by_key(|difference| difference.step);
        first.or_else(|| self.failed_otherwise(again))
    }

    fn decided_otherwise(
        &self,
        again: &Seen,
        name: impl Fn(TaskPath) -> String,
    ) -> Option<Difference> {
        let first = self.log.list();
        let second = again.log.list();
        let most = first.len().max(second.len());
        let at = (0..most).find(|at| first.get(*at) != second.get(*at))?;
        let is_task = |decision: &&Decision| matches!(decision, Decision::Task { .. });
        let before = first[..at].iter().filter(is_task).count() as u64;
        let here = first.get(at).or(second.get(at));
        let step = before + u64::from(here.as_ref().is_some_and(is_task));
        let [first, second] = [first, second].map(|list| words(list.get(at), &name));
        Some(Difference { step, text: format!("first {first}, then {second}") })
    }

    fn touched_otherwise(&self, again: &Seen) -> Option<Difference> {
        let mut steps = self.trail.iter().zip(&again.trail);
        let step = steps.position(|(first, second)| first != second)? as u64 + 1;
        let text = "the step touched other channels, locks or tasks than the first time".into();
        Some(Difference { step, text })
    }

    fn failed_otherwise(&self, again: &Seen) -> Option<Difference> {
        let word = |failure: Option<u64>| if failure.is_some() { "failed" } else { "passed" };
        let [first, second] = [word(self.failure), word(again.failure)];
        let text = match first == second {
            _ if self.failure == again.failure => return None,
            true => String::from("it failed otherwise the second time"),
            false => format!("it first {first}, then {second}"),
        };
        let is_task = |decision: &&Decision| matches!(decision, Decision::Task { .. });
        Some(Difference { step: self.log.list().iter().filter(is_task).count() as u64, text })
    }
}

fn words(decision: Option<&Decision>, name: impl Fn(TaskPath) -> String) -> String {
    match decision {
        None => String::from("the run was over"),
        Some(Decision::Task { path, count, .. }) => {
            format!("`{}` ran, one of {count} that could", name(*path))
        }
        Some(Decision::Pick { point, picked, count }) => {
            format!("{} took {picked} of 0..{count}", point.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskPath = TaskPath(1);
    const B: TaskPath = TaskPath(2);

    fn run(steps: &[(&[TaskPath], usize)], trail: &[u64], failure: Option<u64>) -> Seen {
        let mut log = Decisions::default();
        steps.iter().for_each(|(enabled, picked)| log.push_task(enabled, *picked));
        Seen { log: log.into(), trail: trail.to_vec(), failure }
    }

    fn name(path: TaskPath) -> String {
        if path == A { "a".into() } else { "b".into() }
    }

    #[test]
    fn equal_runs_do_not_differ() {
        let seen = run(&[(&[A, B], 1), (&[A], 0)], &[7, 8], Some(3));
        assert_eq!(seen.differs(&seen.clone(), name), None);
        // Where nobody looked there is nothing to differ.
        let unseen = run(&[(&[A, B], 1), (&[A], 0)], &[], Some(3));
        assert_eq!(unseen.differs(&seen, name), None);
    }

    #[test]
    fn the_first_step_that_differs_is_named() {
        let first = run(&[(&[A], 0), (&[A, B], 1), (&[A], 0)], &[1, 2, 3], None);
        let fewer = run(&[(&[A], 0), (&[B], 0), (&[A], 0)], &[1, 2, 3], None);
        let text = "first `b` ran, one of 2 that could, then `b` ran, one of 1 that could".into();
        assert_eq!(first.differs(&fewer, name), Some(Difference { step: 2, text }));
        let shorter = run(&[(&[A], 0), (&[A, B], 1)], &[1, 2], None);
        let text = "first `a` ran, one of 1 that could, then the run was over".into();
        assert_eq!(first.differs(&shorter, name), Some(Difference { step: 3, text }));
        let other = run(&[(&[A], 0), (&[B], 0), (&[A], 0)], &[9, 2, 3], None);
        assert_eq!(first.differs(&other, name).map(|it| it.step), Some(1));
        let failed = Seen { failure: Some(4), ..first.clone() };
        let text = "it first passed, then failed".into();
        assert_eq!(first.differs(&failed, name), Some(Difference { step: 3, text }));
    }
}
