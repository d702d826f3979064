//! Tasks that have ended while their region goes on.
//!
//! Who ends a task takes it off its region's list, under the region's lock. When one worker spawns
//! what another runs, that lock goes from one processor to the other and back for every task, which
//! costs more than a small task does. But as long as the region is open and its author is not done,
//! nothing follows from the end of one task that went well: it may as well be left here, and be
//! taken off the list with the next ones.
//!
//! That begins when two have met at the lock: where there is one thread it would be for nothing.
//! Whoever looks at the region has them taken off first, so that nobody sees the difference; all
//! but spawning takes a look. From the region's end on nothing is left here any more.
//!
//! # Rules
//! 1. `claims` counts the places that are taken, and goes on counting when there are none left. Who
//!    raises it from `n` may leave a task in place `n`, if there is one, and must then do so.
//! 2. All else is done under the lock of the region. There are no places before `claims` goes from
//!    [`UNUSED`] to zero, and none after it was [`SHUT`]. Tasks are taken out all together: it is
//!    zero or shut after that, and the places are empty.
//! 3. A task here has completed and is on the list of its region, whose reference to it goes to who
//!    takes it out. Who has left it does not look at it any more, nor at the region.

use std::array;
use std::ptr::{NonNull, null_mut};

use asx_journal::Stamp;

use crate::prim::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::prim::atomic::{AtomicPtr, AtomicUsize};
use crate::raw::audit::Owner;
use crate::raw::{Header, TaskRef};
use crate::spinlock::pause;

/// How many tasks can be here: few enough for models to fill it. On a page there is one thread, and
/// nothing to gain.
const ROOM: usize = match () {
    () if cfg!(target_arch = "wasm32") => 0,
    () if cfg!(loom) => 2,
    () => 6,
};
/// There are no places yet.
const UNUSED: usize = 1 << (usize::BITS - 2);
/// There are no places any more.
const SHUT: usize = 1 << (usize::BITS - 1);

/// The places.
pub(super) struct CompletionBuffer {
    claims: AtomicUsize,
    /// No end of one that is off the list is recorded later. Under the lock: who leaves a task here
    /// has left its mark in that.
    ended: Stamp,
    places: [AtomicPtr<Header>; ROOM],
}

/// Tasks that were taken out; they go when the lock of their region is not held any more.
pub(super) struct Gone {
    tasks: [Option<TaskRef>; ROOM],
}

impl Gone {
    /// Each of them, in the order they were left.
    pub(super) fn each(&self) -> impl Iterator<Item = NonNull<Header>> {
        self.tasks.iter().map_while(Option::as_ref).map(TaskRef::as_ptr)
    }
}

impl CompletionBuffer {
    pub(super) fn new() -> CompletionBuffer {
        let places = array::from_fn(|_| AtomicPtr::new(null_mut()));
        CompletionBuffer { claims: AtomicUsize::new(UNUSED), ended: Stamp::default(), places }
    }

    /// As if it was new, for who alone knows the region, which is closed.
    #[cfg(not(any(loom, target_family = "wasm", asx_no_reuse)))]
    #[inline]
    pub(super) fn renew(&mut self) {
        debug_assert!(self.places.iter_mut().all(|place| place.get_mut().is_null()));
        *self.claims.get_mut() = UNUSED;
        self.ended = Stamp::default();
    }

    /// Whether there may be a task here.
    #[inline]
    pub(super) fn any(&self) -> bool {
        ROOM > 0 && (1..UNUSED).contains(&self.claims.load(Relaxed))
    }

    /// From now on there are places, if there were none so far.
    #[cold]
    pub(super) fn open(&self) {
        if self.claims.load(Relaxed) == UNUSED {
            self.claims.store(0, Release);
        }
    }

    /// Leaves a task here: whether there was a place. Then it is not the caller's any more, and the
    /// region may be gone (rule 3).
    ///
    /// # Safety
    /// It has completed and is on the list of the region, whose reference to it is the caller's.
    #[inline]
    pub(super) unsafe fn push(&self, task: NonNull<Header>) -> bool {
        if self.claims.load(Relaxed) >= ROOM {
            return false;
        }
        // Rule 1. After this comes what is done to the place and, for who sees it, to the task.
        let claim = self.claims.fetch_add(1, AcqRel);
        match self.places.get(claim) {
            None => false,
            Some(place) => {
                // The last use of the region: who takes the task out may free it after that.
                place.store(task.as_ptr(), Release);
                true
            }
        }
    }

    /// No task is left here from now on: false if there may be some already.
    #[inline]
    pub(super) fn shut_unused(&self) -> bool {
        let unused = ROOM == 0 || self.claims.load(Relaxed) >= UNUSED;
        if unused {
            self.claims.store(SHUT, Relaxed);
        }
        unused
    }

    /// What comes after this comes after the end of all that are off the list.
    pub(super) fn ended(&self) -> Option<&Stamp> {
        (ROOM > 0).then_some(&self.ended)
    }

