//! Limits on public operations.

use asx_lab::{Grain, check};
use asx_runtime::Cx;

use super::limited;

// Forbidden behaviour FB-100 (ready and timed queue) and FB-103 (memory, channels). The lab keeps
// every event of a run, so a trace has no limit there.
#[test]
fn public_operations_beyond_a_limit_are_refused() {
    for name in limited::ANY_WORKERS.into_iter().chain(limited::ONE_WORKER) {
        let program = check(async move |cx: Cx| limited::run(name, cx).await);
        let program = program.limits(limited::limits_of(name)).grain(Grain::Poll).runs(50);
        let report = program.run();
        assert!(report.failure.is_none(), "{name}: {report}");
    }
}
