//! Interleaved repetitions, medians, ratios.
//!
//! Repetition 1 of every peer of a workload runs before repetition 2 of any, and the order turns
//! round each time, so that a slow phase of the machine hits all peers alike. What is compared is
//! the ratio of medians; the noise column says how far the middle half of the repetitions spreads.

/// One thing to measure: a workload on a peer.
pub(crate) struct Case {
    /// The workload's name.
    pub(crate) workload: &'static str,
    /// Whose implementation runs: "asx" or a peer's name.
    pub(crate) peer: &'static str,
    /// Runs one repetition (set-up not timed) and answers nanoseconds per operation.
    pub(crate) run: Box<dyn FnMut() -> f64>,
}

/// The peer all others are compared with.
pub(crate) const ASX: &str = "asx";

/// What was measured for one case.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    workload: &'static str,
    peer: &'static str,
    median_ns: f64,
    min_ns: f64,
    /// Interquartile range by median.
    noise: f64,
    /// asx's median by this peer's: below 1, asx is faster. `None` if asx has no such workload.
    ratio: Option<f64>,
}

/// Measures all cases, workload by workload, after one repetition to warm up.
pub(crate) fn measure(mut cases: Vec<Case>, reps: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for workload in distinct(cases.iter().map(|case| case.workload)) {
        let mut peers: Vec<&mut Case> =
            cases.iter_mut().filter(|case| case.workload == workload).collect();
        let mut samples = vec![Vec::with_capacity(reps); peers.len()];
        for rep in 0..=reps {
            for turn in 0..peers.len() {
                let at = if rep % 2 == 0 { turn } else { peers.len() - 1 - turn };
                let nanos = (peers[at].run)();
                if rep > 0 {
                    samples[at].push(nanos);
                }
            }
        }
        let names: Vec<_> = peers.iter().map(|case| case.peer).collect();
        rows.extend(summarise(workload, &names, samples));
    }
    rows
}

/// The names in order of first appearance.
pub(crate) fn distinct(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// The rows as a table for people.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<20} {:<20} {:>12} {:>12} {:>7} {:>7}\n",
        "workload", "peer", "median ns/op", "min ns/op", "ratio", "noise"
    );
    for row in rows {
        let ratio = row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        text += &format!(
            "{:<20} {:<20} {:>12.1} {:>12.1} {:>7} {:>6.0}%\n",
            row.workload,
            row.peer,
            row.median_ns,
            row.min_ns,
            ratio,
            row.noise * 100.0
        );
    }
    text
}

/// The rows as a JSON list. Names are plain words, so quoting them is escaping them.
pub(crate) fn json(rows: &[Row]) -> String {
    let objects: Vec<String> = rows
        .iter()
        .map(|row| {
            let ratio = row.ratio.map_or("null".into(), |ratio| format!("{ratio:.4}"));
            format!(
                "  {{\"workload\":{:?},\"peer\":{:?},\"median_ns\":{:.2},\"min_ns\":{:.2},\
                 \"ratio\":{ratio},\"noise\":{:.4}}}",
                row.workload, row.peer, row.median_ns, row.min_ns, row.noise
            )
        })
        .collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

fn summarise(
    workload: &'static str,
    peers: &[&'static str],
    mut samples: Vec<Vec<f64>>,
) -> Vec<Row> {
    samples.iter_mut().for_each(|of| of.sort_by(f64::total_cmp));
    let medians: Vec<f64> = samples.iter().map(|of| quantile(of, 0.5)).collect();
    let asx = peers.iter().position(|peer| *peer == ASX).map(|at| medians[at]);
    let row = |(at, peer): (usize, &&'static str)| Row {
        workload,
        peer,
        median_ns: medians[at],
        min_ns: samples[at][0],
        noise: (quantile(&samples[at], 0.75) - quantile(&samples[at], 0.25)) / medians[at],
        ratio: asx.map(|asx| asx / medians[at]),
    };
    peers.iter().enumerate().map(row).collect()
}

/// The quantile of a sorted, non-empty sample, interpolated.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn repetitions_interleave_and_the_first_does_not_count() {
        let log = Rc::new(RefCell::new(String::new()));
        let case = |peer: &'static str, mut nanos: Vec<f64>| {
            let log = log.clone();
            nanos.reverse();
            let run = Box::new(move || {
                log.borrow_mut().push_str(peer);
                nanos.pop().unwrap_or(0.0)
            });
            Case { workload: "w", peer, run }
        };
        let cases =
            vec![case("asx", vec![99.0, 2.0, 4.0, 3.0]), case("p", vec![99.0, 6.0, 6.0, 6.0])];
        let rows = measure(cases, 3);
        assert_eq!(*log.borrow(), "asxppasxasxppasx");
        let row = |peer, median_ns, min_ns, noise, ratio| Row {
            workload: "w",
            peer,
            median_ns,
            min_ns,
            noise,
            ratio: Some(ratio),
        };
        assert_eq!(rows, [row("asx", 3.0, 2.0, 1.0 / 3.0, 1.0), row("p", 6.0, 6.0, 0.0, 0.5)]);
    }

    #[test]
    fn without_asx_there_is_no_ratio() {
        let rows = summarise("w", &["p"], vec![vec![4.0, 1.0]]);
        assert_eq!((rows[0].median_ns, rows[0].min_ns, rows[0].ratio), (2.5, 1.0, None));
        let line = r#"{"workload":"w","peer":"p","median_ns":2.50,"min_ns":1.00,"ratio":null"#;
        assert!(json(&rows).contains(line), "{}", json(&rows));
    }
}
