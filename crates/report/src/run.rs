//! A trace that was read, as far as it can be, with the verdict over it.

use asx_kernel::journal::Event;
use asx_trace::{
    Checker, Choice, Class, Codec, Header, HostEvent, Mark, Reader, Record, Report, Source,
};
use std::collections::BTreeMap;
use std::fmt;

/// Everything a trace tells.
///
/// Of a damaged trace it has what stands before the damage; the verdict says what is wrong.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the trace says of itself.
    pub header: Header,
    /// The codec it was in.
    pub codec: Codec,
    /// Its events.
    pub events: Vec<Event>,
    /// Its choices, each with the index of the event it was made before.
    pub choices: Vec<(usize, Choice)>,
    /// What only the host saw, each with the index of the event it came before.
    pub hosts: Vec<(usize, HostEvent)>,
    /// The moments worth a look.
    pub marks: Vec<Mark>,
    /// Names of things.
    pub labels: BTreeMap<(Class, u64), String>,
    /// Whether every law holds.
    pub verdict: Report,
}

impl Run {
    /// Reads a trace of at most so many events to its end and holds it against every law.
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
            checker.look(&record, reader.place());
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

    /// The name of something; its class and number if it has none.
    pub(crate) fn name(&self, class: Class, number: u64) -> String {
        let label = self.labels.get(&(class, number)).filter(|label| !label.is_empty());
        label.cloned().unwrap_or_else(|| format!("{} {number}", class.name()))
    }

    /// The index of the event of this number.
    pub(crate) fn index_of(&self, seq: u64) -> Option<usize> {
        // In a trace that does not hold numbers may be out of order, and one is not found.
        let at = self.events.partition_point(|event| event.seq < seq);
        self.events.get(at).filter(|event| event.seq == seq).map(|_| at)
    }
}

/// A trace has more events than can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// How many can be.
    pub most: usize,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has more than {} events, too many for this", self.most)
    }
}

impl std::error::Error for TooLong {}
