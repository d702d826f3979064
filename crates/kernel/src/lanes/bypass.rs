//! Bounded bypass: a limit on how often waiting work is passed by preferred work.

/// Counts how often in a row one kind of work was passed by preferred work. At the limit the passed
/// work goes first, once.
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
    /// The default limit.
    pub const LIMIT: u32 = 64;

    /// Creates a counter at 0. A limit of 0 counts as 1.
    pub const fn new(limit: u32) -> Bypass {
        Bypass { limit: if limit == 0 { 1 } else { limit }, passed: 0 }
    }

    /// Whether the passed work goes first now, if it still waits.
    pub const fn is_due(self) -> bool {
        self.passed >= self.limit
    }

    /// Records a dispatch. `passed` is true if the work waited and was passed, and false if it was
    /// dispatched or did not wait.
    pub fn record(&mut self, passed: bool) {
        self.passed = if passed { self.passed.saturating_add(1) } else { 0 };
    }

    /// Returns how often in a row the work was passed.
    pub const fn passed(self) -> u32 {
        self.passed
    }
}

impl Default for Bypass {
    fn default() -> Self {
        Bypass::new(Bypass::LIMIT)
    }
}
