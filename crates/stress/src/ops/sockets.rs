//! Operations on sockets: connections, datagrams, and registered descriptors.
//!
//! An error of the operating system is not a failure of a program: connections are refused and
//! reset in it.

use std::future::poll_fn;
use std::io::{IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::{Pin, pin};
use std::sync::Arc;

use asx::io::{FrameReader, FrameWriter, Read, Write};
use asx::net::{
    AsyncFd, Interest, OwnedReadHalf, OwnedWriteHalf, TcpListener, TcpStream, UdpSocket,
    UnixDatagram, UnixListener, UnixStream,
};
use asx::{BoxFuture, Cx, join};
use futures_io::{AsyncRead as _, AsyncWrite as _};

use super::{Env, micros};
use crate::connection::{Connection, Open, Sequence, TestStream, path};
use crate::program::{Family, Use, Where};
use crate::world::{Fail, World};

/// The time limit of most waits for a connection, in microseconds.
const WAIT: u64 = 1_000;

/// Converts an error: a cancel ends the task, all others are ignored.
fn only_cancel<T>(answer: asx::io::Result<T>) -> Result<Option<T>, Fail> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(asx::io::Error::Cancelled(_)) => Err(Fail::Cancelled),
        Err(asx::io::Error::Io(_)) => Ok(None),
    }
}

impl Env {
    /// Waits with a time limit, most of the time.
    async fn for_a_while<T>(
        &self,
        wait: impl AsyncFnOnce() -> asx::io::Result<T>,
    ) -> Result<Option<T>, Fail> {
        if self.world.coin(4) == 0 {
            return only_cancel(wait().await);
        }
        let limited = self.cx.timeout(micros(WAIT), async |_| only_cancel(wait().await)).await;
        self.cx.checkpoint()?;
        Ok(limited.unwrap_or_default())
    }

    /// Uses a connection in a separate task.
    fn spawn_use<S: TestStream>(&self, stream: S, uses: Vec<Use>) {
        let world = self.world.clone();
        let scope = self.scope.clone();
        let counted = world.ledger.task();
        self.scope.spawn(async move |cx: Cx| {
            let _counted = counted;
            let env = Env { world, cx, scope };
            env.use_all(Connection::new(stream), &uses).await?;
            Ok(env.world.ledger.returned())
        });
    }

