//! TCP over the loopback interface: bytes, ends, addresses, options, errors.

use crate::common;

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::time::Duration;

use asx_native::Runtime;
use asx_net::io::Read as _;
use asx_net::{Cx, SocketBuilder, TcpListener, TcpStream, io};
use asx_runtime::channel;
use common::{on_each, pair};

#[test]
fn written_bytes_are_read_in_order() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        let mut buffer = [0; 5];
        server.read_exact(&cx, &mut buffer).await?;
        assert_eq!(&buffer, b"hello");
        server.write_all(&cx, b"goodbye").await?;
        drop(server);
        let mut rest = Vec::new();
        assert_eq!(client.read_to_end(&cx, &mut rest).await?, 7);
        assert_eq!(rest, b"goodbye");
        Ok(())
    });
}

#[test]
fn megabyte_is_echoed_by_another_task() {
    on_each(async |cx| {
        let (client, mut server) = pair(&cx).await?;
        let sent: Vec<u8> = (0..1 << 20).map(|byte: u32| (byte % 251) as u8).collect();
        let expected = sent.clone();
        cx.scope(async |s| {
            s.spawn(async move |cx: Cx| {
                let (mut reader, mut writer) = server.split();
                io::copy(&cx, &mut reader, &mut writer).await?;
                Ok(())
            });
            let (mut reader, mut writer) = client.into_split();
            s.spawn(async move |cx: Cx| {
                writer.write_all(&cx, &sent).await?;
                // Dropping the half ends its direction.
                Ok(())
            });
            let mut echoed = Vec::new();
            reader.read_to_end(&cx, &mut echoed).await?;
            assert!(echoed == expected);
            Ok(())
        })
        .await
    });
}

#[test]
fn half_close_ends_only_one_direction() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"last").await?;
        client.shutdown(Shutdown::Write)?;
        let mut got = Vec::new();
        server.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"last");
        // Later reads return the end again, and the other direction is open.
        assert_eq!(server.read(&cx, &mut [0; 4]).await?, 0);
        server.write_all(&cx, b"answer").await?;
        let mut answer = [0; 6];
        client.read_exact(&cx, &mut answer).await?;
        assert_eq!(&answer, b"answer");
        let error = client.write(&cx, b"more").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        Ok(())
    });
}

#[test]
fn end_of_stream_is_read_after_a_short_read() {
    on_each(async |cx| {
        for _ in 0..100 {
            let (mut client, mut server) = pair(&cx).await?;
            client.write_all(&cx, b"last").await?;
            drop(client);
            // One event reports both the bytes and the end.
            let mut buffer = [0; 64];
            assert_eq!(server.read(&cx, &mut buffer).await?, 4);
            assert_eq!(server.read(&cx, &mut buffer).await?, 0);
        }
        Ok(())
    });
}

#[test]
fn a_reset_is_an_error_and_a_close_is_not() {
    on_each(async |cx| {
        let (client, mut server) = pair(&cx).await?;
        client.set_linger(Some(Duration::ZERO))?;
        assert_eq!(client.linger()?, Some(Duration::ZERO));
        drop(client);
        let error = server.read(&cx, &mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);

        let (client, mut server) = pair(&cx).await?;
        drop(client);
        assert_eq!(server.read(&cx, &mut [0; 8]).await?, 0);
        Ok(())
    });
}

#[test]
fn a_task_that_waits_hears_of_a_reset() {
    on_each(async |cx| {
        let (client, mut server) = pair(&cx).await?;
        let (here, mut waits) = channel::bounded(1);
        cx.scope(async |s| {
            let reader = s.spawn(async move |cx: Cx| {
                here.send(&cx, ()).await.ok();
                Ok(server.read(&cx, &mut [0; 8]).await.unwrap_err().kind())
            });
            waits.recv(&cx).await.ok();
            client.set_linger(Some(Duration::ZERO))?;
            drop(client);
            assert_eq!(reader.await.unwrap(), ErrorKind::ConnectionReset);
            Ok(())
        })
        .await
    });
}

