//! The default governor with near deadlines and closing regions, and governors that panic.

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use asx_kernel::lanes::Suggestion;
use asx_native::{Adaptive, Governor, Runtime, View};
use asx_runtime::{Cx, Scope};
use common::AppError;

const HOUR: Duration = Duration::from_secs(3600);
/// A governor without a preference. Each test changes the settings it is about.
const CALM: Adaptive = Adaptive {
    near: Duration::ZERO,
    obligations: usize::MAX,
    closing: usize::MAX,
    crowd: usize::MAX,
};

/// Records the views and suggestions of a governor.
#[derive(Clone)]
struct Spy(Adaptive, Arc<Mutex<Vec<(View, Suggestion)>>>);

impl Governor for Spy {
    fn suggest(&self, view: View) -> Suggestion {
        let said = self.0.suggest(view);
        self.1.lock().unwrap().push((view, said));
        said
    }
}

/// Opens a scope, adds it to `scopes`, and spawns a task that calls `say` when it is cancelled. The
/// task holds an obligation if `obliged`.
async fn opens(
    cx: &Cx,
    scopes: Arc<Mutex<Vec<Scope<AppError>>>>,
    obliged: bool,
    say: impl Fn() + Send + 'static,
) -> Result<(), AppError> {
    let _: Result<(), AppError> = cx
        .scope(async |s: Scope<AppError>| {
            s.spawn(async move |cx: Cx| {
                let promise = obliged.then(|| cx.obligation().unwrap());
                cx.cancelled().await;
                say();
                if let Some(promise) = promise {
                    promise.commit().unwrap();
                }
                Ok(())
            });
            scopes.lock().unwrap().push(s);
            Ok(())
        })
        .await;
    Ok(())
}

/// Cancels 40 such scopes, and spawns a task with a deadline in an hour. Returns how many cancelled
/// tasks ran before that, and the recorded suggestions.
fn passed_by(adaptive: Adaptive, obliged: bool) -> (usize, Vec<(View, Suggestion)>) {
    let spy = Spy(adaptive, Arc::default());
    let runtime = Runtime::builder().current_thread().governor(spy.clone()).build().unwrap();
    let (log, scopes) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
    let result: Result<(), AppError> = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s: Scope<AppError>| {
            let say = |what: &'static str| {
                let log = log.clone();
                move || log.lock().unwrap().push(what)
            };
            for _ in 0..40 {
                let (say, scopes) = (say("cancel"), Arc::clone(&scopes));
                s.spawn(async move |cx: Cx| opens(&cx, scopes, obliged, say).await);
            }
            for _ in 0..3 {
                cx.yield_now().await;
            }
            for scope in std::mem::take(&mut *scopes.lock().unwrap()) {
                scope.cancel("done with");
            }
            let timed = say("timed");
            s.task("timed").within(HOUR).spawn(async move |_cx: Cx| {
                timed();
                Ok(())
            });
            Ok(())
        })
        .await
    });
    result.unwrap();
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 41);
    let mut said = std::mem::take(&mut *spy.1.lock().unwrap());
    // Suggestions before there was a choice do not matter.
    said.retain(|(view, _)| view.pending.cancel && view.pending.timed);
    (log.iter().position(|what| *what == "timed").unwrap(), said)
}

#[test]
fn without_preference_cancels_run_up_to_the_streak_limit() {
    let (passed, said) = passed_by(CALM, false);
    assert_eq!(passed, 16);
    assert!(said.iter().all(|(_, said)| *said == Suggestion::NoPreference));
    let (first, _) = said[0];
    assert_eq!((first.cancel, first.timed, first.closing, first.obligations), (40, 1, 40, 0));
    assert!(first.nearest.is_some_and(|nearest| nearest <= HOUR && nearest > HOUR / 2));
}

#[test]
fn a_near_deadline_precedes_cancels() {
    let (passed, said) = passed_by(Adaptive { near: 2 * HOUR, ..CALM }, false);
    assert_eq!((passed, said[0].1), (0, Suggestion::MeetDeadlines));
    // Without a setting for `near`, the deadline is not near.
    assert!(passed_by(Adaptive::default(), false).0 > 0);
}

#[test]
fn many_closing_regions_are_drained() {
    // The limit is exceeded until 24 of the 40 have closed.
    let (passed, said) = passed_by(Adaptive { closing: 16, ..CALM }, false);
    assert_eq!((passed, said[0].1), (24, Suggestion::DrainRegions));
    let (passed, said) = passed_by(Adaptive { crowd: 16, ..CALM }, false);
    assert_eq!((passed, said[0].1), (24, Suggestion::DrainRegions));
}

#[test]
fn obligations_of_closing_regions_are_drained() {
    let (passed, said) = passed_by(Adaptive { obligations: 16, ..CALM }, true);
    assert_eq!((passed, said[0].1), (24, Suggestion::DrainObligations));
    assert_eq!(said[0].0.obligations, 40);
    assert_eq!(passed_by(Adaptive { obligations: 16, ..CALM }, false).0, 16);
}

#[test]
fn the_default_governor_drains_many_closing_regions() {
    let (passed, said) = passed_by(Adaptive::default(), false);
    assert_eq!((passed, said[0].1), (24, Suggestion::DrainRegions));
    let (passed, said) = passed_by(Adaptive::default(), true);
    assert_eq!((passed, said[0].1), (24, Suggestion::DrainObligations));
}

/// Only the default governor is not called if its suggestion would change nothing.
#[test]
fn a_user_defined_governor_is_called_before_every_dispatch() {
    let spy = Spy(Adaptive::default(), Arc::default());
    let runtime = Runtime::builder().workers(2).governor(spy.clone()).build().unwrap();
    let result: Result<(), AppError> = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s| {
            for _ in 0..100 {
                s.spawn(async |cx: Cx| {
                    cx.yield_now().await;
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    });
    assert_eq!(result, Ok(()));
    // Each task is polled twice, and the body at least once.
    let asked = spy.1.lock().unwrap().len();
    assert!(asked > 200, "{asked}");
}

/// A governor that panics.
struct Panics(Arc<AtomicUsize>);

impl Governor for Panics {
    fn suggest(&self, _: View) -> Suggestion {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::panic::resume_unwind(Box::new("on purpose"))
    }
}

#[test]
fn a_governor_that_panics_counts_as_no_preference() {
    for workers in [1, 2] {
        let asked = Arc::<AtomicUsize>::default();
        let governor = Panics(asked.clone());
        let runtime = Runtime::builder().workers(workers).governor(governor).build().unwrap();
        let result: Result<(), AppError> = runtime.block_on(async |cx: Cx| {
            cx.scope(async |s: Scope<AppError>| {
                for n in 0..50 {
                    let task = s.task("timed").within(HOUR).spawn(async |_: Cx| Ok(()));
                    s.spawn(async |_: Cx| Ok(()));
                    if n % 2 == 0 {
                        task.cancel("done with");
                    }
                }
                Ok(())
            })
            .await
        });
        assert_eq!(result, Ok(()));
        assert!(asked.load(Ordering::Relaxed) > 0);
    }
}
