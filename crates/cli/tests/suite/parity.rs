//! `asx parity` from outside.

use crate::folder;

use std::path::Path;
use std::process::{Command, Output};
use std::{env, fs};

use folder::Folder;

use asx_conformance::parity::{MANDATORY, OF_HOST_EVENT, OF_LOCKFILE, OF_TOOLCHAIN};

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

/// The record of a host, as another one's.
fn record_of(folder: &Path, host: &str, called: &str) -> String {
    let path = folder.to_str().expect("text");
    let recorded = asx(&["parity", "--host", "model,native", "--filter", ONES, "--record", path]);
    assert_eq!(recorded.status.code(), Some(0), "{}", text(&recorded.stderr));
    let lines = fs::read_to_string(folder.join(host).with_extension("jsonl")).expect("a record");
    lines.replace(&format!("\"host\":\"{host}\""), &format!("\"host\":\"{called}\""))
}

/// A record's line.
type Line = serde_json::Map<String, serde_json::Value>;

/// What is done to one.
type Change = dyn Fn(&mut Line);

fn read(line: &str) -> Line {
    serde_json::from_str(line).expect("JSON")
}

/// A record with its first line of a run changed.
fn edited(record: &str, change: impl Fn(&mut Line)) -> String {
    let mut lines: Vec<Line> = record.lines().map(read).collect();
    change(lines.iter_mut().find(|line| line["skipped"].is_null()).expect("a run"));
    lines.into_iter().map(|line| serde_json::Value::from(line).to_string() + "\n").collect()
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
    let folder = Folder::new("parity-web");
    let web = folder.join("web.jsonl");
    fs::write(&web, record_of(&folder, "model", "web")).expect("written");
    let from = format!("web={}", web.display());
    let output = asx(&["parity", "--host", "model,web", "--from", &from, "--filter", ONES]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}{}", text(&output.stderr));
    // The model has them all, and so has its record.
    let line = "model, web                       15        0         0        0";
    assert!(out.contains(line), "{out}");
}

#[test]
fn a_difference_leaves_both_logs_and_a_call_that_finds_it_again() {
    let folder = Folder::new("parity-difference");
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
    let folder = Folder::new("parity-missing");
    let web = folder.join("web.jsonl");
    let record = record_of(&folder, "model", "web");
    let from = format!("web={}", web.display());
    let call = ["parity", "--host", "model,web", "--from", &from, "--filter", ONES];
    let with = |text: &str| {
        fs::write(&web, text).expect("written");
        refused(&call)
    };
    let place = |line: usize| format!("{}:{line}: ", web.display());
    for field in MANDATORY {
        let why = with(&edited(&record, |line| drop(line.remove(field))));
        assert!(why.contains(&format!("{}the mandatory field `{field}`", place(1))), "{why}");
    }
    for (of, fields) in [("toolchain", &OF_TOOLCHAIN), ("lockfile", &OF_LOCKFILE)] {
        for field in fields {
            let without = |line: &mut Line| {
                line[of].as_object_mut().expect("an object").remove(*field);
            };
            let why = with(&edited(&record, without));
            let missing = format!("{}the mandatory field `{of}.{field}`", place(1));
            assert!(why.contains(&missing), "{why}");
        }
    }
    for field in OF_HOST_EVENT {
        let why = with(&record.replacen(&format!("\"{field}\":"), "\"other\":", 1));
        assert!(why.contains(&format!("the mandatory field `{field}` is missing")), "{why}");
    }
    let why = with(&format!("{record}{}\n", record.lines().next().expect("a line")));
    assert!(why.contains("under seed 0 in codec `json` is there twice"), "{why}");
    let first = record.lines().next().expect("a line").len() + 1;
    let why = with(&record[first..]);
    assert!(why.contains("under seed 0 in codec `json`"), "{why}");
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
    assert!(with(&record.replacen("\"schema\":4", "\"schema\":3", 1)).contains("known here"));
    let why = with(&record.replacen("asx-semantics-1", "asx-semantics-2", 1));
    let what = "TRACE_VERSION: it is of the contract `asx-semantics-2`, and this build has";
    assert!(why.contains(&format!("{}{what}", place(1))), "{why}");
    let why = with(&record.replacen("scheduler_capability_denied", "scheduler_decision", 1));
    assert!(why.contains("there is no kind `scheduler_decision`"), "{why}");
}

