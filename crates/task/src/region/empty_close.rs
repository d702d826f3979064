//! Closes that ask for nothing, in one step.
//!
//! Most regions end with nothing left in them. The law then takes them through all their states
//! without asking the host for anything but a release of nothing. That is always the same way from
//! the same word to the same word, so that it is gone once, and known from then on.

use asx_kernel::journal::EventKind;
use asx_kernel::region::{Duty, RegionState, RegionWord};

use super::{Inner, Region};

/// The word of a region that ends with nothing left in it, and the one it comes to.
#[derive(Debug)]
pub(crate) struct EmptyCloseFastPath {
    ended: RegionWord,
    closed: RegionWord,
}

impl EmptyCloseFastPath {
    /// As the law says.
    pub(crate) fn new() -> EmptyCloseFastPath {
        let mut word = RegionWord::default();
        word.end();
        let ended = word;
        while word.advance() != Duty::Closed {
            word.released();
        }
        EmptyCloseFastPath { ended, closed: word }
    }

    /// Closes a region that ends with nothing left in it and holds nothing: whether it is one.
    #[inline]
    pub(crate) fn close(&self, word: &mut RegionWord) -> bool {
        let empty = *word == self.ended;
        if empty {
            *word = self.closed;
        }
        empty
    }
}

/// Whether a region has nothing to do but to wait: for what lives inside, or for its author.
#[inline]
fn waits(word: &RegionWord) -> bool {
    let lives = word.live_tasks() > 0 || word.open_children() > 0;
    let goes_on = word.state() == RegionState::Open && !word.is_ending();
    goes_on || (lives && word.state() != RegionState::Closing)
}

impl Region {
    /// Has the region, whose lock is held, go on as far as nothing has to be done for it: what has
    /// to be then.
    #[inline]
    pub(super) fn advance(&self, inner: &mut Inner) -> Duty {
        if waits(&inner.word) {
            return Duty::Wait;
        }
        // Shortcut: nobody wants to know of the steps, and nothing is held.
        let is_quiet = !self.core.recording() && inner.resources.is_none();
        if is_quiet && self.core.straight.close(&mut inner.word) {
            return Duty::Closed;
        }
        self.advance_by_steps(inner)
    }

    fn advance_by_steps(&self, inner: &mut Inner) -> Duty {
        loop {
            let from = inner.word.state();
            let duty = inner.word.advance();
            let to = inner.word.state();
            if from != to {
                self.note(EventKind::RegionMoved { from, to });
            }
            match duty {
                Duty::Moved => {}
                // Shortcut: nothing is held.
                Duty::Release if inner.resources.is_none() => inner.word.released(),
                duty => return duty,
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Every word that a history of a few events can lead to.
    #[test]
    fn what_waits_and_what_closes_at_once_is_as_step_by_step() {
        let events: [fn(&mut RegionWord); 10] = [
            RegionWord::task_added,
            RegionWord::task_done,
            RegionWord::child_added,
            RegionWord::child_done,
            RegionWord::finalizer_added,
            RegionWord::obligation_added,
            RegionWord::obligation_done,
            RegionWord::end,
            |word| _ = word.close(),
            |word| _ = word.advance(),
        ];
        let straight = EmptyCloseFastPath::new();
        let mut closed = 0;
        let mut waiting = 0;
        for history in 0..10_u32.pow(5) {
            let mut word = RegionWord::default();
            (0..5).for_each(|at| events[(history / 10_u32.pow(at) % 10) as usize](&mut word));
            let mut steps = word;
            let mut at_once = word;
            if waits(&word) {
                waiting += 1;
                assert_eq!((steps.advance(), steps), (Duty::Wait, word));
            }
            if !straight.close(&mut at_once) {
                assert_eq!(at_once, word);
                continue;
            }
            closed += 1;
            let mut duties = Vec::new();
            while steps.state() != RegionState::Closed {
                duties.push(steps.advance());
                steps.released();
            }
            assert_eq!(at_once, steps);
            let asks = duties.iter().filter(|duty| **duty != Duty::Moved);
            assert!(asks.eq(&[Duty::Release, Duty::Closed]), "{duties:?}");
        }
        assert!(closed > 100 && waiting > 100);
    }
}
