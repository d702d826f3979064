//! Which scenarios the native runtime can express, and why not.

use crate::scenario::{BrowserOp, Checked, Op, Scenario, ScriptStep};
use asx_kernel::status::Status;

/// What only an event loop can do.
const BROWSER: &str = "it is about the browser's event loop";

/// Whether workers can run the scenario; if not, why.
pub(super) fn can_run(scenario: &Scenario) -> Result<(), String> {
    if scenario.config.browser.as_ref().is_none_or(|browser| !browser.required) {
        return can_be_expressed(scenario, of_op);
    }
    // Of an event loop's affairs, only what is granted is no matter of turns.
    let asks = first(scenario, &|step| is_about_capabilities(step).then_some(""));
    let other = |step: &ScriptStep| of_op(step).filter(|_| !is_about_capabilities(step));
    match asks {
        Some(_) => can_be_expressed(scenario, other),
        None => Err(BROWSER.to_owned()),
    }
}

fn is_about_capabilities(step: &ScriptStep) -> bool {
    let Op::Browser(op) = &step.op else { return false };
    matches!(op, BrowserOp::Grant { .. } | BrowserOp::Revoke { .. } | BrowserOp::Require { .. })
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
    can_be_expressed(scenario, |step| of_op(step).filter(|why| *why != BROWSER))
}

type Hindrance = fn(&ScriptStep) -> Option<&'static str>;

fn can_be_expressed(scenario: &Scenario, of_op: Hindrance) -> Result<(), String> {
    match first(scenario, &of_op) {
        Some(why) => Err(why.to_owned()),
        None => Ok(()),
    }
}

fn panics(scenario: &Scenario) -> bool {
    let panic = |step: &ScriptStep| matches!(step.op, Op::Panic { .. }).then_some("");
    first(scenario, &panic).is_some()
}

/// The first hindrance in a scenario.
fn first(
    scenario: &Scenario,
    of_op: &dyn Fn(&ScriptStep) -> Option<&'static str>,
) -> Option<&'static str> {
    let bodies = scenario.tasks.values().flat_map(|task| [&task.body, &task.on_cancel]);
    let mut all = bodies.chain([&scenario.setup, &scenario.steps]);
    all.find_map(|steps| hindrance(steps, of_op))
}

/// Why an op among these cannot be done.
fn hindrance(
    steps: &[ScriptStep],
    of_op: &dyn Fn(&ScriptStep) -> Option<&'static str>,
) -> Option<&'static str> {
    steps.iter().find_map(|step| match &step.op {
        Op::Repeat { body, .. } | Op::Shield { body } | Op::Cleanup { body } => {
            hindrance(body, of_op)
        }
        _ => of_op(step),
    })
}

fn of_op(step: &ScriptStep) -> Option<&'static str> {
    let second = [Some(Status::ObligationAlreadyResolved), Some(Status::ObligationLeaked)];
    match &step.op {
        Op::Browser(_) | Op::Check(Checked::Pump) => Some(BROWSER),
        Op::Storage { .. } => Some("regions own no storage: what tasks hold is theirs"),
        Op::Release { .. } => Some("a handle keeps what it names: there is nothing to release"),
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
