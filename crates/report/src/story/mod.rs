//! The story of a run, derived from its events: lifetimes of tasks and regions, polls, intervals
//! and causal links.
//!
//! It is built in one pass over the events. Objects are numbered in the order in which events first
//! mention them, and events by their index in the run. Nothing is checked here: an unlawful trace
//! gives a story too, as far as it can be interpreted.

mod channel;
mod links;
mod polls;
mod socket;
mod tasks;

use crate::run::Run;
use asx_kernel::journal::{Event, EventKind};
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
pub(crate) use channel::Channel;
pub(crate) use links::{Link, LinkKind};
pub(crate) use polls::Poll;
pub(crate) use socket::{Socket, socket_of};
use std::collections::BTreeMap;
pub(crate) use tasks::Stretch;

/// A time span in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) state: &'static str,
    /// The event that begins it.
    pub(crate) from: usize,
    /// The event after its end.
    pub(crate) to: usize,
}

/// The lifetime of a task or region: its parent and its states.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) number: u64,
    /// The enclosing region.
    pub(crate) region: Option<usize>,
    pub(crate) finalizer: bool,
    pub(crate) spans: Vec<Span>,
    pub(crate) outcome: Option<Severity>,
}

/// The interval of a timer, an obligation or a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) number: u64,
    pub(crate) task: Option<usize>,
    pub(crate) region: Option<usize>,
    pub(crate) from: usize,
    /// The event that ended it, and the way it ended.
    pub(crate) end: Option<(usize, &'static str)>,
}

/// Objects in the order of their first mention, found by number.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    pub(crate) items: Vec<T>,
    places: BTreeMap<u64, usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { items: Vec::new(), places: BTreeMap::new() }
    }
}

impl<T> Table<T> {
    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        self.places.get(&number).copied()
    }

    fn find_or(&mut self, number: u64, new: impl FnOnce() -> T) -> usize {
        *self.places.entry(number).or_insert_with(|| {
            self.items.push(new());
            self.items.len() - 1
        })
    }
}

/// The derived history of a run.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) tasks: Table<Life>,
    pub(crate) regions: Table<Life>,
    pub(crate) channels: Table<Channel>,
    pub(crate) timers: Table<Interval>,
    pub(crate) obligations: Table<Interval>,
    pub(crate) sockets: Table<Socket>,
    /// Waits at sockets; `number` is the socket's.
    pub(crate) waits: Vec<Interval>,
    /// The waits and held locks of tasks, as noted by the host.
    pub(crate) parked: Vec<Stretch>,
    pub(crate) holds: Vec<Stretch>,
    pub(crate) polls: Vec<Poll>,
    pub(crate) links: Vec<Link>,
    /// The workers that made decisions, in ascending order.
    pub(crate) workers: Vec<u64>,
}

impl Story {
    pub(crate) fn of(run: &Run) -> Story {
        let mut story = Story::default();
        let mut polls = polls::Polls::default();
        let mut links = links::Links::of(run);
        let mut waits = socket::Waits::default();
        for (at, event) in run.events.iter().enumerate() {
            story.mention(event);
            story.follow(at, event);
            polls.apply(at, event);
            links.apply(at, event);
            if let Some(socket) = socket_of(event.kind) {
                let place = story.sockets.find_or(socket, || Socket::new(socket));
                story.sockets.items[place].apply(at, event.kind);
                let task = event.subject.task.and_then(|task| story.tasks.find(task));
                waits.apply(at, task, event.kind);
            }
        }
        story.sockets.items.iter_mut().for_each(|socket| socket.stop(run.events.len()));
        story.waits = waits.finish();
        for life in story.tasks.items.iter_mut().chain(&mut story.regions.items) {
            life.stop(run.events.len());
        }
        (story.polls, story.links) = (polls.finish(), links.finish());
        (story.parked, story.holds) = tasks::of(run, &story.polls);
        story.workers = story.polls.iter().map(|poll| poll.worker).collect();
        story.workers.sort_unstable();
        story.workers.dedup();
        story
    }

