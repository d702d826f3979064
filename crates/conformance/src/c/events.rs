//! The journal, read out through the library and put together again.

use super::ask;
use asx_capi::status::asx_value_name;
use asx_capi::{
    ASX_EVENT_HAS_CHANNEL, ASX_EVENT_HAS_REGION, ASX_EVENT_HAS_TASK, ASX_EVENT_HAS_TIMER, AsxEvent,
    AsxRuntime,
};
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::{Event, EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
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
    let kind = build(&mut Fields { raw, at: 0 })?;
    Some(Event { seq: raw.seq, time: Time::from_nanos(raw.time), subject, kind })
}

struct Fields<'a> {
    raw: &'a AsxEvent,
    at: usize,
}

impl Fields<'_> {
    fn next(&mut self) -> Option<u64> {
        let there = self.raw.fields_present >> self.at & 1 == 1;
        self.at += 1;
        there.then(|| self.raw.field.get(self.at - 1).copied()).flatten()
    }

    fn word(&mut self) -> Option<String> {
        let text = asx_value_name(self.next()?);
        // SAFETY: the library's words are never NULL and live forever.
        Some(unsafe { CStr::from_ptr(text) }.to_str().ok()?.to_owned())
    }
}

/// A type of field.
trait Take: Sized {
    fn take(from: &mut Fields<'_>) -> Option<Self>;
}

impl Take for u64 {
    fn take(from: &mut Fields<'_>) -> Option<u64> {
        from.next()
    }
}

impl Take for Option<u64> {
    fn take(from: &mut Fields<'_>) -> Option<Option<u64>> {
        Some(from.next())
    }
}

impl Take for u8 {
    fn take(from: &mut Fields<'_>) -> Option<u8> {
        from.next()?.try_into().ok()
    }
}

impl Take for bool {
    fn take(from: &mut Fields<'_>) -> Option<bool> {
        Some(from.next()? == 1)
    }
}

impl Take for &'static str {
    fn take(from: &mut Fields<'_>) -> Option<&'static str> {
        let word = from.word()?;
        asx_trace::EXHAUSTIBLE.into_iter().find(|known| *known == word)
    }
}

macro_rules! words {
    ($($type:ty),*) => {$(
        impl Take for $type {
            fn take(from: &mut Fields<'_>) -> Option<$type> {
                <$type>::from_name(&from.word()?)
            }
        }
    )*};
}

words!(Kind, Phase, Lane, ObligationState, RegionState, Severity, TaskState);

macro_rules! kinds {
    ($($code:literal $variant:ident { $($field:ident),* })*) => {
        fn build(from: &mut Fields<'_>) -> Option<EventKind> {
            Some(match from.raw.kind {
                $($code => EventKind::$variant { $($field: Take::take(from)?,)* },)*
                _ => return None,
            })
        }
    };
}

kinds! {
    1 RegionOpened { parent }
    2 RegionMoved { from, to }
    3 RegionCancelled { kind, strengthened }
    4 RegionOutcome { outcome }
    5 UnresolvedObligations { count }
    10 TaskSpawned { priority, finalizer }
    11 TaskMoved { from, to }
    12 CancelWitness { epoch, phase, kind, polls, strengthened }
    13 TaskEnded { outcome }
    14 CleanupOverrun { polls }
    15 CleanupError {}
    16 StaleWake {}
    17 BudgetExhausted { kind }
    18 Decision { worker, lane, decision_seq, decision_hash, cancel_streak, limit, fallback }
    30 ObligationReserved { obligation }
    31 ObligationResolved { obligation, to }
    40 TimerArmed { deadline }
    41 TimerFired { deadline }
    42 TimerCancelled {}
    50 ChannelOpened { capacity }
    51 SendReserved { permit }
    52 SendWaiting {}
    53 SendLeft {}
    54 Sent { permit }
    55 SendRefused { permit }
    56 SendAborted { permit }
    57 Evicted {}
    58 Received {}
    59 SendersGone {}
    60 ReceiverGone { dropped }
    70 ResourceExhausted { what }
    71 SoftStop {}
    72 GraceExpired {}
}
