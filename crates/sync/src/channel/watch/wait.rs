//! Waiting for a change, or for the end of all interest.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::footprint;
use asx_task::operation::{Registration, Wait};
use asx_task::{CancelSafe, Cancelled, Cx};

use super::{Setter, Watcher};
use crate::channel::RecvError;
use crate::channel::line::{Place, leave_line, poll_line};

/// The future of [`Watcher::changed`]; gives `Result<(), RecvError>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Changed<'a, T> {
    watcher: &'a mut Watcher<T>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    place: Place,
    registration: Registration,
}

impl<'a, T> Changed<'a, T> {
    pub(super) fn new(
        watcher: &'a mut Watcher<T>,
        cx: &'a Cx,
        at: &'static Location<'static>,
    ) -> Self {
        Changed { watcher, cx, at, place: None, registration: Registration::NONE }
    }
}

impl<T> Future for Changed<'_, T> {
    type Output = Result<(), RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let Changed { watcher, cx, at, place, registration } = &mut *self;
        let Watcher { state, seen } = &mut **watcher;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            leave_line(state, |state| &mut state.changed, place);
            return Poll::Ready(Err(RecvError::Cancelled(cancelled)));
        }
        let found = poll_line(
            state,
            |state| &mut state.changed,
            place,
            context.waker(),
            |state| {
                if state.version != *seen {
                    *seen = state.version;
                    return Some(Ok(()));
                }
                (state.setters == 0).then_some(Err(RecvError::Disconnected))
            },
        );
        if found.is_pending() {
            cx.waits(Wait::Signal, at, context.waker(), registration);
        }
        found
    }
}

impl<T> Drop for Changed<'_, T> {
    fn drop(&mut self) {
        leave_line(&self.watcher.state, |state| &mut state.changed, &mut self.place);
    }
}

impl<T> CancelSafe for Changed<'_, T> {}

/// The future of [`Setter::closed`]; gives `Result<(), Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Closed<'a, T> {
    setter: &'a Setter<T>,
    cx: &'a Cx,
    at: &'static Location<'static>,
    place: Place,
    registration: Registration,
}

impl<'a, T> Closed<'a, T> {
    pub(super) fn new(setter: &'a Setter<T>, cx: &'a Cx, at: &'static Location<'static>) -> Self {
        Closed { setter, cx, at, place: None, registration: Registration::NONE }
    }
}

impl<T> Future for Closed<'_, T> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let Closed { setter, cx, at, place, registration } = &mut *self;
        if let Err(cancelled) = ready!(cx.poll_proceed(context, registration)) {
            leave_line(&setter.state, |state| &mut state.closed, place);
            return Poll::Ready(Err(cancelled));
        }
        let state = &setter.state;
        let waker = context.waker();
        let found = poll_line(
            state,
            |state| &mut state.closed,
            place,
            waker,
            |state| (state.watchers == 0).then_some(Ok(())),
        );
        if found.is_pending() {
            cx.waits(Wait::Signal, at, context.waker(), registration);
        }
        found
    }
}

impl<T> Drop for Closed<'_, T> {
    fn drop(&mut self) {
        leave_line(&self.setter.state, |state| &mut state.closed, &mut self.place);
    }
}

impl<T> CancelSafe for Closed<'_, T> {}
