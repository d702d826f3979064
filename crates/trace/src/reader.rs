//! Reading a trace of either codec.

use crate::binary::{BinaryReader, MAGIC};
use crate::error::{Error, ErrorKind, Place};
use crate::fields::Item;
use crate::input::{Input, Source};
use crate::json::JsonReader;
use crate::limits::Limits;
use crate::record::{Header, Record};
use crate::writer::Codec;

/// An iterator over the records of a trace. It ends after the end record, or after the first error;
/// all records before the error are returned first.
///
/// ```
/// let reader = asx_trace::Reader::open(&b"{\"record\":\"mark\"}\n"[..]);
/// let error = reader.err().unwrap();
/// assert_eq!(error.to_string(), "line 1, column 1 (record 0): the field `seq` is missing");
/// ```
#[derive(Debug)]
pub struct Reader<S> {
    inner: Inner<S>,
    header: Header,
    /// The number of records read, including the header.
    records: u64,
    stage: Stage,
}

#[derive(Debug)]
enum Inner<S> {
    Json(JsonReader<S>),
    Binary(BinaryReader<S>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// The end record was read.
    Ended,
    Done,
}

/// The first bytes of formats that a trace may be wrapped in by mistake, and their descriptions.
const WRAPPINGS: [(&[u8], &str); 5] = [
    (b"\xef\xbb\xbf", "a byte-order mark"),
    (b"\xff\xfe", "a byte-order mark of UTF-16"),
    (b"\xfe\xff", "a byte-order mark of UTF-16"),
    (b"\x1f\x8b", "gzip data; decompress it first"),
    (b"\x28\xb5\x2f\xfd", "zstd data; decompress it first"),
];

impl<S: Source> Reader<S> {
    /// Detects the codec and reads the header, within the default limits.
    pub fn open(source: S) -> Result<Reader<S>, Error> {
        Reader::with_limits(source, Limits::default())
    }

    /// Detects the codec and reads the header, within `limits`.
    pub fn with_limits(source: S, limits: Limits) -> Result<Reader<S>, Error> {
        let mut input = Input::new(source);
        let start = |kind| Error { kind, place: Place::Byte(0), record: 0 };
        let first = input.peek().map_err(start)?;
        if let Some((_, what)) = WRAPPINGS.iter().find(|(bytes, _)| first.starts_with(bytes)) {
            return Err(start(ErrorKind::Wrapped { what }));
        }
        let mut inner = match first.first() {
            None => return Err(start(ErrorKind::Truncated)),
            Some(b'{') => Inner::Json(JsonReader::new(input, limits)),
            Some(byte) if *byte == MAGIC[0] => Inner::Binary(BinaryReader::new(input, limits)),
            Some(_) => return Err(start(ErrorKind::Magic)),
        };
        let header = inner.header();
        let header = header.map_err(|kind| Error { kind, place: inner.place(), record: 0 })?;
        Ok(Reader { inner, header, records: 1, stage: Stage::Open })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the codec.
    pub fn codec(&self) -> Codec {
        match self.inner {
            Inner::Json(_) => Codec::Json,
            Inner::Binary(_) => Codec::Binary,
        }
    }

    /// Returns the position of the last record or error.
    pub fn place(&self) -> Place {
        self.inner.place()
    }

    /// Returns the number of the last record; the header is 0.
    pub fn record(&self) -> u64 {
        self.records - 1
    }
}

impl<S: Source> Iterator for Reader<S> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        let item = match self.stage {
            Stage::Open => self.inner.next().and_then(|item| match item {
                Item::Record(record) => Ok(Some(record)),
                Item::Header(_) => Err(ErrorKind::Syntax { wanted: "no second header" }),
            }),
            Stage::Ended => self.inner.finish().map(|()| None),
            Stage::Done => return None,
        };
        let number = self.records;
        let place = self.inner.place();
        self.stage = match item {
            Ok(Some(Record::End(_))) => Stage::Ended,
            Ok(Some(_)) => Stage::Open,
            _ => Stage::Done,
        };
        self.records += u64::from(matches!(item, Ok(Some(_))));
        item.map_err(|kind| Error { kind, place, record: number }).transpose()
    }
}

impl<S: Source> Inner<S> {
    fn header(&mut self) -> Result<Header, ErrorKind> {
        if let Inner::Binary(binary) = self {
            binary.preamble()?;
        }
        match self.next()? {
            Item::Header(header) => Ok(header),
            Item::Record(_) => Err(ErrorKind::Syntax { wanted: "a header first" }),
        }
    }

    fn next(&mut self) -> Result<Item, ErrorKind> {
        match self {
            Inner::Json(json) => json.next(),
            Inner::Binary(binary) => binary.next(),
        }
    }

    fn finish(&mut self) -> Result<(), ErrorKind> {
        match self {
            Inner::Json(json) => json.finish(),
            Inner::Binary(binary) => binary.finish(),
        }
    }

    fn place(&self) -> Place {
        match self {
            Inner::Json(json) => json.place(),
            Inner::Binary(binary) => binary.place(),
        }
    }
}
