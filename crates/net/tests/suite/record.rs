//! Recorded events of sockets.

#![cfg(unix)]

use crate::common;

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use asx_kernel::io::{IoFailure, IoOp, Opening, Way};
use asx_kernel::journal::EventKind::{self, *};
use asx_native::Runtime;
use asx_net::io::Read as _;
use asx_net::{Cx, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixStream, io};
use asx_runtime::net::{Address, SocketSetup};
use asx_runtime::{Recorded, channel};
use common::Directory;

const SOON: Duration = Duration::from_millis(1);

fn record<F>(program: impl FnOnce(Cx) -> F) -> Recorded
where
    F: Future<Output = io::Result<()>>,
{
    let runtime = Runtime::builder().workers(1).journal(10_000).build().unwrap();
    let ended = runtime.block_on(program);
    assert!(ended.is_ok(), "{:?}", ended.err());
    runtime.journal().unwrap()
}

/// Returns the socket events of a recording.
fn of_sockets(recorded: &Recorded) -> Vec<EventKind> {
    let kinds = recorded.events.iter().map(|event| event.kind);
    kinds.filter(|kind| kind.code() >= 80).collect()
}

/// The event of a socket that was opened, not by an accept.
const fn opened(socket: u64, how: Opening) -> EventKind {
    SocketOpened { socket, how, of: None }
}

const fn done(socket: u64, op: IoOp, bytes: u64) -> EventKind {
    IoDone { socket, op, bytes }
}

#[test]
fn events_of_a_connection_are_recorded_in_order() {
    let recorded = record(async |cx: Cx| {
        let cx = &cx;
        let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
        let mut client = TcpStream::connect(cx, listener.local_addr()?).await?;
        let (mut server, _) = listener.accept(cx).await?;
        client.write_all(cx, b"hello").await?;
        server.peek(cx, &mut [0; 2]).await?;
        server.read_exact(cx, &mut [0; 5]).await?;
        let waits = cx.timeout(SOON, async |cx| server.read(cx, &mut [0; 5]).await);
        assert!(waits.await.is_err());
        client.shutdown(Shutdown::Write)?;
        assert!(client.write(cx, b"more").await.is_err());
        assert_eq!(server.read(cx, &mut [0; 5]).await?, 0);
        drop((client, server, listener));
        Ok(())
    });
    let events = of_sockets(&recorded);
    // The connect and the last read may or may not have to wait.
    let needless = [IoWaiting { socket: 2, way: Way::Write }];
    let events: Vec<_> = events.into_iter().filter(|kind| !needless.contains(kind)).collect();
    let last_wait = events.iter().rposition(|kind| matches!(kind, IoWaiting { .. }));
    let mut expected = vec![
        opened(1, Opening::Listen),
        opened(2, Opening::Connect),
        done(2, IoOp::Connect, 0),
        SocketOpened { socket: 3, how: Opening::Accept, of: Some(1) },
        done(2, IoOp::Write, 5),
        done(3, IoOp::Peek, 2),
        done(3, IoOp::Read, 5),
        IoWaiting { socket: 3, way: Way::Read },
        IoLeft { socket: 3, way: Way::Read },
        SocketEnded { socket: 2, way: Way::Write },
        IoFailed { socket: 2, op: IoOp::Write, error: IoFailure::BrokenPipe },
        done(3, IoOp::Read, 0),
        SocketClosed { socket: 2 },
        SocketClosed { socket: 3 },
        SocketClosed { socket: 1 },
    ];
    if last_wait > Some(8) {
        expected.insert(11, IoWaiting { socket: 3, way: Way::Read });
    }
    assert_eq!(events, expected);
    let names: Vec<&str> = recorded.sockets.iter().map(|(_, name)| &**name).collect();
    let (local, peer) = names[1].split_once(" -> ").expect("two addresses");
    assert_eq!(names[0], format!("listener {peer}"));
    assert_eq!(names[2], format!("{peer} -> {local}"));
    // Events name the task that caused them.
    let by_tasks = recorded.events.iter().filter(|event| event.kind.code() >= 80);
    assert!(by_tasks.map(|event| event.subject.task).all(|task| task == Some(1)));
}

