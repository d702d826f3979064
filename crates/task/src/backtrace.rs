//! Where tasks wait, and who has used what they wait at: for hosts that tell of one run.
//!
//! With the feature `lab`, and between `begin` and `end` on a thread, each wait is noted with the
//! parts of its task around it (scopes, timeouts, joins), each task with the place where it was
//! spawned, and each channel with its handles and who sent and received last. Otherwise nothing is
//! noted; without the feature all of this is nothing, and costs nothing.

#[cfg(feature = "lab")]
use std::panic::Location;
#[cfg(feature = "lab")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[cfg(feature = "lab")]
pub use on::{
    EndNotes, Frame, TaskNotes, ThingNotes, Use, WaitNotes, begin, end, forget, is_on, of_task,
};
#[cfg(feature = "lab")]
pub(crate) use on::{note_spawn, note_wait, note_wait_over};

/// One of the two sides of something that tasks wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// That of senders, setters, and those who notify.
    Sends,
    /// That of receivers.
    Receives,
}

/// What tasks wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A channel whose messages each go to one receiver.
    Channel,
    /// A value that is watched.
    Watch,
    /// A channel whose messages go to all receivers.
    Broadcast,
    /// A notification.
    Notify,
}

/// What is noted of the uses of one channel or notification.
#[derive(Debug, Default)]
pub struct Usage(#[cfg(feature = "lab")] AtomicU64);

impl Usage {
    /// Of something new.
    pub const fn new() -> Usage {
        Usage(
            #[cfg(feature = "lab")]
            AtomicU64::new(0),
        )
    }

    /// The task that is being polled has sent or received, where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn used(&self, _side: Side) {
        #[cfg(feature = "lab")]
        self.used_at(_side, Location::caller());
    }

    /// The same, at a place that is known.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn used_at(&self, _side: Side, _at: &'static std::panic::Location<'static>) {
        #[cfg(feature = "lab")]
        if is_on() {
            on::note_use(self.number(), _side, _at);
        }
    }

    /// The wait that was noted last on this thread is for what that side does.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn awaits(&self, _thing: Thing, _side: Side) {
        #[cfg(feature = "lab")]
        if is_on() {
            on::note_thing(self.number(), _thing, _side);
        }
    }

    #[cfg(feature = "lab")]
    fn number(&self) -> u64 {
        match self.0.load(Relaxed) {
            0 => {
                let number = on::next_number();
                self.0.compare_exchange(0, number, Relaxed, Relaxed).err().unwrap_or(number)
            }
            number => number,
        }
    }
}

/// One handle of a channel, on the list of those that there are.
#[derive(Debug, Default)]
pub struct End {
    /// Under this number; 0: it is not on it.
    #[cfg(feature = "lab")]
    number: u64,
    /// The number of the channel.
    #[cfg(feature = "lab")]
    thing: u64,
}

impl End {
    /// A handle that is not on the list.
    pub const NOTHING: End = End {
        #[cfg(feature = "lab")]
        number: 0,
        #[cfg(feature = "lab")]
        thing: 0,
    };

    /// A new handle of this side, made where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn new(_usage: &Usage, _side: Side) -> End {
        #[cfg(feature = "lab")]
        return match is_on() {
            true => End::of_thing(_usage.number(), _side, Location::caller()),
            false => End::NOTHING,
        };
        #[cfg(not(feature = "lab"))]
        End {}
    }

    /// A new handle of the channel that this is one of, made where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn another(&self, _side: Side) -> End {
        #[cfg(feature = "lab")]
        return match self.thing != 0 && is_on() {
            true => End::of_thing(self.thing, _side, Location::caller()),
            false => End::NOTHING,
        };
        #[cfg(not(feature = "lab"))]
        End {}
    }

    #[cfg(feature = "lab")]
    fn of_thing(thing: u64, side: Side, at: &'static Location<'static>) -> End {
        End { number: on::note_end(thing, side, at), thing }
    }

    /// The task that is being polled uses it.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn used(&self) {
        #[cfg(feature = "lab")]
        if self.number != 0 && is_on() {
            on::note_user(self.number);
        }
    }

    /// The task that is being polled has sent or received with it, where this is called.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline, track_caller)]
    pub fn acts(&self, _side: Side) {
        #[cfg(feature = "lab")]
        if self.number != 0 && is_on() {
            on::note_user(self.number);
            on::note_use(self.thing, _side, Location::caller());
        }
    }

    /// The wait that was noted last on this thread is for what that side of its channel does.
    #[cfg_attr(not(feature = "lab"), inline(always))]
    #[cfg_attr(feature = "lab", inline)]
    pub fn awaits(&self, _thing: Thing, _side: Side) {
        #[cfg(feature = "lab")]
        if self.number != 0 && is_on() {
            on::note_user(self.number);
            on::note_thing(self.thing, _thing, _side);
        }
    }
}

