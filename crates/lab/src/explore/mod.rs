//! Which schedule to run next.
//!
//! A program is a set of tasks; a *step* is one poll of one task. Whoever runs the program (the
//! *driver*) asks a [`Strategy`] at every choice and tells it what each step touched:
//!
//! ```text
//! while strategy.begin() {                          one run after another
//!     while some task can be polled {
//!         pick_task(enabled)                        which task is polled
//!         poll it  -- pick(point, count) --         any other choice, inside the poll
//!         yielded()                                 it lets others go first, if it does
//!         stepped(task, footprint)                  what the poll read and wrote
//!     }
//!     end(verdict)
//! }
//! ```
//!
//! | strategy | finds | ends |
//! |---|---|---|
//! | [`Random`] | ordinary bugs, in a few runs | never |
//! | [`Uniform`] | deep orders of long tasks | never |
//! | [`Pos`] | rare orders of dependent steps | never |
//! | [`Pct`] | bugs of small depth among many tasks, with a known probability | never |
//! | [`Guided`] | what takes many steps that show in what tasks do next | never |
//! | [`Dfs`] | everything, one by one | with a [`Certificate`] |
//! | [`Dpor`] | everything, one run for each class of equal runs | with a [`Certificate`] |
//! | [`Bounded`] | everything with few preemptions and few cancels, then with more | maybe |
//! | [`Replay`], [`Follow`] | what was found before | after one run |
//!
//! [`Recorder`] writes down what any of them decides. The log becomes a [`Schedule`]: the few
//! deviations from the [default policy](Schedule), which has a short text form
//! ([`Schedule::token`]) and is made smaller by [`shrink()`].
//!
//! # What a driver promises
//!
//! * *Determinism*: the same decisions lead to the same run.
//! * *Names*: a [`TaskPath`] and an object's name mean the same thing in every run. A task is also
//!   an object, under the number of its path.
//! * *Footprints*: what a step does depends only on the objects it touches, and it changes only
//!   those that it writes. A step counts as writing its own task. One that in any way decides
//!   whether a task can run writes that task, or reads its [turn](TaskPath::turn) if it wakes or
//!   spawns it: it makes no difference which of several wakes comes first. The step with which a
//!   poll begins then writes that turn, and those in the middle of a poll, which a wake does not
//!   concern, do not touch it.
//! * *Choices between steps* are best made tasks of their own (the firing of a timer, a cancel from
//!   outside), with footprints. A [`pick`](Strategy::pick) between two steps is allowed; [`Dpor`]
//!   then knows nothing better than [`Dfs`].

mod bounded;
mod confirm;
mod decisions;
mod dfs;
mod dpor;
mod guided;
mod index;
mod pct;
mod place;
mod pos;
mod random;
mod recorder;
mod replay;
mod shrink;
mod tally;
mod token;
mod trace;
mod uniform;

pub use bounded::{Bounded, Limits};
pub(crate) use confirm::Confirmed;
pub use decisions::{Decision, Decisions, Deviation, Schedule};
pub use dfs::Dfs;
pub use dpor::Dpor;
pub use guided::Guided;
pub use pct::Pct;
pub use pos::Pos;
pub use random::Random;
pub use recorder::Recorder;
pub use replay::{Diverged, Follow, Replay};
pub use shrink::{Shrunk, shrink};
pub use tally::{Certificate, Progress};
pub(crate) use token::Points;
pub use token::TokenError;
pub use uniform::Uniform;

/// A task by where it was spawned: a hash of the spawn path, the same in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskPath(pub u64);

impl TaskPath {
    /// What moves time on: a task that can run only when no other can, and whose steps touch
    /// something of every step before them.
    pub const CLOCK: TaskPath = TaskPath(0xC10C_C10C_C10C_C10D);

    /// The name of an object: whether the task is to be polled.
    #[inline]
    pub const fn turn(self) -> u64 {
        self.0 ^ TURN
    }

    /// The first 24 bits: how a [`Schedule`] names the task.
    pub const fn tag(self) -> u32 {
        (self.0 >> 40) as u32
    }
}

/// Tells the [turn](TaskPath::turn) of a task from the task.
const TURN: u64 = 0x7475_726E_5F6F_665F;

/// What a step did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The object's name, the same in every run.
    pub object: u64,
    /// Whether the step may have changed it.
    pub write: bool,
    /// Whether it was the last of several uses whose order makes no difference.
    pub completes: bool,
    /// Whether a program cannot tell the orders in which the object is used: these are no part of
    /// the class of a run.
    pub is_neutral: bool,
}

impl Access {
    /// The step looked at the object.
    pub const fn read(object: u64) -> Access {
        Access { object, write: false, completes: false, is_neutral: false }
    }

    /// The step changed the object, or may have.
    pub const fn write(object: u64) -> Access {
        Access { object, write: true, completes: false, is_neutral: false }
    }

