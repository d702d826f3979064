//! The first of a fixed number of parts.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::Always;
use super::tuple::{Four, Three, Two};
use asx_task::Cx;

macro_rules! races {
    (
        $(#[$doc:meta])* $race:ident,
        $name:ident, $($part:ident: $make:ident $F:ident = $index:literal),+
    ) => {
        $(#[$doc])*
        #[cfg_attr(feature = "lab", track_caller)]
        pub fn $race<'a, $($make, $F),+, T>(
            cx: &'a Cx,
            $($part: $make),+
        ) -> impl Future<Output = T>
        where
            $($make: FnOnce(&'a Cx) -> $F, $F: Future<Output = T>,)+
        {
            $name::<Always, $($F),+>::new(cx, $($part(cx)),+)
        }

        impl<$($F: Future<Output = T>),+, T> Future for $name<'_, Always, $($F),+> {
            type Output = T;

            fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
                let first = ready!(self.as_mut().poll_all(cx));
                let this = self.project();
                // What the losers said is dropped here: all have ended.
                let mut outputs = [$(this.$part.take()),+];
                match first.and_then(|first| outputs[first].take()) {
                    Some(output) => Poll::Ready(output),
                    None => panic!("polled after it was done"),
                }
            }
        }
    };
}

races!(
    /// Runs two things at once in this task: the output of the one that ends first.
    ///
    /// The other is asked to stop (`RaceLost`) and waited for, so that it can clean up; what it
    /// then says is dropped. If both can end at the same time the one written first wins, and what
    /// had not begun by then never begins. A panic of either goes on here, after the other's end.
    ///
    /// ```
    /// # use asx::{Cancelled, Cx, race};
    /// # async fn ask(cx: &Cx, server: &str) -> Result<String, Cancelled> { Ok(server.into()) }
    /// async fn fastest(cx: &Cx) -> Result<String, Cancelled> {
    ///     race(cx, async |cx| ask(cx, "here").await, async |cx| ask(cx, "there").await).await
    /// }
    /// ```
    race,
    Two, a: MakeA A = 0, b: MakeB B = 1
);

races!(
    /// [`race`] of three.
    race3,
    Three, a: MakeA A = 0, b: MakeB B = 1, c: MakeC C = 2
);

races!(
    /// [`race`] of four.
    race4,
    Four, a: MakeA A = 0, b: MakeB B = 1, c: MakeC C = 2, d: MakeD D = 3
);
