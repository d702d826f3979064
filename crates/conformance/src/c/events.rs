//! The journal, read out through the library and put together again.

use super::ask;
use asx_capi::status::asx_value_name;
use asx_capi::{
    ASX_EVENT_HAS_CHANNEL, ASX_EVENT_HAS_REGION, ASX_EVENT_HAS_TASK, ASX_EVENT_HAS_TIMER, AsxEvent,
    AsxRuntime,
};
use asx_kernel::journal::{Event, Subject};
use asx_kernel::time::Time;
use asx_trace::kind_of_fields;
use std::ffi::CStr;

/// Events read at once.
const BATCH: usize = 256;

/// Every event the journal retains.
pub(super) fn read(rt: *mut AsxRuntime) -> Vec<Event> {
    let mut events = Vec::new();
    let mut from = 0;
    loop {
        let mut batch: Vec<AsxEvent> = Vec::with_capacity(BATCH);
        let mut count = 0;
        let read = ask!(journal::asx_journal_read(rt, from, batch.as_mut_ptr(), BATCH, &mut count));
        if read.is_err() || count == 0 {
            return events;
        }
        // SAFETY: the library has written so many.
        unsafe { batch.set_len(count.min(BATCH)) };
        from = batch.last().map_or(from, |event| event.seq + 1);
        events.extend(batch.iter().filter_map(event));
    }
}

fn event(raw: &AsxEvent) -> Option<Event> {
    let there = |bit: u32, id: u64| (raw.present & bit != 0).then_some(id);
    let subject = Subject {
        task: there(ASX_EVENT_HAS_TASK, raw.task),
        region: there(ASX_EVENT_HAS_REGION, raw.region),
        timer: there(ASX_EVENT_HAS_TIMER, raw.timer),
        channel: there(ASX_EVENT_HAS_CHANNEL, raw.channel),
    };
    let there = |(at, field): (usize, &u64)| (raw.fields_present >> at & 1 == 1).then_some(*field);
    let fields: Vec<_> = raw.field.iter().enumerate().map(there).collect();
    let kind = kind_of_fields(u64::from(raw.kind), &fields, word)?;
    Some(Event { seq: raw.seq, time: Time::from_nanos(raw.time), subject, kind })
}

fn word(number: u64) -> Option<&'static str> {
    // SAFETY: the library's words are never NULL and live forever.
    unsafe { CStr::from_ptr(asx_value_name(number)) }.to_str().ok()
}
