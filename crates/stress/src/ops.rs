//! The interpreter of the operations.

mod attempts;
mod channels;
mod foreign;
mod guards;
mod leftovers;
mod pools;
mod sockets;
mod streams;
mod tasks;
mod timers;

use std::panic::panic_any;
use std::sync::Arc;
use std::time::Duration;

use asx::time::{MissedTicks, Time};
use asx::{
    BoxFuture, Cx, Group, Local, Outcome, Scope, Why, group, join, join_all, join3, join4, race,
    race_all, race3, race4, select, try_join, try_join_all, try_join3, try_join4,
};

use crate::ledger::{ExpectedPanic, Value};
use crate::program::{AcquireHow, LockHow, Many, OnceHow, Op, Resolve, RwHow, Where};
use crate::waker::SeparateWaker;
use crate::world::{Fail, Inbox, PERMITS, SlotGuard, World};

static LOCALS: [Local<Value>; 2] = [const { Local::new() }; 2];

/// The environment of an operation.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) world: Arc<World>,
    pub(crate) cx: Cx,
    /// The innermost scope.
    pub(crate) scope: Scope<Fail>,
}

type Run<'a> = BoxFuture<'a, Result<(), Fail>>;

/// Runs the operations of a body in sequence.
pub(crate) fn run<'a>(env: &'a Env, body: &'a [Op]) -> Run<'a> {
    Box::pin(async move {
        for op in body {
            env.world.reach(op);
            env.step(op).await?;
        }
        Ok(())
    })
}

