//! Size limits. Readers refuse larger input before they store it, writers before they write it.

use crate::error::ErrorKind;

/// The maximal sizes of the parts of a record.
///
/// ```
/// use asx_trace::Limits;
/// assert!(Limits::default().text <= Limits::default().line);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a line of JSON, without the newline.
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
        // A record with the maximal number and size of pairs, all characters escaped, fits in a
        // line.
        Limits { line: 4 << 20, block: 1 << 20, text: 4096, pairs: 64 }
    }
}

impl Limits {
    pub(crate) fn check(what: &'static str, size: usize, max: usize) -> Result<(), ErrorKind> {
        if size > max { Err(ErrorKind::Limit { what, max }) } else { Ok(()) }
    }
}
