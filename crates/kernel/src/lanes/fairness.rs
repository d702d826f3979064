//! The choice of the next lane, and the bounds on how often one lane may pass the others.
//!
//! The *streak* counts consecutive cancel dispatches. At the limit, one dispatch of other work goes
//! first; if there is none, cancel work is dispatched as a *fallback*. The streak returns to 0 with
//! a dispatch from another lane, with a fallback and with a park. So no other work waits for more
//! than `limit` cancel dispatches in a row, regardless of the governor.
//!
//! The *timed streak* counts consecutive timed dispatches made while cancel work waited. The same
//! limit bounds how long a governor that prefers deadlines can delay cancel work. At most one of
//! the two counters is above 0.
//!
//! All other preferences pass waiting work at most [`bypass_limit`](FairnessConfig::bypass_limit)
//! times in a row ([`Bypass`]); then the passed work goes first, once:
//!
//! * timed work before ready work: ready work then takes the rank of timed work;
//! * within a lane, the global queue before the worker's own;
//! * within a queue, ready work of higher priority before lower: the entry that was added first
//!   goes, so that every entry's turn comes.
//!
//! These counts are independent of the streaks: cancel work in between neither resets nor increases
//! them.

use super::{Bypass, Chosen, Lane};

named_enum! {
    /// A governor's suggestion, read once per step. It changes the order of dispatches, never their
    /// legality.
    #[derive(Default)]
    pub enum Suggestion {
        /// Cancel, timed, ready.
        #[default]
        NoPreference,
        /// Timed, cancel, ready; timed dispatches that pass waiting cancel work are bounded.
        MeetDeadlines,
        /// The default order with the cancel-streak limit doubled.
        DrainObligations,
        /// The default order with the cancel-streak limit doubled.
        DrainRegions,
    }
}

impl Suggestion {
    /// Returns the suggested order of lanes.
    pub const fn order(self) -> [Lane; 3] {
        match self {
            Suggestion::MeetDeadlines => [Lane::Timed, Lane::Cancel, Lane::Ready],
            _ => Lane::ALL,
        }
    }

    /// Returns the cancel-streak limit, given the configured one.
    pub const fn limit(self, base: u32) -> u32 {
        match self {
            Suggestion::DrainObligations | Suggestion::DrainRegions => base.saturating_mul(2),
            Suggestion::NoPreference | Suggestion::MeetDeadlines => base,
        }
    }
}

settings! {
    /// The settings of [`Fairness`].
    #[derive(Copy)]
    pub struct FairnessConfig {
        /// The maximal number of consecutive cancel dispatches while other work waits; 0 counts as
        /// 1.
        cancel_streak_limit: u32 = 16,
        /// How often in a row other work is passed because of its lane, queue or priority; 0 counts
        /// as 1.
        bypass_limit: u32 = Bypass::LIMIT,
    }
}

/// The lanes that hold work, as the deciding worker sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Cancel work waits.
    pub cancel: bool,
    /// Timed work waits.
    pub timed: bool,
    /// Ready work waits.
    pub ready: bool,
}

impl Pending {
    /// Calls `holds` for each lane.
    pub fn of(holds: impl Fn(Lane) -> bool) -> Pending {
        let [cancel, timed, ready] = Lane::ALL.map(holds);
        Pending { cancel, timed, ready }
    }

    /// Whether a lane holds work.
    pub const fn has(self, lane: Lane) -> bool {
        match lane {
            Lane::Cancel => self.cancel,
            Lane::Timed => self.timed,
            Lane::Ready => self.ready,
        }
    }

    /// Whether any lane holds work.
    pub const fn any(self) -> bool {
        self.cancel || self.timed || self.ready
    }

    /// Whether work other than cancel work waits.
    pub const fn other(self) -> bool {
        self.timed || self.ready
    }
}

/// The decision for a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The lane to dispatch from.
    pub lane: Lane,
    /// Whether this is cancel work above its limit, chosen because there is no other work.
    pub fallback: bool,
    /// The cancel-streak limit in force.
    pub limit: u32,
}

