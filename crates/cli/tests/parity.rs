//! `asx parity` from outside.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::{env, fs};

fn asx(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_asx")).args(arguments).output().expect("asx runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard error of a call that must be refused.
fn refused(arguments: &[&str]) -> String {
    let output = asx(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output.stdout));
    text(&output.stderr)
}

/// A folder of this test's own, emptied.
fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("asx-parity-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The record of a host, as another one's.
fn record_of(folder: &std::path::Path, host: &str, called: &str) -> String {
    let path = folder.to_str().expect("text");
    let recorded = asx(&["parity", "--host", "model,native", "--filter", ONES, "--record", path]);
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let lines = fs::read_to_string(folder.join(host).with_extension("jsonl")).expect("a record");
    lines.replace(&format!("\"host\":\"{host}\""), &format!("\"host\":\"{called}\""))
}

/// The scenarios that every host answers for.
const ONES: &str = "parity-*";
/// One of them that all can run.
const STORM: &str = "parity-wake-storm";

#[test]
fn the_hosts_of_this_program_do_the_same() {
    let output = asx(&["parity", "--host", "model,native,lab", "--filter", "*-0*", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{json}");
    let pairs = json["pairs"].as_array().expect("pairs");
    let hosts: Vec<_> = pairs.iter().map(|pair| pair["hosts"].to_string()).collect();
    assert_eq!(hosts, [r#"["model","native"]"#, r#"["model","lab"]"#, r#"["native","lab"]"#]);
    for pair in pairs {
        assert!(pair["compared"].as_u64() > Some(50), "{pair}");
        assert_eq!(pair["different"], serde_json::json!([]), "{pair}");
    }
}

#[test]
fn a_host_that_is_elsewhere_is_compared_by_its_record() {
    let folder = folder("web");
    let web = folder.join("web.jsonl");
    fs::write(&web, record_of(&folder, "model", "web")).expect("written");
    let from = format!("web={}", web.display());
    let output = asx(&["parity", "--host", "model,web", "--from", &from, "--filter", ONES]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    // The model has them all, and so has its record.
    assert!(out.contains("model, web                 15         0        0"), "{out}");
}

#[test]
fn a_difference_leaves_both_logs_and_a_call_that_finds_it_again() {
    let folder = folder("difference");
    let (web, out) = (folder.join("web.jsonl"), folder.join("out"));
    let record = record_of(&folder, "native", "web");
    // One task of one run ended otherwise, and its journal says so too.
    let changed: String = record
        .lines()
        .map(|line| {
            let is_it = line.contains(STORM) && line.contains("\"seed\":7,");
            let line = if is_it { line.replace("Ok", "Err") } else { line.to_owned() };
            line + "\n"
        })
        .collect();
    fs::write(&web, changed).expect("written");
    let (from, out) = (format!("web={}", web.display()), out.to_str().expect("text").to_owned());
    let call = ["parity", "--host", "native,web", "--from", &from, "--filter", ONES, "--out", &out];
    let output = asx(&call);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}{}", text(&output.stderr));
    assert!(said.contains(&format!("DIFFERENT {STORM}, seed 7, on native and web: outcomes")));
    assert!(said.contains("they part at event") && said.contains("    web      "), "{said}");
    let left = folder.join("out").join(format!("{STORM}-7-native-web"));
    let files = ["native.log", "web.log", "difference.txt", "summary.json"];
    let read = || files.map(|name| fs::read_to_string(left.join(name)).expect("a file"));
    let first = read();
    assert!(first[0].contains(" Ok\n") && first[1].contains(" Err\n"), "both logs");
    let summary: serde_json::Value = serde_json::from_str(&first[3]).expect("JSON");
    assert_eq!((&summary["scenario"], &summary["seed"]), (&STORM.into(), &7.into()));
    assert!(summary["first_divergence"]["event"].is_u64(), "{summary}");
    // The call it names makes the same files again.
    fs::remove_dir_all(folder.join("out")).expect("removed");
    let repro = summary["repro"].as_str().expect("a call").replace('\'', "");
    let words: Vec<_> = repro.split(' ').skip(1).collect();
    assert_eq!(asx(&words).status.code(), Some(1), "{repro}");
    assert_eq!(read()[..3], first[..3]);
}

#[test]
fn a_record_that_is_not_whole_is_refused_with_its_place() {
    let folder = folder("missing");
    let web = folder.join("web.jsonl");
    let record = record_of(&folder, "model", "web");
    let from = format!("web={}", web.display());
    let call = ["parity", "--host", "model,web", "--from", &from, "--filter", ONES];
    let with = |text: &str| {
        fs::write(&web, text).expect("written");
        refused(&call)
    };
    let place = |line: usize| format!("{}:{line}: ", web.display());
    for field in ["digest", "outcomes", "journal", "host_events", "not_quiescent", "skipped"] {
        let why = with(&record.replacen(&format!("\"{field}\":"), "\"other\":", 1));
        assert!(why.contains(&format!("{}the mandatory field `{field}`", place(1))), "{why}");
    }
    for field in ["host_turn_id", "decision_hash", "error_class"] {
        let why = with(&record.replacen(&format!("\"{field}\":"), "\"other\":", 1));
        assert!(why.contains(&format!("the mandatory field `{field}` is missing")), "{why}");
    }
    let why = with(&format!("{record}{}\n", record.lines().next().expect("a line")));
    assert!(why.contains("under seed 0 is there twice"), "{why}");
    let without: String = record
        .lines()
        .filter(|line| !line.contains(STORM))
        .map(|line| format!("{line}\n"))
        .collect();
    let why = with(&without);
    assert!(why.contains(&format!("there is nothing of `{STORM}` under seed 0")), "{why}");
    let why = with(&record[..record.len() / 2]);
    assert!(why.contains("EOF while parsing"), "{why}");
    assert!(with(&record.replacen("\"web\"", "\"moon\"", 1)).contains("`host`: not `web`"));
    assert!(with(&record.replacen("\"schema\":1", "\"schema\":2", 1)).contains("known here"));
}

#[test]
fn calls_that_compare_nothing_are_refused() {
    assert!(refused(&["parity", "--host", "model"]).contains("two hosts"));
    assert!(refused(&["parity", "--host", "model,moon"]).contains("--from moon=FILE"));
    assert!(refused(&["parity", "--host", "model,model"]).contains("there twice"));
    assert!(refused(&["parity", "--from", "web=x.jsonl"]).contains("not among those"));
    assert!(refused(&["parity", "--filter", "nothing-*"]).contains("no scenario matches"));
    assert!(
        refused(&["parity", "--host", "model,web", "--from", "web=no.jsonl"]).contains("no.jsonl")
    );
}
