//! A changing number of borrowing children in one task.
//!
//! The future of [`group`] polls the body and the children, each when it was woken. The body only
//! leaves requests in [`Shared`] and takes results from there: so children go on whatever the body
//! waits for, and a timeout in the body does not reach them.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use asx_kernel::cancel::Kind;
use pin_project_lite::pin_project;

use super::children::{Children, Ready, Slot};
use super::{Decision, Never, OnErr, Part};
use crate::cx::Wait;
use crate::outcome::Cancelled;
use crate::prim::{Mutex, lock};
use crate::{CancelSafe, Cx};

/// Runs `body`, which may add children to the group, until it and they have ended.
///
/// Children run in this task, at the same time as the body, and may borrow what is around the
/// group. They are of one type, that of the future made by the closure given to [`Group::add`]: call
/// one `async fn` for all, or have them boxed, with `async |g: Group<'_, BoxFuture<'_, T>>|` and
/// `g.add(|cx| Box::pin(..))`.
///
/// Their outputs come from [`Group::next`] in the order they end; what is not taken is dropped. An
/// error of the body asks all children to stop (`FailFast`), and so does a panic, which goes on here
/// when all have ended.
///
/// ```
/// # use asx_runtime::{Cancelled, Cx, group};
/// # async fn fetch(cx: &Cx, url: &str) -> Result<usize, Cancelled> { Ok(url.len()) }
/// /// At most ten at a time.
/// async fn fetch_all(cx: &Cx, urls: &[String]) -> Result<usize, Cancelled> {
///     group(cx, async |g| {
///         let mut total = 0;
///         for url in urls {
///             if g.len() == 10 && let Some(size) = g.next(cx).await? {
///                 total += size?;
///             }
///             g.add(async move |cx| fetch(cx, url).await);
///         }
///         while let Some(size) = g.next(cx).await? {
///             total += size?;
///         }
///         Ok(total)
///     })
///     .await
/// }
/// ```
pub fn group<'a, F, B, C, T, E>(cx: &'a Cx, body: F) -> impl Future<Output = Result<T, E>>
where
    F: FnOnce(Group<'a, C>) -> B,
    B: Future<Output = Result<T, E>>,
    C: Future,
{
    let children = Children::new();
    let slot = Slot::new(BODY, children.ready());
    let waker = Waker::from(slot.clone());
    let shared = Arc::new(Shared::new(children.ready().clone()));
    let body = Part::new(body(Group { cx, shared: shared.clone() }));
    Drive { decision: Decision::new(cx), body, slot, waker, children, shared }
}

/// A future of any type that may move to other threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The body's number in the queue of the woken; children count from 1.
const BODY: u64 = 0;

/// The group a body may add to; see [`group`].
pub struct Group<'a, C: Future> {
    cx: &'a Cx,
    shared: Arc<Shared<C>>,
}

/// Names a child of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Child(u64);

impl<'a, C: Future> Group<'a, C> {
    /// Adds a child. In a group whose body has ended it is dropped.
    pub fn add(&self, child: impl FnOnce(&'a Cx) -> C) -> Child {
        self.shared.add(child(self.cx))
    }

    /// The next output, in the order the children end; `None` when all have been given out.
    ///
    /// Cancel-checked, and cancel-safe.
    #[track_caller]
    pub fn next<'g>(&'g self, cx: &'g Cx) -> NextChild<'g, C> {
        NextChild { cx, shared: &self.shared, at: Location::caller() }
    }

    /// Children whose outputs have not been given out.
    pub fn len(&self) -> usize {
        let inner = lock(&self.shared.inner);
        inner.live + inner.outputs.len()
    }

    /// Whether [`next`](Group::next) has nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks a child to stop (`User`). Its output comes as that of any other.
    pub fn cancel(&self, child: Child) {
        self.shared.request(|inner| inner.cancels.push(child.0));
    }

    /// Asks all children there are now to stop (`User`).
    pub fn cancel_all(&self) {
        self.shared.request(|inner| inner.cancel_before = inner.next);
    }
}

impl<C: Future> fmt::Debug for Group<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("len", &self.len()).finish()
    }
}

/// What the body and the driver tell each other.
struct Shared<C: Future> {
    ready: Arc<Ready>,
    inner: Mutex<Inner<C>>,
}

struct Inner<C: Future> {
    next: u64,
    added: Vec<(u64, C)>,
    cancels: Vec<u64>,
    /// All children before this one are to stop.
    cancel_before: u64,
    /// Children added and not ended.
    live: usize,
    outputs: VecDeque<C::Output>,
    waiters: Vec<Waker>,
    /// The body has ended.
    closed: bool,
}