#[cfg(feature = "lab")]
impl Drop for End {
    #[inline]
    fn drop(&mut self) {
        if self.number != 0 && is_on() {
            on::note_gone(self.number);
        }
    }
}

#[cfg(feature = "lab")]
mod on {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::panic::Location;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::{Side, Thing};
    use crate::cancel::node::Kind;
    use crate::task::cell::TaskRef;
    use crate::task::context;
    use crate::wait::Wait;

    /// A place in the source.
    type Place = &'static Location<'static>;

    /// Something that a task did, and where.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Use {
        /// Its number; 0: it was outside of all tasks.
        pub task: u64,
        /// Where.
        pub at: Place,
    }

    /// A part of a task, around a wait.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Frame {
        /// What it is.
        pub what: &'static str,
        /// Where it was made.
        pub at: Place,
    }

    /// What is known of a task.
    #[derive(Clone, Debug, Default)]
    pub struct TaskNotes {
        /// Where it was spawned.
        pub spawned: Option<Place>,
        /// Its waits that are not over, the one noted last at the end.
        pub waits: Vec<WaitNotes>,
    }

    /// What is known of a wait.
    #[derive(Clone, Debug)]
    pub struct WaitNotes {
        /// What it is for.
        pub on: &'static str,
        /// Where it is.
        pub at: Place,
        /// What is around it in its task, from the inside out.
        pub frames: Vec<Frame>,
        /// What it is at, if that is a channel or a notification.
        pub thing: Option<ThingNotes>,
    }

    /// Who can end a wait at a channel or a notification, as far as it is known.
    #[derive(Clone, Debug)]
    pub struct ThingNotes {
        /// What it is.
        pub thing: Thing,
        /// The side that can.
        pub side: Side,
        /// The last time that side did something.
        pub last: Option<Use>,
        /// Who did something there, in order.
        pub users: Vec<u64>,
        /// The handles of that side that there are.
        pub ends: Vec<EndNotes>,
    }

    /// What is known of a handle.
    #[derive(Clone, Copy, Debug)]
    pub struct EndNotes {
        /// Who made it, and where.
        pub made: Use,
        /// Who has used it last, if anybody has.
        pub user: Option<u64>,
    }

    #[derive(Default)]
    struct Uses {
        last: Option<Use>,
        users: Vec<u64>,
    }

    struct Handle {
        thing: u64,
        side: Side,
        notes: EndNotes,
    }

    struct Waiting {
        task: u64,
        /// Of the operation.
        address: usize,
        on: &'static str,
        at: Place,
        frames: Vec<Frame>,
        thing: Option<(u64, Thing, Side)>,
    }

    struct Notes {
        /// By the number of the thing: what senders did, and what receivers did.
        things: BTreeMap<u64, [Uses; 2]>,
        handles: BTreeMap<u64, Handle>,
        waits: Vec<Waiting>,
        spawned: BTreeMap<u64, Place>,
    }

    impl Notes {
        const EMPTY: Notes = Notes {
            things: BTreeMap::new(),
            handles: BTreeMap::new(),
            waits: Vec::new(),
            spawned: BTreeMap::new(),
        };
    }

    thread_local! {
        static ON: Cell<bool> = const { Cell::new(false) };
        static NOTES: RefCell<Notes> = const { RefCell::new(Notes::EMPTY) };
    }

    /// Whether notes are taken on this thread.
    #[inline]
    pub fn is_on() -> bool {
        ON.get()
    }

    /// Notes are taken on this thread from here on, and those from before forgotten.
    pub fn begin() {
        forget();
        ON.set(true);
    }

    /// No more notes are taken on this thread.
    pub fn end() {
        ON.set(false);
    }

    /// Forgets the notes of this thread.
    pub fn forget() {
        NOTES.set(Notes::EMPTY);
    }

    /// What is known of a task of this thread.
    pub fn of_task(task: u64) -> TaskNotes {
        NOTES.with_borrow(|notes| TaskNotes {
            spawned: notes.spawned.get(&task).copied(),
            waits: notes.waits_of(task),
        })
    }

    impl Notes {
        fn waits_of(&self, task: u64) -> Vec<WaitNotes> {
            let own = self.waits.iter().filter(|wait| wait.task == task);
            own.map(|wait| WaitNotes {
                on: wait.on,
                at: wait.at,
                frames: wait.frames.clone(),
                thing: wait.thing.map(|(number, thing, side)| self.thing(number, thing, side)),
            })
            .collect()
        }

        fn thing(&self, number: u64, thing: Thing, side: Side) -> ThingNotes {
            let uses = self.things.get(&number).map(|sides| &sides[side as usize]);
            let handles = self.handles.values();
            let ends = handles.filter(|end| (end.thing, end.side) == (number, side));
            ThingNotes {
                thing,
                side,
                last: uses.and_then(|uses| uses.last),
                users: uses.map(|uses| uses.users.clone()).unwrap_or_default(),
                ends: ends.map(|end| end.notes).collect(),
            }
        }
    }

    pub(super) fn next_number() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Relaxed)
    }

    fn current() -> u64 {
        context::with_current(|task| task.id()).unwrap_or(0)
    }

    pub(super) fn note_use(thing: u64, side: Side, at: Place) {
        let task = current();
        NOTES.with_borrow_mut(|notes| {
            let uses = &mut notes.things.entry(thing).or_default()[side as usize];
            uses.last = Some(Use { task, at });
            if !uses.users.contains(&task) {
                uses.users.push(task);
            }
        });
    }

    pub(super) fn note_end(thing: u64, side: Side, at: Place) -> u64 {
        let number = next_number();
        let notes = EndNotes { made: Use { task: current(), at }, user: None };
        NOTES.with_borrow_mut(|all| all.handles.insert(number, Handle { thing, side, notes }));
        number
    }

    pub(super) fn note_user(end: u64) {
        let task = current();
        NOTES.with_borrow_mut(|notes| {
            if let Some(handle) = notes.handles.get_mut(&end) {
                handle.notes.user = Some(task);
            }
        });
    }

    pub(super) fn note_gone(end: u64) {
        NOTES.with_borrow_mut(|notes| notes.handles.remove(&end));
    }

    /// What the last wait that was noted is at.
    pub(super) fn note_thing(number: u64, thing: Thing, side: Side) {
        NOTES.with_borrow_mut(|notes| {
            if let Some(last) = notes.waits.last_mut() {
                last.thing = Some((number, thing, side));
            }
        });
    }

    pub(crate) fn note_spawn(task: u64, at: Option<Place>) {
        if let Some(at) = at {
            NOTES.with_borrow_mut(|notes| notes.spawned.insert(task, at));
        }
    }

    /// The operation at this address waits.
    pub(crate) fn note_wait(task: &TaskRef, address: usize, on: Wait, at: Place) {
        // It has no address that lasts, and waits for nobody in particular.
        if on == Wait::Cancel {
            return;
        }
        let frames = frames(task);
        let task = task.id();
        let on = on.text();
        NOTES.with_borrow_mut(|notes| {
            // One that has been moved since may be at the same place in the source.
            let is_new = |wait: &Waiting| wait.address != address;
            notes.waits.retain(|wait| is_new(wait) && (wait.task, wait.at) != (task, at));
            notes.waits.push(Waiting { task, address, on, at, frames, thing: None });
        });
    }

    /// The operation at this address waits no longer.
    pub(crate) fn note_wait_over(address: usize) {
        NOTES.with_borrow_mut(|notes| notes.waits.retain(|wait| wait.address != address));
    }

    /// The parts of the task around the caller, from the inside out, but for those of this crate's
    /// own making.
    fn frames(task: &TaskRef) -> Vec<Frame> {
        let mut frames = Vec::new();
        let _ = context::find(task, |node| {
            let (what, at) = match &node.kind {
                Kind::Shield(_) => ("a shield", Some(node.at())),
                Kind::Scope(region) => ("the scope opened", region.label.at),
                Kind::Branch(branch) if branch.has_deadline() => ("a timeout", Some(node.at())),
                Kind::Branch(_) => ("a part", Some(node.at())),
                Kind::Local(_) => ("", None),
            };
            frames.extend(at.filter(|at| !is_own(at)).map(|at| Frame { what, at }));
            None::<()>
        });
        frames
    }

    /// Whether a place is in this crate.
    fn is_own(at: &Location<'_>) -> bool {
        let own = file!().strip_suffix("src/backtrace.rs").unwrap_or_default();
        !own.is_empty() && at.file().starts_with(&format!("{own}src"))
    }
}
