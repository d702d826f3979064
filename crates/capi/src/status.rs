//! Statuses, names and the version: what needs no runtime.

use crate::abi::AsxStatus;
use crate::words::{EVENTS, NAMES, TEXTS, word};
use asx_kernel::journal::EventKind;
use asx_kernel::status::Status;
use core::ffi::{CStr, c_char};

/// The version of the interface: major * 1000000 + minor * 1000 + patch.
pub const ASX_VERSION: u32 = 1000;

/// The version of the library.
///
/// Pre: none. Thread: any. Owns: nothing. Answers: ASX_VERSION of the header it was built with.
#[unsafe(no_mangle)]
pub extern "C" fn asx_version() -> u32 {
    ASX_VERSION
}

/// There is a journal. Without it every runtime is as with ASX_FLAG_NO_JOURNAL.
pub const ASX_FEATURE_JOURNAL: u32 = 1;
/// Statuses, events and values have names, and reports of misuse name the call.
pub const ASX_FEATURE_NAMES: u32 = 2;
/// There are texts about what goes on: asx_dump, asx_verify, lines for the log hook.
pub const ASX_FEATURE_DUMP: u32 = 4;

/// What this build of the library has: ASX_FEATURE_. The embedded build has nothing of it; all
/// functions are there nonetheless, and say what they answer then.
///
/// Pre: none. Thread: any. Owns: nothing. Answers: the features, as bits.
#[unsafe(no_mangle)]
pub extern "C" fn asx_features() -> u32 {
    let bit = |feature: u32, there: bool| if there { feature } else { 0 };
    bit(ASX_FEATURE_JOURNAL, cfg!(feature = "journal"))
        | bit(ASX_FEATURE_NAMES, cfg!(feature = "names"))
        | bit(ASX_FEATURE_DUMP, cfg!(feature = "dump"))
}

/// The name of a status, as "STALE_HANDLE"; "UNKNOWN" for a number that is none, and for all of
/// them in a build without names.
///
/// Pre: none. Thread: any. Owns: the text is the library's and lives forever. Answers: never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn asx_status_name(status: AsxStatus) -> *const c_char {
    let at = Status::ALL.iter().position(|known| known.number() == status);
    at.and_then(|at| NAMES.nth(at)).unwrap_or(c"UNKNOWN").as_ptr()
}

/// A sentence about a status; one that says so for a number that is none, or in a build without
/// names.
///
/// Pre: none. Thread: any. Owns: the text is the library's and lives forever. Answers: never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn asx_status_str(status: AsxStatus) -> *const c_char {
    let at = Status::ALL.iter().position(|known| known.number() == status);
    at.and_then(|at| TEXTS.nth(at)).unwrap_or(NO_TEXT).as_ptr()
}

/// Instead of a sentence.
const NO_TEXT: &CStr =
    if cfg!(feature = "names") { c"This is no status." } else { c"This build has no names." };

/// The name of an event's kind; "unknown" for a number that is none, and for all of them in a build
/// without names.
///
/// Pre: none. Thread: any. Owns: the text is the library's and lives forever. Answers: never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn asx_event_name(kind: u32) -> *const c_char {
    let at = CODES.iter().position(|code| *code == kind);
    at.and_then(|at| EVENTS.nth(at)).unwrap_or(c"unknown").as_ptr()
}

/// The name of the value that a field of an event has; "unknown" for a number that is none, and for
/// all of them in a build without names.
///
/// Pre: none. Thread: any. Owns: the text is the library's and lives forever. Answers: never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn asx_value_name(number: u64) -> *const c_char {
    word(number).unwrap_or(c"unknown").as_ptr()
}

/// The codes of events' kinds, in the order of their names.
const CODES: [u32; EventKind::NAMES_WITHOUT_SOCKETS.len()] = [
    1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 30, 31, 40, 41, 42, 50, 51, 52, 53, 54, 55,
    56, 57, 58, 59, 60, 70, 71, 72,
];

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn text(pointer: *const c_char) -> String {
        // SAFETY: rule 2 of `guard`, the other way round: the library's own texts end with a NUL.
        unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn every_number_has_a_name_and_a_sentence() {
        assert_eq!(text(asx_status_name(202)), "STALE_HANDLE");
        assert_eq!(text(asx_status_str(102)), Status::Full.text());
        for number in [-1, 1, i32::MIN, i32::MAX] {
            assert_eq!(text(asx_status_name(number)), "UNKNOWN");
            assert_eq!(text(asx_status_str(number)), "This is no status.");
        }
    }

    #[test]
    fn kinds_of_events_have_the_kernels_names() {
        assert_eq!(text(asx_event_name(EventKind::SoftStop {}.code() as u32)), "soft_stop");
        assert_eq!(text(asx_event_name(EventKind::StaleWake {}.code() as u32)), "stale_wake");
        assert_eq!(text(asx_event_name(9)), "unknown");
        assert_eq!(text(asx_value_name(crate::words::number("Running"))), "Running");
        assert_eq!(text(asx_value_name(0)), "unknown");
    }
}
