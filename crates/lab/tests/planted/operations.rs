//! Bugs between two operations of one poll, of which none waits: one worker never has them.

use std::sync::Arc;

use asx_lab::check;
use asx_runtime::channel::{self, bounded, broadcast, oneshot, unbounded, watch};
use asx_runtime::sync::{Mutex, Notify, OnceCell, RwLock, Semaphore};
use asx_runtime::{Cancelled, Cx, Scope};

use super::planted;

type Ended = Result<(), Cancelled>;

/// Runs two tasks, and waits for both.
async fn both<A, B>(cx: &Cx, one: impl FnOnce(Cx) -> A, other: impl FnOnce(Cx) -> B) -> Ended
where
    A: Future<Output = Ended> + Send + 'static,
    B: Future<Output = Ended> + Send + 'static,
{
    cx.scope(async |s: Scope<Cancelled>| {
        s.spawn(one);
        s.spawn(other);
        Ok(())
    })
    .await
}

/// Looks whether there is room, and sends as if there still were.
async fn room_then_send<const BUG: bool>(cx: Cx) -> Ended {
    let (tx, _rx) = bounded::<u32>(1);
    let send = |tx: channel::Sender<u32>| {
        async move |_cx: Cx| {
            if BUG {
                if tx.is_empty() {
                    tx.try_send(1).expect("there was room");
                }
            } else {
                let _ = tx.try_send(1);
            }
            Ok(())
        }
    };
    both(&cx, send(tx.clone()), send(tx)).await
}
planted!(room_then_send_is_found: room_then_send, Panic, 1, Proved);

/// Looks whether there is a permit, and takes it as if it were still there.
async fn permit_then_take<const BUG: bool>(cx: Cx) -> Ended {
    let permits = Arc::new(Semaphore::new(1));
    let take = |permits: Arc<Semaphore>| {
        async move |_cx: Cx| {
            if BUG {
                if permits.available_permits() > 0 {
                    drop(permits.try_acquire().expect("there was one"));
                }
            } else {
                drop(permits.try_acquire());
            }
            Ok(())
        }
    };
    both(&cx, take(permits.clone()), take(permits)).await
}
planted!(permit_then_take_is_found: permit_then_take, Panic, 2, Proved);

/// Sets a cell that was empty.
async fn empty_then_set<const BUG: bool>(cx: Cx) -> Ended {
    let cell = Arc::new(OnceCell::new());
    let set = |cell: Arc<OnceCell<u32>>| {
        async move |_cx: Cx| {
            if BUG {
                if cell.get().is_none() {
                    cell.set(1).expect("it was empty");
                }
            } else {
                let _ = cell.set(1);
            }
            Ok(())
        }
    };
    both(&cx, set(cell.clone()), set(cell)).await
}
planted!(empty_then_set_is_found: empty_then_set, Panic, 1, Proved);

/// Looks with the lock for readers, and writes with the other one.
async fn read_then_write<const BUG: bool>(cx: Cx) -> Ended {
    let stock = Arc::new(RwLock::new(1_i32));
    let buy = |stock: Arc<RwLock<i32>>| {
        async move |cx: Cx| {
            if BUG {
                let is_there = *stock.read(&cx).await? > 0;
                if is_there {
                    *stock.write(&cx).await? -= 1;
                }
            } else {
                let mut stock = stock.write(&cx).await?;
                if *stock > 0 {
                    *stock -= 1;
                }
            }
            Ok(())
        }
    };
    both(&cx, buy(stock.clone()), buy(stock.clone())).await?;
    assert_eq!(*stock.read(&cx).await?, 0, "sold twice");
    Ok(())
}
planted!(read_then_write_is_found: read_then_write, Panic, 1, Proved);

/// Two parts of one fact, each with a lock of its own.
async fn torn_pair<const BUG: bool>(cx: Cx) -> Ended {
    let pair = Arc::new((Mutex::new(0), Mutex::new(0)));
    let seen = pair.clone();
    both(
        &cx,
        async move |cx: Cx| {
            if BUG {
                *pair.0.lock(&cx).await? += 1;
                *pair.1.lock(&cx).await? += 1;
            } else {
                let mut first = pair.0.lock(&cx).await?;
                *pair.1.lock(&cx).await? += 1;
                *first += 1;
            }
            Ok(())
        },
        async move |cx: Cx| {
            let first = seen.0.lock(&cx).await?;
            let second = seen.1.lock(&cx).await?;
            assert_eq!(*first, *second, "one half of a change");
            Ok(())
        },
    )
    .await
}
planted!(torn_pair_is_found: torn_pair, Panic, 1, Proved);