/// Returns cancel options with an optional time limit for cleanup.
fn cancel_options(time: Option<u64>) -> Why {
    let cancel_options = Why::from("as it says");
    match time {
        Some(time) => cancel_options.cleanup_time(micros(time)),
        None => cancel_options,
    }
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
            Op::TrySleep(time) => {
                // Refused beyond the task's deadline.
                if let Ok(sleep) = cx.try_sleep(cx.now() + micros(*time)) {
                    let _ = sleep.deadline();
                    sleep.await?;
                }
            }
            Op::Ticks(period, count) => {
                let mut interval = match world.coin(4) {
                    0 => cx.interval_at(cx.now(), micros(*period)),
                    1 => cx.interval(micros(*period)).missed(MissedTicks::Skip),
                    2 => cx.interval(micros(*period)).missed(MissedTicks::Delay),
                    _ => cx.interval(micros(*period)),
                };
                let _ = (interval.period(), interval.next());
                for _ in 0..*count {
                    interval.tick(cx).await?;
                }
            }
            Op::Checkpoint => cx.checkpoint()?,
            Op::Look => self.check(),
            Op::Consume => cx.consume(1)?,
            Op::Timeout(limit, body) => {
                cx.timeout(micros(*limit), async |_| run(self, body).await).await?;
            }
            Op::Deadline(limit, body) => {
                let deadline = cx.now() + micros(*limit);
                cx.deadline(deadline, async |_| run(self, body).await).await?;
            }
            Op::Race(many, bodies) => self.race(*many, bodies).await?,
            Op::Join(many, bodies) => self.join(*many, bodies).await,
            Op::TryJoin(many, bodies) => self.try_join(*many, bodies).await?,
            Op::Group(bodies) => self.group(bodies).await?,
            Op::Select(time, nth) => self.select(*time, *nth).await?,
            Op::Shield(None, body) => cx.shield(async |_| run(self, body).await).await?,
            Op::Shield(Some(time), body) => {
                cx.shield_for(micros(*time), async |_| run(self, body).await).await?;
            }
            Op::WithLocal(nth, body) => {
                let value = world.ledger.value();
                cx.with_local(&LOCALS[*nth], value, async |_| run(self, body).await).await?;
            }
            Op::Scope(op) => self.scope(op).await?,
            Op::Spawn(child) => self.spawn(child).await?,
            Op::Supervise(times, body) => self.supervise(*times, body),
            Op::Start(sets, body) => self.start(*sets, body).await,
            Op::CxJob(time) => {
                let value = world.ledger.value();
                let time = micros(*time);
                let counted = world.ledger.task();
                let job = cx.spawn_blocking(move || {
                    let _counted = counted;
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

    /// Runs cancel requests, and operations of no other group.
    async fn request(&self, op: &Op) -> Result<(), Fail> {
        let Env { world, cx, scope } = self;
        match op {
            Op::CancelScope(Where::Here, time) => scope.cancel(cancel_options(*time)),
            Op::CancelScope(Where::Thread, time) => {
                let scope = scope.clone();
                let cancel_options = cancel_options(*time);
                world.thread(move |_| scope.cancel(cancel_options));
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
                // Refused on a worker; a job may do it.
                drop(world.runtime.upgrade().map(|runtime| runtime.try_block_on(async |_| ())));
            }
            Op::SeparateWaker(fresh_waker, body) => {
                SeparateWaker::new(&world.ledger, *fresh_waker, run(self, body)).await?;
            }
            Op::Thread(place, does) => self.thread(*place, *does),
            Op::HalfPoll(half, times, fate) => self.half_poll(*half, *times, *fate).await,
            Op::FromBag => self.rummage().await,
            Op::Fail => return Err(Fail::Failed(world.ledger.returned())),
            Op::Panic => panic_any(ExpectedPanic(Some(world.ledger.returned()))),
            op => self.locked(op).await?,
        }
        Ok(())
    }

    /// Runs operations on locks and similar objects.
    async fn locked(&self, op: &Op) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match op {
            Op::Lock(place, how, body) => self.lock(*place, *how, body).await?,
            Op::Read(how, body) => self.read(*how, body).await?,
            Op::Write(how, downgrades, body) => self.write(*how, *downgrades, body).await?,
            Op::Acquire(count, how, body) => self.acquire(*count, *how, body).await?,
            Op::Notify(true) => world.notify.notify_one(),
            Op::Notify(false) => world.notify.notify_waiters(),
            Op::Notified => drop(world.notify.notified(cx).await),
            Op::Barrier => drop(world.barrier.wait(cx).await.map(|turn| turn.is_leader())),
            Op::Once(how) => self.once(*how).await?,
            Op::Obligation(resolve) => {
                let Ok(obligation) = cx.obligation() else { return Ok(()) };
                cx.yield_now().await;
                match resolve {
                    Resolve::Commit => drop(obligation.commit()),
                    Resolve::Abort => drop(obligation.abort()),
                    Resolve::Leave => drop(obligation),
                }
            }
            Op::Serve(family, count, uses) => self.serve(*family, *count, uses).await?,
            Op::Dial(family, uses) => self.dial(*family, uses).await?,
            Op::Connection(family, near, far) => self.connection(*family, near, far).await?,
            Op::Frames(family, count) => self.frames(*family, *count).await?,
            Op::Datagrams(family, count) => self.datagrams(*family, *count).await?,
            Op::Descriptor(family, uses) => self.descriptor(*family, uses).await?,
            op => self.message(op).await?,
        }
        Ok(())
    }

    /// Runs composed operations and operations on streams.
    pub(super) async fn composed(&self, op: &Op) -> Result<(), Fail> {
        match op {
            Op::Post(nth, how) => self.post(*nth, *how).await?,
            Op::Fetch(nth, how) => self.fetch(*nth, *how).await,
            Op::Crew(op) => self.crew(*op),
            Op::Stream(how, items, fate) => self.stream(*how, *items, *fate).await,
            Op::Closed(of) => self.closed(*of).await?,
            Op::Abandon(foreign_future, body) => self.abandon(*foreign_future, body).await?,
            Op::SelectOf(how, time, body) => self.select_of(*how, *time, body).await?,
            Op::Attempts(how, most, succeeds, body) => {
                self.attempts(*how, *most, *succeeds, body).await?;
            }
            Op::Parts(how, bodies) => self.parts(*how, bodies).await?,
            Op::Value(child) => self.value_of(child).await?,
            Op::Reset(how, time, times) => self.reset(*how, *time, *times).await?,
            Op::Delays(count, fate) => self.delays(*count, *fate).await?,
            Op::Parted(kind, place, body) => self.parted(*kind, *place, body).await?,
            Op::Permits(owned, body) => self.permits(*owned, body).await?,
            Op::Shut => self.shut().await?,
            Op::Enabled(owned) => self.enabled(*owned).await?,
            Op::Runtime(does) => self.runtime(*does),
            Op::HalfOf(op, times, fate) => {
                self.poll_and_leave(self.detached_op(op), *times, *fate).await;
            }
            _ => {}
        }
        Ok(())
    }

    /// Calls all queries.
    fn check(&self) {
        let Env { cx, world, .. } = self;
        let _ = (cx.id(), cx.budget(), cx.now(), cx.random(), cx.random_below(7));
        let _ = (cx.is_cancelled(), cx.is_stopping(), cx.try_consume(0));
        let local = LOCALS.iter().find_map(|local| cx.local(local));
        if let Some(local) = local {
            local.check();
        }
        let [one, two] = &world.senders;
        let _ = (one.len(), one.is_empty(), one.is_closed(), one.capacity(), one.same_channel(two));
        let _ = (one.downgrade().upgrade(), world.tracked.leaked());
        let _ = (world.semaphore.available_permits(), world.semaphore.is_closed());
        if let Some(value) = world.once.get() {
            value.check();
        }
    }

    async fn race(&self, many: Many, bodies: &[Vec<Op>]) -> Result<(), Fail> {
        let cx = &self.cx;
        match (many, bodies) {
            (Many::Few, [a, b]) => race(cx, |_| run(self, a), |_| run(self, b)).await,
            (Many::Few, [a, b, c]) => {
                race3(cx, |_| run(self, a), |_| run(self, b), |_| run(self, c)).await
            }
            (Many::Few, [a, b, c, d]) => {
                let last = |_: &Cx| run(self, d);
                race4(cx, |_| run(self, a), |_| run(self, b), |_| run(self, c), last).await
            }
            _ => {
                let parts = bodies.iter().map(|body| move |_: &Cx| run(self, body));
                race_all(cx, parts).await.unwrap_or(Ok(()))
            }
        }
    }

    async fn join(&self, many: Many, bodies: &[Vec<Op>]) {
        let cx = &self.cx;
        match (many, bodies) {
            (Many::Few, [a, b]) => drop(join(cx, |_| run(self, a), |_| run(self, b)).await),
            (Many::Few, [a, b, c]) => {
                drop(join3(cx, |_| run(self, a), |_| run(self, b), |_| run(self, c)).await);
            }
            (Many::Few, [a, b, c, d]) => {
                let last = |_: &Cx| run(self, d);
                drop(join4(cx, |_| run(self, a), |_| run(self, b), |_| run(self, c), last).await);
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
            (Many::Few, [a, b]) => {
                try_join(cx, |_| run(self, a), |_| run(self, b)).await?;
            }
            (Many::Few, [a, b, c]) => {
                try_join3(cx, |_| run(self, a), |_| run(self, b), |_| run(self, c)).await?;
            }
            (Many::Few, [a, b, c, d]) => {
                let last = |_: &Cx| run(self, d);
                try_join4(cx, |_| run(self, a), |_| run(self, b), |_| run(self, c), last).await?;
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
                children.push(match self.world.coin(2) {
                    0 => g.add(|_| run(self, body)),
                    _ => g.add_boxed(async |_| run(self, body).await),
                });
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

    async fn read(&self, how: RwHow, body: &[Op]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match how {
            RwHow::Wait => {
                let guard = world.rwlock.read(cx).await?;
                let _turn = world.rwlock_monitor.shared();
                run(self, body).await?;
                guard.check();
            }
            RwHow::Owned => {
                let guard = world.rwlock.read_owned(cx).await?;
                let _turn = world.rwlock_monitor.shared();
                run(self, body).await?;
                guard.check();
            }
            RwHow::Try => {
                let Ok(guard) = world.rwlock.try_read() else { return Ok(()) };
                let _turn = world.rwlock_monitor.shared();
                run(self, body).await?;
                guard.check();
            }
            RwHow::TryOwned => {
                let Ok(guard) = world.rwlock.try_read_owned() else { return Ok(()) };
                world.thread(move |_| guard.check());
            }
        }
        Ok(())
    }

    async fn write(&self, how: RwHow, downgrades: bool, body: &[Op]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let guard = match how {
            RwHow::Wait => Some(world.rwlock.write(cx).await?),
            RwHow::Try => world.rwlock.try_write().ok(),
            RwHow::Owned | RwHow::TryOwned => None,
        };
        if let Some(mut guard) = guard {
            let turn = world.rwlock_monitor.exclusive();
            *guard = world.ledger.value();
            if !downgrades {
                return run(self, body).await;
            }
            drop(turn);
            let guard = guard.downgrade();
            let _turn = world.rwlock_monitor.shared();
            run(self, body).await?;
            guard.check();
            return Ok(());
        }
        let owned = match how {
            RwHow::Owned => Some(world.rwlock.write_owned(cx).await?),
            _ => world.rwlock.try_write_owned().ok(),
        };
        let Some(mut owned) = owned else { return Ok(()) };
        let turn = world.rwlock_monitor.exclusive();
        *owned = world.ledger.value();
        if downgrades {
            drop(turn);
            let owned = owned.downgrade();
            world.thread(move |_| owned.check());
        } else {
            run(self, body).await?;
        }
        Ok(())
    }

    async fn once(&self, how: OnceHow) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match how {
            OnceHow::Set => drop(world.once.set(world.ledger.value())),
            OnceHow::Init => {
                let init = async || {
                    cx.yield_now().await;
                    world.ledger.value()
                };
                world.once.get_or_init(cx, init).await?.check();
            }
            OnceHow::TryInit(fails) => {
                let init = async || {
                    cx.yield_now().await;
                    if fails {
                        Err(Fail::Failed(world.ledger.returned()))
                    } else {
                        Ok(world.ledger.value())
                    }
                };
                match world.once.get_or_try_init(cx, init).await {
                    Ok(value) => value.check(),
                    Err(fail) => drop(fail),
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
                let _turn = world.mutex_monitor.exclusive();
                *guard = world.ledger.value();
                run(self, body).await?;
            }
            LockHow::Try => {
                let Ok(guard) = world.mutex.try_lock() else { return Ok(()) };
                let _turn = world.mutex_monitor.exclusive();
                guard.check();
                run(self, body).await?;
            }
            LockHow::Owned | LockHow::TryOwned => {
                let guard = match how {
                    LockHow::Owned => world.mutex.lock_owned(cx).await?,
                    _ => match world.mutex.try_lock_owned() {
                        Ok(guard) => guard,
                        Err(_) => return Ok(()),
                    },
                };
                let turn = world.mutex_monitor.exclusive();
                match place {
                    Where::Here => {
                        run(self, body).await?;
                        drop(turn);
                    }
                    Where::Thread => world.thread(move |_| {
                        std::thread::sleep(micros(50));
                        guard.check();
                        drop(turn);
                    }),
                }
            }
        }
        Ok(())
    }

    async fn acquire(&self, count: usize, how: AcquireHow, body: &[Op]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let count = count.min(PERMITS);
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
            AcquireHow::One => {
                let Ok(plain) = world.semaphore.acquire(cx).await else {
                    return Err(Fail::Cancelled);
                };
                drop(plain);
                let Ok(owned) = world.semaphore.acquire_owned(cx).await else {
                    return Err(Fail::Cancelled);
                };
                world.thread(move |_| drop(owned));
                run(self, body).await?;
            }
            AcquireHow::TryOwned => {
                let one = world.semaphore.try_acquire_owned().map(|permit| permit.count());
                let permit = world.semaphore.try_acquire_many_owned(count);
                world.thread(move |_| drop((one, permit)));
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
        value.check();
    }
    drop(outcome);
}

fn receiver(world: &Arc<World>, nth: usize) -> Option<SlotGuard<Inbox>> {
    SlotGuard::take(world, nth, |world, nth| &world.receivers[nth])
}
