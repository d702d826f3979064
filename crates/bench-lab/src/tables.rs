//! The rows for people.

use std::fmt::Write as _;

use asx_bench::harness::Row;

use crate::cases::Notes;
use crate::programs::Program;
use crate::requests;

/// One line a row; `out` are those that have no figure.
pub(crate) fn plain(rows: &[Row], out: &[Row], notes: &Notes) -> String {
    let mut text = format!(
        "{:<22} {:<15} {:>12} {:>12} {:>11} {:>8} {:>6} {:>6}\n",
        "workload", "peer", "median ns", "min ns", "schedules/s", "runs", "ratio", "noise"
    );
    for row in rows {
        let note = notes.of(row.workload, row.peer);
        let runs = note.median_runs();
        let rate = rate(row, notes);
        let mut said = Vec::new();
        said.extend(note.classes.map(|classes| format!("{classes} classes")));
        said.extend(note.forced.map(|forced| format!("{forced} forced")));
        let line = format!(
            "{:<22} {:<15} {:>12.0} {:>12.0} {rate:>11.0} {runs:>8} {:>6} {:>5.0}%  {}",
            row.workload,
            row.peer,
            row.median,
            row.min,
            row.ratio.map_or("-".into(), |ratio| format!("{ratio:.3}")),
            row.noise * 100.0,
            said.join(", ")
        );
        text += line.trim_end();
        text.push('\n');
    }
    for row in out {
        let _ = writeln!(text, "{:<22} {:<15} not within the limit", row.workload, row.peer);
    }
    text
}

/// Schedules a second.
fn rate(row: &Row, notes: &Notes) -> f64 {
    let is_whole = row.workload.ends_with(".find") || row.workload.ends_with(".proof");
    let runs = if is_whole { notes.of(row.workload, row.peer).median_runs() as f64 } else { 1.0 };
    runs * 1e9 / row.median
}

/// The tables of the documentation: rates, searches, proofs.
pub(crate) fn markdown(rows: &[Row], notes: &Notes) -> String {
    let columns = [
        ("random", "asx"),
        ("random", "shuttle"),
        ("random", "madsim"),
        ("pct", "asx"),
        ("pct", "shuttle"),
        ("dfs", "asx"),
        ("dfs", "shuttle"),
    ];
    let rates = table(
        rows,
        &columns,
        |strategy, peer| format!("{strategy}: {peer}"),
        |row| {
            let ratio = row.ratio.filter(|_| row.peer != "asx");
            thousands(rate(row, notes)) + &ratio.map_or(String::new(), |it| format!(" ({it:.2})"))
        },
    );
    let whole = |row: &Row| {
        let note = notes.of(row.workload, row.peer);
        let forced = note.forced.filter(|_| row.peer == "asx");
        let forced = forced.map_or(String::new(), |forced| format!(", {forced} forced"));
        format!("{} ({}{forced})", time(row.median), note.median_runs())
    };
    let peers =
        ["asx", "asx_random", "shuttle_random", "shuttle_pct", "shuttle_dfs", "loom", "madsim"];
    let finds = table(rows, &peers.map(|peer| ("find", peer)), |_, peer| peer.into(), whole);
    let peers = ["asx", "shuttle_dfs", "loom"];
    let proofs = table(rows, &peers.map(|peer| ("proof", peer)), |_, peer| peer.into(), whole);
    let peers = ["asx", "turmoil", "turmoil_short", "madsim"];
    let requests = requests(rows, &peers, notes);
    format!("{rates}\n{finds}\n{proofs}\n{requests}")
}

/// The program over a network: schedules a second, and the ratio to asx.
fn requests(rows: &[Row], peers: &[&str], notes: &Notes) -> String {
    let mut text = String::from("| peer | schedules a second | ratio |\n|---|---|---|\n");
    let of = |row: &&Row| row.workload.starts_with(requests::NAME) && peers.contains(&row.peer);
    for row in rows.iter().filter(of) {
        let ratio = row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(text, "| {} | {} | {ratio} |", row.peer, thousands(rate(row, notes)));
    }
    text
}

/// A line for each program that has a figure, a column for each workload and peer.
fn table(
    rows: &[Row],
    columns: &[(&str, &str)],
    head: impl Fn(&str, &str) -> String,
    cell: impl Fn(&Row) -> String,
) -> String {
    let heads: Vec<_> = columns.iter().map(|(what, peer)| head(what, peer)).collect();
    let mut text = format!("| program | {} |\n", heads.join(" | "));
    let _ = writeln!(text, "|---{}|", "|---".repeat(columns.len()));
    for program in Program::ALL {
        let find = |(what, peer): &(&str, &str)| {
            let workload = format!("{}.{what}", program.name());
            rows.iter().find(|row| row.workload == workload && row.peer == *peer)
        };
        let cells: Vec<_> = columns.iter().map(find).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let cells: Vec<_> = cells.into_iter().map(|row| row.map_or("-".into(), &cell)).collect();
        let _ = writeln!(text, "| `{}` | {} |", program.name(), cells.join(" | "));
    }
    text
}

fn thousands(rate: f64) -> String {
    if rate >= 10_000.0 { format!("{:.0} k", rate / 1e3) } else { format!("{:.1} k", rate / 1e3) }
}

fn time(nanos: f64) -> String {
    match nanos {
        ns if ns >= 1e9 => format!("{:.1} s", ns / 1e9),
        ns if ns >= 1e6 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.0} µs", ns / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asx_bench::harness::Unit;

    #[test]
    fn a_cell_without_a_figure_is_a_dash_and_a_program_without_any_has_no_line() {
        let row = |workload, peer, median, ratio| Row {
            workload,
            peer,
            unit: Unit::Wall,
            median,
            min: median,
            noise: 0.0,
            ratio,
            to_tokio: None,
        };
        let rows = [
            row("needle.random", "asx", 1000.0, Some(1.0)),
            row("needle.random", "shuttle", 4000.0, Some(0.25)),
        ];
        let text = markdown(&rows, &Notes::default());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[2], "| `needle` | 1000 k | 250 k (0.25) | - | - | - | - | - |");
        assert_eq!(lines[3], "", "{text}");
        assert_eq!(
            (time(2.5e9), time(2.5e6), time(2500.0)),
            ("2.5 s".into(), "2.5 ms".into(), "2 µs".into())
        );
    }
}
