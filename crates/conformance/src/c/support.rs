//! Which scenarios the C library can express, and why not.

use crate::scenario::{Checked, Op, Scenario, ScriptStep};

/// Whether the scenario can be run; if not, why.
pub(super) fn can_run(scenario: &Scenario) -> Result<(), String> {
    if scenario.config.browser.as_ref().is_some_and(|browser| browser.required) {
        return Err("it is about the browser's event loop".to_owned());
    }
    if scenario.config.workers > 1 {
        return Err("it is about several workers: a C runtime is stepped by its owner".to_owned());
    }
    let bodies = scenario.tasks.values().flat_map(|task| [&task.body, &task.on_cancel]);
    let mut all = bodies.chain([&scenario.setup, &scenario.steps]);
    match all.find_map(|steps| hindrance(steps)) {
        Some(why) => Err(why.to_owned()),
        None => Ok(()),
    }
}

/// Why an op among these cannot be done.
fn hindrance(steps: &[ScriptStep]) -> Option<&'static str> {
    steps.iter().find_map(|step| match &step.op {
        Op::Repeat { body, .. } | Op::Shield { body } | Op::Cleanup { body } => hindrance(body),
        Op::Browser(_) | Op::Check(Checked::Pump) => Some("it is about the browser's event loop"),
        Op::Spawn { pinned: true, .. } => Some("tasks are not pinned: there is one thread"),
        _ => None,
    })
}
