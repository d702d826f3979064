//! Futures that lose nothing when they are dropped before they are done.

use std::future::Future;
use std::ops::DerefMut;
use std::pin::Pin;

/// A future that can be dropped half-way without losing anything: nothing was taken, sent or
/// promised. `select!` accepts only such futures.
///
/// It is a promise: implement it for a future of your own only if that holds at every await in it.
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
