//! The writer of the binary codec.

use super::{BLOCK, MAGIC, NUMBERED, OTHER_SEQ, OTHER_TIME, SHORT, TAGS, checksum};
use crate::error::ErrorKind;
use crate::fields::{FieldWriter, Tag, distinct, write_header, write_record};
use crate::limits::Limits;
use crate::record::{Header, Record, VERSION, Value};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::journal::Event;

/// Collects records into blocks.
#[derive(Debug)]
pub(crate) struct BinaryWriter {
    limits: Limits,
    payload: Vec<u8>,
    /// Finished blocks, to be written by the caller.
    ready: Vec<u8>,
    texts: BTreeMap<String, u64>,
    checksum: u64,
    next_seq: u64,
    time: u64,
}

impl BinaryWriter {
    pub(crate) fn new(limits: Limits) -> BinaryWriter {
        BinaryWriter {
            limits,
            payload: Vec::new(),
            ready: Vec::new(),
            texts: BTreeMap::new(),
            checksum: 0,
            next_seq: 0,
            time: 0,
        }
    }

    /// Writes the magic bytes and the version, and begins the first block with the header.
    pub(crate) fn header(&mut self, header: &Header) -> Result<(), ErrorKind> {
        self.ready.extend_from_slice(&MAGIC);
        self.ready.push(VERSION as u8);
        self.tag(Tag::Header);
        write_header(header, self)
    }

    /// Appends a record. After an error the writer must not be used, because the block may contain
    /// a part of the record.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), ErrorKind> {
        self.tag(match record {
            Record::Event(event) => Tag::Event(event.kind.code()),
            Record::Choice(_) => Tag::Choice,
            Record::Label(_) => Tag::Label,
            Record::Host(_) => Tag::Host,
            Record::Mark(_) => Tag::Mark,
            Record::End(_) => Tag::End,
        });
        write_record(record, self)?;
        Limits::check("bytes of a block", self.payload.len(), self.limits.block)?;
        if self.payload.len() >= BLOCK {
            self.close_block();
        }
        Ok(())
    }

    /// Closes the current block, if it is not empty.
    pub(crate) fn close_block(&mut self) {
        if self.payload.is_empty() {
            return;
        }
        varint(&mut self.ready, self.payload.len() as u64);
        self.ready.extend_from_slice(&self.payload);
        self.checksum = checksum(self.checksum, &self.payload);
        self.ready.extend_from_slice(&self.checksum.to_le_bytes());
        self.payload.clear();
    }

    /// Returns the finished blocks. The caller clears them.
    pub(crate) fn ready(&mut self) -> &mut Vec<u8> {
        &mut self.ready
    }

    fn tag(&mut self, tag: Tag) {
        let own = TAGS.iter().find(|(_, own)| *own == tag);
        self.payload.push(match (own, tag) {
            (Some((byte, _)), _) => *byte,
            (None, Tag::Event(code)) => code as u8,
            (None, _) => 0,
        });
    }

    fn string(&mut self, text: &str) -> Result<(), ErrorKind> {
        Limits::check("bytes of a text", text.len(), self.limits.text)?;
        if let Some(number) = self.texts.get(text) {
            varint(&mut self.payload, *number);
            return Ok(());
        }
        self.payload.push(0);
        varint(&mut self.payload, text.len() as u64);
        self.payload.extend_from_slice(text.as_bytes());
        if text.len() <= SHORT && self.texts.len() < NUMBERED {
            self.texts.insert(text.into(), self.texts.len() as u64 + 1);
        }
        Ok(())
    }
}

fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// Zigzag encoding of a wrapping difference: small differences of either sign are small numbers.
fn zigzag(to: u64, from: u64) -> u64 {
    let step = to.wrapping_sub(from) as i64;
    (step << 1 ^ step >> 63) as u64
}

impl FieldWriter for BinaryWriter {
    fn number(&mut self, _: &'static str, value: u64) {
        varint(&mut self.payload, value);
    }

    fn hash(&mut self, _: &'static str, value: u64) {
        self.payload.extend_from_slice(&value.to_le_bytes());
    }

    fn maybe(&mut self, _: &'static str, value: Option<u64>) {
        self.payload.push(value.is_some().into());
        if let Some(value) = value {
            varint(&mut self.payload, value);
        }
    }

    fn flag(&mut self, _: &'static str, value: bool) {
        self.payload.push(value.into());
    }

    fn text(&mut self, _: &'static str, value: &str) -> Result<(), ErrorKind> {
        self.string(value)
    }

    fn pairs(&mut self, _: &'static str, pairs: &[(String, Value)]) -> Result<(), ErrorKind> {
        Limits::check("number of pairs", pairs.len(), self.limits.pairs)?;
        distinct(pairs)?;
        varint(&mut self.payload, pairs.len() as u64);
        for (name, value) in pairs {
            self.string(name)?;
            match value {
                Value::Null => self.payload.push(0),
                Value::Flag(flag) => self.payload.push(1 + u8::from(*flag)),
                Value::Number(number) => {
                    self.payload.push(3);
                    varint(&mut self.payload, *number);
                }
                Value::Text(text) => {
                    self.payload.push(4);
                    self.string(text)?;
                }
            }
        }
        Ok(())
    }

    fn head(&mut self, event: &Event) {
        let time = event.time.as_nanos();
        let mut bits = 0;
        let mut bit = 1;
        event.subject.visit(|_, id| {
            bits |= if id.is_some() { bit } else { 0 };
            bit <<= 1;
        });
        let other_seq = event.seq != self.next_seq;
        let other_time = time != self.time;
        bits |= if other_seq { OTHER_SEQ } else { 0 } | if other_time { OTHER_TIME } else { 0 };
        self.payload.push(bits);
        if other_seq {
            varint(&mut self.payload, zigzag(event.seq, self.next_seq));
        }
        if other_time {
            varint(&mut self.payload, zigzag(time, self.time));
        }
        event.subject.visit(|_, id| id.into_iter().for_each(|id| varint(&mut self.payload, id)));
        (self.next_seq, self.time) = (event.seq.wrapping_add(1), time);
    }
}
