//! Tasks that say when they are ready.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use asx_kernel::cancel::Kind;

use crate::footprint;
use crate::prim::{Mutex, lock};
use crate::raw::contain_panic;
use crate::raw::outcome::{Cancelled, Outcome};
use crate::raw::poll_context;
use crate::scope::{Scope, TaskBuilder};
use crate::wait::Wait;
use crate::{Cx, Task};

impl<E: Send + 'static> Scope<E> {
    /// Starts a task, and waits until it says that it is [ready](Ready::set): what it said, and its
    /// handle.
    ///
    /// A task that ends before is an error that has its outcome. When it drops what it would say so
    /// with, when the caller is asked to stop meanwhile, or drops the future, the task is cancelled
    /// (`LinkedExit`): nobody else knows it.
    ///
    /// ```
    /// use asx::{Cancelled, Cx, Ready, Scope};
    ///
    /// async fn serve(s: &Scope<Cancelled>) -> u16 {
    ///     let server = s.start(async |cx: Cx, ready: Ready<u16>| {
    ///         ready.set(8080);
    ///         cx.cancelled().await;
    ///         Ok(())
    ///     });
    ///     let (port, _task) = server.await.expect("it says so before it ends");
    ///     port
    /// }
    /// ```
    #[track_caller]
    pub fn start<F, B, V, T>(&self, body: F) -> Starting<V, T, E>
    where
        F: FnOnce(Cx, Ready<V>) -> B,
        B: Future<Output = Result<T, E>> + Send + 'static,
        V: Send + 'static,
        T: Send + 'static,
    {
        self.plan().start(body)
    }
}

impl<E: Send + 'static> TaskBuilder<'_, E> {
    /// Starts the task, and waits until it says that it is ready; see [`Scope::start`].
    #[track_caller]
    pub fn start<F, B, V, T>(self, body: F) -> Starting<V, T, E>
    where
        F: FnOnce(Cx, Ready<V>) -> B,
        B: Future<Output = Result<T, E>> + Send + 'static,
        V: Send + 'static,
        T: Send + 'static,
    {
        let word = Arc::new(Mutex::new(Word::new()));
        let ready = Ready { word: word.clone() };
        let task = self.spawn(|cx| body(cx, ready));
        Starting { word, task: Some(task), at: Location::caller() }
    }
}

/// What a task that starts has to say, once. Dropped, it says that it never will: the task is asked
/// to stop.
#[must_use = "whoever started the task waits for it"]
pub struct Ready<V> {
    word: Arc<Mutex<Word<V>>>,
}

struct Word<V> {
    said: Option<V>,
    /// Nothing will be said.
    never: bool,
    waker: Option<Waker>,
}

impl<V> Word<V> {
    fn new() -> Word<V> {
        Word { said: None, never: false, waker: None }
    }
}

impl<V> Ready<V> {
    /// The task is ready: whoever started it goes on, with this value. If nobody waits for it any
    /// more, the value is dropped.
    pub fn set(self, value: V) {
        self.tell(|word| word.said = Some(value));
    }

    fn tell(&self, tell: impl FnOnce(&mut Word<V>)) {
        let waker = {
            let mut word = lock(&self.word);
            tell(&mut word);
            word.waker.take()
        };
        if let Some(waker) = waker {
            contain_panic::wake(waker);
        }
    }
}

impl<V> Drop for Ready<V> {
    fn drop(&mut self) {
        // What was said before is heard first.
        self.tell(|word| word.never = true);
    }
}

impl<V> fmt::Debug for Ready<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ready")
    }
}

/// The future of [`Scope::start`]; gives `Result<(V, Task<T, E>), NotReady<T, E>>`.
#[must_use = "dropped, it cancels the task"]
pub struct Starting<V, T, E> {
    word: Arc<Mutex<Word<V>>>,
    /// Until it is handed over.
    task: Option<Task<T, E>>,
    at: &'static Location<'static>,
}

impl<V, T, E> Starting<V, T, E> {
    /// What was said, or that nothing will be; else `waker` is told. Each is heard once.
    fn hear(&self, waker: &Waker) -> Option<Option<V>> {
        // Cloned and dropped outside the lock.
        let waker = waker.clone();
        let (said, old) = {
            let mut word = lock(&self.word);
            let said = match word.said.take() {
                Some(said) => Some(Some(said)),
                None => std::mem::take(&mut word.never).then_some(None),
            };
            match said {
                None => (None, [word.waker.replace(waker), None]),
                said => (said, [word.waker.take(), Some(waker)]),
            }
        };
        old.into_iter().for_each(contain_panic::drop_waker);
        said
    }

    fn give_up(&mut self) {
        if let Some(task) = self.task.take() {
            let _after = footprint::operation();
            task.cancel_unlimited(Kind::LinkedExit.into());
        }
    }
}

