//! Comparison of a running program with a recorded run.
//!
//! The events of the run, decisions included, are compared one by one with those of the trace, and
//! the digests of both sides are kept. The comparison ends at the first difference, which reports
//! the recorded event, the actual event, and the position in the file.

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
/// use asx_trace::{Codec, End, Header, Monitor, MonitorError, Reader, Writer};
///
/// let event = |kind| Event { seq: 0, time: Time::ZERO, subject: Subject::default(), kind };
/// let recorded = event(EventKind::SoftStop {});
/// let mut writer = Writer::new(Vec::new(), Codec::Json, &Header::new("demo", "model"))?;
/// writer.write(&recorded.into())?;
/// let bytes = writer.finish()?;
///
/// let mut monitor = Monitor::new(Reader::open(&bytes[..])?);
/// let actual = event(EventKind::StaleWake {});
/// let Err(MonitorError::Mismatch(mismatch)) = monitor.check_event(&actual) else {
///     panic!("they differ")
/// };
/// assert_eq!(mismatch.recorded, Some(recorded));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Monitor<S> {
    reader: Reader<S>,
    /// The next event of the trace and its position, read when it is first needed.
    next: Option<(Event, Place)>,
    end: Option<End>,
    /// The digest of the events that both runs have in common.
    digest: Digest,
    events: u64,
    decisions: u64,
}

impl<S: Source> Monitor<S> {
    /// Creates a monitor that compares with this trace.
    pub fn new(reader: Reader<S>) -> Monitor<S> {
        let digest = Digest::new();
        Monitor { reader, next: None, end: None, digest, events: 0, decisions: 0 }
    }

    /// Returns the header of the trace.
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// Returns the number of compared events, and of decisions among them.
    pub fn compared(&self) -> (u64, u64) {
        (self.events, self.decisions)
    }

    /// Compares the next event of the run.
    ///
    /// # Errors
    /// The trace has another event here, or cannot be read up to this event.
    pub fn check_event(&mut self, event: &Event) -> Result<(), MonitorError> {
        let recorded = self.next()?;
        if let Some((recorded, _)) = recorded
            && event.seq < recorded.seq
            && self.events == 0
        {
            // The recorded ring has overwritten this event; the final digest covers it.
            return Ok(());
        }
        if recorded.is_none_or(|(recorded, _)| recorded != *event) {
            return Err(self.mismatch(recorded, Some(*event)));
        }
        self.next = None;
        event.absorb(&mut self.digest);
        self.events += 1;
        self.decisions += u64::from(matches!(event.kind, EventKind::Decision { .. }));
        Ok(())
    }

    /// Ends the comparison. `digest` is the digest of all events of the run, and is returned.
    ///
    /// # Errors
    /// The trace has more events or another digest, or cannot be read to its end.
    pub fn finish(mut self, digest: u64) -> Result<u64, MonitorError> {
        let recorded = self.next()?;
        if recorded.is_some() {
            return Err(self.mismatch(recorded, None));
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

    fn next(&mut self) -> Result<Option<(Event, Place)>, MonitorError> {
        while self.next.is_none() {
            match self.reader.next() {
                None => break,
                Some(Err(error)) => return Err(MonitorError::Unread(error)),
                Some(Ok(Record::Event(event))) => self.next = Some((event, self.reader.place())),
                Some(Ok(Record::End(end))) => self.end = Some(end),
                Some(Ok(_)) => {}
            }
        }
        Ok(self.next)
    }

    fn mismatch(&self, recorded: Option<(Event, Place)>, got: Option<Event>) -> MonitorError {
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

/// The first difference between a run and its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The number of the first differing event; if only the digests differ, the number of events.
    pub seq: u64,
    /// The position in the trace.
    pub place: Place,
    /// The recorded event; `None` at the end of the trace.
    pub recorded: Option<Event>,
    /// The actual event; `None` at the end of the run.
    pub got: Option<Event>,
    /// The digests of all events up to and including the differing one: recorded, and actual.
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

/// Displays an event, or the end.
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

/// The reason why the comparison with a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MonitorError {
    /// The run and the recording differ.
    Mismatch(Box<Mismatch>),
    /// The trace cannot be read any further.
    Unread(Error),
}

impl From<Mismatch> for MonitorError {
    fn from(mismatch: Mismatch) -> MonitorError {
        MonitorError::Mismatch(Box::new(mismatch))
    }
}

impl fmt::Display for MonitorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MonitorError::Mismatch(mismatch) => mismatch.fmt(f),
            MonitorError::Unread(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for MonitorError {}

impl Coded for MonitorError {
    fn status(&self) -> Status {
        match self {
            MonitorError::Mismatch(mismatch) => mismatch.status(),
            MonitorError::Unread(error) => error.status(),
        }
    }
}
