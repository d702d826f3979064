//! Scopes: the owner of tasks, as code.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::lanes::Priority;
use asx_kernel::outcome::Severity;
use asx_kernel::region::Operation;
use asx_kernel::status::Status;
use asx_kernel::time::Time;

use pin_project_lite::pin_project;

use crate::error::{AdmissionError, FinalizerError, SpawnError};
use crate::footprint;
use crate::handle::Task;
use crate::proceed;
use crate::raw::foreign_wakers::{self, Registration};
use crate::raw::outcome::{Cancelled, Outcome, Panic, TaskError};
use crate::raw::{Runnable, TaskAttrs, TaskRef, claim_error};
use crate::region::{Finalizer, Label, Policy, Region};
use crate::runtime::cancel_view::Check;
use crate::runtime::cx::Cx;
use crate::runtime::node::{self, Inside};
use crate::spawn::{Plan, make, spawn};
use crate::wait::Wait;
use crate::why::Why;

impl Cx {
    /// Opens a scope and runs `body` in it. It returns when everything started in the scope has
    /// ended: children, finalizers, inner scopes.
    ///
    /// The body may borrow. The first error of a child cancels the rest and is the result; a panic
    /// of a child or a finalizer goes on here. An error of the body cancels the children too.
    ///
    /// There is one error, and one exception: if the body awaits the handle of the child that
    /// failed, and gets there before the scope has ended, it has the error, and the scope then goes
    /// by what its body makes of it. So a body that takes the error and returns `Ok` has a scope
    /// that returns `Ok`. The rest is cancelled all the same, since the child had failed before
    /// anybody looked. To look at failures one by one, use [`Policy::CollectAll`].
    ///
    /// ```
    /// # use asx::prelude::*;
    /// # #[asx::main]
    /// # async fn main(cx: &Cx) {
    /// let result: Result<&str, Cancelled> = cx
    ///     .scope(async |s| {
    ///         let failing = s.spawn(async |cx: Cx| {
    ///             cx.timeout(0.secs(), async |cx| cx.sleep(60.minutes()).await).await
    ///         });
    ///         match failing.await {
    ///             Err(TaskError::Err(_)) => Ok("the body has seen to it"),
    ///             _ => Ok("no error"),
    ///         }
    ///     })
    ///     .await;
    /// assert_eq!(result.unwrap(), "the body has seen to it");
    /// # }
    /// ```
    ///
    /// A body that is `async move` and uses the context takes a reference to it, so that the
    /// context is not moved while the scope borrows it: `let cx = &cx;` before.
    ///
    /// ```
    /// # use asx::prelude::*;
    /// # #[asx::main]
    /// # async fn main(cx: &Cx) -> Result<(), Cancelled> {
    /// # let names = vec![String::from("ann")];
    /// # cx.scope(async |s| {
    /// s.spawn(async move |cx: Cx| {
    ///     let cx = &cx; // without this: error[E0505], cannot move out of `cx`
    ///     cx.scope(async move |s| {
    ///         for name in names {
    ///             s.spawn(async move |_cx: Cx| Ok(name.len()));
    ///         }
    ///         cx.sleep(1.millis()).await
    ///     })
    ///     .await
    /// });
    /// # Ok(())
    /// # })
    /// # .await
    /// # }
    /// ```
    #[track_caller]
    pub fn scope<'a, F, B, T, E>(
        &'a self,
        body: F,
    ) -> impl Future<Output = Result<T, E>> + use<'a, F, B, T, E>
    where
        F: FnOnce(Scope<E>) -> B,
        B: Future<Output = Result<T, E>>,
        E: From<Cancelled> + Send + 'static,
    {
        Plain { outcome: self.try_scope(body) }
    }

    /// As [`scope`](Cx::scope), with cancels and panics as values.
    #[track_caller]
    pub fn try_scope<'a, F, B, T, E>(
        &'a self,
        body: F,
    ) -> impl Future<Output = Outcome<T, E>> + use<'a, F, B, T, E>
    where
        F: FnOnce(Scope<E>) -> B,
        B: Future<Output = Result<T, E>>,
        E: Send + 'static,
    {
        self.scope_with(Policy::FailFast).run(body)
    }

    /// Opens a region inside the innermost scope around the caller, with what it inherits.
    pub(crate) fn open_region(
        &self,
        policy: Policy,
        budget: Budget,
        label: Label,
    ) -> Result<Arc<Region>, Status> {
        let budget = self.inherited().meet(budget);
        let locals = self.locals();
        self.with_region(|region| region.open_labelled(policy, budget, locals, label))
    }

    /// A scope with settings.
    #[track_caller]
    pub fn scope_with(&self, policy: Policy) -> ScopeBuilder<'_> {
        let budget = Budget::INFINITE;
        let at = Location::caller();
        ScopeBuilder {
            cx: self,
            policy,
            budget,
            cleanup_polls: None,
            cleanup_time: None,
            max_children: u32::MAX,
            name: None,
            at,
        }
    }
}

