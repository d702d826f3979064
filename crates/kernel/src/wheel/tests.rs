use super::*;
use core::time::Duration;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000 * MS;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn wheel() -> Wheel<u32> {
    Wheel::new(WheelConfig::default(), Time::ZERO)
}

fn coalescing(window: u64, min_group_size: usize) -> Wheel<u32> {
    let window = Duration::from_nanos(window);
    let coalesce = Some(Coalesce { window, min_group_size });
    Wheel::new(WheelConfig { coalesce, ..WheelConfig::default() }, Time::ZERO)
}

fn add(wheel: &mut Wheel<u32>, nanos: u64, token: u32) -> TimerHandle {
    let handle = wheel.register(at(nanos), token).unwrap();
    assert_eq!(wheel.check(), Ok(()));
    handle
}

fn take(wheel: &mut Wheel<u32>, now: u64, max: usize) -> Vec<u32> {
    let mut out = Vec::new();
    assert_eq!(wheel.collect(at(now), max, &mut out), out.len());
    assert_eq!(wheel.check(), Ok(()));
    out.into_iter().map(|expired| expired.token).collect()
}

#[test]
fn cancel_if_selects_by_token_and_keeps_the_order() {
    let mut wheel = Wheel::new(WheelConfig::default(), Time::ZERO);
    let ms = Time::from_millis;
    let deadlines = [50, 3, 3, 70_000, 9, 500_000_000];
    let handles: Vec<_> = (0_u32..)
        .zip(deadlines)
        .map(|(nth, deadline)| wheel.register(ms(deadline), nth).unwrap())
        .collect();
    let is_even = |token: &u32| token.is_multiple_of(2);
    let taken: Vec<_> =
        wheel.cancel_if(is_even).into_iter().map(|it| (it.deadline, it.token, it.handle)).collect();
    let expected = [(3, 2), (9, 4), (50, 0)];
    assert_eq!(taken, expected.map(|(at, nth)| (ms(at), nth, handles[nth as usize])));
    assert_eq!((wheel.len(), wheel.next_deadline(), wheel.check()), (3, Some(ms(3)), Ok(())));
    assert!(wheel.cancel_if(is_even).is_empty());
    let mut due = Vec::new();
    wheel.collect(Time::MAX, 9, &mut due);
    assert_eq!(due.iter().map(|it| it.token).collect::<Vec<_>>(), [1, 3, 5]);
}

#[test]
fn a_timer_goes_to_the_finest_level_that_covers_its_distance() {
    for now in [0, 1, 999_999, 255 * MS + 7, 123_456_789_012] {
        let mut wheel: Wheel<u32> = Wheel::new(WheelConfig::default(), at(now));
        let mut place = |delta: u64| {
            let handle = add(&mut wheel, now + delta, 0);
            wheel.level_of(handle).unwrap()
        };
        assert_eq!(place(0), Placement::Ready);
        for (level, range) in [256, 256 * 256, 256 * 256 * 256].into_iter().enumerate() {
            assert_eq!(place(range * MS - 1), Placement::Level(level as u8));
            assert_eq!(place(range * MS), Placement::Level(level as u8 + 1));
        }
        assert_eq!(place(1), Placement::Level(0));
        assert_eq!(place(24 * HOUR - 1), Placement::Level(3));
        assert_eq!(place(24 * HOUR), Placement::Overflow);
        assert_eq!(place(7 * 24 * HOUR), Placement::Overflow);
        let far = wheel.register(at(now + 7 * 24 * HOUR + 1), 9);
        assert_eq!(far, Err(RegisterError::DurationExceeded(9)));
    }
}

#[test]
fn a_shorter_wheel_duration_limits_the_levels() {
    let far = Duration::from_hours(24 * 100);
    let config =
        WheelConfig { max_wheel_duration: far, max_timer_duration: far, ..WheelConfig::default() };
    let mut wheel = Wheel::new(config, Time::ZERO);
    let range = (256 * 256 * 256 * 256) * MS;
    let inside = add(&mut wheel, range - 1, 1);
    let outside = add(&mut wheel, range, 2);
    assert_eq!(wheel.level_of(inside), Some(Placement::Level(3)));
    assert_eq!(wheel.level_of(outside), Some(Placement::Overflow));
    wheel.advance(at(1));
    assert_eq!(wheel.level_of(outside), Some(Placement::Level(3)));
    assert_eq!(take(&mut wheel, range, 9), [1, 2]);
}

