//! Task-local values, through the public interface.

use crate::common;

use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use asx_runtime::{Cx, Local, Policy, Scope, Why};
use common::{AppError, on_each};

static USER: Local<String> = Local::new();
static DEPTH: Local<u32> = Local::new();
static OTHER: Local<u32> = Local::new();

fn user(cx: &Cx) -> Option<String> {
    cx.local(&USER).map(|user| (*user).clone())
}

#[test]
fn a_value_is_seen_inside_and_not_after() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            assert_eq!(user(&cx), None);
            let seen = cx.with_local(&USER, String::from("ann"), async |cx| {
                cx.yield_now().await;
                let inner = cx.with_local(&USER, String::from("bob"), async |cx| user(cx)).await;
                (user(cx), inner, cx.local(&DEPTH))
            });
            let seen = seen.await;
            assert_eq!(seen, (Some("ann".into()), Some("bob".into()), None));
            assert_eq!(user(&cx), None);
        });
    });
}

#[test]
fn keys_of_one_type_are_distinct_and_an_arc_is_kept() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let one = Arc::new(1);
            let seen = cx.with_local(&DEPTH, one.clone(), async |cx| {
                cx.with_local(&OTHER, 2, async |cx| (cx.local(&DEPTH), cx.local(&OTHER))).await
            });
            let (depth, other) = seen.await;
            assert!(Arc::ptr_eq(&depth.unwrap(), &one));
            assert_eq!(other.as_deref(), Some(&2));
        });
    });
}

/// Runs a tree of tasks, each level of which adds one to the depth.
fn grow(cx: Cx, left: u32, leaves: Arc<AtomicUsize>) -> Growing {
    Box::pin(async move {
        if left == 0 {
            assert_eq!(cx.local(&DEPTH).as_deref(), Some(&3));
            assert_eq!(user(&cx).as_deref(), Some("ann"));
            leaves.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let depth = cx.local(&DEPTH).map_or(0, |depth| *depth);
        cx.with_local(&DEPTH, depth + 1, async |cx| {
            cx.scope(async |s| {
                for _ in 0..4 {
                    let leaves = leaves.clone();
                    s.spawn(async move |cx: Cx| {
                        cx.yield_now().await;
                        grow(cx, left - 1, leaves).await
                    });
                }
                Ok(())
            })
            .await
        })
        .await
    })
}

type Growing = Pin<Box<dyn Future<Output = Result<(), AppError>> + Send>>;

#[test]
fn tasks_inherit_through_scopes() {
    on_each(|rt| {
        let leaves = Arc::new(AtomicUsize::new(0));
        let result = rt.block_on(async |cx: Cx| {
            cx.with_local(&USER, String::from("ann"), async |cx| {
                grow(cx.clone(), 3, leaves.clone()).await
            })
            .await
        });
        assert_eq!((result, leaves.load(Ordering::Relaxed)), (Ok(()), 64));
    });
}

#[test]
fn only_scopes_opened_inside_inherit() {
    on_each(|rt| {
        let seen: Result<_, AppError> = rt.block_on(async |cx: Cx| {
            cx.scope(async |s: Scope<AppError>| {
                let body = async |cx: Cx| Ok(user(&cx));
                let (before, inside) = cx
                    .with_local(&USER, String::from("ann"), async |cx| {
                        let before = s.spawn(body).await.unwrap();
                        let inside = cx
                            .scope(async |s: Scope<AppError>| Ok(s.spawn(body).await.unwrap()))
                            .await;
                        (before, inside)
                    })
                    .await;
                Ok((before, inside?))
            })
            .await
        });
        assert_eq!(seen, Ok((None, Some("ann".into()))));
    });
}

#[test]
fn finalizers_jobs_and_local_tasks_inherit_values() {
    on_each(|rt| {
        let count = Arc::new(AtomicUsize::new(0));
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.with_local(&USER, String::from("ann"), async |cx| {
                cx.scope(async |s| {
                    let see = |cx: &Cx, count: &AtomicUsize| {
                        assert_eq!(user(cx).as_deref(), Some("ann"));
                        Ok(count.fetch_add(1, Ordering::Relaxed))
                    };
                    let [a, b, c, d] = [(); 4].map(|()| count.clone());
                    s.defer(async move |cx: Cx| drop(see(&cx, &a))).unwrap();
                    s.spawn_blocking(move || see(&Cx::current().unwrap(), &b));
                    s.spawn_local(async move |cx: Cx| see(&cx, &c));
                    cx.spawn_blocking(move || see(&Cx::current().unwrap(), &d)).await.unwrap()?;
                    Ok(())
                })
                .await
            })
            .await
        });
        assert_eq!((result, count.load(Ordering::Relaxed)), (Ok(()), 4));
    });
}

