//! How a cancel reaches the code of a task: the nodes around what is polled ([`node`]), the look at
//! them from the inside out ([`view`]), and the wakers of what waits behind others' combinators
//! ([`wakers`]).

mod child;
pub(crate) mod node;
pub(crate) mod view;
pub(crate) mod wakers;

pub(crate) use child::is_child_waker;
pub use child::mark_child_waker;
