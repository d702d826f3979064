//! Joins and races of any number of parts.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::children::Children;
use super::{Always, Decision, Never, OnErr, OnOk, Rule};
use asx_task::Cx;

/// [`join`](crate::join()) of any number: the outputs, in the order of `parts`.
///
/// On a wake only the parts that were woken are polled.
///
/// ```
/// # use asx::{Cx, join_all};
/// async fn lengths(cx: &Cx, words: &[&str]) -> Vec<usize> {
///     join_all(cx, words.iter().map(|word| async move |_: &Cx| word.len())).await
/// }
/// ```
#[cfg_attr(feature = "lab", track_caller)]
pub fn join_all<'a, I, M, F>(cx: &'a Cx, parts: I) -> impl Future<Output = Vec<F::Output>>
where
    I: IntoIterator<Item = M>,
    M: FnOnce(&'a Cx) -> F,
    F: Future,
{
    All::<Never, F>::new(cx, parts)
}

/// [`try_join`](crate::try_join()) of any number: the values in the order of `parts`, or the first
/// error.
#[cfg_attr(feature = "lab", track_caller)]
pub fn try_join_all<'a, I, M, F, T, E>(
    cx: &'a Cx,
    parts: I,
) -> impl Future<Output = Result<Vec<T>, E>>
where
    I: IntoIterator<Item = M>,
    M: FnOnce(&'a Cx) -> F,
    F: Future<Output = Result<T, E>>,
{
    All::<OnErr, F>::new(cx, parts)
}

/// [`race`](crate::race()) of any number: the output of the one that ends first, or `None` if there
/// are none.
#[cfg_attr(feature = "lab", track_caller)]
pub fn race_all<'a, I, M, F>(cx: &'a Cx, parts: I) -> impl Future<Output = Option<F::Output>>
where
    I: IntoIterator<Item = M>,
    M: FnOnce(&'a Cx) -> F,
    F: Future,
{
    All::<Always, F>::new(cx, parts)
}

/// [`race_ok`](crate::race_ok()) of any number: the value of the one that succeeds first, or all
/// errors, in the order of `parts`.
///
/// ```
/// # use asx::{Cancelled, Cx, race_ok_all};
/// # async fn ask(cx: &Cx, server: &str) -> Result<String, Cancelled> { Ok(server.into()) }
/// async fn any(cx: &Cx, servers: &[&str]) -> Result<String, Vec<Cancelled>> {
///     race_ok_all(cx, servers.iter().map(|server| async move |cx| ask(cx, server).await)).await
/// }
/// ```
#[cfg_attr(feature = "lab", track_caller)]
pub fn race_ok_all<'a, I, M, F, T, E>(
    cx: &'a Cx,
    parts: I,
) -> impl Future<Output = Result<T, Vec<E>>>
where
    I: IntoIterator<Item = M>,
    M: FnOnce(&'a Cx) -> F,
    F: Future<Output = Result<T, E>>,
{
    All::<OnOk, F>::new(cx, parts)
}

struct All<'a, R, F: Future> {
    decision: Decision<'a>,
    rule: PhantomData<fn() -> R>,
    children: Children<F>,
    outputs: Vec<Option<F::Output>>,
}

// The futures are pinned where they are, the outputs never.
impl<R, F: Future> Unpin for All<'_, R, F> {}

impl<'a, R, F: Future> All<'a, R, F> {
    #[cfg_attr(feature = "lab", track_caller)]
    fn new<M: FnOnce(&'a Cx) -> F>(cx: &'a Cx, parts: impl IntoIterator<Item = M>) -> Self {
        let mut children = Children::new();
        let mut outputs = Vec::new();
        for (id, part) in (0..).zip(parts) {
            children.insert(id, part(cx));
            outputs.push(None);
        }
        All { decision: Decision::new(cx), rule: PhantomData, children, outputs }
    }
}

impl<R: Rule<F::Output>, F: Future> All<'_, R, F> {
    /// Polls until all parts have ended: the one that decided.
    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let All { decision, children, outputs, .. } = self;
        if !decision.begins(cx) {
            return Poll::Pending;
        }
        children.watch(decision.cx, cx.waker());
        while children.poll_round(|id, end| {
            let part = id as usize;
            let end = end.map(|output| &*outputs[part].insert(output));
            decision.hear::<_, R>(part, end)
        }) {
            let cancelled = decision.cancel(R::KIND);
            if let Err(panic) = children.call_off(&cancelled) {
                decision.hear::<F::Output, R>(0, Err(panic));
            }
        }
        if !children.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(decision.settle())
    }
}

impl<F: Future> Future for All<'_, Never, F> {
    type Output = Vec<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.poll_all(cx));
        Poll::Ready(self.outputs.drain(..).flatten().collect())
    }
}

impl<F: Future<Output = Result<T, E>>, T, E> Future for All<'_, OnErr, F> {
    type Output = Result<Vec<T>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let first = ready!(self.poll_all(cx));
        let mut outputs = std::mem::take(&mut self.outputs);
        Poll::Ready(match first.and_then(|first| outputs[first].take()) {
            Some(Err(error)) => Err(error),
            _ => outputs.into_iter().flatten().collect(),
        })
    }
}

impl<F: Future> Future for All<'_, Always, F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let first = ready!(self.poll_all(cx));
        // What the losers said is dropped here: all have ended.
        let mut outputs = std::mem::take(&mut self.outputs);
        Poll::Ready(first.and_then(|first| outputs[first].take()))
    }
}

impl<F: Future<Output = Result<T, E>>, T, E> Future for All<'_, OnOk, F> {
    type Output = Result<T, Vec<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let first = ready!(self.poll_all(cx));
        let mut outputs = std::mem::take(&mut self.outputs);
        Poll::Ready(match first.and_then(|first| outputs[first].take()) {
            Some(Ok(value)) => Ok(value),
            _ => Err(outputs.into_iter().flatten().filter_map(Result::err).collect()),
        })
    }
}
