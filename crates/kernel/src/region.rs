//! The region's word law: five states, five legal steps, and the duties of closing.
//!
//! ```text
//!  Open --> Closing --+--> Draining --+--> Finalizing --> Closed
//!                     |               |
//!                     +---------------+   (straight, when no child lives)
//! ```
//! [`RegionWord`] counts the live contents and returns, step by step, the host's next [`Duty`].
//! Each duty is returned exactly once, so several threads may ask.

use crate::named::ensure;
use crate::status::Status;

named_enum! {
    /// The state of a region.
    #[derive(Default, PartialOrd, Ord)]
    pub enum RegionState {
        /// Admits work.
        #[default]
        Open = 0,
        /// Admits nothing new; the contents continue.
        Closing = 1,
        /// All contents are cancelled and have not all ended.
        Draining = 2,
        /// The contents have ended; finalizers run, then the remaining resources are released.
        Finalizing = 3,
        /// Closed.
        Closed = 4,
    }
}

impl RegionState {
    /// Checks that the transition `self -> to` exists, regardless of the contents.
    pub const fn check(self, to: RegionState) -> Result<(), Status> {
        use RegionState::*;
        match (self, to) {
            (Open, Closing)
            | (Closing, Draining | Finalizing)
            | (Draining, Finalizing)
            | (Finalizing, Closed) => Ok(()),
            _ => Err(Status::InvalidTransition),
        }
    }

    /// Checks that `operation` is admitted in this state, and otherwise returns the status to
    /// report.
    pub const fn admit(self, operation: Operation) -> Result<(), Status> {
        use RegionState::*;
        match (operation, self) {
            (Operation::Create | Operation::Defer | Operation::ArmTimer, Open) => Ok(()),
            (Operation::ArmFinalizerTimer, Open | Finalizing) => Ok(()),
            (Operation::SpawnFinalizer, Finalizing) => Ok(()),
            (Operation::SpawnFinalizer, Closed) => Err(Status::RegionClosed),
            (Operation::SpawnFinalizer, _) => Err(Status::InvalidTransition),
            (Operation::UseChannel, Open | Closing | Draining) => Ok(()),
            (Operation::UseChannel, _) => Err(Status::Disconnected),
            (Operation::Resolve | Operation::UseStorage, Closed) => Err(Status::RegionClosed),
            (Operation::Resolve | Operation::UseStorage | Operation::Query, _) => Ok(()),
            _ => Err(Status::RegionNotOpen),
        }
    }
}

named_enum! {
    /// An operation that needs admission by a region.
    pub enum Operation {
        /// Spawn a task, open a child region, reserve an obligation, create a region-scoped
        /// channel.
        Create,
        /// Register a finalizer.
        Defer,
        /// Spawn a finalizer task directly.
        SpawnFinalizer,
        /// Arm a region-scoped timer.
        ArmTimer,
        /// Arm a region-scoped timer from a finalizer task.
        ArmFinalizerTimer,
        /// Use an existing region-scoped channel.
        UseChannel,
        /// Resolve an obligation.
        Resolve,
        /// Use the region's storage.
        UseStorage,
        /// Query the state.
        Query,
    }
}

/// The host's next action for a closing region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nothing until something inside changes.
    Wait,
    /// The state changed; nothing else to do for this step.
    Moved,
    /// The state changed to Draining: cancel everything inside.
    CancelChildren,
    /// Start the finalizer registered last; it already counts as a live task.
    StartFinalizer,
    /// Cancel the region's timers, then abort its permits and drain its queues, then call
    /// [`released`](RegionWord::released).
    Release,
    /// Turn outstanding obligations into leaks, then call
    /// [`leaks_accounted`](RegionWord::leaks_accounted).
    AccountLeaks,
    /// The region is Closed: reclaim it, wake its waiters, notify its parent.
    Closed,
}

/// The progress of the last phase of closing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Finalizers,
    Releasing,
    Released,
    Leaking,
}