/// A scope about to be opened.
#[derive(Debug)]
#[must_use = "run it"]
pub struct ScopeBuilder<'a> {
    cx: &'a Cx,
    policy: Policy,
    budget: Budget,
    cleanup_polls: Option<u32>,
    cleanup_time: Option<Option<Duration>>,
    /// `u32::MAX`: any number.
    max_children: u32,
    name: Option<Arc<str>>,
    at: &'static Location<'static>,
}

impl<'a> ScopeBuilder<'a> {
    /// What dumps call the scope, besides where it was opened.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// What everything in the scope is bounded by, besides what is around it.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = self.budget.meet(budget);
        self
    }

    /// How many polls a task in the scope may take for its cleanup once it has seen that it is
    /// cancelled, and a finalizer in all, whatever the kind of the cancel; `u32::MAX` for any
    /// number. As around the scope unless set. 0 counts as 1.
    ///
    /// A time that was stated with the cancel ([`Scope::stop_within`], a shutdown,
    /// [`Why::cleanup_time`]) takes the place of any number of polls.
    pub fn cleanup_polls(mut self, polls: u32) -> Self {
        self.cleanup_polls = Some(polls.max(1));
        self
    }

    /// How long cleanup may take in the scope: of a task once it has seen that it is cancelled, of
    /// each finalizer, and of a [shield](Cx::shield) that hides a cancel. `None`: for ever. As
    /// around the scope unless set.
    ///
    /// Then it is reported as an overrun ([`Health::overruns`](crate::Health::overruns)). A shield
    /// is open; a task or finalizer is ended by force, at once if it waits, else when its poll
    /// returns. It has the whole time, and up to an eighth more until that is noticed. A task that
    /// waits for a scope inside it goes on: what is in there is bounded, too.
    ///
    /// A time takes the place of polls, unless [these](ScopeBuilder::cleanup_polls) are set as
    /// well.
    pub fn cleanup_time(mut self, time: Option<Duration>) -> Self {
        self.cleanup_time = Some(time);
        self
    }

    /// Limits the number of tasks and scopes that are live in the scope at a time; no limit unless
    /// set. Tasks of inner scopes count in their own scope only; finalizers do
    /// not count.
    ///
    /// At the limit, [`try_spawn`](TaskBuilder::try_spawn) returns
    /// [`AdmissionError::LimitReached`], and [`Scope::spawn`] returns the handle of a task that was
    /// cancelled (`ResourceUnavailable`). Nothing else has changed. A task counts until it has left
    /// the scope, which on several workers may be a moment after its handle has the outcome.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use asx::{AdmissionError, Policy, SpawnError};
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) -> Result<(), TaskError<Cancelled>> {
    ///     cx.scope_with(Policy::FailFast)
    ///         .max_children(1)
    ///         .run(async |s: Scope<Cancelled>| {
    ///             let first = s.spawn(async |cx: Cx| cx.sleep(60.minutes()).await);
    ///             let second = s.task("second").try_spawn(async |_cx: Cx| Ok(2));
    ///             let refused = SpawnError::Refused(AdmissionError::LimitReached);
    ///             assert_eq!(second.err(), Some(refused));
    ///             first.cancel("enough");
    ///             Ok(())
    ///         })
    ///         .await
    /// }
    /// ```
    pub fn max_children(mut self, children: usize) -> Self {
        self.max_children = u32::try_from(children).unwrap_or(u32::MAX);
        self
    }

    /// Opens the scope and runs `body` in it; see [`Cx::scope`].
    pub async fn run<F, B, T, E>(self, body: F) -> Outcome<T, E>
    where
        F: FnOnce(Scope<E>) -> B,
        B: Future<Output = Result<T, E>>,
        E: Send + 'static,
    {
        let cx = self.cx;
        proceed::begin().await;
        cx.check_owner().inspect_err(|_| proceed::ends())?;
        let label = Label { name: self.name, at: Some(self.at) };
        let region = match cx.open_region(self.policy, self.budget, label) {
            Ok(region) => region,
            Err(status) => {
                // The region around is closing: whoever runs in it is being cancelled. Or there is
                // no room for another one.
                proceed::ends();
                let reason = cx
                    .cancel_view()
                    .check(Check::SEEN)
                    .unwrap_or_else(|| cx.region().refusal(status));
                return Err(TaskError::Cancelled(reason));
            }
        };
        if let Some(time) = self.cleanup_time {
            region.set_cleanup_time(time);
        }
        let any = self.cleanup_time.flatten().map(|_| u32::MAX);
        if let Some(polls) = self.cleanup_polls.or(any) {
            region.set_cleanup_polls(polls);
        }
        if self.max_children < u32::MAX {
            region.limit_children(self.max_children);
        }
        let guard = CloseOnDrop(&region);
        let scope = Scope { region: region.clone(), error: PhantomData };
        let body = catch_unwind(AssertUnwindSafe(|| body(scope)));
        let result = match body {
            Ok(body) => Body::new(&region, body).await,
            Err(payload) => Err(TaskError::Panicked(Panic::new(payload))),
        };
        match (&result, cx.cancel_view().check(Check::SEEN)) {
            (Ok(_), _) if !region.has_failed() => region.end(),
            (Err(_), Some(cancelled)) => close_for(cx, &region, &cancelled),
            _ => region.close_failed(),
        }
        let interrupted = Drained::new(cx, &region, self.at).await;
        proceed::ends();
        std::mem::forget(guard);
        let [failed, broken] = region.take_failures();
        if failed.is_none() && broken.is_none() && interrupted.is_none() {
            Region::recycle(region);
            return result;
        }
        // SAFETY: tasks of this scope were made with its error type.
        let claim = |failed: TaskRef| unsafe { claim_error::<E>(&failed) };
        let failures = [failed.and_then(claim), broken.and_then(claim)];
        let result = match (result, interrupted) {
            (Ok(_), Some(cancelled)) => Err(TaskError::Cancelled(cancelled)),
            (result, _) => result,
        };
        Region::recycle(region);
        first_cause(result, failures)
    }
}

