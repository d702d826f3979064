//! Tests of slots, buffers, and the order of events from several threads.

use std::sync::Arc;

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::{Event, EventKind, Journal, Subject, WhenFull};
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;

use super::delta::{self, Context};
use super::slot::{self, PackedEvent};
use super::*;
use crate::prim::{Mutex, lock_unseen};

/// A clock that advances at every read, or never.
struct Ticks {
    passes: bool,
    now: AtomicU64,
}

impl Clock for Ticks {
    fn now(&self) -> Time {
        let step = u64::from(self.passes) * 7;
        Time::from_nanos(self.now.fetch_add(step, Relaxed))
    }
}

/// A recorder with its clock, in wide_index of a runtime.
struct Core {
    recorder: Recorder,
    host: Ticks,
}

impl Core {
    fn note(&self, subject: Subject, kind: EventKind) {
        self.note_of(&Stamp::default(), subject, kind);
    }

    fn note_of(&self, object: &Stamp, subject: Subject, kind: EventKind) {
        self.recorder.note(&self.host, object, subject, kind);
    }
}

fn core(passes: bool, capacity: usize, when_full: WhenFull) -> Arc<Core> {
    let recorder = Recording::new(capacity, when_full).recorder(passes);
    // As if it had been read once before.
    let now = AtomicU64::new(u64::from(passes) * 7);
    Arc::new(Core { recorder, host: Ticks { passes, now } })
}

fn task(id: u64) -> Subject {
    Subject { task: Some(id), region: Some(1), ..Subject::default() }
}

fn kinds() -> Vec<EventKind> {
    let mut kinds = vec![
        EventKind::TaskSpawned { priority: 128, finalizer: true },
        EventKind::TaskEnded { outcome: Severity::Panicked },
        EventKind::RegionOpened { parent: None },
        EventKind::RegionOpened { parent: Some(0) },
        EventKind::RegionOutcome { outcome: Severity::Cancelled },
        EventKind::TimerArmed { deadline: u64::MAX },
        EventKind::TimerFired { deadline: 0 },
        EventKind::TimerCancelled {},
        EventKind::SendReserved { permit: u64::MAX },
        EventKind::Sent { permit: None },
        EventKind::Sent { permit: Some(0) },
        EventKind::Received {},
        EventKind::SendWaiting {},
        EventKind::SocketClosed { socket: 3 },
        EventKind::IoDone { socket: 0, op: IoOp::Read, bytes: (1 << 56) - 1 },
    ];
    let opened = |how| [None, Some(0)].map(|of| EventKind::SocketOpened { socket: 1, how, of });
    kinds.extend(Opening::ALL.into_iter().flat_map(opened));
    for way in Way::ALL {
        kinds.push(EventKind::IoWaiting { socket: 1, way });
        kinds.push(EventKind::IoLeft { socket: 1, way });
        kinds.push(EventKind::SocketEnded { socket: 1, way });
    }
    for op in IoOp::ALL {
        kinds.push(EventKind::IoDone { socket: 1, op, bytes: 0 });
        kinds.extend(IoFailure::ALL.map(|error| EventKind::IoFailed { socket: 1, op, error }));
    }
    for from in TaskState::ALL {
        let to = TaskState::ALL.into_iter().filter(|to| *to != from);
        kinds.extend(to.map(|to| EventKind::TaskMoved { from, to }));
    }
    for from in RegionState::ALL {
        kinds.extend(RegionState::ALL.map(|to| EventKind::RegionMoved { from, to }));
    }
    for kind in Kind::ALL {
        for phase in Phase::ALL {
            let epoch = 1;
            let polls = 1000;
            let strengthened = kind == Kind::User;
            kinds.push(EventKind::CancelWitness { epoch, phase, kind, polls, strengthened });
        }
    }
    kinds
}

#[test]
fn packed_events_are_read_back_unchanged() {
    for kind in kinds() {
        let timed = matches!(kind.code(), 40..50);
        let object = Some(5);
        for subject in [
            Subject::default(),
            task(7),
            Subject {
                timer: object.filter(|_| timed),
                channel: object.filter(|_| !timed && kind.code() < 80),
                ..task(0)
            },
        ] {
            let slot = PackedEvent::new(subject, kind).unwrap().at(1000, 900).unwrap();
            assert_eq!(
                (slot::stamp(&slot), slot::time(&slot), slot::events(&slot)),
                (1000, 900, 1)
            );
            let mut read = Vec::new();
            slot::read(&slot, |subject, kind| read.push((subject, kind)));
            assert_eq!(read, [(subject, kind)]);
        }
    }
}

