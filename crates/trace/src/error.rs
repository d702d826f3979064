//! What can be wrong with a file, and where.

use alloc::string::String;
use asx_kernel::status::{Coded, Status};
use core::fmt;

/// Where something stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In JSON lines; both from 1.
    Line {
        /// The line.
        line: u64,
        /// The byte in the line.
        column: u64,
    },
    /// In a binary trace: this many bytes from its start.
    Byte(u64),
    /// Not in a file.
    Nowhere,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line { line, column } => write!(f, "line {line}, column {column}"),
            Place::Byte(offset) => write!(f, "byte {offset}"),
            Place::Nowhere => f.write_str("in memory"),
        }
    }
}

/// A trace cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Where.
    pub place: Place,
    /// The number of the record that could not be read; 0 is the header.
    pub record: u64,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (record {}): {}", self.place, self.record, self.kind)
    }
}

impl core::error::Error for Error {}

impl Coded for Error {
    fn status(&self) -> Status {
        self.kind.status()
    }
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $variant:ident $({ $($field:ident: $type:ty),* })?
        = $code:literal, $text:literal;)*) => {
        /// What is wrong with a trace, or with what was to become one.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ErrorKind {
            $($(#[doc = $doc])* $variant $({
                $(#[doc = concat!("The ", stringify!($field), ".")] $field: $type,)*
            })?,)*
        }

        impl ErrorKind {
            /// A word for programs.
            pub const fn code(&self) -> &'static str {
                match self { $(ErrorKind::$variant { .. } => $code,)* }
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(ErrorKind::$variant $({ $($field),* })? => write!(f, $text),)* }
            }
        }
    };
}

kinds! {
    /// The source or the sink failed.
    Io { message: String } = "io", "{message}";
    /// The first bytes belong to neither codec.
    Magic = "magic", "this is no trace: neither JSON lines nor the binary format";
    /// The first bytes are those of something that a trace may be inside.
    Wrapped { what: &'static str } = "magic", "this is no trace: it begins with {what}";
    /// A version this build does not know.
    Version { version: u64 } = "version",
        "version {version} of the format is not known here: this build reads version 2; record the \
        run again";
    /// The run was held against another contract, or another version of it.
    Contract { contract: String } = "contract",
        "it was recorded under the contract `{contract}`, and this build has `asx-semantics-1`";
    /// The file ends before its end record is complete.
    Truncated = "truncated", "the trace ends early: no complete end record";
    /// Something stands after the end record.
    AfterEnd = "after_end", "something follows the end record";
    /// The trace was ended, or a record was refused.
    Closed = "closed", "nothing can be written any more";
    /// A block is damaged.
    Checksum { block: u64 } = "checksum", "block {block} is damaged: its checksum is another";
    /// This is not how the codec writes.
    Syntax { wanted: &'static str } = "syntax", "expected {wanted}";
    /// Bytes that are no text.
    Utf8 = "utf8", "this is not UTF-8";
    /// Something is larger than it may be.
    Limit { what: &'static str, max: usize } = "limit", "{what}: more than {max}";
    /// There is no such kind of record.
    UnknownRecord { name: String } = "unknown_record", "there is no record `{name}`";
    /// There is no such kind of event.
    UnknownKind { name: String } = "unknown_kind", "there is no kind of event `{name}`";
    /// A field that must be there is not.
    MissingField { field: &'static str } = "missing_field", "the field `{field}` is missing";
    /// A field that this record does not have.
    UnknownField { field: String } = "unknown_field", "this record has no field `{field}`";
    /// A name is there twice.
    DuplicateField { field: String } = "duplicate_field", "`{field}` is there twice";
    /// A value of another type.
    Type { field: String, wanted: &'static str } = "type", "`{field}` must be {wanted}";
    /// A word the field does not have.
    Word { field: &'static str, word: String } = "word", "`{field}` cannot be `{word}`";
    /// A number out of range.
    Range { field: &'static str } = "range", "`{field}` is out of range";
    /// A text that was never given.
    Reference { number: u64 } = "reference", "there is no text number {number}";
}

impl Coded for ErrorKind {
    fn status(&self) -> Status {
        match self {
            ErrorKind::Truncated => Status::TraceTruncated,
            ErrorKind::Version { .. } | ErrorKind::Contract { .. } => Status::TraceVersion,
            _ => Status::TraceMalformed,
        }
    }
}

impl core::error::Error for ErrorKind {}
