//! The conformance suite of sockets: each case is written once and runs on every host with a
//! network.
//!
//! A case is a program over a context and `asx::net` that checks one rule. Its expectations are the
//! same on every host. On threads the network is the loopback interface of the operating system. In
//! the lab (feature `lab`) it is the simulated one, which may not be more permissive. No case
//! depends on durations: a wait with a timeout waits for something that cannot come.
//!
//! Cases that a host cannot pass are in its `EXCEPTIONS`, with the reason.

#![cfg(unix)]

/// Defines a test for each group, which calls `run` of the surrounding host module.
macro_rules! group_tests {
    () => {
        group_tests! {
            order backpressure short half_close reset addresses connect cancel split udp
            unix_datagrams unix_streams options lookup streams servers
        }
    };
    ($($group:ident)+) => {
        $(
            #[test]
            fn $group() {
                run(stringify!($group));
            }
        )+

        #[test]
        fn every_group_has_a_test() {
            let tested = [$(stringify!($group)),+];
            assert_eq!(crate::GROUPS.map(|group| group.name), tested);
        }
    };
}

mod address;
mod cancels;
mod datagrams;
mod ends;
mod flow;
mod help;
#[cfg(feature = "lab")]
mod lab;
mod native;
mod options;
mod order;
mod protocols;
mod split;
mod unix;

use std::collections::BTreeSet;
use std::pin::Pin;

use asx::io;
use asx::prelude::*;

/// A program that checks a rule.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rule: &'static str,
    /// Panics, or returns an error, if the rule does not hold.
    pub(crate) run: Program,
}

/// The program of a case.
pub(crate) type Program =
    for<'a> fn(&'a Cx) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

/// A case that a host does not run, and the reason.
pub(crate) struct Exception {
    pub(crate) case: &'static str,
    pub(crate) reason: &'static str,
}

/// Cases of one subject.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) cases: &'static [Case],
}

/// All groups.
pub(crate) const GROUPS: [Group; 16] = [
    Group { name: "order", cases: order::CASES },
    Group { name: "backpressure", cases: flow::BACKPRESSURE },
    Group { name: "short", cases: flow::SHORT },
    Group { name: "half_close", cases: ends::HALF_CLOSE },
    Group { name: "reset", cases: ends::RESET },
    Group { name: "addresses", cases: address::ADDRESSES },
    Group { name: "connect", cases: address::CONNECT },
    Group { name: "cancel", cases: cancels::CASES },
    Group { name: "split", cases: split::CASES },
    Group { name: "udp", cases: datagrams::UDP },
    Group { name: "unix_datagrams", cases: datagrams::UNIX },
    Group { name: "unix_streams", cases: unix::CASES },
    Group { name: "options", cases: options::OPTIONS },
    Group { name: "lookup", cases: options::LOOKUP },
    Group { name: "streams", cases: protocols::STREAMS },
    Group { name: "servers", cases: protocols::SERVERS },
];

/// Returns the cases of a group that a host runs.
pub(crate) fn cases_of(
    group: &str,
    exceptions: &'static [Exception],
) -> impl Iterator<Item = &'static Case> {
    let found = GROUPS.iter().find(|known| known.name == group);
    let cases = found.expect("a group of this name").cases;
    cases.iter().filter(|case| !exceptions.iter().any(|except| except.case == case.name))
}

/// Checks that each exception is about a case and has a reason.
pub(crate) fn check_exceptions(exceptions: &[Exception]) {
    for Exception { case, reason } in exceptions {
        let is_known = GROUPS.iter().any(|group| group.cases.iter().any(|of| of.name == *case));
        assert!(is_known && !reason.is_empty(), "{case}");
    }
}

#[test]
fn every_case_has_a_unique_name_and_a_rule() {
    let cases = GROUPS.iter().flat_map(|group| group.cases);
    let names: BTreeSet<&str> = cases.clone().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.clone().count());
    assert!(cases.clone().all(|case| case.rule.len() > 10));
    assert!(names.len() >= 80, "{}", names.len());
    println!("{} cases in {} groups", names.len(), GROUPS.len());
}
