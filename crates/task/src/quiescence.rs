//! The quiescence check: nothing is alive, or a list of everything that is.
//!
//! A runtime is quiescent if no task lives, no obligation is reserved, every region is closed, no
//! timer is armed, and no channel of a scope holds messages or permits. The counts are put to the
//! kernel's law ([`Census`]), which orders the failures.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use asx_kernel::quiescence::{Census, NotQuiescent};
use asx_kernel::region::RegionState;
use asx_kernel::status::{Coded, Status};
use asx_kernel::task::TaskState;
use asx_kernel::wheel::Wheel;

use crate::dump::{Dump, InWords, ObligationInfo, RegionInfo, TaskInfo};
use crate::region::Region;
use crate::region::resources::{ChannelLoad, Scoped};

/// Why a runtime is not quiescent, and everything in it that is alive.
///
/// [`Handle::quiescence`](crate::Handle::quiescence) returns it. `Display` starts with the codes
/// and their counts in one line; what is alive follows in the form of a [`Dump`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuiescenceError {
    failures: NotQuiescent,
    /// The regions that are not closed, with their live tasks and their obligations. A task that
    /// waits says what for, and where.
    pub dump: Dump,
    /// The armed timers of tasks and regions, the earliest first. Deadlines and grace periods of
    /// the runtime itself are not among them.
    pub timers: Vec<TimerInfo>,
    /// The channels of scopes that hold messages or permits.
    pub channels: Vec<ChannelInfo>,
}

/// An armed timer: of a sleep, a timeout or an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimerInfo {
    /// The number of the task that waits for it, if a task does.
    pub task: Option<u64>,
    /// The number of the region that owns it, if it is no task's.
    pub region: Option<u64>,
    /// In how long it is due; zero if it is.
    pub due_in: Duration,
}

/// A channel of a scope that holds messages or permits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelInfo {
    /// Its number.
    pub id: u64,
    /// The number of the region it closes with.
    pub region: u64,
    /// How many messages were sent and not received.
    pub messages: usize,
    /// How many slots are reserved and neither filled nor given back.
    pub permits: usize,
}

impl QuiescenceError {
    /// The first failure, in the order of [`codes`](QuiescenceError::codes).
    pub fn first(&self) -> Status {
        self.failures.first()
    }

    /// Every failure, in this order: [`TasksStillActive`](Status::TasksStillActive),
    /// [`ObligationsUnresolved`](Status::ObligationsUnresolved),
    /// [`RegionsNotClosed`](Status::RegionsNotClosed), [`TimersPending`](Status::TimersPending),
    /// [`ChannelNotDrained`](Status::ChannelNotDrained).
    pub fn codes(&self) -> Vec<Status> {
        self.failures.all()
    }

    /// Every failure with the number of things it is about, in the same order.
    pub fn counts(&self) -> &[(Status, usize)] {
        self.failures.counts()
    }

    /// The same as one JSON object, with regions as in [`Dump::to_json`] and durations in
    /// milliseconds.
    pub fn to_json(&self) -> String {
        let failure = |(code, count): &(Status, usize)| {
            format!("{{\"code\":\"{}\",\"count\":{count}}}", code.name())
        };
        let failures: Vec<_> = self.counts().iter().map(failure).collect();
        let regions: Vec<_> = self.dump.regions.iter().map(RegionInfo::to_json).collect();
        let timers: Vec<_> = self.timers.iter().map(TimerInfo::to_json).collect();
        let channels: Vec<_> = self.channels.iter().map(ChannelInfo::to_json).collect();
        format!(
            "{{\"failures\":[{}],\"regions\":[{}],\"timers\":[{}],\"channels\":[{}]}}",
            failures.join(","),
            regions.join(","),
            timers.join(","),
            channels.join(",")
        )
    }

    /// The live tasks, each with the number of its region.
    pub fn tasks(&self) -> impl Iterator<Item = (u64, &TaskInfo)> {
        let regions = self.dump.regions.iter();
        regions.flat_map(|region| region.tasks.iter().map(|task| (region.id, task)))
    }

    /// The obligations that are not resolved, each with the number of its region. Tracked permits
    /// of channels without a scope are in the [dump](QuiescenceError::dump) and not here: no region
    /// answers for them.
    pub fn obligations(&self) -> impl Iterator<Item = (u64, &ObligationInfo)> {
        self.dump.regions.iter().flat_map(|region| {
            let numbered = region.obligations.iter().filter(|held| held.id.is_some());
            numbered.map(|held| (region.id, held))
        })
    }
}

