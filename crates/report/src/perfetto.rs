//! Export for trace viewers: the JSON format of Perfetto and of Chrome's tracing page.
//!
//! There are up to five processes: the tasks, each a thread with its polls as slices; the states of
//! tasks, cancel phases included; the regions; the workers; and the sockets, if there are any. The
//! slices of a thread must nest, but states begin and end inside polls, so states have separate
//! threads. An event of a task is a slice with the length of one event, because flow arrows need a
//! slice as their end.

use crate::json::Json;
use crate::run::Run;
use crate::story::{Life, LinkKind, Span, Story};
use asx_kernel::journal::{Event, EventKind};
use asx_trace::{Class, socket_words};
use std::collections::BTreeSet;

/// The meaning of the viewer's time axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Every event takes one microsecond, which shows the order clearly.
    #[default]
    Order,
    /// Logical time; simultaneous events are a nanosecond apart.
    Time,
}

const TASKS: u64 = 1;
const STATES: u64 = 2;
const REGIONS: u64 = 3;
const WORKERS: u64 = 4;
const SOCKETS: u64 = 5;

/// Exports the events of a run for a trace viewer.
pub fn perfetto(run: &Run, axis: Axis) -> String {
    let story = Story::of(run);
    let mut export = Export { run, story: &story, clock: clock(run, axis), entries: Vec::new() };
    export.write_slices();
    export.write_events();
    export.write_links();
    export.finish()
}

/// Returns the start of each event in nanoseconds, strictly increasing, and the end of the last
/// one.
fn clock(run: &Run, axis: Axis) -> Vec<u64> {
    let mut clock = Vec::with_capacity(run.events.len() + 1);
    let mut next: u64 = 0;
    for event in &run.events {
        let time = match axis {
            Axis::Order => next,
            Axis::Time => event.time.as_nanos().max(next),
        };
        clock.push(time);
        next = time.saturating_add(if axis == Axis::Order { 1000 } else { 1 });
    }
    clock.push(next);
    clock
}

struct Export<'a> {
    run: &'a Run,
    story: &'a Story,
    clock: Vec<u64>,
    /// The entries with their sort keys: the time, then long slices before the slices they contain.
    entries: Vec<(u64, u64, String)>,
}

/// The common fields of all entries.
struct Entry<'a> {
    phase: &'static str,
    name: &'a str,
    category: &'a str,
    process: u64,
    thread: u64,
    at: usize,
}

