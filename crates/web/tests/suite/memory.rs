//! A program that starts a million tasks, a thousand at a time, needs the memory of a thousand.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::journal::WhenFull;
use asx_runtime::{Cancelled, Cx, Recording, Scope};
use asx_web::Config;
use asx_web::page::Page;

const HOUR: Duration = Duration::from_secs(3600);

/// Whether a runtime that is dropped with one task of this body that waits, and one that is queued,
/// is freed with everything in it.
fn is_freed<F: Future<Output = ()> + 'static>(config: Config, body: impl Fn(Cx) -> F) -> bool {
    let (page, runtime) = Page::open(config);
    let begun = runtime.start(&body).unwrap();
    page.settle(&runtime);
    let queued = runtime.start(&body).unwrap();
    let core = Arc::downgrade(runtime.core());
    let weak = Arc::downgrade(&page);
    drop(page);
    drop(runtime);
    drop((begun, queued));
    core.upgrade().is_none() && weak.upgrade().is_none()
}

#[test]
fn a_runtime_that_is_dropped_with_living_tasks_is_freed() {
    for journal in [false, true] {
        let config = || {
            let mut config = Config::default();
            if journal {
                config.settings.journal = Some(Recording::new(100, WhenFull::Overwrite));
                config.host_events = 100;
            }
            config
        };
        assert!(is_freed(config(), |_| std::future::pending()), "waits, {journal}");
        assert!(is_freed(config(), async |cx: Cx| drop(cx.cancelled().await)), "looks, {journal}");
        let sleeps = async |cx: Cx| drop(cx.sleep(HOUR).await);
        assert!(is_freed(config(), sleeps), "sleeps, {journal}");
        let has_children = async |cx: Cx| {
            let _: Result<(), Cancelled> = cx
                .scope(async |s: Scope<Cancelled>| {
                    for n in 0..5 {
                        let task = s.task("child").within(HOUR);
                        let task = task.spawn(async |cx: Cx| cx.sleep(HOUR).await);
                        if n % 2 == 0 {
                            task.cancel("enough");
                        }
                    }
                    std::future::pending().await
                })
                .await;
        };
        assert!(is_freed(config(), has_children), "has children, {journal}");
    }
}

/// Pages of memory in use.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_does_not_grow_over_a_million_tasks() {
    let (page, runtime) = Page::open(Config::default());
    let (early, late) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (first, last) = (early.clone(), late.clone());
    let program = runtime
        .start(async move |cx: Cx| {
            for round in 0..1000 {
                let done: Result<(), Cancelled> = cx
                    .scope(async |s: Scope<Cancelled>| {
                        for _ in 0..1000 {
                            let _task = s.spawn(async |_cx: Cx| Ok(()));
                        }
                        Ok(())
                    })
                    .await;
                done.unwrap();
                let seen = if round == 10 { &first } else { &last };
                seen.set(resident());
            }
        })
        .unwrap();
    page.run(&runtime);
    assert!(program.is_over());
    assert!(runtime.certificate().ready > 1_000_000);
    let (early, late) = (early.get(), late.get());
    assert!(late <= early + 256, "{late} pages at the end, {early} after ten rounds");
}
