//! Obligations: promised, then kept or given up; reported if neither.

use crate::abi::{AsxObligationId, AsxRegionId};
use crate::ghost::ASX_GHOST_DOUBLE_RESOLVE;
use crate::guard::{self, Out};
use crate::info;
use crate::state::Core;
use asx_kernel::obligation::ObligationState;
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;

export! {
    /// Reserves an obligation in an open region.
    ///
    /// - Parameters: `out` is writable.
    /// - Ownership: the caller is to commit or abort it.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_REGION_NOT_OPEN;
    ///   ASX_E_ADMISSION_CLOSED; ASX_E_RESOURCE_EXHAUSTED; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_obligation_reserve(rt, region: AsxRegionId, out: *mut AsxObligationId) {
        let region = region.id()?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            let obligation = core.world.oblige(region)?;
            let site = core.ghosts.site();
            let runtime = guard::runtime(rt)?;
            runtime.reserve.strictly(|| core.places.keep(obligation, site));
            out.set(AsxObligationId::of(obligation));
            Ok(())
        }
    }

    /// Commits an obligation.
    ///
    /// - Ownership: the obligation is resolved.
    /// - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED;
    ///   ASX_E_REGION_CLOSED; ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION;
    ///   ASX_E_REENTRANT.
    fn asx_obligation_commit(rt, obligation: AsxObligationId) {
        let _ = obligation.id()?;
        |core| core.resolve(obligation, Resolution::Commit)
    }

    /// Aborts an obligation.
    ///
    /// - Ownership: the obligation is resolved.
    /// - Returns: as asx_obligation_commit.
    fn asx_obligation_abort(rt, obligation: AsxObligationId) {
        let _ = obligation.id()?;
        |core| core.resolve(obligation, Resolution::Abort)
    }

    /// Reads the state of an obligation, ASX_OBLIGATION_. A resolved obligation is forgotten, which
    /// the call reports.
    ///
    /// - Parameters: `state` is writable.
    /// - Returns: ASX_OK; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_STALE_HANDLE; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_obligation_state(rt, obligation: AsxObligationId, state: *mut i32) {
        let obligation = obligation.id()?;
        let state = Out::new(state)?;
        |core| {
            state.set(core.world.obligation(obligation)? as i32);
            Ok(())
        }
    }

    /// Checks what an explicit step of the obligation to a state would return. Nothing changes.
    ///
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for an unknown state; ASX_E_STALE_HANDLE;
    ///   ASX_E_INVALID_TRANSITION; ASX_E_OBLIGATION_ALREADY_RESOLVED; ASX_E_OBLIGATION_LEAKED;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_obligation_check(rt, obligation: AsxObligationId, state: i32) {
        let obligation = obligation.id()?;
        let state = info::nth(&ObligationState::ALL, state)?;
        |core| core.world.obligation(obligation)?.check(state)
    }
}

impl Core {
    fn resolve(&mut self, obligation: AsxObligationId, resolution: Resolution) -> Answer {
        let id = obligation.id()?;
        let answer = self.world.resolve(id, resolution);
        if answer.is_ok() {
            let _ = self.places.take(id);
        }
        if let Err(status @ (Status::ObligationAlreadyResolved | Status::ObligationLeaked)) = answer
        {
            let by = self.current_handle();
            let handle = (obligation.bits, obligation.generation);
            self.ghosts.note(ASX_GHOST_DOUBLE_RESOLVE, status.number(), handle, by);
        }
        answer
    }
}
