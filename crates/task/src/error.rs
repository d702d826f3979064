//! Why something was refused: one small error for each area. Nothing has changed when one of these
//! is returned. Each maps to its code in the [registry](asx_kernel::status).

use std::fmt;

use asx_kernel::status::{Coded, Status};

/// A scope did not take something in.
///
/// ```
/// # use asx::{AdmissionError, Scope};
/// fn register(s: &Scope<()>) {
///     match s.defer(async |_cx| println!("closed")) {
///         Ok(()) => {}
///         Err(AdmissionError::Closing | AdmissionError::Closed) => println!("too late"),
///         Err(refused) => println!("{refused}"),
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdmissionError {
    /// The scope is closing: what is inside may end, nothing new may begin.
    Closing,
    /// The scope is closed.
    Closed,
    /// The scope is open, and refuses new work by its own rule.
    GateShut,
    /// A limit of the scope or of the runtime is reached.
    LimitReached,
}

impl AdmissionError {
    /// The error for what a scope answered when it was asked to admit something.
    #[doc(hidden)]
    pub fn new(status: Status) -> AdmissionError {
        match status {
            Status::RegionNotOpen => AdmissionError::Closing,
            Status::AdmissionClosed => AdmissionError::GateShut,
            Status::ResourceExhausted => AdmissionError::LimitReached,
            status => {
                debug_assert_eq!(status, Status::RegionClosed, "no answer of an open scope");
                AdmissionError::Closed
            }
        }
    }
}

impl Coded for AdmissionError {
    fn status(&self) -> Status {
        match self {
            AdmissionError::Closing => Status::RegionNotOpen,
            AdmissionError::Closed => Status::RegionClosed,
            AdmissionError::GateShut => Status::AdmissionClosed,
            AdmissionError::LimitReached => Status::ResourceExhausted,
        }
    }
}

impl fmt::Display for AdmissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AdmissionError::Closing => "the scope is closing and takes nothing in",
            AdmissionError::Closed => "the scope is closed",
            AdmissionError::GateShut => "the scope refuses new work",
            AdmissionError::LimitReached => "a limit of the scope or runtime is reached",
        })
    }
}

impl std::error::Error for AdmissionError {}

impl From<AdmissionError> for Status {
    fn from(error: AdmissionError) -> Status {
        error.status()
    }
}

/// A task was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpawnError {
    /// The scope did not take it in. For a blocking job, a limit may also be that of threads.
    Refused(AdmissionError),
    /// It was to stay on a worker, and the thread is none of this runtime, or there is no worker
    /// of that number.
    NoSuchWorker,
}

impl SpawnError {
    pub(crate) fn new(status: Status) -> SpawnError {
        match status {
            Status::AffinityViolation => SpawnError::NoSuchWorker,
            status => SpawnError::Refused(AdmissionError::new(status)),
        }
    }
}

impl Coded for SpawnError {
    fn status(&self) -> Status {
        match self {
            SpawnError::Refused(refused) => refused.status(),
            SpawnError::NoSuchWorker => Status::AffinityViolation,
        }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Refused(refused) => refused.fmt(f),
            SpawnError::NoSuchWorker => f.write_str("no worker of this runtime to stay on"),
        }
    }
}

impl std::error::Error for SpawnError {}

impl From<SpawnError> for Status {
    fn from(error: SpawnError) -> Status {
        error.status()
    }
}

/// A finalizer was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FinalizerError {
    /// The finalizers of the scope have not begun.
    NotFinalizing,
    /// The scope is closed.
    Closed,
}

impl FinalizerError {
    pub(crate) fn new(status: Status) -> FinalizerError {
        match status {
            Status::InvalidTransition => FinalizerError::NotFinalizing,
            status => {
                debug_assert_eq!(status, Status::RegionClosed, "no answer to a finalizer");
                FinalizerError::Closed
            }
        }
    }
}

impl Coded for FinalizerError {
    fn status(&self) -> Status {
        match self {
            FinalizerError::NotFinalizing => Status::InvalidTransition,
            FinalizerError::Closed => Status::RegionClosed,
        }
    }
}

impl fmt::Display for FinalizerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FinalizerError::NotFinalizing => {
                "the scope is not running its finalizers: register this one with `Scope::defer`"
            }
            FinalizerError::Closed => "the scope is closed",
        })
    }
}

impl std::error::Error for FinalizerError {}

impl From<FinalizerError> for Status {
    fn from(error: FinalizerError) -> Status {
        error.status()
    }
}

/// A task was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelError {
    /// As many cancelled tasks are queued as [`Limits::cancel_queue`](crate::Limits::cancel_queue)
    /// allows.
    LimitReached,
}

impl CancelError {
    pub(crate) fn new(status: Status) -> CancelError {
        debug_assert_eq!(status, Status::ResourceExhausted, "no answer to a cancel");
        CancelError::LimitReached
    }
}

impl Coded for CancelError {
    fn status(&self) -> Status {
        Status::ResourceExhausted
    }
}

impl fmt::Display for CancelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cancel queue is full: `Limits::cancel_queue` is reached")
    }
}

impl std::error::Error for CancelError {}

impl From<CancelError> for Status {
    fn from(error: CancelError) -> Status {
        error.status()
    }
}

/// An obligation was not resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObligationError {
    /// It was committed or aborted before.
    AlreadyResolved,
    /// The scope has closed meanwhile, and has recorded it as leaked.
    Leaked,
    /// The scope is closed.
    Closed,
}

