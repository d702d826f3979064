//! The conformance suite of sockets: one text of each case, for every host that has a network.
//!
//! A case is a program over a context and `asx::net`, with one rule that it holds its host to. The
//! expectations stand in the case and are the same everywhere: on threads the network is the
//! loopback interface of the operating system, in the lab (feature `lab`) it is the simulated one,
//! which may not be kinder than that. No case depends on how long something takes: a wait that is
//! given up after a while is one for what cannot come.
//!
//! What a host cannot hold is in the host's `EXCEPTIONS`, with the reason.

#![cfg(unix)]

/// A test for each group, which calls `run` of the host it stands in.
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

/// A program that holds its host to a rule.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rule: &'static str,
    /// Panics, or ends with an error, where the rule does not hold.
    pub(crate) run: Program,
}

/// The text of a case.
pub(crate) type Program =
    for<'a> fn(&'a Cx) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

/// What a host does not run, and why.
pub(crate) struct Exception {
    pub(crate) case: &'static str,
    pub(crate) reason: &'static str,
}

/// Cases of one subject.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) cases: &'static [Case],
}

/// All of them.
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

/// The cases of a group that a host runs.
pub(crate) fn cases_of(
    group: &str,
    exceptions: &'static [Exception],
) -> impl Iterator<Item = &'static Case> {
    let found = GROUPS.iter().find(|known| known.name == group);
    let cases = found.expect("a group of this name").cases;
    cases.iter().filter(|case| !exceptions.iter().any(|except| except.case == case.name))
}

/// Whether each exception is about a case and says why.
pub(crate) fn check_exceptions(exceptions: &[Exception]) {
    for Exception { case, reason } in exceptions {
        let is_known = GROUPS.iter().any(|group| group.cases.iter().any(|of| of.name == *case));
        assert!(is_known && !reason.is_empty(), "{case}");
    }
}

#[test]
fn every_case_has_a_name_of_its_own_and_a_rule() {
    let cases = GROUPS.iter().flat_map(|group| group.cases);
    let names: BTreeSet<&str> = cases.clone().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.clone().count());
    assert!(cases.clone().all(|case| case.rule.len() > 10));
    assert!(names.len() >= 80, "{}", names.len());
    println!("{} cases in {} groups", names.len(), GROUPS.len());
}
