//! The record of a run: the kernel's journal, written by whoever makes the step it tells of.
//!
//! Off, it costs a branch where something would be recorded. On, each thread writes its events into
//! a buffer of its own, in a few words each and without a lock; numbers, the chain of decisions
//! and the digest are worked out when somebody asks for the record, which merges the buffers.
//!
//! # Order
//! Every event has a stamp, and the order of the record is that of the stamps. A thread's stamps
//! grow. So do those of a thing: whoever has its lock and records something about it gives a stamp
//! later than the last one given there, and leaves it there ([`Stamp`]). A task has no lock for its
//! ordinary steps: its word has the mark of the buffer in which its last event is. A step of the
//! word is signed in the same instruction, with a stamp that is later than any given so far by who
//! signed before; stamps are published before they are used. So whatever one event could know of
//! another comes after it on the record. A stamp is never less than the time it was given at, as
//! far as the thread knew, so that the order is also about that of time.
//!
//! A record that is read while tasks run may lack what is being written just then.
//!
//! # Time
//! A worker looks at a clock that passes by itself when it begins a poll: at every one, or at one of
//! eight as long as they take less than a microsecond each.

mod buffer;
mod fold;
mod recorder;
mod slot;
#[cfg(all(test, not(loom)))]
mod tests;

use std::sync::atomic::AtomicU64;

use asx_kernel::journal::{Event, EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::outcome::Severity;
use asx_kernel::task::TaskState;

use crate::core::Core;
use recorder::Here;
pub(crate) use recorder::Recorder;
use slot::Told;

/// How a dispatch came about, as a worker knows it.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// Who dispatches.
    pub worker: u16,
    /// The lane the task waited in.
    pub lane: Lane,
    /// The worker's cancel streak before.
    pub streak: u32,
    /// The cancel-streak limit in force.
    pub limit: u32,
    /// Cancel work over its limit, for want of anything else.
    pub fallback: bool,
}

/// What a runtime has recorded.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The retained events, oldest first.
    pub events: Vec<Event>,
    /// The digest of every event ever recorded; where the time passes by itself, of those retained.
    pub digest: u64,
    /// How many events were recorded.
    pub recorded: u64,
    /// How many of them were not retained.
    pub lost: u64,
}

/// The last stamp given to an event of a thing that has a lock.
#[derive(Default)]
pub(crate) struct Stamp(AtomicU64);

impl Core {
    /// Whether events are recorded.
    #[inline]
    pub fn recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// What was recorded so far, if anything is. Exact when nothing is running.
    pub fn recorded(&self) -> Option<Recorded> {
        self.recorder.as_ref().map(Recorder::read)
    }

    /// How many events were recorded so far.
    pub fn events(&self) -> u64 {
        self.recorder.as_ref().map_or(0, Recorder::events)
    }

    /// The calling thread has nothing to poll: what it records before the next dispatch is at a
    /// time of its own.
    pub fn rest(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.here(Here::rest);
        }
    }

    /// Whether a full journal refuses new work.
    pub(crate) fn is_refusing(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::is_refusing)
    }

    /// Records an event that is in order with those of this thread, if events are recorded.
    #[inline]
    pub(crate) fn note(&self, subject: Subject, kind: EventKind) {
        if let Some(recorder) = &self.recorder {
            self.write(recorder, None, subject, kind);
        }
    }

    /// Records an event of a thing whose lock the caller has.
    #[inline]
    pub(crate) fn note_of(&self, thing: &Stamp, subject: Subject, kind: EventKind) {
        if let Some(recorder) = &self.recorder {
            self.write(recorder, Some(thing), subject, kind);
        }
    }

    #[inline(never)]
    fn write(
        &self,
        recorder: &Recorder,
        thing: Option<&Stamp>,
        subject: Subject,
        kind: EventKind,
    ) {
        recorder.here(|here| {
            here.look(recorder, &*self.host);
            thing.into_iter().for_each(|thing| here.see(thing));
            here.stamp();
            here.write(recorder, Told::new(subject, kind), subject, [Some(kind), None]);
            thing.into_iter().for_each(|thing| here.touch(thing));
        });
    }

    /// What is recorded of a thing later comes after what this thread has recorded, and the other
    /// way round. The caller has the thing's lock.
    #[inline]
    pub(crate) fn touch(&self, thing: &Stamp) {
        if let Some(recorder) = &self.recorder {
            recorder.here(|here| here.touch(thing));
        }
    }

    /// What this thread records comes after what was recorded of a thing.
    #[inline]
    pub(crate) fn see(&self, thing: &Stamp) {
        if let Some(recorder) = &self.recorder {
            recorder.here(|here| here.see(thing));
        }
    }

    /// The mark of the calling thread; 0 if nothing is recorded.
    #[inline]
    pub(crate) fn mark(&self) -> u16 {
        self.recorder.as_ref().map_or(0, |recorder| recorder.here(|here| here.mark()))
    }

    /// What this thread records comes after what was recorded by who left this mark.
    pub(crate) fn see_mark(&self, mark: u16) {
        if let Some(recorder) = &self.recorder {
            recorder.here(|here| here.see_mark(recorder, mark));
        }
    }

    /// Records the step of a word that `step` makes, if it makes one, and signs.
    #[inline]
    pub(crate) fn note_step<R>(
        &self,
        subject: Subject,
        what: Step,
        step: impl FnOnce(&mut Signer<'_>) -> Option<(R, TaskState, TaskState)>,
    ) -> Option<R> {
        let recorder = self.recorder.as_ref()?;
        recorder.here(|here| {
            match what {
                Step::Begun(_) => here.begin_poll(recorder, &*self.host),
                Step::Ended(_) => here.look(recorder, &*self.host),
            }
            let (answer, from, to) = step(&mut Signer { here, recorder })?;
            let steps = (from != to).then_some((from, to));
            let moved = steps.map(|(from, to)| EventKind::TaskMoved { from, to });
            match what {
                Step::Begun(dispatch) => {
                    let told = Told::dispatched(subject, dispatch, steps);
                    here.write(recorder, told, subject, [Some(dispatch.into()), moved]);
                }
                Step::Ended(outcome) => {
                    let told = Told::ended(subject, outcome, steps);
                    let ended = Some(EventKind::TaskEnded { outcome });
                    here.write(recorder, told, subject, [moved, ended]);
                }
            }
            Some(answer)
        })
    }
}

/// Signs the word of a task.
pub(crate) struct Signer<'a> {
    here: &'a mut Here,
    recorder: &'a Recorder,
}

impl Signer<'_> {
    /// The mark for a step of a word that has this one.
    #[inline]
    pub(crate) fn sign(&mut self, mark: u16) -> u16 {
        self.here.see_mark(self.recorder, mark);
        self.here.stamp();
        self.here.mark()
    }
}

/// What a step of a task's word is.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// A poll begins.
    Begun(Dispatch),
    /// The task ends.
    Ended(Severity),
}

/// What decisions add up to is left open.
impl From<Dispatch> for EventKind {
    fn from(dispatch: Dispatch) -> EventKind {
        let Dispatch { worker, lane, streak, limit, fallback } = dispatch;
        EventKind::Decision {
            worker: worker.into(),
            lane,
            decision_seq: 0,
            decision_hash: 0,
            cancel_streak: streak.into(),
            limit: limit.into(),
            fallback,
        }
    }
}
