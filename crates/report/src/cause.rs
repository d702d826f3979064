//! The cause of a failed run, as stored in the header of its trace.
//!
//! The lab writes the cause when a check fails, and the page shows it first. Each part is a text in
//! the header's `meta`; lists have one line for each item.

use asx_trace::{Header, Limits};

/// The cause of a failure, and the command that reproduces it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The kind of failure as one word, such as `deadlock`.
    pub kind: String,
    /// The message.
    pub message: String,
    /// The label of the task that failed.
    pub task: Option<String>,
    /// The source location.
    pub place: Option<String>,
    /// The number of the failing poll, from 1.
    pub step: Option<String>,
    /// Details, such as which task waits for which.
    pub detail: Vec<String>,
    /// Descriptions of the changed decisions of the schedule.
    pub changes: Vec<String>,
    /// The event numbers of the changed decisions, in the order of `changes`. Empty if the trace
    /// does not have them.
    pub change_events: Vec<u64>,
    /// The command that reproduces the failure.
    pub replay: Option<String>,
}

/// The names of the parts in `meta`.
const KIND: &str = "failure";
const MESSAGE: &str = "failure_message";
const TASK: &str = "failure_task";
const PLACE: &str = "failure_place";
const STEP: &str = "failure_step";
const DETAIL: &str = "failure_detail";
const CHANGES: &str = "failure_changes";
const CHANGE_EVENTS: &str = "failure_change_events";
const REPLAY: &str = "failure_replay";

/// The name of the `meta` entry with the number of the first teardown event. From there on, the lab
/// ends a failed run, which is not the behaviour of the program.
pub const TEARDOWN: &str = "teardown";

impl Cause {
    /// Reads the cause from a header.
    pub fn of(header: &Header) -> Option<Cause> {
        let find = |name: &str| {
            let pair = header.meta.iter().find(|(known, _)| known == name);
            pair.map(|(_, text)| text.clone()).filter(|text| !text.is_empty())
        };
        let lines = |name: &str| {
            find(name).map_or_else(Vec::new, |text| text.lines().map(str::to_owned).collect())
        };
        // A list with an unreadable number is dropped.
        let events: Result<Vec<u64>, _> =
            lines(CHANGE_EVENTS).iter().map(|line| line.parse()).collect();
        Some(Cause {
            kind: find(KIND)?,
            message: find(MESSAGE).unwrap_or_default(),
            task: find(TASK),
            place: find(PLACE),
            step: find(STEP),
            detail: lines(DETAIL),
            changes: lines(CHANGES),
            change_events: events.unwrap_or_default(),
            replay: find(REPLAY),
        })
    }

    /// Returns the `meta` entries of the cause, each cut to the maximal size of a text in a trace.
    pub fn meta(&self) -> Vec<(String, String)> {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let parts = [
            (KIND, self.kind.clone()),
            (MESSAGE, self.message.clone()),
            (TASK, text(&self.task)),
            (PLACE, text(&self.place)),
            (STEP, text(&self.step)),
            (DETAIL, self.detail.join("\n")),
            (CHANGES, self.changes.join("\n")),
            (CHANGE_EVENTS, change_events_text(&self.change_events)),
            (REPLAY, text(&self.replay)),
        ];
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
        parts.map(|(name, text)| (name.to_owned(), cut(text))).collect()
    }

    /// Returns the `meta` entry with the event numbers of the changed decisions.
    pub fn change_events_meta(events: &[u64]) -> Option<(String, String)> {
        let text = change_events_text(events);
        (!text.is_empty()).then(|| (CHANGE_EVENTS.to_owned(), cut(text)))
    }

    /// Whether a name in `meta` belongs to a cause.
    pub(crate) fn is_part(name: &str) -> bool {
        name == KIND || name == TEARDOWN || name.starts_with("failure_")
    }
}

fn change_events_text(events: &[u64]) -> String {
    events.iter().map(u64::to_string).collect::<Vec<_>>().join("\n")
}

/// Cuts a text to the maximal size, at the end of a line if there are several.
fn cut(mut text: String) -> String {
    const MORE: &str = "\n..";
    let most = Limits::default().text;
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most - MORE.len()));
        if let Some(end) = text.rfind('\n') {
            text.truncate(end);
        }
        text.push_str(MORE);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(meta: Vec<(String, String)>) -> Header {
        Header { meta, ..Header::new("demo", "lab") }
    }

    #[test]
    fn a_cause_survives_the_header() {
        let cause = Cause {
            kind: "deadlock".into(),
            message: "`a` and `b` wait for each other".into(),
            step: Some("5".into()),
            detail: vec!["`a` waits".into(), "`b` waits".into()],
            changes: vec!["run `b` first".into(), "then `a`".into()],
            change_events: vec![7, 12],
            replay: Some("ASX_REPLAY=x cargo test y".into()),
            ..Cause::default()
        };
        assert_eq!(Cause::of(&header(cause.meta())), Some(cause));
        assert_eq!(Cause::of(&header(vec![("strategy".into(), "dpor".into())])), None);
        assert!(Cause::default().meta().is_empty());
    }

    #[test]
    fn a_long_list_is_cut_between_lines_with_a_marker() {
        let detail: Vec<_> = (0..2000).map(|n| format!("task {n} waits")).collect();
        let cause = Cause { kind: "deadlock".into(), detail, ..Cause::default() };
        let restored = Cause::of(&header(cause.meta())).expect("a cause");
        let (last, before) = restored.detail.split_last().expect("lines");
        assert_eq!(last, "..");
        assert!(before.iter().zip(&cause.detail).all(|(restored, detail)| restored == detail));
        assert!(before.len() > 100 && cause.meta().iter().all(|(_, text)| text.len() <= 4096));
    }
}
