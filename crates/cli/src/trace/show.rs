//! `asx trace show`: a trace for people, or a part of it.

use super::{Done, Failed, Show, file};
use crate::output::printable;
use asx_conformance::parse::suggest;
use asx_kernel::journal::{Event, EventKind};
use asx_trace::{Class, Header, Record, Value, json_line, socket_words};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

pub(super) fn show(options: &Show, out: &mut impl Write) -> Done {
    if let Some(kind) = &options.kind
        && !EventKind::NAMES.iter().any(|name| is_kind(name, kind))
    {
        let near = suggest::nearest(kind, EventKind::NAMES.iter().copied());
        let hint = match near {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; the kinds are {}", EventKind::NAMES.join(", ")),
        };
        return Err(Failed::Input(format!("there is no kind of event `{kind}`{hint}")));
    }
    if let (Some(from), Some(to)) = (options.from, options.to)
        && from > to
    {
        return Err(Failed::Input(format!("--from {from} is after --to {to}")));
    }
    if let Some(task) = options.task {
        check_task(&options.file, task)?;
    }
    let reader = file::open(&options.file)?;
    if !options.json {
        write_header(reader.header(), out)?;
    }
    let mut names = Names::default();
    // The event the next record comes before.
    let mut due = 0;
    let mut is_empty = true;
    for record in reader {
        let record = record.map_err(|error| file::unusable(&options.file, &error))?;
        if let Record::Label(label) = &record {
            names.0.insert((label.class, label.number), label.text.clone());
        }
        if let Record::Event(event) = &record {
            due = event.seq.saturating_add(1);
        }
        if !options.wants(&record, due) {
            continue;
        }
        is_empty = false;
        if options.json {
            let line = json_line(&record).map_err(|error| file::unusable(&options.file, &error))?;
            writeln!(out, "{line}")?;
        } else {
            names.write(&record, out)?;
        }
    }
    if is_empty && options.is_filtered() {
        let path = options.file.display().to_string();
        let last = due.checked_sub(1).map(|last| format!("; its last event is {last}"));
        complain!("asx: {}: no event matches{}", printable(&path), last.unwrap_or_default());
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether `wanted` is the name of a kind of event, or its last words: `decision` for
/// `scheduler_step_decision`.
fn is_kind(name: &str, wanted: &str) -> bool {
    let rest = name.strip_suffix(wanted);
    !wanted.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
}

/// Fails if no event of the trace is about this task, and names the tasks that there are.
fn check_task(path: &Path, task: u64) -> Result<(), Failed> {
    const SHOWN: usize = 20;
    let mut tasks = BTreeMap::new();
    for record in file::open(path)? {
        match record.map_err(|error| file::unusable(path, &error)) {
            Ok(Record::Event(event)) => {
                if let Some(number) = event.subject.task {
                    tasks.entry(number).or_insert_with(String::new);
                }
            }
            Ok(Record::Label(label)) if label.class == Class::Task => {
                tasks.insert(label.number, label.text);
            }
            Ok(_) => {}
            // The part before the damage is shown, if the task is in it.
            Err(_) if tasks.contains_key(&task) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    if tasks.contains_key(&task) {
        return Ok(());
    }
    let name = |(number, name): (&u64, &String)| match &**name {
        "" => number.to_string(),
        name => format!("{number} ({})", printable(name)),
    };
    let known: Vec<_> = tasks.iter().take(SHOWN).map(name).collect();
    let known = match (known.is_empty(), tasks.len().saturating_sub(SHOWN)) {
        (true, _) => "it has no tasks".to_owned(),
        (false, 0) => format!("its tasks are {}", known.join(", ")),
        (false, more) => format!("its tasks are {} and {more} more", known.join(", ")),
    };
    Err(Failed::Input(format!("{}: there is no task {task}; {known}", path.display())))
}

impl Show {
    fn is_filtered(&self) -> bool {
        [self.task, self.from, self.to].iter().any(Option::is_some) || self.kind.is_some()
    }

    fn wants(&self, record: &Record, due: u64) -> bool {
        let about_events = self.task.is_some() || self.kind.is_some();
        let ranged = self.from.is_some() || self.to.is_some();
        let within = |seq: u64| {
            self.from.is_none_or(|from| seq >= from) && self.to.is_none_or(|to| seq <= to)
        };
        match record {
            Record::Event(event) => {
                within(event.seq)
                    && self.task.is_none_or(|task| event.subject.task == Some(task))
                    && self.kind.as_deref().is_none_or(|kind| is_kind(event.kind.name(), kind))
            }
            _ if about_events => false,
            Record::Choice(_) | Record::Host(_) => within(due),
            Record::Mark(mark) => within(mark.seq),
            Record::Label(_) | Record::End(_) => !ranged,
        }
    }
}

fn write_header(header: &Header, out: &mut impl Write) -> io::Result<()> {
    let Header { contract, program, host, seed, workers, complete, meta } = header;
    let program = printable(program);
    let host = printable(host);
    writeln!(out, "{program} on {host}, seed {seed}, workers {workers}, {contract}")?;
    if !complete {
        writeln!(out, "its first events are missing")?;
    }
    meta.iter()
        .try_for_each(|(name, value)| writeln!(out, "{}: {}", printable(name), printable(value)))
}

/// What labels have said so far.
#[derive(Default)]
struct Names(BTreeMap<(Class, u64), String>);

impl Names {
    fn write(&self, record: &Record, out: &mut impl Write) -> io::Result<()> {
        match record {
            Record::Event(event) => self.write_event(event, out),
            Record::Choice(choice) => {
                let subject = choice.subject.map(|of| format!(" of {of}")).unwrap_or_default();
                let point = printable(&choice.point);
                let picked = choice.picked;
                let count = choice.count;
                writeln!(out, "  choice {}: {point}{subject}: {picked} of {count}", choice.index)
            }
            Record::Label(label) => {
                let text = printable(&label.text);
                writeln!(out, "  {} {} is `{text}`", label.class.name(), label.number)
            }
            Record::Host(host) => {
                write!(out, "  host {} {}", host.seq, printable(&host.kind))?;
                for (name, value) in &host.fields {
                    let name = printable(name);
                    match value {
                        Value::Null => write!(out, " {name}=null")?,
                        Value::Number(number) => write!(out, " {name}={number}")?,
                        Value::Flag(flag) => write!(out, " {name}={flag}")?,
                        Value::Text(text) => write!(out, " {name}={}", printable(text))?,
                    }
                }
                writeln!(out)
            }
            Record::Mark(mark) => {
                let severity = printable(&mark.severity);
                let text = printable(&mark.text);
                writeln!(out, "  {severity} at event {}: {text}", mark.seq)
            }
            Record::End(end) => {
                let recorded = end.recorded;
                let lost = end.lost;
                writeln!(out, "{recorded} events, {lost} lost, digest {:016x}", end.digest)
            }
        }
    }

    fn write_event(&self, event: &Event, out: &mut impl Write) -> io::Result<()> {
        if let Some(words) = socket_words(&event.kind, |socket| self.socket(socket)) {
            return self.write_words(event, &words, out);
        }
        let text = event.to_string();
        for (at, word) in text.split(' ').enumerate() {
            let blank = if at == 0 { "" } else { " " };
            match word.split_once('=').and_then(|(key, value)| self.name(key, value)) {
                Some(named) => write!(out, "{blank}{named}")?,
                None => write!(out, "{blank}{word}")?,
            }
        }
        writeln!(out)
    }

    /// An event of a socket: who, and what in words.
    fn write_words(&self, event: &Event, words: &str, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{} {} {}", event.seq, event.time, event.kind.name())?;
        if let Some(task) = event.subject.task {
            let named = self.name("task", &task.to_string());
            write!(out, " {}", named.unwrap_or_else(|| format!("task={task}")))?;
        }
        writeln!(out, ": {words}")
    }

    fn socket(&self, number: u64) -> String {
        let name = self.0.get(&(Class::Socket, number)).filter(|name| !name.is_empty());
        name.map_or_else(|| format!("socket {number}"), |name| printable(name).to_string())
    }

    /// `key=name` where the number has one.
    fn name(&self, key: &str, value: &str) -> Option<String> {
        let class = if key == "parent" { Class::Region } else { Class::from_name(key)? };
        let name = self.0.get(&(class, value.parse().ok()?))?;
        Some(format!("{key}={}", printable(name)))
    }
}
