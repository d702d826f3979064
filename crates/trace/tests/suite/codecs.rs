//! Both codecs preserve every record; a truncated trace is read up to its end.

use crate::common;

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::EventKind::*;
use asx_kernel::journal::{Event, EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_trace::{
    Choice, Class, Codec, EXHAUSTIBLE, End, ErrorKind, Header, HostEvent, Label, Limits, Mark,
    Place, Reader, Record, Value, Writer, diff,
};
use common::{header, read, records, write};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const CODECS: [Codec; 2] = [Codec::Json, Codec::Binary];

/// Mostly small numbers, and the extreme ones.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..300u64, 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{0,8}",
        1 => "\\PC{0,20}",
        1 => "[\\x00-\\x7f\"\\\\/é\u{10ffff}]{0,90}",
    ]
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    select(all)
}

fn kind() -> impl Strategy<Value = EventKind> {
    let regions = || one_of(&RegionState::ALL);
    let tasks = || one_of(&TaskState::ALL);
    let outcome = || one_of(&Severity::ALL);
    let cancels = || one_of(&Kind::ALL);
    let decision = (number(), one_of(&Lane::ALL), [number(), number(), number(), number()]);
    let plain = [
        CleanupError {},
        StaleWake {},
        TimerCancelled {},
        SendWaiting {},
        SendLeft {},
        Evicted {},
        Received {},
        SendersGone {},
        SoftStop {},
        GraceExpired {},
    ];
    let how = || one_of(&Opening::ALL);
    let way = || one_of(&Way::ALL);
    let op = || one_of(&IoOp::ALL);
    let numbered = |kind: fn(u64) -> EventKind| number().prop_map(kind);
    prop_oneof![
        option::of(number()).prop_map(|parent| RegionOpened { parent }),
        (number(), how(), option::of(number())).prop_map(|(socket, how, of)| SocketOpened {
            socket,
            how,
            of
        }),
        (number(), way()).prop_map(|(socket, way)| IoWaiting { socket, way }),
        (number(), way()).prop_map(|(socket, way)| IoLeft { socket, way }),
        (number(), way()).prop_map(|(socket, way)| SocketEnded { socket, way }),
        (number(), op(), number()).prop_map(|(socket, op, bytes)| IoDone { socket, op, bytes }),
        (number(), op(), one_of(&IoFailure::ALL)).prop_map(|(socket, op, error)| IoFailed {
            socket,
            op,
            error
        }),
        numbered(|socket| SocketClosed { socket }),
        (regions(), regions()).prop_map(|(from, to)| RegionMoved { from, to }),
        (cancels(), any::<bool>())
            .prop_map(|(kind, strengthened)| RegionCancelled { kind, strengthened }),
        outcome().prop_map(|outcome| RegionOutcome { outcome }),
        outcome().prop_map(|outcome| TaskEnded { outcome }),
        (any::<u8>(), any::<bool>())
            .prop_map(|(priority, finalizer)| TaskSpawned { priority, finalizer }),
        (tasks(), tasks()).prop_map(|(from, to)| TaskMoved { from, to }),
        (number(), one_of(&Phase::ALL), cancels(), number(), any::<bool>()).prop_map(
            |(epoch, phase, kind, polls, strengthened)| CancelWitness {
                epoch,
                phase,
                kind,
                polls,
                strengthened
            }
        ),
        cancels().prop_map(|kind| BudgetExhausted { kind }),
        (decision, any::<bool>()).prop_map(|((worker, lane, [a, b, c, d]), fallback)| Decision {
            worker,
            lane,
            decision_seq: a,
            decision_hash: b,
            cancel_streak: c,
            limit: d,
            fallback,
        }),
        numbered(|obligation| ObligationReserved { obligation }),
        (number(), one_of(&ObligationState::ALL))
            .prop_map(|(obligation, to)| ObligationResolved { obligation, to }),
        numbered(|deadline| TimerArmed { deadline }),
        numbered(|deadline| TimerFired { deadline }),
        numbered(|capacity| ChannelOpened { capacity }),
        numbered(|permit| SendReserved { permit }),
        option::of(number()).prop_map(|permit| Sent { permit }),
        numbered(|dropped| ReceiverGone { dropped }),
        one_of(&EXHAUSTIBLE).prop_map(|what| ResourceExhausted { what }),
        select(plain.to_vec()),
    ]
}

