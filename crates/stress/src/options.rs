//! The command line.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) seconds: u64,
    /// The seed from which the seeds of the programs are derived.
    pub(crate) seed: u64,
    /// The maximal number of programs.
    pub(crate) rounds: u64,
    /// Run only this program, `rounds` times.
    pub(crate) program: Option<u64>,
    pub(crate) callback_panics: bool,
    /// Whether to run programs that forget values, which then stay in memory.
    pub(crate) forgets: bool,
    /// Whether threads may outlive the runtime that they use.
    pub(crate) late_threads: bool,
    /// Whether to print the programs.
    pub(crate) shows: bool,
    /// A program that runs longer is considered to hang.
    pub(crate) patience: Duration,
}

const USAGE: &str = "usage: asx-stress [--seconds N] [--seed S] [--rounds N] [--program SEED] \
                     [--patience SECONDS] [--no-callback-panics] [--no-forgets] \
                     [--no-late-threads] [--show]";

impl Options {
    pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, &'static str> {
        let mut options = Options {
            seconds: 10,
            seed: 1,
            rounds: u64::MAX,
            program: None,
            callback_panics: true,
            forgets: true,
            late_threads: true,
            shows: false,
            patience: Duration::from_secs(20),
        };
        let mut rounds = None;
        while let Some(name) = args.next() {
            if name == "--no-callback-panics" {
                options.callback_panics = false;
                continue;
            }
            if name == "--no-forgets" {
                options.forgets = false;
                continue;
            }
            if name == "--no-late-threads" {
                options.late_threads = false;
                continue;
            }
            if name == "--show" {
                options.shows = true;
                continue;
            }
            let value = args.next().and_then(|value| value.parse().ok()).ok_or(USAGE)?;
            match name.as_str() {
                "--seconds" => options.seconds = value,
                "--seed" => options.seed = value,
                "--rounds" => rounds = Some(value),
                "--program" => options.program = Some(value),
                "--patience" => options.patience = Duration::from_secs(value),
                _ => return Err(USAGE),
            }
        }
        // A single program is run once, unless the number of rounds is given.
        options.rounds = rounds.unwrap_or(if options.program.is_some() { 1 } else { u64::MAX });
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, &'static str> {
        Options::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn one_program_is_run_once_by_default() {
        assert_eq!(parse("--program 7").unwrap().rounds, 1);
        assert_eq!(parse("--rounds 9 --program 7").unwrap().rounds, 9);
        assert_eq!(parse("--seconds 3").unwrap().rounds, u64::MAX);
    }

    #[test]
    fn unknown_arguments_are_refused() {
        assert!(parse("--seconds").is_err());
        assert!(parse("--second 3").is_err());
        assert!(parse("--seed x").is_err());
        assert!(!parse("--no-callback-panics").unwrap().callback_panics);
        assert!(!parse("--no-forgets").unwrap().forgets);
    }
}
