//! Mapped guards, permits that are split, and waits that are enabled early.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use asx::Grace;
use asx::sync::{
    AcquireError, MutexGuard, OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard,
    RwLockReadGuard, RwLockWriteGuard, Semaphore,
};

use super::{Env, micros, run};
use crate::ledger::{ExpectedPanic, Value};
use crate::lock_monitor::LockVisit;
use crate::program::{HandleDoes, LockKind, Op, Where};
use crate::world::{Fail, PERMITS};

impl Env {
    /// A mapping function may panic here.
    fn on_the_way(&self) {
        if self.world.ledger.should_panic(10) {
            panic_any(ExpectedPanic(None));
        }
    }

    /// Takes a guard of a part, or of the whole if there is no part.
    pub(super) async fn parted(
        &self,
        kind: LockKind,
        place: Where,
        body: &[Op],
    ) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let there = world.coin(2) == 0;
        let reads = |value: &Value| {
            self.on_the_way();
            value.check();
            there
        };
        // A visit begins after mapping and ends before the guard is dropped: tuple fields are
        // dropped in order.
        match kind {
            LockKind::Mutex => {
                let mut guard = world.mutex.lock(cx).await?;
                *guard = world.ledger.value();
                let part =
                    MutexGuard::filter_map(guard, |value| reads(value).then(|| value.part_mut()));
                let part = match part {
                    Ok(part) => part,
                    Err(whole) => MutexGuard::map(whole, |value| value.part_mut()),
                };
                let _visit = (world.mutex_monitor.exclusive(), part);
                run(self, body).await
            }
            LockKind::OwnedMutex => {
                let guard = world.mutex.lock_owned(cx).await?;
                let part = OwnedMutexGuard::map(guard, |value| {
                    reads(value);
                    value.part_mut()
                });
                self.visit((world.mutex_monitor.exclusive(), part), place, body).await
            }
            LockKind::Read => {
                let guard = world.rwlock.read(cx).await?;
                let part = RwLockReadGuard::map(guard, |value| {
                    reads(value);
                    value.part()
                });
                let _visit = (world.rwlock_monitor.shared(), part);
                run(self, body).await
            }
            LockKind::OwnedRead => {
                let guard = world.rwlock.read_owned(cx).await?;
                let part = OwnedRwLockReadGuard::filter_map(guard, |value| {
                    reads(value).then(|| value.part())
                });
                self.visit((world.rwlock_monitor.shared(), part), place, body).await
            }
            LockKind::Write => {
                let guard = world.rwlock.write(cx).await?;
                let part = RwLockWriteGuard::map(guard, |value| {
                    *value = world.ledger.value();
                    value.part_mut()
                });
                let _visit = (world.rwlock_monitor.exclusive(), part);
                run(self, body).await
            }
            LockKind::OwnedWrite => {
                let guard = world.rwlock.write_owned(cx).await?;
                let part = OwnedRwLockWriteGuard::map(guard, |value| {
                    reads(value);
                    value.part_mut()
                });
                self.visit((world.rwlock_monitor.exclusive(), part), place, body).await
            }
        }
    }

    /// Holds a lock during the body, or lets a thread release it.
    async fn visit<G>(&self, visit: (LockVisit, G), place: Where, body: &[Op]) -> Result<(), Fail>
    where
        G: Send + 'static,
    {
        match place {
            Where::Here => {
                let _visit = visit;
                run(self, body).await
            }
            Where::Thread => {
                self.world.thread(move |_| drop(visit));
                Ok(())
            }
        }
    }

    /// Takes all permits, splits and merges them.
    pub(super) async fn permits(&self, owned: bool, body: &[Op]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        if owned {
            let Ok(mut all) = world.semaphore.acquire_many_owned(cx, PERMITS).await else {
                return Err(Fail::Cancelled);
            };
            let Some(one) = all.split(1) else { return Ok(()) };
            world.ledger.expect(all.count() + one.count() == PERMITS, "a split lost permits");
            match world.coin(2) {
                0 => all.merge(one),
                _ => world.thread(move |_| drop(one)),
            }
            return run(self, body).await;
        }
        let Ok(mut all) = world.semaphore.acquire_many(cx, PERMITS).await else {
            return Err(Fail::Cancelled);
        };
        let none = all.split(PERMITS + 1).is_none();
        let Some(one) = all.split(1) else { return Ok(()) };
        let split = none && all.count() + one.count() == PERMITS;
        world.ledger.expect(split, "a split lost permits");
        match world.coin(2) {
            0 => drop(one),
            _ => {
                all.merge(one);
                let available = world.semaphore.available_permits();
                world.ledger.expect(available == 0, "there are too many permits");
            }
        }
        run(self, body).await
    }

    /// Closes a new semaphore with a waiter: the waiter gets an error.
    pub(super) async fn shut(&self) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let semaphore = Arc::new(Semaphore::new(1));
        let held = semaphore.try_acquire_owned();
        world.ledger.expect(held.is_ok(), "a new semaphore has no permit");
        let closes = semaphore.clone();
        world.thread(move |_| {
            closes.close();
            drop(held);
        });
        match semaphore.acquire(cx).await {
            Ok(permit) => {
                world.ledger.expect(permit.count() == 1, "the number of permits is not 1")
            }
            Err(AcquireError::Closed) => {
                world.ledger.expect(semaphore.is_closed(), "closed, but `is_closed` is false");
            }
            Err(AcquireError::Cancelled(cancelled)) => return Err(cancelled.into()),
        }
        Ok(())
    }

    pub(super) async fn enabled(&self, owned: bool) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let ledger = &world.ledger;
        if owned {
            let mut waits = world.notify.notified_owned(cx);
            waits.enable();
            world.notify.notify_waiters();
            ledger.expect(waits.enable(), "`notify_waiters` missed an enabled waiter");
            if world.coin(2) == 0 {
                waits.await?;
            }
            return Ok(());
        }
        let mut waits = world.notify.notified(cx);
        let mut behind = world.notify.notified(cx);
        waits.enable();
        behind.enable();
        cx.yield_now().await;
        match world.coin(3) {
            // The notification is passed on to the next waiter.
            0 => {
                world.notify.notify_one();
                drop(waits);
                drop(behind);
            }
            1 => {
                world.notify.notify_waiters();
                ledger.expect(waits.enable() && behind.enable(), "a notification missed a waiter");
                waits.await?;
            }
            _ => {
                drop(behind);
                waits.await?;
            }
        }
        Ok(())
    }

    pub(super) fn runtime(&self, does: HandleDoes) {
        let handle = self.cx.handle();
        match does {
            HandleDoes::Dump => {
                let dump = handle.dump();
                self.world.ledger.expect(dump.tasks() > 0, "the dump lacks this task");
                drop((dump.to_json(), dump.to_string()));
            }
            HandleDoes::Metrics => {
                let workers = handle.metrics().workers.len();
                self.world.ledger.expect(workers > 0, "there are no workers");
            }
            HandleDoes::Health => drop(handle.health()),
            HandleDoes::Stop(soft, hard) => {
                self.world.stopped.store(true, Relaxed);
                handle.stop(Grace { soft: micros(soft), hard: micros(hard) });
            }
        }
    }
}
