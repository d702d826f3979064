//! The writer of a thread: its position in a buffer, its Lamport clock and its idea of the time.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::outcome::Severity;

use super::buffer::{Buffer, Chunk};
use super::delta::Context;
use super::recorder::Recorder;
use super::slot::{self, PackedEvent};
use super::step::{Signed, Step};
use super::{Clock, Dispatch, Stamp};

/// The maximal age of the time in nanoseconds, provided that polls take about as long as before.
const MAX_TIME_AGE: u64 = 16_000;
/// The maximal number of polls between two clock reads.
const MAX_POLLS_PER_READ: u32 = 128;
/// How far ahead stamps are published, so that readers' caches are not invalidated by each stamp.
const PUBLISH_AHEAD: u64 = 32;

/// Appends the events of one thread to its buffer.
pub(super) struct ThreadWriter {
    /// The id of the recorder.
    pub(super) recorder: u64,
    /// The id of the recorder while the fast path is allowed, else 0. The fast path requires a
    /// known time (not [`outside_poll`](ThreadWriter::outside_poll)) and an unshared mark.
    fast_recorder: u64,
    buffer: Arc<Buffer>,
    chunk: Arc<Chunk>,
    /// The number of words and events in the chunk; see [`Chunk`].
    filled: u64,
    context: Context,
    /// The last stamp.
    clock: u64,
    /// The published bound: other threads may assume that all stamps up to it are used.
    published: u64,
    mark: u16,
    /// The time at the last clock read.
    now: u64,
    /// The number of polls until the clock is read again.
    polls: u32,
    polls_per_read: u32,
    /// Whether the thread is outside a worker's poll, so that the clock has to be read for each
    /// event.
    outside_poll: bool,
    /// Whether the thread is about to end, so that the writer is not kept.
    pub(super) temporary: bool,
}

impl Drop for ThreadWriter {
    fn drop(&mut self) {
        self.buffer.free.store(true, Release);
    }
}

impl ThreadWriter {
    /// Creates a writer. The caller owns `buffer` exclusively.
    pub(super) fn new(recorder: &Recorder, buffer: Arc<Buffer>) -> ThreadWriter {
        let chunk = buffer.last();
        let clock = buffer.clock.load(Relaxed);
        ThreadWriter {
            recorder: recorder.id,
            fast_recorder: 0,
            filled: chunk.filled(),
            context: Context::NONE,
            clock,
            published: clock,
            mark: buffer.mark,
            chunk,
            buffer,
            now: 0,
            polls: 0,
            polls_per_read: 1,
            outside_poll: true,
            temporary: false,
        }
    }

    /// Whether events for `recorder` may be written on the fast path.
    #[inline(always)]
    pub(super) fn knows(&self, recorder: &Recorder) -> bool {
        self.fast_recorder == recorder.id
    }

    /// Reads the clock if the time may have changed.
    #[inline]
    pub(super) fn refresh_time<C: Clock>(&mut self, clock: &C) {
        if self.outside_poll {
            self.set_time(clock.now().as_nanos());
        }
    }

    #[inline]
    fn set_time(&mut self, now: u64) {
        if now > self.now {
            self.now = now;
            self.context.invalidate();
            // A stamp is at least the time, unless the time exceeds all stamps.
            if now < slot::MOST / 2 {
                self.clock = self.clock.max(now.saturating_sub(1));
            }
        }
    }

    /// A worker is about to poll a task. Reads the clock, unless the time is recent enough.
    #[inline]
    pub(super) fn begin_poll<C: Clock>(&mut self, recorder: &Recorder, clock: &C) {
        if self.polls > 0 {
            self.polls -= 1;
        } else {
            self.read_clock(recorder, clock);
        }
    }

    /// Counts a poll. Returns `None` if the clock has to be read first.
    #[inline(always)]
    pub(super) fn count_poll(&mut self) -> Option<()> {
        self.polls = self.polls.checked_sub(1)?;
        Some(())
    }