fn subject() -> impl Strategy<Value = Subject> {
    let id = || option::of(number());
    (id(), id(), id(), id()).prop_map(|(task, region, timer, channel)| Subject {
        task,
        region,
        timer,
        channel,
    })
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        number().prop_map(Value::Number),
        any::<bool>().prop_map(Value::Flag),
        text().prop_map(Value::Text),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let class = one_of(&Class::ALL);
    prop_oneof![
        6 => (number(), number(), subject(), kind()).prop_map(|(seq, time, subject, kind)| {
            Event { seq, time: Time::from_nanos(time), subject, kind }.into()
        }),
        1 => (number(), text(), option::of(number()), number(), number()).prop_map(
            |(index, point, subject, count, picked)| {
                Choice { index, point, subject, count, picked }.into()
            }
        ),
        1 => (class, number(), text())
            .prop_map(|(class, number, text)| Label { class, number, text }.into()),
        1 => (number(), text(), btree_map(text(), value(), 0..5)).prop_map(|(seq, kind, fields)| {
            HostEvent { seq, kind, fields: fields.into_iter().collect() }.into()
        }),
        1 => (number(), text(), text())
            .prop_map(|(seq, severity, text)| Mark { seq, severity, text }.into()),
    ]
}

fn any_header() -> impl Strategy<Value = Header> {
    let meta = btree_map(text(), text(), 0..5);
    (text(), text(), number(), number(), any::<bool>(), meta).prop_map(
        |(program, host, seed, workers, complete, meta)| {
            let meta = meta.into_iter().collect();
            Header { seed, workers, complete, meta, ..Header::new(program, host) }
        },
    )
}

