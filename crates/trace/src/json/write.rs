//! The writer of JSON lines.

use crate::error::ErrorKind;
use crate::fields::{FieldWriter, distinct, write_header, write_record};
use crate::limits::Limits;
use crate::record::{Header, Record, VERSION, Value};
use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::journal::Event;

/// Formats records as lines.
#[derive(Debug)]
pub(crate) struct JsonWriter {
    line: Vec<u8>,
    limits: Limits,
    /// The kind of the current event.
    kind: &'static str,
}

impl JsonWriter {
    pub(crate) fn new(limits: Limits) -> JsonWriter {
        JsonWriter { line: Vec::new(), limits, kind: "" }
    }

    /// Returns the line of the header, with its newline.
    pub(crate) fn header(&mut self, header: &Header) -> Result<&[u8], ErrorKind> {
        self.begin("header");
        self.number("version", VERSION);
        write_header(header, self)?;
        self.end()
    }

    /// Returns the line of a record, with its newline.
    pub(crate) fn record(&mut self, record: &Record) -> Result<&[u8], ErrorKind> {
        self.begin(record.name());
        if let Record::Event(event) = record {
            self.kind = event.kind.name();
        }
        write_record(record, self)?;
        self.end()
    }

    fn begin(&mut self, name: &str) {
        self.line.clear();
        self.line.extend_from_slice(b"{\"record\":\"");
        self.line.extend_from_slice(name.as_bytes());
        self.line.push(b'"');
    }

    fn end(&mut self) -> Result<&[u8], ErrorKind> {
        self.line.push(b'}');
        Limits::check("bytes of a line", self.line.len(), self.limits.line)?;
        self.line.push(b'\n');
        Ok(&self.line)
    }

    fn key(&mut self, key: &str) {
        self.line.extend_from_slice(b",\"");
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn digits(&mut self, mut value: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (value % 10) as u8;
            value /= 10;
            if value == 0 {
                break;
            }
        }
        self.line.extend_from_slice(&digits[at..]);
    }

    fn quoted(&mut self, text: &str) -> Result<(), ErrorKind> {
        Limits::check("bytes of a text", text.len(), self.limits.text)?;
        self.line.push(b'"');
        for byte in text.bytes() {
            match byte {
                b'"' | b'\\' => self.line.extend_from_slice(&[b'\\', byte]),
                b'\n' => self.line.extend_from_slice(b"\\n"),
                b'\t' => self.line.extend_from_slice(b"\\t"),
                0..0x20 | 0x7f => {
                    self.line.extend_from_slice(b"\\u00");
                    self.line.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                }
                _ => self.line.push(byte),
            }
        }
        self.line.push(b'"');
        Ok(())
    }
}

const HEX: [u8; 16] = *b"0123456789abcdef";

impl FieldWriter for JsonWriter {
    fn number(&mut self, field: &'static str, value: u64) {
        self.key(field);
        self.digits(value);
    }

    fn hash(&mut self, field: &'static str, value: u64) {
        self.key(field);
        self.line.push(b'"');
        let digit = |at: u32| HEX[(value >> (60 - 4 * at) & 15) as usize];
        self.line.extend((0..16).map(digit));
        self.line.push(b'"');
    }

    fn maybe(&mut self, field: &'static str, value: Option<u64>) {
        match value {
            Some(value) => self.number(field, value),
            None => {
                self.key(field);
                self.line.extend_from_slice(b"null");
            }
        }
    }

    fn flag(&mut self, field: &'static str, value: bool) {
        self.key(field);
        self.line.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn text(&mut self, field: &'static str, value: &str) -> Result<(), ErrorKind> {
        self.key(field);
        self.quoted(value)
    }

    fn pairs(&mut self, field: &'static str, pairs: &[(String, Value)]) -> Result<(), ErrorKind> {
        Limits::check("number of pairs", pairs.len(), self.limits.pairs)?;
        distinct(pairs)?;
        self.key(field);
        self.line.push(b'{');
        for (at, (name, value)) in pairs.iter().enumerate() {
            if at > 0 {
                self.line.push(b',');
            }
            self.quoted(name)?;
            self.line.push(b':');
            match value {
                Value::Null => self.line.extend_from_slice(b"null"),
                Value::Number(n) => self.digits(*n),
                Value::Flag(true) => self.line.extend_from_slice(b"true"),
                Value::Flag(false) => self.line.extend_from_slice(b"false"),
                Value::Text(text) => self.quoted(text)?,
            }
        }
        self.line.push(b'}');
        Ok(())
    }

    fn head(&mut self, event: &Event) {
        self.number("seq", event.seq);
        self.number("time", event.time.as_nanos());
        self.key("event");
        self.line.push(b'"');
        self.line.extend_from_slice(self.kind.as_bytes());
        self.line.push(b'"');
        event.subject.visit(|class, id| self.maybe(class, id));
    }
}
