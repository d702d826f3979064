//! The page as a whole: the data survives, texts remain texts, and the size is small.

mod common;

use asx_report::{PAGE_EVENTS, Run, html};
use asx_trace::{Codec, Header, Reader};
use common::{Made, NASTY, TORN, busy, failed, read};
use serde_json::Value;
use std::collections::BTreeMap;

/// Splits a page into its data and the rest.
fn parts(page: &str) -> (Value, String) {
    let open = "<script type=\"application/json\" id=\"data\">";
    let (before, rest) = page.split_once(open).expect("the data");
    let (data, after) = rest.split_once("</script>").expect("its end");
    (serde_json::from_str(data).expect("JSON"), format!("{before}{after}"))
}

fn list<'a>(data: &'a Value, key: &str) -> &'a Vec<Value> {
    data[key].as_array().unwrap_or_else(|| panic!("{key} is a list"))
}

#[test]
fn the_data_contains_the_whole_trace() {
    let made = busy(3, 4, 3);
    let run = made.run();
    assert!(run.verdict.holds(), "{:?}", run.verdict.violations);
    let (data, _) = parts(&html(&run));
    assert_eq!(data["program"], NASTY[0]);
    assert_eq!(data["seed"], u64::MAX.to_string());
    assert_eq!((&data["holds"], &data["codec"]), (&true.into(), &"jsonl".into()));
    assert_eq!(data["digest"], format!("{:016x}", run.verdict.digest));
    assert_eq!(list(&data, "kind").len(), made.events.len());
    assert_eq!(list(&data, "choices").len() as u64, run.verdict.choices);
    assert_eq!((list(&data, "tasks").len(), list(&data, "regions").len()), (12, 4));
    // Every event can be reconstructed from its columns.
    let kinds = list(&data, "kinds");
    let (mut now, mut at) = (0, 0);
    for (index, event) in made.events.iter().enumerate() {
        let kind = &kinds[data["kind"][index].as_u64().expect("a number") as usize];
        assert_eq!(kind[0], event.kind.name());
        now += data["time"][index].as_u64().expect("a number");
        assert_eq!(now, event.time.as_nanos());
        let task = data["about"][4 * index].as_u64().expect("a number") as usize;
        let number = task.checked_sub(1).map(|task| data["tasks"][task][0].as_u64());
        assert_eq!(number.flatten(), event.subject.task);
        let mut place = 1;
        event.kind.visit(|name, field| {
            assert_eq!(kind[place], name);
            let value = &data["fields"][at];
            let shown = match kind[place + 1].as_str() {
                Some("w") => data["words"][value.as_u64().expect("a number") as usize]
                    .as_str()
                    .expect("a word")
                    .to_owned(),
                Some("f") => (value == 1).to_string(),
                Some("h") => {
                    u64::from_str_radix(value.as_str().expect("hex"), 16).expect("hex").to_string()
                }
                _ => value.to_string(),
            };
            assert_eq!(shown, field.to_string(), "{name} of event {index}");
            (place, at) = (place + 2, at + 1);
        });
    }
    assert_eq!(at, list(&data, "fields").len());
}

#[test]
fn the_data_of_a_failure_has_its_cause_and_its_teardown() {
    let made = failed();
    let (data, _) = parts(&html(&made.run()));
    let failure = &data["failure"];
    assert_eq!(failure["kind"], "deadlock");
    assert_eq!(failure["message"], "`feed (main/1)` and `drain (main/2)` wait for each other");
    assert_eq!((&failure["place"], &failure["task"]), (&"src/shop.rs:3:5".into(), &"".into()));
    assert_eq!(failure["replay"], "ASX_REPLAY=AQCugbM cargo test shop");
    assert_eq!((list(failure, "detail").len(), list(failure, "changes").len()), (3, 3));
    assert_eq!(failure["changed"], serde_json::json!([11, 30, TORN + 5]));
    assert_eq!(data["teardown"], TORN);
    // The verdict of the laws is independent of the failure, and `meta` omits the cause.
    assert_eq!(data["holds"], true);
    assert_eq!(data["meta"], serde_json::json!([["strategy", "dpor"]]));
    let (plain, _) = parts(&html(&busy(1, 1, 1).run()));
    assert_eq!((&plain["failure"], &plain["teardown"]), (&Value::Null, &Value::Null));
}

