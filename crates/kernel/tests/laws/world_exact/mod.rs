//! The world in detail: every refusal, the complete journal of each protocol, and corner cases that
//! random programs do not cover.

mod corners;
mod edges;
mod ends;
mod protocols;
mod refusals;

use asx_kernel::arena::Key;
use asx_kernel::budget::Budget;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::channel::ChannelState;
use asx_kernel::choose::First;
use asx_kernel::ids::{ChannelId, ObligationId, RegionId, TaskId};
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::{Lane, Priority, Source, Suggestion};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::{Lattice, NoValue, Severity};
use asx_kernel::region::RegionState;
use asx_kernel::session::{DropContext, PermitState, Resolution};
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;
use asx_kernel::world::{
    Ask, Config, Part, PermitId, Policy, PollEnd, RegionOptions, SleepUntil, Step, TaskError,
    TaskOptions, World,
};
use core::time::Duration;
use std::task::Poll;

type W = World<u32, u64>;

const ROOT: RegionId = RegionId(Key { generation: 1, index: 0 });
const NOWHERE: Key = Key { generation: 99, index: 99 };

fn world() -> W {
    World::new(Config::default())
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn ask(kind: Kind) -> Ask {
    Ask::new(kind)
}

fn failed() -> PollEnd {
    PollEnd::Failed(TaskError { status: None, message: "failed".into() })
}

fn spawn(w: &mut W, region: RegionId) -> TaskId {
    w.spawn(region, TaskOptions::default(), 0).unwrap()
}

fn spawn_with(w: &mut W, region: RegionId, budget: Budget) -> TaskId {
    w.spawn(region, TaskOptions { budget, ..TaskOptions::default() }, 0).unwrap()
}

fn open(w: &mut W, parent: RegionId) -> RegionId {
    w.open_region(parent, RegionOptions::default()).unwrap()
}

/// Begins the next poll.
fn begin(w: &mut W) -> TaskId {
    match w.next(w.now(), &mut First) {
        Ok(Step::Poll { task, .. }) => {
            w.take_payload(task).unwrap();
            task
        }
        other => panic!("{other:?}\n{}", w.dump()),
    }
}

fn end(w: &mut W, task: TaskId, how: PollEnd) {
    w.polled(task, 0, how).unwrap();
    w.check().unwrap();
}

/// Runs one complete poll.
fn poll(w: &mut W, how: PollEnd) -> TaskId {
    let task = begin(w);
    end(w, task, how);
    task
}

/// Asserts that nothing is runnable. Returns the time of the next scheduled event.
fn idle(w: &mut W) -> Option<Time> {
    match w.next(w.now(), &mut First) {
        Ok(Step::Idle { until }) => until,
        other => panic!("{other:?}\n{}", w.dump()),
    }
}

/// Returns the events since the last call, without decisions and abbreviated.
fn log(w: &mut W) -> Vec<String> {
    let events = w.journal_mut().take();
    let texts = events.iter().map(|event| event.to_string());
    let told = texts.map(|text| text.splitn(3, ' ').nth(2).unwrap().to_owned());
    let told = told.filter(|text| !text.starts_with("scheduler_step_decision"));
    let told = told.map(|text| text.replace(" strengthened=false", ""));
    told.map(|text| text.replace("cancel_", "").replace("strengthened=true", "more")).collect()
}

/// Returns everything that a refused operation must not change.
fn look(w: &W) -> (u64, usize, String, usize, Time, Option<Time>, usize) {
    let journal = w.journal().digest();
    let timers = w.timers().len();
    (journal, w.memory(), w.dump(), timers, w.now(), w.next_wake(), w.scheduler().total())
}

fn unchanged<T>(w: &mut W, call: impl FnOnce(&mut W) -> T) -> T {
    let before = look(w);
    let answer = call(w);
    assert_eq!(look(w), before);
    answer
}

/// Returns a task of the root that is polled once and then waits to send on the full channel.
fn waiting_sender(w: &mut W, channel: ChannelId) -> TaskId {
    let task = spawn(w, ROOT);
    assert_eq!(begin(w), task);
    assert_eq!(w.reserve(task, channel, false), Ok(Poll::Pending));
    end(w, task, PollEnd::Pending);
    task
}

fn stale<T>() -> Result<T, Status> {
    Err(Status::StaleHandle)
}
