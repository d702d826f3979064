//! The laws of asx, as pure code.
//!
//! The kernel decides *whether* and *which*: legality of a transition, the outcome, who is woken,
//! which lane goes first. A host decides *where* and *when*: memory, locks, threads, clock,
//! randomness. Nothing here reads a clock, allocates an id from a global, or calls back.
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

/// What the contract that this code follows is called.
pub const CONTRACT_ID: &str = "asx-semantics";

/// Its version: another number is another meaning of some run.
pub const CONTRACT_VERSION: u32 = 1;

/// Both, as traces and parity records have them. A trace of another contract is refused with
/// [`TraceVersion`](status::Status::TraceVersion).
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
    fn the_contract_is_its_id_and_its_version() {
        let both = std::format!("{}-{}", super::CONTRACT_ID, super::CONTRACT_VERSION);
        assert_eq!(super::CONTRACT, both);
    }
}