    /// Counts a poll and reads the clock, if a clock that advances by itself has to be read.
    /// Returns whether it did.
    pub(super) fn read_clock_if_due<C: Clock>(&mut self, recorder: &Recorder, clock: &C) -> bool {
        let due = recorder.passes && self.polls == 0;
        if due {
            self.read_clock(recorder, clock);
        }
        due
    }

    #[inline(never)]
    fn read_clock<C: Clock>(&mut self, recorder: &Recorder, clock: &C) {
        let before = self.now;
        let valid = self.context.is_valid();
        self.set_time(clock.now().as_nanos());
        if !recorder.passes {
            return;
        }
        if valid && self.now > before {
            self.write_time_word();
        }
        // A shared mark needs the lock of all buffers.
        self.fast_recorder = if self.mark == u16::MAX { 0 } else { self.recorder };
        self.outside_poll = false;
        self.polls_per_read = polls_to_next_read(self.polls_per_read, self.now - before);
        self.polls = self.polls_per_read - 1;
    }

    /// Writes a time word, if the new time can be encoded as one.
    fn write_time_word(&mut self) {
        let time_word = self.context.time_word(self.clock + 1, self.now);
        if !time_word.is_some_and(|word| self.write_words([word], 0)) {
            self.context.invalidate();
        }
    }

    /// The worker has nothing to poll; time passes unobserved.
    pub(super) fn rest(&mut self) {
        (self.outside_poll, self.fast_recorder, self.polls, self.polls_per_read) = (true, 0, 0, 1);
    }

    /// Orders this thread's next events after those of the object.
    #[inline]
    pub(super) fn see(&mut self, object: &Stamp) {
        self.clock = self.clock.max(object.0.load(Relaxed));
    }

    /// Orders the object's next events after those of this thread, which has
    /// [seen](ThreadWriter::see) the object's. The caller holds the object's lock.
    #[inline]
    pub(super) fn store_to(&self, object: &Stamp) {
        object.0.store(self.clock, Relaxed);
    }

    /// Orders this thread's next events after those recorded under `mark`.
    #[inline]
    pub(super) fn see_mark(&mut self, recorder: &Recorder, mark: u16) {
        if mark != self.mark || mark == u16::MAX {
            self.clock = self.clock.max(recorder.clock_of(mark));
        }
    }

