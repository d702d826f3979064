//! Unix sockets.

#![cfg(unix)]

use crate::common;

use std::io::ErrorKind;
use std::net::Shutdown;

use asx_net::io::Read as _;
use asx_net::{Cx, SocketBuilder, UnixDatagram, UnixListener, UnixStream, io};
use asx_runtime::channel;
use common::{Directory, cancelled, on_each};
use std::time::Duration;

#[test]
fn connections_have_paths_and_carry_bytes() {
    on_each(async |cx| {
        let directory = Directory::new("named");
        let path = directory.path("socket");
        let listener = UnixListener::bind(&cx, &path)?;
        assert_eq!(listener.local_addr()?.path(), Some(&*path));
        assert_eq!(UnixListener::bind(&cx, &path).unwrap_err().kind(), ErrorKind::AddrInUse);
        let mut client = UnixStream::connect(&cx, &path).await?;
        let (mut server, from) = listener.accept(&cx).await?;
        assert_eq!((from.path(), client.peer_addr()?.path()), (None, Some(&*path)));
        client.write_all(&cx, b"hello").await?;
        client.shutdown(Shutdown::Write)?;
        let mut got = Vec::new();
        server.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"hello");
        server.write_all(&cx, b"answer").await?;
        drop(server);
        got.clear();
        client.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"answer");
        Ok(())
    });
}

#[test]
fn connect_without_a_listener_fails() {
    on_each(async |cx| {
        let directory = Directory::new("absent");
        let path = directory.path("socket");
        let error = UnixStream::connect(&cx, &path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        drop(UnixListener::bind(&cx, &path)?);
        let error = UnixStream::connect(&cx, &path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        Ok(())
    });
}

#[test]
fn connect_waits_while_the_backlog_is_full() {
    on_each(async |cx| {
        let directory = Directory::new("backlog");
        let path = directory.path("socket");
        let path_of_std = path.clone();
        // The operating system rounds the backlog to one or two.
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
        socket.bind(&socket2::SockAddr::unix(path_of_std)?)?;
        socket.listen(1)?;
        let listener: std::os::unix::net::UnixListener = std::os::fd::OwnedFd::from(socket).into();
        let mut clients = Vec::new();
        // The first connect beyond the backlog times out.
        loop {
            let limit = Duration::from_millis(20);
            match cx.timeout(limit, async |cx| UnixStream::connect(cx, &path).await).await {
                Ok(client) => clients.push(client),
                other => break drop(cancelled(other)),
            }
            assert!(clients.len() < 16, "the backlog is never full");
        }
        // A place becomes free while a connect waits.
        let (here, mut waits) = channel::bounded(1);
        cx.scope(async |s| {
            let late = s.spawn(async move |cx: Cx| {
                here.send(&cx, ()).await.ok();
                UnixStream::connect(&cx, &path).await.map(drop)
            });
            waits.recv(&cx).await.ok();
            drop(listener.accept()?);
            assert!(late.await.is_ok());
            Ok(())
        })
        .await
    });
}

#[test]
fn pair_is_connected_and_can_be_split() {
    on_each(async |cx| {
        let (one, mut other) = UnixStream::pair(&cx)?;
        let (mut reader, mut writer) = one.into_split();
        writer.write_all(&cx, b"from one").await?;
        drop(writer);
        let mut got = Vec::new();
        other.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"from one");
        other.write_all(&cx, b"back").await?;
        let mut answer = [0; 4];
        reader.read_exact(&cx, &mut answer).await?;
        assert_eq!(&answer, b"back");
        Ok(())
    });
}

#[test]
fn peek_does_not_consume_bytes() {
    on_each(async |cx| {
        let (mut near, mut far) = UnixStream::pair(&cx)?;
        let limit = Duration::from_millis(1);
        let mut buffer = [0; 8];
        cancelled(cx.timeout(limit, async |cx| near.peek(cx, &mut buffer).await).await);
        far.write_all(&cx, b"abc").await?;
        for _ in 0..2 {
            assert_eq!(near.peek(&cx, &mut buffer).await?, 3);
        }
        assert_eq!(near.read(&cx, &mut buffer).await?, 3);
        assert_eq!(&buffer[..3], b"abc");
        drop(far);
        assert_eq!(near.peek(&cx, &mut buffer).await?, 0);
        Ok(())
    });
}

#[test]
fn cancelled_read_consumes_nothing() {
    on_each(async |cx| {
        let (mut one, mut other) = UnixStream::pair(&cx)?;
        let mut buffer = [0; 8];
        let limit = Duration::from_millis(1);
        cancelled(cx.timeout(limit, async |cx| one.read(cx, &mut buffer).await).await);
        other.write_all(&cx, b"kept").await?;
        let count = one.read(&cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], b"kept");
        Ok(())
    });
}

