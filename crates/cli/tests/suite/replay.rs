//! `asx replay TRACE`: a recorded run, run again.

use crate::folder;

use std::fs;
use std::process::{Command, Output};

use folder::Folder;
use serde_json::Value;

fn asx(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asx")).args(arguments).output().expect("asx runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A scenario in which two tasks take turns and one sleeps.
const TURNS: &str = "schema = 1\nid = \"turns\"\ntitle = \"t\"\narea = \"a\"\n\
                     steps = [{ op = \"spawn\", task = \"a\" }, { op = \"spawn\", task = \"b\" }, \
                       { op = \"run\" }, { op = \"advance\", by = \"5ms\" }, { op = \"run\" }]\n\
                     [tasks.a]\nbody = [{ op = \"yield\" }, { op = \"sleep\", for = \"5ms\" }]\n\
                     [tasks.b]\nbody = [{ op = \"yield\" }]\n";

/// Records a scenario of the folder, and reads the trace.
fn record(folder: &Folder, scenario: &str, host: &str, name: &str) -> (String, String) {
    let file = folder.join("turns.toml");
    fs::write(&file, scenario).expect("a file");
    let trace = folder.join(name).to_str().expect("text").to_owned();
    let file = file.to_str().expect("text");
    let output = asx(&["run", file, "--host", host, "--seed", "3", "--trace", &trace]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines = fs::read(&trace).expect("a trace");
    (trace, String::from_utf8_lossy(&lines).into_owned())
}

// Forbidden behaviour FB-015: nondeterminism in deterministic mode.
#[test]
fn a_recorded_run_is_the_same_on_every_host_and_in_both_codecs() {
    let folder = Folder::new("replay-same");
    for host in ["model", "native", "lab", "web", "c"] {
        for name in ["run.jsonl", "run.asxt"] {
            let (trace, _) = record(&folder, TURNS, host, name);
            let again = asx(&["replay", &trace]);
            let out = text(&again.stdout);
            assert_eq!(again.status.code(), Some(0), "{host}: {out}{}", text(&again.stderr));
            assert!(out.starts_with(&format!("turns on {host}, seed 3\nthe same: ")), "{out}");
            let again = json(&asx(&["replay", &trace, "--json"]));
            assert_eq!((&again["same"], &again["status"]), (&true.into(), &"OK".into()), "{again}");
            assert!(again["decisions"].as_u64() >= Some(5), "{again}");
        }
    }
}

#[test]
fn a_built_in_scenario_is_found_by_its_id() {
    let folder = Folder::new("replay-built-in");
    let trace = folder.join("run.asxt");
    let trace = trace.to_str().expect("text");
    for id in ["ch-fifo-001", "tm-cancel-001"] {
        let run = asx(&["run", id, "--seed", "1", "--trace", trace]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        let again = asx(&["replay", trace]);
        assert_eq!(again.status.code(), Some(0), "{}", text(&again.stdout));
        assert!(text(&again.stdout).starts_with(&format!("{id} on model, seed 1\n")));
    }
}

#[test]
fn a_changed_decision_is_found_with_both_sides_and_its_line() {
    let folder = Folder::new("replay-decision");
    let (trace, lines) = record(&folder, TURNS, "native", "run.jsonl");
    let is_decision = |line: &&str| line.contains("\"cancel_streak\"");
    let (at, line) =
        lines.lines().enumerate().filter(|(_, line)| is_decision(line)).nth(2).expect("decisions");
    let other = if line.contains("\"task\":1") {
        line.replace("\"task\":1", "\"task\":2")
    } else {
        line.replace("\"task\":2", "\"task\":1")
    };
    fs::write(&trace, lines.replace(line, &other)).expect("a file");
    let again = asx(&["replay", &trace]);
    let out = text(&again.stdout);
    assert_eq!(again.status.code(), Some(1), "{out}");
    let place = format!("(line {}, column 1)", at + 1);
    assert!(out.contains("REPLAY_MISMATCH: they part at event ") && out.contains(&place), "{out}");
    let sides: Vec<_> = out.lines().filter(|line| line.starts_with(['-', '+'])).collect();
    assert!(sides.len() == 2 && sides[0][1..] != sides[1][1..], "{out}");
    assert!(sides.iter().all(|side| side.contains("cancel_streak=")), "{out}");
    let again = json(&asx(&["replay", &trace, "--json"]));
    assert_eq!(again["status"], "REPLAY_MISMATCH", "{again}");
    assert_ne!(again["digests"][0], again["digests"][1], "{again}");
}

#[test]
fn a_scenario_that_goes_another_way_now_parts_at_the_first_event() {
    let folder = Folder::new("replay-changed");
    let (trace, _) = record(&folder, TURNS, "model", "run.jsonl");
    let file = folder.join("turns.toml");
    fs::write(&file, TURNS.replace("for = \"5ms\"", "for = \"4ms\"")).expect("a file");
    let again = json(&asx(&["replay", &trace, "--json"]));
    assert_eq!(again["status"], "REPLAY_MISMATCH", "{again}");
    let side = |name: &str| again[name].as_str().expect("an event").to_owned();
    assert!(side("recorded").contains("timer_armed") && side("recorded").contains("5000000"));
    assert!(side("now").contains("timer_armed") && side("now").contains("4000000"), "{again}");
    // One that does less ends early.
    fs::write(&file, TURNS.replace("{ op = \"yield\" }]\n", "]\n")).expect("a file");
    assert_eq!(asx(&["replay", &trace]).status.code(), Some(1));
}

#[test]
fn a_schedule_that_was_found_is_followed() {
    let folder = Folder::new("replay-schedule");
    let file = folder.join("turns.toml");
    // Whoever goes first is not the script's to say.
    let third = "{ op = \"step\" }, { op = \"step\" }, { op = \"step\", task = \"a\" }, ";
    fs::write(&file, TURNS.replace("{ op = \"run\" }, ", third)).expect("a file");
    let file = file.to_str().expect("text");
    let trace = folder.join("failed.asxt");
    let trace = trace.to_str().expect("text");
    let found =
        asx(&["explore", file, "--seeds", "50", "--expect", "--workers", "2", "--trace", trace]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stdout));
    let again = asx(&["replay", trace]);
    assert_eq!(again.status.code(), Some(0), "{}{}", text(&again.stdout), text(&again.stderr));
    assert!(text(&again.stdout).contains("the same: "));
}

#[test]
fn what_is_wrong_with_a_trace_is_told_with_its_line() {
    let folder = Folder::new("replay-damaged");
    let (trace, lines) = record(&folder, TURNS, "model", "run.jsonl");
    let damaged = |content: &str| {
        fs::write(&trace, content).expect("a file");
        let again = asx(&["replay", &trace, "--json"]);
        assert_eq!(again.status.code(), Some(2), "{}", text(&again.stdout));
        let told = json(&again);
        assert!(text(&again.stderr).contains(told["error"].as_str().expect("words")), "{told}");
        told
    };
    let mut some: Vec<_> = lines.lines().collect();
    let fifth = some[4];
    some[4] = "{\"record\":\"event\",\"seq\":oops}";
    let told = damaged(&some.join("\n"));
    assert_eq!(told["status"], "TRACE_MALFORMED");
    assert!(told["error"].as_str().expect("words").contains("line 5, column"), "{told}");
    some[4] = fifth;
    let told = damaged(&some[..6].join("\n"));
    assert_eq!(told["status"], "TRACE_TRUNCATED");
    let told = damaged(&lines.replace("\"version\":2", "\"version\":99"));
    assert_eq!(told["status"], "TRACE_VERSION");
    let told = damaged("not a trace\n");
    assert_eq!(told["status"], "TRACE_MALFORMED");
    // What cannot be run again.
    let told = damaged(&lines.replace("\"host\":\"model\"", "\"host\":\"moon\""));
    assert!(told["error"].as_str().expect("words").contains("no host `moon`"), "{told}");
    let told = damaged(&lines.replace("\"program\":\"turns\"", "\"program\":\"other\""));
    assert!(told["error"].as_str().expect("words").contains("`other`"), "{told}");
    fs::write(&trace, &lines).expect("a file");
    assert_eq!(asx(&["replay", &trace, "--expect"]).status.code(), Some(2));
    fs::remove_file(folder.join("turns.toml")).expect("it was there");
    let told = asx(&["replay", &trace]);
    assert!(text(&told.stderr).contains("--scenario"), "{}", text(&told.stderr));
}
