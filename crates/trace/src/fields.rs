//! The fields of each record, listed once for both codecs.
//!
//! A codec implements [`FieldWriter`], which receives a record's fields in order, and
//! [`FieldReader`], which is called for them in the same order. The head of an event is one call,
//! because the binary codec writes it as a difference from the previous head.

use crate::error::ErrorKind;
use crate::kinds::{build, is_hash, word};
use crate::record::{Choice, Class, End, Header, HostEvent, Label, Mark, Record, Value};
use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::journal::{Event, Field, Subject};
use asx_kernel::time::Time;

/// Writes the fields of records.
pub(crate) trait FieldWriter {
    fn number(&mut self, field: &'static str, value: u64);
    fn hash(&mut self, field: &'static str, value: u64);
    fn maybe(&mut self, field: &'static str, value: Option<u64>);
    fn flag(&mut self, field: &'static str, value: bool);
    fn text(&mut self, field: &'static str, value: &str) -> Result<(), ErrorKind>;
    fn pairs(&mut self, field: &'static str, pairs: &[(String, Value)]) -> Result<(), ErrorKind>;
    fn head(&mut self, event: &Event);
}

/// Reads the fields of records.
pub(crate) trait FieldReader {
    fn number(&mut self, field: &'static str) -> Result<u64, ErrorKind>;
    fn hash(&mut self, field: &'static str) -> Result<u64, ErrorKind>;
    fn maybe(&mut self, field: &'static str) -> Result<Option<u64>, ErrorKind>;
    fn flag(&mut self, field: &'static str) -> Result<bool, ErrorKind>;
    fn text(&mut self, field: &'static str) -> Result<&str, ErrorKind>;
    fn pairs(&mut self, field: &'static str) -> Result<Vec<(String, Value)>, ErrorKind>;
    fn head(&mut self) -> Result<(u64, Time, Subject), ErrorKind>;
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Header,
    /// An event of the kind with this code.
    Event(u64),
    Choice,
    Label,
    Host,
    Mark,
    End,
}

/// A header or a record.
pub(crate) enum Item {
    Header(Header),
    Record(Record),
}

pub(crate) fn write_header(header: &Header, to: &mut impl FieldWriter) -> Result<(), ErrorKind> {
    let Header { contract, program, host, seed, workers, complete, meta } = header;
    to.text("contract", contract)?;
    to.text("program", program)?;
    to.text("host", host)?;
    to.number("seed", *seed);
    to.number("workers", *workers);
    to.flag("complete", *complete);
    let meta: Vec<_> = meta.iter().map(|(k, v)| (k.clone(), Value::Text(v.clone()))).collect();
    to.pairs("meta", &meta)
}

pub(crate) fn write_record(record: &Record, to: &mut impl FieldWriter) -> Result<(), ErrorKind> {
    match record {
        Record::Event(event) => return write_event(event, to),
        Record::Choice(Choice { index, point, subject, count, picked }) => {
            to.number("index", *index);
            to.text("point", point)?;
            to.maybe("subject", *subject);
            to.number("count", *count);
            to.number("picked", *picked);
        }
        Record::Label(Label { class, number, text }) => {
            to.text("class", class.name())?;
            to.number("number", *number);
            to.text("text", text)?;
        }
        Record::Host(HostEvent { seq, kind, fields }) => {
            to.number("seq", *seq);
            to.text("kind", kind)?;
            to.pairs("fields", fields)?;
        }
        Record::Mark(Mark { seq, severity, text }) => {
            to.number("seq", *seq);
            to.text("severity", severity)?;
            to.text("text", text)?;
        }
        Record::End(End { recorded, lost, digest, choices }) => {
            to.number("recorded", *recorded);
            to.number("lost", *lost);
            to.hash("digest", *digest);
            to.number("choices", *choices);
        }
    }
    Ok(())
}

fn write_event(event: &Event, to: &mut impl FieldWriter) -> Result<(), ErrorKind> {
    to.head(event);
    let mut done = Ok(());
    event.kind.visit(|field, value| match value {
        Field::Number(n) if is_hash(field) => to.hash(field, n),
        Field::Number(n) => to.number(field, n),
        Field::Maybe(n) => to.maybe(field, n),
        Field::Flag(b) => to.flag(field, b),
        Field::Word(w) => {
            if let Err(error) = to.text(field, w) {
                done = Err(error);
            }
        }
    });
    done
}

pub(crate) fn read_item(tag: Tag, from: &mut impl FieldReader) -> Result<Item, ErrorKind> {
    let record: Record = match tag {
        Tag::Header => return read_header(from).map(Item::Header),
        Tag::Event(code) => {
            let (seq, time, subject) = from.head()?;
            let unknown = || ErrorKind::UnknownKind { name: alloc::format!("{code}") };
            let kind = build(code, from)?.ok_or_else(unknown)?;
            Event { seq, time, subject, kind }.into()
        }
        Tag::Choice => {
            let index = from.number("index")?;
            let point = from.text("point")?.into();
            let subject = from.maybe("subject")?;
            let count = from.number("count")?;
            let picked = from.number("picked")?;
            Choice { index, point, subject, count, picked }.into()
        }
        Tag::Label => {
            let class = word(from, "class", Class::from_name)?;
            Label { class, number: from.number("number")?, text: from.text("text")?.into() }.into()
        }
        Tag::Host => {
            let seq = from.number("seq")?;
            let kind = from.text("kind")?.into();
            HostEvent { seq, kind, fields: from.pairs("fields")? }.into()
        }
        Tag::Mark => {
            let seq = from.number("seq")?;
            let severity = from.text("severity")?.into();
            Mark { seq, severity, text: from.text("text")?.into() }.into()
        }
        Tag::End => {
            let recorded = from.number("recorded")?;
            let lost = from.number("lost")?;
            let digest = from.hash("digest")?;
            End { recorded, lost, digest, choices: from.number("choices")? }.into()
        }
    };
    Ok(Item::Record(record))
}

fn read_header(from: &mut impl FieldReader) -> Result<Header, ErrorKind> {
    let contract: String = from.text("contract")?.into();
    if contract != asx_kernel::CONTRACT {
        return Err(ErrorKind::Contract { contract });
    }
    let program = from.text("program")?.into();
    let host = from.text("host")?.into();
    let seed = from.number("seed")?;
    let workers = from.number("workers")?;
    let complete = from.flag("complete")?;
    let text = |(name, value)| match value {
        Value::Text(text) => Ok((name, text)),
        _ => Err(ErrorKind::Type { field: name, wanted: "a text" }),
    };
    let meta = from.pairs("meta")?.into_iter().map(text).collect::<Result<_, _>>()?;
    Ok(Header { contract, program, host, seed, workers, complete, meta })
}

/// Refuses duplicate names.
pub(crate) fn distinct(pairs: &[(String, Value)]) -> Result<(), ErrorKind> {
    let twice = |at: &usize| pairs[..*at].iter().any(|(name, _)| *name == pairs[*at].0);
    match (0..pairs.len()).find(twice) {
        Some(at) => Err(ErrorKind::DuplicateField { field: pairs[at].0.clone() }),
        None => Ok(()),
    }
}
