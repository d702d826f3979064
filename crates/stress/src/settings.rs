//! Random runtime settings: limits, times, and a custom governor.

use std::panic::panic_any;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use asx::{Builder, Governor, Limits, Suggestion, View};
use asx_kernel::rng::{DetRng, mix64};

use crate::ledger::ExpectedPanic;
use crate::program::Micros;

/// The settings of a runtime that most programs leave at their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuntimeSettings {
    /// Whether the seed determines the order of equals.
    pub(crate) seeded_order: bool,
    pub(crate) governor: Option<GovernorKind>,
    /// The maximal numbers of objects.
    pub(crate) limits: Option<Limits>,
    pub(crate) timers: Option<usize>,
    pub(crate) longest_timer: Option<Micros>,
    pub(crate) coalesce: Option<Micros>,
    /// The time limit of cleanup.
    pub(crate) cleanup_time: Option<Micros>,
    /// The number of polls for which a cancel may be unobserved.
    pub(crate) cancel_latency: Option<u16>,
}

/// The behaviour of a governor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GovernorKind {
    Always(Suggestion),
    /// A different suggestion each time.
    Any,
    /// A different suggestion each time, or a panic.
    OrPanics,
}

impl RuntimeSettings {
    /// Returns the settings for a seed. Without `callback_panics` no governor panics.
    pub(crate) fn of(seed: u64, callback_panics: bool) -> RuntimeSettings {
        // A separate stream, so that the rest of the program does not depend on the settings.
        let mut rng = DetRng::new(seed, 1);
        let mut chance = |percent: usize| rng.below(100) < percent;
        if chance(60) {
            return RuntimeSettings::default();
        }
        let [seeded_order, governed, limited, timers, longest, coalesced, timed, latency] =
            [30, 40, 30, 15, 15, 20, 40, 20].map(&mut chance);
        let mut among = |sizes: &[usize]| sizes[rng.below(sizes.len())];
        let governor = match among(&[0, 1, 2, 2]) {
            0 => GovernorKind::Always(Suggestion::MeetDeadlines),
            1 => GovernorKind::Always(Suggestion::DrainRegions),
            _ if callback_panics => GovernorKind::OrPanics,
            _ => GovernorKind::Any,
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
        RuntimeSettings {
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

    /// Whether requests of the program may be refused.
    pub(crate) fn may_refuse(&self) -> bool {
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
    says: GovernorKind,
    asked: AtomicU64,
}

impl Governor for Governs {
    fn suggest(&self, _: View) -> Suggestion {
        let drawn = mix64(self.asked.fetch_add(1, Relaxed));
        match self.says {
            GovernorKind::Always(suggestion) => return suggestion,
            GovernorKind::OrPanics if drawn >> 32 & 7 == 0 => panic_any(ExpectedPanic(None)),
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
    fn every_setting_occurs_and_none_panics_without_bombs() {
        let all: Vec<_> = (0..400).map(|seed| RuntimeSettings::of(seed, true)).collect();
        let some = |has: fn(&RuntimeSettings) -> bool| all.iter().any(has);
        assert!(some(|settings| *settings == RuntimeSettings::default()));
        assert!(some(|settings| settings.seeded_order));
        assert!(some(|settings| settings.governor == Some(GovernorKind::OrPanics)));
        assert!(some(|settings| settings.limits.is_some()));
        assert!(some(|settings| settings.timers.is_some() && settings.longest_timer.is_some()));
        assert!(some(|settings| settings.coalesce.is_some()));
        assert!(some(|settings| settings.cleanup_time.is_some()));
        assert!(some(|settings| settings.cancel_latency.is_some()));
        let meant =
            |seed| RuntimeSettings::of(seed, false).governor == Some(GovernorKind::OrPanics);
        assert!(!(0..400).any(meant));
    }
}
