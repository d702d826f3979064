//! The browser host without a browser, one module per subject.
//!
//! One binary: linking a test takes longer than running it.

mod capabilities;
mod declarations;
mod fairness;
#[path = "../../../native/tests/suite/common/limited.rs"]
mod limited;
mod limits;
mod memory;
mod operations;
mod page;
