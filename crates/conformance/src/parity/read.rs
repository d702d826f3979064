//! Reading records back, and refusing those that are not whole.

use super::{CODECS, DELTAS, MANDATORY, OF_HOST_EVENT, OF_LOCKFILE, OF_TOOLCHAIN};
use super::{SCENARIO_SCHEMA, SCHEMA, VERDICTS};
use crate::skip::SkippedLine;
use asx_kernel::CONTRACT;
use asx_kernel::status::Status;
use asx_origin::UNKNOWN;
use asx_trace::SchedulerKind;
use core::fmt::Write as _;
use serde_json::Value;
use std::collections::BTreeMap;

/// Which run: a scenario and a seed.
pub type Which = (String, u64);

/// All that a host did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// The runs.
    pub entries: BTreeMap<Which, Entry>,
    /// The lines they were read from.
    pub lines: Vec<Value>,
}

/// A run, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The host cannot express it, and why.
    Skipped(String),
    /// What it did.
    Done(Run),
}

/// What a host did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The fingerprint of all semantic events, by codec.
    pub digests: BTreeMap<String, String>,
    /// How many there were.
    pub events: u64,
    /// How named tasks have ended, if they have.
    pub outcomes: BTreeMap<String, Option<String>>,
    /// Why it is not quiescent.
    pub not_quiescent: Vec<String>,
    /// The events, a line each, with names.
    pub journal: Vec<String>,
    /// What only the host saw: not compared.
    pub host_events: Vec<Value>,
    /// What the scenario expects and did not get.
    pub failures: Vec<String>,
    /// The lines that were left out.
    pub skipped_lines: Vec<SkippedLine>,
}

impl Run {
    /// Byte offsets of the ops that were left out.
    pub fn skipped_ops(&self) -> Vec<usize> {
        self.skipped_lines.iter().filter_map(|line| line.offset).collect()
    }

    /// The events of a kind that begins like this.
    pub fn of_kind(&self, kind: &str) -> Vec<&str> {
        let is_kind = |line: &&str| line.split(' ').any(|word| word.starts_with(kind));
        self.journal.iter().map(String::as_str).filter(is_kind).collect()
    }

    /// Whether all codecs gave one digest.
    pub fn codecs_agree(&self) -> bool {
        let mut digests = self.digests.values();
        digests.next().is_none_or(|first| digests.all(|other| other == first))
    }

    /// It, for people.
    pub fn log(&self) -> String {
        let mut text = self.journal.iter().fold(String::new(), |text, line| text + line + "\n");
        for (name, outcome) in &self.outcomes {
            let _ = writeln!(text, "outcome {name} {}", outcome.as_deref().unwrap_or("none"));
        }
        for status in &self.not_quiescent {
            let _ = writeln!(text, "not quiescent {status}");
        }
        for event in &self.host_events {
            let _ = writeln!(text, "host only {event}");
        }
        for failure in &self.failures {
            let _ = writeln!(text, "failed {failure}");
        }
        for SkippedLine { line, what, why, .. } in &self.skipped_lines {
            let _ = writeln!(text, "skipped line {line}, {what}: {why}");
        }
        for (codec, digest) in &self.digests {
            let _ = writeln!(text, "digest {digest} of {} events, {codec}", self.events);
        }
        text
    }
}

impl Records {
    /// Reads the lines of a host; an error names the line in `source`.
    pub fn read(text: &str, source: &str, host: &str) -> Result<Records, String> {
        let mut records = Records::default();
        for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let at = |wrong: String| format!("{source}:{}: {wrong}", nth + 1);
            let value = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
            let read = Line(&value).read(host).map_err(at)?;
            records.add(read).map_err(at)?;
            records.lines.push(value);
        }
        for ((scenario, seed), entry) in &records.entries {
            let Entry::Done(run) = entry else { continue };
            let missing = CODECS.iter().find(|(name, _)| !run.digests.contains_key(*name));
            if let Some((codec, _)) = missing {
                let which = format!("`{scenario}` under seed {seed}");
                return Err(format!("{source}: there is nothing of {which} in codec `{codec}`"));
            }
        }
        Ok(records)
    }

    /// Adds what a line says to what others say of the same run.
    fn add(&mut self, (which, codec, entry): (Which, String, Entry)) -> Result<(), String> {
        let twice = |(scenario, seed): &Which| {
            format!("`{scenario}` under seed {seed} in codec `{codec}` is there twice")
        };
        let known = match self.entries.get_mut(&which) {
            None => {
                self.entries.insert(which, entry);
                return Ok(());
            }
            Some(known) => known,
        };
        match (known, entry) {
            (Entry::Skipped(known), Entry::Skipped(why)) if *known == why => Ok(()),
            (Entry::Done(known), Entry::Done(mut run)) => {
                if known.digests.contains_key(&codec) {
                    return Err(twice(&which));
                }
                known.digests.append(&mut run.digests);
                run.digests.clone_from(&known.digests);
                match *known == run {
                    true => Ok(()),
                    false => Err("but for the digest, codecs do not tell the same".into()),
                }
            }
            _ => Err("but for the digest, codecs do not tell the same".into()),
        }
    }
}

