//! What an author reads when a file is wrong: the line, the key, what was expected.

use asx_conformance::parse_str;

const HEAD: &str = "schema = 1\nid = \"x\"\ntitle = \"t\"\narea = \"a\"\n";

fn errors(text: &str) -> Vec<String> {
    match parse_str("f.toml", text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// The body of a file after the four lines of its head, and what must be said about it.
const WRONG: &[(&str, &str)] = &[
    // Keys.
    ("sedes = [1]", "f.toml:5: sedes: a scenario has no such key (did you mean `seeds`?)"),
    ("seeds = []", "f.toml:5: seeds: expected a list of 1 to 1000 seeds"),
    ("seeds = [-1]", "f.toml:5: seeds: expected a number from 0"),
    ("config = 3", "f.toml:5: config: expected a table, not 3"),
    ("[config]\nworkers = 0", "f.toml:6: workers: expected a number from 1 to 64"),
    (
        "[config]\ntie_break = \"lifo\"",
        "f.toml:6: tie_break: expected one of fifo, seeded, task_key",
    ),
    (
        "[config.limits]\ntask = 3",
        "f.toml:6: task: [config.limits] has no such key (did you mean `tasks`?)",
    ),
    ("[config.timers]\ncoalesce_min = 3", "needs the key `coalesce_window`"),
    (
        "[config.browser]\ncapabilities = [\"clok\"]",
        "f.toml:6: capabilities: expected one of clock, entropy, timer, post, microtask, not \
          \"clok\" (did you mean `clock`?)",
    ),
    ("[tasks]\na = 1", "f.toml:6: a: expected a table with `body` and `on_cancel`"),
    // Ops.
    ("steps = 1", "f.toml:5: steps: expected a list of ops, not 1"),
    ("steps = [\n1]", "f.toml:6: steps: expected an op"),
    ("steps = [{ channel = \"c\" }]", "f.toml:5: op: the op needs the key `op`"),
    (
        "steps = [{ op = \"advanse\" }]",
        "f.toml:5: op: there is no op \"advanse\" (did you mean `advance`?)",
    ),
    ("steps = [{ op = \"yield\" }]", "f.toml:5: op: op \"yield\" can only stand in a task's body"),
    (
        "[tasks.a]\nbody = [{ op = \"run\" }]",
        "f.toml:6: op: op \"run\" can only stand in `setup` and `steps`",
    ),
    (
        "steps = [\n{ op = \"run\" },\n{ op = \"run\", max = 1 },\n]",
        "f.toml:7: max: op \"run\" has no such key",
    ),
    (
        "steps = [{ op = \"channel\", name = \"c\" }]",
        "f.toml:5: as: op \"channel\" needs the key `as`",
    ),
    (
        "steps = [{ op = \"advance\", by = \"10mz\" }]",
        "f.toml:5: by: expected a duration such as \"10ms\" or \"1h30m\", not \"10mz\"",
    ),
    ("steps = [{ op = \"advance\", by = \"999999999d\" }]", "expected a duration below 584 years"),
    (
        "steps = [{ op = \"advance\", by = true }]",
        "f.toml:5: by: expected a duration such as \"10ms\", not true",
    ),
    ("steps = [{ op = \"advance\" }]", "op \"advance\" needs one of a duration"),
    ("steps = [{ op = \"advance\", by = 1, to = 2 }]", "op \"advance\" needs one of a duration"),
    (
        "steps = [{ op = \"run\", expect = \"FUL\" }]",
        "f.toml:5: expect: expected a status name such as \"FULL\", not \"FUL\" (did you mean \
          `FULL`?)",
    ),
    (
        "steps = [{ op = \"open\", as = \"r\", priority = 256 }]",
        "f.toml:5: priority: expected a number from 0 to 255",
    ),
    (
        "steps = [{ op = \"open\", as = \"r\", within = 1, deadline = 1 }]",
        "expected `deadline` or `within`, not both",
    ),
    (
        "steps = [{ op = \"open\", as = \"a b\" }]",
        "f.toml:5: as: expected a name of letters, digits, `_`, `-`",
    ),
    ("steps = [{ op = \"check\", state = \"Open\" }]", "op \"check\" needs one subject"),
    (
        "steps = [{ op = \"check\", region = \"root\", state = \"Opne\" }]",
        "f.toml:5: state: expected one of Open, Closing, Draining, Finalizing, Closed, not \
          \"Opne\" (did you mean `Open`?)",
    ),
    (
        "steps = [{ op = \"check\", lanes = true, redy = 1 }]",
        "f.toml:5: redy: op \"check\" has no such key (did you mean `ready`?)",
    ),
    (
        "steps = [{ op = \"strengthen\", reasons = [] }]",
        "f.toml:5: reasons: expected a list with at least one item",
    ),
    (
        "steps = [{ op = \"meet\", of = [{ poll = 1 }] }]",
        "f.toml:5: poll: a budget has no such key (did you mean `polls`?)",
    ),
    (
        "steps = [{ op = \"consume\", budget = \"ZERO\" }]",
        "op \"consume\" needs one of `polls` and `cost`",
    ),
    (
        "steps = [{ op = \"repeat\", times = 1, body = 3 }]",
        "f.toml:5: body: expected a list of ops, not 3",
    ),
    // Names.
    (
        "steps = [{ op = \"end\", region = \"rot\" }]",
        "f.toml:5: region: there is no region `rot` in this file (did you mean `root`?)",
    ),
    (
        "steps = [{ op = \"spawn\", task = \"a\" }]",
        "f.toml:5: task: there is no task definition `a` in this file",
    ),
    (
        "steps = [{ op = \"open\", as = \"r\" },\n{ op = \"open\", as = \"r\" }]",
        "f.toml:6: as: the region `r` is made twice (first in line 5)",
    ),
    ("steps = [{ op = \"open\", as = \"root\" }]", "`root` is the root region"),
    ("steps = [{ op = \"cancel\", task = \"w*\" }]", "there is no group `w` made by `count`"),
    (
        "steps = [{ op = \"send\", permit = \"p\", value = 1 }]",
        "there is no permit `p` in this file",
    ),
    ("setup = []\n[scenario]\nsetup = []", "expected at the top or in [scenario], not both"),
    // Expectations.
    ("[expect]\nfingerprint = \"12\"", "f.toml:6: fingerprint: expected 16 hex digits in quotes"),
    ("[expect]\nfingerprints = []", "f.toml:6: fingerprints: expected one item per seed: 1 in all"),
    ("[expect]\nevents = [\"task_end\"]", "f.toml:6: task_end: there is no event kind `task_end`"),
    (
        "[expect]\nnever = [\"sent permit\"]",
        "f.toml:6: never: expected `key=value` after the kind, not `permit`",
    ),
    ("[expect]\nevents = [\"sent task=b\"]", "f.toml:6: task: there is no task `b` in this file"),
    ("[expect]\norder = [\"b\"]", "order: there is no task `b` in this file"),
    (
        "[expect]\noutcomes = { root = \"Fine\" }",
        "f.toml:6: root: expected one of Ok, Err, Cancelled, Panicked, not \"Fine\"",
    ),
    ("[expect]\nhost_events = [\"decision\"]", "there is no event kind `decision`"),
    // Not even TOML.
    ("steps = [", "f.toml:5: TOML:"),
];

#[test]
fn each_mistake_is_named_with_its_line() {
    let mut missing = Vec::new();
    for (body, expected) in WRONG {
        let found = errors(&format!("{HEAD}{body}\n"));
        if !found.iter().any(|error| error.contains(expected)) {
            missing.push(format!("{body}\n  {expected}\n{found:?}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_right_file_has_no_errors() {
    assert_eq!(errors(HEAD), [""; 0]);
}

#[test]
fn the_head_is_required_and_the_version_known() {
    let found = errors("schema = 2\nid = \"a b\"\ntitle = \"\"\n").join("\n");
    for expected in [
        "f.toml:1: schema: expected schema version 1",
        "f.toml:2: id: expected an id of letters",
        "f.toml:3: title: expected one line of text",
        "f.toml:1: area: a scenario needs the key `area`",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}

#[test]
fn several_mistakes_are_reported_together_in_order() {
    let text = format!(
        "{HEAD}steps = [\n{{ op = \"nap\" }},\n{{ op = \"end\", region = \"x\" }},\n]\nbogus = 1\n"
    );
    let lines: Vec<_> =
        errors(&text).iter().map(|e| e.split(':').nth(1).unwrap().to_owned()).collect();
    assert_eq!(lines, ["6", "7", "9"]);
}

#[test]
fn a_name_an_op_fails_to_make_may_be_made_later() {
    let text = format!(
        "{HEAD}steps = [\n{{ op = \"open\", as = \"r\", in = \"root\", expect = \
          \"REGION_NOT_OPEN\" }},\n\
         {{ op = \"open\", as = \"r\" }},\n]\n"
    );
    assert_eq!(errors(&text), [""; 0]);
}

#[test]
fn a_wrong_time_is_not_also_a_missing_one() {
    for key in ["by = -5", "to = \"soon\""] {
        let found = errors(&format!("{HEAD}steps = [{{ op = \"advance\", {key} }}]\n"));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

#[test]
fn very_many_mistakes_are_not_all_told() {
    for op in ["nap", "run"] {
        let op = format!("  {{ op = \"{op}\" }},\n");
        let found = errors(&format!("{HEAD}steps = [\n{}]\n", op.repeat(60_000)));
        assert!((1..=101).contains(&found.len()), "{}", found.len());
    }
    let found = errors(&format!("{HEAD}steps = [\n{}]\n", "  { op = \"nap\" },\n".repeat(200)));
    assert_eq!(
        found.last().map(String::as_str),
        Some("f.toml:105: errors: there may be more of them")
    );
}

#[test]
fn nesting_and_size_are_bounded() {
    let mut body = "[]".to_owned();
    for _ in 0..20 {
        body = format!("[{{ op = \"repeat\", times = 1, body = {body} }}]");
    }
    let found = errors(&format!("{HEAD}steps = {body}\n")).join("\n");
    assert!(found.contains("expected at most 16 nested bodies"), "{found}");
    let deep = format!("{HEAD}steps = {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(!errors(&deep).is_empty());
    let spawn = "{ op = \"spawn\", task = \"a\", as = \"NAME\", count = 1000 },\n";
    let many: String = (0..60).map(|i| spawn.replace("NAME", &format!("g{i}_"))).collect();
    let found = errors(&format!("{HEAD}steps = [\n{many}]\n[tasks.a]\n")).join("\n");
    assert!(found.contains("expected at most 50000 ops in a file"));
}

#[test]
fn any_cut_of_a_good_file_is_read_without_a_panic() {
    let good = include_str!("../../fixtures/task/task-lifecycle-002.toml");
    for end in (0..good.len()).filter(|end| good.is_char_boundary(*end)) {
        let _ = parse_str("cut", &good[..end]);
    }
}

#[test]
fn any_damage_to_a_good_file_is_read_without_a_panic() {
    let mut rng = asx_kernel::rng::DetRng::new(1, 0);
    let files = asx_conformance::corpus();
    for _ in 0..2000 {
        let file = &files[rng.below(files.len())];
        let mut bytes = file.text.clone().into_bytes();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            let other = rng.below(bytes.len());
            match rng.below(3) {
                0 => bytes[at] = rng.below(128) as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.swap(at, other),
            }
        }
        let _ = parse_str("damaged", &String::from_utf8_lossy(&bytes));
    }
}
