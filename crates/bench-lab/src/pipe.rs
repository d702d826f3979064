//! A channel and a yield for peers that have none for futures.
//!
//! Both are used by tasks of one thread, polled one after the other: the lock is never contended.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};

/// Lets others go first.
pub(crate) async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// An end of a channel without bound.
pub(crate) struct Pipe<T>(Arc<Mutex<State<T>>>);

struct State<T> {
    messages: VecDeque<T>,
    is_closed: bool,
    waiting: Option<Waker>,
}

impl<T> Pipe<T> {
    /// Both ends.
    pub(crate) fn new() -> (Pipe<T>, Pipe<T>) {
        let state = State { messages: VecDeque::new(), is_closed: false, waiting: None };
        let one = Arc::new(Mutex::new(state));
        (Pipe(one.clone()), Pipe(one))
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: T) {
        self.state().messages.push_back(message);
        self.wake();
    }

    /// Says that nothing more comes.
    pub(crate) fn close(self) {
        self.state().is_closed = true;
        self.wake();
    }

    /// The next message, unless none comes any more.
    pub(crate) async fn recv(&self) -> Option<T> {
        poll_fn(|context| {
            let mut state = self.state();
            match state.messages.pop_front() {
                Some(message) => Poll::Ready(Some(message)),
                None if state.is_closed => Poll::Ready(None),
                None => {
                    state.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn wake(&self) {
        let waiting = self.state().waiting.take();
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
