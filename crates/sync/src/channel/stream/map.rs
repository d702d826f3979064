//! Several streams as one.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

/// Streams by a key, merged: it gives the items of all of them, each with the key of its stream.
///
/// Streams that always have an item take turns. One that ends is taken out; when none is left, the
/// map ends, and goes on when another is put in.
///
/// ```
/// use asx::channel::{self, stream::StreamMap};
/// use asx::prelude::*;
/// use futures_util::StreamExt;
///
/// # fn main() -> std::io::Result<()> {
/// # asx::Runtime::new()?.block_on(async |cx: Cx| {
/// let mut rooms = StreamMap::new();
/// let (near, rx) = channel::bounded(4);
/// rooms.insert("near", rx.into_stream(&cx));
/// let (far, rx) = channel::bounded(4);
/// rooms.insert("far", rx.into_stream(&cx));
/// near.try_send("hello").unwrap();
/// far.try_send("echo").unwrap();
/// assert_eq!(rooms.next().await, Some(("near", Ok("hello"))));
/// assert_eq!(rooms.next().await, Some(("far", Ok("echo"))));
/// drop((near, far));
/// assert_eq!(rooms.next().await, None);
/// # });
/// # Ok(())
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct StreamMap<K, S> {
    streams: Vec<(K, S)>,
    /// Which is asked first.
    first: usize,
}

impl<K, S> StreamMap<K, S> {
    /// No streams.
    pub const fn new() -> Self {
        StreamMap { streams: Vec::new(), first: 0 }
    }

    /// How many streams there are.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether there is no stream.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.streams.iter().map(|(key, _)| key)
    }
}

impl<K: Eq, S> StreamMap<K, S> {
    /// Puts a stream in: the one that had the same key, if there was one.
    pub fn insert(&mut self, key: K, stream: S) -> Option<S> {
        let old = self.remove(&key);
        self.streams.push((key, stream));
        old
    }

    /// Takes a stream out.
    pub fn remove(&mut self, key: &K) -> Option<S> {
        let at = self.streams.iter().position(|(other, _)| other == key)?;
        Some(self.take_out(at))
    }
}

impl<K, S> StreamMap<K, S> {
    /// Takes out the stream at `at`; the others keep their turns.
    fn take_out(&mut self, at: usize) -> S {
        if at < self.first {
            self.first -= 1;
        }
        self.streams.remove(at).1
    }
}

impl<K: Clone + Unpin, S: Stream + Unpin> Stream for StreamMap<K, S> {
    type Item = (K, S::Item);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut left = this.streams.len();
        let mut at = this.first;
        while left > 0 {
            left -= 1;
            at = if at < this.streams.len() { at } else { 0 };
            let (key, stream) = &mut this.streams[at];
            match Pin::new(stream).poll_next(context) {
                Poll::Ready(Some(item)) => {
                    let key = key.clone();
                    this.first = at + 1;
                    return Poll::Ready(Some((key, item)));
                }
                Poll::Ready(None) => drop(this.take_out(at)),
                Poll::Pending => at += 1,
            }
        }
        if this.streams.is_empty() { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl<K, S> Default for StreamMap<K, S> {
    fn default() -> Self {
        StreamMap::new()
    }
}

impl<K: Eq, S> Extend<(K, S)> for StreamMap<K, S> {
    fn extend<I: IntoIterator<Item = (K, S)>>(&mut self, streams: I) {
        streams.into_iter().for_each(|(key, stream)| drop(self.insert(key, stream)));
    }
}

impl<K: Eq, S> FromIterator<(K, S)> for StreamMap<K, S> {
    fn from_iter<I: IntoIterator<Item = (K, S)>>(streams: I) -> Self {
        let mut map = StreamMap::new();
        map.extend(streams);
        map
    }
}

impl<K: fmt::Debug, S> fmt::Debug for StreamMap<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::channel::bounded;
    use asx_task::testing::{Polls, live_cx};

    #[test]
    fn streams_take_turns_and_leave_when_they_end() {
        let cx = live_cx();
        let sides: Vec<_> = (0..3).map(|_| bounded(4)).collect();
        let (senders, receivers): (Vec<_>, Vec<_>) = sides.into_iter().unzip();
        let streams = receivers.into_iter().map(|rx| rx.into_stream(&cx)).enumerate();
        let mut map: StreamMap<usize, _> = streams.collect();
        senders.iter().for_each(|tx| (0..2).for_each(|n| tx.try_send(n).unwrap()));
        let mut next = Polls::new(poll_fn(|cx| Pin::new(&mut map).poll_next(cx)));
        let turns: Vec<_> =
            (0..6).map(|_| next.ready().unwrap()).map(|(k, v)| (k, v.unwrap())).collect();
        assert_eq!(turns, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
        assert!(next.is_pending());
        senders[1].try_send(9).unwrap();
        assert_eq!((next.wakes(), next.ready()), (1, Some((1, Ok(9)))));
        drop(senders);
        assert_eq!(next.ready(), None);
        drop(next);
        assert!(map.is_empty());
    }

    #[test]
    fn a_stream_that_ends_costs_nobody_its_turn() {
        let cx = live_cx();
        let mut map = StreamMap::default();
        let (a, rx) = bounded(4);
        assert!(map.insert("a", rx.into_stream(&cx)).is_none());
        let (b, rx) = bounded(4);
        assert!(map.insert("b", rx.into_stream(&cx)).is_none());
        let (c, rx) = bounded(4);
        assert!(map.insert("c", rx.into_stream(&cx)).is_none());
        [&a, &b, &c].iter().for_each(|tx| tx.try_send(1).unwrap());
        let mut next =
            || Polls::new(poll_fn(|cx| Pin::new(&mut map).poll_next(cx))).ready().unwrap().0;
        assert_eq!(next(), "a");
        drop(a);
        assert_eq!((next(), next()), ("b", "c"));
        [&b, &c].iter().for_each(|tx| tx.try_send(2).unwrap());
        assert_eq!((next(), next()), ("b", "c"), "a is asked first, and has ended");
        assert!(map.remove(&"b").is_some() && map.remove(&"b").is_none());
        assert_eq!(format!("{map:?}"), r#"{"c"}"#);
        assert!(b.is_closed() && !c.is_closed(), "who is taken out is dropped");
    }
}
