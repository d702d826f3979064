//! Where there are no sockets: nobody registers any, and nobody sleeps in a reactor.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::task::Waker;
use std::time::Duration;

use crate::parker::Interrupt;

#[derive(Debug, Default)]
pub(crate) struct Reactor;

impl Interrupt for Reactor {
    fn interrupt(&self) {}
}

impl Reactor {
    #[inline]
    pub(crate) fn has_sources(&self) -> bool {
        false
    }

    pub(crate) fn watch(&self) -> Watching {
        Watching
    }

    pub(crate) fn is_watched(&self) -> bool {
        false
    }

    pub(crate) fn enter(&self) -> Option<Driving<'_>> {
        None
    }

    pub(crate) fn close(&self) -> Vec<Waker> {
        Vec::new()
    }
}

pub(crate) struct Watching;

/// Nobody is in there.
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
