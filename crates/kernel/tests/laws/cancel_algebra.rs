//! The algebra of outcomes, reasons, chains and witnesses, over every combination.

mod chain;
mod outcome;
mod strengthen;
mod witness;

use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::ids::{RegionId, TaskId};
use asx_kernel::time::Time;

fn region(ordinal: u64) -> RegionId {
    RegionId(Key { generation: ordinal, index: 0 })
}

fn task(ordinal: u64) -> TaskId {
    TaskId(Key { generation: ordinal, index: 0 })
}

fn reason(kind: Kind, nanos: u64) -> Reason {
    Reason::new(kind, region(1), Time::from_nanos(nanos))
}
