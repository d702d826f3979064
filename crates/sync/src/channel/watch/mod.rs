//! The latest value, and word of its changes.
//!
//! A setter replaces the value; watchers look at it whenever they like and can wait until it
//! changes. Who is slow skips the values in between, never the last one. Looking gives a shared
//! snapshot and holds no lock, so it may be kept for as long as needed.

#[cfg(all(test, not(loom)))]
mod tests;
mod wait;

use std::fmt;
use std::panic::Location;
use std::sync::Arc as Snapshot;

use asx_task::Cx;
use asx_task::backtrace::{Endpoint, Side, Usage};
use asx_task::footprint;
use asx_task::operation;

use super::line::{self, Line};
use super::{Disconnected, RecvError};
use crate::prim::{Arc, Shared, lock};
pub use wait::{Changed, Closed};

/// A value to watch.
///
/// ```
/// let (tx, mut rx) = asx::channel::watch("starting");
/// assert_eq!(*rx.borrow(), "starting");
/// tx.send("ready")?;
/// assert!(rx.has_changed());
/// assert_eq!(*rx.borrow_and_update(), "ready");
/// assert!(!rx.has_changed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg_attr(feature = "lab", track_caller)]
pub fn watch<T>(init: T) -> (Setter<T>, Watcher<T>) {
    let state = Arc::new(Shared::new(State {
        value: Snapshot::new(init),
        version: 0,
        setters: 1,
        watchers: 1,
        changed: Line::default(),
        closed: Line::default(),
    }));
    let usage = Usage::new();
    let setter = Setter { state: state.clone(), end: Endpoint::new(&usage, Side::Sends) };
    (setter, Watcher { state, seen: 0, end: Endpoint::new(&usage, Side::Receives) })
}

pub(super) struct State<T> {
    pub(super) value: Snapshot<T>,
    /// How often the value was replaced.
    pub(super) version: u64,
    pub(super) setters: usize,
    watchers: usize,
    /// Watchers that wait for another version.
    pub(super) changed: Line,
    /// Setters that wait for the last watcher to go.
    closed: Line,
}

impl<T> State<T> {
    fn changed(&mut self) -> &mut Line {
        &mut self.changed
    }

    fn closed(&mut self) -> &mut Line {
        &mut self.closed
    }
}

/// A side that sets the value; a clone is a further one.
pub struct Setter<T> {
    pub(super) state: Arc<Shared<State<T>>>,
    end: Endpoint,
}

