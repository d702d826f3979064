//! Slots, buffers, and the order of what several threads record.

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

/// A clock on which it is later at every look, or always the same time.
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

/// What records: a runtime without tasks.
struct Core {
    recorder: Recorder,
    host: Ticks,
}

impl Core {
    fn note(&self, subject: Subject, kind: EventKind) {
        self.note_of(&Stamp::default(), subject, kind);
    }

    fn note_of(&self, thing: &Stamp, subject: Subject, kind: EventKind) {
        self.recorder.note(&self.host, thing, subject, kind);
    }
}

fn core(passes: bool, capacity: usize, when_full: WhenFull) -> Arc<Core> {
    let recorder = Recording::new(capacity, when_full).recorder(passes);
    // It was looked at once before.
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
fn what_is_told_in_few_words_is_read_as_it_was() {
    for kind in kinds() {
        let timed = matches!(kind.code(), 40..50);
        let thing = Some(5);
        for subject in [
            Subject::default(),
            task(7),
            Subject {
                timer: thing.filter(|_| timed),
                channel: thing.filter(|_| !timed && kind.code() < 80),
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
fn what_does_not_fit_is_not_told_in_few_words() {
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
    let told = PackedEvent::new(task(1), sent).unwrap();
    assert!(told.at(5, 6).is_none(), "a time that is later than its stamp");
    assert!(told.at(1 << 40, 0).is_none(), "one that is too much earlier");
    assert!(Dispatch::new(1, Lane::Ready, 1 << 16, 1).packed.is_none());
}

#[test]
fn two_events_in_a_slot_are_read_as_two() {
    let from = TaskState::Created;
    let to = TaskState::Running;
    let dispatch = Dispatch::new(3, Lane::Cancel, 65_535, 16).fallback(true);
    let read = |told: Option<PackedEvent>| {
        let mut read = Vec::new();
        let slot = told.unwrap().at(1, 1).unwrap();
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

/// The words that a chunk would have after these, each at its stamp and time, and how many of them
/// are slots.
fn written(told: &[(PackedEvent, u64, u64)]) -> (Vec<u64>, usize) {
    written_by(told, false)
}

/// The same by a worker, which has words for the time, or by others.
fn written_by(told: &[(PackedEvent, u64, u64)], worker: bool) -> (Vec<u64>, usize) {
    let mut context = Context::NONE;
    let mut time = 0;
    let mut slots = 0;
    let mut words = Vec::new();
    for (told, stamp, now) in told {
        if std::mem::replace(&mut time, *now) != *now {
            let known = worker && context.is_known();
            context.is_over();
            words.extend(known.then(|| context.later(*stamp, *now)).flatten());
        }
        match context.brief(told, *stamp) {
            Some((word, tail)) => words.extend([word].into_iter().chain(tail)),
            None => {
                let slot = told.at(*stamp, *now).unwrap();
                context.wrote(&slot);
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
fn what_is_brief_is_read_as_the_slot_it_stands_for() {
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
        let thing = Some(5).filter(|_| matches!(kind.code(), 40..80) && n % 2 == 0);
        let subject = Subject {
            task: Some(task).filter(|task| *task < 2),
            region: Some(region).filter(|region| *region < 6),
            timer: thing.filter(|_| timed),
            channel: thing.filter(|_| !timed),
        };
        let dispatch = &dispatches[n / 5 % 2];
        for told in [
            PackedEvent::new(subject, kind),
            PackedEvent::dispatched(task, region, dispatch, created, running),
            PackedEvent::dispatched(task, region, dispatch, running, running),
            PackedEvent::ended(task, region, Severity::Err, running, TaskState::Completed),
        ] {
            stamp += steps[all.len() % steps.len()];
            if all.len() % 4 == 0 || stamp - now >= 1 << 32 {
                now = stamp;
            }
            all.push((told.unwrap(), stamp, now));
        }
    }
    let expected = all.iter().map(|(told, stamp, now)| told.at(*stamp, *now).unwrap());
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
fn a_word_says_how_late_it_is() {
    let told = |task| PackedEvent::spawned(task, 1, 1, false).unwrap();
    let after = |stamp, time| {
        let mut context = Context::NONE;
        context.wrote(&told(1).at(1000, 900).unwrap());
        assert!(context.is_known());
        context.is_over();
        assert!(!context.is_known());
        context.later(stamp, time).map(|word| (word, context))
    };
    let (word, context) = after(1200, 1100).unwrap();
    let (next, None) = context.brief(&told(2), 1205).unwrap() else { panic!("two words") };
    let slots = [told(1).at(1000, 900), told(2).at(1205, 1100)].map(Option::unwrap);
    let words: Vec<u64> = slots[0].into_iter().chain([word, next]).collect();
    assert_eq!(read(&words), slots);
    assert!(context.brief(&told(2), 1200 + (1 << 15)).is_none(), "a stamp");
    assert!(after(1200, 1201).is_none(), "a time that is later than its stamp");
    assert!(after(999, 950).is_none() && after(1000, 899).is_none(), "no going back");
    assert!(after(1000 + (1 << 28), 1000).is_none(), "too far");
    assert!(after(1000 + (1 << 28), 900 + (1 << 28)).is_none(), "too far");
}

#[test]
fn a_task_s_timer_leaves_the_place_of_its_region_alone() {
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let [from, to, end] = [TaskState::Created, TaskState::Running, TaskState::Completed];
    for region in 0..8 {
        let mut all = Vec::new();
        for task in 0..10 {
            let timer = Subject { task: Some(task), timer: Some(task), ..Subject::default() };
            let told = [
                PackedEvent::dispatched(task, region, &dispatch, from, to),
                PackedEvent::new(timer, EventKind::TimerArmed { deadline: 1000 }),
                PackedEvent::new(timer, EventKind::TimerCancelled {}),
                PackedEvent::ended(task, region, Severity::Ok, to, end),
            ];
            all.extend(told.map(|told| (told.unwrap(), 100 + all.len() as u64, 90)));
        }
        let (words, slots) = written(&all);
        assert_eq!((words.len(), slots), (60 + 3, 1), "region {region}");
    }
}

#[test]
fn what_a_mark_shows_is_no_earlier_than_what_was_recorded_under_it() {
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
fn a_task_that_comes_and_goes_is_three_words() {
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let [from, to, end] = [TaskState::Created, TaskState::Running, TaskState::Completed];
    let mut all = Vec::new();
    for task in 0..10 {
        let told = [
            PackedEvent::spawned(task, 3, 128, false),
            PackedEvent::dispatched(task, 3, &dispatch, from, to),
            PackedEvent::ended(task, 3, Severity::Ok, to, end),
        ];
        all.extend(told.map(|told| (told.unwrap(), 100 + all.len() as u64, 90)));
    }
    let (words, slots) = written(&all);
    // The first of its region, and the first dispatch.
    assert_eq!((words.len(), slots), (30 + 2 * 3, 2));
}

#[test]
fn what_is_too_far_from_what_was_before_is_not_brief() {
    let told = |task, region| PackedEvent::spawned(task, region, 1, false).unwrap();
    let mut context = Context::NONE;
    assert!(context.brief(&told(1, 1), 0).is_none(), "nothing was before");
    context.wrote(&told(1, 1).at(1000, 900).unwrap());
    assert!(context.brief(&told(2, 1), 1000).is_some());
    assert!(context.brief(&told(2, 1), 999 + (1 << 15)).is_some());
    assert!(context.brief(&told(2, 1), 1000 + (1 << 15)).is_none(), "a stamp");
    assert!(context.brief(&told(2, 5), 1001).is_none(), "a region");
    let running = TaskState::Running;
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let dispatched = PackedEvent::dispatched(2, 1, &dispatch, running, running).unwrap();
    assert!(context.brief(&dispatched, 1001).is_none(), "the first dispatch");
    context.wrote(&dispatched.at(1001, 900).unwrap());
    assert!(context.brief(&dispatched, 1002).is_some());
    let other = Dispatch::new(1, Lane::Ready, 0, 16);
    let dispatched = PackedEvent::dispatched(2, 1, &other, running, running).unwrap();
    assert!(context.brief(&dispatched, 1002).is_none(), "another worker's");
    let late = PackedEvent::new(task(1), EventKind::TimerFired { deadline: 1 << 50 }).unwrap();
    assert!(context.brief(&late, 1002).is_none(), "a deadline");
    context.is_over();
    assert!(context.brief(&told(2, 1), 1002).is_none(), "another time");
    // Where the stamp is ahead of the time by nearly all that a slot has room for.
    context.wrote(&told(1, 1).at(1 << 32, 1).unwrap());
    assert!(context.brief(&told(2, 1), 1 << 32).is_some());
    assert!(context.brief(&told(2, 1), (1 << 32) + 1).is_none(), "the time");
}

/// Some of each sort: in few words, as they are, and with a number that is too large.
fn some_events(count: u64) -> impl Iterator<Item = (Subject, EventKind)> {
    (0..count).map(|n| match n % 4 {
        0 => (task(n), EventKind::TaskSpawned { priority: 1, finalizer: false }),
        1 => (task(n), EventKind::StaleWake {}),
        2 => (task(n << 33), EventKind::TaskEnded { outcome: Severity::Ok }),
        _ => (task(n), Dispatch::new(0, Lane::Ready, 0, 16).into()),
    })
}

#[test]
fn one_thread_records_what_the_kernels_journal_does() {
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
fn a_time_beyond_all_stamps_is_kept() {
    let host = Ticks { passes: false, now: AtomicU64::new(u64::MAX - 1) };
    let recorder = Recording::new(9, WhenFull::Refuse).recorder(false);
    let core = Core { recorder, host };
    some_events(4).for_each(|(subject, kind)| core.note(subject, kind));
    let events = core.recorder.read().events;
    assert_eq!(events.len(), 4);
    assert!(events.iter().all(|event| event.time == Time::from_nanos(u64::MAX - 1)));
}

/// Threads take turns at a thing; each event names its turn.
fn turns(core: &Core, threads: u64, rounds: u64) -> Vec<Event> {
    let thing = Mutex::new((0, Stamp::default()));
    std::thread::scope(|s| {
        for thread in 0..threads {
            let thing = &thing;
            s.spawn(move || {
                for _ in 0..rounds {
                    // What is only this thread's runs ahead of the thing's stamps.
                    (0..thread).for_each(|_| core.note(Subject::default(), EventKind::SoftStop {}));
                    let mut thing = lock_unseen(thing);
                    let kind = EventKind::SendReserved { permit: thing.0 };
                    core.note_of(&thing.1, Subject::default(), kind);
                    thing.0 += 1;
                }
            });
        }
    });
    core.recorder.read().events
}

#[test]
fn the_events_of_a_thing_are_in_the_order_of_its_lock() {
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
fn a_ring_of_several_threads_tells_what_it_lost() {
    let core = core(true, 100, WhenFull::Overwrite);
    let events = turns(&core, 3, 5000);
    let recorded = core.recorder.read();
    assert_eq!((events.len(), recorded.recorded, recorded.lost), (100, 30_000, 29_900));
    assert!(events.iter().map(|event| event.seq).eq(29_900..30_000));
    assert_eq!(core.recorder.events(), 30_000);
}

#[test]
fn threads_that_come_and_go_share_buffers() {
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
fn a_thread_may_record_for_two_runtimes_in_turns() {
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
fn a_look_at_the_clock_lasts_while_polls_are_short() {
    // Later by 7 at each look.
    let core = core(true, 1 << 10, WhenFull::Refuse);
    let recorder = &core.recorder;
    recorder.with(|here| {
        let mut begin = || {
            here.begin_poll(recorder, &core.host);
            here.time()
        };
        let looks: Vec<u64> = (0..300).map(|_| begin()).collect();
        assert_eq!(looks[..8], [7, 7, 14, 14, 14, 14, 21, 21]);
        // Twice as many polls each time, but not for ever.
        assert_eq!((&looks[6..14], &looks[126..254]), (&[21; 8][..], &[49; 128][..]));
        assert_eq!(looks[254..], [56; 46]);
        here.rest();
        here.begin_poll(recorder, &core.host);
        assert!(here.time() > looks[299]);
    });
}
