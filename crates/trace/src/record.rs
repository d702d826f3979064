//! The records of a trace.

use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::choose::Point;
use asx_kernel::journal::Event;

/// The version of the formats that is written, and the only one that is read. Version 1 had no
/// contract in its header, and used another name for decisions.
pub const VERSION: u64 = 2;

/// The first item of a trace: what was run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The contract that the run is checked against: its id and version. Only traces of
    /// [this build's contract](asx_kernel::CONTRACT) are read.
    pub contract: String,
    /// The program or scenario that ran.
    pub program: String,
    /// The host it ran on.
    pub host: String,
    /// The seed of the run's choices.
    pub seed: u64,
    /// The number of workers, including threads in `block_on` that are not workers.
    pub workers: u64,
    /// Whether the trace begins with event 0.
    pub complete: bool,
    /// Additional name-value pairs; the names are distinct.
    pub meta: Vec<(String, String)>,
}

impl Header {
    /// Creates the header of a complete trace with one worker and seed 0.
    pub fn new(program: impl Into<String>, host: impl Into<String>) -> Header {
        let program = program.into();
        let host = host.into();
        let contract = asx_kernel::CONTRACT.into();
        Header { contract, program, host, seed: 0, workers: 1, complete: true, meta: Vec::new() }
    }
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A semantic event. The digest covers the events.
    Event(Event),
    /// A free choice that was made before the next event.
    Choice(Choice),
    /// A name for an id in events.
    Label(Label),
    /// An event that only the host observed.
    Host(HostEvent),
    /// A marked moment.
    Mark(Mark),
    /// The last record.
    End(End),
}

impl Record {
    /// The name of the kind of record.
    pub const fn name(&self) -> &'static str {
        match self {
            Record::Event(_) => "event",
            Record::Choice(_) => "choice",
            Record::Label(_) => "label",
            Record::Host(_) => "host",
            Record::Mark(_) => "mark",
            Record::End(_) => "end",
        }
    }
}

macro_rules! records {
    ($($from:ident => $variant:ident),*) => {$(
        impl From<$from> for Record {
            fn from(value: $from) -> Record {
                Record::$variant(value)
            }
        }
    )*};
}

records! {
    Event => Event, Choice => Choice, Label => Label, HostEvent => Host, Mark => Mark, End => End
}

/// A free choice of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its position among the choices, from 0.
    pub index: u64,
    /// The point of choice.
    pub point: String,
    /// The worker or task that the choice was about.
    pub subject: Option<u64>,
    /// The number of options.
    pub count: u64,
    /// The chosen option: less than `count`.
    pub picked: u64,
}

impl Choice {
    /// Creates the record of a choice that the kernel requested.
    ///
    /// ```
    /// use asx_kernel::choose::Point;
    /// let choice = asx_trace::Choice::of(0, Point::StealStart(2), 3, 1);
    /// assert_eq!((&*choice.point, choice.subject), ("steal_start", Some(2)));
    /// ```
    pub fn of(index: u64, point: Point, count: usize, picked: usize) -> Choice {
        let (point, subject) = match point {
            Point::Worker => ("worker", None),
            Point::ReadyTie(worker) => ("ready_tie", Some(worker as u64)),
            Point::StealStart(worker) => ("steal_start", Some(worker as u64)),
        };
        let count = count as u64;
        let picked = picked as u64;
        Choice { index, point: point.into(), subject, count, picked }
    }
}

/// The class of an object that a label names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A task.
    Task,
    /// A region.
    Region,
    /// A timer.
    Timer,
    /// A channel.
    Channel,
    /// A socket. Its number is among the fields of events.
    Socket,
}

impl Class {
    /// All classes: those of an event's subject, in its order, and sockets.
    pub const ALL: [Class; 5] =
        [Class::Task, Class::Region, Class::Timer, Class::Channel, Class::Socket];

    /// The name of the class in events.
    pub const fn name(self) -> &'static str {
        ["task", "region", "timer", "channel", "socket"][self as usize]
    }

    /// Returns the class with this name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// The name of an object. For a task: its name or its spawn path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The class of the object.
    pub class: Class,
    /// The number of the object in events.
    pub number: u64,
    /// The name.
    pub text: String,
}

/// An event that only the host observed. Not part of the digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// Its position among the host's events.
    pub seq: u64,
    /// The kind of event.
    pub kind: String,
    /// The fields; their names are distinct.
    pub fields: Vec<(String, Value)>,
}

/// The value of a host event's field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The explicit null value.
    Null,
    /// A number.
    Number(u64),
    /// A boolean.
    Flag(bool),
    /// A text.
    Text(String),
}

/// A marked moment, for example a failure or the point where two runs diverge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The marked event.
    pub seq: u64,
    /// The severity, as a word.
    pub severity: String,
    /// The text to show.
    pub text: String,
}

/// The last record: counts and the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The number of recorded events, lost ones included.
    pub recorded: u64,
    /// The number of recorded events that are not in the trace.
    pub lost: u64,
    /// The digest of all recorded events.
    pub digest: u64,
    /// The number of choices in the trace.
    pub choices: u64,
}
