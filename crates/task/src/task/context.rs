//! What the running thread is polling: the task, and the cancel scopes inside it.
//!
//! Combinators that cancel part of a task (scope bodies, race branches, timeouts, shields) are
//! nodes of a chain that exists while they are polled: [`enter`] links a node for the length of a
//! closure. A context of the task looks at the chain from the inside out, so that an operation sees
//! every cancel around it, whichever clone of the context it was given.
//!
//! # Rules
//! 1. The pointer in [`CURRENT`] is set by [`PollContext::run`], and the one in a turn by
//!    [`enter`], from references that outlive the closure they run; both are restored before those
//!    end, by unwinding too.
//! 2. They are read on the same thread only, while such a closure runs.
//!    The lab has another poll begin in the middle of one ([`leave_poll`]), on another stack, and
//!    puts the pointer back before it goes on ([`return_to_poll`]): for the closure nothing has
//!    changed.
//! 3. A poll's `region_refs` are counted in `ref_region`; if there are none, that may be gone, and
//!    is only compared.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::Arc;

#[cfg(feature = "lab")]
use crate::cancel::node::Kind;
use crate::cancel::node::Node;
use crate::region::Region;
use crate::region::region_ref;
use crate::task::audit::{Owner, RegionRefOwner};
use crate::task::cell::{Header, TaskRef};
#[cfg(feature = "lab")]
use crate::wait_notes::Frame;

/// A poll of a task, on the stack of who polls it.
pub(crate) struct PollContext {
    task: ManuallyDrop<TaskRef>,
    /// The innermost cancel scope.
    node: Cell<*const Node>,
    /// How many more operations the poll may do at once.
    left: Cell<u32>,
    /// Counted references to the task that nobody has yet, or any more (rule 10 of cells).
    reserve: Cell<u32>,
    /// Whether the task has woken itself: a flag that becomes one entry afterwards.
    woken: Cell<bool>,
    /// Whether the task had been asked to stop before the poll and had not looked.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) is_asked: Cell<bool>,
    /// The operation that noted last in this poll what it waits for, by its address; 0: none, or it
    /// was dropped since.
    waits: Cell<usize>,
    /// The region that spawns and ends of tasks were last seen in, and counted references to it
    /// that nobody has.
    ref_region: Cell<*const Region>,
    region_refs: Cell<u32>,
    /// How many references were counted at once last.
    batch: Cell<u32>,
}

/// References that are counted at once, at most.
const BATCH: u32 = 1 << 10;

#[cfg(not(loom))]
thread_local! {
    static CURRENT: Cell<*const PollContext> = const { Cell::new(ptr::null()) };
}

#[cfg(loom)]
loom::thread_local! {
    static CURRENT: Cell<*const PollContext> = Cell::new(ptr::null());
}

/// Puts back what was current, and gives back the references that are left.
struct Restore<'a>(*const PollContext, &'a PollContext);

impl Drop for Restore<'_> {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with(|current| current.set(self.0));
        self.1.release_region_refs();
    }
}

impl PollContext {
    /// A poll that may do so many operations at once, with so many references in reserve.
    #[inline]
    pub(crate) fn new(task: ManuallyDrop<TaskRef>, operations: u32, reserve: u32) -> PollContext {
        task.books.enter(&task.word, Owner::Reserve, reserve);
        let left = Cell::new(operations);
        let reserve = Cell::new(reserve);
        let node = Cell::new(ptr::null());
        let ref_region = Cell::new(ptr::null());
        let region_refs = Cell::new(0);
        let batch = Cell::new(0);
        let woken = Cell::new(false);
        let waits = Cell::new(0);
        #[cfg(not(target_family = "wasm"))]
        let is_asked = Cell::new(false);
        PollContext {
            task,
            node,
            left,
            reserve,
            woken,
            #[cfg(not(target_family = "wasm"))]
            is_asked,
            waits,
            ref_region,
            region_refs,
            batch,
        }
    }

    #[inline]
    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    /// What is left of the reserve, for who ends the poll: the caller gives it back, once.
    #[inline]
    pub(crate) fn left_in_reserve(&self) -> u32 {
        self.reserve.get()
    }

