//! Stopping programs that do not want to.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use asx_native::Runtime;
use asx_runtime::{Cancelled, Cx, Grace, Scope};

const SOON: Duration = Duration::from_millis(5);

/// Runs a program, stops it when `tasks` live, and wants all of it to end, and no alarm to be left.
fn stop<B: Future<Output = ()> + 'static>(body: fn(Cx) -> B, tasks: usize, patience: Duration) {
    for workers in [1, 2, 4] {
        let runtime = Arc::new(Runtime::builder().workers(workers).build().unwrap());
        let program = thread::spawn({
            let runtime = runtime.clone();
            move || runtime.block_on(body)
        });
        while runtime.dump().tasks() < tasks {
            thread::yield_now();
        }
        if let Err(left) = runtime.shutdown(Grace { soft: SOON, hard: patience }) {
            panic!("{workers} workers leave:\n{left}");
        }
        program.join().unwrap();
        assert_eq!(runtime.dump().timers, 0);
    }
}

/// The scope's own task passes its cancel on when it sees it: that asks the tasks a second time,
/// and they are as deaf as before, but not lost.
#[test]
fn tasks_that_were_asked_twice_can_be_ended_by_force() {
    async fn program(cx: Cx) {
        let scope = cx.try_scope(async |s: Scope<Cancelled>| {
            for _ in 0..4 {
                drop(s.spawn(async |_| std::future::pending::<Result<(), _>>().await));
            }
            Ok(())
        });
        let _ = scope.await;
    }
    stop(program, 5, SOON);
}

/// Its wakes come from timers, and it is in the cancel lane: neither takes it elsewhere.
#[test]
fn a_program_stays_on_its_thread_when_it_is_cancelled() {
    async fn program(cx: Cx) {
        let here = thread::current().id();
        cx.cancelled().await;
        cx.shield(async |cx| {
            for _ in 0..30 {
                cx.sleep(Duration::from_micros(500)).await.unwrap();
                assert_eq!(thread::current().id(), here);
            }
        })
        .await;
    }
    stop(program, 1, Duration::from_secs(600));
}
