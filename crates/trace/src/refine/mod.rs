//! Refinement: whether a recorded run is one the laws allow.
//!
//! It looks at events only, in their order, and keeps what they say of each thing: so it judges any
//! host's journal, also that of several workers, whose order no fingerprint could know. What is a
//! legal step is asked of the kernel; here is only what a whole record must add up to.

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

/// A law that a record breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// A word for programs.
    pub code: &'static str,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether an event may be.
type Judged = Result<(), Breach>;

fn breach(code: &'static str, text: impl ToString) -> Breach {
    Breach { code, text: text.to_string() }
}

fn ensure(holds: bool, code: &'static str, text: impl ToString) -> Judged {
    if holds { Ok(()) } else { Err(breach(code, text)) }
}

/// What the events so far have said.
#[derive(Clone, Debug, Default)]
pub struct Refinement {
    /// Events looked at.
    seen: u64,
    time: u64,
    tasks: BTreeMap<u64, TaskSeen>,
    regions: BTreeMap<u64, RegionSeen>,
    /// Each with its region.
    obligations: BTreeMap<u64, (u64, ObligationState)>,
    /// By generation.
    timers: BTreeMap<u64, TimerSeen>,
    channels: BTreeMap<u64, ChannelSeen>,
    /// Permits that are out, by their channel.
    permits: BTreeMap<u64, u64>,
    sockets: BTreeMap<u64, SocketSeen>,
    chain: DecisionChain,
}

#[derive(Clone, Debug)]
struct TimerSeen {
    deadline: u64,
    armed: bool,
    /// The region it belongs to, if it is not a task's.
    region: Option<u64>,
}

/// Checks a whole journal, of which no event was lost.
///
/// ```
/// assert_eq!(asx_trace::refine::check(&[]), Ok(()));
/// ```
pub fn check(events: &[Event]) -> Result<(), String> {
    Refinement::default().advance(events)
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
            self.seen = self.seen.saturating_add(1);
            self.look(event).map_err(|wrong| format!("{event}: {wrong}"))?;
        }
        Ok(())
    }

    /// Looks at the next event. After a breach what is known may be wrong.
    pub fn look(&mut self, event: &Event) -> Result<(), Breach> {
        let time = event.time.as_nanos();
        ensure(time >= self.time, "time_back", "time goes back")?;
        self.time = time;
        match event.kind {
            EventKind::RegionOpened { .. }
            | EventKind::RegionMoved { .. }
            | EventKind::RegionCancelled { .. }
            | EventKind::RegionOutcome { .. }
            | EventKind::UnresolvedObligations { .. }
            | EventKind::GraceExpired {} => self.look_at_region(event),
            EventKind::TaskSpawned { .. }
            | EventKind::TaskMoved { .. }
            | EventKind::CancelWitness { .. }
            | EventKind::TaskEnded { .. }
            | EventKind::CleanupOverrun { .. }
            | EventKind::CleanupError {}
            | EventKind::StaleWake {}
            | EventKind::BudgetExhausted { .. }
            | EventKind::Decision { .. } => self.look_at_task(event),
            EventKind::ObligationReserved { .. } | EventKind::ObligationResolved { .. } => {
                self.look_at_obligation(event)
            }
            EventKind::TimerArmed { .. }
            | EventKind::TimerFired { .. }
            | EventKind::TimerCancelled {} => self.look_at_timer(event),
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
            | EventKind::ReceiverGone { .. } => self.look_at_channel(event),
            EventKind::SocketOpened { .. }
            | EventKind::IoWaiting { .. }
            | EventKind::IoLeft { .. }
            | EventKind::IoDone { .. }
            | EventKind::IoFailed { .. }
            | EventKind::SocketEnded { .. }
            | EventKind::SocketClosed { .. } => self.look_at_socket(event),
            EventKind::ResourceExhausted { .. } | EventKind::SoftStop {} => Ok(()),
        }
    }

    /// Looks at what is missing at the end of a whole record: of what is over, all was told.
    pub fn finish(&self) -> Result<(), Breach> {
        self.tasks.iter().try_for_each(|(id, task)| task.is_told(*id))?;
        self.regions.iter().try_for_each(|(id, region)| region.is_told(*id))?;
        self.waits_are_real()
    }

    /// Whether a task of this number was spawned.
    pub fn has_task(&self, number: u64) -> bool {
        self.tasks.contains_key(&number)
    }

    /// Whether a region of this number was opened.
    pub fn has_region(&self, number: u64) -> bool {
        self.regions.contains_key(&number)
    }

    /// Whether a timer of this generation was armed.
    pub fn has_timer(&self, number: u64) -> bool {
        self.timers.contains_key(&number)
    }

    /// Whether a channel of this number was opened.
    pub fn has_channel(&self, number: u64) -> bool {
        self.channels.contains_key(&number)
    }

    /// Whether a socket of this number was opened, or was to be.
    pub fn has_socket(&self, number: u64) -> bool {
        self.sockets.contains_key(&number)
    }

    fn look_at_timer(&mut self, event: &Event) -> Judged {
        let id = event.subject.timer.ok_or_else(|| breach("no_timer", "no timer is named"))?;
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
                let seen = seen.ok_or_else(|| breach("timer_unarmed", "it is not armed"))?;
                seen.armed = false;
                ensure(seen.region == region, "timer_region", "the timer is another region's")?;
                own(&mut self.regions, -1);
                // When it fires is not tested: coalesced timers may be early.
                let EventKind::TimerFired { deadline } = event.kind else { return Ok(()) };
                let text = format!("it was armed for {}", seen.deadline);
                ensure(deadline == seen.deadline, "timer_deadline", text)
            }
            _ => Ok(()),
        }
    }
}
