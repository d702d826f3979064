//! The rules of the trace event format, checked for every output.

mod common;

use asx_report::{Axis, Run, perfetto};
use asx_trace::Codec;
use common::{busy, read};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

type Thread = (u64, u64);

fn events(run: &Run, axis: Axis) -> Vec<Value> {
    let file: Value = serde_json::from_str(&perfetto(run, axis)).expect("well-formed JSON");
    assert_eq!(file["displayTimeUnit"], "ns");
    file["traceEvents"].as_array().expect("a list").clone()
}

/// Returns a time in nanoseconds. Times are microseconds with three decimals, so this is exact.
fn nanos(value: &Value) -> u64 {
    (value.as_f64().expect("a number") * 1000.0).round() as u64
}

fn thread(event: &Value) -> Thread {
    (event["pid"].as_u64().expect("a process"), event["tid"].as_u64().expect("a thread"))
}

/// Checks the events against the rules. Returns the number of events of each phase.
fn check(events: &[Value]) -> BTreeMap<String, usize> {
    let mut phases = BTreeMap::new();
    let (mut named, mut used) = (BTreeSet::new(), BTreeSet::new());
    let mut now = 0;
    let mut open: BTreeMap<Thread, Vec<u64>> = BTreeMap::new();
    let mut flows: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    for event in events {
        let phase = event["ph"].as_str().expect("a phase");
        *phases.entry(phase.to_owned()).or_default() += 1;
        assert!(event["name"].is_string(), "{event}");
        if phase == "M" {
            assert_eq!(now, 0, "names come first");
            if event["name"] == "thread_name" {
                assert!(named.insert(thread(event)), "named twice: {event}");
            }
            continue;
        }
        let time = nanos(&event["ts"]);
        assert!(time >= now, "time goes back: {event}");
        now = time;
        used.insert(thread(event));
        let stack = open.entry(thread(event)).or_default();
        while stack.last().is_some_and(|end| *end <= time) {
            stack.pop();
        }
        match phase {
            "X" => {
                let end = time + nanos(&event["dur"]);
                assert!(end > time, "a slice of no length: {event}");
                assert!(stack.last().is_none_or(|outer| end <= *outer), "overlaps: {event}");
                stack.push(end);
            }
            "i" => assert!(event["s"] == "t" || event["s"] == "g", "{event}"),
            "C" => assert!(event["args"]["queued"].is_u64(), "{event}"),
            "s" | "f" => {
                assert!(!stack.is_empty(), "a flow arrow outside all slices: {event}");
                let id = event["id"].as_u64().expect("an id");
                let name = event["name"].as_str().expect("a name").to_owned();
                if phase == "s" {
                    assert!(flows.insert(id, (name, time)).is_none(), "begun twice: {event}");
                } else {
                    assert_eq!(event["bp"], "e");
                    let (begun, from) = flows.remove(&id).expect("begun");
                    assert!(begun == name && from <= time, "{event}");
                }
            }
            other => panic!("unknown phase {other}"),
        }
    }
    assert!(flows.is_empty(), "flow arrows without an end: {flows:?}");
    assert!(used.is_subset(&named), "threads without a name");
    phases
}

#[test]
fn both_axes_obey_the_rules_of_the_format() {
    let run = busy(6, 5, 6).run();
    for axis in [Axis::Order, Axis::Time] {
        let phases = check(&events(&run, axis));
        for phase in ["M", "X", "i", "C", "s", "f"] {
            assert!(phases.contains_key(phase), "{phase} in {phases:?}");
        }
        assert_eq!(phases["s"], phases["f"]);
    }
}

#[test]
fn incomplete_traces_obey_the_rules_too() {
    let mut late = busy(3, 4, 4);
    late.events.drain(..37);
    late.header.complete = false;
    check(&events(&late.run(), Axis::Order));
    let bytes = busy(3, 4, 4).bytes(Codec::Json);
    for part in 1..12 {
        let run = read(&bytes[..bytes.len() * part / 12]);
        check(&events(&run, Axis::Time));
    }
}

#[test]
fn polls_states_and_messages_are_at_their_events() {
    let made = busy(1, 2, 1);
    let run = made.run();
    let events = events(&run, Axis::Order);
    let decisions =
        made.events.iter().filter(|event| event.kind.name() == "scheduler_step_decision").count();
    let named = |name: &'static str| events.iter().filter(move |event| event["name"] == name);
    assert_eq!(named("poll (ready)").count() + named("poll (cancel)").count(), decisions);
    assert_eq!(named("Cancelling").count(), 2, "a phase of each task");
    let (sent, received) = (named("sent").next(), named("received").next());
    let (sent, received) = (sent.expect("a send"), received.expect("a receive"));
    let ends: Vec<_> = named("message").map(|event| (&event["ts"], &event["tid"])).collect();
    let expected = [(&sent["ts"], &sent["tid"]), (&received["ts"], &received["tid"])];
    assert_eq!(ends, expected);
    let seq = made.events.iter().find(|event| event.kind.name() == "sent").expect("a send").seq;
    assert_eq!((nanos(&sent["ts"]), &sent["args"]["seq"]), (seq * 1000, &seq.into()));
}

#[test]
fn the_time_axis_keeps_the_times() {
    let made = busy(2, 5, 3);
    let events = events(&made.run(), Axis::Time);
    let fired = made.events.iter().filter(|event| event.kind.name() == "timer_fired");
    let shown = events.iter().filter(|event| event["name"] == "timer_fired");
    let mut count = 0;
    for (event, shown) in fired.zip(shown) {
        let late = nanos(&shown["ts"]) - event.time.as_nanos();
        assert!(late < made.events.len() as u64, "{shown}");
        count += 1;
    }
    assert!(count > 0);
}