#[test]
fn waits_and_locks_are_on_the_tracks_of_their_tasks_only() {
    let made = failed();
    let (data, _) = parts(&html(&made.run()));
    assert!(list(&data, "hosts").iter().all(|host| host[2] == "burst"), "{}", data["hosts"]);
    let held = list(&data, "held");
    assert_eq!(held.len(), 1);
    assert_eq!((&held[0][1], &held[0][2]), (&10.into(), &30.into()));
    assert_eq!(held[0][3], "holds orders.recv");
    let parked = list(&data, "parked");
    let tasks = list(&data, "tasks");
    let number = |stretch: &Value| {
        let at = stretch[0].as_u64().expect("a place") as usize;
        tasks[at - 1][0].as_u64().expect("a number")
    };
    let of = |task: u64| {
        let is_its = |stretch: &&Value| number(stretch) == task;
        parked.iter().filter(is_its).collect::<Vec<_>>()
    };
    let first = of(1);
    assert_eq!(first[0][3], "waits for orders.recv");
    assert_eq!(first[0][4], "waits for a message: orders.recv\nat src/shop.rs:3:5");
    let from = |stretch: &Value| stretch[1].as_u64().expect("a place");
    let to = |stretch: &Value| stretch[2].as_u64().expect("a place");
    assert_eq!((from(first[0]), to(first[first.len() - 1])), (20, 40));
    // A task does not wait while it is polled.
    for poll in list(&data, "polls").chunks(2) {
        let [begin, end] = [&poll[0], &poll[1]].map(|at| at.as_u64().expect("a place"));
        let task = made.events[begin as usize].subject.task;
        if task == Some(1) {
            assert!(first.iter().all(|wait| to(wait) <= begin || from(wait) >= end), "{first:?}");
        }
    }
    // Waits without an end last to the end of the run.
    for task in [2, 3] {
        assert_eq!(to(of(task).last().expect("a wait")), made.events.len() as u64);
    }
}

#[test]
fn no_text_of_a_trace_becomes_markup_or_code() {
    let made = busy(2, 4, 2);
    let page = html(&made.run());
    let plain = html(&Made { labels: Vec::new(), marks: Vec::new(), ..busy(2, 4, 2) }.run());
    let (data, around) = parts(&page);
    let (_, same) = parts(&plain);
    assert_eq!(around, same, "labels and marks are only in the data");
    let title = around.split("<title>").nth(1).expect("a title");
    let title = title.split("</title>").next().expect("its end");
    assert_eq!(title, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;: asx trace");
    assert_eq!(page.matches("<script").count(), 2, "the data and the program");
    assert_eq!(page.matches("</script").count(), 2);
    let names: Vec<_> =
        list(&data, "tasks").iter().take(6).map(|task| task[1].as_str().expect("text")).collect();
    assert_eq!(names, NASTY, "names survive unchanged");
    assert_eq!(data["marks"][0][3], "it <b>failed</b> here");
    let raw = page.split("id=\"data\">").nth(1).expect("data").split('<').next().expect("text");
    let bare = ['>', '&', '\'', '\u{2028}', '\u{7f}'];
    assert!(!raw.contains(bare) && !raw.bytes().any(|byte| byte < 0x20));
}

#[test]
fn the_page_loads_nothing_and_is_deterministic() {
    let made = busy(1, 2, 1);
    let page = html(&made.run());
    assert_eq!(page, html(&made.run()));
    let (_, around) = parts(&page);
    for outside in ["http:", "https:", "//cdn", "@import", "url(", " src=", "innerHTML", "eval("] {
        assert!(!around.contains(outside), "{outside}");
    }
    assert!(around.contains("default-src 'none'"));
    assert!(!around.contains("{{") && !around.contains("}}\n</style>"), "unfilled placeholder");
}

#[test]
fn every_element_and_colour_used_by_the_program_exists() {
    let page = html(&busy(1, 1, 1).run());
    let (_, around) = parts(&page);
    // Returns every text between `before` and `after`.
    let named = |before: &'static str, after: char| {
        let found = around.split(before).skip(1);
        found.map(move |rest| rest.split(after).next().unwrap_or_default()).collect::<Vec<_>>()
    };
    let ids = [named("$(\"", '"'), named("\non(\"", '"')].concat();
    assert!(ids.len() > 50);
    for id in ids {
        assert_eq!(around.matches(&format!(" id=\"{id}\"")).count(), 1, "element {id}");
    }
    let wanted = named("const wanted = [", ']')[0].split('"').skip(1).step_by(2);
    let colours: Vec<_> = wanted.collect();
    assert!(colours.len() > 30);
    for colour in colours {
        let times = around.matches(&format!(" --{colour}: #")).count();
        assert_eq!(times, 2, "{colour}: once light and once dark");
    }
}

#[test]
fn empty_and_damaged_traces_have_a_page() {
    let empty = Made { header: Header::new("empty", "model"), marks: vec![], ..busy(0, 0, 0) };
    let empty = Made { events: vec![], labels: vec![], ..empty };
    let (data, _) = parts(&html(&empty.run()));
    assert_eq!((list(&data, "kind").len(), &data["holds"]), (0, &true.into()));
    let bytes = busy(2, 3, 2).bytes(Codec::Json);
    let run = read(&bytes[..bytes.len() / 2]);
    let (data, _) = parts(&html(&run));
    assert!(!run.events.is_empty() && list(&data, "kind").len() == run.events.len());
    assert_eq!((&data["holds"], &data["ended"]), (&false.into(), &false.into()));
    assert_eq!(data["findings"][0][0], "truncated");
    // The beginning is missing: the first step reveals the state before it.
    let mut late = busy(2, 3, 2);
    late.events.drain(..20);
    late.header.complete = false;
    let (data, _) = parts(&html(&late.run()));
    assert_eq!((&data["seq"][0], &data["seq"][1]), (&0.into(), &20.into()));
    assert_eq!(
        data["tasks"][0][5][0], "Running",
        "the state before the first step: {}",
        data["tasks"][0]
    );
}

