//! Wakers of other libraries, registered so that a cancel reaches the operations behind them.
//!
//! A pending operation relies on being polled when its task, or the part of the task around it, is
//! cancelled. A request has the task polled, and the combinators of asx poll their children. Other
//! combinators do not: `FuturesUnordered`, or `join_all` with many futures, give each future a
//! separate waker and poll only the futures that were woken. A blocking job may wait on an executor
//! of its program.
//!
//! ```text
//!   request -> task polled -> FuturesUnordered: no future was woken   recv(cx), waiting
//!                  |                  ^                                  | its waker
//!                  |                  | wake                             v
//!                  +------------------+---------------------------- [ here, by task ]
//! ```
//!
//! So an operation that begins to wait with a waker other than its task's registers the waker here
//! for as long as its [`Registration`] lives. Consecutive registrations of the same waker share one
//! place. All wakers of a task are woken at its first poll after a request, when the task itself
//! cancels a part of it, and when the body of a scope is cancelled. Spurious wakes are allowed.

use std::fmt;
use std::ptr;
use std::task::Waker;

use crate::footprint;
use crate::raw::contain_panic::{self, PanicCounter};
use crate::raw::is_child_waker;
use crate::raw::owner::TaskOwner;
use crate::raw::poll_context;
use crate::raw::{Header, TaskRef, task_of};
use crate::spinlock::SpinLock;

/// The registration of a waiting operation: empty, or a reference to a registered waker.
///
/// An operation keeps it for as long as it waits, and drops it when it is done. Do not move it
/// while the operation waits: dumps identify the wait by its address.
#[derive(Default)]
pub struct Registration(u32);

/// The registration of an operation that has yielded, without a waker. No place has this value.
const YIELDED: u32 = u32::MAX;

/// The registration of an operation that waits with its task's own waker.
const WAITS: u32 = u32::MAX - 1;

/// Tasks are distributed over the shards by their addresses.
#[cfg(not(loom))]
static SHARDS: [SpinLock<Shard>; SHARD_COUNT] = [const { SpinLock::new(Shard::NEW) }; SHARD_COUNT];

#[cfg(loom)]
loom::lazy_static! {
    static ref SHARDS: [SpinLock<Shard>; SHARD_COUNT] = [SpinLock::new(Shard::NEW)];
}

const SHARD_COUNT: usize = 1 << SHARD_BITS;
/// One shard is enough for one thread, and for models.
const SHARD_BITS: u32 = if cfg!(any(loom, target_family = "wasm")) { 0 } else { 3 };

/// No place.
const NIL: u32 = u32::MAX;
/// The maximum of wakers in a shard: a registration has bits for the shard and the place.
const MOST: usize = (u32::MAX >> SHARD_BITS) as usize - 1;
/// The capacity that an empty shard keeps.
const KEEP: usize = 64;

/// The number of lists of a shard: few tasks share one.
const LISTS: usize = 1 << LIST_BITS;
const LIST_BITS: u32 = 6;

/// Places for wakers. All wakers of a task are in one list, which other tasks may share.
struct Shard {
    places: Vec<Left>,
    /// The head of the list of free places.
    free: u32,
    count: usize,
    firsts: [u32; LISTS],
}

struct Left {
    task: usize,
    /// `None` once it was woken: an operation that still waits registers again.
    waker: Option<Waker>,
    /// It was woken for the cancel request to its task, or registered after that was observed. An
    /// operation that still waits is shielded, and is not woken at every poll.
    told: bool,
    /// The number of registrations that share it.
    tickets: u32,
    before: u32,
    after: u32,
}

/// Whether a waker has replaced the registered one.
enum Renewed {
    Yes,
    No,
    /// It is the same.
    NotNeeded,
}

impl Registration {
    /// The registration of an operation that has not begun.
    pub const NONE: Registration = Registration(0);

