//! A value of a scenario file as serde reads it.
//!
//! Numbers, durations and words are written in more than one way, keys that nobody asks for are
//! errors that do not end the reading, and every error knows its line and key: so values are not
//! deserialized by `toml` but by [`Node`].

use super::reading::Reading;
use super::span::span;
use super::suggest;
use core::fmt;
use core::time::Duration;
use serde::de::value::{SeqDeserializer, StrDeserializer, U64Deserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, VariantAccess,
    Visitor,
};
use std::vec::IntoIter;
use toml::de::{DeTable, DeValue};

/// A field and its keys.
type Group = (&'static str, &'static [&'static str]);

/// Keys that stand in the table of an op and are read as one field of it.
const GROUPS: &[Group] = &[
    ("when", &["after", "for", "by", "within", "at", "until", "to"]),
    ("limits", &["deadline", "within", "polls", "cost", "priority"]),
];

/// Tables for which a word may stand: it is the value of their first key.
const IN_SHORT: &[&str] = &["an outcome", "a reason", "a budget"];

/// The name of a newtype whose value may be `"none"`.
pub(super) const OR_NONE: &str = "or none";

/// What is wrong with a value.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The line and the key, once known.
    at: Option<(usize, String)>,
    text: String,
    /// The key that is missing, if that is what is wrong.
    missing: Option<&'static str>,
}

impl Wrong {
    /// Says where, unless it is known.
    fn or_at(mut self, node: &Node<'_>) -> Wrong {
        self.at.get_or_insert_with(|| (node.line, node.key.to_owned()));
        self
    }

    /// Says which table lacks something, if one does.
    fn of_table(mut self, what: &str, line: usize) -> Wrong {
        if let Some(key) = self.missing.take() {
            self.at = Some((line, key.to_owned()));
            self.text = format!("{what} needs the key `{key}`");
        } else if self.text.starts_with("needs ") {
            self.text = format!("{what} {}", self.text);
        }
        self
    }

    /// The line, the key and what is wrong.
    pub(super) fn into_parts(self, node: &Node<'_>) -> (usize, String, String) {
        let Wrong { at, text, .. } = self.or_at(node);
        let (line, key) = at.unwrap_or_default();
        (line, key, text)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl core::error::Error for Wrong {}

impl Error for Wrong {
    fn custom<T: fmt::Display>(text: T) -> Wrong {
        Wrong { at: None, text: text.to_string(), missing: None }
    }

    fn missing_field(field: &'static str) -> Wrong {
        Wrong {
            missing: Some(field),
            ..Wrong::custom(format_args!("the key `{field}` is missing"))
        }
    }
}

/// A value, where it stands and who reads it.
#[derive(Clone, Copy)]
pub(crate) struct Node<'r> {
    pub(super) reading: &'r Reading,
    pub(super) value: &'r DeValue<'r>,
    pub(super) line: usize,
    pub(super) key: &'r str,
    /// Keys of the table that are read elsewhere.
    pub(super) aside: &'r [&'r str],
    /// Whether all other keys are.
    pub(super) lenient: bool,
}

impl<'r> Node<'r> {
    pub(super) fn new(
        reading: &'r Reading,
        value: &'r DeValue<'r>,
        line: usize,
        key: &'r str,
    ) -> Node<'r> {
        Node { reading, value, line, key, aside: &[], lenient: false }
    }

    /// The value under a key of a table.
    pub(super) fn of_key(
        reading: &'r Reading,
        table: &'r DeTable<'r>,
        key: &str,
    ) -> Option<Node<'r>> {
        let (name, value) = table.get_key_value(key)?;
        let line = reading.line(name.span());
        Some(Node::new(reading, value.get_ref(), line, name.get_ref()))
    }

    /// The same table, of which other keys are read elsewhere.
    pub(super) fn lenient(self) -> Node<'r> {
        Node { lenient: true, ..self }
    }

    /// Something else was expected.
    pub(super) fn wrong(&self, expected: &str) -> Wrong {
        let text = format!("expected {expected}, not {}", self.shown());
        Wrong::custom(text).or_at(self)
    }

    /// The value, for people.
    fn shown(&self) -> String {
        match self.value {
            DeValue::String(text) if text.chars().count() <= 40 => format!("\"{text}\""),
            DeValue::String(_) => "a long string".to_owned(),
            DeValue::Integer(n) => n.to_string(),
            DeValue::Float(n) => n.to_string(),
            DeValue::Boolean(b) => b.to_string(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    fn text(&self) -> Option<&'r str> {
        match self.value {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number of at most so much; `"max"` and `"max-1"` count from 2^64 - 1.
    fn number(&self, most: u64) -> Result<u64, Wrong> {
        let read = match self.value {
            DeValue::Integer(int) => u64::from_str_radix(int.as_str(), int.radix()).ok(),
            DeValue::String(text) => match text.strip_prefix("max") {
                Some("") => Some(u64::MAX),
                Some(less) => less
                    .strip_prefix('-')
                    .and_then(|less| less.trim().parse().ok())
                    .and_then(|less| u64::MAX.checked_sub(less)),
                None => text.trim().parse().ok(),
            },
            _ => None,
        };
        read.filter(|number| *number <= most).ok_or_else(|| match most {
            u64::MAX => self.wrong(&format!("a number from 0 to {most}, or \"max\"")),
            _ => self.wrong(&format!("a number from 0 to {most}")),
        })
    }

    fn duration(&self) -> Result<Duration, Wrong> {
        match self.value {
            DeValue::String(text) => match span(text) {
                Ok(nanos) => Ok(Duration::from_nanos(nanos)),
                Err(expected) => Err(Wrong::custom(format!("expected {expected}")).or_at(self)),
            },
            DeValue::Integer(_) => self.number(u64::MAX).map(Duration::from_nanos),
            _ => Err(self.wrong("a duration such as \"10ms\"")),
        }
    }

    /// Reads the table: those keys that are fields, and complains about the others.
    fn visit_fields<'de, V: Visitor<'de>>(
        self,
        what: &str,
        fields: &'static [&'static str],
        groups: &'static [Group],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let DeValue::Table(table) = self.value else { return Err(self.wrong("a table")) };
        let mut entries = Vec::new();
        let groups = groups.iter().filter(|(group, _)| fields.contains(group));
        for (group, keys) in groups.clone() {
            entries.push((*group, Node { key: keys[0], ..self.lenient() }));
        }
        for (name, value) in table {
            let key = name.get_ref().as_ref();
            let line = self.reading.line(name.span());
            let in_group = groups.clone().any(|(_, keys)| keys.contains(&key));
            if fields.contains(&key) {
                entries.push((key, Node::new(self.reading, value.get_ref(), line, key)));
            } else if !self.lenient && !self.aside.contains(&key) && !in_group {
                let near = suggest::near(key, fields.iter().chain(self.aside).copied());
                self.reading.error(line, key, format!("{what} has no such key{near}"));
            }
        }
        let entries = Fields { entries: entries.into_iter(), value: None };
        visitor.visit_map(entries).map_err(|wrong| wrong.of_table(what, self.line))
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            DeValue::Integer(_) => self.deserialize_i64(visitor),
            DeValue::Boolean(_) => self.deserialize_bool(visitor),
            DeValue::Array(_) => self.deserialize_seq(visitor),
            _ => self.deserialize_str(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match self.value {
            DeValue::Boolean(flag) => visitor.visit_bool(*flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let DeValue::Integer(int) = self.value else { return Err(self.wrong("an integer")) };
        match i64::from_str_radix(int.as_str(), int.radix()) {
            Ok(number) => visitor.visit_i64(number),
            Err(_) => Err(self.wrong("an integer of 64 bits")),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u64(self.number(u8::MAX.into())?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u64(self.number(u32::MAX.into())?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_u64(self.number(u64::MAX)?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let text = self.text().ok_or_else(|| self.wrong("a string"))?;
        visitor.visit_str(text).map_err(|wrong: Wrong| wrong.or_at(&self))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        match self.text() {
            Some("none") if name == OR_NONE => visitor.visit_none(),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let DeValue::Array(items) = self.value else { return Err(self.wrong("a list")) };
        let items = items.iter().map(|item| Node { value: item.get_ref(), ..self });
        let wrong = visitor.visit_seq(SeqDeserializer::new(items));
        wrong.map_err(|wrong: Wrong| wrong.or_at(&self))
    }

    /// A table, or a word for one.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        if name == "Duration" {
            let span = self.duration()?;
            let parts = [span.as_secs(), u64::from(span.subsec_nanos())];
            let parts = parts.into_iter().map(U64Deserializer::<Wrong>::new);
            return visitor.visit_seq(SeqDeserializer::new(parts));
        }
        match (self.text(), fields) {
            (Some(_), [first, ..]) if IN_SHORT.contains(&name) => {
                let entries = Fields { entries: vec![(*first, self)].into_iter(), value: None };
                visitor.visit_map(entries).map_err(|wrong| wrong.or_at(&self))
            }
            _ => self.visit_fields(name, fields, &[], visitor),
        }
    }

    /// One of some words, whatever their case.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let variant = self.one_of(variants)?;
        visitor.visit_enum(StrDeserializer::new(variant))
    }

    serde::forward_to_deserialize_any! {
        u16 i8 i16 i32 f32 f64 char bytes byte_buf map unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

impl Node<'_> {
    /// Which of these words it is, whatever the case.
    pub(super) fn one_of<'w>(&self, words: &[&'w str]) -> Result<&'w str, Wrong> {
        let expected = format!("one of {}", words.join(", "));
        let Some(text) = self.text() else { return Err(self.wrong(&expected)) };
        let found = words.iter().find(|word| word.eq_ignore_ascii_case(text));
        found.copied().ok_or_else(|| {
            let near = suggest::near(text, words.iter().copied());
            Wrong { text: self.wrong(&expected).text + &near, ..self.wrong(&expected) }
        })
    }
}

impl<'de> IntoDeserializer<'de, Wrong> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The fields of a table, one after another.
struct Fields<'r> {
    entries: IntoIter<(&'r str, Node<'r>)>,
    value: Option<Node<'r>>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(StrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Wrong> {
        match self.value.take() {
            Some(node) => seed.deserialize(node).map_err(|wrong| wrong.or_at(&node)),
            None => Err(Wrong::custom("a key without a value")),
        }
    }
}

/// A table as the variant of an enum: an op, by its name.
pub(super) struct Tagged<'r> {
    pub(super) variant: &'r str,
    /// What the table is, for messages.
    pub(super) what: &'r str,
    pub(super) node: Node<'r>,
}

impl<'de> Deserializer<'de> for Tagged<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Tagged<'_> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Wrong> {
        let variant = seed.deserialize(StrDeserializer::<Wrong>::new(self.variant))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Tagged<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        if !self.node.lenient {
            self.node.visit_fields(self.what, &[], &[], serde::de::IgnoredAny)?;
        }
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Wrong> {
        seed.deserialize(self.node)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(self.node.wrong("a table"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        self.node.visit_fields(self.what, fields, GROUPS, visitor)
    }
}
