//! The state words of tasks and regions: under any events, all transitions are legal and no
//! allowance grows.
#![no_main]

use asx_fuzz::Ops;
use asx_kernel::arena::Key;
use asx_kernel::cancel::{Kind, Reason};
use asx_kernel::ids::RegionId;
use asx_kernel::region::{Duty, RegionState, RegionWord};
use asx_kernel::task::{Lifecycle, TaskState};
use asx_kernel::time::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut ops = Ops::new(bytes);
    if ops.flag() { task(&mut ops) } else { region(&mut ops) }
});

fn task(ops: &mut Ops<'_>) {
    let region = RegionId(Key { generation: 1, index: 0 });
    let mut life = Lifecycle::default();
    while !ops.is_done() {
        let before = life.clone();
        let moved = match ops.below(6) {
            0 => life.poll().is_ok(),
            1 | 2 => {
                let kind = Kind::ALL[ops.below(Kind::ALL.len())];
                let reason = Reason::new(kind, region, Time::from_nanos(ops.number()));
                let first = life.request_cancel(reason, kind.cleanup());
                assert_eq!(first, life.epoch() > before.epoch());
                true
            }
            3 => life.acknowledge().is_ok(),
            4 => life.body_ended().is_ok(),
            _ => {
                if ops.below(4) == 0 {
                    let seen = before.state().acknowledged();
                    life.complete().map(|reason| assert_eq!(reason.is_some(), seen)).is_ok()
                } else {
                    life.consume_cleanup_poll()
                }
            }
        };
        let (from, to) = (before.state(), life.state());
        assert!(from == to || from.check(to).is_ok(), "{from:?} -> {to:?}");
        assert!(moved || before == life, "a refusal changed something");
        assert!(life.epoch() <= 1);
        if let (Some(old), Some(new)) = (before.cancel(), life.cancel()) {
            assert!(new.cleanup.polls <= old.cleanup.polls);
            assert!(new.cleanup.priority >= old.cleanup.priority);
            assert!(new.reason.kind.severity() >= old.reason.kind.severity());
        }
        assert_eq!(life.cancel().is_some(), life.epoch() == 1);
        assert!(from != TaskState::Completed || before == life);
    }
}

fn region(ops: &mut Ops<'_>) {
    let mut word = RegionWord::default();
    while !ops.is_done() {
        let before = word;
        match ops.below(12) {
            0 if word.state() == RegionState::Open => word.task_added(),
            1 if word.live_tasks() > 0 => word.task_done(),
            2 if word.state() == RegionState::Open => word.child_added(),
            3 if word.open_children() > 0 => word.child_done(),
            4 if word.state() == RegionState::Open => word.finalizer_added(),
            5 if word.state() == RegionState::Open => word.obligation_added(),
            6 if word.outstanding() > 0 && word.state() != RegionState::Closed => {
                word.obligation_done();
            }
            7 => word.end(),
            8 => assert_eq!(word.close(), before.state() == RegionState::Open),
            _ => match word.advance() {
                Duty::Release => word.released(),
                Duty::AccountLeaks => word.leaks_accounted(),
                Duty::Wait => assert_eq!(word, before),
                _ => {}
            },
        }
        let (from, to) = (before.state(), word.state());
        assert!(from == to || from.check(to).is_ok(), "{from:?} -> {to:?}");
        if to == RegionState::Closed {
            let left = word.live_tasks() + word.open_children() + word.finalizers();
            assert_eq!((left, word.outstanding()), (0, 0), "closed with live contents");
        }
        if matches!(to, RegionState::Finalizing) && from == RegionState::Draining {
            assert_eq!(word.live_tasks() + word.open_children(), 0);
        }
    }
}
