//! obligation
