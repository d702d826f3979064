//! Schedules in words.

use crate::explore::{Decision, Decisions, Deviation, Point, TaskPath};
use crate::host::Made;
use crate::machine::Machine;
use crate::net::is_carrier;

/// What the tasks of the last run are called.
pub(crate) fn namer(machine: &Machine) -> impl Fn(TaskPath) -> String {
    |path| machine.called(path).unwrap_or_else(|| format!("{:06x}", path.tag()))
}

/// The deviations of a run, a line for each. `faults`: what its faults are called, in order.
pub(crate) fn words(
    log: &Decisions,
    name: impl Fn(TaskPath) -> String,
    faults: &[Made],
) -> Vec<String> {
    let kinds = [Point::Network, Point::Fault, Point::Timer, Point::Draw];
    let [mut of_network, mut faults, mut times, mut draws] = kinds.map(|point| {
        let texts = faults.iter().filter(move |made| made.point == point);
        texts.map(|made| made.text.as_ref())
    });
    let tasks = log.list().iter().filter_map(|decision| match decision {
        Decision::Task { path, .. } => Some(*path),
        Decision::Pick { .. } => None,
    });
    let tagged: Vec<_> = tasks.map(|path| (path.tag(), path)).collect();
    let called = |of| tagged.iter().find(|task| task.0 == of).map(|task| name(task.1));
    let lines = log.words(&name).into_iter().zip(log.schedule().deviations);
    lines
        .map(|(line, deviation)| match deviation {
            Deviation::Pick { of, step, nth, point: Point::Cancel, picked } => {
                let task = called(of).unwrap_or_else(|| format!("{of:06x}"));
                let times = if picked > 1 { ", twice" } else { "" };
                // The first time it is asked is when the task is about to be polled.
                let when = if nth == 0 { "before" } else { "after" };
                format!("cancel `{task}` {when} its poll {}{times}", step + 1)
            }
            Deviation::Pick { of, step, point: Point::Network, .. } => {
                let fault = of_network.next().unwrap_or("a fault of the network");
                match tagged.iter().find(|task| task.0 == of) {
                    Some((_, path)) if !is_carrier(*path) => {
                        format!("{fault} in poll {} of `{}`", step + 1, name(*path))
                    }
                    _ => String::from(fault),
                }
            }
            Deviation::Pick { of, step, point: Point::Fault, .. } => {
                let fault = faults.next().unwrap_or("a fault");
                match called(of) {
                    Some(task) => format!("{fault} in poll {} of `{task}`", step + 1),
                    None => format!("{fault} before the first poll"),
                }
            }
            Deviation::Pick { of, step, point: Point::Timer, .. } => {
                let time = times.next().unwrap_or("time passed");
                let after = match tagged.iter().find(|task| task.0 == of) {
                    None => String::from("before the first poll"),
                    Some((_, TaskPath::CLOCK)) => String::from("right after a timer was due"),
                    Some((_, path)) => format!("after poll {} of `{}`", step + 1, name(*path)),
                };
                format!("the machine was slow {after}: {time} while tasks could run")
            }
            Deviation::Pick { of, step, point: Point::Draw, .. } => {
                let draw = draws.next().unwrap_or("`random` gave another number");
                match called(of) {
                    Some(task) => format!("{draw} in poll {} of `{task}`", step + 1),
                    None => format!("{draw} before the first poll"),
                }
            }
            _ => line,
        })
        .collect()
}
