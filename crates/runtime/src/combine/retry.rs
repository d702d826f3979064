//! One attempt after the other.

use std::future::Future;
use std::time::Duration;

use asx_task::Cancelled;
use asx_task::Cx;

/// How often something is tried, and how long to wait in between.
///
/// The wait doubles with each attempt, up to the longest. Of each wait, half is by chance
/// ([`Cx::random`]), so that those who failed together do not come back together.
///
/// ```
/// use asx::Backoff;
/// use std::time::Duration;
///
/// let patient = Backoff::new(Duration::from_millis(50)).attempts(8);
/// let even = Backoff::new(Duration::from_secs(1)).factor(1).jitter(false);
/// assert_ne!(patient, even);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    wait: Duration,
    factor: u32,
    longest: Duration,
    attempts: u32,
    jitter: bool,
}

impl Backoff {
    /// Waits as long after the first attempt, twice as long after each further one, up to half a
    /// minute; five attempts in all.
    pub const fn new(first: Duration) -> Backoff {
        let longest = Duration::from_secs(30);
        Backoff { wait: first, factor: 2, longest, attempts: 5, jitter: true }
    }

    /// How many attempts there are in all; 0 counts as 1, `u32::MAX` is any number.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Backoff {
        self.attempts = attempts;
        self
    }

    /// By how much a wait is longer than the one before; 2 unless set.
    #[must_use]
    pub const fn factor(mut self, factor: u32) -> Backoff {
        self.factor = factor;
        self
    }

    /// How long a wait is at most; half a minute unless set.
    #[must_use]
    pub const fn longest(mut self, longest: Duration) -> Backoff {
        self.longest = longest;
        self
    }

    /// Whether half of each wait is by chance; true unless set.
    #[must_use]
    pub const fn jitter(mut self, jitter: bool) -> Backoff {
        self.jitter = jitter;
        self
    }

    /// The wait before the next attempt, if there is one.
    fn next(&mut self, cx: &Cx) -> Option<Duration> {
        match self.attempts {
            0 | 1 => return None,
            u32::MAX => {}
            _ => self.attempts -= 1,
        }
        let wait = self.wait.min(self.longest);
        self.wait = wait.saturating_mul(self.factor);
        if !self.jitter {
            return Some(wait);
        }
        let half = wait / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
        // The high bits of a product: as good as even.
        let chance = (u128::from(cx.random()) * (u128::from(nanos) + 1)) >> 64;
        Some(wait - half + Duration::from_nanos(chance as u64))
    }
}

/// Does something until it succeeds, or has failed as often as it may: its value, or the last
/// error.
///
/// A cancel ends it at once: in an attempt, if that looks for it, and in a wait. Then the error is
/// the cancel.
///
/// `op` is called for each attempt with the context that was given. It is the model for helpers of
/// your own that take a closure: `impl FnMut(&'a Cx) -> F`, with the lifetime of the context, where
/// a helper with `impl AsyncFn(&Cx)` could not be called in a task with a closure that borrows. The
/// book has [more](https://docs.rs/asx) on it.
///
/// ```
/// use asx::prelude::*;
/// use asx::{Backoff, retry};
/// use std::cell::Cell;
///
/// #[derive(Debug, PartialEq)]
/// enum AskError {
///     Cancelled,
///     Busy,
/// }
///
/// impl From<Cancelled> for AskError {
///     fn from(_: Cancelled) -> Self {
///         AskError::Cancelled
///     }
/// }
///
/// #[asx::main]
/// async fn main(cx: &Cx) {
///     let calls = Cell::new(0);
///     let answer = retry(cx, Backoff::new(1.millis()), async |_| {
///         calls.set(calls.get() + 1);
///         if calls.get() < 3 { Err(AskError::Busy) } else { Ok("at last") }
///     });
///     assert_eq!(answer.await, Ok("at last"));
/// }
/// ```
pub async fn retry<'a, M, F, T, E>(cx: &'a Cx, backoff: Backoff, op: M) -> Result<T, E>
where
    M: FnMut(&'a Cx) -> F,
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
{
    retry_if(cx, backoff, op, |_| true).await
}

/// [`retry`], after errors for which `again` holds; any other is the result.
pub async fn retry_if<'a, M, F, T, E, P>(
    cx: &'a Cx,
    mut backoff: Backoff,
    mut op: M,
    mut again: P,
) -> Result<T, E>
where
    M: FnMut(&'a Cx) -> F,
    F: Future<Output = Result<T, E>>,
    E: From<Cancelled>,
    P: FnMut(&E) -> bool,
{
    loop {
        cx.checkpoint()?;
        let error = match op(cx).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !again(&error) {
            return Err(error);
        }
        match backoff.next(cx) {
            Some(wait) => cx.sleep(wait).await?,
            None => return Err(error),
        }
    }
}
