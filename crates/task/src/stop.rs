//! Stopping gently: told first, then cancelled, then ended by force.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_kernel::cancel::Kind;

use crate::footprint::{self, Object};
use crate::raw::foreign_wakers::Registration;
use crate::region::grace::Grace;
use crate::wait::Wait;
use crate::{CancelSafe, Cancelled, Cx, Scope};

impl Cx {
    /// Waits until the task is told that it is about to be stopped: no cancel yet, but a good time
    /// to finish what is begun and begin nothing new.
    #[track_caller]
    pub fn stopping(&self) -> Stopping<'_> {
        Stopping { cx: self, place: None, registration: Registration::NONE, at: Location::caller() }
    }

    /// Whether the task was told that it is about to be stopped.
    pub fn is_stopping(&self) -> bool {
        let _after = footprint::operation();
        Object::COMMON.read();
        self.region().is_stopping()
    }
}

impl<E: Send + 'static> Scope<E> {
    /// Tells everything in the scope that it is about to be stopped; see [`Cx::stopping`].
    pub fn stop(&self) {
        let _after = footprint::operation();
        Object::COMMON.write();
        self.region().stop();
    }

    /// Stops the scope gently: told now, cancelled after `grace.soft`, and what still lives after
    /// `grace.hard` more is ended by force.
    pub fn stop_within(&self, grace: impl Into<Grace>) {
        let Grace { soft, hard } = grace.into();
        let _after = footprint::operation();
        Object::COMMON.write();
        self.region().stop_within(soft, hard, Kind::User);
    }
}

/// The future of [`Cx::stopping`]; gives `Result<(), Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Stopping<'a> {
    cx: &'a Cx,
    place: Option<u64>,
    registration: Registration,
    at: &'static Location<'static>,
}

impl Future for Stopping<'_> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Stopping { cx: context, place, registration, at } = &mut *self;
        let _after = footprint::after_operation();
        ready!(context.poll_proceed(cx, registration))?;
        Object::COMMON.read();
        context.core().watch_stop(place, cx.waker());
        if context.region().is_stopping() {
            return Poll::Ready(Ok(()));
        }
        context.waits(Wait::Signal, at, cx.waker(), registration);
        Poll::Pending
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.cx.core().forget_stop(place);
        }
    }
}

impl CancelSafe for Stopping<'_> {}
