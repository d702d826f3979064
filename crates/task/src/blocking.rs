//! Jobs that block the thread they run on.
//!
//! A job is a task like any other: its region counts it, its handle tells its outcome, dumps show
//! it. What differs is where it is polled: its first entry goes to the host's
//! [`run_blocking`](crate::Host::run_blocking), and the one poll there is runs the whole job. A
//! cancel that comes before makes a second entry, for a worker; whichever is taken first finds the
//! cancel and ends the task without running the job, the other finds nothing to do. A cancel that
//! comes later is only noted: the job ends by itself, with its own outcome.

use std::convert::Infallible;
use std::sync::Arc;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::status::Status;

use crate::raw::BLOCKING;
use crate::raw::poll_context;
use crate::region::{Label, Policy, Region};
use crate::scope::{Scope, TaskBuilder};
use crate::spawn::{Plan, make, refused};
use crate::{Cx, SpawnError, Task};

impl Cx {
    /// Runs `job` on a thread where it may block. The innermost scope around the caller owns it:
    /// it does not end before the job has.
    ///
    /// A job that is cancelled before it begins never begins; one that has begun is waited for. Its
    /// panic is its handle's to tell. Inside it [`Cx::current`] is its own context, so that a long
    /// job can look whether to stop.
    pub fn spawn_blocking<F, T>(&self, job: F) -> Task<T, Infallible>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // A region of its own, since the scope around has errors of another type.
        match self.open_region(Policy::CollectAll, Budget::INFINITE, Label::default()) {
            Ok(region) => {
                let plan = Plan { pin: BLOCKING, ..Plan::default() };
                let (_, task) = spawn_blocking(&region, plan, || Ok(job()));
                region.end();
                task
            }
            Err(status) => {
                let region = self.region();
                refused(&region, region.refusal(status))
            }
        }
    }
}

impl<E: Send + 'static> Scope<E> {
    /// Runs `job` on a thread where it may block, as a task of this scope.
    ///
    /// A job that is cancelled before it begins never begins; one that has begun is waited for, and
    /// keeps its own outcome. Errors and panics are those of a task. Inside it [`Cx::current`] is
    /// its own context, so that a long job can look whether to stop.
    #[track_caller]
    pub fn spawn_blocking<F, T>(&self, job: F) -> Task<T, E>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
    {
        self.plan().spawn_blocking(job)
    }
}

impl<E: Send + 'static> TaskBuilder<'_, E> {
    /// Starts a blocking job; see [`Scope::spawn_blocking`].
    pub fn spawn_blocking<F, T>(self, job: F) -> Task<T, E>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
    {
        let (region, plan) = self.into_parts();
        spawn_blocking(region, Plan { pin: BLOCKING, ..plan }, job).1
    }

    /// Starts a blocking job, or says why not.
    pub fn try_spawn_blocking<F, T>(self, job: F) -> Result<Task<T, E>, SpawnError>
    where
        F: FnOnce() -> Result<T, E> + Send + 'static,
        T: Send + 'static,
    {
        let (region, plan) = self.into_parts();
        let (spawned, task) = spawn_blocking(region, Plan { pin: BLOCKING, ..plan }, job);
        spawned.map(|()| task).map_err(SpawnError::new)
    }
}

fn spawn_blocking<F, T, E>(
    region: &Arc<Region>,
    plan: Plan,
    job: F,
) -> (Result<(), Status>, Task<T, E>)
where
    F: FnOnce() -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    // SAFETY: Send and 'static.
    let (entry, task) = unsafe {
        make(region, plan, |_| async move {
            // The one poll there is: there would be no other to go on with.
            poll_context::allow_any_number();
            job()
        })
    };
    let spawned = entry.and_then(|entry| {
        let host = &*region.core.host;
        let refused = entry.and_then(|entry| host.run_blocking(entry).err());
        let Some(entry) = refused else { return Ok(()) };
        // No thread: a cancelled job may end anywhere.
        task.cancel_with(region.reason(Kind::ResourceUnavailable));
        host.schedule(entry);
        Err(Status::ResourceExhausted)
    });
    (spawned, task)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::mem::take;
    use std::sync::Mutex;

    use super::*;
    use crate::core::{Core, Settings};
    use crate::test_util::Timeless;
    use crate::{Cancelled, Runnable, TaskError};

    /// Has no thread for jobs, and keeps what is scheduled.
    #[derive(Default)]
    struct NoThreads(Mutex<Vec<Runnable>>);

    impl Timeless for NoThreads {
        fn put(&self, entry: Runnable) {
            self.0.lock().unwrap().push(entry);
        }
    }

    #[test]
    fn without_a_thread_the_job_ends_cancelled_and_never_runs() {
        let host = Arc::new(NoThreads::default());
        let region = Core::new(host.clone(), Settings::default()).root();
        let held = Arc::new(());
        let job = held.clone();
        let plan = Plan { pin: BLOCKING, ..Plan::default() };
        let job = move || -> Result<(), Cancelled> { unreachable!("{job:?}") };
        let (spawned, mut task) = spawn_blocking(&region, plan, job);
        assert_eq!(spawned, Err(Status::ResourceExhausted));
        // Two entries: one ends the task, the other finds nothing to do.
        let entries = take(&mut *host.0.lock().unwrap());
        assert_eq!(entries.into_iter().map(Runnable::run).collect::<Vec<_>>(), [false, false]);
        let Some(Err(TaskError::Cancelled(cancelled))) = task.outcome() else {
            panic!("no cancel")
        };
        assert_eq!(cancelled.kind(), Kind::ResourceUnavailable);
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
