//! What a cell answers without the law, against the law.

use super::*;
use crate::Cx;
use crate::core::{Core, Settings};
use crate::operation::Operation;
use crate::raw::contain_panic;
use crate::spawn::{Plan, make};
use crate::test_util::{Timeless, keep_task, loose_region, scheduled};
use asx_kernel::budget::Budget;
use asx_kernel::cancel::Kind;
use asx_kernel::lanes::Place;
use asx_kernel::task::TaskState;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Waker;

/// A task that is never polled, and its entry.
fn task(budget: Budget) -> (Runnable, crate::Task<(), ()>) {
    let plan = Plan { budget: Some(budget), ..Plan::default() };
    // SAFETY: Send and 'static.
    let (entry, task) = unsafe { make(&loose_region(), plan, async |_: Cx| Ok(())) };
    (entry.unwrap().unwrap(), task)
}

/// Where the scheduler's law puts a task.
fn law(state: TaskState, budget: Budget, cleanup: Priority) -> Place {
    match budget.deadline {
        _ if state.in_cancel_lane() => Place::cancel(budget.priority.max(cleanup)),
        Some(deadline) => Place::timed(deadline),
        None => Place::ready(budget.priority),
    }
}

#[test]
fn plain_means_the_ready_lane_at_the_usual_priority() {
    let priorities = [0, 127, 128, 129, 210, 255].map(Priority);
    let deadlines = [None, Some(Time::from_nanos(1)), Some(Time::MAX)];
    for (priority, deadline) in
        priorities.into_iter().flat_map(|priority| deadlines.map(|deadline| (priority, deadline)))
    {
        let budget = Budget { priority, deadline, ..Budget::INFINITE };
        let (entry, handle) = task(budget);
        let kind = Kind::Timeout;
        let cleanup = Priority(kind.cleanup().priority);
        let check = |expected: TaskState| {
            let state = entry.header().word.load().state();
            assert_eq!(state, expected);
            let place = law(state, budget, cleanup);
            assert_eq!(entry.place(), place);
            assert_eq!(entry.is_plain(), place == Place::ready(Priority::DEFAULT), "{place:?}");
        };
        check(TaskState::Created);
        // Rule 1: the poll's, which becomes the next entry's.
        entry.header().word.add_reference();
        let word = &entry.header().word;
        assert!(word.begin_unsigned(true, false).is_some());
        check(TaskState::Running);
        assert!(handle.cancel_with(entry.header().region().reason(kind)));
        check(TaskState::CancelRequested);
        assert!(word.acknowledge().is_some());
        check(TaskState::Cancelling);
        assert!(word.body_ended());
        check(TaskState::Finalizing);
        // The request asked for one more poll, which ends it.
        assert!(word.end_poll(0) == PollEnd::Requeue);
        // SAFETY: rule 1: what was the poll's.
        let again = unsafe { Runnable::new(entry.as_ptr()) };
        assert!(again.run());
    }
}

/// A task with this name, which its cell keeps.
fn named<B>(name: &Arc<str>, body: impl FnOnce(Cx) -> B) -> (Runnable, crate::Task<(), ()>)
where
    B: Future<Output = Result<(), ()>>,
{
    let attrs = Some(Box::new(TaskAttrs { name: Some(name.clone()), ..TaskAttrs::default() }));
    let plan = Plan { attrs, ..Plan::default() };
    // SAFETY: polled and dropped on this thread only, and ended by the tests that make it.
    let (entry, task) = unsafe { make(&loose_region(), plan, body) };
    (entry.unwrap().unwrap(), task)
}

