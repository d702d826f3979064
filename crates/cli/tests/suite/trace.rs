//! `asx trace` and `asx run --trace` from outside.

use crate::folder;

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use folder::Folder;

/// One task that sends and receives, a region that closes: something of everything.
const SCENARIO: &str = "ch-fifo-001";

fn asx(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asx")).args(arguments).output().expect("asx runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output and the exit code.
fn said(arguments: &[&str]) -> (String, Option<i32>) {
    let output = asx(arguments);
    (text(&output.stdout), output.status.code())
}

/// Standard error of a call that must be refused.
fn refused(arguments: &[&str]) -> String {
    let output = asx(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_slice(&asx(arguments).stdout).expect("JSON")
}

impl Folder {
    fn path(&self, name: &str) -> String {
        self.join(name).to_string_lossy().into_owned()
    }

    /// The trace of a built-in scenario.
    fn trace(&self, scenario: &str, name: &str) -> String {
        let path = self.path(name);
        let output = asx(&["run", scenario, "--seed", "0", "--trace", &path]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        path
    }

    fn files(&self) -> Vec<String> {
        let names = fs::read_dir(&**self).expect("readable").flatten();
        let mut names: Vec<_> =
            names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn replace(path: &str, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("readable");
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replacen(from, to, 1)).expect("written");
}

#[test]
fn a_run_leaves_a_trace_in_either_codec_with_the_fingerprint_as_digest() {
    let folder = Folder::new("trace-run");
    let (lines, binary) = (folder.trace(SCENARIO, "a.jsonl"), folder.trace(SCENARIO, "a.asxt"));
    let run = json(&["run", SCENARIO, "--seed", "0", "--json"]);
    let fingerprint = run["runs"][0]["fingerprint"].as_str().expect("text");
    for path in [&lines, &binary] {
        assert_eq!(said(&["trace", "digest", path]), (format!("{fingerprint}\n"), Some(0)));
    }
    assert_eq!(folder.files(), ["a.asxt", "a.jsonl"], "nothing else is left behind");
    let first = fs::read_to_string(&lines).expect("readable");
    let header = "{\"record\":\"header\",\"version\":2,\"contract\":\"asx-semantics-1\",\
                  \"program\":\"ch-fifo-001\",\"host\":\"model\"";
    assert!(first.starts_with(header), "{first}");
    assert!(fs::metadata(&binary).expect("there").len() * 5 < first.len() as u64);
}

#[test]
fn host_events_and_failures_are_in_the_trace_too() {
    let folder = Folder::new("trace-host");
    let (browser, failed) = (folder.path("b.jsonl"), folder.path("f.jsonl"));
    let id = "sched.browser.wake.dedup_cross_turn";
    assert_eq!(asx(&["run", id, "--seed", "0", "--trace", &browser]).status.code(), Some(0));
    let lines = fs::read_to_string(&browser).expect("readable");
    assert!(lines.contains("{\"record\":\"host\",\"seq\":0,\"kind\":\""), "{lines}");
    assert_eq!(asx(&["trace", "verify", &browser, "--strict"]).status.code(), Some(0));
    let wrong = folder.path("wrong.toml");
    let text = "schema = 1\nid = \"wrong\"\ntitle = \"t\"\narea = \"a\"\n\
                steps = [{ op = \"spawn\", task = \"idle\" }, { op = \"run\", steps = 7 }]\n\
                [tasks.idle]\n";
    fs::write(&wrong, text).expect("written");
    assert_eq!(asx(&["run", &wrong, "--trace", &failed]).status.code(), Some(1));
    let (shown, code) = said(&["trace", "show", &failed]);
    assert_eq!(code, Some(0));
    assert!(
        shown.contains("  failure at event ") && shown.contains("expected 7, got 1"),
        "{shown}"
    );
}

#[test]
fn what_schedulers_tell_is_whole_in_every_trace_and_verified() {
    let folder = Folder::new("trace-scheduler");
    let path = folder.path("a.jsonl");
    let ids = text(&asx(&["conform", "--list", "--filter", "sched.browser.*"]).stdout);
    let hosted = ids.lines().flat_map(|id| [(id, "model"), (id, "web")]);
    let denied = ["model", "native", "web"].map(|host| ("parity-capability-denied", host));
    for (id, host) in hosted.chain(denied) {
        let output = asx(&["run", id, "--host", host, "--seed", "1", "--trace", &path]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let (out, code) = said(&["trace", "verify", &path, "--strict"]);
        assert_eq!(code, Some(0), "{id} on {host}: {out}");
    }
    let output = asx(&[
        "run",
        "sched.browser.reentrancy.defer_not_reenter",
        "--host",
        "web",
        "--seed",
        "1",
        "--trace",
        &path,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let whole = fs::read_to_string(&path).expect("readable");
    let decision =
        whole.lines().position(|line| line.contains("scheduler_step_decision\",\"fields"));
    let line = decision.expect("a decision") + 1;
    let cases = [
        (
            "\"kind\":\"scheduler_step_decision\"",
            "\"kind\":\"scheduler_decision\"",
            "`scheduler_decision`",
        ),
        ("\"region_id\":1,\"lane\":\"ready\",", "\"region_id\":1,", "the field `lane` is missing"),
        ("\"region_id\":1,\"lane\":\"ready\",", "\"region_id\":1,\"lane\":null,", "`lane` is null"),
    ];
    for (from, to, what) in cases {
        fs::write(&path, &whole).expect("written");
        replace(&path, from, to);
        let (out, code) = said(&["trace", "verify", &path, "--strict"]);
        assert_eq!(code, Some(1), "{out}");
        let first = out.lines().nth(1).expect("a line");
        assert!(first.contains(&format!("line {line}, ")) && first.contains(what), "{line}: {out}");
    }
    // Traces of before have no contract: they are refused as such.
    fs::write(&path, &whole).expect("written");
    replace(&path, "\"version\":2,\"contract\":\"asx-semantics-1\"", "\"version\":1");
    assert!(refused(&["trace", "verify", &path]).contains("format version 1 is not supported"));
    fs::write(&path, &whole).expect("written");
    replace(&path, "asx-semantics-1", "asx-semantics-9");
    let why = refused(&["trace", "verify", &path]);
    assert!(why.contains("recorded under the contract `asx-semantics-9`"), "{why}");
}

#[test]
fn run_refuses_what_it_cannot_write() {
    let folder = Folder::new("trace-refuse");
    let file = folder.path("own.toml");
    fs::write(&file, "schema = 1\nid = \"own\"\ntitle = \"t\"\narea = \"a\"\nsteps = []\n")
        .expect("written");
    let before = fs::read(&file).expect("readable");
    let why = refused(&["run", &file, "--trace", &folder.path("x.txt")]);
    assert!(why.contains("which codec?"), "{why}");
    let why = refused(&["run", &file, "--trace", &folder.path("no/x.asxt")]);
    assert!(why.contains("x.asxt"), "{why}");
    let why = refused(&["run", "tm-same-deadline-001", "--trace", &folder.path("x.asxt")]);
    assert!(why.contains("there are 3 seeds: --seed"), "{why}");
    let own = folder.path("own.jsonl");
    fs::rename(&file, &own).expect("renamed");
    let why = refused(&["run", &own, "--trace", &own]);
    assert!(why.contains("this is the input"), "{why}");
    assert_eq!(fs::read(&own).expect("readable"), before);
    assert_eq!(folder.files(), ["own.jsonl"]);
}

#[test]
fn verify_says_what_is_wrong_and_where() {
    let folder = Folder::new("trace-verify");
    let path = folder.trace(SCENARIO, "a.jsonl");
    let (out, code) = said(&["trace", "verify", &path, "--strict"]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("lawful: jsonl, "), "{out}");
    assert!(said(&["trace", "verify", &path]).0.starts_with("whole: jsonl, "));
    replace(
        &path,
        "\"from\":\"Created\",\"to\":\"Running\"",
        "\"from\":\"Running\",\"to\":\"Running\"",
    );
    let (out, code) = said(&["trace", "verify", &path, "--strict"]);
    assert_eq!(code, Some(1));
    let line = format!("{path}: line ");
    let first = out.lines().nth(1).expect("a line");
    assert!(first.starts_with(&line) && first.contains("task_state: event "), "{out}");
    assert!(out.starts_with("DOES NOT HOLD: ") && out.contains("end_digest: the digest is "));
    // Without the laws there is still the digest.
    assert_eq!(said(&["trace", "verify", &path]).1, Some(1));
    let report = json(&["trace", "verify", &path, "--strict", "--json"]);
    assert_eq!((&report["holds"], &report["strict"]), (&false.into(), &true.into()));
    assert_eq!(report["violations"][0]["code"], "task_state");
    assert!(report["violations"][0]["place"].as_str().expect("text").starts_with("line "));
}

#[test]
fn damage_does_not_hold_and_what_is_no_trace_is_unusable() {
    let folder = Folder::new("trace-damage");
    let path = folder.trace(SCENARIO, "a.asxt");
    let bytes = fs::read(&path).expect("readable");
    fs::write(&path, &bytes[..bytes.len() - 3]).expect("written");
    let (out, code) = said(&["trace", "verify", &path]);
    assert_eq!(code, Some(1));
    let place = format!("{path}: byte {} (record ", bytes.len() - 3);
    assert!(out.contains(&place) && out.contains("truncated: the trace ends early"), "{out}");
    // What is there is shown.
    let output = asx(&["trace", "show", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("region_opened"));
    assert!(text(&output.stderr).contains("the trace ends early"));
    let (first, second) = (folder.path("b.txt"), folder.path("none.asxt"));
    fs::write(&first, "hello\n").expect("written");
    for command in ["verify", "show", "digest"] {
        let why = refused(&["trace", command, &first]);
        assert!(why.contains("b.txt: byte 0 (record 0): not a trace"), "{why}");
        assert!(refused(&["trace", command, &second]).contains("none.asxt"));
    }
    assert!(refused(&["trace", "diff", &first, &path]).contains("not a trace"));
    assert!(refused(&["trace", "convert", &first, &second]).contains("not a trace"));
    assert!(!Path::new(&second).exists());
}

#[test]
fn show_names_things_and_filters() {
    let folder = Folder::new("trace-show");
    let path = folder.trace(SCENARIO, "a.asxt");
    let (all, code) = said(&["trace", "show", &path]);
    assert_eq!(code, Some(0));
    assert!(
        all.starts_with("ch-fifo-001 on model, seed 0, workers 1, asx-semantics-1\ntitle: "),
        "{all}"
    );
    assert!(all.lines().last().expect("a line").contains(" events, 0 lost, digest "), "{all}");
    let journal = json(&["run", SCENARIO, "--seed", "0", "--json"]);
    let journal = journal["runs"][0]["journal"].as_array().expect("a list").clone();
    let named = journal.iter().filter_map(|line| line.as_str());
    // Permits have no names here.
    for line in named.filter(|line| !line.contains("permit=") && !line.contains("obligation=")) {
        assert!(all.lines().any(|shown| shown == line), "{line} is not in\n{all}");
    }
    let (events, _) = said(&["trace", "show", &path, "--kind", "task_moved", "--task", "1"]);
    // Below what the header says.
    let is_event = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    let lines: Vec<_> = events.lines().filter(is_event).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(" task_moved task=")));
    let (part, _) = said(&["trace", "show", &path, "--from", "2", "--to", "4", "--json"]);
    let seqs: Vec<_> = part
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["seq"].clone())
        .collect();
    assert_eq!(seqs, [2, 3, 4]);
    let why = refused(&["trace", "show", &path, "--kind", "task_move"]);
    assert!(why.contains("no kind of event `task_move`; did you mean `task_moved`?"), "{why}");
}

#[test]
fn show_accepts_the_last_words_of_a_kind_and_refuses_unknown_tasks() {
    let folder = Folder::new("trace-show-filters");
    let path = folder.trace(SCENARIO, "a.asxt");
    let (short, code) = said(&["trace", "show", &path, "--kind", "decision"]);
    assert_eq!(code, Some(0), "{short}");
    assert!(short.contains("scheduler_step_decision"), "{short}");
    let long = said(&["trace", "show", &path, "--kind", "scheduler_step_decision"]);
    assert_eq!((short, code), long);
    for kind in ["", "_decision", "cision", "nothing"] {
        let why = refused(&["trace", "show", &path, "--kind", kind]);
        assert!(why.contains("there is no kind of event"), "{why}");
        assert!(why.contains("did you mean `") || why.contains("task_ended"), "{why}");
    }
    for flags in [&[][..], &["--json"]] {
        let why = refused(&[&["trace", "show", &path, "--task", "99"], flags].concat());
        assert!(why.contains("there is no task 99; its tasks are 1 ("), "{why}");
    }
    assert_eq!(said(&["trace", "show", &path, "--task", "1"]).1, Some(0));
    for flags in [&["--from", "99999"][..], &["--kind", "obligation_resolved"]] {
        for json in [&[][..], &["--json"]] {
            let output = asx(&[&["trace", "show", &path], flags, json].concat());
            assert_eq!(output.status.code(), Some(1), "{flags:?}: {}", text(&output.stdout));
            let why = text(&output.stderr);
            assert!(why.contains("no event matches; its last event is "), "{why}");
        }
    }
    let why = refused(&["trace", "show", &path, "--from", "5", "--to", "3"]);
    assert!(why.contains("--from 5 is after --to 3"), "{why}");
}

#[test]
fn diff_shows_where_two_traces_part() {
    let folder = Folder::new("trace-diff");
    let (a, b) = (folder.trace(SCENARIO, "a.jsonl"), folder.trace(SCENARIO, "b.asxt"));
    let (same, code) = said(&["trace", "diff", &a, &b]);
    assert_eq!(code, Some(0), "{same}");
    assert!(same.starts_with("the same: "), "{same}");
    replace(
        &a,
        "\"from\":\"Created\",\"to\":\"Running\"",
        "\"from\":\"Created\",\"to\":\"Completed\"",
    );
    let (out, code) = said(&["trace", "diff", &a, &b]);
    assert_eq!(code, Some(1));
    assert!(out.starts_with("they part after "), "{out}");
    let lines = |sign| out.lines().filter(move |line| line.starts_with(sign));
    assert!(lines("- ").next().expect("a line").ends_with("from=Created to=Completed"), "{out}");
    assert!(lines("+ ").next().expect("a line").ends_with("from=Created to=Running"), "{out}");
    assert!(lines("  ").count() > 0 && lines("- ").next_back().expect("a line").contains(&a));
    let object = json(&["trace", "diff", &a, &b, "--json"]);
    assert_eq!(object["same"], false);
    assert_eq!(object["difference"]["left"].as_array().map(Vec::len), Some(5));
    // Only the end record differs: of events that are not there.
    let c = folder.trace(SCENARIO, "c.jsonl");
    let digest = said(&["trace", "digest", &c]).0;
    replace(&c, digest.trim(), "0123456789abcdef");
    let (out, code) = said(&["trace", "diff", &c, &b]);
    assert_eq!(code, Some(1));
    assert!(out.contains("but the digests of all that were recorded differ"), "{out}");
    let output = asx(&["trace", "digest", &c]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), digest));
    assert!(text(&output.stderr).contains("the end record has 0123456789abcdef"));
}

#[test]
fn convert_goes_there_and_back_and_never_over_its_input() {
    let folder = Folder::new("trace-convert");
    let (a, b, c) = (folder.trace(SCENARIO, "a.jsonl"), folder.path("b.asxt"), folder.path("c"));
    let (out, code) = said(&["trace", "convert", &a, &b]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with(&b) && out.ends_with("records, jsonl to asxt\n"), "{out}");
    let object = json(&["trace", "convert", &b, &c, "--to", "jsonl", "--json"]);
    assert_eq!((&object["from"], &object["to"]), (&"asxt".into(), &"jsonl".into()));
    let before = fs::read(&a).expect("readable");
    assert_eq!(fs::read(&c).expect("readable"), before);
    assert!(refused(&["trace", "convert", &a, &c]).contains("which codec?"));
    let why = refused(&["trace", "convert", &a, &a]);
    assert!(why.contains("this is the input: it is not overwritten"), "{why}");
    // A damaged trace leaves what was there alone.
    let bytes = fs::read(&b).expect("readable");
    fs::write(&b, &bytes[..bytes.len() / 2]).expect("written");
    assert!(refused(&["trace", "convert", &b, &a]).contains("the trace ends early"));
    assert_eq!(fs::read(&a).expect("readable"), before);
    assert_eq!(folder.files(), ["a.jsonl", "b.asxt", "c"]);
}

#[test]
fn report_writes_a_page_of_its_own() {
    let folder = Folder::new("trace-report");
    let (a, page) = (folder.trace(SCENARIO, "a.asxt"), folder.path("a.html"));
    let (out, code) = said(&["trace", "report", "--html", &page, &a]);
    assert_eq!(code, Some(0));
    let written = fs::read_to_string(&page).expect("readable");
    assert!(out.starts_with(&format!("{page}: ")), "{out}");
    assert!(out.ends_with(" events, 0 marks: lawful\n"), "{out}");
    assert!(written.starts_with("<!doctype html>") && written.contains("<title>ch-fifo-001: "));
    let object = json(&["trace", "report", &a, "--html", &page, "--json"]);
    assert_eq!((&object["holds"], &object["file"]), (&true.into(), &page.clone().into()));
    assert_eq!(object["bytes"], written.len());
    assert_eq!(object["digest"], said(&["trace", "digest", &a]).0.trim());
    assert_eq!(fs::read_to_string(&page).expect("readable"), written, "over an older page");
    // What does not hold is worth a look, too.
    let bytes = fs::read(&a).expect("readable");
    fs::write(&a, &bytes[..bytes.len() - 3]).expect("written");
    let (out, code) = said(&["trace", "report", "--html", &page, &a]);
    assert!(code == Some(0) && out.ends_with(": 1 finding\n"), "{out}");
    assert!(fs::read_to_string(&page).expect("readable").contains("the trace ends early"));
    assert_eq!(folder.files(), ["a.asxt", "a.html"]);
}

#[test]
fn export_writes_what_viewers_read() {
    let folder = Folder::new("trace-export");
    let (a, file) = (folder.trace(SCENARIO, "a.jsonl"), folder.path("a.json"));
    for axis in ["order", "time"] {
        let call = ["trace", "export", "--perfetto", &file, &a, "--axis", axis, "--json"];
        let object = json(&call);
        let written = fs::read(&file).expect("readable");
        assert_eq!(object["bytes"], written.len());
        let trace: serde_json::Value = serde_json::from_slice(&written).expect("JSON");
        assert_eq!(trace["otherData"]["digest"], object["digest"]);
        let events = trace["traceEvents"].as_array().expect("a list");
        assert!(events.iter().any(|event| event["ph"] == "s" && event["name"] == "message"));
    }
    let (out, code) = said(&["trace", "export", "--perfetto", &file, &a]);
    assert!(code == Some(0) && out.starts_with(&file) && out.ends_with(": lawful\n"), "{out}");
    assert_eq!(folder.files(), ["a.json", "a.jsonl"]);
}

#[test]
fn a_trace_that_is_lawful_may_be_of_a_program_that_fails() {
    let folder = Folder::new("trace-fails");
    let (a, page) = (folder.trace(SCENARIO, "a.jsonl"), folder.path("a.html"));
    let text = fs::read_to_string(&a).expect("readable");
    let failed = "\"meta\":{\"failure\":\"panic\",\"failure_message\":\"too late\\nleft: 1\",";
    fs::write(&a, text.replacen("\"meta\":{", failed, 1)).expect("written");
    let (out, code) = said(&["trace", "report", "--html", &page, &a]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.ends_with(": lawful; the program fails: panic: too late\n"), "{out}");
    assert_eq!(json(&["trace", "report", "--html", &page, &a, "--json"])["failure"], "panic");
}

#[test]
fn report_and_export_refuse_what_they_cannot_do() {
    let folder = Folder::new("trace-unable");
    let (a, other) = (folder.trace(SCENARIO, "a.jsonl"), folder.path("b.txt"));
    let before = fs::read(&a).expect("readable");
    fs::write(&other, "hello\n").expect("written");
    for [command, flag] in [["report", "--html"], ["export", "--perfetto"]] {
        let why = refused(&["trace", command, flag, &a, &a]);
        assert!(why.contains("this is the input: it is not overwritten"), "{why}");
        let why = refused(&["trace", command, flag, &folder.path("x"), &other]);
        assert!(why.contains("b.txt: byte 0 (record 0): not a trace"), "{why}");
        let why = refused(&["trace", command, flag, &folder.path("no/x"), &a]);
        assert!(why.contains("no/x: "), "{why}");
        let why = refused(&["trace", command, flag, &folder.path("x"), &folder.path("none")]);
        assert!(why.contains("none: "), "{why}");
        let why = refused(&["trace", command, &a]);
        assert!(why.contains(flag), "{why}");
    }
    assert_eq!(fs::read(&a).expect("readable"), before);
    assert_eq!(folder.files(), ["a.jsonl", "b.txt"]);
}

#[test]
fn every_command_has_help_with_examples() {
    for command in ["verify", "show", "diff", "digest", "convert", "report", "export"] {
        let (out, code) = said(&["trace", command, "--help"]);
        assert!(code == Some(0) && out.contains("Examples:"), "{command}");
    }
    assert!(said(&["trace", "--help"]).0.contains("Exit status:"));
    assert_eq!(asx(&["trace"]).status.code(), Some(2));
}

#[test]
fn the_guide_shows_what_the_program_says() {
    const GUIDE: &str = include_str!("../../../../docs/TRACE.md");
    let block = |language: &str| {
        let (_, rest) = GUIDE.split_once(&format!("```{language}\n")).expect("a block");
        rest.split("```").next().expect("its end")
    };
    let folder = Folder::new("trace-guide");
    fs::write(folder.path("run.jsonl"), block("jsonl")).expect("written");
    let mut calls = 0;
    for call in block("console").split("$ asx ").skip(1) {
        let (arguments, expected) = call.split_once('\n').expect("a line");
        let output = Command::new(env!("CARGO_BIN_EXE_asx"))
            .args(arguments.split(' '))
            .current_dir(&*folder)
            .output()
            .expect("asx runs");
        assert_eq!(text(&output.stdout), expected, "asx {arguments}: {}", text(&output.stderr));
        calls += 1;
    }
    assert_eq!(calls, 7);
}

#[test]
fn what_follows_the_end_or_is_cut_off_is_told_with_the_digest_too() {
    let folder = Folder::new("trace-digest-damage");
    let whole = folder.trace(SCENARIO, "whole.asxt");
    let bytes = fs::read(&whole).expect("read");
    let digest = said(&["trace", "digest", &whole]).0;
    let damaged = folder.path("damaged.asxt");
    for bytes in [&[&bytes[..], b"more"].concat(), &bytes[..bytes.len() - 1]] {
        fs::write(&damaged, bytes).expect("written");
        let output = asx(&["trace", "digest", &damaged]);
        assert_eq!((text(&output.stdout), output.status.code()), (digest.clone(), Some(1)));
        assert!(text(&output.stderr).contains("byte "), "{}", text(&output.stderr));
        assert_eq!(json(&["trace", "digest", "--json", &damaged])["holds"], false);
    }
}

#[test]
fn an_unusable_trace_is_one_json_object_too() {
    let folder = Folder::new("trace-unusable-json");
    let (bad, good) = (folder.path("bad.jsonl"), folder.trace(SCENARIO, "good.jsonl"));
    fs::write(&bad, "no trace").expect("written");
    let (out, page) = (folder.path("o.jsonl"), folder.path("o.html"));
    for call in [
        &["verify", &bad, "--json"][..],
        &["digest", &bad, "--json"],
        &["diff", &good, &bad, "--json"],
        &["convert", &bad, &out, "--json"],
        &["report", &bad, "--html", &page, "--json"],
        &["export", &bad, "--perfetto", &page, "--json"],
    ] {
        let call = [&["trace"], call].concat();
        assert!(refused(&call).contains("bad.jsonl: byte 0"), "{call:?}");
        assert!(json(&call)["error"].as_str().is_some_and(|why| why.contains("byte 0")));
    }
}

#[test]
fn texts_of_a_trace_cannot_forge_lines() {
    let folder = Folder::new("trace-forged");
    let path = folder.trace(SCENARIO, "forged.jsonl");
    let trace = fs::read_to_string(&path).expect("read");
    let (before, after) = trace.split_once("\"text\":\"").expect("a label");
    fs::write(&path, format!("{before}\"text\":\"\\n9 0ns sent \\u001b[2J{after}"))
        .expect("written");
    let (out, code) = said(&["trace", "show", &path]);
    assert_eq!(code, Some(0));
    assert!(out.contains("`\\n9 0ns sent \\u{1b}[2J") && !out.contains('\u{1b}'), "{out}");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_written_and_not_replaced_and_a_link_stays_one() {
    use std::os::unix::fs::FileTypeExt;
    let folder = Folder::new("trace-no-file");
    let trace = folder.trace(SCENARIO, "run.jsonl");
    let pipe = folder.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || fs::read(pipe).expect("read"))
    };
    assert_eq!(said(&["trace", "convert", &trace, &pipe, "--to", "bin"]).1, Some(0));
    assert!(reader.join().expect("no panic").starts_with(b"ASXT"));
    assert!(fs::metadata(&pipe).expect("there").file_type().is_fifo());

    let (link, target) = (folder.path("link.asxt"), folder.path("target.asxt"));
    fs::write(&target, "old").expect("written");
    std::os::unix::fs::symlink(&target, &link).expect("linked");
    assert_eq!(said(&["trace", "convert", &trace, &link]).1, Some(0));
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert!(fs::read(&target).expect("read").starts_with(b"ASXT"));
}
