//! Construction of an [`EventKind`] from its code and its fields.
//!
//! The kernel lists the fields of a kind with [`EventKind::visit`]; this table is the inverse. The
//! types of the fields are inferred, so the table contains only names. The tests below compare it
//! with the kernel for every kind and every word.

use crate::error::ErrorKind;
use crate::fields::FieldReader;
use crate::record::Value;
use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;

macro_rules! kinds {
    ($($variant:ident = $code:literal $name:literal { $($field:ident),* })*) => {
        /// Returns the code of the kind with this name.
        ///
        /// ```
        /// assert_eq!(asx_trace::kind_code("task_moved"), Some(11));
        /// assert_eq!(asx_trace::kind_code("task_lost"), None);
        /// ```
        pub fn kind_code(name: &str) -> Option<u64> {
            match name {
                $($name => Some($code),)*
                _ => None,
            }
        }

        /// Builds the kind with this code, or returns `None` if there is no such kind.
        pub(crate) fn build(
            code: u64,
            from: &mut impl FieldReader,
        ) -> Result<Option<EventKind>, ErrorKind> {
            Ok(Some(match code {
                $($code => EventKind::$variant {
                    $($field: FieldType::read(from, stringify!($field))?,)*
                },)*
                _ => return Ok(None),
            }))
        }
    };
}

kinds! {
    RegionOpened = 1 "region_opened" { parent }
    RegionMoved = 2 "region_moved" { from, to }
    RegionCancelled = 3 "region_cancelled" { kind, strengthened }
    RegionOutcome = 4 "region_outcome" { outcome }
    UnresolvedObligations = 5 "unresolved_obligations" { count }
    TaskSpawned = 10 "task_spawned" { priority, finalizer }
    TaskMoved = 11 "task_moved" { from, to }
    CancelWitness = 12 "cancel_witness" { epoch, phase, kind, polls, strengthened }
    TaskEnded = 13 "task_ended" { outcome }
    CleanupOverrun = 14 "cleanup_overrun" { polls }
    CleanupError = 15 "cleanup_error" {}
    StaleWake = 16 "stale_wake" {}
    BudgetExhausted = 17 "budget_exhausted" { kind }
    Decision = 18 "scheduler_step_decision" {
        worker, lane, decision_seq, decision_hash, cancel_streak, limit, fallback
    }
    ObligationReserved = 30 "obligation_reserved" { obligation }
    ObligationResolved = 31 "obligation_resolved" { obligation, to }
    TimerArmed = 40 "timer_armed" { deadline }
    TimerFired = 41 "timer_fired" { deadline }
    TimerCancelled = 42 "timer_cancelled" {}
    ChannelOpened = 50 "channel_opened" { capacity }
    SendReserved = 51 "send_reserved" { permit }
    SendWaiting = 52 "send_waiting" {}
    SendLeft = 53 "send_left" {}
    Sent = 54 "sent" { permit }
    SendRefused = 55 "send_refused" { permit }
    SendAborted = 56 "send_aborted" { permit }
    Evicted = 57 "evicted" {}
    Received = 58 "received" {}
    SendersGone = 59 "senders_gone" {}
    ReceiverGone = 60 "receiver_gone" { dropped }
    ResourceExhausted = 70 "resource_exhausted" { what }
    SoftStop = 71 "soft_stop" {}
    GraceExpired = 72 "grace_expired" {}
    SocketOpened = 80 "socket_opened" { socket, how, of }
    IoWaiting = 81 "io_waiting" { socket, way }
    IoLeft = 82 "io_left" { socket, way }
    IoDone = 83 "io_done" { socket, op, bytes }
    IoFailed = 84 "io_failed" { socket, op, error }
    SocketEnded = 85 "socket_ended" { socket, way }
    SocketClosed = 86 "socket_closed" { socket }
}

/// The resources that can be exhausted: the possible words of a `resource_exhausted` event.
pub const EXHAUSTIBLE: [&str; 10] = [
    "tasks",
    "regions",
    "obligations",
    "channels",
    "timers",
    "children",
    "memory",
    "cancel_queue",
    "timed_queue",
    "ready_queue",
];

/// Whether a field is a hash, which is written in a fixed width.
pub(crate) fn is_hash(field: &str) -> bool {
    field == "decision_hash"
}

