//! Wakers that are not those of a task: a combinator of another crate gives each of its children a
//! waker that records which child was woken. The order of such wakes is visible to the program, so
//! a reduced search must try every order that a host may have.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use asx_lab::{Grain, How, Report, check};
use asx_runtime::channel::oneshot;
use asx_runtime::channel::oneshot::{Answer, Reply};
use asx_runtime::sync::Notify;
use asx_runtime::{Cancelled, Cx, Scope};

/// The children that were woken, in order, and the waker of the task.
#[derive(Default)]
struct Ready {
    woken: StdMutex<VecDeque<usize>>,
    parent: StdMutex<Option<Waker>>,
}

/// Wakes one child.
struct Child {
    number: usize,
    is_woken: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Child {
    fn wake(self: Arc<Self>) {
        if self.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        self.ready.woken.lock().unwrap().push_back(self.number);
        let parent = self.ready.parent.lock().unwrap().take();
        if let Some(parent) = parent {
            parent.wake();
        }
    }
}

type Running<F> = (Pin<Box<F>>, Arc<Child>);

/// As the type of this name in the crate `futures`: polls only the children that were woken, in
/// the order of their wakes.
struct FuturesUnordered<F> {
    /// `None` once the child has ended.
    children: Vec<Option<Running<F>>>,
    ready: Arc<Ready>,
}

impl<F: Future> FuturesUnordered<F> {
    fn new(futures: impl IntoIterator<Item = F>) -> FuturesUnordered<F> {
        let ready = Arc::new(Ready::default());
        let child = |(number, future)| {
            ready.woken.lock().unwrap().push_back(number);
            let is_woken = AtomicBool::new(true);
            Some((Box::pin(future), Arc::new(Child { number, is_woken, ready: ready.clone() })))
        };
        let children = futures.into_iter().enumerate().map(child).collect();
        FuturesUnordered { children, ready }
    }

    /// The next child that has ended and its output; `None` once all have.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        if self.children.iter().all(Option::is_none) {
            return Poll::Ready(None);
        }
        *self.ready.parent.lock().unwrap() = Some(context.waker().clone());
        loop {
            let Some(number) = self.ready.woken.lock().unwrap().pop_front() else {
                return Poll::Pending;
            };
            let Some((future, child)) = &mut self.children[number] else { continue };
            child.is_woken.store(false, Ordering::Release);
            let waker = Waker::from(child.clone());
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.children[number] = None;
                return Poll::Ready(Some((number, output)));
            }
        }
    }

    async fn next(&mut self) -> Option<(usize, F::Output)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls the children that were woken, once.
    async fn try_next(&mut self) -> Option<(usize, F::Output)> {
        poll_fn(|context| match self.poll_next(context) {
            Poll::Ready(next) => Poll::Ready(next),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }
}

/// A program that fails in some order is found, and is never proved by any search.
#[track_caller]
fn finds(program: impl AsyncFn(Cx)) {
    let report = check(async |cx: Cx| program(cx).await).run();
    assert!(report.failure.is_some(), "{report}");
    // The reduction itself finds it, without random runs.
    let report = reduced(&program);
    assert!(report.failure.is_some(), "{report}");
}

/// A program that fails in no order passes. On a slow machine a timer may be due before it is
/// armed, so that it wakes nothing: these checks have exact times.
#[track_caller]
fn passes(program: impl AsyncFn(Cx)) {
    let report = check(async |cx: Cx| program(cx).await).exact_time().run();
    assert!(report.failure.is_none(), "{report}");
    let report = reduced(&program);
    assert!(report.failure.is_none() && report.proof.is_some(), "{report}");
}

fn reduced(program: impl AsyncFn(Cx)) -> Report {
    let check = check(async |cx: Cx| program(cx).await);
    let check = check.transparent().how(How::Dpor).grain(Grain::Operation);
    check.runs(20_000).time(Duration::from_secs(600)).run()
}

/// Runs both in tasks, and waits for them.
async fn both<A, B>(cx: &Cx, one: impl FnOnce(Cx) -> A, two: impl FnOnce(Cx) -> B)
where
    A: Future<Output = Result<(), Cancelled>> + Send + 'static,
    B: Future<Output = Result<(), Cancelled>> + Send + 'static,
{
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(one);
        s.spawn(two);
        Ok(())
    })
    .await
    .unwrap();
}

