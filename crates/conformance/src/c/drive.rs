//! Moving the clock and stepping the runtime.

use super::{Shared, ask, call};
use crate::host::Reply;
use crate::pattern::Named;
use crate::scenario::Op;
use crate::value::Value;
use asx_capi::{ASX_NONE, AsxDiagnosis, AsxProgress, AsxTask};
use asx_kernel::lanes::Lane;
use asx_kernel::status::Status;
use asx_kernel::time::{Time, nanos};
use core::mem::size_of;

/// What a look or an op answers.
pub(super) type Told = Result<Reply, Status>;

impl Shared {
    pub(super) fn drive(&self, op: &Op) -> Told {
        match op {
            Op::Advance { when } => {
                let now = when.from(self.now()).as_nanos();
                call!(runtime::asx_advance(self.rt, now))?;
            }
            Op::Fire => {
                let mut fired = 0;
                call!(runtime::asx_fire_timers(self.rt, &mut fired))?;
                return Ok(Reply::ok().with("fired", fired));
            }
            Op::Run { max_steps } => return Ok(self.run(*max_steps).map_or_else(stuck, stepped)),
            Op::StepOn { count, worker } => return self.steps(*count, *worker),
            Op::RunFor { when, max_steps } => {
                let end = when.from(self.now());
                return Ok(self.run_until(end, *max_steps).map_or_else(stuck, stepped));
            }
            Op::Suggest { mode } => call!(runtime::asx_set_governor_mode(self.rt, *mode as i32))?,
            Op::SoftStop => call!(runtime::asx_soft_stop(self.rt))?,
            Op::Shutdown { soft, force_after } => {
                let force = force_after.map_or(ASX_NONE, nanos);
                call!(runtime::asx_shutdown(self.rt, nanos(*soft), force))?;
            }
            Op::Quiescent => {
                let all = self.diagnosis();
                let first = all.first().copied().unwrap_or(Status::Ok);
                let names = Value::texts(all.into_iter().map(Status::name));
                return Ok(Reply::status(first).with("all", names));
            }
            _ => return Err(Status::Internal),
        }
        Ok(Reply::ok())
    }

    pub(super) fn now(&self) -> Time {
        let mut now = 0;
        let _ = ask!(runtime::asx_now(self.rt, &mut now));
        Time::from_nanos(now)
    }

    /// When something happens by itself next.
    pub(super) fn next_wake(&self) -> Option<Time> {
        let mut next = 0;
        ask!(runtime::asx_next_deadline(self.rt, &mut next)).ok()?;
        Some(Time::from_nanos(next))
    }

    /// Every quiescence failure, in the order of the check.
    pub(super) fn diagnosis(&self) -> Vec<Status> {
        let mut told = AsxDiagnosis {
            struct_size: size_of::<AsxDiagnosis>() as u32,
            reserved: 0,
            tasks: 0,
            obligations: 0,
            regions: 0,
            timers: 0,
            channels: 0,
        };
        let _ = ask!(runtime::asx_quiescent(self.rt, &mut told));
        let all = [
            (told.tasks, Status::TasksStillActive),
            (told.obligations, Status::ObligationsUnresolved),
            (told.regions, Status::RegionsNotClosed),
            (told.timers, Status::TimersPending),
            (told.channels, Status::ChannelNotDrained),
        ];
        all.into_iter().filter(|(count, _)| *count > 0).map(|(_, status)| status).collect()
    }

    fn step(&self, most: u64) -> Result<AsxProgress, Status> {
        let mut progress = AsxProgress {
            struct_size: size_of::<AsxProgress>() as u32,
            idle: 0,
            polls: 0,
            next_deadline: 0,
            last_task: AsxTask { bits: 0, generation: 0 },
            last_lane: -1,
            reserved: 0,
        };
        let now = self.now().as_nanos();
        call!(runtime::asx_step(self.rt, now, most, &mut progress))?;
        Ok(progress)
    }

    /// Steps until nothing is runnable now; answers how often. The guard's number, if reached. A
    /// profile may bound the steps of a call: then there are several.
    fn run(&self, max_steps: u64) -> Result<u64, u64> {
        let mut polls = 0;
        loop {
            let left = max_steps.saturating_add(1) - polls;
            let progress = self.step(left).map_err(|_| max_steps)?;
            polls += progress.polls;
            if polls > max_steps {
                return Err(max_steps);
            }
            if progress.idle != 0 {
                return Ok(polls);
            }
        }
    }

    fn run_until(&self, end: Time, max_steps: u64) -> Result<u64, u64> {
        let mut steps = 0;
        loop {
            steps += self.run(max_steps - steps).map_err(|_| max_steps)?;
            let next = self.next_wake().filter(|next| self.now() < *next);
            let next = next.filter(|next| *next <= end);
            let _ = call!(runtime::asx_advance(self.rt, next.unwrap_or(end).as_nanos()));
            if next.is_none() {
                return Ok(steps);
            }
        }
    }

    fn steps(&self, count: u64, worker: Option<usize>) -> Told {
        if worker.is_some_and(|worker| worker > 0) {
            return Err(Status::InvalidArgument);
        }
        let mut last = None;
        for _ in 0..count {
            let progress = self.step(1)?;
            last = (progress.polls > 0).then_some(progress);
        }
        let reply = Reply::ok().with("idle", last.is_none());
        let Some(progress) = last else { return Ok(reply) };
        let lane = Lane::ALL.get(progress.last_lane as usize).map_or("none", |lane| lane.name());
        let task = progress.last_task.generation;
        let name = self.book.with(|notes| {
            let name = notes.ordinals.name(Named::Task, task);
            name.map_or_else(|| task.to_string(), str::to_owned)
        });
        Ok(reply.with("task", name).with("lane", lane))
    }
}

fn stepped(steps: u64) -> Reply {
    Reply::ok().with("steps", steps)
}

fn stuck(max_steps: u64) -> Reply {
    Reply::status(Status::Internal).note(format!("still running after {max_steps} steps"))
}
