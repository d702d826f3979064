//! The first difference between two traces.
//!
//! Only semantic events are compared, one by one in order. Host events, labels, marks and choices
//! may differ. The digests of the end records are compared too, because they also cover events that
//! are not in the files.

use crate::error::Error;
use crate::record::Record;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use asx_kernel::journal::Event;

/// The result of comparing two traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The number of leading events that are equal.
    pub common: u64,
    /// The first difference.
    pub difference: Option<Difference>,
    /// The digests of the end records, as far as these were reached.
    pub digests: [Option<u64>; 2],
}

impl Comparison {
    /// Whether both traces record the same run.
    pub fn is_same(&self) -> bool {
        self.difference.is_none() && self.digests[0] == self.digests[1]
    }
}

/// The first difference between two traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The last events in common.
    pub before: Vec<Event>,
    /// The events that follow in each trace; empty at its end.
    pub after: [Vec<Event>; 2],
}

/// The error returned when a trace cannot be read up to the first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The index of the trace: 0 or 1.
    pub side: usize,
    /// The error.
    pub error: Error,
}

/// Compares two traces and shows up to `context` events on each side of the first difference.
pub fn diff<L, R>(left: L, right: R, context: usize) -> Result<Comparison, Unread>
where
    L: IntoIterator<Item = Result<Record, Error>>,
    R: IntoIterator<Item = Result<Record, Error>>,
{
    let mut left = Side::new(left);
    let mut right = Side::new(right);
    let unread = |side| move |error| Unread { side, error };
    let mut before = VecDeque::new();
    let mut common = 0;
    let difference = loop {
        let l = left.next().map_err(unread(0))?;
        let r = right.next().map_err(unread(1))?;
        match (l, r) {
            (None, None) => break None,
            (Some(l), Some(r)) if l == r => {
                common += 1;
                before.push_back(l);
                if before.len() > context {
                    before.pop_front();
                }
            }
            (l, r) => {
                let after = [left.tail(l, context), right.tail(r, context)];
                break Some(Difference { before: before.into(), after });
            }
        }
    };
    Ok(Comparison { common, difference, digests: [left.digest(), right.digest()] })
}

/// The events of one trace.
struct Side<I> {
    records: I,
    digest: Option<u64>,
}

impl<I: Iterator<Item = Result<Record, Error>>> Side<I> {
    fn new(records: impl IntoIterator<IntoIter = I>) -> Side<I> {
        Side { records: records.into_iter(), digest: None }
    }

    fn next(&mut self) -> Result<Option<Event>, Error> {
        for record in self.records.by_ref() {
            match record? {
                Record::Event(event) => return Ok(Some(event)),
                Record::End(end) => self.digest = Some(end.digest),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the events from `first` on, as far as they can be read.
    fn tail(&mut self, first: Option<Event>, context: usize) -> Vec<Event> {
        let mut tail: Vec<Event> = first.into_iter().collect();
        while tail.len() < context
            && let Ok(Some(event)) = self.next()
        {
            tail.push(event);
        }
        tail
    }

    /// Reads to the end and returns the digest.
    fn digest(mut self) -> Option<u64> {
        while let Ok(Some(_)) = self.next() {}
        self.digest
    }
}
