//! The operations of a program, run.

use std::future::poll_fn;
use std::panic::panic_any;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use asx::channel::oneshot;
use asx::time::Time;
use asx::{
    BoxFuture, Budget, Cx, Group, Local, NotReady, Outcome, Policy, Ready, Restart, Scope, Stop,
    Task, group, join, join_all, race, race_all, select, try_join, try_join_all, wait,
};

use crate::books::{Meant, Value};
use crate::program::{
    AcquireHow, Child, ChildKind, End, Fate, Half, Handle, ListenHow, LockHow, Many, Op, RecvHow,
    ReplyBy, Resolve, ScopeHow, ScopeOp, SendHow, SetHow, ThreadDoes, TrackedHow, WatchHow, Where,
};
use crate::waker::{Foreign, block_on, poll_some};
use crate::world::{Expected, Fail, Inbox, Lent, Loose, Taken, Thing, World};

static LOCALS: [Local<Value>; 2] = [const { Local::new() }; 2];

/// How long a thread waits for a future that somebody left.
const PATIENCE: Duration = Duration::from_millis(3);

/// Where an operation is run.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) world: Arc<World>,
    pub(crate) cx: Cx,
    /// The innermost scope.
    pub(crate) scope: Scope<Fail>,
}

type Run<'a> = BoxFuture<'a, Result<(), Fail>>;

