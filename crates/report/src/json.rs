//! A JSON writer for text that is embedded in a page: the output cannot end a script element.

use std::fmt::Write;

/// The largest whole number up to which JavaScript numbers are exact.
const EXACT: u64 = (1 << 53) - 1;

/// Writes JSON values in sequence and inserts the commas.
#[derive(Default)]
pub(crate) struct Json {
    text: String,
    /// Whether the next value needs a comma before it.
    comma: bool,
}

impl Json {
    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self) {
        if std::mem::replace(&mut self.comma, true) {
            self.text.push(',');
        }
    }

    /// Writes a number, or a string if JavaScript would round the number.
    pub(crate) fn number(&mut self, value: u64) -> &mut Json {
        self.begin();
        let quote = if value > EXACT { "\"" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(self.text, "{quote}{value}{quote}");
        self
    }

    pub(crate) fn index(&mut self, value: usize) -> &mut Json {
        self.number(value as u64)
    }

    pub(crate) fn maybe(&mut self, value: Option<u64>) -> &mut Json {
        match value {
            Some(value) => self.number(value),
            None => self.raw("null"),
        }
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Json {
        self.raw(if value { "true" } else { "false" })
    }

    pub(crate) fn hash(&mut self, value: u64) -> &mut Json {
        self.raw(&format!("\"{value:016x}\""))
    }

    /// Writes a value that is already JSON.
    pub(crate) fn raw(&mut self, value: &str) -> &mut Json {
        self.begin();
        self.text.push_str(value);
        self
    }

    pub(crate) fn text(&mut self, value: &str) -> &mut Json {
        self.begin();
        self.quoted(value);
        self
    }

    /// Writes the name of a member; the next value belongs to it.
    pub(crate) fn key(&mut self, name: &str) -> &mut Json {
        self.begin();
        self.quoted(name);
        self.text.push(':');
        self.comma = false;
        self
    }

    pub(crate) fn object(&mut self, fill: impl FnOnce(&mut Json)) -> &mut Json {
        self.enclosed(['{', '}'], fill)
    }

    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut each: impl FnMut(&mut Json, T),
    ) -> &mut Json {
        self.enclosed(['[', ']'], |json| items.into_iter().for_each(|item| each(json, item)))
    }

    fn enclosed(&mut self, [open, close]: [char; 2], fill: impl FnOnce(&mut Json)) -> &mut Json {
        self.begin();
        self.text.push(open);
        self.comma = false;
        fill(self);
        self.text.push(close);
        self.comma = true;
        self
    }

    fn quoted(&mut self, value: &str) {
        self.text.push('"');
        for c in value.chars() {
            match c {
                '"' | '\\' => self.text.extend(['\\', c]),
                // Characters that could end a script element, begin a comment in it, or break a
                // line.
                '<' | '>' | '&' | '\'' | '\u{2028}' | '\u{2029}' | '\0'..' ' | '\u{7f}' => {
                    let _ = write!(self.text, "\\u{:04x}", c as u32);
                }
                _ => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_values() {
        let mut json = Json::default();
        json.object(|json| {
            json.key("a").list([1, 2], |json, n| {
                json.number(n);
            });
            json.key("b").list([0; 0], |json, n| {
                json.number(n);
            });
            json.key("c").object(|json| {
                json.key("d").maybe(None);
            });
            json.key("e").flag(true).key("f").hash(255);
        });
        let text = r#"{"a":[1,2],"b":[],"c":{"d":null},"e":true,"f":"00000000000000ff"}"#;
        assert_eq!(json.finish(), text);
    }

    #[test]
    fn numbers_that_javascript_would_round_are_strings() {
        let mut json = Json::default();
        json.list([EXACT, EXACT + 1, u64::MAX], |json, n| {
            json.number(n);
        });
        assert_eq!(
            json.finish(),
            "[9007199254740991,\"9007199254740992\",\"18446744073709551615\"]"
        );
    }

    #[test]
    fn texts_survive_and_contain_no_markup() {
        let all = (0..0x3000).filter_map(char::from_u32).collect::<String>();
        for text in ["</script><!--", "\"\\\u{0}\n\t\u{7f}\u{2028}", "é 🎉 \u{202e}", &all] {
            let mut json = Json::default();
            json.text(text);
            let written = json.finish();
            assert!(!written.contains(['<', '>', '&', '\'', '\n', '\u{2028}']), "{written}");
            assert_eq!(serde_json::from_str::<String>(&written).expect("JSON"), text);
        }
    }
}