    /// Registers the waker of an operation that begins or continues to wait in this task.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn wait(&mut self, task: &TaskRef, waker: &Waker) {
        if task_of(waker) != Some(task.as_ptr()) && !is_child_waker(waker) {
            self.leave(task, waker);
        } else if self.0 == 0 && !cfg!(target_family = "wasm") {
            self.0 = WAITS;
        }
        poll_context::note_wait(self.address());
    }

    /// The address, which identifies the operation.
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// Notes that the operation yields; it does so once.
    pub(crate) fn note_yield(&mut self) {
        self.end();
        self.0 = YIELDED;
    }

    /// Whether the operation has yielded since the last call.
    pub(crate) fn take_yield(&mut self) -> bool {
        let yielded = self.0 == YIELDED;
        if yielded {
            self.0 = 0;
        }
        yielded
    }

    #[inline(never)]
    fn leave(&mut self, task: &TaskRef, waker: &Waker) {
        footprint::keeps_foreign_waker();
        self.take_yield();
        let address = address(task);
        let told = task.word.load().state().acknowledged();
        match self.renew(address, waker) {
            Renewed::NotNeeded => return,
            Renewed::Yes => {}
            Renewed::No => {
                self.end();
                let index = shard_of(address);
                // To share saves time, of which pages have more than room.
                let share = || with_shard(index, |shard| shard.share(address, waker, told));
                let shared = if cfg!(target_family = "wasm") { None } else { share() };
                let Some(at) = shared.or_else(|| put(index, address, waker, told)) else { return };
                self.0 = ((at + 1) << SHARD_BITS) | index as u32;
            }
        }
        let asked = task.word.note_foreign().state().in_cancel_lane();
        // A task that this thread is polling is polled again for a concurrent request. A blocking
        // job is not.
        let here = poll_context::with_current(|current| current.as_ptr() == task.as_ptr());
        if asked && (here != Some(true) || task.is_blocking()) {
            notify(task);
        }
    }

    /// Whether there is no waker and no yield to remember, so that the registration may be dropped.
    pub(crate) fn take_none(&mut self) -> bool {
        if self.0 == WAITS {
            self.0 = 0;
        }
        self.0 == 0
    }

    /// The shard and the place of the waker.
    fn place(&self) -> (usize, u32) {
        (self.0 as usize % SHARD_COUNT, (self.0 >> SHARD_BITS).wrapping_sub(1))
    }

    /// Replaces the registered waker, if it is of the same task and no other registration shares
    /// it.
    fn renew(&self, address: usize, waker: &Waker) -> Renewed {
        if self.0 == 0 || self.0 == WAITS {
            return Renewed::No;
        }
        let (index, at) = self.place();
        let is = |own: &Option<Waker>| own.as_ref().is_some_and(|own| own.will_wake(waker));
        let there = with_shard(index, |shard| {
            let left = shard.places.get(at as usize).filter(|left| left.task == address)?;
            let same = is(&left.waker);
            (same || left.tickets == 1).then_some(same)
        });
        match there {
            None => Renewed::No,
            Some(true) => Renewed::NotNeeded,
            Some(false) => {
                // Cloned before the lock is taken, and the old one dropped after it. Another
                // operation may share the old one by now: then that one stays.
                let new = waker.clone();
                let old = with_shard(index, |shard| match shard.places.get_mut(at as usize) {
                    Some(left) if left.tickets == 1 => Ok(left.waker.replace(new)),
                    _ => Err(new),
                });
                let renewed = if old.is_ok() { Renewed::Yes } else { Renewed::No };
                contain_panic::drop_waker(old.unwrap_or_else(Some));
                renewed
            }
        }
    }

    /// Ends the wait of the operation.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline)]
    pub(crate) fn end(&mut self) {
        if self.0 != 0 {
            self.take_back();
        }
    }

    #[inline(never)]
    fn take_back(&mut self) {
        poll_context::end_wait(self.address());
        #[cfg(feature = "lab")]
        if crate::wait_notes::is_on() {
            crate::wait_notes::note_wait_over(self.address());
        }
        if self.take_yield() || self.take_none() {
            return;
        }
        let (index, at) = self.place();
        self.0 = 0;
        let waker = with_shard(index, |shard| shard.take(at));
        contain_panic::drop_waker(waker);
    }
}

impl Drop for Registration {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 == 0 { "Registration" } else { "Registration(..)" })
    }
}

impl Shard {
    const NEW: Shard = Shard { places: Vec::new(), free: NIL, count: 0, firsts: [NIL; LISTS] };

