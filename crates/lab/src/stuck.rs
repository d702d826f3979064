//! Why nothing goes on, by who waits for whom.
//!
//! It is asked when nothing is runnable and no timer is armed, or when all polls are used up: never
//! on suspicion, since a task that runs, or that a timer will wake, may cancel those in a circle.

use std::fmt::Write as _;

use asx_runtime::Activity;
use asx_runtime::waits::{On, Waiter};

use crate::failure::{Finding, Kind};

/// Everything that lives, and what it is called.
pub(crate) struct Standstill {
    pub(crate) waiters: Vec<Waiter>,
    /// Of each of them.
    pub(crate) names: Vec<String>,
}

impl Standstill {
    /// Whether somebody waits for what is not of asx, and can be woken; or was woken just now from
    /// there, as nothing here could.
    pub(crate) fn waits_for_outside(&self) -> bool {
        self.waiters.iter().any(|waiter| {
            let is_woken = waiter.task.activity != Activity::Waiting;
            is_woken || waiter.task.waits.is_none() && waiter.wakers > 0
        })
    }

    fn name(&self, task: u64) -> &str {
        let at = self.waiters.iter().position(|waiter| waiter.task.id == task);
        at.and_then(|at| self.names.get(at)).map_or("a task that is over", String::as_str)
    }
}

/// What those that wait have in common.
pub(crate) fn explain(all: &Standstill) -> Finding {
    special(all, false).unwrap_or_else(|| {
        let message = "all tasks wait, and nobody is left to wake them";
        Finding::new(Kind::Deadlock, message).with_detail(&lines(all))
    })
}

/// Why a run has not ended after so many polls.
pub(crate) fn endless(all: &Standstill, steps: u64) -> Finding {
    let message = || format!("not over after {steps} polls");
    special(all, true).unwrap_or_else(|| Finding::new(Kind::Livelock, message()))
}

/// `busy`: others can run. Then only those count that nothing else can wake.
fn special(all: &Standstill, busy: bool) -> Option<Finding> {
    let waiters = &all.waiters;
    let waiting = |waiter: &&Waiter| waiter.task.activity == Activity::Waiting;
    let futurelock = waiters.iter().find_map(|waiter| {
        let given = waiter.on.iter().find_map(|on| match on {
            On::Look(task, at) => Some((*task, at)),
            _ => None,
        })?;
        let idle = waiters.iter().filter(waiting).any(|other| other.task.id == given.0);
        idle.then_some((waiter, given))
    });
    if let Some((waiter, (task, at))) = futurelock {
        let message = format!(
            "{} waits for what was given to a future of {} that is not polled (asked for at {at})",
            all.name(waiter.task.id),
            all.name(task),
        );
        return Some(Finding::new(Kind::Futurelock, message).with_detail(&lines(all)));
    }
    // A cancel needs no waker.
    let lost = |waiter: &&Waiter| {
        let on = waiter.task.waits.map(|(on, _)| on);
        waiter.wakers == 0 && on != Some("its cancel")
    };
    if let Some(lost) = waiters.iter().filter(waiting).find(lost) {
        let message = format!(
            "{} waits, and there is no waker of it left: nothing but a cancel can wake it",
            all.name(lost.task.id)
        );
        return Some(Finding::new(Kind::LostWakeup, message).with_detail(&lines(all)));
    }
    let circle = circle(waiters, busy)?;
    let message = match &*circle {
        [alone] => format!("{} waits for itself", all.name(*alone)),
        several => {
            let names: Vec<_> = several.iter().map(|task| all.name(*task)).collect();
            format!("{} wait for each other", names.join(" and "))
        }
    };
    Some(Finding::new(Kind::Deadlock, message).with_detail(&lines(all)))
}

/// Tasks each of which waits for the next, and the last for the first.
fn circle(waiters: &[Waiter], busy: bool) -> Option<Vec<u64>> {
    let stuck = |waiter: &&Waiter| {
        waiter.task.activity == Activity::Waiting && (!busy || waiter.wakers <= waiter.on.len())
    };
    let of = |task: u64| waiters.iter().filter(stuck).find(|waiter| waiter.task.id == task);
    fn visit<'a>(
        task: u64,
        path: &mut Vec<u64>,
        done: &mut Vec<u64>,
        of: &impl Fn(u64) -> Option<&'a Waiter>,
    ) -> Option<Vec<u64>> {
        if let Some(at) = path.iter().position(|seen| *seen == task) {
            return Some(path[at..].to_vec());
        }
        if done.contains(&task) {
            return None;
        }
        path.push(task);
        let next = of(task)?.on.iter().map(|on| on.task());
        let found = next.into_iter().find_map(|next| visit(next, path, done, of));
        path.pop();
        done.push(task);
        found
    }
    let mut done = Vec::new();
    waiters.iter().find_map(|waiter| visit(waiter.task.id, &mut Vec::new(), &mut done, &of))
}

/// Who waits for whom, a line each.
fn lines(all: &Standstill) -> String {
    let mut text = String::new();
    for waiter in &all.waiters {
        for on in &waiter.on {
            let (from, to) = (all.name(waiter.task.id), all.name(on.task()));
            let _ = match on {
                On::End(_) => writeln!(text, "{from} waits for the end of {to}"),
                On::Close(_) => writeln!(text, "{from} waits for a scope with {to} in it to close"),
                On::Release(_, Some(at)) => {
                    writeln!(text, "{from} waits for what {to} took at {at}")
                }
                On::Release(_, None) => writeln!(text, "{from} waits for what {to} took"),
                On::Look(_, at) => {
                    writeln!(text, "{from} waits for what {to} was given for its wait at {at}")
                }
            };
        }
    }
    text
}
