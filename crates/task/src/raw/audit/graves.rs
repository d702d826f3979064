//! Freed memory, which is kept for a while and must stay as it is (rule 5).
//!
//! # Rule
//! A grave's memory is the graveyard's alone until it leaves: nobody else may read or write it, and
//! whoever does has a bug, which is what this is here to find.

use std::alloc::{Layout, dealloc};
use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Mutex, Weak};

use super::seal;
use crate::prim::lock_unseen;

/// What freed memory is filled with. As a pointer it is none that a processor follows.
pub(super) const POISON: u8 = 0xa5;
/// Bytes that are kept in a process; those freed first leave first.
pub(super) const MOST: usize = 32 << 20;

static GRAVES: Mutex<Graves> = Mutex::new(Graves { list: VecDeque::new(), bytes: 0 });

/// What is about to be freed, by address.
static ANNOUNCED: Mutex<Option<HashMap<usize, Epitaph>>> = Mutex::new(None);

struct Graves {
    list: VecDeque<Grave>,
    bytes: usize,
}

struct Grave {
    at: NonNull<u8>,
    size: usize,
    epitaph: Epitaph,
    memory: Memory,
}

// SAFETY: the rule: the memory is the grave's alone.
unsafe impl Send for Grave {}

enum Memory {
    /// To be given to the allocator.
    Block(Layout),
    /// Given to it by the drop of this.
    Kept(#[allow(dead_code, reason = "kept, not used")] Box<dyn Any + Send>),
}

/// Who is in a grave, and the number of the core it was of, if it was of one.
#[derive(Debug)]
pub(crate) struct Epitaph {
    what: String,
    core: u64,
}

impl Epitaph {
    pub(super) fn new(what: String, core: u64) -> Epitaph {
        Epitaph { what, core }
    }
}

/// What is at this address is about to be freed.
pub(super) fn announce(at: usize, epitaph: Epitaph) {
    lock_unseen(&ANNOUNCED).get_or_insert_default().insert(at, epitaph);
}

/// Takes memory whose content was dropped.
///
/// # Safety
/// It was allocated with this layout, and is not used any more.
pub(crate) unsafe fn bury(at: NonNull<u8>, layout: Layout) {
    let epitaph = lock_unseen(&ANNOUNCED).get_or_insert_default().remove(&at.addr().get());
    let epitaph = epitaph.unwrap_or_else(|| Epitaph::new(String::from("the box of a waker"), 0));
    Grave { at, size: layout.size(), epitaph, memory: Memory::Block(layout) }.dig();
}

/// Memory of an `Arc` whose content is gone, or about to be.
pub(super) struct Kept {
    at: *const u8,
    size: usize,
    own: Box<dyn Any + Send>,
}

impl Kept {
    pub(super) fn new<T: Send + Sync + 'static>(own: Weak<T>) -> Kept {
        Kept { at: own.as_ptr().cast(), size: size_of::<T>(), own: Box::new(own) }
    }

    /// Now its content is gone.
    pub(super) fn bury(self, epitaph: Epitaph) {
        let Some(at) = NonNull::new(self.at.cast_mut()) else { return };
        Grave { at, size: self.size, epitaph, memory: Memory::Kept(self.own) }.dig();
    }
}

impl Grave {
    fn dig(self) {
        seal::bury_dropped();
        // SAFETY: the rule: allocated, of that size, and nobody's.
        unsafe { self.at.write_bytes(POISON, self.size) };
        let mut graves = lock_unseen(&GRAVES);
        graves.bytes += self.size;
        graves.list.push_back(self);
        while graves.bytes > MOST
            && let Some(oldest) = graves.list.pop_front()
        {
            graves.bytes -= oldest.size;
            oldest.check();
            oldest.leave();
        }
    }

    /// Whether nobody has written to it.
    fn check(&self) {
        // SAFETY: the rule: written by `dig`, of that size.
        let bytes = unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.size) };
        if let Some(byte) = bytes.iter().position(|byte| *byte != POISON) {
            let what = &self.epitaph.what;
            let size = self.size;
            fail(&format!("{what}: written to after it was freed: byte {byte} of {size}"));
        }
    }

    fn leave(self) {
        match self.memory {
            // SAFETY: the promise of `bury`; it leaves once.
            Memory::Block(layout) => unsafe { dealloc(self.at.as_ptr(), layout) },
            Memory::Kept(own) => drop(own),
        }
    }
}

/// Checks what was of a core.
pub(super) fn check_core(core: u64) {
    seal::bury_dropped();
    let graves = lock_unseen(&GRAVES);
    graves.list.iter().filter(|grave| grave.epitaph.core == core).for_each(Grave::check);
}

/// Checks all freed memory that is kept: nobody has written to it.
pub fn check() {
    seal::bury_dropped();
    lock_unseen(&GRAVES).list.iter().for_each(Grave::check);
}

/// Who was at this address, if it is in a grave.
pub(super) fn of(at: usize) -> Option<String> {
    let graves = lock_unseen(&GRAVES);
    let is_here = |grave: &&Grave| (grave.at.addr().get()..).contains(&at);
    let inside = |grave: &&Grave| at - grave.at.addr().get() < grave.size;
    let grave = graves.list.iter().rev().filter(is_here).find(inside)?;
    Some(grave.epitaph.what.clone())
}

/// Whether something lives, in a word of its own.
pub(crate) struct Alive(AtomicU64);

/// In the word of what lives.
const ALIVE: u64 = 0x6173_785f_6c69_7665;

impl Alive {
    pub(super) fn new() -> Alive {
        Alive(AtomicU64::new(ALIVE))
    }

    pub(super) fn end(&self) {
        self.0.store(0, SeqCst);
    }

    #[inline]
    pub(super) fn check(&self, who: impl FnOnce() -> Option<String>) {
        let word = self.0.load(SeqCst);
        if word != ALIVE {
            let who = who().unwrap_or_else(|| String::from("something"));
            fail(&format!("{who}: used after it was freed (its word is {word:#x})"));
        }
    }
}

/// The books do not balance: says so, and ends the process.
#[cold]
pub(crate) fn fail(what: &str) -> ! {
    let trace = std::backtrace::Backtrace::force_capture();
    eprintln!("asx audit: {what}\n{trace}");
    std::process::abort();
}
