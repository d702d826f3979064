//! What a task asks of its own cancel while it is polled.

use crate::abi::AsxCx;
use crate::guard;
use asx_kernel::status::Status;

export! {
    /// Checks whether the task is cancelled, and acknowledges the cancel if so: the task is to
    /// clean up from then on, within the allowance of the cancel.
    ///
    /// - Parameters: `cx` is the argument of the poll function, or made by asx_cx_of.
    /// - Returns: ASX_OK when the task is not cancelled, or shielded; ASX_E_CANCELLED;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_STALE_HANDLE; ASX_E_INVALID_TRANSITION when the task is
    ///   over; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_checkpoint(cx: *mut AsxCx as rt) {
        let task = guard::read(cx)?.task.id()?;
        |core| core.world.checkpoint(task)
    }
}

/// Returns whether the task is cancelled, and acknowledges the cancel if so, as asx_checkpoint
/// does. A call that asx_checkpoint would refuse returns true, so that a loop around it ends;
/// asx_last_error says why, as of asx_checkpoint.
///
/// - Parameters: as asx_checkpoint.
/// - Returns: false when the task is not cancelled, or shielded; true.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_is_cancelled(cx: *mut AsxCx) -> bool {
    // SAFETY: the caller's promise is that of the function called.
    unsafe { asx_checkpoint(cx) != Status::Ok.number() }
}
