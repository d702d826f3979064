//! Writing operations: what waits for something, and keeps the rules that all operations share.
//!
//! An operation is a future that takes a [`Cx`]. Channels, locks and signals are operations, and so
//! is what a host waits for; those of this crate, of `asx-sync` and of any other crate use what is
//! here, and nothing else. The rules:
//!
//! * a poll of a task completes a limited number of operations, whatever they answer;
//! * an operation ends with an error if the task, or the part of it around, is asked to stop, and
//!   if it is awaited in another task than that of its context;
//! * a cancel wakes it even if it is polled by a combinator that knows nothing of cancels;
//! * no waker and no destructor of the user's runs under a lock, and no panic of theirs goes
//!   anywhere but into the count of [`Health`](crate::Health).
//!
//! | to | use |
//! |---|---|
//! | wait until a closure answers | [`Operation::run`] |
//! | look for a cancel, and take one of the operations of the poll | [`Cx::poll_proceed`] |
//! | say for what it waits, and be woken by a cancel | [`Cx::waits`], [`Wait`], [`Registration`] |
//! | the same, in one value that borrows the context | [`Operation`] |
//! | charge more than one operation | [`charge`] |
//! | make one operation of others | [`begins`], [`begin`], [`ends`] |
//! | wake somebody, or drop a waker or a message | [`guard`] |
//! | know whether a waker may be cloned under a lock | [`is_task_waker`] |
//! | hold a lock for a few instructions | [`SpinLock`] |
//! | let the lab know what is used | [`footprint`], [`waits`](crate::waits) |
//! | have something closed by its scope, and on the record | [`ChannelRecord`], [`Scoped`] |
//! | panic when dropped, except by force | [`is_dropping_by_force`] |
//! | have what must be resolved in dumps, and its leak counted and reported | [`PermitRecord`] |
//!
//! # Example
//!
//! A gate that opens once. Whoever waits at it when its task is cancelled ends with the cancel;
//! a wait that is dropped leaves nothing behind but a waker.
//!
//! ```
//! use std::panic::Location;
//! use std::pin::Pin;
//! use std::sync::Mutex;
//! use std::task::{Context, Poll, Waker, ready};
//! use std::time::Duration;
//!
//! use asx::{CancelSafe, Cancelled, Cx};
//! use asx_runtime::operation::{Registration, Wait, guard};
//!
//! pub struct Gate {
//!     /// `None` once it is open.
//!     waiting: Mutex<Option<Vec<Waker>>>,
//! }
//!
//! impl Gate {
//!     pub fn new() -> Gate {
//!         Gate { waiting: Mutex::new(Some(Vec::new())) }
//!     }
//!
//!     pub fn open(&self) {
//!         let waiting = self.waiting.lock().unwrap().take();
//!         // After the lock is released: a waker is somebody else's code, and may panic.
//!         guard::wake_all(waiting.into_iter().flatten());
//!     }
//!
//!     /// Waits until the gate is open.
//!     #[track_caller]
//!     pub fn passed<'a>(&'a self, cx: &'a Cx) -> Passed<'a> {
//!         Passed { gate: self, cx, at: Location::caller(), registration: Registration::NONE }
//!     }
//! }
//!
//! pub struct Passed<'a> {
//!     gate: &'a Gate,
//!     cx: &'a Cx,
//!     at: &'static Location<'static>,
//!     registration: Registration,
//! }
//!
//! impl Future for Passed<'_> {
//!     type Output = Result<(), Cancelled>;
//!
//!     fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
//!         let Passed { gate, cx, at, registration } = &mut *self;
//!         // First: is the task to stop, or to let others run?
//!         ready!(cx.poll_proceed(context, registration))?;
//!         // Cloned before the lock is taken.
//!         let waker = context.waker().clone();
//!         match &mut *gate.waiting.lock().unwrap() {
//!             None => return Poll::Ready(Ok(())),
//!             Some(waiting) if waiting.iter().any(|known| known.will_wake(&waker)) => {}
//!             Some(waiting) => waiting.push(waker),
//!         }
//!         // Last: what it waits for, and where; a cancel wakes it from now on.
//!         cx.waits(Wait::Signal, at, context.waker(), registration);
//!         Poll::Pending
//!     }
//! }
//!
//! /// `select!` may drop it.
//! impl CancelSafe for Passed<'_> {}
//!
//! asx::Runtime::new()?.block_on(async |cx: Cx| {
//!     let (gate, shut) = (Gate::new(), Gate::new());
//!     let opens = async |_: &Cx| Ok::<_, Cancelled>(gate.open());
//!     asx::try_join(&cx, async |cx| gate.passed(cx).await, opens).await?;
//!     let soon = Duration::from_millis(1);
//!     let late = cx.timeout(soon, async |cx| shut.passed(cx).await);
//!     assert!(late.await.is_err(), "the wait ended with the timeout");
//!     Ok::<_, Cancelled>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::future::poll_fn;
use std::panic::Location;
use std::task::{Context, Poll, ready};

