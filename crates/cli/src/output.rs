//! Standard output and standard error of the program.
//!
//! Colours and styles reach terminals only: [`AutoStream`] strips them elsewhere and follows
//! `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM=dumb`. With `--json` the output is always one
//! JSON object, so errors are collected until it is known whether a result was written.

use asx_conformance::SkippedLine;
use std::borrow::Cow;
use std::fmt::{self, Display};
use std::io::{self, BufWriter, Write};
use std::sync::Mutex;

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};

static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Writes a line to standard error. A closed standard error does not change the exit code.
pub(crate) fn complain(line: String) {
    let mut sink = AutoStream::auto(io::stderr());
    let _ = match line.strip_prefix("asx: ") {
        Some(rest) => writeln!(sink, "{}: {rest}", BAD.text("asx")),
        None => writeln!(sink, "{line}"),
    };
    let line = line.strip_prefix("asx: ").map(str::to_owned).unwrap_or(line);
    COMPLAINTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(line);
}

/// A style for words of the output.
#[derive(Clone, Copy)]
pub(crate) struct Paint(Style);

/// Success.
pub(crate) const GOOD: Paint = Paint(AnsiColor::Green.on_default().bold());
/// Failure.
pub(crate) const BAD: Paint = Paint(AnsiColor::Red.on_default().bold());
/// A warning or a skipped part.
pub(crate) const WARNING: Paint = Paint(AnsiColor::Yellow.on_default().bold());
/// Something to type.
pub(crate) const COMMAND: Paint = Paint(AnsiColor::Cyan.on_default());

impl Paint {
    /// The text in this style.
    pub(crate) fn text<T: Display>(self, text: T) -> Painted<T> {
        Painted { style: self.0, text }
    }
}

/// A styled text.
pub(crate) struct Painted<T> {
    style: Style,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Painted { style, text } = self;
        write!(f, "{style}{text}{style:#}")
    }
}

/// The first word of a result: `passed` or `FAILED`.
pub(crate) fn verdict(has_passed: bool) -> Painted<&'static str> {
    if has_passed { GOOD.text("passed") } else { BAD.text("FAILED") }
}

/// A count with its noun: `1 run`, `2 runs`.
pub(crate) fn counted(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Writes the lines of a scenario that a host skipped, one each.
pub(crate) fn skipped_lines(lines: &[SkippedLine], out: &mut impl Write) -> io::Result<()> {
    lines.iter().try_for_each(|SkippedLine { line, what, why, .. }| {
        writeln!(out, "  line {line}, {}: {}", printable(what), printable(why))
    })
}

/// A text from a file on one line of a terminal: control characters are escaped.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |letter: char| -> String {
        if letter.is_control() { letter.escape_default().collect() } else { letter.into() }
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Standard output.
///
/// After the reader has closed it, writes are discarded, so that a command still comes to its
/// verdict and its exit code.
pub(crate) struct Output {
    out: BufWriter<AutoStream<io::StdoutLock<'static>>>,
    is_used: bool,
    is_closed: bool,
    stops_when_closed: bool,
}

impl Output {
    pub(crate) fn new() -> Output {
        Output {
            out: BufWriter::new(AutoStream::auto(io::stdout().lock())),
            is_used: false,
            is_closed: false,
            stops_when_closed: false,
        }
    }

    /// Returns errors of writes after the reader has closed it, for commands without a verdict.
    pub(crate) fn stop_when_closed(&mut self) {
        self.stops_when_closed = true;
    }

    /// The result of a write, and `discarded` if the reader has closed standard output.
    fn unless_closed<T>(&mut self, written: io::Result<T>, discarded: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !self.stops_when_closed => {
                self.is_closed = true;
                Ok(discarded)
            }
            written => written,
        }
    }

    /// Writes the errors as a JSON object, unless something else was written.
    pub(crate) fn complaints(&mut self) -> io::Result<()> {
        if self.is_used {
            return Ok(());
        }
        let lines = COMPLAINTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).join("\n");
        writeln!(self, "{}", serde_json::json!({ "error": lines }))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_used = true;
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes);
        self.unless_closed(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let flushed = self.out.flush();
        self.unless_closed(flushed, ())
    }
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn printable_text_from_a_file_cannot_control_a_terminal() {
        assert_eq!(printable("a `feed`, ä"), "a `feed`, ä");
        assert_eq!(printable("a\u{1b}[31m\n7 0ns sent\0"), "a\\u{1b}[31m\\n7 0ns sent\\u{0}");
    }
}