    /// The step was the last of several that use the object, and changed it for that reason: had
    /// another of them been the last, that one would have done so. The others count as reads.
    /// It comes after them, but the other orders are not tried.
    pub const fn complete(object: u64) -> Access {
        Access { object, write: true, completes: true, is_neutral: false }
    }

    /// The same, of an object whose uses a program cannot tell the order of.
    pub const fn neutral(self) -> Access {
        Access { is_neutral: true, ..self }
    }
}

/// What is being chosen, when it is not a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// Which virtual worker goes on.
    Worker,
    /// Which of several equal entries goes first.
    Tie,
    /// Where a scan for work starts.
    Steal,
    /// Whether time passes here though tasks can run, and how much: 0 is none.
    Timer,
    /// Which of so many a program's random draw gives.
    Entropy,
    /// Which ready branch of a selection is taken.
    Select,
    /// Whether a cancel is injected here: 0 is no.
    Cancel,
    /// Whether a fault is injected here: 0 is no.
    Fault,
    /// What goes wrong in the network: 0 is nothing.
    Network,
    /// What a program's draw of any number gives: 0 is the usual one, 1 is the number 0, and 2 the
    /// greatest there is.
    Draw,
}

impl Point {
    /// All points, as declared.
    pub const ALL: [Point; 10] = [
        Point::Worker,
        Point::Tie,
        Point::Steal,
        Point::Timer,
        Point::Entropy,
        Point::Select,
        Point::Cancel,
        Point::Fault,
        Point::Network,
        Point::Draw,
    ];

    /// The name shown to people.
    pub const fn name(self) -> &'static str {
        match self {
            Point::Worker => "worker",
            Point::Tie => "tie",
            Point::Steal => "steal",
            Point::Timer => "timer",
            Point::Entropy => "entropy",
            Point::Select => "select",
            Point::Cancel => "cancel",
            Point::Fault => "fault",
            Point::Network => "network",
            Point::Draw => "draw",
        }
    }

    /// Whether anything but 0 is a disturbance from outside, of which a run should see few.
    pub const fn is_injected(self) -> bool {
        matches!(self, Point::Timer | Point::Cancel | Point::Fault | Point::Network)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was wrong.
    Passed,
    /// Something was, and the run went on to its end all the same. The number says what, the same
    /// in every run that fails for that reason.
    Failed(u64),
    /// Something was wrong in the last step, and the driver stopped there, as it does at every such
    /// step. The tasks that could have gone on were not asked.
    Stopped(u64),
    /// The driver gave up: too many steps.
    Cut,
}

impl Verdict {
    /// What was wrong.
    pub const fn failure(self) -> Option<u64> {
        match self {
            Verdict::Failed(failure) | Verdict::Stopped(failure) => Some(failure),
            Verdict::Passed | Verdict::Cut => None,
        }
    }
}

/// An oracle for the choices of one run after another. See the [module](self) for the order of
/// the calls.
pub trait Strategy {
    /// Starts a run. `false`: nothing is left to explore.
    fn begin(&mut self) -> bool;

    /// Which of the tasks that can run is polled next: an index. `enabled` is never empty; this is
    /// asked when there is only one as well.
    fn pick_task(&mut self, enabled: &[TaskPath]) -> usize;

    /// The same for a driver that knows what has changed: if the list it gave when it last asked
    /// for a task had one more than `old`, the first `old` are the rest of that list, in its order,
    /// without the task that was picked.
    fn pick_next(&mut self, enabled: &[TaskPath], old: usize) -> usize {
        let _ = old;
        self.pick_task(enabled)
    }

    /// Picks one of `count >= 2` options of any other kind. 0 is the ordinary one.
    fn pick(&mut self, point: Point, count: usize) -> usize;

    /// Whether it is told of steps at all: asked once a run. If not, none of
    /// [`needs_footprint`](Strategy::needs_footprint), [`yielded`](Strategy::yielded) and
    /// [`stepped`](Strategy::stepped) need be called, and steps are faster.
    fn watches(&self) -> bool {
        true
    }

    /// Whether [`stepped`](Strategy::stepped) is to be told what the step just picked touches. If
    /// not, it may get an empty footprint, and the step is faster.
    fn needs_footprint(&self) -> bool {
        true
    }

    /// The task of the step just picked has yielded: it can go on, and lets others go first. Said
    /// before the step is [over](Strategy::stepped).
    fn yielded(&mut self) {}

    /// The step just picked keeps a task from running that nothing it touches has to do with: it
    /// has a thread, or a lock of the standard library, that the other one needs. Which steps can
    /// be swapped does not follow from what they touch any more.
    fn excludes(&mut self) {}

    /// The step just picked is over, and touched these objects.
    fn stepped(&mut self, task: TaskPath, footprint: &[Access]);

    /// The run is over.
    fn end(&mut self, verdict: Verdict);

    /// How far the exploration is.
    fn progress(&self) -> Progress;
}
