//! Timers that are reset, and queues of delayed values.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use asx::select;
use asx::time::{DelayQueue, Time};

use super::{Env, micros};
use crate::ledger::Value;
use crate::program::{Fate, ResetHow};
use crate::world::Fail;

/// A value in a queue, with its state as tracked outside the queue.
struct Due {
    at: Arc<AtomicU64>,
    removed: Arc<AtomicBool>,
    value: Value,
}

impl Env {
    pub(super) async fn reset(&self, how: ResetHow, time: u64, times: usize) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let ledger = &world.ledger;
        let some = || micros(world.coin(time + 1));
        match how {
            ResetHow::Sleep => {
                let mut sleep = cx.sleep(micros(time));
                for _ in 0..times {
                    select! {
                        over = &mut sleep => over?,
                        slept = cx.sleep(some()) => slept?,
                    }
                    sleep.reset(cx.now() + some());
                }
                let due = sleep.deadline();
                sleep.await?;
                ledger.expect(world.in_time(cx, due), "a sleep was too short");
            }
            ResetHow::Interval => {
                let mut interval = cx.interval(micros(time + 1));
                for _ in 0..times {
                    match world.coin(5) {
                        0 => interval.reset(cx),
                        1 => interval.reset_immediately(cx),
                        2 => interval.reset_after(cx, some()),
                        3 => interval.reset_at(cx.now() + some()),
                        _ => {}
                    }
                    let next = interval.next();
                    let due = interval.tick(cx).await?;
                    ledger.expect(due == next && world.in_time(cx, due), "a tick was early");
                }
            }
            ResetHow::Ticks => {
                let mut interval = cx.interval(micros(time + 1));
                for _ in 0..times {
                    // A tick is taken when it is available, or not at all.
                    let next = interval.next();
                    let taken = select! {
                        due = interval.tick(cx) => Some(due?),
                        slept = cx.sleep(some()) => {
                            slept?;
                            None
                        }
                    };
                    let right = match taken {
                        Some(due) => due == next && world.in_time(cx, due),
                        None => interval.next() == next,
                    };
                    ledger.expect(right, "a tick was lost");
                }
            }
        }
        Ok(())
    }

    pub(super) async fn delays(&self, count: usize, fate: Fate) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let ledger = &world.ledger;
        let mut queue = DelayQueue::new();
        let mut keys = Vec::new();
        for _ in 0..count {
            let due = cx.now() + micros(world.coin(1_000));
            let at = Arc::new(AtomicU64::new(due.as_nanos()));
            let removed = Arc::new(AtomicBool::new(false));
            let value = ledger.value();
            let entry = Due { at: at.clone(), removed: removed.clone(), value };
            keys.push((queue.insert(due, entry), at, removed));
        }
        let mut left = count;
        while left > 0 {
            match (world.coin(5), keys.pop()) {
                (0, Some((key, _, removed))) if !removed.load(Relaxed) => {
                    if let Some(entry) = queue.remove(key) {
                        left -= 1;
                        removed.store(true, Relaxed);
                        entry.value.check();
                    }
                    ledger.expect(queue.due(key).is_none(), "a removed value has a due time");
                }
                (1, Some((key, at, _))) => {
                    let due = cx.now() + micros(world.coin(500));
                    if queue.reset(key, due) {
                        at.store(due.as_nanos(), Relaxed);
                    }
                }
                (2, Some(_)) => {
                    // May be abandoned before any value is due.
                    select! {
                        entry = queue.next(cx) => left -= self.due(entry?),
                        slept = cx.sleep(micros(50)) => slept?,
                    }
                }
                _ => left -= self.due(queue.next(cx).await?),
            }
            ledger.expect(queue.len() == left, "the length of a queue is wrong");
            if world.coin(10) == 0 {
                break;
            }
        }
        self.leave(queue, fate).await;
        Ok(())
    }

    /// Checks a due entry. Returns the number of entries.
    fn due(&self, entry: Option<Due>) -> usize {
        let ledger = &self.world.ledger;
        let Some(Due { at, removed, value }) = entry else {
            ledger.fault("a queue reports that it is empty".into());
            return 0;
        };
        let in_time = self.world.in_time(&self.cx, Time::from_nanos(at.load(Relaxed)));
        ledger.expect(in_time, "a value became due early");
        ledger.expect(!removed.load(Relaxed), "a removed value became due");
        removed.store(true, Relaxed);
        value.check();
        1
    }
}
