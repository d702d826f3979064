//! The books of a program: what was made, and what became of it.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};

/// How many values of a program are looked at one by one.
const SLOTS: usize = 1 << 14;

/// The payload of panics that belong to the program.
pub(crate) struct Meant(#[allow(dead_code, reason = "dropped with it")] pub(crate) Option<Value>);

/// What is counted in a program.
pub(crate) struct Books {
    /// 0: not made; 1: alive; 2: dropped.
    slots: Box<[AtomicU8]>,
    made: AtomicUsize,
    dropped: AtomicUsize,
    /// Values that were made to be returned: see [`returned`](Books::returned).
    returned: AtomicUsize,
    pub(crate) tasks_spawned: AtomicUsize,
    pub(crate) tasks_ended: AtomicUsize,
    pub(crate) scopes_opened: AtomicUsize,
    pub(crate) scopes_closed: AtomicUsize,
    /// Messages of which a send answered that they are on their way.
    pub(crate) sent: AtomicUsize,
    pub(crate) received: AtomicUsize,
    /// Messages that were in a channel when it was closed, or had to make room.
    pub(crate) reported: AtomicUsize,
    /// Whether destructors may panic.
    bombs: bool,
    draws: AtomicU64,
    wrong: AtomicBool,
    first: std::sync::Mutex<Option<String>>,
}

impl Books {
    pub(crate) fn new(bombs: bool) -> Arc<Books> {
        Arc::new(Books {
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
            bombs,
            draws: AtomicU64::new(0),
            wrong: AtomicBool::new(false),
            first: std::sync::Mutex::default(),
        })
    }

    /// A value, whose drop is counted, and panics from time to time where that is wanted.
    pub(crate) fn value(self: &Arc<Self>) -> Value {
        let id = self.made.fetch_add(1, Relaxed);
        if let Some(slot) = self.slots.get(id)
            && slot.swap(1, Relaxed) != 0
        {
            self.fault(format!("value {id} was made twice"));
        }
        let bomb = self.bombs && self.draw(12) == 0;
        Value { books: self.clone(), id, check: Box::new(mark(id)), bomb }
    }

    /// A value that a function returns, or that a panic carries which becomes an outcome. The
    /// language leaks what a function returns if the destructor of one of its locals panics
    /// afterwards.
    pub(crate) fn returned(self: &Arc<Self>) -> Value {
        self.returned.fetch_add(1, Relaxed);
        self.value()
    }

    /// Whether a callback panics now.
    pub(crate) fn goes_off(&self, one_in: u64) -> bool {
        self.bombs && !std::thread::panicking() && self.draw(one_in) == 0
    }

    /// A number that differs from call to call; which one is not part of the program.
    fn draw(&self, below: u64) -> u64 {
        asx_kernel::rng::mix64(self.draws.fetch_add(1, Relaxed)) % below
    }

    /// Something is wrong with the runtime.
    pub(crate) fn fault(&self, what: String) {
        self.wrong.store(true, Relaxed);
        let mut first = self.first.lock().unwrap_or_else(|e| e.into_inner());
        first.get_or_insert(what);
    }

    /// A fault if it is not so.
    pub(crate) fn expect(&self, holds: bool, what: &str) {
        if !holds {
            self.fault(what.into());
        }
    }

    /// Whether everything adds up, once nothing of the program is left. `leaks`: things were
    /// forgotten on purpose, so that not all of it is dropped.
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
        if !leaks && !self.bombs && sent != received + reported {
            return Err(format!("{sent} messages sent, {received} received, {reported} reported"));
        }
        let made = get(&self.made);
        let dropped = get(&self.dropped);
        let may_leak = if self.bombs { get(&self.returned) } else { 0 };
        if (leaks && dropped <= made) || (dropped..=dropped + may_leak).contains(&made) {
            return Ok(());
        }
        let alive = |id: &usize| self.slots.get(*id).is_some_and(|slot| slot.load(Relaxed) == 1);
        let first: Vec<_> = (0..made).filter(alive).take(5).collect();
        Err(format!("{made} values were made and {dropped} dropped; alive: {first:?} .."))
    }

    /// A task's or scope's share in the books, which is settled by its drop.
    pub(crate) fn task(self: &Arc<Self>) -> Counted {
        self.tasks_spawned.fetch_add(1, Relaxed);
        Counted(self.clone(), |books| &books.tasks_ended)
    }

    pub(crate) fn scope(self: &Arc<Self>) -> Counted {
        self.scopes_opened.fetch_add(1, Relaxed);
        Counted(self.clone(), |books| &books.scopes_closed)
    }
}

/// Counts when it is dropped.
pub(crate) struct Counted(Arc<Books>, fn(&Books) -> &AtomicUsize);

impl Drop for Counted {
    fn drop(&mut self) {
        self.1(&self.0).fetch_add(1, Relaxed);
    }
}

/// A value that is dropped once.
pub(crate) struct Value {
    books: Arc<Books>,
    id: usize,
    /// Memory of its own, so that a checker sees who uses it when it is gone.
    check: Box<u64>,
    bomb: bool,
}

fn mark(id: usize) -> u64 {
    0x5EED_0000_0000_0000 | id as u64
}

impl Value {
    /// Looks at the value: it must be alive.
    pub(crate) fn look(&self) {
        let slot = self.books.slots.get(self.id).map(|slot| slot.load(Relaxed));
        if *self.check != mark(self.id) || slot.is_some_and(|slot| slot != 1) {
            self.books.fault(format!("value {} is used after its end", self.id));
        }
    }

    /// A part of it, for guards of parts.
    pub(crate) fn part(&self) -> &u64 {
        &self.check
    }

    pub(crate) fn part_mut(&mut self) -> &mut u64 {
        &mut self.check
    }
}

impl Clone for Value {
    fn clone(&self) -> Value {
        self.look();
        if self.books.goes_off(20) {
            panic_any(Meant(None));
        }
        self.books.value()
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.look();
        self.books.dropped.fetch_add(1, Relaxed);
        if let Some(slot) = self.books.slots.get(self.id) {
            slot.store(2, Relaxed);
        }
        if self.bomb && !std::thread::panicking() {
            panic_any(Meant(None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_books_show_what_is_left_and_what_was_forgotten() {
        let books = Books::new(false);
        let one = books.value();
        let two = books.value();
        drop(one.clone());
        drop(one);
        assert!(books.balance(false).unwrap_err().contains("3 values were made and 2 dropped"));
        assert_eq!(books.balance(true), Ok(()));
        drop(two);
        assert_eq!(books.balance(false), Ok(()));
    }

    #[test]
    fn only_what_was_returned_may_leak_where_destructors_panic() {
        for (bombs, allowed) in [(false, false), (true, true)] {
            let books = Books::new(bombs);
            std::mem::forget(books.returned());
            assert_eq!(books.balance(false).is_ok(), allowed);
            std::mem::forget(books.value());
            assert!(books.balance(false).is_err());
        }
    }

    #[test]
    fn tasks_that_have_not_ended_show() {
        let books = Books::new(false);
        let task = books.task();
        assert!(books.balance(true).is_err());
        drop(task);
        assert_eq!(books.balance(true), Ok(()));
    }

    #[test]
    fn a_message_that_nobody_got_shows() {
        let books = Books::new(false);
        books.sent.fetch_add(2, Relaxed);
        books.received.fetch_add(1, Relaxed);
        assert!(books.balance(false).is_err());
        books.reported.fetch_add(1, Relaxed);
        assert_eq!(books.balance(false), Ok(()));
    }
}