/// Runs the operations of a body, one after the other.
pub(crate) fn run<'a>(env: &'a Env, body: &'a [Op]) -> Run<'a> {
    Box::pin(async move {
        for op in body {
            env.world.reach(op);
            env.step(op).await?;
        }
        Ok(())
    })
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl Env {
    async fn step(&self, op: &Op) -> Result<(), Fail> {
        let Env { world, cx, scope } = self;
        match op {
            Op::Yield => cx.yield_now().await,
            Op::Sleep(time) => cx.sleep(micros(*time)).await?,
            Op::SleepUntilPast => cx.sleep_until(Time::from_nanos(1)).await?,
            Op::Ticks(period, count) => {
                let mut interval = cx.interval(micros(*period));
                for _ in 0..*count {
                    interval.tick(cx).await?;
                }
            }
            Op::Checkpoint => cx.checkpoint()?,
            Op::Look => self.look(),
            Op::Consume => cx.consume(1)?,
            Op::Timeout(limit, body) => {
                cx.timeout(micros(*limit), async |_| run(self, body).await).await?;
            }
            Op::Race(many, bodies) => self.race(*many, bodies).await?,
            Op::Join(many, bodies) => self.join(*many, bodies).await,
            Op::TryJoin(many, bodies) => self.try_join(*many, bodies).await?,
            Op::Group(bodies) => self.group(bodies).await?,
            Op::Select(time, nth) => self.select(*time, *nth).await?,
            Op::Shield(body) => cx.shield(async |_| run(self, body).await).await?,
            Op::WithLocal(nth, body) => {
                let value = world.books.value();
                cx.with_local(&LOCALS[*nth], value, async |_| run(self, body).await).await?;
            }
            Op::Scope(op) => self.scope(op).await?,
            Op::Spawn(child) => self.spawn(child).await?,
            Op::Supervise(times, body) => self.supervise(*times, body),
            Op::Start(sets, body) => self.start(*sets, body).await,
            Op::CxJob(time) => {
                let (value, time) = (world.books.value(), micros(*time));
                let job = cx.spawn_blocking(move || {
                    std::thread::sleep(time);
                    value
                });
                drop(job.await);
            }
            Op::Defer(body) => self.defer(body),
            Op::CancelScope(Where::Here) => scope.cancel("as it says"),
            Op::CancelScope(Where::Thread) => {
                let scope = scope.clone();
                world.thread(move |_| scope.cancel("as it says"));
            }
            Op::StopScope => scope.stop(),
            Op::StopWithin(soft, hard) => {
                scope.stop_within(asx::Grace { soft: micros(*soft), hard: micros(*hard) });
            }
            Op::Stopping(limit) => {
                let waits = cx.timeout(micros(*limit), async |cx| Ok(cx.stopping().await?));
                let _: Result<(), Fail> = waits.await;
            }
            Op::Cancelled(limit) => {
                let waits = cx.timeout(micros(*limit), async |cx| {
                    cx.cancelled().await;
                    Ok(())
                });
                let _: Result<(), Fail> = waits.await;
            }
            Op::Dump => drop(world.runtime.upgrade().map(|runtime| runtime.dump().to_json())),
            Op::NestedBlockOn => {
                if let Some(runtime) = world.runtime.upgrade()
                    && runtime.try_block_on(async |_| ()).is_ok()
                {
                    world.books.fault(String::from("block_on inside a task"));
                }
            }
            Op::Foreign(afresh, body) => {
                Foreign::new(&world.books, *afresh, run(self, body)).await?;
            }
            Op::Thread(place, does) => self.thread(*place, *does),
            Op::HalfPoll(half, times, fate) => self.half_poll(*half, *times, *fate).await,
            Op::FromBag => self.from_bag().await,
            Op::Fail => return Err(Fail::Failed(world.books.value())),
            Op::Panic => panic_any(Meant(Some(world.books.value()))),
            Op::Lock(place, how, body) => self.lock(*place, *how, body).await?,
            Op::Read(body) => {
                let guard = world.rwlock.read(cx).await?;
                guard.look();
                run(self, body).await?;
            }
            Op::Write(downgrades, body) => {
                let mut guard = world.rwlock.write(cx).await?;
                *guard = world.books.value();
                if *downgrades {
                    let guard = guard.downgrade();
                    run(self, body).await?;
                    guard.look();
                } else {
                    run(self, body).await?;
                }
            }
            Op::Acquire(count, how, body) => self.acquire(*count, *how, body).await?,
            Op::Notify(true) => world.notify.notify_one(),
            Op::Notify(false) => world.notify.notify_waiters(),
            Op::Notified => drop(world.notify.notified(cx).await),
            Op::Barrier => drop(world.barrier.wait(cx).await),
            Op::Once(true) => drop(world.once.set(world.books.value())),
            Op::Once(false) => {
                let init = async || {
                    cx.yield_now().await;
                    world.books.value()
                };
                world.once.get_or_init(cx, init).await?.look();
            }
            Op::Obligation(resolve) => {
                let Ok(obligation) = cx.obligation() else { return Ok(()) };
                cx.yield_now().await;
                match resolve {
                    Resolve::Commit => drop(obligation.commit()),
                    Resolve::Abort => drop(obligation.abort()),
                    Resolve::Leave => drop(obligation),
                }
            }
            op => self.message(op).await?,
        }
        Ok(())
    }

    /// What can be asked.
    fn look(&self) {
        let Env { cx, world, .. } = self;
        let _ = (cx.id(), cx.budget(), cx.now(), cx.random(), cx.random_below(7));
        let _ = (cx.is_cancelled(), cx.is_stopping(), cx.try_consume(0));
        let local = LOCALS.iter().find_map(|local| cx.local(local));
        if let Some(local) = local {
            local.look();
        }
        let _ = (world.senders[0].len(), world.senders[0].is_closed(), world.tracked.leaked());
    }

    async fn race(&self, many: Many, bodies: &[Vec<Op>]) -> Result<(), Fail> {
        let cx = &self.cx;
        match (many, bodies) {
            (Many::Two, [one, two, ..]) => race(cx, |_| run(self, one), |_| run(self, two)).await,
            _ => {
                let parts = bodies.iter().map(|body| move |_: &Cx| run(self, body));
                race_all(cx, parts).await.unwrap_or(Ok(()))
            }
        }
    }

    async fn join(&self, many: Many, bodies: &[Vec<Op>]) {
        let cx = &self.cx;
        match (many, bodies) {
            (Many::Two, [one, two, ..]) => {
                drop(join(cx, |_| run(self, one), |_| run(self, two)).await);
            }
            _ => {
                let parts = bodies.iter().map(|body| move |_: &Cx| run(self, body));
                drop(join_all(cx, parts).await);
            }
        }
    }

    async fn try_join(&self, many: Many, bodies: &[Vec<Op>]) -> Result<(), Fail> {
        let cx = &self.cx;
        match (many, bodies) {
            (Many::Two, [one, two, ..]) => {
                try_join(cx, |_| run(self, one), |_| run(self, two)).await?;
            }
            _ => {
                let parts = bodies.iter().map(|body| move |_: &Cx| run(self, body));
                try_join_all(cx, parts).await?;
            }
        }
        Ok(())
    }

    async fn group(&self, bodies: &[Vec<Op>]) -> Result<(), Fail> {
        let cx = &self.cx;
        group(cx, async |g: Group<'_, Run<'_>>| {
            let mut children = Vec::new();
            for body in bodies {
                children.push(g.add(|_| run(self, body)));
            }
            match (self.world.coin(4), children.pop()) {
                (0, Some(child)) => g.cancel(child),
                (1, _) => g.cancel_all(),
                (2, _) => return Ok(()),
                _ => {}
            }
            while let Some(ended) = g.next(cx).await? {
                drop(ended);
            }
            Ok(())
        })
        .await
    }

    async fn select(&self, time: u64, nth: usize) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let Some(mut inbox) = receiver(world, nth) else { return Ok(()) };
        select! {
            slept = cx.sleep(micros(time)) => slept?,
            notified = world.notify.notified(cx) => drop(notified),
            value = inbox.get().receiver.recv(cx) => {
                if let Ok(value) = value {
                    world.received(value);
                }
            }
        }
        Ok(())
    }

    async fn scope(&self, op: &ScopeOp) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let opened = world.books.scope();
        let body = async |s: Scope<Fail>| {
            let inner = Env { scope: s, ..self.clone() };
            for _ in 0..op.finalizers {
                inner.defer(&[Op::Yield]);
            }
            if world.coin(10) == 0 {
                world.put(Thing::Scope(inner.scope.clone()));
            }
            run(&inner, &op.body).await
        };
        let within =
            |limit: u64| Budget { deadline: Some(cx.now() + micros(limit)), ..Budget::INFINITE };
        let outcome = match op.how {
            ScopeHow::Plain => cx.scope(body).await.map_err(Stop::Err),
            ScopeHow::Try => cx.try_scope(body).await,
            ScopeHow::Collect => cx.scope_with(Policy::CollectAll).run(body).await,
            ScopeHow::Within(limit) => {
                cx.scope_with(Policy::FailFast).budget(within(limit)).run(body).await
            }
        };
        drop(opened);
        drop(outcome);
        Ok(cx.checkpoint()?)
    }

    async fn spawn(&self, child: &Child) -> Result<(), Fail> {
        let task = self.child(child);
        self.settle(task, child.handle).await
    }

    /// Starts a task, of whichever kind.
    fn child(&self, child: &Child) -> Task<Value, Fail> {
        let Env { world, scope, .. } = self;
        let books = &world.books;
        let (counted, capture) = (books.task(), books.value());
        let (own, outer) = (world.clone(), scope.clone());
        let (body, end) = (child.body.clone(), child.end);
        let free = {
            let (world, scope) = (own.clone(), outer.clone());
            move |cx: Cx| async move {
                let _held = (counted, capture);
                let env = Env { world, cx, scope };
                run(&env, &body).await?;
                env.end(end)
            }
        };
        let named = scope.task("child");
        match child.kind {
            ChildKind::Plain => scope.spawn(free),
            ChildKind::Pinned(worker) => {
                named.pinned_to((worker % world.workers) as u16).spawn(free)
            }
            ChildKind::Priority(priority) => named.priority(priority).spawn(free),
            ChildKind::Within(limit) => named.within(micros(limit)).spawn(free),
            ChildKind::Polls(polls) => named.polls(polls).spawn(free),
            ChildKind::NoCx => {
                // What it would have run counts as over.
                drop(free);
                let (counted, capture) = (books.task(), books.value());
                scope.spawn(move |_| async move {
                    let _held = (counted, capture);
                    woken_by_hand(&own).await;
                    Ok(own.books.value())
                })
            }
            ChildKind::Local => scope.spawn_local(async move |cx: Cx| {
                let only_here = Rc::new(own.books.value());
                let again = only_here.clone();
                let value = free(cx).await?;
                again.look();
                Ok(value)
            }),
            ChildKind::Blocking(time) => scope.spawn_blocking(move || {
                let _future = free;
                std::thread::sleep(micros(time));
                match end {
                    End::Value => Ok(own.books.value()),
                    End::Error => Err(Fail::Failed(own.books.value())),
                    End::Panic => panic_any(Meant(Some(own.books.value()))),
                }
            }),
            ChildKind::Waiting => scope.spawn_blocking(move || {
                let Some(cx) = Cx::current() else { return Err(Fail::Cancelled) };
                wait(free(cx))
            }),
        }
    }

    fn end(&self, end: End) -> Result<Value, Fail> {
        let value = self.world.books.value();
        match end {
            End::Value => Ok(value),
            End::Error => Err(Fail::Failed(value)),
            End::Panic => panic_any(Meant(Some(value))),
        }
    }

    /// Does with a handle what the program says.
    async fn settle(&self, mut task: Task<Value, Fail>, handle: Handle) -> Result<(), Fail> {
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
                if let Some(outcome) = task.outcome() {
                    drop_outcome(outcome);
                }
            }
            Handle::Bag => self.world.put(Thing::Task(task)),
            Handle::ToThread => self.world.thread(move |world| use_thing(world, Thing::Task(task))),
            Handle::Forget => std::mem::forget(task),
        }
        Ok(())
    }

    fn supervise(&self, times: u32, body: &[Op]) {
        let (world, scope, body) = (self.world.clone(), self.scope.clone(), body.to_vec());
        let (counted, restart) = (world.books.task(), Restart::times(times, micros(100_000)));
        let mut life = 0;
        let task = self.scope.supervise("kept", restart, move || {
            let (world, scope, body) = (world.clone(), scope.clone(), body.clone());
            let task = world.books.task();
            let _ = &counted;
            life += 1;
            let fails = life < times;
            move |cx: Cx| async move {
                let _held = (task, world.books.value());
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

    async fn start(&self, sets: bool, body: &[Op]) {
        let (world, scope, body) = (self.world.clone(), self.scope.clone(), body.to_vec());
        let counted = world.books.task();
        let starting = self.scope.start(async move |cx: Cx, ready: Ready<Value>| {
            let _held = (counted, world.books.value());
            if sets {
                ready.set(world.books.value());
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

    fn defer(&self, body: &[Op]) {
        let (world, scope, body) = (self.world.clone(), self.scope.clone(), body.to_vec());
        let held = (world.books.task(), world.books.value());
        let _ = self.scope.defer(move |cx: Cx| async move {
            let _held = held;
            let env = Env { world, cx, scope };
            drop(run(&env, &body).await);
        });
    }

    async fn lock(&self, place: Where, how: LockHow, body: &[Op]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match how {
            LockHow::Lock => {
                let mut guard = world.mutex.lock(cx).await?;
                *guard = world.books.value();
                run(self, body).await?;
            }
            LockHow::Try => {
                let Some(guard) = world.mutex.try_lock() else { return Ok(()) };
                guard.look();
                run(self, body).await?;
            }
            LockHow::Owned => {
                let guard = world.mutex.lock_owned(cx).await?;
                match place {
                    Where::Here => run(self, body).await?,
                    Where::Thread => world.thread(move |_| {
                        std::thread::sleep(micros(50));
                        guard.look();
                    }),
                }
            }
        }
        Ok(())
    }

    async fn acquire(&self, count: usize, how: AcquireHow, body: &[Op]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        // There are two.
        let count = count.min(2);
        match how {
            AcquireHow::Plain => {
                let Ok(_permit) = world.semaphore.acquire_many(cx, count).await else {
                    return Err(Fail::Cancelled);
                };
                run(self, body).await?;
            }
            AcquireHow::Owned => {
                let Ok(_permit) = world.semaphore.acquire_many_owned(cx, count).await else {
                    return Err(Fail::Cancelled);
                };
                run(self, body).await?;
            }
            AcquireHow::Try => {
                let permit = world.semaphore.try_acquire_many(count);
                cx.yield_now().await;
                drop(permit);
            }
            AcquireHow::Replace => {
                if let Ok(permit) = world.semaphore.try_acquire() {
                    permit.forget();
                    world.semaphore.add_permits(1);
                }
            }
        }
        Ok(())
    }

    fn thread(&self, place: Where, does: ThreadDoes) {
        let scope = self.scope.clone();
        let act = move |world: &Arc<World>| match does {
            ThreadDoes::CancelScope => scope.cancel("from a thread"),
            ThreadDoes::StopScope => scope.stop(),
            ThreadDoes::Notify => world.notify.notify_one(),
            ThreadDoes::Send(nth) => world.sent(world.senders[nth].try_send(world.books.value())),
            ThreadDoes::Publish => drop(world.publisher.send(world.books.value())),
            ThreadDoes::Set => drop(world.setter.send(world.books.value())),
            ThreadDoes::FromBag => {
                if let Some(thing) = world.find() {
                    use_thing(world, thing);
                }
            }
            ThreadDoes::Spawn => {
                let (held, own) = ((world.books.task(), world.books.value()), world.clone());
                let task = scope.spawn(async move |cx: Cx| {
                    let _held = held;
                    cx.yield_now().await;
                    Ok(own.books.value())
                });
                use_thing(world, Thing::Task(task));
            }
        };
        match place {
            Where::Thread => self.world.thread(act),
            // On the worker itself: nothing in there waits, but what is in the bag.
            Where::Here if does == ThreadDoes::FromBag => {}
            Where::Here => act(&self.world),
        }
    }

    /// A future of this task's that belongs to nobody.
    fn loose(&self, half: Half) -> Loose {
        let Env { world, cx, .. } = self;
        let (world, cx) = (world.clone(), cx.clone());
        match half {
            Half::Sleep => Box::pin(async move { drop(cx.sleep(micros(300)).await) }),
            Half::Send(nth) => Box::pin(async move {
                let sent = world.senders[nth].send(&cx, world.books.value()).await;
                world.sent(sent);
            }),
            Half::Recv(nth) => Box::pin(async move {
                let Some(mut inbox) = receiver(&world, nth) else { return };
                if let Ok(value) = inbox.get().receiver.recv(&cx).await {
                    world.received(value);
                }
            }),
            Half::Lock => Box::pin(async move {
                if let Ok(guard) = world.mutex.lock(&cx).await {
                    guard.look();
                }
            }),
            Half::Acquire => Box::pin(async move { drop(world.semaphore.acquire(&cx).await) }),
            Half::Notified => Box::pin(async move { drop(world.notify.notified(&cx).await) }),
            Half::Barrier => Box::pin(async move { drop(world.barrier.wait(&cx).await) }),
            Half::Listen => Box::pin(async move {
                let Some(mut listens) = Lent::take(&world, 0, |world, _| &world.subscriber) else {
                    return;
                };
                drop(listens.get().recv(&cx).await);
            }),
            Half::Changed => Box::pin(async move {
                let Some(mut watches) = Lent::take(&world, 0, |world, _| &world.watcher) else {
                    return;
                };
                drop(watches.get().changed(&cx).await);
            }),
            Half::Join => match world.find() {
                Some(Thing::Task(task)) => Box::pin(async move { drop_outcome(task.await) }),
                other => {
                    if let Some(other) = other {
                        world.put(other);
                    }
                    Box::pin(async move { cx.yield_now().await })
                }
            },
            Half::Cancelled => Box::pin(async move { drop(cx.cancelled().await) }),
        }
    }

    async fn half_poll(&self, half: Half, times: usize, fate: Fate) {
        let world = &self.world;
        let mut future = self.loose(half);
        if poll_some(&world.books, &mut future, times).is_some() {
            return;
        }
        match fate {
            Fate::Drop => drop(future),
            Fate::Forget => std::mem::forget(future),
            Fate::Bag => world.put(Thing::Future(future)),
            Fate::ToThread => world.thread(move |world| use_thing(world, Thing::Future(future))),
            Fate::Finish => self.finish(future).await,
        }
    }

    /// Polls a future of somebody's for a while. No cancel in here reaches it, if it has another
    /// task's context: so it is dropped when the time is over.
    async fn finish(&self, mut future: Loose) {
        let mut limit = pin!(self.cx.sleep(micros(500)));
        poll_fn(|cx| {
            if future.as_mut().poll(cx).is_ready() || limit.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    async fn from_bag(&self) {
        let Env { world, cx, .. } = self;
        if world.coin(8) == 0 {
            world.put(Thing::Cx(cx.clone()));
        }
        match world.find() {
            Some(Thing::Future(future)) => self.finish(future).await,
            Some(Thing::Task(task)) => {
                self.finish(Box::pin(async move { drop_outcome(task.await) })).await;
            }
            Some(Thing::Cx(other)) => {
                let other = other;
                let _ = (other.checkpoint(), other.is_cancelled());
                self.finish(Box::pin(async move { drop(other.sleep(micros(100)).await) })).await;
            }
            Some(thing) => use_thing(world, thing),
            None => {}
        }
    }
}

/// Uses something out of the bag where nothing can be awaited: on a thread, say.
fn use_thing(world: &Arc<World>, thing: Thing) {
    match thing {
        Thing::Task(mut task) => match world.coin(4) {
            0 => drop(task.cancel("found it")),
            1 => task.outcome().into_iter().for_each(drop_outcome),
            2 => drop(task),
            _ => {
                let mut joins = Box::pin(task);
                if let Some(outcome) = block_on(&world.books, &mut joins, PATIENCE) {
                    drop_outcome(outcome);
                }
            }
        },
        Thing::Future(mut future) => match world.coin(3) {
            0 => drop(future),
            _ => drop(block_on(&world.books, &mut future, PATIENCE)),
        },
        Thing::Reply(reply) => match world.coin(4) {
            0 => drop(reply),
            _ => world.sent(reply.send(world.books.value())),
        },
        Thing::Permit(permit) => match world.coin(3) {
            0 => drop(permit),
            1 => permit.abort(),
            _ => world.sent(permit.try_send(world.books.value())),
        },
        Thing::Scope(scope) => match world.coin(3) {
            0 => scope.cancel("found it"),
            1 => scope.stop(),
            _ => {
                let (held, own) = ((world.books.task(), world.books.value()), world.clone());
                drop(scope.spawn(async move |cx: Cx| {
                    let _held = held;
                    cx.yield_now().await;
                    Ok(own.books.value())
                }));
            }
        },
        Thing::Cx(cx) => {
            let _ = (cx.id(), cx.is_cancelled(), cx.checkpoint());
        }
    }
}

/// Waits for a thread that wakes by value, at about the time the wait is looked at.
async fn woken_by_hand(world: &Arc<World>) {
    let (woken, mut told) = (Arc::new(AtomicBool::new(false)), false);
    poll_fn(|cx| {
        if woken.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        if !told {
            told = true;
            let (woken, waker) = (woken.clone(), cx.waker().clone());
            world.thread(move |_| {
                woken.store(true, Ordering::SeqCst);
                waker.wake();
            });
        }
        Poll::Pending
    })
    .await;
}

fn drop_outcome(outcome: Outcome<Value, Fail>) {
    if let Ok(value) = &outcome {
        value.look();
    }
    drop(outcome);
}

fn receiver(world: &Arc<World>, nth: usize) -> Option<Lent<Inbox>> {
    Lent::take(world, nth, |world, nth| &world.receivers[nth])
}

/// Messages.
impl Env {
    async fn message(&self, op: &Op) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match op {
            Op::Send(nth, how) => self.send(*nth, *how).await?,
            Op::Recv(nth, how) => self.recv(*nth, *how).await,
            Op::SendUnbounded => world.sent(world.unbounded.send(world.books.value())),
            Op::RecvUnbounded(drops) => {
                let inbox = Lent::take(world, 0, |world, _| &world.unbounded_rx);
                let Some(mut inbox) = inbox else { return Ok(()) };
                if *drops {
                    drop(inbox.keep());
                } else if let Ok(value) = inbox.get().receiver.recv(cx).await {
                    world.received(value);
                }
            }
            Op::Tracked(how) => self.tracked(*how).await,
            Op::RecvTracked => {
                let inbox = Lent::take(world, 0, |world, _| &world.tracked_rx);
                let Some(mut inbox) = inbox else { return Ok(()) };
                if let Ok(value) = inbox.get().receiver.recv(cx).await {
                    world.received(value);
                }
            }
            Op::Ask(by, patience) => self.ask(*by, *patience).await?,
            Op::Publish => drop(world.publisher.send(world.books.value())),
            Op::Listen(how) => self.listen(*how).await,
            Op::Set(how) => self.set(*how).await,
            Op::Watch(how) => self.watch(*how).await,
            Op::RegionChannel(capacity) => {
                let Ok((tx, mut rx)) = cx.channel(*capacity) else { return Ok(()) };
                drop(tx.try_send(world.books.value()));
                let permit = tx.try_reserve_owned();
                drop(rx.recv(cx).await);
                drop((permit, tx, rx));
            }
            _ => {}
        }
        Ok(())
    }

    async fn send(&self, nth: usize, how: SendHow) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let (tx, value) = (&world.senders[nth], world.books.value());
        match how {
            SendHow::Send => world.sent(tx.send(cx, value).await),
            SendHow::ReserveSend | SendHow::ReserveAbort | SendHow::ReserveDrop => {
                let Ok(permit) = tx.reserve(cx).await else { return Ok(cx.checkpoint()?) };
                cx.yield_now().await;
                match how {
                    SendHow::ReserveSend => world.sent(permit.try_send(value)),
                    SendHow::ReserveAbort => permit.abort(),
                    _ => drop(permit),
                }
            }
            SendHow::Owned(place) => {
                let Ok(permit) = tx.reserve_owned(cx).await else { return Ok(cx.checkpoint()?) };
                match place {
                    Where::Here => world.put(Thing::Permit(permit)),
                    Where::Thread => world.thread(move |world| world.sent(permit.try_send(value))),
                }
            }
            SendHow::Try => world.sent(tx.try_send(value)),
            SendHow::TryReserve => {
                if let Ok(permit) = tx.try_reserve() {
                    world.sent(permit.try_send(value));
                }
            }
            SendHow::Evict => match tx.send_evict_oldest(value) {
                Ok(evicted) => {
                    world.sent(Ok::<_, ()>(()));
                    let count = evicted.iter().len();
                    world.books.reported.fetch_add(count, Ordering::Relaxed);
                }
                Err(back) => drop(back),
            },
        }
        Ok(())
    }

    async fn recv(&self, nth: usize, how: RecvHow) {
        let Env { world, cx, .. } = self;
        let Some(mut inbox) = receiver(world, nth) else { return };
        let rx = &mut inbox.get().receiver;
        match how {
            RecvHow::Recv => {
                if let Ok(value) = rx.recv(cx).await {
                    world.received(value);
                }
            }
            RecvHow::Next => {
                if let Ok(Some(value)) = rx.next(cx).await {
                    world.received(value);
                }
            }
            RecvHow::Try => {
                if let Ok(value) = rx.try_recv() {
                    world.received(value);
                }
            }
            RecvHow::Many => {
                let mut taken = Taken { values: Vec::new(), books: &world.books };
                drop(rx.recv_many(cx, &mut taken.values, 3).await);
            }
            RecvHow::Close => inbox.get().close(),
            RecvHow::DropIt => drop(inbox.keep()),
        }
    }

    async fn tracked(&self, how: TrackedHow) {
        let Env { world, cx, .. } = self;
        if how == TrackedHow::Try {
            if let Ok(permit) = world.tracked.try_reserve() {
                let (_proof, sent) = permit.try_send(world.books.value());
                world.sent(sent);
            }
            return;
        }
        let Ok(permit) = world.tracked.reserve(cx).await else { return };
        match how {
            TrackedHow::Send | TrackedHow::Try => {
                let (_proof, sent) = permit.try_send(world.books.value());
                world.sent(sent);
            }
            TrackedHow::Abort => drop(permit.abort()),
            TrackedHow::Leak => drop(permit),
        }
    }

    async fn ask(&self, by: ReplyBy, patience: u64) -> Result<(), Fail> {
        let Env { world, cx, scope } = self;
        let (reply, answer) = oneshot();
        let mut expected = Expected { answer, books: world.books.clone() };
        match by {
            ReplyBy::Nobody => drop(reply),
            ReplyBy::Bag => world.put(Thing::Reply(reply)),
            ReplyBy::Thread => {
                world.thread(move |world| world.sent(reply.send(world.books.value())));
            }
            ReplyBy::Task => {
                let (held, own) = (world.books.task(), world.clone());
                drop(scope.spawn(move |_| async move {
                    let _held = held;
                    own.sent(reply.send(own.books.value()));
                    Ok(own.books.value())
                }));
            }
        }
        let answer = cx.timeout(micros(patience), async |cx| {
            if let Ok(value) = expected.answer.recv(cx).await {
                world.received(value);
            }
            Ok(())
        });
        let _: Result<(), Fail> = answer.await;
        Ok(cx.checkpoint()?)
    }

    async fn listen(&self, how: ListenHow) {
        let Env { world, cx, .. } = self;
        if how == ListenHow::Subscribe {
            return world.subscriber.replace(world.publisher.subscribe());
        }
        let Some(mut listens) = Lent::take(world, 0, |world, _| &world.subscriber) else { return };
        match how {
            ListenHow::Recv => drop(listens.get().recv(cx).await),
            _ => drop(listens.get().try_recv()),
        }
    }

    async fn set(&self, how: SetHow) {
        let Env { world, cx, .. } = self;
        match how {
            SetHow::Send => drop(world.setter.send(world.books.value())),
            SetHow::Replace => drop(world.setter.send_replace(world.books.value())),
            SetHow::Modify => world.setter.send_modify(|value| *value = world.books.value()),
            SetHow::Closed => drop(world.setter.closed(cx).await),
        }
    }

    async fn watch(&self, how: WatchHow) {
        let Env { world, cx, .. } = self;
        if how == WatchHow::Subscribe {
            return world.watcher.replace(world.setter.subscribe());
        }
        let Some(mut watches) = Lent::take(world, 0, |world, _| &world.watcher) else { return };
        match how {
            WatchHow::Changed => drop(watches.get().changed(cx).await),
            WatchHow::WaitFor => {
                let mut looks = 0;
                let wanted = |value: &Value| {
                    value.look();
                    looks += 1;
                    looks > 2
                };
                drop(watches.get().wait_for(cx, wanted).await);
            }
            _ => watches.get().borrow().look(),
        }
    }
}
