//! Ghost monitors: misuse that an answer alone may hide, counted and reported.
//!
//! They are off unless the configuration says so, and change no answer. A report carries the
//! handle, the function that was called, and the caller's file and line if it told them
//! (`ASX_CALL`). Reports wait until the call is over: the hook runs while nothing is borrowed.

use crate::abi::{AsxStatus, AsxTaskId};
use crate::config::AsxGhost;
use crate::error::Signature;
use alloc::collections::TryReserveError;
use alloc::vec::Vec;
use asx_kernel::ids::ObligationId;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::ffi::c_char;
use core::ptr::null;

/// A timer or task was cancelled that already was, or is over.
pub const ASX_GHOST_DOUBLE_CANCEL: i32 = 0;
/// A permit was used after its resolution.
pub const ASX_GHOST_PERMIT_REUSE: i32 = 1;
/// A channel was used although a side of it is closed.
pub const ASX_GHOST_CLOSED_CHANNEL: i32 = 2;
/// An obligation was resolved twice.
pub const ASX_GHOST_DOUBLE_RESOLVE: i32 = 3;
/// A borrow was held when a poll ended.
pub const ASX_GHOST_BORROW_ACROSS_POLL: i32 = 4;
/// An exclusive borrow met another one, or a borrow was ended that is not held.
pub const ASX_GHOST_BORROW_EPOCH: i32 = 5;
/// A call came from a wrong thread.
pub const ASX_GHOST_AFFINITY: i32 = 6;
/// A stale handle was used.
pub const ASX_GHOST_STALE: i32 = 7;
/// A region's memory was written to behind its end or after the region was Closed, or asked for
/// then.
pub const ASX_GHOST_STORAGE: i32 = 8;

/// Reports beyond this many in one call are counted only.
const MOST_REPORTS: usize = 16;

/// The monitors of a runtime.
pub(crate) struct Ghosts {
    on: bool,
    reports_wanted: bool,
    pub(crate) counts: [u64; 9],
    pub(crate) call: Signature,
    site: (*const c_char, u32),
    /// For how many calls the place still is that of the call: that which told it, and the next.
    placed: u8,
    reports: Vec<AsxGhost>,
}

impl Ghosts {
    pub(crate) fn new(on: bool, reports_wanted: bool) -> Ghosts {
        Ghosts {
            on,
            reports_wanted,
            counts: [0; 9],
            call: Signature("asx\0"),
            site: (null(), 0),
            placed: 0,
            reports: Vec::new(),
        }
    }

    /// Makes room for as many reports as one call may have.
    pub(crate) fn try_reserve(&mut self) -> Result<(), TryReserveError> {
        let wanted = self.on && self.reports_wanted;
        self.reports.try_reserve_exact(if wanted { MOST_REPORTS } else { 0 })
    }

    /// Whether anybody watches.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Where the call under way comes from; NULL if that is not known.
    pub(crate) fn site(&self) -> (*const c_char, u32) {
        self.site
    }

    /// Where the next call comes from.
    pub(crate) fn set_location(&mut self, file: *const c_char, line: u32) {
        self.site = (file, line);
        self.placed = 2;
    }

    /// The call is over; what it said of its place is not true of the next. Only the location that
    /// `asx_set_location` gives lasts for one call more.
    #[inline]
    pub(crate) fn end_call(&mut self) {
        if self.placed == 0 {
            return;
        }
        self.placed -= 1;
        if self.placed == 0 {
            self.site = (null(), 0);
        }
    }

    /// Whether the end of a call changes anything.
    #[inline(always)]
    pub(crate) fn is_placed(&self) -> bool {
        self.placed != 0
    }

    /// Counts a misuse.
    pub(crate) fn note(
        &mut self,
        kind: i32,
        status: AsxStatus,
        handle: (u64, u64),
        task: AsxTaskId,
    ) {
        if !self.on {
            return;
        }
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count += 1;
        }
        if self.reports_wanted && self.reports.len() < MOST_REPORTS {
            self.reports.push(AsxGhost {
                kind,
                status,
                bits: handle.0,
                generation: handle.1,
                task,
                call: self.call.name().as_ptr(),
                file: self.site.0,
                line: self.site.1,
                reserved: 0,
            });
        }
    }

    /// Counts a misuse that happened so often; no more are reported than one call may.
    pub(crate) fn note_many(
        &mut self,
        times: u32,
        kind: i32,
        status: AsxStatus,
        handle: (u64, u64),
        task: AsxTaskId,
    ) {
        let told = times.min(MOST_REPORTS as u32);
        (0..told).for_each(|_| self.note(kind, status, handle, task));
        if let Some(count) = self.counts.get_mut(kind as usize).filter(|_| self.on) {
            *count += u64::from(times - told);
        }
    }

    /// How many reports wait.
    #[inline(always)]
    pub(crate) fn reports(&self) -> usize {
        self.reports.len()
    }

    pub(crate) fn take_report(&mut self) -> Option<AsxGhost> {
        if self.reports.is_empty() { None } else { Some(self.reports.remove(0)) }
    }
}

/// Where obligations were reserved, as far as the program has said with `asx_set_location`.
#[derive(Default)]
pub(crate) struct Places(Vec<(ObligationId, *const c_char, u32)>);

impl Places {
    /// Remembers a place, if there is memory for it; it is only told to people.
    pub(crate) fn keep(&mut self, obligation: ObligationId, (file, line): (*const c_char, u32)) {
        if cfg!(feature = "dump") && !file.is_null() && self.0.try_reserve(1).is_ok() {
            self.0.push((obligation, file, line));
        }
    }

    /// Forgets the place of an obligation that is resolved: where it was.
    pub(crate) fn take(&mut self, obligation: ObligationId) -> Option<(*const c_char, u32)> {
        if !cfg!(feature = "dump") {
            return None;
        }
        let at = self.0.iter().position(|(own, ..)| *own == obligation)?;
        let (_, file, line) = self.0.swap_remove(at);
        Some((file, line))
    }
}

/// Borrows a program declares of its own data, so that their discipline can be watched.
pub(crate) struct Borrows {
    /// Live ones: token and whether exclusive.
    live: Vec<(u64, bool)>,
    next: u64,
    most: usize,
}

impl Borrows {
    /// None yet, and never more than `most`.
    pub(crate) fn new(most: usize) -> Borrows {
        Borrows { live: Vec::new(), next: 0, most }
    }

    /// Makes room for one more, if the limit admits it.
    pub(crate) fn try_reserve(&mut self) -> Answer {
        if self.live.len() >= self.most {
            return Err(Status::ResourceExhausted);
        }
        self.live.try_reserve(1).map_err(|_| Status::ResourceExhausted)
    }

    /// Begins a borrow; whether it conflicts with a living one.
    pub(crate) fn begin(&mut self, exclusive: bool) -> (u64, bool) {
        let conflict = self.live.iter().any(|(_, other)| exclusive || *other);
        self.next += 1;
        self.live.push((self.next, exclusive));
        (self.next, conflict)
    }

    /// Ends a borrow.
    pub(crate) fn end(&mut self, token: u64) -> Answer {
        let at = self.live.iter().position(|(live, _)| *live == token);
        self.live.swap_remove(at.ok_or(Status::InvalidArgument)?);
        Ok(())
    }

    /// A poll is over: how many borrows it left behind. They are forgotten.
    pub(crate) fn poll_ended(&mut self) -> usize {
        let left = self.live.len();
        self.live.clear();
        left
    }
}
