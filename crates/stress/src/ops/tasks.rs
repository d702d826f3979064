//! Scopes and tasks.

use std::panic::panic_any;
use std::rc::Rc;

use asx::time::Time;
use asx::{Budget, Cx, NotReady, Policy, Ready, Restart, Scope, Task, TaskError, wait};

use super::leftovers::{use_leftover, woken_by_hand};
use super::{Env, drop_outcome, micros, run};
use crate::ledger::{ExpectedPanic, Value};
use crate::memory::forget;
use crate::program::{Child, ChildKind, End, Handle, Op, ScopeHow, ScopeOp};
use crate::world::{Fail, Leftover};

impl Env {
    pub(super) async fn scope(&self, op: &ScopeOp) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let opened = world.ledger.scope();
        let body = async |s: Scope<Fail>| {
            let inner = Env { scope: s, ..self.clone() };
            for _ in 0..op.finalizers {
                inner.defer(&[Op::Yield]);
            }
            if world.coin(10) == 0 {
                world.put(Leftover::Scope(inner.scope.clone()));
            }
            run(&inner, &op.body).await
        };
        let within =
            |limit: u64| Budget { deadline: Some(cx.now() + micros(limit)), ..Budget::INFINITE };
        let outcome = match op.how {
            ScopeHow::Plain => cx.scope(body).await.map_err(TaskError::Err),
            ScopeHow::Try => cx.try_scope(body).await,
            ScopeHow::Collect => cx.scope_with(Policy::CollectAll).run(body).await,
            ScopeHow::CleanupPolls(polls) => {
                cx.scope_with(Policy::FailFast).cleanup_polls(polls).run(body).await
            }
            ScopeHow::Within(limit) => {
                cx.scope_with(Policy::FailFast).budget(within(limit)).run(body).await
            }
        };
        drop(opened);
        drop(outcome);
        Ok(cx.checkpoint()?)
    }

    pub(super) async fn spawn(&self, child: &Child) -> Result<(), Fail> {
        match self.child(child) {
            Some(task) => self.settle(task, child.handle).await,
            None => Ok(()),
        }
    }

    /// Starts a task of any kind, unless it is refused.
    pub(super) fn child(&self, child: &Child) -> Option<Task<Value, Fail>> {
        let Env { world, scope, .. } = self;
        let ledger = &world.ledger;
        let counted = ledger.task();
        let capture = ledger.value();
        let own = world.clone();
        let outer = scope.clone();
        let body = child.body.clone();
        let end = child.end;
        let free = {
            let world = own.clone();
            let scope = outer.clone();
            move |cx: Cx| async move {
                let _held = (counted, capture);
                let env = Env { world, cx, scope };
                run(&env, &body).await?;
                env.end(end)
            }
        };
        let named = scope.task("child");
        let task = match child.kind {
            ChildKind::Plain => scope.spawn(free),
            ChildKind::Pinned(worker) => {
                named.pinned_to((worker % world.workers) as u16).spawn(free)
            }
            ChildKind::Priority(priority) => named.priority(priority).spawn(free),
            ChildKind::Within(limit) => named.within(micros(limit)).spawn(free),
            ChildKind::Polls(polls) => named.polls(polls).spawn(free),
            ChildKind::Cost(cost) => named.cost(cost).spawn(free),
            ChildKind::By(limit) => named.deadline(Time::ZERO + micros(limit)).spawn(free),
            ChildKind::Try => return named.try_spawn(free).ok(),
            ChildKind::NoCx => {
                // The dropped body counts as ended.
                drop(free);
                let counted = ledger.task();
                let capture = ledger.value();
                scope.spawn(move |_| async move {
                    let _held = (counted, capture);
                    woken_by_hand(&own).await;
                    Ok(own.ledger.returned())
                })
            }
            ChildKind::Local => scope.spawn_local(async move |cx: Cx| {
                let only_here = Rc::new(own.ledger.value());
                let again = only_here.clone();
                let value = free(cx).await?;
                again.check();
                Ok(value)
            }),
            ChildKind::TryBlocking => {
                let job = move || {
                    drop(free);
                    Ok(own.ledger.returned())
                };
                return named.try_spawn_blocking(job).ok();
            }
            ChildKind::Blocking(time) => scope.spawn_blocking(move || {
                let _future = free;
                std::thread::sleep(micros(time));
                match end {
                    End::Value => Ok(own.ledger.returned()),
                    End::Error => Err(Fail::Failed(own.ledger.returned())),
                    End::Panic => panic_any(ExpectedPanic(Some(own.ledger.returned()))),
                }
            }),
            ChildKind::Waiting => scope.spawn_blocking(move || {
                let Some(cx) = Cx::current() else { return Err(Fail::Cancelled) };
                wait(free(cx))
            }),
        };
        Some(task)
    }

    pub(super) fn end(&self, end: End) -> Result<Value, Fail> {
        let value = self.world.ledger.returned();
        match end {
            End::Value => Ok(value),
            End::Error => Err(Fail::Failed(value)),
            End::Panic => panic_any(ExpectedPanic(Some(value))),
        }
    }

    /// Uses a task's handle as the program says.
    pub(super) async fn settle(
        &self,
        mut task: Task<Value, Fail>,
        handle: Handle,
    ) -> Result<(), Fail> {
        match handle {
            Handle::Drop => drop(task),
            Handle::Await => drop_outcome(task.await),
            Handle::Cancel => drop(task.cancel("not wanted")),
            Handle::CancelThenAwait => {
                task.cancel("not wanted");
                drop_outcome(task.await);
            }
            Handle::Outcome => {
                self.cx.yield_now().await;
                let ended = task.is_finished();
                match task.outcome() {
                    Some(outcome) => drop_outcome(outcome),
                    None if ended => {
                        self.world.ledger.fault("a task that ended has no outcome".into())
                    }
                    None => {}
                }
            }
            Handle::Bag => self.world.put(Leftover::Task(task)),
            Handle::ToThread => {
                self.world.thread(move |world| use_leftover(world, Leftover::Task(task)))
            }
            Handle::Forget => forget(task),
        }
        Ok(())
    }

    pub(super) fn supervise(&self, times: u32, body: &[Op]) {
        let world = self.world.clone();
        let scope = self.scope.clone();
        let body = body.to_vec();
        let counted = world.ledger.task();
        let restart = Restart::times(times, micros(100_000));
        let mut life = 0;
        let task = self.scope.supervise("kept", restart, move || {
            let world = world.clone();
            let scope = scope.clone();
            let body = body.clone();
            let task = world.ledger.task();
            let _ = &counted;
            life += 1;
            let fails = life < times;
            move |cx: Cx| async move {
                let _held = (task, world.ledger.value());
                let env = Env { world, cx, scope };
                run(&env, &body).await?;
                if fails {
                    env.end(End::Panic)?;
                }
                Ok(())
            }
        });
        drop(task);
    }

    pub(super) async fn start(&self, sets: bool, body: &[Op]) {
        let world = self.world.clone();
        let scope = self.scope.clone();
        let body = body.to_vec();
        let counted = world.ledger.task();
        let starting = self.scope.start(async move |cx: Cx, ready: Ready<Value>| {
            let _held = (counted, world.ledger.value());
            if sets {
                ready.set(world.ledger.value());
            } else {
                drop(ready);
            }
            let env = Env { world, cx, scope };
            run(&env, &body).await?;
            env.end(End::Value)
        });
        match starting.await {
            Ok((value, task)) => drop((value, task)),
            Err(NotReady::Ended(outcome)) => drop_outcome(outcome),
            Err(_) => {}
        }
    }

    pub(super) fn defer(&self, body: &[Op]) {
        let world = self.world.clone();
        let scope = self.scope.clone();
        let body = body.to_vec();
        let held = (world.ledger.task(), world.ledger.value());
        let _ = self.scope.defer(move |cx: Cx| async move {
            let _held = held;
            let env = Env { world, cx, scope };
            drop(run(&env, &body).await);
        });
    }
}