    /// Takes all tasks out. `shut`: none is left here from now on.
    pub(super) fn take(&self, shut: bool) -> Gone {
        let mut gone = Gone { tasks: [const { None }; ROOM] };
        let mut taken = 0;
        let mut claims = self.claims.load(Acquire);
        while claims < UNUSED {
            taken = self.take_up_to(claims, taken, &mut gone);
            let left = if shut { SHUT } else { 0 };
            match self.claims.compare_exchange(claims, left, AcqRel, Acquire) {
                Ok(_) => break,
                Err(more) => claims = more,
            }
        }
        gone
    }

    /// Takes out what was left in the places up to that many claims: how many there were.
    fn take_up_to(&self, claims: usize, from: usize, gone: &mut Gone) -> usize {
        let to = claims.min(ROOM);
        for (place, task) in self.places[from..to].iter().zip(&mut gone.tasks[from..to]) {
            *task = Some(emptied(place));
        }
        to
    }
}

/// What is left in a place that was claimed.
fn emptied(place: &AtomicPtr<Header>) -> TaskRef {
    let mut rounds = 0_u32;
    loop {
        if let Some(task) = NonNull::new(place.load(Acquire)) {
            place.store(null_mut(), Relaxed);
            // SAFETY: rule 3: the region's reference.
            return unsafe { TaskRef::from_raw(task, Owner::List) };
        }
        pause(rounds);
        rounds = rounds.saturating_add(1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::task::Waker;

    use asx_kernel::status::Status;

    use super::*;
    use crate::raw::TaskAttrs;
    use crate::region::Region;
    use crate::spawn::{Plan, make};
    use crate::test_util::loose_region;
    use crate::{Cancelled, Cx, Runnable};

    /// Makes a task that ends at its first poll; its cell is gone when nobody else has the name.
    fn made(region: &Arc<Region>, name: &Arc<str>) -> Result<Runnable, Status> {
        let attrs = Some(Box::new(TaskAttrs { name: Some(name.clone()), ..TaskAttrs::default() }));
        let body = async |_: Cx| Ok::<(), Cancelled>(());
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(region, Plan { attrs, ..Plan::default() }, body) };
        drop(task);
        entry.map(|entry| entry.expect("it was made"))
    }

    fn kept(name: &Arc<str>) -> usize {
        Arc::strong_count(name) - 1
    }

    #[test]
    fn tasks_depart_together_and_whoever_looks_sees_none_of_them() {
        let region = loose_region();
        let name = Arc::from("task");
        region.meet();
        for look in [1, 3, ROOM, ROOM + 1, 3 * ROOM] {
            let entries: Vec<_> = (0..look + 2).map(|_| made(&region, &name).unwrap()).collect();
            let mut entries = entries.into_iter();
            for ended in 1..=look {
                assert!(entries.next().unwrap().run());
                let left = kept(&name) - (look + 2 - ended);
                assert_eq!(left, ended % (ROOM + 1), "every {}th takes all off", ROOM + 1);
            }
            assert_eq!(region.lock().word.live_tasks(), 2);
            assert_eq!(kept(&name), 2, "and they are gone");
            entries.for_each(|entry| assert!(entry.run()));
            assert_eq!(region.lock().word.live_tasks(), 0);
        }
        region.end();
        assert!(region.poll_closed(Waker::noop()));
        assert_eq!(kept(&name), 0);
    }

    #[test]
    fn nobody_departs_before_two_have_met_nor_after_the_end() {
        let region = loose_region();
        let name = Arc::from("task");
        let entries = [(); 4].map(|()| made(&region, &name).unwrap());
        let [first, second, third, fourth] = entries;
        assert!(first.run());
        assert_eq!(kept(&name), 3);
        region.meet();
        assert!(second.run());
        assert_eq!(kept(&name), 3, "this one has departed");
        region.end();
        assert_eq!(kept(&name), 2, "the end takes it off");
        region.meet();
        assert!(third.run());
        assert_eq!(kept(&name), 1);
        assert!(!region.poll_closed(Waker::noop()));
        assert!(fourth.run());
        assert!(region.poll_closed(Waker::noop()), "the last one closes it");
    }

    #[test]
    fn those_who_have_departed_do_not_count_against_a_limit() {
        let region = loose_region();
        let name = Arc::from("task");
        region.lock().max_children = Some(2);
        region.meet();
        for _ in 0..10 {
            let entries = [(); 2].map(|()| made(&region, &name).unwrap());
            assert!(made(&region, &name).is_err());
            entries.into_iter().for_each(|entry| assert!(entry.run()));
        }
        region.end();
        assert!(region.poll_closed(Waker::noop()));
    }

    #[test]
    fn threads_that_spawn_end_and_look_at_once_lose_nobody() {
        const THREADS: usize = 3;
        const TASKS: usize = 3000;
        let region = loose_region();
        let name = Arc::from("task");
        region.meet();
        std::thread::scope(|s| {
            let lines = [(); THREADS].map(|()| {
                let (line, entries) = mpsc::channel::<Runnable>();
                s.spawn(move || entries.iter().for_each(|entry| assert!(entry.run())));
                line
            });
            for n in 0..TASKS {
                lines[n % THREADS].send(made(&region, &name).unwrap()).unwrap();
                if n % 50 == 0 {
                    assert!(region.lock().word.live_tasks() as usize <= n + 1);
                }
            }
            region.end();
        });
        assert!(region.poll_closed(Waker::noop()));
        assert_eq!(kept(&name), 0);
    }
}
