//! Which scenarios and lines the C library can express, and why not others.

use crate::scenario::{BrowserOp, Checked, Op, Scenario, ScriptStep};

/// What only an event loop can do.
const BROWSER: &str = "it is about the browser's event loop";

/// Whether the scenario can be run; if not, why.
pub(super) fn can_run(scenario: &Scenario) -> Result<(), String> {
    let is_about_capabilities =
        |step: &ScriptStep| matches!(&step.op, Op::Browser(BrowserOp::Require { .. }));
    if scenario.config.browser.as_ref().is_some_and(|browser| browser.required) {
        let why = match scenario.any_step(is_about_capabilities) {
            true => "it grants and revokes capabilities: a C runtime has hooks set at creation",
            false => BROWSER,
        };
        return Err(why.to_owned());
    }
    if scenario.config.workers > 1 {
        return Err("it is about several workers: a C runtime is stepped by its owner".to_owned());
    }
    Ok(())
}

/// Why an op cannot be done, if it cannot.
pub(super) fn hindrance(step: &ScriptStep) -> Option<&'static str> {
    match &step.op {
        Op::Browser(_) | Op::Check(Checked::Pump) => Some(BROWSER),
        Op::Spawn { pinned: true, .. } => Some("tasks are not pinned: there is one thread"),
        _ => None,
    }
}