/// The order in which two channels became ready, once both have.
async fn ready_order(cx: &Cx) -> Vec<usize> {
    let (one, mut first) = oneshot::<()>();
    let (two, mut second) = oneshot::<()>();
    let mut order = Vec::new();
    let receives = [&mut first, &mut second].map(|channel| channel.recv(cx));
    let mut all = FuturesUnordered::new(receives);
    assert!(all.try_next().await.is_none());
    let send = |channel: Reply<()>| {
        async move |_: Cx| {
            channel.send(()).unwrap();
            Ok(())
        }
    };
    both(cx, send(one), send(two)).await;
    while let Some((number, _)) = all.next().await {
        order.push(number);
    }
    order
}

#[test]
fn children_woken_by_two_tasks_are_ready_in_either_order() {
    finds(async |cx: Cx| assert_eq!(ready_order(&cx).await, [0, 1]));
    finds(async |cx: Cx| assert_eq!(ready_order(&cx).await, [1, 0]));
    passes(async |cx: Cx| assert_eq!(ready_order(&cx).await.len(), 2));
}

/// The order in which the timers of two tasks have woken their wakers.
async fn fired_order(cx: &Cx, deadlines: [Duration; 2]) -> Vec<usize> {
    let start = cx.now();
    let log = Arc::new(StdMutex::new(Vec::new()));
    let wait = |number: usize| {
        let log = log.clone();
        let deadline = start + deadlines[number];
        async move |cx: Cx| {
            let own = Arc::new(Logged { number, log, task: StdMutex::default() });
            let waker = Waker::from(own.clone());
            let mut sleep = cx.sleep_until(deadline);
            poll_fn(|context| {
                *own.task.lock().unwrap() = Some(context.waker().clone());
                Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker))
            })
            .await
        }
    };
    both(cx, wait(0), wait(1)).await;
    Arc::into_inner(log).unwrap().into_inner().unwrap()
}

/// Writes its number into a log, then wakes a task.
struct Logged {
    number: usize,
    log: Arc<StdMutex<Vec<usize>>>,
    task: StdMutex<Option<Waker>>,
}

impl Wake for Logged {
    fn wake(self: Arc<Self>) {
        self.log.lock().unwrap().push(self.number);
        let task = self.task.lock().unwrap().take();
        task.unwrap().wake();
    }
}

const SOON: Duration = Duration::from_millis(10);
const LATER: Duration = Duration::from_millis(11);

#[test]
fn equal_timers_of_two_tasks_fire_in_either_order() {
    finds(async |cx: Cx| assert_eq!(fired_order(&cx, [SOON, SOON]).await, [0, 1]));
    finds(async |cx: Cx| assert_eq!(fired_order(&cx, [SOON, SOON]).await, [1, 0]));
    passes(async |cx: Cx| assert_eq!(fired_order(&cx, [SOON, SOON]).await.len(), 2));
}

/// The order of different deadlines is fixed, also where both are due in one step.
#[test]
fn timers_fire_in_the_order_of_their_deadlines() {
    passes(async |cx: Cx| assert_eq!(fired_order(&cx, [SOON, LATER]).await, [0, 1]));
    passes(async |cx: Cx| assert_eq!(fired_order(&cx, [LATER, SOON]).await, [1, 0]));
}

/// Equal timers fire in the order in which they were armed.
#[test]
fn equal_timers_of_one_task_fire_in_the_order_in_which_they_were_armed() {
    passes(async |cx: Cx| {
        let deadline = cx.now() + SOON;
        let sleeps = [cx.sleep_until(deadline), cx.sleep_until(deadline)];
        let mut all = FuturesUnordered::new(sleeps);
        let mut order = Vec::new();
        while let Some((number, _)) = all.next().await {
            order.push(number);
        }
        assert_eq!(order, [0, 1]);
    });
}

