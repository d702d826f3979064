//! The examples in the lab: runs with equal seeds are equal in every event.
//!
//! `ASX_SEEDS` is the number of seeds, `ASX_JOBS` the number of threads that share them. The last
//! line of a test begins with `fingerprint` and is a digest of all its runs. It is the same in
//! every process, with any number of threads, in debug and in release; `cargo xtask determinism`
//! compares it. The example `shutdown` is not included, because it has a separate runtime.

#![allow(dead_code, reason = "the `main` functions of the examples are not called here")]

#[path = "../examples/fan_out.rs"]
mod fan_out;
#[path = "../examples/hello.rs"]
mod hello;
#[path = "../examples/lanes.rs"]
mod lanes;
#[path = "../examples/pipeline.rs"]
mod pipeline;
#[path = "../examples/supervision.rs"]
mod supervision;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use asx::lab::{Trace, check};
use asx::prelude::*;
use asx_trace::{Codec, Reader, Record, Writer};

/// One run in this many is written in each codec and read again.
const WRITTEN: u64 = 16;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Runs an example with all seeds, twice each. `share` is the number of seeds per thousand.
fn examine<F, B>(name: &'static str, share: u64, program: F)
where
    F: Fn(Cx) -> B + Sync,
    B: Future<Output = Result<(), String>>,
{
    let seeds = (setting("ASX_SEEDS", 100) * share).div_ceil(1000);
    let (next, all, sum) = (AtomicU64::new(0), Mutex::new(BTreeSet::new()), AtomicU64::new(0));
    let work = || {
        let check = check(&program).name(name);
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|seed| *seed < seeds) {
            let (first, second) = (check.record(seed), check.record(seed));
            assert!(first == second, "{name}, seed {seed}: two runs that differ");
            if seed % WRITTEN == 0 {
                for codec in [Codec::Json, Codec::Binary] {
                    assert!(read(&written(&first, codec)) == first.records, "{name}: {codec:?}");
                }
            }
            all.lock().unwrap().insert(first.digest());
            // Independent of the order, and different for any two seeds.
            let of_run = first.digest().wrapping_mul(2 * seed + 1).rotate_left(seed as u32 % 64);
            sum.fetch_add(of_run, Relaxed);
        }
    };
    std::thread::scope(|threads| {
        for _ in 0..setting("ASX_JOBS", 2).max(1) {
            threads.spawn(work);
        }
    });
    let (distinct, sum) = (all.into_inner().unwrap().len(), sum.into_inner());
    println!("fingerprint {name} {seeds} {distinct} {sum:016x}");
}

fn written(trace: &Trace, codec: Codec) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, codec, &trace.header).expect("a header");
    trace.records.iter().for_each(|record| writer.write(record).expect("a record"));
    writer.finish().expect("an end");
    bytes
}

fn read(bytes: &[u8]) -> Vec<Record> {
    Reader::open(bytes).expect("a trace").map(|record| record.expect("a record")).collect()
}

fn words<T, E: std::fmt::Debug>(result: Result<T, E>) -> Result<(), String> {
    result.map(|_| ()).map_err(|error| format!("{error:?}"))
}

#[test]
fn hello_is_the_same_with_the_same_seed() {
    examine("hello", 1000, async |cx: Cx| words(hello::greetings(&cx).await));
}

#[test]
fn fan_out_is_the_same_with_the_same_seed() {
    examine("fan_out", 1000, async |cx: Cx| {
        let _ = fan_out::all(&cx, &["home", "missing", "slow"]).await;
        fan_out::each(&cx, &["home", "missing"]).await;
        words(fan_out::all(&cx, &["home", "news"]).await)
    });
}

#[test]
fn lanes_is_the_same_with_the_same_seed() {
    examine("lanes", 1000, async |cx: Cx| {
        words(lanes::order(&cx).await)?;
        words(lanes::late(&cx).await)
    });
}

#[test]
fn supervision_is_the_same_with_the_same_seed() {
    examine("supervision", 1000, async |cx: Cx| {
        supervision::counters(&cx).await;
        Ok(())
    });
}

#[test]
fn pipeline_is_the_same_with_the_same_seed() {
    // A thousand orders take thousands of polls.
    examine("pipeline", 10, async |cx: Cx| words(pipeline::pipeline(&cx).await));
}
