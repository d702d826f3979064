//! A look from outside at polls that do not end.
//!
//! A poll that goes round for ever without using anything of asx can't be stopped: it has the
//! thread, and gives it back to nobody. What can be done is to say so, and which poll it is; and
//! when it has been told and still goes on, to end the process, so that whoever waits for the test
//! learns of it. One thread does that for all checks of a process.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, Once, Weak};
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
    tasks: Arc<TaskList>,
}

/// Who is who among the tasks of a check. It is written where a task gets a number that another had
/// in the run before, which is rare, so that the thread that watches can say more than the number.
#[derive(Debug, Default)]
pub(crate) struct TaskList(Mutex<Tasks>);

#[derive(Debug, Default)]
struct Tasks {
    /// The paths, by number.
    paths: Vec<u64>,
    /// By path: that of who spawned it, and as which of those.
    born: BTreeMap<u64, (u64, u32)>,
    names: BTreeMap<u64, Arc<str>>,
}

impl TaskList {
    /// A task with this number and path was spawned by the one with the path `from`.
    pub(crate) fn note(&self, id: u64, path: u64, from: u64, nth: u32) {
        let mut tasks = self.tasks();
        let at = id as usize;
        if tasks.paths.len() <= at {
            tasks.paths.resize(at + 1, 0);
        }
        tasks.paths[at] = path;
        tasks.born.entry(path).or_insert((from, nth));
    }

    /// The task with this path has a name.
    pub(crate) fn note_name(&self, path: u64, name: &Arc<str>) {
        self.tasks().names.entry(path).or_insert_with(|| name.clone());
    }

    /// What a task is called: `main/2`, and if it has a name, `feed (main/2)`.
    pub(crate) fn called(&self, id: u64) -> Option<String> {
        let tasks = self.tasks();
        let path = *tasks.paths.get(id as usize).filter(|path| **path != 0)?;
        let mut at = path;
        let mut steps = Vec::new();
        while let Some((from, nth)) = tasks.born.get(&at) {
            match (*from, nth) {
                // The runtime starts the program first.
                (0, 1) => steps.push(String::from("main")),
                (0, _) => steps.extend([nth.to_string(), String::from("runtime")]),
                _ => steps.push(nth.to_string()),
            }
            at = *from;
        }
        steps.reverse();
        let spawned = steps.join("/");
        Some(match tasks.names.get(&path) {
            Some(name) => format!("{name} ({spawned})"),
            None => spawned,
        })
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Pulse {
    /// Starts to watch a check.
    pub(crate) fn new(name: &str) -> Arc<Pulse> {
        let beats = AtomicU64::new(0);
        let task = AtomicU64::new(0);
        let tasks = Arc::default();
        let pulse = Arc::new(Pulse { name: name.into(), beats, task, tasks });
        checks().push(Watched { pulse: Arc::downgrade(&pulse), beats: 0, looks: 0 });
        static START: Once = Once::new();
        START.call_once(|| {
            // Without the thread nobody is told, which is how it was.
            let _ = thread::Builder::new().name("asx-lab-watch".into()).spawn(watch);
        });
        pulse
    }

    /// Where who is who is to be written.
    pub(crate) fn tasks(&self) -> Arc<TaskList> {
        self.tasks.clone()
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
    let _ = writeln!(std::io::stderr(), "{}", line(pulse, looks, more));
}

fn line(pulse: &Pulse, looks: u32, more: &str) -> String {
    let Pulse { name, task, tasks, .. } = pulse;
    let task = task.load(Relaxed);
    let called = tasks.called(task).map_or_else(|| format!("task {task}"), |it| format!("`{it}`"));
    let seconds = u64::from(looks) * LOOK.as_secs();
    format!(
        "asx lab: {name}: a poll of {called} has not ended for {seconds} s: it goes round without \
         using asx, or waits as threads do, as for a std lock kept across an await{more}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_does_not_end_is_told_by_the_name_of_its_task() {
        let pulse = Pulse::new("here");
        let tasks = pulse.tasks();
        tasks.note(1, 11, 0, 1);
        tasks.note(2, 21, 11, 2);
        tasks.note(3, 31, 21, 1);
        tasks.note_name(31, &Arc::from("feed"));
        tasks.note(4, 41, 0, 2);
        pulse.begin(3);
        assert!(line(&pulse, TELL, "").contains(": a poll of `feed (main/2/1)` has not ended for"));
        let called = [0, 1, 2, 4, 5].map(|id| tasks.called(id).unwrap_or_default());
        assert_eq!(called, ["", "main", "main/2", "runtime/2", ""]);
        // In another run another task has the number.
        tasks.note(3, 21, 11, 2);
        assert!(line(&pulse, TELL, "").contains("a poll of `main/2` has"));
    }

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
