//! Comparing a run with a recorded one, while it goes on.
//!
//! The recorded events are the program's memory. Each check compares what was recorded since the
//! last one, event by event, and stops at the first that differs.

use crate::abi::AsxEvent;
use crate::guard::{self, Look, Out};
use crate::journal::convert;
use crate::state::Core;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;

/// The first event in which a run differs from a recorded one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxReplayInfo {
    /// Set by the caller: sizeof(asx_replay_info).
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// How many events were compared and found equal.
    pub compared: u64,
    /// Whether the recording has an event there: 1 or 0.
    pub has_recorded: i32,
    /// Whether this run has: 1 or 0.
    pub has_actual: i32,
    /// The recorded event.
    pub recorded: AsxEvent,
    /// The event of this run.
    pub actual: AsxEvent,
}

export! {
    /// Compares the run so far with a recorded one: all events from number `from` on.
    ///
    /// `recorded` are events that asx_journal_read gave in an earlier run, without a gap. Keep the
    /// number in `*next` and pass it as `from` the next time: then each event is compared once. Ask
    /// again before more events are recorded than the journal keeps (`max_trace`). `ended` is
    /// nonzero if the run is over: then recorded events that it lacks are a difference.
    ///
    /// - Parameters: `recorded` has `count` events, NULL if that is 0; `next` is writable: the
    ///   number of the first event that was not compared; `info` is NULL or begins with its
    ///   struct_size: it is written when there is a difference.
    /// - Returns: ASX_OK when the runs are equal so far; ASX_E_REPLAY_MISMATCH at the first event
    ///   that differs; ASX_E_TRACE_TRUNCATED when an event to be compared was not retained, or
    ///   `recorded` begins after it; ASX_E_EMPTY without a journal; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_replay_compare(
        rt,
        recorded: *const AsxEvent,
        count: usize,
        from: u64,
        ended: i32,
        next: *mut u64,
        info: *mut AsxReplayInfo,
    ) {
        let recorded = guard::events(recorded, count)?;
        let next = Out::new(next)?;
        let info = Look::maybe(info)?;
        |core| {
            let (compared, found) = core.compare(recorded, from, ended != 0)?;
            next.set(compared);
            let Some((one, other)) = found else { return Ok(()) };
            info.set(AsxReplayInfo {
                struct_size: 0,
                reserved: 0,
                compared: compared.saturating_sub(from),
                has_recorded: i32::from(one.is_some()),
                has_actual: i32::from(other.is_some()),
                recorded: one.unwrap_or(AsxEvent::NONE),
                actual: other.unwrap_or(AsxEvent::NONE),
            })?;
            Err(Status::ReplayMismatch)
        }
    }

    /// Compares the digest of the run so far with that of another run: a check that needs no trace.
    ///
    /// - Returns: ASX_OK when they are equal; ASX_E_DETERMINISM_VIOLATION; ASX_E_EMPTY without a
    ///   journal; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_replay_check_digest(rt, recorded: u64) {
        |core| {
            if core.world.journal().is_off() {
                return Err(Status::Empty);
            }
            let same = core.world.journal().digest() == recorded;
            if same { Ok(()) } else { Err(Status::DeterminismViolation) }
        }
    }
}

/// The two events that differ; of a run that is shorter there is none.
type Difference = (Option<AsxEvent>, Option<AsxEvent>);

impl Core {
    /// Compares events from number `from` on: the number of the first that was not found equal, and
    /// the difference there.
    fn compare(
        &self,
        recorded: &[AsxEvent],
        from: u64,
        ended: bool,
    ) -> Answer<(u64, Option<Difference>)> {
        let journal = self.world.journal();
        if journal.is_off() {
            return Err(Status::Empty);
        }
        let first = recorded.first().map_or(0, |event| event.seq);
        let skip = from.checked_sub(first).ok_or(Status::TraceTruncated)?;
        let mut rest = recorded.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let mut next = from;
        for event in journal.events().skip_while(|event| event.seq < from) {
            if event.seq != next {
                return Err(Status::TraceTruncated);
            }
            let actual = convert(event);
            match rest.next() {
                Some(recorded) if *recorded == actual => next += 1,
                other => return Ok((next, Some((other.copied(), Some(actual))))),
            }
        }
        if next < journal.recorded() {
            return Err(Status::TraceTruncated);
        }
        match rest.next() {
            Some(missing) if ended => Ok((next, Some((Some(*missing), None)))),
            _ => Ok((next, None)),
        }
    }
}
