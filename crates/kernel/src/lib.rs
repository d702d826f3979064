//! The laws of asx, as pure code.
//!
//! The kernel decides *whether* and *which*: the legality of a transition, the outcome, the task to
//! wake, the lane to dispatch from. A host decides *where* and *when*: memory, locks, threads,
//! clock, randomness. Nothing here reads a clock, allocates an id from a global, or calls back.
//!
//! Three kinds of module:
//!
//! * *word laws* ([`task`], [`region`], [`obligation`], [`budget`], [`outcome`], [`cancel`]): pure
//!   functions over small values;
//! * *structure laws* ([`channel`], [`wheel`], [`lanes`], [`pump`]): plain `&mut self` structures
//!   that take `now` as an argument and return effects;
//! * the *composition* ([`world`]): a single-threaded engine made of the above, the executable
//!   model of asx.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

/// The name of the contract that this crate implements.
pub const CONTRACT_ID: &str = "asx-semantics";

/// The version of the contract. Another version gives some run another meaning.
pub const CONTRACT_VERSION: u32 = 1;

/// The contract's name and version, as written in traces and parity records. A trace of another
/// contract is refused with [`TraceVersion`](status::Status::TraceVersion).
pub const CONTRACT: &str = "asx-semantics-1";

#[macro_use]
mod named;

pub mod arena;
pub mod budget;
pub mod cancel;
pub mod cascade;
pub mod channel;
pub mod choose;
pub mod digest;
pub mod handle;
pub mod ids;
pub mod io;
pub mod journal;
pub mod lanes;
pub mod obligation;
pub mod outcome;
pub mod pump;
mod queue;
pub mod quiescence;
pub mod region;
pub mod rng;
pub mod session;
pub mod sorted;
pub mod status;
pub mod task;
pub mod time;
pub mod wheel;
pub mod world;

#[cfg(test)]
mod tests {
    #[test]
    fn the_contract_combines_its_id_and_version() {
        let both = std::format!("{}-{}", super::CONTRACT_ID, super::CONTRACT_VERSION);
        assert_eq!(super::CONTRACT, both);
    }
}
