//! How one thread sleeps until another wakes it, or until some time has passed.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::prim::{Condvar, Mutex, MutexGuard, lock};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a thread that sleeps in a call of the operating system is woken: see [`Parker::park_in`].
pub trait Interrupt: Debug + Send + Sync {
    /// Ends the sleep, or the next one if none is under way. One too many does no harm.
    fn interrupt(&self);
}

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
    interrupt: Option<Arc<dyn Interrupt>>,
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
    /// None, and a thread sleeps in [`Parker::park_in`]: it has to be interrupted.
    Polling,
    Given,
}

impl Parker {
    /// Where a thread may also [sleep elsewhere](Parker::park_in), out of which this gets it.
    pub fn with_interrupt(interrupt: Arc<dyn Interrupt>) -> Parker {
        Parker { interrupt: Some(interrupt), ..Parker::default() }
    }

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

    /// Sleeps in `wait`, which ends when it is interrupted, or for reasons of its own. `wait` is
    /// not called if there was a wakeup before. One thread at a time, and only with an
    /// [`Interrupt`].
    pub fn park_in(&self, wait: impl FnOnce()) -> Woken {
        debug_assert!(self.interrupt.is_some(), "nothing would end the sleep");
        let was_given = {
            let mut token = lock(&self.token);
            let was_given = *token == Token::Given;
            *token = if was_given { Token::None } else { Token::Polling };
            was_given
        };
        if was_given {
            return Woken::Notified;
        }
        wait();
        match std::mem::take(&mut *lock(&self.token)) {
            Token::Given => Woken::Notified,
            _ => Woken::TimedOut,
        }
    }

    /// Wakes the thread that sleeps here, or that will.
    pub fn unpark(&self) {
        let before = std::mem::replace(&mut *lock(&self.token), Token::Given);
        // After the lock is released, or the thread would wake only to wait for it.
        match (before, &self.interrupt) {
            (Token::Awaited, _) => self.given.notify_one(),
            (Token::Polling, Some(interrupt)) => interrupt.interrupt(),
            _ => {}
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