impl Export<'_> {
    fn write_slices(&mut self) {
        let run = self.run;
        let story = self.story;
        for poll in &story.polls {
            let Some(task) = poll.task.and_then(|number| story.tasks.find(number)) else {
                continue;
            };
            let lane = poll.lane.name();
            let range = [poll.from, poll.to];
            self.slice(&format!("poll ({lane})"), "poll", TASKS, task as u64 + 1, range);
            let name = run.name(Class::Task, story.tasks.items[task].number);
            // A worker's poll ends no later than its next decision.
            self.slice(&name, lane, WORKERS, poll.worker.saturating_add(1), [poll.from, poll.to]);
        }
        self.write_lives(&story.tasks.items, STATES, Class::Task);
        self.write_lives(&story.regions.items, REGIONS, Class::Region);
        for (thread, socket) in (1..).zip(&story.sockets.items) {
            self.write_spans(&socket.spans, SOCKETS, thread, Class::Socket);
        }
    }

    fn write_lives(&mut self, lives: &[Life], process: u64, class: Class) {
        for (thread, life) in (1..).zip(lives) {
            self.write_spans(&life.spans, process, thread, class);
        }
    }

    fn write_spans(&mut self, spans: &[Span], process: u64, thread: u64, class: Class) {
        for span in spans.iter().filter(|span| span.from < span.to) {
            self.slice(span.state, class.name(), process, thread, [span.from, span.to]);
        }
    }

    fn write_events(&mut self) {
        for (at, event) in self.run.events.iter().enumerate() {
            let [process, thread] = self.thread_of(event);
            let words = socket_words(&event.kind, |socket| self.run.name(Class::Socket, socket));
            let name = words.as_deref().unwrap_or(event.kind.name());
            let category = category(event.kind);
            let entry = Entry { phase: "i", name, category, process, thread, at };
            match event.kind {
                // These are shown as slices already.
                EventKind::Decision { .. } | EventKind::RegionMoved { .. } => {}
                EventKind::TimerArmed { .. } | EventKind::TimerCancelled {} => {
                    self.instant(entry, event);
                }
                EventKind::TimerFired { .. } => {
                    self.instant(Entry { ..entry }, event);
                    // A slice, so that a flow arrow can begin here.
                    self.short(Entry { name: "wake by timer", ..entry }, event);
                }
                _ => self.short(entry, event),
            }
        }
        for channel in &self.story.channels.items {
            let name = self.run.name(Class::Channel, channel.number);
            for level in &channel.levels {
                let entry = Entry {
                    phase: "C",
                    name: &name,
                    category: "channel",
                    process: TASKS,
                    thread: 0,
                    at: level.at,
                };
                let levels = [("queued", level.queued), ("reserved", level.reserved)];
                self.add(&entry, 0, |json| {
                    json.key("args").object(|json| {
                        levels.iter().for_each(|(name, n)| {
                            json.key(name).number(*n);
                        });
                    });
                });
            }
        }
        for mark in &self.run.marks {
            let Some(at) = self.run.index_of(mark.seq) else { continue };
            let name = format!("{}: {}", mark.severity, mark.text);
            let process = TASKS;
            let thread = 0;
            let entry = Entry { phase: "i", name: &name, category: "mark", process, thread, at };
            self.add(&entry, 0, |json| {
                json.key("s").text("g");
            });
        }
    }

    fn write_links(&mut self) {
        for (id, link) in (1..).zip(&self.story.links) {
            let (name, category) = match link.kind {
                LinkKind::Message => ("message", "message"),
                LinkKind::Wake => ("wake", "wake"),
                LinkKind::Cancel => ("cancel", "cancel"),
            };
            // Threads may record the two ends in reverse order; the viewer requires increasing
            // time.
            if link.from > link.to {
                continue;
            }
            for (phase, at) in [("s", link.from), ("f", link.to)] {
                let event = &self.run.events[at];
                let [process, thread] = self.thread_of(event);
                let entry = Entry { phase, name, category, process, thread, at };
                self.add(&entry, 0, |json| {
                    json.key("id").number(id);
                    if phase == "f" {
                        json.key("bp").text("e");
                    }
                });
            }
        }
    }

    /// Returns the process and thread of an event: its task's, else its region's, else the default.
    fn thread_of(&self, event: &Event) -> [u64; 2] {
        let task = event.subject.task.and_then(|number| self.story.tasks.find(number));
        let region = event.subject.region.and_then(|number| self.story.regions.find(number));
        match (task, region) {
            (Some(task), _) => [TASKS, task as u64 + 1],
            (None, Some(region)) => [REGIONS, region as u64 + 1],
            (None, None) => [TASKS, 0],
        }
    }

    fn slice(&mut self, name: &str, category: &str, process: u64, thread: u64, range: [usize; 2]) {
        let [at, to] = range;
        let entry = Entry { phase: "X", name, category, process, thread, at };
        let length = self.clock[to] - self.clock[at];
        self.add(&entry, length, |json| {
            json.key("dur").raw(&micros(length));
        });
    }

    /// Adds a slice with the length of one event, with the event's fields.
    fn short(&mut self, entry: Entry<'_>, event: &Event) {
        // The next event begins at least a step later, so the slice ends inside its parent.
        let length = 1.max((self.clock[entry.at + 1] - self.clock[entry.at]).min(1000));
        self.add(&Entry { phase: "X", ..entry }, length, |json| {
            json.key("dur").raw(&micros(length));
            write_args(json, event);
        });
    }

    fn instant(&mut self, entry: Entry<'_>, event: &Event) {
        self.add(&entry, 0, |json| {
            json.key("s").text("t");
            write_args(json, event);
        });
    }

    fn add(&mut self, entry: &Entry<'_>, length: u64, more: impl FnOnce(&mut Json)) {
        let time = self.clock[entry.at];
        let mut json = Json::default();
        json.object(|json| {
            json.key("ph").text(entry.phase).key("name").text(entry.name);
            json.key("cat").text(entry.category).key("ts").raw(&micros(time));
            json.key("pid").number(entry.process).key("tid").number(entry.thread);
            more(json);
        });
        self.entries.push((time, u64::MAX - length, json.finish()));
    }

    fn finish(mut self) -> String {
        self.entries.sort_by_key(|(time, order, _)| (*time, *order));
        let header = &self.run.header;
        let mut json = Json::default();
        json.object(|json| {
            json.key("displayTimeUnit").text("ns").key("otherData").object(|json| {
                json.key("program").text(&header.program).key("host").text(&header.host);
                json.key("seed").text(&header.seed.to_string());
                json.key("digest").hash(self.run.verdict.digest);
                json.key("lawful").flag(self.run.verdict.holds());
            });
            let names = self.names();
            let entries = self.entries.iter().map(|(_, _, entry)| entry);
            json.key("traceEvents").list(names.iter().chain(entries), |json, entry| {
                json.raw(entry);
            });
        });
        let mut text = json.finish();
        text.push('\n');
        text
    }

    /// Returns the entries that name the processes and threads.
    fn names(&self) -> Vec<String> {
        let run = self.run;
        let story = self.story;
        let mut names = vec![
            meta("process_name", TASKS, 0, &format!("{}: tasks", run.header.program)),
            meta("thread_name", TASKS, 0, "outside"),
            meta("process_name", STATES, 0, "task states"),
            meta("process_name", REGIONS, 0, "regions"),
            meta("process_name", WORKERS, 0, "workers"),
        ];
        for (thread, task) in (1..).zip(&story.tasks.items) {
            let name = run.name(Class::Task, task.number);
            names.push(meta("thread_name", TASKS, thread, &name));
            names.push(meta("thread_name", STATES, thread, &name));
        }
        for (thread, region) in (1..).zip(&story.regions.items) {
            let name = run.name(Class::Region, region.number);
            names.push(meta("thread_name", REGIONS, thread, &name));
        }
        if !story.sockets.items.is_empty() {
            names.push(meta("process_name", SOCKETS, 0, "sockets"));
        }
        for (thread, socket) in (1..).zip(&story.sockets.items) {
            let name = run.name(Class::Socket, socket.number);
            names.push(meta("thread_name", SOCKETS, thread, &name));
        }
        let workers: BTreeSet<u64> = story.workers.iter().copied().collect();
        for worker in workers {
            let thread = worker.saturating_add(1);
            names.push(meta("thread_name", WORKERS, thread, &format!("worker {worker}")));
        }
        names
    }
}

