//! The script's ops: moving the clock, stepping, and whatever tasks can do too.

use super::Call;
use crate::api::{Control, Driver, HostApi};
use crate::host::Reply;
use crate::scenario::Op;
use crate::value::Value;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use core::task::Poll;

/// Does an op of the script.
pub(crate) fn apply<D: Driver>(driver: &mut D, op: &Op) -> Reply {
    driver.api().name_finalizers();
    if let Some(reply) = drive(driver, op) {
        return reply.unwrap_or_else(Reply::status);
    }
    match (Call { host: driver.api(), caller: None }).perform(op) {
        Poll::Ready(reply) => reply,
        Poll::Pending => Reply::status(Status::WouldBlock),
    }
}

/// Does an op that only the script has.
fn drive<D: Driver>(driver: &mut D, op: &Op) -> Option<Result<Reply, Status>> {
    let done = match op {
        Op::Advance { when } => {
            let to = when.from(driver.api().now());
            driver.advance(to)
        }
        Op::Fire => return Some(driver.fire().map(|fired| Reply::ok().with("fired", fired))),
        Op::Run { max_steps } => return Some(Ok(stepped(driver.run(*max_steps), *max_steps))),
        Op::StepOn { count, worker } => return Some(steps(driver, *count, *worker)),
        Op::RunFor { when, max_steps } => {
            let end = when.from(driver.api().now());
            let steps = run_until(driver, end, *max_steps);
            return Some(Ok(stepped(steps, *max_steps)));
        }
        Op::Suggest { mode } => driver.control(Control::Suggest(mode.0)),
        Op::SoftStop => driver.control(Control::SoftStop),
        Op::Shutdown { soft, force_after } => {
            driver.control(Control::Shutdown { soft: *soft, force_after: *force_after })
        }
        Op::Quiescent => {
            let all = driver.api().not_quiescent();
            let first = all.first().copied().unwrap_or(Status::Ok);
            let names = Value::texts(all.into_iter().map(Status::name));
            return Some(Ok(Reply::status(first).with("all", names)));
        }
        Op::Check(subject) => return driver.look(subject).map(Ok),
        Op::Browser(op) => return Some(Ok(driver.browser_op(op))),
        _ => return None,
    };
    Some(done.map(|()| Reply::ok()))
}

fn run_until<D: Driver>(driver: &mut D, end: Time, max_steps: u64) -> Option<u64> {
    let mut steps = 0;
    loop {
        steps += driver.run(max_steps - steps)?;
        let now = driver.api().now();
        let next = driver.api().next_wake();
        let next = next.filter(|next| now < *next && *next <= end);
        // The clock of a host that refuses to advance stands still, which its journal shows.
        let _ = driver.advance(next.unwrap_or(end));
        if next.is_none() {
            return Some(steps);
        }
    }
}

fn steps<D: Driver>(driver: &mut D, count: u64, worker: Option<usize>) -> Result<Reply, Status> {
    if driver.is_driven() {
        let note = "a pump drives: use `turn` with burst_limit = 1";
        return Ok(Reply::status(Status::InvalidArgument).note(note));
    }
    let mut last = None;
    for _ in 0..count {
        last = driver.step(worker)?;
    }
    let reply = Reply::ok().with("idle", last.is_none());
    Ok(match last {
        Some((task, lane)) => {
            let name = driver.api().book().task_name(task);
            reply.with("task", name).with("lane", lane.name())
        }
        None => reply,
    })
}

fn stepped(steps: Option<u64>, max_steps: u64) -> Reply {
    match steps {
        Some(steps) => Reply::ok().with("steps", steps),
        None => {
            let note = format!("still running after {max_steps} steps");
            Reply::status(Status::Internal).note(note)
        }
    }
}
