//! What a poll touches, for hosts that explore the order of polls: two polls that touch nothing in
//! common give the same result in either order.
//!
//! With the feature `lab` each channel, lock, task and region has a name that is the same in every
//! run of a program: who made it, and as which of the things it made. While a host has
//! [begun](begin) a poll on its thread, uses of them are noted. Without the feature all of this is
//! nothing, and costs nothing.
//!
//! Around each operation on such a thing there is a [`point`], where a host may have others run
//! before the poll goes on: what threads do to each other between any two instructions matters only
//! there.

#[cfg(feature = "lab")]
pub use on::{
    Access, AccessKind, EVERYTHING, Inspected, TaskRecord, begin, begin_run, begin_same, end,
    end_unnoted, forget, has_touched, inspected, is_alarmed, is_endless, is_shared_state,
    is_thread, named_after, point, set_alarm, take_endless, take_yielded, this_thread, touch,
    touch_neutral,
};
#[cfg(feature = "lab")]
pub(crate) use on::{
    arms_foreign, inspect, is_on, keeps_foreign_waker, neutrally, observes, pends, read_numbers,
    set_pause, wakes_foreign, yields,
};

/// A place before or after an operation. In the lab others may run here, and a poll that goes on
/// for ever is stopped, by a panic: so it is called where no lock is held.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub fn point() {}

/// Has a [`point`] after an operation, when this is dropped.
#[derive(Debug)]
pub struct AfterOperation(());

#[cfg(feature = "lab")]
impl Drop for AfterOperation {
    /// Nothing that an operation which waits has done can be told apart from a later end of the
    /// poll: there is no point after it.
    #[inline]
    fn drop(&mut self) {
        if !on::take_pending() {
            point();
        }
    }
}

/// The [`point`] before an operation that is done at once; the one after it is where what is
/// returned is dropped.
#[must_use = "the operation ends where this is dropped"]
#[inline(always)]
pub fn operation() -> AfterOperation {
    point();
    after_operation()
}

/// The [`point`] after an operation, which is where what is returned is dropped.
#[must_use = "the operation ends where this is dropped"]
#[inline(always)]
pub fn after_operation() -> AfterOperation {
    AfterOperation(())
}

/// The task that is polled lets others go first.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn yields() {}

/// Does what one task does in place of another, whichever that is.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn neutrally<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// The operation that is polled waits.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn pends() {}

/// Records that the step has checked whether its task is cancelled. Another task may cancel it
/// before the next operation.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn observes() {}

/// Records that the step reads the state of the whole runtime.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn inspect() {}

/// Records that the program reads the number of a task.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn read_numbers() {}

/// Records that an operation of the task waits with a foreign waker, one that is neither the task's
/// own nor one of this runtime's combinators.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn keeps_foreign_waker() {}

/// Records that a foreign waker is about to be woken. Other tasks may run before that.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn wakes_foreign() {}

/// Records that a timer is armed that wakes a foreign waker. Timers with the same deadline fire in
/// the order in which they were armed.
#[cfg(not(feature = "lab"))]
#[inline(always)]
pub(crate) fn arms_foreign(_: asx_kernel::time::Time) {}

/// Something polls have in common: in the lab it has a name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Object(#[cfg(feature = "lab")] u64);

#[cfg(not(feature = "lab"))]
impl Object {
    /// One of those that share a name.
    pub const COMMON: Object = Object();

    /// A new region.
    #[inline(always)]
    pub(crate) fn region() -> Object {
        Object()
    }

    /// Something new: in the lab it has a name of its own, after the task that makes it.
    #[inline(always)]
    pub fn new() -> Object {
        Object()
    }

    /// It is looked at.
    #[inline(always)]
    pub fn read(self) {}

    /// It is looked at, or changed in a way that commutes with other changes of this kind; when,
    /// no program can tell.
    #[inline(always)]
    pub(crate) fn read_neutral(self) {}

    /// It is changed, or taken.
    #[inline(always)]
    pub fn write(self) {}

    /// One of those that it waits for is gone, or is here to find out who is left.
    #[inline(always)]
    pub(crate) fn leave(self, _: Leave) {}

    /// A part of it: what uses only another part does not use this one.
    #[inline(always)]
    pub fn part(self, _: u64) -> Object {
        Object()
    }

