//! Interleaved repetitions, medians, ratios.
//!
//! Repetition 1 of all that are compared with each other runs before repetition 2 of any, and the
//! order turns round each time, so that a slow phase of the machine hits all alike, and each comes
//! after each. Nobody else runs in between: threads that end leave memory behind, or take it with
//! them, to the good or bad of whoever is next. What is compared is the ratio of medians; the noise
//! column says how far the middle half of the repetitions spreads.

use std::time::{Duration, Instant};

/// One thing to measure: a workload on a peer.
pub struct Case {
    /// The workload's name.
    pub workload: &'static str,
    /// Whose implementation runs: one of ours or a peer's name.
    pub peer: &'static str,
    /// What the figure counts, per operation.
    pub unit: Unit,
    /// Whom the figure is compared with.
    pub flavour: Flavour,
    /// Runs one repetition (set-up not timed) and answers the figure.
    pub run: Box<dyn FnMut() -> f64>,
}

impl Case {
    /// A case in nanoseconds that needs no runtime.
    pub fn new(
        workload: &'static str,
        peer: &'static str,
        run: impl FnMut() -> f64 + 'static,
    ) -> Case {
        let unit = Unit::Wall;
        let flavour = Flavour::Bare;
        Case { workload, peer, unit, flavour, run: Box::new(run) }
    }

    /// Whether this is the one its peers are compared with.
    pub fn is_ours(&self) -> bool {
        self.peer == self.flavour.asx()
    }
}

/// What a figure counts. Less is better in every one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Nanoseconds that went by.
    Wall,
    /// Nanoseconds of processor time, over all threads.
    Cpu,
    /// Bytes of memory.
    Bytes,
}

impl Unit {
    fn label(self) -> &'static str {
        match self {
            Unit::Wall => "ns",
            Unit::Cpu => "ns cpu",
            Unit::Bytes => "bytes",
        }
    }
}

/// Like is compared with like: a runtime on one thread never with one on several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Flavour {
    /// A structure by itself, without a runtime.
    Bare,
    /// A runtime on one thread.
    Single,
    /// A runtime on two threads.
    Multi,
}

impl Flavour {
    /// The name of ours.
    pub fn asx(self) -> &'static str {
        ["asx", "asx_ct", "asx_mt"][self as usize]
    }

    fn tokio(self) -> &'static str {
        ["tokio", "tokio_ct", "tokio_mt"][self as usize]
    }
}

/// What was measured for one case.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// The workload's name.
    pub workload: &'static str,
    /// Whose implementation ran.
    pub peer: &'static str,
    /// What the figures count.
    pub unit: Unit,
    /// The middle one of the repetitions.
    pub median: f64,
    /// The least of them.
    pub min: f64,
    /// Interquartile range by median.
    pub noise: f64,
    /// Our median by this peer's: below 1, asx is better. `None` if asx has no such workload.
    pub ratio: Option<f64>,
    /// This peer's median by tokio's. `None` if tokio was not measured.
    pub to_tokio: Option<f64>,
}

/// How often a case runs.
pub struct Plan {
    /// Whether a repetition that does not count comes first.
    pub warm_up: bool,
    /// Repetitions that count, at most.
    pub reps: usize,
    /// Time after which a case gets no further repetition, once it has had `FEWEST`.
    pub budget: Duration,
}

/// A median of fewer would be the figure of an accident.
const FEWEST: usize = 3;

/// Measures all cases: workload by workload, and like with like.
pub fn measure(mut cases: Vec<Case>, plan: &Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    let group = |case: &Case| (case.workload, case.flavour);
    for compared in distinct(cases.iter().map(group)) {
        let mut peers: Vec<&mut Case> =
            cases.iter_mut().filter(|case| group(case) == compared).collect();
        let mut samples = vec![Vec::with_capacity(plan.reps); peers.len()];
        let start = Instant::now();
        for rep in usize::from(!plan.warm_up)..=plan.reps {
            // Peers stop together: as many repetitions of each, over the same phases.
            if rep > FEWEST && start.elapsed() > plan.budget * peers.len() as u32 {
                break;
            }
            for turn in 0..peers.len() {
                let at = if rep % 2 == 0 { turn } else { peers.len() - 1 - turn };
                let figure = (peers[at].run)();
                if rep > 0 {
                    samples[at].push(figure);
                }
            }
        }
        rows.extend(summarise(&peers, samples));
    }
    rows
}

/// Each once, in order of first appearance.
pub fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for one in all {
        if !seen.contains(&one) {
            seen.push(one);
        }
    }
    seen
}

/// The rows as a table for people.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<16} {:<18} {:>11} {:>11} {:<6} {:>6} {:>9} {:>6}\n",
        "workload", "peer", "median/op", "min/op", "unit", "ratio", "to tokio", "noise"
    );
    for row in rows {
        let of = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        text += &format!(
            "{:<16} {:<18} {:>11.1} {:>11.1} {:<6} {:>6} {:>9} {:>5.0}%\n",
            row.workload,
            row.peer,
            row.median,
            row.min,
            row.unit.label(),
            of(row.ratio),
            of(row.to_tokio),
            row.noise * 100.0
        );
    }
    text
}

