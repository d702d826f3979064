//! `cargo xtask instructions`: instructions per operation of the main benchmark programs, compared
//! with a committed baseline.
//!
//! Counts depend on the compiler, which the baseline names. With another compiler the command
//! prints the counts and compares none.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::report::Verdict;
use crate::shell::{cargo, command, output, root, works};
use crate::{Result, apt};

const USAGE: &str = "usage: instructions [--bless] [--tokio] [PROGRAM..]";
/// The runtime that is compared with the baseline.
const OURS: &str = "asx_ct";
const TOKIO: &str = "tokio_ct";
/// The largest allowed growth, as a share of the baseline.
const TOLERANCE: f64 = 0.03;
/// The same for programs with clients in another process. Their timing determines how many requests
/// the server finds at a time.
const SERVER_TOLERANCE: f64 = 0.06;

fn baseline_path() -> PathBuf {
    root().join("crates/bench/instructions.tsv")
}

pub(crate) fn run(args: &[String]) -> Result {
    let (flags, programs): (Vec<&String>, _) = args.iter().partition(|arg| arg.starts_with('-'));
    if let Some(unknown) =
        flags.iter().find(|flag| !["--bless", "--tokio"].contains(&flag.as_str()))
    {
        return Err(format!("unknown flag `{unknown}`; {USAGE}"));
    }
    let has = |flag: &str| flags.iter().any(|arg| *arg == flag);
    let bless = has("--bless");
    if bless && !programs.is_empty() {
        return Err(format!("--bless counts all programs; {USAGE}"));
    }
    let peers: &[&str] = if has("--tokio") { &[OURS, TOKIO] } else { &[OURS] };
    let counts = count(&programs, peers)?;
    let compiler = compiler()?;
    if bless {
        let text = Baseline { compiler, counts: of_ours(&counts) }.write();
        return fs::write(baseline_path(), text).map_err(|error| error.to_string());
    }
    let baseline = Baseline::load()?;
    let (table, failures) = compare(&counts, &baseline);
    print!("{table}");
    if baseline.compiler != compiler {
        println!(
            "not compared: the baseline was made with {}, this is {compiler}",
            baseline.compiler
        );
        return Ok(());
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Counts all programs; skipped if Valgrind cannot be installed.
pub(crate) fn section() -> Verdict {
    if let Err(why) = install() {
        return Verdict::Skipped(format!("valgrind cannot be installed: {why}"));
    }
    match run(&[]) {
        Ok(()) => Verdict::Passed(format!("at most {:.0} % above the baseline", TOLERANCE * 100.0)),
        Err(why) => Verdict::Failed(why),
    }
}

fn install() -> Result {
    if works("valgrind", &["--version"]) { Ok(()) } else { apt::install(&["valgrind"]) }
}

/// The instructions per operation of a program.
#[derive(Clone, Debug, PartialEq)]
struct Count {
    program: String,
    peer: String,
    instructions: f64,
}

fn count(programs: &[&String], peers: &[&str]) -> Result<Vec<Count>> {
    install()?;
    let mut bench = cargo("run --release --quiet -p asx-bench -- --instructions --peer");
    bench.arg(peers.join(","));
    if !programs.is_empty() {
        let names: Vec<&str> = programs.iter().map(|name| name.as_str()).collect();
        bench.args(["--only", &names.join(",")]);
    }
    output(&mut bench)?.lines().map(parse_count).collect()
}

fn parse_count(line: &str) -> Result<Count> {
    let wrong = || format!("not a count: `{line}`");
    let [program, peer, count] = line.split('\t').collect::<Vec<_>>()[..] else {
        return Err(wrong());
    };
    let instructions = count.parse().ok().filter(|count: &f64| *count > 0.0).ok_or_else(wrong)?;
    Ok(Count { program: program.into(), peer: peer.into(), instructions })
}

fn of_ours(counts: &[Count]) -> Vec<Count> {
    counts.iter().filter(|count| count.peer == OURS).cloned().collect()
}

/// The version of the compiler.
fn compiler() -> Result<String> {
    let version = output(&mut command("rustc", &["--version"]))?;
    Ok(String::from(version.trim()))
}

/// The committed counts.
#[derive(Debug, PartialEq)]
struct Baseline {
    compiler: String,
    counts: Vec<Count>,
}

impl Baseline {
    fn load() -> Result<Baseline> {
        let path = baseline_path();
        let text = fs::read_to_string(&path);
        Baseline::read(&text.map_err(|error| format!("{}: {error}", path.display()))?)
    }

    fn read(text: &str) -> Result<Baseline> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let compiler = lines.next().ok_or("the baseline names no compiler")?.to_owned();
        let counts = lines.map(parse_count).collect::<Result<_>>()?;
        Ok(Baseline { compiler, counts })
    }

    fn write(&self) -> String {
        let mut text = String::from(
            "# Instructions per operation on one worker. `cargo xtask instructions --bless` writes \
             this file.\n",
        );
        _ = writeln!(text, "{}", self.compiler);
        for Count { program, peer, instructions } in &self.counts {
            _ = writeln!(text, "{program}\t{peer}\t{instructions:.1}");
        }
        text
    }
}

/// Returns a table, and the programs that are over the limit or missing in the baseline.
fn compare(counts: &[Count], baseline: &Baseline) -> (String, Vec<String>) {
    let mut failures = Vec::new();
    let mut table = format!("{:<16} {:>10} {:>10} {:>8}", "program", "now", "baseline", "change");
    let has_tokio = counts.iter().any(|count| count.peer == TOKIO);
    table.push_str(if has_tokio { "     tokio    ratio\n" } else { "\n" });
    for count in counts.iter().filter(|count| count.peer == OURS) {
        let program = &count.program;
        let Some(before) = baseline.counts.iter().find(|known| known.program == *program) else {
            failures.push(format!("{program} is not in the baseline"));
            continue;
        };
        let change = count.instructions / before.instructions - 1.0;
        let is_server = program.starts_with("echo");
        if change > if is_server { SERVER_TOLERANCE } else { TOLERANCE } {
            failures.push(format!("{program} grew by {:.1} %", change * 100.0));
        }
        _ = write!(
            table,
            "{program:<16} {:>10.1} {:>10.1} {:>+6.1} %",
            count.instructions,
            before.instructions,
            change * 100.0
        );
        let is_peer = |other: &&Count| other.program == *program && other.peer == TOKIO;
        if let Some(tokio) = counts.iter().find(is_peer) {
            let ratio = count.instructions / tokio.instructions;
            _ = write!(table, " {:>9.1} {ratio:>8.2}", tokio.instructions);
        }
        table.push('\n');
    }
    (table, failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(program: &str, peer: &str, instructions: f64) -> Count {
        Count { program: program.into(), peer: peer.into(), instructions }
    }

    fn baseline() -> Baseline {
        let counts = vec![count("a", OURS, 100.0), count("b", OURS, 200.0)];
        Baseline { compiler: String::from("rustc 1"), counts }
    }

    #[test]
    fn baseline_is_read_as_written() {
        assert_eq!(Baseline::read(&baseline().write()), Ok(baseline()));
    }

    #[test]
    fn malformed_counts_are_refused() {
        for line in ["", "a\tb", "a\tb\t1\t2", "a\tb\tx", "a\tb\t0", "a\tb\tNaN"] {
            assert!(parse_count(line).is_err(), "{line}");
        }
        assert!(Baseline::read("").is_err());
        assert!(Baseline::read("rustc 1\na\n").is_err());
    }

    #[test]
    fn growth_above_the_tolerance_fails() {
        let counts = [count("a", OURS, 102.9), count("b", OURS, 206.2)];
        let (table, failures) = compare(&counts, &baseline());
        assert_eq!(failures, ["b grew by 3.1 %"]);
        assert!(table.contains("+2.9 %"), "{table}");
        let (_, failures) = compare(&[count("a", OURS, 50.0), count("c", OURS, 1.0)], &baseline());
        assert_eq!(failures, ["c is not in the baseline"]);
    }

    #[test]
    fn servers_may_grow_more() {
        let counts = vec![count("echo_64", OURS, 100.0)];
        let baseline = Baseline { compiler: String::from("rustc 1"), counts };
        let failures = |now| compare(&[count("echo_64", OURS, now)], &baseline).1;
        assert_eq!(failures(105.9), [""; 0]);
        assert_eq!(failures(106.2), ["echo_64 grew by 6.2 %"]);
    }

    #[test]
    fn peers_are_printed_and_not_compared() {
        let counts = [count("a", OURS, 100.0), count("a", TOKIO, 400.0)];
        let (table, failures) = compare(&counts, &baseline());
        assert!(table.ends_with("    400.0     0.25\n"), "{table}");
        assert_eq!(failures, [""; 0]);
    }

    #[test]
    fn unknown_flags_are_refused() {
        let args = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        assert!(run(&args("--fast")).unwrap_err().contains("usage"));
        assert!(run(&args("--bless spsc")).unwrap_err().contains("all programs"));
    }
}
