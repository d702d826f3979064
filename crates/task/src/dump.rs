//! What lives, where, and what it waits for: for people and for programs.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::cancel::Reason;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;

/// The tree of regions at one moment; each region is looked at on its own.
#[derive(Clone, Debug)]
pub struct Dump {
    /// Parents before children.
    pub regions: Vec<RegionInfo>,
    /// How many timers are armed in the whole runtime: sleeps, timeouts, deadlines, graces.
    pub timers: usize,
}

/// What a live task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It is being polled.
    Running,
    /// It is in a queue.
    Runnable,
    /// It waits to be woken.
    Waiting,
}

/// One region.
#[derive(Clone, Debug)]
pub struct RegionInfo {
    /// Its number.
    pub id: u64,
    /// The region around it.
    pub parent: Option<u64>,
    /// Where it stands.
    pub state: RegionState,
    /// Finalizers that have not started.
    pub finalizers: u32,
    /// Why it was cancelled, if it was.
    pub reason: Option<Arc<Reason>>,
    /// Its name, if it was given [one](crate::ScopeBuilder::name).
    pub name: Option<Arc<str>>,
    /// Where its scope was opened, if it is one.
    pub opened: Option<&'static Location<'static>>,
    /// How long ago it was cancelled, if it was.
    pub cancelled_for: Option<Duration>,
    /// In how long what still lives in it is ended by force, if that was said.
    pub force_in: Option<Duration>,
    /// Its live tasks, oldest first.
    pub tasks: Vec<TaskInfo>,
    /// Its obligations that are neither committed nor aborted, oldest first, and then the tracked
    /// permits of channels without a scope that its tasks have reserved.
    pub obligations: Vec<ObligationInfo>,
}

/// An obligation, or a tracked permit, that is not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObligationInfo {
    /// Its number; `None` for a tracked permit of a channel without a scope, which has none.
    pub id: Option<u64>,
    /// The number of the task that reserved it; `None` if that happened outside of all tasks.
    pub task: Option<u64>,
    /// The name of that task, if it has one.
    pub name: Option<Arc<str>>,
    /// Where it was reserved.
    pub reserved: &'static Location<'static>,
}

/// One task.
#[derive(Clone, Debug)]
pub struct TaskInfo {
    /// Its number.
    pub id: u64,
    /// Its name, if it has one.
    pub name: Option<Arc<str>>,
    /// Where it stands.
    pub state: TaskState,
    /// Whether it runs, could run or waits.
    pub activity: Activity,
    /// Whether it is a blocking job: on a thread of its own once it runs.
    pub blocking: bool,
    /// Whether its cleanup took longer than it may: it is to end by force, at the end of its poll.
    pub overrun: bool,
    /// What it waited for last, and where.
    pub waits: Option<(&'static str, &'static Location<'static>)>,
    /// How long it has waited there, since its last poll: to a fraction of a second, and rather
    /// more than less if its worker was held up. Not known of blocking jobs, of tasks whose wait is
    /// [stale](TaskInfo::stale), and on pages.
    pub waited_for: Option<Duration>,
    /// Who holds the lock it waits for, if it does: the mutex, or the writer's side of a lock for
    /// readers and writers. Not known of readers and semaphores, which may be held by many, of what
    /// was taken outside of all tasks, and on pages.
    pub held_by: Option<LockHolder>,
    /// The socket it waits at, if it does: what for, and the address of the peer.
    pub socket: Option<String>,
    /// Whether its last poll did not look at that: the wait is over, or its future was dropped,
    /// forgotten or is kept somewhere. What the task waits for is then nothing of asx, or in a part
    /// of it that was not polled.
    pub stale: bool,
    /// Where it was spawned, until it waits for something of asx for the first time.
    pub spawned: Option<&'static Location<'static>>,
    /// The function its body is written in; `None` for the body of a program, and on pages.
    pub function: Option<String>,
    /// In how long the next of its timers is due, if it has one: a sleep, a timeout.
    pub timer_in: Option<Duration>,
}

/// The task that took a lock, which holds it unless it has handed the guard on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Its number.
    pub id: u64,
    /// Its name, if it has one and lives.
    pub name: Option<Arc<str>>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task t{}", self.id)?;
        match &self.name {
            Some(name) => write!(f, " {name:?}"),
            None => Ok(()),
        }
    }
}

impl Dump {
    /// How many tasks live.
    pub fn tasks(&self) -> usize {
        self.regions.iter().map(|region| region.tasks.len()).sum()
    }

