//! Handing a runtime over: another thread becomes its owner.
//!
//! The owner's number is written by the owner alone, as the last thing of the call that gives the
//! runtime away; whoever finds its own number there comes after everything the old owner has done.
//! Where a machine does not write 64 bits at once the number has two halves, and a count around
//! them: odd while they are being written, another one afterwards.

use crate::abi::{AsxRuntime, AsxStatus, AsxTransfer};
use crate::config::Line;
use crate::effects;
use crate::guard::{self, Look, Out, Runtime, number};
use crate::state::Core;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::mem::size_of;

#[cfg(not(target_has_atomic = "64"))]
pub(crate) use halves::Owner;
#[cfg(target_has_atomic = "64")]
pub(crate) use whole::Owner;

#[cfg(target_has_atomic = "64")]
mod whole {
    use crate::sync::{AtomicU64, Ordering};

    /// Who owns a runtime.
    pub(crate) struct Owner(AtomicU64);

    impl Owner {
        pub(crate) fn new(owner: u64) -> Owner {
            Owner(AtomicU64::new(owner))
        }

        /// Whether this thread is it.
        #[inline(always)]
        pub(crate) fn is(&self, thread: u64) -> bool {
            self.0.load(Ordering::Acquire) == thread
        }

        /// By the owner, which it is no longer.
        pub(crate) fn set(&self, owner: u64) {
            self.0.store(owner, Ordering::Release);
        }
    }
}

#[cfg(any(not(target_has_atomic = "64"), all(test, not(loom))))]
mod halves {
    use crate::sync::{AtomicU32, Ordering};

    /// Who owns a runtime.
    pub(crate) struct Owner {
        count: AtomicU32,
        low: AtomicU32,
        high: AtomicU32,
    }

    impl Owner {
        pub(crate) fn new(owner: u64) -> Owner {
            let half = |part: u64| AtomicU32::new(part as u32);
            Owner { count: AtomicU32::new(0), low: half(owner), high: half(owner >> 32) }
        }

        /// Whether this thread is it. Another one that asks while the owner changes is not.
        #[inline(always)]
        pub(crate) fn is(&self, thread: u64) -> bool {
            // Each load is ordered before the next: the count is looked at on both sides.
            let order = Ordering::Acquire;
            let before = self.count.load(order);
            let low = self.low.load(order);
            let high = self.high.load(order);
            let whole = before.is_multiple_of(2) && self.count.load(order) == before;
            (u64::from(high) << 32 | u64::from(low)) == thread && whole
        }

        /// By the owner, which it is no longer.
        pub(crate) fn set(&self, owner: u64) {
            let count = self.count.load(Ordering::Relaxed);
            self.count.store(count.wrapping_add(1), Ordering::Relaxed);
            // Whoever sees one of these sees the odd count too.
            self.low.store(owner as u32, Ordering::Release);
            self.high.store((owner >> 32) as u32, Ordering::Release);
            self.count.store(count.wrapping_add(2), Ordering::Release);
        }
    }
}

/// The number of the calling thread, as this runtime knows it: from the thread hook if it has one.
///
/// - Parameters: `out` is writable; the runtime is not being destroyed.
/// - Thread: any.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_thread_number(rt: *mut AsxRuntime, out: *mut u64) -> AsxStatus {
    let tell = || {
        // SAFETY: rules 1 and 2 of `guard`: what the caller promises. Hooks never change.
        let (rt, out) = unsafe { (Runtime::of(rt)?, Out::new(out)?) };
        out.set(guard::caller(&rt.hooks));
        Ok(())
    };
    number(tell())
}

