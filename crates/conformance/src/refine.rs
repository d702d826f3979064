//! Refinement: whether a recorded run is one the laws allow.
//!
//! It looks at events only, in their order, and keeps what they say of each thing: so it judges any
//! host's journal, also that of several workers, whose order no fingerprint could know.

use asx_kernel::cancel::Kind;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::DecisionChain;
use asx_kernel::obligation::ObligationState;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use std::collections::BTreeMap;

/// What the events so far have said.
#[derive(Clone, Debug, Default)]
pub struct Refinement {
    /// Events looked at.
    seen: u64,
    time: u64,
    tasks: BTreeMap<u64, TaskSeen>,
    regions: BTreeMap<u64, RegionSeen>,
    obligations: BTreeMap<u64, (Option<u64>, ObligationState)>,
    /// Armed timers by generation.
    timers: BTreeMap<u64, Option<u64>>,
    /// Permits that are out, by their channel.
    permits: BTreeMap<u64, Option<u64>>,
    chain: DecisionChain,
}

#[derive(Clone, Debug)]
struct TaskSeen {
    state: TaskState,
    region: Option<u64>,
    /// Phase and severity of its cancel.
    witness: Option<(u8, u8)>,
}

#[derive(Clone, Debug)]
struct RegionSeen {
    state: RegionState,
    parent: Option<u64>,
    cancelled: bool,
}

/// Checks a whole journal, of which no event was lost.
pub fn check(events: &[Event]) -> Result<(), String> {
    Refinement::default().advance(events)
}

fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}

