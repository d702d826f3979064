//! Waiting for one's own cancel.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};

use crate::CancelSafe;
use crate::raw::foreign_wakers::Registration;
use crate::raw::outcome::Cancelled;
use crate::raw::poll_context;
use crate::runtime::cx::Cx;
use crate::wait::Wait;

impl Cx {
    /// Waits until the task, or the part of it this is called in, is asked to stop: why.
    #[track_caller]
    pub fn cancelled(&self) -> UntilCancelled<'_> {
        UntilCancelled(Watch::Plain(self, Location::caller()))
    }
}

/// The future of [`Cx::cancelled`]; gives `Cancelled`.
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct UntilCancelled<'a>(Watch<'a>);

const _: () = assert!(size_of::<UntilCancelled<'_>>() == 2 * size_of::<usize>());

/// Many tasks do nothing but wait for this: in two words, if with their own waker.
#[derive(Debug)]
enum Watch<'a> {
    Plain(&'a Cx, &'static Location<'static>),
    Registered(Box<(&'a Cx, &'static Location<'static>, Registration)>),
}

impl Future for UntilCancelled<'_> {
    type Output = Cancelled;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Cancelled> {
        let (cx, at) = match &self.0 {
            Watch::Plain(cx, at) => (*cx, *at),
            Watch::Registered(watch) => (watch.0, watch.1),
        };
        let mut first = Registration::NONE;
        let registration = match &mut self.0 {
            Watch::Plain(..) => &mut first,
            Watch::Registered(watch) => &mut watch.2,
        };
        let proceeds = cx.poll_proceed(context, registration);
        match proceeds {
            Poll::Ready(Err(cancelled)) => return Poll::Ready(cancelled),
            // A request wakes the task.
            Poll::Ready(Ok(())) => cx.waits(Wait::Cancel, at, context.waker(), registration),
            Poll::Pending => {}
        }
        if first.take_none() {
            poll_context::note_wait(ptr::from_ref(&*self).addr());
        } else {
            self.0 = Watch::Registered(Box::new((cx, at, first)));
        }
        Poll::Pending
    }
}

impl Drop for UntilCancelled<'_> {
    fn drop(&mut self) {
        poll_context::end_wait(ptr::from_ref(self).addr());
    }
}

impl CancelSafe for UntilCancelled<'_> {}
