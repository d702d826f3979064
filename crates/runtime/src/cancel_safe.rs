//! Futures that lose nothing when dropped.

use std::future::Future;

/// A future that can be dropped at any point before it is ready without losing anything: no
/// message, no grant, no notification. At most a place in a line is given up.
pub trait CancelSafe: Future {}
