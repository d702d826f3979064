//! The list of waits and holds of a thread, from which it is told who waits for whom.
//!
//! With the feature `lab`, and while a host has [begun](crate::footprint::begin) a poll on its
//! thread, each wait for permits of a pool and each hold of them is on a list of that thread. With
//! what regions and cells know (who joins whom, who waits for which close) that is a graph, which
//! [`waits`](crate::waits) draws. Each task also counts its wakers: one that waits and has none is
//! lost. Without the feature all of this is nothing, and costs nothing.

#[cfg(feature = "lab")]
pub use on::{
    Given, Hold, Need, On, Waiter, clear, forget, held, is_clean, take_leaked, take_overruns,
};
#[cfg(feature = "lab")]
pub(crate) use on::{
    Survey, Wakers, What, enter, grant, leaked, leave, obliged, overran, released, take_back,
    with_needs,
};

/// How many wakers of a task there are.
#[cfg(not(feature = "lab"))]
#[derive(Default)]
pub(crate) struct Wakers;

#[cfg(not(feature = "lab"))]
impl Wakers {
    pub(crate) const NONE: Wakers = Wakers;

    #[inline(always)]
    pub(crate) fn more(&self) {}

    #[inline(always)]
    pub(crate) fn fewer(&self) {}
}

/// Without the feature `lab` nothing is kept of obligations and overruns.
#[cfg(not(feature = "lab"))]
mod off {
    use std::panic::Location;

    #[inline(always)]
    pub(crate) fn obliged(_: u64, _: impl FnOnce() -> Option<u64>, _: &'static Location<'static>) {}

    #[inline(always)]
    pub(crate) fn released(_: u64) {}

    #[inline(always)]
    pub(crate) fn leaked(_: u64) {}

    #[inline(always)]
    pub(crate) fn overran(_: u64, _: Option<&'static Location<'static>>) {}
}
#[cfg(not(feature = "lab"))]
pub(crate) use off::{leaked, obliged, overran, released};

#[cfg(feature = "lab")]
mod on {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::mem::ManuallyDrop;
    use std::panic::Location;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use crate::dump::TaskInfo;
    use crate::footprint;

    /// A task that lives, and what keeps it.
    #[derive(Clone, Debug)]
    pub struct Waiter {
        /// Which, and where it waits.
        pub task: TaskInfo,
        /// Wakers of it that something other than a cancel of a scope may use.
        pub wakers: usize,
        /// Its waits, as far as they are known.
        pub needs: Vec<Need>,
        /// What it waits for at a channel, and is kept from by futures of others, or of its own,
        /// that are not polled: others may end these waits as well.
        pub kept_from: Vec<On>,
        /// Futures of its own that were given something, and have not been polled since.
        pub given: Vec<Given>,
    }

