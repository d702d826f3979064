//! What a governor may ask for. A suggestion changes the order of dispatches, never what is legal.

use super::Lane;

named_enum! {
    /// A governor's suggestion, read once per step.
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
    /// The order of lanes it asks for.
    pub const fn order(self) -> [Lane; 3] {
        match self {
            Suggestion::MeetDeadlines => [Lane::Timed, Lane::Cancel, Lane::Ready],
            _ => Lane::ALL,
        }
    }

    /// The cancel-streak limit it makes of the configured one.
    pub const fn limit(self, base: u32) -> u32 {
        match self {
            Suggestion::DrainObligations | Suggestion::DrainRegions => base.saturating_mul(2),
            Suggestion::NoPreference | Suggestion::MeetDeadlines => base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