/// The rows as a JSON list. Names are plain words, so quoting them is escaping them.
pub fn json(rows: &[Row]) -> String {
    let objects: Vec<String> = rows
        .iter()
        .map(|row| {
            let ratio = row.ratio.map_or("null".into(), |ratio| format!("{ratio:.4}"));
            format!(
                "  {{\"workload\":{:?},\"peer\":{:?},\"median_ns\":{:.2},\"min_ns\":{:.2},\
                 \"ratio\":{ratio},\"noise\":{:.4}}}",
                row.workload, row.peer, row.median, row.min, row.noise
            )
        })
        .collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

fn summarise(peers: &[&mut Case], mut samples: Vec<Vec<f64>>) -> Vec<Row> {
    samples.iter_mut().for_each(|of| of.sort_by(f64::total_cmp));
    let medians: Vec<f64> = samples.iter().map(|of| quantile(of, 0.5)).collect();
    let median_of = |name| peers.iter().position(|case| case.peer == name).map(|at| medians[at]);
    let row = |(at, case): (usize, &&mut Case)| Row {
        workload: case.workload,
        peer: case.peer,
        unit: case.unit,
        median: medians[at],
        min: samples[at][0],
        noise: (quantile(&samples[at], 0.75) - quantile(&samples[at], 0.25)) / medians[at],
        ratio: median_of(case.flavour.asx()).map(|asx| asx / medians[at]),
        to_tokio: median_of(case.flavour.tokio()).map(|tokio| medians[at] / tokio),
    };
    peers.iter().enumerate().map(row).collect()
}

/// The quantile of a sorted, non-empty sample, interpolated.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let low = sorted[at.floor() as usize];
    let high = sorted[at.ceil() as usize];
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// A case that answers these figures in turn.
    fn case(peer: &'static str, mut figures: Vec<f64>) -> Case {
        figures.reverse();
        Case::new("w", peer, move || figures.pop().unwrap_or(0.0))
    }

    fn plan(reps: usize) -> Plan {
        Plan { warm_up: true, reps, budget: Duration::MAX / 8 }
    }

    #[test]
    fn repetitions_interleave_and_the_first_does_not_count() {
        let log = Rc::new(RefCell::new(String::new()));
        let logged = |mut case: Case| {
            let log = log.clone();
            let peer = case.peer;
            case.run = Box::new(move || {
                log.borrow_mut().push_str(peer);
                (case.run)()
            });
            case
        };
        let cases = vec![
            logged(case("asx", vec![99.0, 2.0, 4.0, 3.0])),
            logged(case("p", vec![99.0, 6.0, 6.0, 6.0])),
        ];
        let rows = measure(cases, &plan(3));
        assert_eq!(*log.borrow(), "asxppasxasxppasx");
        let row = |peer, median, min, noise, ratio| Row {
            workload: "w",
            peer,
            unit: Unit::Wall,
            median,
            min,
            noise,
            ratio: Some(ratio),
            to_tokio: None,
        };
        assert_eq!(rows, [row("asx", 3.0, 2.0, 1.0 / 3.0, 1.0), row("p", 6.0, 6.0, 0.0, 0.5)]);
    }

    #[test]
    fn without_asx_there_is_no_ratio() {
        let rows = measure(vec![case("p", vec![0.0, 4.0, 1.0])], &plan(2));
        assert_eq!((rows[0].median, rows[0].min, rows[0].ratio), (2.5, 1.0, None));
        let line = r#"{"workload":"w","peer":"p","median_ns":2.50,"min_ns":1.00,"ratio":null"#;
        assert!(json(&rows).contains(line), "{}", json(&rows));
    }

    #[test]
    fn like_is_compared_with_like() {
        let on = |flavour, peer, figure| {
            let mut case = case(peer, vec![0.0, figure]);
            case.flavour = flavour;
            case
        };
        let rows = measure(
            vec![
                on(Flavour::Multi, "asx_mt", 1.0),
                on(Flavour::Single, "asx_ct", 2.0),
                on(Flavour::Multi, "tokio_mt", 4.0),
                on(Flavour::Multi, "p", 8.0),
                on(Flavour::Single, "q", 8.0),
            ],
            &plan(1),
        );
        // Those that are compared run, and are listed, together.
        let ratios: Vec<_> = rows.iter().map(|row| (row.peer, row.ratio, row.to_tokio)).collect();
        let expected = [
            ("asx_mt", Some(1.0), Some(0.25)),
            ("tokio_mt", Some(0.25), Some(1.0)),
            ("p", Some(0.125), Some(2.0)),
            ("asx_ct", Some(1.0), None),
            ("q", Some(0.25), None),
        ];
        assert_eq!(ratios, expected);
    }

    #[test]
    fn the_budget_ends_repetitions_but_never_below_the_fewest() {
        let count = |warm_up, reps, budget| {
            let calls = Rc::new(RefCell::new(0));
            let seen = calls.clone();
            let case = Case::new("w", "p", move || {
                *seen.borrow_mut() += 1;
                1.0
            });
            measure(vec![case], &Plan { warm_up, reps, budget });
            calls.take()
        };
        assert_eq!(count(true, 9, Duration::ZERO), 1 + FEWEST);
        assert_eq!(count(true, 9, Duration::MAX), 10);
        assert_eq!(count(true, 2, Duration::ZERO), 3);
        assert_eq!(count(false, 1, Duration::ZERO), 1);
    }
}
