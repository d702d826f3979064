//! What the program says: results on standard output, complaints on standard error.
//!
//! Who asks for JSON gets JSON, also if there is nothing but a complaint: so the complaints are
//! kept until the end, and it is known whether anything else came out.

use std::io::{self, BufWriter, Write};
use std::sync::Mutex;

static COMPLAINTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says a line on standard error; that nobody can read it is no reason to end otherwise.
pub(crate) fn complain(line: String) {
    let _ = writeln!(io::stderr(), "{line}");
    let line = line.strip_prefix("asx: ").map(str::to_owned).unwrap_or(line);
    COMPLAINTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(line);
}

/// Standard output.
pub(crate) struct Output {
    out: BufWriter<io::StdoutLock<'static>>,
    is_used: bool,
}

impl Output {
    pub(crate) fn new() -> Output {
        Output { out: BufWriter::new(io::stdout().lock()), is_used: false }
    }

    /// The complaints as a JSON object, if nothing else came out.
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
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
