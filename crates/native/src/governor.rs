//! Governors: advice for workers that choose between lanes.

use std::time::Duration;

use asx_kernel::lanes::{Pending, Suggestion};

/// The state that a governor sees when a worker decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The lanes in which the worker sees work.
    pub pending: Pending,
    /// The number of entries that the worker sees in the cancel lane.
    pub cancel: usize,
    /// The number of entries that the worker sees in the timed lane.
    pub timed: usize,
    /// The time until the nearest deadline among those; zero if it has passed.
    pub nearest: Option<Duration>,
    /// The number of regions of the runtime that were cancelled and are not closed yet.
    pub closing: usize,
    /// The number of obligations outstanding in those regions.
    pub obligations: usize,
}

/// Advises workers which lane to prefer. The advice changes the order of dispatches within the
/// limits of the scheduler, never what is legal.
///
/// A user-defined governor is called before every dispatch, the default one only if several lanes
/// have work. A [`Suggestion`] is a governor that always returns itself; [`Adaptive`] decides by
/// the state.
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
    /// Returns the current preference. A panic counts as no preference.
    fn suggest(&self, view: View) -> Suggestion;
}

impl Governor for Suggestion {
    fn suggest(&self, _: View) -> Suggestion {
        *self
    }
}

/// The default governor of a runtime. The first of these conditions that holds decides:
///
/// 1. A deadline is nearer than [`near`](Adaptive::near): deadlines first.
/// 2. More than [`obligations`](Adaptive::obligations) are outstanding in closing regions:
///    cancelled tasks first for longer, since others may wait for the resources that they hold.
/// 3. More than [`closing`](Adaptive::closing) regions are closing, or more than
///    [`crowd`](Adaptive::crowd) cancelled tasks wait for a dispatch: cancelled tasks first for
///    longer.
/// 4. Otherwise there is no preference.
///
/// ```
/// use asx::{Adaptive, Runtime};
/// let patient = Adaptive { closing: 1000, crowd: 1000, ..Adaptive::default() };
/// let runtime = Runtime::builder().governor(patient).build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adaptive {
    /// Deadlines nearer than this are met first. The default is 10 ms.
    pub near: Duration,
    /// Cancel streaks are longer with more outstanding obligations in closing regions than this.
    /// The default is 16.
    pub obligations: usize,
    /// Cancel streaks are longer with more closing regions than this. The default is 16.
    pub closing: usize,
    /// Cancel streaks are longer with more entries in the cancel lane than this. The default is 32.
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
    fn deadlines_that_are_near_have_precedence() {
        let at = |nearest| View { nearest: Some(nearest), cancel: 99, closing: 99, ..busy() };
        assert_eq!(suggest(at(Duration::ZERO)), Suggestion::MeetDeadlines);
        assert_eq!(suggest(at(Duration::from_nanos(9_999_999))), Suggestion::MeetDeadlines);
        assert_eq!(suggest(at(Duration::from_millis(10))), Suggestion::DrainRegions);
        assert_eq!(suggest(View { timed: 9, ..busy() }), Suggestion::NoPreference);
    }

    #[test]
    fn many_obligations_in_closing_regions_are_drained() {
        let with = |obligations| View { obligations, closing: 99, ..busy() };
        assert_eq!(suggest(with(16)), Suggestion::DrainRegions);
        assert_eq!(suggest(with(17)), Suggestion::DrainObligations);
    }

    #[test]
    fn many_closing_regions_or_cancel_entries_are_drained() {
        assert_eq!(suggest(View { closing: 16, ..busy() }), Suggestion::NoPreference);
        assert_eq!(suggest(View { closing: 17, ..busy() }), Suggestion::DrainRegions);
        assert_eq!(suggest(View { cancel: 32, ..busy() }), Suggestion::NoPreference);
        assert_eq!(suggest(View { cancel: 33, ..busy() }), Suggestion::DrainRegions);
    }

    #[test]
    fn a_suggestion_as_governor_returns_itself() {
        for suggestion in Suggestion::ALL {
            assert_eq!(suggestion.suggest(busy()), suggestion);
        }
    }

    fn busy() -> View {
        let pending = Pending { cancel: true, timed: true, ready: true };
        View { pending, ..View::default() }
    }
}
