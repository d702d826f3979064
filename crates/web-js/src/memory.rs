//! Whether memory ran out. The module traps then, and a trap does not say why.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use wasm_bindgen::prelude::*;

/// The system's allocator, which remembers that it had nothing left.
struct Remembering;

static RAN_OUT: AtomicBool = AtomicBool::new(false);

#[global_allocator]
static ALLOCATOR: Remembering = Remembering;

/// Passes on what the system answered.
fn noted(given: *mut u8) -> *mut u8 {
    if given.is_null() {
        RAN_OUT.store(true, Relaxed);
    }
    given
}

// SAFETY: every call is passed on as it is, and so is every answer.
unsafe impl GlobalAlloc for Remembering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        noted(unsafe { System.realloc(at, layout, size) })
    }
}

/// Whether memory ran out. It may be asked of a module that has trapped.
#[wasm_bindgen]
pub fn ran_out() -> bool {
    RAN_OUT.load(Relaxed)
}
