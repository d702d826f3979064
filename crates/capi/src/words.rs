//! The kernel's words as C strings: packed at compile time, one after the other.

use asx_kernel::cancel::{Kind, Phase};
use asx_kernel::journal::EventKind;
use asx_kernel::lanes::Lane;
use asx_kernel::obligation::ObligationState;
use asx_kernel::outcome::Severity;
use asx_kernel::region::RegionState;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use core::ffi::CStr;

/// Words with a NUL behind each.
pub(crate) struct Packed<const N: usize>([u8; N]);

impl<const N: usize> Packed<N> {
    pub(crate) const fn new(words: &[&str]) -> Packed<N> {
        let mut bytes = [0; N];
        let mut word = 0;
        let mut at = 0;
        while word < words.len() {
            let from = words[word].as_bytes();
            let mut next = 0;
            while next < from.len() {
                bytes[at] = from[next];
                (next, at) = (next + 1, at + 1);
            }
            (word, at) = (word + 1, at + 1);
        }
        Packed(bytes)
    }

    /// The n-th word, in a build that has names.
    pub(crate) fn nth(&self, n: usize) -> Option<&CStr> {
        if cfg!(not(feature = "names")) {
            return None;
        }
        nth_of(&self.0, n)
    }
}

/// The n-th of words with a NUL behind each.
pub(crate) fn nth_of(mut rest: &[u8], n: usize) -> Option<&CStr> {
    for _ in 0..n {
        let word = CStr::from_bytes_until_nul(rest).ok()?;
        rest = rest.get(word.count_bytes() + 1..)?;
    }
    CStr::from_bytes_until_nul(rest).ok()
}

/// The bytes that words take.
pub(crate) const fn size(words: &[&str]) -> usize {
    let mut word = 0;
    let mut size = 0;
    while word < words.len() {
        size += words[word].len() + 1;
        word += 1;
    }
    size
}

macro_rules! packed {
    ($($(#[$doc:meta])* $name:ident = $words:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) static $name: Packed<{ size($words) }> = Packed::new($words);
    )*};
}

macro_rules! list {
    ($name:ident, $all:expr, $of:ident) => {
        const $name: [&str; $all.len()] = {
            let mut words = [""; $all.len()];
            let mut at = 0;
            while at < words.len() {
                words[at] = $all[at].$of();
                at += 1;
            }
            words
        };
    };
}

list!(STATUS_NAMES, Status::ALL, name);
list!(STATUS_TEXTS, Status::ALL, text);

packed! {
    /// The names of statuses, in the registry's order.
    NAMES = &STATUS_NAMES;
    /// Their sentences.
    TEXTS = &STATUS_TEXTS;
    /// The names of events' kinds, in the order of their codes.
    EVENTS = EventKind::NAMES_WITHOUT_SOCKETS;
    /// The words an event's field may have.
    WORDS = &ALL_WORDS;
}

list!(REGION, RegionState::ALL, name);
list!(TASK, TaskState::ALL, name);
list!(OBLIGATION, ObligationState::ALL, name);
list!(SEVERITY, Severity::ALL, name);
list!(KIND, Kind::ALL, name);
list!(PHASE, Phase::ALL, name);
list!(LANE, Lane::ALL, name);

/// What can run out, as journals say it.
const EXHAUSTIBLE: [&str; 10] = [
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

const GROUPS: [&[&str]; 8] =
    [&REGION, &TASK, &OBLIGATION, &SEVERITY, &KIND, &PHASE, &LANE, &EXHAUSTIBLE];

const COUNT: usize = {
    let mut group = 0;
    let mut count = 0;
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
};

/// Every word; those that several enums share are found at their first place.
const ALL_WORDS: [&str; COUNT] = {
    let mut words = [""; COUNT];
    let mut group = 0;
    let mut at = 0;
    while group < GROUPS.len() {
        let mut next = 0;
        while next < GROUPS[group].len() {
            words[at] = GROUPS[group][next];
            (next, at) = (next + 1, at + 1);
        }
        group += 1;
    }
    words
};

/// A word's number: its first place in the list, from 1; 0 for a word that is not there.
pub(crate) fn number(word: &str) -> u64 {
    ALL_WORDS.iter().position(|known| *known == word).map_or(0, |at| at as u64 + 1)
}

/// The word of a number.
pub(crate) fn word(number: u64) -> Option<&'static CStr> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    if at < COUNT { WORDS.nth(at) } else { None }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn packed_words_are_the_kernels() {
        for (at, status) in Status::ALL.iter().enumerate() {
            assert_eq!(NAMES.nth(at).unwrap().to_str(), Ok(status.name()));
            assert_eq!(TEXTS.nth(at).unwrap().to_str(), Ok(status.text()));
        }
        assert_eq!(NAMES.nth(Status::ALL.len()), None);
        assert_eq!(EVENTS.nth(0).unwrap(), c"region_opened");
    }

    #[test]
    fn every_word_has_a_number_that_leads_back() {
        for text in ALL_WORDS {
            assert_eq!(word(number(text)).unwrap().to_str(), Ok(text));
        }
        assert_eq!((number("nothing"), word(0), word(u64::MAX)), (0, None, None));
        assert_eq!(word(COUNT as u64 + 1), None);
    }
}
