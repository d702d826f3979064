//! Further chapters of the book; the first ones are on the [first page](crate).
//!
//! * [`from_tokio`]: the same programs with tokio and with asx
//! * [`foreign_futures`]: how foreign futures take part in cancels and timeouts
//! * [`helpers`]: writing helper functions that take closures, and the existing ones

pub mod foreign_futures;
pub mod from_tokio;
pub mod helpers;
