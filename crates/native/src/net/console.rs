//! Console events of Windows: Ctrl-C and Ctrl-Break.
//!
//! One handler serves the process. Windows calls it on a new thread for each event, where locks may
//! be taken and tasks woken.
//!
//! # Rules
//! 1. [`handle`] has the signature that `SetConsoleCtrlHandler` requires. It is never removed, and
//!    never unwinds: callbacks run inside `catch_unwind`.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use asx_runtime::net::{ConsoleEvent, ConsoleNotify};
use windows_sys::Win32::Foundation::{FALSE, TRUE};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

/// The callbacks of the process.
struct Callbacks {
    is_installed: bool,
    /// The events for which a callback was ever registered. They are handled from then on.
    handled: Vec<ConsoleEvent>,
    all: Vec<(ConsoleEvent, ConsoleNotify)>,
}

static CALLBACKS: Mutex<Callbacks> =
    Mutex::new(Callbacks { is_installed: false, handled: Vec::new(), all: Vec::new() });

fn callbacks() -> MutexGuard<'static, Callbacks> {
    CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `notify` for each event of this kind until it is dropped.
pub(super) fn register(event: ConsoleEvent, notify: ConsoleNotify) -> io::Result<()> {
    let mut callbacks = callbacks();
    if !callbacks.is_installed {
        // SAFETY: rule 1.
        if unsafe { SetConsoleCtrlHandler(Some(handle), TRUE) } == FALSE {
            return Err(io::Error::last_os_error());
        }
        callbacks.is_installed = true;
    }
    if !callbacks.handled.contains(&event) {
        callbacks.handled.push(event);
    }
    callbacks.all.retain(|(_, notify)| notify.strong_count() > 0);
    callbacks.all.push((event, notify));
    Ok(())
}

/// Handles an event of the console. Returns `TRUE` if it was handled; otherwise Windows calls the
/// handler that was installed before, which terminates the process by default.
unsafe extern "system" fn handle(number: u32) -> BOOL {
    let event = match number {
        CTRL_C_EVENT => ConsoleEvent::CtrlC,
        CTRL_BREAK_EVENT => ConsoleEvent::CtrlBreak,
        _ => return FALSE,
    };
    let live: Vec<_> = {
        let callbacks = callbacks();
        if !callbacks.handled.contains(&event) {
            return FALSE;
        }
        let of_event = callbacks.all.iter().filter(|(of, _)| *of == event);
        of_event.filter_map(|(_, notify)| notify.upgrade()).collect()
    };
    for notify in live {
        // Calls and drops it: either may run code of the user.
        let _ = catch_unwind(AssertUnwindSafe(move || notify()));
    }
    TRUE
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    const CTRL_CLOSE_EVENT: u32 = 2;

    type Notify = Arc<dyn Fn() + Send + Sync>;

    fn send(number: u32) -> bool {
        // SAFETY: rule 1: it is an ordinary function.
        unsafe { handle(number) == TRUE }
    }

    fn counting(count: &Arc<AtomicUsize>) -> Notify {
        let count = count.clone();
        Arc::new(move || {
            count.fetch_add(1, Relaxed);
        })
    }

    #[test]
    fn console_events_reach_live_callbacks_of_their_kind_only() {
        assert!(!send(CTRL_BREAK_EVENT), "not handled before the first registration");
        let counts: [Arc<AtomicUsize>; 2] = Default::default();
        let first = counting(&counts[0]);
        let panics: Notify = Arc::new(|| panic!("in a callback"));
        let second = counting(&counts[1]);
        for notify in [&first, &panics, &second] {
            register(ConsoleEvent::CtrlBreak, Arc::downgrade(notify)).unwrap();
        }
        assert!(send(CTRL_BREAK_EVENT));
        assert!(!send(CTRL_C_EVENT) && !send(CTRL_CLOSE_EVENT));
        drop(first);
        assert!(send(CTRL_BREAK_EVENT));
        assert_eq!(counts.each_ref().map(|count| count.load(Relaxed)), [1, 2]);
        drop((panics, second));
        assert!(send(CTRL_BREAK_EVENT), "handled permanently");
    }
}
