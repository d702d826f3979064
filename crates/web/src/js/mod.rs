//! The real thing.
