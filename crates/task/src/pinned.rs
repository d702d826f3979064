//! Tasks that stay on one thread.

use std::future::Future;

use asx_kernel::cancel::Kind;
use asx_kernel::status::Status;

use crate::scope::{Scope, TaskBuilder};
use crate::spawn::{Plan, refused, spawn};
use crate::{Cx, SpawnError, Task};

impl<E: Send + 'static> Scope<E> {
    /// Starts a task that need not be `Send`: it runs and is dropped on the calling thread, which
    /// must be a worker's; elsewhere nothing starts, and the handle says so. The body itself is
    /// called at once, here.
    ///
    /// What it gives has to be `Send`, since the handle may be awaited anywhere:
    ///
    /// ```compile_fail,E0277
    /// # use asx::{Cancelled, Cx, Scope};
    /// # use std::rc::Rc;
    /// fn start(s: &Scope<Cancelled>) {
    ///     s.spawn_local(async |_cx: Cx| Ok(Rc::new(1)));
    /// }
    /// ```
    #[track_caller]
    pub fn spawn_local<F, B, T>(&self, body: F) -> Task<T, E>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, E>> + 'static,
        T: Send + 'static,
    {
        self.plan().spawn_local(body)
    }
}

impl<E: Send + 'static> TaskBuilder<'_, E> {
    /// Starts a task that stays on this thread; see [`Scope::spawn_local`].
    pub fn spawn_local<F, B, T>(self, body: F) -> Task<T, E>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, E>> + 'static,
        T: Send + 'static,
    {
        self.local(body).1
    }

    /// Starts a task that stays on this thread, or says why not:
    /// [`NoSuchWorker`](SpawnError::NoSuchWorker) if the thread is no worker of this runtime.
    pub fn try_spawn_local<F, B, T>(self, body: F) -> Result<Task<T, E>, SpawnError>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, E>> + 'static,
        T: Send + 'static,
    {
        let (spawned, task) = self.local(body);
        spawned.map(|()| task).map_err(SpawnError::new)
    }

    fn local<F, B, T>(self, body: F) -> (Result<(), Status>, Task<T, E>)
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, E>> + 'static,
        T: Send + 'static,
    {
        let (region, plan) = self.into_parts();
        let Some(here) = region.core.host.here() else {
            let why = region.reason(Kind::ResourceUnavailable);
            return (Err(Status::AffinityViolation), refused(region, why.into()));
        };
        // SAFETY: rule 6 of cells: pinned to the worker this thread is, which keeps it as long as
        // the task lives; and 'static.
        unsafe { spawn(region, Plan { pin: here, ..plan }, body) }
    }
}
