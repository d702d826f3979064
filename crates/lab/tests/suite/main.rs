//! The lab, one module per subject.
//!
//! One binary: linking a test takes longer than running it.

mod apart;
mod bugs;
mod by_law;
mod circles;
mod classes;
mod disturbances;
mod faults;
mod foreign_wakers;
mod grain;
mod guided;
mod large;
#[path = "../../../native/tests/suite/common/limited.rs"]
mod limited;
mod limits;
mod local;
mod observers;
mod program;
mod report;
mod schedules;
mod strategies;
mod telling;
mod unreduced;
mod varied;
mod walks;
