//! A task: its cell, the word in it, its polls, its context and what comes of it.
//!
//! | | |
//! |---|---|
//! | [`cell`] | one allocation: header, word, future, result; entries; all `unsafe` about tasks |
//! | [`poll`] | one poll from its begin to its end, wakes, the end by force |
//! | [`context`] | which task this thread polls, what the poll may still do, the nodes around |
//! | [`cx`] | the context that the task's code is given |
//! | [`budget`] | what bounds a task: a deadline, polls, a cost |
//! | [`outcome`] | what a task comes to |
//! | [`audit`] | who owns references to tasks and regions, written down in the audit build |

pub mod audit;
pub(crate) mod budget;
pub(crate) mod cell;
pub(crate) mod context;
pub(crate) mod cx;
pub(crate) mod holding;
pub(crate) mod outcome;
pub(crate) mod poll;
