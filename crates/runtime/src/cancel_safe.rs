//! Futures that lose nothing when they are dropped before they are done.

use std::future::Future;
use std::ops::DerefMut;
use std::pin::Pin;

/// A future that can be dropped half-way without losing anything: nothing was taken, sent or
/// promised. `select!` accepts only such futures.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may lose something when it is dropped half-way",
    label = "not known to be cancel-safe",
    note = "`select!` drops the futures that do not win, so it takes only those that lose nothing: \
            `recv`, `reserve`, `sleep`, `notified`, lock and permit waits, and task handles",
    note = "use `race(cx, async |cx| .., async |cx| ..)` for anything else: it cancels the losers \
            and waits until they have cleaned up"
)]
pub trait CancelSafe: Future {}

/// The future is only borrowed: it is still there when `select!` is done.
impl<F: CancelSafe + Unpin + ?Sized> CancelSafe for &mut F {}

/// As above.
impl<P> CancelSafe for Pin<P>
where
    P: DerefMut,
    P::Target: CancelSafe,
{
}