    /// Whether the task has woken itself in this poll, for who ends it.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.get()
    }

    /// Whether an operation noted in this poll what it waits for, and was not dropped since.
    #[inline]
    pub(crate) fn has_wait(&self) -> bool {
        self.waits.get() != 0
    }

    /// Runs `f` as part of the poll.
    #[inline]
    pub(crate) fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let _restore = Restore(CURRENT.with(|current| current.replace(self)), self);
        self.task.span.within(f)
    }

    #[cfg_attr(target_arch = "wasm32", inline(always))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    fn release_region_refs(&self) {
        let region_refs = self.region_refs.take();
        if region_refs > 0 {
            // SAFETY: rule 3.
            unsafe {
                region_ref::remove(self.ref_region.get(), RegionRefOwner::Reserve, region_refs)
            };
        }
    }

    /// Turns to another region, without references to it. To release the last reference to the one
    /// before may drop that region, and with it values of the user's, whose code may get here
    /// again: so this poll's books are done before, and may say something else afterwards.
    #[cold]
    fn move_to(&self, region: *const Region) {
        let left = self.ref_region.replace(region);
        let region_refs = self.region_refs.take();
        self.batch.set(0);
        if region_refs > 0 {
            // SAFETY: rule 3.
            unsafe { region_ref::remove(left, RegionRefOwner::Reserve, region_refs) };
        }
    }

    /// [`run`](PollContext::run) with any number of operations.
    pub(crate) fn run_freely<R>(&self, f: impl FnOnce() -> R) -> R {
        self.free();
        self.run(f)
    }

    /// Allows any number of operations.
    pub(crate) fn free(&self) {
        self.left.set(u32::MAX);
    }
}

/// Runs `f` on the poll that this thread is at, if it is.
#[inline]
fn with_turn<R>(f: impl FnOnce(&PollContext) -> R) -> Option<R> {
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
    let take = |turn: &PollContext| match turn.left.get() {
        u32::MAX => true,
        0 => false,
        left => {
            turn.left.set(left - 1);
            true
        }
    };
    with_turn(take).unwrap_or(true)
}

/// Takes `count` operations from the current poll, or all that are left.
#[inline]
pub(crate) fn take_operations(count: u32) {
    with_turn(|turn| {
        let left = turn.left.get();
        if left != u32::MAX {
            turn.left.set(left.saturating_sub(count));
        }
    });
}

/// Gives back an operation that was taken for one which waits after all: only those that complete
/// count.
#[inline]
pub(crate) fn return_operation() {
    with_turn(|turn| {
        let left = turn.left.get();
        if left != u32::MAX {
            turn.left.set(left + 1);
        }
    });
}

/// The operation at this address waits, and has noted for what.
#[inline]
pub(crate) fn note_wait(operation: usize) {
    if !cfg!(target_family = "wasm") {
        with_turn(|turn| turn.waits.set(operation));
    }
}

/// The operation at this address waits no longer: if it was the last one to note that, nothing is
/// known of what the poll waits for.
#[inline]
pub(crate) fn end_wait(operation: usize) {
    if !cfg!(target_family = "wasm") {
        with_turn(|turn| {
            if turn.waits.get() == operation {
                turn.waits.set(0);
            }
        });
    }
}

/// Whether [`take_operation`] would find one.
#[inline]
pub(crate) fn has_operation() -> bool {
    with_turn(|turn| turn.left.get() > 0).unwrap_or(true)
}

/// The poll of this thread may do any number of operations.
pub(crate) fn allow_any_number() {
    with_turn(PollContext::free);
}

/// Notes that this task was woken, if this thread is polling it: it is queued when the poll ends.
#[inline]
pub(crate) fn note_wake(task: NonNull<Header>) -> bool {
    let note = |turn: &PollContext| {
        let mine = turn.task.as_ptr() == task;
        if mine {
            turn.woken.set(true);
        }
        mine
    };
    with_turn(note).unwrap_or(false)
}

