//! Regions and the obligations in them.

use super::{Judged, Refinement, breach, ensure};
use alloc::format;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;

#[derive(Clone, Debug)]
pub(super) struct RegionSeen {
    pub(super) state: RegionState,
    parent: Option<u64>,
    cancelled: bool,
    /// Its outcome was told.
    told: bool,
    /// The join of what has ended in it.
    pub(super) fold: Severity,
    /// Tasks that live in it.
    pub(super) tasks: i64,
    /// Regions in it that are not closed.
    children: i64,
    /// Obligations that are reserved.
    obligations: i64,
    leaked: u64,
    /// Its own timers that are armed.
    pub(super) timers: i64,
    /// Permits of its channels that are out.
    pub(super) permits: i64,
}

impl RegionSeen {
    fn new(parent: Option<u64>) -> RegionSeen {
        RegionSeen {
            state: RegionState::Open,
            parent,
            cancelled: false,
            told: false,
            fold: Severity::Ok,
            tasks: 0,
            children: 0,
            obligations: 0,
            leaked: 0,
            timers: 0,
            permits: 0,
        }
    }

    /// Whether all was told of it that there is to tell, at the end of the record.
    pub(super) fn is_told(&self, id: u64) -> Judged {
        let told = self.told || self.state != RegionState::Closed;
        let text = format!("region {id} is closed, but what it came to was not told");
        ensure(told, "region_untold", text)
    }

    /// Whether it may be in this state, with what is inside.
    fn may_be(&self, to: RegionState) -> Judged {
        let empty = matches!(to, RegionState::Finalizing | RegionState::Closed);
        let lives = self.tasks > 0 || self.children > 0;
        ensure(!(empty && lives), "region_lives", "something lives inside")?;
        let closed = to == RegionState::Closed;
        let open = |count: i64| closed && count > 0;
        ensure(!open(self.obligations), "region_obliged", "an obligation is outstanding")?;
        ensure(!open(self.timers), "region_timed", "a timer of its own is armed")?;
        ensure(!open(self.permits), "region_permits", "a permit of its channels is out")
    }
}

impl Refinement {
    pub(super) fn look_at_region(&mut self, event: &Event) -> Judged {
        let id = event.subject.region.ok_or_else(|| breach("no_region", "no region is named"))?;
        if let EventKind::RegionOpened { parent } = event.kind {
            return self.opened(id, parent);
        }
        let seen = self.regions.get_mut(&id);
        let seen = seen.ok_or_else(|| breach("unknown_region", "an unknown region"))?;
        match event.kind {
            EventKind::RegionMoved { from, to } => {
                let was = || format!("the region was {}", seen.state.name());
                ensure(seen.state == from, "region_state", was())?;
                from.check(to).map_err(|_| breach("region_step", "no such step of a region"))?;
                seen.may_be(to)?;
                let asked = seen.cancelled || to != RegionState::Draining;
                ensure(asked, "region_uncancelled", "it was not cancelled, so nothing is drained")?;
                seen.state = to;
                if let (RegionState::Closed, Some(parent)) = (to, seen.parent) {
                    self.regions.get_mut(&parent).into_iter().for_each(|seen| seen.children -= 1);
                }
                Ok(())
            }
            EventKind::RegionCancelled { strengthened, .. } => {
                let first = !seen.cancelled && seen.state == RegionState::Open;
                let text = "a first cancel that strengthens";
                ensure(!(first && strengthened), "region_cancel", text)?;
                let grows = !seen.cancelled || strengthened;
                ensure(grows, "region_cancel_same", "its cancel does not grow")?;
                seen.cancelled = true;
                ensure(seen.state != RegionState::Closed, "region_closed", "it is closed")
            }
            EventKind::RegionOutcome { outcome } => {
                let closed = seen.state == RegionState::Closed;
                ensure(closed, "region_unclosed", "it is not closed")?;
                ensure(!seen.told, "region_told", "its outcome was told before")?;
                seen.told = true;
                let fold = seen.fold;
                let parent = seen.parent;
                let text = format!("what is inside came to {}", fold.name());
                ensure(outcome == fold, "region_fold", text)?;
                let parent = parent.and_then(|parent| self.regions.get_mut(&parent));
                parent.into_iter().for_each(|seen| seen.fold = seen.fold.join(outcome));
                Ok(())
            }
            EventKind::UnresolvedObligations { count } => {
                let right = seen.obligations == 0 && (1..=seen.leaked).contains(&count);
                ensure(right, "region_leaks", "another number of obligations has leaked")
            }
            _ => Ok(()),
        }
    }

    fn opened(&mut self, id: u64, parent: Option<u64>) -> Judged {
        if let Some(parent) = parent {
            let seen = self.regions.get_mut(&parent);
            let seen = seen.filter(|seen| seen.state == RegionState::Open);
            let text = "opened in a region that is not open";
            seen.ok_or_else(|| breach("region_parent", text))?.children += 1;
        }
        let new = self.regions.insert(id, RegionSeen::new(parent)).is_none();
        ensure(new, "region_twice", "a region is opened twice")
    }

    pub(super) fn look_at_obligation(&mut self, event: &Event) -> Judged {
        let region = event.subject.region;
        let region = region.ok_or_else(|| breach("no_owner", "its region is not named"))?;
        let seen = self.regions.get_mut(&region);
        let seen = seen.ok_or_else(|| breach("unknown_owner", "its region is unknown"))?;
        match event.kind {
            EventKind::ObligationReserved { obligation } => {
                let open = seen.state == RegionState::Open;
                ensure(open, "obligation_late", "its region is not open")?;
                seen.obligations += 1;
                let reserved = (region, ObligationState::Reserved);
                let new = self.obligations.insert(obligation, reserved).is_none();
                ensure(new, "obligation_twice", "an obligation is made twice")
            }
            EventKind::ObligationResolved { obligation, to } => {
                let slot = self.obligations.get_mut(&obligation);
                let text = "an unknown obligation";
                let (owner, state) = slot.ok_or_else(|| breach("unknown_obligation", text))?;
                ensure(*owner == region, "obligation_owner", "the obligation is another region's")?;
                let text = "it was resolved before";
                state.check(to).map_err(|_| breach("obligation_resolved", text))?;
                *state = to;
                seen.obligations -= 1;
                seen.leaked += u64::from(to == ObligationState::Leaked);
                let closed = seen.state == RegionState::Closed;
                ensure(!closed, "obligation_after", "its region is closed")
            }
            _ => Ok(()),
        }
    }
}
