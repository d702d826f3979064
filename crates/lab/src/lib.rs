//! The lab: concurrent programs run under control, one schedule after another.
//!
//! [`explore`] decides which schedule is next, keeps a log of what was decided, and makes a failing
//! schedule short. It knows nothing of futures: whoever runs the program asks it at every choice.

#![forbid(unsafe_code)]

pub mod explore;