#[test]
fn events_that_do_not_fit_are_not_packed() {
    let sent = EventKind::Sent { permit: None };
    assert!(PackedEvent::new(task(u64::from(u32::MAX)), sent).is_none());
    assert!(
        PackedEvent::new(Subject { timer: Some(1), channel: Some(1), ..task(1) }, sent).is_none()
    );
    assert!(PackedEvent::new(task(1), EventKind::StaleWake {}).is_none());
    let closed = |socket| EventKind::SocketClosed { socket };
    assert!(PackedEvent::new(task(1), closed(u64::from(u32::MAX))).is_none());
    let at_a_channel = Subject { channel: Some(1), ..task(1) };
    assert!(PackedEvent::new(at_a_channel, closed(1)).is_none());
    let large = EventKind::IoDone { socket: 1, op: IoOp::Read, bytes: 1 << 56 };
    assert!(PackedEvent::new(task(1), large).is_none());
    let packed = PackedEvent::new(task(1), sent).unwrap();
    assert!(packed.at(5, 6).is_none(), "a time that is time_word than its stamp");
    assert!(packed.at(1 << 40, 0).is_none(), "one that is too much earlier");
    assert!(Dispatch::new(1, Lane::Ready, 1 << 16, 1).packed.is_none());
}

#[test]
fn two_events_in_a_slot_are_read_as_two() {
    let from = TaskState::Created;
    let to = TaskState::Running;
    let dispatch = Dispatch::new(3, Lane::Cancel, 65_535, 16).fallback(true);
    let read = |packed: Option<PackedEvent>| {
        let mut read = Vec::new();
        let slot = packed.unwrap().at(1, 1).unwrap();
        slot::read(&slot, |subject, kind| read.push((subject, kind)));
        assert_eq!(slot::events(&slot), read.len() as u64);
        read
    };
    let decision = (task(4), EventKind::from(dispatch));
    let moved = (task(4), EventKind::TaskMoved { from, to });
    assert_eq!(read(PackedEvent::dispatched(4, 1, &dispatch, from, to)), [decision, moved]);
    assert_eq!(read(PackedEvent::dispatched(4, 1, &dispatch, to, to)), [decision]);
    let ended = (task(4), EventKind::TaskEnded { outcome: Severity::Err });
    assert_eq!(read(PackedEvent::ended(4, 1, Severity::Err, from, to)), [moved, ended]);
}

/// Returns the words that a chunk would contain after these events, each with its stamp and time,
/// and how many of the events needed a slot.
fn written(packed: &[(PackedEvent, u64, u64)]) -> (Vec<u64>, usize) {
    written_by(packed, false)
}

/// Like [`written`]. A `worker` uses time words, other threads do not.
fn written_by(packed: &[(PackedEvent, u64, u64)], worker: bool) -> (Vec<u64>, usize) {
    let mut context = Context::NONE;
    let mut time = 0;
    let mut slots = 0;
    let mut words = Vec::new();
    for (packed, stamp, now) in packed {
        if std::mem::replace(&mut time, *now) != *now {
            let known = worker && context.is_valid();
            context.invalidate();
            words.extend(known.then(|| context.time_word(*stamp, *now)).flatten());
        }
        match context.brief(packed, *stamp) {
            Some((word, tail)) => words.extend([word].into_iter().chain(tail)),
            None => {
                let slot = packed.at(*stamp, *now).unwrap();
                context.observe_slot(&slot);
                words.extend(slot);
                slots += 1;
            }
        }
    }
    (words, slots)
}

fn read(words: &[u64]) -> Vec<slot::Slot> {
    let mut slots = Vec::new();
    delta::read(words, |slot| slots.push(slot));
    slots
}

