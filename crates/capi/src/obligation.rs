//! Obligations: promised, then kept or given up; reported if neither.

use crate::abi::{AsxObligation, AsxRegion};
use crate::ghost::ASX_GHOST_DOUBLE_RESOLVE;
use crate::guard::Out;
use crate::info;
use crate::state::Core;
use asx_kernel::obligation::ObligationState;
use asx_kernel::session::Resolution;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;

export! {
    /// Reserves an obligation in an open region.
    ///
    /// Pre: `out` is writable. Thread: the owner's. Owns: the caller is to commit or abort it.
    /// Answers: ASX_OK; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_REGION_NOT_OPEN;
    /// ASX_ADMISSION_CLOSED; ASX_RESOURCE_EXHAUSTED; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_obligation_reserve(rt, region: AsxRegion, out: *mut AsxObligation) {
        let region = region.id()?;
        let out = Out::new(out)?;
        |core| {
            core.prepare(rt, 0)?;
            out.set(AsxObligation::of(core.world.oblige(region)?));
            Ok(())
        }
    }

    /// Keeps an obligation.
    ///
    /// Pre: none. Thread: the owner's. Owns: the obligation is resolved. Answers: ASX_OK;
    /// ASX_OBLIGATION_ALREADY_RESOLVED; ASX_OBLIGATION_LEAKED; ASX_REGION_CLOSED;
    /// ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE; ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_obligation_commit(rt, obligation: AsxObligation) {
        let _ = obligation.id()?;
        |core| core.resolve(obligation, Resolution::Commit)
    }

    /// Gives an obligation up.
    ///
    /// Pre: none. Thread: the owner's. Owns: the obligation is resolved. Answers: as
    /// asx_obligation_commit.
    fn asx_obligation_abort(rt, obligation: AsxObligation) {
        let _ = obligation.id()?;
        |core| core.resolve(obligation, Resolution::Abort)
    }

    /// Where an obligation stands: ASX_OBLIGATION_STATE_. A resolved one is forgotten, and answers
    /// that it is.
    ///
    /// Pre: `state` is writable. Thread: the owner's. Owns: nothing. Answers: ASX_OK;
    /// ASX_OBLIGATION_ALREADY_RESOLVED; ASX_INVALID_ARGUMENT; ASX_STALE_HANDLE;
    /// ASX_AFFINITY_VIOLATION; ASX_REENTRANT.
    fn asx_obligation_state(rt, obligation: AsxObligation, state: *mut i32) {
        let obligation = obligation.id()?;
        let state = Out::new(state)?;
        |core| {
            state.set(core.world.obligation(obligation)? as i32);
            Ok(())
        }
    }

    /// What an explicit step of the obligation to a state would answer. Nothing changes.
    ///
    /// Pre: none. Thread: the owner's. Owns: nothing. Answers: ASX_OK; ASX_INVALID_ARGUMENT for a
    /// state that is none; ASX_STALE_HANDLE; ASX_INVALID_TRANSITION;
    /// ASX_OBLIGATION_ALREADY_RESOLVED; ASX_OBLIGATION_LEAKED; ASX_AFFINITY_VIOLATION;
    /// ASX_REENTRANT.
    fn asx_obligation_check(rt, obligation: AsxObligation, state: i32) {
        let obligation = obligation.id()?;
        let state = info::nth(&ObligationState::ALL, state)?;
        |core| core.world.obligation(obligation)?.check(state)
    }
}

impl Core {
    fn resolve(&mut self, obligation: AsxObligation, resolution: Resolution) -> Answer {
        let answer = self.world.resolve(obligation.id()?, resolution);
        if let Err(status @ (Status::ObligationAlreadyResolved | Status::ObligationLeaked)) = answer
        {
            let by = self.current_handle();
            let handle = (obligation.bits, obligation.generation);
            self.ghosts.note(ASX_GHOST_DOUBLE_RESOLVE, status.number(), handle, by);
        }
        answer
    }
}
