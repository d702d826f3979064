//! Who steps the runtime: the workers of threads without their threads, or the lab's.

use std::sync::Arc;

use asx_kernel::choose::Choose;
use asx_kernel::lanes::{Certificate, Lane, SchedulerConfig, Suggestion};
use asx_kernel::time::Time;
use asx_lab::workers::{self, Workers};
use asx_native::stepped::{Setup, Stepped};
use asx_runtime::{Core, Region};

use super::browser::Browser;

/// A run that is stepped: see [`Stepped`], whose methods these are.
pub(super) trait Steps {
    fn core(&self) -> &Arc<Core>;
    fn root(&self) -> &Arc<Region>;
    fn clock(&self) -> Box<dyn Fn(Time) + Send + Sync>;
    fn workers(&self) -> usize;
    /// Polls a task, on that worker if one is named: its number.
    fn step(&mut self, worker: Option<usize>) -> Option<(u64, Lane)>;
    fn suggest(&mut self, suggestion: Suggestion);
    fn queued(&self, lane: Lane) -> usize;
    fn certificate(&self, worker: usize) -> Option<Certificate>;
    /// The event loop that drives it, if one does.
    fn browser(&self) -> Option<&Browser> {
        None
    }
}

/// The stepped workers of threads.
pub(super) fn of_threads(setup: Setup) -> Box<dyn Steps> {
    Box::new(Stepped::new(setup))
}

/// The virtual workers of the lab, which ask an oracle.
pub(super) fn of_lab(setup: Setup, oracle: Box<dyn Choose>) -> Box<dyn Steps> {
    let Setup { workers, tie_break, cancel_streak_limit, settings, .. } = setup;
    let scheduler = SchedulerConfig { workers, cancel_streak_limit, tie_break };
    Box::new(Workers::new(workers::Setup { scheduler, settings }, oracle))
}

macro_rules! steps {
    ($($type:ty),*) => {$(
        impl Steps for $type {
            fn core(&self) -> &Arc<Core> {
                self.core()
            }

            fn root(&self) -> &Arc<Region> {
                self.root()
            }

            fn clock(&self) -> Box<dyn Fn(Time) + Send + Sync> {
                Box::new(self.clock())
            }

            fn workers(&self) -> usize {
                self.workers()
            }

            fn step(&mut self, worker: Option<usize>) -> Option<(u64, Lane)> {
                let step = match worker {
                    Some(worker) => self.step_on(worker),
                    None => self.step(),
                };
                step.map(|step| (step.task, step.lane))
            }

            fn suggest(&mut self, suggestion: Suggestion) {
                self.suggest(suggestion);
            }

            fn queued(&self, lane: Lane) -> usize {
                self.queued(lane)
            }

            fn certificate(&self, worker: usize) -> Option<Certificate> {
                self.certificate(worker)
            }
        }
    )*};
}

steps!(Stepped, Workers);
