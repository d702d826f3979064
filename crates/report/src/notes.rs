//! Host events with which a host records what tasks wait for and which locks they hold.
//!
//! Like all host events they are not part of the digest. A wait lasts until the task resumes; a
//! lock is held until it is released.

use asx_trace::{HostEvent, Value};

/// A task waits. Fields: `task`, `on` (a description), `what` (the source expression) and `at`.
pub const TASK_WAITS: &str = "task_waits";
/// A waiting task resumes. Field: `task`.
pub const TASK_GOES_ON: &str = "task_goes_on";
/// A task acquires a lock or a permit. Fields: `task`, `lock` (its number), `what` and `at`.
pub const LOCK_TAKEN: &str = "lock_taken";
/// A task releases a lock or a permit. Fields: `task` and `lock`.
pub const LOCK_RELEASED: &str = "lock_released";

/// A note about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note<'a> {
    pub(crate) kind: &'a str,
    pub(crate) task: u64,
    pub(crate) lock: Option<u64>,
    on: Option<&'a str>,
    what: Option<&'a str>,
    at: Option<&'a str>,
}

impl<'a> Note<'a> {
    /// Parses a host event, if it is a note.
    pub(crate) fn of(event: &'a HostEvent) -> Option<Note<'a>> {
        let kinds = [TASK_WAITS, TASK_GOES_ON, LOCK_TAKEN, LOCK_RELEASED];
        let kind = kinds.into_iter().find(|kind| *kind == event.kind)?;
        let field = |name: &str| event.fields.iter().find(|field| field.0 == name);
        let number = |name: &str| match field(name)?.1 {
            Value::Number(number) => Some(number),
            _ => None,
        };
        let text = |name: &str| match &field(name)?.1 {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        };
        let task = number("task")?;
        let lock = number("lock");
        Some(Note { kind, task, lock, on: text("on"), what: text("what"), at: text("at") })
    }

    /// Returns a short description such as `waits for orders.recv`, and the full one.
    pub(crate) fn words(self) -> (String, String) {
        let verb = if self.kind == TASK_WAITS { "waits for" } else { "holds" };
        let on = self.on.unwrap_or("a lock or permit");
        let brief = format!("{verb} {}", self.what.unwrap_or(on));
        let what = self.what.map_or_else(String::new, |what| format!(": {what}"));
        let at = self.at.map_or_else(String::new, |at| format!("\nat {at}"));
        let whole = format!("{verb} {on}{what}{at}");
        (brief, whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, fields: &[(&str, Value)]) -> HostEvent {
        let fields = fields.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        HostEvent { seq: 0, kind: kind.into(), fields }
    }

    #[test]
    fn a_wait_is_described_by_its_expression_or_its_kind() {
        let text = |text: &str| Value::Text(text.into());
        let mut fields = vec![("task", Value::Number(3)), ("on", text("a message"))];
        let plain = event(TASK_WAITS, &fields);
        let words = Note::of(&plain).expect("a note").words();
        assert_eq!(words, ("waits for a message".into(), "waits for a message".into()));
        fields.extend([("what", text("orders.recv")), ("at", text("a.rs:1:2"))]);
        let named = event(TASK_WAITS, &fields);
        let words = Note::of(&named).expect("a note").words();
        assert_eq!(words.0, "waits for orders.recv");
        assert_eq!(words.1, "waits for a message: orders.recv\nat a.rs:1:2");
        assert_eq!(Note::of(&event("burst", &fields)), None);
        assert_eq!(Note::of(&event(TASK_WAITS, &fields[1..])), None);
    }
}