#[test]
fn short_forms_are_read_back_as_their_slots() {
    let steps = [0, 1, 1, 2, 40, 1 << 14, 1 << 15, 1 << 16, 1 << 31, 1 << 33];
    let dispatches = [0, 1].map(|worker| Dispatch::new(worker, Lane::Ready, 0, 16));
    let [created, running] = [TaskState::Created, TaskState::Running];
    let mut all = Vec::new();
    let mut stamp = 0;
    let mut now = 0;
    for (n, kind) in kinds().into_iter().enumerate().flat_map(|at| [at; 5]) {
        let task = n as u64 % 3;
        let region = n as u64 / 2 % 7;
        let timed = matches!(kind.code(), 40..50);
        let object = Some(5).filter(|_| matches!(kind.code(), 40..80) && n % 2 == 0);
        let subject = Subject {
            task: Some(task).filter(|task| *task < 2),
            region: Some(region).filter(|region| *region < 6),
            timer: object.filter(|_| timed),
            channel: object.filter(|_| !timed),
        };
        let dispatch = &dispatches[n / 5 % 2];
        for packed in [
            PackedEvent::new(subject, kind),
            PackedEvent::dispatched(task, region, dispatch, created, running),
            PackedEvent::dispatched(task, region, dispatch, running, running),
            PackedEvent::ended(task, region, Severity::Err, running, TaskState::Completed),
        ] {
            stamp += steps[all.len() % steps.len()];
            if all.len() % 4 == 0 || stamp - now >= 1 << 32 {
                now = stamp;
            }
            all.push((packed.unwrap(), stamp, now));
        }
    }
    let expected = all.iter().map(|(packed, stamp, now)| packed.at(*stamp, *now).unwrap());
    let expected: Vec<_> = expected.collect();
    let dispatches = expected.iter().filter(|slot| slot::is_dispatch(slot)).count();
    let mut most = all.len();
    for worker in [false, true] {
        let (words, slots) = written_by(&all, worker);
        assert!(0 < slots && slots < most, "{slots} of {}", all.len());
        most = slots;
        assert_eq!(read(&words), expected);
        assert_eq!(delta::dispatches(words.into_iter()), dispatches as u64);
    }
}

#[test]
fn a_time_word_sets_the_time_and_base_stamp() {
    let packed = |task| PackedEvent::spawned(task, 1, 1, false).unwrap();
    let after = |stamp, time| {
        let mut context = Context::NONE;
        context.observe_slot(&packed(1).at(1000, 900).unwrap());
        assert!(context.is_valid());
        context.invalidate();
        assert!(!context.is_valid());
        context.time_word(stamp, time).map(|word| (word, context))
    };
    let (word, context) = after(1200, 1100).unwrap();
    let (next, None) = context.brief(&packed(2), 1205).unwrap() else { panic!("two words") };
    let slots = [packed(1).at(1000, 900), packed(2).at(1205, 1100)].map(Option::unwrap);
    let words: Vec<u64> = slots[0].into_iter().chain([word, next]).collect();
    assert_eq!(read(&words), slots);
    assert!(context.brief(&packed(2), 1200 + (1 << 15)).is_none(), "a stamp");
    assert!(after(1200, 1201).is_none(), "a time that is time_word than its stamp");
    assert!(after(999, 950).is_none() && after(1000, 899).is_none(), "no going back");
    assert!(after(1000 + (1 << 28), 1000).is_none(), "too far");
    assert!(after(1000 + (1 << 28), 900 + (1 << 28)).is_none(), "too far");
}

#[test]
fn timer_events_do_not_evict_the_region_of_their_task() {
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let [from, to, end] = [TaskState::Created, TaskState::Running, TaskState::Completed];
    for region in 0..8 {
        let mut all = Vec::new();
        for task in 0..10 {
            let timer = Subject { task: Some(task), timer: Some(task), ..Subject::default() };
            let packed = [
                PackedEvent::dispatched(task, region, &dispatch, from, to),
                PackedEvent::new(timer, EventKind::TimerArmed { deadline: 1000 }),
                PackedEvent::new(timer, EventKind::TimerCancelled {}),
                PackedEvent::ended(task, region, Severity::Ok, to, end),
            ];
            all.extend(packed.map(|packed| (packed.unwrap(), 100 + all.len() as u64, 90)));
        }
        let (words, slots) = written(&all);
        assert_eq!((words.len(), slots), (60 + 3, 1), "region {region}");
    }
}

#[test]
fn a_mark_shows_a_stamp_no_earlier_than_its_events() {
    let core = core(true, 1 << 20, WhenFull::Refuse);
    core.note(Subject::default(), EventKind::SoftStop {});
    for count in 1..100 {
        let other = core.clone();
        let record = move || {
            (0..count).for_each(|_| other.note(Subject::default(), EventKind::SoftStop {}));
            (other.recorder.mark(), other.recorder.clock())
        };
        let (mark, clock) = std::thread::spawn(record).join().unwrap();
        assert_ne!(mark, core.recorder.mark());
        core.recorder.see_mark(mark);
        assert!(core.recorder.clock() >= clock);
    }
}

