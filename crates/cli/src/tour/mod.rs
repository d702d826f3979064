//! `asx tour`, which is also `asx` without a command.
//!
//! A small service runs on threads, then in the lab under many schedules and with a cancel at every
//! await; then with a bug, which is found, shrunk, replayed and recorded.

mod shop;

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use asx::{BoxFuture, Cancelled, Cx, Runtime};
use asx_conformance::shell_word;
use asx_lab::{Check, Found, check, report};
use asx_trace::{Reader, verify};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use shop::{Books, Plan};

use crate::output::{COMMAND, printable, verdict};

/// On threads.
const LARGE: Plan =
    Plan { customers: 64, orders: 50 * SCALE, clerks: 8, stock: 1250 * SCALE, careless: false };
/// Without optimisation everything is slower, and nobody looks.
const SCALE: u32 = if cfg!(debug_assertions) { 4 } else { 80 };
/// In the lab.
const SMALL: Plan = Plan { customers: 3, orders: 1, clerks: 2, stock: 2, careless: false };
/// How long the lab searches, each time.
const PATIENCE: Duration = Duration::from_secs(8);
const RUNS: u64 = 250 * SCALE as u64;

/// The options of `asx tour`.
#[derive(Args, Default)]
pub(crate) struct Tour {
    /// Only replay a failing schedule that the tour found.
    #[arg(long, value_name = "TOKEN")]
    replay: Option<String>,
}

pub(crate) fn tour(options: &Tour, out: &mut impl Write) -> io::Result<ExitCode> {
    if let Some(token) = &options.replay {
        return replay(token, out);
    }
    writeln!(out, "A shop: customers order over a two-phase channel, clerks share a stock.\n")?;
    writeln!(out, "1. On threads")?;
    out.flush()?;
    match on_threads() {
        Ok((books, span)) => {
            let Books { sold, refused, left } = books;
            let rate = f64::from(sold + refused) / span.as_secs_f64();
            writeln!(
                out,
                "   {sold} sold, {refused} refused, {left} left, {rate:.0} orders a second;"
            )?;
            writeln!(out, "   every task has ended, the books are right\n")?;
        }
        Err(wrong) => return stop(out, &wrong),
    }

    writeln!(out, "2. In the lab: the same code, one schedule after another")?;
    out.flush()?;
    let report = small(SMALL).run();
    writeln!(out, "   {report}")?;
    if report.failure.is_some() {
        return stop(out, "the shop is wrong");
    }
    let report = small(SMALL).cancel_at_every_await().run();
    writeln!(out, "   with a cancel at every await: {report}\n")?;
    if report.failure.is_some() {
        return stop(out, "the shop does not stand a cancel");
    }

    writeln!(out, "3. With careless clerks, who look at the stock and take from it later")?;
    out.flush()?;
    found(out)
}

/// The shop as a program for the lab.
fn small(plan: Plan) -> Check<impl Fn(Cx) -> Shop> {
    let program = move |cx: Cx| -> Shop {
        Box::pin(async move { shop::run(&cx, plan, &Arc::default()).await.map(drop) })
    };
    check(program).name("shop").runs(RUNS).time(PATIENCE)
}

type Shop = BoxFuture<'static, Result<(), Cancelled>>;

/// Runs the large shop and shows how far it is: its books, and how long it took.
fn on_threads() -> Result<(Books, Duration), String> {
    let served = Arc::new(AtomicU64::new(0));
    let runtime = Runtime::builder().workers(2).build().map_err(|error| error.to_string())?;
    let total = u64::from(LARGE.customers * LARGE.orders);
    let over = AtomicBool::new(false);
    let bar = bar(total);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(Relaxed) {
                bar.set_position(served.load(Relaxed));
                std::thread::sleep(Duration::from_millis(50));
            }
            bar.finish_and_clear();
        });
        let start = Instant::now();
        let books = runtime.block_on(async |cx: Cx| shop::run(&cx, LARGE, &served).await);
        let span = start.elapsed();
        over.store(true, Relaxed);
        let books = books.map_err(|cancelled| cancelled.to_string())?;
        runtime.shutdown(Duration::from_secs(1)).map_err(|left| left.to_string())?;
        Ok((books, span))
    })
}