#[test]
fn datagrams_are_sent_to_paths() {
    on_each(async |cx| {
        let directory = Directory::new("datagrams");
        let (one, other) = (directory.path("one"), directory.path("other"));
        let receiver = UnixDatagram::bind(&cx, &one)?;
        let sender = UnixDatagram::bind(&cx, &other)?;
        assert_eq!(sender.send_to(&cx, b"named", &one).await?, 5);
        let nameless = UnixDatagram::unbound(&cx)?;
        nameless.connect(&one)?;
        nameless.send(&cx, b"nameless").await?;
        let mut buffer = [0; 16];
        let (count, from) = receiver.recv_from(&cx, &mut buffer).await?;
        assert_eq!((&buffer[..count], from.path()), (&b"named"[..], Some(&*other)));
        let (count, from) = receiver.recv_from(&cx, &mut buffer).await?;
        assert_eq!((&buffer[..count], from.path()), (&b"nameless"[..], None));

        let (left, right) = UnixDatagram::pair(&cx)?;
        left.send(&cx, b"pair").await?;
        assert_eq!(right.recv(&cx, &mut buffer).await?, 4);
        Ok(())
    });
}

#[test]
fn streams_convert_from_and_to_std() {
    on_each(async |cx| {
        let (one, mut other) = std::os::unix::net::UnixStream::pair()?;
        let mut one = UnixStream::from_std(&cx, one)?;
        one.write_all(&cx, b"hello").await?;
        let mut buffer = [0; 5];
        std::io::Read::read_exact(&mut other, &mut buffer)?;
        assert_eq!(&buffer, b"hello");
        let one = one.into_std()?;
        one.set_nonblocking(false)?;
        std::io::Write::write_all(&mut &one, b"there").unwrap();
        let mut other = UnixStream::from_std(&cx, other)?;
        other.read_exact(&cx, &mut buffer).await?;
        assert_eq!(&buffer, b"there");
        io::Result::Ok(())
    });
}

#[test]
fn path_that_would_be_truncated_is_refused() {
    on_each(async |cx| {
        for name in ["", "/tmp/\0hidden"] {
            let listener = UnixListener::bind(&cx, name).unwrap_err();
            let datagrams = UnixDatagram::bind(&cx, name).unwrap_err();
            let stream = UnixStream::connect(&cx, name).await.unwrap_err();
            let kinds = [listener.kind(), datagrams.kind(), stream.kind()];
            assert_eq!(kinds, [ErrorKind::InvalidInput; 3], "{name:?}");
        }
        Ok(())
    });
}

#[test]
fn empty_read_of_a_stream_completes_and_empty_datagram_is_received() {
    on_each(async |cx| {
        let (mut one, _other) = UnixStream::pair(&cx)?;
        assert_eq!(one.read(&cx, &mut []).await?, 0);
        let (from, to) = UnixDatagram::pair(&cx)?;
        assert_eq!(from.send(&cx, &[]).await?, 0);
        from.send(&cx, b"next").await?;
        // The empty datagram is received into an empty buffer.
        assert_eq!(to.recv(&cx, &mut []).await?, 0);
        let mut next = [0; 4];
        assert_eq!(to.recv(&cx, &mut next).await?, 4);
        Ok(())
    });
}