/// A region's state and the counts that its law needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionWord {
    state: RegionState,
    stage: Stage,
    ending: bool,
    tasks: u32,
    children: u32,
    finalizers: u32,
    obligations: u32,
}

impl RegionWord {
    getters! {
        /// The state.
        state(&self) -> RegionState = self.state;
        /// Tasks not Completed.
        live_tasks(&self) -> u32 = self.tasks;
        /// Child regions not Closed.
        open_children(&self) -> u32 = self.children;
        /// Obligations still Reserved.
        outstanding(&self) -> u32 = self.obligations;
        /// Finalizers registered and not yet started.
        finalizers(&self) -> u32 = self.finalizers;
        /// Whether the body of the scope has ended.
        is_ending(&self) -> bool = self.ending;
    }

    /// A task was admitted. A task that is admitted while finalizing may acquire resources again,
    /// so the release starts over after it.
    pub fn task_added(&mut self) {
        self.tasks += 1;
        self.stage = Stage::Finalizers;
    }

    /// A task has completed.
    pub fn task_done(&mut self) {
        self.tasks = self.tasks.saturating_sub(1);
    }

    /// A child region was opened.
    pub fn child_added(&mut self) {
        self.children += 1;
    }

    /// A child region has closed.
    pub fn child_done(&mut self) {
        self.children = self.children.saturating_sub(1);
    }

    /// A finalizer was registered.
    pub fn finalizer_added(&mut self) {
        self.finalizers += 1;
    }

    /// An obligation was reserved.
    pub fn obligation_added(&mut self) {
        self.obligations += 1;
    }

    /// An obligation was resolved or leaked.
    pub fn obligation_done(&mut self) {
        self.obligations = self.obligations.saturating_sub(1);
    }

    /// The body of the scope has ended: close when nothing lives inside. This is not a cancel:
    /// until then the region stays Open, and its children may still spawn.
    pub fn end(&mut self) {
        self.ending = true;
    }

    /// Ends admission and begins the close. Returns false if it has begun before.
    pub fn close(&mut self) -> bool {
        let first = self.state == RegionState::Open;
        if first {
            self.state = RegionState::Closing;
        }
        first
    }

    /// Returns the result that an explicit transition would have now. Nothing changes.
    pub fn check(&self, to: RegionState) -> Result<(), Status> {
        self.state.check(to)?;
        let closed = to == RegionState::Closed;
        let emptied = closed || to == RegionState::Finalizing;
        let incomplete = (emptied && self.lives()) || (closed && self.finalizers > 0);
        ensure(!incomplete, Status::IncompleteChildren)?;
        ensure(!closed || self.obligations == 0, Status::UnresolvedObligations)
    }

    /// Takes the next possible step of the close.
    #[inline]
    pub fn advance(&mut self) -> Duty {
        use RegionState::*;
        match self.state {
            Closing if self.lives() => self.go(Draining, Duty::CancelChildren),
            _ if self.lives() => Duty::Wait,
            Open if self.ending => self.go(Closing, Duty::Moved),
            Open | Closed => Duty::Wait,
            Closing | Draining => self.go(Finalizing, Duty::Moved),
            Finalizing => self.finalize(),
        }
    }

    fn finalize(&mut self) -> Duty {
        match self.stage {
            Stage::Finalizers if self.finalizers > 0 => {
                self.finalizers -= 1;
                self.tasks += 1;
                Duty::StartFinalizer
            }
            Stage::Finalizers => {
                self.stage = Stage::Releasing;
                Duty::Release
            }
            Stage::Releasing | Stage::Leaking => Duty::Wait,
            Stage::Released if self.obligations > 0 => {
                self.stage = Stage::Leaking;
                Duty::AccountLeaks
            }
            Stage::Released => self.go(RegionState::Closed, Duty::Closed),
        }
    }

    #[inline]
    fn lives(&self) -> bool {
        self.tasks > 0 || self.children > 0
    }

    fn go(&mut self, to: RegionState, duty: Duty) -> Duty {
        self.state = to;
        duty
    }