    /// Something new that is made at a place of the source.
    #[inline(always)]
    pub fn new_at(_: &std::panic::Location<'_>) -> Object {
        Object()
    }

    /// Whatever is made at a place of the source.
    #[inline(always)]
    pub const fn made_at(_: &std::panic::Location<'_>) -> Object {
        Object()
    }

    /// The end of a task, or that it is to run.
    #[inline(always)]
    pub(crate) fn of_task(_: u64, _: Part) -> Object {
        Object()
    }
}

/// How one goes of several that something waits for, in whatever order they go.
#[derive(Clone, Copy)]
pub(crate) enum Leave {
    /// Others are left.
    Early,
    /// It was the last one; had another been, that one would have done the same.
    Last,
    /// It was the last one, and goes on because of that, where it would have waited.
    AfterAll,
}

/// What of a task is touched.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// What its operations look at: written by who asks it to stop.
    Own = 1,
    /// Its result.
    End = 2,
    /// Whether it is to be polled: read by who wakes it, since it makes no difference which of
    /// several wakes comes first, and written by the poll that follows.
    Turn = 3,
}

#[cfg(all(test, feature = "lab", not(loom)))]
mod tests {
    use asx_kernel::time::Time;

    use super::*;

    const FIVE: TaskRecord = TaskRecord { made: 5, has_foreign_waker: false };

    /// Few things and many: each is told once, in the order of its first use, as changed if any of
    /// its uses changed it; and nothing of the poll before.
    #[test]
    fn a_poll_tells_each_thing_it_used_once() {
        for things in [0, 1, 15, 16, 17, 40] {
            begin(9, FIVE, true);
            for round in 0..3 {
                (0..things).for_each(|thing| touch(thing, thing % 3 == round && round > 0));
            }
            let mut told = Vec::new();
            let made =
                end(|Access { object, how, .. }| told.push((object, how == AccessKind::Write)));
            let expected: Vec<_> = (0..things).map(|thing| (thing, thing % 3 > 0)).collect();
            assert_eq!((made, told), (FIVE, expected));
        }
        begin(9, FIVE, false);
        touch(1, true);
        assert_eq!(end(|_| panic!("nobody asked")), FIVE);
        forget();
    }

    /// Of the same task: its uses are counted anew, and what it has made is not.
    #[test]
    fn the_next_step_of_a_poll_has_used_nothing() {
        begin(9, FIVE, false);
        Object::new().write();
        yields();
        assert!(has_touched());
        begin_same();
        assert!(!has_touched() && !take_yielded());
        for _ in 0..3 {
            // Too much for one step.
            (0..1 << 17).for_each(|_| touch(1, false));
            point();
            begin_same();
        }
        assert_eq!(end_unnoted(), TaskRecord { made: 6, ..FIVE });
        forget();
    }

    /// From the step on in which a task has left a foreign waker somewhere, each of its steps
    /// reads the state behind such wakers, which a wake changes.
    #[test]
    fn steps_of_a_task_with_a_foreign_waker_read_what_wakes_change() {
        let step = |record, body: fn()| {
            let mut told = Vec::new();
            begin(9, record, true);
            body();
            let record = end(|access| told.push(access));
            (record, told)
        };
        let (record, told) = step(FIVE, || touch(1, true));
        assert_eq!((record, told.len(), has_touched()), (FIVE, 1, true));
        let (record, told) = step(record, keeps_foreign_waker);
        assert_eq!(record, TaskRecord { has_foreign_waker: true, ..FIVE });
        let [read] = told[..] else { panic!("{told:?}") };
        assert_eq!(read.how, AccessKind::Read);
        assert!(!is_shared_state(&read));
        let (_, told) = step(record, || ());
        assert_eq!((told, has_touched()), (vec![read], true));
        let (_, told) = step(record, wakes_foreign);
        assert_eq!(told, [Access { how: AccessKind::Write, ..read }]);
        let (_, told) = step(FIVE, || {
            [3, 3, 4].map(Time::from_nanos).into_iter().for_each(arms_foreign);
        });
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told.iter().all(|it| it.how == AccessKind::Write && !is_shared_state(it)));
        forget();
    }
}