impl ObligationError {
    pub(crate) fn new(status: Status) -> ObligationError {
        match status {
            Status::ObligationAlreadyResolved => ObligationError::AlreadyResolved,
            Status::ObligationLeaked => ObligationError::Leaked,
            status => {
                debug_assert_eq!(status, Status::RegionClosed, "no answer of an obligation");
                ObligationError::Closed
            }
        }
    }
}

impl Coded for ObligationError {
    fn status(&self) -> Status {
        match self {
            ObligationError::AlreadyResolved => Status::ObligationAlreadyResolved,
            ObligationError::Leaked => Status::ObligationLeaked,
            ObligationError::Closed => Status::RegionClosed,
        }
    }
}

impl fmt::Display for ObligationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ObligationError::AlreadyResolved => "the obligation was resolved before",
            ObligationError::Leaked => "the obligation is recorded as leaked",
            ObligationError::Closed => "the scope of the obligation is closed",
        })
    }
}

impl std::error::Error for ObligationError {}

impl From<ObligationError> for Status {
    fn from(error: ObligationError) -> Status {
        error.status()
    }
}

/// There is no timer to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimerError {
    /// The task, or the part of it that asks, was asked to stop.
    Cancelled,
    /// The deadline, polls or cost of the task are used up.
    BudgetExhausted,
    /// The time is further away than the setting `max_timer_duration` allows: 7 days by default.
    TooFar,
    /// There are as many timers as there may be.
    LimitReached,
    /// The host denies this runtime its clock or its timer.
    NoClock,
    /// The runtime is gone.
    Closed,
}

impl TimerError {
    pub(crate) fn new(status: Status) -> TimerError {
        match status {
            Status::Cancelled => TimerError::Cancelled,
            Status::BudgetExhausted => TimerError::BudgetExhausted,
            Status::TimerDurationExceeded => TimerError::TooFar,
            Status::ResourceExhausted => TimerError::LimitReached,
            Status::CapabilityDenied => TimerError::NoClock,
            status => {
                debug_assert_eq!(status, Status::RegionClosed, "no answer of a timer wheel");
                TimerError::Closed
            }
        }
    }
}

/// Names the setting.
pub(crate) const TOO_FAR: &str =
    "the time is further away than `max_timer_duration` allows, which is 7 days unless set";

impl TimerError {
    /// The error for the status with which a wait was refused.
    pub(crate) fn of_refused_wait(status: Status) -> &'static TimerError {
        match TimerError::new(status) {
            TimerError::Cancelled => &TimerError::Cancelled,
            TimerError::BudgetExhausted => &TimerError::BudgetExhausted,
            TimerError::TooFar => &TimerError::TooFar,
            TimerError::LimitReached => &TimerError::LimitReached,
            TimerError::NoClock => &TimerError::NoClock,
            TimerError::Closed => &TimerError::Closed,
        }
    }
}

impl Coded for TimerError {
    fn status(&self) -> Status {
        match self {
            TimerError::Cancelled => Status::Cancelled,
            TimerError::BudgetExhausted => Status::BudgetExhausted,
            TimerError::TooFar => Status::TimerDurationExceeded,
            TimerError::LimitReached => Status::ResourceExhausted,
            TimerError::NoClock => Status::CapabilityDenied,
            TimerError::Closed => Status::RegionClosed,
        }
    }
}

impl fmt::Display for TimerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TimerError::Cancelled => "the task was asked to stop",
            TimerError::BudgetExhausted => "the budget of the task is used up",
            TimerError::TooFar => TOO_FAR,
            TimerError::LimitReached => "there are as many timers as there may be",
            TimerError::NoClock => "the host denies this runtime its clock or its timer",
            TimerError::Closed => "the runtime is gone",
        })
    }
}

impl std::error::Error for TimerError {}

impl From<TimerError> for Status {
    fn from(error: TimerError) -> Status {
        error.status()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Each error keeps the code it was made of: hosts and the corpus compare codes.
    #[test]
    fn an_error_keeps_its_code() {
        use Status::*;
        let scope = [RegionNotOpen, RegionClosed, AdmissionClosed, ResourceExhausted];
        for code in scope {
            assert_eq!(AdmissionError::new(code).status(), code);
            assert_eq!(SpawnError::new(code).status(), code);
        }
        assert_eq!(SpawnError::new(AffinityViolation), SpawnError::NoSuchWorker);
        assert_eq!(SpawnError::NoSuchWorker.status(), AffinityViolation);
        for code in [InvalidTransition, RegionClosed] {
            assert_eq!(FinalizerError::new(code).status(), code);
        }
        assert_eq!(CancelError::new(ResourceExhausted).status(), ResourceExhausted);
        for code in [ObligationAlreadyResolved, ObligationLeaked, RegionClosed] {
            assert_eq!(ObligationError::new(code).status(), code);
        }
        let timer = [Cancelled, BudgetExhausted, TimerDurationExceeded, ResourceExhausted];
        for code in timer.into_iter().chain([CapabilityDenied, RegionClosed]) {
            assert_eq!(TimerError::new(code).status(), code);
        }
    }

    #[test]
    fn every_error_says_something_else() {
        let admission = [
            AdmissionError::Closing,
            AdmissionError::Closed,
            AdmissionError::GateShut,
            AdmissionError::LimitReached,
        ];
        let mut texts: Vec<String> = admission.iter().map(ToString::to_string).collect();
        texts.push(SpawnError::NoSuchWorker.to_string());
        assert_eq!(SpawnError::Refused(AdmissionError::Closed).to_string(), texts[1]);
        let count = texts.len();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), count);
    }
}