#[test]
fn entering_a_slot_distributes_it_over_finer_levels() {
    let mut wheel = wheel();
    let handle = add(&mut wheel, 300 * MS + 5, 1);
    let mut level_at = |ms| {
        wheel.advance(at(ms));
        assert_eq!(wheel.check(), Ok(()));
        wheel.level_of(handle).unwrap()
    };
    assert_eq!(level_at(256 * MS - 1), Placement::Level(1));
    assert_eq!(level_at(256 * MS), Placement::Level(0));
    assert_eq!(level_at(300 * MS + 4), Placement::Level(0));
    assert_eq!(level_at(300 * MS + 5), Placement::Ready);
}

#[test]
fn a_slot_that_is_not_yet_entered_does_not_change() {
    let mut wheel = wheel();
    let handle = add(&mut wheel, 520 * MS, 1);
    wheel.advance(at(300 * MS)); // within 256 ms of it, but its slot starts at 512 ms
    assert_eq!(wheel.level_of(handle), Some(Placement::Level(1)));
    wheel.advance(at(512 * MS));
    assert_eq!(wheel.level_of(handle), Some(Placement::Level(0)));
}

#[test]
fn overflow_ends_with_the_current_tick_even_without_a_wheel() {
    let config = WheelConfig { max_wheel_duration: Duration::ZERO, ..WheelConfig::default() };
    let mut wheel = Wheel::new(config, Time::ZERO);
    let handle = add(&mut wheel, 2 * MS - 1, 1);
    assert_eq!(wheel.level_of(handle), Some(Placement::Overflow));
    wheel.advance(at(MS));
    assert_eq!((wheel.level_of(handle), wheel.check()), (Some(Placement::Level(0)), Ok(())));
    assert_eq!(take(&mut wheel, 2 * MS - 1, 9), [1]);
}

#[test]
fn overflow_is_promoted_when_in_range_and_not_before() {
    let mut wheel = wheel();
    let handle = add(&mut wheel, 30 * HOUR, 1);
    wheel.advance(at(6 * HOUR));
    assert_eq!(wheel.level_of(handle), Some(Placement::Overflow));
    wheel.advance(at(6 * HOUR + 1));
    assert_eq!(wheel.level_of(handle), Some(Placement::Level(3)));
    assert_eq!(wheel.next_deadline(), Some(at(30 * HOUR)));
    assert_eq!(take(&mut wheel, 30 * HOUR - 1, 9), []);
    assert_eq!(take(&mut wheel, 30 * HOUR, 9), [1]);
}

#[test]
fn deadlines_of_one_tick_keep_their_nanoseconds() {
    let mut wheel = wheel();
    add(&mut wheel, MS + 500, 2);
    add(&mut wheel, MS + 200, 1);
    wheel.advance(at(MS));
    assert_eq!(wheel.next_deadline(), Some(at(MS + 200)));
    assert_eq!(take(&mut wheel, MS + 199, 9), []);
    assert_eq!(take(&mut wheel, MS + 200, 9), [1]);
    add(&mut wheel, MS + 300, 3);
    assert_eq!(wheel.next_deadline(), Some(at(MS + 300)));
    assert_eq!(take(&mut wheel, MS + 500, 9), [3, 2]);
}

#[test]
fn a_batch_is_ordered_regardless_of_its_timers_paths() {
    let mut wheel = wheel();
    add(&mut wheel, 30 * HOUR, 5); // overflow
    add(&mut wheel, 2 * HOUR, 3); // level 2
    add(&mut wheel, 2 * HOUR, 4);
    add(&mut wheel, 100 * MS, 2); // level 0
    wheel.advance(at(50 * MS));
    add(&mut wheel, 0, 0); // ready
    add(&mut wheel, 7, 1);
    assert_eq!(take(&mut wheel, u64::MAX, 2), [0, 1]);
    add(&mut wheel, 2 * HOUR, 9); // same deadline, later
    assert_eq!(take(&mut wheel, 0, 3), [2, 3, 4]);
    assert_eq!(take(&mut wheel, 0, usize::MAX), [9, 5]);
    assert_eq!(wheel.now(), Time::MAX);
}

