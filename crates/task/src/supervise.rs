//! Tasks that are started again when they fail.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::cancel::Reason;
use asx_kernel::time::Time;

use crate::raw::outcome::{Outcome, TaskError};
use crate::region::Policy;
use crate::scope::Scope;
use crate::{Cx, Task};

/// How often, and how soon, a task that failed is started again.
///
/// ```
/// use asx::Restart;
/// use std::time::Duration;
///
/// let calm = Restart::times(3, Duration::from_secs(60))
///     .backoff(Duration::from_millis(100), Duration::from_secs(5));
/// assert_eq!((calm.max, calm.first), (3, Duration::from_millis(100)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// So many restarts are allowed ...
    pub max: u32,
    /// ... in any span of this length; the failure after them is the supervisor's own.
    pub within: Duration,
    /// How long to wait before the first restart; twice as long before each further one in the
    /// same span.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
}

impl Restart {
    /// At once, but at most `max` times in any span of the length `within`. With
    /// [`Duration::MAX`] that is at most `max` times at all.
    pub const fn times(max: u32, within: Duration) -> Restart {
        Restart { max, within, first: Duration::ZERO, most: Duration::ZERO }
    }

    /// Not at once: after `first`, then twice that and so on, but never longer than `most`.
    pub const fn backoff(self, first: Duration, most: Duration) -> Restart {
        Restart { first, most, ..self }
    }

    /// How long to wait before the restart that follows `recent` others.
    fn wait(&self, recent: u32) -> Duration {
        let factor = 1_u32.checked_shl(recent).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.most)
    }
}

impl<E: Send + 'static> Scope<E> {
    /// Keeps a task running: `body` makes what it runs, and when that ends with an error or a
    /// panic, everything it started is waited for and a new one starts under the same name. An
    /// end with `Ok` is the end.
    ///
    /// A failure too many is a failure of the scope, with the error or panic that came last. A
    /// cancel, of the scope or through the handle, ends the task and the restarts.
    pub fn supervise<M, F, B>(
        &self,
        name: impl Into<Arc<str>>,
        restart: Restart,
        body: M,
    ) -> Task<(), E>
    where
        M: FnMut() -> F + Send + 'static,
        F: FnOnce(Cx) -> B + 'static,
        B: Future<Output = Result<(), E>> + Send + 'static,
    {
        let name = name.into();
        self.task(format!("supervisor of {name}"))
            .spawn(move |cx| supervise(cx, name, restart, body))
    }
}

async fn supervise<M, F, B, E>(
    cx: Cx,
    name: Arc<str>,
    restart: Restart,
    mut body: M,
) -> Result<(), E>
where
    M: FnMut() -> F + Send + 'static,
    F: FnOnce(Cx) -> B + 'static,
    B: Future<Output = Result<(), E>> + Send + 'static,
    E: Send + 'static,
{
    let mut recent = Recent::default();
    loop {
        // A scope for each life, so that nothing of one is left in the next.
        let life = cx
            .scope_with(Policy::CollectAll)
            .run(async |s: Scope<E>| Ok(s.task(name.clone()).spawn(|cx| body()(cx)).await));
        let outcome: Outcome<(), E> = life.await.and_then(|ended| ended);
        let stop = match outcome {
            Ok(()) => return Ok(()),
            Err(TaskError::Cancelled(cancelled)) => {
                // Whichever of the two was cancelled, both are now: what this returns is ignored.
                if cx.checkpoint().is_ok() {
                    cx.cancel_self(cancelled.reason());
                }
                return Ok(());
            }
            Err(stop) => stop,
        };
        let wait = match recent.count(cx.now(), restart) {
            Some(before) => restart.wait(before),
            None => return fail(stop),
        };
        if cx.sleep(wait).await.is_err() {
            return Ok(());
        }
    }
}

impl Cx {
    /// The task ends cancelled, for this reason, whatever it returns.
    fn cancel_self(&self, reason: &Reason) {
        let task = self.task();
        let cleanup = reason.kind.cleanup();
        task.region().cancel_task(task, &Arc::new(reason.clone()), cleanup);
        let _ = self.checkpoint();
    }
}

/// Fails as the task did that is not started again.
fn fail<E>(stop: TaskError<E>) -> Result<(), E> {
    match stop {
        TaskError::Err(error) => Err(error),
        TaskError::Panicked(panic) => panic.resume(),
        TaskError::Cancelled(_) => Ok(()),
    }
}

/// When there were restarts, as far back as it matters.
#[derive(Default)]
struct Recent(VecDeque<Time>);

impl Recent {
    /// Notes a restart: how many there were in the same span before it, or `None` if it is one too
    /// many.
    fn count(&mut self, now: Time, restart: Restart) -> Option<u32> {
        while self.0.front().is_some_and(|at| now - *at >= restart.within) {
            self.0.pop_front();
        }
        let before = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        if before >= restart.max {
            return None;
        }
        self.0.push_back(now);
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let ms = Duration::from_millis;
        let restart = Restart::times(9, ms(1)).backoff(ms(10), ms(70));
        let waits = [0, 1, 2, 3, 40, u32::MAX].map(|recent| restart.wait(recent));
        assert_eq!(waits, [ms(10), ms(20), ms(40), ms(70), ms(70), ms(70)]);
        assert_eq!(Restart::times(9, ms(1)).wait(5), Duration::ZERO);
    }

    #[test]
    fn only_restarts_of_the_same_span_count() {
        let restart = Restart::times(2, Duration::from_millis(10));
        let at = Time::from_millis;
        let mut recent = Recent::default();
        let counts = [0, 5, 9, 10, 14, 15].map(|ms| recent.count(at(ms), restart));
        assert_eq!(counts, [Some(0), Some(1), None, Some(1), None, Some(1)]);
        let mut none = Recent::default();
        assert_eq!(none.count(at(0), Restart::times(0, Duration::MAX)), None);
    }
}
