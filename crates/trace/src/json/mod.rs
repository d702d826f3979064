//! JSON lines: one object per line, for people and for tools that read JSON.
//!
//! The reader accepts the subset of JSON that the writer produces: an object of texts, whole
//! numbers, booleans, nulls, and at most one level of nested objects of these. It therefore needs
//! no recursion, and memory for one line only.

mod parse;
mod read;
mod write;

pub(crate) use read::JsonReader;
pub(crate) use write::JsonWriter;
