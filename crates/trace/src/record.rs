//! What a trace consists of.

use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::choose::Point;
use asx_kernel::journal::Event;

/// The version of the formats that is written, and the only one that is read. Version 1 had no
/// contract in its header, and another name for decisions.
pub const VERSION: u64 = 2;

/// What a trace says of itself before anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The contract whose laws the run is held against: id and version. Only traces of
    /// [this build's](asx_kernel::CONTRACT) are read.
    pub contract: String,
    /// The program or scenario that ran.
    pub program: String,
    /// The host it ran on.
    pub host: String,
    /// The seed of its choices.
    pub seed: u64,
    /// How many workers it had, threads in `block_on` that are none counted with them.
    pub workers: u64,
    /// Whether the trace begins with event 0.
    pub complete: bool,
    /// Whatever else its writer wants to say; each name once.
    pub meta: Vec<(String, String)>,
}

impl Header {
    /// A header of a complete trace of one worker under seed 0.
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
    /// A semantic event: what the digest covers.
    Event(Event),
    /// A free choice that was made before the next event.
    Choice(Choice),
    /// A name for something events speak of.
    Label(Label),
    /// Something only the host saw.
    Host(HostEvent),
    /// A moment worth a look.
    Mark(Mark),
    /// The last record.
    End(End),
}

impl Record {
    /// The word for its kind.
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

/// A free choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its position among the choices, from 0.
    pub index: u64,
    /// What was chosen.
    pub point: String,
    /// Whom it was about: a worker, a task.
    pub subject: Option<u64>,
    /// How many options there were.
    pub count: u64,
    /// Which one was taken: less than `count`.
    pub picked: u64,
}

impl Choice {
    /// A choice the kernel asked for.
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

/// What kind of thing a label names.
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
    /// A socket. Events have its number among their fields.
    Socket,
}

impl Class {
    /// All classes: those of an event's subject, in its order, and sockets.
    pub const ALL: [Class; 5] =
        [Class::Task, Class::Region, Class::Timer, Class::Channel, Class::Socket];

    /// The word for it, as events have it.
    pub const fn name(self) -> &'static str {
        ["task", "region", "timer", "channel", "socket"][self as usize]
    }

    /// The class of this name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }
}

/// A name: a task's, or the path it was spawned by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// What it names.
    pub class: Class,
    /// The number events know it by.
    pub number: u64,
    /// The name.
    pub text: String,
}

/// What only the host saw. Not in the digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// Its position among the host's events.
    pub seq: u64,
    /// What happened.
    pub kind: String,
    /// Its fields; each name once.
    pub fields: Vec<(String, Value)>,
}

/// The value of a host event's field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Explicitly nothing.
    Null,
    /// A number.
    Number(u64),
    /// A yes or no.
    Flag(bool),
    /// A text.
    Text(String),
}

/// A moment worth a look: where it failed, where two runs parted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The event it is about.
    pub seq: u64,
    /// How grave it is, in a word.
    pub severity: String,
    /// What there is to see.
    pub text: String,
}

/// How much there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Events that were recorded, lost ones too.
    pub recorded: u64,
    /// Events of those that are not in the trace.
    pub lost: u64,
    /// The digest of all events that were recorded.
    pub digest: u64,
    /// Choices in the trace.
    pub choices: u64,
}
