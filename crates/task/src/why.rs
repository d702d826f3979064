//! Why something is cancelled, as the one who cancels says it.

use std::sync::Arc;
use std::time::Duration;

use asx_kernel::cancel::{Kind, Reason};

use crate::region::Region;

/// A kind of cancel and a word for people, and how much cleanup it allows. Where and when it begins
/// is added when it is used.
///
/// ```
/// use asx::Why;
/// use asx::cancel::Kind;
/// assert_eq!(Why::from("enough"), Why::from(Kind::User).message("enough"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    pub(crate) kind: Kind,
    message: Option<Arc<str>>,
    /// How many polls of cleanup it allows.
    pub(crate) polls: Option<u32>,
    /// How long that may take.
    pub(crate) time: Option<Duration>,
}

impl Why {
    /// The same with a word for people.
    #[must_use]
    pub fn message(mut self, message: impl Into<Arc<str>>) -> Why {
        self.message = Some(message.into());
        self
    }

    /// The same, with so many polls of cleanup for each task that is asked to stop, whatever is set
    /// for their scope; `u32::MAX` for any number. 0 counts as 1.
    ///
    /// Of the task alone if one task is cancelled: scopes inside it have what is set for them.
    #[must_use]
    pub fn cleanup_polls(mut self, polls: u32) -> Why {
        self.polls = Some(polls.max(1));
        self
    }

    /// The same, with so much time for cleanup. It takes the place of polls, unless
    /// [these](Why::cleanup_polls) are stated as well. What still lives afterwards is ended by
    /// force, also what has not looked at its cancel. (On a page, if a scope is cancelled.)
    ///
    /// ```
    /// use asx::{Cancelled, Cx, Scope, Why};
    /// use std::time::Duration;
    /// async fn give_up(cx: &Cx, scope: &Scope<Cancelled>) {
    ///     scope.cancel(Why::from("enough").cleanup_time(Duration::from_secs(5)));
    /// }
    /// ```
    #[must_use]
    pub fn cleanup_time(mut self, time: Duration) -> Why {
        self.time = Some(time);
        self
    }

    /// The reason, beginning in a region, now.
    pub(crate) fn reason(self, region: &Region) -> Reason {
        let reason = region.reason(self.kind);
        match self.message {
            Some(message) => reason.with_message(message),
            None => reason,
        }
    }
}

impl From<Kind> for Why {
    fn from(kind: Kind) -> Self {
        Why { kind, message: None, polls: None, time: None }
    }
}

impl From<&str> for Why {
    fn from(message: &str) -> Self {
        Why::from(Kind::User).message(message)
    }
}

impl From<String> for Why {
    fn from(message: String) -> Self {
        Why::from(Kind::User).message(message)
    }
}