/// Makes the thread with this number (asx_thread_number) the owner. It may call the runtime as soon
/// as it knows of the transfer; the former owner may not call it any more.
///
/// - Parameters: `certificate` begins with its struct_size: former owner, new owner, and how often
///   the runtime has changed hands. A number that no thread has leaves the runtime without an
///   owner.
/// - Thread: the owner's, which it is no longer.
/// - Ownership: the runtime, with destroying it, is the other thread's.
/// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT from inside
///   a callback; ASX_E_INTERNAL.
///
/// # Safety
/// The parameters are as stated above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asx_runtime_transfer(
    rt: *mut AsxRuntime,
    to: u64,
    certificate: *mut AsxTransfer,
) -> AsxStatus {
    let signature = signature!(asx_runtime_transfer(rt, to, certificate));
    let transfer = || {
        // SAFETY: rules 1 and 2 of `guard`: what the caller promises.
        let (rt, place) = unsafe { (Runtime::of(rt)?, Look::new(certificate)) };
        let place = place.map_err(|bad| signature.fault("certificate", bad))?;
        rt.check_thread()?;
        let from = guard::caller(&rt.hooks);
        rt.occupy()?;
        // SAFETY: rule 3 of `guard`: inside.
        let made = unsafe { rt.with(|core| core.transfer(from, to)) };
        effects::perform(rt);
        rt.vacate();
        place.set(made?)?;
        // The last thing that is touched.
        rt.owner.set(to);
        Ok(())
    };
    let answer = guard::caught(transfer);
    // SAFETY: rule 1 of `guard`: what the caller promises.
    unsafe { guard::answered(rt, signature, answer) }
}

export! {
    /// Checks whether a certificate is that of the last transfer. A new owner may call this before
    /// it continues.
    ///
    /// - Parameters: `certificate` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_STALE_HANDLE for one of another transfer than the last;
    ///   ASX_E_INVALID_ARGUMENT for one that was never given; ASX_E_AFFINITY_VIOLATION for a thread
    ///   that does not own the runtime; ASX_E_REENTRANT.
    fn asx_runtime_accept(rt, certificate: *const AsxTransfer) {
        let given = guard::prefix(certificate, size_of::<AsxTransfer>(), 4096)?;

        |core| {
            let given = given.over(AsxTransfer::NONE);
            let last = core.transfer;
            guard::ensure((1..=last.epoch).contains(&given.epoch) && given.reserved == 0)?;
            if given.epoch != last.epoch {
                return Err(Status::StaleHandle);
            }
            guard::ensure((given.from, given.to) == (last.from, last.to))?;
            Ok(())
        }
    }
}

impl Core {
    /// Writes a transfer down, if one can be made now.
    fn transfer(&mut self, from: u64, to: u64) -> Answer<AsxTransfer> {
        self.admit(signature!(asx_runtime_transfer(rt, to, certificate)))?;
        if self.stepping || self.current.is_some() {
            return Err(Status::Reentrant);
        }
        self.ghosts.end_call();
        self.transfer = AsxTransfer { from, to, epoch: self.transfer.epoch + 1, ..self.transfer };
        self.tell(Line::Transfer(self.transfer));
        Ok(self.transfer)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    /// Both ways to write the number.
    macro_rules! owners {
        ($($way:ident),*) => {$(mod $way {
            use super::super::$way::Owner;

            #[test]
            fn every_number_is_one_owners() {
                let owner = Owner::new(u64::MAX);
                assert!(owner.is(u64::MAX) && !owner.is(u64::from(u32::MAX)));
                for next in [0, 1, 1 << 32, 7 | (9 << 32)] {
                    owner.set(next);
                    assert!(owner.is(next) && !owner.is(next + 1) && !owner.is(u64::MAX));
                }
            }

            #[test]
            fn nobody_is_the_owner_by_halves() {
                let one = 1_u64 << 32 | 2;
                let other = 3_u64 << 32 | 4;
                let owner = Owner::new(one);
                let mixed = [1_u64 << 32 | 4, 3 << 32 | 2];
                let is_mixed = || mixed.iter().any(|mixed| owner.is(*mixed));
                std::thread::scope(|scope| {
                    let torn = scope.spawn(|| (0..200_000).any(|_| is_mixed()));
                    for turn in 0..100_000 {
                        owner.set(if turn % 2 == 0 { other } else { one });
                    }
                    assert!(!torn.join().unwrap());
                });
            }
        })*};
    }

    owners!(halves, whole);
}
