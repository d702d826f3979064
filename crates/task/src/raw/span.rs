//! Spans of regions and tasks for `tracing`, and events about their fates: the feature `tracing`.
//!
//! A region's span is a child of the current span where it is opened (the span of a task, or a user
//! span inside it), else of its parent region's span. A task's span is a child of its region's, and
//! is entered for each poll, on any thread. Both record the outcome and are closed before the end
//! is visible. A subscriber is user code: nothing here is called under a lock, and its panics are
//! [contained](crate::raw::contain_panic), or belong to the task of the span that is entered.
//!
//! Without the feature the type has no size and its functions are empty.

#[cfg(not(feature = "tracing"))]
pub(crate) use off::Span;
#[cfg(feature = "tracing")]
pub(crate) use on::Span;

/// Reports the panic of a callback outside of a poll.
#[cfg(not(any(loom, target_family = "wasm")))]
pub(crate) fn callback_panicked(_message: &str) {
    #[cfg(feature = "tracing")]
    tracing::error!(target: "asx", panic = _message, "a callback panicked");
}

#[cfg(feature = "tracing")]
mod on {
    use std::fmt::Debug;
    use std::panic::Location;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
    use std::time::Duration;

    use asx_kernel::cancel::Reason;
    use asx_kernel::lanes::Priority;
    use asx_kernel::outcome::Severity;
    use tracing::field::Empty;
    use tracing::{Id, debug, error, info_span, trace, warn};

    use crate::raw::contain_panic::PanicCounter;
    use crate::raw::{TaskAttrs, Verdict};

    /// The span of a region or task; empty if the subscriber has disabled it.
    #[derive(Default)]
    pub(crate) struct Span(OnceLock<Box<Open>>);

    struct Open {
        /// For events from anywhere.
        id: Id,
        /// Lent to the polling thread, until the end; the lock is held for a move only.
        span: Mutex<Option<tracing::Span>>,
        ended: AtomicBool,
        /// Counts the panics of the subscriber.
        panics: Arc<PanicCounter>,
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
        fn set(&self, panics: &Arc<PanicCounter>, span: impl FnOnce() -> tracing::Span) {
            let set = || {
                let span = span();
                let Some(id) = span.id() else { return };
                let span = Mutex::new(Some(span));
                let ended = AtomicBool::new(false);
                let counter = panics.clone();
                let _ = self.0.set(Box::new(Open { id, span, ended, panics: counter }));
            };
            panics.contain(set);
        }

        /// Tells the subscriber something.
        fn tell(&self, tell: impl FnOnce()) {
            if let Some(open) = self.0.get() {
                open.panics.contain(tell);
            }
        }

        fn id(&self) -> Option<Id> {
            self.0.get().map(|open| open.id.clone())
        }

        /// Opens the span of a task that is about to be created in the region with the span
        /// `parent`.
        pub(crate) fn of_task(
            parent: &Span,
            panics: &Arc<PanicCounter>,
            id: u64,
            attrs: Option<&TaskAttrs>,
        ) -> Span {
            let parent = parent.id();
            let name = attrs.and_then(|attrs| attrs.name.as_deref());
            let priority = attrs.map_or(Priority::DEFAULT, |attrs| attrs.priority).0;
            let span = Span::default();
            span.set(panics, || {
                info_span!(
                    target: "asx", parent: parent, "task", id, name, priority, outcome = Empty
                )
            });
            span
        }

        /// Opens the span of a region; `parent` is the number and the span of the region around it.
        pub(crate) fn open_region(
            &self,
            panics: &Arc<PanicCounter>,
            id: u64,
            parent: Option<(u64, &Span)>,
            policy: &dyn Debug,
        ) {
            self.set(panics, || {
                let around = tracing::Span::current().id();
                let around = around.or_else(|| parent.and_then(|(_, span)| span.id()));
                let parent = parent.map(|(id, _)| id);
                info_span!(
                    target: "asx", parent: around, "region",
                    id, parent, policy = ?policy, outcome = Empty
                )
            });
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

        /// Reports a cancel request, unless the task or region has ended.
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

        pub(crate) fn unheeded(
            &self,
            polls: u32,
            inside: Option<Duration>,
            at: Option<&'static Location<'static>>,
        ) {
            self.tell(|| match inside {
                None => warn!(target: "asx", parent: self.id(), polls, "cancel unheeded"),
                Some(inside) => {
                    let at = at.map(tracing::field::display);
                    warn!(
                        target: "asx", parent: self.id(), ?inside, at,
                        "cancel unheeded in one poll"
                    );
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
        pub(crate) fn leaked(
            &self,
            obligation: Option<u64>,
            task: Option<u64>,
            name: Option<&str>,
            at: &'static Location<'static>,
        ) {
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

        /// The grace period of the task is over.
        pub(crate) fn grace_expired(&self, name: Option<&str>) {
            self.tell(|| warn!(target: "asx", parent: self.id(), name, "grace expired"));
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use std::panic::Location;
    use std::sync::Arc;
    #[cfg(not(target_family = "wasm"))]
    use std::time::Duration;

    use asx_kernel::cancel::Reason;
    use asx_kernel::outcome::Severity;

    use crate::raw::contain_panic::PanicCounter;
    use crate::raw::{TaskAttrs, Verdict};

    #[derive(Default)]
    pub(crate) struct Span(());

    const _: () = assert!(size_of::<Span>() == 0);

    type At = &'static Location<'static>;
    type Attrs<'a> = Option<&'a TaskAttrs>;
    type Name<'a> = Option<&'a str>;
    type Panics = Arc<PanicCounter>;

    #[rustfmt::skip]
    impl Span {
        #[inline(always)]
        pub(crate) fn of_task(_: &Span, _: &Panics, _: u64, _: Attrs<'_>) -> Span { Span(()) }
        #[inline(always)] pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R { f() }
        #[inline(always)] pub(crate) fn end(&self, _: Severity) {}
        #[inline(always)] pub(crate) fn cancel_requested(&self, _: &Reason) {}
        #[inline(always)] pub(crate) fn cancel_seen(&self, _: &Reason) {}
        #[inline(always)] pub(crate) fn verdict(&self, _: &Verdict) {}
        #[inline(always)] pub(crate) fn overrun(&self, _: u64) {}
        #[cfg(not(target_family = "wasm"))]
        #[inline(always)]
        pub(crate) fn unheeded(&self, _: u32, _: Option<Duration>, _: Option<At>) {}
        #[cfg(not(target_family = "wasm"))]
        #[inline(always)] pub(crate) fn unheeded_timeout(&self, _: At) {}
        #[cfg(not(target_family = "wasm"))]
        #[inline(always)] pub(crate) fn time_overrun(&self) {}
        #[inline(always)] pub(crate) fn shield_overrun(&self) {}
        #[inline(always)]
        pub(crate) fn leaked(&self, _: Option<u64>, _: Option<u64>, _: Name<'_>, _: At) {}
        #[inline(always)] pub(crate) fn soft_stop(&self) {}
        #[inline(always)] pub(crate) fn grace_expired(&self, _: Name<'_>) {}
    }
}
