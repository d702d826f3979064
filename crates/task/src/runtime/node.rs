//! Cancel scopes inside a task, and the chain they form while the task is polled.
//!
//! Combinators that cancel part of a task (scope bodies, race branches, timeouts, shields) are
//! nodes of a chain that exists while they are polled: [`enter`] links a node for the length of a
//! closure. A context of the task walks the chain from the inside out ([`find`]), so that an
//! operation observes every cancel around it, whichever clone of the context it was given.
//!
//! # Rule
//! 1. The scope pointer of a poll is null or leads to a [`Node`]. It is set by [`enter`] from a
//!    reference that outlives the closure it runs, and restored before that returns, by unwinding
//!    too. It is read on the same thread only, while such a closure runs.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll};

use asx_kernel::cancel;
use asx_kernel::time::Time;
use pin_project_lite::pin_project;

use crate::locals::Given;
use crate::raw::foreign_wakers;
use crate::raw::outcome::Cancelled;
use crate::raw::poll_context::{self, Elsewhere};
use crate::raw::{Header, TaskRef};
use crate::region::Region;
#[cfg(feature = "lab")]
use crate::wait_notes::Frame;

/// One cancel scope.
pub(crate) struct Node {
    outer: Cell<*const Node>,
    pub(crate) kind: Kind,
    /// The location where it was created.
    #[cfg(feature = "lab")]
    at: &'static std::panic::Location<'static>,
}

// SAFETY: `outer` is written and read only while the node is entered, by the one thread that polls
// the task it is in (rule 1). The rest is Send.
unsafe impl Send for Node {}

pub(crate) enum Kind {
    /// Hides the cancels outside from the inside, unless it is open; see `shield`.
    Shield(Cell<bool>),
    /// The body of a scope.
    Scope(Arc<Region>),
    /// A part that the same task may cancel.
    Branch(Branch),
    /// A value that is visible inside.
    Local(Given),
}

/// A cancel from inside the task.
#[derive(Default)]
pub(crate) struct Branch {
    cancel: RefCell<Option<Cancelled>>,
    seen: Cell<bool>,
    /// Whether an operation inside has checked for a cancel since, even if a shield has hidden it.
    looked: Cell<bool>,
    /// The deadline and the kind of the cancel at that time.
    deadline: Option<(Time, cancel::Kind)>,
}

impl Branch {
    pub(crate) fn with_deadline(deadline: Time, kind: cancel::Kind) -> Branch {
        Branch { deadline: Some((deadline, kind)), ..Branch::default() }
    }

    /// Whether it has a deadline.
    #[cfg(feature = "lab")]
    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn cancel(&self, cancelled: Cancelled) {
        let first = !self.is_cancelled();
        self.cancel.borrow_mut().get_or_insert(cancelled);
        if first {
            foreign_wakers::notify_current();
        }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.borrow().is_some()
    }

    /// Returns the cancel if nothing inside can observe it, because this thread is not polling
    /// `task`.
    pub(crate) fn unheard(&self, task: &TaskRef) -> Option<Cancelled> {
        let polled = poll_context::with_current(|current| current.as_ptr() == task.as_ptr());
        self.cancel.borrow().clone().filter(|_| polled != Some(true))
    }

    /// Whether no operation inside has checked for a cancel since it was cancelled.
    pub(crate) fn is_unheeded(&self) -> bool {
        self.is_cancelled() && !self.looked.get()
    }

    /// The cancel, if an operation inside has observed it.
    pub(crate) fn seen(&self) -> Option<Cancelled> {
        self.cancel.borrow().clone().filter(|_| self.seen.get())
    }
}

/// The answer of a node to a cancel check inside it.
pub(crate) enum Verdict {
    /// The nodes further out are hidden.
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

    /// The location where it was created.
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

    /// Checks for a cancel. `observe`: it counts as observed.
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

    /// Notes that an operation inside has checked, and was answered by this node or one further in.
    pub(crate) fn note_look(&self) {
        if let Kind::Branch(branch) = &self.kind
            && branch.is_cancelled()
        {
            branch.looked.set(true);
        }
    }

    /// Whether a [`check`](Node::check) finds nothing.
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

    /// Cancels a branch whose deadline has passed: a check need not wait for the timer, which does
    /// not fire during a long poll. The clock is read only if there is a deadline.
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

/// Restores the cancel scope around the innermost one.
struct Leave(*const ());

impl Drop for Leave {
    fn drop(&mut self) {
        poll_context::replace_scope(self.0);
    }
}

/// Runs `f` inside `node`. Outside of a poll no operation looks at the node.
pub(crate) fn enter<R>(node: &Node, f: impl FnOnce() -> R) -> R {
    let outer = poll_context::replace_scope(ptr::from_ref(node).cast());
    let _leave = outer.map(|outer| {
        node.set_outer(outer.cast());
        Leave(outer)
    });
    f()
}

/// Walks the chain of `task` from the inside out and returns the first answer of `look`. An error
/// if this thread is not polling the task.
pub(crate) fn find<R>(
    task: &Header,
    mut look: impl FnMut(&Node) -> Option<R>,
) -> Result<Option<R>, Elsewhere> {
    let mut at: *const Node = poll_context::scope(task)?.cast();
    // SAFETY: rule 1: the whole chain is made of nodes that are entered now.
    while let Some(node) = unsafe { at.as_ref() } {
        if let Some(answer) = look(node) {
            return Ok(Some(answer));
        }
        at = node.outer();
    }
    Ok(None)
}

/// Returns the parts of a task around the caller, from the inside out, without those that the
/// runtime's own crates have made.
#[cfg(feature = "lab")]
pub(crate) fn frames(task: &Header) -> Vec<Frame> {
    let mut frames = Vec::new();
    let _ = find(task, |node| {
        let (what, at) = match &node.kind {
            Kind::Shield(_) => ("a shield", Some(node.at())),
            Kind::Scope(region) => ("the scope opened", region.label.at),
            Kind::Branch(branch) if branch.has_deadline() => ("a timeout", Some(node.at())),
            Kind::Branch(_) => ("a part", Some(node.at())),
            Kind::Local(_) => ("", None),
        };
        frames.extend(at.filter(|at| !is_own(at)).map(|at| Frame { what, at }));
        None::<()>
    });
    frames
}

/// Whether a source location is in this crate or in `asx-runtime`, which has the combinators.
#[cfg(feature = "lab")]
fn is_own(at: &std::panic::Location<'_>) -> bool {
    let own = file!().strip_suffix("runtime/node.rs").unwrap_or_default();
    let file = at.file();
    !own.is_empty() && (file.starts_with(own) || file.replace("runtime", "task").starts_with(own))
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

    /// The branch, if the node is one.
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
        enter(this.node, || this.future.poll(cx))
    }
}
