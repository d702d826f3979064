//! Connections, and whether their bytes come in order.

use std::net::{Shutdown, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use asx::Cx;
use asx::io::{Duplex, Read, Write};
use asx::net::{Bound, OwnedReadHalf, OwnedWriteHalf, SocketStream, TcpStream, UnixStream};

use crate::books::Books;
use crate::world::{Thing, World};

/// A stream of either family.
pub(crate) trait Link: SocketStream + Read + Write + Duplex + Unpin + 'static {
    fn end(&self, how: Shutdown) -> std::io::Result<()>;
    fn halves(self) -> (OwnedReadHalf<Self>, OwnedWriteHalf<Self>)
    where
        Self: Sized;
    fn with_context(self, cx: &Cx) -> Bound<Self>
    where
        Self: Sized;
    /// The stream of another library, and one of this again.
    fn through_std(self, cx: &Cx) -> std::io::Result<Self>
    where
        Self: Sized;
    /// Its close throws away what was not sent, if it can do so.
    fn reset(&self);
    fn look(&self);
    fn thing(conn: Conn<Self>) -> Thing
    where
        Self: Sized;
}

impl Link for TcpStream {
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

    fn look(&self) {
        let _ = (self.local_addr(), self.peer_addr(), self.take_error(), self.nodelay());
        let _ = (self.set_nodelay(true), self.set_recv_buffer(4096), self.set_send_buffer(4096));
    }

    fn thing(conn: Conn<Self>) -> Thing {
        Thing::Tcp(conn)
    }
}

impl Link for UnixStream {
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

    fn look(&self) {
        let _ = (self.local_addr().is_ok(), self.peer_addr().is_ok(), format!("{self:?}"));
    }

    fn thing(conn: Conn<Self>) -> Thing {
        Thing::Unix(conn)
    }
}

/// The bytes of one direction: each is the successor of the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequence(u8);

/// No divisor of the sizes of buffers: bytes that are lost or doubled are noticed.
const PERIOD: usize = 251;

impl Sequence {
    /// The next bytes.
    pub(crate) fn make(self, count: usize) -> Vec<u8> {
        (0..count).map(|nth| ((usize::from(self.0) + nth) % PERIOD) as u8).collect()
    }

    /// So many of them went out.
    pub(crate) fn went(&mut self, count: usize) {
        self.0 = ((usize::from(self.0) + count) % PERIOD) as u8;
    }

    /// These came in.
    pub(crate) fn came(&mut self, bytes: &[u8], books: &Books) {
        if bytes != self.make(bytes.len()) {
            books.fault(format!(
                "of {} bytes from {} on some are lost or doubled",
                bytes.len(),
                self.0
            ));
        }
        self.went(bytes.len());
    }
}

/// A stream, and where both directions are.
#[derive(Debug)]
pub(crate) struct Conn<S> {
    pub(crate) stream: S,
    pub(crate) reads: Sequence,
    pub(crate) writes: Sequence,
}

impl<S> Conn<S> {
    pub(crate) fn new(stream: S) -> Conn<S> {
        Conn { stream, reads: Sequence::default(), writes: Sequence::default() }
    }
}

/// Where connections are taken.
#[derive(Debug, Default)]
pub(crate) struct Places {
    inet: Mutex<Vec<SocketAddr>>,
    unix: Mutex<Vec<PathBuf>>,
}

impl Places {
    /// One of them, or where nobody is.
    pub(crate) fn inet(&self, drawn: u64) -> SocketAddr {
        let places = lock(&self.inet);
        let at = drawn as usize % places.len().max(1);
        places.get(at).copied().unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    /// The same of unix sockets.
    pub(crate) fn unix(&self, drawn: u64) -> PathBuf {
        let places = lock(&self.unix);
        let at = drawn as usize % places.len().max(1);
        places.get(at).cloned().unwrap_or_else(path)
    }
}

/// A path that nobody has.
pub(crate) fn path() -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nth = NEXT.fetch_add(1, Relaxed);
    std::env::temp_dir().join(format!("asx-stress-{}-{nth}", std::process::id()))
}

/// Connections are taken there until this is dropped.
pub(crate) enum Open {
    Inet(Arc<World>, SocketAddr),
    Unix(Arc<World>, PathBuf),
}

impl Open {
    pub(crate) fn inet(world: &Arc<World>, at: SocketAddr) -> Open {
        lock(&world.places.inet).push(at);
        Open::Inet(world.clone(), at)
    }

    pub(crate) fn unix(world: &Arc<World>, at: PathBuf) -> Open {
        lock(&world.places.unix).push(at.clone());
        Open::Unix(world.clone(), at)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        match self {
            Open::Inet(world, at) => lock(&world.places.inet).retain(|other| other != at),
            Open::Unix(world, at) => {
                lock(&world.places.unix).retain(|other| other != at);
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
    fn bytes_that_are_lost_are_noticed() {
        let books = Books::new(false);
        let mut writes = Sequence::default();
        let mut reads = Sequence::default();
        for count in [1, 64, 1000] {
            reads.came(&writes.make(count), &books);
            writes.went(count);
        }
        assert_eq!(books.balance(false), Ok(()));
        writes.went(64);
        reads.came(&writes.make(1), &books);
        assert!(books.balance(false).is_err());
    }
}
