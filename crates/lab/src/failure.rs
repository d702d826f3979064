//! What went wrong in a run, in words.

use std::fmt;
use std::panic::Location;

use asx_kernel::digest::Digest;
use asx_runtime::waits::Hold;
use asx_runtime::{Cancelled, Panic, SpawnError};

use crate::explore::Verdict;
use crate::source::expression;
use crate::stuck::Watch;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A task panicked.
    Panic,
    /// The program answered an error.
    Error,
    /// Nothing can run any more, and not everything has ended.
    Deadlock,
    /// A task waits, and nobody has a waker of it.
    LostWakeup,
    /// A task waits for what was given to a future of its own that it keeps and does not poll.
    Futurelock,
    /// It went on for longer than it may.
    Livelock,
    /// A task was asked to stop, and did not look for a long time.
    Unheeded,
    /// A task was ended by force: its cleanup took more polls than it is allowed.
    Overrun,
    /// Something was left behind.
    Leak,
    /// The program was ended from within.
    Ended,
    /// Something came from where the lab has no control.
    Foreign,
    /// The same decisions did not lead to the same run.
    Nondeterminism,
    /// A requested disturbance was never tried: no run failed, and none says anything about it.
    Untried,
}

impl Kind {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Panic => "panic",
            Kind::Error => "error",
            Kind::Deadlock => "deadlock",
            Kind::LostWakeup => "lost wakeup",
            Kind::Futurelock => "futurelock",
            Kind::Livelock => "livelock",
            Kind::Unheeded => "unheeded cancel",
            Kind::Overrun => "overrun",
            Kind::Leak => "leak",
            Kind::Ended => "ended",
            Kind::Foreign => "foreign",
            Kind::Nondeterminism => "not deterministic",
            Kind::Untried => "not tried",
        }
    }
}

/// Lines of who waits for what that are told.
const MOST_LINES: usize = 30;

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Of what kind.
    pub kind: Kind,
    /// In words.
    pub message: String,
    /// Who waits for what, where that says more.
    pub detail: String,
}

impl Finding {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Finding {
        Finding { kind, message: message.into(), detail: String::new() }
    }

    pub(crate) fn panicked(panic: &Panic) -> Finding {
        Finding::new(Kind::Panic, panic.message())
    }

    pub(crate) fn error(error: &dyn fmt::Debug) -> Finding {
        Finding::new(Kind::Error, format!("{error:?}"))
    }

    pub(crate) fn ended(cancelled: &Cancelled) -> Finding {
        Finding::new(Kind::Ended, cancelled.to_string())
    }

    pub(crate) fn refused(refused: SpawnError) -> Finding {
        Finding::new(Kind::Ended, refused.to_string())
    }

    /// The lines of the detail as they are told: first those of the tasks that the message names,
    /// last those of tasks that wait for a scope and so for others; of very many only the first.
    pub fn lines(&self) -> Vec<String> {
        let rank = |line: &&str| {
            let task = line.split('`').nth(1).filter(|_| line.starts_with('`'));
            let is_named = task.is_some_and(|task| self.message.contains(&format!("`{task}`")));
            let scopes = ["waits for a scope with", "waits for the close of a scope"];
            match scopes.iter().any(|scope| line.contains(scope)) {
                _ if is_named => 0,
                false => 1,
                true => 2,
            }
        };
        // Lines that are further in belong to the one before them.
        let mut groups: Vec<Vec<&str>> = Vec::new();
        for line in self.detail.lines() {
            match groups.last_mut() {
                Some(group) if line.starts_with(' ') => group.push(line),
                _ => groups.push(vec![line]),
            }
        }
        groups.sort_by_key(|group| rank(&group[0]));
        let all: usize = groups.iter().map(Vec::len).sum();
        let mut lines: Vec<String> = Vec::new();
        for group in groups {
            if lines.len() + group.len() > MOST_LINES {
                break;
            }
            lines.extend(group.into_iter().map(str::to_owned));
        }
        match all - lines.len() {
            0 => {}
            more => lines.push(format!("and {more} more lines like these")),
        }
        lines
    }

    /// With more of who waits for what.
    pub(crate) fn with_detail(mut self, detail: &str) -> Finding {
        self.detail.push_str(detail);
        self
    }

    pub(crate) fn endless_poll(task: &str) -> Finding {
        Finding::new(Kind::Livelock, format!("a poll of {task} does not end"))
    }

