//! Waiting until nobody listens.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_task::footprint;
use asx_task::operation::Wait;
use asx_task::{CancelSafe, Cancelled, Cx};

use super::ring::Ring;
use crate::channel::line::LineWait;
use crate::prim::Shared;

/// The future of [`Publisher::closed`](super::Publisher::closed).
#[must_use = "futures do nothing unless awaited"]
pub struct UntilUnheard<'a, T> {
    ring: &'a Shared<Ring<T>>,
    cx: &'a Cx,
    wait: LineWait,
}

impl<'a, T> UntilUnheard<'a, T> {
    pub(super) fn new(
        ring: &'a Shared<Ring<T>>,
        cx: &'a Cx,
        at: &'static Location<'static>,
    ) -> Self {
        UntilUnheard { ring, cx, wait: LineWait::new(at) }
    }
}

impl<T> Future for UntilUnheard<'_, T> {
    type Output = Result<(), Cancelled>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let UntilUnheard { ring, cx, wait } = &mut *self;
        wait.poll(cx, Wait::Signal, ring, Ring::closed, context, |ring| {
            (ring.subscribers == 0).then_some(())
        })
    }
}

impl<T> Drop for UntilUnheard<'_, T> {
    fn drop(&mut self) {
        self.wait.leave(self.ring, Ring::closed);
    }
}

impl<T> CancelSafe for UntilUnheard<'_, T> {}
