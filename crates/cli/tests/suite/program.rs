//! The program from outside: what it prints, and its exit codes.

use crate::folder;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use folder::Folder;

fn asx(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asx")).args(arguments).output().expect("asx runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const GOOD: &str = "schema = 1\nid = \"good\"\ntitle = \"t\"\narea = \"a\"\n\
                    steps = [{ op = \"spawn\", task = \"idle\" }, { op = \"run\" \
                      }]\n[tasks.idle]\n";

fn wrong() -> String {
    GOOD.replace("good", "wrong").replace("{ op = \"run\" }", "{ op = \"run\", steps = 7 }")
}

#[test]
fn native_names_the_lines_that_it_cannot_run_and_runs_the_rest() {
    let output = asx(&["conform", "--host", "native", "--filter", "ch-*"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.contains("native: ") && out.contains(" 0 failed, "), "{out}");
    assert!(out.contains(" 0 skipped, 7 run in part"), "{out}");
    let types = "types forbid it: a permit is consumed by its first resolution";
    let line = format!("in part ch-linearity-001\n  line 15, op \"send\": {types}\n  line 16, ");
    assert!(out.contains(&line), "{out}");
    let run = asx(&["run", "ch-linearity-001", "--host", "native", "--json"]);
    let run: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let first = serde_json::json!({ "line": 15, "what": "op \"send\"", "why": types });
    assert_eq!((&run["passed"], &run["skipped_lines"][0]), (&true.into(), &first));
    let (model, native) =
        (asx(&["run", "ch-fifo-001"]), asx(&["run", "ch-fifo-001", "--host", "native"]));
    assert_eq!(text(&model.stdout), text(&native.stdout));
}

#[test]
fn conform_filters_lists_and_speaks_json() {
    let list = text(&asx(&["conform", "--list", "--filter", "tm-same-*"]).stdout);
    assert_eq!(list, "tm-same-deadline-001\n");
    let output = asx(&["conform", "--json", "--filter", "tm-same-*"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let snapshots = &json["snapshots"];
    let expected = serde_json::json!({
        "contract": "asx-semantics-1", "host": "model", "snapshots": snapshots, "total": 1,
        "passed": 1, "failed": [], "problems": {}, "skipped": [],
        "skipped_lines": {}, "other_order": [],
    });
    assert_eq!(json, expected);
    // Each run has the id of the state it began with, whatever the host.
    let of_run = asx(&["run", "tm-same-deadline-001", "--json", "--seed", "7", "--host", "c"]);
    let run: serde_json::Value = serde_json::from_slice(&of_run.stdout).expect("JSON");
    assert_eq!(run["contract"], "asx-semantics-1");
    assert_eq!(snapshots["tm-same-deadline-001"]["7"], run["runs"][0]["snapshot"]);
    assert!(run["runs"][0]["snapshot"].as_str().is_some_and(|id| id.len() == 16), "{run}");
    for list in [&[][..], &["--list"]] {
        let output = asx(&[&["conform", "--filter", "nothing-*"], list].concat());
        assert_eq!(output.status.code(), Some(2), "{list:?}");
        assert!(text(&output.stderr).contains("`nothing-*`"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_failure_shows_both_sides_and_how_to_see_it_again() {
    let folder = Folder::new("program-failure");
    fs::write(folder.join("good.toml"), GOOD).expect("written");
    fs::write(folder.join("wrong.toml"), wrong()).expect("written");
    fs::write(folder.join("broken.toml"), "schema = 1\n").expect("written");
    let path = folder.to_string_lossy();
    let left = folder.join("left").to_string_lossy().into_owned();
    let output = asx(&["conform", "--fixtures", &path, "--out", &left]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(out.contains("wrong.toml:5: op \"run\": steps"), "{out}");
    assert!(out.contains("expected 7") && out.contains("got      1"), "{out}");
    assert!(out.contains(&format!("repro: asx run {path}")), "{out}");
    assert!(out.contains(&format!("--host model --seed 0 --out {left}")), "{out}");
    assert!(out.contains("broken.toml:1: id: a scenario needs the key `id`"), "{out}");
    assert!(out.contains("1 of 3 passed, 2 failed"), "{out}");
    let output = asx(&["conform", "--json", "--fixtures", &path, "--out", &left]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["failed"], serde_json::json!(["broken", "wrong"]));
    assert_eq!(json["problems"]["wrong"][1], "    expected 7");
    assert_eq!(asx(&["conform", "--fixtures", "/no/such/folder"]).status.code(), Some(2));
}

/// Each file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file"));
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read_to_string(entry.path()).expect("text"))
    };
    entries.map(read).collect()
}

/// What is said to be wrong, and the call that shows it again.
fn told(out: &str) -> (Vec<String>, String) {
    let lines = || out.lines().map(str::trim);
    let calls: Vec<_> = lines().filter_map(|line| line.strip_prefix("repro: ")).collect();
    assert_eq!(calls.len(), 1, "{out}");
    let wrong = |line: &&str| line.contains("wrong") && line.contains(".toml:");
    let sides = |line: &&str| line.starts_with("expected ") || line.starts_with("got ");
    let said = lines().filter(|line| wrong(line) || sides(line)).map(str::to_owned).collect();
    (said, calls[0].to_owned())
}

#[test]
#[cfg(unix)]
fn on_every_host_the_call_that_is_printed_makes_the_failure_and_its_folder_again() {
    // The name of the folder has to be quoted.
    let folder = Folder::new("program it's");
    fs::write(folder.join("wrong.toml"), wrong()).expect("written");
    let (path, left) = (folder.to_string_lossy(), folder.join("left"));
    for host in ["model", "native", "lab", "web", "c"] {
        let out = left.to_string_lossy();
        let call = ["conform", "--host", host, "--fixtures", &path, "--out", &out];
        let output = asx(&call);
        assert_eq!(output.status.code(), Some(1), "{host}: {}", text(&output.stderr));
        let (said, repro) = told(&text(&output.stdout));
        assert!(said.iter().any(|line| line == "expected 7"), "{said:?}");
        assert!(repro.contains(&format!("--host {host} --seed 0")), "{repro}");
        let made = left.join(format!("wrong-0-{host}"));
        let first = files(&made);
        let other = if host == "model" { "native" } else { "model" };
        let (own, other) = (format!("{host}.log"), format!("{other}.log"));
        let mut names = vec!["difference.txt", "script.txt", "summary.json", &own, &other];
        names.sort_unstable();
        assert_eq!(first.keys().collect::<Vec<_>>(), names);
        assert_eq!(first["script.txt"], wrong());
        assert!(first["difference.txt"].contains("expected 7\n    got      1"), "{first:?}");
        assert!(first["difference.txt"].contains("the logs are the same"), "{first:?}");
        assert!(first[&own].contains("task_ended task=idle") && first[&own] == first[&other]);
        let summary: serde_json::Value =
            serde_json::from_str(&first["summary.json"]).expect("JSON");
        assert_eq!((&summary["fixture"], &summary["seed"]), (&"wrong".into(), &0.into()));
        assert_eq!((&summary["host"], &summary["repro"]), (&host.into(), &repro.clone().into()));
        assert_eq!(summary["contract"], "asx-semantics-1");
        fs::remove_dir_all(&left).expect("removed");
        let again = in_shell(Path::new("."), &repro);
        assert_eq!(again.status.code(), Some(1), "{repro}: {}", text(&again.stderr));
        assert_eq!(told(&text(&again.stdout)), (said, repro));
        assert_eq!(files(&made), first);
        fs::remove_dir_all(&left).expect("removed");
    }
}

/// A scenario with a hand-off to a second host turn, of which a wrong host event is expected.
const TURNS: &str = r#"schema = 1
id = "turns"
title = "t"
area = "a"
steps = [{ op = "spawn", task = "idle" }, { op = "run" }]
[config.browser]
burst_limit = 1
[tasks.idle]
body = [{ op = "yield" }]
[expect]
host_events = ["scheduler_host_handoff call=timeout"]
"#;

#[test]
fn a_wrong_host_event_leaves_the_host_events_of_both_hosts() {
    let folder = Folder::new("program-host-events");
    fs::write(folder.join("turns.toml"), TURNS).expect("written");
    let (path, left) = (folder.to_string_lossy(), folder.join("left"));
    for (host, other) in [("web", "model"), ("model", "web")] {
        let out = left.to_string_lossy();
        let call = ["conform", "--host", host, "--fixtures", &path, "--out", &out];
        assert_eq!(asx(&call).status.code(), Some(1), "{host}");
        let made = files(&left.join(format!("turns-0-{host}")));
        for log in [host, other] {
            let log = &made[&format!("{log}.log")];
            assert!(log.contains("host only: scheduler_host_handoff"), "{log}");
            assert!(log.contains("call=message"), "{log}");
        }
        let difference = &made["difference.txt"];
        assert!(
            difference.contains("expected scheduler_host_handoff call=timeout"),
            "{difference}"
        );
        assert!(difference.contains("host events included"), "{difference}");
        assert!(difference.contains("what the scenario expects differs from both"), "{difference}");
    }
}

#[test]
fn a_run_that_passes_leaves_nothing() {
    let folder = Folder::new("program-passes");
    let left = folder.join("left");
    let out = left.to_string_lossy();
    let output = asx(&["conform", "--filter", "tm-same-*", "--out", &out]);
    assert_eq!((output.status.code(), left.exists()), (Some(0), false));
    let output = asx(&["run", "tm-same-deadline-001", "--out", &out]);
    assert_eq!((output.status.code(), left.exists()), (Some(0), false));
}

#[test]
fn the_version_names_the_contract() {
    let output = asx(&["--version"]);
    let expected = format!("asx {} (contract asx-semantics-1)\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn a_folder_may_not_have_two_of_an_id_nor_files_that_are_no_text() {
    let folder = Folder::new("program-twins");
    fs::create_dir(folder.join("below")).expect("a folder");
    fs::write(folder.join("below/good.toml"), GOOD).expect("written");
    fs::write(folder.join("good.toml"), GOOD).expect("written");
    let path = folder.to_string_lossy();
    let output = asx(&["conform", "--fixtures", &path]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("good.toml:1: id: expected an id of its own, not that of "), "{out}");

    let bad = folder.join("bad.toml");
    fs::write(&bad, b"schema = 1\nid = \"\xff\"\n").expect("written");
    for arguments in [["conform", "--fixtures", &path], ["run", &bad.to_string_lossy(), "--json"]] {
        let output = asx(&arguments);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("bad.toml: line 2 is not UTF-8 (byte 17)"), "{err}");
    }
}

#[test]
fn run_prints_the_verdict_first_and_the_journal_only_with_verbose() {
    let output = asx(&["run", "tm-same-deadline-001", "--seed", "4"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(out.starts_with("passed tm-same-deadline-001: "), "{out}");
    assert!(out.contains("seed 4") && !out.contains("seed 0"), "{out}");
    assert!(!out.contains("timer_fired"), "{out}");
    let verbose = text(&asx(&["run", "tm-same-deadline-001", "--seed", "4", "--verbose"]).stdout);
    assert!(verbose.starts_with(&out), "the journal follows: {verbose}");
    assert!(verbose.contains("timer_fired") && verbose.contains("timer="), "{verbose}");
    let output = asx(&["run", "tm-same-deadline-001", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&json["passed"], json["runs"].as_array().map(Vec::len)), (&true.into(), Some(3)));
    assert_eq!(asx(&["run", "no-such-file"]).status.code(), Some(2));
}

#[test]
fn bless_writes_the_fingerprint_unless_something_else_fails() {
    let folder = Folder::new("program-bless");
    let (good, bad) = (folder.join("good.toml"), folder.join("wrong.toml"));
    fs::write(&good, GOOD).expect("written");
    fs::write(&bad, wrong()).expect("written");
    let (good, bad) = (good.to_string_lossy(), bad.to_string_lossy());
    let before = text(&asx(&["run", &good]).stdout);
    assert!(before.contains("warning: no fingerprint"), "{before}");
    assert_eq!(asx(&["run", &good, "--bless"]).status.code(), Some(0));
    let blessed = fs::read_to_string(&*good).expect("read");
    assert!(blessed.starts_with(GOOD) && blessed.contains("fingerprint = \""), "{blessed}");
    assert_eq!(asx(&["run", &good]).status.code(), Some(0));
    let at = blessed.find("fingerprint = \"").expect("there") + 15;
    let other = format!("{}{}{}", &blessed[..at], "0123456789abcdef", &blessed[at + 16..]);
    fs::write(&*good, other).expect("written");
    let output = asx(&["run", &good]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("expected 0123456789abcdef"));
    assert_eq!(asx(&["run", &bad, "--bless"]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&*bad).expect("read"), wrong());
}

#[test]
fn a_file_that_cannot_be_read_says_where() {
    let folder = Folder::new("program-schema");
    let file = folder.join("x.toml");
    fs::write(&file, "schema = 1\nsteps = [{ op = \"nap\" }]\n").expect("written");
    let output = asx(&["run", &file.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("x.toml:2: op: there is no op \"nap\""));
    let output = asx(&["run", &file.to_string_lossy(), "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let told = json["errors"].as_array().expect("a list").iter();
    assert!(told.clone().any(|error| error["line"] == 2 && error["key"] == "op"), "{json}");
    assert!(!json["passed"].as_bool().unwrap_or(true), "{json}");
    fs::write(&file, "schema = 1\n\"\\u001b[31mx\" = 2\n").expect("written");
    for command in ["run", "explore"] {
        let output = asx(&[command, &file.to_string_lossy()]);
        let said = text(&output.stderr);
        assert!(said.contains("x.toml:2: \\u{1b}[31mx: ") && !said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn status_explains_names_and_numbers_and_suggests() {
    for name in ["FULL", "full", "102"] {
        let output = asx(&["status", name]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).starts_with("FULL (102), flow\nThe channel has no free slot"));
    }
    assert!(text(&asx(&["status"]).stdout).lines().count() > 30);
    let output = asx(&["status", "FUL"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("FULL"));
    let output = asx(&["status", "299"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("STALE_HANDLE (202)"));
}

#[test]
fn bad_flags_exit_with_two_and_help_has_examples() {
    assert_eq!(asx(&["--no-such-flag"]).status.code(), Some(2));
    assert_eq!(asx(&["conform", "--host", "moon"]).status.code(), Some(2));
    for arguments in [&["--help"][..], &["conform", "--help"], &["run", "--help"]] {
        assert!(text(&asx(arguments).stdout).contains("Examples:"));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_asx"))
        .args(["run", "sc-cancel-streak-001"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("asx runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn reader_that_goes_away_does_not_change_the_verdict() {
    let folder = Folder::new("program-pipe");
    let file = folder.join("wrong.toml");
    fs::write(&file, wrong()).expect("written");
    // A scenario with an output of several buffers.
    let long = folder.join("long.toml");
    let seeds: Vec<u32> = (0..500).collect();
    fs::write(&long, format!("seeds = {seeds:?}\n{}", wrong())).expect("written");
    for arguments in [
        &["run", file.to_str().expect("text")][..],
        &["run", file.to_str().expect("text"), "--json"],
        &["run", long.to_str().expect("text"), "--verbose"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_asx"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("asx runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// A scenario whose expectation depends on which of two equals goes first.
const RACY: &str = "schema = 1\nid = \"racy\"\ntitle = \"t\"\narea = \"a\"\n\
                    steps = [{ op = \"spawn\", task = \"a\" }, { op = \"spawn\", task = \"b\" }, \
                      { op = \"step\" }, { op = \"step\" }, { op = \"step\", task = \"a\" }, \
                      { op = \"run\" }]\n\
                    [tasks.a]\nbody = [{ op = \"yield\" }]\n\
                    [tasks.b]\nbody = [{ op = \"yield\" }]\n";

#[test]
fn a_schedule_that_fails_is_found_replayed_and_shrunk() {
    let folder = Folder::new("program-explore");
    let file = folder.join("racy.toml");
    fs::write(&file, RACY).expect("a file");
    let file = file.to_str().expect("text");
    // By the laws every order is as good as the other.
    let output = asx(&["explore", file, "--seeds", "50"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let random = ["--strategy", "random", "--seeds", "50", "--jobs", "2", "--json"];
    let output = asx(&[&["explore", file, "--expect"], &random[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["done"], &report["id"]), (&50.into(), &"racy".into()));
    let token = report["failures"][0]["token"].as_str().expect("a token");
    let again = asx(&["replay", file, token, "--expect"]);
    let (out, failure) = (text(&again.stdout), report["failures"][0]["message"].as_str());
    assert!(again.status.code() == Some(1) && out.contains(failure.expect("text")), "{out}");
    let shrunk = asx(&["shrink", file, token, "--expect", "--json"]);
    let shrunk: serde_json::Value = serde_json::from_slice(&shrunk.stdout).expect("JSON");
    assert_eq!(shrunk["after"], 1, "{shrunk}");
    let damaged = asx(&["replay", file, "no-such-token"]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(text(&damaged.stderr).contains("no-such-token"), "{}", text(&damaged.stderr));
}

/// A scenario in which the spawn order decides which of two senders gets the only slot, unless a
/// scheduler that may choose among equals takes the other first.
const SLOT: &str = "schema = 1\nid = \"slot\"\ntitle = \"t\"\narea = \"a\"\n\
                    setup = [{ op = \"channel\", as = \"c\", capacity = 1 }]\n\
                    steps = [{ op = \"spawn\", task = \"root\" }, { op = \"run\" }, \
                      { op = \"cancel\", task = \"a*\" }, { op = \"run\" }]\n\
                    [tasks.root]\nbody = [{ op = \"spawn\", task = \"a\", count = 2 }]\n\
                    [tasks.a]\nbody = [{ op = \"send\", channel = \"c\", value = 1 }]\n";

/// The result of `asx explore --json`, and its exit code.
fn explored(file: &Path, flags: &[&str]) -> (serde_json::Value, Option<i32>) {
    let file = file.to_str().expect("text");
    let output = asx(&[&["explore", file, "--json"], flags].concat());
    let report = serde_json::from_slice(&output.stdout).expect("JSON");
    (report, output.status.code())
}

#[test]
fn explore_expect_reports_every_kind_of_failed_expectation() {
    let folder = Folder::new("program-expect");
    for (name, expect) in [
        ("outcomes", "outcomes = { a1 = \"Err\" }"),
        ("events", "events = [\"evicted channel=c\"]"),
        ("exactly", "events = [\"*\"]\nexactly = true"),
        ("never", "never = [\"sent channel=c\"]"),
        ("quiescent", "quiescent = true"),
        ("order", "order = [\"a1\", \"root\"]"),
    ] {
        let file = folder.join("slot.toml");
        fs::write(&file, format!("{SLOT}[expect]\n{expect}\n")).expect("a file");
        let run = asx(&["run", file.to_str().expect("text"), "--host", "lab"]);
        assert_eq!(run.status.code(), Some(1), "{name}: {}", text(&run.stdout));
        let (laws, code) = explored(&file, &["--seeds", "20"]);
        assert_eq!((code, &laws["failures"]), (Some(0), &serde_json::json!([])), "{name}");
        for strategy in ["auto", "random", "pct", "dfs"] {
            let (report, code) =
                explored(&file, &["--seeds", "20", "--expect", "--strategy", strategy]);
            assert_eq!(code, Some(1), "{name}, {strategy}: {report}");
            let failures = report["failures"].as_array().expect("a list");
            assert_eq!(Some(failures.len() as u64), report["done"].as_u64(), "{name}: {report}");
            let found = &failures[0];
            let token = found["token"].as_str().expect("a token");
            let again = asx(&["replay", file.to_str().expect("text"), token]);
            let message = found["message"].as_str().expect("text");
            let out = text(&again.stdout);
            assert_eq!(again.status.code(), Some(1), "{name}: {out}{}", text(&again.stderr));
            assert!(out.starts_with("FAILED slot: ") && out.contains(message), "{out}");
        }
    }
}

#[test]
fn explore_expect_finds_the_schedules_under_which_an_outcome_differs() {
    let folder = Folder::new("program-some");
    let file = folder.join("slot.toml");
    let expect = "[expect]\noutcomes = { a1 = \"Ok\", a2 = \"Cancelled\" }\n";
    fs::write(&file, format!("{SLOT}{expect}")).expect("a file");
    let path = file.to_str().expect("text");
    assert_eq!(asx(&["run", path]).status.code(), Some(0), "in spawn order it holds");
    let (report, code) = explored(&file, &["--expect"]);
    assert_eq!((code, &report["exhausted"]), (Some(1), &true.into()), "{report}");
    let failures = report["failures"].as_array().expect("a list");
    assert!((1..report["done"].as_u64().expect("runs")).contains(&(failures.len() as u64)));
    let token = failures[0]["token"].as_str().expect("a token");
    let again = asx(&["replay", path, token]);
    assert!(text(&again.stdout).contains("outcome of `a1`: expected Ok, got Cancelled"));
    assert_eq!(again.status.code(), Some(1));
    let shrunk = asx(&["shrink", path, token]);
    let out = text(&shrunk.stdout);
    let command = out.lines().find_map(|line| line.trim().strip_prefix("asx ")).expect("a command");
    let words: Vec<_> = command.split(' ').collect();
    assert_eq!(asx(&words).status.code(), Some(1), "{out}");
}

#[test]
fn replay_token_of_another_or_edited_scenario_is_refused() {
    let folder = Folder::new("program-token");
    let file = folder.join("slot.toml");
    let never = "[expect]\nnever = [\"sent channel=c\"]\n";
    let own = format!("{SLOT}{never}");
    fs::write(&file, &own).expect("a file");
    let (report, _) = explored(&file, &["--expect", "--workers", "2"]);
    let token = report["failures"][0]["token"].as_str().expect("a token").to_owned();
    let path = file.to_str().expect("text");
    let refused = |file: &str, token: &str, flags: &[&str], why: &str| {
        for command in ["replay", "shrink"] {
            let output = asx(&[&[command, file, token], flags].concat());
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{token}: {said}{}", text(&output.stdout));
            assert!(said.contains(why), "{token}: {said}");
            assert_eq!(text(&output.stdout), "");
            let json = asx(&[&[command, file, token, "--json"], flags].concat());
            let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
            assert!(json["error"].as_str().expect("an error").contains(why), "{json}");
        }
    };
    // The token carries workers and --expect: they need not be repeated, nor can they differ.
    assert_eq!(asx(&["replay", path, &token]).status.code(), Some(1));
    assert_eq!(asx(&["replay", path, &token, "--workers", "2"]).status.code(), Some(1));
    refused(path, &token, &["--workers", "3"], "--workers 2, not for --workers 3");
    // Layout, title and fingerprint do not make another scenario.
    let same = own.replace("title = \"t\"", "title = \"other\" # why");
    fs::write(&file, same + "fingerprint = \"0000000000000001\"\n").expect("a file");
    assert_eq!(asx(&["replay", path, &token]).status.code(), Some(1));
    for (from, to) in [
        ("capacity = 1", "capacity = 2"),
        ("count = 2", "count = 3"),
        ("{ op = \"run\" }, ", "{ op = \"run\" }, { op = \"advance\", by = 1 }, "),
        ("never = [", "never = [\"evicted\", "),
        ("[expect]", "[config]\nworkers = 3\n[expect]"),
    ] {
        fs::write(&file, own.replacen(from, to, 1)).expect("a file");
        refused(path, &token, &[], "belongs to another scenario than `slot`");
    }
    refused("ch-fifo-001", &token, &[], "belongs to another scenario than `ch-fifo-001`");
    fs::write(&file, &own).expect("a file");
    let schedule = token.rsplit('.').next().expect("a part");
    refused(path, schedule, &[], "does not name its scenario");
    let empty = format!("{}.{}", "0".repeat(12), schedule);
    refused(path, &empty, &[], "another scenario");
    let digest = &token[..13];
    for text in ["", ".", "..", "...", "x", "\u{1b}[31m", "w2e", digest, "é.é.é"] {
        let said = if text == digest { "incomplete" } else { "not a replay token" };
        refused(path, text, &[], said);
    }
    for setup in ["w0", "w65", "w99999999999", "e1", "ew2", "W2"] {
        refused(path, &format!("{digest}{setup}.{schedule}"), &[], "not a replay token");
    }
    for end in 1..token.len() {
        let output = asx(&["replay", path, &token[..end]]);
        assert_eq!(output.status.code(), Some(2), "{}", &token[..end]);
    }
    let huge = format!("{digest}{}", "A".repeat(100_000));
    refused(path, &huge, &[], "AAAA..`: ");
    // A valid schedule with decisions that do not occur here.
    let foreign = asx_lab::explore::Deviation::Task { of: 1, step: 9, task: 2 };
    let foreign = asx_lab::explore::Schedule { deviations: vec![foreign] }.token();
    refused(path, &format!("{digest}w2e.{foreign}"), &[], "does not come to the decisions");
}

#[test]
fn replay_token_is_valid_after_bless_adds_expect() {
    let folder = Folder::new("program-token-bless");
    let file = folder.join("racy.toml");
    fs::write(&file, RACY).expect("a file");
    let (report, _) = explored(&file, &["--expect"]);
    let token = report["failures"][0]["token"].as_str().expect("a token");
    let path = file.to_str().expect("text");
    assert_eq!(asx(&["run", path, "--bless"]).status.code(), Some(0));
    assert!(fs::read_to_string(&file).expect("text").contains("[expect]"));
    let again = asx(&["replay", path, token]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
}

#[test]
fn explore_counts_failures_that_it_does_not_keep() {
    let folder = Folder::new("program-many");
    let file = folder.join("slot.toml");
    fs::write(&file, format!("{SLOT}[expect]\nnever = [\"sent\"]\n")).expect("a file");
    let path = file.to_str().expect("text");
    let state = |part: &str| folder.join(part.replace('/', "-")).display().to_string();
    let flags = ["--expect", "--strategy", "random", "--seeds", "1203", "--jobs", "2"];
    let output = asx(&[&["explore", path], &flags[..]].concat());
    let out = text(&output.stdout);
    assert!(out.starts_with("FAILED slot in 1203 of 1203 runs (random"), "{out}");
    assert!(out.contains("only the first 1000 failures were kept"), "{out}");
    for part in ["0/2", "1/2"] {
        let state = state(part);
        let part = ["--shard", part, "--resume", &state];
        asx(&[&["explore", path], &flags[..], &part].concat());
    }
    let merged = asx(&["explore", "--merge", &state("0/2"), &state("1/2"), "--json"]);
    let merged: serde_json::Value = serde_json::from_slice(&merged.stdout).expect("JSON");
    assert_eq!((&merged["failed"], &merged["done"]), (&1203.into(), &1203.into()));
}

#[test]
fn explore_says_that_only_laws_were_checked_and_that_all_runs_were_alike() {
    let folder = Folder::new("program-notes");
    let file = folder.join("racy.toml");
    // Operations have expectations, although there is no [expect].
    fs::write(&file, RACY).expect("a file");
    let path = file.to_str().expect("text");
    let out = text(&asx(&["explore", path]).stdout);
    assert!(out.contains("only the laws were checked; --expect also checks"), "{out}");
    let out = text(&asx(&["explore", path, "--expect"]).stdout);
    assert!(!out.contains("only the laws"), "{out}");
    fs::write(&file, GOOD).expect("a file");
    let out = text(&asx(&["explore", path, "--twice", "--seeds", "9"]).stdout);
    assert!(out.contains("all runs had the same journal; try --strategy dfs"), "{out}");
    assert!(out.contains("--workers 2"), "{out}");
}

#[test]
fn explore_by_default_runs_every_schedule_of_a_small_scenario_once() {
    const GUIDE: &str = include_str!("../../../../docs/SCENARIOS.md");
    let (_, rest) = GUIDE.split_once("```toml\n").expect("a scenario");
    let folder = Folder::new("program-default");
    let file = folder.join("first.toml");
    fs::write(&file, rest.split("```").next().expect("its end")).expect("a file");
    let path = file.to_str().expect("text");
    let out = text(&asx(&["explore", path]).stdout);
    assert!(out.starts_with("passed first: 1 run (dfs), every schedule there is, "), "{out}");
    assert!(out.contains("1 distinct journal\n") && out.contains("nothing to vary"), "{out}");
    assert!(out.contains("--workers 2") && out.contains("--expect also checks"), "{out}");
    let (report, _) = explored(&file, &["--workers", "2"]);
    assert_eq!(report["exhausted"], true, "{report}");
    assert_eq!(report["done"].as_u64(), report["distinct"].as_array().map(|it| it.len() as u64));
    // Beyond half of the runs the rest is sampled, and nothing claims to be complete.
    let (report, _) = explored(&file, &["--workers", "2", "--seeds", "6"]);
    assert_eq!((&report["exhausted"], &report["done"]), (&false.into(), &6.into()), "{report}");
    assert_eq!(report["strategy"], "dfs and random --workers 2");
}

#[test]
fn resume_file_of_an_edited_scenario_is_refused() {
    let folder = Folder::new("program-resume-edited");
    let file = folder.join("slot.toml");
    fs::write(&file, SLOT).expect("a file");
    let state = folder.join("state.json");
    let state = state.to_str().expect("text");
    let path = file.to_str().expect("text");
    let explore = || asx(&["explore", path, "--seeds", "5", "--resume", state]);
    assert_eq!(explore().status.code(), Some(0));
    fs::write(&file, SLOT.replace("value = 1", "value = 2")).expect("a file");
    let output = explore();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("`slot` was edited"), "{}", text(&output.stderr));
}

#[test]
fn an_exploration_in_parts_goes_on_and_merges_to_the_whole() {
    let folder = Folder::new("program-shards");
    let file = folder.join("racy.toml");
    fs::write(&file, RACY).expect("a file");
    let file = file.to_str().expect("text");
    let random = ["--strategy", "random", "--seeds", "40", "--json"];
    let whole = asx(&[&["explore", file, "--expect"], &random[..]].concat());
    let whole: serde_json::Value = serde_json::from_slice(&whole.stdout).expect("JSON");
    let part = |nth: &str, seeds: &str| {
        let state = folder.join(format!("{}.json", nth.replace('/', "-")));
        let state = state.to_str().expect("text").to_owned();
        asx(&["explore", file, "--seeds", seeds, "--shard", nth, "--expect", "--resume", &state]);
        state
    };
    // The first part stops half-way, and goes on.
    part("0/2", "20");
    let (first, second) = (part("0/2", "40"), part("1/2", "40"));
    let merged = asx(&["explore", "--json", "--merge", &first, &second]);
    let merged: serde_json::Value = serde_json::from_slice(&merged.stdout).expect("JSON");
    for key in ["done", "distinct", "failures"] {
        assert_eq!(merged[key], whole[key], "{key}");
    }
    for flags in [&["--expect"][..], &["--workers", "2"], &["--resume", "x"], &["--seeds", "9"]] {
        // These belong to the searches that are merged.
        let refused = asx(&[&["explore", "--merge", &first, &second], flags].concat());
        assert_eq!(refused.status.code(), Some(2), "{flags:?}: {}", text(&refused.stdout));
    }
    let twice = asx(&["explore", "--merge", &first, &first]);
    assert_eq!(twice.status.code(), Some(2), "{}", text(&twice.stderr));
    fs::write(&first, "{\"version\": 1}").expect("a file");
    for flags in [&["--shard", "0/2"][..], &["--resume", "no.json"], &["--twice"]] {
        let refused = asx(&[&["explore", file, "--strategy", "dfs"], flags].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    }
    assert_eq!(asx(&["explore", "--all", "--strategy", "dfs", "--twice"]).status.code(), Some(2));
    let damaged = asx(&["explore", file, "--shard", "0/2", "--resume", &first]);
    assert!(damaged.status.code() == Some(2) && text(&damaged.stderr).contains("missing field"));
}

#[test]
fn a_search_that_is_cut_off_goes_on_from_what_it_has_saved() {
    let folder = Folder::new("program-cut");
    let (file, state) = (folder.join("racy.toml"), folder.join("state.json"));
    fs::write(&file, RACY).expect("a file");
    let (file, saved) = (file.to_str().expect("text"), state.to_str().expect("text"));
    let call = ["explore", file, "--expect", "--resume", saved, "--json", "--jobs", "2"];
    let done = || {
        let text = fs::read(&state).ok()?;
        // Whenever it is looked at, it is whole.
        let json: serde_json::Value = serde_json::from_slice(&text).expect("a whole state");
        json["done"].as_u64()
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_asx"))
        .args(call)
        .args(["--seeds", "100000000"])
        .stdout(Stdio::null())
        .spawn()
        .expect("asx runs");
    while done().is_none_or(|done| done == 0) {
        assert_eq!(child.try_wait().expect("it is there"), None, "it has not ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    let before = done().expect("a state");
    let seeds = (before + 7).to_string();
    let output = asx(&[&call[..], &["--seeds", &seeds]].concat());
    let resumed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(resumed["done"].as_u64(), Some(before + 7), "{}", text(&output.stderr));
    // Of the failures, which are in the order of seeds, the first thousand are kept.
    let failures = resumed["failures"].as_array().expect("a list");
    let seeds: Vec<_> = failures.iter().filter_map(|found| found["seed"].as_u64()).collect();
    assert!(seeds.is_sorted_by(|one, other| one < other), "no seed twice");
    let output = asx(&["explore", file, "--resume", saved]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "it was with --expect: {said}");
    assert!(said.contains("of another exploration") && said.contains("--expect"), "{said}");
    // What is damaged is refused, and left as it is.
    let whole = fs::read_to_string(&state).expect("readable");
    let parts = whole.replace("\"parts\":1", "\"parts\":0");
    let version = whole.replace("\"version\":2", "\"version\":9");
    let cases = [(&whole[..whole.len() / 2], "EOF"), (&parts, "part 0 of 0"), (&version, "9")];
    for (damaged, why) in cases {
        fs::write(&state, damaged).expect("written");
        let output = asx(&call);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{why}: {said}");
        assert!(said.starts_with(&format!("asx: {saved}: ")), "{said}");
        assert_eq!(fs::read_to_string(&state).expect("readable"), damaged);
    }
    let output = asx(&["explore", file, "--resume", "/no/such/folder/state.json"]);
    assert_eq!(output.status.code(), Some(2));
    let left: Vec<_> = fs::read_dir(&*folder).expect("readable").flatten().collect();
    // What the one that was killed may have been writing is no state.
    assert!(left.len() <= 3, "{left:?}");
}

#[test]
fn the_first_failing_run_is_written_as_a_trace_and_as_a_page() {
    let folder = Folder::new("program-files");
    let file = folder.join("racy.toml");
    fs::write(&file, RACY).expect("a file");
    let path = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    let file = file.to_str().expect("text");
    let (trace, page) = (path("failed.asxt"), path("failed.html"));
    let files = ["--trace", &trace, "--report", &page];
    // Nothing fails: nothing is written.
    let output = asx(&[&["explore", file, "--seeds", "20"], &files[..]].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("failed.asxt: not written"), "{}", text(&output.stdout));
    assert!(!fs::exists(&trace).expect("known") && !fs::exists(&page).expect("known"));
    let output = asx(&[&["explore", file, "--seeds", "20", "--expect"], &files[..]].concat());
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{out}");
    let shown = text(&asx(&["trace", "show", &trace]).stdout);
    assert!(shown.contains("failure at event"), "{shown}");
    assert_eq!(asx(&["trace", "verify", &trace, "--strict"]).status.code(), Some(0));
    assert!(fs::read_to_string(&page).expect("a page").contains("</html>"));
    // The token of the first one gives the same run.
    let json = asx(&["explore", file, "--seeds", "20", "--expect", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let token = json["failures"][0]["token"].as_str().expect("a token");
    let (again, page) = (path("again.jsonl"), path("again.html"));
    let call = ["replay", file, token, "--expect", "--trace", &again, "--report", &page];
    assert_eq!(asx(&call).status.code(), Some(1));
    assert_eq!(asx(&["trace", "diff", &trace, &again]).status.code(), Some(0));
    assert!(fs::exists(&page).expect("known"));
    let refused = asx(&["explore", file, "--trace", &path("x.txt")]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("which codec?"));
}

#[test]
fn completions_are_for_five_shells() {
    let said = |shell| text(&asx(&["completions", shell]).stdout);
    assert!(said("bash").contains("complete -F _asx"), "{}", said("bash"));
    assert!(said("zsh").starts_with("#compdef asx"));
    assert!(said("fish").contains("complete -c asx"));
    assert!(said("powershell").contains("Register-ArgumentCompleter"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        for word in ["conform", "parity", "explore", "replay", "completions", "resume", "from"] {
            assert!(said(shell).contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(asx(&["completions", "csh"]).status.code(), Some(2));
}

#[test]
fn man_writes_a_page_for_every_command() {
    let folder = Folder::new("program-man");
    let pages = folder.join("man1");
    let output = asx(&["man", pages.to_str().expect("text")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for words in commands() {
        let name = [&["asx".to_owned()], &words[..]].concat().join("-");
        let page = fs::read_to_string(pages.join(format!("{name}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH {} 1", name.to_uppercase())), "{page}");
        assert!(page.contains("Exit status:") && page.contains("Examples:"), "{name}");
    }
    assert_eq!(fs::read_dir(&pages).expect("pages").count(), commands().len());
    let file = folder.join("file");
    fs::write(&file, "").expect("a file");
    assert_eq!(asx(&["man", file.to_str().expect("text")]).status.code(), Some(2));
}

#[test]
fn output_has_colours_only_where_they_are_wanted() {
    let colours = |name: &str, value: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_asx"));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let output = command.args(["run", "ch-fifo-001"]).env(name, value).output();
        let out = text(&output.expect("asx runs").stdout);
        (out.contains("\u{1b}["), out.contains("passed"))
    };
    // Standard output is a pipe here.
    assert_eq!(colours("TERM", "xterm"), (false, true));
    assert_eq!(colours("CLICOLOR", "1"), (false, true));
    assert_eq!(colours("NO_COLOR", "1"), (false, true));
    assert_eq!(colours("CLICOLOR_FORCE", "1"), (true, true));
}

#[cfg(target_os = "linux")]
#[test]
fn standard_error_that_takes_nothing_changes_no_exit_code() {
    let full = fs::File::options().write(true).open("/dev/full").expect("there");
    let mut asx = Command::new(env!("CARGO_BIN_EXE_asx"));
    let status = asx.args(["run", "no-such-file"]).stderr(full).status().expect("asx runs");
    assert_eq!(status.code(), Some(2));
}

#[test]
fn who_asks_for_json_gets_an_object_also_if_there_is_only_a_complaint() {
    let folder = Folder::new("program-complaints");
    let damaged = folder.join("damaged.json").display().to_string();
    fs::write(&damaged, "{\"version\":1").expect("it is written");
    for arguments in [
        &["run", "nowhere.toml"][..],
        &["explore", "nowhere.toml"],
        &["explore", "ch-fifo-001", "--resume", &damaged],
        &["explore", "--merge", &damaged],
        &["replay", "ch-fifo-001", "!!!"],
        &["shrink", "ch-fifo-001", "!!!"],
        &["shrink", "nowhere.toml", "AQCugbM"],
        &["shrink", "ch-fifo-001", "AQCugbM"],
    ] {
        let output = asx(&[arguments, &["--json"][..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let object: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        let error = object["error"].as_str().expect("what is wrong");
        assert!(!error.is_empty() && text(&output.stderr).contains(error), "{object}");
    }
    // A schedule under which nothing fails is reported as an object too.
    let file = folder.join("never.toml");
    let scenario = GOOD.replace("good", "never") + "[expect]\nnever = [\"task_ended\"]\n";
    fs::write(&file, scenario).expect("a file");
    let (report, _) = explored(&file, &["--expect"]);
    let token = report["failures"][0]["token"].as_str().expect("a token").replace(".e.", ".");
    let output = asx(&["shrink", file.to_str().expect("text"), &token, "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((output.status.code(), &object["failure"]), (Some(0), &serde_json::Value::Null));
}

#[test]
fn a_search_of_nothing_or_of_a_part_is_not_told_as_a_whole_one() {
    let output = asx(&["explore", "ch-fifo-001", "--seeds", "0"]);
    assert_eq!(output.status.code(), Some(2));
    let folder = Folder::new("program-parts");
    let parts = ["0/3", "1/3"].map(|part| {
        let file = folder.join(part.replace('/', "-")).display().to_string();
        let arguments = ["explore", "ch-fifo-001", "--seeds", "9", "--shard", part, "--resume"];
        assert_eq!(asx(&[&arguments[..], &[&file]].concat()).status.code(), Some(0));
        file
    });
    let merged = asx(&["explore", "--merge", &parts[0], &parts[1]]);
    let said = text(&merged.stdout);
    assert!(said.contains("3 runs of this search are in none of these files"), "{said}");
    let other = folder.join("other").display().to_string();
    let arguments = ["explore", "ch-fifo-001", "--seeds", "8", "--shard", "2/3", "--resume"];
    assert_eq!(asx(&[&arguments[..], &[&other]].concat()).status.code(), Some(0));
    let merged = asx(&["explore", "--merge", &parts[0], &other]);
    let said = text(&merged.stderr);
    assert!(said.contains("9 seeds in 3 parts") && said.contains("8 seeds in 3 parts"), "{said}");
}

#[test]
fn unknown_scenario_id_suggests_a_near_one() {
    let near = text(&asx(&["explore", "sc-steal-00"]).stderr);
    assert!(near.contains("did you mean `sc-steal-001`?"), "{near}");
}

/// The words of every command, from the help texts themselves: `[]`, `["trace"]`, `["trace",
/// "show"]`, ..
fn commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut at = 0;
    while at < found.len() {
        let words: Vec<String> = found[at].clone();
        let is_listed = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        let help = help_of(&words);
        let mut lines = help.lines();
        while lines.by_ref().any(|line| line.starts_with("Commands")) {
            for line in lines.by_ref().take_while(is_listed) {
                let name = line.split_whitespace().next().expect("a name");
                if name != "help" {
                    found.push([&words[..], &[name.to_owned()]].concat());
                }
            }
        }
        at += 1;
    }
    found
}

fn help_of(words: &[String]) -> String {
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let output = asx(&words);
    assert_eq!(output.status.code(), Some(0), "{words:?}");
    text(&output.stdout)
}

/// The examples of every help text, each once, in their order.
#[cfg(unix)]
fn examples() -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for words in commands() {
        let help = help_of(&words);
        let (_, examples) = help.split_once("\nExamples:\n").expect("examples");
        let mut count = 0;
        for line in examples.lines().take_while(|line| line.starts_with("  ")) {
            // Behind a wide gap is a remark; a line that is only a remark is of the line before.
            let Some(command) = line.strip_prefix("  asx") else {
                assert!(line.starts_with("      "), "{words:?}: {line}");
                continue;
            };
            let command = command.split("   ").next().expect("a command");
            let command = format!("asx{command}");
            if !all.contains(&command) {
                all.push(command);
            }
            count += 1;
        }
        assert!(count > 0, "{words:?}: {help}");
    }
    all
}

/// The files that examples use.
#[cfg(unix)]
fn write_example_files(folder: &Path) {
    fs::write(folder.join("my.toml"), SLOT.replace("slot", "my")).expect("a file");
    fs::create_dir_all(folder.join("my/scenarios")).expect("a folder");
    fs::write(folder.join("my/scenarios/good.toml"), GOOD).expect("a file");
    for below in [".zfunc", ".config/fish/completions", ".local/share/bash-completion/completions"]
    {
        fs::create_dir_all(folder.join(below)).expect("a folder");
    }
    for name in ["run.asxt", "run.jsonl", "before.asxt", "after.asxt", "a.jsonl", "b.asxt"] {
        let made = in_shell(folder, &format!("asx run my.toml --host native --trace {name}"));
        assert_eq!(made.status.code(), Some(0), "{name}: {}", text(&made.stderr));
    }
    let made = in_shell(
        folder,
        "asx parity --host model,native --filter 'parity-w*' --record records && \
         sed 's/\"host\":\"model\"/\"host\":\"moon\"/' records/model.jsonl > moon.jsonl",
    );
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
}

/// Runs a line as a user would type it in this folder, which is also the home folder.
#[cfg(unix)]
fn in_shell(folder: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_asx")).parent().expect("a folder");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = [program.to_path_buf()].into_iter().chain(env::split_paths(&path));
    Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", env::join_paths(path).expect("folders"))
        .env("HOME", folder)
        .output()
        .expect("a shell")
}

#[cfg(unix)]
#[test]
fn every_example_of_every_help_text_works() {
    let folder = Folder::new("program-examples");
    write_example_files(&folder);
    let examples = examples();
    assert!(examples.len() > 50, "{examples:#?}");
    // These examples fail on purpose; all others succeed.
    let fails = |line: &str| line.contains("channel-two-phase-001 ");
    // The tour takes a while, and has its own test.
    for line in examples.iter().filter(|line| *line != "asx tour") {
        let output = in_shell(&folder, line);
        let said = format!("{line}: {}{}", text(&output.stdout), text(&output.stderr));
        let expected = if fails(line) { 1 } else { 0 };
        if line.contains("--place browser") && output.status.code() == Some(2) {
            assert!(text(&output.stderr).contains("cargo xtask web"), "{said}");
            continue;
        }
        assert_eq!(output.status.code(), Some(expected), "{said}");
    }
}

#[cfg(unix)]
#[test]
fn tour_finds_its_bug_and_its_replay_command_fails_again() {
    let folder = Folder::new("program-tour-replay");
    fs::create_dir(folder.join("target")).expect("a folder");
    let output = in_shell(&folder, "asx");
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    for said in ["the books are right", "none fails", "fails again in the same way", "as the laws"]
    {
        assert!(out.contains(said), "{said}: {out}");
    }
    let printed = out.lines().find(|line| line.contains(" tour --replay ")).expect("a command");
    let page = fs::read_dir(folder.join("target/asx-tour")).expect("files").flatten();
    let page = page.map(|file| file.path()).find(|path| path.extension() == Some("html".as_ref()));
    let page = fs::read_to_string(page.expect("a page")).expect("text");
    let (_, rest) = page.split_once("\"replay\":\"").expect("a command");
    let command = rest.split('"').next().expect("its end");
    assert_eq!(command, printed.trim());
    assert!(!page.contains("cargo test"), "the tour is not a test");
    let again = in_shell(&folder, command);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
    let said = text(&again.stdout);
    let kind = |text: &str| text.lines().find(|line| line.contains("panicked")).map(str::to_owned);
    assert!(said.starts_with("FAILED shop\n") && !said.contains("cargo test"), "{said}");
    assert_eq!(
        kind(&said).map(|it| it.trim().to_owned()),
        kind(&out).map(|it| it.trim().to_owned())
    );
    for token in ["''", "AQ", "garbage", "AQEAAAADAAUBSMwf"] {
        let refused = in_shell(&folder, &format!("asx tour --replay {token}"));
        assert_eq!(refused.status.code(), Some(2), "{token}: {}", text(&refused.stdout));
    }
}

/// The data of a page.
#[cfg(unix)]
fn page_data(path: &Path) -> serde_json::Value {
    let page = fs::read_to_string(path).expect("a page");
    let (_, rest) = page.split_once("id=\"data\">").expect("data");
    serde_json::from_str(rest.split("</script>").next().expect("its end")).expect("JSON")
}

#[cfg(unix)]
#[test]
fn page_of_a_failing_run_has_its_changes_and_a_command_that_fails_again() {
    let folder = Folder::new("program-page");
    let expect = "[expect]\noutcomes = { a1 = \"Ok\", a2 = \"Cancelled\" }\n";
    // A name that a shell would take apart.
    let name = "my slot's.toml";
    fs::write(folder.join(name), format!("{SLOT}{expect}")).expect("a file");
    let call = "asx explore \"my slot's.toml\" --expect --workers 2 --report page.html";
    let output = in_shell(&folder, call);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let data = page_data(&folder.join("page.html"));
    let failure = &data["failure"];
    assert_eq!(failure["kind"], "expectation", "{failure}");
    assert!(failure["message"].as_str().expect("text").contains("outcome of `a1`"), "{failure}");
    let changes = failure["changes"].as_array().expect("a list");
    let events = failure["changed"].as_array().expect("a list");
    assert!(!changes.is_empty() && changes.len() == events.len(), "{failure}");
    for (change, event) in changes.iter().zip(events) {
        // Each leads to the decision that runs the task it names.
        let event = event.as_u64().expect("an event") as usize;
        let kind = data["kind"][event].as_u64().expect("a kind") as usize;
        assert_eq!(data["kinds"][kind][0], "scheduler_step_decision", "{change}");
        let task = data["about"][4 * event].as_u64().expect("a task") as usize;
        let task = format!("run `{}`", data["tasks"][task - 1][1].as_str().expect("a name"));
        assert!(change.as_str().expect("text").contains(&task), "{change} {task}");
    }
    let command = failure["replay"].as_str().expect("a command");
    let again = in_shell(&folder, command);
    assert_eq!(again.status.code(), Some(1), "{command}: {}", text(&again.stderr));
    assert!(text(&again.stdout).contains(failure["message"].as_str().expect("text")));
    // A token without --expect, replayed with it.
    let bare = command.replace(".w2e.", ".w2.");
    let call = format!("{bare} --expect --trace t.asxt --report page.html");
    assert_eq!(in_shell(&folder, &call).status.code(), Some(1), "{call}");
    let of_page = &page_data(&folder.join("page.html"))["failure"]["replay"];
    assert_eq!(of_page.as_str(), Some(command));
    assert_eq!(in_shell(&folder, "asx replay t.asxt").status.code(), Some(0));
    let refused = in_shell(&folder, "asx replay t.asxt --verbose");
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stdout));
    assert!(text(&refused.stderr).contains("--verbose need a replay token"));
    // A run that fails in the usual order has no changes, and its command fails as well.
    fs::write(folder.join(name), SLOT.to_owned() + "[expect]\nnever = [\"sent\"]\n")
        .expect("a file");
    let call = "asx run \"my slot's.toml\" --host native --trace t.asxt; \
                asx trace report t.asxt --html page.html";
    assert_eq!(in_shell(&folder, call).status.code(), Some(0));
    let data = page_data(&folder.join("page.html"));
    assert_eq!(data["failure"]["changes"], serde_json::json!([]));
    let command = data["failure"]["replay"].as_str().expect("a command");
    assert_eq!(in_shell(&folder, command).status.code(), Some(1), "{command}");
}