#[cfg(feature = "lab")]
mod on {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;
    use std::hash::{BuildHasherDefault, Hasher};
    use std::mem::ManuallyDrop;
    use std::panic::Location;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use asx_kernel::rng::{GOLDEN, mix64};
    use asx_kernel::time::Time;

    use super::{Leave, Object, Part};

    /// One use of one thing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access {
        /// Its name.
        pub object: u64,
        /// How it was used.
        pub how: AccessKind,
        /// Whether a program cannot tell in which order it is used.
        pub is_neutral: bool,
    }

    /// How a thing was used: of several uses in one poll, the last of these.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum AccessKind {
        /// It was looked at, or changed in a way that commutes with other changes of this kind.
        Read,
        /// It was changed by the last of those that change it so, whichever that is.
        Complete,
        /// It was changed.
        Write,
    }

    /// The poll that is going on: in cells of their own, as each use of a thing reads and writes
    /// few of them.
    struct Poll {
        /// The number of the thread; 0 if it has none yet.
        thread: Cell<u64>,
        on: Cell<bool>,
        /// Whether no program can tell the order of the uses that follow.
        neutral: Cell<bool>,
        /// Whether uses are noted in this run at all.
        names: Cell<bool>,
        /// Whether uses are noted, and not just counted.
        notes: Cell<bool>,
        path: Cell<u64>,
        made: Cell<u64>,
        /// Whether the task has left a foreign waker with an operation.
        has_foreign_waker: Cell<bool>,
        /// Uses of things so far.
        uses: Cell<u32>,
        /// A poll was stopped that went on for ever.
        stopped: Cell<bool>,
        /// There may be more to the poll than usual.
        alarm: Cell<bool>,
        /// A task has let others go first.
        yielded: Cell<bool>,
        /// The operation that is polled waits.
        pending: Cell<bool>,
        /// Whether something was used since the poll began, or went on after a point.
        touched: Cell<bool>,
        /// What is called at points, if the host may have others run there.
        pause: Cell<Option<fn()>>,
        /// State read by polls of this thread that no single object stands for.
        inspected: Cell<Inspected>,
        /// How many uses were noted, and the first of them, each of another thing.
        noted: Cell<usize>,
        few: [Cell<Access>; FEW],
    }

    /// The attributes of a task that last from one of its steps to the next.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct TaskRecord {
        /// How many objects it has made.
        pub made: u64,
        /// Whether it has left a foreign waker with an operation. From then on each of its steps
        /// reads the state behind such wakers.
        pub has_foreign_waker: bool,
    }

    /// State that polls have read and that no single object stands for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Inspected {
        /// The state of the whole runtime: a dump, metrics.
        pub state: bool,
        /// The number of a task, which depends on the order of all spawns.
        pub numbers: bool,
    }

    /// The object that stands for the state of the whole runtime. A step that inspects the runtime
    /// writes it; the host has every other step read it.
    pub const EVERYTHING: u64 = 0x6576_6572_7974_6869;

    /// The last bits of the names of regions, and of other records of the runtime.
    const REGION: u64 = 0xA5A5;
    const REGION_BITS: u64 = 0xFFFF;

    /// The object that stands for the state behind all foreign wakers, such as the queue of woken
    /// children of a combinator of another crate. A wake writes it. A task that has left such a
    /// waker somewhere reads it with each step, since the lab does not see where the task looks.
    const FOREIGN_WAKERS: u64 = 0x666F_7265_6967_6E00 & !REGION_BITS | REGION;

    /// Names from here on are not the numbers of tasks.
    const TASK_NUMBERS: u64 = 1 << 40;

    /// Records that the step reads the state of the whole runtime, with the numbers of tasks.
    pub(crate) fn inspect() {
        touch(EVERYTHING, true);
        note_inspected(Inspected { state: true, numbers: true });
    }

    /// Records that the program reads the number of a task.
    pub(crate) fn read_numbers() {
        note_inspected(Inspected { state: false, numbers: true });
    }

    fn note_inspected(new: Inspected) {
        POLL.with(|poll| {
            let old = poll.inspected.get();
            let state = old.state || new.state;
            poll.inspected.set(Inspected { state, numbers: old.numbers || new.numbers });
        });
    }

    /// Returns the state that polls of this thread have read since [`forget`], and that no single
    /// object stands for.
    pub fn inspected() -> Inspected {
        POLL.with(|poll| poll.inspected.get())
    }

    /// Whether an access is to state that tasks share explicitly (a channel, a lock, a socket), and
    /// not to one of the runtime's own records of tasks and regions.
    pub fn is_shared_state(access: &Access) -> bool {
        let is_region = access.object & REGION_BITS == REGION;
        access.object >= TASK_NUMBERS
            && !access.is_neutral
            && !is_region
            && access.object != EVERYTHING
    }

    /// Tells who is left of those that a thing waits for from the thing.
    const LEFT: u64 = 0x6C65_6674_5F61_7265;

    /// The hash of a name, which is mixed already.
    #[derive(Default)]
    struct Mixed(u64);

    impl Hasher for Mixed {
        fn finish(&self) -> u64 {
            self.0
        }

        fn write(&mut self, bytes: &[u8]) {
            self.0 = bytes.iter().fold(self.0, |hash, byte| mix64(hash ^ u64::from(*byte)));
        }

        fn write_u64(&mut self, name: u64) {
            self.0 = name;
        }
    }

    const UNUSED: Access = Access { object: 0, how: AccessKind::Read, is_neutral: false };

    /// As many things as most polls use.
    const FEW: usize = 16;

    /// More uses than a poll has that ends.
    const ENDLESS: u32 = 1 << 18;

    thread_local! {
        static POLL: Poll = const {
            Poll {
                thread: Cell::new(0),
                on: Cell::new(false),
                neutral: Cell::new(false),
                names: Cell::new(false),
                notes: Cell::new(false),
                path: Cell::new(0),
                made: Cell::new(0),
                has_foreign_waker: Cell::new(false),
                uses: Cell::new(0),
                stopped: Cell::new(false),
                alarm: Cell::new(false),
                yielded: Cell::new(false),
                pending: Cell::new(false),
                touched: Cell::new(false),
                pause: Cell::new(None),
                inspected: Cell::new(Inspected { state: false, numbers: false }),
                noted: Cell::new(0),
                few: [const { Cell::new(UNUSED) }; FEW],
            }
        };
        /// How many things were made so far in this run, by the place and the task.
        static MADE: RefCell<HashMap<u64, u64, BuildHasherDefault<Mixed>>> = RefCell::default();
        /// The uses beyond those. Without a destructor, which each use would have to ask for:
        /// [`forget`] frees it.
        static TOUCHED: RefCell<ManuallyDrop<Vec<Access>>> =
            const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    }

    /// A run of a program begins on this thread: nothing was made in it so far. `names`: somebody
    /// may want to know what it touches.
    pub fn begin_run(names: bool) {
        POLL.with(|poll| poll.names.set(names));
        if names {
            MADE.with_borrow_mut(|made| made.clear());
        }
    }

    /// Begins a step of the task with this name on this thread. `notes`: its footprint is wanted at
    /// its end.
    #[inline]
    pub fn begin(path: u64, record: TaskRecord, notes: bool) {
        POLL.with(|poll| {
            poll.on.set(true);
            poll.notes.set(notes);
            poll.path.set(path);
            poll.made.set(record.made);
            poll.has_foreign_waker.set(record.has_foreign_waker);
            poll.uses.set(0);
            poll.yielded.set(false);
            poll.pending.set(false);
            poll.neutral.set(false);
            poll.touched.set(false);
            if notes {
                poll.noted.set(0);
                TOUCHED.with_borrow_mut(|touched| touched.clear());
            }
        });
        if record.has_foreign_waker {
            touch(FOREIGN_WAKERS, false);
        }
    }

    /// Ends the step and returns the record of the task. `look` is called with the footprint if
    /// that was wanted.
    #[inline]
    pub fn end(mut look: impl FnMut(Access)) -> TaskRecord {
        POLL.with(|poll| {
            poll.on.set(false);
            if poll.notes.replace(false) {
                let noted = poll.noted.get();
                poll.few[..noted.min(FEW)].iter().for_each(|access| look(access.get()));
                if noted > FEW {
                    TOUCHED.with_borrow(|touched| touched.iter().copied().for_each(look));
                }
            }
            poll.record()
        })
    }

    /// Ends a step whose footprint is not wanted, and returns the record of the task.
    #[inline]
    pub fn end_unnoted() -> TaskRecord {
        POLL.with(|poll| {
            poll.on.set(false);
            poll.record()
        })
    }

    impl Poll {
        #[inline(always)]
        fn record(&self) -> TaskRecord {
            let made = self.made.get();
            TaskRecord { made, has_foreign_waker: self.has_foreign_waker.get() }
        }
    }

    /// Runs a part of the program that runs outside of polls, so that what it makes is named as if
    /// the task `path` had made it.
    pub fn named_after<R>(path: u64, f: impl FnOnce() -> R) -> R {
        /// Ends the poll, also if `f` panics.
        struct End;

        impl Drop for End {
            fn drop(&mut self) {
                end_unnoted();
            }
        }

        begin(path, TaskRecord::default(), false);
        let _end = End;
        f()
    }

    /// A step of the poll is over of which nobody wanted to know what it touched, and the next one
    /// begins.
    pub fn begin_same() {
        POLL.with(|poll| {
            poll.uses.set(0);
            poll.yielded.set(false);
            poll.pending.set(false);
            poll.touched.set(poll.has_foreign_waker.get());
        });
    }

    /// The number of the calling thread, from 1, which no other ever has. Whoever is asked for
    /// something in a poll wants to know where it is; so this is where it looks anyway.
    pub fn this_thread() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        POLL.with(|poll| {
            if poll.thread.get() == 0 {
                poll.thread.set(NEXT.fetch_add(1, Relaxed));
            }
            poll.thread.get()
        })
    }

    /// Whether the calling thread is that of a number.
    #[inline]
    pub fn is_thread(number: u64) -> bool {
        POLL.with(|poll| poll.thread.get() == number)
    }

    /// Frees the buffers of the footprints of this thread, and clears what its polls have
    /// [inspected].
    pub fn forget() {
        POLL.with(|poll| poll.inspected.take());
        let empty = ManuallyDrop::new(Vec::new());
        drop(ManuallyDrop::into_inner(TOUCHED.replace(empty)));
    }

    /// Whether a poll is going on that is watched.
    #[inline]
    pub(crate) fn is_on() -> bool {
        POLL.with(|poll| poll.on.get())
    }

    /// A place before or after an operation: the host may have others run here. A poll that has
    /// used more than one that ends is stopped, by a panic: so this is called where no lock is
    /// held.
    #[inline]
    pub fn point() {
        let (uses, pause) = POLL.with(|poll| {
            let uses = poll.uses.get();
            poll.uses.set(uses.wrapping_add(1));
            poll.pending.set(false);
            let pause = if poll.neutral.get() { None } else { poll.pause.get() };
            (uses, pause)
        });
        if uses >= ENDLESS {
            stop();
        }
        if let Some(pause) = pause {
            pause();
        }
    }

    /// Says what is called at points of this thread: what was before.
    #[inline]
    pub(crate) fn set_pause(pause: Option<fn()>) -> Option<fn()> {
        POLL.with(|poll| poll.pause.replace(pause))
    }

    /// Whether something was used since the poll began, or went on after a point.
    #[inline]
    pub fn has_touched() -> bool {
        POLL.with(|poll| poll.touched.get())
    }

    #[cold]
    fn stop() {
        if !is_on() || std::thread::panicking() {
            return;
        }
        POLL.with(|poll| {
            poll.uses.set(0);
            poll.stopped.set(true);
            poll.alarm.set(true);
        });
        panic!("a poll that does not end");
    }

    /// Whether a poll was ended because it went on for ever, since that was taken last.
    #[inline]
    pub fn is_endless() -> bool {
        POLL.with(|poll| poll.stopped.get())
    }

    /// Whether a poll was ended because it went on for ever, since this was asked last.
    #[inline]
    pub fn take_endless() -> bool {
        POLL.with(|poll| poll.stopped.get() && poll.stopped.take())
    }

    /// Says whether there may be more to the polls of this thread than usual: what a host looks at
    /// after each of them, in place of all that can be.
    #[inline]
    pub fn set_alarm(alarm: bool) {
        POLL.with(|poll| poll.alarm.set(alarm));
    }

    /// Whether there may be more to the last poll than usual. A poll that was ended because it went
    /// on for ever is one of those.
    #[inline]
    pub fn is_alarmed() -> bool {
        POLL.with(|poll| poll.alarm.get())
    }

    #[inline]
    pub(crate) fn yields() {
        POLL.with(|poll| poll.yielded.set(true));
    }

    /// Does what one task does in place of another, whichever that is: which one used something
    /// is no part of what a run is.
    pub(crate) fn neutrally<R>(f: impl FnOnce() -> R) -> R {
        let _restore = RestoreNeutral(POLL.with(|poll| poll.neutral.replace(true)));
        f()
    }

    /// Ends [`neutrally`], also if what it does panics.
    struct RestoreNeutral(bool);

    impl Drop for RestoreNeutral {
        fn drop(&mut self) {
            POLL.with(|poll| poll.neutral.set(self.0));
        }
    }

    /// Records that an operation of the task waits with a foreign waker.
    pub(crate) fn keeps_foreign_waker() {
        POLL.with(|poll| poll.has_foreign_waker.set(true));
        touch(FOREIGN_WAKERS, false);
    }

    /// Records that a foreign waker is about to be woken. One operation may wake several, and a
    /// task that the first has woken may run before the second: so this is a [`point`].
    pub(crate) fn wakes_foreign() {
        point();
        touch(FOREIGN_WAKERS, true);
    }

    /// Records that a timer is armed that wakes a foreign waker.
    pub(crate) fn arms_foreign(deadline: Time) {
        let name = mix64(FOREIGN_WAKERS ^ deadline.as_nanos());
        touch(name & !REGION_BITS | REGION, true);
    }

    #[inline]
    pub(crate) fn observes() {
        POLL.with(|poll| poll.touched.set(true));
    }

    #[inline]
    pub(crate) fn pends() {
        POLL.with(|poll| poll.pending.set(true));
    }

    #[inline]
    pub(super) fn take_pending() -> bool {
        POLL.with(|poll| poll.pending.take())
    }

    /// Whether a task has let others go first, since its poll began or this was asked last.
    #[inline]
    pub fn take_yielded() -> bool {
        POLL.with(|poll| poll.yielded.get() && poll.yielded.take())
    }

    /// Notes a use of something with a name of its own: of whatever else programs share.
    #[inline]
    pub fn touch(object: u64, write: bool) {
        let how = if write { AccessKind::Write } else { AccessKind::Read };
        use_thing(Access { object, how, is_neutral: false });
    }

    /// The same of a look, or of a change that commutes with other changes of this kind, which
    /// no program can tell from one that comes earlier or later.
    #[inline]
    pub fn touch_neutral(object: u64) {
        use_thing(Access { object, how: AccessKind::Read, is_neutral: true });
    }

    #[inline]
    fn use_thing(access: Access) {
        POLL.with(|poll| {
            poll.uses.set(poll.uses.get().wrapping_add(1));
            poll.touched.set(true);
            if poll.notes.get() {
                let is_neutral = access.is_neutral || poll.neutral.get();
                note(poll, Access { is_neutral, ..access });
            }
        });
    }

    #[inline(never)]
    fn note(poll: &Poll, new: Access) {
        let noted = poll.noted.get();
        for known in poll.few[..noted.min(FEW)].iter().rev() {
            let access = known.get();
            if access.object == new.object {
                let is_neutral = access.is_neutral && new.is_neutral;
                known.set(Access { how: access.how.max(new.how), is_neutral, ..access });
                return;
            }
        }
        match poll.few.get(noted) {
            Some(place) => place.set(new),
            None if note_more(new) => {}
            None => return,
        }
        poll.noted.set(noted + 1);
    }

    /// The same beyond the first few: whether it is new.
    #[cold]
    fn note_more(new: Access) -> bool {
        TOUCHED.with_borrow_mut(|touched| {
            let known = touched.iter_mut().rev().find(|access| access.object == new.object);
            match known {
                Some(access) => {
                    access.how = access.how.max(new.how);
                    access.is_neutral &= new.is_neutral;
                    false
                }
                None => {
                    touched.push(new);
                    true
                }
            }
        })
    }

    #[inline(always)]
    const fn mixed(mut hash: u64, file: &[u8]) -> u64 {
        let mut at = 0;
        while at < file.len() {
            hash = (hash ^ file[at] as u64).wrapping_mul(0x0100_0000_01B3);
            at += 1;
        }
        hash
    }

    impl Object {
        /// One of those that share a name.
        pub const COMMON: Object = Object(0);

        /// A new region: named as by [`new`](Object::new), and recognisable as one.
        #[inline]
        pub(crate) fn region() -> Object {
            match Object::new() {
                Object(0) => Object::COMMON,
                Object(name) => Object(name & !REGION_BITS | REGION),
            }
        }

        /// Something new: named after the task that is polled, and as which of what that has made.
        #[inline]
        pub fn new() -> Object {
            POLL.with(|poll| {
                if !poll.on.get() {
                    return Object::COMMON;
                }
                let made = poll.made.get() + 1;
                poll.made.set(made);
                Object(mix64(poll.path.get() ^ mix64(made)))
            })
        }

        /// Something new: named after the place where it is made, the task that is polled, and as
        /// which of what that has made there. What a program makes only in its first run, for a
        /// `static`, thus changes no name of what it makes elsewhere.
        pub fn new_at(place: &Location<'_>) -> Object {
            let at = Object::made_at(place);
            let by = POLL.with(|poll| {
                let is_named = poll.on.get() && poll.names.get();
                is_named.then(|| mix64(poll.path.get()))
            });
            let Some(by) = by else { return at };
            let nth = MADE.with_borrow_mut(|made| {
                let count = made.entry(at.0 ^ by).or_insert(0);
                *count += 1;
                *count
            });
            Object(mix64(at.0 ^ by.rotate_left(1) ^ mix64(nth)))
        }

        /// Whatever is made at a place of the source.
        ///
        /// A lock in a `static` is made where nobody knows of a poll; and who uses it first is not
        /// the same in every run, so that this can't name it either: a search that sets two runs
        /// against each other would take one lock for two. The place where it is made is the same
        /// always. Those made at one place share a name, which is more than they have in common,
        /// and does no harm.
        pub const fn made_at(place: &Location<'_>) -> Object {
            /// What tells files apart is at the end of their paths.
            const ENOUGH: usize = 16;
            let file = place.file().as_bytes();
            let mut hash = (place.line() as u64) << 32 | place.column() as u64;
            // Of one length, so that it takes no loop.
            match file.last_chunk::<ENOUGH>() {
                Some(end) => hash = mixed(hash, end),
                None => hash = mixed(hash, file),
            }
            // Numbers of tasks are small.
            Object(hash | 1 << 63)
        }

        /// A part of it: what uses only another part does not use this one. What shares its name
        /// with others has no parts.
        #[inline]
        pub fn part(self, part: u64) -> Object {
            Object(if self.0 == 0 { 0 } else { self.0 ^ part.wrapping_mul(GOLDEN) })
        }

        /// Its name; 0 if it shares that with others.
        #[inline]
        pub fn name(self) -> u64 {
            self.0
        }

        /// It is looked at.
        #[inline]
        pub fn read(self) {
            touch(self.0, false);
        }

        /// It is looked at, or changed in a way that commutes with other changes of this kind;
        /// when, no program can tell.
        #[inline]
        pub(crate) fn read_neutral(self) {
            touch_neutral(self.0);
        }

        /// It is changed, or taken.
        #[inline]
        pub fn write(self) {
            touch(self.0, true);
        }

        /// One of those that it waits for is gone, or is here to find out who is left.
        #[inline]
        pub(crate) fn leave(self, leave: Leave) {
            let how = match leave {
                Leave::Early => AccessKind::Read,
                Leave::Last => AccessKind::Complete,
                Leave::AfterAll => AccessKind::Write,
            };
            use_thing(Access { object: self.0 ^ LEFT, how, is_neutral: true });
        }

        /// A task is named by its number here; whoever looks knows where it was spawned.
        #[inline]
        pub(crate) fn of_task(id: u64, part: Part) -> Object {
            Object(id << 2 | part as u64)
        }
    }
}
