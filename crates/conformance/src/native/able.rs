//! Which scenarios the native runtime can express, and why not.

use crate::scenario::{Checked, Op, Scenario, ScriptStep};
use asx_kernel::status::Status;

/// Scenarios whose point is something that a future or a handle does not have.
const BY_ID: [(&str, &str); 1] = [("sched-late-joiners", "a handle has one awaiter")];

/// Whether the scenario can be run; if not, why.
pub(super) fn can_run(scenario: &Scenario) -> Result<(), String> {
    if let Some((_, why)) = BY_ID.iter().find(|(id, _)| *id == scenario.id) {
        return Err((*why).to_owned());
    }
    if scenario.config.browser.is_some() {
        return Err("it is about the browser's event loop".to_owned());
    }
    if scenario.config.limits.contains_key("memory") {
        return Err("memory is not counted: it is the allocator's".to_owned());
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
        _ => of_op(step),
    })
}

fn of_op(step: &ScriptStep) -> Option<&'static str> {
    let second = [Some(Status::ObligationAlreadyResolved), Some(Status::ObligationLeaked)];
    match &step.op {
        Op::Browser(_) | Op::Check(Checked::Pump) => Some("it is about the browser's event loop"),
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
