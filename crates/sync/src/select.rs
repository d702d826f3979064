//! `select!`: the first of several futures that can be dropped half-way.
//!
//! The macro makes a list of its branches ([`Branch`] after `Branch`, then an end), which is polled
//! in the order written, and matches on which one was done. The list is dropped before the match,
//! so that handlers may use what the futures borrowed. A branch whose pattern may fail to match
//! looks at its output before that (the closure in [`Branch`]), so that another one can be waited
//! for.

use std::convert::Infallible;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use asx_task::operation;
use asx_task::{CancelSafe, Cx};

/// Waits for the first of several futures, drops the others, and runs the handler of the first.
///
/// ```
/// use asx::{Cancelled, Cx, select};
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
/// * A branch is `pattern = future => handler`. After a handler there is a comma, unless it is a
///   block.
/// * Branches are looked at in the order written, each time: of two that are done the one written
///   first wins. With `random(cx);` before the first branch, each `select!` begins with a branch
///   that [`Cx::random_below`](asx_task::Cx::random_below) chooses and goes on from there, so that
///   none of them can starve the others; the lab tries each of them.
/// * Since the others are dropped, only futures that lose nothing by it are taken: those that are
///   [`CancelSafe`](trait@asx_task::CancelSafe). For anything else there is
///   `race`, which lets the losers clean up.
/// * A future that is only borrowed is not dropped, so any future is taken as `&mut future` or as
///   `Pin<&mut F>` (`future.as_mut()`, after `std::pin::pin!`): to go on waiting for it later.
/// * `pattern = future, if condition => handler`: the branch counts only if the condition holds;
///   if not, the future is not even made.
/// * A pattern need not match whatever comes (`Some(order) = orders.next(cx) => ..`). If it does
///   not match what the future gave, that is dropped, and the branch no longer counts.
/// * `else => handler`, last, is for when no branch counts. It is needed unless there is a branch
///   without a condition whose pattern is a name or `_`, or always matches.
/// * Handlers run when the futures are gone, in the function around: `?`, `break`, `continue` and
///   `return` do what they always do.
///
/// ```
/// # use asx::{Cancelled, Cx, channel, select};
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
///             Ok(number) = rx.recv(cx), if got.len() < limit => got.push(number),
///             Ok(()) = &mut second, if got.len() < limit => break,
///             else => break, // enough, or no sender is left, or the task is to stop
///         }
///     }
///     cx.checkpoint()?;
///     Ok(got)
/// }
/// ```
#[macro_export]
macro_rules! select {
    // What is left of the input; the branches found, each (kind, pattern, future, guard, handler);
    // the best kind among those without a guard; and the context for a random order.
    //
    // Kinds: `sure`, the pattern is a name or `_`, without a guard; `free`, another pattern without
    // a guard; `may`, any pattern with a guard.
    (@branches () [] $best:tt $order:tt) => {
        ::std::compile_error!("`select!` needs a branch: `pattern = future => handler`")
    };
    (@branches () [$($branch:tt)+] [] $order:tt) => {
        ::std::compile_error!("every branch has a condition: add `else => ..` for when none holds")
    };
    (@branches () [$($branch:tt)+] [$best:ident] $order:tt) => {
        $crate::select!(@emit $best [$($branch)+] [$($branch)+] $order
            ($crate::__select::Nil) (never => match never {}))
    };
    (@branches (else => $handler:expr $(,)?) [$($branch:tt)*] [sure] $order:tt) => {
        ::std::compile_error!(
            "`else` is never reached: a branch without a condition whose pattern is a name or `_` \
             always counts"
        )
    };
    (@branches (else => $handler:expr $(,)?) [$($branch:tt)+] $best:tt $order:tt) => {
        $crate::select!(@emit else [$($branch)+] [$($branch)+] $order
            ($crate::__select::Else) (() => $handler))
    };
    (@branches (_ = $($rest:tt)+) $($state:tt)+) => {
        $crate::select!(@future ($($rest)+) (sure, _) $($state)+)
    };
    // A pattern that is one word is a name that is bound, but for this one.
    (@branches (None = $($rest:tt)+) $($state:tt)+) => {
        $crate::select!(@future ($($rest)+) (free, ::std::option::Option::None) $($state)+)
    };
    (@branches ($name:ident = $($rest:tt)+) $($state:tt)+) => {
        $crate::select!(@future ($($rest)+) (sure, $name) $($state)+)
    };
    (@branches (mut $name:ident = $($rest:tt)+) $($state:tt)+) => {
        $crate::select!(@future ($($rest)+) (sure, mut $name) $($state)+)
    };
    (@branches ($pat:pat = $($rest:tt)+) $($state:tt)+) => {
        $crate::select!(@future ($($rest)+) (free, $pat) $($state)+)
    };
    (@branches ($($other:tt)+) $($state:tt)+) => {
        $crate::select!(@unexpected $($other)+)
    };

    (@future ($future:expr, if $guard:expr => $($rest:tt)+) ($kind:ident, $pat:pat)
        $($state:tt)+) => {
        $crate::select!(@handler ($($rest)+) (may, $pat, $future, $guard) $($state)+)
    };
    (@future ($future:expr => $($rest:tt)+) ($kind:ident, $pat:pat) $($state:tt)+) => {
        $crate::select!(@handler ($($rest)+) ($kind, $pat, $future, true) $($state)+)
    };
    (@future ($($other:tt)+) ($kind:ident, $pat:pat) $($state:tt)+) => {
        $crate::select!(@unexpected $pat = $($other)+)
    };

    (@unexpected $($other:tt)+) => {
        ::std::compile_error!(::std::concat!(
            "expected `pattern = future => handler`, `pattern = future, if condition => handler` \
             or `else => handler` last, found `", ::std::stringify!($($other)+), "`"
        ))
    };

    (@handler ($handler:block, $($rest:tt)*) ($($part:tt)+) $($state:tt)+) => {
        $crate::select!(@push ($($rest)*) ($($part)+, $handler) $($state)+)
    };
    (@handler ($handler:block $($rest:tt)*) ($($part:tt)+) $($state:tt)+) => {
        $crate::select!(@push ($($rest)*) ($($part)+, $handler) $($state)+)
    };
    (@handler ($handler:expr, $($rest:tt)*) ($($part:tt)+) $($state:tt)+) => {
        $crate::select!(@push ($($rest)*) ($($part)+, $handler) $($state)+)
    };
    (@handler ($handler:expr) ($($part:tt)+) $($state:tt)+) => {
        $crate::select!(@push () ($($part)+, $handler) $($state)+)
    };

    (@push $rest:tt (may, $($part:tt)+) [$($found:tt)*] $best:tt $order:tt) => {
        $crate::select!(@branches $rest [$($found)* (may, $($part)+)] $best $order)
    };
    (@push $rest:tt ($kind:ident, $($part:tt)+) [$($found:tt)*] [sure] $order:tt) => {
        $crate::select!(@branches $rest [$($found)* ($kind, $($part)+)] [sure] $order)
    };
    (@push $rest:tt ($kind:ident, $($part:tt)+) [$($found:tt)*] $best:tt $order:tt) => {
        $crate::select!(@branches $rest [$($found)* ($kind, $($part)+)] [$kind] $order)
    };

    (@emit $mode:tt [$($list:tt)+] [$($arms:tt)+] $order:tt ($end:expr) $last:tt) => {
        // The futures and all they borrow end with this statement.
        match {
            let first =
                $crate::select!(@select $order ($crate::select!(@list $mode [$($list)+] $end)))
                    .await;
            first
        } {
            first => $crate::select!(@arms $mode first [$($arms)+] $last),
        }
    };
    (@select () ($list:expr)) => { $crate::__select::select($list) };
    (@select ($cx:expr) ($list:expr)) => { $crate::__select::select_random($list, $cx) };

    (@list $mode:tt [] $end:expr) => { $end };
    (@list $mode:tt [(sure, $pat:pat, $future:expr, $guard:expr, $handler:expr) $($more:tt)*]
        $end:expr) => {
        $crate::__select::Branch::new(
            if $guard { ::std::option::Option::Some($crate::__select::cancel_safe($future)) }
            else { ::std::option::Option::None },
            ::std::result::Result::Ok,
            $crate::select!(@list $mode [$($more)*] $end),
        )
    };
    // Without a branch that is sure, and without `else`, those without a guard are to match.
    (@list free [(free, $($part:tt)+) $($more:tt)*] $end:expr) => {
        $crate::select!(@list free [(sure, $($part)+) $($more)*] $end)
    };
    (@list $mode:tt [($kind:ident, $pat:pat, $future:expr, $guard:expr, $handler:expr)
        $($more:tt)*] $end:expr) => {
        $crate::__select::Branch::new(
            if $guard { ::std::option::Option::Some($crate::__select::cancel_safe($future)) }
            else { ::std::option::Option::None },
            |output| {
                // The guard only looks: nothing is moved out of the output.
                let mut matches = false;
                #[allow(unused_variables, unused_mut)]
                let () = match output {
                    $pat if { matches = true; false } => ::std::unreachable!(),
                    _ => {}
                };
                if matches { ::std::result::Result::Ok(output) }
                else { ::std::result::Result::Err(output) }
            },
            $crate::select!(@list $mode [$($more)*] $end),
        )
    };

    (@arms $mode:tt $first:ident [] ($pat:pat => $handler:expr)) => {
        match $first { $pat => $handler }
    };
    (@arms $mode:tt $first:ident
        [(sure, $pat:pat, $future:expr, $guard:expr, $handler:expr) $($more:tt)*] $last:tt) => {
        match $first {
            $crate::__select::Either::This(this) => {
                let $pat = this; // what need not match whatever comes needs `else => ..`, last
                $handler
            }
            $crate::__select::Either::Later(later) => {
                $crate::select!(@arms $mode later [$($more)*] $last)
            }
        }
    };
    (@arms free $first:ident [(free, $($part:tt)+) $($more:tt)*] $last:tt) => {
        $crate::select!(@arms free $first [(sure, $($part)+) $($more)*] $last)
    };
    (@arms $mode:tt $first:ident
        [($kind:ident, $pat:pat, $future:expr, $guard:expr, $handler:expr) $($more:tt)*]
        $last:tt) => {
        match $first {
            $crate::__select::Either::This(this) => match this {
                $pat => $handler,
                #[allow(unreachable_patterns)]
                _ => ::std::unreachable!("what does not match is dropped"),
            },
            $crate::__select::Either::Later(later) => {
                $crate::select!(@arms $mode later [$($more)*] $last)
            }
        }
    };

    (random($cx:expr); $($input:tt)*) => {
        $crate::select!(@branches ($($input)*) [] [] ($cx))
    };
    ($($input:tt)*) => {
        $crate::select!(@branches ($($input)*) [] [] ())
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
    note = "borrow the future (`&mut future`, or `future.as_mut()` of one that is pinned) to keep \
            it: it is not dropped then",
    note = "if you know that it loses nothing, say so: `assume_cancel_safe(future)`, or \
            `cx.abandon_on_cancel(future)`, which also ends with a cancel of the task; `impl \
            CancelSafe for ..` for a type of your own"
)]
pub trait MayBeDropped: Future {}

