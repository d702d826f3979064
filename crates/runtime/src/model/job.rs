//! Blocking jobs: the thread that is to run one, and a cancel.

use std::sync::Arc;

use super::*;
use crate::cell::BLOCKING;
use crate::outcome::Stop;
use crate::spawn::make;

/// Guards that a job runs once and keeps its value, or was cancelled and never runs, whoever takes
/// which of its two entries first.
#[test]
fn a_job_runs_or_was_cancelled_before() {
    explore_race(|swap| {
        let (place, name, runs) = (Place::new(), name(), Arc::new(AtomicUsize::new(0)));
        let extra = Some(Box::new(Extra { name: Some(name.clone()), ..Extra::default() }));
        let (plan, counted) = (Plan { pin: BLOCKING, extra, ..Plan::default() }, runs.clone());
        let job = |_| async move { Ok::<_, Fault>(counted.fetch_add(1, Relaxed)) };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&place.region, plan, job) };
        let entry = entry.unwrap_or_default().unwrap();
        let line = place.line.clone();
        let cancel = move || {
            let first = task.cancel("model");
            line.run_one();
            (task, first)
        };
        let ((mut task, first), polled) = race(swap, cancel, move || entry.run());
        assert_eq!(place.line.run_one(), None, "an entry too many");
        match task.outcome() {
            // On its own thread only: a worker must not block.
            Some(Ok(0)) => assert!(polled && runs.load(Relaxed) == 1),
            Some(Err(Stop::Cancelled(_))) => assert!(first && runs.load(Relaxed) == 0),
            _ => panic!("it neither ran nor was cancelled"),
        }
        drop(task);
        place.finish();
        assert!(is_freed(&name));
    });
}