#[test]
fn only_the_exact_handle_cancels_once() {
    let mut wheel = wheel();
    let old = add(&mut wheel, 5 * MS, 1);
    assert_eq!(old, TimerHandle { id: 0, generation: 1 });
    assert_eq!(wheel.cancel(TimerHandle { generation: 2, ..old }), None);
    assert_eq!(wheel.cancel(TimerHandle { id: 1, ..old }), None);
    assert_eq!(wheel.cancel(TimerHandle { id: 1 << 32, ..old }), None);
    add(&mut wheel, 6 * MS, 2);
    assert_eq!((wheel.cancel(old), wheel.cancel(old)), (Some(1), None));
    let new = add(&mut wheel, 5 * MS, 3);
    assert_eq!(new, TimerHandle { id: 0, generation: 3 });
    assert_eq!((wheel.get(old), wheel.level_of(old)), (None, None));
    assert_eq!(wheel.cancel(old), None);
    assert_eq!(wheel.get(new), Some((at(5 * MS), &3)));
    assert_eq!(take(&mut wheel, 9 * MS, 9), [3, 2]);
    assert_eq!(wheel.cancel(new), None);
}

#[test]
fn ids_and_generations_wrap_independently() {
    let config = WheelConfig {
        first_id: u64::MAX,
        first_generation: u64::MAX - 1,
        ..WheelConfig::default()
    };
    let mut wheel = Wheel::new(config, Time::ZERO);
    let made: Vec<_> = (0..3).map(|n| add(&mut wheel, 5 * MS, n)).collect();
    let made: Vec<_> = made.into_iter().map(|handle| (handle.id, handle.generation)).collect();
    assert_eq!(made, [(u64::MAX, u64::MAX - 1), (0, u64::MAX), (1, 0)]);
    let mut out = Vec::new();
    wheel.collect(at(5 * MS), 9, &mut out);
    let fired: Vec<_> = out.iter().map(|e| (e.handle.id, e.handle.generation, e.token)).collect();
    assert_eq!(fired, [(u64::MAX, u64::MAX - 1, 0), (0, u64::MAX, 1), (1, 0, 2)]);
}

#[test]
fn an_update_at_the_limit_replaces_and_a_refused_one_keeps_the_old() {
    let config = WheelConfig { limit: 1, ..WheelConfig::default() };
    let mut wheel = Wheel::new(config, Time::ZERO);
    let old = add(&mut wheel, 5 * MS, 1);
    let far = wheel.update(old, at(8 * 24 * HOUR), 2);
    assert_eq!(far, Err(RegisterError::DurationExceeded(2)));
    assert_eq!(wheel.get(old), Some((at(5 * MS), &1)));
    let (new, was) = wheel.update(old, at(6 * MS), 3).unwrap();
    assert_eq!((was, wheel.get(old), wheel.len()), (Some(1), None, 1));
    assert_eq!(wheel.update(old, at(7 * MS), 4), Err(RegisterError::Exhausted(4)));
    assert_eq!(wheel.cancel(new), Some(3));
    let (last, was) = wheel.update(old, at(7 * MS), 5).unwrap();
    assert_eq!((was, wheel.get(last)), (None, Some((at(7 * MS), &5))));
}

#[test]
fn no_storage_and_no_token_remains_after_the_last_timer() {
    let token = Rc::new(());
    let mut wheel = Wheel::new(WheelConfig::default(), Time::ZERO);
    let far = [MS, 300 * MS, HOUR, 30 * HOUR];
    let register = |wheel: &mut Wheel<Rc<()>>, n: usize| {
        wheel.register(wheel.now() + Duration::from_nanos(far[n % 4]), token.clone()).unwrap()
    };
    let handles: Vec<_> = (0..1000).map(|n| register(&mut wheel, n)).collect();
    assert_eq!((wheel.storage(), wheel.len()), (1000, 1000));
    for handle in &handles {
        assert!(wheel.cancel(*handle).is_some());
    }
    assert_eq!((wheel.storage(), wheel.len(), Rc::strong_count(&token)), (0, 0, 1));
    assert!(kept(&wheel) <= slab::KEEP);
    for n in 0..1000 {
        register(&mut wheel, n);
    }
    let mut out = Vec::new();
    wheel.collect(at(99 * HOUR), 999, &mut out);
    assert_eq!(wheel.len(), 1);
    wheel.collect(at(99 * HOUR), 9, &mut out);
    assert_eq!((wheel.storage(), out.len(), Rc::strong_count(&token)), (0, 1000, 1001));
    assert!(kept(&wheel) <= slab::KEEP);
}