impl Refinement {
    /// Looks at the events that are new. Stops for good where some are missing.
    pub fn advance(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            if event.seq < self.seen {
                continue;
            }
            if event.seq > self.seen {
                // The ring has overwritten what came between: nothing can be said any more.
                self.seen = u64::MAX;
                return Ok(());
            }
            self.seen += 1;
            self.look(event).map_err(|wrong| format!("{event}: {wrong}"))?;
        }
        Ok(())
    }

    fn look(&mut self, event: &Event) -> Result<(), String> {
        let time = event.time.as_nanos();
        ensure(time >= self.time, || "time goes back".to_owned())?;
        self.time = time;
        match event.kind {
            EventKind::RegionOpened { .. }
            | EventKind::RegionMoved { .. }
            | EventKind::RegionCancelled { .. }
            | EventKind::RegionOutcome { .. } => self.look_at_region(event),
            EventKind::TaskSpawned { .. }
            | EventKind::TaskMoved { .. }
            | EventKind::CancelWitness { .. }
            | EventKind::TaskEnded { .. }
            | EventKind::Decision { .. } => self.look_at_task(event),
            EventKind::ObligationReserved { .. } | EventKind::ObligationResolved { .. } => {
                self.look_at_obligation(event)
            }
            EventKind::TimerArmed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::TimerCancelled { .. } => self.look_at_timer(event),
            EventKind::SendReserved { permit } => {
                let new = self.permits.insert(permit, event.subject.channel).is_none();
                ensure(new, || "a permit is handed out twice".to_owned())
            }
            EventKind::Sent { permit: Some(permit) }
            | EventKind::SendRefused { permit }
            | EventKind::SendAborted { permit } => {
                let out = self.permits.remove(&permit);
                ensure(out == Some(event.subject.channel), || "no such permit is out".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn look_at_region(&mut self, event: &Event) -> Result<(), String> {
        let id = event.subject.region.ok_or("no region")?;
        if let EventKind::RegionOpened { parent } = event.kind {
            let open = |parent: u64| {
                self.regions.get(&parent).is_some_and(|seen| seen.state == RegionState::Open)
            };
            ensure(parent.is_none_or(open), || "opened in a region that is not open".to_owned())?;
            let state = RegionState::Open;
            let seen = RegionSeen { state, parent, cancelled: false };
            let new = self.regions.insert(id, seen).is_none();
            return ensure(new, || "a region is opened twice".to_owned());
        }
        let lives = self.lives_inside(id);
        let outstanding = self
            .obligations
            .values()
            .any(|(region, state)| *region == Some(id) && *state == ObligationState::Reserved);
        let seen = self.regions.get_mut(&id).ok_or("an unknown region")?;
        match event.kind {
            EventKind::RegionMoved { from, to } => {
                ensure(seen.state == from, || format!("it was {}", seen.state.name()))?;
                from.check(to).map_err(|_| "no such step".to_owned())?;
                let empty = matches!(to, RegionState::Finalizing | RegionState::Closed);
                ensure(!empty || !lives, || "something lives inside".to_owned())?;
                let closed = to == RegionState::Closed;
                ensure(!closed || !outstanding, || "an obligation is outstanding".to_owned())?;
                seen.state = to;
                Ok(())
            }
            EventKind::RegionCancelled { strengthened, .. } => {
                let first = !seen.cancelled && seen.state == RegionState::Open;
                ensure(first != strengthened || !first, || {
                    "a first cancel that strengthens".into()
                })?;
                seen.cancelled = true;
                ensure(seen.state != RegionState::Closed, || "it is closed".to_owned())
            }
            _ => ensure(seen.state == RegionState::Closed, || "it is not closed".to_owned()),
        }
    }

    fn lives_inside(&self, region: u64) -> bool {
        let task =
            |seen: &TaskSeen| seen.region == Some(region) && seen.state != TaskState::Completed;
        let child =
            |seen: &RegionSeen| seen.parent == Some(region) && seen.state != RegionState::Closed;
        self.tasks.values().any(task) || self.regions.values().any(child)
    }

    fn look_at_task(&mut self, event: &Event) -> Result<(), String> {
        let id = event.subject.task.ok_or("no task")?;
        if let EventKind::TaskSpawned { finalizer, .. } = event.kind {
            let region = event.subject.region;
            let state = region.and_then(|region| self.regions.get(&region)).map(|seen| seen.state);
            let wanted = if finalizer { RegionState::Finalizing } else { RegionState::Open };
            ensure(state == Some(wanted), || format!("its region is not {}", wanted.name()))?;
            let seen = TaskSeen { state: TaskState::Created, region, witness: None };
            let new = self.tasks.insert(id, seen).is_none();
            return ensure(new, || "a task is spawned twice".to_owned());
        }
        let chain = &mut self.chain;
        let seen = self.tasks.get_mut(&id).ok_or("an unknown task")?;
        match event.kind {
            EventKind::TaskMoved { from, to } => {
                ensure(seen.state == from, || format!("it was {}", seen.state.name()))?;
                from.check(to).map_err(|_| "no such step".to_owned())?;
                seen.state = to;
                Ok(())
            }
            EventKind::CancelWitness { epoch, phase, kind, .. } => {
                ensure(epoch == 1, || "a task is cancelled once".to_owned())?;
                let now = (phase as u8, severity(kind));
                let grown = |before: (u8, u8)| before.0 <= now.0 && before.1 <= now.1;
                ensure(seen.witness.is_none_or(grown), || "its cancel goes back".to_owned())?;
                seen.witness = Some(now);
                Ok(())
            }
            EventKind::TaskEnded { .. } => {
                ensure(seen.state == TaskState::Completed, || "it is not over".to_owned())
            }
            EventKind::Decision {
                lane, decision_seq, decision_hash, cancel_streak, limit, ..
            } => {
                ensure(seen.state != TaskState::Completed, || "it is over".to_owned())?;
                chain.extend(lane, id, cancel_streak as u32, limit as u32);
                let linked = (chain.seq, chain.hash) == (decision_seq, decision_hash);
                ensure(linked, || "the chain of decisions is broken".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn look_at_obligation(&mut self, event: &Event) -> Result<(), String> {
        let region = event.subject.region;
        match event.kind {
            EventKind::ObligationReserved { obligation } => {
                let state = region.and_then(|id| self.regions.get(&id)).map(|seen| seen.state);
                ensure(state == Some(RegionState::Open), || "its region is not open".to_owned())?;
                let reserved = (region, ObligationState::Reserved);
                let new = self.obligations.insert(obligation, reserved).is_none();
                ensure(new, || "an obligation is made twice".to_owned())
            }
            EventKind::ObligationResolved { obligation, to } => {
                let slot = self.obligations.get_mut(&obligation).ok_or("an unknown obligation")?;
                slot.1.check(to).map_err(|_| "it was resolved before".to_owned())?;
                slot.1 = to;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn look_at_timer(&mut self, event: &Event) -> Result<(), String> {
        let id = event.subject.timer.ok_or("no timer")?;
        match event.kind {
            EventKind::TimerArmed { .. } => {
                let new = self.timers.insert(id, event.subject.task).is_none();
                ensure(new, || "a timer is armed twice".to_owned())
            }
            _ => ensure(self.timers.remove(&id).is_some(), || "it is not armed".to_owned()),
        }
    }
}

/// A kind's severity as a number.
fn severity(kind: Kind) -> u8 {
    kind.severity()
}
