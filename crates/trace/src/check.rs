//! Whether a trace is what it says, and whether what it tells may have happened.
//!
//! Always looked at: that it can be read to its end, that no event is missing or out of order, that
//! the end record counts right and has the right digest. Strictly, also: every law of
//! [`refine`](crate::refine), the choices, the host's sequence, the names and mandatory fields of
//! what its scheduler tells, and that names and marks are about something that is there.

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

/// More violations than this are not kept.
const KEPT: usize = 100;

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A word for programs.
    pub code: &'static str,
    /// What is wrong.
    pub text: String,
    /// Where.
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

/// What looking at a whole trace gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Events in it.
    pub events: u64,
    /// Choices in it.
    pub choices: u64,
    /// The digest of the events in it.
    pub digest: u64,
    /// Its end record, if it was reached.
    pub end: Option<End>,
    /// What does not hold, in order of the file; a hundred at most.
    pub violations: Vec<Violation>,
}

impl Report {
    /// Whether everything holds.
    pub fn holds(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Reads a trace to its end and checks it.
pub fn verify<S: Source>(reader: &mut Reader<S>, strict: bool) -> Report {
    let mut checker = Checker::new(reader.header(), reader.place(), strict);
    while let Some(record) = reader.next() {
        match record {
            Ok(record) => checker.look(&record, reader.place()),
            Err(error) => checker.fail(error),
        }
    }
    checker.finish()
}

/// Checks records as they come.
#[derive(Clone, Debug)]
pub struct Checker {
    strict: bool,
    complete: bool,
    workers: u64,
    /// The number of the record that is looked at, and where it is.
    record: u64,
    place: Place,
    first: Option<u64>,
    next_seq: u64,
    events: u64,
    choices: u64,
    next_host: u64,
    /// A step of the host's scheduler is under way.
    in_step: bool,
    digest: Digest,
    /// Until the first breach: what comes after it rests on it.
    laws: Option<Refinement>,
    /// What labels and marks are about, to be looked for at the end.
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
    /// Begins with a trace's header, which stands at `place`.
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
                "the first events are missing: no law can be tested",
            );
            checker.ensure(header.workers > 0, "no_workers", "a run without workers");
            checker.ensure(!header.program.is_empty(), "no_program", "the program has no name");
            checker.ensure(!header.host.is_empty(), "no_host", "the host has no name");
        }
        checker
    }

    /// Looks at the next record, which stands at `place`.
    pub fn look(&mut self, record: &Record, place: Place) {
        (self.record, self.place) = (self.record + 1, place);
        if self.end.is_some() {
            return self.ensure(false, "after_end", "something follows the end record");
        }
        match record {
            Record::Event(event) => self.look_at_event(event),
            Record::Choice(choice) => self.look_at_choice(choice),
            Record::Host(host) => {
                let text = format!("host event {} after {}", host.seq, self.next_host);
                self.ensure_strictly(host.seq >= self.next_host, "host_seq", text);
                self.next_host = host.seq.saturating_add(1);
                if self.strict {
                    self.look_at_host(host);
                }
            }
            Record::Label(label) => self.mention(Mention::Label(label.class, label.number)),
            Record::Mark(mark) => self.mention(Mention::Mark(mark.seq)),
            Record::End(end) => self.look_at_end(*end),
        }
    }

    /// Takes note that it cannot be read any further.
    pub fn fail(&mut self, error: Error) {
        self.keep(error.into());
    }

    /// What it all came to.
    pub fn finish(mut self) -> Report {
        let unended = self.end.is_none() && self.violations.is_empty();
        self.ensure(!unended, "no_end", "there is no end record");
        let Checker { events, choices, end, violations, .. } = self;
        Report { events, choices, digest: self.digest.value(), end, violations }
    }

    fn look_at_event(&mut self, event: &Event) {
        let seq = event.seq;
        let next = self.next_seq;
        let first = self.first.is_none();
        self.first.get_or_insert(seq);
        let (code, text) = match () {
            () if first && (!self.complete || seq == 0) || !first && seq == next => ("", ""),
            () if first => ("seq_start", "a complete trace begins with event 0"),
            () if seq > next => ("seq_gap", "events are missing before it"),
            () => ("seq_back", "its number was there before"),
        };
        if !code.is_empty() {
            self.ensure(false, code, format!("event {seq} where {next} is due: {text}"));
            // What it says cannot be held against what is missing.
            self.laws = None;
        }
        self.next_seq = seq.saturating_add(1);
        self.events += 1;
        event.absorb(&mut self.digest);
        if let EventKind::Decision { worker, .. } = event.kind {
            let text = format!("event {seq}: there is no worker {worker}");
            self.ensure_strictly(worker < self.workers, "decision_worker", text);
        }
        if let Some(Err(breach)) = self.laws.as_mut().map(|laws| laws.look(event)) {
            self.ensure(false, breach.code, format!("event {event}: {breach}"));
            self.laws = None;
        }
    }

    fn look_at_host(&mut self, host: &HostEvent) {
        let begins = host.kind == "scheduler_step_begin";
        self.in_step &= !begins;
        if let Err((code, text)) = scheduler::check(host, self.in_step) {
            self.ensure(false, code, text);
        }
        let ends = host.kind == "scheduler_step_end";
        self.in_step = host.kind == "scheduler_step_decision" || (self.in_step && !ends);
    }

    fn look_at_choice(&mut self, choice: &Choice) {
        let Choice { index, count, picked, .. } = *choice;
        let text = format!("choice {index} where {} is due", self.choices);
        self.ensure_strictly(index == self.choices, "choice_index", text);
        let text = format!("choice {index}: {count} options are no choice");
        self.ensure_strictly(count >= 2, "choice_count", text);
        let text = format!("choice {index}: option {picked} of {count}");
        self.ensure_strictly(picked < count || count < 2, "choice_picked", text);
        self.choices += 1;
    }

    fn look_at_end(&mut self, end: End) {
        self.end = Some(end);
        let End { recorded, lost, digest, choices } = end;
        let text = format!("{recorded} recorded, but {} here and {lost} lost", self.events);
        self.ensure(Some(recorded) == self.events.checked_add(lost), "end_recorded", text);
        let text = format!("{choices} choices, but {} here", self.choices);
        self.ensure(choices == self.choices, "end_choices", text);
        if self.complete && lost == 0 {
            let own = self.digest.value();
            let text = format!("the digest is {own:016x}, not {digest:016x}");
            self.ensure(digest == own, "end_digest", text);
        } else if self.complete {
            let text = format!("{lost} events were lost: the digest cannot be tested");
            self.ensure_strictly(false, "end_lost", text);
        } else {
            let first = self.first.unwrap_or(recorded);
            let text = format!("{first} events are missing at the start, but {lost} lost");
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
            self.look_for(mention, recorded);
        }
        (self.record, self.place) = here;
    }

    fn look_for(&mut self, mention: Mention, recorded: u64) {
        match mention {
            Mention::Mark(seq) => {
                let text = format!("a mark at event {seq}, which is not there");
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
                // After a breach nobody has looked any further.
                let known = self.laws.as_ref().is_none_or(has);
                let text = format!("a name for {} {number}, which is not there", class.name());
                self.ensure(known, "label_unknown", text);
            }
        }
    }

    fn mention(&mut self, mention: Mention) {
        if self.strict {
            self.mentions.push((mention, self.place, self.record));
        }
    }

    fn ensure_strictly(&mut self, holds: bool, code: &'static str, text: impl Into<String>) {
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
