//! All outcomes of several tasks.

use std::future::poll_fn;
use std::task::{Poll, ready};

use crate::Cx;
use crate::handle::Task;
use crate::proceed;
use crate::raw::foreign_wakers::Registration;
use crate::raw::outcome::{Cancelled, Outcome};

impl Cx {
    /// Waits for all of these tasks: how each ended, in their order. An error only if the caller is
    /// asked to stop meanwhile.
    ///
    /// Of use in a scope with [`Policy::CollectAll`](crate::Policy::CollectAll), where a failure
    /// cancels nothing:
    ///
    /// ```
    /// use asx::{Cancelled, Cx, Outcome, Policy, Scope};
    ///
    /// async fn halves(cx: &Cx, numbers: Vec<u32>) -> Outcome<usize, Cancelled> {
    ///     cx.scope_with(Policy::CollectAll)
    ///         .run(async |s: Scope<Cancelled>| {
    ///             let tasks: Vec<_> = numbers
    ///                 .into_iter()
    ///                 .map(|n| s.spawn(async move |_cx: Cx| Ok(100 / n)))
    ///                 .collect();
    ///             let outcomes = cx.outcomes(tasks).await?;
    ///             Ok(outcomes.iter().filter(|outcome| outcome.is_ok()).count())
    ///         })
    ///         .await
    /// }
    /// ```
    pub async fn outcomes<T, E>(
        &self,
        tasks: impl IntoIterator<Item = Task<T, E>>,
    ) -> Result<Vec<Outcome<T, E>>, Cancelled> {
        proceed::begin().await;
        let mut outcomes = Vec::new();
        // Each is awaited in turn: all of them run meanwhile, whoever looks.
        let tasks: Vec<_> = tasks.into_iter().collect();
        for mut task in tasks {
            let mut registration = Registration::NONE;
            let outcome =
                poll_fn(|context| match ready!(self.poll_proceed(context, &mut registration)) {
                    Err(cancelled) => Poll::Ready(Err(cancelled)),
                    Ok(()) => task.poll_charged_end(context.waker()).map(Ok),
                });
            outcomes.push(outcome.await?);
        }
        proceed::ends();
        Ok(outcomes)
    }
}
