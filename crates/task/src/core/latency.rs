//! Cancels that nobody looks at: a task that was asked to stop and goes on being polled without a
//! cancel-checked operation keeps its region open, and so does a part of a task whose time is up.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::AtomicU64;
#[cfg(not(target_family = "wasm"))]
use std::sync::atomic::Ordering::Release;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::core::Core;
#[cfg(not(target_family = "wasm"))]
use crate::raw::TaskRef;

/// A task that was asked to stop and has not looked for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unheeded {
    /// The number of the task.
    pub task: u64,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// How many polls it has taken since it was asked.
    pub polls: u32,
    /// For how long it has been inside the last of them, at least, if that took too long.
    pub inside: Option<Duration>,
    /// Where the task last waited for an operation of asx, or where it was spawned if it has not
    /// waited yet.
    pub at: Option<&'static Location<'static>>,
}

impl Unheeded {
    #[cfg(not(target_family = "wasm"))]
    pub(in crate::core) fn of(task: &TaskRef, polls: u32) -> Unheeded {
        let name = task.attrs.as_ref().and_then(|attrs| attrs.name.as_deref()).map(str::to_owned);
        let at = task.wait().map(|(_, at)| at).or_else(|| task.spawned_at());
        Unheeded { task: task.id(), name, polls, inside: None, at }
    }
}

impl fmt::Display for Unheeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.task)?;
        if let Some(name) = &self.name {
            write!(f, " `{name}`")?;
        }
        match self.inside {
            None => write!(f, " was asked to stop and has not looked in {} polls", self.polls),
            Some(time) => {
                write!(f, " was cancelled and did not observe it in a poll that took {time:.1?}")?;
                match self.at {
                    Some(at) => write!(f, "; its last known place is {at}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// How many cancels were unheeded for too long. On wasm none is counted: pages count bytes.
#[cfg_attr(target_family = "wasm", allow(dead_code, reason = "nothing is counted"))]
pub(crate) struct Latency {
    /// How many polls are not too long; `None`: any number.
    most: Option<u16>,
    count: AtomicU64,
    /// The first of them that nobody has asked for.
    first: Mutex<Option<Unheeded>>,
    /// Timeouts that were over for too long.
    timeouts: AtomicU64,
    /// Where the first of them is that nobody has asked for.
    first_timeout: Mutex<Option<&'static Location<'static>>>,
}

impl Latency {
    pub(crate) fn new(most: Option<u16>) -> Latency {
        let count = AtomicU64::new(0);
        let timeouts = AtomicU64::new(0);
        Latency { most, count, first: Mutex::new(None), timeouts, first_timeout: Mutex::new(None) }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Acquire)
    }

    pub(crate) fn timeouts(&self) -> u64 {
        self.timeouts.load(Relaxed)
    }

    fn first_timeout(&self) -> MutexGuard<'_, Option<&'static Location<'static>>> {
        self.first_timeout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first(&self) -> MutexGuard<'_, Option<Unheeded>> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// The first task that has not looked at its cancel for too long, since this was asked last.
    pub fn take_unheeded(&self) -> Option<Unheeded> {
        self.latency.first().take()
    }

    /// Where the first timeout is in which nothing has looked for too long, since this was asked
    /// last.
    pub fn take_unheeded_timeout(&self) -> Option<&'static Location<'static>> {
        self.latency.first_timeout().take()
    }

    /// Nothing in a timeout of a task has looked for too long.
    #[cfg(not(target_family = "wasm"))]
    #[cold]
    pub(crate) fn unheeded_timeout(&self, task: &TaskRef, at: &'static Location<'static>) {
        self.latency.timeouts.fetch_add(1, Relaxed);
        self.latency.first_timeout().get_or_insert(at);
        task.span.unheeded_timeout(at);
    }

    /// A task that was asked to stop was polled and has not looked.
    #[cfg(not(target_family = "wasm"))]
    #[cold]
    pub(crate) fn unheeded(&self, task: &TaskRef) {
        let Some(most) = self.latency.most else { return };
        let polls = task.count_unheeded();
        // Once for each task: the count grows by one each time, up to its end, where it stays.
        if most >= u16::MAX - 1 || polls != most + 1 {
            return;
        }
        self.note_unheeded(task, &self.latency.count, Unheeded::of(task, polls.into()));
    }

    /// Keeps the task if it is the first one, counts and reports it, in this order: a program that
    /// has seen the count is judged by the task, and subscribers of `tracing` may take any time.
    #[cfg(not(target_family = "wasm"))]
    pub(in crate::core) fn note_unheeded(
        &self,
        task: &TaskRef,
        count: &AtomicU64,
        unheeded: Unheeded,
    ) {
        self.latency.first().get_or_insert_with(|| unheeded.clone());
        count.fetch_add(1, Release);
        self.report_unheeded(task, &unheeded);
        task.span.unheeded(unheeded.polls, unheeded.inside, unheeded.at);
    }
}
