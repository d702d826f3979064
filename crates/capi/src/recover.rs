//! After a callback was left by a jump: the call it was made from will never go on.
//!
//! A callback must return. One that is left by `longjmp`, or by an exception that gets through the
//! library's frames, leaves the call under way half-done. What that means depends on where it was:
//!
//! ```text
//!  in a poll               the core is free: the poll ends as a panic, everything goes on
//!  in a hook or a drop     the core is free: the rest of that call is not done
//!  in the allocator        the core was being changed: nothing can be used but the end, which
//!                          leaves the memory where it is
//! ```

use crate::abi::{ASX_POLL_PANICKED, AsxRuntime, AsxStatus};
use crate::effects;
use crate::error::Fault;
use crate::guard::{self, Runtime};
use crate::state::Core;
use asx_kernel::status::Status;
use asx_kernel::world::{Answer, TaskError};

/// Declares that a callback of this runtime was left by longjmp or an exception and will not
/// return. Until then asx_step and asx_runtime_destroy return ASX_E_REENTRANT. A task whose poll
/// was left ends as by ASX_POLL_PANICKED, and the runtime continues; the rest of the call under way
/// is skipped. If a function of asx_set_allocator was left, every later call returns
/// ASX_E_INTERNAL, and asx_runtime_destroy calls nothing and frees nothing but a pool.
///
/// - Parameters: no callback and no call of this runtime is under way; a call from inside one is
///   undefined behaviour. Leaving a callback remains forbidden: destructors of the skipped frames
///   do not run.
/// - Returns: ASX_OK; ASX_E_INVALID_TRANSITION when no callback was left; ASX_E_INVALID_ARGUMENT
///   for NULL; ASX_E_AFFINITY_VIOLATION.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_runtime_recover(rt: *mut AsxRuntime) -> AsxStatus {
    let recover = || {
        // SAFETY: rule 1 of `guard`: what the caller promises.
        let rt = unsafe { Runtime::of(rt)? };
        rt.check_thread()?;
        if rt.reclaim() {
            // SAFETY: rule 3 of `guard`: whoever had the core will not go on. One flag is set.
            unsafe { rt.with(|core| core.broken = true) }
            return Ok(());
        }
        let hooked = rt.take_hooked();
        rt.occupy()?;
        // SAFETY: rule 3 of `guard`: inside, and no callback runs.
        let answer = unsafe { rt.with(|core| core.recover(hooked)) };
        if answer.is_ok() {
            effects::perform(rt);
        }
        rt.vacate();
        answer
    };
    let answer = guard::caught(recover);
    // SAFETY: rule 1 of `guard`: what the caller promises.
    unsafe { guard::answered(rt, signature!(asx_runtime_recover(rt)), answer.map_err(Fault::from)) }
}

impl Core {
    /// Ends the poll and the run that were left. `hooked`: a hook or a drop callback was.
    fn recover(&mut self, hooked: bool) -> Answer {
        if !(hooked || self.stepping || self.current.is_some()) {
            return Err(Status::InvalidTransition);
        }
        if let (Some(task), Some(body)) = (self.current, self.current_body.take()) {
            self.error = Some(TaskError { status: None, message: "its callback was left".into() });
            self.end_poll(task, body, ASX_POLL_PANICKED);
        }
        self.stepping = false;
        self.settle_poll();
        Ok(())
    }
}