/// Returns the largest capacity of a buffer.
fn kept<T>(wheel: &Wheel<T>) -> usize {
    let slab = wheel.slab.bodies.capacity().max(wheel.slab.free.capacity());
    let heaps = wheel.run.capacity().max(wheel.heap.nodes.capacity());
    wheel.levels.slots.iter().map(|slot| slot.refs.capacity()).fold(slab.max(heaps), usize::max)
}

#[test]
fn a_run_that_is_never_empty_releases_taken_nodes() {
    let mut wheel = wheel();
    for tick in (1..1000).map(|tick| tick * MS) {
        // Four are due when the tick begins; the fifth is left for the next collect.
        for nanos in [0, 0, 0, 0, 1] {
            add(&mut wheel, tick + nanos, 0);
        }
        assert!(take(&mut wheel, tick, 9).len() >= 4);
        assert_eq!(wheel.len(), 1);
    }
    assert!(wheel.run.capacity() <= 32);
}

#[test]
fn churn_reuses_storage() {
    let mut wheel = wheel();
    let mut live: Vec<_> = (0..50).map(|n| add(&mut wheel, 1000 * MS + n, 0)).collect();
    for n in 0..1000 {
        let old = core::mem::replace(&mut live[n % 50], TimerHandle { id: 0, generation: 0 });
        assert!(wheel.cancel(old).is_some());
        live[n % 50] = wheel.register(at(n as u64 * MS), 1).unwrap();
    }
    assert_eq!((wheel.len(), wheel.storage()), (50, 50));
}

#[test]
fn the_earliest_deadline_is_found_after_a_cancel_and_cached() {
    let mut wheel = wheel();
    let first = add(&mut wheel, 1000 * MS, 1);
    add(&mut wheel, 1002 * MS, 2);
    add(&mut wheel, 1001 * MS, 3);
    let slot = place(1, 1000 >> 8);
    let remembered = |wheel: &Wheel<u32>| (wheel.levels.slots[slot].min) / MS;
    assert_eq!(wheel.cancel(first), Some(1));
    assert_eq!((wheel.next_deadline(), remembered(&wheel)), (Some(at(1001 * MS)), 1000));
    wheel.advance(at(0));
    assert_eq!((wheel.next_deadline(), remembered(&wheel)), (Some(at(1001 * MS)), 1001));
}

#[test]
fn a_slot_behind_an_earlier_timer_is_not_searched() {
    let mut wheel = wheel();
    let first = add(&mut wheel, 1000 * MS, 1);
    add(&mut wheel, 1001 * MS, 2);
    add(&mut wheel, 5 * MS, 3);
    assert_eq!(wheel.cancel(first), Some(1));
    wheel.advance(at(0));
    assert_eq!(wheel.levels.slots[place(1, 1000 >> 8)].min, 1000 * MS);
    assert_eq!(wheel.next_deadline(), Some(at(5 * MS)));
}

#[test]
fn a_coarse_timer_can_be_the_earliest() {
    let mut wheel = wheel();
    add(&mut wheel, 300 * MS, 1); // level 1
    wheel.advance(at(200 * MS));
    add(&mut wheel, 310 * MS, 2); // level 0
    assert_eq!(wheel.next_deadline(), Some(at(300 * MS)));
    assert_eq!(take(&mut wheel, 305 * MS, 9), [1]);
}

#[test]
fn a_group_fires_only_when_it_is_large_enough() {
    let mut wheel = coalescing(10 * MS, 3);
    add(&mut wheel, 4 * MS, 1);
    add(&mut wheel, 10 * MS, 3);
    add(&mut wheel, 10 * MS + 1, 4);
    assert_eq!(take(&mut wheel, MS, 9), []);
    add(&mut wheel, 5 * MS, 2);
    assert_eq!(take(&mut wheel, 0, 9), [1, 2, 3]);
    assert_eq!(take(&mut wheel, 9 * MS, 9), []);
    assert_eq!(take(&mut wheel, 10 * MS + 1, 9), [4]);
}

