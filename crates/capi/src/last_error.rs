//! What was wrong with a call, or would be with a configuration: for the caller to ask.

use crate::abi::{AsxRuntime, AsxStatus};
use crate::config::{ASX_FLAG_POOL, ASX_FLAG_SEED_FROM_ENTROPY, AsxRuntimeConfig};
use crate::error::{AsxErrorInfo, Bad, Checked, Fault, Field, field};
use crate::guard::{self, Look, Runtime, number};
use crate::memory::Reserve;
use asx_kernel::status::Status;

/// Reads the last failed call of the owner's thread to this runtime: function, argument and cause.
/// Statuses below ASX_E_INVALID_ARGUMENT are no failures. The record stays until the next failure;
/// failures of this function, of asx_external_wake and of asx_thread_number are not recorded. May
/// be called from hooks and drop callbacks too. Before a runtime exists use
/// asx_runtime_config_check.
///
/// - Parameters: `error` begins with its struct_size.
/// - Ownership: the texts are static.
/// - Returns: ASX_OK; ASX_E_EMPTY when no call has failed; ASX_E_INVALID_ARGUMENT;
///   ASX_E_AFFINITY_VIOLATION.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_last_error(
    rt: *mut AsxRuntime,
    error: *mut AsxErrorInfo,
) -> AsxStatus {
    let tell = || {
        // SAFETY: rules 1 and 2 of `guard`: what the caller promises.
        let (rt, error) = unsafe { (Runtime::of(rt)?, Look::new(error)?) };
        rt.check_thread()?;
        error.set(rt.last_error.info().ok_or(Status::Empty)?)
    };
    number(guard::caught(tell))
}

/// Checks a configuration as asx_runtime_create does, without creating anything, and reports the
/// field that is refused. Available memory is not checked.
///
/// - Parameters: `config` points to a configuration from asx_runtime_config_init; `error` is NULL
///   or begins with its struct_size: it is written unless the call returns ASX_OK.
/// - Thread: any.
/// - Ownership: nothing is kept; the texts are static.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT for what asx_runtime_create refuses with it;
///   ASX_E_RESOURCE_EXHAUSTED for a pool that no memory can have, or with ASX_FLAG_STRICT for one
///   that is too small for the limits (asx_runtime_config_pool_size).
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_runtime_config_check(
    config: *const AsxRuntimeConfig,
    error: *mut AsxErrorInfo,
) -> AsxStatus {
    let tell = || {
        // SAFETY: rule 2 of `guard`: what the caller promises.
        let (error, config) = unsafe { (Look::maybe(error)?, AsxRuntimeConfig::read(config)) };
        let checked = config.and_then(|config| config.check());
        checked.or_else(|bad| {
            let signature = signature!(asx_runtime_create(config, out));
            error.set(Fault::at(1, bad).info(signature))?;
            Err(bad.status)
        })
    };
    number(guard::caught(tell))
}

impl AsxRuntimeConfig {
    /// Looks at everything a creation looks at that needs no memory.
    fn check(&self) -> Checked {
        self.kernel()?;
        let drawn = self.flags & ASX_FLAG_SEED_FROM_ENTROPY != 0;
        field(!drawn || self.entropy.is_some(), Field::Entropy)?;
        if self.flags & ASX_FLAG_POOL == 0 {
            return Ok(());
        }
        let refused = |status| {
            // Limits without an end, or bytes that are too few for them.
            let told = status == Status::ResourceExhausted;
            Bad { status, ..Bad::field(if told { Field::PoolBytes } else { Field::Limits }) }
        };
        Reserve::fits(self.pool_size().map_err(refused)?, self.pool_memory)
    }
}
