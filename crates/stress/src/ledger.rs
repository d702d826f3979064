//! The ledger of a program: counts everything that was created and its end.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};

/// The number of values of a program that are tracked individually.
const SLOTS: usize = 1 << 14;

/// The payload of panics that belong to the program.
pub(crate) struct ExpectedPanic(
    #[allow(dead_code, reason = "dropped with it")] pub(crate) Option<Value>,
);

/// The counters of a program.
pub(crate) struct Ledger {
    /// 0: not created; 1: alive; 2: dropped.
    slots: Box<[AtomicU8]>,
    made: AtomicUsize,
    dropped: AtomicUsize,
    /// Values that were created to be returned: see [`returned`](Ledger::returned).
    returned: AtomicUsize,
    pub(crate) tasks_spawned: AtomicUsize,
    pub(crate) tasks_ended: AtomicUsize,
    pub(crate) scopes_opened: AtomicUsize,
    pub(crate) scopes_closed: AtomicUsize,
    /// Messages that were sent successfully.
    pub(crate) sent: AtomicUsize,
    pub(crate) received: AtomicUsize,
    /// Messages that were in a channel when it was closed, or were evicted.
    pub(crate) reported: AtomicUsize,
    /// Whether destructors may panic.
    callback_panics: bool,
    draws: AtomicU64,
    wrong: AtomicBool,
    first: std::sync::Mutex<Option<String>>,
}

impl Ledger {
    pub(crate) fn new(callback_panics: bool) -> Arc<Ledger> {
        Arc::new(Ledger {
            slots: (0..SLOTS).map(|_| AtomicU8::new(0)).collect(),
            made: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            returned: AtomicUsize::new(0),
            tasks_spawned: AtomicUsize::new(0),
            tasks_ended: AtomicUsize::new(0),
            scopes_opened: AtomicUsize::new(0),
            scopes_closed: AtomicUsize::new(0),
            sent: AtomicUsize::new(0),
            received: AtomicUsize::new(0),
            reported: AtomicUsize::new(0),
            callback_panics,
            draws: AtomicU64::new(0),
            wrong: AtomicBool::new(false),
            first: std::sync::Mutex::default(),
        })
    }

    /// Creates a value with a tracked drop, which panics at times if panics are enabled.
    pub(crate) fn value(self: &Arc<Self>) -> Value {
        let id = self.made.fetch_add(1, Relaxed);
        if let Some(slot) = self.slots.get(id)
            && slot.swap(1, Relaxed) != 0
        {
            self.fault(format!("value {id} was created twice"));
        }
        let panics_on_drop = self.callback_panics && self.draw(12) == 0;
        Value { ledger: self.clone(), id, check: Box::new(mark(id)), panics_on_drop }
    }

    /// Creates a value that a function returns, or that a panic carries which becomes an outcome.
    /// Rust leaks the return value of a function if the destructor of one of its locals panics.
    pub(crate) fn returned(self: &Arc<Self>) -> Value {
        self.returned.fetch_add(1, Relaxed);
        self.value()
    }

    /// Whether a callback panics now.
    pub(crate) fn should_panic(&self, one_in: u64) -> bool {
        self.callback_panics && !std::thread::panicking() && self.draw(one_in) == 0
    }

    /// Returns a number that differs from call to call and is not part of the program.
    fn draw(&self, below: u64) -> u64 {
        asx_kernel::rng::mix64(self.draws.fetch_add(1, Relaxed)) % below
    }

    /// Records an error of the runtime.
    pub(crate) fn fault(&self, what: String) {
        self.wrong.store(true, Relaxed);
        let mut first = self.first.lock().unwrap_or_else(|e| e.into_inner());
        first.get_or_insert(what);
    }

    /// Records an error unless the condition holds.
    pub(crate) fn expect(&self, holds: bool, what: &str) {
        if !holds {
            self.fault(what.into());
        }
    }

