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
/// - Thread: any.
/// - Returns: ASX_VERSION of the header it was built with.
#[unsafe(no_mangle)]
pub extern "C" fn asx_version() -> u32 {
    ASX_VERSION
}

/// There is a journal. Without it every runtime is as with ASX_FLAG_NO_JOURNAL.
pub const ASX_FEATURE_JOURNAL: u32 = 1;
/// Statuses, events and values have names, and reports of misuse name the call.
pub const ASX_FEATURE_NAMES: u32 = 2;
/// The texts of asx_dump and asx_verify, and lines for the log hook.
pub const ASX_FEATURE_DUMP: u32 = 4;

/// Returns what this build of the library has, as ASX_FEATURE_ bits. The embedded build has none of
/// them; it has all functions, which report what they lack.
///
/// - Thread: any.
/// - Returns: the features, as bits.
#[unsafe(no_mangle)]
pub extern "C" fn asx_features() -> u32 {
    let bit = |feature: u32, there: bool| if there { feature } else { 0 };
    bit(ASX_FEATURE_JOURNAL, cfg!(feature = "journal"))
        | bit(ASX_FEATURE_NAMES, cfg!(feature = "names"))
        | bit(ASX_FEATURE_DUMP, cfg!(feature = "dump"))
}

/// Returns the name of a status, such as "STALE_HANDLE". Unknown numbers are "UNKNOWN", as are all
/// in a build without names.
///
/// - Thread: any.
/// - Ownership: the text is static.
/// - Returns: never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn asx_status_name(status: AsxStatus) -> *const c_char {
    let at = Status::ALL.iter().position(|known| known.number() == status);
    at.and_then(|at| NAMES.nth(at)).unwrap_or(c"UNKNOWN").as_ptr()
}

/// Returns a sentence about a status. Unknown numbers have one as well, as do all in a build
/// without names.
///
/// - Thread: any.
/// - Ownership: the text is static.
/// - Returns: never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn asx_status_str(status: AsxStatus) -> *const c_char {
    let at = Status::ALL.iter().position(|known| known.number() == status);
    at.and_then(|at| TEXTS.nth(at)).unwrap_or(NO_TEXT).as_ptr()
}

/// Instead of a sentence.
const NO_TEXT: &CStr =
    if cfg!(feature = "names") { c"This is no status." } else { c"This build has no names." };

/// Returns the name of an event kind. Unknown numbers are "unknown", as are all in a build without
/// names.
///
/// - Thread: any.
/// - Ownership: the text is static.
/// - Returns: never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn asx_event_name(kind: u32) -> *const c_char {
    let at = CODES.iter().position(|code| *code == kind);
    at.and_then(|at| EVENTS.nth(at)).unwrap_or(c"unknown").as_ptr()
}

/// Returns the name of the value of an event's field. Unknown numbers are "unknown", as are all in
/// a build without names.
///
/// - Thread: any.
/// - Ownership: the text is static.
/// - Returns: never NULL.
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