/// A type of field that can be read.
trait FieldType: Sized {
    fn read(from: &mut impl FieldReader, field: &'static str) -> Result<Self, ErrorKind>;
}

impl FieldType for u64 {
    fn read(from: &mut impl FieldReader, field: &'static str) -> Result<u64, ErrorKind> {
        if is_hash(field) { from.hash(field) } else { from.number(field) }
    }
}

impl FieldType for u8 {
    fn read(from: &mut impl FieldReader, field: &'static str) -> Result<u8, ErrorKind> {
        from.number(field)?.try_into().map_err(|_| ErrorKind::Range { field })
    }
}

impl FieldType for Option<u64> {
    fn read(from: &mut impl FieldReader, field: &'static str) -> Result<Option<u64>, ErrorKind> {
        from.maybe(field)
    }
}

impl FieldType for bool {
    fn read(from: &mut impl FieldReader, field: &'static str) -> Result<bool, ErrorKind> {
        from.flag(field)
    }
}

/// Reads a word and returns its value.
pub(crate) fn word<T>(
    from: &mut impl FieldReader,
    field: &'static str,
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, ErrorKind> {
    let word = from.text(field)?;
    find(word).ok_or_else(|| ErrorKind::Word { field, word: word.into() })
}

macro_rules! words {
    ($($type:ty = $find:expr;)*) => {$(
        impl FieldType for $type {
            fn read(from: &mut impl FieldReader, field: &'static str) -> Result<$type, ErrorKind> {
                word(from, field, $find)
            }
        }
    )*};
}

words! {
    Kind = Kind::from_name;
    Phase = Phase::from_name;
    Lane = Lane::from_name;
    ObligationState = ObligationState::from_name;
    RegionState = RegionState::from_name;
    Severity = Severity::from_name;
    TaskState = TaskState::from_name;
    Opening = Opening::from_name;
    Way = Way::from_name;
    IoOp = IoOp::from_name;
    IoFailure = IoFailure::from_name;
    &'static str = |word| EXHAUSTIBLE.into_iter().find(|known| *known == word);
}

/// Builds the kind with this code from numeric fields: `word` translates numbers to words, and a
/// flag is 0 or 1. Returns `None` if there is no such kind, or if the fields do not fit it.
///
/// ```
/// use asx_kernel::journal::EventKind;
/// let kind = asx_trace::kind_of_fields(1, &[Some(7)], |_| None);
/// assert_eq!(kind, Some(EventKind::RegionOpened { parent: Some(7) }));
/// ```
pub fn kind_of_fields(
    code: u64,
    fields: &[Option<u64>],
    word: impl Fn(u64) -> Option<&'static str>,
) -> Option<EventKind> {
    build(code, &mut RawFields { rest: fields.iter(), word }).ok().flatten()
}

/// Reads fields from a sequence of numbers.
struct RawFields<'a, W> {
    rest: core::slice::Iter<'a, Option<u64>>,
    word: W,
}

impl<W: Fn(u64) -> Option<&'static str>> FieldReader for RawFields<'_, W> {
    fn number(&mut self, field: &'static str) -> Result<u64, ErrorKind> {
        self.maybe(field)?.ok_or(ErrorKind::Range { field })
    }

    fn hash(&mut self, field: &'static str) -> Result<u64, ErrorKind> {
        self.number(field)
    }

    fn maybe(&mut self, _: &'static str) -> Result<Option<u64>, ErrorKind> {
        Ok(self.rest.next().copied().flatten())
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, ErrorKind> {
        Ok(self.number(field)? == 1)
    }

    fn text(&mut self, field: &'static str) -> Result<&str, ErrorKind> {
        let number = self.number(field)?;
        (self.word)(number).ok_or(ErrorKind::Range { field })
    }

    fn pairs(&mut self, field: &'static str) -> Result<Vec<(String, Value)>, ErrorKind> {
        Err(ErrorKind::Range { field })
    }

    fn head(&mut self) -> Result<(u64, Time, Subject), ErrorKind> {
        Err(ErrorKind::Range { field: "head" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Codec, Header, Reader, Record, Writer};
    use asx_kernel::journal::{Event, Field};
    use std::collections::{BTreeMap, BTreeSet};

    /// Returns the same number for every field, and these words in order.
    struct Sample<'a> {
        number: u64,
        words: &'a [&'a str],
    }

    impl FieldReader for Sample<'_> {
        fn number(&mut self, _: &'static str) -> Result<u64, ErrorKind> {
            Ok(self.number)
        }

        fn hash(&mut self, _: &'static str) -> Result<u64, ErrorKind> {
            Ok(!self.number)
        }

        fn maybe(&mut self, _: &'static str) -> Result<Option<u64>, ErrorKind> {
            Ok(Some(self.number).filter(|number| number % 2 == 0))
        }

        fn flag(&mut self, _: &'static str) -> Result<bool, ErrorKind> {
            Ok(self.number.is_multiple_of(2))
        }

        fn text(&mut self, _: &'static str) -> Result<&str, ErrorKind> {
            let (first, rest) = self.words.split_first().expect("no kind has more words");
            self.words = rest;
            Ok(first)
        }

        fn pairs(&mut self, _: &'static str) -> Result<Vec<(String, Value)>, ErrorKind> {
            Ok(Vec::new())
        }

        fn head(&mut self) -> Result<(u64, Time, Subject), ErrorKind> {
            Ok((0, Time::from_nanos(0), Subject::default()))
        }
    }

