//! Rust text split into code and comments, without a parser.
//!
//! `code` and `comments` have the length of the text, with blanks in place of the other (and of
//! strings): offsets and line numbers remain valid, and a brace in a string is not mistaken for
//! code.

use std::ops::Range;

/// The layers of one Rust file.
pub(super) struct Source {
    /// Code only: no comments, no contents of strings and characters.
    pub(super) code: String,
    /// Comments only, including doc comments.
    pub(super) comments: String,
    /// Whether each line (from 0) belongs to tests.
    tests: Vec<bool>,
}

/// A word or one character of punctuation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl Source {
    pub(super) fn new(text: &str, all_tests: bool) -> Source {
        let (code, comments) = split(text);
        let tests = vec![all_tests; text.lines().count()];
        let mut source = Source { code, comments, tests };
        for range in source.test_items() {
            let lines = source.line(range.start) - 1..source.line(range.end);
            source.tests[lines].fill(true);
        }
        source
    }

    /// Returns the line of a byte, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        1 + self.code[..at].bytes().filter(|byte| *byte == b'\n').count()
    }

    /// Whether a line, from 1, belongs to tests.
    pub(super) fn is_test(&self, line: usize) -> bool {
        self.tests.get(line - 1).copied().unwrap_or(false)
    }

    /// Returns the code as tokens.
    pub(super) fn tokens(&self) -> Vec<Token<'_>> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(first) = self.code[at..].chars().next() {
            let rest = &self.code[at..];
            let length = match is_word(first) {
                true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            if !first.is_whitespace() {
                tokens.push(Token { text: &rest[..length], at });
            }
            at += length;
        }
        tokens
    }

    /// Returns the range of every item under `#[cfg(test)]`, including the attribute.
    fn test_items(&self) -> Vec<Range<usize>> {
        let tokens = self.tokens();
        let starts_with = |from: usize, words: &[&str]| {
            tokens.len() >= from + words.len()
                && tokens[from..].iter().zip(words).all(|(token, word)| token.text == *word)
        };
        let mut items = Vec::new();
        for from in 0..tokens.len() {
            let is_test = starts_with(from, &["#", "[", "cfg", "(", "test", ")", "]"])
                || starts_with(from, &["#", "[", "cfg", "(", "all", "(", "test"]);
            if is_test {
                let item = after_attributes(&tokens, from);
                let end = item_end(&tokens, item).unwrap_or(tokens.len() - 1);
                items.push(tokens[from].at..tokens[end].at);
            }
        }
        items
    }
}

/// Returns the first token after the attributes that begin at `from`.
fn after_attributes(tokens: &[Token<'_>], mut from: usize) -> usize {
    while tokens.get(from).is_some_and(|token| token.text == "#") {
        let mut depth = 0;
        from += 1;
        while let Some(token) = tokens.get(from) {
            from += 1;
            match token.text {
                "[" => depth += 1,
                "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    from
}

/// Returns the last token of the item that begins at `from`: a `;`, or its closing brace.
pub(super) fn item_end(tokens: &[Token<'_>], from: usize) -> Option<usize> {
    let mut braces = 0_usize;
    let mut others = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(from) {
        match token.text {
            "(" | "[" => others += 1,
            ")" | "]" => others = others.saturating_sub(1),
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return Some(index);
                }
            }
            ";" if braces == 0 && others == 0 => return Some(index),
            _ => {}
        }
    }
    None
}

#[derive(Clone, Copy)]
enum Layer {
    Code,
    Comment,
    Literal,
}

fn split(text: &str) -> (String, String) {
    let blank: Vec<u8> = text.bytes().map(|b| if b == b'\n' { b } else { b' ' }).collect();
    let mut code = blank.clone();
    let mut comments = blank;
    let mut at = 0;
    while at < text.len() {
        let (length, layer) = lexeme(text, at);
        let range = at..at + length;
        match layer {
            Layer::Code => code[range.clone()].copy_from_slice(&text.as_bytes()[range]),
            Layer::Comment => comments[range.clone()].copy_from_slice(&text.as_bytes()[range]),
            Layer::Literal => {}
        }
        at += length;
    }
    let text = |bytes| String::from_utf8(bytes).expect("whole characters were copied");
    (text(code), text(comments))
}

/// Returns the length and layer of the lexeme at `at`.
fn lexeme(text: &str, at: usize) -> (usize, Layer) {
    let rest = &text[at..];
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Layer::Comment);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), Layer::Comment);
    }
    let after_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    if let Some(length) = raw_string(rest).filter(|_| !after_word) {
        return (length, Layer::Literal);
    }
    if rest.starts_with('"') {
        return (quoted(rest, '"'), Layer::Literal);
    }
    if is_char(rest) {
        return (quoted(rest, '\''), Layer::Literal);
    }
    (rest.chars().next().map_or(1, char::len_utf8), Layer::Code)
}

/// Returns the length of a block comment, which may be nested.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Returns the length of a raw string such as `r"..."` or `br#"..."#`.
fn raw_string(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let quoted = body.trim_start_matches('#');
    let inside = quoted.strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(body.len() - quoted.len()));
    let start = rest.len() - inside.len();
    Some(inside.find(&close).map_or(rest.len(), |end| start + end + close.len()))
}

/// Whether the text is a character rather than a lifetime: escaped, or closed after one character.
fn is_char(rest: &str) -> bool {
    let Some(inside) = rest.strip_prefix('\'') else { return false };
    let mut chars = inside.chars();
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if !escaped && c == quote {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_literals_are_separated() {
        let text = r##"a "x\"//" b // "c
/* d /* e */ f */ g '{' h 'i' j<'k> r#"l" "# m br"n" r#o '\'' p b'q' "é" "##;
        let source = Source::new(text, false);
        let words = |layer: &str| layer.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&source.code), "a b g h j<'k> m r#o p b");
        assert_eq!(words(&source.comments), "// \"c /* d /* e */ f */");
        assert_eq!((source.code.len(), source.comments.len()), (text.len(), text.len()));
    }

    #[test]
    fn test_items_are_found_to_their_end() {
        let text = "use a;\n#[cfg(test)]\nextern crate std;\nfn f() {}\n\
            #[cfg(test)]\n#[allow(x)]\nmod tests {\n  fn g() { \"}\"; }\n}\nfn h() {}\n\
            #[cfg(all(test, x))]\nfn i(_: [u8; 2]) {\n}\n#[cfg(not(test))]\nfn j() {}\n";
        let source = Source::new(text, false);
        let tests: Vec<usize> = (1..=15).filter(|line| source.is_test(*line)).collect();
        assert_eq!(tests, [2, 3, 5, 6, 7, 8, 9, 11, 12, 13]);
        assert!((1..=15).all(|line| Source::new(text, true).is_test(line)));
    }

    #[test]
    fn unfinished_text_does_not_hang_or_fail() {
        for text in ["\"", "'", "'\\", "/*", "r#\"", "#[cfg(test)]", "#[cfg(test)] mod a {", "#["] {
            Source::new(text, false);
        }
    }
}
