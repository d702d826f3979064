//! The quiescence check, for every combination of live objects.

use asx_kernel::quiescence::Census;
use asx_kernel::status::Status;

#[test]
fn every_combination_reports_all_failures_in_order() {
    let order = [
        Status::TasksStillActive,
        Status::ObligationsUnresolved,
        Status::RegionsNotClosed,
        Status::TimersPending,
        Status::ChannelNotDrained,
    ];
    for subset in 0..32_usize {
        let count = |bit: usize| if subset >> bit & 1 == 1 { bit + 1 } else { 0 };
        let census = Census {
            tasks: count(0),
            obligations: count(1),
            regions: count(2),
            timers: count(3),
            channels: count(4),
        };
        let expected: Vec<_> =
            (0..5).filter(|bit| subset >> bit & 1 == 1).map(|bit| (order[bit], bit + 1)).collect();
        match census.check() {
            Ok(()) => assert_eq!(subset, 0),
            Err(failures) => {
                let names: Vec<_> = expected.iter().map(|(status, _)| *status).collect();
                assert_eq!(failures.first(), names[0]);
                assert_eq!(failures.all(), names);
                assert_eq!(failures.counts(), expected);
            }
        }
    }
}
