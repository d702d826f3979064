//! What is forgotten, and what memory does.

use std::any::Any;
use std::fs;
use std::sync::Mutex;

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

/// What may come on top of the memory used when it is warm: a part of it, and pages of 4 KiB; and
/// for each thing that was forgotten so many more, since it may keep a runtime.
const GROWTH: (u64, u64, u64) = (4, 8192, 128);

/// Resident pages, when it is warm.
#[derive(Default)]
pub(crate) struct Memory {
    warm: Option<(u64, u64)>,
}

impl Memory {
    /// Everything that is made once has been made.
    pub(crate) fn warmed_up(&mut self) {
        self.warm.get_or_insert_with(|| (pages(), forgotten()));
    }

    /// Whether memory stayed about the same since.
    pub(crate) fn judge(&self) -> Result<(), String> {
        let Some((warm, before)) = self.warm else { return Ok(()) };
        let (now, forgot) = (pages(), forgotten() - before);
        let (part, some, each) = GROWTH;
        println!("pages resident: {warm} when warm, {now} now, with {forgot} things forgotten");
        if now <= warm + warm / part + some + forgot * each {
            return Ok(());
        }
        Err(format!("memory grew from {warm} pages to {now}"))
    }
}

fn forgotten() -> u64 {
    FORGOTTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).len() as u64
}

fn pages() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0)
}