    /// Like [`see_mark`](ThreadWriter::see_mark), but returns `None` if that needs a lock.
    #[inline(always)]
    pub(super) fn see_near(&mut self, recorder: &Recorder, mark: u16) -> Option<()> {
        if mark != self.mark {
            self.clock = self.clock.max(recorder.clock_near(mark)?);
        }
        Some(())
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn time(&self) -> u64 {
        self.now
    }

    #[inline]
    pub(super) fn clock(&self) -> u64 {
        self.clock
    }

    #[inline]
    pub(super) fn mark(&self) -> u16 {
        self.mark
    }

    /// Advances to the stamp of the next event, and publishes a bound that covers it.
    #[inline]
    pub(super) fn stamp(&mut self) {
        self.clock += 1;
        self.publish();
    }

    /// Publishes a bound that covers the clock, if the published one does not.
    #[inline(always)]
    fn publish(&mut self) {
        if self.clock > self.published {
            self.published = self.clock + PUBLISH_AHEAD;
            self.buffer.clock.store(self.published, Relaxed);
        }
    }

    /// Returns the mark, after publishing all that this thread has seen.
    pub(super) fn mark_of_seen(&mut self) -> u16 {
        self.publish();
        self.mark
    }

    /// Like [`stamp`](ThreadWriter::stamp), for an event of an object; see
    /// [`store_to`](ThreadWriter::store_to).
    #[inline]
    pub(super) fn stamp_of(&mut self, object: &Stamp) {
        self.see(object);
        self.stamp();
        self.store_to(object);
    }

    /// Stamps the step of a task. Returns the word after the step, with this thread's mark.
    pub(super) fn sign<W: Signed>(&mut self, recorder: &Recorder, before: W, after: W) -> W {
        self.see_mark(recorder, before.mark());
        self.stamp();
        after.with_mark(self.mark)
    }

    /// Stores the word for a task event at the last stamp behind the written words, where readers
    /// do not see it yet. Returns `None` if one word does not suffice or there is no room.
    #[inline(always)]
    pub(super) fn draft(&self, code: u64, (task, region): (u64, u64), fields: u64) -> Option<()> {
        let word = self.context.word(code, (task + 1, region + 1), fields, self.clock)?;
        self.chunk.draft(self.filled, word)
    }

    /// Like [`draft`](ThreadWriter::draft), for a dispatch and the step that the task makes.
    #[inline(always)]
    pub(super) fn draft_dispatch(
        &self,
        ids: (u64, u64),
        dispatch: &Dispatch,
        step: u64,
    ) -> Option<()> {
        // 0 differs from every packed dispatch by more than a word can encode.
        let dispatch = dispatch.packed.map_or(0, NonZero::get);
        let fields = (dispatch | step).wrapping_sub(self.context.dispatch());
        self.draft(slot::DISPATCHED, ids, fields)
    }

    /// Commits the last draft, which holds `events` events.
    #[inline(always)]
    pub(super) fn commit(&mut self, events: u64) {
        self.filled = self.chunk.commit_draft(self.filled, events);
    }

    /// Makes and records the step that begins a task's poll, if one word suffices. Returns the
    /// result of the step.
    #[inline(always)]
    pub(super) fn begin<S: Step>(
        &mut self,
        recorder: &Recorder,
        task: &S,
        dispatch: &Dispatch,
    ) -> Option<S::Made> {
        let mut events = 0;
        let begun = task.make(|before, after| {
            if !before.is_plain() || !after.is_running() {
                return None;
            }
            self.see_near(recorder, before.mark())?;
            self.stamp();
            let fresh = !before.is_running();
            events = 1 + u64::from(fresh);
            let step = if fresh { slot::STARTS } else { slot::RESUMES };
            self.draft_dispatch(task.ids(), dispatch, step)?;
            Some(after.with_mark(self.mark))
        })?;
        self.commit(events);
        Some(begun)
    }

    /// Makes and records the step that ends a task, if one word suffices. Returns the result of the
    /// step and the stamp.
    #[inline(always)]
    pub(super) fn end<S: Step>(
        &mut self,
        recorder: &Recorder,
        task: &S,
        outcome: Severity,
    ) -> Option<(S::Made, u64)> {
        let ended = task.make(|before, after| {
            if !before.is_plain() || !before.is_running() {
                return None;
            }
            self.see_near(recorder, before.mark())?;
            self.stamp();
            let fields = slot::ENDS | (outcome as u64) << 8;
            self.draft(slot::ENDED, task.ids(), fields)?;
            Some(after.with_mark(self.mark))
        })?;
        self.commit(2);
        Some((ended, self.clock))
    }

    /// Records one event of an object at the last stamp, if two words suffice. `ids` are stored
    /// plus one.
    #[inline(always)]
    pub(super) fn write_object_event(
        &mut self,
        code: u64,
        ids: (u64, u64),
        object: u64,
        fields: u64,
    ) -> Option<()> {
        let words = self.context.words(code, ids, object.checked_add(1)?, fields, self.clock)?;
        self.write_words(words, 1).then_some(())
    }

    /// Writes events at the last stamp: in the packed form if there is one, else as `kinds`.
    pub(super) fn write(
        &mut self,
        recorder: &Recorder,
        packed: Option<PackedEvent>,
        subject: Subject,
        kinds: [Option<EventKind>; 2],
    ) {
        if !packed.is_some_and(|packed| self.write_packed(recorder, &packed)) {
            self.write_slow(recorder, subject, kinds);
        }
    }

    /// Writes a packed event. Returns false if the journal is full or the event does not fit.
    #[inline(always)]
    pub(super) fn write_packed(&mut self, recorder: &Recorder, packed: &PackedEvent) -> bool {
        let written = match self.context.brief(packed, self.clock) {
            Some((word, None)) => self.write_words([word], packed.events()),
            Some((word, Some(tail))) => self.write_words([word, tail], packed.events()),
            None => false,
        };
        written || self.write_full_slot(recorder, packed)
    }

    /// Continues [`write_packed`](ThreadWriter::write_packed) with a full slot.
    #[inline(never)]
    fn write_full_slot(&mut self, recorder: &Recorder, packed: &PackedEvent) -> bool {
        self.write_slot(packed) || (self.make_room(recorder) && self.write_slot(packed))
    }

    #[inline]
    fn write_slot(&mut self, packed: &PackedEvent) -> bool {
        let Some(slot) = packed.at(self.clock, self.now) else { return false };
        let written = self.write_words(slot, packed.events());
        if written {
            self.context.observe_slot(&slot);
        }
        written
    }

    #[inline]
    fn write_words<const N: usize>(&mut self, words: [u64; N], events: u64) -> bool {
        let filled = self.chunk.write(self.filled, words, events);
        filled.is_some_and(|filled| {
            self.filled = filled;
            true
        })
    }

    #[cold]
    pub(super) fn write_slow(
        &mut self,
        recorder: &Recorder,
        subject: Subject,
        kinds: [Option<EventKind>; 2],
    ) {
        for kind in kinds.into_iter().flatten() {
            if !self.make_room(recorder) {
                recorder.record_lost(self.now, subject, kind);
                continue;
            }
            if !PackedEvent::new(subject, kind).is_some_and(|packed| self.write_slot(&packed)) {
                let place = self.chunk.push_wide((self.now, subject, kind));
                self.write_words(slot::wide(self.clock, place), 1);
            }
        }
    }

    /// Ensures that the chunk has room for a slot. Returns false if the journal is full.
    #[cold]
    fn make_room(&mut self, recorder: &Recorder) -> bool {
        if self.chunk.has_room() {
            return true;
        }
        if recorder.is_refusing() {
            // Leave no room for shorter events either: no event may follow a lost one.
            self.filled = self.chunk.room() as u64;
            return false;
        }
        let ring = if recorder.refuses { None } else { recorder.recycle(&self.buffer) };
        self.chunk = ring.unwrap_or_else(|| self.buffer.grow());
        recorder.add_room(&self.chunk);
        (self.filled, self.context) = (0, Context::NONE);
        true
    }
}

/// Returns the number of polls until the next clock read, given the number since the last read and
/// the nanoseconds they took.
fn polls_to_next_read(polls: u32, span: u64) -> u32 {
    match span {
        // The same number of polls again ends within the maximal age.
        _ if 2 * span <= MAX_TIME_AGE => (2 * polls).min(MAX_POLLS_PER_READ),
        _ if span <= MAX_TIME_AGE => polls,
        _ => 1,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_known_well_enough_as_long_as_polls_take_as_long_as_before() {
        for poll in [
            0,
            1,
            60,
            125,
            126,
            999,
            5_000,
            MAX_TIME_AGE / 2,
            MAX_TIME_AGE,
            MAX_TIME_AGE + 1,
            u64::MAX / 256,
        ] {
            let mut polls = 1;
            for _ in 0..20 {
                polls = polls_to_next_read(polls, u64::from(polls) * poll);
                let span = u64::from(polls) * poll;
                assert!(polls == 1 || span <= MAX_TIME_AGE, "{poll} {polls}");
            }
            // And the clock is not read more often than needed.
            let as_many = (MAX_TIME_AGE / 2).checked_div(poll).unwrap_or(u64::MAX);
            let seldom = as_many.clamp(1, MAX_POLLS_PER_READ.into());
            assert!(u64::from(polls) > seldom / 2, "{poll} {polls}");
        }
        assert_eq!(polls_to_next_read(MAX_POLLS_PER_READ, MAX_TIME_AGE + 1), 1, "one took long");
    }
}
