//! The way back: an event's kind from its code and its fields.
//!
//! The kernel shows a kind's fields ([`EventKind::visit`]); this table builds the kind again. Which
//! type a field has is left to inference, so that the table only lists names. The tests below hold
//! it against the kernel's, kind by kind and word by word.

use crate::error::ErrorKind;
use crate::fields::Take;
use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::task::TaskState;

macro_rules! kinds {
    ($($variant:ident = $code:literal $name:literal { $($field:ident),* })*) => {
        /// The code of the kind of this name.
        ///
        /// ```
        /// assert_eq!(asx_trace::kind_code("task_moved"), Some(11));
        /// assert_eq!(asx_trace::kind_code("task_lost"), None);
        /// ```
        pub fn kind_code(name: &str) -> Option<u64> {
            match name {
                $($name => Some($code),)*
                _ => None,
            }
        }

        /// Builds the kind with this code; `None` if there is none.
        pub(crate) fn build(code: u64, from: &mut impl Take) -> Result<Option<EventKind>, ErrorKind> {
            Ok(Some(match code {
                $($code => EventKind::$variant {
                    $($field: Part::take(from, stringify!($field))?,)*
                },)*
                _ => return Ok(None),
            }))
        }
    };
}

kinds! {
    RegionOpened = 1 "region_opened" { parent }
    RegionMoved = 2 "region_moved" { from, to }
    RegionCancelled = 3 "region_cancelled" { kind, strengthened }
    RegionOutcome = 4 "region_outcome" { outcome }
    UnresolvedObligations = 5 "unresolved_obligations" { count }
    TaskSpawned = 10 "task_spawned" { priority, finalizer }
    TaskMoved = 11 "task_moved" { from, to }
    CancelWitness = 12 "cancel_witness" { epoch, phase, kind, polls, strengthened }
    TaskEnded = 13 "task_ended" { outcome }
    CleanupOverrun = 14 "cleanup_overrun" { polls }
    CleanupError = 15 "cleanup_error" {}
    StaleWake = 16 "stale_wake" {}
    BudgetExhausted = 17 "budget_exhausted" { kind }
    Decision = 18 "decision" {
        worker, lane, decision_seq, decision_hash, cancel_streak, limit, fallback
    }
    ObligationReserved = 30 "obligation_reserved" { obligation }
    ObligationResolved = 31 "obligation_resolved" { obligation, to }
    TimerArmed = 40 "timer_armed" { deadline }
    TimerFired = 41 "timer_fired" { deadline }
    TimerCancelled = 42 "timer_cancelled" {}
    ChannelOpened = 50 "channel_opened" { capacity }
    SendReserved = 51 "send_reserved" { permit }
    SendWaiting = 52 "send_waiting" {}
    SendLeft = 53 "send_left" {}
    Sent = 54 "sent" { permit }
    SendRefused = 55 "send_refused" { permit }
    SendAborted = 56 "send_aborted" { permit }
    Evicted = 57 "evicted" {}
    Received = 58 "received" {}
    SendersGone = 59 "senders_gone" {}
    ReceiverGone = 60 "receiver_gone" { dropped }
    ResourceExhausted = 70 "resource_exhausted" { what }
    SoftStop = 71 "soft_stop" {}
    GraceExpired = 72 "grace_expired" {}
}

/// What can run out: the words a `resource_exhausted` event may have.
pub const EXHAUSTIBLE: [&str; 10] = [
    "tasks",
    "regions",
    "obligations",
    "channels",
    "timers",
    "children",
    "memory",
    "cancel_queue",
    "timed_queue",
    "ready_queue",
];

/// A field that is a hash: fixed width, not a number to count with.
pub(crate) fn is_hash(field: &str) -> bool {
    field == "decision_hash"
}

/// A type of field.
trait Part: Sized {
    fn take(from: &mut impl Take, field: &'static str) -> Result<Self, ErrorKind>;
}

impl Part for u64 {
    fn take(from: &mut impl Take, field: &'static str) -> Result<u64, ErrorKind> {
        if is_hash(field) { from.hash(field) } else { from.number(field) }
    }
}

impl Part for u8 {
    fn take(from: &mut impl Take, field: &'static str) -> Result<u8, ErrorKind> {
        from.number(field)?.try_into().map_err(|_| ErrorKind::Range { field })
    }
}

impl Part for Option<u64> {
    fn take(from: &mut impl Take, field: &'static str) -> Result<Option<u64>, ErrorKind> {
        from.maybe(field)
    }
}

impl Part for bool {
    fn take(from: &mut impl Take, field: &'static str) -> Result<bool, ErrorKind> {
        from.flag(field)
    }
}

/// The value a word stands for.
pub(crate) fn word<T>(
    from: &mut impl Take,
    field: &'static str,
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, ErrorKind> {
    let word = from.text(field)?;
    find(word).ok_or_else(|| ErrorKind::Word { field, word: word.into() })
}

macro_rules! words {
    ($($type:ty = $find:expr;)*) => {$(
        impl Part for $type {
            fn take(from: &mut impl Take, field: &'static str) -> Result<$type, ErrorKind> {
                word(from, field, $find)
            }
        }
    )*};
}

words! {
    Kind = Kind::from_name;
    Phase = Phase::from_name;
    Lane = Lane::from_name;
    ObligationState = ObligationState::from_name;
    RegionState = RegionState::from_name;
    Severity = Severity::from_name;
    TaskState = TaskState::from_name;
    &'static str = |word| EXHAUSTIBLE.into_iter().find(|known| *known == word);
}
