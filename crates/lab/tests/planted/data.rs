//! Shared data without a lock, or with less than one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use asx_lab::check;
use asx_runtime::sync::{Mutex, OnceCell};
use asx_runtime::{Cancelled, Cx, Scope};

use super::planted;

/// Reads, waits, and writes what it has read.
async fn check_then_act<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let count = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            let count = count.clone();
            s.spawn(async move |cx: Cx| {
                if BUG {
                    let before = count.load(Relaxed);
                    cx.yield_now().await;
                    count.store(before + 1, Relaxed);
                } else {
                    cx.yield_now().await;
                    count.fetch_add(1, Relaxed);
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(count.load(Relaxed), 2, "an increment was lost");
    Ok(())
}
planted!(check_then_act_is_found: check_then_act, Panic, 1, Unseen);

/// Looks under the lock, lets go, and takes it again to act, with no wait in between.
async fn two_locks_in_a_row<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let balance = Arc::new(Mutex::new(100));
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            let balance = balance.clone();
            s.spawn(async move |cx: Cx| {
                if BUG {
                    let is_enough = *balance.lock(&cx).await? >= 80;
                    if is_enough {
                        *balance.lock(&cx).await? -= 80;
                    }
                } else {
                    let mut balance = balance.lock(&cx).await?;
                    if *balance >= 80 {
                        *balance -= 80;
                    }
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(*balance.lock(&cx).await?, 20, "overdrawn");
    Ok(())
}
planted!(two_locks_in_a_row_are_found: two_locks_in_a_row, Panic, 1, Proved);

/// Made by whoever finds that it is not there, which may be two.
async fn made_twice<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let made = Arc::new(AtomicU32::new(0));
    let cell = Arc::new(OnceCell::new());
    cx.scope(async |s: Scope<Cancelled>| {
        for _ in 0..2 {
            let (made, cell) = (made.clone(), cell.clone());
            s.spawn(async move |cx: Cx| {
                let make = async || {
                    cx.yield_now().await;
                    made.fetch_add(1, Relaxed)
                };
                if !BUG {
                    cell.get_or_init(&cx, make).await?;
                } else if cell.get().is_none() {
                    let value = make().await;
                    let _ = cell.set(value);
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(made.load(Relaxed), 1, "made twice");
    Ok(())
}
planted!(made_twice_is_found: made_twice, Panic, 1, Proved);

/// Two find that no worker runs, and both start one.
async fn double_spawn<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let workers = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        let started = Arc::new(AtomicBool::new(false));
        for _ in 0..2 {
            let (started, workers, scope) = (started.clone(), workers.clone(), s.clone());
            s.spawn(async move |cx: Cx| {
                let first = match BUG {
                    true => {
                        let first = !started.load(Relaxed);
                        cx.yield_now().await;
                        started.store(true, Relaxed);
                        first
                    }
                    false => !started.swap(true, Relaxed),
                };
                if first {
                    scope.spawn(async move |_cx: Cx| {
                        workers.fetch_add(1, Relaxed);
                        Ok(())
                    });
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(workers.load(Relaxed), 1, "two workers");
    Ok(())
}
planted!(double_spawn_is_found: double_spawn, Panic, 1, Proved);

/// A stack of three nodes by their numbers; its head is a number and, in the upper half, how often
/// it was changed.
struct Stack {
    head: AtomicU64,
    next: [AtomicU32; 4],
}

impl Stack {
    fn new() -> Stack {
        Stack { head: AtomicU64::new(1), next: [0, 2, 3, 0].map(AtomicU32::new) }
    }

    /// Takes the first node; `BUG`: the head counts as unchanged if its number is the same.
    async fn pop<const BUG: bool>(&self, cx: &Cx) -> u32 {
        loop {
            let head = self.head.load(Relaxed);
            let first = head as u32;
            let next = self.next[first as usize].load(Relaxed);
            cx.yield_now().await;
            let now = self.head.load(Relaxed);
            if now == head || BUG && now as u32 == first {
                self.head.store(((now >> 32) + 1) << 32 | u64::from(next), Relaxed);
                return first;
            }
        }
    }

    fn push(&self, node: u32) {
        let head = self.head.load(Relaxed);
        self.next[node as usize].store(head as u32, Relaxed);
        self.head.store(((head >> 32) + 1) << 32 | u64::from(node), Relaxed);
    }
}

/// The head is what it was, and yet everything has changed.
async fn aba<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let stack = Arc::new(Stack::new());
    let others = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        let (one, other) = (stack.clone(), stack.clone());
        s.spawn(async move |cx: Cx| {
            one.pop::<BUG>(&cx).await;
            Ok(())
        });
        let owned = others.clone();
        s.spawn(async move |cx: Cx| {
            let first = other.pop::<BUG>(&cx).await;
            owned.store(other.pop::<BUG>(&cx).await, Relaxed);
            other.push(first);
            Ok(())
        });
        Ok(())
    })
    .await?;
    let (head, owned) = (stack.head.load(Relaxed) as u32, others.load(Relaxed));
    assert_ne!(head, owned, "a node is in the stack, and somebody has it");
    Ok(())
}
planted!(aba_is_found: aba, Panic, 2, Proved);

/// Two values that belong together are written one after the other.
async fn torn<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    cx.scope(async |s: Scope<Cancelled>| {
        let pair = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let read = pair.clone();
        s.spawn(async move |cx: Cx| {
            pair[0].store(1, Relaxed);
            if BUG {
                cx.yield_now().await;
            }
            pair[1].store(1, Relaxed);
            Ok(())
        });
        s.spawn(async move |_cx: Cx| {
            let [one, two] = [0, 1].map(|at: usize| read[at].load(Relaxed));
            assert_eq!(one, two, "half of it");
            Ok(())
        });
        Ok(())
    })
    .await
}
planted!(torn_is_found: torn, Panic, 1, Unseen);

/// Fails only if two tasks go strictly in turns, twelve times.
async fn needle<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    const TURNS: u32 = 12;
    let turn = Arc::new(AtomicU32::new(0));
    cx.scope(async |s: Scope<Cancelled>| {
        for task in 0..2 {
            let turn = turn.clone();
            s.spawn(async move |cx: Cx| {
                while turn.load(Relaxed) % 2 == task && turn.load(Relaxed) < TURNS {
                    turn.fetch_add(1, Relaxed);
                    cx.yield_now().await;
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert!(!BUG || turn.load(Relaxed) < TURNS, "the needle");
    Ok(())
}
planted!(needle_is_found: needle, Panic, 12, Proved);

/// One of many lets go of the lock between reading and writing: how much is lost differs from order
/// to order.
async fn one_of_twenty<const BUG: bool>(cx: Cx) -> Result<(), Cancelled> {
    let sum = Arc::new(AtomicU32::new(0));
    let all = sum.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        let lock = Arc::new(Mutex::new(()));
        for nth in 0..20 {
            let (lock, sum) = (lock.clone(), sum.clone());
            s.spawn(async move |cx: Cx| {
                for _ in 0..3 {
                    let guard = lock.lock(&cx).await?;
                    let before = sum.load(Relaxed);
                    if BUG && nth == 13 {
                        drop(guard);
                        cx.yield_now().await;
                    }
                    sum.store(before + 1, Relaxed);
                }
                Ok(())
            });
        }
        Ok(())
    })
    .await?;
    assert_eq!(all.load(Relaxed), 60);
    Ok(())
}
planted!(one_of_twenty_is_found: one_of_twenty, Panic, 1, Passes);
