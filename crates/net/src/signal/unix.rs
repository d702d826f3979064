//! Signals of Unix, through a socket pair: the handler writes a byte for each signal.

use std::fmt;
use std::io::ErrorKind;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_runtime::{CancelSafe, Cx};
use signal_hook::SigId;
use signal_hook::consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::{pipe, signal_name, unregister};

use crate::UnixStream;
use crate::io;
use crate::op::ReadOp;

/// A kind of signal, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignalKind(i32);

impl SignalKind {
    /// `SIGALRM`.
    pub const ALARM: SignalKind = SignalKind(SIGALRM);
    /// `SIGCHLD`: a child process has ended or stopped.
    pub const CHILD: SignalKind = SignalKind(SIGCHLD);
    /// `SIGHUP`: the terminal was closed; daemons reload their configuration.
    pub const HANGUP: SignalKind = SignalKind(SIGHUP);
    /// `SIGINT`: Ctrl-C.
    pub const INTERRUPT: SignalKind = SignalKind(SIGINT);
    /// `SIGQUIT`: Ctrl-\.
    pub const QUIT: SignalKind = SignalKind(SIGQUIT);
    /// `SIGTERM`: a request to terminate.
    pub const TERMINATE: SignalKind = SignalKind(SIGTERM);
    /// `SIGUSR1`.
    pub const USER_1: SignalKind = SignalKind(SIGUSR1);
    /// `SIGUSR2`.
    pub const USER_2: SignalKind = SignalKind(SIGUSR2);

    /// Creates a kind from a signal number of the operating system. [`listen`] checks whether it
    /// can be received.
    pub const fn from_raw(number: i32) -> SignalKind {
        SignalKind(number)
    }

    /// Returns the signal number.
    pub const fn as_raw(self) -> i32 {
        self.0
    }
}

impl fmt::Debug for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match signal_name(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "signal {}", self.0),
        }
    }
}

/// Receives signals of a kind from now on. The default action of the signal is disabled, also after
/// the [`Signal`] is dropped.
///
/// # Errors
/// [`InvalidInput`](ErrorKind::InvalidInput) for a signal that cannot be received (`SIGKILL`,
/// `SIGSTOP`), that reports a fault of the program (`SIGSEGV`, `SIGILL`, `SIGFPE`), or that does
/// not exist. Otherwise the error of the operating system, for example if no descriptor is free.
pub fn listen(cx: &Cx, kind: SignalKind) -> std::io::Result<Signal> {
    // `pipe::register` panics for these signals.
    if signal_hook::consts::FORBIDDEN.contains(&kind.0) {
        let text = format!("{kind:?} cannot be received");
        return Err(std::io::Error::new(ErrorKind::InvalidInput, text));
    }
    let (ours, written) = std::os::unix::net::UnixStream::pair()?;
    match UnixStream::from_std(cx, ours) {
        Ok(stream) => {
            let registered = pipe::register(kind.0, written)?;
            Ok(Signal { stream, source: Source::System(registered), kind, buffer: [0; BUFFER] })
        }
        // The network is simulated: no signal ever arrives.
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            let (stream, silent) = UnixStream::pair(cx)?;
            Ok(Signal { stream, source: Source::Silent(silent), kind, buffer: [0; BUFFER] })
        }
        Err(error) => Err(error),
    }
}

/// The number of pending signals that one receive combines.
const BUFFER: usize = 64;

/// A receiver for signals of one kind; created by [`listen`].
pub struct Signal {
    /// The handler writes a byte for each signal. If the buffer is full, the byte is dropped: a
    /// signal is pending already.
    stream: UnixStream,
    #[cfg_attr(
        not(feature = "stream"),
        expect(dead_code, reason = "dropping it ends the registration")
    )]
    source: Source,
    kind: SignalKind,
    buffer: [u8; BUFFER],
}

enum Source {
    /// The signal handler of the process.
    System(SigId),
    /// The other end of the stream in the lab, kept open so that the stream does not end.
    #[expect(dead_code, reason = "it is only kept open")]
    Silent(UnixStream),
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Source::System(registered) = self {
            unregister(*registered);
        }
    }
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
        Recv(self.stream.read(cx, &mut self.buffer))
    }

    /// Returns the kind.
    pub fn kind(&self) -> SignalKind {
        self.kind
    }

    /// Converts the receiver to a stream. A cancellation is its last item.
    #[cfg(feature = "stream")]
    #[track_caller]
    pub fn into_stream(self, cx: &Cx) -> Signals {
        let Signal { stream, source, kind, buffer } = self;
        Signals { bound: stream.bound(cx), has_ended: false, buffer, kind, _source: source }
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signal").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The future of [`Signal::recv`]; gives `io::Result<()>`.
#[must_use = "futures do nothing unless awaited"]
pub struct Recv<'a>(ReadOp<'a>);

impl Future for Recv<'_> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(read.map(drop))
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
    bound: crate::Bound<UnixStream>,
    has_ended: bool,
    buffer: [u8; BUFFER],
    kind: SignalKind,
    _source: Source,
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Signals {
    type Item = io::Result<()>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Signals { bound, has_ended, buffer, .. } = &mut *self;
        if *has_ended {
            return Poll::Ready(None);
        }
        let read = futures_io::AsyncRead::poll_read(Pin::new(bound), context, buffer);
        let came = ready!(read).map(drop).map_err(io::Error::from);
        *has_ended = came.is_err();
        Poll::Ready(Some(came))
    }
}

#[cfg(feature = "stream")]
impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").field("kind", &self.kind).finish_non_exhaustive()
    }
}
