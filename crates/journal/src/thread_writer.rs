//! A thread's place in a recorder.

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

/// Nanoseconds from one look at the clock to the next, while polls take about as long as before.
const STALE: u64 = 16_000;
/// Polls between two looks, at most.
const POLLS_PER_LOOK: u32 = 128;
/// How far ahead stamps are made known, so that who looks for them is not disturbed by each.
const AHEAD: u64 = 32;

/// A thread that records.
pub(super) struct ThreadWriter {
    /// Which one it records for.
    pub(super) recorder: u64,
    /// The same, while events are written quickly: not [outside](ThreadWriter::outside), and with a
    /// mark of its own.
    inside: u64,
    buffer: Arc<Buffer>,
    chunk: Arc<Chunk>,
    /// What is written in the chunk.
    filled: u64,
    context: Context,
    /// The last stamp.
    clock: u64,
    /// Stamps up to here are known to others as given.
    known: u64,
    mark: u16,
    /// The time when it was looked at last.
    now: u64,
    /// Polls until it is looked at again.
    polls: u32,
    per_look: u32,
    /// No poll of a worker is under way, which would know the time, or there is no knowing it.
    outside: bool,
    /// The thread is about to end, and keeps no place.
    pub(super) fleeting: bool,
}

impl Drop for ThreadWriter {
    fn drop(&mut self) {
        self.buffer.free.store(true, Release);
    }
}

impl ThreadWriter {
    /// The place of who writes to this buffer, alone.
    pub(super) fn new(recorder: &Recorder, buffer: Arc<Buffer>) -> ThreadWriter {
        let chunk = buffer.last();
        let clock = buffer.clock.load(Relaxed);
        ThreadWriter {
            recorder: recorder.id,
            inside: 0,
            filled: chunk.filled(),
            context: Context::NONE,
            clock,
            known: clock,
            mark: buffer.mark,
            chunk,
            buffer,
            now: 0,
            polls: 0,
            per_look: 1,
            outside: true,
            fleeting: false,
        }
    }

    /// Whether it is a place in this recorder where events are written quickly.
    #[inline(always)]
    pub(super) fn knows(&self, recorder: &Recorder) -> bool {
        self.inside == recorder.id
    }

    /// Looks at the clock, if the time may be another than it was.
    #[inline]
    pub(super) fn look<C: Clock>(&mut self, clock: &C) {
        if self.outside {
            self.is_now(clock.now().as_nanos());
        }
    }

    #[inline]
    fn is_now(&mut self, now: u64) {
        if now > self.now {
            self.now = now;
            self.context.is_over();
            // No stamp is less than the time, unless that is beyond all stamps.
            if now < slot::MOST / 2 {
                self.clock = self.clock.max(now.saturating_sub(1));
            }
        }
    }

    /// A worker has chosen a task. It knows the time well enough while polls are short.
    #[inline]
    pub(super) fn begin_poll<C: Clock>(&mut self, recorder: &Recorder, clock: &C) {
        if self.polls > 0 {
            self.polls -= 1;
        } else {
            self.look_again(recorder, clock);
        }
    }

    /// The next poll begins, unless it is time to look at the clock.
    #[inline(always)]
    pub(super) fn goes_on(&mut self) -> Option<()> {
        self.polls = self.polls.checked_sub(1)?;
        Some(())
    }

    /// The next poll begins, if it is time to look at a clock that passes: whether it is.
    pub(super) fn look_if_due<C: Clock>(&mut self, recorder: &Recorder, clock: &C) -> bool {
        let due = recorder.passes && self.polls == 0;
        if due {
            self.look_again(recorder, clock);
        }
        due
    }

    #[inline(never)]
    fn look_again<C: Clock>(&mut self, recorder: &Recorder, clock: &C) {
        let before = self.now;
        let known = self.context.is_known();
        self.is_now(clock.now().as_nanos());
        if !recorder.passes {
            return;
        }
        if known && self.now > before {
            self.note_later();
        }
        // Whoever shares a mark looks at all that have it.
        self.inside = if self.mark == u16::MAX { 0 } else { self.recorder };
        self.outside = false;
        self.per_look = polls_to_next_look(self.per_look, self.now - before);
        self.polls = self.per_look - 1;
    }

