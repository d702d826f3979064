//! How large the parts of a trace may be. Readers refuse what is larger before they keep it,
//! writers before they write it.

use crate::error::ErrorKind;

/// Bounds on what one record may take.
///
/// ```
/// use asx_trace::Limits;
/// assert!(Limits::default().text <= Limits::default().line);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line of JSON, its end not counted.
    pub line: usize,
    /// Bytes of a block of the binary codec.
    pub block: usize,
    /// Bytes of a text: a name, a label, a message.
    pub text: usize,
    /// Pairs in a header's `meta` or in the fields of a host event.
    pub pairs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // A record of the most and longest pairs, every letter escaped, fits in a line.
        Limits { line: 4 << 20, block: 1 << 20, text: 4096, pairs: 64 }
    }
}

impl Limits {
    pub(crate) fn check(what: &'static str, size: usize, max: usize) -> Result<(), ErrorKind> {
        if size > max { Err(ErrorKind::Limit { what, max }) } else { Ok(()) }
    }
}
