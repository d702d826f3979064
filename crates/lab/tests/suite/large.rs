//! Programs with many tasks: no livelock, and soon looked at.

use std::time::Duration;

use asx::lab::check;
use asx::{Cancelled, Cx};

#[test]
fn a_thousand_tasks_with_twenty_steps_are_no_livelock() {
    let report = check(async |cx: Cx| {
        cx.scope(async |s| {
            for _ in 0..1000 {
                s.spawn(async |cx: Cx| {
                    for _ in 0..20 {
                        cx.yield_now().await;
                    }
                    Ok::<_, Cancelled>(())
                });
            }
            Ok(())
        })
        .await
    })
    // Long enough for a machine that is busy: the work is bounded, too.
    .time(Duration::from_secs(600))
    .run();
    assert!(report.failure.is_none(), "{report}");
    assert!(report.proof.is_none() && report.runs > 10, "{report}");
}
