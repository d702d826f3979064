//! Random polls, drops, cancels and releases against naive models.
//!
//! After each step every waiter has been woken exactly if the model says it has been called: that
//! is order, exclusion and no lost wakeup at once. At the end everything is released and only
//! tasks that were woken are polled: all must come through.

mod notify;
mod pool;

use asx_kernel::rng::DetRng;
use asx_task::Cx;

use super::{Probe, loose};

/// Steps in one run.
const STEPS: usize = 120;
/// Runs of one test, each with its own seed.
const RUNS: u64 = 300;

/// One future of a run and what the model knows of it.
struct Waiter<'a, T, S> {
    probe: Probe<'a, T>,
    cancel: &'a dyn Fn(),
    state: S,
}

/// A context for each step of a run; those that were cancelled are replaced after it.
fn runs(mut run: impl FnMut(DetRng, &[(Cx, Box<dyn Fn()>)])) {
    let fresh = || {
        let (cx, cancel) = loose();
        (cx, Box::new(cancel) as Box<dyn Fn()>)
    };
    let mut contexts: Vec<_> = (0..STEPS).map(|_| fresh()).collect();
    for seed in 0..RUNS {
        run(DetRng::new(seed, 0), &contexts);
        for context in contexts.iter_mut().filter(|(cx, _)| cx.checkpoint().is_err()) {
            *context = fresh();
        }
    }
}

/// An index, if there is any.
fn pick(rng: &mut DetRng, count: usize) -> Option<usize> {
    (count > 0).then(|| rng.below(count))
}