fn any_end() -> impl Strategy<Value = Record> {
    (number(), number(), any::<u64>(), number()).prop_map(|(recorded, lost, digest, choices)| {
        End { recorded, lost, digest, choices }.into()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_trace_survives_both_codecs(
        header in any_header(),
        mut records in vec(record(), 0..200),
        end in any_end(),
    ) {
        records.push(end);
        for codec in CODECS {
            let bytes = write(codec, &header, &records);
            let mut reader = Reader::open(&bytes[..]).unwrap();
            prop_assert_eq!(reader.header(), &header);
            prop_assert_eq!(reader.codec(), codec);
            let back: Result<Vec<Record>, _> = reader.by_ref().collect();
            prop_assert_eq!(back.unwrap(), &records[..]);
            prop_assert_eq!(reader.record(), records.len() as u64);
            prop_assert_eq!(reader.next(), None);
        }
    }

    #[test]
    fn malformed_input_is_an_error_with_a_position(
        bytes in vec(any::<u8>(), 0..100),
        json in "[\\[\\]{}\":,a-z0-9\\\\ ]{0,80}",
    ) {
        let starts: [&[u8]; 4] = [b"", b"{", b"ASXT\x02", b"{\"record\":\"header\",\"version\":2,"];
        for start in starts {
            for rest in [&bytes[..], json.as_bytes()] {
                let (read, error) = read(&[start, rest].concat());
                prop_assert!(read.is_empty() && error.is_some());
            }
        }
    }
}

#[test]
fn a_truncated_trace_is_read_up_to_its_end() {
    for codec in CODECS {
        let mut all = records();
        // The binary codec needs more records for several blocks.
        for seq in (0..130).filter(|_| codec == Codec::Binary) {
            let text = format!("message number {seq}, to fill a block or two");
            all.push(Mark { seq, severity: "note".into(), text }.into());
        }
        let bytes = write(codec, &header(), &all);
        let mut reader = Reader::open(&bytes[..]).unwrap();
        let mut starts = Vec::new();
        while let Some(record) = reader.next() {
            record.unwrap();
            starts.push(reader.place());
        }
        for cut in 0..bytes.len() {
            let (read, error) = read(&bytes[..cut]);
            let error =
                error.unwrap_or_else(|| panic!("{codec:?}: {cut} bytes read without an error"));
            assert_eq!(error.kind, ErrorKind::Truncated, "{codec:?} {cut}: {error}");
            let (least, most) = match error.place {
                Place::Byte(offset) => {
                    assert_eq!(offset, cut as u64);
                    let before = |place: &&Place| matches!(place, Place::Byte(at) if *at < offset);
                    let begun = starts.iter().filter(before).count();
                    // The last record may be complete.
                    (begun.saturating_sub(1), begun)
                }
                Place::Line { line, column } => {
                    let whole = bytes[..cut].split(|byte| *byte == b'\n');
                    let rest = whole.clone().next_back().unwrap().len();
                    let lines = whole.count() as u64;
                    assert_eq!((line, column), (lines, rest as u64 + 1));
                    (lines.saturating_sub(2) as usize, lines.saturating_sub(2) as usize)
                }
                Place::Nowhere => panic!("{error}"),
            };
            let records = read.len().min(all.len());
            assert_eq!(read[..records], all[..records], "{codec:?} {cut}");
            assert!((least..=most).contains(&read.len()), "{codec:?} {cut}: {}", read.len());
            let opened = error.record > 0;
            assert_eq!(error.record, if opened { read.len() as u64 + 1 } else { 0 });
        }
    }
}

#[test]
fn both_codecs_have_the_same_digest_and_binary_is_smaller() {
    let [json, binary] = CODECS.map(|codec| write(codec, &header(), &records()));
    let [first, second] = [&json, &binary].map(|bytes| read(bytes).0.pop().unwrap());
    assert_eq!(first, second);
    assert!(binary.len() * 5 < json.len(), "{} of {}", binary.len(), json.len());
}

#[test]
fn members_are_accepted_in_any_order_with_escapes_and_blanks() {
    let text = "{ \"complete\" : true , \"meta\":{ }, \"workers\":1,\"seed\":0,\
        \"host\":\"\\u0068\",\
        \"contract\":\"asx-semantics-1\",\
        \"program\":\"\\ud83d\\ude00\\/\",\"version\":2,\"record\":\"header\"}\r\n\
        {\"text\":\"b\",\"record\":\"label\",\"number\":3,\"class\":\"timer\"}\n";
    let mut reader = Reader::open(text.as_bytes()).unwrap();
    assert_eq!(reader.header(), &Header::new("\u{1f600}/", "h"));
    let label = Label { class: Class::Timer, number: 3, text: "b".into() };
    assert_eq!(reader.next(), Some(Ok(label.into())));
}

#[test]
fn readers_and_writers_refuse_oversized_parts() {
    let small = Limits { line: 300, block: 250, text: 20, pairs: 2 };
    let mark = |text: String| Record::from(Mark { seq: 0, severity: "s".into(), text });
    let host = |pairs: u64| {
        let fields = (0..pairs).map(|at| (at.to_string(), Value::Null)).collect();
        Record::from(HostEvent { seq: 0, kind: "k".into(), fields })
    };
    let header = Header::new("p", "h");
    for codec in CODECS {
        for (record, what) in
            [(mark("x".repeat(21)), "bytes of a text"), (host(3), "number of pairs")]
        {
            let mut writer = Writer::with_limits(Vec::new(), codec, &header, small).unwrap();
            let max = if what == "number of pairs" { 2 } else { 20 };
            assert_eq!(writer.write(&record), Err(ErrorKind::Limit { what, max }));
            assert_eq!(writer.write(&mark("x".into())), Err(ErrorKind::Closed));
            assert_eq!(writer.finish().err(), Some(ErrorKind::Closed));
            let bytes = write(codec, &header, std::slice::from_ref(&record));
            let mut reader = Reader::with_limits(&bytes[..], small).unwrap();
            let error = reader.next().unwrap().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Limit { what, max }, "{error}");
            assert_eq!(reader.next(), None);
        }
        let tiny = Limits { line: 20, block: 10, ..small };
        let bytes = write(codec, &header, &[]);
        let error = Reader::with_limits(&bytes[..], tiny).err().unwrap();
        assert_eq!(error.kind.code(), "limit", "{error}");
    }
}

#[test]
fn duplicate_names_are_refused() {
    let fields = vec![("a".to_owned(), Value::Null), ("a".to_owned(), Value::Flag(true))];
    let record = HostEvent { seq: 0, kind: "k".into(), fields }.into();
    for codec in CODECS {
        let mut writer = Writer::new(Vec::new(), codec, &header()).unwrap();
        let field = "a".to_owned();
        assert_eq!(writer.write(&record), Err(ErrorKind::DuplicateField { field }));
    }
}

#[test]
fn flushed_records_can_be_read_before_the_rest_is_written() {
    for codec in CODECS {
        let mut writer = Writer::new(Vec::new(), codec, &header()).unwrap();
        for record in &records()[..10] {
            writer.write(record).unwrap();
        }
        writer.flush().unwrap();
        let bytes = writer.finish().unwrap();
        // The minimal size of the end record with its block.
        let (read, error) = read(&bytes[..bytes.len() - 20]);
        assert_eq!(
            (read.as_slice(), error.map(|e| e.kind)),
            (&records()[..10], Some(ErrorKind::Truncated))
        );
    }
}

#[test]
fn a_failing_source_is_an_error_with_a_position() {
    struct Broken(usize);
    impl std::io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.checked_sub(1) {
                Some(left) => {
                    self.0 = left;
                    let line =
                        b"{\"record\":\"header\",\"version\":2,\"contract\":\"asx-semantics-1\",\
                        \"program\":\"p\",\"host\":\"h\",\"seed\":0,\"workers\":1,\
                        \"complete\":true,\"meta\":{}}\n";
                    buffer[..line.len()].copy_from_slice(line);
                    Ok(line.len())
                }
                None => Err(std::io::Error::other("the disk is gone")),
            }
        }
    }
    let error = Reader::open(Broken(1)).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 1 (record 1): the disk is gone");
    assert_eq!(Reader::open(Broken(0)).err().unwrap().kind.code(), "io");
}