impl<V, T, E> Future for Starting<V, T, E> {
    type Output = Result<(V, Task<T, E>), NotReady<T, E>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let Some(mut task) = self.task.take() else { return Poll::Pending };
        match task.poll_proceed(context) {
            Poll::Ready(None) => {}
            Poll::Ready(Some(cancelled)) => {
                self.task = Some(task);
                self.give_up();
                return Poll::Ready(Err(NotReady::Cancelled(cancelled)));
            }
            Poll::Pending => {
                self.task = Some(task);
                return Poll::Pending;
            }
        }
        match self.hear(context.waker()) {
            Some(Some(value)) => return Poll::Ready(Ok((value, task))),
            Some(None) => {
                let _after = footprint::operation();
                task.cancel_unlimited(Kind::LinkedExit.into());
            }
            None => {}
        }
        if task.watch_end(context.waker()) {
            poll_context::return_operation();
            task.await_in_current(Wait::Signal, self.at, context.waker());
            self.task = Some(task);
            return Poll::Pending;
        }
        // It has ended: what it had to say it said before.
        match self.hear(context.waker()) {
            Some(Some(value)) => Poll::Ready(Ok((value, task))),
            _ => task.poll_end(context.waker()).map(|outcome| Err(NotReady::Ended(outcome))),
        }
    }
}

impl<V, T, E> Unpin for Starting<V, T, E> {}

impl<V, T, E> Drop for Starting<V, T, E> {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl<V, T, E> fmt::Debug for Starting<V, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Starting").field(&self.task).finish()
    }
}

/// Why a task that was started is not ready.
#[derive(Debug)]
pub enum NotReady<T, E> {
    /// It ended before it said so: how.
    Ended(Outcome<T, E>),
    /// Whoever waited for it was asked to stop. The task is cancelled too.
    Cancelled(Cancelled),
}

impl<T, E: fmt::Display> fmt::Display for NotReady<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotReady::Ended(Ok(_)) => f.write_str("ended before it was ready"),
            NotReady::Ended(Err(stop)) => write!(f, "ended before it was ready: {stop}"),
            NotReady::Cancelled(cancelled) => write!(f, "not waited for: {cancelled}"),
        }
    }
}

impl<T: fmt::Debug, E: std::error::Error> std::error::Error for NotReady<T, E> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::pin::pin;

    use super::*;
    use crate::Runnable;
    use crate::spawn::{Plan, make};
    use crate::test_util::loose_region;
    use crate::testing::Count;

    /// A task that ends with 3 when its entry is run, and what waits for it to be ready.
    fn started() -> (Runnable, Ready<u32>, Starting<u32, u32, Cancelled>) {
        let word = Arc::new(Mutex::new(Word::new()));
        let ready = Ready { word: word.clone() };
        let region = loose_region();
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&region, Plan::default(), |_| async { Ok(3) }) };
        let starting = Starting { word, task: Some(task), at: Location::caller() };
        (entry.unwrap().unwrap(), ready, starting)
    }

    #[test]
    fn saying_so_wakes_who_waits_once() {
        let (entry, ready, starting) = started();
        let count = Arc::new(Count::default());
        let mut starting = pin!(starting);
        let waker = Waker::from(count.clone());
        let mut context = Context::from_waker(&waker);
        assert!(starting.as_mut().poll(&mut context).is_pending());
        assert!(starting.as_mut().poll(&mut context).is_pending());
        ready.set(5);
        assert_eq!(count.wakes(), 1);
        let Poll::Ready(Ok((5, mut task))) = starting.as_mut().poll(&mut context) else {
            panic!("not ready")
        };
        assert!(entry.run());
        assert!(matches!(task.outcome(), Some(Ok(3))));
    }

    #[test]
    fn the_end_wakes_who_waits_once() {
        let (entry, _ready, starting) = started();
        let count = Arc::new(Count::default());
        let mut starting = pin!(starting);
        let waker = Waker::from(count.clone());
        let mut context = Context::from_waker(&waker);
        assert!(starting.as_mut().poll(&mut context).is_pending());
        assert!(entry.run());
        assert_eq!(count.wakes(), 1);
        let polled = starting.as_mut().poll(&mut context);
        assert!(matches!(polled, Poll::Ready(Err(NotReady::Ended(Ok(3))))));
    }

    #[test]
    fn only_the_last_waker_is_woken() {
        let (entry, ready, mut starting) = started();
        let counts = [(); 2].map(|()| Arc::new(Count::default()));
        for count in &counts {
            let waker = Waker::from(count.clone());
            assert!(Pin::new(&mut starting).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        ready.set(5);
        assert_eq!(counts.map(|count| count.wakes()), [0, 1]);
        assert!(entry.run());
    }

    #[test]
    fn a_drop_cancels_the_task() {
        let (entry, ready, starting) = started();
        let task = starting.task.as_ref().unwrap().to_ref();
        drop(starting);
        assert!(task.word.load().state().in_cancel_lane());
        ready.set(1);
        assert!(entry.run());
    }
}
