//! The data of the page: columns of small numbers, and tables that the numbers refer to.
//!
//! References to table entries are stored plus one; 0 means none.

use crate::cause::{Cause, TEARDOWN};
use crate::json::Json;
use crate::notes::Note;
use crate::run::Run;
use crate::story::{Interval, Life, LinkKind, Story, Stretch};
use asx_kernel::journal::{Event, EventKind, Field};
use asx_trace::{Class, Value};
use std::collections::BTreeMap;

pub(super) fn data(run: &Run, story: &Story) -> String {
    let mut json = Json::default();
    json.object(|json| {
        write_header(json, run);
        write_verdict(json, run);
        write_failure(json, run);
        write_events(json, run, story);
        write_objects(json, run, story);
        write_between(json, run);
        json.key("polls").list(&story.polls, |json, poll| {
            json.index(poll.from).index(poll.to);
        });
        json.key("links").list(&story.links, |json, link| {
            let kind = match link.kind {
                LinkKind::Message => 0,
                LinkKind::Wake => 1,
                LinkKind::Cancel => 2,
            };
            json.number(kind).index(link.from).index(link.to);
        });
    });
    json.finish()
}

fn write_header(json: &mut Json, run: &Run) {
    let header = &run.header;
    json.key("program").text(&header.program).key("host").text(&header.host);
    // As a text, because JavaScript would round a large seed.
    json.key("seed").text(&header.seed.to_string()).key("workers").number(header.workers);
    json.key("complete").flag(header.complete).key("codec").text(run.codec.name());
    let meta = header.meta.iter().filter(|(name, _)| !Cause::is_part(name));
    json.key("meta").list(meta, |json, (name, value)| {
        json.list([name, value], |json, text| {
            json.text(text);
        });
    });
}

fn write_verdict(json: &mut Json, run: &Run) {
    let verdict = &run.verdict;
    json.key("holds").flag(verdict.holds()).key("digest").hash(verdict.digest);
    json.key("lost").maybe(verdict.end.map(|end| end.lost));
    json.key("ended").flag(verdict.end.is_some());
    json.key("findings").list(&verdict.violations, |json, violation| {
        let place = format!("{} (record {})", violation.place, violation.record);
        json.list([violation.code, &violation.text, &place], |json, text| {
            json.text(text);
        });
    });
}

/// Writes the cause of the failure, and the index of the first teardown event.
fn write_failure(json: &mut Json, run: &Run) {
    let header = &run.header;
    json.key("failure");
    match Cause::of(header) {
        None => drop(json.raw("null")),
        Some(cause) => drop(json.object(|json| {
            let Cause { kind, message, task, place, step, detail, changes, replay, .. } = &cause;
            json.key("kind").text(kind).key("message").text(message);
            for (name, part) in
                [("task", task), ("place", place), ("step", step), ("replay", replay)]
            {
                json.key(name).text(part.as_deref().unwrap_or_default());
            }
            for (name, lines) in [("detail", detail), ("changes", changes)] {
                json.key(name).list(lines, |json, line| {
                    json.text(line);
                });
            }
            // The index of the event of each change, or null if it is unknown.
            json.key("changed").list(&cause.change_events, |json, seq| {
                json.maybe(run.index_of(*seq).map(|at| at as u64));
            });
        })),
    }
    let teardown = header.meta.iter().find(|(name, _)| name == TEARDOWN);
    let first = teardown.and_then(|(_, seq)| run.index_of(seq.parse().ok()?));
    json.key("teardown").maybe(first.map(|first| first as u64));
}

/// Numbers words and kinds in the order of their first use.
#[derive(Default)]
struct Interned {
    places: BTreeMap<&'static str, usize>,
    texts: Vec<&'static str>,
}

impl Interned {
    fn place(&mut self, text: &'static str) -> usize {
        let Interned { places, texts } = self;
        *places.entry(text).or_insert_with(|| {
            texts.push(text);
            texts.len() - 1
        })
    }
}

fn write_events(json: &mut Json, run: &Run, story: &Story) {
    let events = &run.events;
    let mut kinds = Interned::default();
    let mut samples = Vec::new();
    json.key("kind").list(events, |json, event| {
        let place = kinds.place(event.kind.name());
        if place == samples.len() {
            samples.push(event.kind);
        }
        json.index(place);
    });
    json.key("kinds").list(&samples, |json, kind| write_schema(json, *kind));
    // Pairs of index and number, only where a number does not follow the previous one.
    let mut due = None;
    json.key("seq").list(events.iter().enumerate(), |json, (at, event)| {
        if due != Some(event.seq) {
            json.index(at).number(event.seq);
        }
        due = event.seq.checked_add(1);
    });
    // Times are written as differences; a decrease is written as 0.
    let mut now = 0;
    json.key("time").list(events, |json, event| {
        let time = event.time.as_nanos().max(now);
        json.number(time - now);
        now = time;
    });
    json.key("about").list(events, |json, event| write_subject(json, event, story));
    let mut words = Interned::default();
    json.key("fields").list(events, |json, event| {
        event.kind.visit(|name, field| write_field(json, name, field, &mut words));
    });
    json.key("words").list(&words.texts, |json, word| {
        json.text(word);
    });
}

/// Writes the name of a kind, and its fields with a letter for each type.
fn write_schema(json: &mut Json, kind: EventKind) {
    json.list([()], |json, ()| {
        json.text(kind.name());
        kind.visit(|name, field| {
            let letter = match field {
                _ if is_hash(name) => "h",
                Field::Number(_) | Field::Maybe(_) => "n",
                Field::Flag(_) => "f",
                Field::Word(_) => "w",
            };
            json.text(name).text(letter);
        });
    });
}

