//! Forgotten values, and a check of memory usage.

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::program::Program;

/// All forgotten values: never dropped, but reachable, so that leak checkers report only leaks of
/// the runtime.
static FORGOTTEN: Mutex<Vec<&'static Forgotten>> = Mutex::new(Vec::new());

struct Forgotten(#[allow(dead_code, reason = "kept, not used")] Box<dyn Any + Send>);

// SAFETY: the contents are not accessible, by reference or otherwise.
unsafe impl Sync for Forgotten {}

/// Forgets a value: it is never dropped.
pub(crate) fn forget(value: impl Any + Send) {
    let value = Box::leak(Box::new(Forgotten(Box::new(value))));
    FORGOTTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(value);
}

/// The system's allocator with a counter.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocated bytes.
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

fn count(before: usize, after: usize) {
    ALLOCATED.fetch_add(after as i64 - before as i64, Relaxed);
}

// SAFETY: every call is forwarded to the system's allocator with the caller's arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(0, layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

/// The number of programs before memory is checked, by when all caches have been filled.
const WARM_UP: u64 = 300;
/// The number of bytes that a single program, and all programs together, may leave behind: memory
/// that the runtime caches for later tasks, regions and journals, and memory of the standard
/// library. The audit build keeps 32 MiB of freed memory and a ledger.
const SLACK: i64 = if cfg!(asx_audit) {
    64 << 20
} else if cfg!(asx_no_reuse) {
    64 << 10
} else {
    8 << 20
};

/// Memory usage over all programs.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    programs: u64,
    /// Allocated bytes after the warm-up.
    warm: i64,
    /// Whether a program since then was allowed to leave more.
    unclean: bool,
}

impl Memory {
    pub(crate) fn allocated() -> i64 {
        ALLOCATED.load(Relaxed)
    }

    /// Records the end of a program, with the allocated bytes before and after it.
    pub(crate) fn ended(
        &mut self,
        program: &Program,
        before: i64,
        after: i64,
    ) -> Result<(), String> {
        self.programs += 1;
        if self.programs <= WARM_UP {
            self.warm = after;
            return Ok(());
        }
        // Forgotten values remain. And Rust leaks the return value of a function if the destructor
        // of one of its locals panics.
        if program.forgets || program.callback_panics {
            self.unclean = true;
            return Ok(());
        }
        let left = after - before;
        let in_all = after - self.warm;
        if left > SLACK || (!self.unclean && in_all > SLACK) {
            return Err(format!("the program left {left} bytes, all programs {in_all}"));
        }
        Ok(())
    }

    /// Returns a one-line report.
    pub(crate) fn report(&self, after: i64) -> String {
        let grown = if self.programs > WARM_UP { after - self.warm } else { 0 };
        let forgotten = FORGOTTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).len();
        format!("{after} bytes allocated, {grown} since the warm-up, {forgotten} values forgotten")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    fn warm() -> Memory {
        Memory { programs: WARM_UP, warm: 1000, unclean: false }
    }

    #[test]
    fn leftovers_are_limited_for_one_program_and_for_all() {
        let mut program = generate::program(1, false);
        program.forgets = false;
        assert!(warm().ended(&program, 1000, 1000 + SLACK).is_ok());
        assert!(warm().ended(&program, 1000, 1001 + SLACK).is_err());
        // Small leftovers of each program.
        assert!(warm().ended(&program, 999 + SLACK, 1000 + SLACK).is_ok());
        assert!(warm().ended(&program, 1000 + SLACK, 1001 + SLACK).is_err());
        let mut cold = Memory::default();
        assert!(cold.ended(&program, 0, 2 * SLACK).is_ok());
        // Forgotten values remain, so later totals are not checked.
        let mut memory = warm();
        program.forgets = true;
        assert!(memory.ended(&program, 1000, 1000 + 2 * SLACK).is_ok());
        program.forgets = false;
        assert!(memory.ended(&program, 1000 + 2 * SLACK, 1001 + 2 * SLACK).is_ok());
    }

    #[test]
    fn allocations_are_counted() {
        let before = Memory::allocated();
        let kept = vec![0_u8; 1 << 24];
        assert!(Memory::allocated() - before > 1 << 23);
        drop(kept);
        assert!(Memory::allocated() - before < 1 << 23);
    }
}
