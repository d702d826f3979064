//! What regions answer without the law, against the law.

use asx_kernel::outcome::{Fold, NoValue, Outcome};

use super::*;
use crate::spawn::{Plan, make};
use crate::test_util::loose_region;

#[test]
fn telling_again_what_was_told_changes_nothing() {
    for (first, second) in Kind::ALL.iter().flat_map(|a| Kind::ALL.map(|b| (*a, b))) {
        let region = loose_region();
        let body = |_| std::future::pending::<Result<(), Cancelled>>();
        // SAFETY: Send and 'static.
        let (_entry, task) = unsafe { make(&region, Plan::default(), body) };
        let task = task.to_ref();
        for kind in [first, second] {
            region.close_as(kind);
            let told = (task.reason(), task.cleanup(), task.priority());
            assert!(told.0.is_some());
            region.cancel_inside();
            let again = (task.reason(), task.cleanup(), task.priority());
            assert_eq!(told, again, "{first:?}, {second:?}");
        }
    }
}

#[test]
fn the_severity_of_a_fold_is_the_worst_of_its_outcomes() {
    let root = crate::test_util::loose_region();
    let outcomes: [Outcome<(), ()>; 4] = [
        Ok(()),
        Err(NoValue::Err(())),
        Err(NoValue::Cancelled(root.reason(Kind::User))),
        Err(NoValue::Panicked("".into())),
    ];
    let severities = Severity::ALL;
    for picks in 0..4_usize.pow(4) {
        let mut fold = Fold::default();
        let mut worst = Severity::Ok;
        for (order, place) in [(2, 1), (1, 4), (4, 16), (3, 64)] {
            let pick = picks / place % 4;
            fold.add(order, outcomes[pick].clone());
            worst = worst.max(severities[pick]);
        }
        assert_eq!(fold.severity(), worst);
    }
}