#[test]
fn a_short_task_takes_three_words() {
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let [from, to, end] = [TaskState::Created, TaskState::Running, TaskState::Completed];
    let mut all = Vec::new();
    for task in 0..10 {
        let packed = [
            PackedEvent::spawned(task, 3, 128, false),
            PackedEvent::dispatched(task, 3, &dispatch, from, to),
            PackedEvent::ended(task, 3, Severity::Ok, to, end),
        ];
        all.extend(packed.map(|packed| (packed.unwrap(), 100 + all.len() as u64, 90)));
    }
    let (words, slots) = written(&all);
    // The first event of the region, and the first dispatch.
    assert_eq!((words.len(), slots), (30 + 2 * 3, 2));
}

#[test]
fn large_differences_need_a_slot() {
    let packed = |task, region| PackedEvent::spawned(task, region, 1, false).unwrap();
    let mut context = Context::NONE;
    assert!(context.brief(&packed(1, 1), 0).is_none(), "no previous slot");
    context.observe_slot(&packed(1, 1).at(1000, 900).unwrap());
    assert!(context.brief(&packed(2, 1), 1000).is_some());
    assert!(context.brief(&packed(2, 1), 999 + (1 << 15)).is_some());
    assert!(context.brief(&packed(2, 1), 1000 + (1 << 15)).is_none(), "a stamp");
    assert!(context.brief(&packed(2, 5), 1001).is_none(), "a region");
    let running = TaskState::Running;
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let dispatched = PackedEvent::dispatched(2, 1, &dispatch, running, running).unwrap();
    assert!(context.brief(&dispatched, 1001).is_none(), "the first dispatch");
    context.observe_slot(&dispatched.at(1001, 900).unwrap());
    assert!(context.brief(&dispatched, 1002).is_some());
    let other = Dispatch::new(1, Lane::Ready, 0, 16);
    let dispatched = PackedEvent::dispatched(2, 1, &other, running, running).unwrap();
    assert!(context.brief(&dispatched, 1002).is_none(), "another worker's");
    let late = PackedEvent::new(task(1), EventKind::TimerFired { deadline: 1 << 50 }).unwrap();
    assert!(context.brief(&late, 1002).is_none(), "a deadline");
    context.invalidate();
    assert!(context.brief(&packed(2, 1), 1002).is_none(), "another time");
    // The stamp is ahead of the time by nearly the maximum that a slot can hold.
    context.observe_slot(&packed(1, 1).at(1 << 32, 1).unwrap());
    assert!(context.brief(&packed(2, 1), 1 << 32).is_some());
    assert!(context.brief(&packed(2, 1), (1 << 32) + 1).is_none(), "the time");
}

/// Returns events of each sort: packed, unencoded, and with an id too large for packing.
fn some_events(count: u64) -> impl Iterator<Item = (Subject, EventKind)> {
    (0..count).map(|n| match n % 4 {
        0 => (task(n), EventKind::TaskSpawned { priority: 1, finalizer: false }),
        1 => (task(n), EventKind::StaleWake {}),
        2 => (task(n << 33), EventKind::TaskEnded { outcome: Severity::Ok }),
        _ => (task(n), Dispatch::new(0, Lane::Ready, 0, 16).into()),
    })
}

#[test]
fn one_thread_records_the_same_as_the_kernel_journal() {
    for when_full in [WhenFull::Overwrite, WhenFull::Refuse] {
        for (capacity, count) in [(4, 3), (4, 5), (10, 1000), (3000, 2999), (3000, 9000)] {
            let core = core(false, capacity, when_full);
            let mut journal = Journal::new(capacity, when_full);
            let mut chain = asx_kernel::lanes::DecisionChain::default();
            for (n, (subject, mut kind)) in some_events(count).enumerate() {
                core.note(subject, kind);
                if let EventKind::Decision { decision_seq, decision_hash, .. } = &mut kind {
                    chain.extend(Lane::Ready, subject.task.unwrap(), 0, 16);
                    (*decision_seq, *decision_hash) = (chain.seq, chain.hash);
                }
                journal.record(Time::from_nanos(0), subject, kind);
                assert_eq!(core.recorder.is_refusing(), journal.is_refusing(), "after {n}");
                assert_eq!(core.recorder.events(), journal.recorded());
            }
            let recorded = core.recorder.read();
            assert_eq!(recorded.events, journal.events().copied().collect::<Vec<_>>());
            assert_eq!((recorded.digest, recorded.lost), (journal.digest(), journal.lost()));
            assert_eq!(recorded.recorded, count);
        }
    }
}

