//! The compact codec: blocks of records, each block with a checksum.
//!
//! ```text
//! file   = "ASXT" version block*
//! block  = length payload checksum          length: varint, checksum: 8 bytes, little endian
//! record = tag field*                       a record never crosses the end of its block
//! ```
//!
//! Numbers are LEB128 varints. Events are written as a difference to the one before: one byte says
//! which ids there are and whether `seq` and `time` are as expected. Texts are written once and
//! then by their number. The checksum covers the one before it too, so that no block can be left
//! out, moved or repeated.

mod read;
mod write;

pub(crate) use read::BinaryReader;
pub(crate) use write::BinaryWriter;

use crate::fields::Tag;
use asx_kernel::digest::Digest;

/// The first bytes; the version follows.
pub(crate) const MAGIC: [u8; 4] = *b"ASXT";

/// A block is written as soon as it is this long.
const BLOCK: usize = 4096;

/// Texts up to this many bytes are given a number, as long as there are fewer than `NUMBERED`.
const SHORT: usize = 64;
const NUMBERED: usize = 4096;

/// The bits of an event's first byte, above those of its four ids.
const OTHER_SEQ: u8 = 0x10;
const OTHER_TIME: u8 = 0x20;

/// Tags of records that are no events; an event's tag is its kind's code.
const TAGS: [(u8, Tag); 6] = [
    (0xf0, Tag::Header),
    (0xf1, Tag::Choice),
    (0xf2, Tag::Label),
    (0xf3, Tag::Host),
    (0xf4, Tag::Mark),
    (0xf5, Tag::End),
];

/// What a block's checksum must be, after a block with the checksum `before`.
fn checksum(before: u64, payload: &[u8]) -> u64 {
    let mut digest = Digest::new();
    digest.word(before).bytes(payload);
    digest.value()
}
