//! Governors: what a worker is advised to do first.

use asx_kernel::lanes::{Pending, Suggestion};

/// What a governor is told when a worker decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The lanes in which the worker sees work.
    pub pending: Pending,
    /// How many entries wait in the cancel lane, as the worker sees it.
    pub cancel: usize,
    /// How many entries wait in the timed lane, as the worker sees it.
    pub timed: usize,
}

/// Advises workers which lane to prefer. It is asked when there is a choice between lanes, and
/// changes the order of dispatches, never what is legal.
///
/// ```
/// use asx_kernel::lanes::Suggestion;
/// use asx_native::{Governor, Runtime, View};
/// struct Punctual;
/// impl Governor for Punctual {
///     fn suggest(&self, _: View) -> Suggestion {
///         Suggestion::MeetDeadlines
///     }
/// }
/// let runtime = Runtime::builder().governor(Punctual).build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Governor: Send + Sync + 'static {
    /// What to prefer now.
    fn suggest(&self, view: View) -> Suggestion;
}

/// Meets deadlines while nobody is being cancelled, and lets regions that close get on with it when
/// much is.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    /// Cancel entries beyond which closing regions go first.
    pub crowd: usize,
}

impl Default for Adaptive {
    fn default() -> Self {
        Adaptive { crowd: 32 }
    }
}

impl Governor for Adaptive {
    fn suggest(&self, view: View) -> Suggestion {
        match view {
            View { cancel, .. } if cancel > self.crowd => Suggestion::DrainRegions,
            View { timed: 1.., .. } => Suggestion::MeetDeadlines,
            _ => Suggestion::NoPreference,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_adaptive_one_drains_a_crowd_and_else_meets_deadlines() {
        let view = |cancel, timed| View { pending: Pending::default(), cancel, timed };
        let suggest = |view| Adaptive::default().suggest(view);
        assert_eq!(suggest(view(0, 0)), Suggestion::NoPreference);
        assert_eq!(suggest(view(32, 1)), Suggestion::MeetDeadlines);
        assert_eq!(suggest(view(33, 1)), Suggestion::DrainRegions);
    }
}
