//! The task's atomic word: the kernel's state, who runs it, who looks at its result, and the count
//! of references.
//!
//! ```text
//!  63        32 31  16 12 11 10   8    7     6     5     4      3      2       1         0
//! +------------+------+--+--+-------+------+-----+------+-----+-----+------+-------+---------+
//! | references | mark |  |  | state | LOCK |FORCE| KEPT |TAKEN|WAKER|HANDLE|POLLING|SCHEDULED|
//! +------------+------+--+--+-------+------+-----+------+-----+-----+------+-------+---------+
//! ```
//! *state* is a kernel [`TaskState`] and changes only as [`TaskState::step`] says; the steps are
//! those of [`begin`](Word::begin), [`start`](Word::start),
//! [`request_cancel`](Word::request_cancel), [`acknowledge`](Word::acknowledge),
//! [`body_ended`](Word::body_ended) and [`complete`](Word::complete).
//!
//! - `SCHEDULED`: the task is to be polled. Without `POLLING` exactly one entry that counts is in
//!   some queue; with it, the poller makes that entry when the poll ends. Set by wakes, requests
//!   and force, by whichever of them finds it clear; cleared when a poll begins, and for good when
//!   the task completes: a wake of a completed task sets nothing.
//! - `POLLING`: one thread is inside the poll step, or is ending the task. Set by who takes an
//!   entry from a queue and finds `SCHEDULED` without `POLLING`, or by who seizes a task that
//!   nobody polls; cleared by the same thread. Never set in a completed task.
//! - `HANDLE`: the task's handle lives. Set when the task is made, cleared by the handle's drop.
//! - `WAKER`: the join waker is set. Set by the handle while the task has not completed, which may
//!   also clear it to get the waker back; once the task has completed, the waker is the
//!   completer's, and the flag stays.
//! - `TAKEN`: somebody has claimed the result, or its destruction. Set once, by one: the handle,
//!   the scope (only with `KEPT`), or the completer (only without `HANDLE`). Never before the task
//!   has completed.
//! - `KEPT`: the scope wants the result: a handle that goes away leaves it alone. Set by the
//!   completer, in the step that completes.
//! - `FORCE`: patience is over: the next poll ends the task instead. Set by who runs out of
//!   patience while the task has not completed. Never cleared.
//! - `LOCK`: somebody reads or changes the cancel, for a few instructions. Set and cleared by one
//!   thread at a time; nobody waits for anything else while it is set.
//! - `CLEANING` (11): the body has ended by itself, and polls of what it left are bounded. Set by
//!   the poller. Never cleared.
//! - `FOREIGN` (12): an operation of the task has left a waker of somebody else's
//!   ([`cancel_wakers`](crate::raw::foreign_wakers)). Set before who leaves it looks for a request.
//!   Never cleared.
//! - *mark*: of the thread that recorded the task's last event; 0 if nothing is recorded.
//! - *references*: one for each owner (rule 1 of cells), counted in the step that makes it one.

#[cfg(all(test, not(loom)))]
mod tests;

use asx_kernel::task::{TaskEffect, TaskEvent, TaskState};

use crate::dump::Activity;
use crate::prim::atomic::AtomicU64;
use crate::prim::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

pub(crate) const SCHEDULED: u64 = 1;
pub(crate) const POLLING: u64 = 1 << 1;
pub(crate) const HANDLE: u64 = 1 << 2;
const WAKER: u64 = 1 << 3;
const TAKEN: u64 = 1 << 4;
const KEPT: u64 = 1 << 5;
const FORCE: u64 = 1 << 6;
const LOCK: u64 = 1 << 7;
const CLEANING: u64 = 1 << 11;
const FOREIGN: u64 = 1 << 12;
const STATE_SHIFT: u32 = 8;
const STATE: u64 = 0b111 << STATE_SHIFT;
const MARK_SHIFT: u32 = 16;
const MARK: u64 = 0xffff << MARK_SHIFT;
const REF: u64 = 1 << 32;
/// The count of references is saturated from here on (rule 12 of cells): half of what fits.
const SATURATED: u64 = 1 << 63;
/// What a saturated count is raised to: so far above [`SATURATED`] that decrements under way on
/// other threads cannot bring it back.
const PINNED: u64 = 3 << 62;
/// References a poll has in reserve for those that are made in it (rule 10 of cells): adding them
/// costs nothing, since the word changes anyway.
pub(crate) const RESERVE: u32 = 1 << 10;
/// By the bits of the state; the last two combinations are never written.
const STATES: [TaskState; 8] = {
    use TaskState::*;
    [Created, Running, CancelRequested, Cancelling, Finalizing, Completed, Completed, Completed]
};
/// The state bits of a task that was not polled yet.
const CREATED: u64 = (TaskState::Created as u64) << STATE_SHIFT;
/// The state bits of a task that was polled and is not cancelled.
const RUNNING: u64 = (TaskState::Running as u64) << STATE_SHIFT;