#[diagnostic::do_not_recommend]
impl<F: CancelSafe> MayBeDropped for F {}

/// Polls a list of branches in the order written.
pub fn select<L: List>(list: L) -> Select<L> {
    Select { begun: false, start: 0, list }
}

/// Polls a list of branches in the order written, from one that is chosen at random.
pub fn select_random<L: List>(list: L, cx: &Cx) -> Select<L> {
    // Less than the count, which is a `usize`.
    let start = cx.random_below(L::COUNT as u64) as usize;
    Select { begun: false, start, list }
}

pin_project! {
    /// The future of [`select`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Select<L> {
        begun: bool,
        // The branch that is looked at first.
        start: usize,
        #[pin]
        list: L,
    }
}

impl<L: List> Future for Select<L> {
    type Output = L::First;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<L::First> {
        let mut this = self.project();
        if !operation::begins(cx, this.begun) {
            return Poll::Pending;
        }
        let mut any = false;
        let mut first = this.list.as_mut().poll_in(cx, *this.start..L::COUNT, &mut any);
        if first.is_pending() && *this.start > 0 {
            first = this.list.as_mut().poll_in(cx, 0..*this.start, &mut any);
        }
        if first.is_pending()
            && !any
            && let Some(none) = this.list.none()
        {
            first = Poll::Ready(none);
        }
        if first.is_ready() {
            operation::ends();
        }
        first
    }
}