#[test]
fn a_capped_group_stays_due_and_open_until_its_last_timer_is_collected() {
    let mut wheel = coalescing(10 * MS, 3);
    let handles: Vec<_> = (3..6).map(|n| add(&mut wheel, u64::from(n) * MS, n)).collect();
    assert_eq!(take(&mut wheel, 1, 1), [3]);
    assert_eq!(wheel.level_of(handles[1]), Some(Placement::Ready));
    assert_eq!(wheel.next_deadline(), Some(at(4 * MS)));
    let joined = add(&mut wheel, 10 * MS, 9);
    assert_eq!(take(&mut wheel, 1, 2), [4, 5]);
    assert_eq!(wheel.level_of(joined), Some(Placement::Ready));
    assert_eq!(wheel.cancel(joined), Some(9));
    add(&mut wheel, 8 * MS, 8);
    assert_eq!(take(&mut wheel, 1, 9), []);
    assert_eq!(take(&mut wheel, 8 * MS, 9), [8]);
}

#[test]
fn a_group_includes_all_levels_and_the_overflow() {
    let mut wheel = coalescing(48 * HOUR, 5);
    for (token, nanos) in [30 * HOUR, 20 * HOUR, 2 * HOUR, 700 * MS, 3 * MS].into_iter().enumerate()
    {
        assert_eq!(take(&mut wheel, 1, 9), []);
        add(&mut wheel, nanos, token as u32);
    }
    add(&mut wheel, 48 * HOUR + 1, 9);
    assert_eq!(take(&mut wheel, 1, 9), [4, 3, 2, 1, 0]);
}

#[test]
fn time_does_not_go_back() {
    let mut wheel: Wheel<u32> = Wheel::new(WheelConfig::default(), at(50 * MS));
    wheel.advance(at(10 * MS));
    assert_eq!((wheel.now(), wheel.next_deadline()), (at(50 * MS), None));
    add(&mut wheel, 40 * MS, 1);
    assert_eq!(take(&mut wheel, 0, 9), [1]);
    assert!(wheel.is_empty());
}

#[test]
fn a_slot_of_cancelled_timers_hides_no_later_one_and_is_cleared() {
    let mut wheel = wheel();
    for level in [1, 256, 65_536] {
        let first = add(&mut wheel, 10 * level * MS, 1);
        let second = add(&mut wheel, 20 * level * MS, 2);
        assert_eq!(wheel.next_deadline(), Some(at(10 * level * MS)));
        assert_eq!(wheel.cancel(first), Some(1));
        assert_eq!((wheel.next_deadline(), wheel.dead), (Some(at(20 * level * MS)), 1));
        wheel.advance(at(0));
        assert_eq!((wheel.next_deadline(), wheel.dead), (Some(at(20 * level * MS)), 0));
        assert_eq!(wheel.cancel(second), Some(2));
        assert_eq!(wheel.next_deadline(), None);
    }
}

#[test]
fn a_cancelled_timer_in_the_heap_is_skipped() {
    let mut wheel = wheel();
    let nanos = [MS, MS + 1, MS + 2, MS + 3, 30 * HOUR, 31 * HOUR, 32 * HOUR];
    let handles: Vec<_> = nanos.into_iter().zip(0..).map(|(n, i)| add(&mut wheel, n, i)).collect();
    wheel.advance(at(MS));
    let late: Vec<_> = (4..7).map(|n| add(&mut wheel, MS - n, n as u32)).collect();
    for gone in [handles[2], handles[4], handles[5], late[1], late[2]] {
        assert!(wheel.cancel(gone).is_some());
        assert_eq!(wheel.check(), Ok(()));
    }
    assert_eq!(wheel.next_deadline(), Some(at(MS - 4)));
    assert_eq!(take(&mut wheel, MS + 3, 3), [4, 0, 1]);
    assert_eq!(take(&mut wheel, MS + 3, 1), [3]);
    assert_eq!(wheel.next_deadline(), Some(at(32 * HOUR)));
    assert_eq!((take(&mut wheel, 31 * HOUR, 9), wheel.len()), (Vec::new(), 1));
    assert_eq!(take(&mut wheel, 32 * HOUR, 9), [6]);
}

