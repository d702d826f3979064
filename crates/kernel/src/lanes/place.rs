//! Where a runnable entry waits: the lane and the key that orders it there.

use crate::time::Time;

/// One of the three lanes. Its rank orders lanes: the lower goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Lane {
    /// Tasks that are being cancelled or finalized.
    Cancel = 0,
    /// Tasks with a finite deadline.
    Timed = 1,
    /// Everybody else.
    Ready = 2,
}

impl Lane {
    /// All lanes by rank.
    pub const ALL: [Lane; 3] = [Lane::Cancel, Lane::Timed, Lane::Ready];

    /// The name used in journals.
    pub const fn name(self) -> &'static str {
        match self {
            Lane::Cancel => "cancel",
            Lane::Timed => "timed",
            Lane::Ready => "ready",
        }
    }
}

/// The priority of a task inside its lane: the higher goes first, unlike a [`Lane`]'s rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u8);

impl Priority {
    /// The priority of a task that asked for none.
    pub const DEFAULT: Priority = Priority(128);
}

impl Default for Priority {
    fn default() -> Self {
        Priority::DEFAULT
    }
}

/// A lane with its primary key; among equals the insertion sequence decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The cancel lane: highest priority first.
    Cancel(Priority),
    /// The timed lane: earliest deadline first. The deadline orders, it does not delay.
    Timed(Time),
    /// The ready lane: highest priority first.
    Ready(Priority),
}

impl Place {
    /// The lane.
    pub const fn lane(self) -> Lane {
        match self {
            Place::Cancel(_) => Lane::Cancel,
            Place::Timed(_) => Lane::Timed,
            Place::Ready(_) => Lane::Ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_and_name_follow_the_lane() {
        assert_eq!(Lane::ALL.map(|lane| lane as u8), [0, 1, 2]);
        assert_eq!(Lane::ALL.map(Lane::name), ["cancel", "timed", "ready"]);
        assert_eq!(Priority::default(), Priority(128));
        let places =
            [Place::Cancel(Priority(1)), Place::Timed(Time::ZERO), Place::Ready(Priority(1))];
        assert_eq!(places.map(Place::lane), Lane::ALL);
    }
}