    /// The host has performed [`Duty::Release`].
    pub fn released(&mut self) {
        if self.stage == Stage::Releasing {
            self.stage = Stage::Released;
        }
    }

    /// The host has performed [`Duty::AccountLeaks`]: no obligations are outstanding.
    pub fn leaks_accounted(&mut self) {
        if self.stage == Stage::Leaking {
            self.obligations = 0;
            self.stage = Stage::Released;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_names_and_bits() {
        let names = ["Open", "Closing", "Draining", "Finalizing", "Closed"];
        assert_eq!(RegionState::ALL.map(RegionState::name), names);
        assert_eq!(RegionState::ALL.map(RegionState::mask), [1, 2, 4, 8, 16]);
    }

    #[test]
    fn counts_change_by_one_and_stop_at_zero() {
        let mut word = RegionWord::default();
        let counts =
            |w: &RegionWord| (w.live_tasks(), w.open_children(), w.finalizers(), w.outstanding());
        assert_eq!(counts(&word), (0, 0, 0, 0));
        for _ in 0..2 {
            word.task_added();
        }
        for _ in 0..3 {
            word.child_added();
        }
        for _ in 0..4 {
            word.finalizer_added();
        }
        for _ in 0..5 {
            word.obligation_added();
        }
        assert_eq!(counts(&word), (2, 3, 4, 5));
        word.task_done();
        word.child_done();
        word.obligation_done();
        assert_eq!(counts(&word), (1, 2, 4, 4));
        let mut empty = RegionWord::default();
        empty.task_done();
        empty.child_done();
        empty.obligation_done();
        assert_eq!(empty, RegionWord::default());
        assert!(!empty.is_ending());
        empty.end();
        assert!(empty.is_ending());
    }

    #[test]
    fn each_duty_is_returned_once_and_waits_for_its_report() {
        let mut word = RegionWord::default();
        word.finalizer_added();
        word.obligation_added();
        assert_eq!(word.advance(), Duty::Wait);
        word.close();
        assert_eq!(word.advance(), Duty::Moved);
        let early = word;
        word.released();
        word.leaks_accounted();
        assert_eq!(word, early);
        assert_eq!(word.advance(), Duty::StartFinalizer);
        assert_eq!((word.live_tasks(), word.finalizers()), (1, 0));
        assert_eq!(word.advance(), Duty::Wait);
        word.task_done();
        assert_eq!([word.advance(), word.advance()], [Duty::Release, Duty::Wait]);
        word.leaks_accounted();
        assert_eq!((word.advance(), word.outstanding()), (Duty::Wait, 1));
        word.released();
        assert_eq!([word.advance(), word.advance()], [Duty::AccountLeaks, Duty::Wait]);
        word.released();
        assert_eq!((word.advance(), word.outstanding()), (Duty::Wait, 1));
        word.leaks_accounted();
        assert_eq!((word.state(), word.outstanding()), (RegionState::Finalizing, 0));
        assert_eq!([word.advance(), word.advance()], [Duty::Closed, Duty::Wait]);
        assert_eq!(word.state(), RegionState::Closed);
    }

    #[test]
    fn a_task_or_a_child_alone_prevents_finalizing() {
        type Change = fn(&mut RegionWord);
        let keep: [(Change, Change); 2] = [
            (RegionWord::task_added, RegionWord::task_done),
            (RegionWord::child_added, RegionWord::child_done),
        ];
        for (added, done) in keep {
            let mut word = RegionWord::default();
            added(&mut word);
            word.end();
            assert_eq!(word.advance(), Duty::Wait);
            word.close();
            assert_eq!([word.advance(), word.advance()], [Duty::CancelChildren, Duty::Wait]);
            assert_eq!(word.state(), RegionState::Draining);
            done(&mut word);
            assert_eq!((word.advance(), word.state()), (Duty::Moved, RegionState::Finalizing));
            added(&mut word);
            assert_eq!(word.advance(), Duty::Wait);
            done(&mut word);
            assert_eq!(word.advance(), Duty::Release);
        }
    }
}
