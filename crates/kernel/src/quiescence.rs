//! quiescence
