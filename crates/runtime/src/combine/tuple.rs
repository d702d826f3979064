//! A fixed number of parts, without allocation.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::{Decision, Part, Rule};
use asx_task::Cx;

macro_rules! parts {
    ($name:ident, $($part:ident: $F:ident = $index:literal),+) => {
        pin_project! {
            pub(super) struct $name<'a, R, $($F: Future),+> {
                decision: Decision<'a>,
                rule: PhantomData<fn() -> R>,
                $(#[pin] pub(super) $part: Part<$F>,)+
            }
        }

        impl<'a, R, $($F: Future),+> $name<'a, R, $($F),+>
        where
            $(R: Rule<$F::Output>,)+
        {
            #[cfg_attr(feature = "lab", track_caller)]
            pub(super) fn new(cx: &'a Cx, $($part: $F),+) -> Self {
                let decision = Decision::new(cx);
                $name { decision, rule: PhantomData, $($part: Part::new($part)),+ }
            }

            /// Polls until all parts have ended: the one that decided.
            pub(super) fn poll_all(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<Option<usize>> {
                let mut this = self.project();
                if !this.decision.begins(cx) {
                    return Poll::Pending;
                }
                loop {
                    // One round; the part that decides ends it, so that the others are told.
                    let decided = 'round: {
                        $(if let Poll::Ready(end) = this.$part.as_mut().poll(cx)
                            && this.decision.hear::<_, R>($index, end)
                        {
                            break 'round true;
                        })+
                        false
                    };
                    if !decided {
                        if $(this.$part.is_live())||+ {
                            return Poll::Pending;
                        }
                        return Poll::Ready(this.decision.settle());
                    }
                    let cancelled = this.decision.cancel(<R as Rule<A::Output>>::KIND);
                    $(if let Err(panic) = this.$part.as_mut().call_off(&cancelled) {
                        this.decision.hear::<$F::Output, R>($index, Err(panic));
                    })+
                }
            }
        }
    };
}

parts!(Two, a: A = 0, b: B = 1);
parts!(Three, a: A = 0, b: B = 1, c: C = 2);
parts!(Four, a: A = 0, b: B = 1, c: C = 2, d: D = 3);