#[test]
fn options_return_the_values_that_were_set() {
    on_each(async |cx| {
        let directory = Directory::new("settings");
        let [name, other_name] = ["listener", "datagrams"].map(|name| directory.path(name));
        let builder = SocketBuilder::new().backlog(0).send_buffer(30_000).recv_buffer(20_000);
        let listener = builder.listen_unix(&cx, &name)?;
        let client = builder.connect_unix(&cx, &name).await?;
        assert_eq!((client.send_buffer()?, client.recv_buffer()?), (60_000, 40_000));
        // The backlog holds one connection: the next connect waits.
        let next = async |cx: &Cx| UnixStream::connect(cx, &name).await;
        cancelled(cx.timeout(Duration::from_millis(5), next).await);
        let (server, _) = listener.accept(&cx).await?;
        server.set_send_buffer(10_000)?;
        assert_eq!(server.send_buffer()?, 20_000);
        assert!(server.take_error()?.is_none());

        let socket = builder.bind_unix(&cx, &other_name)?;
        assert_eq!((socket.send_buffer()?, socket.recv_buffer()?), (60_000, 40_000));
        socket.set_recv_buffer(50_000)?;
        assert_eq!(socket.recv_buffer()?, 100_000);
        assert!(socket.take_error()?.is_none());
        io::Result::Ok(())
    });
}

#[test]
fn peek_does_not_take_the_datagram_and_sender_returns_its_peer() {
    on_each(async |cx| {
        let directory = Directory::new("peek");
        let path = directory.path("socket");
        let one = UnixDatagram::bind(&cx, &path)?;
        let other = UnixDatagram::unbound(&cx)?;
        assert_eq!(other.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        other.connect(&path)?;
        assert_eq!(other.peer_addr()?.path(), Some(&*path));
        other.send(&cx, b"hello").await?;
        let mut buffer = [0; 8];
        for _ in 0..2 {
            assert_eq!(one.peek(&cx, &mut buffer[..3]).await?, 3);
        }
        assert_eq!(one.recv(&cx, &mut buffer).await?, 5);
        io::Result::Ok(())
    });
}

/// An error of an earlier peer does not close a datagram socket.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn send_waits_for_space_after_an_error_was_reported() {
    use asx_runtime::join;
    use futures_lite::future::poll_once;

    on_each(async |cx| {
        let directory = Directory::new("reported");
        let path = directory.path("socket");
        let receiver = UnixDatagram::bind(&cx, &path)?;
        let (sender, former) = UnixDatagram::pair(&cx)?;
        let mut buffer = [0; 8];
        let mut recv = sender.recv(&cx, &mut buffer);
        assert!(poll_once(&mut recv).await.is_none());
        // The peer of the sender connects to another socket, and loses a datagram.
        sender.send(&cx, b"lost").await?;
        former.connect(&path)?;
        let io::Error::Io(error) = recv.await.unwrap_err() else { panic!("cancelled") };
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        sender.connect(&path)?;
        let mut sent = 0_u32;
        let late = loop {
            let mut send = sender.send(&cx, b"x");
            match poll_once(&mut send).await {
                Some(count) => assert_eq!(count?, 1),
                // The first poll may be pending because the operation budget is used up.
                None if poll_once(&mut send).await.is_none() => break send,
                None => {}
            }
            sent += 1;
            assert!(sent < 100_000, "the receiver is never full");
        };
        let receive = async |cx: &Cx| receiver.recv(cx, &mut [0; 8]).await;
        let (count, received) = join(&cx, async |_| late.await, receive).await;
        assert_eq!((count?, received?), (1, 1));
        Ok(())
    });
}

#[test]
fn listeners_and_datagrams_convert_from_and_to_std() {
    on_each(async |cx| {
        let directory = Directory::new("std");
        let path = directory.path("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path)?;
        let listener = UnixListener::from_std(&cx, listener)?;
        let client = UnixStream::connect(&cx, &path).await?;
        assert!(listener.fd().is_some());
        let listener = listener.into_std()?;
        listener.set_nonblocking(false)?;
        let (_server, _) = listener.accept()?;
        drop(client);

        let (one, other) = std::os::unix::net::UnixDatagram::pair()?;
        let one = UnixDatagram::from_std(&cx, one)?;
        one.send(&cx, b"hello").await?;
        assert!(one.fd().is_some());
        assert_eq!(other.recv(&mut [0; 8])?, 5);
        one.into_std()?.send(b"x")?;
        assert_eq!(other.recv(&mut [0; 8])?, 1);
        io::Result::Ok(())
    });
}