/// The circumstances of a dispatched entry: its queue, and the work that it passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The entry came from the global queue.
    pub global: bool,
    /// The entry came from the global queue while the worker's own had an entry in the same lane.
    pub passed_local: bool,
    /// The entry was ready work, preferred for its priority to lower ones in its queue.
    pub passed_lower: bool,
}

/// One worker's streaks and bypass counters.
///
/// ```
/// use asx_kernel::lanes::{Fairness, FairnessConfig, Lane, Pending, Suggestion};
/// let config = FairnessConfig { cancel_streak_limit: 1, ..FairnessConfig::default() };
/// let mut fairness = Fairness::new(config);
/// let pending = Pending { cancel: true, timed: false, ready: true };
/// let mut step = || {
///     let verdict = fairness.decide(pending, Suggestion::NoPreference).unwrap();
///     fairness.record(verdict, pending);
///     verdict.lane
/// };
/// assert_eq!([step(), step(), step()], [Lane::Cancel, Lane::Ready, Lane::Cancel]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fairness {
    base: u32,
    streak: u32,
    timed_streak: u32,
    /// Passes of ready work by timed work.
    ready: Bypass,
    /// Passes of the worker's own work by global work, in each lane.
    local: [Bypass; 3],
    /// Passes of ready work by higher priorities: in the worker's own queue, and in the global one.
    lower: [Bypass; 2],
    /// Dispatches that went first because of a bypass limit.
    bypasses: u64,
}

impl Fairness {
    /// Creates counters at 0.
    pub fn new(config: FairnessConfig) -> Fairness {
        let bypass = Bypass::new(config.bypass_limit);
        Fairness {
            base: config.cancel_streak_limit.max(1),
            streak: 0,
            timed_streak: 0,
            ready: bypass,
            local: [bypass; 3],
            lower: [bypass; 2],
            bypasses: 0,
        }
    }

    /// Chooses the lane, or returns `None` if no work waits. Changes nothing.
    ///
    /// A fallback verdict is valid for the lanes in `pending`: a caller that may find other work
    /// elsewhere (by stealing) tries that first.
    #[inline]
    pub fn decide(&self, pending: Pending, suggestion: Suggestion) -> Option<Verdict> {
        let limit = self.limit(suggestion);
        let ready_first = self.ready.is_due();
        let [first, second] =
            if ready_first { [Lane::Ready, Lane::Timed] } else { [Lane::Timed, Lane::Ready] };
        // Timed work that has passed waiting cancel work `limit` times loses its precedence.
        let before_cancel = suggestion == Suggestion::MeetDeadlines && self.timed_streak < limit;
        let lane = if pending.cancel && self.streak < limit {
            if before_cancel && pending.has(first) { first } else { Lane::Cancel }
        } else if pending.has(first) {
            first
        } else if pending.has(second) {
            second
        } else {
            let fallback = Verdict { lane: Lane::Cancel, fallback: true, limit };
            return pending.cancel.then_some(fallback);
        };
        Some(Verdict { lane, fallback: false, limit })
    }

    /// Records a dispatch. `pending` is the state at the decision, including the dispatched entry.
    #[inline]
    pub fn record(&mut self, verdict: Verdict, pending: Pending) {
        let cancel = verdict.lane == Lane::Cancel && !verdict.fallback;
        let passed = verdict.lane == Lane::Timed && pending.cancel;
        self.streak = if cancel { self.streak.saturating_add(1) } else { 0 };
        self.timed_streak = if passed { self.timed_streak.saturating_add(1) } else { 0 };
        // Cancel work passes both alike, so it does not count.
        if !pending.ready || verdict.lane != Lane::Cancel {
            let passed = pending.ready && verdict.lane == Lane::Timed;
            Self::count(&mut self.bypasses, &mut self.ready, passed);
        }
    }

    /// Records a dispatch by [`dispatch`](super::dispatch).
    #[inline]
    pub fn dispatched(&mut self, chosen: Chosen) {
        self.record(chosen.verdict, chosen.pending);
        self.record_turn(chosen.verdict.lane, chosen.turn);
    }

