//! Scenarios, run inside the browser: a parity record per scenario, seed and codec, a line each.
//!
//! Only for WebAssembly; `cargo xtask web` builds it. It stands beside the page, since it brings
//! the lab, whose hooks in the runtime would be in what is measured there.

#![cfg(target_arch = "wasm32")]

use asx_conformance::parity::{Setting, no_records, records};
use asx_conformance::{Native, corpus, parse_str, run_scenario};
use asx_origin::Origin;
use std::sync::Arc;
use wasm_bindgen::prelude::*;

/// What it was built from and with.
const ORIGIN: Origin = asx_origin::origin!();

/// How many scenarios there are.
#[wasm_bindgen]
pub fn fixture_count() -> usize {
    corpus().len()
}

/// Runs one scenario under each of its seeds; `place` is where: a page or a worker; `build` is how
/// this was built.
#[wasm_bindgen]
pub fn run_fixture(nth: usize, place: &str, build: &str) -> String {
    let fixture = corpus().into_iter().nth(nth);
    fixture.map_or(String::new(), |it| run_text(&it.file, &it.text, place, build))
}

/// The same for a scenario that is not built in.
#[wasm_bindgen]
pub fn run_text(file: &str, text: &str, place: &str, build: &str) -> String {
    let scenario = match parse_str(file, text) {
        Ok(scenario) => Arc::new(scenario),
        Err(errors) => return format!("{}\n", no_records(&format!("{errors:?}"))),
    };
    let report = run_scenario(&mut Native::in_page(), &scenario);
    let setting = Setting { host: "web", place, profile: None, build, origin: &ORIGIN };
    match records(&scenario, &report, &setting) {
        Ok(records) => records.iter().map(|record| format!("{record}\n")).collect(),
        Err(why) => format!("{}\n", no_records(&why)),
    }
}
