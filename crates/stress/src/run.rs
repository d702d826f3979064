//! Runs a program, and checks the ledger when nothing of it is left.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use asx::{BlockOnError, Budget, Cx, Grace, Health, Policy, Runtime, Scope};

use crate::PANICS;
use crate::ledger::{Counted, Ledger};
use crate::liveness;
use crate::ops::{Env, run};
use crate::program::{Journal, Program, Root, Shutdown};
use crate::watchdog::Watchdog;
use crate::world::{Fail, World, contain_panic};

/// Runs a program and all checks. Returns the first failure.
pub(crate) fn program(program: &Program, watch: &Watchdog) -> Result<(), String> {
    let ledger = Ledger::new(program.callback_panics);
    let panics = PANICS.load(Relaxed);
    let builder = Runtime::builder().workers(program.workers).blocking_threads(3);
    let builder = builder.seed(program.seed).operations_per_poll(program.operations);
    let builder = builder.cancel_streak_limit(program.cancel_streak).name("stress");
    let builder = match program.cleanup_polls {
        Some(polls) => builder.cleanup_polls(polls),
        None => builder,
    };
    let builder = program.settings.apply(builder, program.seed);
    let builder = match program.journal {
        Journal::Off => builder,
        Journal::Ring => builder.journal(512),
        Journal::Whole => builder.whole_journal(1 << 16),
    };
    let mut runtime = Arc::new(builder.build().map_err(|error| error.to_string())?);
    watch.begin(program.seed, runtime.handle());
    let world = World::new(program, &runtime, &ledger);
    let ran = run_roots(program, &world, &runtime);
    if program.threads_first {
        world.join_threads();
    }
    if program.bag_first {
        world.empty_bag();
    }
    let stopped = program.shutdown.is_some() || world.stopped.load(Relaxed);
    let settled = ran.and_then(|()| settled(program, stopped, &runtime));
    // Programs with refusals, panics or a stop need not complete by themselves.
    let calm = !program.settings.may_refuse()
        && !program.callback_panics
        && !stopped
        && program.seed.is_multiple_of(4);
    let settled = match calm {
        true => settled.and_then(|()| liveness::run(&runtime, &ledger, program.capacity)),
        false => settled,
    };
    let health = runtime.metrics().health;
    if program.journal != Journal::Off {
        drop(runtime.journal());
    }
    // Another thread may be using it.
    let runtime = loop {
        match Arc::try_unwrap(runtime) {
            Ok(alone) => break alone,
            Err(shared) => runtime = shared,
        }
        thread::yield_now();
    };
    // The watchdog must not keep its memory alive either.
    watch.release_runtime();
    drop(runtime);
    world.join_threads();
    world.empty_bag();
    world.check_returned(program.callback_panics);
    contain_panic(|| drop(world));
    watch.end();
    settled?;
    healthy(program, health, &ledger, PANICS.load(Relaxed) - panics)?;
    ledger.balance(program.forgets)
}

/// Checks the runtime's counters against the program, during which `panics` panics occurred. The
/// number of late wakes is not checked, because it depends on the scheduling of threads.
fn healthy(program: &Program, health: Health, ledger: &Ledger, panics: u64) -> Result<(), String> {
    let Health {
        overruns,
        lost_panics,
        callback_panics,
        stale_wakes: _,
        refused_cancels: _,
        unheeded_cancels: _,
        unheeded_timeouts: _,
        leaked_obligations: _,
        long_polls: _,
    } = health;
    // A task is aborted at most once, possibly before the program has begun. No shield lasts long
    // enough to count as an overrun.
    let spawned = (ledger.tasks_spawned.load(Relaxed) + program.roots.len()) as u64;
    if overruns > spawned {
        return Err(format!("{overruns} overruns of {spawned} tasks"));
    }
    if !program.callback_panics && callback_panics > 0 {
        let last = crate::last_panic();
        let told = format!("{callback_panics} panics of callbacks, but no callback panics");
        return Err(format!("{told}; {panics} panics in total, the last one: {last}"));
    }
    if lost_panics + callback_panics > panics {
        let counted = format!("{lost_panics} lost, {callback_panics} of callbacks");
        return Err(format!("{counted}, but {panics} panics in total"));
    }
    Ok(())
}