    /// Adds the subjects of the event to the tables.
    fn mention(&mut self, event: &Event) {
        let region = event.subject.region.map(|number| self.region(number));
        if let Some(number) = event.subject.task {
            let task = self.tasks.find_or(number, || Life::new(number));
            let place = &mut self.tasks.items[task].region;
            *place = place.or(region);
        }
        if let Some(number) = event.subject.channel {
            let channel = self.channels.find_or(number, || Channel::new(number));
            let place = &mut self.channels.items[channel].region;
            *place = place.or(region);
        }
    }

    fn region(&mut self, number: u64) -> usize {
        self.regions.find_or(number, || Life::new(number))
    }

    /// Applies the event to its subjects.
    fn follow(&mut self, at: usize, event: &Event) {
        let subject = event.subject;
        let task = subject.task.and_then(|number| self.tasks.find(number));
        let region = subject.region.and_then(|number| self.regions.find(number));
        let channel = subject.channel.and_then(|number| self.channels.find(number));
        if let Some(channel) = channel {
            self.channels.items[channel].apply(at, event);
        }
        if let Some(task) = task.map(|task| &mut self.tasks.items[task]) {
            task.apply_task_event(at, event.kind);
        }
        if let (EventKind::RegionOpened { parent: Some(parent) }, Some(region)) =
            (event.kind, region)
        {
            let parent = self.region(parent);
            self.regions.items[region].region = Some(parent).filter(|parent| *parent != region);
        }
        if let Some(region) = region.map(|region| &mut self.regions.items[region]) {
            region.apply_region_event(at, event.kind);
        }
        let owner = |number| Interval { number, task, region, from: at, end: None };
        if let Some(number) = subject.timer {
            let timer = self.timers.find_or(number, || owner(number));
            let end = match event.kind {
                EventKind::TimerFired { .. } => Some((at, "fired")),
                EventKind::TimerCancelled {} => Some((at, "cancelled")),
                _ => None,
            };
            let known = &mut self.timers.items[timer].end;
            *known = known.or(end);
        }
        if let EventKind::ObligationReserved { obligation: number }
        | EventKind::ObligationResolved { obligation: number, .. } = event.kind
        {
            let obligation = self.obligations.find_or(number, || owner(number));
            let known = &mut self.obligations.items[obligation].end;
            *known = known.or(resolution(event.kind).map(|to| (at, to)));
        }
    }
}

fn resolution(kind: EventKind) -> Option<&'static str> {
    match kind {
        EventKind::ObligationResolved { to, .. } => {
            Some(to).filter(|to| *to != ObligationState::Reserved).map(ObligationState::name)
        }
        _ => None,
    }
}

impl Life {
    fn new(number: u64) -> Life {
        Life { number, region: None, finalizer: false, spans: Vec::new(), outcome: None }
    }

    fn apply_task_event(&mut self, at: usize, kind: EventKind) {
        match kind {
            EventKind::TaskSpawned { finalizer, .. } => {
                self.finalizer = finalizer;
                self.enter(at, "Created");
            }
            EventKind::TaskMoved { from, to } => self.step(at, from.name(), to.name()),
            EventKind::TaskEnded { outcome } => self.outcome = Some(outcome),
            _ => {}
        }
    }

    fn apply_region_event(&mut self, at: usize, kind: EventKind) {
        match kind {
            EventKind::RegionOpened { .. } => self.enter(at, "Open"),
            EventKind::RegionMoved { from, to } => self.step(at, from.name(), to.name()),
            EventKind::RegionOutcome { outcome } => self.outcome = Some(outcome),
            _ => {}
        }
    }

    /// Changes the state. If the trace lacks its beginning, the first step also reveals the state
    /// before it.
    fn step(&mut self, at: usize, from: &'static str, to: &'static str) {
        if self.spans.is_empty() && at > 0 {
            self.enter(0, from);
        }
        self.enter(at, to);
    }

    fn enter(&mut self, at: usize, state: &'static str) {
        self.stop(at);
        self.spans.push(Span { state, from: at, to: at + 1 });
    }

    /// Ends the last span, except for a final state, which has the length of one event.
    fn stop(&mut self, at: usize) {
        if let Some(last) = self.spans.last_mut()
            && !matches!(last.state, "Completed" | "Closed")
        {
            last.to = at.max(last.from);
        }
    }
}

#[cfg(test)]
mod tests;
