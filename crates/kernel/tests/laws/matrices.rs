//! The state machines: every transition and event, compared with explicit tables.

mod budget;
mod cascade;
mod journal;
mod lifecycle;
mod quiescence;
mod words;
