//! Errors of reading and writing traces, with their positions.

use alloc::string::String;
use asx_kernel::status::{Coded, Status};
use core::fmt;

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In JSON lines; both numbers start at 1.
    Line {
        /// The line.
        line: u64,
        /// The byte in the line.
        column: u64,
    },
    /// In a binary trace: the offset in bytes.
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

/// The error that ends the reading of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The position in the file.
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
        /// The kinds of errors of reading and writing traces.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ErrorKind {
            $($(#[doc = $doc])* $variant $({
                $(#[doc = concat!("The ", stringify!($field), ".")] $field: $type,)*
            })?,)*
        }

        impl ErrorKind {
            /// A stable name for programs.
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
    Magic = "magic", "not a trace: neither JSON lines nor the binary format";
    /// The first bytes are those of a format that a trace may be wrapped in.
    Wrapped { what: &'static str } = "magic", "not a trace: it begins with {what}";
    /// This build does not support the version.
    Version { version: u64 } = "version",
        "format version {version} is not supported: this build reads version 2; record the \
        run again";
    /// The run was checked against another contract, or another version of it.
    Contract { contract: String } = "contract",
        "the trace was recorded under the contract `{contract}`, but this build has \
        `asx-semantics-1`";
    /// The file ends before its end record is complete.
    Truncated = "truncated", "the trace ends early: no complete end record";
    /// There is data after the end record.
    AfterEnd = "after_end", "there is data after the end record";
    /// The end record was written, or a record was refused.
    Closed = "closed", "the writer is closed: the end record was written, or a write failed";
    /// A block is damaged.
    Checksum { block: u64 } = "checksum", "block {block} is damaged: wrong checksum";
    /// The syntax of the codec is violated.
    Syntax { wanted: &'static str } = "syntax", "expected {wanted}";
    /// A text is not valid UTF-8.
    Utf8 = "utf8", "invalid UTF-8";
    /// A limit is exceeded.
    Limit { what: &'static str, max: usize } = "limit", "{what}: more than {max}";
    /// Unknown kind of record.
    UnknownRecord { name: String } = "unknown_record", "unknown record `{name}`";
    /// Unknown kind of event.
    UnknownKind { name: String } = "unknown_kind", "unknown kind of event `{name}`";
    /// A required field is missing.
    MissingField { field: &'static str } = "missing_field", "the field `{field}` is missing";
    /// The record does not have this field.
    UnknownField { field: String } = "unknown_field", "this record has no field `{field}`";
    /// A name occurs twice.
    DuplicateField { field: String } = "duplicate_field", "duplicate field `{field}`";
    /// A value has the wrong type.
    Type { field: String, wanted: &'static str } = "type", "`{field}` must be {wanted}";
    /// The field does not allow this word.
    Word { field: &'static str, word: String } = "word", "`{field}` cannot be `{word}`";
    /// A number is out of range.
    Range { field: &'static str } = "range", "`{field}` is out of range";
    /// A reference to a text that was not defined.
    Reference { number: u64 } = "reference", "text number {number} is not defined";
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