#[test]
fn a_field_that_says_nothing_is_refused() {
    let folder = Folder::new("parity-unknown");
    let web = folder.join("web.jsonl");
    let record = record_of(&folder, "model", "web");
    let from = format!("web={}", web.display());
    let call = ["parity", "--host", "model,web", "--from", &from, "--filter", ONES];
    let with = |change: &Change| {
        fs::write(&web, edited(&record, change)).expect("written");
        asx(&call)
    };
    let cases: [(&str, &Change); 13] = [
        ("toolchain.release", &|line| line["toolchain"]["release"] = "unknown".into()),
        ("toolchain.host", &|line| line["toolchain"]["host"] = "".into()),
        ("toolchain.commit_hash", &|line| line["toolchain"]["commit_hash"] = "beef".into()),
        ("target", &|line| line["target"] = "unknown".into()),
        ("source_commit", &|line| line["source_commit"] = "main".into()),
        ("lockfile.sha256", &|line| line["lockfile"]["sha256"] = "unknown".into()),
        ("lockfile.size", &|line| line["lockfile"]["size"] = 0.into()),
        ("lockfile.tracked", &|line| line["lockfile"]["tracked"] = "yes".into()),
        ("skipped_lines", &|line| line["skipped_lines"] = serde_json::json!([{ "line": 1 }])),
        ("build", &|line| line["build"] = "".into()),
        ("codec", &|line| line["codec"] = "xml".into()),
        ("verdict", &|line| line["verdict"] = "fine".into()),
        ("delta", &|line| line["delta"] = "some".into()),
    ];
    for (field, change) in cases {
        let output = with(change);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{field}: {why}");
        assert!(why.contains(&format!("`{field}`: not ")), "{field}: {why}");
    }
    // Only commits may be unknown.
    for field in ["source_commit", "toolchain.commit_hash"] {
        let output = with(&|line| match field.split_once('.') {
            Some((of, field)) => line[of][field] = "unknown".into(),
            None => line[field] = "unknown".into(),
        });
        assert_eq!(output.status.code(), Some(0), "{field}: {}", text(&output.stderr));
    }
}

#[test]
fn a_record_tells_what_was_run_by_what_and_how_it_compared() {
    let folder = Folder::new("parity-origin");
    let record = record_of(&folder, "native", "native");
    let lock = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock")).expect("it");
    let lines: Vec<Line> = record.lines().map(read).collect();
    assert_eq!(lines.iter().filter(|line| line["codec"] == "json").count() * 2, lines.len());
    for line in &lines {
        assert_eq!(line["lockfile"]["size"], lock.len(), "{line:?}");
        assert!(line["toolchain"]["host"].as_str().is_some_and(|host| host.contains('-')));
        let judged = (line["verdict"].as_str(), line["delta"].as_str());
        match line["skipped"].is_null() {
            true => assert_eq!(judged, (Some("same"), Some("none"))),
            false => assert_eq!(judged, (Some("skipped"), Some("intentional"))),
        }
        assert_eq!(line["place"], "program");
    }
}

#[test]
fn a_digest_that_a_codec_changes_is_the_harness_s_defect() {
    let folder = Folder::new("parity-codec");
    let (web, out) = (folder.join("web.jsonl"), folder.join("out"));
    let record = record_of(&folder, "native", "web");
    fs::write(&web, edited(&record, |line| line["digest"] = "0123456789abcdef".into())).unwrap();
    let (from, out) = (format!("web={}", web.display()), out.to_str().expect("text").to_owned());
    let call = ["parity", "--host", "native,web", "--from", &from, "--filter", ONES, "--out", &out];
    let output = asx(&call);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains(": fingerprint, codecs"), "{}", text(&output.stdout));
    let left = fs::read_dir(&out).expect("a folder").next().expect("one").expect("it").path();
    let summary: Line = read(&fs::read_to_string(left.join("summary.json")).expect("a summary"));
    assert_eq!(summary["delta"], "harness_defect");
}

