//! The timer wheel compared with the reference heap: every result and every batch.
#![no_main]

use asx_fuzz::Ops;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Coalesce, TimerHandle, Wheel, WheelConfig};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use timer_heap::TimerHeap;

#[path = "../../crates/kernel/tests/laws/timer_heap.rs"]
mod timer_heap;

fuzz_target!(|bytes: &[u8]| {
    let mut ops = Ops::new(bytes);
    let mut config = WheelConfig::default();
    if ops.flag() {
        config.limit = ops.below(20);
    }
    if ops.flag() {
        let window = Duration::from_nanos(ops.number());
        config.coalesce = Some(Coalesce { window, min_group_size: ops.below(6) });
    }
    config.first_id = ops.number();
    config.first_generation = ops.number();
    let start = Time::from_nanos(ops.number());
    let mut wheel = Wheel::new(config.clone(), start);
    let mut heap = TimerHeap::new(config, start);
    let mut handles: Vec<TimerHandle> = Vec::new();
    let mut token = 0_u32;
    while !ops.is_done() {
        token += 1;
        match ops.below(6) {
            0 | 1 => {
                let deadline = instant(&mut ops, wheel.now());
                let made = wheel.register(deadline, token);
                assert_eq!(made, heap.register(deadline, token));
                handles.extend(made);
            }
            2 => {
                let handle = any_handle(&mut ops, &handles);
                assert_eq!(wheel.cancel(handle), heap.cancel(handle));
            }
            3 => {
                let (old, deadline) =
                    (any_handle(&mut ops, &handles), instant(&mut ops, wheel.now()));
                let made = wheel.update(old, deadline, token);
                assert_eq!(made, heap.update(old, deadline, token));
                handles.extend(made.map(|(handle, _)| handle));
            }
            4 => {
                let now = instant(&mut ops, wheel.now());
                wheel.advance(now);
                heap.advance(now);
            }
            _ => {
                let now = instant(&mut ops, wheel.now());
                let max = if ops.flag() { usize::MAX } else { ops.below(4) };
                let (mut ours, mut theirs) = (Vec::new(), Vec::new());
                assert_eq!(wheel.collect(now, max, &mut ours), heap.collect(now, max, &mut theirs));
                assert_eq!(ours, theirs);
            }
        }
        assert_eq!((wheel.len(), wheel.now()), (heap.len(), heap.now()));
        assert_eq!(wheel.next_deadline(), heap.next_deadline());
        assert_eq!(wheel.check(), Ok(()));
    }
});

/// Returns an instant near `now`, or any instant.
fn instant(ops: &mut Ops<'_>, now: Time) -> Time {
    let unit = [1, 1_000_000, 256_000_000, 65_536_000_000, 86_400_000_000_000][ops.below(5)];
    let span = ops.number().saturating_mul(unit);
    let back = ops.below(8) == 0;
    let now = now.as_nanos();
    Time::from_nanos(if back { now.saturating_sub(span) } else { now.saturating_add(span) })
}

fn any_handle(ops: &mut Ops<'_>, handles: &[TimerHandle]) -> TimerHandle {
    match ops.pick(handles) {
        Some(handle) if ops.below(8) != 7 => *handle,
        _ => TimerHandle { id: ops.number(), generation: ops.number() },
    }
}
