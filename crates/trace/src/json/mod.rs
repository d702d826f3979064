//! JSON lines: one object per line, for people and for tools that know JSON.
//!
//! The reader takes the part of JSON that the writer needs and nothing else: objects of texts,
//! whole numbers, truth values and null, and in them at most one more object of those. So it needs
//! no recursion, and its memory is one line.

mod parse;
mod read;
mod write;

pub(crate) use read::JsonReader;
pub(crate) use write::JsonWriter;
