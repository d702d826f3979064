//! The input and output types of a scheduler: tokens, sources, tickets, decisions.

use super::{EntryId, Lane, Place};
use crate::digest::digest_words;
use crate::ids::TaskId;

/// An entry in the lanes, with an id for the decision hash.
pub trait Token {
    /// The id in the decision hash.
    fn word(&self) -> u64;

    /// Whether the entry at this place can still be run. A dead entry is set aside when it is
    /// chosen, and does not count as a dispatch.
    fn is_live(&self, _place: Place) -> bool {
        true
    }
}

impl Token for u64 {
    fn word(&self) -> u64 {
        *self
    }
}

impl Token for TaskId {
    fn word(&self) -> u64 {
        self.ordinal()
    }
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The queue that all workers share.
    Global,
    /// A worker's own queue. A worker that does not exist means the global queue.
    Local(usize),
}

/// Identifies an entry of a scheduler; stale once the entry was dispatched or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The queue of the entry.
    pub source: Source,
    /// The entry in that queue.
    pub entry: EntryId,
}

/// The queue from which an entry was dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The global queue.
    Global,
    /// The worker's own queue.
    Local,
    /// Another worker's queue.
    Stolen(usize),
}

/// A dispatch and its circumstances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<T> {
    /// The dispatching worker.
    pub worker: usize,
    /// The lane of the entry.
    pub lane: Lane,
    /// The queue of the entry.
    pub source: Origin,
    /// Whether this is cancel work above its limit, dispatched because no other work was found.
    pub fallback: bool,
    /// The worker's cancel streak before this dispatch.
    pub streak: u32,
    /// The cancel-streak limit in force.
    pub limit: u32,
    /// The number of the decision: 1, 2, ..
    pub seq: u64,
    /// The link of the decision in the hash chain.
    pub hash: u64,
    /// The dispatched entry.
    pub token: T,
}

/// The hash chain of decisions. Each link covers its predecessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionChain {
    /// The number of decisions.
    pub seq: u64,
    /// The last link; 0 before the first decision.
    pub hash: u64,
}

impl DecisionChain {
    /// Adds a decision. The link is the digest of the previous link, the number, the lane rank, the
    /// token, the streak before the decision and the limit.
    pub fn extend(&mut self, lane: Lane, token: u64, streak: u32, limit: u32) {
        self.seq += 1;
        let streak = u64::from(streak);
        let limit = u64::from(limit);
        self.hash = digest_words(&[self.hash, self.seq, lane as u64, token, streak, limit]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_covers_its_predecessor_and_every_field() {
        let mut chain = DecisionChain::default();
        chain.extend(Lane::Timed, 5, 6, 7);
        let first = digest_words(&[0, 1, 1, 5, 6, 7]);
        assert_eq!(chain, DecisionChain { seq: 1, hash: first });
        chain.extend(Lane::Ready, 8, 9, 10);
        let second = digest_words(&[first, 2, 2, 8, 9, 10]);
        assert_eq!(chain, DecisionChain { seq: 2, hash: second });
    }
}