/// Says that something has changed, and changes it then.
async fn notified_too_early<const BUG: bool>(cx: Cx) -> Ended {
    let state = Arc::new((Mutex::new(false), Notify::new()));
    let waits = state.clone();
    both(
        &cx,
        async move |cx: Cx| {
            if BUG {
                state.1.notify_one();
            }
            *state.0.lock(&cx).await? = true;
            if !BUG {
                state.1.notify_one();
            }
            Ok(())
        },
        async move |cx: Cx| {
            while !*waits.0.lock(&cx).await? {
                waits.1.notified(&cx).await?;
            }
            Ok(())
        },
    )
    .await
}
planted!(notified_too_early_is_found: notified_too_early, Deadlock, 2, Proved);

/// Starts a worker, and then writes down what the worker looks for.
async fn started_before_registered<const BUG: bool>(cx: Cx) -> Ended {
    let registry = Arc::new(Mutex::new(Vec::new()));
    cx.scope(async |s: Scope<Cancelled>| {
        if !BUG {
            registry.lock(&cx).await?.push("worker");
        }
        let known = registry.clone();
        s.spawn(async move |cx: Cx| {
            assert!(known.lock(&cx).await?.contains(&"worker"), "nobody knows it");
            Ok(())
        });
        if BUG {
            registry.lock(&cx).await?.push("worker");
        }
        Ok(())
    })
    .await
}
planted!(started_before_registered_is_found: started_before_registered, Panic, 1, Proved);

/// Subscribes after the publisher was started.
async fn subscribed_too_late<const BUG: bool>(cx: Cx) -> Ended {
    let (news, early) = broadcast::<u32>(4);
    let news = Arc::new(news);
    let publisher = news.clone();
    cx.scope(async |s: Scope<Cancelled>| {
        let mut before = (!BUG).then(|| news.subscribe());
        s.spawn(async move |_cx: Cx| {
            let sent = publisher.send(1);
            assert!(sent.is_ok(), "somebody listens");
            Ok(())
        });
        let mut reader = before.take().unwrap_or_else(|| news.subscribe());
        drop(news);
        assert_eq!(reader.recv(&cx).await.ok(), Some(1), "it was not heard");
        Ok(())
    })
    .await?;
    drop(early);
    Ok(())
}
planted!(subscribed_too_late_is_found: subscribed_too_late, Panic, 1, Proved);

/// Leaves the work to whoever has the lock, who may just have looked for the last time.
async fn work_left_to_another<const BUG: bool>(cx: Cx) -> Ended {
    let queue = Arc::new((Mutex::new(0), Mutex::new(0)));
    let add = |queue: Arc<(Mutex<u32>, Mutex<u32>)>| {
        async move |cx: Cx| {
            *queue.0.lock(&cx).await? += 1;
            if BUG {
                if let Ok(mut done) = queue.1.try_lock() {
                    *done += std::mem::take(&mut *queue.0.lock(&cx).await?);
                }
            } else {
                let mut done = queue.1.lock(&cx).await?;
                *done += std::mem::take(&mut *queue.0.lock(&cx).await?);
            }
            Ok(())
        }
    };
    both(&cx, add(queue.clone()), add(queue.clone())).await?;
    assert_eq!(*queue.1.lock(&cx).await?, 2, "work was left over");
    Ok(())
}
planted!(work_left_to_another_is_found: work_left_to_another, Panic, 2, Proved);

/// Draws a number and writes it back with the next use of the lock.
async fn number_twice<const BUG: bool>(cx: Cx) -> Ended {
    let next = Arc::new(Mutex::new(0_u32));
    let drawn = Arc::new(Mutex::new(Vec::new()));
    let draw = |next: Arc<Mutex<u32>>, drawn: Arc<Mutex<Vec<u32>>>| {
        async move |cx: Cx| {
            let number = if BUG {
                let number = *next.lock(&cx).await?;
                *next.lock(&cx).await? = number + 1;
                number
            } else {
                let mut next = next.lock(&cx).await?;
                *next += 1;
                *next
            };
            drawn.lock(&cx).await?.push(number);
            Ok(())
        }
    };
    both(&cx, draw(next.clone(), drawn.clone()), draw(next, drawn.clone())).await?;
    let drawn = drawn.lock(&cx).await?;
    assert_ne!(drawn[0], drawn[1], "one number for two");
    Ok(())
}
planted!(number_twice_is_found: number_twice, Panic, 1, Proved);

