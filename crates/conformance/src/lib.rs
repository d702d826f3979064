//! Fixtures as data and one interpreter.
