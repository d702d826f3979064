//! Events of a host's scheduler: their kinds and the fields that each must have.
//!
//! Every host event with a kind that begins with `scheduler_` has all fields of [`MANDATORY`]; a
//! field that does not apply is null. Each kind defines which fields must not be null. The fields
//! of a decision belong to the step during which the event occurred: all of them are null, or none
//! is.

use crate::record::{HostEvent, Value};
use alloc::format;
use alloc::string::String;

/// The fields that every event of a host's scheduler has.
pub const MANDATORY: [&str; 10] = [
    "task_id",
    "region_id",
    "lane",
    "decision_seq",
    "decision_hash",
    "host_turn_id",
    "microtask_batch_id",
    "cancel_streak",
    "cancel_streak_limit",
    "error_class",
];

/// The fields of a decision.
const DECISION: [&str; 5] = ["task_id", "region_id", "lane", "decision_seq", "decision_hash"];

/// The fields of a turn of the event loop.
const TURN: [&str; 4] =
    ["host_turn_id", "microtask_batch_id", "cancel_streak", "cancel_streak_limit"];

/// A kind of scheduler event, and the fields that must not be null in it.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerKind {
    /// The name.
    pub name: &'static str,
    /// Whether the event belongs to a step of the scheduler, and whether it occurs in a turn.
    decision: bool,
    turn: bool,
    /// Whether the event reports a failure.
    failure: bool,
    /// Additional fields of this kind.
    own: &'static [&'static str],
}

const fn kind(name: &'static str, decision: bool, turn: bool, failure: bool) -> SchedulerKind {
    SchedulerKind { name, decision, turn, failure, own: &[] }
}

const fn with(own: &'static [&'static str], kind: SchedulerKind) -> SchedulerKind {
    SchedulerKind { own, ..kind }
}

/// All kinds of scheduler events.
pub const SCHEDULER_KINDS: [SchedulerKind; 13] = [
    kind("scheduler_step_begin", false, true, false),
    kind("scheduler_step_decision", true, true, false),
    kind("scheduler_step_end", true, true, false),
    kind("scheduler_reentrancy_deferred", false, true, true),
    with(&["limit"], kind("scheduler_burst_limit_reached", false, true, false)),
    with(&["call"], kind("scheduler_host_handoff", false, true, false)),
    // Threads have no turns and no batches, but can be denied a capability too.
    with(&["capability", "provenance"], kind("scheduler_capability_denied", false, false, true)),
    with(&["timer"], kind("scheduler_stale_timer", false, true, true)),
    with(&["by_ns"], kind("scheduler_clock_went_back", false, true, true)),
    kind("scheduler_forged_message", false, true, true),
    kind("scheduler_forged_timer", false, true, true),
    kind("scheduler_started_twice", false, true, true),
    kind("scheduler_trapped", false, true, true),
];

impl SchedulerKind {
    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<SchedulerKind> {
        SCHEDULER_KINDS.into_iter().find(|kind| kind.name == name)
    }

    /// Whether the field must not be null.
    fn requires(&self, field: &str) -> bool {
        (self.decision && DECISION.contains(&field))
            || (self.turn && TURN.contains(&field))
            || (self.failure && field == "error_class")
            || self.own.contains(&field)
    }
}

/// Checks a host event, if it is one of the scheduler's. `in_step` is true between the decision and
/// the end of a step. The error is a stable code and a message that names the field.
pub(crate) fn check(event: &HostEvent, in_step: bool) -> Result<(), (&'static str, String)> {
    let HostEvent { seq, kind: name, fields } = event;
    if !name.starts_with("scheduler_") {
        return Ok(());
    }
    let Some(kind) = SchedulerKind::from_name(name) else {
        let text = match &**name {
            "scheduler_decision" => "; use `scheduler_step_decision`",
            _ => "",
        };
        return Err(("host_kind", format!("host event {seq}: unknown kind `{name}`{text}")));
    };
    let value = |field: &str| fields.iter().find(|(of, _)| of == field).map(|(_, value)| value);
    let has = |field: &str| value(field).is_some_and(|value| *value != Value::Null);
    for field in MANDATORY.iter().chain(kind.own) {
        if value(field).is_none() {
            let text = format!("host event {seq}, {name}: the field `{field}` is missing");
            return Err(("host_field", text));
        }
        let known = kind.requires(field) || (in_step && DECISION.contains(field));
        if known && !has(field) {
            let text = format!("host event {seq}, {name}: the field `{field}` is null");
            return Err(("host_null", text));
        }
    }
    if DECISION.iter().any(|field| has(field))
        && let Some(field) = DECISION.iter().find(|field| !has(field))
    {
        let text = format!("host event {seq}, {name}: it has a decision, but `{field}` is null");
        return Err(("host_null", text));
    }
    Ok(())
}