pin_project! {
    /// A scope whose cancels and panics go on in who awaits it. Not an async block, which would
    /// have room for the scope twice, and move it.
    struct Plain<F> {
        #[pin]
        outcome: F,
    }
}

impl<F, T, E> Future for Plain<F>
where
    F: Future<Output = Outcome<T, E>>,
    E: From<Cancelled>,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().outcome.poll(cx)) {
            Ok(value) => Ok(value),
            Err(TaskError::Err(error)) => Err(error),
            Err(TaskError::Cancelled(cancelled)) => Err(cancelled.into()),
            Err(TaskError::Panicked(panic)) => panic.resume(),
        })
    }
}

/// What a scope returns: the failure of a task rather than the body's result, and the panic of a
/// finalizer rather than anything but a panic before it.
fn first_cause<T, E>(
    result: Outcome<T, E>,
    [failed, finalizer]: [Option<TaskError<E>>; 2],
) -> Outcome<T, E> {
    match (failed.map_or(result, Err), finalizer) {
        (Err(TaskError::Panicked(panic)), _) => Err(TaskError::Panicked(panic)),
        (_, Some(stop)) => Err(stop),
        (result, None) => result,
    }
}

/// A scope whose future is dropped half-way closes behind it.
struct CloseOnDrop<'a>(&'a Arc<Region>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.forget_failures();
        self.0.close_as(Kind::ParentCancelled);
    }
}