impl<T> Setter<T> {
    /// Sets the value. If nobody watches, it comes back and nothing changes.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send(&self, value: T) -> Result<(), Disconnected<T>> {
        let _after = footprint::operation();
        let value = Snapshot::new(value);
        if let Err(unwatched) = self.publish(value, |state| state.watchers > 0) {
            return match Snapshot::into_inner(unwatched) {
                Some(value) => Err(Disconnected(value)),
                None => unreachable!("the value was not shared with anybody"),
            };
        }
        Ok(())
    }

    /// Sets the value whether or not anybody watches: the old one.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send_replace(&self, value: T) -> Snapshot<T> {
        let _after = footprint::operation();
        match self.publish(Snapshot::new(value), |_| true) {
            Ok(old) | Err(old) => old,
        }
    }

    /// Changes the value, whether or not anybody watches. `change` gets a copy, so that nobody
    /// waits for it; if another setter was faster, it is called again with a copy of that value.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send_modify(&self, mut change: impl FnMut(&mut T))
    where
        T: Clone,
    {
        self.send_if_modified(|value| {
            change(value);
            true
        });
    }

    /// [`send_modify`](Setter::send_modify), if `change` says that it has changed something:
    /// whether it has. Otherwise nobody is told, and its copy is dropped.
    ///
    /// ```
    /// let (tx, rx) = asx::channel::watch(3);
    /// fn raise(to: u32) -> impl FnMut(&mut u32) -> bool {
    ///     move |value| std::mem::replace(value, to.max(*value)) < to
    /// }
    /// assert!(!tx.send_if_modified(raise(2)) && !rx.has_changed());
    /// assert!(tx.send_if_modified(raise(5)) && rx.has_changed());
    /// assert_eq!(*rx.borrow(), 5);
    /// ```
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn send_if_modified(&self, mut change: impl FnMut(&mut T) -> bool) -> bool
    where
        T: Clone,
    {
        let _after = footprint::operation();
        loop {
            let (snapshot, version) = {
                let state = lock(&self.state);
                (state.value.clone(), state.version)
            };
            let mut value = T::clone(&snapshot);
            if !change(&mut value) {
                return false;
            }
            if self.publish(Snapshot::new(value), |state| state.version == version).is_ok() {
                return true;
            }
        }
    }

    /// The value, as it is now.
    pub fn borrow(&self) -> Snapshot<T> {
        let _after = footprint::operation();
        lock(&self.state).value.clone()
    }

    /// Waits until nobody watches.
    #[track_caller]
    pub fn closed<'a>(&'a self, cx: &'a Cx) -> Closed<'a, T> {
        Closed::new(self, cx, Location::caller())
    }

    /// Whether nobody watches.
    pub fn is_closed(&self) -> bool {
        let _after = footprint::operation();
        lock(&self.state).watchers == 0
    }

    /// How many watch.
    pub fn watchers(&self) -> usize {
        let _after = footprint::operation();
        lock(&self.state).watchers
    }

    /// How many setters there are.
    pub fn setters(&self) -> usize {
        let _after = footprint::operation();
        lock(&self.state).setters
    }

    /// Whether both set the same value.
    pub fn same_channel(&self, other: &Setter<T>) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// A further watcher, which has seen the value as it is now.
    #[cfg_attr(feature = "lab", track_caller)]
    pub fn subscribe(&self) -> Watcher<T> {
        let _after = footprint::operation();
        let end = self.end.another(Side::Receives);
        Watcher::join(&self.state, end, |state| state.version)
    }

    /// Replaces the value if `may`: the old one, else the new one.
    #[cfg_attr(feature = "lab", track_caller)]
    fn publish(
        &self,
        value: Snapshot<T>,
        may: impl FnOnce(&State<T>) -> bool,
    ) -> Result<Snapshot<T>, Snapshot<T>> {
        let (old, waiting) = {
            let mut state = lock(&self.state);
            if !may(&state) {
                return Err(value);
            }
            state.version += 1;
            (std::mem::replace(&mut state.value, value), state.changed.wake_all())
        };
        self.end.acts(Side::Sends);
        line::wake_all(waiting);
        Ok(old)
    }
}

impl<T> Clone for Setter<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn clone(&self) -> Self {
        lock(&self.state).setters += 1;
        Setter { state: self.state.clone(), end: self.end.another(Side::Sends) }
    }
}

impl<T> Drop for Setter<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        let waiting = {
            let mut state = lock(&self.state);
            state.setters -= 1;
            if state.setters == 0 { state.changed.wake_all() } else { Default::default() }
        };
        line::wake_all(waiting);
    }
}

impl<T> fmt::Debug for Setter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setter").finish_non_exhaustive()
    }
}

/// A side that watches; a clone watches on its own, from the same version.
pub struct Watcher<T> {
    pub(super) state: Arc<Shared<State<T>>>,
    /// The version seen last.
    pub(super) seen: u64,
    end: Endpoint,
}