#[test]
fn a_time_beyond_all_stamps_is_recorded() {
    let host = Ticks { passes: false, now: AtomicU64::new(u64::MAX - 1) };
    let recorder = Recording::new(9, WhenFull::Refuse).recorder(false);
    let core = Core { recorder, host };
    some_events(4).for_each(|(subject, kind)| core.note(subject, kind));
    let events = core.recorder.read().events;
    assert_eq!(events.len(), 4);
    assert!(events.iter().all(|event| event.time == Time::from_nanos(u64::MAX - 1)));
}

/// Threads take turns at an object with a lock; each event names its turn.
fn turns(core: &Core, threads: u64, rounds: u64) -> Vec<Event> {
    let object = Mutex::new((0, Stamp::default()));
    std::thread::scope(|s| {
        for thread in 0..threads {
            let object = &object;
            s.spawn(move || {
                for _ in 0..rounds {
                    // Events without the object run this thread's clock ahead of the object's
                    // stamps.
                    (0..thread).for_each(|_| core.note(Subject::default(), EventKind::SoftStop {}));
                    let mut object = lock_unseen(object);
                    let kind = EventKind::SendReserved { permit: object.0 };
                    core.note_of(&object.1, Subject::default(), kind);
                    object.0 += 1;
                }
            });
        }
    });
    core.recorder.read().events
}

#[test]
fn events_of_an_object_are_in_the_order_of_its_lock() {
    for passes in [true, false] {
        let events = turns(&core(passes, 1 << 20, WhenFull::Refuse), 4, 2000);
        let permits = events.iter().filter_map(|event| match event.kind {
            EventKind::SendReserved { permit } => Some(permit),
            _ => None,
        });
        assert!(permits.eq(0..8000));
        assert!(events.iter().map(|event| event.seq).eq(0..20_000));
        assert!(events.is_sorted_by_key(|event| event.time));
    }
}

#[test]
fn a_ring_of_several_threads_counts_lost_events() {
    let core = core(true, 100, WhenFull::Overwrite);
    let events = turns(&core, 3, 5000);
    let recorded = core.recorder.read();
    assert_eq!((events.len(), recorded.recorded, recorded.lost), (100, 30_000, 29_900));
    assert!(events.iter().map(|event| event.seq).eq(29_900..30_000));
    assert_eq!(core.recorder.events(), 30_000);
}

#[test]
fn short_lived_threads_share_buffers() {
    let core = core(true, 1 << 20, WhenFull::Refuse);
    let record = |core: &Core| core.note(Subject::default(), EventKind::SoftStop {});
    for _ in 0..100 {
        let core = core.clone();
        std::thread::spawn(move || record(&core)).join().unwrap();
    }
    record(&core);
    assert_eq!(core.recorder.read().events.len(), 101);
    assert!(core.recorder.buffers() <= 2);
}

#[test]
fn a_thread_can_record_for_two_runtimes_alternately() {
    let cores = [(), ()].map(|()| core(false, 100, WhenFull::Refuse));
    for n in 0..20 {
        let kind = EventKind::SendReserved { permit: n };
        cores[n as usize % 2].note(Subject::default(), kind);
    }
    for (first, core) in cores.iter().enumerate() {
        let permits = core.recorder.read().events.into_iter().map(|event| match event.kind {
            EventKind::SendReserved { permit } => permit,
            _ => u64::MAX,
        });
        assert!(permits.eq((first as u64..20).step_by(2)));
        assert_eq!(core.recorder.buffers(), 1);
    }
}

#[test]
fn the_clock_is_read_less_often_while_polls_are_short() {
    // The time advances by 7 at each read.
    let core = core(true, 1 << 10, WhenFull::Refuse);
    let recorder = &core.recorder;
    recorder.with(|writer| {
        let mut begin = || {
            writer.begin_poll(recorder, &core.host);
            writer.time()
        };
        let looks: Vec<u64> = (0..300).map(|_| begin()).collect();
        assert_eq!(looks[..8], [7, 7, 14, 14, 14, 14, 21, 21]);
        // Twice as many polls between reads each time, up to a maximum.
        assert_eq!((&looks[6..14], &looks[126..254]), (&[21; 8][..], &[49; 128][..]));
        assert_eq!(looks[254..], [56; 46]);
        writer.rest();
        writer.begin_poll(recorder, &core.host);
        assert!(writer.time() > looks[299]);
    });
}
