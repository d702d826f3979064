//! The reader of JSON lines.

use super::parse::{Member, Members, Span, Token};
use crate::error::{ErrorKind, Place};
use crate::fields::{FieldReader, Item, Tag, read_item};
use crate::input::{Input, Source};
use crate::kinds::kind_code;
use crate::limits::Limits;
use crate::record::{VERSION, Value};
use alloc::string::String;
use alloc::vec::Vec;
use asx_kernel::journal::Subject;
use asx_kernel::time::Time;

/// Parses lines into records.
#[derive(Debug)]
pub(crate) struct JsonReader<S> {
    input: Input<S>,
    limits: Limits,
    line: Vec<u8>,
    members: Members,
    /// The number of lines begun.
    lines: u64,
    /// The current byte in the line.
    at: usize,
}

impl<S: Source> JsonReader<S> {
    pub(crate) fn new(input: Input<S>, limits: Limits) -> JsonReader<S> {
        let line = Vec::new();
        let members = Members::default();
        JsonReader { input, limits, line, members, lines: 0, at: 0 }
    }

    /// Returns the position of the last record or error.
    pub(crate) fn place(&self) -> Place {
        Place::Line { line: self.lines, column: self.at as u64 + 1 }
    }

    /// Reads the next item.
    pub(crate) fn next(&mut self) -> Result<Item, ErrorKind> {
        self.line.clear();
        self.lines += 1;
        self.at = 0;
        if !self.input.line(self.limits.line, &mut self.line)? {
            self.at = self.line.len();
            return Err(ErrorKind::Truncated);
        }
        let split = self.members.split(&mut self.line, &self.limits);
        if let Err(error) = split {
            self.at = self.members.at;
            return Err(error);
        }
        let mut line = Line::new(&self.line, &self.members);
        let item = line.item();
        self.at = if item.is_ok() { 0 } else { line.at };
        item
    }

    /// Checks that the input is at its end.
    pub(crate) fn finish(&mut self) -> Result<(), ErrorKind> {
        self.lines += 1;
        self.at = 0;
        if self.input.is_at_end()? { Ok(()) } else { Err(ErrorKind::AfterEnd) }
    }
}

/// The members of a line, taken one by one by name.
struct Line<'a> {
    text: &'a [u8],
    members: &'a Members,
    /// One bit for each member that was taken.
    taken: u32,
    /// The expected index of the next member.
    next: usize,
    /// The current byte.
    at: usize,
}

impl<'a> Line<'a> {
    fn new(text: &'a [u8], members: &'a Members) -> Line<'a> {
        Line { text, members, taken: 0, next: 0, at: 0 }
    }

    fn item(&mut self) -> Result<Item, ErrorKind> {
        let tag = match self.word("record")? {
            "header" => {
                let version = self.number("version")?;
                if version != VERSION {
                    return Err(ErrorKind::Version { version });
                }
                Tag::Header
            }
            "event" => {
                let name = self.word("event")?;
                let unknown = || ErrorKind::UnknownKind { name: name.into() };
                Tag::Event(kind_code(name).ok_or_else(unknown)?)
            }
            "choice" => Tag::Choice,
            "label" => Tag::Label,
            "host" => Tag::Host,
            "mark" => Tag::Mark,
            "end" => Tag::End,
            name => return Err(ErrorKind::UnknownRecord { name: name.into() }),
        };
        let item = read_item(tag, self)?;
        self.ensure_all_taken()?;
        Ok(item)
    }

    /// Takes the value of a field.
    fn take(&mut self, field: &'static str) -> Result<Token, ErrorKind> {
        let outer = &self.members.outer;
        let is = |member: &Member| member.key.of(self.text) == field.as_bytes();
        let index = match outer.get(self.next) {
            Some(member) if is(member) => self.next,
            _ => {
                let found = outer.iter().position(is);
                self.at = if found.is_none() { 0 } else { self.at };
                found.ok_or(ErrorKind::MissingField { field })?
            }
        };
        self.taken |= 1 << index;
        self.next = index + 1;
        self.at = outer[index].at;
        Ok(outer[index].value)
    }

    fn ensure_all_taken(&mut self) -> Result<(), ErrorKind> {
        let outer = &self.members.outer;
        let Some(index) = (0..outer.len()).find(|index| self.taken >> index & 1 == 0) else {
            return Ok(());
        };
        let key = outer[index].key.of(self.text);
        let twice = outer.iter().filter(|member| member.key.of(self.text) == key).count() > 1;
        self.at = outer[index].at;
        let field = String::from_utf8_lossy(key).into_owned();
        Err(if twice {
            ErrorKind::DuplicateField { field }
        } else {
            ErrorKind::UnknownField { field }
        })
    }

    fn word(&mut self, field: &'static str) -> Result<&'a str, ErrorKind> {
        match self.take(field)? {
            Token::Text(span) => self.str(span),
            _ => mistyped(field, "a text"),
        }
    }

    fn str(&self, span: Span) -> Result<&'a str, ErrorKind> {
        core::str::from_utf8(span.of(self.text)).map_err(|_| ErrorKind::Utf8)
    }
}

