//! What asx pays for what it offers besides running tasks: the ratio is asx with it to asx without.

use super::asx::Asx;
use super::{Scale, Service, Tasks};
use crate::harness::{Case, Flavour, Unit};

/// Events that are retained: less than a run has, as in a program that runs for long.
const RETAINED: usize = 1 << 16;

/// The cases of this file.
pub(super) fn cases(scale: Scale) -> Vec<Case> {
    use Flavour::{Multi, Single};
    let mut cases = Vec::new();
    cases.extend(journal::<Asx<2, RETAINED>, Asx<2>>(Multi, "unrecorded_mt", scale));
    cases.extend(journal::<Asx<1, RETAINED>, Asx<1>>(Single, "unrecorded_ct", scale));
    cases
}

/// A run that is recorded, `R`, against one that is not, `P`.
fn journal<R, P>(flavour: Flavour, without: &'static str, scale: Scale) -> [Case; 4]
where
    R: Tasks + Service,
    P: Tasks + Service,
{
    let case = |workload, peer, run| Case { workload, peer, unit: Unit::Wall, flavour, run };
    let (tasks, requests) = (scale.of(100_000), scale.of(20_000));
    [
        case("journal_spawn", flavour.asx(), Box::new(move || R::spawn_join(tasks))),
        case("journal_spawn", without, Box::new(move || P::spawn_join(tasks))),
        case("journal_service", flavour.asx(), Box::new(move || R::mixed(requests))),
        case("journal_service", without, Box::new(move || P::mixed(requests))),
    ]
}
