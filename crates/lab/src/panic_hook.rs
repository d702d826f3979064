//! Panics of runs are findings, not news: they are not printed, but it is noted where they were.
//!
//! One that comes while another unwinds ends the process, and with it the check: then all of them
//! are printed, since nobody will tell them later.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use asx_runtime::footprint;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// Whether there is something in `HEARD`, which is asked more often than there is.
    static HAS_HEARD: Cell<bool> = const { Cell::new(false) };
    static HEARD: RefCell<Vec<Heard>> = const { RefCell::new(Vec::new()) };
}

/// A panic that was not printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// What was said; nothing if it was no text.
    pub(crate) message: Option<String>,
    /// File, line and column.
    pub(crate) place: String,
}

impl Heard {
    fn new(info: &PanicHookInfo<'_>) -> Heard {
        let place = info.location().map_or_else(String::new, ToString::to_string);
        Heard { message: info.payload_as_str().map(Into::into), place }
    }
}

/// Calls `f`; what panics in it on this thread is not printed.
pub(crate) fn during<R>(f: impl FnOnce() -> R) -> R {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return print(info);
            }
            if is_the_end(info) {
                tell_all();
                return print(info);
            }
            // A panic in a destructor at the end of the thread finds nobody to note it.
            let _ = HEARD.try_with(|heard| heard.borrow_mut().push(Heard::new(info)));
            HAS_HEARD.set(true);
            footprint::set_alarm(true);
        }));
    });
    let _before = Before(QUIET.replace(true));
    f()
}

/// Whether the standard library says that it is about to end the process: a destructor that
/// unwinding calls has panicked.
fn is_the_end(info: &PanicHookInfo<'_>) -> bool {
    let endings =
        ["panic in a destructor during cleanup", "panic in a function that cannot unwind"];
    info.payload_as_str().is_some_and(|message| endings.contains(&message))
}

/// Prints the panics that were not, past what a test harness keeps until the test is over.
fn tell_all() {
    let heard = HEARD.try_with(RefCell::take).unwrap_or_default();
    let mut out = std::io::stderr();
    let _ = writeln!(out, "asx lab: a panic while another one unwinds ends the process:");
    for Heard { message, place } in heard {
        let message = message.as_deref().unwrap_or("?");
        let _ = writeln!(out, "  panic at {place}: {message}");
    }
}

/// Says so if this is called by a program that is being checked: its run would be mixed up with the
/// runs of another.
///
/// # Panics
/// If it is.
#[track_caller]
pub(crate) fn refuse_inside() {
    assert!(
        !QUIET.get(),
        "a check inside a program that is being checked: run it on its own, outside of the other"
    );
}

/// Whether there were panics since [`heard`] was last asked.
#[inline]
pub(crate) fn has_heard() -> bool {
    HAS_HEARD.get()
}

/// The panics since this was last asked.
pub(crate) fn heard() -> Vec<Heard> {
    HAS_HEARD.set(false);
    HEARD.take()
}

/// What was before is again, however this ends.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        QUIET.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_is_noted_with_its_place() {
        let line = line!() + 1;
        during(|| assert!(panic::catch_unwind(|| panic!("not {}", "today")).is_err()));
        assert!(has_heard());
        let [heard] = &heard()[..] else { panic!("one panic") };
        assert_eq!(heard.message.as_deref(), Some("not today"));
        assert!(heard.place.contains(&format!("panic_hook.rs:{line}:")), "{heard:?}");
        assert!(!QUIET.get() && !has_heard() && super::heard().is_empty());
    }

    #[test]
    fn a_panic_that_gets_through_ends_the_quiet() {
        let through = panic::catch_unwind(|| during(|| panic!("through")));
        assert!(through.is_err() && !QUIET.get());
    }
}