    /// Writes down that it is later than it was known to be, if a word does.
    fn note_later(&mut self) {
        let later = self.context.later(self.clock + 1, self.now);
        if !later.is_some_and(|word| self.write_words([word], 0)) {
            self.context.is_over();
        }
    }

    /// The worker has nothing to poll: time passes unseen.
    pub(super) fn rest(&mut self) {
        (self.outside, self.inside, self.polls, self.per_look) = (true, 0, 0, 1);
    }

    /// What is recorded next comes after what this thing has seen.
    #[inline]
    pub(super) fn see(&mut self, thing: &Stamp) {
        self.clock = self.clock.max(thing.0.load(Relaxed));
    }

    /// What the thing sees next comes after what was recorded here, which has
    /// [seen](ThreadWriter::see) it. The caller has the thing's lock.
    #[inline]
    pub(super) fn show(&self, thing: &Stamp) {
        thing.0.store(self.clock, Relaxed);
    }

    /// What is recorded next comes after what the one who left this mark has recorded.
    #[inline]
    pub(super) fn see_mark(&mut self, recorder: &Recorder, mark: u16) {
        if mark != self.mark || mark == u16::MAX {
            self.clock = self.clock.max(recorder.clock_of(mark));
        }
    }

    /// [`see_mark`](ThreadWriter::see_mark), if that takes no lock.
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

    /// The stamp for what is written next; others see it, or a later one, before that.
    #[inline]
    pub(super) fn stamp(&mut self) {
        self.clock += 1;
        self.make_known();
    }

    /// Others see what was seen here, or something later.
    #[inline(always)]
    fn make_known(&mut self) {
        if self.clock > self.known {
            self.known = self.clock + AHEAD;
            self.buffer.clock.store(self.known, Relaxed);
        }
    }

    /// The mark, after which comes all that was seen here.
    pub(super) fn mark_of_seen(&mut self) -> u16 {
        self.make_known();
        self.mark
    }

    /// [`stamp`](ThreadWriter::stamp) for what is about a thing; see [`show`](ThreadWriter::show).
    #[inline]
    pub(super) fn stamp_of(&mut self, thing: &Stamp) {
        self.see(thing);
        self.stamp();
        self.show(thing);
    }

    /// A step of a task is stamped: the word after it, with the mark of this thread.
    pub(super) fn sign<W: Signed>(&mut self, recorder: &Recorder, before: W, after: W) -> W {
        self.see_mark(recorder, before.mark());
        self.stamp();
        after.with_mark(self.mark)
    }

    /// Puts a word where the next one goes for what is told of a task at the last stamp, if one
    /// does and there is room. Nobody sees it yet.
    #[inline(always)]
    pub(super) fn draft(&self, code: u64, (task, region): (u64, u64), fields: u64) -> Option<()> {
        let word = self.context.word(code, (task + 1, region + 1), fields, self.clock)?;
        self.chunk.draft(self.filled, word)
    }

    /// [`draft`](ThreadWriter::draft) of a dispatch, and the step that the task makes.
    #[inline(always)]
    pub(super) fn draft_dispatch(
        &self,
        ids: (u64, u64),
        dispatch: &Dispatch,
        step: u64,
    ) -> Option<()> {
        // One that is not told in few words is far from all that are.
        let dispatch = dispatch.packed.map_or(0, NonZero::get);
        let fields = (dispatch | step).wrapping_sub(self.context.dispatch());
        self.draft(slot::DISPATCHED, ids, fields)
    }

    /// The last draft is written: so many events.
    #[inline(always)]
    pub(super) fn keep(&mut self, events: u64) {
        self.filled = self.chunk.keep_draft(self.filled, events);
    }