/// Branches in order.
pub trait List {
    /// How many there are.
    const COUNT: usize;

    /// The output of the first that is done.
    type First;

    /// Polls those whose numbers, counted from here, are in the range, in order; `any` is set if
    /// one of them still counts.
    fn poll_in(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        range: Range<usize>,
        any: &mut bool,
    ) -> Poll<Self::First>;

    /// What there is if no branch counts.
    fn none(&self) -> Option<Self::First>;
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
    pub struct Branch<F, M, L> {
        #[pin]
        future: Option<F>,
        matches: M,
        #[pin]
        later: L,
    }
}

impl<F, M, L> Branch<F, M, L>
where
    F: Future,
    M: FnMut(F::Output) -> Result<F::Output, F::Output>,
{
    /// A branch before others. `matches` gives an output back: as an error if the pattern of the
    /// branch does not match it.
    pub fn new(future: Option<F>, matches: M, later: L) -> Branch<F, M, L> {
        Branch { future, matches, later }
    }
}

impl<F, M, L> List for Branch<F, M, L>
where
    F: Future,
    M: FnMut(F::Output) -> Result<F::Output, F::Output>,
    L: List,
{
    const COUNT: usize = 1 + L::COUNT;

    type First = Either<F::Output, L::First>;

    #[inline]
    fn poll_in(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        range: Range<usize>,
        any: &mut bool,
    ) -> Poll<Self::First> {
        let mut this = self.project();
        if range.start == 0
            && range.end > 0
            && let Some(future) = this.future.as_mut().as_pin_mut()
        {
            match future.poll(cx).map(|output| (this.matches)(output)) {
                Poll::Ready(Ok(output)) => return Poll::Ready(Either::This(output)),
                // It is done, and not polled again.
                Poll::Ready(Err(_)) => this.future.set(None),
                Poll::Pending => *any = true,
            }
        }
        let range = range.start.saturating_sub(1)..range.end.saturating_sub(1);
        this.later.poll_in(cx, range, any).map(Either::Later)
    }

    fn none(&self) -> Option<Self::First> {
        self.later.none().map(Either::Later)
    }
}

/// The end of a list in which a branch always counts.
#[derive(Debug)]
pub struct Nil;

impl List for Nil {
    const COUNT: usize = 0;

    type First = Infallible;

    fn poll_in(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: Range<usize>,
        _: &mut bool,
    ) -> Poll<Infallible> {
        Poll::Pending
    }

    fn none(&self) -> Option<Infallible> {
        None
    }
}

/// The end of a list in which perhaps no branch counts.
#[derive(Debug)]
pub struct Else;

impl List for Else {
    const COUNT: usize = 0;

    type First = ();

    fn poll_in(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: Range<usize>,
        _: &mut bool,
    ) -> Poll<()> {
        Poll::Pending
    }

    fn none(&self) -> Option<()> {
        Some(())
    }
}
