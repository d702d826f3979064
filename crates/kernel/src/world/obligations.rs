//! Obligations: reserved in an open region, resolved once, or leaked when it closes.

use super::*;

impl<P, V> World<P, V> {
    /// Reserves an obligation.
    pub fn oblige(&mut self, region: RegionId) -> Answer<ObligationId> {
        self.admit(region, Operation::Create)?;
        self.room("obligations", self.usage.obligations, self.config.limits.obligations)?;
        self.room_for(SMALL_BYTES)?;
        let slot = (region, ObligationState::Reserved);
        let key = self.obligations.insert(slot).map_err(|_| Status::ResourceExhausted)?;
        let id = ObligationId(key);
        let record = self.region_mut(region)?;
        record.obligations.insert(id);
        record.word.obligation_added();
        self.usage.obligations += 1;
        self.note_region(region, EventKind::ObligationReserved { obligation: id.ordinal() });
        Ok(id)
    }

    /// Commits or aborts an obligation. A resolved one is removed; resolving it again is refused.
    pub fn resolve(&mut self, id: ObligationId, resolution: Resolution) -> Answer {
        let (region, state) = self.slot(id)?;
        let to = state.resolve(resolution)?;
        let record = self.region_mut(region)?;
        record.word.state().admit(Operation::Resolve)?;
        record.obligations.remove(&id);
        RegionWord::obligation_done(&mut record.word);
        self.resolved(region, id, to);
        Ok(())
    }

    /// Ends the accounting of an obligation. Only leaked ones remain stored.
    pub(super) fn resolved(&mut self, region: RegionId, id: ObligationId, to: ObligationState) {
        match self.obligations.get_mut(id.0) {
            Some(slot) if to == ObligationState::Leaked => {
                slot.1 = to;
                self.leaks += 1;
                if self.config.tell_leaks {
                    self.leaked.push((region, id));
                }
            }
            _ => drop(self.obligations.remove(id.0)),
        }
        self.usage.obligations -= 1;
        let kind = EventKind::ObligationResolved { obligation: id.ordinal(), to };
        self.note_region(region, kind);
    }

    /// Removes and returns a leaked obligation that was not yet reported, and its region. Returns
    /// `None` unless `tell_leaks` is set.
    pub fn next_leaked(&mut self) -> Option<(RegionId, ObligationId)> {
        if self.leaked.is_empty() { None } else { Some(self.leaked.remove(0)) }
    }

    /// Returns the state of an obligation: Reserved or Leaked. For a resolved one, returns the
    /// error.
    pub fn obligation(&self, id: ObligationId) -> Answer<ObligationState> {
        self.slot(id).map(|(_, state)| state)
    }

    fn slot(&self, id: ObligationId) -> Answer<(RegionId, ObligationState)> {
        match self.obligations.get(id.0) {
            Some((region, _)) if self.region_ref(*region).is_err() => Err(Status::StaleHandle),
            Some(slot) => Ok(*slot),
            None if self.obligations.was_issued(id.0) => Err(Status::ObligationAlreadyResolved),
            None => Err(Status::StaleHandle),
        }
    }
}
