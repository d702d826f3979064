//! What may go wrong in the network of a run, and how often.

/// What may go wrong in the simulated network, each kind so many times in a run at most.
///
/// Nothing of it happens unless [`Check::network`](crate::Check::network) says so: without it every
/// byte arrives, in order, in whole segments, though when is a matter of the schedule. Each fault
/// is a choice of the strategy, so that a failing run is shrunk to those that it needs, and told in
/// words.
///
/// ```
/// use asx::lab::Faults;
/// // Short reads, and one connection that breaks.
/// let few = Faults::none().chunks(8).resets(1);
/// // Everything there is, but UDP loses nothing.
/// let most = Faults::all().drops(0);
/// assert!(few != most);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "give it to a check"]
pub struct Faults {
    counts: [u8; Kind::ALL.len()],
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Chunk,
    Delay,
    Reset,
    Refusal,
    HalfOpen,
    Partition,
    Accept,
    Drop,
    Duplicate,
    Reorder,
    Lookup,
}

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Chunk,
        Kind::Delay,
        Kind::Reset,
        Kind::Refusal,
        Kind::HalfOpen,
        Kind::Partition,
        Kind::Accept,
        Kind::Drop,
        Kind::Duplicate,
        Kind::Reorder,
        Kind::Lookup,
    ];
}

impl Faults {
    /// Nothing goes wrong.
    pub const fn none() -> Faults {
        Faults { counts: [0; Kind::ALL.len()] }
    }

    /// Everything may go wrong: up to four short reads, two delays, and one of each other kind.
    pub const fn all() -> Faults {
        Faults { counts: [1; Kind::ALL.len()] }.chunks(4).delays(2)
    }

    const fn with(mut self, kind: Kind, times: u8) -> Faults {
        self.counts[kind as usize] = times;
        self
    }

    /// A segment is cut, so that its reader first gets one byte of it, or half. A program must not
    /// mind: one that answers an error then has failed.
    pub const fn chunks(self, times: u8) -> Faults {
        self.with(Kind::Chunk, times)
    }

    /// A segment or datagram comes late: by 10 ms, a second or a minute of virtual time.
    pub const fn delays(self, times: u8) -> Faults {
        self.with(Kind::Delay, times)
    }

    /// A connection is reset, and what was on its way is lost.
    pub const fn resets(self, times: u8) -> Faults {
        self.with(Kind::Reset, times)
    }

    /// A connection is refused though somebody listens.
    pub const fn refusals(self, times: u8) -> Faults {
        self.with(Kind::Refusal, times)
    }

    /// A connection goes dead without anybody being told, as when the machine of the peer loses its
    /// power. Who waits for bytes waits for ever; who has sent some gets `TimedOut` after 15
    /// minutes of virtual time; who connects, after 127 seconds.
    pub const fn half_opens(self, times: u8) -> Faults {
        self.with(Kind::HalfOpen, times)
    }

    /// Nothing gets to an address where somebody listens, or nothing gets out of it, for a second
    /// or for a minute: one way only. Segments come afterwards, datagrams are lost.
    pub const fn partitions(self, times: u8) -> Faults {
        self.with(Kind::Partition, times)
    }

    /// There is no descriptor to spare for a connection that is accepted, which stays where it is.
    pub const fn accept_errors(self, times: u8) -> Faults {
        self.with(Kind::Accept, times)
    }

    /// A datagram of UDP is lost.
    pub const fn drops(self, times: u8) -> Faults {
        self.with(Kind::Drop, times)
    }

    /// A datagram of UDP comes twice.
    pub const fn duplicates(self, times: u8) -> Faults {
        self.with(Kind::Duplicate, times)
    }

    /// A datagram of UDP comes after the one that was sent after it.
    pub const fn reorders(self, times: u8) -> Faults {
        self.with(Kind::Reorder, times)
    }

    /// The addresses of a host cannot be found out.
    pub const fn lookup_failures(self, times: u8) -> Faults {
        self.with(Kind::Lookup, times)
    }

    /// Whether there is any.
    pub(crate) fn is_none(&self) -> bool {
        *self == Faults::none()
    }

    /// Whether some of them take time.
    pub(crate) fn takes_time(&self) -> bool {
        [Kind::Chunk, Kind::Delay, Kind::HalfOpen, Kind::Partition]
            .into_iter()
            .any(|kind| self.has(kind))
    }

    /// Whether there is one of this kind left.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.counts[kind as usize] > 0
    }

    /// One of this kind was made.
    pub(crate) fn spend(&mut self, kind: Kind) {
        self.counts[kind as usize] = self.counts[kind as usize].saturating_sub(1);
    }
}