#[test]
fn short_reads_leave_the_remaining_bytes() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"abcdef").await?;
        let mut small = [0; 4];
        let first = server.read(&cx, &mut small).await?;
        assert_eq!(&small[..first], b"abcd");
        let mut large = [0; 64];
        let second = server.read(&cx, &mut large).await?;
        assert_eq!(&large[..second], b"ef");
        // Bytes after a short read are reported by a new event.
        client.write_all(&cx, b"gh").await?;
        let third = server.read(&cx, &mut large).await?;
        assert_eq!(&large[..third], b"gh");
        Ok(())
    });
}

#[test]
fn read_exact_of_too_few_bytes_fails_with_unexpected_eof() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"abc").await?;
        drop(client);
        let error = server.read_exact(&cx, &mut [0; 4]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        Ok(())
    });
}

#[test]
fn peek_does_not_consume_bytes() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"abc").await?;
        let mut buffer = [0; 8];
        for _ in 0..2 {
            let count = server.peek(&cx, &mut buffer).await?;
            assert_eq!(&buffer[..count], b"abc");
        }
        let count = server.read(&cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], b"abc");
        Ok(())
    });
}

#[test]
fn peek_and_read_return_0_after_shutdown_of_reading() {
    on_each(async |cx| {
        let (_client, mut server) = pair(&cx).await?;
        server.shutdown(Shutdown::Read)?;
        assert_eq!(server.peek(&cx, &mut [0; 4]).await?, 0);
        assert_eq!(server.read(&cx, &mut [0; 4]).await?, 0);
        Ok(())
    });
}

#[test]
fn writer_waits_until_its_peer_reads() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        let chunk = vec![7; 64 * 1024];
        let mut written = 0;
        // Fills the buffers of the operating system, so that the next write waits.
        loop {
            let write = client.write(&cx, &chunk);
            match futures_lite::future::poll_once(write).await {
                Some(count) => written += count?,
                None => break,
            }
        }
        assert!(written > 0);
        let total = written + chunk.len();
        cx.scope(async |s| {
            let writer = s.spawn(async move |cx: Cx| {
                client.write_all(&cx, &chunk).await?;
                Ok(())
            });
            let mut read = 0;
            let mut buffer = vec![0; 64 * 1024];
            while read < total {
                read += server.read(&cx, &mut buffer).await?;
            }
            assert_eq!(read, total);
            assert!(writer.await.is_ok());
            Ok(())
        })
        .await
    });
}

#[test]
fn vectored_reads_and_writes_use_several_buffers() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        let out = [IoSlice::new(b"one "), IoSlice::new(b""), IoSlice::new(b"two")];
        assert_eq!(client.write_vectored(&cx, &out).await?, 7);
        let mut first = [0; 2];
        let mut second = [0; 8];
        let mut buffers = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        let count = server.read_vectored(&cx, &mut buffers).await?;
        assert_eq!((&first, &second[..count - 2]), (b"on", &b"e two"[..]));
        Ok(())
    });
}

#[test]
fn both_ends_return_matching_addresses() {
    on_each(async |cx| {
        let (client, server) = pair(&cx).await?;
        assert_eq!(client.local_addr()?, server.peer_addr()?);
        assert_eq!(client.peer_addr()?, server.local_addr()?);
        assert!(client.local_addr()?.ip().is_loopback());
        Ok(())
    });
}

#[test]
fn options_return_the_values_that_were_set() {
    on_each(async |cx| {
        let (client, _server) = pair(&cx).await?;
        assert!(!client.nodelay()?);
        client.set_nodelay(true)?;
        assert!(client.nodelay()?);
        client.set_ttl(42)?;
        assert_eq!(client.ttl()?, 42);
        client.set_keepalive(true)?;
        assert!(client.keepalive()?);
        client.set_linger(Some(Duration::from_secs(3)))?;
        assert_eq!(client.linger()?, Some(Duration::from_secs(3)));
        client.set_linger(None)?;
        assert_eq!(client.linger()?, None);
        client.set_recv_buffer(8192)?;
        client.set_send_buffer(8192)?;
        assert!(client.recv_buffer()? >= 8192 && client.send_buffer()? >= 8192);
        assert!(client.take_error()?.is_none());
        Ok(())
    });
}

