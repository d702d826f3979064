//! Splits a line into its members, without recursion and without a copy. Texts are unescaped in
//! place, which works because no escape sequence is shorter than the character it encodes.

use crate::error::ErrorKind;
use crate::limits::Limits;
use alloc::vec::Vec;

/// More fields than any record has.
const MEMBERS: usize = 32;

/// A text in the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: usize,
    end: usize,
}

impl Span {
    pub(super) fn of(self, line: &[u8]) -> &[u8] {
        &line[self.start..self.end]
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    Null,
    Flag(bool),
    Number(u64),
    Text(Span),
    /// A range of the inner members.
    Object {
        first: usize,
        last: usize,
    },
}

/// A name and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) key: Span,
    pub(super) value: Token,
    /// The position of the name in the line.
    pub(super) at: usize,
}

/// The members of a line.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) outer: Vec<Member>,
    /// The members of nested objects.
    pub(super) inner: Vec<Member>,
    /// The position up to which the line was parsed.
    pub(super) at: usize,
}

impl Members {
    /// Parses a line.
    pub(super) fn split(&mut self, line: &mut [u8], limits: &Limits) -> Result<(), ErrorKind> {
        self.outer.clear();
        self.inner.clear();
        let mut scan = Scan { line, at: 0, limits };
        let done = self.object(&mut scan, false).and_then(|()| {
            scan.blanks();
            scan.ensure(scan.at == scan.line.len(), "the end of the line")
        });
        self.at = scan.at;
        done
    }

    /// Parses an object. Nested objects contain no further objects.
    fn object(&mut self, scan: &mut Scan<'_>, nested: bool) -> Result<(), ErrorKind> {
        let (what, max) = match nested {
            true => ("number of pairs", self.inner.len() + scan.limits.pairs),
            false => ("number of fields", MEMBERS),
        };
        scan.symbol(b'{', "`{`")?;
        scan.blanks();
        if scan.skip(b'}') {
            return Ok(());
        }
        loop {
            scan.blanks();
            let at = scan.at;
            let key = scan.text()?;
            scan.symbol(b':', "`:`")?;
            scan.blanks();
            let value = match scan.peek() {
                Some(b'{') if !nested => {
                    let first = self.inner.len();
                    self.object(scan, true)?;
                    Token::Object { first, last: self.inner.len() }
                }
                _ => scan.value()?,
            };
            let members = if nested { &mut self.inner } else { &mut self.outer };
            members.push(Member { key, value, at });
            Limits::check(what, members.len(), max)?;
            scan.blanks();
            if scan.skip(b'}') {
                return Ok(());
            }
            scan.symbol(b',', "`,` or `}`")?;
        }
    }
}

struct Scan<'a> {
    line: &'a mut [u8],
    at: usize,
    limits: &'a Limits,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn ensure(&self, holds: bool, wanted: &'static str) -> Result<(), ErrorKind> {
        if holds { Ok(()) } else { Err(ErrorKind::Syntax { wanted }) }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    fn skip(&mut self, symbol: u8) -> bool {
        let there = self.peek() == Some(symbol);
        self.at += usize::from(there);
        there
    }

    fn symbol(&mut self, symbol: u8, wanted: &'static str) -> Result<(), ErrorKind> {
        self.blanks();
        let there = self.skip(symbol);
        self.ensure(there, wanted)
    }

    fn value(&mut self) -> Result<Token, ErrorKind> {
        let (word, token) = match self.peek() {
            Some(b'"') => return self.text().map(Token::Text),
            Some(b'0'..=b'9') => return self.number().map(Token::Number),
            Some(b'n') => (&b"null"[..], Token::Null),
            Some(b't') => (&b"true"[..], Token::Flag(true)),
            _ => (&b"false"[..], Token::Flag(false)),
        };
        let there = self.line[self.at..].starts_with(word);
        self.ensure(there, "a text, a whole number, true, false or null")?;
        self.at += word.len();
        Ok(token)
    }

    fn number(&mut self) -> Result<u64, ErrorKind> {
        let start = self.at;
        let mut value: u64 = 0;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let more = value.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0')));
            value = more.ok_or(ErrorKind::Syntax { wanted: "a number below 2^64" })?;
            self.at += 1;
        }
        let zeros = self.line[start] == b'0' && self.at - start > 1;
        let continues = matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        self.ensure(!zeros && !continues, "a whole number without leading zeros")?;
        Ok(value)
    }

    fn text(&mut self) -> Result<Span, ErrorKind> {
        let opened = self.skip(b'"');
        self.ensure(opened, "`\"`")?;
        let start = self.at;
        // Where the next byte of the text is stored: before `at` once an escape was decoded.
        let mut end = start;
        loop {
            let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            let plain = self.line[self.at..].iter().position(is_special);
            let plain = plain.unwrap_or(self.line.len() - self.at);
            if end < self.at {
                self.line.copy_within(self.at..self.at + plain, end);
            }
            (self.at, end) = (self.at + plain, end + plain);
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let mut letter = [0; 4];
                    for byte in self.escaped()?.encode_utf8(&mut letter).bytes() {
                        self.line[end] = byte;
                        end += 1;
                    }
                }
                _ => return Err(ErrorKind::Syntax { wanted: "`\"` at the end of the text" }),
            }
        }
        self.at += 1;
        Limits::check("bytes of a text", end - start, self.limits.text)?;
        Ok(Span { start, end })
    }

    /// Decodes an escape sequence.
    fn escaped(&mut self) -> Result<char, ErrorKind> {
        let letter = self.line.get(self.at + 1).copied();
        self.at += 2;
        Ok(match letter {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'u') => {
                let first = self.unit()?;
                let code = match first {
                    0xd800..0xdc00 if self.skip(b'\\') && self.skip(b'u') => {
                        let second = self.unit()?.wrapping_sub(0xdc00);
                        self.ensure(second < 0x400, "the other half of a pair")?;
                        0x10000 + ((first - 0xd800) << 10) + second
                    }
                    _ => first,
                };
                char::from_u32(code).ok_or(ErrorKind::Syntax { wanted: "a whole letter" })?
            }
            _ => return Err(ErrorKind::Syntax { wanted: "a known letter after `\\`" }),
        })
    }

    fn unit(&mut self) -> Result<u32, ErrorKind> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit << 4 | digit.ok_or(ErrorKind::Syntax { wanted: "four hex digits" })?;
            self.at += 1;
        }
        Ok(unit)
    }
}
