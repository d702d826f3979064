//! Host events: what the scheduler did in which host turn. They have a sequence of their own and
//! are no part of the journal's digest.

use std::collections::VecDeque;
use std::fmt::Write as _;

use asx_kernel::lanes::Lane;
use asx_kernel::status::Status;
use asx_runtime::hosted::quoted;

/// One host event. What is mandatory is always there, though perhaps as nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// Its place among the host events: 1, 2, ..
    pub seq: u64,
    /// What happened: `scheduler_step_decision` and the like.
    pub kind: &'static str,
    /// The decision it belongs to: that of the step in which it happened, if it did in one.
    pub decided: Option<Decided>,
    /// The cancel streak: before the decision it belongs to, or at that moment.
    pub cancel_streak: u32,
    /// The limit in force.
    pub cancel_streak_limit: u32,
    /// The host turn.
    pub host_turn_id: u64,
    /// The last drain.
    pub microtask_batch_id: u64,
    /// What went wrong, if something did.
    pub error_class: Option<Status>,
    /// What only this kind has.
    pub detail: Vec<(&'static str, String)>,
}

/// A decision of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The task that goes.
    pub task_id: u64,
    /// Its region.
    pub region_id: u64,
    /// The lane it waited in.
    pub lane: Lane,
    /// The decision's number.
    pub decision_seq: u64,
    /// Its link in the chain of decisions.
    pub decision_hash: u64,
    /// The cancel streak before it, and the limit in force.
    pub(crate) streak: (u32, u32),
}

impl HostEvent {
    /// The event as a JSON object with every mandatory field.
    pub fn to_json(&self) -> String {
        let mut line = format!("{{\"seq\":{},\"event\":\"{}\"", self.seq, self.kind);
        let decided = self.decided.as_ref();
        let mut number = |name: &str, value: Option<u64>| {
            let value = value.map_or("null".to_owned(), |value| value.to_string());
            let _ = write!(line, ",\"{name}\":{value}");
        };
        number("task_id", decided.map(|d| d.task_id));
        number("region_id", decided.map(|d| d.region_id));
        number("decision_seq", decided.map(|d| d.decision_seq));
        number("host_turn_id", Some(self.host_turn_id));
        number("microtask_batch_id", Some(self.microtask_batch_id));
        number("cancel_streak", Some(self.cancel_streak.into()));
        number("cancel_streak_limit", Some(self.cancel_streak_limit.into()));
        let hash = decided.map(|d| format!("{:016x}", d.decision_hash));
        let mut text = |name: &str, value: Option<&str>| {
            let value = value.map_or("null".to_owned(), quoted);
            let _ = write!(line, ",\"{name}\":{value}");
        };
        text("decision_hash", hash.as_deref());
        text("lane", decided.map(|d| d.lane.name()));
        text("error_class", self.error_class.map(Status::name));
        for (name, value) in &self.detail {
            text(name, Some(value));
        }
        line.push('}');
        line
    }
}

/// The last host events.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// How many are kept; 0: none are made, but for errors, which are.
    capacity: usize,
    events: VecDeque<HostEvent>,
    seq: u64,
}

/// Errors are kept even if nothing else is: so many of them.
const ERRORS: usize = 64;

impl Log {
    pub(crate) fn new(capacity: usize) -> Log {
        Log { capacity, ..Log::default() }
    }

    /// Whether events that are no errors are kept.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.capacity > 0
    }

    pub(crate) fn push(&mut self, mut event: HostEvent) {
        if event.error_class.is_none() && !self.is_on() {
            return;
        }
        self.seq += 1;
        event.seq = self.seq;
        if self.events.len() >= self.capacity.max(ERRORS) {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Those after `seq`, oldest first.
    pub(crate) fn after(&self, seq: u64) -> Vec<HostEvent> {
        self.events.iter().filter(|event| event.seq > seq).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &'static str, error_class: Option<Status>) -> HostEvent {
        let detail = vec![("why", "a \"b\"\n".to_owned())];
        HostEvent {
            seq: 0,
            kind,
            decided: None,
            cancel_streak: 3,
            cancel_streak_limit: 16,
            host_turn_id: 1,
            microtask_batch_id: 2,
            error_class,
            detail,
        }
    }

    #[test]
    fn json_has_every_mandatory_field_and_escapes_text() {
        let json = event("x", Some(Status::Reentrant)).to_json();
        for name in ["task_id", "region_id", "lane", "decision_seq", "decision_hash"] {
            assert!(json.contains(&format!("\"{name}\":null")), "{json}");
        }
        assert!(json.contains("\"cancel_streak\":3,\"cancel_streak_limit\":16"), "{json}");
        assert!(json.contains("\"host_turn_id\":1,\"microtask_batch_id\":2"));
        assert!(json.contains("\"error_class\":\"REENTRANT\""));
        assert!(json.ends_with("\"why\":\"a \\\"b\\\"\\u000a\"}"), "{json}");
    }

    #[test]
    fn a_log_that_is_off_keeps_errors_only_and_a_bounded_number() {
        let mut log = Log::new(0);
        for _ in 0..1000 {
            log.push(event("plain", None));
            log.push(event("wrong", Some(Status::CapabilityDenied)));
        }
        let kept = log.after(0);
        assert_eq!((kept.len(), kept[0].seq), (ERRORS, 1000 - ERRORS as u64 + 1));
        assert!(kept.iter().all(|event| event.kind == "wrong"));
        assert_eq!(log.after(999).len(), 1);
    }
}
