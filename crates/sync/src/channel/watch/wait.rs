//! Waiting for a change, or for the end of all interest.

use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc as Snapshot;
use std::task::{Context, Poll, ready};

use asx_task::backtrace::{Side, Thing};
use asx_task::footprint;
use asx_task::operation::Wait;
use asx_task::{CancelSafe, Cancelled, Cx};

use super::{Setter, State, Watcher};
use crate::channel::RecvError;
use crate::channel::line::LineWait;

impl<T> Watcher<T> {
    /// A poll of a wait for a value that was not seen: what `take` makes of it under the lock, or
    /// `None` if none will come.
    pub(in crate::channel) fn poll_change<R>(
        &mut self,
        cx: &Cx,
        wait: &mut LineWait,
        context: &mut Context<'_>,
        take: fn(&Snapshot<T>) -> R,
    ) -> Poll<Result<Option<R>, Cancelled>> {
        let _after = footprint::after_operation();
        let Watcher { state, seen, end } = self;
        let polled = wait.poll(cx, Wait::Signal, state, State::changed, context, |state| {
            if state.version != *seen {
                *seen = state.version;
                return Some(Some(take(&state.value)));
            }
            (state.setters == 0).then_some(None)
        });
        if polled.is_pending() {
            end.awaits(Thing::Watch, Side::Sends);
        }
        polled
    }

    /// Waits no longer for a change.
    pub(in crate::channel) fn leave(&self, wait: &mut LineWait) {
        wait.leave(&self.state, State::changed);
    }
}

/// The future of [`Watcher::changed`]; gives `Result<(), RecvError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Changed<'a, T> {
    watcher: &'a mut Watcher<T>,
    cx: &'a Cx,
    wait: LineWait,
}

impl<'a, T> Changed<'a, T> {
    pub(super) fn new(
        watcher: &'a mut Watcher<T>,
        cx: &'a Cx,
        at: &'static Location<'static>,
    ) -> Self {
        Changed { watcher, cx, wait: LineWait::new(at) }
    }
}

impl<T> Future for Changed<'_, T> {
    type Output = Result<(), RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Changed { watcher, cx, wait } = &mut *self;
        let changed = ready!(watcher.poll_change(cx, wait, context, |_| ()))?;
        Poll::Ready(changed.ok_or(RecvError::Disconnected))
    }
}

impl<T> Drop for Changed<'_, T> {
    fn drop(&mut self) {
        self.watcher.leave(&mut self.wait);
    }
}

impl<T> CancelSafe for Changed<'_, T> {}

/// The future of [`Setter::closed`]; gives `Result<(), Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a, T> {
    setter: &'a Setter<T>,
    cx: &'a Cx,
    wait: LineWait,
}

impl<'a, T> Closed<'a, T> {
    pub(super) fn new(setter: &'a Setter<T>, cx: &'a Cx, at: &'static Location<'static>) -> Self {
        Closed { setter, cx, wait: LineWait::new(at) }
    }
}

impl<T> Future for Closed<'_, T> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let Closed { setter, cx, wait } = &mut *self;
        wait.poll(cx, Wait::Signal, &setter.state, State::closed, context, |state| {
            (state.watchers == 0).then_some(())
        })
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        self.wait.leave(&self.setter.state, State::closed);
    }
}

impl<T> CancelSafe for Closed<'_, T> {}
