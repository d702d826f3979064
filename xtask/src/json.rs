//! Just enough JSON to check what our own programs print.

use crate::Result;
use std::collections::BTreeMap;

/// A JSON value; numbers as `f64`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(f64),
    /// A string, escapes resolved.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object; of equal keys the last one counts.
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Parses a whole text.
    pub(crate) fn parse(text: &str) -> Result<Json> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value()?;
        reader.blanks();
        if reader.at == text.len() { Ok(value) } else { Err(reader.error("text after the value")) }
    }

    /// A member of an object.
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// How many elements an array has.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Json::Array(elements) => Some(elements.len()),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Json::Number(n) if *n >= 0.0 && n.fract() == 0.0 => Some(*n as u64),
            _ => None,
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Json> {
        self.blanks();
        match self.peek() {
            Some('{') => self.object(),
            Some('[') => self.array(),
            Some('"') => self.string().map(Json::String),
            Some('n') => self.word("null", Json::Null),
            Some('t') => self.word("true", Json::Bool(true)),
            Some('f') => self.word("false", Json::Bool(false)),
            _ => self.number(),
        }
    }

    fn object(&mut self) -> Result<Json> {
        let mut members = BTreeMap::new();
        self.list('{', '}', |reader| {
            reader.blanks();
            let key = reader.string()?;
            reader.expect(':')?;
            members.insert(key, reader.value()?);
            Ok(())
        })?;
        Ok(Json::Object(members))
    }

    fn array(&mut self) -> Result<Json> {
        let mut items = Vec::new();
        self.list('[', ']', |reader| {
            items.push(reader.value()?);
            Ok(())
        })?;
        Ok(Json::Array(items))
    }

    fn list(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result,
    ) -> Result {
        self.expect(open)?;
        self.blanks();
        if self.take(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            self.blanks();
            if self.take(close) {
                return Ok(());
            }
            self.expect(',')?;
        }
    }

    fn string(&mut self) -> Result<String> {
        self.expect('"')?;
        let mut value = String::new();
        loop {
            match self.next() {
                Some('"') => return Ok(value),
                Some('\\') => value.push(self.escape()?),
                Some(c) if c >= ' ' => value.push(c),
                _ => return Err(self.error("unfinished string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        Ok(match self.next() {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let digits = self.text.get(self.at..self.at + 4);
                let code = digits.and_then(|hex| u32::from_str_radix(hex, 16).ok());
                self.at += 4;
                // Halves of a surrogate pair are not told apart: our programs print none.
                code.map(|code| char::from_u32(code).unwrap_or('\u{FFFD}'))
                    .ok_or_else(|| self.error("bad \\u escape"))?
            }
            _ => return Err(self.error("bad escape")),
        })
    }

    fn number(&mut self) -> Result<Json> {
        let rest = &self.text[self.at..];
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
        let length = rest.find(|c| !is_number(c)).unwrap_or(rest.len());
        let number = rest[..length].parse().map_err(|_| self.error("a value was expected"))?;
        self.at += length;
        Ok(Json::Number(number))
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("a value was expected"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn expect(&mut self, wanted: char) -> Result {
        self.blanks();
        if self.take(wanted) { Ok(()) } else { Err(self.error(&format!("`{wanted}` expected"))) }
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn error(&self, what: &str) -> String {
        format!("JSON, byte {}: {what}", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_kind_are_read() {
        let value = Json::parse(r#" {"a": [1, -2.5e1, true, null], "b": "x\n\u0041", "c": {}} "#);
        let value = value.unwrap();
        let items = [Json::Number(1.0), Json::Number(-25.0), Json::Bool(true), Json::Null];
        assert_eq!(value.get("a"), Some(&Json::Array(items.to_vec())));
        assert_eq!(value.get("b"), Some(&Json::String(String::from("x\nA"))));
        assert_eq!(value.get("c").and_then(|c| c.get("d")), None);
        assert_eq!(Json::Number(3.0).count(), Some(3));
        assert_eq!((Json::Number(0.5).count(), Json::Number(-1.0).count()), (None, None));
    }

    #[test]
    fn broken_text_is_refused() {
        for bad in ["", "{", "[1,]", "[1 2]", "{\"a\" 1}", "\"x", "1 1", "nul", "\"\\u00\"", "+-"] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
    }
}
