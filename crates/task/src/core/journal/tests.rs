//! What tasks, regions and timers leave on the record, and in which order.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Barrier};
use std::task::{Poll, Waker};
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::journal::{Event, WhenFull};
use asx_kernel::lanes::Lane;
use asx_kernel::status::Status;

use asx_journal::Recording;

use super::*;
use crate::core::{Host, Settings};
use crate::region::{Policy, Region};
use crate::spawn::{Plan, make};
use crate::{Begun, Cancelled, Cx, RunContext, Runnable};

/// A ready entry that a worker has chosen like this.
fn chosen(dispatch: Dispatch) -> RunContext {
    RunContext::from_lane(Lane::Ready).recorded(Some(dispatch))
}

/// A host of no tasks, on which it is later at every look, or always the same time.
struct Clock {
    passes: bool,
    now: AtomicU64,
}

// SAFETY: it has no worker, and finds no entries.
unsafe impl Host for Clock {
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

#[test]
fn timers_of_every_generation_are_on_the_record() {
    let core = core(true, 1 << 20, WhenFull::Refuse);
    let region = core.root();
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    // SAFETY: Send and 'static.
    let (entry, task) =
        unsafe { make(&region, Plan::default(), |_: Cx| async { Ok::<(), ()>(()) }) };
    // SAFETY: not pinned.
    assert!(unsafe { entry.unwrap().unwrap().begin(chosen(dispatch)) }.is_some_and(Begun::run));
    drop(task);
    assert!(core.recorder.as_ref().unwrap().is_quick());
    let all = [1, u64::from(u32::MAX) - 1, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
    for generation in all {
        core.note_timer((0, 0), TimerHandle { id: 0, generation }, EventKind::TimerCancelled {});
    }
    let events = core.recorded().unwrap().events;
    let timers: Vec<_> = events.iter().filter_map(|event| event.subject.timer).collect();
    assert_eq!(timers, all);
}

#[test]
fn who_only_looks_at_a_task_hides_nothing_from_who_comes_next() {
    let core = core(false, 1 << 20, WhenFull::Refuse);
    // SAFETY: Send and 'static.
    let (entry, _task) =
        unsafe { make(&core.root(), Plan::default(), |_: Cx| async { Ok::<(), ()>(()) }) };
    let entry = entry.unwrap().unwrap();
    // Threads that live as long as each other have places of their own.
    let turn = Barrier::new(3);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let core = &core;
            let entry = &entry;
            let turn = &turn;
            scope.spawn(move || {
                let header = entry.header();
                core.note(Subject::default(), EventKind::SoftStop {});
                for _ in 0..thread {
                    turn.wait();
                }
                match thread {
                    0 => (0..100).for_each(|n| header.tell(EventKind::SendReserved { permit: n })),
                    1 => header.tell_if(|_| false, EventKind::SoftStop {}),
                    _ => header.tell(EventKind::SendReserved { permit: 100 }),
                }
                for _ in thread..3 {
                    turn.wait();
                }
            });
        }
    });
    let permits =
        core.recorded().unwrap().events.into_iter().filter_map(|event| match event.kind {
            EventKind::SendReserved { permit } => Some(permit),
            _ => None,
        });
    assert!(permits.eq(0..=100));
    // SAFETY: not pinned.
    let begun = unsafe { entry.begin(chosen(Dispatch::new(0, Lane::Ready, 0, 16))) };
    assert!(begun.is_some_and(Begun::run));
}

