//! Sockets for asx.
//!
//! Functions that wait take a [`Cx`]: they observe the cancellation of the task, are charged to its
//! operation budget, and can be limited by [`Cx::timeout`]. A server:
//!
//! ```
//! use asx::net::{TcpListener, TcpStream, serve};
//! use asx::{Cx, io, select};
//!
//! /// Returns each line to the client, until the client ends or the server is stopped.
//! async fn echo(cx: Cx, stream: TcpStream) -> io::Result<()> {
//!     let mut lines = io::BufReader::new(stream).lines();
//!     loop {
//!         let line = select! {
//!             line = lines.next(&cx) => line?,
//!             stopping = cx.stopping() => {
//!                 stopping?;
//!                 None // idle: no request is cut off
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
//!         s.stop(); // idle connections are closed, the others finish
//!         Ok::<_, io::Error>(server.await.unwrap_or_default())
//!     })
//!     .await?;
//! assert_eq!((report.accepted, report.completed), (1, 1));
//! # Ok::<_, io::Error>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cancel safety
//!
//! | operation | effect of a cancelled or dropped call | in `select!` |
//! |---|---|---|
//! | `read`, `peek`, `recv`, `recv_from`, `accept` | nothing was consumed | accepted |
//! | `write`, `send`, `send_to` | nothing was sent | accepted |
//! | `readable`, `writable` | none | accepted |
//! | reads of lines, sections and frames | bytes that were read are in the buffer | accepted |
//! | `connect` | the socket is closed | refused |
//! | `read_exact`, `copy` | bytes that were read are lost | refused |
//! | `write_all` | the error returns [how much](io::WriteAllError::written) was written | refused |
//! | [`flush`](io::FrameWriter::flush) of frames | poisoned if cut off inside a frame | refused |
//!
//! [`race`](asx_runtime::race()) accepts all of them. An operation that `select!` refuses does not
//! compile:
//!
//! ```compile_fail,E0277
//! # use asx::{Cx, io, net::TcpStream};
//! # async fn send(cx: &Cx, stream: &mut TcpStream) -> io::Result<()> {
//! asx::select! {
//!     written = stream.write_all(cx, b"all or nothing?") => written?,
//!     stopping = cx.stopping() => stopping?,
//! }
//! # Ok(())
//! # }
//! ```
//!
//! ```
//! # use asx::{Cx, io, net::TcpStream};
//! # async fn send(cx: &Cx, stream: &mut TcpStream) -> io::Result<()> {
//! asx::select! {
//!     written = stream.write(cx, b"some of it") => drop(written?),
//!     stopping = cx.stopping() => stopping?,
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! [`io::Error`] is an error of the operating system or a cancellation. `?` converts both to it,
//! and converts it to [`std::io::Error`]. A cancellation survives the conversion to
//! `std::io::Error`, to `Box<dyn Error + Send + Sync>` and, with the feature `anyhow`, to
//! `anyhow::Error`: converting the result to `io::Error` restores it.
//!
//! # Platforms
//!
//! The crate works on Unix and Windows, with every host that has a network
//! ([`asx_runtime::net::Net`]). The native host uses the sockets of the operating system, the lab
//! simulates a network. With any other host, creating a socket fails with
//! [`Unsupported`](std::io::ErrorKind::Unsupported). On wasm the crate is empty. Items that exist
//! only on some systems have a line "Available on ..".

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
