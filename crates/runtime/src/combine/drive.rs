//! The future of a group.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use asx_kernel::cancel::Kind;
use pin_project_lite::pin_project;

use super::children::{Children, Slot};
use super::group::{BODY, Requests, Shared};
use super::{Decision, Never, OnErr, Part};
use asx_task::Cx;

pin_project! {
    /// Polls the body and the children.
    #[project = DriveProj]
    pub(super) struct Drive<'a, C: Future, B: Future> {
        decision: Decision<'a>,
        #[pin]
        body: Part<B>,
        slot: Arc<Slot>,
        waker: Waker,
        children: Children<C>,
        shared: Arc<Shared<C>>,
    }
}

impl<'a, C: Future, B: Future> Drive<'a, C, B> {
    pub(super) fn new(
        cx: &'a Cx,
        body: B,
        children: Children<C>,
        shared: Arc<Shared<C>>,
    ) -> Drive<'a, C, B> {
        let slot = Slot::new(BODY, children.ready());
        let waker = slot.waker();
        let body = Part::new(body);
        Drive { decision: Decision::new(cx), body, slot, waker, children, shared }
    }
}

impl<C, B, T, E> Future for Drive<'_, C, B>
where
    C: Future,
    B: Future<Output = Result<T, E>>,
{
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if !this.decision.begins(cx) {
            return Poll::Pending;
        }
        if this.children.watch(this.decision.cx, cx.waker()) {
            this.slot.mark();
        }
        while this.round() {
            let cancelled = this.decision.cancel(Kind::FailFast);
            this.body.cancel(&cancelled);
            this.slot.mark();
            this.children.cancel_before(u64::MAX, &cancelled);
        }
        if this.body.is_live() || !this.shared.is_quiet() {
            return Poll::Pending;
        }
        drop(this.shared.left_over());
        this.decision.settle();
        match this.body.take() {
            Some(result) => Poll::Ready(result),
            None => panic!("polled after it was done"),
        }
    }
}

impl<C, B, T, E> DriveProj<'_, '_, C, B>
where
    C: Future,
    B: Future<Output = Result<T, E>>,
{
    /// Polls what was woken, first the children: whether all is to stop.
    fn round(&mut self) -> bool {
        self.take_requests();
        let open = self.decision.is_open();
        let shared = &*self.shared;
        let decision = &mut *self.decision;
        self.children.poll_round(|_, end| {
            let end = end.map_err(|panic| decision.hear::<C::Output, Never>(1, Err(panic)));
            shared.ended(end.ok());
            false
        });
        if self.slot.clear() {
            self.poll_body();
        }
        open && !self.decision.is_open()
    }

    fn poll_body(&mut self) {
        let end = self.body.as_mut().poll(&mut Context::from_waker(self.waker));
        if let Poll::Ready(end) = end {
            self.shared.close();
            self.decision.hear::<_, OnErr>(0, end);
        }
    }

    fn take_requests(&mut self) {
        let Requests { added, cancels, cancel_before } = self.shared.take_requests();
        let late = !added.is_empty() && !self.decision.is_open();
        for (id, child) in added {
            self.children.insert(id, child);
        }
        if !cancels.is_empty() || cancel_before > 0 {
            let cancelled = self.decision.cancel(Kind::User);
            self.children.cancel_before(cancel_before, &cancelled);
            cancels.into_iter().for_each(|id| self.children.cancel(id, &cancelled));
        }
        if late {
            let cancelled = self.decision.cancel(Kind::FailFast);
            self.children.cancel_before(u64::MAX, &cancelled);
        }
    }
}
