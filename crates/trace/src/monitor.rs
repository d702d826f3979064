//! A run held against a recorded one while it goes on.
//!
//! The events of the run are compared with those of the trace one by one as they come, decisions
//! among them; digests of both sides run along. The first difference ends it: what was recorded,
//! what came instead, and where that stands in the file.

use crate::error::{Error, Place};
use crate::input::Source;
use crate::reader::Reader;
use crate::record::{End, Header, Record};
use alloc::boxed::Box;
use asx_kernel::digest::Digest;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::status::{Coded, Status};
use core::fmt;

/// Compares a run with a trace.
///
/// ```
/// use asx_kernel::{journal::{Event, EventKind, Subject}, time::Time};
/// use asx_trace::{Codec, End, Header, Monitor, Parted, Reader, Writer};
///
/// let event = |kind| Event { seq: 0, time: Time::ZERO, subject: Subject::default(), kind };
/// let recorded = event(EventKind::SoftStop {});
/// let mut writer = Writer::new(Vec::new(), Codec::Json, &Header::new("demo", "model"))?;
/// writer.write(&recorded.into())?;
/// let bytes = writer.finish()?;
///
/// let mut monitor = Monitor::new(Reader::open(&bytes[..])?);
/// let Err(Parted::Mismatch(mismatch)) = monitor.see(&event(EventKind::StaleWake {})) else {
///     panic!("they differ")
/// };
/// assert_eq!(mismatch.recorded, Some(recorded));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Monitor<S> {
    reader: Reader<S>,
    /// The next event of the trace, and where it stands; read when it is first needed.
    next: Option<(Event, Place)>,
    end: Option<End>,
    /// The digest of the events that both have.
    digest: Digest,
    events: u64,
    decisions: u64,
}

impl<S: Source> Monitor<S> {
    /// Compares with this trace.
    pub fn new(reader: Reader<S>) -> Monitor<S> {
        let digest = Digest::new();
        Monitor { reader, next: None, end: None, digest, events: 0, decisions: 0 }
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// How many events were compared, and how many of those are decisions.
    pub fn compared(&self) -> (u64, u64) {
        (self.events, self.decisions)
    }

    /// The run has recorded this, after all that was seen before.
    ///
    /// # Errors
    /// Something else was recorded, or the trace cannot be read up to there.
    pub fn see(&mut self, event: &Event) -> Result<(), Parted> {
        let recorded = self.next()?;
        if let Some((recorded, _)) = recorded
            && event.seq < recorded.seq
            && self.events == 0
        {
            // A ring has overwritten it in the trace; the digest at the end covers it.
            return Ok(());
        }
        if recorded.is_none_or(|(recorded, _)| recorded != *event) {
            return Err(self.part(recorded, Some(*event)));
        }
        self.next = None;
        event.absorb(&mut self.digest);
        self.events += 1;
        self.decisions += u64::from(matches!(event.kind, EventKind::Decision { .. }));
        Ok(())
    }

    /// The run is over, with this digest of all that it recorded, which is answered.
    ///
    /// # Errors
    /// More was recorded, or another digest; or the trace cannot be read to its end.
    pub fn finish(mut self, digest: u64) -> Result<u64, Parted> {
        let recorded = self.next()?;
        if recorded.is_some() {
            return Err(self.part(recorded, None));
        }
        match self.end {
            Some(end) if end.digest != digest => {
                let seq = end.recorded;
                let place = self.reader.place();
                let digests = [end.digest, digest];
                Err(Mismatch { seq, place, recorded: None, got: None, digests }.into())
            }
            _ => Ok(digest),
        }
    }

    fn next(&mut self) -> Result<Option<(Event, Place)>, Parted> {
        while self.next.is_none() {
            match self.reader.next() {
                None => break,
                Some(Err(error)) => return Err(Parted::Unread(error)),
                Some(Ok(Record::Event(event))) => self.next = Some((event, self.reader.place())),
                Some(Ok(Record::End(end))) => self.end = Some(end),
                Some(Ok(_)) => {}
            }
        }
        Ok(self.next)
    }

    fn part(&self, recorded: Option<(Event, Place)>, got: Option<Event>) -> Parted {
        let place = recorded.map_or(self.reader.place(), |(_, place)| place);
        let recorded = recorded.map(|(event, _)| event);
        let with = |event: Option<Event>| {
            let mut digest = self.digest.clone();
            event.into_iter().for_each(|event| event.absorb(&mut digest));
            digest.value()
        };
        let seq = recorded.or(got).map_or(0, |event| event.seq);
        let digests = [with(recorded), with(got)];
        Mismatch { seq, place, recorded, got, digests }.into()
    }
}

/// Where a run and its recording part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The number of the first event that differs; if only the digests do, of the end.
    pub seq: u64,
    /// Where it stands in the trace.
    pub place: Place,
    /// What was recorded; nothing at the end.
    pub recorded: Option<Event>,
    /// What came now; nothing at the end.
    pub got: Option<Event>,
    /// The digests of what was compared up to there and of that event: recorded, and now.
    pub digests: [u64; 2],
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { seq, place, recorded, got, digests: [before, now] } = self;
        let recorded = Side(recorded);
        let got = Side(got);
        write!(f, "{}: event {seq} ({place}): ", self.status().name())?;
        write!(f, "recorded {recorded}, digest {before:016x}; now {got}, digest {now:016x}")
    }
}

/// An event, or the end.
struct Side<'a>(&'a Option<Event>);

impl fmt::Display for Side<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(event) => write!(f, "`{event}`"),
            None => f.write_str("the end"),
        }
    }
}

impl core::error::Error for Mismatch {}

impl Coded for Mismatch {
    fn status(&self) -> Status {
        Status::ReplayMismatch
    }
}

/// Why a run is not held against its recording any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parted {
    /// They differ.
    Mismatch(Box<Mismatch>),
    /// The trace cannot be read on.
    Unread(Error),
}

impl From<Mismatch> for Parted {
    fn from(mismatch: Mismatch) -> Parted {
        Parted::Mismatch(Box::new(mismatch))
    }
}

impl fmt::Display for Parted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parted::Mismatch(mismatch) => mismatch.fmt(f),
            Parted::Unread(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Parted {}

impl Coded for Parted {
    fn status(&self) -> Status {
        match self {
            Parted::Mismatch(mismatch) => mismatch.status(),
            Parted::Unread(error) => error.status(),
        }
    }
}
