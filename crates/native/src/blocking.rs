//! Threads for jobs that block.
//!
//! A job goes to a waiting thread. If there is none, a new thread is started; at the limit of
//! threads the job is queued. A thread that waited for a while without a job ends. No thread ends
//! while a job is queued, so that a queued job always has a thread.
//!
//! When the runtime is dropped no task is alive, hence no job. The queue may still have entries of
//! cancelled jobs, which have nothing to run.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use asx_runtime::Runnable;

use crate::owner::Owner;

/// How long a thread without a job is kept.
const KEEP: Duration = Duration::from_secs(10);

/// A job for the pool.
pub(crate) trait Job: Send + 'static {
    /// Runs the job; must not panic.
    fn run(self);
}

impl Job for Runnable {
    fn run(self) {
        Runnable::run(self);
    }
}

pub(crate) struct Pool<J = Runnable> {
    /// The largest number of threads.
    most: usize,
    /// The name of the runtime's threads.
    pub(crate) name: String,
    keep: Duration,
    state: Mutex<State<J>>,
    /// There is a job for a waiting thread, or the pool was closed.
    changed: Condvar,
    /// The runtime that owns the threads.
    pub(crate) owner: Arc<Owner>,
}

struct State<J> {
    queue: VecDeque<J>,
    /// The number of threads that wait for a job, including notified ones that have not run yet.
    waiting: usize,
    threads: HashMap<u64, JoinHandle<()>>,
    /// The number of threads ever started.
    started: u64,
    closed: bool,
}

impl<J: Job> Pool<J> {
    pub(crate) fn new(most: usize, name: &str) -> Arc<Pool<J>> {
        Pool::keeping(most, name, KEEP)
    }

    fn keeping(most: usize, name: &str, keep: Duration) -> Arc<Pool<J>> {
        let state = State {
            queue: VecDeque::new(),
            waiting: 0,
            threads: HashMap::new(),
            started: 0,
            closed: false,
        };
        Arc::new(Pool {
            most,
            name: name.into(),
            keep,
            state: Mutex::new(state),
            changed: Condvar::new(),
            owner: Owner::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Has a thread run the job; returns it if there is no thread and none can be started.
    pub(crate) fn run(self: &Arc<Self>, job: J) -> Result<(), J> {
        let mut state = self.lock();
        if state.closed {
            return Err(job);
        }
        // Each queued job reserves a waiting thread, so this one needs a further one.
        if state.queue.len() < state.waiting {
            state.queue.push_back(job);
            drop(state);
            self.changed.notify_one();
            return Ok(());
        }
        if state.threads.len() < self.most {
            self.start(&mut state);
        }
        if state.threads.is_empty() {
            return Err(job);
        }
        state.queue.push_back(job);
        Ok(())
    }

    /// Starts a thread, unless the operating system refuses.
    fn start(self: &Arc<Self>, state: &mut State<J>) {
        let id = state.started;
        let pool = self.clone();
        let thread = thread::Builder::new().name(format!("{}-blocking-{id}", self.name));
        // The new thread takes the lock first, so it is in `threads` before it can end.
        let serve = move || {
            pool.owner.adopt();
            pool.serve(id);
        };
        if let Ok(handle) = thread.spawn(serve) {
            state.started += 1;
            state.threads.insert(id, handle);
        }
    }

    fn serve(&self, id: u64) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                job.run();
                state = self.lock();
                continue;
            }
            if state.closed {
                return;
            }
            state.waiting += 1;
            let waited = self.changed.wait_timeout(state, self.keep);
            let (guard, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            state = guard;
            state.waiting -= 1;
            if timeout.timed_out() && state.queue.is_empty() && !state.closed {
                state.threads.remove(&id);
                return;
            }
        }
    }

    /// Refuses further jobs and ends all threads as soon as the queue is empty. Returns the
    /// threads, to be joined.
    pub(crate) fn close(&self) -> impl Iterator<Item = JoinHandle<()>> + use<J> {
        let threads = {
            let mut state = self.lock();
            state.closed = true;
            std::mem::take(&mut state.threads)
        };
        self.changed.notify_all();
        threads.into_values()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