#[test]
fn marks_refer_to_their_event_or_to_none() {
    let mut made = busy(1, 2, 1);
    let (first, mut other) = (made.marks[0].clone(), made.marks[0].clone());
    other.seq = 1 << 60;
    made.marks = vec![first.clone(), other];
    let (data, _) = parts(&html(&made.run()));
    assert_eq!(data["marks"][0][0], first.seq);
    assert!(data["marks"][1][0].is_null());
    assert_eq!(data["marks"][1][1], "1152921504606846976", "JavaScript would round the number");
}

#[test]
fn fifty_thousand_events_take_less_than_sixty_bytes_each() {
    let made = busy(40, 20, 18);
    assert!((50_000..60_000).contains(&made.events.len()), "{}", made.events.len());
    let bytes = made.bytes(Codec::Binary);
    // The trace is kept for manual inspection.
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/busy.asxt");
    std::fs::write(path, &bytes).expect("written");
    let run = Run::read(Reader::open(&bytes[..]).expect("a trace"), PAGE_EVENTS).expect("short");
    assert!(run.verdict.holds(), "{:?}", run.verdict.violations);
    let page = html(&run);
    let each = page.len() / made.events.len();
    assert!(each < 60, "{each} bytes for every event");
    let (data, _) = parts(&page);
    assert_eq!(list(&data, "kind").len(), made.events.len());
}

#[test]
fn a_trace_that_is_too_long_is_refused_early() {
    let made = busy(1, 2, 1);
    let bytes = made.bytes(Codec::Binary);
    let most = made.events.len();
    let read = |most| Run::read(Reader::open(&bytes[..]).expect("a trace"), most);
    assert!(read(most).is_ok());
    let error = read(most - 1).expect_err("too long");
    assert_eq!(
        error.to_string(),
        format!("the trace has more than {} events, which is the limit here", most - 1)
    );
}

/// Returns the colours of a theme by name.
fn colours(css: &str, selector: &str) -> BTreeMap<String, [f64; 3]> {
    let (_, rest) = css.split_once(&format!("{selector} {{")).expect("a theme");
    let block = rest.split('}').next().expect("its end");
    let colour = |line: &str| {
        let (name, value) = line.trim().strip_prefix("--")?.split_once(':')?;
        let digits = value.trim().strip_prefix('#').filter(|digits| digits.len() == 6)?;
        let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex digits");
        Some((name.to_owned(), [0, 2, 4].map(|at| f64::from(part(at)) / 255.0)))
    };
    block.split(';').filter_map(colour).collect()
}

/// Computes the contrast of two colours by WCAG 2.2.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let linear = |v: f64| if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) };
    let light = |colour: [f64; 3]| {
        let [r, g, b] = colour.map(linear);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let [one, other] = [one, other].map(light);
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn text_colours_have_a_contrast_of_at_least_4_5_in_both_themes() {
    const CSS: &str = include_str!("../page/style.css");
    let grounds = ["bg", "card", "hover", "pick", "grid", "mark-bg"];
    let bars = [
        "Created",
        "Running",
        "CancelRequested",
        "Cancelling",
        "Finalizing",
        "Completed",
        "Open",
        "Closing",
        "Draining",
        "Closed",
        "parked",
    ];
    let mut pairs = vec![("accent-text", "accent"), ("good", "good-bg"), ("timer", "card")];
    for ground in grounds {
        pairs.extend(["text", "soft"].map(|ink| (ink, ground)));
    }
    for ground in ["card", "hover", "pick", "mark-bg"] {
        pairs.extend(["mark", "accent"].map(|ink| (ink, ground)));
    }
    for ground in ["card", "hover"] {
        pairs.extend(["Ok", "Err", "Cancelled", "Panicked"].map(|ink| (ink, ground)));
    }
    // The chart writes the names of states on their bars, and the names of tasks on polls.
    pairs.extend(bars.map(|bar| ("bar-text", bar)));
    pairs.extend(["ready", "timed", "cancel"].map(|lane| ("card", lane)));
    pairs.push(("text", "parked"));
    for selector in [":root", ":root[data-theme=\"dark\"]"] {
        let colours = colours(CSS, selector);
        for (ink, ground) in &pairs {
            let ratio = contrast(colours[*ink], colours[*ground]);
            assert!(ratio >= 4.5, "{selector}: {ink} on {ground} has {ratio:.2}");
        }
        // The list above has every text colour of the style sheet.
        for rule in CSS.split([';', '{']).map(str::trim) {
            let name = rule.strip_prefix("color: var(--").and_then(|rest| rest.split(')').next());
            if let Some(name) = name {
                assert!(pairs.iter().any(|(ink, _)| *ink == name), "{name}");
            }
        }
    }
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9, "black on white");
}
