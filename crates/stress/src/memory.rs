//! What is forgotten, and what memory does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::any::Any;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use crate::program::Program;

/// Everything that was forgotten: never dropped, and known, so that leak checkers see only what
/// the runtime leaks.
static FORGOTTEN: Mutex<Vec<&'static Forgotten>> = Mutex::new(Vec::new());

struct Forgotten(#[allow(dead_code, reason = "kept, not used")] Box<dyn Any + Send>);

// SAFETY: nobody gets at what is inside, by reference or otherwise.
unsafe impl Sync for Forgotten {}

/// Forgets a value: it is never dropped.
pub(crate) fn forget(value: impl Any + Send) {
    let value = Box::leak(Box::new(Forgotten(Box::new(value))));
    FORGOTTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(value);
}

/// The system's allocator, which counts.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many bytes are allocated now.
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

fn count(before: usize, after: usize) {
    ALLOCATED.fetch_add(after as i64 - before as i64, Relaxed);
}

// SAFETY: the system's allocator, which is given what the caller gives.
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

/// Programs before memory counts: what is made once, and kept for later, has been made.
const WARM_UP: u64 = 300;
/// How many bytes programs may leave, each of them and all together: memory that the runtime keeps
/// for later tasks, regions and journals, of which there may be more in time; and, where it keeps
/// none, what is the standard library's. The audit build keeps 32 MiB of what was freed, and books.
const SLACK: i64 = if cfg!(asx_audit) {
    64 << 20
} else if cfg!(asx_no_reuse) {
    64 << 10
} else {
    8 << 20
};

/// What the programs did to memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    programs: u64,
    /// Bytes allocated when it was warm.
    warm: i64,
    /// Whether a program since then may have left more.
    unclean: bool,
}

impl Memory {
    pub(crate) fn allocated() -> i64 {
        ALLOCATED.load(Relaxed)
    }

    /// A program has ended, with so many bytes allocated before it and after.
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
        // What is forgotten stays. And the language leaks what a function returns if the destructor
        // of one of its locals panics.
        if program.forgets || program.bombs {
            self.unclean = true;
            return Ok(());
        }
        let left = after - before;
        let in_all = after - self.warm;
        if left > SLACK || (!self.unclean && in_all > SLACK) {
            return Err(format!("{left} bytes are left of the program, {in_all} of all of them"));
        }
        Ok(())
    }

    /// What it was like, in a line.
    pub(crate) fn report(&self, after: i64) -> String {
        let grown = if self.programs > WARM_UP { after - self.warm } else { 0 };
        let forgotten = FORGOTTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).len();
        format!(
            "{after} bytes allocated, {grown} more than when warm, {forgotten} things forgotten"
        )
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
    fn what_is_left_counts_for_one_program_and_for_all() {
        let mut program = generate::program(1, false);
        program.forgets = false;
        assert!(warm().ended(&program, 1000, 1000 + SLACK).is_ok());
        assert!(warm().ended(&program, 1000, 1001 + SLACK).is_err());
        // A little of each.
        assert!(warm().ended(&program, 999 + SLACK, 1000 + SLACK).is_ok());
        assert!(warm().ended(&program, 1000 + SLACK, 1001 + SLACK).is_err());
        let mut cold = Memory::default();
        assert!(cold.ended(&program, 0, 2 * SLACK).is_ok());
        // What is forgotten stays, and says nothing about later programs.
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
