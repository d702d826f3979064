//! A look from outside at polls that do not end.
//!
//! A poll that goes round for ever without using anything of asx can't be stopped: it has the
//! thread, and gives it back to nobody. What can be done is to say so, and which poll it is; and
//! when it has been told and still goes on, to end the process, so that whoever waits for the test
//! learns of it. One thread does that for all checks of a process.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Once, Weak};
use std::thread;
use std::time::Duration;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// After so many looks at one and the same poll it says so; after so many it ends the process.
const TELL: u32 = 10;
const END: u32 = 60;

/// What a check shows of where it is.
#[derive(Debug)]
pub(crate) struct Pulse {
    name: String,
    /// One more with each poll that begins and each that ends: odd while one goes on.
    beats: AtomicU64,
    /// The number of the task that is polled.
    task: AtomicU64,
}

impl Pulse {
    /// Starts to watch a check.
    pub(crate) fn new(name: &str) -> Arc<Pulse> {
        let beats = AtomicU64::new(0);
        let task = AtomicU64::new(0);
        let pulse = Arc::new(Pulse { name: name.into(), beats, task });
        checks().push(Watched { pulse: Arc::downgrade(&pulse), beats: 0, looks: 0 });
        static START: Once = Once::new();
        START.call_once(|| {
            // Without the thread nobody is told, which is how it was.
            let _ = thread::Builder::new().name("asx-lab-watch".into()).spawn(watch);
        });
        pulse
    }

    /// A poll of this task begins.
    #[inline]
    pub(crate) fn begin(&self, task: u64) {
        self.task.store(task, Relaxed);
        self.beat(1);
    }

    /// The poll is over, and another one of this task begins.
    #[inline]
    pub(crate) fn go_on(&self, task: u64) {
        self.task.store(task, Relaxed);
        self.beat(2);
    }

    /// The poll is over.
    #[inline]
    pub(crate) fn end(&self) {
        self.beat(1);
    }

    /// Only the check's own thread does this.
    #[inline]
    fn beat(&self, times: u64) {
        self.beats.store(self.beats.load(Relaxed) + times, Relaxed);
    }
}

/// A check, where it was at the last look, and how many looks ago it got there.
struct Watched {
    pulse: Weak<Pulse>,
    beats: u64,
    looks: u32,
}

/// What a look may come to.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Tell,
    End,
}

impl Watched {
    fn look(&mut self, pulse: &Pulse) -> Verdict {
        let beats = pulse.beats.load(Relaxed);
        let is_same = beats % 2 == 1 && beats == self.beats;
        (self.beats, self.looks) = (beats, if is_same { self.looks + 1 } else { 0 });
        match self.looks {
            TELL => Verdict::Tell,
            END => Verdict::End,
            _ => Verdict::Fine,
        }
    }
}

fn checks() -> std::sync::MutexGuard<'static, Vec<Watched>> {
    static CHECKS: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
    CHECKS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn watch() {
    loop {
        thread::sleep(LOOK);
        checks().retain_mut(|watched| {
            let Some(pulse) = watched.pulse.upgrade() else { return false };
            match watched.look(&pulse) {
                Verdict::Fine => {}
                Verdict::Tell => say(&pulse, TELL, ""),
                Verdict::End => {
                    say(&pulse, END, "; nothing can stop it but the end of the process");
                    std::process::exit(101);
                }
            }
            true
        });
    }
}

/// Past what a test harness keeps to itself until the test is over, which it never is.
fn say(pulse: &Pulse, looks: u32, more: &str) {
    let Pulse { name, task, .. } = pulse;
    let task = task.load(Relaxed);
    let seconds = u64::from(looks) * LOOK.as_secs();
    let _ = writeln!(
        std::io::stderr(),
        "asx lab: {name}: a poll of task {task} has not ended for {seconds} s: it goes round \
         without using asx, or waits as threads do, as for a std lock kept across an await{more}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_poll_that_goes_on_and_on_is_told() {
        let pulse = Pulse::new("here");
        let mut watched = Watched { pulse: Arc::downgrade(&pulse), beats: 0, looks: 0 };
        let mut looks =
            |count: u32| (0..count).map(|_| watched.look(&pulse)).collect::<Vec<Verdict>>();
        // Between polls nothing is amiss, however long.
        assert!(looks(2 * END).iter().all(|verdict| *verdict == Verdict::Fine));
        pulse.begin(7);
        let verdicts = looks(END + 2);
        let at = |verdict: Verdict| verdicts.iter().position(|it| *it == verdict);
        assert_eq!((at(Verdict::Tell), at(Verdict::End)), (Some(10), Some(60)));
        pulse.end();
        pulse.begin(8);
        assert!(looks(TELL).iter().all(|verdict| *verdict == Verdict::Fine));
        assert_eq!(looks(1), [Verdict::Tell]);
        // One right after the other.
        pulse.go_on(9);
        assert!(looks(TELL).iter().all(|verdict| *verdict == Verdict::Fine));
        assert_eq!(looks(1), [Verdict::Tell]);
    }
}
