//! A value made once, by whoever needs it first.
//!
//! The right to make the value is the one permit of a pool. A maker that fails, panics or is
//! dropped gives it back, so that the next in line tries; one that succeeds closes the pool, which
//! tells all who wait that the value is there.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::mem;
use std::sync::OnceLock;

use asx_task::footprint;
use asx_task::operation::Wait;
use asx_task::{Cancelled, Cx};

use super::AcquireError;
use super::claim::{Claim, Held};
use super::pool::{Pool, Refusal};

/// A cell that is filled at most once, asynchronously.
///
/// ```
/// use asx::{Cancelled, Cx, sync::OnceCell};
///
/// static CONFIG: OnceCell<String> = OnceCell::const_new();
///
/// async fn config(cx: &Cx) -> Result<&'static str, Cancelled> {
///     let text = CONFIG.get_or_init(cx, async || String::from("slow to load")).await?;
///     Ok(text)
/// }
/// ```
pub struct OnceCell<T> {
    value: OnceLock<T>,
    right: Pool,
}

impl<T> OnceCell<T> {
    /// An empty cell.
    #[track_caller]
    pub fn new() -> OnceCell<T> {
        OnceCell { value: OnceLock::new(), right: Pool::new(1, 1) }
    }

    const_fn! {
        /// An empty cell, for a `static`: see [`Mutex::const_new`](super::Mutex::const_new).
        #[track_caller]
        pub fn const_new() -> OnceCell<T> {
            OnceCell { value: OnceLock::new(), right: Pool::const_new(1, 1) }
        }
    }

    /// The value, if it is there.
    pub fn get(&self) -> Option<&T> {
        let _after = footprint::operation();
        self.right.object().read();
        self.value.get()
    }

    /// The value, if it is there.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// The value, if it is there.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Takes the value out, which leaves the cell empty.
    pub fn take(&mut self) -> Option<T> {
        mem::take(self).into_inner()
    }

    /// Fills the cell, unless it is full or being filled; then the value comes back.
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        let _after = footprint::operation();
        match Held::try_new(&self.right, 1) {
            Ok(right) => {
                self.fill(right, value);
                Ok(())
            }
            Err(Refusal::Closed) => Err(SetError::Full(value)),
            Err(Refusal::Busy) => Err(SetError::Initialising(value)),
        }
    }

    /// The value, made by `init` if it isn't there.
    ///
    /// Only one task makes it at a time; the others wait in line. If `init` panics or its task
    /// drops it, the next in line runs its own. A cancel ends the wait, not a running `init`, which
    /// has its own checks. `init` must not ask for the value of the same cell: it would wait for
    /// itself. Dropping this future drops a running `init`, so it is as cancel-safe as that is.
    #[track_caller]
    pub fn get_or_init<F>(&self, cx: &Cx, init: F) -> impl Future<Output = Result<&T, Cancelled>>
    where
        F: AsyncFnOnce() -> T,
    {
        self.get_or_try_init(cx, async || Ok(init().await))
    }

    /// The value, made by `init` if it isn't there and `init` succeeds. If it fails, the error goes
    /// to the one who ran it, and the next in line runs its own.
    ///
    /// As with [`get_or_init`](Self::get_or_init) otherwise.
    #[track_caller]
    pub fn get_or_try_init<F, E>(&self, cx: &Cx, init: F) -> impl Future<Output = Result<&T, E>>
    where
        F: AsyncFnOnce() -> Result<T, E>,
        E: From<Cancelled>,
    {
        let claim = Claim::new(cx, &self.right, 1, Wait::Signal);
        async move {
            match claim.await {
                Ok(right) => {
                    let value = init().await?;
                    Ok(self.fill(right, value))
                }
                Err(AcquireError::Cancelled(cancelled)) => Err(cancelled.into()),
                Err(AcquireError::Closed) => Ok(self.filled()),
            }
        }
    }

    /// Puts the value in and tells all.
    fn fill(&self, right: Held<&Pool>, value: T) -> &T {
        let value = self.value.get_or_init(|| value);
        right.home().close();
        value
    }

    fn filled(&self) -> &T {
        self.get().expect("the pool is closed only when the value is there")
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        OnceCell::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        let cell = OnceCell { value: value.into(), right: Pool::new(0, 1) };
        cell.right.close();
        cell
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceCell").field(&self.get()).finish()
    }
}

/// Why a [`OnceCell`] wasn't filled, with the value that was to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError<T> {
    /// It has a value.
    Full(T),
    /// Somebody is making one.
    Initialising(T),
}

impl<T> SetError<T> {
    /// The value that was to be put in.
    pub fn into_inner(self) -> T {
        match self {
            SetError::Full(value) | SetError::Initialising(value) => value,
        }
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SetError::Full(_) => "the cell is full",
            SetError::Initialising(_) => "the cell is being filled",
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}
