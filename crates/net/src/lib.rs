//! Sockets for asx.
//!
//! Everything that waits takes a [`Cx`]: it ends when the task is asked to stop, counts as an
//! operation of its task, and can be bounded by [`Cx::timeout`]. A server:
//!
//! ```
//! use asx::net::{TcpListener, TcpStream, serve};
//! use asx::{Cx, io, select};
//!
//! /// Answers each line with itself, until the client has no more or the server is told to stop.
//! async fn echo(cx: Cx, stream: TcpStream) -> io::Result<()> {
//!     let mut lines = io::BufReader::new(stream).lines();
//!     loop {
//!         let line = select! {
//!             line = lines.next(&cx) => line?,
//!             told = cx.stopping() => {
//!                 told?;
//!                 None // idle: nothing is lost if it is closed
//!             }
//!         };
//!         let Some(line) = line else { return Ok(()) };
//!         lines.get_mut().write_all(&cx, format!("{line}\n").as_bytes()).await?;
//!     }
//! }
//!
//! # let runtime = asx::Runtime::builder().workers(2).build()?;
//! # runtime.block_on(async |cx: Cx| {
//! # let cx = &cx;
//! let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
//! let address = listener.local_addr()?;
//! let report = cx
//!     .scope(async |s| {
//!         let server = s.spawn(async move |cx: Cx| {
//!             serve(&cx, listener, |cx, stream, _peer| echo(cx, stream)).await
//!         });
//!
//!         let mut client = TcpStream::connect(cx, address).await?;
//!         client.write_all(cx, b"hello\n").await?;
//!         let mut answer = [0; 6];
//!         client.read_exact(cx, &mut answer).await?;
//!         assert_eq!(&answer, b"hello\n");
//!
//!         s.stop(); // no more connections; idle ones are closed, the others finish
//!         Ok::<_, io::Error>(server.await.unwrap_or_default())
//!     })
//!     .await?;
//! assert_eq!((report.accepted, report.completed), (1, 1));
//! # Ok::<_, io::Error>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a cancel leaves behind
//!
//! | operation | cancelled or dropped before it is done | `select!` |
//! |---|---|---|
//! | `read`, `peek`, `recv`, `recv_from`, `accept` | has taken nothing | takes it |
//! | `write`, `send`, `send_to`, once each | has given nothing | takes it |
//! | `readable`, `writable` | nothing happened | takes it |
//! | lines, frames and sections that are read | what has come is in the buffer | takes it |
//! | `connect` | the attempt is given up | refuses it |
//! | `read_exact`, `copy` | what was read before is lost | refuses it |
//! | `write_all` | the error tells [how much](io::WriteAllError::written) went out | refuses it |
//! | [`flush`](io::FrameWriter::flush) of frames | inside of one: it is poisoned | refuses it |
//!
//! [`race`](asx_runtime::race()) takes all of them. What `select!` refuses does not compile:
//!
//! ```compile_fail,E0277
//! # use asx::{Cx, io, net::TcpStream};
//! # async fn give(cx: &Cx, stream: &mut TcpStream) -> io::Result<()> {
//! asx::select! {
//!     written = stream.write_all(cx, b"all or nothing?") => written?,
//!     told = cx.stopping() => told?,
//! }
//! # Ok(())
//! # }
//! ```
//!
//! ```
//! # use asx::{Cx, io, net::TcpStream};
//! # async fn give(cx: &Cx, stream: &mut TcpStream) -> io::Result<()> {
//! asx::select! {
//!     written = stream.write(cx, b"some of it") => drop(written?),
//!     told = cx.stopping() => told?,
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! [`io::Error`] is an error of the system, or a cancel. `?` makes one of either; where a
//! `std::io::Error` is wanted it becomes one, and a cancel can be found again in that. So it can in
//! a `Box<dyn Error + Send + Sync>`, and with the feature `anyhow` in an `anyhow::Error`.
//!
//! # Where it works
//!
//! On Unix and Windows, with every host that has a network ([`asx_runtime::net::Net`]). The native
//! host uses the sockets of the operating system, the lab simulates a network. With any other host,
//! creating a socket fails with [`Unsupported`](std::io::ErrorKind::Unsupported). On wasm the crate
//! is empty. Items that exist on some systems only have a line "Available on ..".

#![forbid(unsafe_code)]
#![cfg(all(any(unix, windows), not(loom)))]

mod bound;
mod builder;
#[cfg(unix)]
mod fd;
pub mod io;
mod lookup;
pub mod op;
mod options;
mod serve;
pub mod signal;
mod split;
mod stream;
mod tcp;
mod udp;
#[cfg(unix)]
mod unix;

pub use asx_runtime::Cx;
pub use bound::Bound;
pub use builder::SocketBuilder;
#[cfg(unix)]
pub use fd::{AsyncFd, Interest, Readiness, ReadyGuard};
pub use lookup::{LookupStats, Target, ToSocketAddrs, TooManyLookups, lookup_host, lookup_stats};
pub use serve::{AcceptFailure, Listener, ServeEvent, ServeReport, Server, serve};
pub use split::{
    BorrowedSocket, OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReadPart, ReuniteError, SharedSocket,
    ShutdownOnDrop, SocketRef, WriteHalf, WritePart,
};
pub use stream::{Family, OverSocket, ReadSide, SocketStream, StreamSocket, WriteSide};
pub use tcp::{Tcp, TcpListener, TcpStream};
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix::{Unix, UnixAddr, UnixDatagram, UnixListener, UnixStream};
