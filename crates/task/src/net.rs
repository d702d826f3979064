//! The seam to a host's network: what sockets are made of, whatever the host.
//!
//! A host that has a network answers [`Host::net`](crate::Host::net). Its [`Socket`]s never wait:
//! each operation is tried at once and answers [`WouldBlock`](io::ErrorKind::WouldBlock) if it
//! cannot be done now. Who has to wait asks [`poll_ready`](Socket::poll_ready) to be woken. All the
//! rest, cancels, budgets and what dumps tell, is written once above this, for all hosts.
//!
//! ```text
//! loop:  poll_ready(direction) -> Pending: the waker is woken when it is worth to try
//!                              -> Ready(seen)
//!        try the operation     -> done; if it moved less than requested, clear_after_short(..)
//!                              -> WouldBlock: clear_ready(direction, seen), and again
//! ```

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

pub use asx_kernel::io::Opening;

#[cfg(feature = "lab")]
thread_local! {
    static ATTEMPTED: std::cell::Cell<Option<&'static Location<'static>>> =
        const { std::cell::Cell::new(None) };
}

/// Notes the place of the operation whose attempt follows on this thread, for reports of the lab.
#[cfg_attr(not(feature = "lab"), inline(always))]
pub fn attempts_at(_at: &'static Location<'static>) {
    #[cfg(feature = "lab")]
    ATTEMPTED.set(Some(_at));
}

/// The place of the operation that was last [attempted](attempts_at) on this thread.
#[cfg(feature = "lab")]
pub fn attempted_at() -> Option<&'static Location<'static>> {
    ATTEMPTED.get()
}

/// Which way an operation moves bytes. To accept is to read, to connect is to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the peer.
    Read,
    /// To the peer.
    Write,
}

/// The room that a system has for the name of a unix socket; that of a file ends with a zero byte.
const LONGEST_PATH: usize = 108;

/// Where a socket is, or its peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An address of the internet, and a port.
    Inet(SocketAddr),
    /// A name in the file system, or one that begins with a zero byte and is not there; `None` for
    /// a socket without one.
    Unix(Option<PathBuf>),
}