fn write_field(json: &mut Json, name: &str, field: Field, words: &mut Interned) {
    match field {
        Field::Number(hash) if is_hash(name) => json.hash(hash),
        Field::Number(number) => json.number(number),
        Field::Maybe(number) => json.maybe(number),
        Field::Flag(flag) => json.number(flag.into()),
        Field::Word(word) => json.index(words.place(word)),
    };
}

/// Whether a field is a hash, which is shown in hexadecimal.
fn is_hash(name: &str) -> bool {
    name == "decision_hash"
}

fn write_subject(json: &mut Json, event: &Event, story: &Story) {
    let subject = event.subject;
    for place in [
        subject.task.and_then(|number| story.tasks.find(number)),
        subject.region.and_then(|number| story.regions.find(number)),
        subject.timer.and_then(|number| story.timers.find(number)),
        subject.channel.and_then(|number| story.channels.find(number)),
    ] {
        write_place(json, place);
    }
}

fn write_place(json: &mut Json, place: Option<usize>) {
    json.index(place.map_or(0, |place| place + 1));
}

fn write_objects(json: &mut Json, run: &Run, story: &Story) {
    let label = |json: &mut Json, class, number| {
        json.number(number).text(run.labels.get(&(class, number)).map_or("", |label| label));
    };
    json.key("tasks").list(&story.tasks.items, |json, task| {
        json.list([()], |json, ()| {
            label(json, Class::Task, task.number);
            write_life(json, task);
        });
    });
    json.key("regions").list(&story.regions.items, |json, region| {
        json.list([()], |json, ()| {
            label(json, Class::Region, region.number);
            write_life(json, region);
        });
    });
    json.key("channels").list(&story.channels.items, |json, channel| {
        json.list([()], |json, ()| {
            label(json, Class::Channel, channel.number);
            write_place(json, channel.region);
            json.maybe(channel.capacity).list(&channel.levels, |json, level| {
                json.index(level.at).number(level.queued);
                json.number(level.reserved).number(level.waiting);
            });
        });
    });
    json.key("timers").list(&story.timers.items, |json, timer| {
        json.list([()], |json, ()| {
            label(json, Class::Timer, timer.number);
            write_interval(json, timer);
        });
    });
    json.key("obligations").list(&story.obligations.items, |json, obligation| {
        json.list([()], |json, ()| {
            json.number(obligation.number).text("");
            write_interval(json, obligation);
        });
    });
    json.key("sockets").list(&story.sockets.items, |json, socket| {
        json.list([()], |json, ()| {
            label(json, Class::Socket, socket.number);
            json.list(&socket.spans, |json, span| {
                json.text(span.state).index(span.from).index(span.to);
            });
        });
    });
    json.key("waits").list(&story.waits, |json, wait| {
        json.list([()], |json, ()| {
            label(json, Class::Socket, wait.number);
            write_interval(json, wait);
        });
    });
    for (name, stretches) in [("parked", &story.parked), ("held", &story.holds)] {
        json.key(name).list(stretches, |json, stretch| write_stretch(json, stretch, story));
    }
    json.key("deciders").list(&story.workers, |json, worker| {
        json.number(*worker);
    });
}

fn write_life(json: &mut Json, life: &Life) {
    write_place(json, life.region);
    json.number(life.finalizer.into());
    json.text(life.outcome.map_or("", |outcome| outcome.name()));
    json.list(&life.spans, |json, span| {
        json.text(span.state).index(span.from).index(span.to);
    });
}

fn write_interval(json: &mut Json, interval: &Interval) {
    write_place(json, interval.task);
    write_place(json, interval.region);
    json.index(interval.from);
    match interval.end {
        Some((at, how)) => json.index(at).text(how),
        None => json.raw("null").text(""),
    };
}

fn write_stretch(json: &mut Json, stretch: &Stretch, story: &Story) {
    let Stretch { task, from, to, brief, whole } = stretch;
    json.list([()], |json, ()| {
        write_place(json, story.tasks.find(*task));
        json.index(*from).index(*to).text(brief).text(whole);
    });
}

/// Writes the records between events: each with the index of the event that follows it.
fn write_between(json: &mut Json, run: &Run) {
    json.key("choices").list(&run.choices, |json, (at, choice)| {
        json.list([()], |json, ()| {
            json.index(*at).number(choice.index).text(&choice.point).maybe(choice.subject);
            json.number(choice.count).number(choice.picked);
        });
    });
    // Notes are omitted, because they are shown on the tracks of their tasks.
    let hosts = run.hosts.iter().filter(|(_, host)| Note::of(host).is_none());
    json.key("hosts").list(hosts, |json, (at, host)| {
        json.list([()], |json, ()| {
            json.index(*at).number(host.seq).text(&host.kind);
            for (name, value) in &host.fields {
                json.text(name);
                match value {
                    Value::Null => json.raw("null"),
                    Value::Number(number) => json.number(*number),
                    Value::Flag(flag) => json.flag(*flag),
                    Value::Text(text) => json.text(text),
                };
            }
        });
    });
    json.key("marks").list(&run.marks, |json, mark| {
        json.list([()], |json, ()| {
            json.maybe(run.index_of(mark.seq).map(|at| at as u64));
            json.number(mark.seq).text(&mark.severity).text(&mark.text);
        });
    });
}
