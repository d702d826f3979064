//! Cancel scopes inside a task.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};

use asx_kernel::cancel;
use asx_kernel::time::Time;
use pin_project_lite::pin_project;

use crate::Cx;
use crate::cancel::wakers;
use crate::locals::Given;
use crate::region::Region;
use crate::task::context;
use crate::task::outcome::Cancelled;

/// One cancel scope; see [`context`].
pub(crate) struct Node {
    outer: Cell<*const Node>,
    pub(crate) kind: Kind,
    /// Where it was made.
    #[cfg(feature = "lab")]
    at: &'static std::panic::Location<'static>,
}

// SAFETY: `outer` is written and read only while the node is entered, by the one thread that polls
// the task it is in; see the rules of `context`. The rest is Send.
unsafe impl Send for Node {}

pub(crate) enum Kind {
    /// Nothing outside is seen inside, unless it is open; see `shield`.
    Shield(Cell<bool>),
    /// The body of a scope.
    Scope(Arc<Region>),
    /// A branch that the same task may cancel.
    Branch(Branch),
    /// A value that is seen inside.
    Local(Given),
}

/// A cancel from inside the task.
#[derive(Default)]
pub(crate) struct Branch {
    cancel: RefCell<Option<Cancelled>>,
    seen: Cell<bool>,
    /// Whether something inside has looked for a cancel since, and was answered, if only that it is
    /// shielded.
    looked: Cell<bool>,
    /// When it is cancelled, and what for.
    deadline: Option<(Time, cancel::Kind)>,
}

impl Branch {
    pub(crate) fn with_deadline(deadline: Time, kind: cancel::Kind) -> Branch {
        Branch { deadline: Some((deadline, kind)), ..Branch::default() }
    }

    /// Whether it is bounded by time.
    #[cfg(feature = "lab")]
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn cancel(&self, cancelled: Cancelled) {
        let first = !self.is_cancelled();
        self.cancel.borrow_mut().get_or_insert(cancelled);
        if first {
            wakers::notify_current();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.borrow().is_some()
    }

    /// The cancel, if nothing inside can hear of it: the task of the context is not polled here.
    pub(crate) fn unheard(&self, cx: &Cx) -> Option<Cancelled> {
        let task = cx.task().as_ptr();
        let polled = context::with_current(|current| current.as_ptr() == task);
        self.cancel.borrow().clone().filter(|_| polled != Some(true))
    }

    /// Whether nothing inside has looked since it was cancelled.
    pub(crate) fn is_unheeded(&self) -> bool {
        self.is_cancelled() && !self.looked.get()
    }

    /// The cancel, if something inside has seen it.
    pub(crate) fn seen(&self) -> Option<Cancelled> {
        self.cancel.borrow().clone().filter(|_| self.seen.get())
    }
}

/// What a node says to a cancel check inside it.
pub(crate) enum Verdict {
    /// Nothing further out counts.
    Shielded,
    Cancelled(Cancelled),
}

impl Node {
    #[cfg_attr(feature = "lab", track_caller)]
    pub(crate) fn new(kind: Kind) -> Node {
        Node {
            outer: Cell::new(ptr::null()),
            kind,
            #[cfg(feature = "lab")]
            at: std::panic::Location::caller(),
        }
    }

    /// Where it was made.
    #[cfg(feature = "lab")]
    pub(crate) fn at(&self) -> &'static std::panic::Location<'static> {
        self.at
    }

    pub(crate) fn set_outer(&self, outer: *const Node) {
        self.outer.set(outer);
    }

    pub(crate) fn outer(&self) -> *const Node {
        self.outer.get()
    }

    /// Looks whether to stop. `observe`: it counts as seen.
    pub(crate) fn check(&self, observe: bool) -> Option<Verdict> {
        let cancelled = match &self.kind {
            Kind::Shield(open) if !open.get() => return Some(Verdict::Shielded),
            Kind::Shield(_) | Kind::Local(_) => None,
            Kind::Scope(region) => region.body_cancel(observe),
            Kind::Branch(branch) => {
                let cancelled = branch.cancel.borrow().clone();
                branch.seen.set(branch.seen.get() || (observe && cancelled.is_some()));
                cancelled
            }
        };
        cancelled.map(Verdict::Cancelled)
    }

    /// Something inside has looked, and was answered by this node or by one further in.
    pub(crate) fn note_look(&self) {
        if let Kind::Branch(branch) = &self.kind
            && branch.is_cancelled()
        {
            branch.looked.set(true);
        }
    }

    /// Whether it has nothing to say to a [`check`](Node::check).
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        match &self.kind {
            Kind::Shield(open) => open.get(),
            Kind::Local(_) => true,
            Kind::Scope(region) => !region.is_body_cancelled(),
            Kind::Branch(branch) => !branch.is_cancelled(),
        }
    }

    /// The deadline this node sets.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match &self.kind {
            Kind::Branch(branch) => branch.deadline.map(|(deadline, _)| deadline),
            _ => None,
        }
    }

    /// Cancels a branch whose deadline has passed: who looks need not wait for the timer, which a
    /// poll that takes long keeps from being noticed. The clock is asked only if there is one.
    pub(crate) fn expire(&self, region: &Region) {
        let Kind::Branch(branch) = &self.kind else { return };
        let Some((deadline, kind)) = branch.deadline.filter(|_| !branch.is_cancelled()) else {
            return;
        };
        if deadline <= region.core.host.now() {
            branch.cancel(region.reason(kind).into());
        }
    }
}

pin_project! {
    /// A future that is polled inside a node.
    pub(crate) struct Inside<F> {
        pub(crate) node: Node,
        #[pin]
        future: F,
    }
}

impl<F> Inside<F> {
    #[cfg_attr(feature = "lab", track_caller)]
    pub(crate) fn new(kind: Kind, future: F) -> Inside<F> {
        Inside { node: Node::new(kind), future }
    }

    /// The branch, if that is what the node is.
    pub(crate) fn branch(&self) -> Option<&Branch> {
        match &self.node.kind {
            Kind::Branch(branch) => Some(branch),
            _ => None,
        }
    }
}

impl<F: Future> Future for Inside<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        context::enter(this.node, || this.future.poll(cx))
    }
}