pin_project! {
    /// The body of a scope: polled inside the scope's node, its panics caught.
    struct Body<'a, F> {
        region: &'a Arc<Region>,
        waker: Option<Waker>,
        // Whether it was polled since it was asked to stop.
        told: bool,
        #[pin]
        inside: Inside<F>,
    }
}

impl<'a, F> Body<'a, F> {
    fn new(region: &'a Arc<Region>, body: F) -> Self {
        let inside = Inside::new(node::Kind::Scope(region.clone()), body);
        Body { region, waker: None, told: false, inside }
    }
}

impl<F, T, E> Future for Body<'_, F>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Outcome<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            this.region.watch_body(cx.waker());
            let old = this.waker.replace(cx.waker().clone());
            this.region.core.drop_waker(old);
        }
        if !*this.told && this.region.is_body_cancelled() {
            *this.told = true;
            foreign_wakers::notify_current();
        }
        let inside = this.inside;
        let polled = catch_unwind(AssertUnwindSafe(|| inside.poll(cx)));
        Poll::Ready(match polled {
            Ok(polled) => ready!(polled).map_err(TaskError::Err),
            Err(payload) => Err(TaskError::Panicked(Panic::new(payload))),
        })
    }
}

/// Waits until a region is closed. A cancel of the task that waits cancels the region, once.
struct Drained<'a> {
    cx: &'a Cx,
    region: &'a Arc<Region>,
    at: &'static Location<'static>,
    seen: Option<Cancelled>,
    registration: Registration,
}

impl<'a> Drained<'a> {
    fn new(cx: &'a Cx, region: &'a Arc<Region>, at: &'static Location<'static>) -> Self {
        Drained { cx, region, at, seen: None, registration: Registration::NONE }
    }
}

impl Future for Drained<'_> {
    type Output = Option<Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(worst) = self.region.watch_close(0, cx.waker()) {
            // What bounds the body bounds what is inside, too: that may have ended for it, before
            // anybody here has looked.
            if worst == Severity::Cancelled && self.seen.is_none() {
                self.seen = self.cx.checkpoint().err();
            }
            return Poll::Ready(self.seen.take());
        }
        if self.seen.is_none()
            && let Err(cancelled) = self.cx.checkpoint()
        {
            close_for(self.cx, self.region, &cancelled);
            self.seen = Some(cancelled);
            if self.region.poll_closed(cx.waker()) {
                return Poll::Ready(self.seen.take());
            }
        }
        let Drained { cx: context, at, registration, .. } = &mut *self;
        context.note_wait(Wait::Scope, at, cx.waker(), registration);
        Poll::Pending
    }
}

/// Cancels a region because the task that opened it is cancelled.
fn close_for(cx: &Cx, region: &Arc<Region>, cancelled: &Cancelled) {
    let cause = cancelled.reason().clone();
    let cleanup = cause.kind.cleanup().passed_on();
    let reason = region.reason(Kind::ParentCancelled).caused_by(cause, region.core.chain);
    // The time that was stated with the cancel of the task.
    match cx.task().region().time_for(cx.task().id()) {
        None => region.close(Arc::new(reason), cleanup),
        time => region.close_within(Arc::new(reason), cleanup, None, time),
    }
}