impl<T> Watcher<T> {
    /// Waits until the value is another than the one seen last, which then counts as seen. Fails
    /// when no setter is left, after the last value was seen, or the task is cancelled.
    ///
    /// ```
    /// # use asx::{Cx, channel::{RecvError, watch::Watcher}};
    /// async fn until_ready(cx: &Cx, rx: &mut Watcher<bool>) -> Result<(), RecvError> {
    ///     while !*rx.borrow_and_update() {
    ///         rx.changed(cx).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn changed<'a>(&'a mut self, cx: &'a Cx) -> Changed<'a, T> {
        Changed::new(self, cx, Location::caller())
    }

    /// Waits until the value is as wanted, which it may be already: that value, which counts as
    /// seen. Fails as [`changed`](Watcher::changed) does.
    ///
    /// ```
    /// # use asx::{Cx, channel::{RecvError, watch::Watcher}};
    /// async fn port(cx: &Cx, rx: &mut Watcher<Option<u16>>) -> Result<Option<u16>, RecvError> {
    ///     Ok(*rx.wait_for(cx, Option::is_some).await?)
    /// }
    /// ```
    #[track_caller]
    pub fn wait_for(
        &mut self,
        cx: &Cx,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<Snapshot<T>, RecvError>> {
        // Where the caller waits, and not here.
        let at = Location::caller();
        async move {
            operation::begin().await;
            cx.checkpoint().inspect_err(|_| operation::ends())?;
            loop {
                // Looked at outside the lock.
                let value = self.borrow_and_update();
                if wanted(&value) {
                    operation::ends();
                    return Ok(value);
                }
                Changed::new(self, cx, at).await?;
            }
        }
    }

    /// The value, as it is now.
    pub fn borrow(&self) -> Snapshot<T> {
        let _after = footprint::operation();
        lock(&self.state).value.clone()
    }

    /// The value, as it is now; it counts as seen.
    pub fn borrow_and_update(&mut self) -> Snapshot<T> {
        let _after = footprint::operation();
        let state = lock(&self.state);
        self.seen = state.version;
        state.value.clone()
    }

    /// Whether the value is another than the one seen last.
    pub fn has_changed(&self) -> bool {
        let _after = footprint::operation();
        lock(&self.state).version != self.seen
    }

    /// Lets the value count as unseen, as it is now: the next [`changed`](Watcher::changed) is done
    /// at once.
    ///
    /// ```
    /// let (_tx, mut rx) = asx::channel::watch("first");
    /// assert!(!rx.has_changed());
    /// rx.mark_changed(); // so that a loop over changes begins with the value that is there
    /// assert!(rx.has_changed());
    /// rx.mark_unchanged();
    /// assert!(!rx.has_changed());
    /// ```
    pub fn mark_changed(&mut self) {
        let _after = footprint::operation();
        self.seen = lock(&self.state).version.wrapping_sub(1);
    }

    /// Lets the value count as seen, as it is now.
    pub fn mark_unchanged(&mut self) {
        let _after = footprint::operation();
        self.seen = lock(&self.state).version;
    }

    /// Whether no setter is left. The last value may be unseen.
    pub fn is_closed(&self) -> bool {
        let _after = footprint::operation();
        lock(&self.state).setters == 0
    }

    /// Whether both watch the same value.
    pub fn same_channel(&self, other: &Watcher<T>) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Adds a watcher that has seen the version `seen` tells.
    fn join(
        state: &Arc<Shared<State<T>>>,
        end: Endpoint,
        seen: impl FnOnce(&State<T>) -> u64,
    ) -> Self {
        let seen = {
            let mut state = lock(state);
            state.watchers += 1;
            seen(&state)
        };
        Watcher { state: state.clone(), seen, end }
    }
}

impl<T> Clone for Watcher<T> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn clone(&self) -> Self {
        Watcher::join(&self.state, self.end.another(Side::Receives), |_| self.seen)
    }
}

impl<T> Drop for Watcher<T> {
    fn drop(&mut self) {
        let _after = footprint::operation();
        let waiting = {
            let mut state = lock(&self.state);
            state.watchers -= 1;
            if state.watchers == 0 { state.closed.wake_all() } else { Default::default() }
        };
        line::wake_all(waiting);
    }
}

impl<T> fmt::Debug for Watcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("seen", &self.seen).finish_non_exhaustive()
    }
}
