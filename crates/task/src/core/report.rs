//! What goes wrong in tasks without anybody having to notice, told to people.
//!
//! A subscriber of `tracing` hears of it through the spans. Where there is none, a host that has
//! somebody to tell ([`Host::has_reports`](super::Host::has_reports)) is given a line, once for
//! each cause: a kind of event, and the task by its name or the function it is written in. Loops
//! that spawn one such task after another are told of once. All are counted in
//! [`Health`](crate::Health).
//!
//! On a page only leaked obligations are reported.

#[cfg(target_family = "wasm")]
pub(super) use off::Reports;
#[cfg(not(any(loom, target_family = "wasm")))]
pub(super) use on::Reports;

/// The number of causes that are reported.
#[cfg(not(loom))]
const MOST_CAUSES: usize = 64;

#[cfg(not(any(loom, target_family = "wasm")))]
mod on {
    use std::collections::{HashSet, VecDeque};
    use std::fmt;
    use std::panic::Location;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use crate::core::Core;
    use crate::core::latency::Unheeded;
    use crate::raw::Header;

    /// How many tasks that were ended by force are kept for who asks.
    const MOST_FORCED: usize = 16;

    /// What was told.
    #[derive(Default)]
    pub(in crate::core) struct Reports {
        causes: Mutex<HashSet<String>>,
        forced: Mutex<VecDeque<String>>,
    }

    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a subscriber of `tracing` hears of it.
    fn is_traced() -> bool {
        #[cfg(feature = "tracing")]
        return tracing::dispatcher::has_been_set();
        #[cfg(not(feature = "tracing"))]
        false
    }

    impl Core {
        /// Tells a cause for the first time. `what` is called only then.
        #[cold]
        fn report(&self, kind: &str, cause: &str, what: impl FnOnce() -> String) {
            if !self.host.has_reports() || is_traced() {
                return;
            }
            let told = {
                let mut causes = lock(&self.reports.causes);
                let left = super::MOST_CAUSES.saturating_sub(causes.len());
                (left > 0 && causes.insert(format!("{kind}: {cause}"))).then_some(left)
            };
            let Some(left) = told else { return };
            self.host.report(&format!("asx: {}", what()));
            if left == 1 {
                self.host.report("asx: no more is told of; `Health` counts what is like it");
            }
        }

        /// A task used up what it may take for its cleanup, and is ended by force.
        pub(in crate::core) fn report_overrun(&self, task: &Header) {
            if crate::dump::function(task.body()).is_none() {
                // The body of a program: who runs it is told.
                return;
            }
            self.report("overrun", task.cause(), || {
                let cleaning = match task.is_finalizer() {
                    true => "which runs last in its scope, took",
                    false => "which was asked to stop, took",
                };
                format!(
                    "{}, {cleaning} longer than it may and is ended by force; it was {}",
                    task.called(),
                    task.doing()
                )
            });
        }

        /// The time a task was given to end is over, and its poll does not return.
        pub(crate) fn report_stuck(&self, task: &Header) {
            self.report("stuck", task.cause(), || {
                format!(
                    "{}, which was asked to stop, has not ended in the time it was given, and its \
                     poll does not return: it is ended by force when that does",
                    task.called()
                )
            });
        }

        /// A shield has hidden a cancel for too long.
        pub(in crate::core) fn report_shield(&self, task: &Header) {
            self.report("shield", task.cause(), || {
                format!(
                    "a shield in {} has hidden a cancel for as long as it may, and is open now; it \
                     was {}",
                    task.called(),
                    task.doing()
                )
            });
        }

        /// A task does not look at its cancel.
        pub(in crate::core) fn report_unheeded(&self, task: &Header, unheeded: &Unheeded) {
            let polls = unheeded.polls;
            self.report("unheeded", task.cause(), || {
                let called = task.called();
                match unheeded.inside {
                    None => format!(
                        "{called} was asked to stop and has not looked in {polls} polls: it keeps \
                         its scope open; `cx.checkpoint()?` looks"
                    ),
                    Some(time) => format!(
                        "{called} was cancelled and has been inside one poll for {time:.1?} \
                         without observing it{}; `cx.checkpoint()?` observes a cancel",
                        task.before_this_poll()
                    ),
                }
            });
        }

        /// A panic went to nobody.
        pub(in crate::core) fn report_lost_panic(&self) {
            self.report("lost panic", "", || {
                String::from(
                    "a panic went to nobody: of the destructor of a result that nobody wanted, of \
                     a finalizer after the first that panicked, or in a scope that was dropped",
                )
            });
        }

        /// Reports a leak of an obligation that was reserved at this place, once for each place.
        pub(crate) fn report_leak(
            &self,
            reserved: &'static Location<'static>,
            describe: impl FnOnce() -> String,
        ) {
            self.report("leak", &reserved.to_string(), describe);
        }

