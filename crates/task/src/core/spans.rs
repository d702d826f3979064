//! Spans of regions and tasks for `tracing`, and events about their fates: the feature `tracing`.
//!
//! A region's span is a child of the span it is opened in (that of a task, or one of the user's in
//! it), else of its parent region's. A task's span is a child of its region's, and entered for each
//! poll, on whichever thread. Both are closed, with the outcome recorded, before anybody can see
//! the end. A subscriber is user code: nothing here is called under a lock, and its panics are
//! [contained](crate::raw::contain_panic), or belong to the task whose span is entered.
//!
//! Without the feature all of it is a type without size and functions without content.

#[cfg(not(feature = "tracing"))]
pub(crate) use off::Span;
#[cfg(feature = "tracing")]
pub(crate) use on::Span;

/// A callback panicked, outside of any poll.
#[cfg(not(any(loom, target_family = "wasm")))]
pub(crate) fn callback_panicked(_message: &str) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: "asx", panic = _message, "a callback panicked");
}

#[cfg(feature = "tracing")]
mod on {
    use std::panic::Location;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

    use asx_kernel::cancel::Reason;
    use asx_kernel::lanes::Priority;
    use asx_kernel::outcome::Severity;
    use tracing::field::Empty;
    use tracing::{Id, debug, error, info_span, trace, warn};

    use crate::core::Core;
    #[cfg(not(target_family = "wasm"))]
    use crate::core::latency::Unheeded;
    use crate::raw::contain_panic;
    use crate::raw::{Blueprint, Verdict};
    use crate::region::Region;
    use crate::region::origin::{Leak, Origin};

    /// The span of a region or task; empty if nobody is interested.
    #[derive(Default)]
    pub(crate) struct Span(OnceLock<Box<Open>>);

    struct Open {
        /// For events from anywhere.
        id: Id,
        /// Lent to who polls, until the end; the lock is held for a move only.
        span: Mutex<Option<tracing::Span>>,
        ended: AtomicBool,
        /// Counts the panics of the subscriber.
        core: Weak<Core>,
    }