fn bar(total: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    }
    let bar = ProgressBar::new(total);
    let style = ProgressStyle::with_template("   {bar:40} {pos}/{len} orders, {per_sec}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// The shop with the planted bug.
fn careless() -> Check<impl Fn(Cx) -> Shop> {
    small(Plan { careless: true, ..SMALL })
}

/// Runs one schedule of the shop with the planted bug again.
fn replay(token: &str, out: &mut impl Write) -> io::Result<ExitCode> {
    let report = match careless().replay(token) {
        Ok(report) if report.unused == 0 => report,
        Ok(_) => {
            complain!("asx: `{}`: the token does not fit the shop of the tour", printable(token));
            return Ok(ExitCode::from(2));
        }
        Err(error) => {
            complain!("asx: `{}`: {error}", printable(token));
            return Ok(ExitCode::from(2));
        }
    };
    writeln!(out, "{} shop", verdict(report.failure.is_none()))?;
    match report.failure {
        Some(found) => write_found(&found, "  ", out).map(|()| ExitCode::FAILURE),
        None => writeln!(out, "  {report}").map(|()| ExitCode::SUCCESS),
    }
}

/// Writes a failure without its command for `cargo test`: the tour is not a test.
fn write_found(found: &Found, indent: &str, out: &mut impl Write) -> io::Result<()> {
    let text = found.to_string();
    let mut lines = text.lines().filter(|line| !line.starts_with("to see it again"));
    lines.try_for_each(|line| writeln!(out, "{indent}{line}"))
}

/// The command that replays a schedule of the tour with this program.
fn command(token: &str) -> String {
    // A path need not be Unicode, which `args` requires.
    let program = std::env::args_os().next().unwrap_or_else(|| "asx".into());
    format!("{} tour --replay {token}", shell_word(&program.to_string_lossy()))
}

/// Finds the bug, and shows it in every way there is.
fn found(out: &mut impl Write) -> io::Result<ExitCode> {
    let shop = careless();
    let Some(found) = shop.run().failure else { return stop(out, "the planted bug was not found") };
    write_found(&found, "   ", out)?;
    let again = shop.replay(&found.token).ok().and_then(|report| report.failure);
    if again.is_none_or(|again| again.failure != found.failure) {
        return stop(out, "the schedule did not fail again");
    }
    writeln!(out, "   replayed: fails again in the same way; to see that yourself:")?;
    writeln!(out, "   {}\n", COMMAND.text(command(&found.token)))?;

    writeln!(out, "4. The run, on record")?;
    let folder = folder();
    for path in report::write_with(&found, &folder, command(&found.token))? {
        writeln!(out, "   {}", path.display())?;
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let mut reader = match Reader::open(File::open(&path)?) {
                Ok(reader) => reader,
                Err(error) => return stop(out, &error.to_string()),
            };
            let verified = verify(&mut reader, true);
            if let Some(violation) = verified.violations.first() {
                return stop(out, &violation.to_string());
            }
            let events = verified.events;
            let digest = verified.digest;
            writeln!(out, "     {events} events, digest {digest:016x}, as the laws allow")?;
        }
    }
    writeln!(out, "\nNext: asx --help, asx conform, asx explore --help, and the README.")?;
    Ok(ExitCode::SUCCESS)
}

/// Where the tour leaves its files.
fn folder() -> PathBuf {
    let target = PathBuf::from("target");
    let base = if target.is_dir() { target } else { std::env::temp_dir() };
    base.join("asx-tour")
}

fn stop(out: &mut impl Write, wrong: &str) -> io::Result<ExitCode> {
    writeln!(out, "   {wrong}")?;
    Ok(ExitCode::FAILURE)
}