#[test]
fn builder_sets_options_of_listeners_and_streams() {
    on_each(async |cx| {
        let builder = SocketBuilder::new().backlog(7).ttl(33);
        #[cfg(unix)]
        let builder = builder.reuse_port(true);
        let listener = builder.listen(&cx, "127.0.0.1:0").await?;
        assert_eq!(listener.ttl()?, 33);
        let address = listener.local_addr()?;
        // With `reuse_port` the address can be bound twice.
        #[cfg(unix)]
        builder.listen(&cx, address).await?;
        let local = "127.0.0.1:0".parse().unwrap();
        let builder = SocketBuilder::new().nodelay(true).keepalive(true).local(local);
        let client = builder.connect(&cx, address).await?;
        assert!(client.nodelay()? && client.keepalive()?);
        Ok(())
    });
}

#[test]
fn errors_have_their_kinds() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let error = TcpListener::bind(&cx, address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        drop(listener);
        let error = TcpStream::connect(&cx, address).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let error = TcpListener::bind(&cx, "192.0.2.1:0").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
        let error = TcpStream::connect(&cx, "no port").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        Ok(())
    });
}

#[test]
fn connect_uses_the_first_address_that_accepts() {
    on_each(async |cx| {
        let gone = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let unused = gone.local_addr()?;
        drop(gone);
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let used = listener.local_addr()?;
        let client = TcpStream::connect(&cx, [unused, used]).await?;
        assert_eq!(client.peer_addr()?, used);
        Ok(())
    });
}

#[test]
fn concurrent_accepts_return_each_connection_once() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        cx.scope(async |s| {
            let (accepted, mut served) = channel::bounded(64);
            for _ in 0..4 {
                let listener = listener.clone();
                let accepted = accepted.clone();
                s.spawn(async move |cx: Cx| -> io::Result<()> {
                    loop {
                        let (_, from) = listener.accept(&cx).await?;
                        accepted.send(&cx, from).await.ok();
                    }
                });
            }
            let mut expected = Vec::new();
            let mut clients = Vec::new();
            for _ in 0..40 {
                let client = TcpStream::connect(&cx, address).await?;
                expected.push(client.local_addr()?);
                clients.push(client);
            }
            let mut got = Vec::new();
            for _ in 0..40 {
                got.push(served.recv(&cx).await.unwrap());
            }
            got.sort();
            expected.sort();
            assert_eq!(got, expected);
            s.cancel("enough");
            Ok(())
        })
        .await
        .or_else(|error: io::Error| if error.is_cancelled() { Ok(()) } else { Err(error) })
    });
}

#[test]
fn halves_reunite_only_with_their_own_stream() {
    on_each(async |cx| {
        let (client, mut server) = pair(&cx).await?;
        let (other, _peer) = pair(&cx).await?;
        let addresses = (client.local_addr()?, client.peer_addr()?);
        let (read, mut write) = client.into_split();
        assert_eq!((read.local_addr()?, read.peer_addr()?), addresses);
        assert_eq!((write.local_addr()?, write.peer_addr()?), addresses);
        server.write_all(&cx, b"look").await?;
        assert!(read.peek(&cx, &mut [0; 4]).await? > 0);
        write.write_all(&cx, b"half").await?;
        let (stranger, _) = other.into_split();
        let wrong = TcpStream::reunite(stranger, write).unwrap_err();
        assert_eq!(wrong.to_string(), "the halves belong to different streams");
        let mut client = read.reunite(wrong.write).unwrap();
        let (read, write) = client.split();
        assert_eq!((read.local_addr()?, write.peer_addr()?), addresses);
        assert!(read.peek(&cx, &mut [0; 4]).await? > 0);
        client.read_exact(&cx, &mut [0; 4]).await?;
        client.write_all(&cx, b" and whole").await?;
        drop(client);
        let mut got = Vec::new();
        server.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"half and whole");
        Ok(())
    });
}

#[test]
fn debug_output_begins_with_the_name_of_the_stream_or_half() {
    on_each(async |cx| {
        let (mut client, _server) = pair(&cx).await?;
        assert!(format!("{client:?}").starts_with("TcpStream("));
        let (read, write) = client.split();
        assert!(format!("{read:?}").starts_with("ReadHalf("));
        assert!(format!("{write:?}").starts_with("WriteHalf("));
        let (read, write) = client.into_split();
        assert!(format!("{read:?}").starts_with("OwnedReadHalf("));
        assert!(format!("{write:?}").starts_with("OwnedWriteHalf("));
        Ok(())
    });
}

