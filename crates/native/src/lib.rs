//! asx on threads.
//!
//! * [`ring`]: a worker's run queue, from which the others steal;
//! * [`idle`]: who sleeps, and who must be woken when there is work;
//! * [`parker`]: how one thread sleeps.

pub mod idle;
pub mod parker;
mod prim;
pub mod ring;
