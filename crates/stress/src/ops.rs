//! The operations of a program, run.

mod loose;
mod messages;
mod tasks;

use std::panic::panic_any;
use std::sync::Arc;
use std::time::Duration;

use asx::time::Time;
use asx::{
    BoxFuture, Cx, Group, Local, Outcome, Scope, group, join, join_all, race, race_all, select,
    try_join, try_join_all,
};

use crate::books::{Meant, Value};
use crate::program::{AcquireHow, LockHow, Many, Op, Resolve, Where};
use crate::waker::Foreign;
use crate::world::{Fail, Inbox, Lent, World};

static LOCALS: [Local<Value>; 2] = [const { Local::new() }; 2];

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
        let Env { world, cx, .. } = self;
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
            op => self.request(op).await?,
        }
        Ok(())
    }

    /// Requests to stop, and what is none of the rest.
    async fn request(&self, op: &Op) -> Result<(), Fail> {
        let Env { world, cx, scope } = self;
        match op {
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
                // Refused where tasks run; a job may do it.
                drop(world.runtime.upgrade().map(|runtime| runtime.try_block_on(async |_| ())));
            }
            Op::Foreign(afresh, body) => {
                Foreign::new(&world.books, *afresh, run(self, body)).await?;
            }
            Op::Thread(place, does) => self.thread(*place, *does),
            Op::HalfPoll(half, times, fate) => self.half_poll(*half, *times, *fate).await,
            Op::FromBag => self.rummage().await,
            Op::Fail => return Err(Fail::Failed(world.books.returned())),
            Op::Panic => panic_any(Meant(Some(world.books.returned()))),
            op => self.locked(op).await?,
        }
        Ok(())
    }

    /// Locks and the like.
    async fn locked(&self, op: &Op) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match op {
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
