//! Verification of a trace: is the file consistent, and is the recorded run lawful?
//!
//! Always checked: the file can be read to its end, no event is missing or out of order, and the
//! end record has the right counts and digest. Strict verification also checks every law of
//! [`refine`](crate::refine), the choices, the order of host events, the kinds and mandatory fields
//! of scheduler events, and that labels and marks refer to existing objects and events.

use crate::error::{Error, Place};
use crate::input::Source;
use crate::reader::Reader;
use crate::record::{Choice, Class, End, Header, HostEvent, Record};
use crate::refine::Refinement;
use crate::scheduler;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use asx_kernel::digest::Digest;
use asx_kernel::journal::{Event, EventKind};
use core::fmt;

/// The maximal number of violations that are kept.
const KEPT: usize = 100;

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A stable name for programs.
    pub code: &'static str,
    /// The description.
    pub text: String,
    /// The position in the file.
    pub place: Place,
    /// The number of the record; the header is 0.
    pub record: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { code, text, place, record } = self;
        write!(f, "{place} (record {record}): {code}: {text}")
    }
}

impl From<Error> for Violation {
    fn from(error: Error) -> Violation {
        let code = error.kind.code();
        let text = error.kind.to_string();
        Violation { code, text, place: error.place, record: error.record }
    }
}

/// The result of verifying a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The number of events in the trace.
    pub events: u64,
    /// The number of choices in the trace.
    pub choices: u64,
    /// The digest of the events in the trace.
    pub digest: u64,
    /// The end record, if it was reached.
    pub end: Option<End>,
    /// The violations in the order of the file; at most 100.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Whether there are no violations.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Reads a trace to its end and checks it.
pub fn verify<S: Source>(reader: &mut Reader<S>, strict: bool) -> Report {
    let mut checker = Checker::new(reader.header(), reader.place(), strict);
    while let Some(record) = reader.next() {
        match record {
            Ok(record) => checker.check_record(&record, reader.place()),
            Err(error) => checker.fail(error),
        }
    }
    checker.finish()
}

/// Checks records one by one.
#[derive(Clone, Debug)]
pub struct Checker {
    strict: bool,
    complete: bool,
    workers: u64,
    /// The number of the current record, and its position.
    record: u64,
    place: Place,
    first: Option<u64>,
    next_seq: u64,
    events: u64,
    choices: u64,
    next_host: u64,
    /// Whether a step of the host's scheduler is in progress.
    in_step: bool,
    digest: Digest,
    /// The laws, until the first breach: later results would depend on it.
    laws: Option<Refinement>,
    /// The references of labels and marks, to be resolved at the end.
    mentions: Vec<(Mention, Place, u64)>,
    end: Option<End>,
    violations: Vec<Violation>,
}

#[derive(Clone, Copy, Debug)]
enum Mention {
    Label(Class, u64),
    Mark(u64),
}

impl Checker {
    /// Creates a checker from the header, which is at `place`.
    pub fn new(header: &Header, place: Place, strict: bool) -> Checker {
        let mut checker = Checker {
            strict,
            complete: header.complete,
            workers: header.workers,
            record: 0,
            place,
            first: None,
            next_seq: 0,
            events: 0,
            choices: 0,
            next_host: 0,
            in_step: false,
            digest: Digest::new(),
            laws: Some(Refinement::default()).filter(|_| strict && header.complete),
            mentions: Vec::new(),
            end: None,
            violations: Vec::new(),
        };
        if strict {
            let holds = header.complete;
            checker.ensure(
                holds,
                "incomplete",
                "the first events are missing: the laws cannot be checked",
            );
            checker.ensure(header.workers > 0, "no_workers", "the number of workers is 0");
            checker.ensure(
                !header.program.is_empty(),
                "no_program",
                "the name of the program is empty",
            );
            checker.ensure(!header.host.is_empty(), "no_host", "the name of the host is empty");
        }
        checker
    }

    /// Checks the next record, which is at `place`.
    pub fn check_record(&mut self, record: &Record, place: Place) {
        (self.record, self.place) = (self.record + 1, place);
        if self.end.is_some() {
            return self.ensure(false, "after_end", "there is a record after the end record");
        }
        match record {
            Record::Event(event) => self.check_event(event),
            Record::Choice(choice) => self.check_choice(choice),
            Record::Host(host) => {
                let text = format!("host event {} after {}", host.seq, self.next_host);
                self.ensure_strict(host.seq >= self.next_host, "host_seq", text);
                self.next_host = host.seq.saturating_add(1);
                if self.strict {
                    self.check_host(host);
                }
            }
            Record::Label(label) => self.mention(Mention::Label(label.class, label.number)),
            Record::Mark(mark) => self.mention(Mention::Mark(mark.seq)),
            Record::End(end) => self.check_end(*end),
        }
    }

    /// Records that the trace cannot be read any further.
    pub fn fail(&mut self, error: Error) {
        self.keep(error.into());
    }

    /// Returns the result.
    pub fn finish(mut self) -> Report {
        let unended = self.end.is_none() && self.violations.is_empty();
        self.ensure(!unended, "no_end", "the end record is missing");
        let Checker { events, choices, end, violations, .. } = self;
        Report { events, choices, digest: self.digest.value(), end, violations }
    }

