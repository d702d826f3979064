//! Why nothing goes on, by who waits for whom.
//!
//! It is asked when nothing is runnable and no timer is armed, or when all polls are used up: never
//! on suspicion, since a task that runs, or that a timer will wake, may cancel those in a circle,
//! or release what another has taken. Once it is known that nobody does, the run is made again, and
//! watched ([`Watch`]): it ends in the step in which the circle closes.

use std::fmt::Write as _;

use asx_runtime::Activity;
use asx_runtime::waits::{Given, Need, On, Waiter};

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

    /// Who is in a circle.
    fn meet(&self, circle: &[u64]) -> String {
        match circle {
            [alone] => format!("{} waits for itself", self.name(*alone)),
            several => format!("{} wait for each other", self.list(several)),
        }
    }

    /// Those who wait for no task that is known, which is why the others wait; of many none is
    /// named.
    fn unaided(&self) -> String {
        let unaided = self.waiters.iter().filter(|waiter| waiter.on().next().is_none());
        let tasks: Vec<_> = unaided.map(|waiter| waiter.task.id).collect();
        if (1..=3).contains(&tasks.len()) { self.list(&tasks) } else { String::from("them") }
    }

    /// `a`, `b` and `c`.
    fn list(&self, tasks: &[u64]) -> String {
        let names: Vec<_> = tasks.iter().map(|task| self.name(*task)).collect();
        match names.split_last() {
            None => String::new(),
            Some((only, [])) => String::from(*only),
            Some((last, before)) => format!("{} and {last}", before.join(", ")),
        }
    }

    fn name(&self, task: u64) -> &str {
        let at = self.waiters.iter().position(|waiter| waiter.task.id == task);
        at.and_then(|at| self.names.get(at)).map_or("a task that is over", String::as_str)
    }
}

/// What those that wait have in common.
pub(crate) fn explain(all: &Standstill) -> Finding {
    special(all, false).unwrap_or_else(|| {
        let message = format!("all tasks wait, and nobody is left to wake {}", all.unaided());
        Finding::new(Kind::Deadlock, message).with_detail(&lines(all))
    })
}

/// Why a run has not ended after so many polls.
pub(crate) fn endless(all: &Standstill, steps: u64) -> Finding {
    let message = || {
        format!("not over after {steps} polls; if it needs more to end, `.steps(..)` allows them")
    };
    special(all, true)
        .unwrap_or_else(|| Finding::new(Kind::Livelock, message()).with_detail(&lines(all)))
}