    pub(super) async fn serve(
        &self,
        family: Family,
        count: usize,
        uses: &[Use],
    ) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        match family {
            Family::Inet => {
                let Some(listener) = only_cancel(TcpListener::bind(cx, "127.0.0.1:0").await)?
                else {
                    return Ok(());
                };
                let Ok(at) = listener.local_addr() else { return Ok(()) };
                let _open = Open::inet(world, at);
                for _ in 0..count {
                    let accepted = self.for_a_while(async || listener.accept(cx).await).await?;
                    if let Some((stream, _)) = accepted {
                        self.spawn_use(stream, uses.to_vec());
                    }
                }
            }
            Family::Unix => {
                let at = path();
                let Ok(listener) = UnixListener::bind(cx, &at) else { return Ok(()) };
                let _open = Open::unix(world, at);
                for _ in 0..count {
                    let accepted = self.for_a_while(async || listener.accept(cx).await).await?;
                    if let Some((stream, _)) = accepted {
                        self.spawn_use(stream, uses.to_vec());
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) async fn dial(&self, family: Family, uses: &[Use]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let drawn = world.coin(u64::MAX);
        match family {
            Family::Inet => {
                let at = world.listen_addrs.inet(drawn);
                match self.for_a_while(async || TcpStream::connect(cx, at).await).await? {
                    Some(stream) => self.use_all(Connection::new(stream), uses).await,
                    None => Ok(()),
                }
            }
            Family::Unix => {
                let at = world.listen_addrs.unix(drawn);
                match self.for_a_while(async || UnixStream::connect(cx, at).await).await? {
                    Some(stream) => self.use_all(Connection::new(stream), uses).await,
                    None => Ok(()),
                }
            }
        }
    }

    /// Connects to a listener of this task.
    async fn tcp_pair(&self) -> asx::io::Result<(TcpStream, TcpStream)> {
        let cx = &self.cx;
        let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
        let near = TcpStream::connect(cx, listener.local_addr()?).await?;
        let (far, _) = listener.accept(cx).await?;
        Ok((near, far))
    }

    pub(super) async fn connection(
        &self,
        family: Family,
        near_uses: &[Use],
        far_uses: &[Use],
    ) -> Result<(), Fail> {
        match family {
            Family::Inet => {
                let Some((near, far)) = only_cancel(self.tcp_pair().await)? else { return Ok(()) };
                self.spawn_use(far, far_uses.to_vec());
                self.use_all(Connection::new(near), near_uses).await
            }
            Family::Unix => {
                let Ok((near, far)) = UnixStream::pair(&self.cx) else { return Ok(()) };
                self.spawn_use(far, far_uses.to_vec());
                self.use_all(Connection::new(near), near_uses).await
            }
        }
    }

    /// Uses a connection in all these ways in sequence, while it is available.
    pub(super) async fn use_all<S: TestStream>(
        &self,
        conn: Connection<S>,
        uses: &[Use],
    ) -> Result<(), Fail> {
        let mut conn = Some(conn);
        for used in uses {
            self.use_once(&mut conn, used).await?;
            if conn.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn use_once<'a, S: TestStream>(
        &'a self,
        slot: &'a mut Option<Connection<S>>,
        used: &'a Use,
    ) -> BoxFuture<'a, Result<(), Fail>> {
        Box::pin(async move {
            let cx = &self.cx;
            let Some(conn) = slot.as_mut() else { return Ok(()) };
            match used {
                Use::Within(limit, used) => {
                    let limited =
                        cx.timeout(micros(*limit), async |_| self.use_once(slot, used).await);
                    let _: Result<(), Fail> = limited.await;
                    cx.checkpoint()?;
                }
                Use::Read(count) => {
                    self.read_some(&mut conn.stream, &mut conn.reads, *count).await?;
                }
                Use::Write(count) => {
                    let bytes = conn.writes.make(*count);
                    let written = only_cancel(conn.stream.write(cx, &bytes).await)?;
                    conn.writes.advance_sent(written.unwrap_or_default());
                }
                Use::WriteAll(count) => {
                    self.write_all(&mut conn.stream, &mut conn.writes, *count).await?;
                }
                Use::Split(count) => {
                    let Connection { stream, reads, writes } = conn;
                    let (mut reader, mut writer) = stream.split();
                    let both = join(
                        cx,
                        async |_| self.read_some(&mut reader, reads, *count).await,
                        async |_| self.write_all(&mut writer, writes, *count).await,
                    );
                    let (read, written) = both.await;
                    read.and(written)?;
                }
                Use::Shutdown(how) => drop(conn.stream.end(*how)),
                Use::Reset => conn.stream.reset(),
                Use::Look => conn.stream.check(),
                Use::Yield => cx.yield_now().await,
                used => {
                    if let Some(conn) = slot.take() {
                        *slot = self.give(conn, used).await?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Uses that consume the connection and may return it.
    async fn give<S: TestStream>(
        &self,
        conn: Connection<S>,
        used: &Use,
    ) -> Result<Option<Connection<S>>, Fail> {
        let Env { world, cx, .. } = self;
        match used {
            Use::ReadVectored(count) => return self.read_halves(conn, *count).await,
            Use::WriteVectored(count) => return self.write_halves(conn, *count).await,
            Use::Halves { reads, elsewhere, bytes, reunites } => {
                return self.halves(conn, *reads, *elsewhere, *bytes, *reunites).await;
            }
            Use::Bound(count) => self.bound(conn, *count).await?,
            Use::Std => {
                let Connection { stream, reads, writes } = conn;
                let again = stream.through_std(cx).ok();
                return Ok(again.map(|stream| Connection { stream, reads, writes }));
            }
            Use::Half(times, fate) => {
                let world = world.clone();
                let cx = cx.clone();
                let future = Box::pin(async move {
                    let Connection { mut stream, mut reads, writes } = conn;
                    let mut buffer = [0; 100];
                    if let Ok(count) = stream.read(&cx, &mut buffer).await {
                        reads.check_received(&buffer[..count], &world.ledger);
                    }
                    world.put(S::leftover(Connection { stream, reads, writes }));
                });
                self.poll_and_leave(future, *times, *fate).await;
            }
            Use::Bag => world.put(S::leftover(conn)),
            Use::ToThread => {
                world.thread(move |world| super::leftovers::use_leftover(world, S::leftover(conn)));
            }
            _ => drop(conn),
        }
        Ok(None)
    }

    /// Reads once and checks the order of the bytes.
    async fn read_some(
        &self,
        stream: &mut impl Read,
        reads: &mut Sequence,
        count: usize,
    ) -> Result<(), Fail> {
        let mut buffer = vec![0; count];
        if let Some(count) = only_cancel(stream.read(&self.cx, &mut buffer).await)? {
            reads.check_received(&buffer[..count], &self.world.ledger);
        }
        Ok(())
    }

    async fn write_all(
        &self,
        stream: &mut impl Write,
        writes: &mut Sequence,
        count: usize,
    ) -> Result<(), Fail> {
        match stream.write_all(&self.cx, &writes.make(count)).await {
            Ok(()) => writes.advance_sent(count),
            Err(failed) => {
                writes.advance_sent(failed.written);
                only_cancel::<()>(Err(failed.error))?;
            }
        }
        Ok(())
    }

    /// Reads into two buffers, through a half of the connection.
    async fn read_halves<S: TestStream>(
        &self,
        conn: Connection<S>,
        count: usize,
    ) -> Result<Option<Connection<S>>, Fail> {
        let Connection { stream, mut reads, writes } = conn;
        let (mut reader, writer) = stream.halves();
        let mut first = vec![0; count / 2];
        let mut second = vec![0; count - count / 2];
        let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let read = reader.read_vectored(&self.cx, &mut buffers).await;
        if let Some(count) = only_cancel(read)? {
            let all = [first, second].concat();
            reads.check_received(&all[..count], &self.world.ledger);
        }
        Ok(self.unite(reader, writer).map(|stream| Connection { stream, reads, writes }))
    }

    /// Writes from two buffers, through a half of the connection.
    async fn write_halves<S: TestStream>(
        &self,
        conn: Connection<S>,
        count: usize,
    ) -> Result<Option<Connection<S>>, Fail> {
        let Connection { stream, reads, mut writes } = conn;
        let (reader, mut writer) = stream.halves();
        let bytes = writes.make(count);
        let (first, second) = bytes.split_at(count / 2);
        let buffers = [IoSlice::new(first), IoSlice::new(second)];
        if let Some(count) = only_cancel(writer.write_vectored(&self.cx, &buffers).await)? {
            writes.advance_sent(count);
        }
        Ok(self.unite(reader, writer).map(|stream| Connection { stream, reads, writes }))
    }

    fn unite<S: TestStream>(
        &self,
        reader: OwnedReadHalf<S>,
        writer: OwnedWriteHalf<S>,
    ) -> Option<S> {
        let united = reader.reunite(writer).ok();
        if united.is_none() {
            self.world.ledger.fault(String::from("two halves of a stream cannot be reunited"));
        }
        united
    }

    /// Moves one half elsewhere.
    async fn halves<S: TestStream>(
        &self,
        conn: Connection<S>,
        here: bool,
        elsewhere: Where,
        bytes: usize,
        reunites: bool,
    ) -> Result<Option<Connection<S>>, Fail> {
        let Connection { stream, mut reads, mut writes } = conn;
        let (mut reader, mut writer) = stream.halves();
        if reunites {
            self.read_some(&mut reader, &mut reads, bytes).await?;
            return Ok(self.unite(reader, writer).map(|stream| Connection {
                stream,
                reads,
                writes,
            }));
        }
        let world = self.world.clone();
        match (here, elsewhere) {
            (true, Where::Thread) => world.thread(move |_| drop(writer)),
            (false, Where::Thread) => world.thread(move |_| drop(reader)),
            (true, Where::Here) => {
                self.in_a_task(async move |env: Env| {
                    env.write_all(&mut writer, &mut writes, bytes).await
                });
                self.read_some(&mut reader, &mut reads, bytes).await?;
            }
            (false, Where::Here) => {
                self.in_a_task(async move |env: Env| {
                    env.read_some(&mut reader, &mut reads, bytes).await
                });
                self.write_all(&mut writer, &mut writes, bytes).await?;
            }
        }
        Ok(None)
    }

    /// Runs a function in a separate task.
    fn in_a_task<F>(&self, does: impl FnOnce(Env) -> F + Send + 'static)
    where
        F: Future<Output = Result<(), Fail>> + Send + 'static,
    {
        let world = self.world.clone();
        let scope = self.scope.clone();
        let counted = world.ledger.task();
        self.scope.spawn(async move |cx: Cx| {
            let _counted = counted;
            let ledger = world.ledger.clone();
            does(Env { world, cx, scope }).await?;
            Ok(ledger.returned())
        });
    }

    /// Uses the traits of another library. Consumes the connection.
    async fn bound<S: TestStream>(&self, conn: Connection<S>, count: usize) -> Result<(), Fail> {
        let Connection { stream, mut reads, writes } = conn;
        let mut bound = stream.with_context(&self.cx);
        let bytes = writes.make(count);
        let written = poll_fn(|cx| Pin::new(&mut bound).poll_write(cx, &bytes)).await;
        let mut buffer = vec![0; count];
        if written.is_ok() {
            let read = poll_fn(|cx| Pin::new(&mut bound).poll_read(cx, &mut buffer)).await;
            if let Ok(count) = read {
                reads.check_received(&buffer[..count], &self.world.ledger);
            }
        }
        self.cx.checkpoint()?;
        Ok(())
    }

    pub(super) async fn frames(&self, family: Family, count: usize) -> Result<(), Fail> {
        match family {
            Family::Inet => {
                let Some((near, far)) = only_cancel(self.tcp_pair().await)? else { return Ok(()) };
                self.send_frames(near, far, count).await
            }
            Family::Unix => {
                let Ok((near, far)) = UnixStream::pair(&self.cx) else { return Ok(()) };
                self.send_frames(near, far, count).await
            }
        }
    }

    async fn send_frames<S: TestStream>(&self, near: S, far: S, count: usize) -> Result<(), Fail> {
        let long = self.world.coin(4) == 0;
        let frame = move |nth: usize| vec![nth as u8; if long { 30_000 } else { nth * 7 }];
        self.in_a_task(async move |env: Env| {
            let mut writer = FrameWriter::new(far);
            for nth in 0..count {
                let Ok(permit) = writer.reserve(&env.cx).await else { break };
                let _ = permit.send(&frame(nth));
                if env.world.coin(2) == 0 && writer.flush(&env.cx).await.is_err() {
                    break;
                }
            }
            let _ = writer.flush(&env.cx).await;
            env.cx.checkpoint()?;
            Ok(())
        });
        let mut reader = FrameReader::new(near);
        for nth in 0..count {
            let limit = micros(WAIT / 4);
            let cx = &self.cx;
            let read = cx.timeout(limit, async |cx| match reader.read(cx).await {
                Ok(read) => Ok(read),
                Err(error) if error.is_cancelled() => Err(Fail::Cancelled),
                Err(_) => Ok(None),
            });
            match read.await {
                Ok(Some(read)) if read == frame(nth) => {}
                Ok(Some(_)) => self.world.ledger.fault(format!("frame {nth} has wrong contents")),
                Ok(None) | Err(_) => break,
            }
        }
        self.cx.checkpoint()?;
        Ok(())
    }

    pub(super) async fn datagrams(&self, family: Family, count: usize) -> Result<(), Fail> {
        let cx = &self.cx;
        let mut buffer = [0; 100];
        match family {
            Family::Inet => {
                let Some(near) = only_cancel(UdpSocket::bind(cx, "127.0.0.1:0").await)? else {
                    return Ok(());
                };
                let Some(far) = only_cancel(UdpSocket::bind(cx, "127.0.0.1:0").await)? else {
                    return Ok(());
                };
                let (Ok(at), Ok(from)) = (near.local_addr(), far.local_addr()) else {
                    return Ok(());
                };
                self.in_a_task(async move |env: Env| {
                    for nth in 0..count {
                        only_cancel(far.send_to(&env.cx, &[nth as u8; 50], at).await)?;
                    }
                    Ok(())
                });
                for _ in 0..count {
                    let receive = async || near.recv_from(cx, &mut buffer).await;
                    let Some((size, sender)) = self.for_a_while(receive).await? else { break };
                    if (size, sender) != (50, from) {
                        self.world.ledger.fault(format!("{size} bytes from {sender}"));
                    }
                }
            }
            Family::Unix => {
                let Ok((near, far)) = UnixDatagram::pair(cx) else { return Ok(()) };
                self.in_a_task(async move |env: Env| {
                    for nth in 0..count {
                        only_cancel(far.send(&env.cx, &[nth as u8; 50]).await)?;
                    }
                    Ok(())
                });
                for nth in 0..count {
                    let receive = async || near.recv(cx, &mut buffer).await;
                    let Some(size) = self.for_a_while(receive).await? else { break };
                    if buffer[..size] != [nth as u8; 50] && size > 0 {
                        self.world.ledger.fault(format!("datagram {nth} has wrong contents"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Registers a descriptor, with a thread at its other end.
    pub(super) async fn descriptor(&self, family: Family, uses: &[Use]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let Ok((near, mut far)) = StdUnixStream::pair() else { return Ok(()) };
        if near.set_nonblocking(true).is_err() || far.set_nonblocking(true).is_err() {
            return Ok(());
        }
        let Ok(watched) = AsyncFd::new(cx, near) else { return Ok(()) };
        let watched = Arc::new(watched);
        if family == Family::Inet {
            // The peer ends while the descriptor is registered.
            world.thread(move |_| {
                let _ = far.write(&[1; 10]);
                let _ = far.read(&mut [0; 10]);
            });
        } else {
            self.in_a_task(async move |env: Env| {
                env.cx.yield_now().await;
                let _ = far.write(&[1; 10]);
                env.cx.yield_now().await;
                Ok(())
            });
        }
        for used in uses {
            match used {
                Use::Read(count) | Use::Bound(count) => {
                    let mut buffer = vec![0; *count];
                    let attempt = async || {
                        let mut read = |mut fd: &StdUnixStream| fd.read(&mut buffer);
                        watched.with(cx, Interest::Readable, &mut read).await
                    };
                    self.for_a_while(attempt).await?;
                }
                Use::Write(count) | Use::WriteAll(count) => {
                    let bytes = vec![1; *count];
                    let attempt = async || {
                        let mut write = |mut fd: &StdUnixStream| fd.write(&bytes);
                        watched.with(cx, Interest::Writable, &mut write).await
                    };
                    self.for_a_while(attempt).await?;
                }
                Use::Half(times, fate) => {
                    let watched = watched.clone();
                    let cx = cx.clone();
                    let future = Box::pin(async move {
                        let mut ready = pin!(watched.readable(&cx));
                        if let Ok(ready) = ready.as_mut().await {
                            ready.clear_ready();
                        }
                        drop(watched.readable(&cx).await);
                    });
                    self.poll_and_leave(future, *times, *fate).await;
                }
                Use::Split(_) | Use::Halves { .. } => {
                    let watched = watched.clone();
                    self.in_a_task(async move |env: Env| {
                        if let Some(ready) = only_cancel(watched.readable(&env.cx).await)? {
                            ready.clear_ready();
                        }
                        only_cancel(watched.readable(&env.cx).await.map(drop))?;
                        Ok(())
                    });
                }
                Use::Drop => break,
                _ => cx.yield_now().await,
            }
        }
        Ok(())
    }

    /// Uses a connection from the bag.
    pub(super) async fn found<S: TestStream>(&self, conn: Connection<S>) {
        let reads = Use::Within(WAIT / 4, Box::new(Use::Read(100)));
        let uses = [Use::Write(10), reads.clone(), Use::Write(10), reads];
        let _ = self.use_all(conn, &uses).await;
    }
}

/// Ends a connection from the bag where awaiting is not possible.
pub(super) fn end<S: TestStream>(world: &World, conn: Connection<S>) {
    match world.coin(4) {
        0 => drop(conn.stream.end(std::net::Shutdown::Both)),
        1 => conn.stream.reset(),
        2 => return world.put(S::leftover(conn)),
        _ => {}
    }
    drop(conn);
}