    /// The numbers of the regions from the root down to `id`.
    pub fn path(&self, id: u64) -> Vec<u64> {
        let parents = self.regions.iter().map(|region| (region.id, region.parent));
        let parents: HashMap<_, _> = parents.collect();
        let parent = |id: &u64| parents.get(id).copied().flatten();
        let mut path: Vec<_> = std::iter::successors(Some(id), parent).collect();
        path.reverse();
        path
    }

    /// The same as one JSON object. Durations are in milliseconds. A task that waits at a socket
    /// has the key `socket`; one that waits for a lock whose holder is known has `held_by`, the
    /// number of that task. A region with obligations that are not resolved has the key
    /// `obligations`.
    pub fn to_json(&self) -> String {
        let regions: Vec<_> = self.regions.iter().map(RegionInfo::to_json).collect();
        format!("{{\"regions\":[{}],\"timers\":{}}}", regions.join(","), self.timers)
    }
}

impl RegionInfo {
    pub(crate) fn to_json(&self) -> String {
        let tasks: Vec<_> = self.tasks.iter().map(TaskInfo::to_json).collect();
        let owed: Vec<_> = self.obligations.iter().map(ObligationInfo::to_json).collect();
        let owed = match &owed[..] {
            [] => String::new(),
            owed => format!(",\"obligations\":[{}]", owed.join(",")),
        };
        let parent = self.parent.map_or("null".into(), |id| id.to_string());
        let reason = self.reason.as_ref().map_or("null".into(), |r| quoted(&r.to_string()));
        let name = self.name.as_deref().map_or("null".into(), quoted);
        let opened = self.opened.map_or("null".into(), |at| quoted(&at.to_string()));
        format!(
            "{{\"id\":{},\"parent\":{parent},\"name\":{name},\"opened\":{opened},\"state\":\"{}\",\
             \"finalizers\":{},\"reason\":{reason},\"cancelled_for\":{},\"force_in\":{},\
             \"tasks\":[{}]{owed}}}",
            self.id,
            self.state.name(),
            self.finalizers,
            millis(self.cancelled_for),
            millis(self.force_in),
            tasks.join(",")
        )
    }
}

impl ObligationInfo {
    fn to_json(&self) -> String {
        let number = |number: Option<u64>| number.map_or("null".into(), |id| id.to_string());
        let name = self.name.as_deref().map_or("null".into(), quoted);
        let reserved = quoted(&self.reserved.to_string());
        format!(
            "{{\"id\":{},\"task\":{},\"name\":{name},\"reserved\":{reserved}}}",
            number(self.id),
            number(self.task)
        )
    }
}

impl TaskInfo {
    fn to_json(&self) -> String {
        let name = self.name.as_deref().map_or("null".into(), quoted);
        let socket = self.socket.as_deref().map(|socket| format!(",\"socket\":{}", quoted(socket)));
        let socket = socket.unwrap_or_default();
        let holder = self.held_by.as_ref().map(|holder| format!(",\"held_by\":{}", holder.id));
        let holder = holder.unwrap_or_default();
        let (on, at) = match self.waits {
            Some((on, at)) => (quoted(on), quoted(&at.to_string())),
            None => ("null".into(), "null".into()),
        };
        let spawned = self.spawned.map_or("null".into(), |at| quoted(&at.to_string()));
        let function = self.function.as_deref().map_or("null".into(), quoted);
        let timer = millis(self.timer_in);
        let waited = millis(self.waited_for);
        format!(
            "{{\"id\":{},\"name\":{name},\"state\":\"{}\",\"activity\":\"{:?}\",\"blocking\":{},\
             \"overrun\":{},\"waits_for\":{on},\"at\":{at}{socket}{holder},\
             \"waited_for\":{waited},\
             \"stale\":{},\
             \"spawned\":{spawned},\"function\":{function},\"timer_in\":{timer}}}",
            self.id,
            self.state.name(),
            self.activity,
            self.blocking,
            self.overrun,
            self.stale
        )
    }
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => write!(out, "\\u{:04x}", c as u32).unwrap_or_default(),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The function a body is written in, as the type of its future says; `None`: that of a program.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn function(body: &str) -> Option<&str> {
    let closure = body.find("::{{closure}}").map_or(body, |end| &body[..end]);
    // A future that is no async block may have it inside: `PollFn<..>`.
    let closure = closure.rsplit('<').next().unwrap_or(closure);
    (!body.starts_with("asx_task::root::")).then_some(closure)
}

/// A duration in words, as short as tells.
pub(crate) struct InWords(pub(crate) Duration);

impl fmt::Display for InWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let seconds = self.0.as_secs();
        match seconds {
            0 => write!(f, "{millis} ms"),
            1..60 => write!(f, "{seconds}.{} s", millis % 1000 / 100),
            60..3600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            3600..86_400 => write!(f, "{} h {} min", seconds / 3600, seconds / 60 % 60),
            _ => write!(f, "{} days {} h", seconds / 86_400, seconds / 3600 % 24),
        }
    }
}