/// Runs the roots, each in a separate `block_on`, concurrently with the shutdown.
fn run_roots(program: &Program, world: &Arc<World>, runtime: &Arc<Runtime>) -> Result<(), String> {
    thread::scope(|threads| {
        let stops = program.shutdown.map(|shutdown| {
            let runtime = runtime.clone();
            threads.spawn(move || stop(&runtime, shutdown))
        });
        let mut roots = program.roots.iter();
        let first = roots.next();
        let others: Vec<_> =
            roots.map(|root| threads.spawn(move || block_on(root, world, runtime))).collect();
        let mut ran = first.map_or(Ok(()), |root| block_on(root, world, runtime));
        for other in others {
            ran = ran.and(other.join().unwrap_or_else(|_| Err(String::from("block_on panicked"))));
        }
        let stopped = stops.map_or(Ok(()), |stops| {
            stops.join().unwrap_or_else(|_| Err(String::from("shutdown panicked")))
        });
        ran.and(stopped)
    })
}

fn stop(runtime: &Runtime, shutdown: Shutdown) -> Result<(), String> {
    let Shutdown { after, soft, hard, waits } = shutdown;
    let [after, soft, hard] = [after, soft, hard].map(Duration::from_micros);
    thread::sleep(after);
    let grace = Grace { soft, hard };
    if !waits {
        runtime.handle().stop(grace);
        return Ok(());
    }
    runtime.shutdown(grace).map_err(|dump| format!("the shutdown left:\n{dump}"))
}

fn block_on(root: &Root, world: &Arc<World>, runtime: &Runtime) -> Result<(), String> {
    let ended = runtime.try_block_on(|cx| body(cx, root, world));
    match ended {
        Ok(()) | Err(BlockOnError::ShutDown | BlockOnError::Ended(_)) => Ok(()),
        Err(BlockOnError::Panicked(panic)) => {
            contain_panic(|| drop(panic));
            Ok(())
        }
        Err(BlockOnError::Refused(_)) if world.refuses => Ok(()),
        Err(error) => Err(format!("block_on: {error}")),
    }
}

async fn body(cx: Cx, root: &Root, world: &Arc<World>) {
    let _task: Counted = world.ledger.task();
    let policy = if root.collect { Policy::CollectAll } else { Policy::FailFast };
    let reaped = Duration::from_micros(root.reaped);
    let opened = world.ledger.scope();
    let outcome = cx
        .scope_with(policy)
        .budget(Budget::INFINITE)
        .run(async |s: Scope<Fail>| {
            let reaps = s.clone();
            if world.refuses {
                // A thread, because a task or its sleep could be refused.
                world.spawn_thread(move || {
                    thread::sleep(reaped);
                    reaps.cancel("reaped");
                });
            } else {
                let task = world.ledger.task();
                s.task("reaper").spawn(async move |cx: Cx| {
                    let _task = task;
                    let _ = cx.sleep(reaped).await;
                    reaps.cancel("reaped");
                    Ok(())
                });
            }
            run(&Env { world: world.clone(), cx: cx.clone(), scope: s }, &root.body).await
        })
        .await;
    drop(opened);
    drop(outcome);
}

/// How long a timer may remain that a worker is about to cancel. A timer is armed before it is
/// known whether its region still needs it.
const TIMERS_SETTLE: Duration = Duration::from_secs(2);

/// Checks that no task, region or timer is left in the runtime.
fn settled(program: &Program, stopped: bool, runtime: &Runtime) -> Result<(), String> {
    let end = Instant::now() + TIMERS_SETTLE;
    loop {
        let (timers, left) = left(program, stopped, runtime);
        if timers == 0 || left.is_ok() || Instant::now() >= end {
            return left;
        }
        thread::sleep(Duration::from_micros(100));
    }
}

/// Returns the number of leftover timers, and the result of the check.
fn left(program: &Program, stopped: bool, runtime: &Runtime) -> (usize, Result<(), String>) {
    let dump = runtime.dump();
    let regions = dump.regions.len();
    let closed = regions == 1 || (regions == 0 && stopped);
    // While the root closes, the grace period of the shutdown has a timer.
    let alarms = usize::from(regions == 1 && stopped);
    // A future that is in the bag, owned by a thread, or forgotten may have a timer.
    let timers = if program.threads_first && program.bag_first && !program.forgets {
        dump.timers.saturating_sub(alarms)
    } else {
        0
    };
    let tasks = dump.tasks();
    if tasks == 0 && closed && timers == 0 {
        return (0, Ok(()));
    }
    let told = format!("at the end, {tasks} tasks, {regions} regions and {timers} timers are left");
    (timers, Err(format!("{told}\n{dump}")))
}