    /// The head of the list of a task.
    fn first(&mut self, task: usize) -> &mut u32 {
        &mut self.firsts[spread(task) as usize % LISTS]
    }

    /// Shares the waker that was registered last, if it is the same. Returns its place.
    fn share(&mut self, task: usize, waker: &Waker, told: bool) -> Option<u32> {
        let at = *self.first(task);
        let last = self.places.get_mut(at as usize)?;
        let same = last.task == task && last.told == told && last.waker.as_ref()?.will_wake(waker);
        last.tickets = last.tickets.checked_add(same.into())?;
        same.then_some(at)
    }

    /// Adds a waker at the front of its task's list. Returns its place, or the waker if the shard
    /// is full.
    fn put(&mut self, mut left: Left) -> Result<u32, Option<Waker>> {
        let at = match self.free {
            NIL if self.places.len() >= MOST => return Err(left.waker),
            NIL => self.places.len() as u32,
            free => free,
        };
        let first = std::mem::replace(self.first(left.task), at);
        left.after = first;
        if let Some(next) = self.places.get_mut(first as usize) {
            next.before = at;
        }
        match self.places.get_mut(at as usize) {
            Some(place) => {
                self.free = place.after;
                *place = left;
            }
            None => self.places.push(left),
        }
        self.count += 1;
        Ok(at)
    }

    /// Ends a registration. The last one removes the waker from its task's list and returns it, if
    /// it was not woken before.
    fn take(&mut self, at: u32) -> Option<Waker> {
        let left = self.places.get_mut(at as usize)?;
        left.tickets -= 1;
        if left.tickets > 0 {
            return None;
        }
        let task = left.task;
        let before = left.before;
        let after = left.after;
        let waker = left.waker.take();
        left.after = std::mem::replace(&mut self.free, at);
        if let Some(next) = self.places.get_mut(after as usize) {
            next.before = before;
        }
        match self.places.get_mut(before as usize) {
            Some(last) => last.after = after,
            None => *self.first(task) = after,
        }
        self.count -= 1;
        if self.count == 0 {
            self.free = NIL;
            match self.places.capacity() > KEEP {
                true => self.places = Vec::new(),
                false => self.places.clear(),
            }
        }
        waker
    }

    /// Takes the wakers of a task that were not notified, or `all` of them, in the order of their
    /// registration.
    fn take_each(&mut self, task: usize, all: bool) -> Vec<Waker> {
        let mut at = *self.first(task);
        let mut wakers = Vec::new();
        while let Some(left) = self.places.get_mut(at as usize) {
            if left.task == task && (all || !std::mem::replace(&mut left.told, true)) {
                wakers.extend(left.waker.take());
            }
            at = left.after;
        }
        wakers.reverse();
        wakers
    }
}

/// Registers a clone of a waker in a shard. Returns its place, if it was registered.
fn put(index: usize, task: usize, waker: &Waker, told: bool) -> Option<u32> {
    // A no-op waker wakes no task.
    if waker.will_wake(Waker::noop()) {
        return None;
    }
    let waker = Some(waker.clone());
    let left = Left { task, waker, told, tickets: 1, before: NIL, after: NIL };
    let put = with_shard(index, |shard| shard.put(left));
    // The shard is full: the operation is polled again until there is room.
    put.map_err(contain_panic::wake_all).ok()
}

/// Wakes the wakers of a cancelled task that were not notified yet.
#[inline]
pub(crate) fn notify(task: &TaskRef) {
    if task.word.load().has_foreign() {
        notify_at(task.owner().panics(), address(task));
    }
}

/// Like [`notify`], by the address of the task.
pub(crate) fn notify_at(panics: &PanicCounter, address: usize) {
    wake(panics, address, false);
}

/// Wakes all wakers of the task that this thread is polling: a part of it was cancelled.
#[inline]
pub(crate) fn notify_current() {
    poll_context::with_current(|task| {
        if task.word.load().has_foreign() {
            wake(task.owner().panics(), address(task), true);
        }
    });
}

#[cold]
#[inline(never)]
fn wake(panics: &PanicCounter, address: usize, all: bool) {
    let wakers = with_shard(shard_of(address), |shard| shard.take_each(address, all));
    wakers.into_iter().for_each(|waker| panics.wake(waker));
}