        /// Reports what is alive although the runtime was shut down: as an event of `tracing` if
        /// that has a subscriber, else to the host. The caller does so once.
        #[cold]
        pub fn report_not_quiescent(&self, alive: &dyn fmt::Display) {
            #[cfg(feature = "tracing")]
            if is_traced() {
                tracing::warn!(target: "asx", "the runtime was shut down and is {alive}");
                return;
            }
            if self.host.has_reports() {
                let text = format!("asx: the runtime was shut down and is {alive}");
                self.host.report(text.trim_end());
            }
        }

        /// A task is ended by force; kept for who asks what was.
        pub(crate) fn note_forced(&self, task: &Header) {
            // A job that ends like this never began.
            if !self.host.has_reports() || task.is_blocking() {
                return;
            }
            let mut forced = lock(&self.reports.forced);
            if forced.len() == MOST_FORCED {
                forced.pop_front();
            }
            forced.push_back(format!("{}, {}", task.called(), task.doing()));
        }

        /// Tasks that were ended by force since this was asked last, in words; the last of them.
        pub fn take_forced(&self) -> Vec<String> {
            std::mem::take(&mut *lock(&self.reports.forced)).into()
        }
    }

    impl Header {
        fn name(&self) -> Option<&str> {
            self.attrs.as_ref().and_then(|attrs| attrs.name.as_deref())
        }

        /// What a task is told apart by from others of its kind.
        fn cause(&self) -> &str {
            self.name().unwrap_or(self.body())
        }

        /// The task, as people know it.
        fn called(&self) -> String {
            let id = self.id();
            match (self.name(), crate::dump::function(self.body())) {
                (Some(name), _) => format!("task t{id} {name:?}"),
                (None, Some(function)) => format!("task t{id} of `{function}`"),
                (None, None) => format!("task t{id} (the body of the program)"),
            }
        }

        /// The last known place before the current poll, as the end of a sentence.
        fn before_this_poll(&self) -> String {
            match (self.wait(), self.spawned_at()) {
                (Some((on, at)), _) => format!(", after it waited for {} at {at}", on.text()),
                (None, Some(at)) => format!(", and was spawned at {at}"),
                (None, None) => String::new(),
            }
        }

        /// What it did last.
        fn doing(&self) -> String {
            match self.wait() {
                Some((on, at)) if !self.is_wait_stale() => {
                    format!("waiting for {} at {at}", on.text())
                }
                _ => String::from("waiting for something outside asx, or running"),
            }
        }
    }
}

#[cfg(any(loom, target_family = "wasm"))]
mod off {
    #[cfg(target_family = "wasm")]
    use std::panic::Location;

    use crate::core::Core;
    #[cfg(not(target_family = "wasm"))]
    use crate::core::latency::Unheeded;
    use crate::raw::Header;

    /// The places of leaks that were reported on a page.
    #[cfg(target_family = "wasm")]
    #[derive(Default)]
    pub(in crate::core) struct Reports {
        leaks: std::sync::Mutex<Vec<&'static Location<'static>>>,
    }

    #[cfg(target_family = "wasm")]
    impl Core {
        /// Reports a leak of an obligation that was reserved at this place, once for each place.
        pub(crate) fn report_leak(
            &self,
            reserved: &'static Location<'static>,
            describe: impl FnOnce() -> String,
        ) {
            if !self.host.has_reports() {
                return;
            }
            let is_new = {
                let mut leaks = self.reports.leaks.lock().unwrap_or_else(|e| e.into_inner());
                let is_new = leaks.len() < super::MOST_CAUSES && !leaks.contains(&reserved);
                if is_new {
                    leaks.push(reserved);
                }
                is_new
            };
            if is_new {
                self.host.report(&format!("asx: {}", describe()));
            }
        }
    }

    /// Nobody is told.
    #[rustfmt::skip]
    impl Core {
        #[inline(always)] pub(in crate::core) fn report_overrun(&self, _: &Header) {}
        #[inline(always)] pub(crate) fn report_stuck(&self, _: &Header) {}
        #[inline(always)] pub(in crate::core) fn report_shield(&self, _: &Header) {}
        #[cfg(not(target_family = "wasm"))]
        #[inline(always)] pub(in crate::core) fn report_unheeded(&self, _: &Header, _: &Unheeded) {}
        #[inline(always)] pub(in crate::core) fn report_lost_panic(&self) {}
        #[inline(always)] pub(crate) fn note_forced(&self, _: &Header) {}

        /// Reports what is alive although the runtime was shut down: not here.
        #[inline(always)] pub fn report_not_quiescent(&self, _: &dyn std::fmt::Display) {}

        /// Tasks that were ended by force since this was asked last: none is known.
        pub fn take_forced(&self) -> Vec<String> { Vec::new() }
    }
}