    pub(crate) fn unheeding(task: &str, polls: u64) -> Finding {
        let message = format!("{task} was asked to stop, and did not look in {polls} polls");
        Finding::new(Kind::Unheeded, message)
    }

    pub(crate) fn foreign() -> Finding {
        let message = "a thread that is none of the lab's has woken a task, with a send into a \
                       channel, the release of a lock or a waker: when it does that is beyond \
                       control";
        Finding::new(Kind::Foreign, message)
    }

    pub(crate) fn unheeded_timeouts(
        timeouts: u64,
        first: Option<&'static Location<'static>>,
    ) -> Option<Finding> {
        let message = || {
            let at = first.map(|at| format!(" at {at}")).unwrap_or_default();
            let others = if timeouts > 1 { ", and others as well" } else { "" };
            format!("nothing in the timeout{at} looked for a second after its time{others}")
        };
        (timeouts > 0).then(|| Finding::new(Kind::Unheeded, message()))
    }

    /// Tasks were ended by force. `overran`: which, and where they waited.
    pub(crate) fn forced(
        tasks: u64,
        overran: &[Hold],
        called: impl Fn(u64) -> String,
    ) -> Option<Finding> {
        if tasks == 0 {
            return None;
        }
        let first = overran.first().map(|hold| format!("`{}`", called(hold.task)));
        let message = match (tasks, first) {
            (1, Some(task)) => format!("{task} did not end within its cleanup allowance"),
            (1, None) => String::from("a task did not end within its cleanup allowance"),
            (2, Some(task)) => {
                format!("{task} and another task did not end within their cleanup allowance")
            }
            (_, Some(task)) => {
                let others = tasks - 1;
                format!("{task} and {others} others did not end within their cleanup allowance")
            }
            (_, None) => format!("{tasks} tasks did not end within their cleanup allowance"),
        };
        let mut finding = Finding::new(Kind::Overrun, message);
        for Hold { task, at } in overran {
            let name = called(*task);
            finding.detail += &match at {
                Some(at) => {
                    format!("`{name}` was ended by force while it waited at {}\n", place(at))
                }
                None => format!("`{name}` was ended by force\n"),
            };
        }
        Some(finding)
    }

    pub(crate) fn lost_panics(count: u64) -> Option<Finding> {
        let message = || match count {
            1 => String::from("a panic reached nobody"),
            _ => format!("{count} panics reached nobody"),
        };
        (count > 0).then(|| Finding::new(Kind::Panic, message()))
    }

    /// Obligations were not resolved. `leaked`: which task has reserved each, and where.
    pub(crate) fn leaked_obligations(
        leaked: &[Hold],
        called: impl Fn(u64) -> String,
    ) -> Option<Finding> {
        let message = match leaked.len() {
            0 => return None,
            1 => String::from("an obligation was neither committed nor aborted"),
            count => format!("{count} obligations were neither committed nor aborted"),
        };
        let origins = leaked.iter().filter_map(|Hold { task, at }| {
            let at = place((*at)?);
            Some(match task {
                0 => format!("reserved at {at}\n"),
                task => format!("reserved by `{}` at {at}\n", called(*task)),
            })
        });
        let detail: String = origins.collect();
        Some(Finding::new(Kind::Leak, message).with_detail(&detail))
    }

    pub(crate) fn leaked_permits(held: &[Hold], called: impl Fn(u64) -> String) -> Option<Finding> {
        let message = || match held.len() {
            1 => String::from("a lock or permit was never released"),
            count => format!("{count} locks or permits were never released"),
        };
        let mut finding = (!held.is_empty()).then(|| Finding::new(Kind::Leak, message()))?;
        for Hold { task, at } in held {
            let name = called(*task);
            finding.detail += &match at {
                Some(at) => format!("taken by `{name}` at {}\n", place(at)),
                None => format!("taken by `{name}`\n"),
            };
        }
        Some(finding)
    }

    pub(crate) fn nondeterminism(message: String, detail: String) -> Finding {
        Finding { detail, ..Finding::new(Kind::Nondeterminism, message) }
    }

    pub(crate) fn leaked_timers(count: usize) -> Finding {
        let message = match count {
            1 => String::from("a timer is still armed"),
            _ => format!("{count} timers are still armed"),
        };
        Finding::new(Kind::Leak, message)
    }
}

