//! A changing number of borrowing children in one task.
//!
//! The future of [`group`], a [`Drive`], polls the body and the children, each when it was woken.
//! The body only leaves requests in [`Shared`] and takes outputs from there: so children go on
//! whatever the body waits for, and a timeout in the body does not reach them.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use super::children::{Children, Ready};
use super::drive::Drive;
use crate::prim::lock;
use asx_task::Cancelled;
use asx_task::footprint;
use asx_task::operation::Registration;
use asx_task::operation::Wait;
use asx_task::operation::guard;
use asx_task::{CancelSafe, Cx};
use std::sync::Mutex;

/// Runs `body`, which may add children to the group, until it and they have ended.
///
/// Children run in this task, at the same time as the body, and may borrow what is around the
/// group. They are of one type, that of the future made by the closure given to [`Group::add`]:
/// call one `async fn` for all. Two closures make two types, however alike they look: where the
/// children differ, add all of them with [`Group::add_boxed`].
///
/// Their outputs come from [`Group::next`] in the order they end; what is not taken is dropped. An
/// error of the body asks all children to stop (`FailFast`), and so does a panic, which goes on
/// here when all have ended. If this future itself is dropped half-way, so are the body and the
/// children.
///
/// ```
/// # use asx::{Cancelled, Cx, group};
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
    let shared = Arc::new(Shared::new(children.ready().clone()));
    let body = body(Group { cx, shared: shared.clone() });
    Drive::new(cx, body, children, shared)
}

/// A future of any type that may move to other threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The body's number in the queue of the woken; children count from the next.
pub(super) const BODY: u64 = 0;

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
    ///
    /// All children of a group are of the type of the first one. A second closure is another type:
    /// the compiler then says that it `expected` the body of the first one and `found a different`
    /// one. Use [`add_boxed`](Group::add_boxed) for all of them.
    pub fn add(&self, child: impl FnOnce(&'a Cx) -> C) -> Child {
        self.shared.add(child(self.cx))
    }

    /// The next output, in the order the children end; `None` when all have been given out.
    ///
    /// Cancel-checked, and cancel-safe.
    #[track_caller]
    pub fn next<'g>(&'g self, cx: &'g Cx) -> NextChild<'g, C> {
        NextChild {
            cx,
            shared: &self.shared,
            registration: Registration::NONE,
            at: Location::caller(),
        }
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
        self.shared.request(|inner| inner.requests.cancels.push(child.0));
    }

    /// Asks all children there are now to stop (`User`).
    pub fn cancel_all(&self) {
        self.shared.request(|inner| inner.requests.cancel_before = inner.next);
    }
}

impl<'a, T> Group<'a, BoxFuture<'a, T>> {
    /// [`add`](Group::add) of children that differ: each has a box of its own. They have one output
    /// and are `Send`; what is not goes into boxes of your own, with `g.add(|cx| Box::pin(..) as
    /// Pin<Box<dyn Future<Output = T> + '_>>)`.
    ///
    /// ```
    /// use asx::prelude::*;
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) -> Result<(), Cancelled> {
    ///     group(cx, async |g| {
    ///         g.add_boxed(async |cx| cx.sleep(2.millis()).await.map(|()| "slow"));
    ///         g.add_boxed(async |_cx| Ok("fast"));
    ///         while let Some(word) = g.next(cx).await? {
    ///             println!("{}", word?);
    ///         }
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub fn add_boxed<F, B>(&self, child: F) -> Child
    where
        F: FnOnce(&'a Cx) -> B,
        B: Future<Output = T> + Send + 'a,
    {
        self.add(|cx| Box::pin(child(cx)))
    }
}

impl<C: Future> fmt::Debug for Group<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("len", &self.len()).finish()
    }
}

/// What the body and the driver tell each other.
pub(super) struct Shared<C: Future> {
    ready: Arc<Ready>,
    inner: Mutex<Inner<C>>,
}

struct Inner<C: Future> {
    next: u64,
    requests: Requests<C>,
    /// Children added and not ended.
    live: usize,
    outputs: VecDeque<C::Output>,
    waiters: Vec<Waker>,
    /// The body has ended.
    closed: bool,
}

/// What the driver is to do.
pub(super) struct Requests<C> {
    pub(super) added: Vec<(u64, C)>,
    pub(super) cancels: Vec<u64>,
    /// All children before this one are to stop.
    pub(super) cancel_before: u64,
}

impl<C> Default for Requests<C> {
    fn default() -> Self {
        Requests { added: Vec::new(), cancels: Vec::new(), cancel_before: 0 }
    }
}

impl<C: Future> Shared<C> {
    fn new(ready: Arc<Ready>) -> Self {
        let inner = Inner {
            next: BODY + 1,
            requests: Requests::default(),
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
            inner.requests.added.push((id, child));
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

    pub(super) fn take_requests(&self) -> Requests<C> {
        std::mem::take(&mut lock(&self.inner).requests)
    }

    /// A child has ended; one that panicked has no output.
    pub(super) fn ended(&self, output: Option<C::Output>) {
        let waiters = {
            let mut inner = lock(&self.inner);
            inner.live -= 1;
            inner.outputs.extend(output);
            std::mem::take(&mut inner.waiters)
        };
        guard::wake_all(waiters);
    }

    /// The body has ended.
    pub(super) fn close(&self) {
        lock(&self.inner).closed = true;
    }

    /// Whether all children have ended, those that were only just added too.
    pub(super) fn is_quiet(&self) -> bool {
        lock(&self.inner).live == 0
    }

    /// The outputs nobody takes any more.
    pub(super) fn left_over(&self) -> VecDeque<C::Output> {
        std::mem::take(&mut lock(&self.inner).outputs)
    }
}

/// The future of [`Group::next`]; gives `Result<Option<C::Output>, Cancelled>`.
#[must_use = "futures do nothing unless awaited"]
pub struct NextChild<'g, C: Future> {
    cx: &'g Cx,
    shared: &'g Shared<C>,
    registration: Registration,
    at: &'static Location<'static>,
}

impl<C: Future> Future for NextChild<'_, C> {
    type Output = Result<Option<C::Output>, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextChild { cx: context, shared, registration, at } = &mut *self;
        let _after = footprint::after_operation();
        ready!(context.poll_proceed(cx, registration))?;
        // Cloned before the lock and, if it is not needed, dropped after it.
        let mut waker = Some(cx.waker().clone());
        let next = {
            let mut inner = lock(&shared.inner);
            let output = inner.outputs.pop_front();
            let next = (output.is_some() || inner.live == 0).then_some(output);
            if next.is_none() && !inner.waiters.iter().any(|known| known.will_wake(cx.waker())) {
                inner.waiters.extend(waker.take());
            }
            next
        };
        guard::drop_waker(waker);
        if let Some(output) = next {
            return Poll::Ready(Ok(output));
        }
        context.waits(Wait::Join, at, cx.waker(), registration);
        Poll::Pending
    }
}

impl<C: Future> CancelSafe for NextChild<'_, C> {}

impl<C: Future> fmt::Debug for NextChild<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextChild").finish_non_exhaustive()
    }
}