/// What a poll makes of its own task and keeps, and what it drops of what was made elsewhere, are
/// references like any other, however many there are.
#[test]
fn references_made_and_dropped_in_a_poll_keep_the_cell_no_less_and_no_longer() {
    let few = RESERVE as usize / 2;
    for (before, made, dropped) in [
        (0, 0, 0),
        (0, 3, 0),
        (3, 0, 3),
        (5, 3, 7),
        (0, few * 5, few),
        (few * 5, 2, few * 5),
        (few * 5, few * 5, few * 9),
    ] {
        let name: Arc<str> = Arc::from("freed?");
        let kept = Arc::new(std::sync::Mutex::new(Vec::new()));
        let own = kept.clone();
        let mut first = None;
        let (entry, task) = named(&name, |cx| {
            first = Some(cx.clone());
            let mut polls = 0;
            std::future::poll_fn(move |_| {
                polls += 1;
                let mut kept = own.lock().unwrap();
                kept.extend(std::iter::repeat_n(cx.clone(), made));
                kept.truncate(before + made - dropped);
                if polls < 2 { Poll::Pending } else { Poll::Ready(Ok(())) }
            })
        });
        kept.lock().unwrap().extend(std::iter::repeat_n(first.unwrap(), before));
        assert!(entry.run() && !task.is_finished());
        let task_ref = task.to_ref();
        assert_eq!(task_ref.word.wake(), Woken::Enqueue);
        // SAFETY: the wake has counted a reference for it.
        assert!(unsafe { Runnable::new(task_ref.as_ptr()) }.run() && task.is_finished());
        drop(task_ref);
        drop(task);
        let mut left = std::mem::take(&mut *kept.lock().unwrap());
        assert_eq!(left.len(), before + made - dropped);
        while let Some(cx) = left.pop() {
            assert_eq!(Arc::strong_count(&name), 2, "somebody has a context");
            drop(cx);
        }
        assert_eq!(Arc::strong_count(&name), 1, "nobody has");
    }
}

/// By reference, by value, and several times: of all wakes of a poll by its own task one makes an
/// entry, when the poll is over, and one that comes after the end of the task is nobody's.
#[test]
fn a_task_that_wakes_itself_has_one_entry_after_the_poll() {
    let region = loose_region();
    let stale = || region.core.health().stale_wakes;
    for (times, by_value) in [(0, false), (1, false), (1, true), (3, false), (3, true)] {
        let kept = Arc::new(std::sync::Mutex::new(None));
        let mut polls = 0;
        let own = kept.clone();
        let body = |_: Cx| {
            std::future::poll_fn(move |context| {
                for _ in 0..times {
                    let waker = context.waker().clone();
                    if by_value { waker.wake() } else { waker.wake_by_ref() }
                }
                *own.lock().unwrap() = Some(context.waker().clone());
                polls += 1;
                if polls < 2 { Poll::Pending } else { Poll::Ready(Ok::<(), ()>(())) }
            })
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&region, Plan::default(), body) };
        assert!(entry.unwrap().unwrap().run() && !task.is_finished());
        let task_ref = task.to_ref();
        let is_scheduled = times > 0;
        assert_eq!(task_ref.word.load().is(SCHEDULED), is_scheduled);
        wake_task(&task_ref);
        let entry = scheduled(&task_ref).expect("one entry");
        assert!(scheduled(&task_ref).is_none(), "and no other");
        assert!(entry.run() && task.is_finished());
        assert!(!task_ref.word.load().is(SCHEDULED));
        let before = stale();
        kept.lock().unwrap().take().unwrap().wake();
        assert_eq!(stale(), before + 1);
    }
}

#[test]
fn a_task_that_yields_has_one_entry_after_the_poll() {
    let region = loose_region();
    let body = async |cx: Cx| {
        cx.yield_now().await;
        Ok::<(), ()>(())
    };
    // SAFETY: Send and 'static.
    let (entry, task) = unsafe { make(&region, Plan::default(), body) };
    assert!(entry.unwrap().unwrap().run() && !task.is_finished());
    let task_ref = task.to_ref();
    assert!(task_ref.word.load().is(SCHEDULED));
    assert_eq!(task_ref.word.wake(), Woken::Pending);
    let entry = scheduled(&task_ref).expect("one entry");
    assert!(scheduled(&task_ref).is_none() && entry.run() && task.is_finished());
}

