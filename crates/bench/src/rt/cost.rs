//! What asx pays for what it offers besides running tasks: the ratio is asx with it to asx without.
//! Metrics cannot be switched off: there the ratio is the share of a poll that counting it takes,
//! which is the time of a loop that counts without that of the same loop that does not.

use std::hint::black_box;

use super::asx::Asx;
use super::meter::Clock;
use super::{Scale, Service, Tasks};
use crate::harness::{Case, Flavour, Unit};

/// Room for all events of a run.
const ALL: usize = 1 << 20;
/// Room for the last ones only: each event has another one go, which is digested then.
const LAST: usize = 1 << 12;

/// The cases of this file.
pub(super) fn cases(scale: Scale) -> Vec<Case> {
    use Flavour::{Multi, Single};
    let mut cases = Vec::new();
    cases.extend(journal::<Asx<2, ALL>, Asx<2, LAST>, Asx<2>>(Multi, "unrecorded_mt", scale));
    cases.extend(journal::<Asx<1, ALL>, Asx<1, LAST>, Asx<1>>(Single, "unrecorded_ct", scale));
    cases.extend(metrics(scale));
    cases
}

/// Runs that are recorded, with room for `A`ll events or the `L`ast, against one that is not.
fn journal<A, L, N>(flavour: Flavour, without: &'static str, scale: Scale) -> [Case; 6]
where
    A: Tasks + Service,
    L: Service,
    N: Tasks + Service,
{
    let case = |workload, peer, run| Case { workload, peer, unit: Unit::Wall, flavour, run };
    let tasks = scale.of(100_000);
    let requests = scale.of(20_000);
    let asx = flavour.asx();
    [
        case("journal_spawn", asx, Box::new(move || A::spawn_join(tasks))),
        case("journal_spawn", without, Box::new(move || N::spawn_join(tasks))),
        case("journal_service", asx, Box::new(move || A::mixed(requests))),
        case("journal_service", without, Box::new(move || N::mixed(requests))),
        case("journal_ring", asx, Box::new(move || L::mixed(requests))),
        case("journal_ring", without, Box::new(move || N::mixed(requests))),
    ]
}

/// Counting a poll against a poll, which counts itself.
fn metrics(scale: Scale) -> [Case; 2] {
    let unit = Unit::Wall;
    let flavour = Flavour::Single;
    let times = scale.of(1000);
    let looping = move |count| {
        let clock = Clock::wall();
        black_box(asx_native::count_polls(1000 * times, count));
        clock.per(1000 * times)
    };
    let counting = move || (looping(true) - looping(false)).max(0.0);
    let polling = move || Asx::<1>::yields(1000, times);
    let case = |peer, run| Case { workload: "metrics_share", peer, unit, flavour, run };
    [case(flavour.asx(), Box::new(counting)), case("poll_ct", Box::new(polling))]
}
