//! The wheel compared with the reference heap, over random operation sequences: every result,
//! every batch with its order and handles, and the wheel's invariants after each step.

use asx_kernel::rng::DetRng;
use asx_kernel::time::Time;
use asx_kernel::wheel::{Coalesce, RegisterError, TimerHandle, Wheel, WheelConfig};
use std::time::Duration;

use crate::timer_heap::TimerHeap;

const MS: u64 = 1_000_000;
const DAY: u64 = 86_400_000 * MS;

/// Both structures, with the same operations applied.
struct Pair {
    rng: DetRng,
    wheel: Wheel<u32>,
    heap: TimerHeap<u32>,
    /// All handles so far, live and stale.
    handles: Vec<TimerHandle>,
    tokens: u32,
    peak: usize,
}

impl Pair {
    fn new(config: WheelConfig, start: u64, seed: u64) -> Pair {
        let start = Time::from_nanos(start);
        Pair {
            rng: DetRng::new(seed, 0),
            wheel: Wheel::new(config.clone(), start),
            heap: TimerHeap::new(config, start),
            handles: Vec::new(),
            tokens: 0,
            peak: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    /// Returns a time span: mostly short, of every magnitude, often at or near a boundary.
    fn span(&mut self) -> u64 {
        match self.below(12) {
            0 => self.below(MS),
            1 => self.below(4) * MS,
            2 | 3 => self.below(300 * MS),
            4 => self.below(70_000 * MS),
            5 => self.below(2 * DAY),
            6 => self.below(8 * DAY),
            7 => [1, 256, 65_536, 16_777_216, 4_294_967_296][self.rng.below(5)] * MS,
            8 => [DAY, 7 * DAY, 7 * DAY + 1, 256 * MS][self.rng.below(4)],
            9 => ([1, 256, 65_536, 16_777_216][self.rng.below(4)] * MS - 1) + self.below(3),
            10 => 0,
            _ => self.below(20 * MS),
        }
    }

    fn deadline(&mut self) -> Time {
        let now = self.wheel.now().as_nanos();
        let span = self.span();
        let past = self.below(10) == 0;
        Time::from_nanos(if past { now.saturating_sub(span) } else { now.saturating_add(span) })
    }

    /// Returns a handle: a recent one, any one, or a forged one.
    fn handle(&mut self) -> TimerHandle {
        let known = self.handles.len();
        let back = match self.below(3) {
            0 => known,
            _ => known.min(20),
        };
        if back == 0 {
            return TimerHandle { id: self.below(3), generation: self.below(3) };
        }
        let mut handle = self.handles[known - 1 - self.rng.below(back)];
        match self.below(12) {
            0 => handle.generation = handle.generation.wrapping_add(1),
            1 => handle.id = handle.id.wrapping_sub(1),
            _ => {}
        }
        handle
    }

    fn step(&mut self) {
        match self.below(20) {
            0..=8 => self.register(),
            9..=12 => {
                let handle = self.handle();
                let found = self.wheel.get(handle).map(|(deadline, token)| (deadline, *token));
                let token = self.heap.cancel(handle);
                assert_eq!(found.map(|(_, token)| token), token);
                assert_eq!(self.wheel.cancel(handle), token);
                assert_eq!(self.wheel.level_of(handle), None);
            }
            13 | 14 => self.update(),
            15 | 16 => {
                let to = self.time();
                self.wheel.advance(to);
                self.heap.advance(to);
            }
            _ => self.collect(),
        }
        self.agree();
    }

    fn register(&mut self) {
        let deadline = self.deadline();
        let token = self.tokens;
        self.tokens += 1;
        let made = self.wheel.register(deadline, token);
        assert_eq!(made, self.heap.register(deadline, token));
        if let Ok(handle) = made {
            assert_eq!(self.wheel.get(handle), Some((deadline, &token)));
            self.handles.push(handle);
        }
    }

    fn update(&mut self) {
        let old = self.handle();
        let deadline = self.deadline();
        let token = self.tokens;
        self.tokens += 1;
        let made = self.wheel.update(old, deadline, token);
        assert_eq!(made, self.heap.update(old, deadline, token));
        if let Ok((handle, was)) = made {
            assert!(was.is_none() || self.wheel.get(old).is_none());
            self.handles.push(handle);
        }
    }

    /// Returns a time: mostly a little later; sometimes much later or earlier.
    fn time(&mut self) -> Time {
        let now = self.wheel.now().as_nanos();
        let next = self.wheel.next_deadline().map_or(now, Time::as_nanos);
        Time::from_nanos(match self.below(10) {
            0 => now.saturating_sub(self.span()),
            1 => now.saturating_add(self.span()),
            2 | 3 => next,
            4 => next.saturating_sub(1),
            5 => now,
            _ => now.saturating_add(self.below(5 * MS)),
        })
    }

    fn collect(&mut self) {
        let now = self.time();
        let max = [0, 1, 2, 5, usize::MAX][self.rng.below(5)];
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        let count = self.wheel.collect(now, max, &mut ours);
        assert_eq!(count, ours.len());
        assert_eq!(count, self.heap.collect(now, max, &mut theirs));
        assert_eq!(ours, theirs);
    }

    fn agree(&mut self) {
        assert_eq!(self.wheel.check(), Ok(()));
        assert_eq!(self.wheel.now(), self.heap.now());
        assert_eq!(self.wheel.len(), self.heap.len());
        assert_eq!(self.wheel.is_empty(), self.heap.len() == 0);
        assert_eq!(self.wheel.next_deadline(), self.heap.next_deadline());
        self.peak = self.peak.max(self.wheel.len());
        assert!(self.wheel.storage() <= self.peak);
    }

    /// Advances to the end of time in capped collects: no timer is lost.
    fn finish(mut self) {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        while self.wheel.collect(Time::MAX, 3, &mut ours) > 0 {
            self.heap.collect(Time::MAX, 3, &mut theirs);
        }
        assert_eq!(ours, theirs);
        assert!(self.heap.len() == 0);
        assert_eq!((self.wheel.len(), self.wheel.storage()), (0, 0));
    }
}

fn drive(config: WheelConfig, start: u64, seeds: std::ops::Range<u64>, steps: usize) {
    for seed in seeds {
        let mut pair = Pair::new(config.clone(), start, seed);
        for _ in 0..steps {
            pair.step();
        }
        pair.finish();
    }
}

#[test]
fn the_wheel_agrees_with_the_reference_heap() {
    drive(WheelConfig::default(), 0, 0..10, 400);
    drive(WheelConfig::default(), 12_345_678_901, 10..14, 400);
}

/// Enough cancels to make the wheel compact repeatedly.
#[test]
fn the_wheel_agrees_with_the_heap_after_many_cancels() {
    for seed in 100..103 {
        let mut pair = Pair::new(WheelConfig::default(), 0, seed);
        for _ in 0..30 {
            (0..10).for_each(|_| pair.step());
            for _ in 0..300 {
                pair.register();
                pair.peak = pair.peak.max(pair.wheel.len());
                let last = *pair.handles.last().expect("a handle");
                assert_eq!(pair.wheel.cancel(last), pair.heap.cancel(last));
            }
            pair.agree();
        }
        pair.finish();
    }
}

#[test]
fn the_wheel_agrees_with_the_heap_near_the_end_of_time() {
    drive(WheelConfig::default(), u64::MAX - 20 * DAY, 20..24, 300);
    drive(WheelConfig::default(), u64::MAX - 90_000 * MS, 24..28, 200);
}

#[test]
fn the_wheel_agrees_with_the_heap_at_its_limit() {
    drive(WheelConfig { limit: 6, ..WheelConfig::default() }, 0, 30..36, 300);
    drive(WheelConfig { limit: 0, ..WheelConfig::default() }, 0, 36..37, 50);
}

#[test]
fn ids_and_generations_may_wrap() {
    let config = WheelConfig {
        first_id: u64::MAX - 5,
        first_generation: u64::MAX - 40,
        ..WheelConfig::default()
    };
    drive(config, 5 * MS + 1, 40..45, 300);
}

#[test]
fn the_wheel_agrees_with_the_heap_if_timers_coalesce() {
    for (seed, window, min_group_size) in [
        (50, 10 * MS, 2),
        (52, 300 * MS, 4),
        (54, 700_000, 1),
        (56, 2 * DAY, 5),
        (58, 0, 1),
        (60, 1, 0),
        (62, 1000 * MS + 1, 3),
    ] {
        let coalesce = Some(Coalesce { window: Duration::from_nanos(window), min_group_size });
        drive(WheelConfig { coalesce, ..WheelConfig::default() }, 7, seed..seed + 2, 300);
    }
}

#[test]
fn the_horizon_does_not_change_the_results() {
    for (seed, nanos) in [(70, 0), (72, 1), (74, 500_000), (76, 3 * MS), (78, 90_000 * MS)] {
        let max_wheel_duration = Duration::from_nanos(nanos);
        let config = WheelConfig { max_wheel_duration, ..WheelConfig::default() };
        drive(config, 900_000, seed..seed + 2, 200);
    }
    let config = WheelConfig {
        max_wheel_duration: Duration::MAX,
        max_timer_duration: Duration::MAX,
        ..WheelConfig::default()
    };
    let mut pair = Pair::new(config.clone(), 3, 80);
    let far = Time::MAX;
    let both = (pair.wheel.register(far, 9), pair.heap.register(far, 9));
    assert_eq!(both.0, both.1);
    drive(config, 3, 80..84, 200);
}

#[test]
fn refusals_return_the_token() {
    let config = WheelConfig { limit: 1, ..WheelConfig::default() };
    let mut wheel = Wheel::new(config, Time::ZERO);
    let far = Time::from_nanos(7 * DAY + 1);
    assert_eq!(wheel.register(far, 1), Err(RegisterError::DurationExceeded(1)));
    assert!(wheel.register(Time::from_nanos(7 * DAY), 2).is_ok());
    assert_eq!(wheel.register(Time::ZERO, 3), Err(RegisterError::Exhausted(3)));
}

#[test]
fn reference_heap_keeps_the_rest_of_a_capped_group_due() {
    let window = Duration::from_nanos(10);
    let coalesce = Some(Coalesce { window, min_group_size: 2 });
    let mut heap = TimerHeap::new(WheelConfig { coalesce, ..Default::default() }, Time::ZERO);
    for deadline in [9, 10, 11] {
        heap.register(Time::from_nanos(deadline), deadline).unwrap();
    }
    let mut out = Vec::new();
    assert_eq!(heap.collect(Time::from_nanos(1), 1, &mut out), 1);
    // Alone it would not form a group. As the rest of a group it is due at the end of the window.
    assert_eq!(heap.collect(Time::from_nanos(1), 9, &mut out), 1);
    assert_eq!(out.iter().map(|timer| timer.token).collect::<Vec<_>>(), [9, 10]);
    assert_eq!((heap.collect(Time::from_nanos(1), 9, &mut out), heap.len()), (0, 1));
}
