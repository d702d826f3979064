//! Why a run failed, as its header says it.
//!
//! The lab writes it when a check fails; the page shows it before anything else. In a header each
//! part is a text in `meta`, and lists have a line for each item.

use asx_trace::{Header, Limits};

/// Why a run failed, and how to see it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The kind of failure, in a word: `deadlock`.
    pub kind: String,
    /// What went wrong.
    pub message: String,
    /// The task that failed, as its label says it.
    pub task: Option<String>,
    /// Where in the source.
    pub place: Option<String>,
    /// In which poll, from 1.
    pub step: Option<String>,
    /// Who waits for whom, and what else there is to say.
    pub detail: Vec<String>,
    /// The changed decisions of the schedule, in words.
    pub changes: Vec<String>,
    /// The number of the event at which each changed decision was made, in the order of `changes`.
    /// Empty if the trace does not say.
    pub change_events: Vec<u64>,
    /// The command that runs it again.
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

/// The name of the first event of what the lab does to end a run that has failed: not the
/// program's doing.
pub const TEARDOWN: &str = "teardown";

impl Cause {
    /// The cause that a header tells.
    pub fn of(header: &Header) -> Option<Cause> {
        let find = |name: &str| {
            let pair = header.meta.iter().find(|(known, _)| known == name);
            pair.map(|(_, text)| text.clone()).filter(|text| !text.is_empty())
        };
        let lines = |name: &str| {
            find(name).map_or_else(Vec::new, |text| text.lines().map(str::to_owned).collect())
        };
        // Events that cannot be read are not known.
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

    /// The same as parts of a header, each no longer than a text in a trace may be.
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

    /// The part of a header that says at which events the changed decisions were made.
    pub fn change_events_meta(events: &[u64]) -> Option<(String, String)> {
        let text = change_events_text(events);
        (!text.is_empty()).then(|| (CHANGE_EVENTS.to_owned(), cut(text)))
    }

    /// Whether a name in `meta` is one of the parts of a cause.
    pub(crate) fn is_part(name: &str) -> bool {
        name == KIND || name == TEARDOWN || name.starts_with("failure_")
    }
}

fn change_events_text(events: &[u64]) -> String {
    events.iter().map(u64::to_string).collect::<Vec<_>>().join("\n")
}

/// Cuts a text to what a trace may have, at the end of a line if there are several.
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
    fn what_a_header_is_told_it_tells() {
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
    fn a_long_list_is_cut_between_lines_and_says_so() {
        let detail: Vec<_> = (0..2000).map(|n| format!("task {n} waits")).collect();
        let cause = Cause { kind: "deadlock".into(), detail, ..Cause::default() };
        let told = Cause::of(&header(cause.meta())).expect("a cause");
        let (last, before) = told.detail.split_last().expect("lines");
        assert_eq!(last, "..");
        assert!(before.iter().zip(&cause.detail).all(|(told, detail)| told == detail));
        assert!(before.len() > 100 && cause.meta().iter().all(|(_, text)| text.len() <= 4096));
    }
}
