//! Waiting for all of a fixed number of parts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::tuple::{Four, Three, Two};
use super::{Never, OnErr};
use asx_task::Cx;

macro_rules! joins {
    (
        $(#[$join_doc:meta])* $join:ident,
        $(#[$try_doc:meta])* $try_join:ident,
        $name:ident, $($part:ident: $make:ident $F:ident $T:ident = $index:literal),+
    ) => {
        $(#[$join_doc])*
        #[cfg_attr(feature = "lab", track_caller)]
        pub fn $join<'a, $($make, $F),+>(
            cx: &'a Cx,
            $($part: $make),+
        ) -> impl Future<Output = ($($F::Output),+)>
        where
            $($make: FnOnce(&'a Cx) -> $F, $F: Future,)+
        {
            $name::<Never, $($F),+>::new(cx, $($part(cx)),+)
        }

        $(#[$try_doc])*
        #[cfg_attr(feature = "lab", track_caller)]
        pub fn $try_join<'a, $($make, $F, $T),+, Error>(
            cx: &'a Cx,
            $($part: $make),+
        ) -> impl Future<Output = Result<($($T),+), Error>>
        where
            $($make: FnOnce(&'a Cx) -> $F, $F: Future<Output = Result<$T, Error>>,)+
        {
            $name::<OnErr, $($F),+>::new(cx, $($part(cx)),+)
        }

        impl<$($F: Future),+> Future for $name<'_, Never, $($F),+> {
            type Output = ($($F::Output),+);

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                ready!(self.as_mut().poll_all(cx));
                let this = self.project();
                match ($(this.$part.take()),+) {
                    ($(Some($part)),+) => Poll::Ready(($($part),+)),
                    _ => panic!("polled after it was done"),
                }
            }
        }

        impl<$($F, $T),+, Error> Future for $name<'_, OnErr, $($F),+>
        where
            $($F: Future<Output = Result<$T, Error>>,)+
        {
            type Output = Result<($($T),+), Error>;

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
                let first = ready!(self.as_mut().poll_all(cx));
                let this = self.project();
                let outputs = ($(this.$part.take()),+);
                let ($($part),+) = outputs;
                $(let $part = match $part {
                    Some(Err(error)) if first == Some($index) => return Poll::Ready(Err(error)),
                    other => other,
                };)+
                match ($($part),+) {
                    ($(Some(Ok($part))),+) => Poll::Ready(Ok(($($part),+))),
                    _ => panic!("polled after it was done"),
                }
            }
        }
    };
}

joins!(
    /// Runs two things at once in this task, until both have ended: their outputs.
    ///
    /// They may borrow. Cancels of the task reach both. If one panics the other is asked to stop
    /// (`FailFast`) and waited for, then the panic goes on here.
    ///
    /// ```
    /// # use asx::{Cx, join};
    /// async fn both(cx: &Cx, text: &str) -> (usize, usize) {
    ///     join(cx, async |_| text.len(), async |_| text.lines().count()).await
    /// }
    /// ```
    join,
    /// Runs two things at once in this task: both values, or the first error.
    ///
    /// On an error the other is asked to stop (`FailFast`) and waited for, so that it can clean up;
    /// what it then says is not the result. Else as [`join`].
    ///
    /// ```
    /// # use asx::{Cancelled, Cx, try_join};
    /// # async fn left(cx: &Cx) -> Result<u8, Cancelled> { Ok(1) }
    /// # async fn right(cx: &Cx) -> Result<u8, Cancelled> { Ok(2) }
    /// async fn sum(cx: &Cx) -> Result<u8, Cancelled> {
    ///     let (a, b) = try_join(cx, async |cx| left(cx).await, async |cx| right(cx).await).await?;
    ///     Ok(a + b)
    /// }
    /// ```
    try_join,
    Two, a: MakeA A TA = 0, b: MakeB B TB = 1
);

joins!(
    /// [`join`] of three.
    join3,
    /// [`try_join`] of three.
    try_join3,
    Three, a: MakeA A TA = 0, b: MakeB B TB = 1, c: MakeC C TC = 2
);

joins!(
    /// [`join`] of four.
    join4,
    /// [`try_join`] of four.
    try_join4,
    Four, a: MakeA A TA = 0, b: MakeB B TB = 1, c: MakeC C TC = 2, d: MakeD D TD = 3
);