#[test]
fn streams_convert_from_and_to_std() {
    on_each(async |cx| {
        let (client, mut server) = pair(&cx).await?;
        let client = client.into_std()?;
        client.set_nonblocking(false)?;
        std::io::Write::write_all(&mut &client, b"std").unwrap();
        let mut client = TcpStream::from_std(&cx, client)?;
        client.write_all(&cx, b" and back").await?;
        drop(client);
        let mut got = Vec::new();
        server.read_to_end(&cx, &mut got).await?;
        assert_eq!(got, b"std and back");
        Ok(())
    });
}

#[test]
fn copy_bidirectional_runs_until_both_sides_have_ended() {
    on_each(async |cx| {
        let (mut client, mut near) = pair(&cx).await?;
        let (mut far, mut server) = pair(&cx).await?;
        cx.scope(async |s| {
            let proxy =
                s.spawn(async move |cx: Cx| io::copy_bidirectional(&cx, &mut near, &mut far).await);
            client.write_all(&cx, b"request").await?;
            client.shutdown(Shutdown::Write)?;
            let mut request = Vec::new();
            server.read_to_end(&cx, &mut request).await?;
            assert_eq!(request, b"request");
            server.write_all(&cx, b"a response").await?;
            drop(server);
            let mut response = Vec::new();
            client.read_to_end(&cx, &mut response).await?;
            assert_eq!(response, b"a response");
            assert_eq!(proxy.await.unwrap(), (7, 10));
            Ok(())
        })
        .await
    });
}

#[test]
fn a_thousand_connections_are_served() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        cx.scope(async |s| {
            let server = s.clone();
            s.spawn(async move |cx: Cx| {
                for _ in 0..1000 {
                    let (mut stream, _) = listener.accept(&cx).await?;
                    server.spawn(async move |cx: Cx| {
                        let (mut reader, mut writer) = stream.split();
                        io::copy(&cx, &mut reader, &mut writer).await?;
                        Ok(())
                    });
                }
                Ok(())
            });
            let mut clients = Vec::new();
            for _ in 0..1000 {
                clients.push(TcpStream::connect(&cx, address).await?);
            }
            for round in 0..3_u32 {
                for (index, client) in clients.iter_mut().enumerate() {
                    let word = (index as u32 * 3 + round).to_be_bytes();
                    client.write_all(&cx, &word).await?;
                }
                for (index, client) in clients.iter_mut().enumerate() {
                    let mut word = [0; 4];
                    client.read_exact(&cx, &mut word).await?;
                    assert_eq!(u32::from_be_bytes(word), index as u32 * 3 + round);
                }
            }
            drop(clients);
            Ok(())
        })
        .await
    });
}

/// The operating system uses only the first buffers of a long list. The short count must not clear
/// the readiness of the socket.
#[test]
fn vectored_operation_with_many_buffers_keeps_the_socket_ready() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        let sent = vec![7; 3000];
        let slices: Vec<IoSlice<'_>> = sent.chunks(1).map(IoSlice::new).collect();
        let mut written = 0;
        while written < sent.len() {
            written += client.write_vectored(&cx, &slices[written..]).await?;
        }
        // All bytes arrive before the first read, so no event follows it.
        let mut all = vec![0; 3000];
        while server.peek(&cx, &mut all).await? < all.len() {
            cx.sleep(Duration::from_millis(1)).await?;
        }
        let mut read = 0;
        while read < all.len() {
            let mut bytes = vec![0; all.len() - read];
            let mut slices: Vec<IoSliceMut<'_>> =
                bytes.chunks_mut(1).map(IoSliceMut::new).collect();
            let count = server.read_vectored(&cx, &mut slices).await?;
            all[read..read + count].copy_from_slice(&bytes[..count]);
            read += count;
        }
        assert_eq!(all, sent);
        Ok(())
    });
}