fn mistyped<T>(field: &str, wanted: &'static str) -> Result<T, ErrorKind> {
    Err(ErrorKind::Type { field: field.into(), wanted })
}

impl FieldReader for Line<'_> {
    fn number(&mut self, field: &'static str) -> Result<u64, ErrorKind> {
        match self.take(field)? {
            Token::Number(value) => Ok(value),
            _ => mistyped(field, "a number"),
        }
    }

    fn hash(&mut self, field: &'static str) -> Result<u64, ErrorKind> {
        let digits = match self.take(field)? {
            Token::Text(span) => span.of(self.text),
            _ => &[],
        };
        let value = |value: Option<u64>, byte: &u8| {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            Some(value? << 4 | u64::from(digit))
        };
        match digits.iter().fold(Some(0), value).filter(|_| digits.len() == 16) {
            Some(value) => Ok(value),
            None => mistyped(field, "16 hex digits"),
        }
    }

    fn maybe(&mut self, field: &'static str) -> Result<Option<u64>, ErrorKind> {
        match self.take(field)? {
            Token::Number(value) => Ok(Some(value)),
            Token::Null => Ok(None),
            _ => mistyped(field, "a number or null"),
        }
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, ErrorKind> {
        match self.take(field)? {
            Token::Flag(value) => Ok(value),
            _ => mistyped(field, "true or false"),
        }
    }

    fn text(&mut self, field: &'static str) -> Result<&str, ErrorKind> {
        self.word(field)
    }

    fn pairs(&mut self, field: &'static str) -> Result<Vec<(String, Value)>, ErrorKind> {
        let Token::Object { first, last } = self.take(field)? else {
            return mistyped(field, "an object");
        };
        let mut pairs = Vec::with_capacity(last - first);
        for member in &self.members.inner[first..last] {
            self.at = member.at;
            let value = match member.value {
                Token::Null => Value::Null,
                Token::Flag(flag) => Value::Flag(flag),
                Token::Number(number) => Value::Number(number),
                Token::Text(span) => Value::Text(self.str(span)?.into()),
                Token::Object { .. } => return mistyped(field, "flat"),
            };
            pairs.push((self.str(member.key)?.into(), value));
        }
        crate::fields::distinct(&pairs)?;
        Ok(pairs)
    }

    fn head(&mut self) -> Result<(u64, Time, Subject), ErrorKind> {
        let seq = self.number("seq")?;
        let time = Time::from_nanos(self.number("time")?);
        // Skip the event's name, which was read to determine the kind.
        self.next += 1;
        let task = self.maybe("task")?;
        let region = self.maybe("region")?;
        let timer = self.maybe("timer")?;
        let channel = self.maybe("channel")?;
        Ok((seq, time, Subject { task, region, timer, channel }))
    }
}
