//! UDP over the loopback interface.

use crate::common;

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use asx_native::Runtime;
use asx_net::{Cx, UdpSocket, io};
use asx_runtime::channel;
use common::{on_each, pair};

async fn two(cx: &Cx) -> io::Result<(UdpSocket, UdpSocket)> {
    let one = UdpSocket::bind(cx, "127.0.0.1:0").await?;
    Ok((one, UdpSocket::bind(cx, "127.0.0.1:0").await?))
}

#[test]
fn datagrams_keep_their_bounds_and_sender_addresses() {
    on_each(async |cx| {
        let (one, other) = two(&cx).await?;
        for text in [&b"first"[..], b"", b"third"] {
            assert_eq!(other.send_to(&cx, text, one.local_addr()?).await?, text.len());
        }
        let mut buffer = [0; 16];
        for text in [&b"first"[..], b"", b"third"] {
            let (count, from) = one.recv_from(&cx, &mut buffer).await?;
            assert_eq!((&buffer[..count], from), (text, other.local_addr()?));
        }
        Ok(())
    });
}

/// Windows reports an error instead.
#[cfg(unix)]
#[test]
fn bytes_of_a_datagram_beyond_the_buffer_are_lost() {
    on_each(async |cx| {
        let (one, other) = two(&cx).await?;
        other.send_to(&cx, b"too long", one.local_addr()?).await?;
        other.send_to(&cx, b"next", one.local_addr()?).await?;
        let mut small = [0; 3];
        assert_eq!(one.recv_from(&cx, &mut small).await?.0, 3);
        assert_eq!(&small, b"too");
        let mut buffer = [0; 8];
        let count = one.recv(&cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], b"next");
        Ok(())
    });
}

#[test]
fn connected_socket_exchanges_datagrams_only_with_its_peer() {
    on_each(async |cx| {
        let (one, other) = two(&cx).await?;
        let stranger = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        assert_eq!(one.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
        one.connect(&cx, other.local_addr()?).await?;
        assert_eq!(one.peer_addr()?, other.local_addr()?);
        stranger.send_to(&cx, b"stranger", one.local_addr()?).await?;
        other.send_to(&cx, b"peer", one.local_addr()?).await?;
        let mut buffer = [0; 16];
        let count = one.recv(&cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], b"peer");
        assert_eq!(one.send(&cx, b"back").await?, 4);
        assert_eq!(other.peek(&cx, &mut buffer).await?, 4);
        let count = other.recv(&cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], b"back");
        Ok(())
    });
}

#[test]
fn a_port_that_nobody_is_at_is_an_error() {
    on_each(async |cx| {
        let (one, other) = two(&cx).await?;
        one.connect(&cx, other.local_addr()?).await?;
        drop(other);
        one.send(&cx, b"lost").await?;
        let error = one.recv(&cx, &mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = UdpSocket::bind(&cx, one.local_addr()?).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        Ok(())
    });
}

#[test]
fn options_return_the_values_that_were_set() {
    on_each(async |cx| {
        let (one, _other) = two(&cx).await?;
        assert!(!one.broadcast()?);
        one.set_broadcast(true)?;
        assert!(one.broadcast()?);
        one.set_ttl(9)?;
        assert_eq!(one.ttl()?, 9);
        assert!(one.take_error()?.is_none());
        let built = UdpSocket::builder().broadcast(true).bind_udp(&cx, "127.0.0.1:0").await?;
        assert!(built.broadcast()?);
        one.set_send_buffer(30_000)?;
        one.set_recv_buffer(20_000)?;
        assert!(one.send_buffer()? >= 30_000 && one.recv_buffer()? >= 20_000);
        #[cfg(unix)]
        assert!(one.fd().is_some());
        let at = one.local_addr()?;
        let one = one.into_std()?;
        built.send_to(&cx, b"hello", at).await?;
        one.set_nonblocking(false)?;
        assert_eq!(one.recv(&mut [0; 8])?, 5);
        Ok(())
    });
}

#[test]
fn concurrent_receives_return_each_datagram_once() {
    on_each(async |cx| {
        let (one, other) = two(&cx).await?;
        cx.scope(async |s| {
            let (got, mut all) = channel::bounded(64);
            for _ in 0..4 {
                let one = one.clone();
                let got = got.clone();
                s.spawn(async move |cx: Cx| -> io::Result<()> {
                    let mut buffer = [0; 8];
                    loop {
                        let count = one.recv(&cx, &mut buffer).await?;
                        assert_eq!(count, 1);
                        got.send(&cx, buffer[0]).await.ok();
                    }
                });
            }
            // They fit into the receive buffer, so none is lost on the loopback interface.
            for number in 0..40_u8 {
                other.send_to(&cx, &[number], one.local_addr()?).await?;
            }
            let mut numbers = Vec::new();
            for _ in 0..40 {
                numbers.push(all.recv(&cx).await.unwrap());
            }
            numbers.sort_unstable();
            assert_eq!(numbers, (0..40).collect::<Vec<_>>());
            s.cancel("enough");
            Ok(())
        })
        .await
        .or_else(|error: io::Error| if error.is_cancelled() { Ok(()) } else { Err(error) })
    });
}

/// Sends datagrams to itself: each operation finds the socket ready. Counts the operations.
async fn flood(cx: Cx, operations: Arc<AtomicU64>) -> io::Result<()> {
    let socket = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
    let address = socket.local_addr()?;
    let mut buffer = [0; 16];
    loop {
        socket.send_to(&cx, b"flood", address).await?;
        operations.fetch_add(1, Relaxed);
        socket.recv_from(&cx, &mut buffer).await?;
        operations.fetch_add(1, Relaxed);
    }
}

#[test]
fn a_task_at_an_always_ready_socket_yields_after_16_operations() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let ended: io::Result<()> = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s| {
            let operations = Arc::new(AtomicU64::new(0));
            let counts = operations.clone();
            s.spawn(move |cx| flood(cx, counts));
            // The two tasks alternate: each yield is one poll of the other task.
            let mut last = 0;
            for _ in 0..1000 {
                cx.yield_now().await;
                let now = operations.load(Relaxed);
                assert!(now - last <= 16, "{} operations in one poll", now - last);
                last = now;
            }
            assert!(last > 0);
            s.cancel("enough");
            Ok(())
        })
        .await
    });
    ended.unwrap_or_else(|error| assert!(error.is_cancelled(), "{error}"));
}

#[test]
fn an_always_ready_socket_delays_others_by_a_bounded_number_of_operations() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let ended: io::Result<()> = runtime.block_on(async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        cx.scope(async |s| {
            let operations = Arc::new(AtomicU64::new(0));
            let counts = operations.clone();
            s.spawn(move |cx| flood(cx, counts));
            s.spawn(async move |cx: Cx| {
                let mut byte = [0];
                while server.read(&cx, &mut byte).await? > 0 {
                    server.write_all(&cx, &byte).await?;
                }
                Ok(())
            });
            let mut trips = Vec::new();
            for _ in 0..101 {
                let before = operations.load(Relaxed);
                client.write_all(&cx, b"x").await?;
                client.read_exact(&cx, &mut [0]).await?;
                trips.push(operations.load(Relaxed) - before);
            }
            // A trip has two events. The median: the system may deliver some bytes late.
            trips.sort_unstable();
            assert!(trips[50] <= 128, "operations of the flood during each trip: {trips:?}");
            s.cancel("enough");
            Ok(())
        })
        .await
    });
    ended.unwrap_or_else(|error| assert!(error.is_cancelled(), "{error}"));
}
