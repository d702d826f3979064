//! The expression at a place of the source: `orders.recv` says more than a line number.
//!
//! Who runs a test has its source as a rule. Where it is not to be had, nothing is said.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::panic::Location;
use std::rc::Rc;

/// Longer ones are cut at the front.
const MOST: usize = 40;

thread_local! {
    static FILES: RefCell<HashMap<&'static str, Option<Rc<str>>>> = RefCell::default();
}

/// The call that a place is in: a method with what it is called on, a function or a macro.
pub(crate) fn expression(at: &Location<'static>) -> Option<String> {
    let text = FILES.with_borrow_mut(|files| {
        files.entry(at.file()).or_insert_with(|| read(at.file()).map(Rc::from)).clone()
    })?;
    call_at(&text, at.line() as usize, at.column() as usize)
}

/// A file of the source. Its name is relative to the workspace, in one of whose folders the test
/// runs.
fn read(file: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().find_map(|folder| fs::read_to_string(folder.join(file)).ok())
}

/// Lines and columns count from 1.
fn call_at(text: &str, line: usize, column: usize) -> Option<String> {
    let start: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (at, _) = text[start..].char_indices().nth(column.checked_sub(1)?)?;
    let (before, after) = text.split_at(start + at);
    let is_path = |c: &char| is_word(*c) || *c == ':';
    let name: String = after.chars().take_while(is_path).collect();
    let name = name.trim_end_matches(':');
    if name.is_empty() {
        return None;
    }
    let bang = if after[name.len()..].starts_with('!') { "!" } else { "" };
    let call = format!("{}{name}{bang}", receiver(before));
    match call.char_indices().nth_back(MOST) {
        Some((at, _)) => Some(format!("..{}", &call[at + 1..])),
        None => Some(call),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What a method is called on, with the dot: the end of the text before its name.
fn receiver(mut before: &str) -> String {
    let mut parts = Vec::new();
    loop {
        before = before.trim_end();
        if let Some(rest) = before.strip_suffix('.') {
            parts.push(String::from("."));
            before = rest.trim_end();
        } else if let Some(rest) = before.strip_suffix("::").filter(|_| !parts.is_empty()) {
            parts.push(String::from("::"));
            before = rest;
        } else {
            break;
        }
        while let Some(rest) = before.strip_suffix('?') {
            before = rest;
        }
        // What is in brackets is not told.
        while let Some(close @ (')' | ']')) = before.chars().next_back() {
            let Some(open) = opening(before) else { return String::new() };
            parts.push(String::from(if close == ')' { "(..)" } else { "[..]" }));
            before = &before[..open];
        }
        let word: usize =
            before.chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum();
        parts.push(before[before.len() - word..].to_owned());
        before = &before[..before.len() - word];
    }
    parts.reverse();
    parts.concat()
}

/// Where the bracket opens that the text ends with the other half of.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn told(text: &str, name: &str) -> Option<String> {
        let at = text.find(name).expect("it is there");
        let line = text[..at].matches('\n').count() + 1;
        let column = text[..at].chars().rev().take_while(|c| *c != '\n').count() + 1;
        call_at(text, line, column)
    }

    #[test]
    fn a_call_is_told_with_what_it_is_called_on() {
        let cases = [
            ("let é = orders.recv(&cx).await?;", "recv", "orders.recv"),
            ("self.shop.orders\n    .recv(cx)", "recv", "self.shop.orders.recv"),
            ("a[i + 1].of(x, (y)).lock(cx)", "lock", "a[..].of(..).lock"),
            ("get()?.lock(cx)", "lock", "get(..).lock"),
            ("tokio::sync::x.lock(cx)", "lock", "tokio::sync::x.lock"),
            ("race(cx, a, b)", "race", "race"),
            ("asx::time::sleep::<u8>(cx)", "asx", "asx::time::sleep"),
            ("select! { a }", "select", "select!"),
            ("x = (a + b) * sleep(c)", "sleep", "sleep"),
        ];
        for (text, name, expected) in cases {
            assert_eq!(told(text, name).as_deref(), Some(expected), "{text}");
        }
        let long = format!("{}.recv(cx)", "a_long_name.".repeat(9) + "x");
        let told = told(&long, "recv").expect("a call");
        assert!(told.starts_with("..") && told.ends_with("long_name.x.recv"), "{told}");
    }

    #[test]
    fn where_there_is_no_source_nothing_is_said() {
        assert_eq!(call_at("one line", 2, 1), None);
        assert_eq!(call_at("one line", 1, 99), None);
        assert_eq!(call_at("  (a)", 1, 3), None);
        assert_eq!(call_at("", 0, 0), None);
        assert_eq!(expression(Location::caller()).as_deref(), Some("Location::caller"));
    }
}
