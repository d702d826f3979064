//! A trace in memory, with its verification report.

use asx_kernel::journal::Event;
use asx_trace::{
    Checker, Choice, Class, Codec, Header, HostEvent, Mark, Reader, Record, Report, Source,
};
use std::collections::BTreeMap;
use std::fmt;

/// The contents of a trace.
///
/// For a damaged trace this is everything before the damage; the verdict describes the damage.
#[derive(Clone, Debug)]
pub struct Run {
    /// The header of the trace.
    pub header: Header,
    /// The codec of the trace.
    pub codec: Codec,
    /// The events.
    pub events: Vec<Event>,
    /// The choices, each with the index of the event that follows it.
    pub choices: Vec<(usize, Choice)>,
    /// The host events, each with the index of the event that follows it.
    pub hosts: Vec<(usize, HostEvent)>,
    /// The marks.
    pub marks: Vec<Mark>,
    /// The names of objects.
    pub labels: BTreeMap<(Class, u64), String>,
    /// The result of checking every law.
    pub verdict: Report,
}

impl Run {
    /// Reads a trace of at most `most` events to its end and checks every law.
    pub fn read<S: Source>(mut reader: Reader<S>, most: usize) -> Result<Run, TooLong> {
        let header = reader.header().clone();
        let mut checker = Checker::new(&header, reader.place(), true);
        let mut events = Vec::new();
        let mut choices = Vec::new();
        let mut hosts = Vec::new();
        let mut marks = Vec::new();
        let mut labels = BTreeMap::new();
        while let Some(record) = reader.next() {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    checker.fail(error);
                    continue;
                }
            };
            checker.check_record(&record, reader.place());
            match record {
                Record::Event(_) if events.len() == most => return Err(TooLong { most }),
                Record::Event(event) => events.push(event),
                Record::Choice(choice) => choices.push((events.len(), choice)),
                Record::Host(host) => hosts.push((events.len(), host)),
                Record::Mark(mark) => marks.push(mark),
                Record::Label(label) => {
                    labels.insert((label.class, label.number), label.text);
                }
                Record::End(_) => {}
            }
        }
        let codec = reader.codec();
        let verdict = checker.finish();
        Ok(Run { header, codec, events, choices, hosts, marks, labels, verdict })
    }

    /// Returns the name of an object, or its class and number if it has no name.
    pub(crate) fn name(&self, class: Class, number: u64) -> String {
        let label = self.labels.get(&(class, number)).filter(|label| !label.is_empty());
        label.cloned().unwrap_or_else(|| format!("{} {number}", class.name()))
    }

    /// Returns the index of the event with this number.
    pub(crate) fn index_of(&self, seq: u64) -> Option<usize> {
        // In an invalid trace the numbers may be unordered; then an event may not be found.
        let at = self.events.partition_point(|event| event.seq < seq);
        self.events.get(at).filter(|event| event.seq == seq).map(|_| at)
    }
}

/// The error for a trace with more events than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The limit.
    pub most: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the trace has more than {} events, which is the limit here", self.most)
    }
}

impl std::error::Error for TooLong {}