    fn check_event(&mut self, event: &Event) {
        let seq = event.seq;
        let next = self.next_seq;
        let first = self.first.is_none();
        self.first.get_or_insert(seq);
        let (code, text) = match () {
            () if first && (!self.complete || seq == 0) || !first && seq == next => ("", ""),
            () if first => ("seq_start", "a complete trace begins with event 0"),
            () if seq > next => ("seq_gap", "events are missing before this one"),
            () => ("seq_back", "the number has occurred before"),
        };
        if !code.is_empty() {
            self.ensure(false, code, format!("event {seq} instead of {next}: {text}"));
            // The laws depend on the missing events.
            self.laws = None;
        }
        self.next_seq = seq.saturating_add(1);
        self.events += 1;
        event.absorb(&mut self.digest);
        if let EventKind::Decision { worker, .. } = event.kind {
            let text = format!("event {seq}: unknown worker {worker}");
            self.ensure_strict(worker < self.workers, "decision_worker", text);
        }
        if let Some(Err(breach)) = self.laws.as_mut().map(|laws| laws.check_event(event)) {
            self.ensure(false, breach.code, format!("event {event}: {breach}"));
            self.laws = None;
        }
    }

    fn check_host(&mut self, host: &HostEvent) {
        let begins = host.kind == "scheduler_step_begin";
        self.in_step &= !begins;
        if let Err((code, text)) = scheduler::check(host, self.in_step) {
            self.ensure(false, code, text);
        }
        let ends = host.kind == "scheduler_step_end";
        self.in_step = host.kind == "scheduler_step_decision" || (self.in_step && !ends);
    }

    fn check_choice(&mut self, choice: &Choice) {
        let Choice { index, count, picked, .. } = *choice;
        let text = format!("choice {index} instead of {}", self.choices);
        self.ensure_strict(index == self.choices, "choice_index", text);
        let text = format!("choice {index}: {count} options, at least 2 are required");
        self.ensure_strict(count >= 2, "choice_count", text);
        let text = format!("choice {index}: option {picked} of only {count}");
        self.ensure_strict(picked < count || count < 2, "choice_picked", text);
        self.choices += 1;
    }

    fn check_end(&mut self, end: End) {
        self.end = Some(end);
        let End { recorded, lost, digest, choices } = end;
        let text = format!("{recorded} recorded, but {} present and {lost} lost", self.events);
        self.ensure(Some(recorded) == self.events.checked_add(lost), "end_recorded", text);
        let text = format!("{choices} choices, but {} present", self.choices);
        self.ensure(choices == self.choices, "end_choices", text);
        if self.complete && lost == 0 {
            let own = self.digest.value();
            let text = format!("the digest is {own:016x}, but the end record has {digest:016x}");
            self.ensure(digest == own, "end_digest", text);
        } else if self.complete {
            let text = format!("{lost} events were lost: the digest cannot be checked");
            self.ensure_strict(false, "end_lost", text);
        } else {
            let first = self.first.unwrap_or(recorded);
            let text = format!("{first} events are missing at the start, but only {lost} lost");
            self.ensure(first <= lost, "end_first", text);
        }
        let left = self.laws.as_ref().filter(|_| lost == 0);
        if let Some(Err(breach)) = left.map(Refinement::finish) {
            self.ensure(false, breach.code, breach.text);
        }
        let mentions = core::mem::take(&mut self.mentions);
        let here = (self.record, self.place);
        for (mention, place, record) in mentions {
            (self.record, self.place) = (record, place);
            self.resolve(mention, recorded);
        }
        (self.record, self.place) = here;
    }

    fn resolve(&mut self, mention: Mention, recorded: u64) {
        match mention {
            Mention::Mark(seq) => {
                let text = format!("a mark at event {seq}, which does not exist");
                self.ensure(seq < recorded, "mark_seq", text);
            }
            Mention::Label(class, number) => {
                let has = |laws: &Refinement| match class {
                    Class::Task => laws.has_task(number),
                    Class::Region => laws.has_region(number),
                    Class::Timer => laws.has_timer(number),
                    Class::Channel => laws.has_channel(number),
                    Class::Socket => laws.has_socket(number),
                };
                // After a breach the laws have not seen all events.
                let known = self.laws.as_ref().is_none_or(has);
                let text = format!("a label for {} {number}, which does not exist", class.name());
                self.ensure(known, "label_unknown", text);
            }
        }
    }

    fn mention(&mut self, mention: Mention) {
        if self.strict {
            self.mentions.push((mention, self.place, self.record));
        }
    }

    fn ensure_strict(&mut self, holds: bool, code: &'static str, text: impl Into<String>) {
        self.ensure(holds || !self.strict, code, text);
    }

    fn ensure(&mut self, holds: bool, code: &'static str, text: impl Into<String>) {
        if !holds {
            let place = self.place;
            let record = self.record;
            self.keep(Violation { code, text: text.into(), place, record });
        }
    }

    fn keep(&mut self, violation: Violation) {
        if self.violations.len() < KEPT {
            self.violations.push(violation);
        }
    }
}
