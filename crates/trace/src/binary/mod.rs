//! The compact codec: blocks of records, each block with a checksum.
//!
//! ```text
//! file   = "ASXT" version block*
//! block  = length payload checksum          length: varint, checksum: 8 bytes, little endian
//! record = tag field*                       a record never crosses the end of its block
//! ```
//!
//! Numbers are LEB128 varints. An event is written as a difference from the previous one: one byte
//! says which ids are present and whether `seq` and `time` are as expected. A text is written in
//! full once, and by its number afterwards. A block's checksum covers the previous checksum too, so
//! removed, moved and repeated blocks are detected.

mod read;
mod write;

pub(crate) use read::BinaryReader;
pub(crate) use write::BinaryWriter;

use crate::fields::Tag;
use asx_kernel::digest::Digest;

/// The first bytes; the version follows.
pub(crate) const MAGIC: [u8; 4] = *b"ASXT";

/// A block is closed as soon as it has this many bytes.
const BLOCK: usize = 4096;

/// Texts of up to `SHORT` bytes get numbers, up to `NUMBERED` texts.
const SHORT: usize = 64;
const NUMBERED: usize = 4096;

/// Bits of an event's first byte, above those of its four ids: an explicit `seq` or `time` follows.
const OTHER_SEQ: u8 = 0x10;
const OTHER_TIME: u8 = 0x20;

/// The tags of all items except events. The tag of an event is the code of its kind.
const TAGS: [(u8, Tag); 6] = [
    (0xf0, Tag::Header),
    (0xf1, Tag::Choice),
    (0xf2, Tag::Label),
    (0xf3, Tag::Host),
    (0xf4, Tag::Mark),
    (0xf5, Tag::End),
];

/// Computes a block's checksum, given the previous block's.
fn checksum(before: u64, payload: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.word(before).bytes(payload);
    digest.value()
}
