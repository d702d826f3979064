//! Governors: what a worker is advised to do first.

use std::time::Duration;

use asx_kernel::lanes::{Pending, Suggestion};

/// What a governor is told when a worker decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The lanes in which the worker sees work.
    pub pending: Pending,
    /// How many entries wait in the cancel lane, as the worker sees it.
    pub cancel: usize,
    /// How many entries wait in the timed lane, as the worker sees it.
    pub timed: usize,
    /// How long it is until the nearest deadline among those; zero if it has passed.
    pub nearest: Option<Duration>,
    /// How many regions of the runtime were cancelled and are not closed yet.
    pub closing: usize,
    /// How many obligations are outstanding in those regions.
    pub obligations: usize,
}

/// Advises workers which lane to prefer. It is asked when there is a choice between lanes, and
/// changes the order of dispatches, never what is legal.
///
/// A [`Suggestion`] is a governor that always says the same; [`Adaptive`] looks at what there is.
///
/// ```
/// use asx::{Governor, Runtime, Suggestion, View};
/// struct Punctual;
/// impl Governor for Punctual {
///     fn suggest(&self, view: View) -> Suggestion {
///         match view.timed {
///             0 => Suggestion::NoPreference,
///             _ => Suggestion::MeetDeadlines,
///         }
///     }
/// }
/// let runtime = Runtime::builder().governor(Punctual).build()?;
/// let plain = Runtime::builder().governor(Suggestion::NoPreference).build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Governor: Send + Sync + 'static {
    /// What to prefer now. A panic counts as no preference.
    fn suggest(&self, view: View) -> Suggestion;
}

impl Governor for Suggestion {
    fn suggest(&self, _: View) -> Suggestion {
        *self
    }
}

/// The governor a runtime has unless another is set. Of these, the first that holds:
///
/// 1. a deadline is nearer than [`near`](Adaptive::near): deadlines first;
/// 2. more than [`obligations`](Adaptive::obligations) are outstanding in closing regions: these
///    get on with it, since others may wait for what they hold;
/// 3. more than [`closing`](Adaptive::closing) regions close, or more than
///    [`crowd`](Adaptive::crowd) tasks wait for their turn to stop: these get on with it;
/// 4. no preference.
///
/// ```
/// use asx::{Adaptive, Runtime};
/// let patient = Adaptive { closing: 1000, crowd: 1000, ..Adaptive::default() };
/// let runtime = Runtime::builder().governor(patient).build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// How near a deadline is to be met first; 10 ms.
    pub near: Duration,
    /// Obligations outstanding in closing regions beyond which cancels go on for longer; 16.
    pub obligations: usize,
    /// Closing regions beyond which cancels go on for longer; 16.
    pub closing: usize,
    /// Cancel entries beyond which cancels go on for longer; 32.
    pub crowd: usize,
}

impl Default for Adaptive {
    fn default() -> Self {
        Adaptive { near: Duration::from_millis(10), obligations: 16, closing: 16, crowd: 32 }
    }
}

impl Governor for Adaptive {
    fn suggest(&self, view: View) -> Suggestion {
        if view.nearest.is_some_and(|nearest| nearest < self.near) {
            Suggestion::MeetDeadlines
        } else if view.obligations > self.obligations {
            Suggestion::DrainObligations
        } else if view.closing > self.closing || view.cancel > self.crowd {
            Suggestion::DrainRegions
        } else {
            Suggestion::NoPreference
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggest(view: View) -> Suggestion {
        Adaptive::default().suggest(view)
    }

    #[test]
    fn near_deadlines_come_first() {
        let at = |nearest| View { nearest: Some(nearest), cancel: 99, closing: 99, ..busy() };
        assert_eq!(suggest(at(Duration::ZERO)), Suggestion::MeetDeadlines);
        assert_eq!(suggest(at(Duration::from_nanos(9_999_999))), Suggestion::MeetDeadlines);
        assert_eq!(suggest(at(Duration::from_millis(10))), Suggestion::DrainRegions);
        assert_eq!(suggest(View { timed: 9, ..busy() }), Suggestion::NoPreference);
    }

    #[test]
    fn obligations_of_closing_regions_come_next() {
        let with = |obligations| View { obligations, closing: 99, ..busy() };
        assert_eq!(suggest(with(16)), Suggestion::DrainRegions);
        assert_eq!(suggest(with(17)), Suggestion::DrainObligations);
    }

    #[test]
    fn many_closing_regions_or_a_crowd_of_cancels_are_drained() {
        assert_eq!(suggest(View { closing: 16, ..busy() }), Suggestion::NoPreference);
        assert_eq!(suggest(View { closing: 17, ..busy() }), Suggestion::DrainRegions);
        assert_eq!(suggest(View { cancel: 32, ..busy() }), Suggestion::NoPreference);
        assert_eq!(suggest(View { cancel: 33, ..busy() }), Suggestion::DrainRegions);
    }

    #[test]
    fn a_suggestion_is_a_governor_that_never_changes_its_mind() {
        for suggestion in Suggestion::ALL {
            assert_eq!(suggestion.suggest(busy()), suggestion);
        }
    }

    fn busy() -> View {
        let pending = Pending { cancel: true, timed: true, ready: true };
        View { pending, ..View::default() }
    }
}
