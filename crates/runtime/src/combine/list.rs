//! Any number of parts of different types, without allocation: what `join!` and its kin make.
//!
//! The macros nest their parts ([`Cons`] in [`Cons`], then a [`Nil`]), so that one implementation
//! does for every number. What each macro answers is in `macros`.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use asx_kernel::cancel::Kind;
use pin_project_lite::pin_project;

use super::{Decision, Part, Rule};
use asx_task::Cancelled;
use asx_task::Cx;

pin_project! {
    /// A part and those after it.
    pub struct Cons<F: Future, L> {
        #[pin]
        pub(super) part: Part<F>,
        #[pin]
        pub(super) later: L,
    }
}

/// The end of a list.
#[derive(Debug)]
pub struct Nil;

/// The future of a part, made with the context.
pub fn made<'a, M, F>(cx: &'a Cx, make: M) -> F
where
    M: FnOnce(&'a Cx) -> F,
    F: Future,
{
    make(cx)
}

/// A list with one more part.
#[cfg_attr(feature = "lab", track_caller)]
pub fn cons<F: Future, L>(future: F, later: L) -> Cons<F, L> {
    Cons { part: Part::new(future), later }
}

/// Parts of which the ends are judged by a rule.
pub trait List<R> {
    /// Why they are asked to stop.
    const KIND: Kind;

    /// Polls each that is live, in order, up to one that decides: whether one does. The first has
    /// this index.
    fn poll_round(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        decision: &mut Decision<'_>,
        index: usize,
    ) -> bool;

    /// Asks all to stop; those that have not begun never do.
    fn call_off(
        self: Pin<&mut Self>,
        cancelled: &Cancelled,
        decision: &mut Decision<'_>,
        index: usize,
    );

    /// Whether one is live.
    fn is_live(&self) -> bool;
}

impl<R: Rule<F::Output>, F: Future, L: List<R>> List<R> for Cons<F, L> {
    const KIND: Kind = R::KIND;

    fn poll_round(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        decision: &mut Decision<'_>,
        index: usize,
    ) -> bool {
        let this = self.project();
        if let Poll::Ready(end) = this.part.poll(cx)
            && decision.hear::<_, R>(index, end)
        {
            return true;
        }
        this.later.poll_round(cx, decision, index + 1)
    }

    fn call_off(
        self: Pin<&mut Self>,
        cancelled: &Cancelled,
        decision: &mut Decision<'_>,
        index: usize,
    ) {
        let this = self.project();
        if let Err(panic) = this.part.call_off(cancelled) {
            decision.hear::<F::Output, R>(index, Err(panic));
        }
        this.later.call_off(cancelled, decision, index + 1);
    }

    fn is_live(&self) -> bool {
        self.part.is_live() || self.later.is_live()
    }
}

impl<R> List<R> for Nil {
    const KIND: Kind = Kind::FailFast;

    fn poll_round(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut Decision<'_>,
        _: usize,
    ) -> bool {
        false
    }

    fn call_off(self: Pin<&mut Self>, _: &Cancelled, _: &mut Decision<'_>, _: usize) {}

    fn is_live(&self) -> bool {
        false
    }
}

pin_project! {
    /// Polls a list until all parts have ended, and makes the output of it and of the part that
    /// decided.
    pub(super) struct Several<'a, R, L, M> {
        decision: Decision<'a>,
        rule: PhantomData<fn() -> R>,
        #[pin]
        list: L,
        output: Option<M>,
    }
}

impl<'a, R, L, M, T> Several<'a, R, L, M>
where
    L: List<R>,
    M: FnOnce(Pin<&mut L>, Option<usize>) -> Option<T>,
{
    pub(super) fn new(cx: &'a Cx, list: L, output: M) -> Self {
        Several { decision: Decision::new(cx), rule: PhantomData, list, output: Some(output) }
    }
}

impl<R, L, M, T> Future for Several<'_, R, L, M>
where
    L: List<R>,
    M: FnOnce(Pin<&mut L>, Option<usize>) -> Option<T>,
{
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut this = self.project();
        if !this.decision.begins(cx) {
            return Poll::Pending;
        }
        // The part that decides ends a round, so that the others are told.
        while this.list.as_mut().poll_round(cx, this.decision, 0) {
            let cancelled = this.decision.cancel(L::KIND);
            this.list.as_mut().call_off(&cancelled, this.decision, 0);
        }
        if this.list.is_live() {
            return Poll::Pending;
        }
        let first = this.decision.settle();
        match this.output.take().and_then(|output| output(this.list, first)) {
            Some(output) => Poll::Ready(output),
            None => panic!("polled after it was done"),
        }
    }
}
