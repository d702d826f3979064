//! The README: its program and its test compile, and its output is that of the lab.
//!
//! `cargo test` also compiles the program as a doctest.

#![allow(dead_code, reason = "the program's `main` is not called")]

#[path = "../../examples/server.rs"]
mod server;

use asx::io;
use asx::net::{TcpListener, TcpStream, serve};
use asx::prelude::*;
use server::echo;

use crate::lab::run;

const README: &str = include_str!("../../../../README.md");

mod tests {
    use super::*;

    #[ignore = "it fails: its output is that of the README"]
    #[asx::test(network, cancel = "every await")]
    async fn the_server_returns_a_message(cx: &Cx) -> io::Result<()> {
        let listener = TcpListener::bind(cx, "127.0.0.1:7000").await?;
        cx.scope(async |s| {
            s.task("server").spawn(async move |cx: Cx| serve(&cx, listener, echo).await);
            let mut client = TcpStream::connect(cx, "127.0.0.1:7000").await?;
            client.write_all(cx, b"hello").await?;
            let mut reply = [0; 5];
            let count = client.read(cx, &mut reply).await?;
            assert_eq!(&reply[..count], b"hello");
            s.stop();
            Ok(())
        })
        .await
    }
}

/// The test of the README after the two corrections that its text names.
#[asx::test(network, cancel = "every await")]
async fn corrected_test_of_the_readme_passes(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, "127.0.0.1:7000").await?;
    cx.scope(async |s| {
        s.task("server").spawn(async move |cx: Cx| serve(&cx, listener, echo).await);
        let mut client = TcpStream::connect(cx, "127.0.0.1:7000").await?;
        client.write_all(cx, b"hello").await?;
        let mut reply = [0; 5];
        cx.timeout(10.secs(), async |cx| client.read_exact(cx, &mut reply).await).await?;
        assert_eq!(&reply, b"hello");
        s.stop();
        Ok(())
    })
    .await
}

/// Returns the first code block of the README in a language.
fn block(language: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("```{language}\n")).expect("a block");
    rest.split("```").next().expect("its end")
}

/// Returns the lines of a source file that are also in the README.
fn shown(source: &str) -> String {
    let hidden = |line: &&str| line.starts_with("//!") || line.contains("#[ignore");
    let lines = source.lines().filter(|line| !hidden(line));
    lines.map(|line| format!("{}\n", line.replacen("pub(crate) ", "", 1))).collect()
}

#[test]
fn program_and_test_of_the_readme_are_those_compiled_here() {
    let program = shown(include_str!("../../examples/server.rs"));
    assert_eq!(program.trim(), block("rust,no_run").trim());
    let test = block("rust,ignore").trim_start_matches("#[cfg(test)]\n");
    assert!(shown(include_str!("readme.rs")).contains(test), "the test in the README differs");
}

/// Replaces what differs between machines and places: numbers, and the path of the test.
fn comparable(report: &str) -> String {
    let text = report.replace("crates/asx/tests/suite/readme.rs", "src/main.rs");
    let text = text.replace("readme::tests::", "tests::");
    let digit = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let mut text: String = text.chars().map(digit).collect();
    while text.contains("00") {
        text = text.replace("00", "0");
    }
    text
}

#[test]
fn failure_in_the_readme_is_the_report_of_its_test() {
    let report = run("readme::tests::the_server_returns_a_message", None).unwrap_err();
    let report = comparable(&report);
    let (facts, _) = block("text").split_once("to see it again: ").expect("a command");
    assert!(report.contains(&comparable(facts)), "{report}");
    assert!(report.contains("to see it again: ASX_REPLAY="), "{report}");
}