/// What is recorded of tasks that come and go; some have a timer. Whether it was written quickly.
fn lives(passes: bool) -> (Vec<(Subject, EventKind)>, bool) {
    let core = core(passes, 1 << 20, WhenFull::Refuse);
    let region = core.root();
    let recorder = core.recorder.as_ref().unwrap();
    let dispatch = Dispatch::new(0, Lane::Ready, 0, 16);
    let mut quick = 0;
    for n in 0..100 {
        let body = move |cx: Cx| async move {
            if n % 3 == 0 {
                let mut sleep = cx.sleep(Duration::from_secs(1));
                poll_fn(|context| Poll::Ready(Pin::new(&mut sleep).poll(context).is_ready())).await;
            }
            if n % 5 == 0 { Err(()) } else { Ok(()) }
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&region, Plan::default(), body) };
        // SAFETY: not pinned.
        assert!(unsafe { entry.unwrap().unwrap().begin(chosen(dispatch)) }.is_some_and(Begun::run));
        drop(task);
        quick += u64::from(recorder.is_quick());
    }
    let events = core.recorded().unwrap().events.into_iter().map(|event| match event.kind {
        EventKind::TimerArmed { .. } => (event.subject, EventKind::TimerArmed { deadline: 0 }),
        kind => (event.subject, kind),
    });
    (events.collect(), quick == 100)
}

#[test]
fn what_is_written_quickly_says_what_it_does_at_length() {
    let ((quickly, quick), (at_length, slow)) = (lives(true), lives(false));
    assert!(quick && !slow);
    assert_eq!(quickly, at_length);
    // A spawn, a dispatch, two steps and an end each, two events per timer, one of the region.
    assert_eq!(quickly.len(), 5 * 100 + 2 * 34 + 1);
}

#[test]
fn refusal_is_by_events_not_by_slots() {
    let core = core(true, 3, WhenFull::Refuse);
    let region = core.root();
    assert_eq!(core.room_on_record(), Ok(()));
    (0..2).for_each(|_| core.note(Subject::default(), EventKind::SoftStop {}));
    assert_eq!(core.room_on_record(), Err(Status::ResourceExhausted));
    drop(region);
}

/// What is recorded by `then`, of a region from which so many tasks have departed on another
/// thread, whose stamps run ahead: all of it comes after their ends.
fn after_departures(passes: bool, count: usize, then: fn(&Arc<Region>)) -> Vec<Event> {
    let core = core(passes, 1 << 10, WhenFull::Refuse);
    let region = core.root();
    region.meet();
    region.lock().max_children = Some(count);
    // SAFETY: Send and 'static.
    let entries: Vec<_> = (0..count)
        .map(|_| unsafe { make(&region, Plan::default(), ended) }.0.unwrap().unwrap())
        .collect();
    let before = core.recorded().unwrap().events.len();
    std::thread::scope(|s| {
        s.spawn(|| {
            (0..100).for_each(|_| core.note(Subject::default(), EventKind::SoftStop {}));
            entries.into_iter().for_each(|entry| assert!(entry.run()));
        });
    });
    then(&region);
    let events = core.recorded().unwrap().events;
    region.end();
    assert!(region.poll_closed(Waker::noop()));
    let is_end = |event: &&Event| matches!(event.kind, EventKind::TaskEnded { .. });
    // The other thread's: of each task that it runs, that it ends, and how.
    let then = before + 100 + 3 * count;
    assert_eq!(events[..then].iter().filter(is_end).count(), count, "{events:?}");
    events[then..].to_vec()
}

async fn ended(_: Cx) -> Result<(), Cancelled> {
    Ok(())
}

#[test]
fn what_depends_on_those_who_have_departed_comes_after_them() {
    for (passes, count) in [(true, 20), (true, 21), (false, 20), (false, 21)] {
        let moved = after_departures(passes, count, |region| region.end());
        assert!(matches!(moved[0].kind, EventKind::RegionMoved { .. }));
        let spawned = after_departures(passes, count, |region| {
            // SAFETY: Send and 'static.
            let (entry, _) = unsafe { make(region, Plan::default(), ended) };
            assert!(entry.unwrap().unwrap().run());
        });
        assert!(matches!(spawned[..], [Event { kind: EventKind::TaskSpawned { .. }, .. }, ..]));
        let opened = after_departures(passes, count, |region| {
            region.open_child(Policy::FailFast, Budget::INFINITE, None).unwrap().end();
        });
        assert!(matches!(opened[0].kind, EventKind::RegionOpened { .. }));
    }
}
