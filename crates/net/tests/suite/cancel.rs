//! Effects of cancels and drops on socket operations.

use crate::common;

use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_net::io::Read as _;
use asx_net::{Cx, TcpListener, TcpStream, UdpSocket, io};
use asx_runtime::{channel, select};
use common::{cancelled, on_each, pair};

/// A timeout for operations that have to wait.
const SOON: Duration = Duration::from_millis(1);

#[test]
fn read_that_times_out_consumes_nothing() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        let mut buffer = [0; 8];
        for _ in 0..3 {
            let read = cx.timeout(SOON, async |cx| server.read(cx, &mut buffer).await).await;
            assert_eq!(cancelled(read).kind(), Kind::Timeout);
        }
        client.write_all(&cx, b"kept").await?;
        let count = server.read(&cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], b"kept");
        Ok(())
    });
}

#[test]
fn accept_that_times_out_takes_no_connection() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let accepted = cx.timeout(SOON, async |cx| listener.accept(cx).await).await;
        assert_eq!(cancelled(accepted).kind(), Kind::Timeout);
        let client = TcpStream::connect(&cx, listener.local_addr()?).await?;
        let (_, from) = listener.accept(&cx).await?;
        assert_eq!(from, client.local_addr()?);
        Ok(())
    });
}

#[test]
fn recv_from_that_times_out_takes_no_datagram() {
    on_each(async |cx| {
        let one = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        let other = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        let mut buffer = [0; 8];
        let got = cx.timeout(SOON, async |cx| one.recv_from(cx, &mut buffer).await).await;
        assert_eq!(cancelled(got).kind(), Kind::Timeout);
        other.send_to(&cx, b"kept", one.local_addr()?).await?;
        let (count, from) = one.recv_from(&cx, &mut buffer).await?;
        assert_eq!((&buffer[..count], from), (&b"kept"[..], other.local_addr()?));
        Ok(())
    });
}

/// The bytes, the datagram and the connection are available when the cancelled task requests them.
/// Its operations fail with the cancellation, and a shield can read the same data afterwards.
#[test]
fn operations_of_a_cancelled_task_consume_nothing() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let waiting = TcpStream::connect(&cx, listener.local_addr()?).await?;
        let (mut client, mut server) = pair(&cx).await?;
        let one = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        let to = one.local_addr()?;
        client.write_all(&cx, b"bytes").await?;
        one.send_to(&cx, b"datagram", to).await?;
        server.peek(&cx, &mut [0; 8]).await?;
        one.peek(&cx, &mut [0; 8]).await?;

        let ended: io::Result<()> = cx
            .scope(async |s| {
                s.cancel("now");
                let mut buffer = [0; 16];
                cancelled(server.read(&cx, &mut buffer).await);
                cancelled(server.peek(&cx, &mut buffer).await);
                cancelled(server.write(&cx, b"not sent").await);
                cancelled(one.recv_from(&cx, &mut buffer).await);
                cancelled(one.recv(&cx, &mut buffer).await);
                cancelled(one.send_to(&cx, b"not sent", to).await);
                cancelled(listener.accept(&cx).await);
                cancelled(TcpStream::connect(&cx, to).await);
                cancelled(TcpListener::bind(&cx, "127.0.0.1:0").await);
                cancelled(asx_net::lookup_host(&cx, "localhost:0").await);
                let error = server.write_all(&cx, b"not sent").await.unwrap_err();
                assert_eq!(error.written, 0);
                assert!(error.error.is_cancelled());
                // A shield is not cancelled: the data is still available.
                cx.shield(async |cx| {
                    let count = server.read(cx, &mut buffer).await?;
                    assert_eq!(&buffer[..count], b"bytes");
                    let (count, _) = one.recv_from(cx, &mut buffer).await?;
                    assert_eq!(&buffer[..count], b"datagram");
                    let (_, from) = listener.accept(cx).await?;
                    assert_eq!(from, waiting.local_addr()?);
                    io::Result::Ok(())
                })
                .await
            })
            .await;
        ended?;
        // The cancelled writes have sent nothing.
        drop(server);
        let mut got = Vec::new();
        client.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"");
        Ok(())
    });
}

#[test]
fn cancel_wakes_pending_operations() {
    on_each(async |cx| {
        let (_client, mut server) = pair(&cx).await?;
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let socket = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        let (here, mut waits) = channel::bounded(3);
        cx.scope(async |s| {
            let about = here.clone();
            let reader = s.spawn(async move |cx: Cx| {
                about.send(&cx, ()).await.ok();
                server.read(&cx, &mut [0; 8]).await
            });
            let about = here.clone();
            let acceptor = s.spawn(async move |cx: Cx| {
                about.send(&cx, ()).await.ok();
                listener.accept(&cx).await.map(drop)
            });
            let about = here.clone();
            let receiver = s.spawn(async move |cx: Cx| {
                about.send(&cx, ()).await.ok();
                socket.recv_from(&cx, &mut [0; 8]).await.map(drop)
            });
            for _ in 0..3 {
                waits.recv(&cx).await.ok();
            }
            reader.cancel("enough");
            acceptor.cancel("enough");
            receiver.cancel("enough");
            assert!(reader.await.is_err() && acceptor.await.is_err() && receiver.await.is_err());
            Ok(())
        })
        .await
    });
}

