//! Tasks that stay on one thread: while one of them is in the middle of a poll, no other goes on.
//!
//! The root and local tasks run on the thread they were spawned on. Their polls never overlap, so
//! that they may share what is not `Send`, and keep it borrowed around an operation that does not
//! wait. Where polls can be left at points, the others on that thread wait until the poll is over.
//!
//! Which tasks are on one thread follows from who spawned them: a local task is where its spawner
//! was at that moment. A spawner that is on one thread itself is always there. Any other may be
//! anywhere in its next poll, so it shares the thread of its local tasks only until this one is
//! over, and what it spawns in the next is on another thread.
//!
//! That one task keeps another from running is not told by what their steps touch: strategies that
//! go by that are told of it (`Strategy::excludes`).

use super::State;
use crate::explore::{Points, TaskPath};

/// Of a task that may be on any thread.
pub(super) const ANY: u32 = 0;

/// The threads of a run, by number.
#[derive(Default)]
pub(super) struct Threads {
    /// How many tasks have been on each; the first is that of nobody.
    tasks: Vec<u32>,
    /// Those of several tasks, one of which is in the middle of a poll.
    busy: Vec<u32>,
    /// Who can run once its thread is free.
    waiting: Vec<(TaskPath, u32)>,
}

impl Threads {
    /// As before a run.
    pub(super) fn clear(&mut self) {
        self.tasks.clear();
        self.busy.clear();
        self.waiting.clear();
    }

    /// Whether nobody has to wait for a thread.
    #[inline]
    pub(super) fn are_free(&self) -> bool {
        self.busy.is_empty()
    }

    /// Another thread, with so many tasks.
    fn add(&mut self, tasks: u32) -> u32 {
        if self.tasks.is_empty() {
            self.tasks.push(0);
        }
        self.tasks.push(tasks);
        (self.tasks.len() - 1) as u32
    }

    /// Whether there were several tasks on it.
    fn is_shared(&self, thread: u32) -> bool {
        self.tasks.get(thread as usize).is_some_and(|tasks| *tasks > 1)
    }

    /// Takes a task out of those that wait.
    pub(super) fn forget(&mut self, path: TaskPath) {
        self.waiting.retain(|(other, _)| *other != path);
    }
}

impl State {
    /// The thread of a task that is spawned now, and must stay where its spawner is.
    #[cold]
    pub(super) fn thread_of_local(&mut self, spawner: u64) -> u32 {
        if spawner == 0 {
            return self.threads.add(1);
        }
        let at = spawner as usize;
        if self.tasks[at].thread == ANY {
            self.tasks[at].thread = self.threads.add(1);
        }
        let thread = self.tasks[at].thread;
        self.threads.tasks[thread as usize] += 1;
        self.occupy(at);
        thread
    }

    /// A task can run, unless another on its thread is in the middle of a poll.
    #[inline]
    pub(super) fn make_runnable(&mut self, path: TaskPath, thread: u32) {
        if !self.threads.are_free() && self.threads.busy.contains(&thread) {
            self.threads.waiting.push((path, thread));
        } else {
            self.enabled.push(path);
        }
    }

    /// A poll of a task has begun that can be left in the middle.
    pub(super) fn occupy(&mut self, at: usize) {
        let thread = self.tasks[at].thread;
        let is_alone = thread == ANY || !self.threads.is_shared(thread);
        if is_alone || self.plan.points == Points::None || self.threads.busy.contains(&thread) {
            return;
        }
        self.threads.busy.push(thread);
        let State { enabled, tasks, threads, strategy, .. } = self;
        if let Some(strategy) = strategy {
            strategy.excludes();
        }
        let on_thread = tasks.iter().filter(|known| known.thread == thread && known.path != 0);
        for path in on_thread.map(|known| TaskPath(known.path)) {
            if let Some(place) = enabled.iter().position(|other| *other == path) {
                enabled.remove(place);
                threads.waiting.push((path, thread));
                self.old = 0;
            }
        }
    }

    /// The poll of a task is over: those who waited for its thread can run.
    #[inline]
    pub(super) fn vacate(&mut self, at: usize) {
        if !self.threads.are_free() {
            self.vacate_shared(at);
        }
    }

    #[cold]
    fn vacate_shared(&mut self, at: usize) {
        let thread = self.tasks[at].thread;
        let State { enabled, threads, .. } = self;
        threads.busy.retain(|busy| *busy != thread);
        threads.waiting.retain(|(path, of)| {
            let waits = *of != thread;
            if !waits {
                enabled.push(*path);
            }
            waits
        });
        if !self.tasks[at].is_local {
            self.tasks[at].thread = ANY;
        }
    }
}
