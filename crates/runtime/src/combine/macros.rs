//! `join!`, `try_join!`, `race!` and `race_ok!`.

use std::future::Future;
use std::pin::Pin;

use super::list::{Cons, List, Nil, Several};
use super::{Always, Never, OnErr, OnOk};
use asx_task::Cx;

/// [`join`](crate::join()) of any number of parts: a tuple of their outputs.
///
/// ```
/// # use asx::{Cx, join};
/// async fn sizes(cx: &Cx, text: &str) -> (usize, usize, usize, bool, String) {
///     join!(
///         cx,
///         async |_| text.len(),
///         async |_| text.lines().count(),
///         async |cx| { cx.yield_now().await; text.split(' ').count() },
///         async |_| text.is_ascii(),
///         async |_| text.to_lowercase(),
///     )
///     .await
/// }
/// ```
#[macro_export]
macro_rules! join {
    ($cx:expr $(, $part:expr)+ $(,)?) => {
        match $cx { cx => $crate::__combine!(@tuple join cx () ($($part,)+) $($part,)+) }
    };
}

/// [`try_join`](crate::try_join()) of any number of parts: a tuple of their values, or the first
/// error.
///
/// ```
/// # use asx::{Cancelled, Cx, try_join};
/// # async fn ask(cx: &Cx, server: &str) -> Result<String, Cancelled> { Ok(server.into()) }
/// async fn all(cx: &Cx) -> Result<(String, String, usize), Cancelled> {
///     try_join!(
///         cx,
///         async |cx| ask(cx, "here").await,
///         async |cx| ask(cx, "there").await,
///         async |cx| Ok(ask(cx, "far").await?.len()),
///     )
///     .await
/// }
/// ```
#[macro_export]
macro_rules! try_join {
    ($cx:expr $(, $part:expr)+ $(,)?) => {
        match $cx { cx => $crate::__combine!(@tuple try_join cx () ($($part,)+) $($part,)+) }
    };
}

/// [`race`](crate::race()) of any number of parts: the output of the one that ends first. The
/// others are asked to stop and waited for.
///
/// ```
/// # use asx::{Cancelled, Cx, race};
/// # async fn ask(cx: &Cx, server: &str) -> Result<String, Cancelled> { Ok(server.into()) }
/// async fn fastest(cx: &Cx) -> Result<String, Cancelled> {
///     race!(
///         cx,
///         async |cx| ask(cx, "here").await,
///         async |cx| ask(cx, "there").await,
///         async |cx| ask(cx, "far").await,
///     )
///     .await
/// }
/// ```
#[macro_export]
macro_rules! race {
    ($cx:expr $(, $part:expr)+ $(,)?) => {
        match $cx { cx => $crate::__combine::race(cx, $crate::__combine!(@list cx $($part,)+)) }
    };
}

/// [`race_ok`](crate::race_ok()) of any number of parts: the value of the one that succeeds first,
/// or the error of the one written first.
#[macro_export]
macro_rules! race_ok {
    ($cx:expr $(, $part:expr)+ $(,)?) => {
        match $cx { cx => $crate::__combine::race_ok(cx, $crate::__combine!(@list cx $($part,)+)) }
    };
}

/// What the macros above share.
#[doc(hidden)]
#[macro_export]
macro_rules! __combine {
    (@list $cx:ident) => { $crate::__combine::Nil };
    (@list $cx:ident $part:expr, $($more:expr,)*) => {
        $crate::__combine::cons(
            $crate::__combine::made($cx, $part),
            $crate::__combine!(@list $cx $($more,)*),
        )
    };
    // One name for the output of each part.
    (@tuple $join:ident $cx:ident ($($name:ident)+) ($($part:expr,)+)) => {
        $crate::__combine::$join(
            $cx,
            $crate::__combine!(@list $cx $($part,)+),
            |$crate::__combine!(@nested $($name)+)| ($($name,)+),
        )
    };
    (@tuple $join:ident $cx:ident ($($name:ident)*) $parts:tt $next:expr, $($more:expr,)*) => {
        $crate::__combine!(@tuple $join $cx ($($name)* output) $parts $($more,)*)
    };
    (@nested) => { () };
    (@nested $name:ident $($more:ident)*) => { ($name, $crate::__combine!(@nested $($more)*)) };
}

