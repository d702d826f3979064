//! The page in a browser. `cargo xtask web --test` provides the browser and its driver.

mod common;

use asx_report::html;
use common::{Made, TORN, busy, failed};
use std::path::Path;
use std::process::Command;

/// Writes some pages. Returns the path of each with its number of events.
fn write_pages(folder: &Path) -> Vec<String> {
    std::fs::create_dir_all(folder).expect("a folder");
    let pages = [("small", busy(3, 4, 6)), ("large", busy(20, 25, 30)), ("failed", failed())];
    let write = |(name, made): (&str, Made)| {
        let path = folder.join(name).with_extension("html");
        std::fs::write(&path, html(&made.run())).expect("written");
        // The events of the teardown are collapsed.
        let shown = if name == "failed" { TORN as usize } else { made.events.len() };
        format!("{}={shown}", path.display())
    };
    pages.map(write).into()
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(modules) = std::env::var_os("ASX_WEB_MODULES") else {
        println!("skipped: no ASX_WEB_MODULES, which `cargo xtask web --test` sets");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let pages = write_pages(&folder);
    let large = pages[1].rsplit('=').next().and_then(|count| count.parse::<u32>().ok());
    assert!(large.is_some_and(|count| count >= 50_000), "{large:?}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser.mjs");
    let mut node = Command::new("node");
    node.arg(script).args(pages).env("ASX_WEB_MODULES", modules).env("ASX_WEB_OUT", &folder);
    let output = node.output().expect("node runs");
    let [said, wrong] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    print!("{said}");
    assert!(output.status.success(), "{said}{wrong}");
    // Three pages in three window sizes.
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), 9, "{said}");
}