/// What is in a word at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot(u64);

impl Snapshot {
    #[inline]
    pub(crate) fn state(self) -> TaskState {
        STATES[((self.0 & STATE) >> STATE_SHIFT) as usize]
    }

    fn with_state(self, state: TaskState) -> Snapshot {
        Snapshot(self.0 & !STATE | (state as u64) << STATE_SHIFT)
    }

    #[inline]
    pub(crate) fn is_completed(self) -> bool {
        self.state() == TaskState::Completed
    }

    #[inline]
    pub(crate) fn is_forced(self) -> bool {
        self.is(FORCE)
    }

    /// Whether the polls of a task that is not being cancelled are bounded by its end.
    #[inline]
    pub(crate) fn is_cleaning(self) -> bool {
        self.is(CLEANING)
    }

    /// Whether an operation of the task has ever left a waker of somebody else's.
    #[inline]
    pub(crate) fn has_foreign(self) -> bool {
        self.is(FOREIGN)
    }

    /// Whether a poll that has begun may be a plain one: the task is not in the cancel lane, and
    /// nothing bounds how it ends.
    #[inline]
    pub(crate) fn goes_on(self) -> bool {
        // What runs, or has yet to, has no other bit in its state than the lowest.
        self.0 & (STATE & !RUNNING | FORCE | CLEANING) == 0
    }

    /// Whether somebody may still ask for the result.
    #[inline]
    pub(crate) fn has_handle(self) -> bool {
        self.is(HANDLE)
    }

    /// Whether somebody waits for the end.
    #[cfg(feature = "lab")]
    pub(crate) fn has_waker(self) -> bool {
        self.is(WAKER)
    }

    /// Runnable, running, or waiting for a wake.
    pub(crate) fn activity(self) -> Activity {
        match (self.is(POLLING), self.is(SCHEDULED)) {
            (true, _) => Activity::Running,
            (false, true) => Activity::Runnable,
            (false, false) => Activity::Waiting,
        }
    }

    #[inline]
    pub(crate) fn mark(self) -> u16 {
        ((self.0 & MARK) >> MARK_SHIFT) as u16
    }

    #[inline]
    pub(crate) fn with_mark(self, mark: u16) -> Snapshot {
        Snapshot(self.0 & !MARK | u64::from(mark) << MARK_SHIFT)
    }

    /// Whether the task was polled, and is not cancelled.
    #[inline]
    pub(crate) fn is_running(self) -> bool {
        self.0 & STATE == RUNNING
    }

    /// Whether the cancel has nothing to say about the next step, which is recorded without its
    /// lock.
    #[inline]
    pub(crate) fn is_plain(self) -> bool {
        // What runs, or has yet to, has no other bit in its state than the lowest.
        self.0 & (STATE & !RUNNING | LOCK) == 0
    }

    #[inline]
    pub(crate) fn is(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// The kernel's step on the state in here.
    fn step(self, event: TaskEvent) -> Option<(Snapshot, TaskEffect)> {
        let (state, effect) = self.state().step(event).ok()?;
        Some((self.with_state(state), effect))
    }
}

/// What a wake came to, or a demand to end the task by force.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The caller puts the task into a queue. The reference of that entry was counted.
    Enqueue,
    /// Somebody else has done so, or the poller will.
    Pending,
    /// The task is over.
    Stale,
}