/// Takes a reference from the reserve of this task, if this thread is polling it and has one left:
/// the caller then has it.
#[inline]
pub(crate) fn take_reference(task: NonNull<Header>) -> bool {
    let take = |turn: &PollContext| {
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
    let put = |turn: &PollContext| {
        let left = turn.reserve.get();
        let mine = turn.task.as_ptr() == task && left < u32::MAX;
        if mine {
            turn.reserve.set(left + 1);
        }
        mine
    };
    with_turn(put).unwrap_or(false)
}

/// Takes a reference to this region from what the poll of this thread has in reserve, if there is
/// a poll: the caller then has it.
#[inline]
pub(crate) fn take_region_ref(region: &Arc<Region>) -> bool {
    let take = |turn: &PollContext| {
        while turn.ref_region.get() != Arc::as_ptr(region) {
            turn.move_to(Arc::as_ptr(region));
        }
        let left = match turn.region_refs.get() {
            0 => {
                // Most polls spawn once or not at all; those that go on get more at a time.
                let batch = (turn.batch.get() * 2).clamp(1, BATCH);
                turn.batch.set(batch);
                region_ref::add(region, RegionRefOwner::Reserve, batch);
                batch
            }
            left => left,
        };
        turn.region_refs.set(left - 1);
    };
    with_turn(take).is_some()
}

/// Gives back what references to this region the poll of this thread has in reserve.
#[cfg(not(any(loom, target_family = "wasm", asx_no_reuse)))]
#[inline]
pub(crate) fn leave_region(region: &Arc<Region>) {
    with_turn(|turn| {
        if turn.ref_region.get() == Arc::as_ptr(region) {
            turn.release_region_refs();
        }
    });
}

/// Puts a reference to this region into the reserve of this thread's poll, if there is one and it
/// has none to another: the caller no longer has it then.
#[inline]
pub(crate) fn return_region_ref(region: *const Region) -> bool {
    let put = |turn: &PollContext| {
        let ref_region = turn.ref_region.get();
        let left = turn.region_refs.get();
        let fits = left < u32::MAX && (left == 0 || ref_region == region);
        if fits {
            turn.ref_region.set(region);
            turn.region_refs.set(left + 1);
        }
        fits
    };
    with_turn(put).unwrap_or(false)
}

/// Has the host run others now, if it likes to and the poll can be left here: not while a panic
/// unwinds, nor within a callback or a walk that notes on this thread where it is.
#[cfg(feature = "lab")]
pub(crate) fn pause() {
    #[cfg(all(debug_assertions, not(loom)))]
    assert!(!crate::spinlock::count::any(), "a point under a lock, for which others would wait");
    if can_be_left() {
        with_turn(|turn| turn.task.region.core.host.pause());
    }
}

/// Whether what this thread has noted about the poll is no more than which one it is.
#[cfg(feature = "lab")]
fn can_be_left() -> bool {
    !std::thread::panicking()
        && !crate::force::is_dropping_by_force()
        && !crate::core::guard::is_inside_callback()
        && !crate::region::walk::is_walking()
}

/// A poll that was left in the middle.
#[cfg(feature = "lab")]
#[derive(Debug)]
#[must_use = "the poll is to be returned to"]
pub struct Left(*const PollContext);

/// Leaves the poll of this thread, which then has none.
#[cfg(feature = "lab")]
pub fn leave_poll() -> Left {
    Left(CURRENT.with(|current| current.replace(ptr::null())))
}

/// Returns to a poll that was left.
///
/// # Safety
/// The caller is on the stack on which that poll runs, within it, and no poll goes on that has
/// begun on this thread since it was left, but for those that were left as well.
#[cfg(feature = "lab")]
pub unsafe fn return_to_poll(left: Left) {
    CURRENT.with(|current| current.set(left.0));
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

/// Whether this thread is polling `task`, inside no node.
#[inline]
pub(crate) fn is_bare(task: &Header) -> bool {
    let bare =
        |turn: &PollContext| ptr::eq(&raw const **turn.task, task) && turn.node.get().is_null();
    with_turn(bare).unwrap_or(false)
}

/// The parts of a task around the caller, from the inside out, but for those that this crate has
/// made for itself.
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
    let own = file!().strip_suffix("task/context.rs").unwrap_or_default();
    let file = at.file();
    !own.is_empty() && (file.starts_with(own) || file.replace("runtime", "task").starts_with(own))
}

/// Looks at the chain of `task` from the inside out, if this thread is polling it: the first
/// answer. The outer error says that it is not.
pub(crate) fn find<R>(
    task: &Header,
    mut look: impl FnMut(&Node) -> Option<R>,
) -> Result<Option<R>, Elsewhere> {
    let here = |turn: &PollContext| ptr::eq(&raw const **turn.task, task).then(|| turn.node.get());
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

/// Runs `f` as if this thread were polling `task`, which may do so many operations at once.
#[cfg(all(test, not(loom)))]
pub(crate) fn as_if_polled<R>(task: &TaskRef, operations: u32, f: impl FnOnce() -> R) -> R {
    let turn = PollContext::new(ManuallyDrop::new(task.clone()), operations, 0);
    let answer = turn.run(f);
    if turn.is_woken() {
        crate::task::poll::wake(&turn.task);
    }
    drop(ManuallyDrop::into_inner(turn.task));
    answer
}
