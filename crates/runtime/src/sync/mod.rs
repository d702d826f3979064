//! Locks and signals between tasks.
