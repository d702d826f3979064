//! Operations that other crates add, under the rules of this crate's own.

use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::panic::Location;
use std::task::{Context, Poll, ready};

use crate::cancel_wakers::Registration;
use crate::context;
use crate::cx::{Cx, Wait};
use crate::outcome::Cancelled;

/// A context that an operation borrows, or its own clone.
enum Lent<'c> {
    Borrowed(&'c Cx),
    Owned(Cx),
}

impl Deref for Lent<'_> {
    type Target = Cx;

    fn deref(&self) -> &Cx {
        match self {
            Lent::Borrowed(cx) => cx,
            Lent::Owned(cx) => cx,
        }
    }
}

/// An operation that is not implemented in this crate: a host's, for example, which waits for a
/// promise or an event. It keeps the rules that all operations have in common:
///
/// * a poll of a task completes a limited number of operations, whatever they answer;
/// * it ends with an error if the task, or the part of it around, is asked to stop, and if it is
///   awaited in another task than that of its context;
/// * a cancel wakes it even if it is polled by a combinator that knows nothing of cancels.
///
/// [`run`](Operation::run) is all that most need.
pub struct Operation<'c> {
    cx: Lent<'c>,
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
    /// # use asx_runtime::{Cancelled, Cx, Operation};
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
        Operation::lent(Lent::Borrowed(cx), Location::caller())
    }

    /// As [`new`](Operation::new), with a context of its own: for what has to keep an operation
    /// beside its context, like a stream that implements the IO traits of another crate.
    #[track_caller]
    pub fn owned(cx: Cx) -> Operation<'static> {
        Operation::lent(Lent::Owned(cx), Location::caller())
    }

    fn lent(cx: Lent<'c>, at: &'static Location<'static>) -> Operation<'c> {
        Operation { cx, at, registration: Registration::NONE, charged: false }
    }

    /// The context of the operation.
    pub fn cx(&self) -> &Cx {
        &self.cx
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
            context::return_operation();
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
