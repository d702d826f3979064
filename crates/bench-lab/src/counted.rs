//! `--count PROGRAM STRATEGY PEER RUNS`: so many schedules of one program and nothing else, for
//! tools that count instructions or allocations. What a schedule costs is the difference of two
//! counts, by the difference of their runs.

use asx_lab::{Grain, How};

use crate::programs::Program;
use crate::with_shuttle::How as Shuttle;
use crate::{ours, with_shuttle};

/// Asks for it.
pub(crate) const FLAG: &str = "--count";

/// Runs what the words ask for: how many runs there were.
pub(crate) fn run(words: &[String]) -> Option<u64> {
    let [program, strategy, peer, runs] = words else { return None };
    let program = Program::ALL.into_iter().find(|it| it.name() == program)?;
    let runs = runs.parse().ok()?;
    let (ours, theirs) = match strategy.as_str() {
        "random" => (How::Random, Some(Shuttle::Random)),
        "pct" => (How::Pct(3), Some(Shuttle::Pct)),
        "dfs" => (How::Dfs, Some(Shuttle::Dfs)),
        "dpor" => (How::Dpor, None),
        _ => return None,
    };
    let once = |most| match peer.as_str() {
        "asx" => Some(ours::explore(program, ours, Grain::Poll, 1, most).runs),
        "asx_operations" => Some(ours::explore(program, ours, Grain::Operation, 1, most).runs),
        "shuttle" => Some(with_shuttle::explore(program, theirs?, 1, most)),
        _ => None,
    };
    let mut done = 0;
    // A space that is done before is begun again.
    while done < runs {
        done += once(runs - done)?;
    }
    Some(done)
}
