//! Instructions per operation, counted by Valgrind's callgrind.
//!
//! Each program runs twice in fresh processes, with a small and a large number of operations. The
//! difference of the two counts, divided by the difference of the operations, is free of start and
//! end. Runtimes have one worker, so counts repeat; times on shared machines do not.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::PROGRAM;

/// A program of one runtime that runs a given number of operations.
#[derive(Clone)]
pub(crate) struct Program {
    /// The workload.
    pub(crate) name: &'static str,
    /// The runtime.
    pub(crate) peer: &'static str,
    /// The number of operations of the small and of the large run.
    pub(crate) sizes: [u32; 2],
    /// The process that is counted.
    pub(crate) counted: Counted,
}

/// The process that is counted.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    /// The process that runs the program.
    Itself(fn(u32)),
    /// A server that the function starts with the given command in front.
    Server(fn(&[String], u32)),
}

/// The instructions of one operation.
#[derive(Debug, PartialEq)]
pub(crate) struct Count {
    pub(crate) name: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) per_operation: f64,
}

/// Counts the instructions of each program.
///
/// # Errors
/// Valgrind is missing, or a program fails.
pub(crate) fn count(programs: &[Program]) -> Result<Vec<Count>, String> {
    programs.iter().map(count_one).collect()
}

fn count_one(program: &Program) -> Result<Count, String> {
    let [small, large] = program.sizes;
    let less = total(program, small)?;
    let more = total(program, large)?;
    let Program { name, peer, .. } = *program;
    if more <= less {
        return Err(format!(
            "{name} of {peer}: {large} operations took {more} instructions, {small} took {less}"
        ));
    }
    let per_operation = (more - less) as f64 / f64::from(large - small);
    Ok(Count { name, peer, per_operation })
}

/// Returns the instructions of one run.
fn total(program: &Program, operations: u32) -> Result<u64, String> {
    let Program { name, peer, .. } = program;
    let file = OutFile::new();
    let mut valgrind = ["valgrind", "--quiet", "--tool=callgrind"].map(String::from).to_vec();
    valgrind.push(format!("--callgrind-out-file={}", file.0.display()));
    match program.counted {
        Counted::Server(run) => run(&valgrind, operations),
        Counted::Itself(_) => {
            let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
            let mut command = Command::new(&valgrind[0]);
            command.args(&valgrind[1..]).arg(this);
            command.args([PROGRAM, name, peer, &operations.to_string()]).stdin(Stdio::null());
            let status = command.status().map_err(|error| format!("valgrind: {error}"))?;
            if !status.success() {
                return Err(format!("{name} of {peer} with {operations} operations: {status}"));
            }
        }
    }
    let text = std::fs::read_to_string(&file.0)
        .map_err(|error| format!("the counts of {name} of {peer}: {error}"))?;
    parse(&text).ok_or(format!("the counts of {name} of {peer} have no total"))
}

/// Returns the total in a file of callgrind.
fn parse(text: &str) -> Option<u64> {
    let total = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    total.trim().parse().ok()
}

/// The file that callgrind writes. Dropping it removes the file.
struct OutFile(PathBuf);

impl OutFile {
    fn new() -> OutFile {
        let name = format!("asx-bench-{}.callgrind", std::process::id());
        OutFile(std::env::temp_dir().join(name))
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        // Without a file there is nothing to remove.
        _ = std::fs::remove_file(&self.0);
    }
}

/// Formats the counts as a table with tabs between the columns.
pub(crate) fn table(counts: &[Count]) -> String {
    let line =
        |count: &Count| format!("{}\t{}\t{:.1}\n", count.name, count.peer, count.per_operation);
    counts.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_read_from_the_last_summary() {
        assert_eq!(parse("version: 1\nevents: Ir\n\ntotals: 12345\n"), Some(12345));
        assert_eq!(parse("totals: 1\ntotals: 2\n"), Some(2));
        assert_eq!(parse("version: 1\n"), None);
        assert_eq!(parse("totals: many\n"), None);
    }

    #[test]
    fn table_has_one_line_per_count() {
        let counts = [Count { name: "spsc", peer: "asx_ct", per_operation: 70.25 }];
        assert_eq!(table(&counts), "spsc\tasx_ct\t70.2\n");
    }
}
