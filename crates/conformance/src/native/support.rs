//! Which scenarios and lines the native runtime can express, and why not others.

use crate::scenario::{BrowserOp, Checked, Need, Op, Scenario, ScriptStep};
use crate::value::Value;
use asx_kernel::status::Status;

/// What only an event loop can do.
const BROWSER: &str = "it is about the browser's event loop";
/// Storage belongs to tasks, as Rust values.
const STORAGE: &str = "regions own no storage: what tasks hold is theirs";
/// Handles keep their objects alive.
const SLOTS: &str = "a handle keeps what it names: there is nothing to release";

/// Whether workers can run the scenario; if not, why.
pub(super) fn can_run(scenario: &Scenario) -> Result<(), String> {
    // Of an event loop's affairs, only what is granted is no matter of turns.
    let has_turns = |step: &ScriptStep| is_of_event_loop(step) && !is_about_capabilities(step);
    let only_capabilities =
        scenario.any_step(is_about_capabilities) && !scenario.any_step(has_turns);
    let is_required = scenario.config.browser.as_ref().is_some_and(|browser| browser.required);
    if is_required && !only_capabilities {
        return Err(BROWSER.to_owned());
    }
    has_all(scenario)
}

/// Whether a page can; if not, why.
pub(super) fn can_run_in_page(scenario: &Scenario) -> Result<(), String> {
    if scenario.config.workers > 1 {
        return Err("a page has one thread".to_owned());
    }
    // Where a panic is a trap, it ends everything: nothing is left to look at.
    if cfg!(panic = "abort") && panics(scenario) {
        return Err("a panic is a trap here, which nothing survives".to_owned());
    }
    has_all(scenario)
}

/// Whether a poll of the scenario panics: by itself, or by dropping a tracked permit.
fn panics(scenario: &Scenario) -> bool {
    let tracks = |step: &ScriptStep| {
        matches!(step.op, Op::Reserve { tracked: true, .. } | Op::TryReserve { tracked: true, .. })
    };
    let drops = |step: &ScriptStep| matches!(step.op, Op::DropPermit { .. });
    scenario.any_step(|step| matches!(step.op, Op::Panic { .. }))
        || (scenario.any_step(tracks) && scenario.any_step(drops))
}

/// Whether the runtime has everything that the scenario needs as a whole.
fn has_all(scenario: &Scenario) -> Result<(), String> {
    match scenario.needs.first() {
        None => Ok(()),
        Some(need) => Err(match need.0 {
            Need::Storage => STORAGE.to_owned(),
            Need::Slots => SLOTS.to_owned(),
        }),
    }
}

fn is_of_event_loop(step: &ScriptStep) -> bool {
    matches!(&step.op, Op::Browser(_) | Op::Check(Checked::Pump))
}

fn is_about_capabilities(step: &ScriptStep) -> bool {
    let Op::Browser(op) = &step.op else { return false };
    matches!(op, BrowserOp::Grant { .. } | BrowserOp::Revoke { .. } | BrowserOp::Require { .. })
}

/// Why an op has no answer where no events are kept, if it has none.
pub(super) fn without_events(scenario: &Scenario, step: &ScriptStep) -> Option<&'static str> {
    let wants = |key: &str| step.wants.iter().any(|want| want.key == key);
    let reserved = Value::from("Reserved");
    let is_resolved = step.wants.iter().any(|want| want.key == "state" && want.value != reserved);
    let needs_events = match &step.op {
        Op::Check(Checked::Journal | Checked::Permit(_)) => true,
        Op::Check(Checked::Obligation(_)) => is_resolved,
        Op::Check(Checked::Task(name)) => {
            let is_unknown = wants("outcome") && scenario.is_finalizer(name);
            is_unknown || wants("phase") || wants("overrun")
        }
        Op::Join { task } => scenario.is_finalizer(task),
        _ => false,
    };
    needs_events.then_some("no events are kept, from which this is known")
}

/// Why an op cannot be done, if it cannot.
pub(super) fn hindrance(step: &ScriptStep, in_page: bool) -> Option<&'static str> {
    let second = [Some(Status::ObligationAlreadyResolved), Some(Status::ObligationLeaked)];
    let wants = |key: &str| step.wants.iter().any(|want| want.key == key);
    match &step.op {
        Op::Check(Checked::Pump) if !in_page => Some(BROWSER),
        Op::Browser(_) => None,
        Op::Storage { .. } => Some(STORAGE),
        Op::Check(Checked::Region(_)) if wants("memory") => Some(STORAGE),
        Op::Release { .. } => Some(SLOTS),
        _ if step.expect == Some(Status::StaleHandle) => {
            Some("a handle keeps what it names: none goes stale")
        }
        Op::Send { .. } | Op::AbortPermit { .. } | Op::DropPermit { .. }
            if second.contains(&step.expect) =>
        {
            Some("types forbid it: a permit is consumed by its first resolution")
        }
        _ => None,
    }
}
