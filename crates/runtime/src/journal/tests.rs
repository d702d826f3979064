//! Slots, buffers, and the order of what several threads record.

use std::sync::Arc;

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::{Event, EventKind, Journal, Subject, WhenFull};
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;

use super::slot::{self, Told};
use super::*;
use crate::Runnable;
use crate::core::{Host, Settings};
use crate::prim::{Mutex, lock_unseen};

/// A host of no tasks, on which it is later at every look, or always the same time.
struct Clock {
    passes: bool,
    now: AtomicU64,
}

impl Host for Clock {
    fn schedule(&self, _: Runnable) {}

    fn now(&self) -> Time {
        let step = u64::from(self.passes) * 7;
        Time::from_nanos(self.now.fetch_add(step, Relaxed))
    }

    fn time_passes(&self) -> bool {
        self.passes
    }

    fn timer_moved(&self, _: Time) {}

    fn here(&self) -> Option<u16> {
        None
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        Err(entry)
    }
}

fn core(passes: bool, capacity: usize, when_full: WhenFull) -> Arc<Core> {
    let journal = Some(Recording::new(capacity, when_full));
    let host = Clock { passes, now: AtomicU64::new(0) };
    Core::new(Arc::new(host), Settings { journal, ..Settings::default() })
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
    ];
    for from in TaskState::ALL {
        let to = TaskState::ALL.into_iter().filter(|to| *to != from);
        kinds.extend(to.map(|to| EventKind::TaskMoved { from, to }));
    }
    for from in RegionState::ALL {
        kinds.extend(RegionState::ALL.map(|to| EventKind::RegionMoved { from, to }));
    }
    for kind in Kind::ALL {
        for phase in Phase::ALL {
            let (epoch, polls, strengthened) = (1, 1000, kind == Kind::User);
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
                channel: thing.filter(|_| !timed),
                ..task(0)
            },
        ] {
            let slot = Told::new(subject, kind).unwrap().at(1000, 900).unwrap();
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
    assert!(Told::new(task(u64::from(u32::MAX)), sent).is_none());
    assert!(Told::new(Subject { timer: Some(1), channel: Some(1), ..task(1) }, sent).is_none());
    assert!(Told::new(task(1), EventKind::StaleWake {}).is_none());
    let told = Told::new(task(1), sent).unwrap();
    assert!(told.at(5, 6).is_none(), "a time that is later than its stamp");
    assert!(told.at(1 << 40, 0).is_none(), "one that is too much earlier");
    assert!(Dispatch::new(1, Lane::Ready, 1 << 16, 1).packed.is_none());
}

#[test]
fn two_events_in_a_slot_are_read_as_two() {
    let (from, to) = (TaskState::Created, TaskState::Running);
    let dispatch = Dispatch::new(3, Lane::Cancel, 65_535, 16).fallback(true);
    let read = |told: Option<Told>| {
        let (mut read, slot) = (Vec::new(), told.unwrap().at(1, 1).unwrap());
        slot::read(&slot, |subject, kind| read.push((subject, kind)));
        assert_eq!(slot::events(&slot), read.len() as u64);
        read
    };
    let decision = (task(4), EventKind::from(dispatch));
    let moved = (task(4), EventKind::TaskMoved { from, to });
    assert_eq!(read(Told::dispatched(4, 1, dispatch, from, to)), [decision, moved]);
    assert_eq!(read(Told::dispatched(4, 1, dispatch, to, to)), [decision]);
    let ended = (task(4), EventKind::TaskEnded { outcome: Severity::Err });
    assert_eq!(read(Told::ended(4, 1, Severity::Err, from, to)), [moved, ended]);
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
            let (core, mut journal) =
                (core(false, capacity, when_full), Journal::new(capacity, when_full));
            let mut chain = asx_kernel::lanes::DecisionChain::default();
            for (n, (subject, mut kind)) in some_events(count).enumerate() {
                core.note(subject, kind);
                if let EventKind::Decision { decision_seq, decision_hash, .. } = &mut kind {
                    chain.extend(Lane::Ready, subject.task.unwrap(), 0, 16);
                    (*decision_seq, *decision_hash) = (chain.seq, chain.hash);
                }
                journal.record(Time::from_nanos(0), subject, kind);
                assert_eq!(core.is_refusing(), journal.is_refusing(), "after {n}");
                assert_eq!(core.events(), journal.recorded());
            }
            let recorded = core.recorded().unwrap();
            assert_eq!(recorded.events, journal.events().copied().collect::<Vec<_>>());
            assert_eq!((recorded.digest, recorded.lost), (journal.digest(), journal.lost()));
            assert_eq!(recorded.recorded, count);
        }
    }
}

#[test]
fn a_time_beyond_all_stamps_is_kept() {
    let host = Clock { passes: false, now: AtomicU64::new(u64::MAX - 1) };
    let settings =
        Settings { journal: Some(Recording::new(9, WhenFull::Refuse)), ..Settings::default() };
    let core = Core::new(Arc::new(host), settings);
    some_events(4).for_each(|(subject, kind)| core.note(subject, kind));
    let events = core.recorded().unwrap().events;
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
    core.recorded().unwrap().events
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
    let recorded = core.recorded().unwrap();
    assert_eq!((events.len(), recorded.recorded, recorded.lost), (100, 30_000, 29_900));
    assert!(events.iter().map(|event| event.seq).eq(29_900..30_000));
    assert_eq!(core.events(), 30_000);
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
    assert_eq!(core.recorded().unwrap().events.len(), 101);
    assert!(core.recorder.as_ref().unwrap().buffers() <= 2);
}

#[test]
fn a_thread_may_record_for_two_runtimes_in_turns() {
    let cores = [(), ()].map(|()| core(false, 100, WhenFull::Refuse));
    for n in 0..20 {
        let kind = EventKind::SendReserved { permit: n };
        cores[n as usize % 2].note(Subject::default(), kind);
    }
    for (first, core) in cores.iter().enumerate() {
        let permits = core.recorded().unwrap().events.into_iter().map(|event| match event.kind {
            EventKind::SendReserved { permit } => permit,
            _ => u64::MAX,
        });
        assert!(permits.eq((first as u64..20).step_by(2)));
        assert_eq!(core.recorder.as_ref().unwrap().buffers(), 1);
    }
}

#[test]
fn a_look_at_the_clock_lasts_while_polls_are_short() {
    // Later by 7 at each look.
    let core = core(true, 1 << 10, WhenFull::Refuse);
    let recorder = core.recorder.as_ref().unwrap();
    let mut here = recorder.here();
    let mut looks = Vec::new();
    for _ in 0..20 {
        here.begin_poll(recorder, &core.host);
        looks.push(here.time());
    }
    assert_eq!(looks[..8], [7, 7, 14, 14, 14, 14, 21, 21]);
    assert_eq!(looks[6..14], [21; 8]);
    here.rest();
    here.begin_poll(recorder, &core.host);
    let rested = here.time();
    here.begin_poll(recorder, &core.host);
    assert!(rested > looks[19]);
    here.leave();
}

#[test]
fn refusal_is_by_events_not_by_slots() {
    let core = core(true, 3, WhenFull::Refuse);
    let region = core.root();
    assert_eq!(core.room_on_record(), Ok(()));
    some_events(2).for_each(|(subject, kind)| core.note(subject, kind));
    assert_eq!(core.room_on_record(), Err(Status::ResourceExhausted));
    drop(region);
}
