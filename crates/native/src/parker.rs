//! How one thread sleeps until another wakes it, or until some time has passed.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::prim::{Condvar, Mutex, MutexGuard, lock};
use std::time::{Duration, Instant};

/// Where one thread sleeps. A wakeup that comes before the sleep is kept: it ends the next one at
/// once. Several of them are one.
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
    given: Condvar,
}

/// What ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Another thread did, now or before the sleep began.
    Notified,
    /// The time is over.
    TimedOut,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Token {
    #[default]
    None,
    /// None, and a thread waits for it: only then is it worth a system call to tell.
    Awaited,
    Given,
}

impl Parker {
    /// Sleeps until [`unpark`](Parker::unpark), at most for the given time. One thread at a time.
    pub fn park(&self, timeout: Option<Duration>) -> Woken {
        // A time too far away to be told is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut token = lock(&self.token);
        let woken = loop {
            if *token == Token::Given {
                break Woken::Notified;
            }
            *token = Token::Awaited;
            token = match deadline {
                None => self.given.wait(token).unwrap_or_else(|poisoned| poisoned.into_inner()),
                Some(deadline) => match left(deadline) {
                    Some(left) => self.wait(token, left),
                    None => break Woken::TimedOut,
                },
            };
        };
        *token = Token::None;
        woken
    }

    /// Wakes the thread that sleeps here, or that will.
    pub fn unpark(&self) {
        let before = std::mem::replace(&mut *lock(&self.token), Token::Given);
        // After the lock is released, or the thread would wake only to wait for it.
        if before == Token::Awaited {
            self.given.notify_one();
        }
    }

    fn wait<'a>(&self, token: MutexGuard<'a, Token>, left: Duration) -> MutexGuard<'a, Token> {
        self.given.wait_timeout(token, left).unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }
}

/// How long it is until a deadline; `None` once it is over. A model has no time: it is always over.
fn left(deadline: Instant) -> Option<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    (!cfg!(loom) && !left.is_zero()).then_some(left)
}