/// How a task that was not over after a poll goes on.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollEnd {
    /// It waits to be woken.
    Idle,
    /// It was woken meanwhile: the caller puts it into a queue, with the poll's reference.
    Requeue,
}

/// What became of a task that somebody has seized, to end it.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seized {
    /// It waited.
    Idle,
    /// It was scheduled: an entry of it, which is dead now, is in some queue.
    Queued,
}

/// How a task is asked to stop.
#[derive(Clone, Copy)]
pub(crate) struct CancelRequest {
    /// Its place in the cancel lane is another than before.
    pub(crate) moves: bool,
    /// The caller has the cancel lock and gives it back with the same step.
    pub(crate) unlock: bool,
}

/// What a cancel request came to.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requested {
    /// The task is over: nothing happens.
    Completed,
    /// The effect, and whether the caller puts the task into the cancel lane: then the reference of
    /// that entry was counted. `moved`: it has an entry in some queue, which is dead now.
    Live { effect: TaskEffect, enqueue: bool, moved: bool },
}

/// How a poll begins.
#[derive(Clone, Copy)]
pub(crate) struct Begin {
    /// The kernel's step is made now. Else the state stays, and [`Word::start`] is called later.
    pub(crate) starts: bool,
    /// The entry waited in another lane than that of cancels. A task that was asked to stop
    /// meanwhile has another entry there, and that is the one that counts.
    pub(crate) plain: bool,
    /// How many references are added for those that are made in the poll.
    pub(crate) reserve: u32,
}

/// How a task completes.
#[derive(Clone, Copy)]
pub(crate) struct Complete {
    /// The scope wants the result.
    pub(crate) kept: bool,
    /// What is left of the poll's reserve.
    pub(crate) reserve: u32,
}

/// A step that nobody records: the word after it is written as it is.
#[inline(always)]
pub(crate) fn unsigned(_before: Snapshot, after: Snapshot) -> Option<Snapshot> {
    Some(after)
}

/// How a task ended.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) wake_joiner: bool,
    /// The result is of no use to anybody: the caller has claimed it and drops it.
    pub(crate) discard: bool,
}

/// How a handle went.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parted {
    /// The caller has claimed the result and drops it.
    pub(crate) claimed: bool,
    /// Its reference went with it.
    pub(crate) gone: bool,
}

pub(crate) struct Word(AtomicU64);

impl Word {
    /// A created task, scheduled, with a handle and `references`; the one who made it has this
    /// mark.
    pub(crate) fn new(references: u64, flags: u64, mark: u16) -> Word {
        let word = Snapshot(flags | (references * REF)).with_mark(mark);
        Word(AtomicU64::new(word.0))
    }

    #[inline]
    pub(crate) fn load(&self) -> Snapshot {
        Snapshot(self.0.load(Acquire))
    }

    /// Applies `change` until it holds; `None` leaves the word alone.
    #[inline]
    fn update<R>(&self, change: impl FnMut(Snapshot) -> Option<(Snapshot, R)>) -> Option<R> {
        self.update_from(self.0.load(Relaxed), change)
    }

    /// [`update`](Word::update) of a word that was just looked at.
    #[inline]
    fn update_from<R>(
        &self,
        mut now: u64,
        mut change: impl FnMut(Snapshot) -> Option<(Snapshot, R)>,
    ) -> Option<R> {
        loop {
            let (next, answer) = change(Snapshot(now))?;
            match self.0.compare_exchange_weak(now, next.0, AcqRel, Acquire) {
                Ok(_) => return Some(answer),
                Err(seen) => now = seen,
            }
        }
    }

    /// The entry of a queue was taken: the word as it was, if the task is now the caller's to poll.
    /// The entry's reference becomes the poll's.
    ///
    /// `sign` is given the words before and after the step, and answers what is written: the
    /// latter, with the mark of who records it, or nothing at all. It is asked again if the word
    /// has changed meanwhile.
    #[inline(always)]
    pub(crate) fn begin(
        &self,
        how: Begin,
        mut sign: impl FnMut(Snapshot, Snapshot) -> Option<Snapshot>,
    ) -> Option<Snapshot> {
        // What who signed before has published is looked at before the step is made.
        self.update_from(self.load().0, |word| Some((sign(word, begun(word, how)?)?, word)))
    }