/// `busy`: others can run. Then only those count that nothing else can wake.
fn special(all: &Standstill, busy: bool) -> Option<Finding> {
    let waiters = &all.waiters;
    let waiting = |waiter: &&Waiter| waiter.task.activity == Activity::Waiting;
    let futurelock = waiters.iter().find_map(|waiter| {
        let given = waiter.on().find_map(|on| match on {
            On::Look(task, at) => Some((task, at)),
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
    if !busy && let Some(message) = kept_from(all) {
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
    Some(Finding::new(Kind::Deadlock, all.meet(&circle)).with_detail(&lines(all)))
}

/// Who waits at a channel for what a future of somebody was given that is not polled, and may wait
/// for it in turn.
fn kept_from(all: &Standstill) -> Option<String> {
    let Standstill { waiters, .. } = all;
    waiters.iter().find_map(|waiter| {
        let from = waiter.task.id;
        let on = waiter.kept_from.iter().find(|on| may_wait_for(waiters, on.task(), from))?;
        let (what, at) = match *on {
            On::LookForRoom(_, at) => ("room in a channel, which was given to", at),
            On::LookToSend(_, at) => ("a message, and room for one was given to", at),
            On::LookToTake(_, at) => ("room in a channel, which has a message for", at),
            _ => return None,
        };
        let (from, to) = (all.name(from), all.name(on.task()));
        Some(format!(
            "{from} waits for {what} a future of {to} that is not polled (asked for at {at})"
        ))
    })
}

/// Whether a task waits for another, itself or through others, as far as it is known. Of a wait
/// that anybody may end, that is taken to be so.
fn may_wait_for(waiters: &[Waiter], task: u64, other: u64) -> bool {
    let mut seen = vec![task];
    let mut at = 0;
    while let Some(task) = seen.get(at).copied() {
        at += 1;
        if task == other {
            return true;
        }
        let Some(waiter) = waiters.iter().find(|waiter| waiter.task.id == task) else { continue };
        let is_known = |need: &Need| !need.from.is_empty();
        if waiter.wakers > waiter.needs.len() || !waiter.needs.iter().all(is_known) {
            return true;
        }
        let next: Vec<_> = waiter.on().map(On::task).filter(|next| !seen.contains(next)).collect();
        seen.extend(next);
    }
    false
}

/// Tasks each of which waits for the next, and the last for the first: from the one that was made
/// first. Nothing that others do ends a wait of theirs, short of a cancel.
fn circle(waiters: &[Waiter], busy: bool) -> Option<Vec<u64>> {
    let doomed = doomed(waiters, busy);
    let next = |task: u64| {
        let waiter = doomed.iter().find(|waiter| waiter.task.id == task)?;
        waiter.on().map(On::task).find(|next| doomed.iter().any(|it| it.task.id == *next))
    };
    let mut path = vec![doomed.first()?.task.id];
    loop {
        let task = next(*path.last()?)?;
        if let Some(at) = path.iter().position(|seen| *seen == task) {
            let mut circle = path.split_off(at);
            let first =
                circle.iter().min().and_then(|least| circle.iter().position(|task| task == least));
            circle.rotate_left(first.unwrap_or(0));
            return Some(circle);
        }
        path.push(task);
    }
}

/// Those that wait for each other, and those that wait for them: the most there are such that none
/// has a wait that somebody else can end. `busy`: others can run, so only those count that nothing
/// but these waits can wake.
fn doomed(waiters: &[Waiter], busy: bool) -> Vec<&Waiter> {
    let waits = |waiter: &&Waiter| {
        let is_firm = !busy || waiter.wakers <= waiter.needs.len();
        waiter.task.activity == Activity::Waiting && !waiter.needs.is_empty() && is_firm
    };
    let mut doomed: Vec<_> = waiters.iter().filter(waits).collect();
    loop {
        let ids: Vec<_> = doomed.iter().map(|waiter| waiter.task.id).collect();
        let is_doomed = |on: &On| ids.contains(&on.task());
        let has_no_end = |need: &Need| match need.each {
            true => need.from.iter().any(is_doomed),
            false => !need.from.is_empty() && need.from.iter().all(is_doomed),
        };
        doomed.retain(|waiter| waiter.needs.iter().all(has_no_end));
        if doomed.len() == ids.len() {
            return doomed;
        }
    }
}

/// Looks, step by step, for a circle of waits among tasks while others go on.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    circle: Option<Circle>,
    /// The last that a cancel has broken, and when.
    broken: Option<(Circle, u64)>,
}

/// A circle of waits.
#[derive(Debug)]
struct Circle {
    /// In which it closed.
    step: u64,
    tasks: Vec<u64>,
    finding: Finding,
}

impl Watch {
    /// Looks at how things are after so many steps; `names` makes them ready to be told.
    pub(crate) fn look(
        &mut self,
        waiters: Vec<Waiter>,
        step: u64,
        names: impl FnOnce(Vec<Waiter>) -> Standstill,
    ) {
        if let Some(circle) = self.circle.take() {
            // Of several it stays with the first.
            let others = waiters.iter().filter(|it| circle.tasks.contains(&it.task.id));
            let members: Vec<_> = others.cloned().collect();
            if self::circle(&members, true).is_some_and(|still| still == circle.tasks) {
                self.circle = Some(circle);
                return;
            }
            if members.iter().any(|member| member.task.state.in_cancel_lane()) {
                self.broken = Some((circle, step));
            }
        }
        self.circle = circle(&waiters, true).map(|tasks| {
            let all = names(waiters);
            let finding = Finding::new(Kind::Deadlock, all.meet(&tasks)).with_detail(&lines(&all));
            Circle { step, tasks, finding }
        });
    }

    /// The step in which the circle has closed that there is now.
    pub(crate) fn closed(&self) -> Option<u64> {
        self.circle.as_ref().map(|circle| circle.step)
    }

    /// The circle that there is now, as a finding.
    pub(crate) fn finding(&self) -> Option<Finding> {
        self.circle.as_ref().map(|circle| circle.finding.clone())
    }

    /// What there is to say of a run that failed in another way.
    pub(crate) fn note(&self) -> Option<String> {
        let (circle, end) = match (&self.circle, &self.broken) {
            (Some(circle), _) => (circle, String::new()),
            (None, Some((circle, end))) => (circle, format!(" until a cancel in step {end}")),
            (None, None) => return None,
        };
        let Circle { step, finding: Finding { message, detail, .. }, .. } = circle;
        Some(format!("from step {step} on{end}, {message}\n{detail}"))
    }
}

/// More tasks than this in a scope that somebody waits for have one line.
const CROWD: usize = 4;

/// Who waits for whom, a line each.
fn lines(all: &Standstill) -> String {
    let mut text = String::new();
    for waiter in &all.waiters {
        let closes = waiter.on().filter(|on| matches!(on, On::Close(_))).count();
        if closes > CROWD {
            let inside = waiter.on().filter(|on| matches!(on, On::Close(_))).take(CROWD - 1);
            let inside: Vec<_> = inside.map(|on| all.name(on.task())).collect();
            let _ = writeln!(
                text,
                "{} waits for a scope with {} and {} more in it to close",
                all.name(waiter.task.id),
                inside.join(", "),
                closes - inside.len()
            );
        }
        for on in waiter.on().chain(waiter.kept_from.iter().copied()) {
            if closes > CROWD && matches!(on, On::Close(_)) {
                continue;
            }
            let from = all.name(waiter.task.id);
            let to = all.name(on.task());
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
                On::Turn(_, at) => {
                    writeln!(text, "{from} waits in line behind {to}, which waits at {at}")
                }
                On::LookForRoom(_, at) | On::LookToSend(_, at) => {
                    writeln!(text, "{from} waits for the room that {to} was given at {at}")
                }
                On::LookToTake(_, at) => {
                    writeln!(text, "{from} waits for {to} to take the message it asked for at {at}")
                }
            };
        }
    }
    for waiter in all.waiters.iter().filter(|it| it.task.activity == Activity::Waiting) {
        let name = all.name(waiter.task.id);
        for given in &waiter.given {
            let (what, at) = match given {
                Given::Permit(at) => ("a lock, permit or notification", at),
                Given::Room(at) => ("room in a channel", at),
                Given::Message(at) => ("a message", at),
            };
            let _ = writeln!(
                text,
                "{name} was given {what} for its wait at {at}, and has not polled that future since"
            );
        }
    }
    text
}