/// The owner of tasks whose errors are `E`.
///
/// A clone is the same scope, and may go anywhere: to other tasks, to threads, into a `static`. It
/// keeps the scope neither open nor alive. So it is what elsewhere takes a type each:
///
/// * **A cancellation token.** Whoever has a clone may [`cancel`](Scope::cancel) or
///   [`stop`](Scope::stop) all that is in the scope, and in scopes within it. A task looks for it
///   with every operation that waits, with [`Cx::checkpoint`], [`Cx::is_cancelled`] or
///   [`Cx::cancelled`].
/// * **A tracker of tasks.** The future of the scope is done when all that was spawned in it has
///   ended. A server that ends in order stops the scope of its connections and waits for that.
/// * **A door for spawning from outside.** What has no context of its own, a callback or a thread,
///   spawns through a clone. The scope owns the task as any other; once it is closing, nothing
///   starts, and [`try_spawn`](TaskBuilder::try_spawn) says so.
///
/// ```
/// use asx::prelude::*;
/// use std::sync::Arc;
/// use std::thread;
///
/// #[asx::main]
/// async fn main(cx: &Cx) -> Result<(), Cancelled> {
///     let shop = Arc::new("what the tasks use");
///     let mut later = None;
///     cx.scope(async |s: Scope<Cancelled>| {
///         let door = s.clone();
///         later = Some(s.clone());
///         let inside = shop.clone();
///         let visitor = thread::spawn(move || {
///             for _ in 0..3 {
///                 let inside = inside.clone();
///                 let task = door.task("visit").try_spawn(async move |cx: Cx| {
///                     let left = cx.sleep(60.minutes()).await;
///                     drop(inside);
///                     left
///                 });
///                 drop(task.expect("the scope is open"));
///             }
///             door.cancel("the shop closes"); // asks all three, and the body
///         });
///         cx.cancelled().await;
///         visitor.join().expect("the visitor has not panicked");
///         Ok(())
///     })
///     .await?; // the three have ended
///     assert_eq!(Arc::strong_count(&shop), 1);
///     let door = later.expect("it was opened");
///     assert!(door.task("late").try_spawn(async |_: Cx| Ok(())).is_err());
///     Ok(())
/// }
/// ```
pub struct Scope<E> {
    region: Arc<Region>,
    error: PhantomData<fn(E)>,
}

impl<E> Clone for Scope<E> {
    fn clone(&self) -> Self {
        Scope { region: self.region.clone(), error: PhantomData }
    }
}

impl<E> fmt::Debug for Scope<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({})", self.region.region_id())
    }
}

impl<E> Scope<E> {
    pub(crate) fn over(region: Arc<Region>, error: PhantomData<fn(E)>) -> Scope<E> {
        Scope { region, error }
    }

    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Closes the admission gate: until [`open_admission`](Scope::open_admission), new tasks, inner
    /// scopes, obligations and channels of the scope are refused with
    /// [`AdmissionError::GateShut`]. [`spawn`](Scope::spawn) returns the handle of a task that was
    /// cancelled (`ResourceUnavailable`).
    ///
    /// Live tasks continue, and finalizers can be [registered](Scope::defer). The gate of a scope
    /// does not affect the scopes inside it.
    ///
    /// ```
    /// use asx::prelude::*;
    /// use asx::{AdmissionError, SpawnError};
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) -> Result<(), Cancelled> {
    ///     cx.scope(async |s: Scope<Cancelled>| {
    ///         s.close_admission();
    ///         let refused = s.task("request").try_spawn(async |_cx: Cx| Ok(()));
    ///         assert_eq!(refused.err(), Some(SpawnError::Refused(AdmissionError::GateShut)));
    ///         s.open_admission();
    ///         assert!(s.task("request").try_spawn(async |_cx: Cx| Ok(())).is_ok());
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    pub fn close_admission(&self) {
        let _after = footprint::operation();
        self.region.set_admission(false);
    }

    /// Opens the admission gate again. A scope that is closing stays closed for new work.
    pub fn open_admission(&self) {
        let _after = footprint::operation();
        self.region.set_admission(true);
    }
}