    /// [`begin`](Word::begin) with nothing in reserve, unrecorded.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn begin_unsigned(&self, starts: bool, plain: bool) -> Option<Snapshot> {
        self.begin(Begin { starts, plain, reserve: 0 }, unsigned)
    }

    /// The body has ended by itself; what it left to be done is bounded.
    pub(crate) fn begin_cleaning(&self) {
        self.0.fetch_or(CLEANING, AcqRel);
    }

    /// An operation has left a waker of somebody else's: what is in the word after that.
    ///
    /// A request either sees the flag, or is seen here: both change the same word. If the flag was
    /// there before, who sees it looks for wakers under a lock, and so comes before the one who has
    /// left this one, and is seen, or after, and finds it.
    pub(crate) fn note_foreign(&self) -> Snapshot {
        let now = self.load();
        if now.has_foreign() { now } else { Snapshot(self.0.fetch_or(FOREIGN, AcqRel)) }
    }

    /// The poll that has begun goes on: the kernel's step.
    pub(crate) fn start(&self) {
        self.update(|word| word.step(TaskEvent::Poll));
    }

    /// Takes over a task nobody polls, to end it. The reference of the poll that this is was
    /// counted.
    pub(crate) fn seize(&self) -> Option<Seized> {
        self.update(|word| {
            if word.is(POLLING) || word.is_completed() {
                return None;
            }
            let seized = if word.is(SCHEDULED) { Seized::Queued } else { Seized::Idle };
            Some((Snapshot(plus(word.0 | POLLING, 1)), seized))
        })
    }

    /// Has the next poll end the task, which is woken for that.
    pub(crate) fn force(&self) -> Woken {
        self.schedule(FORCE)
    }

    /// The caller's poll is over and the task is not. The poll's reference is that of the entry the
    /// caller makes, or goes; what is left of the reserve goes.
    #[inline]
    pub(crate) fn end_poll(&self, reserve: u32) -> PollEnd {
        let ended = self.update(|word| {
            let end = if word.is(SCHEDULED) { PollEnd::Requeue } else { PollEnd::Idle };
            // Not the last one: until it completes the task has its region's.
            let own = u32::from(end == PollEnd::Idle);
            Some((Snapshot(minus(word.0 & !POLLING, reserve + own)), end))
        });
        ended.unwrap_or(PollEnd::Idle)
    }

    /// The same of a task that has woken itself in the poll, which is seen only now: the caller
    /// puts it into a queue, with the poll's reference.
    #[inline]
    pub(crate) fn end_woken_poll(&self, reserve: u32) {
        self.update(|word| Some((Snapshot(minus((word.0 | SCHEDULED) & !POLLING, reserve)), ())));
    }

    /// A waker of the task was used.
    #[inline]
    pub(crate) fn wake(&self) -> Woken {
        self.schedule(0)
    }

    /// The task is to be polled, and has these flags from now on.
    #[inline]
    fn schedule(&self, flags: u64) -> Woken {
        let woken = self.update(|word| {
            if word.is_completed() {
                return None;
            }
            // Written even if it is set already: the poll sees what came before the wake.
            let next = word.0 | SCHEDULED | flags;
            Some(if word.is(SCHEDULED | POLLING) {
                (Snapshot(next), Woken::Pending)
            } else {
                (Snapshot(plus(next, 1)), Woken::Enqueue)
            })
        });
        woken.unwrap_or(Woken::Stale)
    }

    /// Asks the task to stop, for a reason that has been noted: who sees the request finds it.
    pub(crate) fn request_cancel(&self, how: CancelRequest) -> Requested {
        let CancelRequest { moves, unlock } = how;
        self.update(|word| {
            if word.is_completed() {
                return None;
            }
            let (next, effect) = word.step(TaskEvent::RequestCancel)?;
            // Until the request was seen it wakes.
            let wakes = next.state() == TaskState::CancelRequested;
            let queued = word.is(SCHEDULED) && !word.is(POLLING);
            // It is in some queue: then it has a second entry, for the cancel lane.
            let moved = queued && (effect == TaskEffect::Requested || moves);
            let enqueue = moved || (wakes && !word.is(SCHEDULED | POLLING));
            let next = next.0 | if wakes { SCHEDULED } else { 0 };
            let next = plus(next & if unlock { !LOCK } else { !0 }, enqueue.into());
            Some((Snapshot(next), Requested::Live { effect, enqueue, moved }))
        })
        .unwrap_or_else(|| {
            if unlock {
                self.unlock_cancel();
            }
            Requested::Completed
        })
    }

    /// The task sees the request; `None` if there is none to see.
    pub(crate) fn acknowledge(&self) -> Option<TaskEffect> {
        self.update(|word| word.step(TaskEvent::Acknowledge))
    }

    /// [`acknowledge`](Word::acknowledge) and [`lock_cancel`](Word::lock_cancel) in one step.
    pub(crate) fn acknowledge_and_lock(&self) -> Option<TaskEffect> {
        loop {
            let effect = self.update(|word| {
                if word.is(LOCK) {
                    return Some((word, None));
                }
                let (next, effect) = word.step(TaskEvent::Acknowledge)?;
                Some((Snapshot(next.0 | LOCK), Some(effect)))
            })?;
            if effect.is_some() {
                return effect;
            }
            crate::prim::yield_now();
        }
    }

    /// The body has ended: whether the task ends cancelled. It moves to Finalizing if so.
    #[inline]
    pub(crate) fn body_ended(&self) -> bool {
        self.update(|word| {
            let (next, _) = word.step(TaskEvent::BodyEnded)?;
            Some((next, next.state().acknowledged()))
        })
        .unwrap_or(false)
    }

    /// Nothing is left to run, and the result is in the cell. The poll's reference goes, and what
    /// is left of its reserve: from now on the region's reference is the completer's (rule 1 of
    /// cells). `None` if the task had ended, or `sign` answers nothing; see [`begin`](Word::begin).
    #[inline(always)]
    pub(crate) fn complete(
        &self,
        how: Complete,
        mut sign: impl FnMut(Snapshot, Snapshot) -> Option<Snapshot>,
    ) -> Option<Ended> {
        self.update_from(self.load().0, |word| {
            let (next, ended) = ended(word, how)?;
            Some((sign(word, next)?, ended))
        })
    }

    /// Leaves a mark, if another is there.
    pub(crate) fn sign(&self, mark: u16) {
        if self.load().mark() != mark {
            self.update(|word| Some((word.with_mark(mark), ())));
        }
    }

    /// Claims the result of a completed task: true for one caller only.
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        self.0.fetch_or(TAKEN, AcqRel) & TAKEN == 0
    }

    /// The handle hands its waker over; false if the task has completed meanwhile.
    #[inline]
    pub(crate) fn give_waker(&self) -> bool {
        self.update(|word| (!word.is_completed()).then_some((Snapshot(word.0 | WAKER), ())))
            .is_some()
    }

    /// The handle takes its waker back; false if there is none or it is the completer's now.
    #[inline]
    pub(crate) fn take_waker(&self) -> bool {
        self.update(|word| {
            let mine = word.is(WAKER) && !word.is_completed();
            mine.then_some((Snapshot(word.0 & !WAKER), ()))
        })
        .is_some()
    }

    /// The handle goes, and its reference with it if `reference`, unless that would be the last one
    /// or the caller has claimed the result.
    #[inline]
    pub(crate) fn drop_handle_with(&self, reference: bool) -> Parted {
        self.update(|word| {
            let claimed = word.is_completed() && !word.is(KEPT | TAKEN);
            let gone = reference && !claimed && word.0 >= 2 * REF;
            let next = word.0 & !HANDLE | if claimed { TAKEN } else { 0 };
            Some((Snapshot(minus(next, gone.into())), Parted { claimed, gone }))
        })
        .unwrap_or(Parted { claimed: false, gone: false })
    }

    /// [`drop_handle_with`](Word::drop_handle_with) its reference left: whether the caller has
    /// claimed the result.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn drop_handle(&self) -> bool {
        self.drop_handle_with(false).claimed
    }

    /// Waits for the cancel lock. Its holders run no foreign code; one that was put to sleep in
    /// there is given the processor.
    ///
    /// The word as it was.
    pub(crate) fn lock_cancel(&self) -> Snapshot {
        let mut spins = 0;
        loop {
            let was = Snapshot(self.0.fetch_or(LOCK, Acquire));
            if !was.is(LOCK) {
                return was;
            }
            spins += 1;
            if spins % 64 == 0 {
                crate::prim::yield_now();
            } else {
                crate::prim::spin_loop();
            }
        }
    }

    pub(crate) fn unlock_cancel(&self) {
        self.0.fetch_and(!LOCK, Release);
    }

    /// How many references are counted, unless the count is saturated.
    #[cfg(asx_audit)]
    pub(crate) fn references(&self) -> Option<u64> {
        let word = self.0.load(Acquire);
        (word < SATURATED).then_some(word / REF)
    }

    /// One reference more.
    #[inline]
    pub(crate) fn add_reference(&self) {
        if self.0.fetch_add(REF, Relaxed) >= SATURATED {
            self.saturate();
        }
    }

    /// A reference was added to a count that is saturated: it is not counted (rule 12 of cells).
    #[cold]
    fn saturate(&self) {
        self.0.fetch_or(PINNED, Relaxed);
        self.0.fetch_sub(REF, Relaxed);
    }

    /// One reference fewer: whether it was the last.
    #[inline]
    pub(crate) fn drop_reference(&self) -> bool {
        if self.0.load(Relaxed) >= SATURATED {
            return false;
        }
        let was = self.0.fetch_sub(REF, Release);
        let last = was < 2 * REF;
        if last {
            // Everything done through other references happens before the end.
            self.0.load(Acquire);
        }
        last
    }
}

