//! The context that the code of a task is given, and the cancels that reach the caller.

pub(crate) mod cancel_view;
pub(crate) mod cx;
pub(crate) mod node;
