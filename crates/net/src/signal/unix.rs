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
    /// `SIGHUP`: the terminal is gone; daemons read their settings again.
    pub const HANGUP: SignalKind = SignalKind(SIGHUP);
    /// `SIGINT`: Ctrl-C.
    pub const INTERRUPT: SignalKind = SignalKind(SIGINT);
    /// `SIGQUIT`: Ctrl-\.
    pub const QUIT: SignalKind = SignalKind(SIGQUIT);
    /// `SIGTERM`: a request to end.
    pub const TERMINATE: SignalKind = SignalKind(SIGTERM);
    /// `SIGUSR1`.
    pub const USER_1: SignalKind = SignalKind(SIGUSR1);
    /// `SIGUSR2`.
    pub const USER_2: SignalKind = SignalKind(SIGUSR2);

    /// The kind with this number of the operating system. Whether it can be heard is found out by
    /// [`listen`].
    pub const fn from_raw(number: i32) -> SignalKind {
        SignalKind(number)
    }

    /// Its number.
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

/// Hears signals of a kind from now on. What the system did by default when one came it no longer
/// does, not even once the [`Signal`] is dropped.
///
/// # Errors
/// [`InvalidInput`](ErrorKind::InvalidInput) for a kind that no program can hear (`SIGKILL`,
/// `SIGSTOP`), that tells of a fault of the program itself (`SIGSEGV`, `SIGILL`, `SIGFPE`), or that
/// there is not. The system may have no descriptor to spare.
pub fn listen(cx: &Cx, kind: SignalKind) -> std::io::Result<Signal> {
    // Unlike `SIGKILL`, of which the system says so, these would be a panic of what is below.
    if signal_hook::consts::FORBIDDEN.contains(&kind.0) {
        let text = format!("{kind:?} cannot be heard");
        return Err(std::io::Error::new(ErrorKind::InvalidInput, text));
    }
    let (ours, written) = std::os::unix::net::UnixStream::pair()?;
    match UnixStream::from_std(cx, ours) {
        Ok(stream) => {
            let registered = pipe::register(kind.0, written)?;
            Ok(Signal { stream, source: Source::System(registered), kind, buffer: [0; BUFFER] })
        }
        // A network that is simulated: so are signals, of which there are none.
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            let (stream, silent) = UnixStream::pair(cx)?;
            Ok(Signal { stream, source: Source::Nobody(silent), kind, buffer: [0; BUFFER] })
        }
        Err(error) => Err(error),
    }
}

/// As many signals are one when they are asked for.
const BUFFER: usize = 64;

/// Hears signals of one kind; made by [`listen`].
pub struct Signal {
    /// A byte comes for each signal. If it is full there is one to be heard of already.
    stream: UnixStream,
    #[cfg_attr(
        not(feature = "stream"),
        expect(dead_code, reason = "it hears until it is dropped")
    )]
    source: Source,
    kind: SignalKind,
    buffer: [u8; BUFFER],
}

enum Source {
    /// The operating system.
    System(SigId),
    /// Nobody: the other end of the stream, which is kept so that the stream does not end.
    #[expect(dead_code, reason = "it is open for as long as this is there")]
    Nobody(UnixStream),
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Source::System(registered) = self {
            unregister(*registered);
        }
    }
}

impl Signal {
    /// Waits for the next signal. Dropping the future misses none.
    #[track_caller]
    pub fn recv<'a>(&'a mut self, cx: &'a Cx) -> Recv<'a> {
        Recv(self.stream.read(cx, &mut self.buffer))
    }

    /// Its kind.
    pub fn kind(&self) -> SignalKind {
        self.kind
    }

    /// The signals as a stream. A cancel is its last item.
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

/// Signals as a stream; made by [`Signal::into_stream`]. Items are `io::Result<()>`.
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
