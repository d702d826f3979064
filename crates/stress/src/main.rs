//! Random programs over everything `asx` offers, one after the other, and whether their books
//! balance.
//!
//! ```text
//! asx-stress [--seconds N] [--seed S] [--rounds N] [--program SEED] [--no-callback-panics]
//!            [--no-late-threads] [--patience SECONDS] [--show]
//! ```
//! A seed stands for a program, not for the order in which its threads happen to run. The programs
//! run in a process of its own, so that of one that crashes the seed is known. Exit codes: 0 all is
//! well, 1 the books of a program do not balance, 2 usage, 3 a program hangs, 4 a crash.

mod books;
mod connection;
mod descriptors;
mod finale;
mod generate;
mod memory;
mod ops;
mod options;
mod parcel;
mod pool;
mod program;
mod rules;
mod run;
mod turns;
mod waker;
mod watch;
mod world;

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use asx_kernel::rng::mix64;

use books::Meant;
use memory::Memory;
use options::Options;
use program::KINDS;
use watch::Watch;

/// Tells the inner process from the one that looks after it.
const INNER: &str = "ASX_STRESS_INNER";
/// Programs after which every kind of operation has been run.
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
        Err(why) => {
            eprintln!("asx-stress: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the programs in a process of its own, which says on its output which one is next.
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
            eprintln!("asx-stress: {status} in program {last}; again: --program {last}");
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

/// Panics that no program meant.
static UNEXPECTED: AtomicU64 = AtomicU64::new(0);
/// All panics so far.
static PANICS: AtomicU64 = AtomicU64::new(0);
/// What the last one was, for reports.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// What the last panic was.
fn last_panic() -> String {
    LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

fn stress(options: &Options) -> Result<(), String> {
    silence();
    let watch = Watch::start(options.patience);
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
        // What is forgotten, or lost where a destructor panics, keeps its descriptors.
        if !program.forgets && !program.bombs {
            descriptors::compare(descriptors, descriptors::open())?;
        }
        if UNEXPECTED.load(Relaxed) > 0 {
            return Err(String::from("there was a panic that no program meant"));
        }
        rounds += 1;
    }
    // Nobody has written to what was freed.
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

/// Panics are part of the programs: those that are meant say nothing.
fn silence() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Relaxed);
        *LAST_PANIC.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = info.to_string();
        let leak = info.payload_as_str().is_some_and(|text| text == LEAK);
        if !leak && !info.payload().is::<Meant>() {
            UNEXPECTED.fetch_add(1, Relaxed);
            report(info);
        }
    }));
}

/// What the drop of a tracked permit says that was neither sent nor aborted.
const LEAK: &str = asx_kernel::session::LEAK_MESSAGE;