impl Address {
    /// The address of the internet, if it is one.
    pub fn inet(&self) -> Option<SocketAddr> {
        match self {
            Address::Inet(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    /// Whether a socket can be made for it: hosts ask before they make one.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput): a name that is empty, or has a zero byte
    /// other than its first, which would cut it short, or is longer than systems have room for. One
    /// that begins with a zero byte is not in the file system, where the host knows such names.
    pub fn check(&self) -> io::Result<()> {
        let why = match self {
            Address::Inet(_) => return Ok(()),
            Address::Unix(None) => "a unix socket is found by its path, and there is none",
            Address::Unix(Some(path)) => match path.as_os_str().as_encoded_bytes() {
                [] => "the path of a unix socket is empty",
                [_, rest @ ..] if rest.contains(&0) => "the path of a unix socket has a zero byte",
                [0, name @ ..] if name.len() < LONGEST_PATH => return Ok(()),
                path if path.len() < LONGEST_PATH => return Ok(()),
                _ => "the path of a unix socket is too long",
            },
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    /// The name in the file system, if it has one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Address::Inet(_) => None,
            Address::Unix(path) => path.as_deref(),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Inet(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Inet(address) => address.fmt(f),
            Address::Unix(Some(path)) => {
                let text = path.display().to_string();
                match text.strip_prefix('\0') {
                    // Not in the file system: as other tools write it.
                    Some(name) => write!(f, "@{name}"),
                    None => text.fmt(f),
                }
            }
            Address::Unix(None) => f.write_str("an unnamed socket"),
        }
    }
}

/// What is set before a socket is bound or connected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketSetup {
    /// Settings that are applied first, in order.
    pub options: Vec<SocketOption>,
    /// Where it is bound to, if that is not up to the system: of a socket that connects.
    pub local: Option<Address>,
    /// How many connections may wait to be accepted; up to the host if not set.
    pub backlog: Option<u32>,
}

/// A setting of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOption {
    /// Small writes go out at once (TCP).
    NoDelay(bool),
    /// An address may be bound again while connections of an earlier socket linger.
    ReuseAddress(bool),
    /// Several sockets may be bound to one address.
    ReusePort(bool),
    /// How many routers a packet may pass.
    Ttl(u32),
    /// How long a close waits until what was written has gone out; `None`: it does not wait.
    /// Systems count [whole seconds](SocketOption::whole_seconds).
    Linger(Option<Duration>),
    /// Bytes that wait to be read.
    RecvBuffer(usize),
    /// Bytes that wait to go out.
    SendBuffer(usize),
    /// Connections that are idle are probed (TCP).
    KeepAlive(bool),
    /// Datagrams may go to all of a network.
    Broadcast(bool),
    /// An IPv6 socket takes no IPv4.
    OnlyV6(bool),
}

impl SocketOption {
    /// A time in whole seconds, which is how systems count it: rounded up, since no time at all
    /// means something else.
    pub fn whole_seconds(time: Duration) -> Duration {
        let more = u64::from(time.subsec_nanos() > 0);
        Duration::from_secs(time.as_secs().saturating_add(more))
    }

    /// Whether a value can be one of the setting: hosts ask before they change anything.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput), which tells the setting and the value.
    /// Systems cut such values short.
    pub fn check(self) -> io::Result<()> {
        let most = i32::MAX as usize;
        let why = match self {
            SocketOption::Ttl(hops) if !(1..=255).contains(&hops) => {
                format!("a ttl of {hops} is not between 1 and 255")
            }
            SocketOption::Linger(Some(time))
                if SocketOption::whole_seconds(time).as_secs() > most as u64 =>
            {
                format!("a linger of {time:?} is longer than {most} seconds")
            }
            SocketOption::RecvBuffer(bytes) if bytes > most => {
                format!("a receive buffer of {bytes} bytes is larger than {most}")
            }
            SocketOption::SendBuffer(bytes) if bytes > most => {
                format!("a send buffer of {bytes} bytes is larger than {most}")
            }
            _ => return Ok(()),
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

/// Which [`SocketOption`] is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionName {
    /// [`SocketOption::NoDelay`].
    NoDelay,
    /// [`SocketOption::ReuseAddress`].
    ReuseAddress,
    /// [`SocketOption::ReusePort`].
    ReusePort,
    /// [`SocketOption::Ttl`].
    Ttl,
    /// [`SocketOption::Linger`].
    Linger,
    /// [`SocketOption::RecvBuffer`].
    RecvBuffer,
    /// [`SocketOption::SendBuffer`].
    SendBuffer,
    /// [`SocketOption::KeepAlive`].
    KeepAlive,
    /// [`SocketOption::Broadcast`].
    Broadcast,
    /// [`SocketOption::OnlyV6`].
    OnlyV6,
}

/// Returns the addresses of `localhost` and the names below it (`*.localhost`), which always denote
/// the loopback interface (RFC 6761, section 6.3); `None` for other names.
///
/// All hosts return the IPv4 address first, so a server that binds `localhost` gets the same
/// address on every machine.
pub fn localhost(host: &str, port: u16) -> Option<Vec<SocketAddr>> {
    const NAME: &str = "localhost";
    let host = host.strip_suffix('.').unwrap_or(host);
    let (above, name) = host.split_at_checked(host.len().checked_sub(NAME.len())?)?;
    let is_below = above.len() > 1 && above.ends_with('.');
    if !name.eq_ignore_ascii_case(NAME) || !(above.is_empty() || is_below) {
        return None;
    }
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    Some(addresses.map(|ip| SocketAddr::new(ip, port)).to_vec())
}

/// Sockets of the operating system: file descriptors on Unix, `SOCKET`s on Windows.
#[cfg(unix)]
pub use std::os::fd::{BorrowedFd as BorrowedHandle, OwnedFd as OwnedHandle};
#[cfg(windows)]
pub use std::os::windows::io::{BorrowedSocket as BorrowedHandle, OwnedSocket as OwnedHandle};

/// The kind of a socket that was created elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// A TCP listener.
    TcpListener,
    /// A TCP connection.
    TcpStream,
    /// A UDP socket.
    Udp,
    /// A listener for unix streams.
    #[cfg(unix)]
    UnixListener,
    /// A connected unix stream.
    #[cfg(unix)]
    UnixStream,
    /// A unix socket for datagrams.
    #[cfg(unix)]
    UnixDatagram,
}

/// An event that a Windows console sends to the processes attached to it.
#[cfg(windows)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsoleEvent {
    /// Ctrl-C.
    CtrlC,
    /// Ctrl-Break.
    CtrlBreak,
}

/// A callback for console events; see [`Net::on_console_event`].
#[cfg(windows)]
pub type ConsoleNotify = std::sync::Weak<dyn Fn() + Send + Sync>;

/// What a host offers of the network.
pub trait Net: Send + Sync {
    /// A socket that listens there for connections.
    ///
    /// # Errors
    /// What the system says; nothing is left behind.
    fn listen(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>>;

    /// A socket that begins to connect. It is connected, or has failed, when it is ready to write;
    /// [`take_error`](Socket::take_error) then tells.
    ///
    /// # Errors
    /// It could not even begin.
    fn connect(&self, to: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>>;

    /// A socket for datagrams, bound there.
    ///
    /// # Errors
    /// What the system says.
    fn datagrams(&self, at: &Address, setup: &SocketSetup) -> io::Result<Arc<dyn Socket>>;

    /// The addresses of a host of this name, with this port. It may block: it is called on a thread
    /// for that.
    ///
    /// # Errors
    /// There is no such host, or nobody to ask.
    fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;

    /// The same, of a host that can tell without blocking: it is asked first, in the task. `None`:
    /// it cannot.
    fn try_lookup(&self, _host: &str, _port: u16) -> Option<io::Result<Vec<SocketAddr>>> {
        None
    }

    /// The tasks that wait at sockets now: for dumps. Those that wait with a waker of somebody
    /// else's are not among them.
    fn waits(&self) -> Vec<SocketWait> {
        Vec::new()
    }

    /// Two unix sockets for streams that are connected to each other.
    ///
    /// # Errors
    /// The host has none, or what the system says.
    fn stream_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Two unix sockets for datagrams that are connected to each other.
    ///
    /// # Errors
    /// The host has none, or what the system says.
    fn datagram_pair(&self) -> io::Result<[Arc<dyn Socket>; 2]> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Watches a descriptor that is somebody else's: the answer tells when it is ready, and does
    /// nothing else with it. It is dropped before the descriptor is closed.
    ///
    /// # Errors
    /// The host does not know such descriptors, or this one cannot be watched.
    #[cfg(unix)]
    fn watch(&self, _fd: std::os::fd::BorrowedFd<'_>) -> io::Result<Arc<dyn Socket>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes over a socket that was created elsewhere and sets it to non-blocking mode.
    ///
    /// Available on Unix and Windows.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the host has no sockets of the operating
    /// system, [`InvalidInput`](io::ErrorKind::InvalidInput) if the socket is of another kind.
    #[cfg(any(unix, windows))]
    fn adopt(&self, _kind: SocketKind, _socket: OwnedHandle) -> io::Result<Arc<dyn Socket>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Calls `notify` each time the console sends `event` to the process, until the last strong
    /// reference to `notify` is dropped. The call is made on a thread of the operating system.
    /// From the first call of this method on, the event no longer terminates the process.
    ///
    /// Available on Windows.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) if the host simulates its network, or the error
    /// of the operating system.
    #[cfg(windows)]
    fn on_console_event(&self, _event: ConsoleEvent, _notify: ConsoleNotify) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Somebody who waits at a socket, as dumps tell it.
#[derive(Clone, Debug)]
pub struct SocketWait {
    /// A waker of the task that waits.
    pub waker: Waker,
    /// What it waits for: bytes from such a peer, for example.
    pub what: String,
}

/// What a socket was seen to be ready for, so that only that is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyEvent(
    /// The host's own count.
    pub u32,
);

/// The place of one operation among those that wait at a socket; none at first.
#[derive(Debug, Default)]
pub struct WaitSlot(
    /// The host's own number; 0: none.
    pub u32,
);

/// One socket. Nothing here waits.
///
/// A socket is closed when the last reference to it is dropped.
pub trait Socket: Send + Sync + fmt::Debug {
    /// Whether an operation in this direction is worth a try. If not, `waker` is woken when it is;
    /// `slot` is the place of the operation, of which the last waker counts.
    ///
    /// # Errors
    /// The runtime of the socket is gone.
    fn poll_ready(
        &self,
        direction: Direction,
        slot: &mut WaitSlot,
        waker: &Waker,
    ) -> Poll<io::Result<ReadyEvent>>;

    /// The socket was not ready after all, unless more has happened since it was `seen` to be.
    fn clear_ready(&self, direction: Direction, seen: ReadyEvent);

    /// Called when a read or write of a TCP stream moved fewer bytes than requested. Clears
    /// readiness as [`clear_ready`](Socket::clear_ready) does if the short count proves that the
    /// buffer is empty (a read) or full (a write).
    ///
    /// The default does nothing, which is correct for every host: the next attempt returns
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) and clears readiness. A host that knows better
    /// saves this attempt.
    fn clear_after_short(&self, _direction: Direction, _seen: ReadyEvent) {}

    /// Called when an operation yields because its poll has used up the operation budget, mostly on
    /// sockets that were always ready. A host that observes events of sockets only now and then
    /// should do so after this poll: otherwise tasks at other sockets wait for many such polls.
    fn yields(&self) {}

    /// Called before one of several owners of the socket drops its reference. The drop of the last
    /// one closes the socket, so a host that explores orders has to know about the others.
    fn release(&self) {}

    /// An operation waits no longer.
    fn leave(&self, direction: Direction, slot: &mut WaitSlot);

    /// Takes bytes that have come; 0: the peer sends no more.
    ///
    /// # Errors
    /// `WouldBlock`, or what the system says.
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// The same into several buffers.
    ///
    /// # Errors
    /// As [`read`](Socket::read).
    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
            Some(buffer) => self.read(buffer),
            None => self.read(&mut []),
        }
    }

    /// Looks at bytes that have come, and leaves them there.
    ///
    /// # Errors
    /// As [`read`](Socket::read).
    fn peek(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Gives bytes to be sent: how many were taken.
    ///
    /// # Errors
    /// `WouldBlock`, or what the system says.
    fn write(&self, buffer: &[u8]) -> io::Result<usize>;

    /// The same out of several buffers.
    ///
    /// # Errors
    /// As [`write`](Socket::write).
    fn write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        match buffers.iter().find(|buffer| !buffer.is_empty()) {
            Some(buffer) => self.write(buffer),
            None => self.write(&[]),
        }
    }

    /// Takes a connection of a socket that listens.
    ///
    /// # Errors
    /// `WouldBlock`, or what the system says.
    fn accept(&self) -> io::Result<(Arc<dyn Socket>, Address)>;

    /// Takes a datagram: how much of it fit, and where it came from.
    ///
    /// # Errors
    /// `WouldBlock`, or what the system says.
    fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Address)>;

    /// Sends a datagram there.
    ///
    /// # Errors
    /// `WouldBlock`, or what the system says.
    fn send_to(&self, buffer: &[u8], to: &Address) -> io::Result<usize>;

    /// Binds a socket of datagrams to one peer.
    ///
    /// # Errors
    /// What the system says.
    fn connect_to(&self, to: &Address) -> io::Result<()>;

    /// Ends one direction, or both.
    ///
    /// # Errors
    /// What the system says.
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;

    /// Where it is.
    ///
    /// # Errors
    /// What the system says.
    fn local_address(&self) -> io::Result<Address>;

    /// Where its peer is.
    ///
    /// # Errors
    /// It has none.
    fn peer_address(&self) -> io::Result<Address>;

    /// What went wrong since this was asked last.
    ///
    /// # Errors
    /// It cannot be told.
    fn take_error(&self) -> io::Result<Option<io::Error>>;

    /// Changes a setting.
    ///
    /// # Errors
    /// What the system says.
    fn set_option(&self, option: SocketOption) -> io::Result<()>;

    /// A setting.
    ///
    /// # Errors
    /// What the system says.
    fn option(&self, name: OptionName) -> io::Result<SocketOption>;

    /// Returns the socket of the operating system, or `None` if the host simulates its network.
    ///
    /// Available on Unix and Windows.
    #[cfg(any(unix, windows))]
    fn handle(&self) -> Option<BorrowedHandle<'_>> {
        None
    }
}
