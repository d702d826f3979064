//! Writing a trace.

use crate::binary::BinaryWriter;
use crate::error::ErrorKind;
use crate::input::Sink;
use crate::json::JsonWriter;
use crate::limits::Limits;
use crate::record::{End, Header, Record};
use alloc::string::String;
use asx_kernel::digest::Digest;

/// How a trace is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// One JSON object per line.
    Json,
    /// Blocks of varints with checksums.
    Binary,
}

impl Codec {
    /// Its name, and the usual ending of its files' names.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Json => "jsonl",
            Codec::Binary => "asxt",
        }
    }
}

/// Writes records one by one. After a refusal nothing more can be written.
#[derive(Debug)]
pub struct Writer<S> {
    sink: S,
    inner: Inner,
    digest: Digest,
    events: u64,
    choices: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Inner {
    Json(JsonWriter),
    Binary(BinaryWriter),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// The end record was written.
    Ended,
    Failed,
}

impl<S: Sink> Writer<S> {
    /// Begins a trace, within the usual limits.
    pub fn new(sink: S, codec: Codec, header: &Header) -> Result<Writer<S>, ErrorKind> {
        Writer::with_limits(sink, codec, header, Limits::default())
    }

    /// Begins a trace.
    pub fn with_limits(
        mut sink: S,
        codec: Codec,
        header: &Header,
        limits: Limits,
    ) -> Result<Writer<S>, ErrorKind> {
        let inner = match codec {
            Codec::Json => {
                let mut json = JsonWriter::new(limits);
                sink.write(json.header(header)?)?;
                Inner::Json(json)
            }
            Codec::Binary => {
                let mut binary = BinaryWriter::new(limits);
                binary.header(header)?;
                Inner::Binary(binary)
            }
        };
        let digest = Digest::new();
        Ok(Writer { sink, inner, digest, events: 0, choices: 0, stage: Stage::Open })
    }

    /// Writes a record. After an end record there can be none.
    pub fn write(&mut self, record: &Record) -> Result<(), ErrorKind> {
        if self.stage != Stage::Open {
            return Err(ErrorKind::Closed);
        }
        self.stage = Stage::Failed;
        match &mut self.inner {
            Inner::Json(json) => self.sink.write(json.record(record)?)?,
            Inner::Binary(binary) => {
                binary.record(record)?;
                self.sink.write(binary.ready())?;
                binary.ready().clear();
            }
        }
        self.stage = Stage::Open;
        match record {
            Record::Event(event) => {
                event.absorb(&mut self.digest);
                self.events += 1;
            }
            Record::Choice(_) => self.choices += 1,
            Record::End(_) => self.stage = Stage::Ended,
            _ => {}
        }
        Ok(())
    }

    /// Hands on everything written so far, at the price of a short block.
    pub fn flush(&mut self) -> Result<(), ErrorKind> {
        if let Inner::Binary(binary) = &mut self.inner {
            binary.close_block();
            self.sink.write(binary.ready())?;
            binary.ready().clear();
        }
        self.sink.flush()
    }

    /// Ends the trace and gives the sink back. An end record that was not written is: of a run
    /// whose events were all written.
    pub fn finish(mut self) -> Result<S, ErrorKind> {
        match self.stage {
            Stage::Open => {
                let recorded = self.events;
                let digest = self.digest.value();
                self.write(&End { recorded, lost: 0, digest, choices: self.choices }.into())?;
            }
            Stage::Ended => {}
            Stage::Failed => return Err(ErrorKind::Closed),
        }
        self.flush()?;
        Ok(self.sink)
    }
}

/// A record as the line of JSON that a trace has for it, without its end.
///
/// ```
/// use asx_trace::{Class, Label, json_line};
/// let line = json_line(&Label { class: Class::Task, number: 1, text: "feed".into() }.into())?;
/// assert_eq!(line, r#"{"record":"label","class":"task","number":1,"text":"feed"}"#);
/// # Ok::<(), asx_trace::ErrorKind>(())
/// ```
pub fn json_line(record: &Record) -> Result<String, ErrorKind> {
    let mut writer = JsonWriter::new(Limits::default());
    let line = writer.record(record)?;
    Ok(String::from_utf8_lossy(line).trim_end().into())
}