/// Drops the wakers of a task that is freed: forgotten operations may have left some. Another task
/// may get this address next, and must not wake them.
#[inline]
pub(crate) fn abandon(task: &Header) {
    if task.word.load().has_foreign() {
        abandon_there(task.owner().panics(), ptr::from_ref(task).addr());
    }
}

#[cold]
#[inline(never)]
fn abandon_there(panics: &PanicCounter, address: usize) {
    let wakers = with_shard(shard_of(address), |shard| shard.take_each(address, true));
    wakers.into_iter().for_each(|waker| panics.drop_waker(Some(waker)));
}

/// The address that identifies the task: an operation borrows a context, which keeps its task,
/// unless the operation was forgotten.
pub(crate) fn address(task: &TaskRef) -> usize {
    task.as_ptr().addr().get()
}

/// Hashes an address to the bits of the list, then of the shard.
fn spread(address: usize) -> u64 {
    (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - LIST_BITS - SHARD_BITS)
}

fn shard_of(address: usize) -> usize {
    (spread(address) >> LIST_BITS) as usize
}

fn with_shard<R>(index: usize, f: impl FnOnce(&mut Shard) -> R) -> R {
    SHARDS[index].with(f)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use asx_kernel::rng::DetRng;

    use super::*;
    use crate::spawn::{Plan, make};
    use crate::test_util::loose_region;
    use crate::testing::{self, Count};
    use crate::{Cx, Operation};

    fn counting() -> (Arc<Count>, Waker) {
        let count = Arc::<Count>::default();
        (count.clone(), Waker::from(count))
    }

    #[test]
    fn a_request_wakes_each_waker_of_the_task_once_and_nobody_else() {
        let ((cx, cancel), (other, _)) = (Cx::loose(), Cx::loose());
        let wakers = [(); 3].map(|()| counting());
        let strangers = counting();
        let mut tickets = [const { Registration::NONE }; 4];
        for (registration, (_, waker)) in tickets.iter_mut().zip(&wakers) {
            registration.wait(cx.task(), waker);
            registration.wait(cx.task(), waker);
        }
        tickets[3].wait(other.task(), &strangers.1);
        tickets[2].end();
        cancel(testing::reason());
        notify(cx.task());
        notify(cx.task());
        assert_eq!(wakers.each_ref().map(|(count, _)| count.wakes()), [1, 1, 0]);
        assert_eq!(strangers.0.wakes(), 0);
        drop(tickets);
        assert!(wakers.iter().all(|(count, _)| Arc::strong_count(count) == 2), "none is kept");
    }

    #[test]
    fn who_comes_after_a_request_elsewhere_is_woken_at_once() {
        let (cx, cancel) = Cx::loose();
        cancel(testing::reason());
        let ((count, waker), mut registration) = (counting(), Registration::NONE);
        registration.wait(cx.task(), &waker);
        assert_eq!(count.wakes(), 1);
    }

    #[test]
    fn a_handle_that_moves_to_another_task_is_that_one_s() {
        let ((first, _), (second, cancel)) = (Cx::loose(), Cx::loose());
        let ((count, waker), mut registration) = (counting(), Registration::NONE);
        registration.wait(first.task(), &waker);
        registration.wait(second.task(), &waker);
        notify(first.task());
        assert_eq!(count.wakes(), 0);
        cancel(testing::reason());
        notify(second.task());
        assert_eq!(count.wakes(), 1);
    }

    /// Wakers of several tasks that come, go and are taken, against a list of them.
    #[test]
    #[cfg_attr(miri, ignore = "copies of a waker made of an `Arc` are not known as such there")]
    fn a_shard_holds_what_was_put_there_by_task_in_order() {
        let mut rng = DetRng::new(5, 0);
        let mut shard = Shard::NEW;
        let mut model = Vec::<(u32, usize, Option<Waker>)>::new();
        let mut largest = 0;
        for round in 0..20_000 {
            // Some of them share a list.
            let task = 64 * (1 + rng.below(200));
            // Now many come, now many go.
            match rng.below(8) {
                0..=3 if round % 200 < 120 || model.is_empty() => {
                    let (_, waker) = counting();
                    let own = Some(waker.clone());
                    let told = false;
                    let tickets = 1;
                    let before = NIL;
                    let after = NIL;
                    let left = Left { task, waker: own, told, tickets, before, after };
                    let at = shard.put(left).ok().unwrap();
                    assert!(model.iter().all(|(other, ..)| *other != at));
                    model.push((at, task, Some(waker)));
                }
                0..=6 if !model.is_empty() => {
                    let (at, _, waker) = model.remove(rng.below(model.len()));
                    let taken = shard.take(at);
                    assert_eq!(taken.is_some(), waker.is_some());
                    assert!(taken.zip(waker).is_none_or(|(a, b)| a.will_wake(&b)));
                }
                _ => {
                    let of_task = model.iter_mut().filter(|(_, of, _)| *of == task);
                    let expected: Vec<_> = of_task.filter_map(|(_, _, own)| own.take()).collect();
                    let taken = shard.take_each(task, true);
                    assert_eq!(taken.len(), expected.len());
                    assert!(taken.iter().zip(&expected).all(|(a, b)| a.will_wake(b)));
                }
            }
            assert_eq!(shard.count, model.len());
            assert!(shard.count > 0 || shard.places.is_empty());
            largest = largest.max(shard.count);
        }
        assert!(largest > 20, "{largest}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "copies of a waker made of an `Arc` are not known as such there")]
    fn those_with_one_waker_share_it_until_the_last_goes() {
        let (cx, cancel) = Cx::loose();
        let ((count, waker), (others, other)) = (counting(), counting());
        let mut tickets = [const { Registration::NONE }; 5];
        tickets.iter_mut().for_each(|registration| registration.wait(cx.task(), &waker));
        assert_eq!(Arc::strong_count(&count), 3, "one copy");
        assert!(tickets.iter().all(|registration| registration.0 == tickets[0].0));
        // One that goes on with another waker leaves the others theirs.
        tickets[1].wait(cx.task(), &other);
        tickets[0].end();
        tickets[0].end();
        assert_eq!([&count, &others].map(Arc::strong_count), [3, 3]);
        cancel(testing::reason());
        notify(cx.task());
        assert_eq!([count.wakes(), others.wakes()], [1, 1]);
        // The waker has gone; those that wait on share another.
        assert_eq!(Arc::strong_count(&count), 2);
        poll_context::as_if_polled(cx.task(), 1, || {
            tickets[2..].iter_mut().for_each(|registration| registration.wait(cx.task(), &waker));
        });
        assert_eq!(Arc::strong_count(&count), 4, "the last one kept its place");
        drop(tickets);
        assert_eq!([&count, &others].map(Arc::strong_count), [2, 2]);
    }

    #[test]
    fn who_was_woken_and_waits_on_is_woken_again() {
        let (cx, cancel) = Cx::loose();
        let ((count, waker), mut registration) = (counting(), Registration::NONE);
        registration.wait(cx.task(), &waker);
        wake(&cx.core().panics, address(cx.task()), true);
        wake(&cx.core().panics, address(cx.task()), true);
        assert_eq!(count.wakes(), 1, "its waker is gone");
        registration.wait(cx.task(), &waker);
        cancel(testing::reason());
        notify(cx.task());
        assert_eq!(count.wakes(), 1);
        drop(registration);
        assert_eq!(Arc::strong_count(&count), 2);
    }

    /// Else a task that has the address of the first one next would wake it.
    #[test]
    fn what_a_forgotten_operation_has_left_goes_with_its_task() {
        let count = Arc::<Count>::default();
        let waker = Waker::from(count.clone());
        let body = async move |cx: Cx| {
            let mut operation = std::mem::ManuallyDrop::new(Operation::new(&cx));
            let context = std::task::Context::from_waker(&waker);
            assert!(operation.poll_proceed(&context).is_ready());
            assert!(operation.pending::<()>(&context).is_pending());
            Ok::<(), ()>(())
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&loose_region(), Plan::default(), body) };
        assert!(entry.unwrap().unwrap().run());
        assert_eq!(Arc::strong_count(&count), 2, "the operation has left one");
        drop(task);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
