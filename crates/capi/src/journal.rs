//! The journal: every event of a run, and the digest that says "the same run".

use crate::abi::{
    ASX_EVENT_FIELDS, ASX_EVENT_HAS_CHANNEL, ASX_EVENT_HAS_REGION, ASX_EVENT_HAS_TASK,
    ASX_EVENT_HAS_TIMER, AsxEvent, AsxJournalInfo,
};
use crate::guard::{self, Look, Out};
use crate::words;
use asx_kernel::journal::{Event, Field};
use asx_kernel::status::Status;
use core::ffi::c_char;

export! {
    /// Reads how many events were recorded, and how many can be read.
    ///
    /// - Parameters: `info` begins with its struct_size.
    /// - Returns: ASX_OK; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_journal_get_info(rt, info: *mut AsxJournalInfo) {
        let info = Look::new(info)?;
        |core| {
            let journal = core.world.journal();
            info.set(AsxJournalInfo {
                struct_size: 0,
                reserved: 0,
                recorded: journal.recorded(),
                lost: journal.lost(),
                retained: journal.events().len() as u64,
            })
        }
    }

    /// Computes the digest of every event recorded so far. Takes time in proportion to the retained
    /// events.
    ///
    /// - Parameters: `out` is writable.
    /// - Returns: ASX_OK; ASX_E_EMPTY with ASX_FLAG_NO_JOURNAL, or in a build without
    ///   ASX_FEATURE_JOURNAL; ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_journal_digest(rt, out: *mut u64) {
        let out = Out::new(out)?;
        |core| {
            if core.world.journal().is_off() {
                return Err(Status::Empty);
            }
            out.set(core.world.journal().digest());
            Ok(())
        }
    }

    /// Reads retained events, from the first whose number is not below `from`.
    ///
    /// - Parameters: `events` has room for `room` of them; `count` is writable: how many were read.
    /// - Returns: ASX_OK, also when none was left; ASX_E_INVALID_ARGUMENT;
    ///   ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_journal_read(rt, from: u64, events: *mut AsxEvent, room: usize, count: *mut usize) {
        let events = guard::room(events, room)?;
        let count = Out::new(count)?;
        |core| {
            if core.world.journal().is_off() {
                count.set(0);
                return Ok(());
            }
            let found = core.world.journal().events();
            // Numbers are consecutive, so the place of the first one is known.
            let first = core.world.journal().events().next().map_or(0, |event| event.seq);
            let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
            let mut read = 0;
            for (to, event) in events.iter_mut().zip(found.skip(skip)) {
                to.write(convert(event));
                read += 1;
            }
            count.set(read);
            Ok(())
        }
    }

    /// Formats a retained event as a line of text.
    ///
    /// - Parameters: `text` has room for `room` bytes; `size` is NULL or writable: the line's
    ///   length.
    /// - Returns: ASX_OK; ASX_E_EMPTY when there is no such event; ASX_E_FULL when it was cut;
    ///   ASX_E_INVALID_ARGUMENT; ASX_E_AFFINITY_VIOLATION; ASX_E_REENTRANT.
    fn asx_journal_line(rt, seq: u64, text: *mut c_char, room: usize, size: *mut usize) {
        let text = guard::room(text.cast::<u8>(), room)?;
        let size = Out::maybe(size)?;
        |core| {
            if core.world.journal().is_off() {
                return Err(Status::Empty);
            }
            let event = core.world.journal().events().find(|event| event.seq == seq);
            guard::put_text(text, format_args!("{}", event.ok_or(Status::Empty)?), size)
        }
    }
}

impl AsxEvent {
    /// No event.
    pub const NONE: AsxEvent = AsxEvent {
        seq: 0,
        time: 0,
        kind: 0,
        present: 0,
        task: 0,
        region: 0,
        timer: 0,
        channel: 0,
        fields: 0,
        fields_present: 0,
        field: [0; ASX_EVENT_FIELDS],
    };
}

/// An event as it crosses the boundary.
pub(crate) fn convert(event: &Event) -> AsxEvent {
    let subject = &event.subject;
    let flag = |bit: u32, there: Option<u64>| if there.is_some() { bit } else { 0 };
    let mut out = AsxEvent {
        seq: event.seq,
        time: event.time.as_nanos(),
        kind: event.kind.code() as u32,
        present: flag(ASX_EVENT_HAS_TASK, subject.task)
            | flag(ASX_EVENT_HAS_REGION, subject.region)
            | flag(ASX_EVENT_HAS_TIMER, subject.timer)
            | flag(ASX_EVENT_HAS_CHANNEL, subject.channel),
        task: subject.task.unwrap_or(0),
        region: subject.region.unwrap_or(0),
        timer: subject.timer.unwrap_or(0),
        channel: subject.channel.unwrap_or(0),
        ..AsxEvent::NONE
    };
    event.kind.visit(|_, field| {
        let value = match field {
            Field::Number(number) => Some(number),
            Field::Maybe(number) => number,
            Field::Flag(flag) => Some(flag.into()),
            Field::Word(word) => Some(words::number(word)),
        };
        if let Some(to) = out.field.get_mut(out.fields as usize) {
            *to = value.unwrap_or(0);
            out.fields_present |= u32::from(value.is_some()) << out.fields;
            out.fields += 1;
        }
    });
    out
}