    /// What was given to a future that is not polled.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Given {
        /// A lock or permit that was asked for there.
        Permit(&'static Location<'static>),
        /// Room in a channel.
        Room(&'static Location<'static>),
        /// A message.
        Message(&'static Location<'static>),
    }

    impl Waiter {
        /// What it waits for others to do, in all of its waits.
        pub fn on(&self) -> impl Iterator<Item = On> {
            self.needs.iter().flat_map(|need| need.from.iter().copied())
        }
    }

    /// One wait of a task.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Need {
        /// What others may do to end it; nothing if nobody knows who.
        pub from: Vec<On>,
        /// Whether each of these is needed. If not, one may be enough.
        pub each: bool,
    }

    /// What one task waits for another to do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum On {
        /// To end.
        End(u64),
        /// To end, so that a scope can close.
        Close(u64),
        /// To release what it took there.
        Release(u64, Option<&'static Location<'static>>),
        /// To look: it was given a lock or permit that it asked for there.
        Look(u64, &'static Location<'static>),
        /// To get what it asked for there, as it is before the other in the line.
        Turn(u64, &'static Location<'static>),
        /// To look: it was given room in a channel that it asked for there, and the other waits for
        /// room, too.
        LookForRoom(u64, &'static Location<'static>),
        /// The same, and the other waits for a message.
        LookToSend(u64, &'static Location<'static>),
        /// To look: there is a message that it asked for there, and the other waits for the room
        /// that this takes.
        LookToTake(u64, &'static Location<'static>),
    }

    impl On {
        /// The other task.
        pub fn task(self) -> u64 {
            match self {
                On::End(task) | On::Close(task) | On::Release(task, _) => task,
                On::Look(task, _) | On::Turn(task, _) => task,
                On::LookForRoom(task, _) | On::LookToSend(task, _) => task,
                On::LookToTake(task, _) => task,
            }
        }
    }

    /// A lock or permit somebody has taken.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Hold {
        /// Who took it.
        pub task: u64,
        /// Where, if it had to ask.
        pub at: Option<&'static Location<'static>>,
    }

    /// Wakers come and go in polls, nearly all of them: those are counted apart, by the one thread
    /// that polls, without an atomic step. One of each kind may be below zero.
    pub(crate) struct Wakers {
        polled: AtomicU32,
        others: AtomicU32,
    }

    impl Wakers {
        #[allow(clippy::declare_interior_mutable_const, reason = "each use is a new one")]
        pub(crate) const NONE: Wakers =
            Wakers { polled: AtomicU32::new(0), others: AtomicU32::new(0) };

        #[inline]
        pub(crate) fn more(&self) {
            self.add(1);
        }

        #[inline]
        pub(crate) fn fewer(&self) {
            self.add(u32::MAX);
        }

        #[inline]
        fn add(&self, more: u32) {
            if footprint::is_on() {
                self.polled.store(self.polled.load(Relaxed).wrapping_add(more), Relaxed);
            } else {
                self.others.fetch_add(more, Relaxed);
            }
        }

        pub(crate) fn count(&self) -> usize {
            self.polled.load(Relaxed).wrapping_add(self.others.load(Relaxed)) as usize
        }
    }

    /// What is on the list.
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) enum What {
        /// `all`: for all permits there are.
        Waits {
            all: bool,
        },
        Granted,
        Holds,
        /// For room in a channel, whose messages are waited for under this key.
        Room {
            messages: usize,
            granted: bool,
        },
        /// For the message of a channel that has one receiver.
        Message {
            granted: bool,
        },
    }

    struct Entry {
        number: u64,
        pool: usize,
        task: u64,
        at: Option<&'static Location<'static>>,
        what: What,
    }

    impl Entry {
        fn is_waiting(&self) -> bool {
            matches!(self.what, What::Waits { .. })
        }

        /// Whether it waits for something that was not granted yet, a channel included.
        fn can_be_granted(&self) -> bool {
            let at_channel = matches!(
                self.what,
                What::Room { granted: false, .. } | What::Message { granted: false }
            );
            at_channel || self.is_waiting()
        }

        /// What it was given and has not been polled for since.
        fn given(&self) -> Option<Given> {
            let at = self.at?;
            match self.what {
                What::Granted => Some(Given::Permit(at)),
                What::Room { granted: true, .. } => Some(Given::Room(at)),
                What::Message { granted: true } => Some(Given::Message(at)),
                _ => None,
            }
        }
    }

    /// In the order in which they came.
    struct List {
        entries: Vec<Entry>,
        /// How many there were ever.
        numbers: u64,
    }

    impl List {
        const EMPTY: List = List { entries: Vec::new(), numbers: 0 };
    }

    thread_local! {
        /// Without a destructor, which each use would have to ask for: [`forget`] frees it.
        static LIST: RefCell<ManuallyDrop<List>> =
            const { RefCell::new(ManuallyDrop::new(List::EMPTY)) };
        static MARKS: RefCell<ManuallyDrop<Marks>> =
            const { RefCell::new(ManuallyDrop::new(Marks::EMPTY)) };
        /// Whether there is anything in `MARKS`.
        static MARKED: Cell<bool> = const { Cell::new(false) };
    }

    /// The origins of obligations, and the tasks that were ended by force.
    struct Marks {
        /// By number: those that are reserved.
        obliged: BTreeMap<u64, Hold>,
        leaked: Vec<Hold>,
        overran: Vec<Hold>,
    }

    impl Marks {
        const EMPTY: Marks =
            Marks { obliged: BTreeMap::new(), leaked: Vec::new(), overran: Vec::new() };

        fn with<R>(change: impl FnOnce(&mut Marks) -> R) -> R {
            MARKED.set(true);
            MARKS.with_borrow_mut(|marks| change(marks))
        }
    }

    /// An obligation was reserved; `task` returns the number of the task that is being polled, if
    /// there is one.
    pub(crate) fn obliged(
        id: u64,
        task: impl FnOnce() -> Option<u64>,
        at: &'static Location<'static>,
    ) {
        let origin = Hold { task: task().unwrap_or_default(), at: Some(at) };
        Marks::with(|marks| marks.obliged.insert(id, origin));
    }

    /// An obligation was resolved.
    pub(crate) fn released(id: u64) {
        Marks::with(|marks| marks.obliged.remove(&id));
    }

    /// An obligation was not resolved before its region closed.
    pub(crate) fn leaked(id: u64) {
        Marks::with(|marks| {
            // It may have been reserved on another thread.
            let origin = marks.obliged.remove(&id).unwrap_or(Hold { task: 0, at: None });
            marks.leaked.push(origin);
        });
    }

    /// A task was ended by force, or reported because its cleanup took too long; `at` is its last
    /// await.
    pub(crate) fn overran(task: u64, at: Option<&'static Location<'static>>) {
        Marks::with(|marks| marks.overran.push(Hold { task, at }));
    }

    /// Puts something that a task does with a pool on the list: under which number.
    pub(crate) fn enter(
        pool: usize,
        task: u64,
        at: Option<&'static Location<'static>>,
        what: What,
    ) -> u64 {
        LIST.with_borrow_mut(|list| {
            list.numbers += 1;
            let number = list.numbers;
            list.entries.push(Entry { number, pool, task, at, what });
            number
        })
    }

    /// Takes what has this number off the list.
    pub(crate) fn leave(number: u64) {
        LIST.with_borrow_mut(|list| {
            let entries = &mut list.entries;
            // Most are the last that came.
            if entries.pop_if(|entry| entry.number == number).is_none()
                && let Some(at) = entries.iter().rposition(|entry| entry.number == number)
            {
                entries.remove(at);
            }
        });
    }

    /// The first wait of a task for a pool is over, once it looks. If the task is not known, the
    /// first wait of all: a line is served from its head.
    pub(crate) fn grant(pool: usize, task: Option<u64>) {
        LIST.with_borrow_mut(|list| {
            let waits = |entry: &&mut Entry| {
                let is_of_task = task.is_none_or(|task| entry.task == task);
                entry.pool == pool && is_of_task && entry.can_be_granted()
            };
            if let Some(entry) = list.entries.iter_mut().find(waits) {
                entry.what = match entry.what {
                    What::Room { messages, .. } => What::Room { messages, granted: true },
                    What::Message { .. } => What::Message { granted: true },
                    _ => What::Granted,
                };
            }
        });
    }

    /// What was granted to the wait at a channel with this number is gone again.
    pub(crate) fn take_back(number: u64) {
        LIST.with_borrow_mut(|list| {
            let entry = list.entries.iter_mut().rfind(|entry| entry.number == number);
            let what = entry.map(|entry| &mut entry.what);
            if let Some(What::Room { granted, .. } | What::Message { granted }) = what {
                *granted = false;
            }
        });
    }

    /// Whether nothing is waited for or held on this thread, and no obligation has leaked.
    #[inline]
    pub fn is_clean() -> bool {
        let has_leaked = MARKED.get() && MARKS.with_borrow(|marks| !marks.leaked.is_empty());
        !has_leaked && LIST.with_borrow(|list| list.entries.is_empty())
    }

    /// The origins of the obligations that have leaked on this thread since the last call; task 0
    /// where the origin is unknown.
    pub fn take_leaked() -> Vec<Hold> {
        MARKS.with_borrow_mut(|marks| std::mem::take(&mut marks.leaked))
    }

    /// Returns the tasks that were ended by force on this thread since the last call, and where
    /// they waited.
    pub fn take_overruns() -> Vec<Hold> {
        MARKS.with_borrow_mut(|marks| std::mem::take(&mut marks.overran))
    }

    /// What is held that was taken since the last [`clear`].
    pub fn held() -> Vec<Hold> {
        LIST.with_borrow(|list| {
            if list.entries.is_empty() {
                return Vec::new();
            }
            let holds = list.entries.iter().filter(|entry| entry.what == What::Holds);
            holds.map(|entry| Hold { task: entry.task, at: entry.at }).collect()
        })
    }

    /// Forgets all waits and holds of this thread.
    #[inline]
    pub fn clear() {
        LIST.with_borrow_mut(|list| list.entries.clear());
        if MARKED.take() {
            MARKS.with_borrow_mut(|marks| **marks = Marks::EMPTY);
        }
    }

    /// Gives back what was kept for the waits and holds of this thread, which it forgets.
    pub fn forget() {
        LIST.with_borrow_mut(|list| list.entries = Vec::new());
        MARKS.with_borrow_mut(|marks| **marks = Marks::EMPTY);
    }

    /// What the regions know.
    #[derive(Default)]
    pub(crate) struct Survey {
        pub(crate) tasks: Vec<Waiter>,
        /// The waits of tasks for each other.
        pub(crate) needs: Vec<(u64, Need)>,
        /// Who is the body of a scope, and how many of its wakers are for cancels only.
        pub(crate) bodies: Vec<(u64, usize)>,
    }

    /// What the regions know, and who waits for whom.
    pub(crate) fn with_needs(survey: Survey) -> Vec<Waiter> {
        let Survey { mut tasks, needs, bodies } = survey;
        let places = tasks.iter().enumerate().map(|(at, waiter)| (waiter.task.id, at));
        let places: BTreeMap<u64, usize> = places.collect();
        for (task, need) in needs {
            if let Some(at) = places.get(&task) {
                tasks[*at].needs.push(need);
            }
        }
        LIST.with_borrow(|list| {
            let entries = &list.entries;
            let granted: Vec<&Entry> = entries.iter().filter(|it| it.given().is_some()).collect();
            for (at, entry) in entries.iter().enumerate() {
                let Some(place) = places.get(&entry.task) else { continue };
                let waiter = &mut tasks[*place];
                waiter.needs.extend(need(entries, at));
                waiter.kept_from.extend(granted.iter().filter_map(|it| kept_from(entry, it)));
                waiter.given.extend(entry.given());
            }
        });
        for (body, wakers) in bodies {
            if let Some(at) = places.get(&body) {
                tasks[*at].wakers = tasks[*at].wakers.saturating_sub(wakers);
            }
        }
        tasks
    }

    /// What keeps a wait at a channel from its end, if it is that: room or a message that was given
    /// to a future which has not been polled since.
    fn kept_from(wait: &Entry, other: &Entry) -> Option<On> {
        let task = other.task;
        let given = other.given()?;
        match (wait.what, other.what) {
            (What::Room { messages, granted: false }, _) => match given {
                Given::Room(at) if other.pool == wait.pool => Some(On::LookForRoom(task, at)),
                // Of several receivers, which wait for permits, it is one of these.
                Given::Message(at) | Given::Permit(at) if other.pool == messages => {
                    Some(On::LookToTake(task, at))
                }
                _ => None,
            },
            (
                What::Message { granted: false } | What::Waits { .. },
                What::Room { messages, .. },
            ) if messages == wait.pool => Some(On::LookToSend(task, other.at?)),
            _ => None,
        }
    }

    /// What ends a wait for permits, if that is what the entry is: the release of those that are
    /// held, but not before whoever is ahead in the line has had its turn.
    fn need(entries: &[Entry], at: usize) -> Option<Need> {
        let (pool, What::Waits { all }) = (entries[at].pool, entries[at].what) else { return None };
        let others = || entries.iter().filter(|other| other.pool == pool);
        let holds = others().filter_map(|other| match (other.what, other.at) {
            (What::Holds, at) => Some(On::Release(other.task, at)),
            (What::Granted, Some(at)) => Some(On::Look(other.task, at)),
            _ => None,
        });
        let from: Vec<_> = holds.collect();
        let of_pool = |other: &&Entry| other.pool == pool && other.is_waiting();
        let ahead = entries[..at].iter().rfind(of_pool).and_then(|it| Some((it.task, it.at?)));
        Some(match ahead {
            // Where nobody holds anything, all may be called at once.
            Some((task, at)) if !from.is_empty() => {
                Need { from: vec![On::Turn(task, at)], each: true }
            }
            _ => Need { from, each: all },
        })
    }
}
