//! From slots to events: numbers, times, the chain of decisions and the digest come last.

use asx_kernel::digest::Digest;
use asx_kernel::journal::{Event, EventKind, Subject};
use asx_kernel::lanes::DecisionChain;
use asx_kernel::time::Time;

use super::slot::{self, Slot, Wide};

/// What the events so far add up to.
#[derive(Clone)]
pub(super) struct Fold {
    digest: Digest,
    chain: DecisionChain,
    /// How many there were.
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

    /// Adds what some slots say, in the order of their stamps.
    pub(super) fn add(&mut self, mut slots: Vec<Slot>, wide: &[Wide], mut each: impl FnMut(Event)) {
        // What one thread wrote is in order already, and stays so where stamps are equal.
        slots.sort_by_key(slot::stamp);
        for mut slot in slots {
            if let Some(place) = slot::place(&mut slot) {
                let (time, subject, kind) = wide[*place as usize];
                each(self.event(time, subject, kind));
                continue;
            }
            let time = slot::time(&slot);
            slot::read(&slot, |subject, kind| each(self.event(time, subject, kind)));
        }
    }

    /// Adds an event.
    pub(super) fn event(&mut self, time: u64, subject: Subject, kind: EventKind) -> Event {
        // Clocks are looked at now and then, by each thread for itself.
        self.time = self.time.max(time);
        let kind = self.linked(subject, kind);
        let event = Event { seq: self.seq, time: Time::from_nanos(self.time), subject, kind };
        self.seq += 1;
        event.absorb(&mut self.digest);
        event
    }

    /// With its place in the chain, if it is a decision.
    fn linked(&mut self, subject: Subject, kind: EventKind) -> EventKind {
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

    /// Leaves some events out, and so many dispatches among them: they are counted, but nobody will
    /// know what they said.
    pub(super) fn skip(&mut self, (events, dispatches): (u64, u64)) {
        self.chain.seq += dispatches;
        self.seq += events;
    }
}
