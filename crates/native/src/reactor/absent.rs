//! The reactor of platforms without sockets: none is registered, and no worker sleeps in it.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::task::Waker;
use std::time::Duration;

use crate::parker::Interrupt;

#[path = "presence.rs"]
pub(crate) mod presence;

use presence::Presence;

#[derive(Debug, Default)]
pub(crate) struct Reactor {
    pub(crate) presence: Presence,
}

impl Interrupt for Reactor {
    fn interrupt(&self) {}
}

impl Reactor {
    #[inline]
    pub(crate) fn has_sources(&self) -> bool {
        false
    }

    pub(crate) fn enter(&self) -> Option<Driving<'_>> {
        None
    }

    pub(crate) fn new(_has_threads: bool) -> Reactor {
        Reactor::default()
    }

    pub(crate) fn start_running(&self) {}

    pub(crate) fn stop_running(&self) -> Vec<Waker> {
        Vec::new()
    }

    pub(crate) fn close(&self) -> Vec<Waker> {
        Vec::new()
    }
}

/// No thread is ever in the reactor.
pub(crate) struct Driving<'a>(Infallible, PhantomData<&'a Reactor>);

impl Driving<'_> {
    pub(crate) fn wait(&mut self, _timeout: Option<Duration>) {
        match self.0 {}
    }

    pub(crate) fn leave(self, _woken: &mut Vec<Waker>) {
        match self.0 {}
    }

    pub(crate) fn has_events(&self) -> bool {
        match self.0 {}
    }
}
