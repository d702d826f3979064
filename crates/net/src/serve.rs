//! Servers: a task for each connection, and an orderly shutdown.
//!
//! ```text
//!   stop request (cx.stopping)        cancellation            end of the grace period
//!     no more connections accepted      handlers observe it     remaining handlers are aborted
//!     the listener is closed            and clean up
//!     handlers finish
//! ```
//!
//! [`Scope::stop_within`] and a shutdown of the runtime make these steps.
//!
//! A handler that waits for its next request also waits for [`Cx::stopping`], as in the example of
//! this crate. On a stop request, idle connections are closed immediately and busy ones after they
//! have answered their request.

use std::fmt;
use std::future::Future;
use std::io::{Error as IoError, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use asx_runtime::{Cx, Policy, Scope, TaskError, select};

use crate::io::{Error, Lossless, Result};
use crate::{TcpListener, TcpStream};

/// A source of connections: a [`TcpListener`], a `UnixListener`, or a custom one.
///
/// ```
/// use asx::net::{Listener, TcpListener, TcpStream};
/// use asx::{Cx, io};
///
/// /// Accepts connections with `TCP_NODELAY`.
/// struct NoDelay(TcpListener);
///
/// impl Listener for NoDelay {
///     type Stream = TcpStream;
///     type Peer = std::net::SocketAddr;
///
///     async fn accept(&self, cx: &Cx) -> io::Result<(Self::Stream, Self::Peer)> {
///         let (stream, peer) = self.0.accept(cx).await?;
///         stream.set_nodelay(true)?;
///         Ok((stream, peer))
///     }
/// }
/// ```
pub trait Listener: Send {
    /// The type of the connections.
    type Stream: Send + 'static;
    /// The type of the addresses of peers.
    type Peer: Send + 'static;

    /// Waits for the next connection.
    ///
    /// # Errors
    /// The error of the operating system, which [`AcceptFailure`] classifies, or the cancellation.
    ///
    /// # Cancel safety
    /// Implementations must be cancel-safe: an accept that is cancelled or dropped has taken no
    /// connection.
    fn accept(&self, cx: &Cx) -> impl Future<Output = Result<(Self::Stream, Self::Peer)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    type Peer = std::net::SocketAddr;

    async fn accept(&self, cx: &Cx) -> Result<(TcpStream, std::net::SocketAddr)> {
        TcpListener::accept(self, cx).await
    }
}

#[cfg(unix)]
impl Listener for crate::UnixListener {
    type Stream = crate::UnixStream;
    type Peer = crate::UnixAddr;

    async fn accept(&self, cx: &Cx) -> Result<(crate::UnixStream, crate::UnixAddr)> {
        crate::UnixListener::accept(self, cx).await
    }
}

/// The class of an accept error: whether later accepts can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcceptFailure {
    /// An error of one connection, which is closed. The next accept may succeed.
    Connection,
    /// No descriptor or no memory is free. The connection is still in the backlog; accept again
    /// after a pause.
    Exhausted,
    /// The listener can accept no more connections.
    Fatal,
}

impl AcceptFailure {
    /// Classifies an error.
    pub fn of(error: &IoError) -> AcceptFailure {
        match error.kind() {
            ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionRefused
            | ErrorKind::NetworkDown
            | ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
            | ErrorKind::Interrupted
            | ErrorKind::TimedOut => AcceptFailure::Connection,
            ErrorKind::OutOfMemory | ErrorKind::QuotaExceeded => AcceptFailure::Exhausted,
            _ => AcceptFailure::of_number(error.raw_os_error()),
        }
    }

    /// Classifies an error that the standard library has no kind for.
    #[cfg(unix)]
    fn of_number(number: Option<i32>) -> AcceptFailure {
        match number {
            // ENOSPC: the limit of epoll registrations of this user is reached.
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOSPC) => {
                AcceptFailure::Exhausted
            }
            // Errors of the network, which Linux reports by `accept`.
            Some(libc::EPROTO | libc::EPERM | libc::ENOPROTOOPT) => AcceptFailure::Connection,
            _ => AcceptFailure::Fatal,
        }
    }

    /// Classifies an error that the standard library has no kind for.
    #[cfg(windows)]
    fn of_number(number: Option<i32>) -> AcceptFailure {
        const WSAEMFILE: i32 = 10_024;
        const WSAENOBUFS: i32 = 10_055;
        match number {
            Some(WSAEMFILE | WSAENOBUFS) => AcceptFailure::Exhausted,
            _ => AcceptFailure::Fatal,
        }
    }
}

