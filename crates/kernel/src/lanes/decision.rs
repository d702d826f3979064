//! What goes into a scheduler and what comes out: tokens, sources, tickets, decisions.

use super::{EntryId, Lane, Place};
use crate::digest::digest_words;
use crate::ids::TaskId;

/// What waits in the lanes: something that can be named in the decision hash.
pub trait Token {
    /// The id that goes into the hash.
    fn word(&self) -> u64;

    /// Whether what waits at this place can still be run. A dead entry is set aside when its turn
    /// comes, and uses up no turn.
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
    /// The queue all workers share.
    Global,
    /// A worker's own queue; a worker that does not exist means the global one.
    Local(usize),
}

/// Names an entry of a scheduler; stale once the entry was dispatched or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The queue it waits in.
    pub source: Source,
    /// The entry there.
    pub entry: EntryId,
}

/// Where a dispatched entry came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The global queue.
    Global,
    /// The worker's own queue.
    Local,
    /// Another worker's queue.
    Stolen(usize),
}

/// One dispatch and how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<T> {
    /// Who dispatches.
    pub worker: usize,
    /// The lane it waited in.
    pub lane: Lane,
    /// The queue it waited in.
    pub source: Origin,
    /// Cancel work over its limit, for want of anything else.
    pub fallback: bool,
    /// The worker's cancel streak before this dispatch.
    pub streak: u32,
    /// The cancel-streak limit in force.
    pub limit: u32,
    /// The decision's number: 1, 2, ..
    pub seq: u64,
    /// The decision's link in the chain.
    pub hash: u64,
    /// What is dispatched.
    pub token: T,
}

/// The hash chain over decisions: each link covers its predecessor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionChain {
    /// How many decisions were made.
    pub seq: u64,
    /// The last link; 0 before the first decision.
    pub hash: u64,
}

impl DecisionChain {
    /// Adds a decision: the link is the digest of previous link, number, lane rank, token, streak
    /// before and limit.
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