#[test]
fn a_value_does_not_hide_a_cancel() {
    on_each(|rt| {
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.timeout(Duration::from_millis(1), async |cx| {
                cx.with_local(&DEPTH, 1, async |cx| {
                    cx.sleep(Duration::from_secs(3600)).await?;
                    Ok(())
                })
                .await
            })
            .await
        });
        assert_eq!(result, Err(AppError::Cancelled));
    });
}

#[test]
fn values_live_as_long_as_the_tasks_that_inherit_them() {
    on_each(|rt| {
        let value = Arc::new(5);
        let weak = Arc::downgrade(&value);
        let result: Result<(), AppError> = rt.block_on(async |cx: Cx| {
            cx.with_local(&DEPTH, value, async |cx| {
                cx.scope(async |s| {
                    s.spawn(async |cx: Cx| {
                        cx.yield_now().await;
                        assert_eq!(cx.local(&DEPTH).as_deref(), Some(&5));
                        Ok(())
                    });
                    Ok(())
                })
                .await
            })
            .await
        });
        assert_eq!(result, Ok(()));
        // A worker may still be about to drop the last reference to the task.
        while weak.upgrade().is_some() {
            std::thread::yield_now();
        }
    });
}

type Seen = Arc<Mutex<Vec<Option<String>>>>;

/// Records the value of `USER` when it is dropped.
struct Sees(Cx, Seen);

impl Drop for Sees {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(user(&self.0));
    }
}

async fn waits_inside(cx: Cx, seen: Seen) {
    let sees = Sees(cx.clone(), seen);
    let body = async |_: &Cx| {
        let _sees = sees;
        pending::<()>().await;
    };
    cx.with_local(&USER, String::from("ann"), body).await;
}

/// A value is set in destructors: of a future that is dropped before it completes, of an aborted
/// task, and of the remains of a panic.
#[test]
fn a_value_is_seen_in_destructors_of_incomplete_futures() {
    on_each(|rt| {
        let seen = Seen::default();
        rt.block_on(async |cx: Cx| {
            let mut future = Some(Box::pin(waits_inside(cx.clone(), seen.clone())));
            poll_fn(|context| {
                assert!(future.as_mut().unwrap().as_mut().poll(context).is_pending());
                future = None;
                Poll::Ready(())
            })
            .await;
            for panics in [false, true] {
                let told = seen.clone();
                let settings = cx.scope_with(Policy::CollectAll);
                let ended = settings.run(async |s: Scope<AppError>| {
                    // Not an async block, which would drop its parts while it unwinds.
                    let task = s.spawn(move |cx: Cx| {
                        let mut body = Box::pin(waits_inside(cx.clone(), told));
                        poll_fn(move |context| -> Poll<Result<(), AppError>> {
                            assert!(body.as_mut().poll(context).is_pending());
                            assert!(!panics, "a panic drops the rest of the body");
                            cx.is_cancelled();
                            Poll::Pending
                        })
                    });
                    while !panics && !rt.dump().to_string().contains("outside asx, spawned at") {
                        cx.yield_now().await;
                    }
                    if !panics {
                        task.cancel(Why::from("now").cleanup_time(Duration::from_millis(1)));
                    }
                    assert!(task.await.is_err());
                    Ok(())
                });
                assert!(ended.await.is_ok());
            }
        });
        let seen = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(seen, [const { Some("ann") }; 3].map(|name| name.map(String::from)));
    });
}