#[test]
fn the_first_difference_is_shown_in_context() {
    let (mut other, all) = (records(), records());
    let event = |record: &Record| match record {
        Record::Event(event) => Some(*event),
        _ => None,
    };
    let events: Vec<Event> = all.iter().filter_map(event).collect();
    // Labels, marks, choices and host events are ignored.
    other.retain(|record| event(record).is_some());
    let of = |records: &[Record]| {
        let bytes = write(Codec::Binary, &header(), records);
        Reader::open(&bytes[..]).unwrap().collect::<Vec<_>>()
    };
    let same = diff(of(&all), of(&other), 3).unwrap();
    assert_eq!((same.common, same.is_same()), (45, true));
    other.remove(20);
    let compared = diff(of(&all), of(&other), 3).unwrap();
    let difference = compared.difference.as_ref().unwrap();
    assert_eq!((compared.common, compared.is_same()), (20, false));
    assert_eq!(difference.before, events[17..20]);
    assert_eq!(difference.after[0], events[20..23]);
    assert_eq!(difference.after[1], events[21..24]);
    assert_ne!(compared.digests[0], compared.digests[1]);
    other.truncate(20);
    let compared = diff(of(&all), of(&other), 3).unwrap();
    assert_eq!(compared.difference.unwrap().after[1], []);
    let mut cut = of(&all);
    cut[30] = Err(Reader::open(&b"x"[..]).err().unwrap());
    let unread = diff(of(&all), cut, 3).unwrap_err();
    assert_eq!((unread.side, unread.error.kind), (1, ErrorKind::Magic));
}
