//! Regions and the obligations in them.

use super::{CheckResult, Refinement, breach, ensure};
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
    /// Whether its outcome was recorded.
    outcome_recorded: bool,
    /// The join of the outcomes of all ended tasks and regions in it.
    pub(super) fold: Severity,
    /// The number of live tasks in it.
    pub(super) tasks: i64,
    /// The number of regions in it that are not closed.
    children: i64,
    /// The number of reserved obligations.
    obligations: i64,
    leaked: u64,
    /// The number of armed timers that belong to the region itself.
    pub(super) timers: i64,
    /// The number of unresolved permits of its channels.
    pub(super) permits: i64,
}

impl RegionSeen {
    fn new(parent: Option<u64>) -> RegionSeen {
        RegionSeen {
            state: RegionState::Open,
            parent,
            cancelled: false,
            outcome_recorded: false,
            fold: Severity::Ok,
            tasks: 0,
            children: 0,
            obligations: 0,
            leaked: 0,
            timers: 0,
            permits: 0,
        }
    }

    /// Checks at the end of the record that the outcome of a closed region was recorded.
    pub(super) fn check_complete(&self, id: u64) -> CheckResult {
        let outcome_recorded = self.outcome_recorded || self.state != RegionState::Closed;
        let text = format!("region {id} is closed, but its outcome was not recorded");
        ensure(outcome_recorded, "region_untold", text)
    }

    /// Checks that the contents of the region permit this state.
    fn check_contents(&self, to: RegionState) -> CheckResult {
        let empty = matches!(to, RegionState::Finalizing | RegionState::Closed);
        let lives = self.tasks > 0 || self.children > 0;
        ensure(!(empty && lives), "region_lives", "the region contains live tasks or regions")?;
        let closed = to == RegionState::Closed;
        let open = |count: i64| closed && count > 0;
        ensure(!open(self.obligations), "region_obliged", "an obligation is outstanding")?;
        ensure(!open(self.timers), "region_timed", "a timer of the region is armed")?;
        ensure(!open(self.permits), "region_permits", "a permit of its channels is unresolved")
    }
}

impl Refinement {
    pub(super) fn check_region(&mut self, event: &Event) -> CheckResult {
        let id =
            event.subject.region.ok_or_else(|| breach("no_region", "the region is missing"))?;
        if let EventKind::RegionOpened { parent } = event.kind {
            return self.opened(id, parent);
        }
        let seen = self.regions.get_mut(&id);
        let seen = seen.ok_or_else(|| breach("unknown_region", "unknown region"))?;
        match event.kind {
            EventKind::RegionMoved { from, to } => {
                let was = || format!("the region was {}", seen.state.name());
                ensure(seen.state == from, "region_state", was())?;
                from.check(to)
                    .map_err(|_| breach("region_step", "illegal transition of a region"))?;
                seen.check_contents(to)?;
                let asked = seen.cancelled || to != RegionState::Draining;
                ensure(asked, "region_uncancelled", "the region drains without being cancelled")?;
                seen.state = to;
                if let (RegionState::Closed, Some(parent)) = (to, seen.parent) {
                    self.regions.get_mut(&parent).into_iter().for_each(|seen| seen.children -= 1);
                }
                Ok(())
            }
            EventKind::RegionCancelled { strengthened, .. } => {
                let first = !seen.cancelled && seen.state == RegionState::Open;
                let text = "the first cancel is recorded as strengthening";
                ensure(!(first && strengthened), "region_cancel", text)?;
                let grows = !seen.cancelled || strengthened;
                ensure(
                    grows,
                    "region_cancel_same",
                    "the cancel does not strengthen the earlier one",
                )?;
                seen.cancelled = true;
                ensure(seen.state != RegionState::Closed, "region_closed", "the region is closed")
            }
            EventKind::RegionOutcome { outcome } => {
                let closed = seen.state == RegionState::Closed;
                ensure(closed, "region_unclosed", "the region is not closed")?;
                ensure(
                    !seen.outcome_recorded,
                    "region_told",
                    "the outcome of the region was recorded before",
                )?;
                seen.outcome_recorded = true;
                let fold = seen.fold;
                let parent = seen.parent;
                let text = format!("the outcomes in the region join to {}", fold.name());
                ensure(outcome == fold, "region_fold", text)?;
                let parent = parent.and_then(|parent| self.regions.get_mut(&parent));
                parent.into_iter().for_each(|seen| seen.fold = seen.fold.join(outcome));
                Ok(())
            }
            EventKind::UnresolvedObligations { count } => {
                let right = seen.obligations == 0 && (1..=seen.leaked).contains(&count);
                ensure(right, "region_leaks", "the number of leaked obligations is wrong")
            }
            _ => Ok(()),
        }
    }

    fn opened(&mut self, id: u64, parent: Option<u64>) -> CheckResult {
        if let Some(parent) = parent {
            let seen = self.regions.get_mut(&parent);
            let seen = seen.filter(|seen| seen.state == RegionState::Open);
            let text = "the parent region is not open";
            seen.ok_or_else(|| breach("region_parent", text))?.children += 1;
        }
        let new = self.regions.insert(id, RegionSeen::new(parent)).is_none();
        ensure(new, "region_twice", "the region was opened before")
    }

    pub(super) fn check_obligation(&mut self, event: &Event) -> CheckResult {
        let region = event.subject.region;
        let region =
            region.ok_or_else(|| breach("no_owner", "the region of the obligation is missing"))?;
        let seen = self.regions.get_mut(&region);
        let seen =
            seen.ok_or_else(|| breach("unknown_owner", "the region of the obligation is unknown"))?;
        match event.kind {
            EventKind::ObligationReserved { obligation } => {
                let open = seen.state == RegionState::Open;
                ensure(open, "obligation_late", "the region of the obligation is not open")?;
                seen.obligations += 1;
                let reserved = (region, ObligationState::Reserved);
                let new = self.obligations.insert(obligation, reserved).is_none();
                ensure(new, "obligation_twice", "the obligation was reserved before")
            }
            EventKind::ObligationResolved { obligation, to } => {
                let slot = self.obligations.get_mut(&obligation);
                let text = "unknown obligation";
                let (owner, state) = slot.ok_or_else(|| breach("unknown_obligation", text))?;
                ensure(
                    *owner == region,
                    "obligation_owner",
                    "the obligation belongs to another region",
                )?;
                let text = "the obligation was resolved before";
                state.check(to).map_err(|_| breach("obligation_resolved", text))?;
                *state = to;
                seen.obligations -= 1;
                seen.leaked += u64::from(to == ObligationState::Leaked);
                let closed = seen.state == RegionState::Closed;
                ensure(!closed, "obligation_after", "the region of the obligation is closed")
            }
            _ => Ok(()),
        }
    }
}
