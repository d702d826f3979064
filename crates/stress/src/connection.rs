//! Connections that check the order of their bytes.

use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use asx::Cx;
use asx::io::{Duplex, Read, Write};
use asx::net::{Bound, OwnedReadHalf, OwnedWriteHalf, SocketStream, TcpStream, UnixStream};

use crate::ledger::Ledger;
use crate::world::{Leftover, World};

/// A stream of either family.
pub(crate) trait TestStream: SocketStream + Read + Write + Duplex + Unpin + 'static {
    fn end(&self, how: Shutdown) -> std::io::Result<()>;
    fn halves(self) -> (OwnedReadHalf<Self>, OwnedWriteHalf<Self>)
    where
        Self: Sized;
    fn with_context(self, cx: &Cx) -> Bound<Self>
    where
        Self: Sized;
    /// Converts to a std stream and back.
    fn through_std(self, cx: &Cx) -> std::io::Result<Self>
    where
        Self: Sized;
    /// Makes the close discard unsent data, if the family supports it.
    fn reset(&self);
    fn check(&self);
    fn leftover(conn: Connection<Self>) -> Leftover
    where
        Self: Sized;
}

impl TestStream for TcpStream {
    fn end(&self, how: Shutdown) -> std::io::Result<()> {
        self.shutdown(how)
    }

    fn halves(self) -> (OwnedReadHalf<Self>, OwnedWriteHalf<Self>) {
        self.into_split()
    }

    fn with_context(self, cx: &Cx) -> Bound<Self> {
        self.bound(cx)
    }

    fn through_std(self, cx: &Cx) -> std::io::Result<Self> {
        TcpStream::from_std(cx, self.into_std()?)
    }

    fn reset(&self) {
        let _ = self.set_linger(Some(Duration::ZERO));
    }

    fn check(&self) {
        let _ = (self.local_addr(), self.peer_addr(), self.take_error(), self.nodelay());
        let _ = (self.set_nodelay(true), self.set_recv_buffer(4096), self.set_send_buffer(4096));
    }

    fn leftover(conn: Connection<Self>) -> Leftover {
        Leftover::Tcp(conn)
    }
}

impl TestStream for UnixStream {
    fn end(&self, how: Shutdown) -> std::io::Result<()> {
        self.shutdown(how)
    }

    fn halves(self) -> (OwnedReadHalf<Self>, OwnedWriteHalf<Self>) {
        self.into_split()
    }

    fn with_context(self, cx: &Cx) -> Bound<Self> {
        self.bound(cx)
    }

    fn through_std(self, cx: &Cx) -> std::io::Result<Self> {
        UnixStream::from_std(cx, self.into_std()?)
    }

    fn reset(&self) {}

    fn check(&self) {
        let _ = (self.local_addr().is_ok(), self.peer_addr().is_ok(), format!("{self:?}"));
    }

    fn leftover(conn: Connection<Self>) -> Leftover {
        Leftover::Unix(conn)
    }
}

/// The position in the bytes of one direction: each byte is the successor of the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequence(u8);

/// Not a divisor of buffer sizes, so that lost or duplicated bytes are detected.
const PERIOD: usize = 251;

impl Sequence {
    /// Returns the next bytes.
    pub(crate) fn make(self, count: usize) -> Vec<u8> {
        (0..count).map(|nth| ((usize::from(self.0) + nth) % PERIOD) as u8).collect()
    }

    /// Records that `count` bytes were sent.
    pub(crate) fn advance_sent(&mut self, count: usize) {
        self.0 = ((usize::from(self.0) + count) % PERIOD) as u8;
    }

    /// Checks and records received bytes.
    pub(crate) fn check_received(&mut self, bytes: &[u8], ledger: &Ledger) {
        if bytes != self.make(bytes.len()) {
            ledger.fault(format!(
                "{} bytes from {} on: some are lost or duplicated",
                bytes.len(),
                self.0
            ));
        }
        self.advance_sent(bytes.len());
    }
}

/// A stream with the positions of both directions.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    pub(crate) stream: S,
    pub(crate) reads: Sequence,
    pub(crate) writes: Sequence,
}

impl<S> Connection<S> {
    pub(crate) fn new(stream: S) -> Connection<S> {
        Connection { stream, reads: Sequence::default(), writes: Sequence::default() }
    }
}

/// The addresses of active listeners.
#[derive(Debug, Default)]
pub(crate) struct ListenAddrs {
    inet: Mutex<Vec<SocketAddr>>,
    unix: Mutex<Vec<PathBuf>>,
}

impl ListenAddrs {
    /// Returns one of them, or an address without a listener.
    pub(crate) fn inet(&self, drawn: u64) -> SocketAddr {
        let listen_addrs = lock(&self.inet);
        let at = drawn as usize % listen_addrs.len().max(1);
        listen_addrs.get(at).copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    /// Like [`inet`](ListenAddrs::inet), for unix sockets.
    pub(crate) fn unix(&self, drawn: u64) -> PathBuf {
        let listen_addrs = lock(&self.unix);
        let at = drawn as usize % listen_addrs.len().max(1);
        listen_addrs.get(at).cloned().unwrap_or_else(path)
    }
}

/// Returns an unused path.
pub(crate) fn path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nth = NEXT.fetch_add(1, Relaxed);
    std::env::temp_dir().join(format!("asx-stress-{}-{nth}", std::process::id()))
}

/// Registers a listener until it is dropped.
pub(crate) enum Open {
    Inet(Arc<World>, SocketAddr),
    Unix(Arc<World>, PathBuf),
}

impl Open {
    pub(crate) fn inet(world: &Arc<World>, at: SocketAddr) -> Open {
        lock(&world.listen_addrs.inet).push(at);
        Open::Inet(world.clone(), at)
    }

    pub(crate) fn unix(world: &Arc<World>, at: PathBuf) -> Open {
        lock(&world.listen_addrs.unix).push(at.clone());
        Open::Unix(world.clone(), at)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        match self {
            Open::Inet(world, at) => lock(&world.listen_addrs.inet).retain(|other| other != at),
            Open::Unix(world, at) => {
                lock(&world.listen_addrs.unix).retain(|other| other != at);
                let _ = std::fs::remove_file(at);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_bytes_are_detected() {
        let ledger = Ledger::new(false);
        let mut writes = Sequence::default();
        let mut reads = Sequence::default();
        for count in [1, 64, 1000] {
            reads.check_received(&writes.make(count), &ledger);
            writes.advance_sent(count);
        }
        assert_eq!(ledger.balance(false), Ok(()));
        writes.advance_sent(64);
        reads.check_received(&writes.make(1), &ledger);
        assert!(ledger.balance(false).is_err());
    }
}
