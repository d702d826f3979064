//! Refinement: checks that a recorded run obeys the laws.
//!
//! The check uses only the events, in their order, and a state for each object that they mention.
//! It applies to the journal of any host, including runs with several workers, which have no
//! fixed order and therefore no expected digest. The kernel defines which single steps are legal;
//! this module adds the rules for whole records.

mod channel;
mod region;
mod socket;
mod task;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::lanes::DecisionChain;
use asx_kernel::obligation::ObligationState;
use channel::ChannelSeen;
use core::fmt;
use region::RegionSeen;
use socket::SocketSeen;
use task::TaskSeen;

/// A violation of a law.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// A stable name for programs.
    pub code: &'static str,
    /// The description.
    pub text: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The result of checking an event.
type CheckResult = Result<(), Breach>;

fn breach(code: &'static str, text: impl ToString) -> Breach {
    Breach { code, text: text.to_string() }
}

fn ensure(holds: bool, code: &'static str, text: impl ToString) -> CheckResult {
    if holds { Ok(()) } else { Err(breach(code, text)) }
}

/// The state of all objects, as recorded so far.
#[derive(Clone, Debug, Default)]
pub struct Refinement {
    /// The number of events seen.
    seen: u64,
    time: u64,
    tasks: BTreeMap<u64, TaskSeen>,
    regions: BTreeMap<u64, RegionSeen>,
    /// Each with its region.
    obligations: BTreeMap<u64, (u64, ObligationState)>,
    /// By generation.
    timers: BTreeMap<u64, TimerSeen>,
    channels: BTreeMap<u64, ChannelSeen>,
    /// Unresolved permits and their channels.
    permits: BTreeMap<u64, u64>,
    sockets: BTreeMap<u64, SocketSeen>,
    chain: DecisionChain,
}

#[derive(Clone, Debug)]
struct TimerSeen {
    deadline: u64,
    armed: bool,
    /// The owning region, if the timer does not belong to a task.
    region: Option<u64>,
}

/// Checks a complete journal, in which no event was lost.
///
/// ```
/// assert_eq!(asx_trace::refine::check(&[]), Ok(()));
/// ```
pub fn check(events: &[Event]) -> Result<(), String> {
    Refinement::default().advance(events)
}

impl Refinement {
    /// Checks the events that are new since the last call. Stops permanently if some are missing.
    pub fn advance(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            if event.seq < self.seen {
                continue;
            }
            if event.seq > self.seen {
                // The ring has overwritten the events in between, so no further check is possible.
                self.seen = u64::MAX;
                return Ok(());
            }
            self.seen = self.seen.saturating_add(1);
            self.check_event(event).map_err(|wrong| format!("{event}: {wrong}"))?;
        }
        Ok(())
    }

    /// Checks the next event. After a breach the state may be wrong.
    pub fn check_event(&mut self, event: &Event) -> Result<(), Breach> {
        let time = event.time.as_nanos();
        ensure(time >= self.time, "time_back", "time goes back")?;
        self.time = time;
        match event.kind {
            EventKind::RegionOpened { .. }
            | EventKind::RegionMoved { .. }
            | EventKind::RegionCancelled { .. }
            | EventKind::RegionOutcome { .. }
            | EventKind::UnresolvedObligations { .. }
            | EventKind::GraceExpired {} => self.check_region(event),
            EventKind::TaskSpawned { .. }
            | EventKind::TaskMoved { .. }
            | EventKind::CancelWitness { .. }
            | EventKind::TaskEnded { .. }
            | EventKind::CleanupOverrun { .. }
            | EventKind::CleanupError {}
            | EventKind::StaleWake {}
            | EventKind::BudgetExhausted { .. }
            | EventKind::Decision { .. } => self.check_task(event),
            EventKind::ObligationReserved { .. } | EventKind::ObligationResolved { .. } => {
                self.check_obligation(event)
            }
            EventKind::TimerArmed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::TimerCancelled {} => self.check_timer(event),
            EventKind::ChannelOpened { .. }
            | EventKind::SendReserved { .. }
            | EventKind::SendWaiting {}
            | EventKind::SendLeft {}
            | EventKind::Sent { .. }
            | EventKind::SendRefused { .. }
            | EventKind::SendAborted { .. }
            | EventKind::Evicted {}
            | EventKind::Received {}
            | EventKind::SendersGone {}
            | EventKind::ReceiverGone { .. } => self.check_channel(event),
            EventKind::SocketOpened { .. }
            | EventKind::IoWaiting { .. }
            | EventKind::IoLeft { .. }
            | EventKind::IoDone { .. }
            | EventKind::IoFailed { .. }
            | EventKind::SocketEnded { .. }
            | EventKind::SocketClosed { .. } => self.check_socket(event),
            EventKind::ResourceExhausted { .. } | EventKind::SoftStop {} => Ok(()),
        }
    }

    /// Checks the end of a complete record: every finished object has all of its final events.
    pub fn finish(&self) -> Result<(), Breach> {
        self.tasks.iter().try_for_each(|(id, task)| task.check_complete(*id))?;
        self.regions.iter().try_for_each(|(id, region)| region.check_complete(*id))?;
        self.check_waits()
    }

    /// Whether a task with this number was spawned.
    pub fn has_task(&self, number: u64) -> bool {
        self.tasks.contains_key(&number)
    }

    /// Whether a region with this number was opened.
    pub fn has_region(&self, number: u64) -> bool {
        self.regions.contains_key(&number)
    }

    /// Whether a timer with this generation was armed.
    pub fn has_timer(&self, number: u64) -> bool {
        self.timers.contains_key(&number)
    }

    /// Whether a channel with this number was opened.
    pub fn has_channel(&self, number: u64) -> bool {
        self.channels.contains_key(&number)
    }

    /// Whether a socket with this number was opened or its opening failed.
    pub fn has_socket(&self, number: u64) -> bool {
        self.sockets.contains_key(&number)
    }

    fn check_timer(&mut self, event: &Event) -> CheckResult {
        let id = event.subject.timer.ok_or_else(|| breach("no_timer", "the timer is missing"))?;
        let region = event.subject.region;
        let own = |regions: &mut BTreeMap<u64, RegionSeen>, step: i64| {
            let seen = region.and_then(|id| regions.get_mut(&id));
            seen.into_iter().for_each(|seen| seen.timers += step);
        };
        match event.kind {
            EventKind::TimerArmed { deadline } => {
                let seen = TimerSeen { deadline, armed: true, region };
                let new = self.timers.insert(id, seen).is_none();
                own(&mut self.regions, 1);
                ensure(new, "timer_twice", "a timer is armed twice")
            }
            EventKind::TimerFired { .. } | EventKind::TimerCancelled {} => {
                let seen = self.timers.get_mut(&id).filter(|seen| seen.armed);
                let seen = seen.ok_or_else(|| breach("timer_unarmed", "the timer is not armed"))?;
                seen.armed = false;
                ensure(
                    seen.region == region,
                    "timer_region",
                    "the timer belongs to another region",
                )?;
                own(&mut self.regions, -1);
                // The time of firing is not checked: coalesced timers may fire early.
                let EventKind::TimerFired { deadline } = event.kind else { return Ok(()) };
                let text = format!("the timer was armed for {}", seen.deadline);
                ensure(deadline == seen.deadline, "timer_deadline", text)
            }
            _ => Ok(()),
        }
    }
}