    /// Records the circumstances of the dispatched entry.
    #[inline]
    pub fn record_turn(&mut self, lane: Lane, turn: Turn) {
        let Fairness { local, lower, bypasses, .. } = self;
        Self::count(bypasses, &mut local[lane as usize], turn.passed_local);
        if lane == Lane::Ready {
            Self::count(bypasses, &mut lower[usize::from(turn.global)], turn.passed_lower);
        }
    }

    fn count(bypasses: &mut u64, bypass: &mut Bypass, passed: bool) {
        *bypasses += u64::from(bypass.is_due() && !passed);
        bypass.record(passed);
    }

    /// Whether the worker's own entry of this lane goes before a global one, if both wait.
    pub fn local_first(&self, lane: Lane) -> bool {
        self.local[lane as usize].is_due()
    }

    /// Whether the entry that was added first goes next in the ready lane of a queue, regardless of
    /// its priority.
    pub fn oldest_first(&self, global: bool) -> bool {
        self.lower[usize::from(global)].is_due()
    }

    /// Records that the worker parked, or that the host went idle with all lanes empty.
    pub fn parked(&mut self) {
        (self.streak, self.timed_streak) = (0, 0);
        let bypasses = [&mut self.ready].into_iter().chain(&mut self.local).chain(&mut self.lower);
        bypasses.for_each(|bypass| bypass.record(false));
    }

    /// Whether the streak is below the limit in force.
    pub fn cancel_may_go(&self, suggestion: Suggestion) -> bool {
        self.streak < self.limit(suggestion)
    }

    getters! {
        /// The number of consecutive cancel dispatches.
        streak(&self) -> u32 = self.streak;
        /// The number of consecutive timed dispatches while cancel work waited.
        timed_streak(&self) -> u32 = self.timed_streak;
        /// The configured limit.
        base_limit(&self) -> u32 = self.base;
        /// The number of dispatches that went first because of a bypass limit.
        bypasses(&self) -> u64 = self.bypasses;
    }

