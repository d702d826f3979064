//! Nothing that is runnable in a page waits for long, whatever is cancelled or yields for ever.

use std::sync::Arc;
use std::time::Duration;

use asx_kernel::journal::WhenFull;
use asx_runtime::{Cancelled, Cx, Recording, Scope};
use asx_web::page::Page;
use asx_web::{Config, Ended};

const HOUR: Duration = Duration::from_secs(3600);

fn value<T>(ended: Option<Ended<T>>) -> T {
    match ended {
        Some(Ended::Value(value)) => value,
        _ => panic!("the program gave no value"),
    }
}

/// Tasks that were cancelled while they waited go before another one at most as often as the streak
/// allows, with a journal and without: the entries they leave behind take no turn.
#[test]
fn entries_that_a_cancel_left_behind_take_no_turn() {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    for journal in [false, true] {
        let mut config = Config::default();
        if journal {
            config.settings.journal = Some(Recording::new(1000, WhenFull::Overwrite));
        }
        let (page, runtime) = Page::open(config);
        let program = runtime
            .start(async |cx: Cx| {
                let ran = Arc::new(AtomicUsize::new(0));
                let scope = cx.scope(async |s: Scope<Cancelled>| {
                    let one = |_| {
                        let ran = ran.clone();
                        s.spawn(async move |cx: Cx| {
                            cx.cancelled().await;
                            ran.fetch_add(1, SeqCst);
                            Ok(())
                        })
                    };
                    let tasks: Vec<_> = (0..2000).map(one).collect();
                    tasks.iter().for_each(|task| _ = task.cancel("go"));
                    let ran = ran.clone();
                    let last = s.spawn(async move |_cx: Cx| Ok(ran.load(SeqCst)));
                    Ok(last.await.unwrap_or(usize::MAX))
                });
                scope.await.unwrap_or(usize::MAX)
            })
            .unwrap();
        page.run(&runtime);
        let before = value(program.ended());
        assert!(before <= 16, "journal {journal}: after {before}");
        assert_eq!(runtime.certificate().effective_exceedances, 0);
    }
}

/// A task that always yields, with a far deadline or a high priority, leaves others their turns.
#[test]
fn a_task_that_always_yields_starves_nobody() {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    for timed in [false, true] {
        let (page, runtime) = Page::open(Config::default());
        let program = runtime
            .start(async move |cx: Cx| {
                let scope = cx.scope(async |s: Scope<Cancelled>| {
                    let stop = Arc::new(AtomicBool::new(false));
                    let task = s.task("special");
                    let task = if timed { task.within(HOUR) } else { task.priority(200) };
                    let stopped = stop.clone();
                    let special = task.spawn(async move |cx: Cx| {
                        let mut polls = 0;
                        while !stopped.load(SeqCst) {
                            polls += 1;
                            cx.yield_now().await;
                        }
                        Ok(polls)
                    });
                    for _ in 0..20 {
                        cx.yield_now().await;
                    }
                    stop.store(true, SeqCst);
                    Ok(special.await.unwrap_or(u64::MAX))
                });
                scope.await.unwrap_or(u64::MAX)
            })
            .unwrap();
        page.run(&runtime);
        let polls = value(program.ended());
        assert!(polls <= 23 * 65, "{polls} polls");
    }
}
