//! A server: a task for each connection, and an end in order.
//!
//! ```text
//!   told to stop (cx.stopping)      cancelled             the end of its patience
//!     no more connections taken       handlers see it       what is left is ended by force
//!     the listener is closed          and clean up
//!     handlers finish
//! ```
//!
//! [`Scope::stop_within`] and a shutdown of the runtime make these steps.
//!
//! A handler that waits for its next request watches [`Cx::stopping`] beside the read, as in the
//! example of this crate: an idle connection is closed when the server is told, a busy one when its
//! request is answered.

use std::fmt;
use std::future::Future;
use std::io::{Error as IoError, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use asx_runtime::{Cx, Policy, Scope, TaskError, select};

use crate::io::{Error, Lossless, Result};
use crate::{TcpListener, TcpStream};

/// What gives connections: a [`TcpListener`], a `UnixListener`, or one of your own.
pub trait Listener: Send {
    /// A connection.
    type Stream: Send + 'static;
    /// Where it comes from.
    type Peer: Send + 'static;

    /// The next connection.
    ///
    /// An accept that is cancelled, or whose future is dropped before it is done, has taken none.
    /// Whoever implements this keeps that promise.
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

/// What an error of an accept means for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcceptFailure {
    /// It was about one connection, which is gone: the next accept may succeed.
    Connection,
    /// There are no descriptors or no memory to spare: the connection still waits, and so should
    /// whoever accepts.
    Exhausted,
    /// The listener is of no use any more.
    Fatal,
}

impl AcceptFailure {
    /// What this error means.
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

    /// Errors that the standard library has no kind for.
    #[cfg(unix)]
    fn of_number(number: Option<i32>) -> AcceptFailure {
        match number {
            // The last: the system watches no more sockets for this user.
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOSPC) => {
                AcceptFailure::Exhausted
            }
            // The system hands on errors of the network that the connection came by.
            Some(libc::EPROTO | libc::EPERM | libc::ENOPROTOOPT) => AcceptFailure::Connection,
            _ => AcceptFailure::Fatal,
        }
    }

    /// Errors that the standard library has no kind for.
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

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeReport {
    /// Connections that were taken.
    pub accepted: u64,
    /// Handlers that ended well.
    pub completed: u64,
    /// Handlers that ended with an error of their own.
    pub failed: u64,
    /// Handlers that ended because they were cancelled.
    pub cancelled: u64,
    /// Handlers that panicked, were refused or ended by force.
    pub aborted: u64,
    /// Accepts that failed: with a connection that was gone, or for want of descriptors.
    pub accept_errors: u64,
    /// How often descriptors ran out, whatever number of accepts that has failed.
    pub exhaustions: u64,
}

/// What a server tells while it runs; see [`Server::on_event`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ServeEvent<'a> {
    /// There are no descriptors or no memory to spare. The server tries again after a while; this
    /// is said once until it has succeeded.
    Exhausted(&'a IoError),
    /// A connection was taken again, after so many failures.
    Recovered {
        /// How many accepts have failed.
        failures: u64,
    },
}

/// A server with settings; [`serve`] is one without.
#[must_use = "run it"]
pub struct Server<L> {
    listener: L,
    on_event: Option<EventHandler>,
}

/// Who is told of events.
type EventHandler = Box<dyn FnMut(ServeEvent<'_>) + Send>;

/// Takes connections and runs `handler` in a task for each, until the task is told to stop
/// ([`Cx::stopping`]). Then it takes no more, closes the listener, waits until all handlers have
/// ended, and says what it has done.
///
/// The error of a handler ends that handler alone, and is counted. Where there are no descriptors
/// to spare it waits (1 ms, then twice as long each time, up to 1 s) and goes on.
///
/// # Errors
/// The task was asked to stop, and so were the handlers; or the listener is of no use any more.
pub async fn serve<L, H, F>(cx: &Cx, listener: L, handler: H) -> Result<ServeReport>
where
    L: Listener,
    H: Fn(Cx, L::Stream, L::Peer) -> F + Send,
    F: Future<Output = Result<()>> + Send + 'static,
{
    Server::new(listener).serve(cx, handler).await
}

impl<L: Listener> Server<L> {
    /// A server that takes connections from `listener`.
    pub fn new(listener: L) -> Server<L> {
        Server { listener, on_event: None }
    }

    /// Has events told.
    pub fn on_event(mut self, tell: impl FnMut(ServeEvent<'_>) + Send + 'static) -> Server<L> {
        self.on_event = Some(Box::new(tell));
        self
    }

    /// Serves; see [`serve`].
    ///
    /// # Errors
    /// As [`serve`].
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

    /// Takes connections until the task is told to stop. The listener is closed at the end.
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
        let mut tell = |event: ServeEvent<'_>| {
            if let Some(on_event) = &mut on_event {
                on_event(event);
            }
        };
        let mut streak = Streak::default();
        loop {
            let accepted = select! {
                told = cx.stopping() => return Ok(told?),
                accepted = Lossless::new(listener.accept(cx)) => accepted,
            };
            let error = match accepted {
                Ok((stream, peer)) => {
                    if let Some(failures) = streak.end() {
                        tell(ServeEvent::Recovered { failures });
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
                        tell(ServeEvent::Exhausted(&error));
                    }
                    select! {
                        told = cx.stopping() => return Ok(told?),
                        over = cx.sleep(streak.pause()) => over?,
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

/// How long to wait when descriptors run out, at first and at most.
const PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Failures one after the other for want of descriptors.
#[derive(Debug, Default)]
struct Streak {
    failures: u64,
}

impl Streak {
    /// Another failure: how long to wait.
    fn pause(&mut self) -> Duration {
        let doublings = u32::try_from(self.failures.min(10)).unwrap_or(10);
        self.failures += 1;
        LONGEST_PAUSE.min(PAUSE * (1 << doublings))
    }

    /// A success: how many failures there were, if any.
    fn end(&mut self) -> Option<u64> {
        let failures = std::mem::take(&mut self.failures);
        (failures > 0).then_some(failures)
    }
}

/// What becomes a [`ServeReport`].
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
    /// Runs a handler and counts how it ends.
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

    /// When all handlers have ended.
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
    fn pauses_double_up_to_a_second_and_begin_again_after_a_success() {
        let mut streak = Streak::default();
        let pauses: Vec<_> = (0..12).map(|_| streak.pause().as_millis()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000]);
        assert_eq!(streak.end(), Some(12));
        assert_eq!(streak.end(), None);
        assert_eq!(streak.pause(), PAUSE);
    }

    #[cfg(unix)]
    #[test]
    fn what_a_failed_accept_means() {
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