/// The counts of a server; returned by [`serve`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeReport {
    /// The number of accepted connections.
    pub accepted: u64,
    /// The number of handlers that succeeded.
    pub completed: u64,
    /// The number of handlers that returned an error other than a cancellation.
    pub failed: u64,
    /// The number of handlers that returned a cancellation.
    pub cancelled: u64,
    /// The number of handlers that panicked, could not be started or were aborted.
    pub aborted: u64,
    /// The number of failed accepts, of both temporary classes of [`AcceptFailure`].
    pub accept_errors: u64,
    /// The number of times that descriptors or memory ran out. Failed accepts in a row count once.
    pub exhaustions: u64,
}

/// An event of a running server; see [`Server::on_event`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeEvent<'a> {
    /// No descriptor or no memory is free. The server retries; further failures are not reported
    /// until an accept has succeeded.
    Exhausted(&'a IoError),
    /// A connection was accepted after the server was exhausted.
    Recovered {
        /// The number of failed accepts.
        failures: u64,
    },
}

/// A server with options; [`serve`] runs one with the defaults.
///
/// ```
/// use asx::net::{ServeEvent, ServeReport, Server, TcpListener};
/// use asx::{Cx, io};
///
/// async fn run(cx: &Cx, listener: TcpListener) -> io::Result<ServeReport> {
///     let server = Server::new(listener).on_event(|event| match event {
///         ServeEvent::Exhausted(error) => eprintln!("cannot accept connections: {error}"),
///         ServeEvent::Recovered { failures } => eprintln!("accepting again after {failures}"),
///         _ => {}
///     });
///     server.serve(cx, |cx, mut stream, _peer| async move {
///         Ok(stream.write_all(&cx, b"hello\n").await?)
///     }).await
/// }
/// ```
#[must_use = "call `serve` to run the server"]
pub struct Server<L> {
    listener: L,
    on_event: Option<EventHandler>,
}

/// The callback for events.
type EventHandler = Box<dyn FnMut(ServeEvent<'_>) + Send>;

/// Accepts connections and runs `handler` in a task for each, until a stop request
/// ([`Cx::stopping`]). It then closes the listener, waits until all handlers have ended, and
/// returns their counts.
///
/// An error of a handler ends only this handler and is counted. If no descriptor is free, the
/// server pauses (1 ms, doubled after each failure up to 1 s) and continues. The documentation of
/// the crate has an [example](crate).
///
/// # Errors
/// The cancellation, which the handlers also observe, or the error of a listener that can accept no
/// more connections ([`AcceptFailure::Fatal`]).
///
/// # Cancel safety
/// Not cancel-safe: a cancelled call cancels its handlers and returns no counts.
pub async fn serve<L, H, F>(cx: &Cx, listener: L, handler: H) -> Result<ServeReport>
where
    L: Listener,
    H: Fn(Cx, L::Stream, L::Peer) -> F + Send,
    F: Future<Output = Result<()>> + Send + 'static,
{
    Server::new(listener).serve(cx, handler).await
}

impl<L: Listener> Server<L> {
    /// Creates a server that accepts connections from `listener`.
    pub fn new(listener: L) -> Server<L> {
        Server { listener, on_event: None }
    }

    /// Sets a callback for events.
    pub fn on_event(mut self, callback: impl FnMut(ServeEvent<'_>) + Send + 'static) -> Server<L> {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Accepts connections and runs `handler` in a task for each; see [`serve`].
    ///
    /// # Errors
    /// As [`serve`].
    ///
    /// # Cancel safety
    /// Not cancel-safe, as [`serve`].
    pub async fn serve<H, F>(self, cx: &Cx, handler: H) -> Result<ServeReport>
    where
        H: Fn(Cx, L::Stream, L::Peer) -> F + Send,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let counts = Arc::new(Counts::default());
        let all = counts.clone();
        let body = |scope: Scope<Error>| self.accept_all(cx, scope, handler, all);
        match cx.scope_with(Policy::CollectAll).run(body).await {
            Ok(()) => Ok(counts.report()),
            Err(TaskError::Err(error)) => Err(error),
            Err(TaskError::Cancelled(cancelled)) => Err(cancelled.into()),
            Err(TaskError::Panicked(panic)) => panic.resume(),
        }
    }

    /// Accepts connections until a stop request, then closes the listener.
    async fn accept_all<H, F>(
        self,
        cx: &Cx,
        scope: Scope<Error>,
        handler: H,
        counts: Arc<Counts>,
    ) -> Result<()>
    where
        H: Fn(Cx, L::Stream, L::Peer) -> F + Send,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let Server { listener, mut on_event } = self;
        let mut emit = |event: ServeEvent<'_>| {
            if let Some(on_event) = &mut on_event {
                on_event(event);
            }
        };
        let mut streak = Streak::default();
        loop {
            let accepted = select! {
                stopping = cx.stopping() => return Ok(stopping?),
                accepted = Lossless::new(listener.accept(cx)) => accepted,
            };
            let error = match accepted {
                Ok((stream, peer)) => {
                    if let Some(failures) = streak.end() {
                        emit(ServeEvent::Recovered { failures });
                    }
                    counts.accepted.fetch_add(1, Relaxed);
                    let counts = counts.clone();
                    scope.spawn(|cx| counts.watch(handler(cx, stream, peer)));
                    continue;
                }
                Err(Error::Cancelled(cancelled)) => return Err(cancelled.into()),
                Err(Error::Io(error)) => error,
            };
            match AcceptFailure::of(&error) {
                AcceptFailure::Fatal => return Err(error.into()),
                AcceptFailure::Connection => drop(counts.accept_errors.fetch_add(1, Relaxed)),
                AcceptFailure::Exhausted => {
                    counts.accept_errors.fetch_add(1, Relaxed);
                    if streak.failures == 0 {
                        counts.exhaustions.fetch_add(1, Relaxed);
                        emit(ServeEvent::Exhausted(&error));
                    }
                    select! {
                        stopping = cx.stopping() => return Ok(stopping?),
                        slept = cx.sleep(streak.pause()) => slept?,
                    }
                }
            }
        }
    }
}