/// A place in the source, with its expression where the source can be read.
pub(crate) fn place(at: &'static Location<'static>) -> String {
    match expression(at) {
        Some(expression) => format!("{at} (`{expression}`)"),
        None => at.to_string(),
    }
}

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What.
    pub finding: Finding,
    /// In which poll, from 1.
    pub step: u64,
    /// The task that was polled, of a panic; the one that failed, of an error.
    pub task: Option<String>,
    /// Where in the source, of a panic.
    pub place: Option<String>,
}

impl Failure {
    pub(crate) fn new(finding: Finding, step: u64) -> Failure {
        Failure { finding, step, task: None, place: None }
    }

    /// Tells the circle of waits that there was, if that is not what it is about.
    pub(crate) fn with_circle(mut self, watch: &Watch) -> Failure {
        let Finding { kind, detail, .. } = &mut self.finding;
        if !matches!(kind, Kind::Deadlock | Kind::LostWakeup | Kind::Futurelock)
            && let Some(note) = watch.note()
        {
            *detail = note + detail;
        }
        self
    }

    /// A number that two failures have in common if they are by the same mistake, as far as can be
    /// told: what a panic or an error says but for the numbers in it, since sums and counts differ
    /// from order to order, and where the panic was.
    pub(crate) fn kin(&self) -> u64 {
        let Finding { kind, message, .. } = &self.finding;
        if !matches!(kind, Kind::Panic | Kind::Error) {
            return self.id();
        }
        let place = self.place.as_deref().unwrap_or_default();
        let says = message.replace(|c: char| c.is_ascii_digit(), "");
        let mut digest = Digest::new();
        digest.word(*kind as u64).bytes(place.as_bytes()).bytes(says.as_bytes()).value()
    }

    /// A number that says whether two failures are the same one.
    pub fn id(&self) -> u64 {
        let Finding { kind, message, .. } = &self.finding;
        // The others name tasks and counts, which differ from order to order.
        let says_what =
            matches!(kind, Kind::Panic | Kind::Error | Kind::Ended | Kind::Nondeterminism);
        let message = if says_what { message.as_bytes() } else { b"" };
        Digest::new().word(*kind as u64).bytes(message).value()
    }

    /// Whether the run can't be expected to go the same way again.
    pub(crate) fn is_by_chance(&self) -> bool {
        matches!(self.finding.kind, Kind::Nondeterminism | Kind::Foreign)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        Verdict::Failed(self.id())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { kind, message, .. } = &self.finding;
        write!(f, "{} at step {}", kind.name(), self.step)?;
        if let Some(task) = &self.task {
            write!(f, " in `{task}`")?;
        }
        if let Some(place) = &self.place {
            write!(f, " at {place}")?;
        }
        writeln!(f, ": {message}")?;
        self.finding.lines().iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_the_message_names_come_first_and_a_crowd_is_cut_short() {
        let others: String = (0..99).map(|n| format!("`task {n}` waits for a message\n")).collect();
        let detail = format!("{others}`b` waits for what `a` took\n`a` waits for what `b` took\n");
        let message = "`a` and `b` wait for each other";
        let finding = Finding::new(Kind::Deadlock, message).with_detail(&detail);
        let lines = finding.lines();
        assert_eq!(lines[..2], ["`b` waits for what `a` took", "`a` waits for what `b` took"]);
        assert_eq!(lines[2], "`task 0` waits for a message");
        assert_eq!((lines.len(), &*lines[30]), (31, "and 71 more lines like these"));
        let detail = "`main` waits for a scope with `a` in it to close\n`a` waits for a message\n";
        let few = Finding::new(Kind::Deadlock, "all tasks wait").with_detail(detail);
        assert_eq!(few.lines(), detail.lines().rev().collect::<Vec<_>>());
    }

    #[test]
    fn numbers_make_no_other_failure_but_words_and_places_do() {
        let failure = |message: &str, place: &str| Failure {
            place: Some(place.into()),
            ..Failure::new(Finding::new(Kind::Panic, message), 1)
        };
        let lost = failure("left: 54, right: 60", "a.rs:1:1");
        let other = failure("left: 7, right: 60", "a.rs:1:1");
        assert_eq!(lost.kin(), other.kin());
        assert_ne!(lost.id(), other.id());
        // A helper with all the assertions in it says which one it is.
        assert_ne!(lost.kin(), failure("left over: 54", "a.rs:1:1").kin());
        assert_ne!(lost.kin(), failure("left: 54, right: 60", "a.rs:2:1").kin());
    }
}
