//! The timers against a plain list, and what the hint promises.

use super::*;
use crate::{Runnable, Settings};
use asx_kernel::rng::DetRng;
use std::sync::atomic::AtomicUsize;

/// Counts how often it is told of an earliest timer.
#[derive(Default)]
struct PackedEvent(AtomicUsize);

// SAFETY: it has no worker, and finds no entries.
unsafe impl Host for PackedEvent {
    fn schedule(&self, _: Runnable) {}

    fn now(&self) -> Time {
        Time::ZERO
    }

    fn timer_moved(&self, _: Time) {
        self.0.fetch_add(1, Relaxed);
    }

    fn here(&self) -> Option<u16> {
        None
    }

    fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
        Err(entry)
    }
}

/// Armed timers: deadline, order of arming, handle.
type Model = Vec<(Time, usize, TimerHandle)>;

fn earliest(model: &Model) -> Option<Time> {
    model.iter().map(|(deadline, ..)| *deadline).min()
}

/// Firing first looks at the hint alone. It is never later than the earliest timer, so that this
/// misses none; and a timer before it is always told of.
#[test]
fn firing_by_the_hint_fires_what_is_due_in_order_and_nothing_else() {
    let mut rng = DetRng::new(7, 0);
    let host = PackedEvent::default();
    let timers = Timers::new(Time::ZERO, Settings::default().wheel);
    let mut model = Model::new();
    let mut now = 0;
    let mut skipped = 0;
    let mut fired_any = 0;
    for n in 0..20_000 {
        match rng.next_u64() % 4 {
            0 | 1 => {
                let deadline = Time::from_nanos(now + rng.next_u64() % 3_000_000);
                let told = host.0.load(Relaxed);
                let before = timers.next();
                let handle = timers.register(&host, deadline, n).unwrap();
                let moved = before.is_none_or(|before| deadline < before);
                assert_eq!(host.0.load(Relaxed) - told, usize::from(moved));
                model.push((deadline, n, handle));
            }
            2 if !model.is_empty() => {
                let gone = model.swap_remove(rng.next_u64() as usize % model.len());
                assert_eq!(timers.look(gone.2, |token| *token), Some(gone.1));
                timers.cancel(gone.2);
                assert_eq!(timers.look(gone.2, |token| *token), None);
            }
            _ => {
                now += rng.next_u64() % 200_000;
                let at = Time::from_nanos(now);
                let mut due: Vec<_> = model.extract_if(.., |timer| timer.0 <= at).collect();
                due.sort_by_key(|(deadline, n, _)| (*deadline, *n));
                let mut fired = Vec::new();
                skipped += usize::from(timers.next().is_none_or(|next| next > at));
                let next = timers.fire(at, |expired| fired.push(expired.token));
                assert!(fired.iter().eq(due.iter().map(|(_, n, _)| n)), "{fired:?} {due:?}");
                fired_any += usize::from(!fired.is_empty());
                assert_eq!(next, timers.next());
            }
        }
        let first = earliest(&model);
        assert!(first.is_none_or(|first| timers.next().is_some_and(|next| next <= first)));
    }
    assert!(skipped > 100 && fired_any > 100, "{skipped} {fired_any}");
}

/// More than one batch, all due at once.
#[test]
fn many_due_at_once_all_fire_in_the_order_they_were_armed() {
    let host = PackedEvent::default();
    let timers = Timers::new(Time::ZERO, Settings::default().wheel);
    for n in 0..3 * BATCH {
        timers.register(&host, Time::from_nanos(5), n).unwrap();
    }
    let mut fired = Vec::new();
    assert_eq!(
        timers.fire(Time::from_nanos(4), |expired| fired.push(expired.token)),
        Some(Time::from_nanos(5))
    );
    assert!(fired.is_empty(), "never early");
    assert_eq!(timers.fire(Time::from_nanos(5), |expired| fired.push(expired.token)), None);
    assert!(fired.into_iter().eq(0..3 * BATCH));
}
