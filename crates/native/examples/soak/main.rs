//! A long run of everything at once: tasks that spawn, cancel, close, panic, time out, send,
//! receive, lock, sleep and clean up at random, on four workers.
//!
//! ```text
//! cargo run --release -p asx-native --example soak -- --seconds 60 --seed 7
//! ```
//! The run is good, and the exit code 0, if nothing ever stood still, every message is accounted
//! for, memory stayed flat, and at the end no task, timer or permit is left.

mod ledger;
mod load;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use asx_native::Runtime;
use asx_runtime::{Cx, Grace};

use ledger::Ledger;
use load::Driver;
use watch::Watch;

const WORKERS: usize = 4;
/// How many work at random side by side.
const DRIVERS: usize = 8;
/// For the stop under load: from word to cancel, and from cancel to force.
const GRACE: Grace = Grace { soft: Duration::from_millis(20), hard: Duration::from_millis(500) };

fn main() -> ExitCode {
    match options(std::env::args().skip(1)).and_then(|(seconds, seed)| soak(seconds, seed)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<(u64, u64), String> {
    let (mut seconds, mut seed) = (10, 1);
    while let Some(name) = args.next() {
        let value = args.next().and_then(|value| value.parse().ok());
        match (name.as_str(), value) {
            ("--seconds", Some(value)) => seconds = value,
            ("--seed", Some(value)) => seed = value,
            _ => return Err("usage: soak [--seconds N] [--seed N]".into()),
        }
    }
    Ok((seconds, seed))
}

fn soak(seconds: u64, seed: u64) -> Result<(), String> {
    println!("soak: {seconds} s, seed {seed}, {WORKERS} workers, {DRIVERS} drivers");
    // Panics are part of the load: those that are meant say nothing.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<load::Meant>().is_none() {
            report(info);
        }
    }));
    let runtime = Runtime::builder().workers(WORKERS).build().map_err(|e| e.to_string())?;
    let ledger = Arc::new(Ledger::default());
    let watch = Watch::start(runtime.handle(), DRIVERS);
    let end = Instant::now() + Duration::from_secs(seconds);
    runtime.block_on(async |cx: Cx| {
        let drivers = cx.try_scope(async |s| {
            for index in 0..DRIVERS {
                let driver = Driver::new(seed, index, ledger.clone(), watch.beat(index));
                drop(s.task(format!("driver {index}")).spawn(|cx| driver.run(cx, end)));
            }
            Ok::<_, String>(())
        });
        drivers.await.map_err(|stop| format!("a driver failed: {stop:?}"))
    })?;
    let rounds = watch.finish()?;
    settled(&runtime, "at the end")?;
    stop_under_load(runtime)?;
    println!("soak: {rounds} rounds; {}", ledger.balance()?);
    Ok(())
}

/// No task and no timer is left.
fn settled(runtime: &Runtime, when: &str) -> Result<(), String> {
    let dump = runtime.dump();
    if dump.tasks() == 0 && dump.timers == 0 && dump.regions.len() == 1 {
        return Ok(());
    }
    Err(format!("{when}: {} tasks and {} timers are left\n{dump}", dump.tasks(), dump.timers))
}

/// A shutdown ends a program that would run for ever, be it deaf to word and cancel.
fn stop_under_load(runtime: Runtime) -> Result<(), String> {
    let runtime = Arc::new(runtime);
    let program = std::thread::spawn({
        let runtime = runtime.clone();
        move || runtime.block_on(load::endless)
    });
    while runtime.dump().tasks() < load::ENDLESS {
        std::thread::yield_now();
    }
    let stopped = runtime.shutdown(GRACE);
    stopped.map_err(|dump| format!("the shutdown left:\n{dump}"))?;
    program.join().map_err(|_| "the program that was shut down panicked")?;
    settled(&runtime, "after the shutdown")
}
