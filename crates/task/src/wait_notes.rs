//! The notes of a thread that tell of one run: where tasks wait, what is around that, and who has
//! used what they wait at. [`backtrace`](crate::backtrace) is the face of it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::wait::{Side, Thing, Wait};

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
    /// The permits for its slots that there are, if the wait is for a slot.
    pub permits: Vec<Use>,
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
    /// Whether it is a permit for a slot.
    is_permit: bool,
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
        let (permits, ends): (Vec<&Handle>, _) =
            handles.filter(|end| end.thing == number).partition(|end| end.is_permit);
        let ends = ends.iter().filter(|end| end.side == side);
        let permits = permits.iter().filter(|_| side == Side::Receives);
        ThingNotes {
            thing,
            side,
            last: uses.and_then(|uses| uses.last),
            users: uses.map(|uses| uses.users.clone()).unwrap_or_default(),
            ends: ends.map(|end| end.notes).collect(),
            permits: permits.map(|permit| permit.notes.made).collect(),
        }
    }
}

/// A number that no other thing or handle ever has.
pub(crate) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// A side of a thing was used.
pub(crate) fn note_use(thing: u64, side: Side, by: Use) {
    NOTES.with_borrow_mut(|notes| {
        let uses = &mut notes.things.entry(thing).or_default()[side as usize];
        uses.last = Some(by);
        if !uses.users.contains(&by.task) {
            uses.users.push(by.task);
        }
    });
}

/// A handle was made: its number.
pub(crate) fn note_end(thing: u64, side: Side, made: Use) -> u64 {
    add_handle(thing, side, false, made)
}

/// A slot was reserved: the number of its permit.
pub(crate) fn note_permit(thing: u64, made: Use) -> u64 {
    add_handle(thing, Side::Sends, true, made)
}

fn add_handle(thing: u64, side: Side, is_permit: bool, made: Use) -> u64 {
    let number = next_number();
    let notes = EndNotes { made, user: None };
    let handle = Handle { thing, side, is_permit, notes };
    NOTES.with_borrow_mut(|all| all.handles.insert(number, handle));
    number
}

/// A task uses a handle.
pub(crate) fn note_user(end: u64, task: u64) {
    NOTES.with_borrow_mut(|notes| {
        if let Some(handle) = notes.handles.get_mut(&end) {
            handle.notes.user = Some(task);
        }
    });
}

/// A handle is gone.
pub(crate) fn note_gone(end: u64) {
    NOTES.with_borrow_mut(|notes| notes.handles.remove(&end));
}

/// What the last wait that was noted is at.
pub(crate) fn note_thing(number: u64, thing: Thing, side: Side) {
    NOTES.with_borrow_mut(|notes| {
        if let Some(last) = notes.waits.last_mut() {
            last.thing = Some((number, thing, side));
        }
    });
}

/// A task was spawned there.
pub(crate) fn note_spawn(task: u64, at: Option<Place>) {
    if let Some(at) = at {
        NOTES.with_borrow_mut(|notes| notes.spawned.insert(task, at));
    }
}

/// The operation at this address waits.
pub(crate) fn note_wait(task: u64, address: usize, on: Wait, at: Place, frames: Vec<Frame>) {
    // It has no address that lasts, and waits for nobody in particular.
    if on == Wait::Cancel {
        return;
    }
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
