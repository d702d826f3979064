//! Programs that reach each limit through public operations. Every host runs them.
//!
//! Each program runs as the only task of a runtime with the limit of its name.
#![allow(dead_code, unreachable_pub)]

use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_kernel::status::{Coded, Status};
use asx_runtime::channel::{ChannelError, ChannelExt as _, session};
use asx_runtime::{
    AdmissionError, Cancelled, Cx, Limits, Policy, Scope, SpawnError, Task, TaskError, TimerError,
};

const HOUR: Duration = Duration::from_secs(3600);

/// Asserts that this was refused because a limit is reached.
#[track_caller]
fn assert_refused<T, E: Coded + std::fmt::Debug>(result: Result<T, E>) {
    let error = result.err().expect("it was admitted");
    assert_eq!(error.status(), Status::ResourceExhausted, "{error:?}");
}

type Waiting = Task<Cancelled, Cancelled>;

/// A task that waits for its cancel.
fn waiting(s: &Scope<Cancelled>) -> Result<Waiting, SpawnError> {
    s.task("waits").try_spawn(async |cx: Cx| Ok(cx.cancelled().await))
}

/// Repeats an operation until it is refused. Returns what was admitted.
#[track_caller]
fn fill<T, E: Coded + std::fmt::Debug>(mut admit: impl FnMut() -> Result<T, E>) -> Vec<T> {
    let mut admitted = Vec::new();
    loop {
        assert!(admitted.len() < 1000, "nothing is refused");
        match admit() {
            Ok(one) => admitted.push(one),
            refused => {
                assert_refused(refused);
                return admitted;
            }
        }
    }
}

/// Runs a body in a scope that is cancelled at its end.
async fn in_scope<T>(cx: &Cx, body: impl AsyncFnOnce(&Scope<Cancelled>) -> T) -> T {
    let settings = cx.scope_with(Policy::CollectAll);
    let outcome = settings.run(async |s: Scope<Cancelled>| {
        let value = body(&s).await;
        s.cancel("the end");
        Ok(value)
    });
    outcome.await.expect("the body ends by itself")
}

/// The limits that each of the following programs needs.
pub fn limits_of(name: &str) -> Limits {
    let limits = Limits::default();
    match name {
        "tasks" => Limits { tasks: 4, ..limits },
        "regions" => Limits { regions: 4, ..limits },
        "obligations" => Limits { obligations: 3, ..limits },
        "channels" => Limits { channels: 3, ..limits },
        "ready_queue" => Limits { ready_queue: 3, ..limits },
        "timed_queue" => Limits { timed_queue: 3, ..limits },
        "memory" => Limits { memory: 256 * 8, ..limits },
        name => panic!("no program is called {name}"),
    }
}

/// The programs that need one worker, and those that run with any number.
pub const ANY_WORKERS: [&str; 5] = ["tasks", "regions", "obligations", "channels", "memory"];
pub const ONE_WORKER: [&str; 2] = ["ready_queue", "timed_queue"];

pub async fn run(name: &'static str, cx: Cx) {
    match name {
        "tasks" => tasks(&cx).await,
        "regions" => regions(&cx).await,
        "obligations" => obligations(&cx).await,
        "channels" => channels(&cx).await,
        "ready_queue" => queue(&cx, waiting).await,
        "timed_queue" => {
            let within = |s: &Scope<Cancelled>| {
                s.task("waits").within(HOUR).try_spawn(async |cx: Cx| Ok(cx.cancelled().await))
            };
            queue(&cx, within).await;
        }
        "memory" => memory(&cx).await,
        name => panic!("no program is called {name}"),
    }
}

/// The program is a task itself. A task that has ended no longer counts, and finalizers always run.
async fn tasks(cx: &Cx) {
    in_scope(cx, async |s| {
        let mut admitted = fill(|| waiting(s));
        assert_eq!(admitted.len(), 3);
        let Err(TaskError::Cancelled(refused)) = s.spawn(async |_| Ok(())).await else {
            panic!("it was admitted")
        };
        assert_eq!(refused.kind(), Kind::ResourceUnavailable);
        s.defer(async |_| {}).expect("a finalizer is not limited");
        let ended = admitted.pop().unwrap();
        ended.cancel("one");
        let _ = ended.await;
        assert_eq!(fill(|| waiting(s)).len(), 1);
    })
    .await;
}

/// The number of scopes inside each other that are admitted.
async fn nested(cx: &Cx) -> usize {
    let inner = async |_: Scope<Cancelled>| Ok(1 + Box::pin(nested(cx)).await);
    match cx.try_scope(inner).await {
        Ok(depth) => depth,
        Err(TaskError::Cancelled(refused)) => {
            assert_eq!(refused.kind(), Kind::ResourceUnavailable);
            0
        }
        Err(error) => panic!("{error}"),
    }
}

