//! Who is inside a lock, as the program sees it.

use std::sync::Arc;
use std::sync::atomic::AtomicIsize;
use std::sync::atomic::Ordering::SeqCst;

use crate::books::Books;

/// The visitors of a lock: how many read, or -1 for one that is alone.
pub(crate) struct Turns {
    inside: Arc<AtomicIsize>,
    books: Arc<Books>,
}

const ALONE: isize = -1;

impl Turns {
    pub(crate) fn new(books: &Arc<Books>) -> Turns {
        Turns { inside: Arc::default(), books: books.clone() }
    }

    /// Somebody who is alone in the lock. To be dropped before the guard.
    pub(crate) fn alone(&self) -> Turn {
        let before = self.inside.fetch_add(ALONE, SeqCst);
        if before != 0 {
            self.books.fault(format!("not alone in a lock: {before}"));
        }
        Turn { inside: self.inside.clone(), by: ALONE }
    }

    /// Somebody who reads. To be dropped before the guard.
    pub(crate) fn reads(&self) -> Turn {
        let before = self.inside.fetch_add(1, SeqCst);
        if before < 0 {
            self.books.fault("somebody reads what another one writes".into());
        }
        Turn { inside: self.inside.clone(), by: 1 }
    }
}

/// A visit of a lock.
pub(crate) struct Turn {
    inside: Arc<AtomicIsize>,
    by: isize,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.inside.fetch_sub(self.by, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_in_a_lock_show_unless_both_read() {
        let wrong = |both: fn(&Turns) -> [Turn; 2]| {
            let books = Books::new(false);
            let turns = Turns::new(&books);
            drop(both(&turns));
            drop(turns.alone());
            books.balance(false).is_err()
        };
        assert!(!wrong(|turns| [turns.reads(), turns.reads()]));
        assert!(wrong(|turns| [turns.alone(), turns.reads()]));
        assert!(wrong(|turns| [turns.reads(), turns.alone()]));
        assert!(wrong(|turns| [turns.alone(), turns.alone()]));
    }
}
