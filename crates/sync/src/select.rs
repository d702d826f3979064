//! `select!`: the first of several futures that can be dropped half-way.
//!
//! The macro makes a list of its branches ([`Branch`] after `Branch`, then an end), which is polled
//! in the order written, and matches on which one was done. The list is dropped before the match,
//! so that handlers may use what the futures borrowed.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use asx_task::CancelSafe;
use asx_task::operation;

/// Waits for the first of several futures, drops the others, and runs the handler of the first.
///
/// ```
/// use asx_runtime::{Cancelled, Cx, select};
/// use std::time::Duration;
///
/// async fn tick_tock(cx: &Cx) -> Result<&'static str, Cancelled> {
///     let said = select! {
///         done = cx.sleep(Duration::from_secs(2)) => { done?; "tock" }
///         done = cx.sleep(Duration::from_secs(1)) => { done?; "tick" }
///     };
///     Ok(said)
/// }
/// ```
///
/// * A branch is `pattern = future => handler`. The pattern must match whatever comes. After a
///   handler there is a comma, unless it is a block.
/// * Branches are looked at in the order written, each time: of two that are done the one written
///   first wins.
/// * Since the others are dropped, only futures that lose nothing by it are taken: those that are
///   [`CancelSafe`](trait@asx_task::CancelSafe). For anything else there is
///   [`race`](asx_task::race), which lets the losers clean up. Borrow a future (`&mut task`) to go
///   on waiting for it later.
/// * `pattern = future, if condition => handler`: the branch counts only if the condition holds;
///   if not, the future is not even made.
/// * `else => handler`, last, is for when no condition holds: needed if all branches have one.
/// * Handlers run when the futures are gone, in the function around: `?`, `break`, `continue` and
///   `return` do what they always do.
///
/// ```
/// # use asx_runtime::{Cancelled, Cx, channel, select};
/// # use std::time::Duration;
/// /// What comes within a second, at most `limit` messages.
/// async fn gather(
///     cx: &Cx,
///     rx: &mut channel::Receiver<u32>,
///     limit: usize,
/// ) -> Result<Vec<u32>, Cancelled> {
///     let mut got = Vec::new();
///     let mut second = cx.sleep(Duration::from_secs(1));
///     loop {
///         select! {
///             number = rx.recv(cx), if got.len() < limit => match number {
///                 Ok(number) => got.push(number),
///                 Err(_) => return Ok(got),
///             },
///             over = &mut second, if got.len() < limit => {
///                 over?;
///                 return Ok(got);
///             }
///             else => break,
///         }
///     }
///     Ok(got)
/// }
/// ```
#[macro_export]
macro_rules! select {
    // What is left of the input; the branches found, each (pattern, future, guard, handler); and
    // whether one of them has no guard.
    (@branches () [] $($free:ident)?) => {
        ::std::compile_error!("`select!` needs a branch: `pattern = future => handler`")
    };
    (@branches () [$($branch:tt)+]) => {
        ::std::compile_error!("every branch has a condition: add `else => ..` for when none holds")
    };
    (@branches () [$($branch:tt)+] free) => {
        $crate::select!(@emit [$($branch)+] [$($branch)+]
            ($crate::__select::Nil) (never => match never {}))
    };
    (@branches (else => $handler:expr $(,)?) [$($branch:tt)+]) => {
        $crate::select!(@emit [$($branch)+] [$($branch)+]
            ($crate::__select::Else) (() => $handler))
    };
    (@branches (else => $handler:expr $(,)?) [$($branch:tt)*] $($free:ident)?) => {
        ::std::compile_error!("`else` is never reached: a branch without a condition always counts")
    };
    (@branches ($pat:pat = $future:expr, if $guard:expr => $($rest:tt)+)
        $found:tt $($free:ident)?) => {
        $crate::select!(@handler ($($rest)+) ($pat, $future, $guard) $found $($free)?)
    };
    (@branches ($pat:pat = $future:expr => $($rest:tt)+) $found:tt $($free:ident)?) => {
        $crate::select!(@handler ($($rest)+) ($pat, $future, true) $found free)
    };
    (@branches ($($other:tt)+) $found:tt $($free:ident)?) => {
        ::std::compile_error!(::std::concat!(
            "expected `pattern = future => handler`, `pattern = future, if condition => handler` \
             or `else => handler` last, found `", ::std::stringify!($($other)+), "`"
        ))
    };

    (@handler ($handler:block, $($rest:tt)*) ($($part:tt)+) [$($found:tt)*] $($free:ident)?) => {
        $crate::select!(@branches ($($rest)*) [$($found)* ($($part)+, $handler)] $($free)?)
    };
    (@handler ($handler:block $($rest:tt)*) ($($part:tt)+) [$($found:tt)*] $($free:ident)?) => {
        $crate::select!(@branches ($($rest)*) [$($found)* ($($part)+, $handler)] $($free)?)
    };
    (@handler ($handler:expr, $($rest:tt)*) ($($part:tt)+) [$($found:tt)*] $($free:ident)?) => {
        $crate::select!(@branches ($($rest)*) [$($found)* ($($part)+, $handler)] $($free)?)
    };
    (@handler ($handler:expr) ($($part:tt)+) [$($found:tt)*] $($free:ident)?) => {
        $crate::select!(@branches () [$($found)* ($($part)+, $handler)] $($free)?)
    };

    (@emit [$($list:tt)+] [$($arms:tt)+] ($end:expr) $last:tt) => {
        // The futures and all they borrow end with this statement.
        match {
            let first = $crate::__select::select($crate::select!(@list [$($list)+] $end)).await;
            first
        } {
            first => $crate::select!(@arms first [$($arms)+] $last),
        }
    };
    (@list [] $end:expr) => { $end };
    (@list [($pat:pat, $future:expr, $guard:expr, $handler:expr) $($more:tt)*] $end:expr) => {
        $crate::__select::Branch::new(
            if $guard { ::std::option::Option::Some($crate::__select::cancel_safe($future)) }
            else { ::std::option::Option::None },
            $crate::select!(@list [$($more)*] $end),
        )
    };
    (@arms $first:ident [] ($pat:pat => $handler:expr)) => {
        match $first { $pat => $handler }
    };
    (@arms $first:ident [($pat:pat, $future:expr, $guard:expr, $handler:expr) $($more:tt)*]
        $last:tt) => {
        match $first {
            $crate::__select::Either::This(this) => {
                let $pat = this;
                $handler
            }
            $crate::__select::Either::Later(later) => {
                $crate::select!(@arms later [$($more)*] $last)
            }
        }
    };

    ($($input:tt)*) => {
        $crate::select!(@branches ($($input)*) [])
    };
}

