//! A monitor of the holders of a lock.

use std::sync::Arc;
use std::sync::atomic::AtomicIsize;
use std::sync::atomic::Ordering::SeqCst;

use crate::ledger::Ledger;

/// The number of readers, or a negative number for a writer.
pub(crate) struct LockMonitor {
    inside: Arc<AtomicIsize>,
    ledger: Arc<Ledger>,
}

const EXCLUSIVE: isize = -1;

impl LockMonitor {
    pub(crate) fn new(ledger: &Arc<Ledger>) -> LockMonitor {
        LockMonitor { inside: Arc::default(), ledger: ledger.clone() }
    }

    /// Enters as the exclusive holder. Drop the result before the guard.
    pub(crate) fn exclusive(&self) -> LockVisit {
        let before = self.inside.fetch_add(EXCLUSIVE, SeqCst);
        if before != 0 {
            self.ledger.fault(format!("an exclusive lock has other holders: {before}"));
        }
        LockVisit { inside: self.inside.clone(), by: EXCLUSIVE }
    }

    /// Enters as a reader. Drop the result before the guard.
    pub(crate) fn shared(&self) -> LockVisit {
        let before = self.inside.fetch_add(1, SeqCst);
        if before < 0 {
            self.ledger.fault("a lock has a reader and a writer".into());
        }
        LockVisit { inside: self.inside.clone(), by: 1 }
    }
}

/// One visit of a lock.
pub(crate) struct LockVisit {
    inside: Arc<AtomicIsize>,
    by: isize,
}

impl Drop for LockVisit {
    fn drop(&mut self) {
        self.inside.fetch_sub(self.by, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_holders_are_reported_unless_both_read() {
        let wrong = |both: fn(&LockMonitor) -> [LockVisit; 2]| {
            let ledger = Ledger::new(false);
            let lock_monitor = LockMonitor::new(&ledger);
            drop(both(&lock_monitor));
            drop(lock_monitor.exclusive());
            ledger.balance(false).is_err()
        };
        assert!(!wrong(|lock_monitor| [lock_monitor.shared(), lock_monitor.shared()]));
        assert!(wrong(|lock_monitor| [lock_monitor.exclusive(), lock_monitor.shared()]));
        assert!(wrong(|lock_monitor| [lock_monitor.shared(), lock_monitor.exclusive()]));
        assert!(wrong(|lock_monitor| [lock_monitor.exclusive(), lock_monitor.exclusive()]));
    }
}