    impl Open {
        fn slot(&self) -> MutexGuard<'_, Option<tracing::Span>> {
            self.span.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
        }
    }

    /// Closes a span that was never ended: that of a region which did not close.
    impl Drop for Span {
        fn drop(&mut self) {
            let span = self.0.get().and_then(|open| open.slot().take());
            if let Some(span) = span {
                self.tell(|| drop(span));
            }
        }
    }

    /// Gives a span back.
    struct Lent<'a>(&'a Open, Option<tracing::Span>);

    impl Drop for Lent<'_> {
        fn drop(&mut self) {
            *self.0.slot() = self.1.take();
        }
    }

    impl Span {
        fn set(&self, core: &Arc<Core>, span: impl FnOnce() -> tracing::Span) {
            let set = || {
                let span = span();
                let Some(id) = span.id() else { return };
                let span = Mutex::new(Some(span));
                let ended = AtomicBool::new(false);
                let core = Arc::downgrade(core);
                let _ = self.0.set(Box::new(Open { id, span, ended, core }));
            };
            core.contain(set);
        }

        /// Tells the subscriber something.
        fn tell(&self, tell: impl FnOnce()) {
            match self.0.get().and_then(|open| open.core.upgrade()) {
                Some(core) => core.contain(tell),
                None => contain_panic::contain(tell),
            };
        }

        fn id(&self) -> Option<Id> {
            self.0.get().map(|open| open.id.clone())
        }

        /// The span of a task about to be made.
        pub(crate) fn of_task(plan: &Blueprint) -> Span {
            let id = plan.id;
            let parent = plan.region.span.id();
            let attrs = plan.attrs.as_ref();
            let name = attrs.and_then(|attrs| attrs.name.as_deref());
            let priority = attrs.map_or(Priority::DEFAULT, |attrs| attrs.priority).0;
            let span = Span::default();
            span.set(&plan.region.core, || {
                info_span!(
                    target: "asx", parent: parent, "task", id, name, priority, outcome = Empty
                )
            });
            span
        }

        /// Opens the span of a region that was opened.
        pub(crate) fn open_region(&self, region: &Region) {
            self.set(&region.core, || {
                let around = tracing::Span::current().id();
                let parent = region.parent();
                let around = around.or_else(|| parent.and_then(|parent| parent.span.id()));
                let id = region.id;
                let parent = parent.map(|parent| parent.id);
                info_span!(
                    target: "asx", parent: around, "region",
                    id, parent, policy = ?region.policy, outcome = Empty
                )
            });
            // It is known to others already, and may have been closed.
            if let Some(outcome) = region.outcome() {
                self.end(outcome);
            }
        }

        /// Runs `f` in the span.
        #[inline]
        pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
            let Some(open) = self.0.get() else { return f() };
            let span = open.slot().take();
            let lent = Lent(open, span);
            let _entered = lent.1.as_ref().map(tracing::Span::enter);
            f()
        }

        /// Records the outcome and closes the span, once.
        #[inline]
        pub(crate) fn end(&self, outcome: Severity) {
            let Some(open) = self.0.get() else { return };
            open.ended.store(true, Relaxed);
            let span = open.slot().take();
            if let Some(span) = span {
                self.tell(|| {
                    span.record("outcome", outcome.name());
                });
                self.tell(|| drop(span));
            }
        }

        /// To ask who has ended to stop is nothing worth telling.
        pub(crate) fn cancel_requested(&self, reason: &Reason) {
            if self.0.get().is_some_and(|open| open.ended.load(Relaxed)) {
                return;
            }
            let kind = reason.kind.name();
            let reason = reason.message.as_deref();
            self.tell(
                || debug!(target: "asx", parent: self.id(), kind, reason, "cancel requested"),
            );
        }

        pub(crate) fn cancel_seen(&self, reason: &Reason) {
            let kind = reason.kind.name();
            self.tell(|| trace!(target: "asx", parent: self.id(), kind, "cancel seen"));
        }

        /// A task ends like this, not by itself.
        pub(crate) fn verdict(&self, verdict: &Verdict) {
            if let Verdict::Panicked(panic) = verdict {
                let panic = panic.message();
                self.tell(|| error!(target: "asx", parent: self.id(), panic, "panicked"));
            }
        }

        pub(crate) fn overrun(&self, polls: u64) {
            self.tell(|| {
                warn!(target: "asx", parent: self.id(), polls, "cleanup overrun: ended by force");
            });
        }

        pub(crate) fn unheeded(&self, unheeded: &Unheeded) {
            let polls = unheeded.polls;
            self.tell(|| match unheeded.inside {
                None => warn!(target: "asx", parent: self.id(), polls, "cancel unheeded"),
                Some(inside) => {
                    warn!(target: "asx", parent: self.id(), ?inside, "cancel unheeded in one poll");
                }
            });
        }

        pub(crate) fn unheeded_timeout(&self, at: &'static Location<'static>) {
            self.tell(|| {
                warn!(
                    target: "asx", parent: self.id(), at = %at,
                    "timeout unheeded: nothing in it has looked for a second; for a future of \
                     another crate there is `cx.abandon_on_cancel`"
                );
            });
        }

        pub(crate) fn time_overrun(&self) {
            self.tell(|| {
                warn!(target: "asx", parent: self.id(), "cleanup overrun: the time for it is over");
            });
        }

        pub(crate) fn shield_overrun(&self) {
            self.tell(|| {
                warn!(target: "asx", parent: self.id(), "cleanup overrun: a shield is open");
            });
        }

        /// An obligation of the region has leaked.
        pub(crate) fn leaked(&self, leak: &Leak) {
            let Leak { id: obligation, origin, .. } = leak;
            let Origin { task, name, at, .. } = origin;
            let name = name.as_deref();
            self.tell(|| {
                warn!(
                    target: "asx", parent: self.id(), obligation, task, name, at = %at,
                    "obligation leaked"
                );
            });
        }

        pub(crate) fn soft_stop(&self) {
            self.tell(|| debug!(target: "asx", parent: self.id(), "soft stop"));
        }

        /// The time the task was given to end is over.
        pub(crate) fn grace_expired(&self, name: Option<&str>) {
            self.tell(|| warn!(target: "asx", parent: self.id(), name, "grace expired"));
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    #[cfg(not(target_family = "wasm"))]
    use std::panic::Location;

    use asx_kernel::cancel::Reason;
    use asx_kernel::outcome::Severity;

    #[cfg(not(target_family = "wasm"))]
    use crate::core::latency::Unheeded;
    use crate::raw::{Blueprint, Verdict};
    use crate::region::Region;
    use crate::region::origin::Leak;

    #[derive(Default)]
    pub(crate) struct Span(());

    const _: () = assert!(size_of::<Span>() == 0);

    #[rustfmt::skip]
    impl Span {
        #[inline(always)] pub(crate) fn of_task(_: &Blueprint) -> Span { Span(()) }
        #[inline(always)] pub(crate) fn open_region(&self, _: &Region) {}
        #[inline(always)] pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R { f() }
        #[inline(always)] pub(crate) fn end(&self, _: Severity) {}
        #[inline(always)] pub(crate) fn cancel_requested(&self, _: &Reason) {}
        #[inline(always)] pub(crate) fn cancel_seen(&self, _: &Reason) {}
        #[inline(always)] pub(crate) fn verdict(&self, _: &Verdict) {}
        #[inline(always)] pub(crate) fn overrun(&self, _: u64) {}
        #[cfg(not(target_family = "wasm"))]
        #[inline(always)] pub(crate) fn unheeded(&self, _: &Unheeded) {}
        #[cfg(not(target_family = "wasm"))]
        #[inline(always)] pub(crate) fn unheeded_timeout(&self, _: &'static Location<'static>) {}
        #[cfg(not(target_family = "wasm"))]
        #[inline(always)] pub(crate) fn time_overrun(&self) {}
        #[inline(always)] pub(crate) fn shield_overrun(&self) {}
        #[inline(always)] pub(crate) fn leaked(&self, _: &Leak) {}
        #[inline(always)] pub(crate) fn soft_stop(&self) {}
        #[inline(always)] pub(crate) fn grace_expired(&self, _: Option<&str>) {}
    }
}