#[test]
fn select_accepts_cancel_safe_operations() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let socket = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        let mut buffer = [0; 8];
        let mut datagram = [0; 8];
        for round in 0..20_u8 {
            // Each round drops the pending operations that lose.
            client.write_all(&cx, &[round]).await?;
            let count = select! {
                _ = listener.accept(&cx) => unreachable!("there is no client"),
                _ = socket.recv_from(&cx, &mut datagram) => unreachable!("there is no sender"),
                count = server.read(&cx, &mut buffer) => count?,
            };
            assert_eq!(buffer[..count], [round]);
        }
        Ok(())
    });
}

#[test]
fn dropped_read_consumes_nothing() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        let mut buffer = [0; 8];
        let polled = futures_lite::future::poll_once(server.read(&cx, &mut buffer)).await;
        assert!(polled.is_none());
        client.write_all(&cx, b"kept").await?;
        let count = server.read(&cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], b"kept");
        Ok(())
    });
}

#[test]
fn dropped_handle_does_not_close_the_socket_of_other_handles() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let socket = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        let (here, mut waits) = channel::bounded(2);
        cx.scope(async |s| {
            let clone = listener.clone();
            let about = here.clone();
            let acceptor = s.spawn(async move |cx: Cx| {
                about.send(&cx, ()).await.ok();
                clone.accept(&cx).await.map(|(_, from)| from)
            });
            let clone = socket.clone();
            let receiver = s.spawn(async move |cx: Cx| {
                here.send(&cx, ()).await.ok();
                clone.recv(&cx, &mut [0; 8]).await
            });
            for _ in 0..2 {
                waits.recv(&cx).await.ok();
            }
            let to = socket.local_addr()?;
            drop(listener);
            drop(socket);
            let client = TcpStream::connect(&cx, address).await?;
            assert_eq!(acceptor.await.unwrap(), client.local_addr()?);
            let other = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
            other.send_to(&cx, b"hello", to).await?;
            assert_eq!(receiver.await.unwrap(), 5);
            Ok(())
        })
        .await
    });
}

#[test]
fn cancelled_write_all_returns_the_number_of_written_bytes() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        let bytes = vec![1; 16 << 20];
        let mut written = 0;
        let ended: io::Result<()> = cx
            .timeout(SOON, async |cx| {
                let error = client.write_all(cx, &bytes).await.unwrap_err();
                written = error.written;
                Ok(error.into()).and_then(Err)
            })
            .await;
        assert_eq!(cancelled(ended).kind(), Kind::Timeout);
        assert!(written < bytes.len());
        drop(client);
        let mut got = Vec::new();
        server.read_to_end(&cx, &mut got).await?;
        assert_eq!(got.len(), written);
        Ok(())
    });
}

#[test]
fn context_of_another_task_is_refused() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"kept").await?;
        let foreign = cx.clone();
        let (mut server, refused) = cx
            .scope(async |s| {
                let task = s.spawn(async move |_cx: Cx| {
                    let read = server.read(&foreign, &mut [0; 8]).await;
                    Ok((server, read))
                });
                let (server, read) = task.await.unwrap();
                Ok::<_, io::Error>((server, cancelled(read)))
            })
            .await?;
        assert_eq!(refused.kind(), Kind::ResourceUnavailable);
        let mut buffer = [0; 8];
        assert_eq!(server.read(&cx, &mut buffer).await?, 4);
        Ok(())
    });
}

/// A poll completes a limited number of operations, so ready reads cannot starve other tasks.
#[test]
fn loop_over_ready_reads_yields_to_other_tasks() {
    let runtime = asx_native::Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await.unwrap();
        client.write_all(&cx, &[0; 1000]).await.unwrap();
        server.peek(&cx, &mut [0; 1]).await.unwrap();
        let (ran, mut has_run) = channel::bounded(1);
        cx.scope(async |s| {
            s.spawn(async move |cx: Cx| {
                ran.send(&cx, ()).await.ok();
                Ok(())
            });
            let mut reads = 0;
            while has_run.try_recv().is_err() {
                server.read(&cx, &mut [0; 1]).await?;
                reads += 1;
                assert!(reads < 1000, "the other task did not run");
            }
            io::Result::Ok(())
        })
        .await
        .unwrap();
    });
}