/// A future that is polled with a waker of somebody's own: that one is told, and the task is not.
#[test]
fn a_yield_inside_another_waker_wakes_that_one() {
    #[derive(Default)]
    struct Count(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let region = loose_region();
    let count = Arc::new(Count::default());
    let waker = std::task::Waker::from(count.clone());
    let body = |cx: Cx| {
        let mut inner = cx.yield_now();
        std::future::poll_fn(move |_| {
            let mut context = Context::from_waker(&waker);
            std::pin::Pin::new(&mut inner).poll(&mut context).map(Ok::<(), ()>)
        })
    };
    // SAFETY: Send and 'static.
    let (entry, task) = unsafe { make(&region, Plan::default(), body) };
    assert!(entry.unwrap().unwrap().run() && !task.is_finished());
    let task_ref = task.to_ref();
    assert_eq!((count.0.load(Relaxed), task_ref.word.load().is(SCHEDULED)), (1, false));
    assert_eq!(task_ref.word.wake(), Woken::Enqueue);
    // SAFETY: the wake has counted a reference for it.
    assert!(unsafe { Runnable::new(task_ref.as_ptr()) }.run() && task.is_finished());
}

#[test]
#[should_panic(expected = "polled by the worker it is pinned to")]
fn a_pinned_task_is_not_run_by_a_thread_that_is_no_worker() {
    let plan = Plan { pin: 0, ..Plan::default() };
    // SAFETY: Send and 'static.
    let (entry, task) = unsafe { make(&loose_region(), plan, async |_: Cx| Ok::<(), ()>(())) };
    keep_task(task.to_ref());
    entry.unwrap().unwrap().run();
}

/// Runs entries inside of `schedule`: by the time that returns, the task has ended.
struct AtOnce {
    /// Whether the host was dropped.
    gone: Arc<AtomicBool>,
    /// Whether it was when an entry had been run.
    gone_inside: Arc<AtomicBool>,
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        self.gone.store(true, SeqCst);
    }
}

impl Timeless for AtOnce {
    fn put(&self, entry: Runnable) {
        let gone = self.gone.clone();
        let inside = self.gone_inside.clone();
        assert!(entry.run());
        // If it is, the host itself can't be looked at any more.
        inside.store(gone.load(SeqCst), SeqCst);
    }
}

/// What a wake by value uses keeps the host until the host has returned: its task, which nobody
/// else knows, may end meanwhile, and its runtime with it.
#[test]
fn a_wake_by_value_keeps_the_host_while_the_host_is_called() {
    for by_operation in [false, true] {
        let gone = Arc::<AtomicBool>::default();
        let gone_inside = Arc::<AtomicBool>::default();
        let host = AtOnce { gone: gone.clone(), gone_inside: gone_inside.clone() };
        let region = Core::new(Arc::new(host), Settings::default()).root();
        let kept = Arc::new(std::sync::Mutex::new(None));
        let slot = kept.clone();
        let body = async move |cx: Cx| {
            let mut polls = 0;
            let poll = |context: &mut std::task::Context<'_>| {
                polls += 1;
                if polls == 1 {
                    *slot.lock().unwrap() = Some(context.waker().clone());
                }
                if polls < 2 { Poll::Pending } else { Poll::Ready(()) }
            };
            if by_operation {
                assert!(Operation::run(&cx, poll).await.is_ok());
            } else {
                std::future::poll_fn(poll).await;
            }
            Ok::<(), ()>(())
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&region, Plan::default(), body) };
        assert!(entry.unwrap().unwrap().run());
        drop((task, region));
        assert!(!gone.load(SeqCst), "the task keeps it");
        let waker: Option<Waker> = kept.lock().unwrap().take();
        let waker = waker.expect("the task waits");
        if by_operation {
            contain_panic::wake(waker)
        } else {
            waker.wake()
        }
        assert!(!gone_inside.load(SeqCst), "by an operation: {by_operation}");
        assert!(gone.load(SeqCst), "nothing is left");
    }
}
