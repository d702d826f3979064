//! Why something is cancelled, as the one who cancels says it.

use std::sync::Arc;

use asx_kernel::cancel::{Kind, Reason};

use crate::region::Region;

/// A kind of cancel and a word for people. Where and when it begins is added when it is used.
///
/// ```
/// use asx_runtime::Why;
/// use asx_kernel::cancel::Kind;
/// assert_eq!(Why::from("enough"), Why::from(Kind::User).message("enough"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    pub(crate) kind: Kind,
    message: Option<Arc<str>>,
}

impl Why {
    /// The same with a word for people.
    #[must_use]
    pub fn message(mut self, message: impl Into<Arc<str>>) -> Why {
        self.message = Some(message.into());
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
        Why { kind, message: None }
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
