//! What the running thread is polling: the task, and the cancel scopes inside it.
//!
//! Combinators that cancel part of a task (scope bodies, race branches, timeouts, shields) are
//! nodes of a chain that exists while they are polled: [`enter`] links a node for the length of a
//! closure. A context of the task looks at the chain from the inside out, so that an operation sees
//! every cancel around it, whichever clone of the context it was given.
//!
//! # Rules
//! 1. The pointer in [`CURRENT`] is set by [`Turn::run`], and the one in a turn by [`enter`], from
//!    references that outlive the closure they run; both are restored before those end, by
//!    unwinding too.
//! 2. They are read on the same thread only, while such a closure runs.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use crate::cell::{Header, TaskRef};
use crate::node::Node;

/// A poll of a task, on the stack of who polls it.
pub(crate) struct Turn {
    task: ManuallyDrop<TaskRef>,
    /// The innermost cancel scope.
    node: Cell<*const Node>,
    /// How many more operations the poll may do at once.
    left: Cell<u32>,
    /// Counted references to the task that nobody has yet, or any more (rule 10 of cells).
    reserve: Cell<u32>,
}

#[cfg(not(loom))]
thread_local! {
    static CURRENT: Cell<*const Turn> = const { Cell::new(ptr::null()) };
}

#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<*const Turn> = Cell::new(ptr::null());
}

/// Puts back what was current.
struct Restore(*const Turn);

impl Drop for Restore {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.0));
    }
}

impl Turn {
    /// A poll that may do so many operations at once, with so many references in reserve.
    #[inline]
    pub(crate) fn new(task: ManuallyDrop<TaskRef>, operations: u32, reserve: u32) -> Turn {
        let (left, reserve) = (Cell::new(operations), Cell::new(reserve));
        Turn { task, node: Cell::new(ptr::null()), left, reserve }
    }

    #[inline]
    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    /// The region's reference to the task, for who ends it. The reserve is gone by then.
    pub(crate) fn into_task(self) -> TaskRef {
        ManuallyDrop::into_inner(self.task)
    }

    /// What is left of the reserve, for who ends the poll: the caller gives it back.
    #[inline]
    pub(crate) fn take_reserve(&self) -> u32 {
        self.reserve.take()
    }

    /// Runs `f` as part of the poll.
    #[inline]
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let _restore = Restore(CURRENT.with(|current| current.replace(self)));
        self.task.span.within(f)
    }

    /// [`run`](Turn::run) with any number of operations.
    pub(crate) fn run_freely<R>(&self, f: impl FnOnce() -> R) -> R {
        self.left.set(u32::MAX);
        self.run(f)
    }
}

/// Runs `f` on the poll that this thread is at, if it is.
#[inline]
fn with_turn<R>(f: impl FnOnce(&Turn) -> R) -> Option<R> {
    #[cfg(not(loom))]
    let current = CURRENT.get();
    // Loom ends what a thread holds after its locals.
    #[cfg(loom)]
    let current = CURRENT.try_with(Cell::get).unwrap_or(ptr::null());
    // SAFETY: rules 1 and 2.
    unsafe { current.as_ref() }.map(f)
}

/// Takes one of the operations a poll may do at once; false if none is left. `u32::MAX` of them
/// are never used up.
#[inline]
pub(crate) fn take_operation() -> bool {
    let take = |turn: &Turn| match turn.left.get() {
        u32::MAX => true,
        0 => false,
        left => {
            turn.left.set(left - 1);
            true
        }
    };
    with_turn(take).unwrap_or(true)
}

/// Takes a reference from the reserve of this task, if this thread is polling it and has one left:
/// the caller then has it.
#[inline]
pub(crate) fn take_reference(task: NonNull<Header>) -> bool {
    let take = |turn: &Turn| {
        let left = turn.reserve.get();
        let mine = turn.task.as_ptr() == task && left > 0;
        if mine {
            turn.reserve.set(left - 1);
        }
        mine
    };
    with_turn(take).unwrap_or(false)
}

/// Puts a reference to this task into its reserve, if this thread is polling it: the caller no
/// longer has it then.
#[inline]
pub(crate) fn return_reference(task: NonNull<Header>) -> bool {
    let put = |turn: &Turn| {
        let left = turn.reserve.get();
        let mine = turn.task.as_ptr() == task && left < u32::MAX;
        if mine {
            turn.reserve.set(left + 1);
        }
        mine
    };
    with_turn(put).unwrap_or(false)
}

/// Leaves the innermost node for the one around it.
struct Leave(*const Node);

impl Drop for Leave {
    fn drop(&mut self) {
        with_turn(|turn| turn.node.set(self.0));
    }
}

/// Runs `f` inside `node`. Where no task is polled nobody looks at it.
pub(crate) fn enter<R>(node: &Node, f: impl FnOnce() -> R) -> R {
    let _leave = with_turn(|turn| {
        let outer = turn.node.replace(node);
        node.set_outer(outer);
        Leave(outer)
    });
    f()
}

/// The task this thread is polling.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(&TaskRef) -> R) -> Option<R> {
    with_turn(|turn| f(&turn.task))
}

/// Looks at the chain of `task` from the inside out, if this thread is polling it: the first
/// answer. The outer error says that it is not.
pub(crate) fn find<R>(
    task: &Header,
    mut look: impl FnMut(&Node) -> Option<R>,
) -> Result<Option<R>, Elsewhere> {
    let here = |turn: &Turn| ptr::eq(&raw const **turn.task, task).then(|| turn.node.get());
    let mut at = with_turn(here).flatten().ok_or(Elsewhere)?;
    // SAFETY: rules 1 and 2: the whole chain is made of nodes that are entered now.
    while let Some(node) = unsafe { at.as_ref() } {
        if let Some(answer) = look(node) {
            return Ok(Some(answer));
        }
        at = node.outer();
    }
    Ok(None)
}

/// The thread is not polling that task.
pub(crate) struct Elsewhere;