/// Creates a finalizer of a region with errors of type `E`.
fn finalizer<F, B, E>(
    region: &Arc<Region>,
    at: Option<&'static Location<'static>>,
    body: F,
) -> Result<Option<Runnable>, Status>
where
    F: FnOnce(Cx) -> B + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
    E: Send + 'static,
{
    let attrs = Some(Box::new(TaskAttrs { finalizer: true, ..TaskAttrs::default() }));
    let budget = Some(region.finalizer_budget());
    let operation = Operation::SpawnFinalizer;
    let plan = Plan { operation, attrs, budget, at, ..Plan::default() };
    let body = |cx| {
        let body = body(cx);
        async move {
            body.await;
            Ok::<(), E>(())
        }
    };
    // SAFETY: Send and 'static.
    unsafe { make(region, plan, body) }.0
}

impl<E: Send + 'static> Scope<E> {
    /// Starts a task. It runs on its own, possibly in parallel, and the scope waits for it.
    ///
    /// In a scope that is closing nothing starts: the handle then says so.
    ///
    /// A body that never ends has no value the compiler could learn the type of, and it says
    /// `type annotations needed` (E0283). Say what the body returns:
    ///
    /// ```
    /// # use asx::prelude::*;
    /// # async fn program(cx: &Cx) -> Result<(), Cancelled> {
    /// # cx.scope(async |s| {
    /// s.spawn(async |cx: Cx| -> Result<(), _> {
    ///     loop {
    ///         cx.sleep(1.secs()).await?; // the way out is an error: the task is cancelled
    ///         println!("still here");
    ///     }
    /// });
    /// # Ok(())
    /// # })
    /// # .await
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn<F, B, T>(&self, body: F) -> Task<T, E>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
    {
        self.plan().spawn(body)
    }

    /// A task with a name.
    #[track_caller]
    pub fn task(&self, name: impl Into<Arc<str>>) -> TaskBuilder<'_, E> {
        let mut plan = self.plan();
        plan.attrs().name = Some(name.into());
        plan
    }

    #[track_caller]
    pub(crate) fn plan(&self) -> TaskBuilder<'_, E> {
        let plan = Plan { at: Some(Location::caller()), ..Plan::default() };
        TaskBuilder { scope: self, plan }
    }

    /// Registers a finalizer: it runs when everything else in the scope has ended, last registered
    /// first, and no cancel reaches it. It may wait, but start no tasks other than
    /// [finalizers](Scope::spawn_finalizer): the scope is closing by then. If it panics, the others
    /// still run, and the scope ends with the panic, whatever else it would have returned.
    #[track_caller]
    pub fn defer<F, B>(&self, body: F) -> Result<(), AdmissionError>
    where
        F: FnOnce(Cx) -> B + Send + 'static,
        B: Future<Output = ()> + Send + 'static,
    {
        let at = Some(Location::caller());
        let finalizer: Finalizer =
            Box::new(move |region| finalizer::<_, _, E>(region, at, body).ok().flatten());
        let _after = footprint::operation();
        self.region.defer(finalizer).map_err(AdmissionError::new)
    }

    /// Starts a finalizer in a scope that is running its finalizers, usually from one of them. It
    /// runs beside the finalizer that started it, within the same cleanup limits, and no cancel
    /// reaches it. Finalizers that were [registered](Scope::defer) earlier begin when it has ended.
    /// A panic ends the scope as that of a registered finalizer does.
    ///
    /// ```
    /// use asx::prelude::*;
    ///
    /// #[asx::main]
    /// async fn main(cx: &Cx) -> Result<(), Cancelled> {
    ///     cx.scope(async |s: Scope<Cancelled>| {
    ///         let scope = s.clone();
    ///         let close_all = async move |_cx: Cx| {
    ///             for connection in 1..=3 {
    ///                 let close = async move |cx: Cx| {
    ///                     let _ = cx.sleep(1.millis()).await;
    ///                     println!("connection {connection} is closed");
    ///                 };
    ///                 scope.spawn_finalizer(close).expect("the scope is finalizing");
    ///             }
    ///         };
    ///         s.defer(close_all).expect("the scope is open");
    ///         Ok(())
    ///     })
    ///     .await
    /// }
    /// ```
    ///
    /// # Errors
    /// [`FinalizerError::NotFinalizing`] before the finalizers of the scope begin: use
    /// [`defer`](Scope::defer) in an open scope. [`FinalizerError::Closed`] after they have ended.
    /// The body is dropped.
    #[track_caller]
    pub fn spawn_finalizer<F, B>(&self, body: F) -> Result<(), FinalizerError>
    where
        F: FnOnce(Cx) -> B + Send + 'static,
        B: Future<Output = ()> + Send + 'static,
    {
        let at = Some(Location::caller());
        let _after = footprint::operation();
        let region = &self.region;
        region.count_finalizer().map_err(FinalizerError::new)?;
        let entry = finalizer::<_, _, E>(region, at, body).map_err(FinalizerError::new)?;
        if let Some(entry) = entry {
            region.watch_cleanup();
            region.core.host.schedule_globally(entry);
        }
        Ok(())
    }

    /// Asks everything in the scope to stop, its body too. See [`Task::cancel`].
    pub fn cancel(&self, why: impl Into<Why>) {
        let why = why.into();
        let _after = footprint::operation();
        let cleanup = why.kind.cleanup();
        let polls = why.polls;
        let time = why.time;
        self.region.close_within(Arc::new(why.reason(&self.region)), cleanup, polls, time);
    }
}

