//! asx
pub use asx_kernel::cancel::Kind;
pub use asx_macros::main;
pub use asx_native::{Builder, Runtime};
pub use asx_runtime::time::Sleep;
pub use asx_runtime::*;
pub mod prelude {
    pub use asx_kernel::cancel::Kind;
    pub use asx_runtime::time::DurationExt;
    pub use asx_runtime::{
        Cancelled, Cx, Outcome, Scope, Stop, Task, channel, group, join, race, select, try_join,
    };
}
