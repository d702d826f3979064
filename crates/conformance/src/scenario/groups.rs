//! Groups: an op on `name*` is an op on each member, written out when a scenario is read.

use super::{Body, Checked, Name, Op, ScriptStep};
use std::collections::BTreeMap;
use std::sync::Arc;

type Groups = BTreeMap<Name, Vec<Name>>;

/// The ops with every group written out, loops and shields included.
pub(crate) fn expand(steps: &[ScriptStep], groups: &Groups) -> Body {
    let all: Vec<ScriptStep> = steps.iter().flat_map(|step| members(step, groups)).collect();
    Arc::from(all)
}

fn members(step: &ScriptStep, groups: &Groups) -> Vec<ScriptStep> {
    let group = |name: &Name| groups.get(name.strip_suffix('*')?);
    let with = |op: Op| ScriptStep { op, ..step.clone() };
    let each = |name: &Name, make: &dyn Fn(Name) -> Op| {
        group(name).map(|names| names.iter().map(|name| with(make(name.clone()))).collect())
    };
    let found: Option<Vec<ScriptStep>> = match &step.op {
        Op::Cancel { task, kind, message } => {
            each(task, &|task| Op::Cancel { task, kind: *kind, message: message.clone() })
        }
        Op::Wake { task } => each(task, &|task| Op::Wake { task }),
        Op::Check(Checked::Task(task)) => each(task, &|task| Op::Check(Checked::Task(task))),
        Op::Check(Checked::Timer(timer)) => each(timer, &|timer| Op::Check(Checked::Timer(timer))),
        Op::Disarm { timer, id, generation } => {
            each(timer, &|timer| Op::Disarm { timer, id: *id, generation: *generation })
        }
        Op::Repeat { times, body } => {
            Some(vec![with(Op::Repeat { times: *times, body: expand(body, groups) })])
        }
        Op::Shield { body } => Some(vec![with(Op::Shield { body: expand(body, groups) })]),
        Op::Cleanup { body } => Some(vec![with(Op::Cleanup { body: expand(body, groups) })]),
        _ => None,
    };
    found.unwrap_or_else(|| vec![step.clone()])
}