    /// All words of all enums that occur in fields.
    fn vocabulary() -> BTreeMap<&'static str, Vec<&'static str>> {
        fn names<T: Copy, const N: usize>(
            all: [T; N],
            name: fn(T) -> &'static str,
        ) -> Vec<&'static str> {
            all.into_iter().map(name).collect()
        }
        BTreeMap::from([
            ("kind", names(Kind::ALL, Kind::name)),
            ("phase", names(Phase::ALL, Phase::name)),
            ("lane", names(Lane::ALL, Lane::name)),
            ("obligation", names(ObligationState::ALL, ObligationState::name)),
            ("region", names(RegionState::ALL, RegionState::name)),
            ("severity", names(Severity::ALL, Severity::name)),
            ("task", names(TaskState::ALL, TaskState::name)),
            ("what", EXHAUSTIBLE.to_vec()),
            ("how", names(Opening::ALL, Opening::name)),
            ("way", names(Way::ALL, Way::name)),
            ("op", names(IoOp::ALL, IoOp::name)),
            ("error", names(IoFailure::ALL, IoFailure::name)),
        ])
    }

    /// Returns every kind with every combination of words, for two numbers.
    fn every_kind() -> Vec<EventKind> {
        let all: BTreeSet<&str> = vocabulary().into_values().flatten().collect();
        let mut kinds: Vec<EventKind> = Vec::new();
        for (code, number) in (0..=255).flat_map(|code| [(code, 7), (code, 250)]) {
            for (first, second) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))) {
                let mut sample = Sample { number, words: &[first, second] };
                let built = build(code, &mut sample);
                if let Ok(Some(kind)) = built
                    && !kinds.iter().rev().take(100).any(|known| *known == kind)
                {
                    kinds.push(kind);
                }
            }
        }
        kinds
    }

    #[test]
    fn every_kind_with_every_word_is_rebuilt_from_its_fields() {
        let kinds = every_kind();
        let names: BTreeSet<&str> = kinds.iter().map(EventKind::name).collect();
        assert_eq!(names, EventKind::NAMES.iter().copied().collect());
        let mut words: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for kind in &kinds {
            assert_eq!(kind_code(kind.name()), Some(kind.code()));
            assert!(
                kind.code() < 0xf0,
                "larger codes are tags of other records in the binary codec"
            );
            kind.visit(|field, value| {
                if let Field::Word(word) = value {
                    words.entry((kind.name(), field)).or_default().insert(word);
                }
            });
        }
        let known = vocabulary();
        for ((kind, field), seen) in words {
            let enumeration = match (kind, field) {
                (_, "kind" | "phase" | "lane" | "what" | "how" | "way" | "op" | "error") => field,
                (_, "outcome") => "severity",
                ("obligation_resolved", _) => "obligation",
                ("region_moved", _) => "region",
                ("task_moved", _) => "task",
                other => panic!("unknown field: {other:?}"),
            };
            assert_eq!(seen, known[enumeration].iter().copied().collect(), "{kind} {field}");
        }
    }

    #[test]
    fn every_kind_with_every_word_survives_both_codecs() {
        let events: Vec<Event> = (0..)
            .zip(every_kind())
            .map(|(seq, kind)| {
                let id = |bit: u64| Some(seq).filter(|_| seq >> bit & 1 == 1);
                let subject = Subject { task: id(0), region: id(1), timer: id(2), channel: id(3) };
                Event { seq, time: Time::from_nanos(seq * seq), subject, kind }
            })
            .collect();
        let mut digests = BTreeSet::new();
        for codec in [Codec::Json, Codec::Binary] {
            let mut writer = Writer::new(Vec::new(), codec, &Header::new("p", "h")).unwrap();
            for event in &events {
                writer.write(&(*event).into()).unwrap();
            }
            let bytes = writer.finish().unwrap();
            let mut read = Reader::open(&bytes[..]).unwrap().map(Result::unwrap);
            for event in &events {
                assert_eq!(read.next(), Some(Record::Event(*event)));
            }
            let Some(Record::End(end)) = read.next() else { panic!("no end") };
            digests.insert(end.digest);
        }
        assert_eq!((digests.len(), events.len() > 200), (1, true));
    }

    #[test]
    fn unknown_codes_and_words_are_refused() {
        let mut sample = Sample { number: 1, words: &["Open", "open"] };
        assert_eq!(build(6, &mut sample), Ok(None));
        let word = String::from("open");
        assert_eq!(build(2, &mut sample), Err(ErrorKind::Word { field: "to", word }));
        let mut sample = Sample { number: 256, words: &[] };
        assert_eq!(build(10, &mut sample), Err(ErrorKind::Range { field: "priority" }));
    }
}