#[test]
fn failed_socket_is_recorded_with_its_name_and_error() {
    let recorded = record(async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let taken = TcpListener::bind(&cx, listener.local_addr()?).await;
        assert!(taken.is_err());
        let folder = Directory::new("record");
        assert!(UnixStream::connect(&cx, folder.path("absent")).await.is_err());
        Ok(())
    });
    let events = of_sockets(&recorded);
    let in_use = IoFailed { socket: 2, op: IoOp::Listen, error: IoFailure::AddrInUse };
    let not_found = IoFailed { socket: 3, op: IoOp::Connect, error: IoFailure::NotFound };
    assert_eq!(events, [opened(1, Opening::Listen), in_use, not_found, SocketClosed { socket: 1 }]);
    assert_eq!(format!("listener {}", recorded.sockets[1].1), recorded.sockets[0].1);
    assert!(recorded.sockets[2].1.ends_with("absent"));
}

#[test]
fn events_of_datagrams_and_pairs_are_recorded() {
    let recorded = record(async |cx: Cx| {
        let cx = &cx;
        let one = UdpSocket::bind(cx, "127.0.0.1:0").await?;
        let other = UdpSocket::bind(cx, "127.0.0.1:0").await?;
        other.send_to(cx, b"one", one.local_addr()?).await?;
        one.recv_from(cx, &mut [0; 8]).await?;
        other.connect(cx, one.local_addr()?).await?;
        other.send(cx, b"two!").await?;
        one.recv(cx, &mut [0; 8]).await?;
        drop((one, other));
        let (left, right) = UnixDatagram::pair(cx)?;
        left.send(cx, b"x").await?;
        right.recv(cx, &mut [0; 8]).await?;
        Ok(())
    });
    let waits = |kind: &EventKind| matches!(kind, IoWaiting { .. });
    let events: Vec<_> = of_sockets(&recorded).into_iter().filter(|kind| !waits(kind)).collect();
    let expected = [
        opened(1, Opening::Bind),
        opened(2, Opening::Bind),
        done(2, IoOp::Send, 3),
        done(1, IoOp::Receive, 3),
        done(2, IoOp::Connect, 0),
        done(2, IoOp::Write, 4),
        done(1, IoOp::Read, 4),
        SocketClosed { socket: 1 },
        SocketClosed { socket: 2 },
        opened(3, Opening::Adopt),
        opened(4, Opening::Adopt),
        done(3, IoOp::Write, 1),
        done(4, IoOp::Read, 1),
    ];
    assert_eq!(events[..expected.len()], expected);
    assert_eq!(events.len(), expected.len() + 2, "two closes follow");
    let names: Vec<&str> = recorded.sockets.iter().map(|(_, name)| &**name).collect();
    assert!(names[0].starts_with("datagrams 127.0.0.1:"));
    assert!(names[1].contains(" -> "), "{}", names[1]);
}

/// The begin and the end of a wait are one event each, however often the operation is polled.
#[test]
fn wait_is_recorded_once_however_often_it_is_polled() {
    let recorded = record(async |cx: Cx| {
        let (one, mut other) = UnixStream::pair(&cx)?;
        let (here, mut waits) = channel::bounded(1);
        cx.scope(async |s| {
            let (mut reader, mut writer) = one.into_split();
            let read = s.spawn(async move |cx: Cx| {
                here.send(&cx, ()).await.ok();
                reader.read(&cx, &mut [0; 8]).await
            });
            waits.recv(&cx).await.ok();
            for _ in 0..5 {
                cx.yield_now().await;
            }
            other.write_all(&cx, b"now").await?;
            assert_eq!(read.await.ok(), Some(3));
            writer.shutdown()?;
            let mut rest = Vec::new();
            other.read_to_end(&cx, &mut rest).await?;
            io::Result::Ok(())
        })
        .await
    });
    let events = of_sockets(&recorded);
    let of_one = events.iter().filter(|kind| matches!(kind, IoWaiting { socket: 1, .. }));
    assert_eq!(of_one.count(), 1, "{events:?}");
    assert!(!events.iter().any(|kind| matches!(kind, IoLeft { .. })), "{events:?}");
}

/// Without recording, the socket of the host is used directly.
#[test]
fn socket_is_wrapped_only_while_recording() {
    for is_recording in [false, true] {
        let builder = Runtime::builder().workers(1);
        let builder = if is_recording { builder.journal(100) } else { builder };
        builder.build().unwrap().block_on(async |cx: Cx| {
            let net = cx.net().expect("a network");
            let at = Address::from(std::net::SocketAddr::from(([127, 0, 0, 1], 0)));
            let made = net.listen(&at, &SocketSetup::default()).expect("a socket");
            let same = cx.adopt_socket(made.clone());
            assert_eq!(Arc::ptr_eq(&made, &same), !is_recording);
        });
    }
}
