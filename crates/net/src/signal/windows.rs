//! Console events of Windows: the host calls back, and the callback wakes the waiting task.

use std::fmt;
use std::io::ErrorKind;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use asx_runtime::net::{ConsoleEvent, ConsoleNotify};
use asx_runtime::operation::{Registration, Wait, guard};
use asx_runtime::{CancelSafe, Cx};

use crate::io;
use crate::lookup::network;

/// A kind of signal: a key that the console turns into an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalKind(ConsoleEvent);

impl SignalKind {
    /// Ctrl-C.
    pub const INTERRUPT: SignalKind = SignalKind(ConsoleEvent::CtrlC);
    /// Ctrl-Break.
    pub const BREAK: SignalKind = SignalKind(ConsoleEvent::CtrlBreak);
}

/// Receives signals of a kind from now on. The event no longer terminates the process, also after
/// the [`Signal`] is dropped.
///
/// # Errors
/// The error of the operating system if no console handler can be installed.
pub fn listen(cx: &Cx, kind: SignalKind) -> std::io::Result<Signal> {
    let inbox = Arc::new(Inbox::default());
    let delivered = inbox.clone();
    let notify: Arc<dyn Fn() + Send + Sync> = Arc::new(move || delivered.deliver());
    let weak: ConsoleNotify = Arc::downgrade(&notify);
    match network(cx)?.on_console_event(kind.0, weak) {
        // A simulated network: no signal ever arrives.
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        registered => registered?,
    }
    Ok(Signal { inbox, kind, _notify: notify })
}

/// The state shared with the console handler.
#[derive(Default)]
struct Inbox(Mutex<State>);

#[derive(Default)]
struct State {
    /// True if an event arrived since the last one was received.
    has_event: bool,
    /// The waker of the waiting task.
    waker: Option<Waker>,
}

impl Inbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an event and wakes the waiting task.
    fn deliver(&self) {
        let waker = {
            let mut state = self.state();
            state.has_event = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            guard::wake(waker);
        }
    }

    /// Takes the event, or leaves the waker to be woken by the next one.
    fn poll(&self, waker: &Waker) -> Poll<()> {
        // Wakers are cloned and dropped outside the lock.
        let mut waker = Some(waker.clone());
        let mut state = self.state();
        let has_event = std::mem::take(&mut state.has_event);
        if !has_event {
            std::mem::swap(&mut state.waker, &mut waker);
        }
        drop(state);
        guard::drop_waker(waker);
        if has_event { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Removes the waker of a wait that has ended.
    fn leave(&self) {
        let waker = self.state().waker.take();
        guard::drop_waker(waker);
    }
}

/// A receiver for signals of one kind; created by [`listen`].
pub struct Signal {
    inbox: Arc<Inbox>,
    kind: SignalKind,
    /// The console handler holds a weak reference: dropping this ends the delivery.
    _notify: Arc<dyn Fn() + Send + Sync>,
}

impl Signal {
    /// Waits for the next signal.
    ///
    /// # Errors
    /// The cancellation.
    ///
    /// # Cancel safety
    /// Cancel-safe: dropping the future misses no signal.
    #[track_caller]
    pub fn recv<'a>(&'a mut self, cx: &'a Cx) -> Recv<'a> {
        Recv { cx, inbox: &self.inbox, waiter: EventWaiter::new() }
    }

    /// Returns the kind.
    pub fn kind(&self) -> SignalKind {
        self.kind
    }

    /// Converts the receiver to a stream. A cancellation is its last item.
    #[cfg(feature = "stream")]
    #[track_caller]
    pub fn into_stream(self, cx: &Cx) -> Signals {
        Signals { signal: self, cx: cx.clone(), waiter: EventWaiter::new(), has_ended: false }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The wait of a task for an event.
struct EventWaiter {
    registration: Registration,
    /// The line that dumps name.
    at: &'static Location<'static>,
}

impl EventWaiter {
    #[track_caller]
    fn new() -> EventWaiter {
        EventWaiter { registration: Registration::default(), at: Location::caller() }
    }

    fn poll(&mut self, cx: &Cx, inbox: &Inbox, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let proceeds = ready!(cx.poll_proceed(context, &mut self.registration));
        if let Err(cancelled) = proceeds {
            self.leave(inbox);
            return Poll::Ready(Err(cancelled.into()));
        }
        match inbox.poll(context.waker()) {
            Poll::Ready(()) => {
                self.leave(inbox);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => {
                cx.waits(Wait::Signal, self.at, context.waker(), &mut self.registration);
                Poll::Pending
            }
        }
    }

    fn leave(&mut self, inbox: &Inbox) {
        self.registration = Registration::default();
        inbox.leave();
    }
}

/// The future of [`Signal::recv`]; gives `io::Result<()>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a> {
    cx: &'a Cx,
    inbox: &'a Inbox,
    waiter: EventWaiter,
}

impl Future for Recv<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Recv { cx, inbox, waiter } = &mut *self;
        waiter.poll(cx, inbox, context)
    }
}

impl Drop for Recv<'_> {
    fn drop(&mut self) {
        self.waiter.leave(self.inbox);
    }
}

impl CancelSafe for Recv<'_> {}

impl fmt::Debug for Recv<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}

/// A stream of signals; created by [`Signal::into_stream`]. Items are `io::Result<()>`.
#[cfg(feature = "stream")]
#[must_use = "streams do nothing unless polled"]
pub struct Signals {
    signal: Signal,
    cx: Cx,
    waiter: EventWaiter,
    has_ended: bool,
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Signals {
    type Item = io::Result<()>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Signals { signal, cx, waiter, has_ended } = &mut *self;
        if *has_ended {
            return Poll::Ready(None);
        }
        let received = ready!(waiter.poll(cx, &signal.inbox, context));
        *has_ended = received.is_err();
        Poll::Ready(Some(received))
    }
}

#[cfg(feature = "stream")]
impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").field("kind", &self.signal.kind).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::listen;
    use asx_kernel::cancel::Kind;
    use asx_native::Runtime;
    use std::time::Duration;

    #[test]
    fn events_before_a_recv_are_received_as_one() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let received: io::Result<()> = runtime.block_on(async |cx: Cx| {
            let mut signal = listen(&cx, SignalKind::BREAK)?;
            signal.inbox.deliver();
            signal.inbox.deliver();
            signal.recv(&cx).await?;
            let moment = Duration::from_millis(1);
            let late = cx.timeout(moment, async |cx| signal.recv(cx).await).await;
            assert!(matches!(late, Err(io::Error::Cancelled(why)) if why.kind() == Kind::Timeout));
            assert!(signal.inbox.state().waker.is_none(), "the cancelled wait is removed");
            Ok(())
        });
        received.unwrap();
    }

    #[test]
    fn event_of_another_thread_wakes_the_waiting_task() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let received: io::Result<()> = runtime.block_on(async |cx: Cx| {
            let mut signal = listen(&cx, SignalKind::INTERRUPT)?;
            let inbox = signal.inbox.clone();
            let thread = std::thread::spawn(move || {
                while inbox.state().waker.is_none() {
                    std::thread::yield_now();
                }
                inbox.deliver();
            });
            signal.recv(&cx).await?;
            thread.join().unwrap();
            Ok(())
        });
        received.unwrap();
    }
}
