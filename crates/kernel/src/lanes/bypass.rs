//! Bounded bypass: how often waiting work may be passed by work that goes before it.

/// Counts how often one kind of work was passed in a row by another that goes before it. At the
/// limit the work that was passed goes first, once.
///
/// ```
/// use asx_kernel::lanes::Bypass;
/// let mut low = Bypass::new(2);
/// let mut high_goes = || {
///     let high = !low.is_due();
///     low.record(high);
///     high
/// };
/// assert_eq!([(); 5].map(|()| high_goes()), [true, true, false, true, true]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bypass {
    limit: u32,
    passed: u32,
}

impl Bypass {
    /// The limit that hosts use.
    pub const LIMIT: u32 = 64;

    /// Nothing was passed yet. A limit of 0 counts as 1.
    pub const fn new(limit: u32) -> Bypass {
        Bypass { limit: if limit == 0 { 1 } else { limit }, passed: 0 }
    }

    /// Whether the work that was passed goes first now, if it still waits.
    pub const fn is_due(self) -> bool {
        self.passed >= self.limit
    }

    /// Notes a dispatch: `passed` if the work waited and was passed, otherwise it went, or none
    /// waited.
    pub fn record(&mut self, passed: bool) {
        self.passed = if passed { self.passed.saturating_add(1) } else { 0 };
    }

    /// How often it was passed since it went last.
    pub const fn passed(self) -> u32 {
        self.passed
    }
}

impl Default for Bypass {
    fn default() -> Self {
        Bypass::new(Bypass::LIMIT)
    }
}