/// Says that `select!` may drop the future.
pub fn cancel_safe<F: MayBeDropped>(future: F) -> F {
    future
}

/// [`CancelSafe`], with a message that does not list all types that are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` may lose something when it is dropped half-way",
    label = "not known to be cancel-safe",
    note = "`select!` drops the futures that do not win, so it takes only those that lose nothing: \
            `recv`, `reserve`, `sleep`, `notified`, lock and permit waits, and task handles",
    note = "use `race(cx, async |cx| .., async |cx| ..)` for anything else: it cancels the losers \
            and waits until they have cleaned up",
    note = "a future of your own that loses nothing may say so: `impl CancelSafe for ..`"
)]
pub trait MayBeDropped: Future {}

#[diagnostic::do_not_recommend]
impl<F: CancelSafe> MayBeDropped for F {}

/// Polls a list of branches.
pub fn select<L: List>(list: L) -> Select<L> {
    Select { begun: false, list }
}

pin_project! {
    /// The future of [`select`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Select<L> {
        begun: bool,
        #[pin]
        list: L,
    }
}

impl<L: List> Future for Select<L> {
    type Output = L::First;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<L::First> {
        let this = self.project();
        if !operation::begins(cx, this.begun) {
            return Poll::Pending;
        }
        let first = this.list.poll_first(cx, false);
        if first.is_ready() {
            operation::ends();
        }
        first
    }
}

/// Branches in order.
pub trait List {
    /// The output of the first that is done.
    type First;

    /// Polls each in order; `any` tells whether a branch before these counts.
    fn poll_first(self: Pin<&mut Self>, cx: &mut Context<'_>, any: bool) -> Poll<Self::First>;
}

/// Which one it was.
#[derive(Debug)]
pub enum Either<T, L> {
    /// The first of the list.
    This(T),
    /// One after it.
    Later(L),
}

pin_project! {
    /// A branch, which counts if there is a future, and those after it.
    #[derive(Debug)]
    pub struct Branch<F, L> {
        #[pin]
        future: Option<F>,
        #[pin]
        later: L,
    }
}

impl<F, L> Branch<F, L> {
    /// A branch before others.
    pub fn new(future: Option<F>, later: L) -> Branch<F, L> {
        Branch { future, later }
    }
}

impl<F: Future, L: List> List for Branch<F, L> {
    type First = Either<F::Output, L::First>;

    fn poll_first(self: Pin<&mut Self>, cx: &mut Context<'_>, any: bool) -> Poll<Self::First> {
        let this = self.project();
        let future = this.future.as_pin_mut();
        let any = any || future.is_some();
        if let Some(Poll::Ready(output)) = future.map(|future| future.poll(cx)) {
            return Poll::Ready(Either::This(output));
        }
        this.later.poll_first(cx, any).map(Either::Later)
    }
}

/// The end of a list in which a branch always counts.
#[derive(Debug)]
pub struct Nil;

impl List for Nil {
    type First = Infallible;

    fn poll_first(self: Pin<&mut Self>, _: &mut Context<'_>, _: bool) -> Poll<Infallible> {
        Poll::Pending
    }
}

/// The end of a list in which perhaps no branch counts.
#[derive(Debug)]
pub struct Else;

impl List for Else {
    type First = ();

    fn poll_first(self: Pin<&mut Self>, _: &mut Context<'_>, any: bool) -> Poll<()> {
        if any { Poll::Pending } else { Poll::Ready(()) }
    }
}