#[test]
fn operations_without_bytes_complete_immediately() {
    on_each(async |cx| {
        let (mut client, server) = pair(&cx).await?;
        // No byte ever arrives.
        assert_eq!(client.read(&cx, &mut []).await?, 0);
        assert_eq!(client.read_vectored(&cx, &mut [IoSliceMut::new(&mut [])]).await?, 0);
        assert_eq!(client.write(&cx, &[]).await?, 0);
        assert_eq!(client.write_vectored(&cx, &[]).await?, 0);
        client.write_all(&cx, &[]).await?;
        client.read_exact(&cx, &mut []).await?;
        drop(server);
        Ok(())
    });
}

/// A loop of them observes a cancel and does not block its thread.
#[test]
fn operations_without_bytes_yield_and_observe_cancels() {
    on_each(async |cx| {
        let (mut client, mut server) = pair(&cx).await?;
        cx.scope(async |s| {
            let write = s.spawn(async move |cx: Cx| -> io::Result<()> {
                loop {
                    client.write_all(&cx, &[]).await?;
                }
            });
            let read = s.spawn(async move |cx: Cx| -> io::Result<()> {
                loop {
                    server.read_exact(&cx, &mut []).await?;
                }
            });
            cx.sleep(Duration::from_millis(5)).await?;
            write.cancel("enough");
            read.cancel("enough");
            Ok(())
        })
        .await
    });
}

#[test]
fn option_out_of_range_is_refused_with_its_name_and_value() {
    on_each(async |cx| {
        let at = "127.0.0.1:0";
        let large = i32::MAX as usize + 1;
        let refused = [
            (SocketBuilder::new().ttl(0), "ttl of 0"),
            (SocketBuilder::new().ttl(256), "ttl of 256"),
            (SocketBuilder::new().linger(Some(Duration::MAX)), "linger"),
            (SocketBuilder::new().recv_buffer(large), "receive buffer of 2147483648"),
            (SocketBuilder::new().send_buffer(large), "send buffer of 2147483648"),
        ];
        for (builder, named) in refused {
            let error = builder.listen(&cx, at).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(named), "{error}");
        }
        let (client, _server) = pair(&cx).await?;
        let ttl = client.ttl()?;
        assert_eq!(client.set_ttl(0).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(client.ttl()?, ttl);
        Ok(())
    });
}

/// A runtime with one worker runs only during `block_on`. An operation of another runtime on one of
/// its sockets fails in the meantime, because no event would wake it.
#[test]
fn read_fails_while_the_runtime_of_the_socket_does_not_run() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let other = Runtime::builder().workers(2).build().unwrap();
    let (client, server) = runtime.block_on(async |cx: Cx| pair(&cx).await).unwrap();
    let read = |mut server: TcpStream| {
        other.block_on(async move |cx: Cx| {
            let mut byte = [0];
            let ended = server.read(&cx, &mut byte).await;
            (server, ended)
        })
    };
    let (server, ended) = read(server);
    let error = ended.unwrap_err();
    assert!(error.to_string().contains("no thread runs the runtime"), "{error}");

    // A pending operation fails when `block_on` returns.
    let (server, ended) = std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let reader = runtime.block_on(async |cx: Cx| {
            let other = &other;
            let reader = scope.spawn(move || {
                let mut server = server;
                other.block_on(async move |cx: Cx| {
                    let mut byte = [0];
                    let mut read = Box::pin(server.read(&cx, &mut byte));
                    let first = std::future::poll_fn(|context| {
                        std::task::Poll::Ready(read.as_mut().poll(context).is_pending())
                    });
                    tell.send(first.await).unwrap();
                    let ended = read.as_mut().await;
                    drop(read);
                    (server, ended)
                })
            });
            while told.try_recv() != Ok(true) {
                cx.sleep(Duration::from_millis(1)).await.unwrap();
            }
            reader
        });
        reader.join().unwrap()
    });
    assert!(ended.is_err());

    // The socket works again during the next `block_on`.
    let echoed = runtime.block_on(async |cx: Cx| {
        let (mut client, mut server) = (client, server);
        client.write_all(&cx, b"x").await?;
        let mut byte = [0];
        server.read_exact(&cx, &mut byte).await?;
        Ok::<_, io::Error>(byte)
    });
    assert_eq!(echoed.unwrap(), *b"x");
}