#[test]
fn slots_keep_little_memory_whether_timers_fire_or_are_cancelled() {
    let config = WheelConfig { limit: 64, ..WheelConfig::default() };
    for (fires, stays) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut wheel = Wheel::new(config.clone(), Time::ZERO);
        let stays = usize::from(stays);
        (0..stays).for_each(|_| _ = add(&mut wheel, 100 * HOUR, 1));
        for slot in 1..200 {
            let due = at(slot * 300 * MS);
            let register = |_| wheel.register(due, 9).unwrap();
            let timers: Vec<_> = (stays..64).map(register).collect();
            match fires {
                true => assert_eq!(take(&mut wheel, due.as_nanos(), 64), vec![9; timers.len()]),
                false => timers.into_iter().for_each(|timer| _ = wheel.cancel(timer).unwrap()),
            }
        }
        let kept: usize = wheel.levels.slots.iter().map(|slot| slot.refs.capacity()).sum();
        let most = level::PLACES * turn::keep(64) + 2 * refs_of(64);
        assert!(kept <= most, "{kept} of {most}, fires: {fires}, stays: {stays}");
        assert_eq!(wheel.check(), Ok(()));
    }
}

#[test]
fn what_cancelled_timers_leave_is_bounded_and_going_through_it_loses_nothing() {
    let mut wheel = wheel();
    let far = [3 * MS, 40 * MS, 700 * MS, 2 * HOUR, 20 * HOUR, 30 * HOUR, 0];
    for (nanos, token) in far.into_iter().zip(0..) {
        add(&mut wheel, nanos, token);
    }
    let mut most = 0;
    for n in 0..5000 {
        let handle = wheel.register(at(1 + n * 7 * MS), 9).unwrap();
        assert_eq!(wheel.cancel(handle), Some(9));
        most = most.max(wheel.dead);
        assert_eq!((wheel.storage(), wheel.next_deadline()), (8, Some(at(0))));
    }
    assert_eq!((most, wheel.check()), (2 * 8 + turn::spare(usize::MAX), Ok(())));
    assert_eq!(take(&mut wheel, 40 * HOUR, 9), [6, 0, 1, 2, 3, 4, 5]);
}

/// A reference contains half of a generation. Here a timer gets the same half as a cancelled one,
/// in the same entry and the same slot.
#[test]
fn references_are_rebuilt_before_their_half_generation_recurs() {
    for near in [false, true] {
        let mut wheel = wheel();
        add(&mut wheel, 30 * HOUR, 0);
        add(&mut wheel, HOUR + 1, 0); // keeps the slot
        let old = add(&mut wheel, HOUR, 1);
        assert_eq!(wheel.cancel(old), Some(1));
        wheel.next_generation += (1 << 31) - 5;
        let step = |wheel: &mut Wheel<u32>| {
            if near {
                let due = wheel.register(at(0), 7).unwrap();
                assert_eq!(wheel.cancel(due), Some(7));
            } else {
                wheel.advance(wheel.now() + Duration::from_millis(1));
                wheel.next_generation += 1;
            }
        };
        step(&mut wheel);
        assert_eq!(wheel.dead, 1, "young enough");
        step(&mut wheel);
        step(&mut wheel);
        assert_eq!(wheel.dead, 0);
        wheel.next_generation = old.generation + (1 << 32);
        let new = add(&mut wheel, HOUR, 2);
        assert_eq!((new.id, wheel.cancel(old)), (old.id, None));
        assert_eq!(take(&mut wheel, HOUR, 9), [2]);
    }
}

#[test]
fn batches_are_ordered_if_each_collect_leaves_some_timers() {
    let mut wheel = wheel();
    let deadline = |n: u64| (1 + n / 8) * MS + (n * 5 % 8);
    for n in 0..160 {
        add(&mut wheel, deadline(n), n as u32);
    }
    let mut order: Vec<u32> = (0..160).collect();
    order.sort_by_key(|n| (deadline(u64::from(*n)), *n));
    let mut taken = Vec::new();
    for tick in 1.. {
        let batch = take(&mut wheel, tick * MS + 7, 5);
        if batch.is_empty() {
            break;
        }
        taken.extend(batch);
    }
    assert_eq!(taken, order);
}
