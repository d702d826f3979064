//! Things that are due at some time.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::time::Time;

use super::timer::Timer;
use crate::{CancelSafe, Cancelled, Cx, footprint};

/// Values that each come out when they are due: caches, retries, timeouts of many things at once.
/// One timer is armed, for the one that is due next.
///
/// ```
/// use asx::prelude::*;
/// use asx::time::DelayQueue;
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     let start = cx.now();
///     let mut sessions = DelayQueue::new();
///     let ann = sessions.insert(start + 60.minutes(), "ann");
///     sessions.insert(start + 2.millis(), "bob");
///     sessions.insert(start + 1.millis(), "eve");
///     assert_eq!(sessions.next(cx).await?, Some("eve"));
///     assert!(sessions.reset(ann, start)); // earlier, or later
///     assert_eq!(sessions.next(cx).await?, Some("ann"));
///     assert_eq!(sessions.next(cx).await?, Some("bob"));
///     assert_eq!(sessions.next(cx).await?, None);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct DelayQueue<T> {
    /// By when they are due, and then in the order of insertion.
    values: BTreeMap<(Time, Delayed), T>,
    due: HashMap<Delayed, Time>,
    inserted: u64,
}

/// A value in a [`DelayQueue`]; no other one of the same queue is ever known by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Delayed(u64);

impl<T> DelayQueue<T> {
    /// A queue with nothing in it.
    pub fn new() -> Self {
        DelayQueue { values: BTreeMap::new(), due: HashMap::new(), inserted: 0 }
    }

    /// Puts in a value that is due at a time; one that has passed is due at once.
    pub fn insert(&mut self, due: Time, value: T) -> Delayed {
        let key = Delayed(self.inserted);
        self.inserted += 1;
        self.values.insert((due, key), value);
        self.due.insert(key, due);
        key
    }

    /// Takes a value out, if it has not come out before.
    pub fn remove(&mut self, key: Delayed) -> Option<T> {
        let due = self.due.remove(&key)?;
        self.values.remove(&(due, key))
    }

    /// Lets a value be due at another time: whether it is still there.
    pub fn reset(&mut self, key: Delayed, due: Time) -> bool {
        let Some(known) = self.due.get_mut(&key) else { return false };
        let old = std::mem::replace(known, due);
        if let Some(value) = self.values.remove(&(old, key)) {
            self.values.insert((due, key), value);
        }
        true
    }

    /// When a value is due, if it is still there.
    pub fn due(&self, key: Delayed) -> Option<Time> {
        self.due.get(&key).copied()
    }

    /// When the next value is due, if there is one.
    pub fn next_due(&self) -> Option<Time> {
        self.values.first_key_value().map(|((due, _), _)| *due)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        self.due.clear();
        self.values.clear();
    }

    /// Waits for the next value that is due; `None` at once if there is none. Of several that are
    /// due, the one that was due first comes first.
    ///
    /// Cancel-checked, and cancel-safe: a value is taken when this is done, or not at all.
    #[track_caller]
    pub fn next<'a>(&'a mut self, cx: &'a Cx) -> NextDue<'a, T> {
        let due = self.next_due().unwrap_or(Time::ZERO);
        NextDue { queue: self, timer: Timer::new(cx, due, false), at: Location::caller() }
    }

    fn pop(&mut self) -> Option<T> {
        let ((_, key), value) = self.values.pop_first()?;
        self.due.remove(&key);
        Some(value)
    }
}

impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        DelayQueue::new()
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.next_due();
        f.debug_struct("DelayQueue").field("len", &self.len()).field("next", &next).finish()
    }
}

/// The future of [`DelayQueue::next`]; gives `Result<Option<T>, Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
pub struct NextDue<'a, T> {
    queue: &'a mut DelayQueue<T>,
    timer: Timer<&'a Cx>,
    at: &'static Location<'static>,
}

impl<T> Future for NextDue<'_, T> {
    type Output = Result<Option<T>, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let NextDue { queue, timer, at } = &mut *self;
        ready!(timer.poll_proceed(context))?;
        if queue.is_empty() {
            return Poll::Ready(Ok(None));
        }
        match timer.poll(context.waker()) {
            Poll::Ready(over) => Poll::Ready(over.map(|()| queue.pop())),
            Poll::Pending => {
                timer.waits(at, context.waker());
                Poll::Pending
            }
        }
    }
}

impl<T> CancelSafe for NextDue<'_, T> {}

impl<T> fmt::Debug for NextDue<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NextDue({})", self.timer.deadline())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_moved_by_their_keys() {
        let mut queue = DelayQueue::default();
        let at = Time::from_millis;
        let one = queue.insert(at(20), "one");
        let two = queue.insert(at(10), "two");
        let three = queue.insert(at(10), "three");
        assert_eq!(
            (queue.len(), queue.next_due(), queue.due(one)),
            (3, Some(at(10)), Some(at(20)))
        );
        assert!(queue.reset(one, at(5)));
        assert_eq!((queue.next_due(), queue.pop()), (Some(at(5)), Some("one")));
        assert_eq!(
            (queue.remove(one), queue.reset(one, at(1)), queue.due(one)),
            (None, false, None)
        );
        assert!(queue.reset(two, at(10)), "it keeps its turn");
        assert_eq!(queue.remove(three), Some("three"));
        assert_eq!((queue.pop(), queue.pop(), queue.is_empty()), (Some("two"), None, true));
        queue.insert(at(1), "four");
        queue.clear();
        assert!(queue.is_empty() && queue.due.is_empty());
        assert_eq!(format!("{queue:?}"), "DelayQueue { len: 0, next: None }");
    }
}
