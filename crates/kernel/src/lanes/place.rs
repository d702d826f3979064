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
///
/// Two plain numbers rather than an enum of keys of two sizes: those a compiler passes in
/// registers, which a worker does with every entry it takes.
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

    /// The timed lane: earliest deadline first. The deadline orders, it does not delay.
    #[inline]
    pub const fn timed(deadline: Time) -> Place {
        Place { lane: Lane::Timed, key: deadline.as_nanos() }
    }

    /// The ready lane: highest priority first.
    #[inline]
    pub const fn ready(priority: Priority) -> Place {
        Place { lane: Lane::Ready, key: priority.0 as u64 }
    }

    /// The lane.
    #[inline]
    pub const fn lane(self) -> Lane {
        self.lane
    }

    /// The deadline, in the timed lane.
    #[inline]
    pub const fn deadline(self) -> Option<Time> {
        match self.lane {
            Lane::Timed => Some(Time::from_nanos(self.key)),
            Lane::Cancel | Lane::Ready => None,
        }
    }

    /// The priority; the usual one in the timed lane, where it has no say.
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
