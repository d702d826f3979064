//! Conversion of slots to events: assigns numbers, times, the decision chain and the digest.

use asx_kernel::digest::Digest;
use asx_kernel::journal::{Event, EventKind, Subject};
use asx_kernel::lanes::DecisionChain;
use asx_kernel::time::Time;

use super::slot::{self, Slot, Wide};

/// The accumulated state of the events so far.
#[derive(Clone)]
pub(super) struct Fold {
    digest: Digest,
    chain: DecisionChain,
    /// The number of events.
    pub(super) seq: u64,
    time: u64,
}

impl Fold {
    pub(super) const fn new() -> Fold {
        let chain = DecisionChain { seq: 0, hash: 0 };
        Fold { digest: Digest::new(), chain, seq: 0, time: 0 }
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Adds the events of `slots`, in the order of their stamps.
    pub(super) fn add(&mut self, mut slots: Vec<Slot>, wide: &[Wide], mut each: impl FnMut(Event)) {
        // The sort is stable: events of one thread keep their order where stamps are equal.
        slots.sort_by_key(slot::stamp);
        for mut slot in slots {
            if let Some(wide_index) = slot::wide_index(&mut slot) {
                let (time, subject, kind) = wide[*wide_index as usize];
                each(self.event(time, subject, kind));
                continue;
            }
            let time = slot::time(&slot);
            slot::read(&slot, |subject, kind| each(self.event(time, subject, kind)));
        }
    }

    /// Adds one event.
    pub(super) fn event(&mut self, time: u64, subject: Subject, kind: EventKind) -> Event {
        // Each thread reads the clock only now and then, so a thread's time may lag behind.
        self.time = self.time.max(time);
        let kind = self.with_chain_position(subject, kind);
        let event = Event { seq: self.seq, time: Time::from_nanos(self.time), subject, kind };
        self.seq += 1;
        event.absorb(&mut self.digest);
        event
    }

    /// Fills in the position in the decision chain, if the event is a decision.
    fn with_chain_position(&mut self, subject: Subject, kind: EventKind) -> EventKind {
        let EventKind::Decision { worker, lane, cancel_streak, limit, fallback, .. } = kind else {
            return kind;
        };
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        self.chain.extend(lane, subject.task.unwrap_or(0), count(cancel_streak), count(limit));
        let DecisionChain { seq: decision_seq, hash: decision_hash } = self.chain;
        EventKind::Decision {
            worker,
            lane,
            decision_seq,
            decision_hash,
            cancel_streak,
            limit,
            fallback,
        }
    }

    /// Skips a number of events, and of dispatches among them. They are counted, but they are not
    /// part of the digest and of the chain's hash.
    pub(super) fn skip(&mut self, (events, dispatches): (u64, u64)) {
        self.chain.seq += dispatches;
        self.seq += events;
    }
}
