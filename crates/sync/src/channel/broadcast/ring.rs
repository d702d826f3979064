//! The messages of a broadcast, numbered in the order of sending, and who has yet to see them.
//!
//! Used under a lock, so it calls nobody: messages to be dropped are handed out. Messages are
//! shared, so that nobody clones one under the lock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::TryListenError;
use crate::channel::line::Line;

pub(in crate::channel) struct Ring<T> {
    capacity: usize,
    /// The messages somebody has yet to see, oldest first, at most `capacity`. Who has seen one
    /// has seen all before it, so those that everybody has seen are at the front.
    messages: VecDeque<Message<T>>,
    /// The number of the message at the front.
    first: u64,
    pub(super) publishers: usize,
    pub(super) subscribers: usize,
    /// Subscribers that wait for a message.
    pub(in crate::channel) line: Line,
    /// Publishers that wait for the last subscriber to go.
    pub(super) closed: Line,
}

/// A value that several subscribers have yet to see. Each but the last clones it, in turns, so that
/// it need not be `Sync`: nobody but who clones it holds its lock.
pub(in crate::channel) struct Common<T>(Arc<Mutex<T>>);

impl<T> Common<T> {
    pub(super) fn new(value: T) -> Self {
        Common(Arc::new(Mutex::new(value)))
    }

    fn share(&self) -> Self {
        Common(self.0.clone())
    }

    /// The value, if nobody else has it.
    pub(super) fn into_inner(self) -> Option<T> {
        let value = Arc::into_inner(self.0)?;
        // A clone that panicked has not changed the value.
        Some(value.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Clone> Common<T> {
    /// The value, or a clone of it if others have it as well.
    pub(in crate::channel) fn unwrap_or_clone(self) -> T {
        match Arc::try_unwrap(self.0) {
            Ok(value) => value.into_inner().unwrap_or_else(PoisonError::into_inner),
            Err(shared) => shared.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

struct Message<T> {
    value: Common<T>,
    /// How many subscribers have yet to see it.
    unseen: usize,
}

impl<T> Ring<T> {
    /// A ring with one publisher and one subscriber.
    pub(super) fn new(capacity: usize) -> Self {
        let messages = VecDeque::new();
        let line = Line::default();
        let closed = Line::default();
        Ring { capacity, messages, first: 0, publishers: 1, subscribers: 1, line, closed }
    }

    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    pub(super) fn closed(&mut self) -> &mut Line {
        &mut self.closed
    }

    /// The number of the next message to be sent.
    pub(super) fn end(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// How many messages are kept.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Adds a message for everybody who listens: the one that made room for it, to be dropped.
    pub(super) fn push(&mut self, value: Common<T>) -> Option<Common<T>> {
        self.messages.push_back(Message { value, unseen: self.subscribers });
        (self.messages.len() > self.capacity).then(|| self.pop()).flatten()
    }

    /// The message with the number `next`, which moves on behind it. Who comes too late for some
    /// learns how many, and goes on with the oldest that is left.
    pub(in crate::channel) fn take(&mut self, next: &mut u64) -> Result<Common<T>, TryListenError> {
        if *next < self.first {
            let missed = self.first - std::mem::replace(next, self.first);
            return Err(TryListenError::Lagged(missed));
        }
        let at = (*next - self.first) as usize;
        let Some(message) = self.messages.get_mut(at) else {
            let gone = self.publishers == 0;
            return Err(if gone { TryListenError::Disconnected } else { TryListenError::Empty });
        };
        *next += 1;
        message.unseen -= 1;
        if message.unseen > 0 {
            return Ok(message.value.share());
        }
        Ok(self.pop().expect("the last to see a message sees the oldest"))
    }

    /// A subscriber that has seen all before `next` is gone: the messages that only it had yet to
    /// see, to be dropped.
    pub(super) fn remove_subscriber(&mut self, next: u64) -> Vec<Common<T>> {
        self.subscribers -= 1;
        let seen = next.saturating_sub(self.first) as usize;
        self.messages.iter_mut().skip(seen).for_each(|message| message.unseen -= 1);
        let seen_by_all = self.messages.iter().take_while(|message| message.unseen == 0).count();
        (0..seen_by_all).filter_map(|_| self.pop()).collect()
    }

    fn pop(&mut self) -> Option<Common<T>> {
        let message = self.messages.pop_front()?;
        self.first += 1;
        Some(message.value)
    }
}
