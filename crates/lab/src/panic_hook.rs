//! Panics of runs are findings, not news: they are not printed, but it is noted where they were.

use std::cell::{Cell, RefCell};
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
            // A panic in a destructor at the end of the thread finds nobody to note it.
            let _ = HEARD.try_with(|heard| heard.borrow_mut().push(Heard::new(info)));
            HAS_HEARD.set(true);
            footprint::set_alarm(true);
        }));
    });
    let _before = Before(QUIET.replace(true));
    f()
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