impl<L: fmt::Debug> fmt::Debug for Server<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// The first and the longest pause after descriptors have run out.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Consecutive accepts that failed because descriptors or memory ran out.
#[derive(Debug, Default)]
struct Streak {
    failures: u64,
}

impl Streak {
    /// Counts a failure and returns the pause before the next accept.
    fn pause(&mut self) -> Duration {
        let doublings = u32::try_from(self.failures.min(10)).unwrap_or(10);
        self.failures += 1;
        LONGEST_PAUSE.min(PAUSE * (1 << doublings))
    }

    /// Ends the streak and returns its number of failures, or `None` if there were none.
    fn end(&mut self) -> Option<u64> {
        let failures = std::mem::take(&mut self.failures);
        (failures > 0).then_some(failures)
    }
}

/// The counters of a running server.
#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    accept_errors: AtomicU64,
    exhaustions: AtomicU64,
}

impl Counts {
    /// Runs a handler and counts its result.
    async fn watch(self: Arc<Self>, handler: impl Future<Output = Result<()>>) -> Result<()> {
        let ended = handler.await;
        let count = match &ended {
            Ok(()) => &self.completed,
            Err(Error::Cancelled(_)) => &self.cancelled,
            Err(Error::Io(_)) => &self.failed,
        };
        count.fetch_add(1, Relaxed);
        ended
    }

    /// Returns the counts after all handlers have ended.
    fn report(&self) -> ServeReport {
        let accepted = self.accepted.load(Relaxed);
        let completed = self.completed.load(Relaxed);
        let failed = self.failed.load(Relaxed);
        let cancelled = self.cancelled.load(Relaxed);
        ServeReport {
            accepted,
            completed,
            failed,
            cancelled,
            aborted: accepted - completed - failed - cancelled,
            accept_errors: self.accept_errors.load(Relaxed),
            exhaustions: self.exhaustions.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streak_pauses_double_up_to_a_second_and_restart_after_a_success() {
        let mut streak = Streak::default();
        let pauses: Vec<_> = (0..12).map(|_| streak.pause().as_millis()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
        assert_eq!(streak.end(), Some(12));
        assert_eq!(streak.end(), None);
        assert_eq!(streak.pause(), PAUSE);
    }

    #[cfg(unix)]
    #[test]
    fn accept_failure_classifies_errors_by_number() {
        let of = |number| AcceptFailure::of(&IoError::from_raw_os_error(number));
        assert_eq!(of(libc::EMFILE), AcceptFailure::Exhausted);
        assert_eq!(of(libc::ENFILE), AcceptFailure::Exhausted);
        assert_eq!(of(libc::ENOMEM), AcceptFailure::Exhausted);
        assert_eq!(of(libc::ENOSPC), AcceptFailure::Exhausted);
        assert_eq!(of(libc::ECONNABORTED), AcceptFailure::Connection);
        assert_eq!(of(libc::EBADF), AcceptFailure::Fatal);
        assert_eq!(of(libc::EINVAL), AcceptFailure::Fatal);
    }
}
