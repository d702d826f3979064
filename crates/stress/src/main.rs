//! Runs random programs that use all of `asx`, one after the other, and checks that each accounts
//! for all of its tasks, values, messages, memory and descriptors.
//!
//! ```text
//! asx-stress [--seconds N] [--seed S] [--rounds N] [--program SEED] [--no-callback-panics]
//!            [--no-late-threads] [--patience SECONDS] [--show]
//! ```
//! A seed determines a program, but not the order in which its threads run. The programs run in a
//! child process, so that the seed of a crashing program is known. Exit codes: 0 success, 1 a check
//! failed, 2 usage, 3 a program hangs, 4 a crash.

mod connection;
mod descriptors;
mod generate;
mod ledger;
mod liveness;
mod lock_monitor;
mod memory;
mod message;
mod ops;
mod options;
mod pool;
mod program;
mod run;
mod settings;
mod waker;
mod watchdog;
mod world;

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use asx_kernel::rng::mix64;

use ledger::ExpectedPanic;
use memory::Memory;
use options::Options;
use program::KINDS;
use watchdog::Watchdog;

/// The environment variable that marks the child process.
const INNER: &str = "ASX_STRESS_INNER";
/// The number of programs after which every kind of operation must have been run.
const ENOUGH: u64 = 3_000;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(usage) => {
            eprintln!("{usage}");
            return ExitCode::from(2);
        }
    };
    if std::env::var_os(INNER).is_none() {
        return supervise();
    }
    match stress(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("asx-stress: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the programs in a child process, which prints the seed of each program before running it.
fn supervise() -> ExitCode {
    let run = || {
        let mut inner = Command::new(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .env(INNER, "1")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut last = None;
        for line in inner.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
            let line = line?;
            match line.strip_prefix("program ") {
                Some(seed) => last = Some(seed.to_owned()),
                None => println!("{line}"),
            }
        }
        Ok::<_, std::io::Error>((inner.wait()?, last))
    };
    match run() {
        Ok((status, _)) if status.success() => ExitCode::SUCCESS,
        Ok((status, last)) => {
            let last = last.unwrap_or_default();
            eprintln!("asx-stress: {status} in program {last}; reproduce with --program {last}");
            match status.code() {
                Some(code @ 1..=3) => ExitCode::from(code as u8),
                _ => ExitCode::from(4),
            }
        }
        Err(error) => {
            eprintln!("asx-stress: {error}");
            ExitCode::from(4)
        }
    }
}

/// The number of panics that do not belong to the programs.
static UNEXPECTED: AtomicU64 = AtomicU64::new(0);
/// The number of all panics.
static PANICS: AtomicU64 = AtomicU64::new(0);
/// The last panic, for reports.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Returns the last panic.
fn last_panic() -> String {
    LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

fn stress(options: &Options) -> Result<(), String> {
    silence();
    let watch = Watchdog::start(options.patience);
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut rounds = 0;
    let mut memory = Memory::default();
    for nth in 0..options.rounds {
        if options.program.is_none() && Instant::now() >= end {
            break;
        }
        let seed = options.program.unwrap_or_else(|| mix64(options.seed ^ mix64(nth)) >> 32);
        let mut program = generate::program(seed, options.callback_panics);
        if program.forgets && !options.forgets {
            continue;
        }
        println!("program {seed}");
        program.threads_first |= !options.late_threads;
        if options.shows {
            println!("{program:#?}");
        }
        let descriptors = descriptors::open();
        let before = Memory::allocated();
        run::program(&program, &watch)?;
        memory.ended(&program, before, Memory::allocated())?;
        // Forgotten values, and values that a panicking destructor leaks, keep their descriptors
        // open.
        if !program.forgets && !program.callback_panics {
            descriptors::compare(descriptors, descriptors::open())?;
        }
        if UNEXPECTED.load(Relaxed) > 0 {
            return Err(String::from("there was a panic that does not belong to a program"));
        }
        rounds += 1;
    }
    // Checks that freed memory was not written to.
    #[cfg(asx_audit)]
    asx_runtime::audit::check();
    println!("{}", memory.report(Memory::allocated()));
    let counts: Vec<_> = KINDS
        .iter()
        .zip(&world::REACHED)
        .map(|(kind, count)| (*kind, count.load(Relaxed)))
        .collect();
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    println!("{rounds} programs, {total} operations");
    let never: Vec<_> =
        counts.iter().filter(|(_, count)| *count == 0).map(|(kind, _)| kind).collect();
    if rounds >= ENOUGH && options.program.is_none() && !never.is_empty() {
        return Err(format!("never run: {never:?}"));
    }
    Ok(())
}

/// Silences the panics that belong to the programs, and reports all others.
fn silence() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Relaxed);
        *LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = info.to_string();
        let leak = info.payload_as_str().is_some_and(|text| text == LEAK);
        if !leak && !info.payload().is::<ExpectedPanic>() {
            UNEXPECTED.fetch_add(1, Relaxed);
            report(info);
        }
    }));
}

/// The panic message when a tracked permit is dropped unresolved.
const LEAK: &str = asx_kernel::session::LEAK_MESSAGE;
