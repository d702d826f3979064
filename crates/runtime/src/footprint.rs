//! What a poll touches, for hosts that explore the order of polls: two polls that touch nothing in
//! common give the same result in either order.
//!
//! With the feature `lab` each channel, lock, task and region has a name that is the same in every
//! run of a program: who made it, and as which of the things it made. While a host has
//! [begun](begin) a poll on its thread, uses of them are noted. Without the feature all of this is
//! nothing, and costs nothing.

#[cfg(feature = "lab")]
pub use on::{Access, begin, end, touch};

/// Something polls have in common.
#[cfg(not(feature = "lab"))]
#[derive(Clone, Copy, Default)]
pub(crate) struct Object;

#[cfg(not(feature = "lab"))]
impl Object {
    /// One of those that share a name.
    pub(crate) const COMMON: Object = Object;

    #[inline(always)]
    pub(crate) fn new() -> Object {
        Object
    }

    #[inline(always)]
    pub(crate) fn read(self) {}

    #[inline(always)]
    pub(crate) fn write(self) {}

    /// The end of a task, or that it is to run.
    #[inline(always)]
    pub(crate) fn of_task(_: u64, _: Part) -> Object {
        Object
    }
}

#[cfg(feature = "lab")]
pub(crate) use on::Object;

/// What of a task is touched.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// Whether it is to run: read by who wakes it, written by who polls it or asks it to stop.
    Turn = 1,
    /// Its result.
    End = 2,
}

#[cfg(feature = "lab")]
mod on {
    use std::cell::{Cell, RefCell};

    use asx_kernel::rng::mix64;

    use super::Part;

    /// One use of one thing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Access {
        /// Its name.
        pub object: u64,
        /// Whether it was changed.
        pub write: bool,
    }

    /// The poll that is going on.
    #[derive(Clone, Copy)]
    struct Poll {
        on: bool,
        path: u64,
        made: u64,
    }

    thread_local! {
        static POLL: Cell<Poll> = const { Cell::new(Poll { on: false, path: 0, made: 0 }) };
        static TOUCHED: RefCell<Vec<Access>> = const { RefCell::new(Vec::new()) };
    }

    /// A poll begins on this thread, of the task with this name, which has made so many things.
    pub fn begin(path: u64, made: u64) {
        POLL.set(Poll { on: true, path, made });
        TOUCHED.with_borrow_mut(Vec::clear);
    }

    /// The poll is over: how many things the task has made, and, to `look`, what was touched.
    pub fn end(look: impl FnOnce(&[Access])) -> u64 {
        let Poll { made, .. } = POLL.replace(Poll { on: false, path: 0, made: 0 });
        TOUCHED.with_borrow(|touched| look(touched));
        made
    }

    /// Notes a use of something with a name of its own: of whatever else programs share.
    pub fn touch(object: u64, write: bool) {
        if !POLL.get().on {
            return;
        }
        TOUCHED.with_borrow_mut(|touched| {
            match touched.iter_mut().find(|access| access.object == object) {
                Some(access) => access.write |= write,
                None => touched.push(Access { object, write }),
            }
        });
    }

    #[derive(Clone, Copy, Default)]
    pub(crate) struct Object(u64);

    impl Object {
        pub(crate) const COMMON: Object = Object(0);

        pub(crate) fn new() -> Object {
            let poll = POLL.get();
            if !poll.on {
                return Object::COMMON;
            }
            POLL.set(Poll { made: poll.made + 1, ..poll });
            Object(mix64(poll.path ^ mix64(poll.made + 1)))
        }

        pub(crate) fn read(self) {
            touch(self.0, false);
        }

        pub(crate) fn write(self) {
            touch(self.0, true);
        }

        /// A task is named by its number here; whoever looks knows where it was spawned.
        pub(crate) fn of_task(id: u64, part: Part) -> Object {
            Object(id << 2 | part as u64)
        }
    }
}
