//! Which thread this is, and the atomics, swapped for loom's when its models run. None is wider
//! than 32 bits or a pointer but where the machine has wider ones.

#[cfg(all(not(loom), target_has_atomic = "64"))]
pub(crate) use core::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
#[cfg(all(loom, target_has_atomic = "64"))]
pub(crate) use loom::sync::atomic::AtomicU64;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The calling thread's number, never 0 where there are threads: every call asks for it. The thread
/// pointer, which is what `pthread_self` answers, and here takes no call.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn os_thread() -> usize {
    let pointer;
    // SAFETY: the ABI of the platform: the first word of a thread's own block is its address. It is
    // read, and nothing else is touched.
    unsafe {
        core::arch::asm!(
            "mov {}, fs:0",
            out(reg) pointer,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    pointer
}

/// The calling thread's number, never 0 where there are threads.
#[cfg(all(unix, not(all(target_os = "linux", target_arch = "x86_64"))))]
pub(crate) fn os_thread() -> usize {
    unsafe extern "C" {
        safe fn pthread_self() -> usize;
    }
    pthread_self()
}

/// The calling thread's number: one thread only.
#[cfg(not(unix))]
pub(crate) fn os_thread() -> usize {
    1
}
