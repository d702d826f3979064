//! Where a runnable entry waits: the lane and the key that orders it there.

use crate::time::Time;

named_enum! {
    /// One of the three lanes. Its rank orders lanes: the lower goes first.
    #[derive(PartialOrd, Ord)]
    pub enum Lane {
        /// Tasks that are being cancelled or finalized.
        Cancel = 0 => "cancel",
        /// Tasks with a finite deadline.
        Timed = 1 => "timed",
        /// Everybody else.
        Ready = 2 => "ready",
    }
}

/// The priority of a task inside its lane: the higher goes first, unlike a [`Lane`]'s rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u8);

impl Priority {
    /// The priority of a task that asked for none.
    pub const DEFAULT: Priority = Priority(128);
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
        assert_eq!(Priority::DEFAULT, Priority(128));
        let places =
            [Place::Cancel(Priority(1)), Place::Timed(Time::ZERO), Place::Ready(Priority(1))];
        assert_eq!(places.map(Place::lane), Lane::ALL);
    }
}