/// The word of a task whose poll begins, if it may.
#[inline]
fn begun(word: Snapshot, how: Begin) -> Option<Snapshot> {
    let Begin { starts, plain, reserve } = how;
    // Shortcut: `Word::begin`: a task without a cancel request starts or continues to run.
    // Law: `task::TaskState::step`.
    // Equal: `a_poll_begins_as_the_law_says_for_who_holds_the_only_entry` (every word).
    // Worth: 9.9 % of `yield_1k`.

    let turn = word.0 & (STATE | SCHEDULED | POLLING);
    if turn == RUNNING | SCHEDULED || (starts && turn == CREATED | SCHEDULED) {
        let next = (word.0 & !STATE | RUNNING) ^ (SCHEDULED | POLLING);
        return Some(Snapshot(plus(next, reserve)));
    }
    if word.0 & (SCHEDULED | POLLING) != SCHEDULED {
        return None;
    }
    if plain && word.state().in_cancel_lane() {
        return None;
    }
    let (stepped, _) = word.step(TaskEvent::Poll)?;
    let next = if starts { stepped } else { word };
    Some(Snapshot(plus(next.0 ^ (SCHEDULED | POLLING), reserve)))
}

/// The word of a task that completes.
#[inline]
fn ended(word: Snapshot, how: Complete) -> Option<(Snapshot, Ended)> {
    let Complete { kept, reserve } = how;
    let (next, _) = word.step(TaskEvent::Complete)?;
    let discard = !kept && !word.is(HANDLE);
    let flags = if kept { KEPT } else { 0 } | if discard { TAKEN } else { 0 };
    let next = minus(next.0 & !(POLLING | SCHEDULED) | flags, reserve + 1);
    Some((Snapshot(next), Ended { wake_joiner: word.is(WAKER), discard }))
}

/// A word with so many references more; one that is saturated counts none (rule 12 of cells).
#[inline]
fn plus(word: u64, references: u32) -> u64 {
    if word < SATURATED { word + u64::from(references) * REF } else { word | PINNED }
}

/// A word with so many references fewer, which were counted; one that is saturated stays.
#[inline]
fn minus(word: u64, references: u32) -> u64 {
    if word < SATURATED { word - u64::from(references) * REF } else { word }
}

/// Nothing touches the word of a cell that is freed: loom reports if something might.
#[cfg(loom)]
impl Drop for Word {
    fn drop(&mut self) {
        self.0.with_mut(|_| ());
    }
}