fn meta(kind: &str, process: u64, thread: u64, name: &str) -> String {
    let mut json = Json::default();
    json.object(|json| {
        json.key("ph").text("M").key("name").text(kind);
        json.key("pid").number(process).key("tid").number(thread);
        json.key("args").object(|json| {
            json.key("name").text(name);
        });
    });
    json.finish()
}

/// Formats nanoseconds as microseconds.
fn micros(nanos: u64) -> String {
    let whole = nanos / 1000;
    let rest = nanos % 1000;
    if rest == 0 { format!("{whole}") } else { format!("{whole}.{rest:03}") }
}

fn category(kind: EventKind) -> &'static str {
    match kind.name().split('_').next() {
        Some("timer") => "timer",
        Some("cancel" | "cleanup") => "cancel",
        Some("obligation" | "unresolved") => "obligation",
        Some("region") => "region",
        Some("task") => "task",
        Some("socket" | "io") => "socket",
        Some("channel" | "send" | "sent" | "senders" | "evicted" | "received" | "receiver") => {
            "channel"
        }
        _ => "other",
    }
}

/// Writes the number, the time and the fields of an event.
fn write_args(json: &mut Json, event: &Event) {
    json.key("args").object(|json| {
        json.key("seq").number(event.seq).key("time").text(&event.time.to_string());
        event.kind.visit(|name, field| {
            json.key(name).text(&field.to_string());
        });
    });
}
