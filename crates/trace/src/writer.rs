//! Writing a trace.

use crate::binary::BinaryWriter;
use crate::error::ErrorKind;
use crate::input::Sink;
use crate::json::JsonWriter;
use crate::limits::Limits;
use crate::record::{End, Header, Record};
use alloc::string::String;
use asx_kernel::digest::Digest;

/// The encoding of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// One JSON object per line.
    Json,
    /// Blocks of varints with checksums.
    Binary,
}

impl Codec {
    /// The name of the codec, which is also the usual file extension.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Json => "jsonl",
            Codec::Binary => "asxt",
        }
    }
}

/// Writes records one by one. After an error no more records can be written.
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
    /// Begins a trace, within the default limits.
    pub fn new(sink: S, codec: Codec, header: &Header) -> Result<Writer<S>, ErrorKind> {
        Writer::with_limits(sink, codec, header, Limits::default())
    }

    /// Begins a trace, within `limits`.
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

    /// Writes a record. Fails after the end record.
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

    /// Writes all buffered records to the sink. In the binary codec this ends the current block.
    pub fn flush(&mut self) -> Result<(), ErrorKind> {
        if let Inner::Binary(binary) = &mut self.inner {
            binary.close_block();
            self.sink.write(binary.ready())?;
            binary.ready().clear();
        }
        self.sink.flush()
    }

    /// Ends the trace and returns the sink. If no end record was written, this writes one that
    /// covers exactly the written events and choices.
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

/// Returns the JSON line of a record, without the newline.
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
