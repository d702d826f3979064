//! The programs, by name. Each peer has its own text of them, in the form that suits it best; a
//! program with its bug differs in nothing else from the one without.

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Two look at a flag and then wait for word that it was set; a third sets it.
    LostWakeup,
    /// Three take two locks, one of them in the other order.
    AbBa,
    /// A selection drops the loser half-way, and with it a message.
    LossySelect,
    /// Three read a count and write back one more.
    CheckThenAct,
    /// Fails only if two tasks go strictly in turns, twelve times.
    Needle,
    /// Fifty tasks, each with twenty steps.
    Crowd,
}

/// Turns of the needle.
pub(crate) const TURNS: u32 = 12;
/// Tasks of the crowd.
pub(crate) const TASKS: u32 = 50;
/// Steps of each.
pub(crate) const STEPS: u32 = 20;

impl Program {
    /// All of them.
    pub(crate) const ALL: [Program; 6] = [
        Program::LostWakeup,
        Program::AbBa,
        Program::LossySelect,
        Program::CheckThenAct,
        Program::Needle,
        Program::Crowd,
    ];

    /// The name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Program::LostWakeup => "lost_wakeup",
            Program::AbBa => "ab_ba",
            Program::LossySelect => "lossy_select",
            Program::CheckThenAct => "check_then_act",
            Program::Needle => "needle",
            Program::Crowd => "crowd",
        }
    }

    /// Whether there is a bug to be found, and few enough schedules to run them all.
    pub(crate) const fn is_small(self) -> bool {
        !matches!(self, Program::Crowd)
    }

    /// Schedules a repetition, where their rate is measured.
    pub(crate) const fn schedules(self, smoke: bool) -> u64 {
        match (self, smoke) {
            (Program::Crowd, true) => 2,
            (Program::Crowd, false) => 50,
            (_, true) => 20,
            (_, false) => 2000,
        }
    }
}
