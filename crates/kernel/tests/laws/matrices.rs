//! The state machines, pair by pair and event by event, against tables written out here.

mod budget;
mod cascade;
mod journal;
mod lifecycle;
mod quiescence;
mod words;
