//! Parks one thread until another wakes it, or until a timeout.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::prim::{Condvar, Mutex, MutexGuard, lock};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Wakes a thread that sleeps in a call of the operating system. See [`Parker::park_in`].
pub trait Interrupt: Debug + Send + Sync {
    /// Ends the current sleep, or the next one if there is none. A spurious call is allowed.
    fn interrupt(&self);
}

/// The place where one thread parks. A wakeup before the park is kept: the next park returns
/// immediately. Several wakeups before a park count as one.
///
/// ```
/// use asx_native::parker::{Parker, Woken};
/// use std::time::Duration;
///
/// let parker = Parker::default();
/// parker.unpark();
/// assert_eq!(parker.park(None), Woken::Notified);
/// assert_eq!(parker.park(Some(Duration::ZERO)), Woken::TimedOut);
/// ```
#[derive(Debug, Default)]
pub struct Parker {
    token: Mutex<Token>,
    changed: Condvar,
    interrupt: Option<Arc<dyn Interrupt>>,
}

/// The reason why a park returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Another thread called [`unpark`](Parker::unpark), during the park or before it.
    Notified,
    /// The timeout passed.
    TimedOut,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Token {
    #[default]
    None,
    /// No wakeup, and a thread waits: only then does `unpark` need a system call.
    Waiting,
    /// No wakeup, and a thread sleeps in [`Parker::park_in`]: it has to be interrupted.
    Polling,
    Notified,
}

impl Parker {
    /// Creates a parker with support for [sleeping in a system call](Parker::park_in), which
    /// `interrupt` ends.
    pub fn with_interrupt(interrupt: Arc<dyn Interrupt>) -> Parker {
        Parker { interrupt: Some(interrupt), ..Parker::default() }
    }

    /// Parks until [`unpark`](Parker::unpark) is called or the timeout passes. Only one thread at a
    /// time may park.
    pub fn park(&self, timeout: Option<Duration>) -> Woken {
        // A timeout beyond the range of `Instant` is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut token = lock(&self.token);
        let woken = loop {
            if *token == Token::Notified {
                break Woken::Notified;
            }
            *token = Token::Waiting;
            token = match deadline {
                None => self.changed.wait(token).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(deadline) => match remaining(deadline) {
                    Some(remaining) => self.wait(token, remaining),
                    None => break Woken::TimedOut,
                },
            };
        };
        *token = Token::None;
        woken
    }

    /// Parks in `wait`, which returns when it is interrupted, or for other reasons. It is not
    /// called if there was a wakeup before. Only one thread at a time may park, and the parker
    /// needs an [`Interrupt`].
    pub fn park_in(&self, wait: impl FnOnce()) -> Woken {
        debug_assert!(self.interrupt.is_some(), "nothing would end the sleep");
        let was_notified = {
            let mut token = lock(&self.token);
            let was_notified = *token == Token::Notified;
            *token = if was_notified { Token::None } else { Token::Polling };
            was_notified
        };
        if was_notified {
            return Woken::Notified;
        }
        wait();
        match std::mem::take(&mut *lock(&self.token)) {
            Token::Notified => Woken::Notified,
            _ => Woken::TimedOut,
        }
    }

    /// Wakes the parked thread, or makes the next park return immediately.
    pub fn unpark(&self) {
        let before = std::mem::replace(&mut *lock(&self.token), Token::Notified);
        // After the lock is released: otherwise the thread would wake only to wait for it.
        match (before, &self.interrupt) {
            (Token::Waiting, _) => self.changed.notify_one(),
            (Token::Polling, Some(interrupt)) => interrupt.interrupt(),
            _ => {}
        }
    }

    fn wait<'a>(&self, token: MutexGuard<'a, Token>, remaining: Duration) -> MutexGuard<'a, Token> {
        self.changed
            .wait_timeout(token, remaining)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .0
    }
}

/// Returns the time until a deadline, and `None` once it has passed. In loom it always has passed.
fn remaining(deadline: Instant) -> Option<Duration> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    (!cfg!(loom) && !remaining.is_zero()).then_some(remaining)
}
