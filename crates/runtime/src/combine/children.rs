//! Any number of parts, of which only those that were woken are polled.
//!
//! Each child has a waker of its own ([`Slot`]): it puts the child's number into a queue and wakes
//! the task. A poll of the task takes what is in the queue by then, so that a child which wakes
//! itself waits for the next poll. Cancels from around the whole wake no child: when one is noticed
//! all children are polled, once.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::Part;
use crate::prim::lock;
use asx_task::Cx;
use asx_task::combinator::{mark_child_waker, wake_on_cancel};
use asx_task::operation::Registration;
use asx_task::operation::guard;
use asx_task::{Cancelled, Panic};
use std::sync::Mutex;

/// Live children by number, which is the order they were made in.
pub(super) struct Children<F: Future> {
    live: BTreeMap<u64, Child<F>>,
    ready: Arc<Ready>,
    /// The children of the current round; kept for its memory.
    round: Vec<u64>,
    /// Whether the next round is of all children.
    all: bool,
    /// Whether a cancel was noticed around the whole.
    cancelled: bool,
    registration: Registration,
}

struct Child<F: Future> {
    part: Pin<Box<Part<F>>>,
    slot: Arc<Slot>,
    waker: Waker,
}

impl<F: Future> Children<F> {
    pub(super) fn new() -> Children<F> {
        let live = BTreeMap::new();
        let ready = Arc::default();
        let round = Vec::new();
        let registration = Registration::NONE;
        Children { live, ready, round, all: false, cancelled: false, registration }
    }

    pub(super) fn ready(&self) -> &Arc<Ready> {
        &self.ready
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Takes a future in; it is polled in the next round.
    #[cfg_attr(feature = "lab", track_caller)]
    pub(super) fn insert(&mut self, id: u64, future: F) {
        let slot = Slot::new(id, &self.ready);
        let waker = slot.waker();
        self.live.insert(id, Child { part: Box::pin(Part::new(future)), slot, waker });
        self.ready.push(id);
    }

    /// Asks a child to stop; it is polled in the next round.
    pub(super) fn cancel(&mut self, id: u64, cancelled: &Cancelled) {
        if let Some(child) = self.live.get(&id) {
            child.part.cancel(cancelled);
            self.ready.push(id);
        }
    }

    /// Asks the children before this one to stop; all are polled in the next round.
    pub(super) fn cancel_before(&mut self, id: u64, cancelled: &Cancelled) {
        self.live.range(..id).for_each(|(_, child)| child.part.cancel(cancelled));
        self.all = true;
    }

    /// Asks all children to stop; they are polled in the next round. Those that have not begun
    /// never do: the first panic in dropping them.
    pub(super) fn call_off(&mut self, cancelled: &Cancelled) -> Result<(), Panic> {
        let mut result = Ok(());
        self.live.retain(|_, child| {
            result =
                std::mem::replace(&mut result, Ok(())).and(child.part.as_mut().call_off(cancelled));
            child.part.is_live()
        });
        self.all = true;
        result
    }

    /// Has `waker` woken for whatever wakes a child, and looks for a cancel around the whole:
    /// whether it is new.
    pub(super) fn watch(&mut self, cx: &Cx, waker: &Waker) -> bool {
        self.ready.watch(waker);
        wake_on_cancel(cx, waker, &mut self.registration);
        let before = std::mem::replace(&mut self.cancelled, cx.is_cancelled());
        let new = self.cancelled && !before;
        self.all |= new;
        new
    }

    /// Polls the children that were woken; `ended` is told of each that ends. If it answers true
    /// the round is over, and the caller asks the rest to stop: those not polled yet count on it.
    pub(super) fn poll_round(
        &mut self,
        mut ended: impl FnMut(u64, Result<F::Output, Panic>) -> bool,
    ) -> bool {
        self.ready.take(&mut self.round);
        if std::mem::take(&mut self.all) {
            self.round.clear();
            self.round.extend(self.live.keys());
        }
        for id in &self.round {
            let Some(child) = self.live.get_mut(id) else { continue };
            if let Poll::Ready(end) = child.poll() {
                self.live.remove(id);
                if ended(*id, end) {
                    return true;
                }
            }
        }
        false
    }
}

impl<F: Future> Child<F> {
    fn poll(&mut self) -> Poll<Result<F::Output, Panic>> {
        self.slot.clear();
        match self.part.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(panic)) => return Poll::Ready(Err(panic)),
            Poll::Ready(Ok(_)) => {}
        }
        match self.part.as_mut().take() {
            Some(output) => Poll::Ready(Ok(output)),
            None => unreachable!("it ended with an output just now"),
        }
    }
}

/// The children that were woken, and the waker of the task they are in.
#[derive(Default)]
pub(super) struct Ready {
    inner: Mutex<Woken>,
}

#[derive(Default)]
struct Woken {
    queue: Vec<u64>,
    /// Shared, so that under the lock only our own count changes.
    parent: Option<Arc<Waker>>,
}

impl Ready {
    fn push(&self, id: u64) {
        lock(&self.inner).queue.push(id);
    }

    /// Puts what is in the queue into `out`, whose memory is the queue's from then on.
    fn take(&self, out: &mut Vec<u64>) {
        out.clear();
        std::mem::swap(&mut lock(&self.inner).queue, out);
    }

    fn watch(&self, waker: &Waker) {
        if lock(&self.inner).parent.as_ref().is_some_and(|old| old.will_wake(waker)) {
            return;
        }
        // Cloned and dropped outside the lock.
        let waker = Arc::new(waker.clone());
        let old = lock(&self.inner).parent.replace(waker);
        guard::drop_waker(old.and_then(Arc::into_inner));
    }

    /// Wakes the task.
    pub(super) fn wake_parent(&self) {
        let parent = lock(&self.inner).parent.clone();
        if let Some(parent) = parent {
            guard::wake_by_ref(&parent);
            guard::drop_waker(Arc::into_inner(parent));
        }
    }
}

/// What the waker of a child does.
pub(super) struct Slot {
    id: u64,
    /// Whether it was woken since its last poll began.
    woken: AtomicBool,
    ready: Arc<Ready>,
}

impl Slot {
    /// The slot of a child that is to be polled.
    pub(super) fn new(id: u64, ready: &Arc<Ready>) -> Arc<Slot> {
        Arc::new(Slot { id, woken: AtomicBool::new(true), ready: ready.clone() })
    }

    /// Its waker. Only made here, so that all have the same vtable.
    #[inline(never)]
    pub(super) fn waker(self: &Arc<Slot>) -> Waker {
        let waker = Waker::from(self.clone());
        mark_child_waker(&waker);
        waker
    }

    /// Whether it was woken; a wake from here on counts anew.
    pub(super) fn clear(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Has it polled in this poll of the task.
    pub(super) fn mark(&self) {
        self.woken.store(true, Ordering::Release);
    }
}

impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.ready.push(self.id);
            self.ready.wake_parent();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
