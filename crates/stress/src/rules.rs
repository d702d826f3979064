//! What a runtime is told of itself: limits, times, and a governor of the program's own.

use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use asx::{Builder, Governor, Limits, Suggestion, View};
use asx_kernel::rng::{DetRng, mix64};

use crate::books::Meant;
use crate::program::Micros;

/// The settings of a runtime that most programs leave as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Whether equals go in an order that the seed decides.
    pub(crate) seeded_order: bool,
    pub(crate) governor: Option<Suggestions>,
    /// How many of each thing there may be.
    pub(crate) limits: Option<Limits>,
    pub(crate) timers: Option<usize>,
    pub(crate) longest_timer: Option<Micros>,
    pub(crate) coalesce: Option<Micros>,
    /// How long cleanup may take.
    pub(crate) cleanup_time: Option<Micros>,
    /// How many polls a cancel may be unheeded.
    pub(crate) cancel_latency: Option<u16>,
}

/// What a governor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suggestions {
    Always(Suggestion),
    /// Each time something else.
    Any,
    /// The same, if it does not panic.
    OrPanics,
}

impl Rules {
    /// The rules of a seed; without `bombs` no governor panics.
    pub(crate) fn of(seed: u64, bombs: bool) -> Rules {
        // A stream of its own: the rest of the program is what it is without rules.
        let mut rng = DetRng::new(seed, 1);
        let mut chance = |percent: usize| rng.below(100) < percent;
        if chance(60) {
            return Rules::default();
        }
        let [seeded_order, governed, limited, timers, longest, coalesced, timed, latency] =
            [30, 40, 30, 15, 15, 20, 40, 20].map(&mut chance);
        let mut among = |sizes: &[usize]| sizes[rng.below(sizes.len())];
        let governor = match among(&[0, 1, 2, 2]) {
            0 => Suggestions::Always(Suggestion::MeetDeadlines),
            1 => Suggestions::Always(Suggestion::DrainRegions),
            _ if bombs => Suggestions::OrPanics,
            _ => Suggestions::Any,
        };
        let mut limit = |sizes: &[usize]| among(&[sizes, &[usize::MAX; 2]].concat());
        let limits = Limits {
            tasks: limit(&[1, 4, 16]),
            regions: limit(&[2, 4, 16]),
            obligations: limit(&[0, 1, 4]),
            channels: limit(&[0, 1]),
            ready_queue: limit(&[1, 4]),
            timed_queue: limit(&[1, 4]),
            memory: limit(&[1 << 10, 1 << 13]).min(Limits::default().memory),
            ..Limits::default()
        };
        Rules {
            seeded_order,
            governor: governed.then_some(governor),
            limits: limited.then_some(limits),
            timers: timers.then(|| among(&[0, 1, 8])),
            longest_timer: longest.then(|| among(&[0, 100, 1_000]) as Micros),
            coalesce: coalesced.then(|| among(&[100, 2_000]) as Micros),
            cleanup_time: timed.then(|| among(&[0, 300, 3_000]) as Micros),
            cancel_latency: latency.then(|| among(&[0, 1, 20]) as u16),
        }
    }

    /// Whether something may be refused that a program asks for.
    pub(crate) fn refuse(&self) -> bool {
        self.limits.is_some() || self.timers.is_some() || self.longest_timer.is_some()
    }

    pub(crate) fn apply(&self, mut builder: Builder, seed: u64) -> Builder {
        if self.seeded_order {
            builder = builder.seeded_order();
        }
        if let Some(says) = self.governor {
            builder = builder.governor(Governs { says, asked: AtomicU64::new(seed) });
        }
        if let Some(limits) = self.limits {
            builder = builder.limits(limits);
        }
        if let Some(timers) = self.timers {
            builder = builder.max_timers(timers);
        }
        if let Some(longest) = self.longest_timer {
            builder = builder.max_timer_duration(Duration::from_micros(longest));
        }
        if let Some(window) = self.coalesce {
            builder = builder.coalesce_timers(Duration::from_micros(window), 2);
        }
        if let Some(time) = self.cleanup_time {
            builder = builder.cleanup_time(Some(Duration::from_micros(time)));
        }
        match self.cancel_latency {
            Some(polls) => builder.cancel_latency(Some(polls)),
            None => builder,
        }
    }
}

struct Governs {
    says: Suggestions,
    asked: AtomicU64,
}

impl Governor for Governs {
    fn suggest(&self, _: View) -> Suggestion {
        let drawn = mix64(self.asked.fetch_add(1, Relaxed));
        match self.says {
            Suggestions::Always(suggestion) => return suggestion,
            Suggestions::OrPanics if drawn >> 32 & 7 == 0 => panic_any(Meant(None)),
            _ => {}
        }
        [
            Suggestion::NoPreference,
            Suggestion::MeetDeadlines,
            Suggestion::DrainObligations,
            Suggestion::DrainRegions,
        ][drawn as usize & 3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_comes_up_and_none_panics_without_bombs() {
        let all: Vec<_> = (0..400).map(|seed| Rules::of(seed, true)).collect();
        let some = |has: fn(&Rules) -> bool| all.iter().any(has);
        assert!(some(|rules| *rules == Rules::default()));
        assert!(some(|rules| rules.seeded_order));
        assert!(some(|rules| rules.governor == Some(Suggestions::OrPanics)));
        assert!(some(|rules| rules.limits.is_some()));
        assert!(some(|rules| rules.timers.is_some() && rules.longest_timer.is_some()));
        assert!(some(|rules| rules.coalesce.is_some()));
        assert!(some(|rules| rules.cleanup_time.is_some()));
        assert!(some(|rules| rules.cancel_latency.is_some()));
        let meant = |seed| Rules::of(seed, false).governor == Some(Suggestions::OrPanics);
        assert!(!(0..400).any(meant));
    }
}
