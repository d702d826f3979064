//! What lies around a wait, and who could end it, in lines below the one that tells of it.
//!
//! Only the run on record has notes of that; of others nothing is said.

use std::collections::BTreeMap;

use asx_runtime::backtrace::{EndNotes, Frame, Side, TaskNotes, Thing, ThingNotes, Use, WaitNotes};
use asx_runtime::{Activity, RegionInfo, TaskInfo};

use crate::failure::place;
use crate::source::expression;

/// Parts of a task around a wait that are told, from the inside out.
const MOST_FRAMES: usize = 8;

/// Handles and tasks that are told.
const MOST_ENDS: usize = 6;

/// What tasks are called, and which of them live.
pub(crate) struct TaskNames<'a> {
    pub(crate) called: &'a dyn Fn(u64) -> String,
    pub(crate) lives: &'a dyn Fn(u64) -> bool,
}

impl TaskNames<'_> {
    /// A task, and whether it can still do anything.
    fn task(&self, task: u64) -> String {
        match task {
            0 => String::from("what is outside of all tasks"),
            task if (self.lives)(task) => format!("`{}`", (self.called)(task)),
            task => format!("`{}`, which has ended,", (self.called)(task)),
        }
    }
}

/// What there is to tell of a task.
pub(crate) struct Told {
    /// In backticks.
    pub(crate) name: String,
    pub(crate) waits: String,
    /// The lines below that.
    pub(crate) below: Vec<String>,
}

/// More tasks than this of which the same is told are told together.
const ALIKE: usize = 4;

/// What there is to tell of tasks, in lines; what is the same of many only once.
pub(crate) fn in_lines(all: Vec<Told>) -> String {
    let mut lines = Vec::new();
    let mut alike: BTreeMap<(&str, &[String]), Vec<&str>> = BTreeMap::new();
    for told in &all {
        alike.entry((&told.waits, &told.below)).or_default().push(&told.name);
    }
    for Told { name, waits, below } in &all {
        let names = &alike[&(waits.as_str(), below.as_slice())];
        let is_crowd = names.len() > ALIKE;
        if is_crowd && names[0] != name {
            continue;
        }
        lines.push(format!("{name} {waits}"));
        lines.extend_from_slice(below);
        if is_crowd {
            let others = &names[1..];
            let first = others[..ALIKE - 1].join(", ");
            lines.push(format!("    and the same of {} others: {first}, ..", others.len()));
        }
    }
    lines.join("\n")
}

/// The lines below that of a task.
pub(crate) fn lines(
    notes: &TaskNotes,
    task: &TaskInfo,
    region: &RegionInfo,
    names: &TaskNames<'_>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let is_told = |wait: &&WaitNotes| {
        let told = task.waits.filter(|_| !task.stale);
        told.is_some_and(|(_, at)| at == wait.at)
    };
    if task.activity == Activity::Waiting {
        let (told, others): (Vec<_>, Vec<_>) = notes.waits.iter().partition(is_told);
        let mut before = Vec::new();
        for wait in told.iter().chain(&others) {
            if !is_told(wait) {
                lines.push(format!("waits for {} at {} as well", wait.on, place(wait.at)));
            }
            let who = wait.thing.as_ref().map(|thing| who_could(thing, names)).unwrap_or_default();
            // The same channel again.
            if who != before {
                lines.extend_from_slice(&who);
            }
            before = who;
            lines.extend(around(wait));
        }
    }
    if let Some(at) = notes.spawned {
        let opened = region.opened.map(|at| format!(", in the scope opened at {at}"));
        lines.push(format!("spawned at {at}{}", opened.unwrap_or_default()));
    }
    lines.iter().map(|line| format!("    {line}")).collect()
}

/// What is around a wait in its task.
fn around(wait: &WaitNotes) -> Vec<String> {
    let frames = wait.frames.iter().take(MOST_FRAMES);
    let told = frames.map(|Frame { what, at }| match expression(at) {
        Some(call) => format!("in `{call}` at {at}"),
        None => format!("in {what} at {at}"),
    });
    let more = wait.frames.len().saturating_sub(MOST_FRAMES);
    let more = (more > 0).then(|| format!("and in {more} more around that"));
    told.chain(more).collect()
}

/// Words for what a side of something does.
struct Words {
    done: &'static str,
    never: &'static str,
    /// One of its handles, and several; nothing if there are none.
    ends: Option<(&'static str, &'static str)>,
}

fn words(thing: Thing, side: Side) -> Words {
    let (done, never, ends) = match (thing, side) {
        (Thing::Channel, Side::Sends) => {
            ("sent", "nothing was sent so far", Some(("sender", "senders")))
        }
        (_, Side::Receives) => {
            ("received", "nothing was received so far", Some(("receiver", "receivers")))
        }
        (Thing::Watch, Side::Sends) => {
            ("set", "it was not set so far", Some(("setter", "setters")))
        }
        (Thing::Broadcast, Side::Sends) => {
            ("sent", "nothing was sent so far", Some(("publisher", "publishers")))
        }
        (Thing::Notify, Side::Sends) => ("notified", "nobody has notified it so far", None),
    };
    Words { done, never, ends }
}

/// Who could end a wait at a channel or a notification, as far as it is known.
fn who_could(thing: &ThingNotes, names: &TaskNames<'_>) -> Vec<String> {
    let ThingNotes { last, users, ends, permits, .. } = thing;
    let Words { done, never, ends: kinds } = words(thing.thing, thing.side);
    let mut lines = vec![match last {
        Some(Use { task, at }) => {
            format!("last {done} by {} at {}", names.task(*task), place(at)).replace(",,", ",")
        }
        None => String::from(never),
    }];
    let reserved = permits.iter().take(MOST_ENDS).map(|Use { task, at }| {
        format!("a slot is reserved by {} at {}", names.task(*task), place(at)).replace(",,", ",")
    });
    lines.extend(reserved);
    let Some((one, several)) = kinds else {
        if users.len() > 1 {
            let users: Vec<_> = users.iter().take(MOST_ENDS).map(|it| names.task(*it)).collect();
            lines.push(format!("{done} so far by {}", users.join(" and by ")));
        }
        return lines;
    };
    let end = |EndNotes { made, user }: &EndNotes| {
        let by = match user {
            Some(user) => format!("used by {}", names.task(*user)),
            None => String::from("not used so far"),
        };
        format!("{by}, made by {} at {}", names.task(made.task), made.at).replace(",,", ",")
    };
    match &ends[..] {
        [] => {}
        [only] => lines.push(format!("one {one} is left: {}", end(only))),
        many => {
            let told: Vec<_> = many.iter().take(MOST_ENDS).map(end).collect();
            let more = many.len().saturating_sub(MOST_ENDS);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            lines.push(format!("{} {several} are left: {}{more}", many.len(), told.join("; ")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_of_many_is_told_once() {
        let told = |name: &str, waits: &str| Told {
            name: format!("`{name}`"),
            waits: waits.into(),
            below: vec![String::from("    spawned there")],
        };
        let many = (1..=6).map(|nth| told(&format!("main/{nth}"), "waits"));
        let text = in_lines([told("main", "is busy")].into_iter().chain(many).collect());
        let lines: Vec<_> = text.lines().collect();
        let expected = [
            "`main` is busy",
            "    spawned there",
            "`main/1` waits",
            "    spawned there",
            "    and the same of 5 others: `main/2`, `main/3`, `main/4`, ..",
        ];
        assert_eq!(lines, expected);
        let few = in_lines((1..=4).map(|nth| told(&format!("main/{nth}"), "waits")).collect());
        assert_eq!(few.lines().count(), 8);
    }
}
