//! What the running thread is polling: the task, and the cancel scopes inside it.
//!
//! Combinators that cancel part of a task (scope bodies, race branches, timeouts, shields) are
//! nodes of a chain that exists while they are polled: [`enter`] links a node for the length of a
//! closure. A context of the task looks at the chain from the inside out, so that an operation sees
//! every cancel around it, whichever clone of the context it was given.
//!
//! # Rules
//! 1. The pointers in [`CURRENT`] are set by [`with_task`] and [`enter`] from references that
//!    outlive the closure they run, and are restored before those end, by unwinding too.
//! 2. They are read on the same thread only, while such a closure runs.

use std::cell::Cell;
use std::ptr;

use crate::cell::{Header, TaskRef};
use crate::node::Node;

#[derive(Clone, Copy)]
struct Current {
    task: *const TaskRef,
    node: *const Node,
}

const NOTHING: Current = Current { task: ptr::null(), node: ptr::null() };

#[cfg(not(loom))]
thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(NOTHING) };
    /// How many more operations the poll may do at once.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<Current> = Cell::new(NOTHING);
    static LEFT: Cell<u32> = Cell::new(u32::MAX);
}

#[inline]
fn current() -> Current {
    CURRENT.with(Cell::get)
}

/// Whether this thread is polling `task`, and nothing inside it was entered.
#[inline]
pub(crate) fn is_bare(task: &Header) -> bool {
    let current = current();
    // SAFETY: rules 1 and 2.
    let here = unsafe { current.task.as_ref() };
    current.node.is_null() && here.is_some_and(|here| ptr::eq(&raw const **here, task))
}

/// Takes one of the operations a poll may do at once; false if none is left. `u32::MAX` of them
/// are never used up.
#[inline]
pub(crate) fn take_operation() -> bool {
    LEFT.with(|operations| match operations.get() {
        u32::MAX => true,
        0 => false,
        left => {
            operations.set(left - 1);
            true
        }
    })
}

/// Puts back what was current.
struct Restore(Current);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.0));
    }
}

/// Runs `f` as part of a poll of `task`, which may do so many operations at once.
pub(crate) fn with_task<R>(task: &TaskRef, operations: u32, f: impl FnOnce() -> R) -> R {
    LEFT.with(|left| left.set(operations));
    let now = Current { task, node: ptr::null() };
    let _restore = Restore(CURRENT.with(|current| current.replace(now)));
    task.span.within(f)
}

/// Runs `f` inside `node`.
pub(crate) fn enter<R>(node: &Node, f: impl FnOnce() -> R) -> R {
    let outer = current();
    let _restore = Restore(outer);
    node.set_outer(outer.node);
    CURRENT.with(|current| current.set(Current { node, ..outer }));
    f()
}

/// The task this thread is polling.
pub(crate) fn with_current<R>(f: impl FnOnce(&TaskRef) -> R) -> Option<R> {
    // SAFETY: rules 1 and 2.
    unsafe { current().task.as_ref() }.map(f)
}

/// Looks at the chain of `task` from the inside out, if this thread is polling it: the first
/// answer. The outer error says that it is not.
pub(crate) fn find<R>(
    task: &Header,
    mut look: impl FnMut(&Node) -> Option<R>,
) -> Result<Option<R>, Elsewhere> {
    let current = current();
    // SAFETY: rules 1 and 2.
    let here =
        unsafe { current.task.as_ref() }.is_some_and(|here| ptr::eq(&raw const **here, task));
    if !here {
        return Err(Elsewhere);
    }
    let mut at = current.node;
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
