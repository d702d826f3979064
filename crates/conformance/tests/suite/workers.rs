//! Several workers: another order, the same ends, and a record the laws allow.

use asx_conformance::{
    Ends, Expressible, Host, Model, Native, Record, Scenario, corpus, expressible, parse_str,
};
use asx_kernel::cancel::Kind;
use asx_kernel::journal::{Event, EventKind};
use asx_native::Runtime;
use asx_runtime::channel::ChannelExt;
use asx_runtime::{Cancelled, Cx, Policy, Scope, channel};
use asx_trace::{Codec, Header, Reader, Writer, refine, verify};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

/// Plays a scenario's ops, whatever they answer.
fn play(host: &mut dyn Host, scenario: &Arc<Scenario>, seed: u64) -> Record {
    host.start(scenario, seed);
    fn all(host: &mut dyn Host, steps: &[asx_conformance::scenario::ScriptStep]) {
        for step in steps {
            if let asx_conformance::scenario::Op::Repeat { times, body } = &step.op {
                (0..*times).for_each(|_| all(host, body));
                continue;
            }
            host.apply(&step.op);
            host.check().unwrap_or_else(|wrong| panic!("after op {}: {wrong}", step.name));
        }
    }
    all(host, &scenario.setup);
    all(host, &scenario.steps);
    host.record()
}

/// Whether what happens between two ops of the script depends on the order of dispatches: then so
/// may the ends.
fn is_stepped(scenario: &Scenario) -> bool {
    let text = format!("{:?} {:?}", scenario.setup, scenario.steps);
    text.contains("StepOn")
}

#[test]
fn two_and_four_workers_come_to_the_same_ends_by_legal_steps() {
    let mut same = 0;
    let mut other = Vec::new();
    for fixture in corpus() {
        let Ok(scenario) = parse_str(&fixture.file, &fixture.text) else { continue };
        let scenario = Arc::new(scenario);
        let Ok(Expressible { scenario, .. }) = expressible(&Native::new(), &scenario) else {
            continue;
        };
        if is_stepped(&scenario) {
            continue;
        }
        let expected = Ends::of(&play(&mut Model::new(), &scenario, 0));
        for workers in [2, 4] {
            // Every op is followed by a check of the record against the laws.
            let got = Ends::of(&play(&mut Native::with_workers(workers), &scenario, 0));
            if got == expected { same += 1 } else { other.push((scenario.id.clone(), workers)) }
        }
    }
    assert!(other.is_empty(), "{other:?}");
    assert!(same > 300, "{same}");
}

/// Tasks that talk, sleep, promise, are cancelled and fail, in nested scopes. Which ends there are
/// is the same in every order.
async fn program(cx: Cx) {
    let outer = cx.scope_with(Policy::CollectAll).run(async |outer: Scope<Cancelled>| {
        for _ in 0..20 {
            let work = async |cx: Cx| {
                let inner = cx.scope_with(Policy::CollectAll).run(|scope| part(&cx, scope));
                inner.await.map_err(|_| cx.checkpoint().expect_err("only a cancel ends it"))
            };
            outer.spawn(work);
        }
        Ok(())
    });
    assert!(outer.await.is_ok());
}

/// One inner scope.
async fn part(cx: &Cx, scope: Scope<Cancelled>) -> Result<(), Cancelled> {
    let (tx, mut rx) = cx.channel::<u32>(2).expect("the scope is open");
    for n in 0..4 {
        let tx = tx.clone();
        scope.spawn(async move |cx: Cx| {
            for _ in 0..8 {
                tx.send(&cx, n).await.map_err(|_| cx.checkpoint().unwrap_err())?;
                cx.yield_now().await;
            }
            cx.obligation().expect("the scope is open").commit().expect("it is new");
            Ok(())
        });
    }
    drop(tx);
    let stuck = scope.spawn(async |cx: Cx| {
        cx.sleep(Duration::from_secs(3600)).await?;
        Ok(())
    });
    scope.spawn(async |cx: Cx| -> Result<(), Cancelled> {
        let leaked = cx.obligation().expect("the scope is open");
        drop(leaked);
        cx.sleep(Duration::from_micros(200)).await?;
        std::panic::resume_unwind(Box::new("on purpose"))
    });
    scope.defer(async |cx: Cx| cx.yield_now().await).expect("the scope is open");
    let mut received = 0;
    while rx.recv(cx).await.is_ok() {
        received += 1;
    }
    assert_eq!(received, 32);
    stuck.cancel(asx_kernel::cancel::Kind::User);
    Ok(())
}

/// How often each end of a task, a region and an obligation is on record.
fn tally(events: &[Event]) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for event in events {
        let end = match event.kind {
            EventKind::TaskEnded { outcome } => format!("task {}", outcome.name()),
            EventKind::RegionOutcome { outcome } => format!("region {}", outcome.name()),
            EventKind::ObligationResolved { to, .. } => format!("obligation {}", to.name()),
            EventKind::CancelWitness { phase, .. } => format!("cancel {}", phase.name()),
            EventKind::Sent { .. } => "sent".to_owned(),
            EventKind::Received {} => "received".to_owned(),
            _ => continue,
        };
        *tally.entry(end).or_insert(0) += 1;
    }
    tally
}