/// A scope that has ended no longer counts.
async fn regions(cx: &Cx) {
    let depth = nested(cx).await;
    assert!((1..4).contains(&depth), "{depth}");
    assert_eq!(nested(cx).await, depth);
}

/// Obligations and permits of tracked senders count together.
async fn obligations(cx: &Cx) {
    in_scope(cx, async |_| {
        let (sender, receiver) = cx.channel::<u8>(8).expect("channels are not limited");
        let sender = sender.tracked();
        let mut held = fill(|| cx.obligation());
        assert_eq!(held.len(), 3);
        let limit = AdmissionError::LimitReached;
        let refused = sender.try_reserve().err();
        assert_eq!(refused, Some(session::TryReserveError::Refused(limit)));
        let refused = sender.reserve(cx).await.err();
        assert_eq!(refused, Some(session::ReserveError::Refused(limit)));
        held.pop().unwrap().commit().expect("it is reserved");
        let permit = sender.reserve(cx).await.expect("there is room again");
        assert_refused(cx.obligation());
        let _ = permit.send(1);
        held.push(cx.obligation().expect("there is room again"));
        held.into_iter().for_each(|one| one.abort().expect("it is reserved"));
        drop((sender, receiver));
    })
    .await;
}

/// A channel with one side left counts.
async fn channels(cx: &Cx) {
    in_scope(cx, async |_| {
        let mut ends = fill(|| cx.channel::<u8>(1));
        assert_eq!(ends.len(), 3);
        let (sender, receiver) = ends.pop().unwrap();
        drop(sender);
        let limit = AdmissionError::LimitReached;
        assert_eq!(cx.channel::<u8>(1).err(), Some(ChannelError::Refused(limit)));
        drop(receiver);
        let _ends = cx.channel::<u8>(1).expect("there is room again");
        assert_refused(cx.channel::<u8>(1));
    })
    .await;
}

/// The running program is in no queue, and neither are tasks that have ended.
async fn queue(cx: &Cx, spawn: impl Fn(&Scope<Cancelled>) -> Result<Waiting, SpawnError>) {
    in_scope(cx, async |s| {
        for _ in 0..2 {
            let queued = fill(|| spawn(s));
            assert_eq!(queued.len(), 3);
            queued.iter().for_each(|task| assert!(task.cancel("enough")));
            for task in queued {
                let _ = task.await;
            }
        }
    })
    .await;
}

/// Tasks, scopes, obligations, timers and channels share one estimate.
async fn memory(cx: &Cx) {
    in_scope(cx, async |s| {
        let mut held = fill(|| cx.obligation());
        assert!(held.len() > 8, "{}", held.len());
        let far = cx.now() + HOUR;
        assert_eq!(cx.try_sleep(far).err(), Some(TimerError::LimitReached));
        assert_refused(waiting(s));
        assert_refused(cx.channel::<u8>(1));
        assert_eq!(nested(cx).await, 0, "the scope was admitted");
        held.pop().unwrap().commit().expect("it is reserved");
        // 64 bytes are free: room for one timer.
        let timer = cx.try_sleep(far).expect("there is room again");
        assert_refused(cx.obligation());
        drop(timer);
        // 256 bytes: room for one task.
        held.drain(..4).for_each(|one| one.commit().expect("it is reserved"));
        let _task = waiting(s).expect("there is room again");
        assert_refused(waiting(s));
        held.into_iter().for_each(|one| one.commit().expect("it is reserved"));
    })
    .await;
}

/// With a full journal that refuses, new work is refused and running tasks can end.
pub async fn full_journal(cx: Cx) {
    in_scope(&cx, async |s| {
        let started = waiting(s).expect("there is room");
        let owed = cx.obligation().expect("there is room");
        let timer = cx.try_sleep(cx.now() + HOUR).expect("there is room");
        let (sender, mut receiver) = cx.channel::<u8>(1).expect("there is room");
        // The journal fills up.
        while let Ok(one) = cx.obligation() {
            one.commit().expect("it is reserved");
        }
        assert_refused(waiting(s));
        assert_refused(cx.obligation());
        assert_refused(cx.channel::<u8>(1));
        assert_eq!(cx.try_sleep(cx.now() + HOUR).err(), Some(TimerError::LimitReached));
        assert_eq!(nested(&cx).await, 0, "the scope was admitted");
        sender.send(&cx, 7).await.expect("an existing channel works");
        assert_eq!(receiver.recv(&cx).await.ok(), Some(7));
        owed.commit().expect("an obligation can be resolved");
        drop(timer);
        assert!(started.cancel("enough"));
        let _ = started.await;
    })
    .await;
}
