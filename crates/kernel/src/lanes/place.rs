//! The place of a runnable entry: the lane and the sort key in it.

use crate::time::Time;

named_enum! {
    /// A lane. Its rank orders lanes: the lower rank goes first.
    #[derive(PartialOrd, Ord)]
    pub enum Lane {
        /// Tasks that are being cancelled or finalized.
        Cancel = 0 => "cancel",
        /// Tasks with a finite deadline.
        Timed = 1 => "timed",
        /// All other tasks.
        Ready = 2 => "ready",
    }
}

/// The priority of a task inside its lane. The higher value goes first, unlike a [`Lane`]'s rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u8);

impl Priority {
    /// The default priority.
    pub const DEFAULT: Priority = Priority(128);
}

/// A lane with its primary sort key. Equals are ordered by insertion.
///
/// Two plain numbers rather than an enum with keys of two sizes, so that a compiler passes it in
/// registers; a worker does that with every entry it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    lane: Lane,
    /// A priority, or in the timed lane a deadline in nanoseconds.
    key: u64,
}

impl Place {
    /// The cancel lane: highest priority first.
    #[inline]
    pub const fn cancel(priority: Priority) -> Place {
        Place { lane: Lane::Cancel, key: priority.0 as u64 }
    }

    /// The timed lane: earliest deadline first. The deadline determines the order, but does not
    /// delay.
    #[inline]
    pub const fn timed(deadline: Time) -> Place {
        Place { lane: Lane::Timed, key: deadline.as_nanos() }
    }

    /// The ready lane: highest priority first.
    #[inline]
    pub const fn ready(priority: Priority) -> Place {
        Place { lane: Lane::Ready, key: priority.0 as u64 }
    }

    /// Returns the lane.
    #[inline]
    pub const fn lane(self) -> Lane {
        self.lane
    }

    /// Returns the deadline, in the timed lane.
    #[inline]
    pub const fn deadline(self) -> Option<Time> {
        match self.lane {
            Lane::Timed => Some(Time::from_nanos(self.key)),
            Lane::Cancel | Lane::Ready => None,
        }
    }

    /// Returns the priority; the default one in the timed lane, which ignores it.
    #[inline]
    pub const fn priority(self) -> Priority {
        match self.lane {
            Lane::Timed => Priority::DEFAULT,
            Lane::Cancel | Lane::Ready => Priority(self.key as u8),
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
            [Place::cancel(Priority(1)), Place::timed(Time::ZERO), Place::ready(Priority(1))];
        assert_eq!(places.map(Place::lane), Lane::ALL);
        assert_eq!(places.map(Place::deadline), [None, Some(Time::ZERO), None]);
        let usual = Priority::DEFAULT;
        assert_eq!(places.map(Place::priority), [Priority(1), usual, Priority(1)]);
    }
}
