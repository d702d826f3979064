//! Chapters of the book that stand on their own; the first ones are on the [first page](crate).
//!
//! * [`from_tokio`]: programs side by side, for those who know tokio
//! * [`foreign_futures`]: futures of other crates, and what cancels mean to them
//! * [`helpers`]: helpers of your own that take closures, and those that are there

pub mod foreign_futures;
pub mod from_tokio;
pub mod helpers;