    /// Checks that everything is accounted for, once nothing of the program is left. `leaks`:
    /// values were forgotten on purpose, so not all of them are dropped.
    pub(crate) fn balance(&self, leaks: bool) -> Result<(), String> {
        if self.wrong.load(Relaxed) {
            let first = self.first.lock().unwrap_or_else(|e| e.into_inner());
            return Err(first.clone().unwrap_or_default());
        }
        let get = |count: &AtomicUsize| count.load(Relaxed);
        let spawned = get(&self.tasks_spawned);
        let ended = get(&self.tasks_ended);
        if spawned != ended {
            return Err(format!("{spawned} tasks were spawned and {ended} have ended"));
        }
        let opened = get(&self.scopes_opened);
        let closed = get(&self.scopes_closed);
        if opened != closed {
            return Err(format!("{opened} scopes were opened and {closed} have closed"));
        }
        let sent = get(&self.sent);
        let received = get(&self.received);
        let reported = get(&self.reported);
        if !leaks && !self.callback_panics && sent != received + reported {
            return Err(format!("{sent} messages sent, {received} received, {reported} reported"));
        }
        let made = get(&self.made);
        let dropped = get(&self.dropped);
        let may_leak = if self.callback_panics { get(&self.returned) } else { 0 };
        if (leaks && dropped <= made) || (dropped..=dropped + may_leak).contains(&made) {
            return Ok(());
        }
        let alive = |id: &usize| self.slots.get(*id).is_some_and(|slot| slot.load(Relaxed) == 1);
        let first: Vec<_> = (0..made).filter(alive).take(5).collect();
        Err(format!("{made} values were created and {dropped} dropped; alive: {first:?} .."))
    }

    /// Counts a task; the drop of the result counts its end.
    pub(crate) fn task(self: &Arc<Self>) -> Counted {
        self.tasks_spawned.fetch_add(1, Relaxed);
        Counted(self.clone(), |ledger| &ledger.tasks_ended)
    }

    pub(crate) fn scope(self: &Arc<Self>) -> Counted {
        self.scopes_opened.fetch_add(1, Relaxed);
        Counted(self.clone(), |ledger| &ledger.scopes_closed)
    }
}

/// Increments a counter when it is dropped.
pub(crate) struct Counted(Arc<Ledger>, fn(&Ledger) -> &AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1(&self.0).fetch_add(1, Relaxed);
    }
}

/// A value that must be dropped exactly once.
pub(crate) struct Value {
    ledger: Arc<Ledger>,
    id: usize,
    /// A separate allocation, so that a memory checker detects a use after the drop.
    check: Box<u64>,
    panics_on_drop: bool,
}

fn mark(id: usize) -> u64 {
    0x5EED_0000_0000_0000 | id as u64
}

impl Value {
    /// Checks that the value is alive.
    pub(crate) fn check(&self) {
        let slot = self.ledger.slots.get(self.id).map(|slot| slot.load(Relaxed));
        if *self.check != mark(self.id) || slot.is_some_and(|slot| slot != 1) {
            self.ledger.fault(format!("value {} is used after its drop", self.id));
        }
    }

    /// Returns a part of it, for guards of parts.
    pub(crate) fn part(&self) -> &u64 {
        &self.check
    }

    pub(crate) fn part_mut(&mut self) -> &mut u64 {
        &mut self.check
    }
}

impl Clone for Value {
    fn clone(&self) -> Value {
        self.check();
        if self.ledger.should_panic(20) {
            panic_any(ExpectedPanic(None));
        }
        self.ledger.value()
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.check();
        self.ledger.dropped.fetch_add(1, Relaxed);
        if let Some(slot) = self.ledger.slots.get(self.id) {
            slot.store(2, Relaxed);
        }
        if self.panics_on_drop && !std::thread::panicking() {
            panic_any(ExpectedPanic(None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_reports_values_that_are_left_or_forgotten() {
        let ledger = Ledger::new(false);
        let one = ledger.value();
        let two = ledger.value();
        drop(one.clone());
        drop(one);
        assert!(ledger.balance(false).unwrap_err().contains("3 values were created and 2 dropped"));
        assert_eq!(ledger.balance(true), Ok(()));
        drop(two);
        assert_eq!(ledger.balance(false), Ok(()));
    }

    #[test]
    fn only_returned_values_may_leak_if_destructors_panic() {
        for (callback_panics, allowed) in [(false, false), (true, true)] {
            let ledger = Ledger::new(callback_panics);
            std::mem::forget(ledger.returned());
            assert_eq!(ledger.balance(false).is_ok(), allowed);
            std::mem::forget(ledger.value());
            assert!(ledger.balance(false).is_err());
        }
    }

    #[test]
    fn unended_tasks_are_reported() {
        let ledger = Ledger::new(false);
        let task = ledger.task();
        assert!(ledger.balance(true).is_err());
        drop(task);
        assert_eq!(ledger.balance(true), Ok(()));
    }

    #[test]
    fn an_unreceived_message_is_reported() {
        let ledger = Ledger::new(false);
        ledger.sent.fetch_add(2, Relaxed);
        ledger.received.fetch_add(1, Relaxed);
        assert!(ledger.balance(false).is_err());
        ledger.reported.fetch_add(1, Relaxed);
        assert_eq!(ledger.balance(false), Ok(()));
    }
}