    /// Returns the limit in force under a suggestion.
    pub fn limit(&self, suggestion: Suggestion) -> u32 {
        suggestion.limit(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const ALL: Pending = Pending { cancel: true, timed: true, ready: true };
    const CANCEL: Pending = Pending { cancel: true, timed: false, ready: false };

    fn with_limit(cancel_streak_limit: u32) -> Fairness {
        Fairness::new(FairnessConfig { cancel_streak_limit, ..FairnessConfig::default() })
    }

    /// Returns the lanes of `count` dispatches, with `None` for a fallback.
    fn run(
        fairness: &mut Fairness,
        pending: Pending,
        suggestion: Suggestion,
        count: usize,
    ) -> Vec<Option<Lane>> {
        let mut step = || {
            let verdict = fairness.decide(pending, suggestion).unwrap();
            fairness.record(verdict, pending);
            (!verdict.fallback).then_some(verdict.lane)
        };
        (0..count).map(|_| step()).collect()
    }

    /// Every combination of waiting lanes, suggestion, both streaks and a due bypass, compared with
    /// the law as documented: the order of the suggestion, minus the lanes that are at their limit.
    #[test]
    fn a_decision_is_the_first_permitted_lane_in_order() {
        let histories = (0..3_u32).flat_map(|a| (0..3_u32).map(move |b| (a, b)));
        for (streak, timed_streak) in histories {
            for bits in 0..16 {
                let [cancel, timed, ready, due] = [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1);
                let pending = Pending { cancel, timed, ready };
                let mut fairness = Fairness { streak, timed_streak, ..with_limit(1) };
                fairness.ready = Bypass::new(1);
                fairness.ready.record(due);
                for suggestion in Suggestion::ALL {
                    let limit = suggestion.limit(1);
                    let keeps = timed_streak < limit;
                    let mut order = if keeps { suggestion.order() } else { Lane::ALL };
                    if due {
                        order = order.map(|lane| match lane {
                            Lane::Cancel => Lane::Cancel,
                            Lane::Timed => Lane::Ready,
                            Lane::Ready => Lane::Timed,
                        });
                    }
                    let may_go = |lane: &Lane| *lane != Lane::Cancel || streak < limit;
                    let mut held = order.into_iter().filter(|lane| pending.has(*lane));
                    let lane = held.clone().find(may_go).or(held.next());
                    let verdict = lane.map(|lane| {
                        let fallback = lane == Lane::Cancel && streak >= limit;
                        Verdict { lane, fallback, limit }
                    });
                    assert_eq!(fairness.decide(pending, suggestion), verdict, "{fairness:?}");
                }
            }
        }
    }

    #[test]
    fn the_default_limit_is_16_and_0_counts_as_1() {
        assert_eq!(Fairness::new(FairnessConfig::default()).base_limit(), 16);
        assert_eq!(with_limit(0), with_limit(1));
        assert_eq!(with_limit(0).base_limit(), 1);
    }

    #[test]
    fn at_the_limit_other_work_goes_first_once() {
        use Lane::*;
        let lanes = run(&mut with_limit(2), ALL, Suggestion::NoPreference, 7);
        assert_eq!(lanes, [Cancel, Cancel, Timed, Cancel, Cancel, Timed, Cancel].map(Some));
        let lanes = run(&mut with_limit(1), ALL, Suggestion::DrainRegions, 4);
        assert_eq!(lanes, [Cancel, Cancel, Timed, Cancel].map(Some));
    }

    #[test]
    fn cancel_work_alone_falls_back_at_the_limit_and_restarts() {
        let cancel = Some(Lane::Cancel);
        let lanes = run(&mut with_limit(2), CANCEL, Suggestion::NoPreference, 6);
        assert_eq!(lanes, [cancel, cancel, None, cancel, cancel, None]);
    }

    #[test]
    fn timed_work_passes_waiting_cancel_work_at_most_limit_times() {
        use Lane::*;
        let lanes = run(&mut with_limit(2), ALL, Suggestion::MeetDeadlines, 6);
        assert_eq!(lanes, [Timed, Timed, Cancel, Timed, Timed, Cancel].map(Some));
    }

    #[test]
    fn a_streak_survives_a_change_of_suggestion() {
        let mut fairness = with_limit(2);
        run(&mut fairness, ALL, Suggestion::DrainObligations, 3);
        assert_eq!(fairness.streak(), 3);
        let verdict = fairness.decide(ALL, Suggestion::NoPreference).unwrap();
        assert_eq!(verdict, Verdict { lane: Lane::Timed, fallback: false, limit: 2 });
        let verdict = fairness.decide(ALL, Suggestion::DrainRegions).unwrap();
        assert_eq!(verdict, Verdict { lane: Lane::Cancel, fallback: false, limit: 4 });
    }

    #[test]
    fn each_kind_of_dispatch_updates_the_streaks() {
        let after = |lane, fallback, pending| {
            let mut fairness = Fairness { streak: 5, timed_streak: 7, ..with_limit(9) };
            fairness.record(Verdict { lane, fallback, limit: 9 }, pending);
            (fairness.streak(), fairness.timed_streak())
        };
        assert_eq!(after(Lane::Cancel, false, ALL), (6, 0));
        assert_eq!(after(Lane::Cancel, true, CANCEL), (0, 0));
        assert_eq!(after(Lane::Timed, false, ALL), (0, 8));
        assert_eq!(after(Lane::Timed, false, Pending { cancel: false, ..ALL }), (0, 0));
        assert_eq!(after(Lane::Ready, false, ALL), (0, 0));
    }

    #[test]
    fn a_park_resets_both_streaks() {
        let mut fairness = Fairness { streak: 1, timed_streak: 1, ..with_limit(2) };
        fairness.ready.record(true);
        fairness.parked();
        assert_eq!(fairness, with_limit(2));
    }

    /// Every history of waiting lanes and suggestions of this length, with small limits.
    fn histories(length: u32, mut each: impl FnMut(&mut dyn FnMut() -> (Pending, Suggestion))) {
        let choices = 7 * 2_u32;
        for mut number in 0..choices.pow(length) {
            each(&mut || {
                let choice = number % choices;
                number /= choices;
                let [cancel, timed, ready] = [0, 1, 2].map(|bit| (choice % 7 + 1) >> bit & 1 == 1);
                let suggestion = match choice / 7 {
                    0 => Suggestion::NoPreference,
                    _ => Suggestion::MeetDeadlines,
                };
                (Pending { cancel, timed, ready }, suggestion)
            });
        }
    }

    #[test]
    fn ready_work_is_passed_by_timed_work_at_most_limit_times_in_any_history() {
        const LENGTH: u32 = 5;
        let config = FairnessConfig { cancel_streak_limit: 1, bypass_limit: 2 };
        histories(LENGTH, |next| {
            let mut fairness = Fairness::new(config);
            let mut passed = 0;
            let mut cancels = 0;
            let mut since = 0;
            for _ in 0..LENGTH {
                let (pending, suggestion) = next();
                let verdict = fairness.decide(pending, suggestion).unwrap();
                fairness.record(verdict, pending);
                assert!(pending.has(verdict.lane));
                passed = match verdict.lane {
                    Lane::Timed if pending.ready => passed + 1,
                    Lane::Cancel if pending.ready => passed,
                    _ => 0,
                };
                assert!(passed <= 2, "ready work was passed {passed} times");
                // The bounds on the streaks still hold.
                let cancel = verdict.lane == Lane::Cancel && !verdict.fallback;
                cancels = if cancel { cancels + 1 } else { 0 };
                assert!(cancels <= 1 || !pending.other());
                since = if verdict.lane == Lane::Timed && pending.cancel { since + 1 } else { 0 };
                assert!(since <= 1 || suggestion != Suggestion::MeetDeadlines);
            }
        });
    }

    #[test]
    fn local_work_and_lower_priorities_are_due_after_the_limit() {
        let config = FairnessConfig { bypass_limit: 2, ..FairnessConfig::default() };
        for lane in Lane::ALL {
            let mut fairness = Fairness::new(config);
            let passed = Turn { global: true, passed_local: true, passed_lower: false };
            fairness.record_turn(lane, passed);
            assert!(!fairness.local_first(lane));
            fairness.record_turn(lane, passed);
            let due = Lane::ALL.map(|lane| fairness.local_first(lane));
            assert_eq!(
                due,
                Lane::ALL.map(|other| other == lane),
                "each lane is counted separately"
            );
            fairness.record_turn(lane, Turn::default());
            assert!(!fairness.local_first(lane));
            assert_eq!(fairness.bypasses(), 1);
        }
        for global in [false, true] {
            let mut fairness = Fairness::new(config);
            let passed = Turn { global, passed_local: false, passed_lower: true };
            fairness.record_turn(Lane::Ready, passed);
            fairness.record_turn(Lane::Ready, passed);
            assert_eq!([false, true].map(|of| fairness.oldest_first(of)), [!global, global]);
            fairness.record_turn(Lane::Timed, Turn { global, ..Turn::default() });
            assert!(fairness.oldest_first(global), "another lane changes nothing");
            fairness.record_turn(Lane::Ready, Turn { global, ..Turn::default() });
            assert!(!fairness.oldest_first(global));
        }
    }

    #[test]
    fn pending_distinguishes_lanes() {
        for bits in 0..8 {
            let [cancel, timed, ready] = [0, 1, 2].map(|bit| bits >> bit & 1 == 1);
            let pending = Pending { cancel, timed, ready };
            assert_eq!(Lane::ALL.map(|lane| pending.has(lane)), [cancel, timed, ready]);
            assert_eq!((pending.any(), pending.other()), (bits > 0, bits > 1));
        }
    }

    #[test]
    fn only_meet_deadlines_reorders_and_only_drains_double() {
        use Lane::*;
        let orders = Suggestion::ALL.map(Suggestion::order);
        let normal = [Cancel, Timed, Ready];
        assert_eq!(orders, [normal, [Timed, Cancel, Ready], normal, normal]);
        assert_eq!(Suggestion::ALL.map(|s| s.limit(16)), [16, 16, 32, 32]);
        assert_eq!(Suggestion::DrainRegions.limit(u32::MAX), u32::MAX);
        assert_eq!(Suggestion::default(), Suggestion::NoPreference);
    }
}
