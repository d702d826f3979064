//! The scenario reader on any text: the result is a scenario, or errors with positions.
#![no_main]

use asx_conformance::parse_str;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(errors) = parse_str("fuzz.toml", text) {
        assert!(!errors.is_empty(), "refused without an error");
        let lines = text.lines().count() + 1;
        for error in errors {
            assert!(error.line <= lines, "line {} of {lines}", error.line);
            assert!(error.to_string().starts_with("fuzz.toml:"));
        }
    }
});