pub use crate::channel_record::ChannelRecord;
use crate::footprint;
pub use crate::force::is_dropping_by_force;
pub use crate::permit_record::PermitRecord;
pub use crate::proceed::{begin, begins, charge, ends};
pub use crate::raw::foreign_wakers::Registration;
pub use crate::raw::is_task_waker;
use crate::raw::outcome::Cancelled;
use crate::raw::poll_context;
pub use crate::region::resources::{ChannelLoad, Scoped};
use crate::runtime::cx::Cx;
pub use crate::spinlock::{Held, SpinLock};
pub use crate::wait::Wait;

/// Calling code of the user's outside of a poll: wakers, destructors. What panics there is counted,
/// and the caller goes on.
pub mod guard {
    pub use crate::raw::contain_panic::{contain, drop_waker, wake, wake_all, wake_by_ref};
}

/// An operation that is not implemented in this crate: a host's, for example, which waits for a
/// promise or an event. It keeps the [rules](self) that all operations have in common.
///
/// [`run`](Operation::run) is all that most need.
pub struct Operation<'c> {
    cx: &'c Cx,
    at: &'static Location<'static>,
    registration: Registration,
    /// Whether this poll was charged for it, so that it gets that back if it waits.
    charged: bool,
}

impl<'c> Operation<'c> {
    /// The operation that waits until `poll` answers.
    ///
    /// `poll` is called when the operation may go on. If it is `Pending`, it has arranged for the
    /// waker to be woken.
    ///
    /// ```
    /// # use std::task::Poll;
    /// # use asx::{Cancelled, Cx};
    /// # use asx_runtime::Operation;
    /// # use std::sync::{Arc, Mutex};
    /// # use std::task::Waker;
    /// /// What a callback of the host's fills in.
    /// #[derive(Default)]
    /// struct Slot {
    ///     value: Option<u32>,
    ///     waker: Option<Waker>,
    /// }
    ///
    /// async fn filled(cx: &Cx, slot: Arc<Mutex<Slot>>) -> Result<u32, Cancelled> {
    ///     Operation::run(cx, |context| {
    ///         let mut slot = slot.lock().unwrap();
    ///         match slot.value.take() {
    ///             Some(value) => Poll::Ready(value),
    ///             None => {
    ///                 slot.waker = Some(context.waker().clone());
    ///                 Poll::Pending
    ///             }
    ///         }
    ///     })
    ///     .await
    /// }
    /// ```
    #[track_caller]
    pub fn run<T>(
        cx: &'c Cx,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> impl Future<Output = Result<T, Cancelled>> {
        let mut operation = Operation::new(cx);
        poll_fn(move |context| {
            let _after = footprint::after_operation();
            ready!(operation.poll_proceed(context))?;
            match poll(context) {
                Poll::Ready(value) => Poll::Ready(Ok(value)),
                Poll::Pending => operation.pending(context),
            }
        })
    }

    /// An operation of the context's task that has not begun. Dumps name the caller's line while it
    /// waits.
    #[track_caller]
    pub fn new(cx: &'c Cx) -> Operation<'c> {
        Operation { cx, at: Location::caller(), registration: Registration::NONE, charged: false }
    }

    /// The first step of every poll. `Pending`: the task is to let others run first, or to end, and
    /// nothing else is to be done in this poll; its waker was woken where that is needed.
    ///
    /// # Errors
    /// The operation is to end with this.
    pub fn poll_proceed(&mut self, context: &Context<'_>) -> Poll<Result<(), Cancelled>> {
        let proceeds = self.cx.poll_proceed(context, &mut self.registration);
        self.charged = proceeds.is_ready();
        proceeds
    }

    /// The last step of a poll that waits: `Pending`. Whatever it waits for has the context's waker
    /// already.
    pub fn pending<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        if std::mem::take(&mut self.charged) {
            poll_context::return_operation();
        }
        self.cx.note_wait(Wait::Signal, self.at, context.waker(), &mut self.registration);
        Poll::Pending
    }
}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation(task {}, {})", self.cx.id(), self.at)
    }
}