/// One line, with ways to ask for its fields.
struct Line<'a>(&'a Value);

impl Line<'_> {
    fn read(&self, host: &str) -> Result<(Which, String, Entry), String> {
        let object = self.0.as_object().ok_or("not an object")?;
        if let Some(field) = MANDATORY.iter().find(|field| !object.contains_key(**field)) {
            return Err(missing(field));
        }
        if self.number("schema")? != SCHEMA {
            return Err(self.wrong("schema", "one that is known here"));
        }
        let contract = self.text("contract")?;
        if contract != CONTRACT {
            let code = Status::TraceVersion.name();
            let what =
                format!("it is of the contract `{contract}`, and this build has `{CONTRACT}`");
            return Err(format!("{code}: {what}"));
        }
        self.hex("snapshot", self.field("snapshot"), &[16])?;
        if self.text("host")? != host {
            return Err(self.wrong("host", &format!("`{host}`")));
        }
        self.origin()?;
        for schema in ["fixture_schema", "scenario_schema"] {
            if self.number(schema)? != SCENARIO_SCHEMA {
                return Err(self.wrong(schema, "one that is known here"));
            }
        }
        let codecs = CODECS.map(|(name, _)| name);
        self.one_of("verdict", &VERDICTS)?;
        self.one_of("delta", &DELTAS)?;
        let codec = self.one_of("codec", &codecs)?.to_owned();
        for field in ["fixture", "place", "build"] {
            self.said(field)?;
        }
        if !self.field("profile").is_null() {
            self.said("profile")?;
        }
        let which = (self.said("scenario")?.to_owned(), self.number("seed")?);
        let entry = match self.field("skipped") {
            Value::String(why) => Entry::Skipped(why.clone()),
            Value::Null => Entry::Done(self.run(&codec)?),
            _ => return Err(self.wrong("skipped", "a text or null")),
        };
        Ok((which, codec, entry))
    }

    fn run(&self, codec: &str) -> Result<Run, String> {
        self.said("repro")?;
        let digest = self.hex("digest", self.field("digest"), &[16])?;
        let outcomes = serde_json::from_value(self.field("outcomes").clone());
        let host_events = self.field("host_events").as_array();
        let host_events = host_events.ok_or_else(|| self.wrong("host_events", "a list"))?.clone();
        host_events.iter().try_for_each(host_event)?;
        Ok(Run {
            digests: BTreeMap::from([(codec.to_owned(), digest.to_owned())]),
            events: self.number("events")?,
            outcomes: outcomes.map_err(|_| self.wrong("outcomes", "texts by name"))?,
            not_quiescent: self.texts("not_quiescent")?,
            journal: self.texts("journal")?,
            host_events,
            failures: self.texts("failures")?,
            skipped_lines: self.skipped_lines()?,
        })
    }

    fn skipped_lines(&self) -> Result<Vec<SkippedLine>, String> {
        let wrong = || self.wrong("skipped_lines", "a list of lines");
        let read = |line: &Value| {
            let offset = match &line["offset"] {
                Value::Null => None,
                offset => Some(usize::try_from(offset.as_u64()?).ok()?),
            };
            Some(SkippedLine {
                line: usize::try_from(line["line"].as_u64()?).ok()?,
                offset,
                what: line["what"].as_str()?.to_owned(),
                why: line["why"].as_str()?.to_owned(),
            })
        };
        let lines = self.field("skipped_lines").as_array().ok_or_else(wrong)?;
        lines.iter().map(|line| read(line).ok_or_else(wrong)).collect()
    }

    /// Whether compiler, commit and lockfile are told. Only a commit may be unknown: that of a
    /// compiler that does not tell, and that of sources outside a repository.
    fn origin(&self) -> Result<(), String> {
        for (of, fields) in [("toolchain", &OF_TOOLCHAIN), ("lockfile", &OF_LOCKFILE)] {
            if let Some(field) = fields.iter().find(|field| self.field(of).get(**field).is_none()) {
                return Err(missing(&format!("{of}.{field}")));
            }
        }
        let toolchain = self.field("toolchain");
        let lockfile = self.field("lockfile");
        for (name, value) in [("toolchain.commit_hash", &toolchain["commit_hash"])]
            .into_iter()
            .chain([("source_commit", self.field("source_commit"))])
        {
            if value != UNKNOWN {
                self.hex(name, value, &[40, 64])?;
            }
        }
        for (name, value) in [
            ("toolchain.release", &toolchain["release"]),
            ("toolchain.host", &toolchain["host"]),
            ("target", self.field("target")),
        ] {
            if value.as_str().is_none_or(|text| text.is_empty() || text == UNKNOWN) {
                return Err(not(name, "known", value));
            }
        }
        self.hex("lockfile.sha256", &lockfile["sha256"], &[64])?;
        if lockfile["size"].as_u64().is_none_or(|size| size == 0) {
            return Err(not("lockfile.size", "a size", &lockfile["size"]));
        }
        match lockfile["tracked"].is_boolean() {
            true => Ok(()),
            false => Err(not("lockfile.tracked", "true or false", &lockfile["tracked"])),
        }
    }

    fn field(&self, name: &str) -> &Value {
        &self.0[name]
    }

    fn wrong(&self, name: &str, wanted: &str) -> String {
        not(name, wanted, self.field(name))
    }

    fn text(&self, name: &str) -> Result<&str, String> {
        self.field(name).as_str().ok_or_else(|| self.wrong(name, "a text"))
    }

    /// A text that is not empty.
    fn said(&self, name: &str) -> Result<&str, String> {
        let text = self.text(name)?;
        if text.is_empty() { Err(self.wrong(name, "told")) } else { Ok(text) }
    }

    fn one_of(&self, name: &str, known: &[&str]) -> Result<&str, String> {
        let text = self.text(name)?;
        let wanted = || format!("one of {}", known.join(", "));
        if known.contains(&text) { Ok(text) } else { Err(self.wrong(name, &wanted())) }
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        self.field(name).as_u64().ok_or_else(|| self.wrong(name, "a whole number"))
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, String> {
        let items = self.field(name).as_array();
        let items =
            items.and_then(|all| all.iter().map(|it| it.as_str().map(str::to_owned)).collect());
        items.ok_or_else(|| self.wrong(name, "a list of texts"))
    }

    fn hex<'v>(&self, name: &str, value: &'v Value, lengths: &[usize]) -> Result<&'v str, String> {
        let is_hex = |text: &&str| {
            lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let wanted = || format!("{} hexadecimal digits", lengths[0]);
        value.as_str().filter(is_hex).ok_or_else(|| not(name, &wanted(), value))
    }
}

fn missing(field: &str) -> String {
    format!("the mandatory field `{field}` is missing")
}

fn not(name: &str, wanted: &str, value: &Value) -> String {
    format!("`{name}`: not {wanted}: {value}")
}

/// Whether an event of a host is whole.
fn host_event(event: &Value) -> Result<(), String> {
    let kind = event["kind"].as_str().ok_or("`host_events`: one has no kind")?;
    if !kind.starts_with("scheduler_") {
        return Ok(());
    }
    if SchedulerKind::from_name(kind).is_none() {
        return Err(format!("`host_events`: there is no kind `{kind}`"));
    }
    match OF_HOST_EVENT.iter().find(|field| event["fields"].get(**field).is_none()) {
        Some(field) => Err(format!("`{kind}`: {}", missing(field))),
        None => Ok(()),
    }
}
