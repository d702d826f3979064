//! The machine: runs a program once, on this thread, in the order a strategy says.
//!
//! The program is a production one: the same cells, regions, channels and timers as on threads.
//! Only the host is another: whatever is runnable waits in one list, and which of it is polled next
//! is asked of the [`Strategy`]. That is more than workers could do, who take the first of their
//! lanes, and just what several of them do together, each at its own pace. Time stands still until
//! nothing is runnable, and then jumps to the next timer.
//!
//! ```text
//! run: body -> root task -> ready list --pick_task--> poll --touched--> stepped
//!        nothing ready: clock jumps, timers wake -> ready list;   no timer either: deadlock
//! ```
//! What is wrong is found in three places: by the host after a poll ([`Trouble`]), here when
//! nothing is left to poll or the polls are used up, and when the program is over and has left
//! something behind.
//!
//! # Rule
//! 1. A machine is not `Send`, and nothing else polls what its host is given: so all polls of a
//!    pinned task are on the thread that made the machine.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Wake, Waker};
use std::time::Duration;

use asx_kernel::time::Time;
use asx_runtime::{Core, Cx, Dump, Region, Root, Settings, Stop, waits};

use crate::explore::{Decisions, Strategy, Verdict};
use crate::failure::{Failure, Finding};
use crate::host::{LabHost, Step, Trouble};
use crate::stuck;

/// How a run is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Polls it may take, all tasks together.
    pub(crate) steps: u64,
    /// Polls a task may take from its cancel to where it sees it.
    pub(crate) latency: u64,
    /// Whether the strategy is asked, after each poll, for a cancel of the task that was polled.
    pub(crate) cancels: bool,
    /// Whether polls share nothing but what is known here, so that some of them commute.
    pub(crate) transparent: bool,
}

/// How a run went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) failure: Option<Failure>,
}

pub(crate) struct Machine {
    host: Arc<LabHost>,
    core: Arc<Core>,
    root: Arc<Region>,
    /// How long it still waits for wakes from elsewhere, in all runs together.
    patience: Duration,
    /// Stays on its thread (rule 1).
    here: PhantomData<*const ()>,
}

impl Machine {
    pub(crate) fn new(settings: Settings) -> Machine {
        let host = Arc::new(LabHost::default());
        let core = Core::new(host.clone(), settings);
        let root = core.root();
        let patience = Duration::from_millis(200);
        Machine { host, core, root, patience, here: PhantomData }
    }

    /// Runs a program; the strategy is told how it ended.
    pub(crate) fn run<F, B, T>(
        &mut self,
        strategy: &mut Option<Box<dyn Strategy + Send>>,
        plan: Plan,
        body: F,
        judge: impl FnOnce(T) -> Option<Finding>,
    ) -> Ran
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T>,
    {
        self.host.start(strategy.take(), plan);
        self.core.renumber();
        waits::clear();
        let before = self.root.health();
        let signal = Arc::new(Signal(AtomicBool::new(false)));
        let waker = Waker::from(signal.clone());
        let root = self.root.clone();
        let mut run =
            Run { machine: self, signal: &signal, most: plan.steps, steps: 0, finding: None };
        // SAFETY: rule 1 of this module is what is asked for.
        let outcome = unsafe { Root::run(&root, 0, body, &waker, || run.drive()) };
        let (steps, finding) = (run.steps, run.finding.take());
        let finding = finding.or_else(|| match outcome {
            Ok(Ok(value)) => judge(value),
            Ok(Err(Stop::Panicked(panic))) => Some(Finding::panicked(&panic)),
            Ok(Err(Stop::Cancelled(cancelled))) => Some(Finding::ended(&cancelled)),
            Ok(Err(Stop::Err(never))) => match never {},
            Err(status) => Some(Finding::refused(status)),
        });
        let after = self.root.health();
        let finding = finding
            .or_else(|| waits::take_panic().map(|message| Finding::finalizer_panicked(&message)))
            .or_else(|| self.leaks())
            .or_else(|| Finding::forced(after.overruns - before.overruns))
            .or_else(|| Finding::lost_panics(after.lost_panics - before.lost_panics));
        let failure = finding.map(|finding| Failure::new(finding, steps));
        let (mut used, held_back) = self.host.finish();
        if let Some(strategy) = &mut used {
            let passed = if held_back { Verdict::Cut } else { Verdict::Passed };
            strategy.end(failure.as_ref().map_or(passed, Failure::verdict));
        }
        *strategy = used;
        Ran { failure }
    }

