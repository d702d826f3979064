//! Helpers for the cases.

use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use asx::cancel::Kind;
use asx::io;
use asx::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use asx::prelude::*;

/// The timeout of a wait for something that does not come. Its length does not affect the result.
pub(crate) const SOON: Duration = Duration::from_millis(2);

/// Any address of this host, and a port that is free.
pub(crate) const HERE: &str = "127.0.0.1:0";

/// Returns the client and the server end of a TCP connection.
pub(crate) async fn tcp(cx: &Cx) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let client = TcpStream::connect(cx, listener.local_addr()?).await?;
    let (server, _) = listener.accept(cx).await?;
    Ok((client, server))
}

/// The same, with small buffers for data that was not read.
pub(crate) async fn narrow_tcp(cx: &Cx) -> io::Result<(TcpStream, TcpStream)> {
    let small = TcpListener::builder().send_buffer(4096).recv_buffer(4096);
    let listener = small.listen(cx, HERE).await?;
    let client = small.connect(cx, listener.local_addr()?).await?;
    let (server, _) = listener.accept(cx).await?;
    Ok((client, server))
}

/// More bytes than a [narrow](narrow_tcp) connection holds.
pub(crate) const MORE_THAN_FITS: usize = 32 * 1024;

/// Returns bytes that differ by position.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Returns two sockets for datagrams.
pub(crate) async fn udp(cx: &Cx) -> io::Result<(UdpSocket, UdpSocket)> {
    let one = UdpSocket::bind(cx, HERE).await?;
    Ok((one, UdpSocket::bind(cx, HERE).await?))
}

/// Returns both ends of a connection of named unix sockets.
pub(crate) async fn unix(cx: &Cx, name: &Name) -> io::Result<(UnixStream, UnixStream)> {
    let listener = UnixListener::bind(cx, name)?;
    let client = UnixStream::connect(cx, name).await?;
    let (server, _) = listener.accept(cx).await?;
    Ok((client, server))
}

/// The name for a unix socket of a case. It is unused at first, and removed at the end.
pub(crate) struct Name(PathBuf);

impl Name {
    pub(crate) fn new(case: &str) -> Name {
        let file = format!("asx-sockets-{}-{case}", std::process::id());
        let name = Name(std::env::temp_dir().join(file));
        name.free();
        name
    }

    /// Removes the file of a host with a file system.
    fn free(&self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl AsRef<Path> for Name {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.free();
    }
}

/// Waits until this number of bytes can be read.
pub(crate) async fn arrived(cx: &Cx, stream: &TcpStream, count: usize) -> io::Result<()> {
    let mut buffer = vec![0; count];
    while stream.peek(cx, &mut buffer).await? < count {
        cx.sleep(Duration::from_millis(1)).await?;
    }
    Ok(())
}

/// Writes until the connection has no room; returns the number of bytes.
pub(crate) async fn fill(cx: &Cx, stream: &mut TcpStream) -> io::Result<usize> {
    let chunk = pattern(16 * 1024);
    let mut filled = 0;
    loop {
        match cx.timeout(SOON, async |cx| stream.write(cx, &chunk).await).await {
            Ok(count) => filled += count,
            Err(io::Error::Cancelled(_)) => return Ok(filled),
            Err(error) => return Err(error),
        }
    }
}

/// Returns the kind of an error of the system.
#[track_caller]
pub(crate) fn failed<T: Debug>(ended: io::Result<T>) -> ErrorKind {
    match ended {
        Err(io::Error::Io(error)) => error.kind(),
        other => panic!("no error of the system, but {other:?}"),
    }
}

/// Checks that the result is a timeout.
#[track_caller]
pub(crate) fn timed_out<T: Debug>(ended: io::Result<T>) {
    match ended {
        Err(io::Error::Cancelled(cancelled)) => assert_eq!(cancelled.kind(), Kind::Timeout),
        other => panic!("not timed out, but {other:?}"),
    }
}

/// Checks that the result is a cancel.
#[track_caller]
pub(crate) fn cancelled<T: Debug>(ended: io::Result<T>) {
    match ended {
        Err(io::Error::Cancelled(_)) => {}
        other => panic!("not cancelled, but {other:?}"),
    }
}
