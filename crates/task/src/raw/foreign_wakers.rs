//! Wakers that are not ours, so that a cancel reaches what waits behind them.
//!
//! Who waits counts on being polled when its task, or the part of it around, is asked to stop: the
//! request has the task polled, and each combinator of ours passes that on. Others do not.
//! `FuturesUnordered`, or `join_all` with more than a few, give each of their futures a waker of
//! its own and poll only those that were woken; and a blocking job may wait on an executor of its
//! own.
//!
//! ```text
//!   request -> task polled -> FuturesUnordered: "nobody was woken"   recv(cx), waiting
//!                  |                  ^                                  | its waker
//!                  |                  | wake                             v
//!                  +------------------+------------------------------ [ here, by task ]
//! ```
//!
//! So an operation that begins to wait with another waker than its task's own leaves it here, for
//! as long as its [`Registration`] lives; those that come with the same waker one after the other
//! share one. All that is there of a task is woken when that is polled for the first time after a
//! request, when a part of it is asked to stop by the task itself, and when the body of a scope is.
//! To be woken in vain does no harm.

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

/// What an operation has left here: nothing, or a waker, its own or one that others left too.
///
/// An operation keeps one for as long as it waits, and drops it when it is done. It is best not
/// moved while the operation waits: dumps know by its place whether the operation still does.
#[derive(Default)]
pub struct Registration(u32);

/// A registration of an operation that has let others run and has left nothing: no place leads to
/// it.
const YIELDED: u32 = u32::MAX;

/// A registration of an operation that waits with its task's own waker, and has left nothing.
const WAITS: u32 = u32::MAX - 1;

/// Tasks are spread over these by their addresses.
#[cfg(not(loom))]
static SHARDS: [SpinLock<Shard>; SHARD_COUNT] = [const { SpinLock::new(Shard::NEW) }; SHARD_COUNT];

#[cfg(loom)]
loom::lazy_static! {
    static ref SHARDS: [SpinLock<Shard>; SHARD_COUNT] = [SpinLock::new(Shard::NEW)];
}

const SHARD_COUNT: usize = 1 << SHARD_BITS;
/// Where there is one thread, or a model, one is enough.
const SHARD_BITS: u32 = if cfg!(any(loom, target_family = "wasm")) { 0 } else { 3 };

/// No place.
const NIL: u32 = u32::MAX;
/// The most wakers there can be in a shard: a registration tells its shard and its place.
const MOST: usize = (u32::MAX >> SHARD_BITS) as usize - 1;
/// Room for as many survives emptiness.
const KEEP: usize = 64;

/// How many lists a shard has: few tasks are in the same one.
const LISTS: usize = 1 << LIST_BITS;
const LIST_BITS: u32 = 6;

/// Places for wakers. Those of a task are in one list, in which there may be others.
struct Shard {
    places: Vec<Left>,
    /// The first of those that are free, which are a list too.
    free: u32,
    count: usize,
    firsts: [u32; LISTS],
}

struct Left {
    task: usize,
    /// Gone once it was woken: who waits on leaves another.
    waker: Option<Waker>,
    /// It was woken for the request to its task, or came when that had been seen: what still waits
    /// is shielded, and is not to be woken for it at every poll.
    told: bool,
    /// How many have left it.
    tickets: u32,
    before: u32,
    after: u32,
}

/// Whether a waker has taken another's place.
enum Renewed {
    Yes,
    No,
    /// It is the same.
    NotNeeded,
}

impl Registration {
    /// Of an operation that has not begun.
    pub const NONE: Registration = Registration(0);

    /// An operation of this task begins to wait, or goes on, with this waker.
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

    /// Which operation this is, as long as it is not moved.
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(self).addr()
    }

    /// The operation lets others run first: it does so once, and then goes on.
    pub(crate) fn note_yield(&mut self) {
        self.end();
        self.0 = YIELDED;
    }

    /// Whether the operation has let others run since this was asked last.
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
        // A task that is polled here is polled again for a request that comes meanwhile. A job is
        // not.
        let here = poll_context::with_current(|current| current.as_ptr() == task.as_ptr());
        if asked && (here != Some(true) || task.is_blocking()) {
            notify(task);
        }
    }

    /// Whether nothing was left, and nothing is to be remembered. Then the registration may go.
    pub(crate) fn take_none(&mut self) -> bool {
        if self.0 == WAITS {
            self.0 = 0;
        }
        self.0 == 0
    }

    /// Where the waker is.
    fn place(&self) -> (usize, u32) {
        (self.0 as usize % SHARD_COUNT, (self.0 >> SHARD_BITS).wrapping_sub(1))
    }

    /// Has this waker in the place of the one that was left, if that was for the same task and is
    /// nobody else's.
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
                // Cloned before the lock, and the old one dropped after it. Another operation may
                // share the old one since it was looked at: then that one stays.
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

    /// The operation waits no longer.
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

    /// The first of the list that a task's are in.
    fn first(&mut self, task: usize) -> &mut u32 {
        &mut self.firsts[spread(task) as usize % LISTS]
    }

    /// Where the waker that came last is, if it is the same: there is one registration more for it.
    fn share(&mut self, task: usize, waker: &Waker, told: bool) -> Option<u32> {
        let at = *self.first(task);
        let last = self.places.get_mut(at as usize)?;
        let same = last.task == task && last.told == told && last.waker.as_ref()?.will_wake(waker);
        last.tickets = last.tickets.checked_add(same.into())?;
        same.then_some(at)
    }

    /// Adds a waker at the front of its task's list: where, or the waker if there is no room.
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

    /// Gives a registration back. The last one takes the waker, if it was not woken before, out of
    /// its task's list.
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

    /// Takes out the wakers of a task that were not told, or `all` of them, in the order they came.
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

/// Leaves a copy of a waker in a shard: where, if it is kept.
fn put(index: usize, task: usize, waker: &Waker, told: bool) -> Option<u32> {
    // It wakes nobody.
    if waker.will_wake(Waker::noop()) {
        return None;
    }
    let waker = Some(waker.clone());
    let left = Left { task, waker, told, tickets: 1, before: NIL, after: NIL };
    let put = with_shard(index, |shard| shard.put(left));
    // There is no room for so many: it is polled again until there is.
    put.map_err(contain_panic::wake_all).ok()
}

/// The task was asked to stop: wakes what it left here that does not know yet.
#[inline]
pub(crate) fn notify(task: &TaskRef) {
    if task.word.load().has_foreign() {
        notify_at(task.owner().panics(), address(task));
    }
}

/// The same, where only the address of the task is known.
pub(crate) fn notify_at(panics: &PanicCounter, address: usize) {
    wake(panics, address, false);
}

/// A part of the task that is polled here was asked to stop: wakes all it left here.
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

/// The task is gone: an operation that was forgotten may have left wakers here, which are dropped.
/// Another task may have this address next, and is not to wake them.
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

/// By which tasks are told apart: an operation borrows a context, which keeps its task, unless the
/// operation was forgotten.
pub(crate) fn address(task: &TaskRef) -> usize {
    task.as_ptr().addr().get()
}

/// Bits that differ for addresses that are near each other: those of the list, then of the shard.
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