/// The outputs of all parts, one in the other.
pub trait Joined: List<Never> {
    /// The first and the others.
    type Outputs;

    /// Those of parts that have all ended, once.
    fn take(self: Pin<&mut Self>) -> Option<Self::Outputs>;
}

impl<F: Future, L: Joined> Joined for Cons<F, L> {
    type Outputs = (F::Output, L::Outputs);

    fn take(self: Pin<&mut Self>) -> Option<Self::Outputs> {
        let this = self.project();
        Some((this.part.take()?, this.later.take()?))
    }
}

impl Joined for Nil {
    type Outputs = ();

    fn take(self: Pin<&mut Self>) -> Option<()> {
        Some(())
    }
}

/// The values of all parts, one in the other, or an error.
pub trait TryJoined<E>: List<OnErr> {
    /// The first and the others.
    type Values;

    /// Those of parts that have all ended, once, or the error of the one that decided.
    fn take(self: Pin<&mut Self>, first: Option<usize>) -> Option<Result<Self::Values, E>>;
}

impl<F, T, E, L> TryJoined<E> for Cons<F, L>
where
    F: Future<Output = Result<T, E>>,
    L: TryJoined<E>,
{
    type Values = (T, L::Values);

    fn take(self: Pin<&mut Self>, first: Option<usize>) -> Option<Result<Self::Values, E>> {
        let this = self.project();
        let output = this.part.take();
        if first == Some(0) {
            return output.map(|output| match output {
                Err(error) => Err(error),
                Ok(_) => unreachable!("an error has decided"),
            });
        }
        match this.later.take(first.map(|first| first - 1))? {
            Err(error) => Some(Err(error)),
            Ok(later) => match output? {
                Ok(value) => Some(Ok((value, later))),
                Err(_) => unreachable!("no error has decided"),
            },
        }
    }
}

impl<E> TryJoined<E> for Nil {
    type Values = ();

    fn take(self: Pin<&mut Self>, _: Option<usize>) -> Option<Result<(), E>> {
        Some(Ok(()))
    }
}

/// Parts with outputs of one type.
pub trait Raced<T, R>: List<R> {
    /// The output of one that has ended, once.
    fn take(self: Pin<&mut Self>, index: usize) -> Option<T>;
}

impl<R, F: Future, L> Raced<F::Output, R> for Cons<F, L>
where
    L: Raced<F::Output, R>,
    R: super::Rule<F::Output>,
{
    fn take(self: Pin<&mut Self>, index: usize) -> Option<F::Output> {
        let this = self.project();
        match index.checked_sub(1) {
            None => this.part.take(),
            Some(later) => this.later.take(later),
        }
    }
}

impl<T, R> Raced<T, R> for Nil {
    fn take(self: Pin<&mut Self>, _: usize) -> Option<T> {
        None
    }
}

/// What `join!` expands to; `flat` makes one tuple of the nested ones.
pub fn join<L, M, T>(cx: &Cx, list: L, flat: M) -> impl Future<Output = T>
where
    L: Joined,
    M: FnOnce(L::Outputs) -> T,
{
    Several::<Never, L, _>::new(cx, list, |list: Pin<&mut L>, _| list.take().map(flat))
}

/// What `try_join!` expands to.
pub fn try_join<L, M, T, E>(cx: &Cx, list: L, flat: M) -> impl Future<Output = Result<T, E>>
where
    L: TryJoined<E>,
    M: FnOnce(L::Values) -> T,
{
    Several::<OnErr, L, _>::new(cx, list, |list: Pin<&mut L>, first| {
        list.take(first).map(|values| values.map(flat))
    })
}

/// What `race!` expands to.
pub fn race<L, T>(cx: &Cx, list: L) -> impl Future<Output = T>
where
    L: Raced<T, Always>,
{
    Several::<Always, L, _>::new(cx, list, |list: Pin<&mut L>, first| list.take(first?))
}

/// What `race_ok!` expands to.
pub fn race_ok<L, T, E>(cx: &Cx, list: L) -> impl Future<Output = Result<T, E>>
where
    L: Raced<Result<T, E>, OnOk>,
{
    // If none has decided, all have failed.
    Several::<OnOk, L, _>::new(cx, list, |list: Pin<&mut L>, first| list.take(first.unwrap_or(0)))
}