#[test]
fn every_host_is_run_by_its_name() {
    let here = ["--place", "program"];
    let call = ["parity", "--host", "native,web,c,model,lab", "--filter", ONES, "--json"];
    let output = asx(&[&call[..], &here[..]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{json}{}", text(&output.stderr));
    assert_eq!(
        (json["pairs"].as_array().map(Vec::len), &json["web"]),
        (Some(10), &"program".into())
    );
    for pair in json["pairs"].as_array().expect("pairs") {
        assert!(pair["compared"].as_u64() > Some(0), "{pair}");
    }
}

#[test]
fn without_a_browser_one_that_is_asked_for_is_refused_with_the_way_to_it() {
    let folder = Folder::new("parity-no-browser");
    let call = |place: &[&str]| {
        let mut asx = Command::new(env!("CARGO_BIN_EXE_asx"));
        asx.args(["parity", "--host", "native,web", "--filter", ONES]).args(place);
        asx.env("ASX_WEB", &*folder).output().expect("asx runs")
    };
    let output = call(&["--place", "browser"]);
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{why}");
    assert!(why.contains("no browser is set up") && why.contains("cargo xtask web"), "{why}");
    // If it is left open, the page in this program does, and that is said.
    let output = call(&[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(said.contains("web was run in this program; `cargo xtask web`"), "{said}");
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

/// A fixture of which native and the lab cannot express two lines.
const IN_PART: &str = "ch-obligation-leak-001";

#[test]
fn a_host_that_skips_lines_is_compared_with_the_model_on_the_others() {
    let folder = Folder::new("parity-in-part");
    let path = folder.to_str().expect("text");
    let hosts = "model,native,lab,c";
    let call = ["parity", "--host", hosts, "--filter", IN_PART, "--json", "--record", path];
    let output = asx(&call);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{json}");
    for pair in json["pairs"].as_array().expect("pairs") {
        let is_whole = pair["hosts"] == serde_json::json!(["model", "c"]);
        let in_part = if is_whole { 0 } else { pair["compared"].as_u64().unwrap_or(0) };
        assert_eq!((&pair["skipped"], &pair["in_part"]), (&0.into(), &in_part.into()), "{pair}");
        assert!(pair["compared"].as_u64() > Some(0), "{pair}");
    }
    let record = fs::read_to_string(folder.join("native.jsonl")).expect("a record");
    let line = read(record.lines().next().expect("a line"));
    assert_eq!(line["skipped_lines"].as_array().map(Vec::len), Some(2), "{line:?}");
    assert_eq!((&line["verdict"], &line["skipped_lines"][0]["line"]), (&"same".into(), &26.into()));
    // A run that skipped other lines than it says is another run than the model's.
    let web = folder.join("web.jsonl");
    let with = |text: &str| {
        fs::write(&web, text).expect("written");
        let from = format!("web={}", web.display());
        let call = ["parity", "--host", "model,web", "--from", &from, "--filter", IN_PART];
        asx(&call).status.code()
    };
    let of_web = record.replace("\"host\":\"native\"", "\"host\":\"web\"");
    assert_eq!(with(&of_web), Some(0));
    let first = read(of_web.lines().next().expect("a line"));
    let op = first["skipped_lines"][0]["offset"].to_string();
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../conformance/fixtures/channel/ch-obligation-leak-001.toml"
    );
    let text = fs::read_to_string(fixture).expect("the fixture");
    let spawn = text.find("{ op = \"spawn\", task = \"sender\" }").expect("an op");
    assert_eq!(with(&of_web.replace(&op, &spawn.to_string())), Some(1));
}

#[test]
fn a_record_names_the_profile_of_c_and_the_build() {
    let folder = Folder::new("parity-profile");
    let path = folder.to_str().expect("text");
    let hosts = "native,c,c-embedded,c-hft,c-automotive";
    let output = asx(&["parity", "--host", hosts, "--filter", STORM, "--record", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let profiles = [
        ("native", None),
        ("c", Some("core")),
        ("c-embedded", Some("embedded")),
        ("c-hft", Some("hft")),
        ("c-automotive", Some("automotive")),
    ];
    for (host, profile) in profiles {
        let record = fs::read_to_string(folder.join(host).with_extension("jsonl")).expect("it");
        let line = read(record.lines().next().expect("a line"));
        assert_eq!((line["host"].as_str(), line["profile"].as_str()), (Some(host), profile));
        assert!(["debug", "release"].contains(&line["build"].as_str().unwrap_or("")));
    }
}
