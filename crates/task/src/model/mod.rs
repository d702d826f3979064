//! Every interleaving of the task cell and of regions, explored by loom.
//!
//! The host here is a line of entries: whoever takes one runs it, so that a model's threads are its
//! workers. A lost wake shows as a task that has not ended when the line is empty; an entry too
//! many as one that finds nothing to run; a missing ordering as a race, since loom watches what the
//! cells hold; a wrong count of references as a name that is still shared, or no longer.

mod cell;
mod job;
mod region;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake, Waker};

use asx_kernel::budget::Budget;
use loom::thread;

use crate::core::{Core, Settings};
use crate::prim::{Mutex, atomic, lock};
use crate::raw::TaskAttrs;
use crate::region::{Policy, Region};
use crate::spawn::{Plan, spawn};
use crate::test_util::Timeless;
use crate::{Begun, Cancelled, Cx, RunContext, Runnable, Task};

/// Runs all interleavings in which threads are interrupted at most three times.
fn explore(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

/// Runs `a` on this thread and `b` on another, in models that are explored both ways: loom
/// remembers only the last access to an atomic, and so overlooks some orders in which the thread
/// that starts is overtaken.
fn race<A: 'static, B: 'static>(
    swap: bool,
    a: impl FnOnce() -> A + 'static,
    b: impl FnOnce() -> B + 'static,
) -> (A, B) {
    if swap {
        let a = thread::spawn(a);
        let b = b();
        (a.join().unwrap(), b)
    } else {
        let b = thread::spawn(b);
        (a(), b.join().unwrap())
    }
}

/// As [`explore`], with which of two threads is to start.
fn explore_race(run: impl Fn(bool) + Sync + Send + Copy + 'static) {
    explore(move || run(false));
    explore(move || run(true));
}

/// A host that keeps entries in a line.
#[derive(Default)]
struct Line {
    /// Each with whether it is in another lane than that of cancels.
    entries: Mutex<VecDeque<(Runnable, bool)>>,
    /// Something to look at after an entry was put into the line, as a real host looks at who is to
    /// be woken.
    looks: atomic::AtomicUsize,
    /// How many calls of `schedule` have not returned. None of loom's.
    calls: AtomicUsize,
}

impl Drop for Line {
    fn drop(&mut self) {
        // Has loom try this before and after each look.
        self.looks.store(1, Relaxed);
        assert_eq!(self.calls.load(Relaxed), 0, "the host is gone and somebody is still in it");
    }
}

impl Timeless for Line {
    fn put(&self, entry: Runnable) {
        self.calls.fetch_add(1, Relaxed);
        let plain = entry.is_plain();
        lock(&self.entries).push_back((entry, plain));
        self.looks.load(Relaxed);
        self.calls.fetch_sub(1, Relaxed);
    }
}

impl Line {
    /// Runs the first entry: whether it polled, or `None` if the line is empty.
    fn run_one(&self) -> Option<bool> {
        let (entry, plain) = lock(&self.entries).pop_front()?;
        let context = RunContext { plain, ..RunContext::UNCHOSEN };
        // SAFETY: nothing is pinned here.
        Some(unsafe { entry.begin(context) }.is_some_and(Begun::run))
    }

    /// Runs entries until none is left: how many found nothing to run.
    fn run_all(&self) -> usize {
        std::iter::from_fn(|| self.run_one()).filter(|polled| !polled).count()
    }
}

/// A line and a region whose tasks stand in it.
#[derive(Clone)]
struct Place {
    line: Arc<Line>,
    region: Arc<Region>,
}

impl Place {
    fn new() -> Place {
        let line = Arc::new(Line::default());
        Place { region: Core::new(line.clone(), Settings::default()).root(), line }
    }

    /// A region inside.
    fn child(&self, policy: Policy) -> Place {
        let region = self.region.open_child(policy, Budget::INFINITE, None).unwrap();
        Place { line: self.line.clone(), region }
    }

    /// Starts a task. Its cell is freed when nobody but the caller has the name.
    fn spawn<F, B, T>(&self, name: &Arc<str>, body: F) -> Task<T, Fault>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = Result<T, Fault>> + Send + 'static,
        T: Send + 'static,
    {
        let attrs = Some(Box::new(TaskAttrs { name: Some(name.clone()), ..TaskAttrs::default() }));
        let plan = Plan { attrs, ..Plan::default() };
        // SAFETY: Send and 'static.
        unsafe { spawn(&self.region, plan, body) }.1
    }

    /// Ends the region, runs what is left, and wants everything to be over.
    fn finish(&self) {
        self.region.end();
        self.line.run_all();
        assert!(self.region.poll_closed(Waker::noop()));
    }
}

fn name() -> Arc<str> {
    Arc::from("task")
}

/// Whether the cell of the task of that name is gone.
fn is_freed(name: &Arc<str>) -> bool {
    Arc::strong_count(name) == 1
}

/// The error of tasks: cancelled, or a value that counts its drops.
enum Fault {
    Cancelled,
    Counted(#[expect(dead_code, reason = "only its end is looked at")] Drops),
}

impl From<Cancelled> for Fault {
    fn from(_: Cancelled) -> Self {
        Fault::Cancelled
    }
}

/// Counts the drops of its clones. The count is none of loom's: no model depends on when it
/// changes.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Counts its wakes.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wakes {
    fn new() -> (Arc<Wakes>, Waker) {
        let wakes = Arc::new(Wakes::default());
        (wakes.clone(), Waker::from(wakes))
    }

    fn count(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// What a task waits for: a flag, and the waker of who waits. Only the task's own word orders the
/// flag.
#[derive(Default)]
struct Gate {
    open: atomic::AtomicBool,
    waker: std::sync::Mutex<Option<Waker>>,
}

impl Gate {
    fn new() -> Arc<Gate> {
        Arc::default()
    }

    /// Opens without telling anybody.
    fn open(&self) {
        self.open.store(true, Relaxed);
    }

    /// The waker of the task that waits. It must have been polled.
    fn waker(&self) -> Waker {
        self.waker.lock().unwrap().clone().unwrap()
    }

    /// The same, of which none is left here.
    fn take_waker(&self) -> Waker {
        self.waker.lock().unwrap().take().unwrap()
    }

    /// Waits until the gate is open. It forgets its waker then.
    fn pass(self: Arc<Self>) -> impl Future<Output = ()> + Send {
        struct Pass(Arc<Gate>);
        impl Future for Pass {
            type Output = ();
            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                let waker = &mut *self.0.waker.lock().unwrap();
                if self.0.open.load(Relaxed) {
                    *waker = None;
                    return Poll::Ready(());
                }
                waker.get_or_insert_with(|| cx.waker().clone());
                Poll::Pending
            }
        }
        Pass(self)
    }
}