/// Every law holds, of the journal and of the trace that is made of it.
#[track_caller]
fn assert_legal(events: &[Event], workers: usize) {
    refine::check(events).unwrap_or_else(|wrong| panic!("{workers} workers: {wrong}"));
    // The thread in `block_on` decides for itself what it polls.
    let places = if workers == 1 { 1 } else { workers as u64 + 1 };
    let header = Header { workers: places, ..Header::new("workers", "native") };
    let mut writer = Writer::new(Vec::new(), Codec::Binary, &header).unwrap();
    events.iter().for_each(|event| writer.write(&(*event).into()).unwrap());
    let bytes = writer.finish().unwrap();
    let report = verify(&mut Reader::open(&bytes[..]).unwrap(), true);
    assert!(report.holds(), "{workers} workers: {:?}", report.violations);
}

#[test]
fn threads_leave_a_record_the_laws_allow_and_come_to_the_same_ends() {
    let mut first = None;
    for workers in [1, 2, 4, 4, 4] {
        let runtime = Runtime::builder().workers(workers).journal(usize::MAX).build().unwrap();
        runtime.block_on(program);
        let journal = runtime.journal().unwrap();
        assert_eq!(journal.lost, 0);
        assert_legal(&journal.events, workers);
        let tally = tally(&journal.events);
        assert_eq!(&tally, first.get_or_insert_with(|| tally.clone()), "{workers} workers");
    }
    let tally = first.unwrap();
    assert_eq!(tally["task Panicked"], 20);
    assert_eq!(tally["obligation Leaked"], 20);
    assert_eq!((tally["sent"], tally["received"]), (640, 640));
}

/// Jobs of the blocking pool: plain and named ones, one that panics, one asked to stop before it
/// begins, and one while it runs.
async fn jobs(cx: Cx) {
    let all = cx.scope_with(Policy::CollectAll).run(async |s: Scope<Cancelled>| {
        for n in 0..8 {
            s.spawn_blocking(move || Ok(n));
            s.task("named").spawn_blocking(move || Ok(n));
        }
        s.spawn_blocking(|| -> Result<(), Cancelled> {
            std::panic::resume_unwind(Box::new("on purpose"))
        });
        let (began, begun) = std::sync::mpsc::channel();
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let long = s.spawn_blocking(move || {
            began.send(()).unwrap();
            goes_on.recv().unwrap();
            Ok(())
        });
        begun.recv().unwrap();
        long.cancel(Kind::User);
        // Both threads of the pool may be busy now.
        s.spawn_blocking(|| Ok(())).cancel(Kind::User);
        go_on.send(()).unwrap();
        Ok(())
    });
    drop(all.await);
}

#[test]
fn jobs_leave_a_record_the_laws_allow() {
    for workers in [1, 2, 4] {
        let builder = Runtime::builder().workers(workers).blocking_threads(2);
        let runtime = builder.journal(usize::MAX).build().unwrap();
        runtime.block_on(jobs);
        assert_legal(&runtime.journal().unwrap().events, workers);
    }
}

#[test]
fn a_record_that_breaks_a_law_is_found() {
    let runtime = Runtime::builder().workers(2).journal(usize::MAX).build().unwrap();
    runtime.block_on(program);
    let events = runtime.journal().unwrap().events;
    let broken = |harm: &dyn Fn(&mut Vec<Event>)| {
        let mut events = events.clone();
        harm(&mut events);
        (0..).zip(&mut events).for_each(|(seq, event)| event.seq = seq);
        refine::check(&events).unwrap_err()
    };
    let find = |is: fn(&EventKind) -> bool| events.iter().position(|e| is(&e.kind)).unwrap();
    let moved = find(|kind| matches!(kind, EventKind::TaskMoved { .. }));
    assert!(broken(&|events| _ = events.remove(moved)).contains("the task was Created"));
    let twice = broken(&|events| events.insert(moved, events[moved]));
    assert!(twice.contains("the task was Running"), "{twice}");
    let sent = find(|kind| matches!(kind, EventKind::Sent { permit: Some(_) }));
    assert!(
        broken(&|events| events.insert(sent, events[sent])).contains("the permit is not reserved")
    );
    let resolved = find(|kind| matches!(kind, EventKind::ObligationResolved { .. }));
    let twice = broken(&|events| events.insert(resolved, events[resolved]));
    assert!(twice.contains("the obligation was resolved before"), "{twice}");
    let decided = find(|kind| matches!(kind, EventKind::Decision { .. }));
    assert!(broken(&|events| _ = events.remove(decided)).contains("the decision chain is broken"));
    let told = find(|kind| matches!(kind, EventKind::RegionOutcome { .. }));
    let closed = events[..told].iter().rposition(|e| e.subject == events[told].subject).unwrap();
    assert!(broken(&|events| _ = events.remove(closed)).contains("the region is not closed"));
}