/// Takes what it has just seen to be there.
async fn answered_twice<const BUG: bool>(cx: Cx) -> Ended {
    let (reply, mut answer) = oneshot::<u32>();
    let slot = Arc::new(Mutex::new(Some(reply)));
    let give = |slot: Arc<Mutex<Option<channel::oneshot::Reply<u32>>>>| {
        async move |cx: Cx| {
            if BUG {
                let is_open = slot.lock(&cx).await?.is_some();
                if is_open {
                    let reply = slot.lock(&cx).await?.take().expect("it was open");
                    let _ = reply.send(1);
                }
            } else if let Some(reply) = slot.lock(&cx).await?.take() {
                let _ = reply.send(1);
            }
            Ok(())
        }
    };
    both(&cx, give(slot.clone()), give(slot)).await?;
    assert_eq!(answer.try_recv(), Ok(1));
    Ok(())
}
planted!(answered_twice_is_found: answered_twice, Panic, 1, Proved);

/// Counts itself out, and looks who is left with the next use of the lock.
async fn nobody_was_last<const BUG: bool>(cx: Cx) -> Ended {
    let left = Arc::new(Mutex::new(2));
    let closed = Arc::new(Mutex::new(0));
    let leave = |left: Arc<Mutex<u32>>, closed: Arc<Mutex<u32>>| {
        async move |cx: Cx| {
            let is_last = if BUG {
                *left.lock(&cx).await? -= 1;
                *left.lock(&cx).await? == 0
            } else {
                let mut left = left.lock(&cx).await?;
                *left -= 1;
                *left == 0
            };
            if is_last {
                *closed.lock(&cx).await? += 1;
            }
            Ok(())
        }
    };
    both(&cx, leave(left.clone(), closed.clone()), leave(left, closed.clone())).await?;
    assert_eq!(*closed.lock(&cx).await?, 1, "closed once");
    Ok(())
}
planted!(nobody_was_last_is_found: nobody_was_last, Panic, 2, Proved);

/// Rings before the parcel is there.
async fn rang_first<const BUG: bool>(cx: Cx) -> Ended {
    let (parcels, mut door) = unbounded::<u32>();
    let (bell, mut heard) = unbounded::<()>();
    both(
        &cx,
        async move |_cx: Cx| {
            if BUG {
                let _ = bell.send(());
                let _ = parcels.send(1);
            } else {
                let _ = parcels.send(1);
                let _ = bell.send(());
            }
            Ok(())
        },
        async move |cx: Cx| {
            if heard.recv(&cx).await.is_ok() {
                assert_eq!(door.try_recv(), Ok(1), "the bell rang");
            }
            Ok(())
        },
    )
    .await
}
planted!(rang_first_is_found: rang_first, Panic, 1, Proved);

/// Moves money in two steps, while another counts it.
async fn money_on_its_way<const BUG: bool>(cx: Cx) -> Ended {
    let accounts = Arc::new((Mutex::new(5), Mutex::new(5)));
    let counted = accounts.clone();
    both(
        &cx,
        async move |cx: Cx| {
            if BUG {
                *accounts.0.lock(&cx).await? -= 1;
                *accounts.1.lock(&cx).await? += 1;
            } else {
                let mut from = accounts.0.lock(&cx).await?;
                let mut to = accounts.1.lock(&cx).await?;
                *from -= 1;
                *to += 1;
            }
            Ok(())
        },
        async move |cx: Cx| {
            let from = counted.0.lock(&cx).await?;
            let to = counted.1.lock(&cx).await?;
            assert_eq!(*from + *to, 10, "money is missing");
            Ok(())
        },
    )
    .await
}
planted!(money_on_its_way_is_found: money_on_its_way, Panic, 1, Proved);

/// Cancels a task that was not over when it looked, and counts on that.
async fn over_after_the_look<const BUG: bool>(cx: Cx) -> Ended {
    cx.scope(async |s: Scope<Cancelled>| {
        let task = s.spawn(async |cx: Cx| cx.checkpoint());
        if BUG {
            if !task.is_finished() {
                assert!(task.cancel("too slow"), "it was not over");
            }
        } else {
            task.cancel("too slow");
        }
        drop(task);
        Ok(())
    })
    .await
    .or(Ok(()))
}
planted!(over_after_the_look_is_found: over_after_the_look, Panic, 1, Unseen);

/// Sets a value that it has read, with others doing the same.
async fn setting_lost<const BUG: bool>(cx: Cx) -> Ended {
    let (set, seen) = watch(0_u32);
    let set = Arc::new(set);
    let raise = |set: Arc<channel::watch::Setter<u32>>| {
        async move |_cx: Cx| {
            if BUG {
                let value = *set.borrow();
                let _ = set.send(value + 1);
            } else {
                set.send_modify(|value| *value += 1);
            }
            Ok(())
        }
    };
    both(&cx, raise(set.clone()), raise(set.clone())).await?;
    assert_eq!(*seen.borrow(), 2, "one was lost");
    Ok(())
}
planted!(setting_lost_is_found: setting_lost, Panic, 1, Proved);
