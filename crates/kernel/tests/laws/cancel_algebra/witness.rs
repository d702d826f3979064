//! The order in which witnesses may follow each other.

use super::{reason, region, task};
use asx_kernel::cancel::{Kind, Phase, Witness};
use asx_kernel::status::Status;

fn base() -> Witness {
    Witness {
        task: task(1),
        region: region(1),
        epoch: 1,
        phase: Phase::Cancelling,
        reason: reason(Kind::Timeout, 5),
    }
}

type Break = fn(&mut Witness);

/// One failure for each check, in the order of the checks.
const BREAKS: [(Break, Status); 5] = [
    (|next| next.task = task(2), Status::WitnessTaskMismatch),
    (|next| next.region = region(2), Status::WitnessRegionMismatch),
    (|next| next.epoch = 2, Status::WitnessEpochMismatch),
    (|next| next.phase = Phase::Requested, Status::WitnessPhaseRegression),
    (|next| next.reason.kind = Kind::User, Status::WitnessReasonWeakened),
];

#[test]
fn several_failures_report_the_earliest_check() {
    assert_eq!(base().validate(&base()), Ok(()));
    for set in 1..32_usize {
        let mut next = base();
        for (bit, (break_it, _)) in BREAKS.iter().enumerate() {
            if set >> bit & 1 == 1 {
                break_it(&mut next);
            }
        }
        let (_, first) = BREAKS[set.trailing_zeros() as usize];
        assert_eq!(base().validate(&next), Err(first), "{set:05b}");
    }
}

#[test]
fn any_other_epoch_is_refused() {
    let next = Witness { epoch: 0, ..base() };
    assert_eq!(base().validate(&next), Err(Status::WitnessEpochMismatch));
}

#[test]
fn phases_advance_or_stay_and_may_be_skipped() {
    let phases = [Phase::Requested, Phase::Cancelling, Phase::Finalizing, Phase::Completed];
    let table = ["yyyy", ".yyy", "..yy", "...y"];
    assert_eq!(Phase::ALL, phases);
    assert_eq!(phases.map(|phase| phase as u8), [0, 1, 2, 3]);
    for (from, row) in phases.into_iter().zip(table) {
        for (to, legal) in phases.into_iter().zip(row.chars()) {
            let prev = Witness { phase: from, ..base() };
            let next = Witness { phase: to, ..base() };
            let expected = if legal == 'y' { Ok(()) } else { Err(Status::WitnessPhaseRegression) };
            assert_eq!(prev.validate(&next), expected, "{from:?} -> {to:?}");
        }
    }
}

#[test]
fn the_reason_may_change_but_not_weaken() {
    const SEVERITY: [u8; 11] = [0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5];
    for (from, before) in Kind::ALL.into_iter().zip(SEVERITY) {
        for (to, after) in Kind::ALL.into_iter().zip(SEVERITY) {
            let prev = Witness { reason: reason(from, 1), ..base() };
            let next = Witness { reason: reason(to, 9), ..base() };
            let expected = if after < before { Err(Status::WitnessReasonWeakened) } else { Ok(()) };
            assert_eq!(prev.validate(&next), expected, "{from:?} -> {to:?}");
        }
    }
}
