//! The command line of a benchmark program.

use crate::harness::{Case, distinct};

/// What the command line asks for.
#[derive(Debug, PartialEq)]
pub struct Options {
    /// Run these workloads only; all if none is named.
    pub only: Vec<String>,
    /// Compare with these peers only; with all if none is named.
    pub peers: Vec<String>,
    /// Repetitions that count.
    pub reps: usize,
    /// Whether to show only that the workloads run.
    pub smoke: bool,
    /// Whether to print JSON.
    pub json: bool,
    /// Count instructions instead of measuring times.
    pub instructions: bool,
    /// Whether to print how to call the program.
    pub help: bool,
}

/// Reads a command line; an error says what would have been right.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let only = Vec::new();
    let peers = Vec::new();
    let reps = 11;
    let mut options =
        Options { only, peers, reps, smoke: false, json: false, instructions: false, help: false };
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--only" => options.only.extend(value()?.split(',').map(String::from)),
            "--peer" => options.peers.extend(value()?.split(',').map(String::from)),
            "--reps" => {
                let text = value()?;
                options.reps =
                    text.parse().ok().filter(|reps| *reps > 0).ok_or_else(|| {
                        format!("--reps needs a whole number above 0, not '{text}'")
                    })?;
            }
            "--smoke" | "--quick" => options.smoke = true,
            "--json" => options.json = true,
            "--instructions" => options.instructions = true,
            "--help" | "-h" => options.help = true,
            _ => {
                return Err(format!(
                    "unknown flag '{flag}'; valid: --only, --peer, --reps, --smoke, --json, \
                     --instructions, --help"
                ));
            }
        }
    }
    Ok(options)
}

/// The cases asked for, once all names are known to exist.
pub fn select(mut cases: Vec<Case>, options: &Options) -> Result<Vec<Case>, String> {
    check("workload", &options.only, distinct(cases.iter().map(|case| case.workload)))?;
    check("peer", &options.peers, distinct(cases.iter().map(|case| case.peer)))?;
    let asked = |names: &[String], name: &str| names.is_empty() || names.iter().any(|n| n == name);
    cases.retain(|case| {
        asked(&options.only, case.workload) && (case.is_ours() || asked(&options.peers, case.peer))
    });
    Ok(cases)
}

/// Fails if a name is not one of the valid ones.
///
/// # Errors
/// The message names the first unknown name and the valid ones.
pub fn check(what: &str, names: &[String], valid: Vec<&'static str>) -> Result<(), String> {
    match names.iter().find(|name| !valid.contains(&name.as_str())) {
        Some(name) => Err(format!("unknown {what} '{name}'; valid: {}", valid.join(", "))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Vec<String>, String> {
        let case = |workload, peer| Case::new(workload, peer, || 1.0);
        let cases = vec![case("a", "asx"), case("a", "p"), case("b", "asx"), case("b", "q")];
        let options = parse(line.split_whitespace().map(String::from))?;
        let cases = select(cases, &options)?;
        Ok(cases.iter().map(|case| format!("{}/{}", case.workload, case.peer)).collect())
    }

    #[test]
    fn names_select_and_asx_always_runs() {
        assert_eq!(run("").unwrap(), ["a/asx", "a/p", "b/asx", "b/q"]);
        assert_eq!(run("--only a").unwrap(), ["a/asx", "a/p"]);
        assert_eq!(run("--only a,b --peer q").unwrap(), ["a/asx", "b/asx", "b/q"]);
    }

    #[test]
    fn errors_name_what_would_have_been_right() {
        assert_eq!(run("--only a,c").unwrap_err(), "unknown workload 'c'; valid: a, b");
        assert_eq!(run("--peer x").unwrap_err(), "unknown peer 'x'; valid: asx, p, q");
        assert_eq!(run("--only").unwrap_err(), "--only needs a value");
        for bad in ["0", "-1", "x"] {
            let message = format!("--reps needs a whole number above 0, not '{bad}'");
            assert_eq!(run(&format!("--reps {bad}")).unwrap_err(), message);
        }
        assert!(run("--fast").unwrap_err().ends_with("--json, --instructions, --help"));
    }

    #[test]
    fn flags_are_read() {
        let args = ["--json", "--reps", "3", "--smoke", "--instructions", "-h"].map(String::from);
        let options = parse(args.into_iter()).unwrap();
        assert_eq!((options.json, options.reps, options.instructions), (true, 3, true));
        assert_eq!((options.smoke, options.help), (true, true));
    }
}