impl TimerInfo {
    fn to_json(&self) -> String {
        let number = |number: Option<u64>| number.map_or("null".into(), |id| id.to_string());
        format!(
            "{{\"task\":{},\"region\":{},\"due_in\":{}}}",
            number(self.task),
            number(self.region),
            self.due_in.as_millis()
        )
    }
}

impl ChannelInfo {
    fn to_json(&self) -> String {
        let ChannelInfo { id, region, messages, permits } = self;
        format!("{{\"id\":{id},\"region\":{region},\"messages\":{messages},\"permits\":{permits}}}")
    }
}

impl fmt::Display for QuiescenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not quiescent: ")?;
        for (at, (code, count)) in self.counts().iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{} ({count})", code.name())?;
        }
        write!(f, "\n{}", self.dump)?;
        for timer in &self.timers {
            writeln!(f, "{timer}")?;
        }
        self.channels.iter().try_for_each(|channel| writeln!(f, "{channel}"))
    }
}

impl std::error::Error for QuiescenceError {}

impl Coded for QuiescenceError {
    fn status(&self) -> Status {
        self.first()
    }
}

impl fmt::Display for TimerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timer")?;
        match (self.task, self.region) {
            (Some(task), _) => write!(f, " of task t{task}"),
            (None, Some(region)) => write!(f, " of region r{region}"),
            (None, None) => Ok(()),
        }?;
        write!(f, ", due in {}", InWords(self.due_in))
    }
}

impl fmt::Display for ChannelInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ChannelInfo { id, region, messages, permits } = self;
        write!(f, "channel c{id} of region r{region}: {messages} messages, {permits} permits")
    }
}

impl Region {
    /// Checks whether this region is closed and nothing in it or below it is alive. For a root that
    /// is the whole runtime, with the timers of tasks that have ended.
    ///
    /// # Errors
    /// Everything that is alive.
    pub fn quiescence(&self) -> Result<(), QuiescenceError> {
        let mut dump = Dump::of(self);
        dump.regions.retain(|region| region.state != RegionState::Closed);
        for region in &mut dump.regions {
            region.tasks.retain(|task| task.state != TaskState::Completed);
        }
        let timers = self.armed_timers(&dump);
        let channels = self.held_channels();
        let numbered = |region: &RegionInfo| {
            region.obligations.iter().filter(|held| held.id.is_some()).count()
        };
        let census = Census {
            tasks: dump.tasks(),
            obligations: dump.regions.iter().map(numbered).sum(),
            regions: dump.regions.len(),
            timers: timers.len(),
            channels: channels.len(),
        };
        let failed = |failures| QuiescenceError { failures, dump, timers, channels };
        census.check().map_err(failed)
    }

    /// The armed timers: all of the runtime if this is its root, else of what lives in here.
    fn armed_timers(&self, inside: &Dump) -> Vec<TimerInfo> {
        let regions: BTreeSet<u64> = inside.regions.iter().map(|region| region.id).collect();
        let tasks = inside.regions.iter().flat_map(|region| &region.tasks);
        let tasks: BTreeSet<u64> = tasks.map(|task| task.id).collect();
        let mut armed: Vec<_> = self.core.timers.with_wheel(|wheel| {
            let timers = wheel.into_iter().flat_map(Wheel::iter);
            timers.map(|(due, token)| (due, token.owner())).collect()
        });
        armed.sort_unstable();
        let now = self.core.host.now();
        let timers = armed.into_iter().map(|(due, (task, region))| TimerInfo {
            task: task.checked_sub(1),
            region: region.checked_sub(1),
            due_in: due - now,
        });
        let is_inside = |timer: &TimerInfo| {
            self.is_root()
                || timer.task.is_some_and(|task| tasks.contains(&task))
                || timer.region.is_some_and(|region| regions.contains(&region))
        };
        timers.filter(is_inside).collect()
    }

    /// The channels of this region and those below it that hold something.
    fn held_channels(&self) -> Vec<ChannelInfo> {
        let mut channels: Vec<(u64, u64, Weak<dyn Scoped>)> = Vec::new();
        self.each_inside(&mut |region| {
            let inner = region.lock();
            let own = inner.channels().into_iter();
            channels.extend(own.map(|(id, channel)| (region.id, id, channel)));
            inner.children()
        });
        // No lock of a region is held: a channel locks itself, and the last reference to one drops
        // messages of the user's.
        let held = channels.into_iter().filter_map(|(region, id, channel)| {
            let channel: Arc<dyn Scoped> = channel.upgrade()?;
            let ChannelLoad { messages, permits } = channel.load();
            self.core.discard(channel);
            (messages + permits > 0).then_some(ChannelInfo { id, region, messages, permits })
        });
        held.collect()
    }
}
