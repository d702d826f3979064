//! How far a check is, for people who wait for it.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

/// When a check that takes long says so for the first time, and how often then.
const EVERY: Duration = Duration::from_secs(10);

/// After so many runs the clock is looked at.
const LOOK: u64 = 16;

/// Tells from time to time how far a check is; nothing unless somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Telling {
    to: Option<To>,
}

#[derive(Debug)]
struct To {
    name: String,
    begin: Instant,
    next: Instant,
}

impl Telling {
    pub(crate) fn to_people(name: Option<&str>) -> Telling {
        let name = name.map_or_else(|| String::from("a check"), |name| format!("`{name}`"));
        let begin = Instant::now();
        Telling { to: Some(To { name, begin, next: begin + EVERY }) }
    }

    /// There were so many runs; those that follow are of this part of the check.
    pub(crate) fn look(&mut self, runs: u64, part: &str) {
        let Some(to) = self.to.as_mut().filter(|_| runs.is_multiple_of(LOOK)) else { return };
        if let Some(line) = to.line(Instant::now(), runs, part) {
            // Not by a macro, whose text tests keep for themselves. It may be closed, which is no
            // reason to panic.
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }
}

impl To {
    fn line(&mut self, now: Instant, runs: u64, part: &str) -> Option<String> {
        if now < self.next {
            return None;
        }
        self.next = now + EVERY;
        let seconds = (now - self.begin).as_secs();
        Some(format!("asx: {} goes on: {runs} runs in {seconds} s, now {part}\n", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_takes_long_says_so_every_ten_seconds() {
        let mut telling = Telling::to_people(Some("orders"));
        let to = telling.to.as_mut().unwrap();
        let begin = to.begin;
        let lines: Vec<_> = (0..35)
            .filter_map(|second| to.line(begin + Duration::from_secs(second), 100 * second, "x"))
            .collect();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], "asx: `orders` goes on: 1000 runs in 10 s, now x\n");
    }
}