fn millis(duration: Option<Duration>) -> String {
    duration.map_or("null".into(), |duration| duration.as_millis().to_string())
}

/// Shorter waits are told to programs only.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Deeper regions are no further to the right: a tree as deep as a list would take its square.
const MAX_INDENT: usize = 40;

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut depths = HashMap::new();
        for region in &self.regions {
            // Parents come before children.
            let parent = region.parent.and_then(|parent| depths.get(&parent));
            let depth = parent.map_or(0, |depth: &usize| depth + 1);
            depths.insert(region.id, depth);
            let indent = 2 * depth.min(MAX_INDENT);
            write!(f, "{:indent$}region r{}", "", region.id)?;
            if let Some(name) = &region.name {
                write!(f, " {name:?}")?;
            }
            write!(f, " {}", region.state.name())?;
            if let (true, Some(parent)) = (depth > MAX_INDENT, region.parent) {
                write!(f, " in r{parent}")?;
            }
            if let Some(reason) = &region.reason {
                write!(f, ", {reason}")?;
            }
            if let Some(since) = region.cancelled_for {
                write!(f, ", {} ago", InWords(since))?;
            }
            if let Some(left) = region.force_in {
                write!(f, ", force in {}", InWords(left))?;
            }
            if region.finalizers > 0 {
                write!(f, ", {} finalizers to run", region.finalizers)?;
            }
            if let Some(at) = region.opened {
                write!(f, ", opened at {at}")?;
            }
            writeln!(f)?;
            for task in &region.tasks {
                writeln!(f, "{:indent$}  {task}", "")?;
            }
            for obligation in &region.obligations {
                writeln!(f, "{:indent$}  {obligation}", "")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ObligationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "obligation o{id}"),
            None => f.write_str("send permit"),
        }?;
        if let Some(task) = self.task {
            write!(f, " of task t{task}")?;
            if let Some(name) = &self.name {
                write!(f, " {name:?}")?;
            }
        }
        write!(f, ", reserved at {}", self.reserved)
    }
}

impl TaskInfo {
    /// Where a task comes from whose waits say nothing.
    fn origin(&self) -> String {
        match (self.spawned, &self.function) {
            (Some(at), _) => format!(", spawned at {at}"),
            (None, Some(function)) => format!(" in `{function}`"),
            (None, None) => String::new(),
        }
    }
}

impl fmt::Display for TaskInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task t{}", self.id)?;
        if let Some(name) = &self.name {
            // With what could be taken for lines of the dump, or for orders to a terminal, escaped.
            write!(f, " {name:?}")?;
        }
        write!(f, " {}", self.state.name())?;
        match (self.activity, self.waits) {
            (Activity::Running, _) if self.blocking => write!(f, ", running a blocking job"),
            (Activity::Runnable, _) if self.blocking => {
                write!(f, ", waits for a thread for a blocking job")
            }
            (Activity::Running, _) => write!(f, ", running"),
            (Activity::Runnable, _) => write!(f, ", runnable"),
            (Activity::Waiting, Some((on, at))) if self.stale => {
                write!(
                    f,
                    ", waits for something outside asx{} (stale, as its last poll did not look at \
                     it: {on} at {at})",
                    self.origin()
                )
            }
            (Activity::Waiting, Some((on, at))) => {
                write!(f, ", waits for {} at {at}", self.socket.as_deref().unwrap_or(on))?;
                if let Some(holder) = &self.held_by {
                    write!(f, ", held by {holder}")?;
                }
                match self.waited_for {
                    Some(waited) if waited >= WORTH_TELLING => {
                        write!(f, ", for {} so far", InWords(waited))
                    }
                    _ => Ok(()),
                }
            }
            (Activity::Waiting, None) => {
                write!(f, ", waits for something outside asx{}", self.origin())
            }
        }?;
        if let (Activity::Waiting, Some(left)) = (self.activity, self.timer_in) {
            write!(f, ", its timer is due in {}", InWords(left))?;
        }
        if self.overrun {
            write!(f, ", its cleanup took too long")?;
        }
        Ok(())
    }
}