/// A task about to be started.
#[must_use = "spawn it"]
pub struct TaskBuilder<'a, E> {
    scope: &'a Scope<E>,
    plan: Plan,
}

impl<'a, E> TaskBuilder<'a, E> {
    pub(crate) fn into_parts(self) -> (&'a Arc<Region>, Plan) {
        (&self.scope.region, self.plan)
    }
}

impl<E: Send + 'static> TaskBuilder<'_, E> {
    fn attrs(&mut self) -> &mut TaskAttrs {
        self.plan.attrs.get_or_insert_default()
    }

    fn budget(&mut self) -> &mut Budget {
        let priority = Priority::DEFAULT;
        self.plan.budget.get_or_insert(Budget { priority, ..Budget::INFINITE })
    }

    /// The priority in its lane: higher goes first; 128 unless set.
    pub fn priority(mut self, priority: u8) -> Self {
        self.budget().priority = Priority(priority);
        self
    }

    /// By when it should be done: it runs in the timed lane, and is cancelled when the time comes.
    pub fn deadline(mut self, deadline: Time) -> Self {
        self.budget().deadline = Some(deadline);
        self
    }

    /// How often it may be polled before it is cancelled.
    pub fn polls(mut self, polls: u64) -> Self {
        self.budget().poll_quota = polls;
        self
    }

    /// How much it may [consume](Cx::consume) before it is cancelled.
    pub fn cost(mut self, cost: u64) -> Self {
        self.budget().cost_quota = Some(cost);
        self
    }

    /// As [`deadline`](TaskBuilder::deadline), from now.
    pub fn within(self, limit: Duration) -> Self {
        let deadline = self.scope.region.core.host.now() + limit;
        self.deadline(deadline)
    }

    /// Has it stay on a worker. If there is none of that number, nothing starts: the task is over
    /// at once, cancelled, and [`try_spawn`](TaskBuilder::try_spawn) says
    /// [`NoSuchWorker`](SpawnError::NoSuchWorker).
    #[doc(hidden)]
    pub fn pinned_to(mut self, worker: u16) -> Self {
        self.plan.pin = worker;
        self
    }

    /// Starts the task; see [`Scope::spawn`].
    pub fn spawn<F, B, T>(self, body: F) -> Task<T, E>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: Send and 'static.
        unsafe { spawn(&self.scope.region, self.plan, body) }.1
    }

    /// Starts the task, or says why not.
    pub fn try_spawn<F, B, T>(self, body: F) -> Result<Task<T, E>, SpawnError>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
    {
        self.scope.region.precheck(self.plan.budget.as_ref()).map_err(SpawnError::new)?;
        // SAFETY: Send and 'static.
        let (spawned, task) = unsafe { spawn(&self.scope.region, self.plan, body) };
        spawned.map(|()| task).map_err(SpawnError::new)
    }
}