    /// What was decided in the last run.
    pub(crate) fn log(&self) -> Decisions {
        self.host.log()
    }

    pub(crate) fn coverage(&self) -> (usize, usize) {
        self.host.coverage()
    }

    /// What a program that is over has left behind.
    fn leaks(&self) -> Option<Finding> {
        let timers = self.core.live_timers();
        if timers > 0 {
            // They are of no use to the next run either.
            self.core.fire_timers(Time::MAX);
            return Some(Finding::leaked_timers(timers));
        }
        Finding::leaked_obligations(waits::take_leaked())
            .or_else(|| Finding::leaked_permits(&waits::held()))
    }
}

/// A run that is going on.
struct Run<'a> {
    machine: &'a mut Machine,
    signal: &'a Signal,
    most: u64,
    steps: u64,
    finding: Option<Finding>,
}

impl Run<'_> {
    /// Goes on until the root has something to look at.
    fn drive(&mut self) {
        while !self.signal.0.swap(false, Relaxed) {
            let over = self.finding.is_some();
            if !over && self.steps >= self.most {
                self.give_up(stuck::endless(&self.machine.root, self.most));
                continue;
            }
            let root = &self.machine.root;
            let step = self.machine.host.step(!over, |task| {
                root.cancel_number(task);
            });
            match step {
                Some(Step { cancel, trouble }) => {
                    self.steps += 1;
                    if let Some((task, times)) = cancel {
                        self.machine.cancel(task, times);
                    }
                    if let Some(trouble) = trouble.filter(|_| !over) {
                        self.give_up(self.tell(trouble));
                    }
                }
                None if self.machine.jump(!over) => {}
                // What is left never ends: no poll can be forced on it.
                None if over => return,
                None => self.stand_still(),
            }
        }
    }

    /// Nothing can run, and no time will come at which something can.
    fn stand_still(&mut self) {
        let waiters = waits::waiters(&self.machine.root);
        if stuck::waits_for_outside(&waiters) && self.machine.host.wait(&mut self.machine.patience)
        {
            return;
        }
        let dump = Dump::of(&self.machine.root);
        self.give_up(stuck::explain(&waiters).with_detail(&dump.to_string()));
    }

    fn tell(&self, trouble: Trouble) -> Finding {
        let detail = Dump::of(&self.machine.root).to_string();
        let finding = match trouble {
            Trouble::Foreign => Finding::foreign(),
            Trouble::Endless(task) => Finding::endless_poll(task),
            Trouble::Unheeding(task, polls) => Finding::unheeding(task, polls),
        };
        finding.with_detail(&detail)
    }

    /// The run is decided: what lives is ended by force.
    fn give_up(&mut self, finding: Finding) {
        self.finding = Some(finding);
        self.machine.root.abandon();
    }
}

impl Machine {
    /// Asks a task to stop, so many times.
    fn cancel(&self, task: u64, times: usize) {
        self.host.cancel(|| {
            for _ in 0..times {
                self.root.cancel_number(task);
            }
        });
    }

    /// Moves the clock to the next timer: false if there is none.
    fn jump(&self, ask: bool) -> bool {
        let Some(next) = self.core.next_wake() else { return false };
        self.host.tick(next, ask, |now| {
            self.core.fire_timers(now);
        });
        true
    }
}

/// Tells that the root has something to look at.
struct Signal(AtomicBool);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}