    /// Makes and writes down the step of a task whose poll begins, if one word does: what came of
    /// it.
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
            let step = if fresh { slot::STARTS } else { slot::GOES_ON };
            self.draft_dispatch(task.ids(), dispatch, step)?;
            Some(after.with_mark(self.mark))
        })?;
        self.keep(events);
        Some(begun)
    }

    /// The same for the step of a task that ends: also the stamp.
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
        self.keep(2);
        Some((ended, self.clock))
    }

    /// Writes down what is told of a thing at the last stamp, one event, if two words do. The ids
    /// of who it is about are one higher.
    #[inline(always)]
    pub(super) fn tell_of(
        &mut self,
        code: u64,
        ids: (u64, u64),
        thing: u64,
        fields: u64,
    ) -> Option<()> {
        let words = self.context.words(code, ids, thing.checked_add(1)?, fields, self.clock)?;
        self.write_words(words, 1).then_some(())
    }

    /// Writes something down at the last stamp: what was `told`, or else what `kinds` there are.
    pub(super) fn write(
        &mut self,
        recorder: &Recorder,
        told: Option<PackedEvent>,
        subject: Subject,
        kinds: [Option<EventKind>; 2],
    ) {
        if !told.is_some_and(|told| self.write_told(recorder, &told)) {
            self.write_slowly(recorder, subject, kinds);
        }
    }

    /// Writes down what was told, if there is room or some to be had.
    #[inline(always)]
    pub(super) fn write_told(&mut self, recorder: &Recorder, told: &PackedEvent) -> bool {
        let written = match self.context.brief(told, self.clock) {
            Some((word, None)) => self.write_words([word], told.events()),
            Some((word, Some(tail))) => self.write_words([word, tail], told.events()),
            None => false,
        };
        written || self.write_at_length(recorder, told)
    }

    /// [`write_told`](ThreadWriter::write_told) where fewer words than a slot do not do.
    #[inline(never)]
    fn write_at_length(&mut self, recorder: &Recorder, told: &PackedEvent) -> bool {
        self.write_slot(told) || (self.make_room(recorder) && self.write_slot(told))
    }

    #[inline]
    fn write_slot(&mut self, told: &PackedEvent) -> bool {
        let Some(slot) = told.at(self.clock, self.now) else { return false };
        let written = self.write_words(slot, told.events());
        if written {
            self.context.wrote(&slot);
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
    pub(super) fn write_slowly(
        &mut self,
        recorder: &Recorder,
        subject: Subject,
        kinds: [Option<EventKind>; 2],
    ) {
        for kind in kinds.into_iter().flatten() {
            if !self.make_room(recorder) {
                recorder.lose(self.now, subject, kind);
                continue;
            }
            if !PackedEvent::new(subject, kind).is_some_and(|told| self.write_slot(&told)) {
                let place = self.chunk.keep((self.now, subject, kind));
                self.write_words(slot::wide(self.clock, place), 1);
            }
        }
    }

    /// Makes room for a slot, if there is any to be had.
    #[cold]
    fn make_room(&mut self, recorder: &Recorder) -> bool {
        if self.chunk.has_room() {
            return true;
        }
        if recorder.is_refusing() {
            // Nor for less than a slot: what is lost comes after all that is not.
            self.filled = self.chunk.room() as u64;
            return false;
        }
        let ring = if recorder.refuses { None } else { recorder.recycle(&self.buffer) };
        self.chunk = ring.unwrap_or_else(|| self.buffer.grow());
        recorder.make_known(&self.chunk);
        (self.filled, self.context) = (0, Context::NONE);
        true
    }
}

/// How many polls begin until the clock is looked at again, if there were so many since the last
/// look, and so many nanoseconds.
fn polls_to_next_look(polls: u32, span: u64) -> u32 {
    match span {
        // As many again will do.
        _ if 2 * span <= STALE => (2 * polls).min(POLLS_PER_LOOK),
        _ if span <= STALE => polls,
        _ => 1,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_known_well_enough_as_long_as_polls_take_as_long_as_before() {
        for poll in [0, 1, 60, 125, 126, 999, 5_000, STALE / 2, STALE, STALE + 1, u64::MAX / 256] {
            let mut polls = 1;
            for _ in 0..20 {
                polls = polls_to_next_look(polls, u64::from(polls) * poll);
                let span = u64::from(polls) * poll;
                assert!(polls == 1 || span <= STALE, "{poll} {polls}");
            }
            // Nor is it looked at for nothing.
            let as_many = (STALE / 2).checked_div(poll).unwrap_or(u64::MAX);
            let seldom = as_many.clamp(1, POLLS_PER_LOOK.into());
            assert!(u64::from(polls) > seldom / 2, "{poll} {polls}");
        }
        assert_eq!(polls_to_next_look(POLLS_PER_LOOK, STALE + 1), 1, "one took long");
    }
}