/// The order in which two children of one task arm equal timers is that of the messages which they
/// wait for first.
async fn armed_order(cx: &Cx) -> Vec<usize> {
    let (one, first) = oneshot::<()>();
    let (two, second) = oneshot::<()>();
    let deadline = cx.now() + SOON;
    let child = |mut channel: Answer<()>| async move {
        channel.recv(cx).await.unwrap();
        cx.sleep_until(deadline).await.unwrap();
    };
    let mut all = FuturesUnordered::new([first, second].map(child));
    assert!(all.try_next().await.is_none());
    let send = |channel: Reply<()>| {
        async move |_: Cx| {
            channel.send(()).unwrap();
            Ok(())
        }
    };
    both(cx, send(one), send(two)).await;
    let mut order = Vec::new();
    while let Some((number, ())) = all.next().await {
        order.push(number);
    }
    order
}

#[test]
fn equal_timers_armed_after_two_messages_fire_in_either_order() {
    finds(async |cx: Cx| assert_eq!(armed_order(&cx).await, [0, 1]));
    finds(async |cx: Cx| assert_eq!(armed_order(&cx).await, [1, 0]));
    passes(async |cx: Cx| assert_eq!(armed_order(&cx).await.len(), 2));
}

/// Whether the child that is woken during a poll of the other one is ready in the same poll.
async fn woken_in_the_middle(cx: &Cx) -> bool {
    let (one, mut first) = oneshot::<()>();
    let (two, mut second) = oneshot::<()>();
    one.send(()).unwrap();
    let both_are_ready = Arc::new(AtomicBool::new(false));
    let seen = both_are_ready.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(async move |cx: Cx| {
            let mut all = FuturesUnordered::new([&mut second, &mut first].map(|it| it.recv(&cx)));
            let first = all.try_next().await.unwrap();
            assert_eq!(first.0, if all.children[0].is_none() { 0 } else { 1 });
            if first.0 == 1 {
                seen.store(all.try_next().await.is_some(), Ordering::Relaxed);
            }
            Ok(())
        });
        s.spawn(async move |_: Cx| {
            // The receiver may be gone.
            let _ = two.send(());
            Ok(())
        });
        Ok(())
    })
    .await
    .unwrap();
    both_are_ready.load(Ordering::Relaxed)
}

#[test]
fn a_child_may_be_woken_while_another_one_is_polled() {
    finds(async |cx: Cx| assert!(!woken_in_the_middle(&cx).await));
    finds(async |cx: Cx| assert!(woken_in_the_middle(&cx).await));
}

/// How many children of one task are ready at once that wait for one notification of all.
async fn ready_at_once(cx: &Cx) -> usize {
    let notify = Arc::new(Notify::new());
    let all = notify.clone();
    let count = Arc::new(StdMutex::new(0));
    let counted = count.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        let (is_ready, mut ready) = oneshot::<()>();
        s.spawn(async move |cx: Cx| {
            let waits = [notify.notified(&cx), notify.notified(&cx)];
            let mut all = FuturesUnordered::new(waits);
            assert!(all.try_next().await.is_none());
            is_ready.send(()).unwrap();
            all.next().await.unwrap().1?;
            *counted.lock().unwrap() = 1 + usize::from(all.try_next().await.is_some());
            while all.next().await.is_some() {}
            Ok(())
        });
        s.spawn(async move |cx: Cx| {
            ready.recv(&cx).await.unwrap();
            all.notify_waiters();
            Ok(())
        });
        Ok(())
    })
    .await
    .unwrap();
    Arc::into_inner(count).unwrap().into_inner().unwrap()
}

#[test]
fn a_task_may_run_between_the_wakes_of_its_children() {
    finds(async |cx: Cx| assert_eq!(ready_at_once(&cx).await, 2));
    finds(async |cx: Cx| assert_eq!(ready_at_once(&cx).await, 1));
    passes(async |cx: Cx| assert_ne!(ready_at_once(&cx).await, 0));
}