/// Channels of scopes that close under tasks of other scopes, and wakes that come late.
async fn crossing(cx: Cx) {
    let outer = cx.scope_with(Policy::CollectAll).run(async |outer: Scope<Cancelled>| {
        for _ in 0..20 {
            let mut senders = Vec::new();
            for way in 0..4 {
                let (give, mut get) = channel::unbounded();
                senders.push(give);
                outer.spawn(async move |cx: Cx| {
                    if let Ok(tx) = get.recv(&cx).await {
                        send_until_closed(&cx, tx, way).await;
                    }
                    Ok(())
                });
            }
            outer.spawn(async move |cx: Cx| {
                receive_and_close(&cx, senders).await;
                Ok(())
            });
            let left = Arc::new(Mutex::new(None));
            let late = left.clone();
            outer.spawn(async move |_: Cx| {
                poll_fn(|context| {
                    *left.lock().unwrap() = Some(context.waker().clone());
                    Poll::Ready(())
                })
                .await;
                Ok(())
            });
            outer.spawn(async move |cx: Cx| {
                while late.lock().unwrap().is_none() {
                    cx.yield_now().await;
                }
                let waker = late.lock().unwrap().take().unwrap();
                (0..100).for_each(|_| waker.wake_by_ref());
                Ok(())
            });
        }
        Ok(())
    });
    assert!(outer.await.is_ok());
}

/// A scope with a channel, which it hands out the senders of; it receives some messages and ends.
async fn receive_and_close(
    cx: &Cx,
    senders: Vec<channel::unbounded::UnboundedSender<channel::Sender<u32>>>,
) {
    let inner = cx.scope_with(Policy::CollectAll).run(async |_: Scope<Cancelled>| {
        let (tx, mut rx) = cx.channel::<u32>(3).expect("the scope is open");
        senders.iter().for_each(|give| give.send(tx.clone()).expect("nobody has closed it"));
        drop(tx);
        let mut messages = Vec::new();
        while messages.len() < 20 && rx.recv_many(cx, &mut messages, 2).await.is_ok() {}
        // It outlives the scope, which closes it.
        Ok(rx)
    });
    assert!(inner.await.is_ok_and(|rx| rx.is_empty()));
}

/// Sends in one of several ways, across the end of the channel.
async fn send_until_closed(cx: &Cx, tx: channel::Sender<u32>, way: usize) {
    let tracked = tx.clone().tracked();
    let open = async || match way {
        0 => tx.send(cx, 1).await.is_ok(),
        1 => {
            cx.yield_now().await;
            !matches!(tx.send_evict_oldest(1), Err(channel::TrySendError::Disconnected(_)))
        }
        2 => {
            let Ok(permit) = tracked.reserve(cx).await else { return false };
            cx.yield_now().await;
            permit.try_send(1).1.is_ok()
        }
        _ => {
            let Ok(permit) = tx.reserve_owned(cx).await else { return false };
            cx.yield_now().await;
            drop(permit);
            true
        }
    };
    while open().await {}
}

#[test]
fn a_record_is_exact_where_threads_close_what_others_use() {
    for workers in [1, 2, 4, 4] {
        let runtime = Runtime::builder().workers(workers).journal(usize::MAX).build().unwrap();
        runtime.block_on(crossing);
        let journal = runtime.journal().unwrap();
        assert_legal(&journal.events, workers);
    }
}

/// Tasks that are asked to stop by another while they begin, go on, look and end.
async fn called_away(cx: Cx) {
    let scope = cx.scope_with(Policy::CollectAll).run(async |scope: Scope<Cancelled>| {
        let tasks: Vec<_> = (0..200)
            .map(|n| {
                scope.spawn(async move |cx: Cx| {
                    for _ in 0..n % 4 {
                        cx.yield_now().await;
                    }
                    if n % 3 == 0 { cx.checkpoint() } else { Ok(()) }
                })
            })
            .collect();
        let tasks = Arc::new(tasks);
        for kind in [Kind::User, Kind::RaceLost] {
            let tasks = tasks.clone();
            scope.spawn(async move |_cx: Cx| {
                for task in tasks.iter() {
                    task.cancel(kind);
                }
                Ok(())
            });
        }
        Ok(())
    });
    assert!(scope.await.is_ok());
}

#[test]
fn a_record_is_exact_where_cancels_meet_the_steps_of_tasks() {
    let runtimes = [2, 3, 4].map(|workers| {
        (workers, Runtime::builder().workers(workers).journal(usize::MAX).build().unwrap())
    });
    for (workers, runtime) in &runtimes {
        (0..10).for_each(|_| runtime.block_on(called_away));
        let journal = runtime.journal().unwrap();
        assert_legal(&journal.events, *workers);
        let ended = journal.events.iter().filter(|event| event.kind.name() == "task_ended");
        assert_eq!(ended.count(), 10 * 203);
    }
}