impl<C: Future> Shared<C> {
    fn new(ready: Arc<Ready>) -> Self {
        let inner = Inner {
            next: BODY + 1,
            added: Vec::new(),
            cancels: Vec::new(),
            cancel_before: 0,
            live: 0,
            outputs: VecDeque::new(),
            waiters: Vec::new(),
            closed: false,
        };
        Shared { ready, inner: Mutex::new(inner) }
    }

    fn add(&self, child: C) -> Child {
        let mut inner = lock(&self.inner);
        let id = inner.next;
        inner.next += 1;
        if inner.closed {
            drop(inner);
            drop(child);
        } else {
            inner.added.push((id, child));
            inner.live += 1;
            drop(inner);
            self.ready.wake_parent();
        }
        Child(id)
    }

    fn request(&self, write: impl FnOnce(&mut Inner<C>)) {
        write(&mut lock(&self.inner));
        self.ready.wake_parent();
    }

    /// A child has ended; one that panicked has no output.
    fn ended(&self, output: Option<C::Output>) {
        let waiters = {
            let mut inner = lock(&self.inner);
            inner.live -= 1;
            inner.outputs.extend(output);
            std::mem::take(&mut inner.waiters)
        };
        waiters.into_iter().for_each(Waker::wake);
    }
}

/// The future of [`Group::next`].
#[must_use = "futures do nothing unless awaited"]
pub struct NextChild<'g, C: Future> {
    cx: &'g Cx,
    shared: &'g Shared<C>,
    at: &'static Location<'static>,
}

impl<C: Future> Future for NextChild<'_, C> {
    type Output = Result<Option<C::Output>, Cancelled>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.cx.checkpoint()?;
        let mut inner = lock(&self.shared.inner);
        if let Some(output) = inner.outputs.pop_front() {
            return Poll::Ready(Ok(Some(output)));
        }
        if inner.live == 0 {
            return Poll::Ready(Ok(None));
        }
        if !inner.waiters.iter().any(|waiter| waiter.will_wake(cx.waker())) {
            inner.waiters.push(cx.waker().clone());
        }
        drop(inner);
        self.cx.waits(Wait::Join, self.at);
        Poll::Pending
    }
}

impl<C: Future> CancelSafe for NextChild<'_, C> {}

impl<C: Future> fmt::Debug for NextChild<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextChild").finish_non_exhaustive()
    }
}

pin_project! {
    /// Polls the body and the children.
    #[project = DriveProj]
    struct Drive<'a, C: Future, B: Future> {
        decision: Decision<'a>,
        #[pin]
        body: Part<B>,
        slot: Arc<Slot>,
        waker: Waker,
        children: Children<C>,
        shared: Arc<Shared<C>>,
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
        if this.children.watch(this.decision.cx, cx.waker()) {
            this.slot.mark();
        }
        while this.round() {
            let cancelled = this.decision.cancel(Kind::FailFast);
            this.body.cancel(&cancelled);
            this.slot.mark();
            this.children.cancel_before(u64::MAX, &cancelled);
        }
        if this.body.is_live() || !this.children.is_empty() || this.has_requests() {
            return Poll::Pending;
        }
        // Nobody takes these any more; all children have ended.
        let outputs = std::mem::take(&mut lock(&this.shared.inner).outputs);
        drop(outputs);
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
        let (shared, decision) = (&*self.shared, &mut *self.decision);
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
            lock(&self.shared.inner).closed = true;
            self.decision.hear::<_, OnErr>(0, end);
        }
    }

    fn take_requests(&mut self) {
        let (added, cancels, before) = {
            let mut inner = lock(&self.shared.inner);
            let before = std::mem::take(&mut inner.cancel_before);
            (std::mem::take(&mut inner.added), std::mem::take(&mut inner.cancels), before)
        };
        let late = !added.is_empty() && !self.decision.is_open();
        for (id, child) in added {
            self.children.insert(id, child);
        }
        if !cancels.is_empty() || before > 0 {
            let cancelled = self.decision.cancel(Kind::User);
            self.children.cancel_before(before, &cancelled);
            cancels.into_iter().for_each(|id| self.children.cancel(id, &cancelled));
        }
        if late {
            let cancelled = self.decision.cancel(Kind::FailFast);
            self.children.cancel_before(u64::MAX, &cancelled);
        }
    }

    fn has_requests(&self) -> bool {
        !lock(&self.shared.inner).added.is_empty()
    }
}
