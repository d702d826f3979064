//! The amount of data per operation: backpressure, short reads and writes, vectored and empty ones.

use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use asx::io::{self, Read as _};
use asx::net::UnixStream;
use asx::prelude::*;

use crate::Case;
use crate::help::{
    MORE_THAN_FITS, Name, SOON, arrived, failed, fill, narrow_tcp, pattern, tcp, timed_out, udp,
    unix,
};

pub(crate) const BACKPRESSURE: &[Case] = &[
    Case {
        name: "a_writer_waits_until_its_peer_reads",
        rule: "a write that exceeds the buffers waits until the peer has read some of it",
        run: |cx| Box::pin(writer_waits(cx)),
    },
    Case {
        name: "a_full_connection_takes_nothing",
        rule: "a write to a full connection waits, and sends nothing if it is cancelled",
        run: |cx| Box::pin(full_takes_nothing(cx)),
    },
    Case {
        name: "a_writer_continues_after_a_read",
        rule: "after a writer has waited, a read makes room again",
        run: |cx| Box::pin(goes_on_after_a_read(cx)),
    },
    Case {
        name: "a_full_direction_does_not_stop_the_other",
        rule: "the peer of an end that cannot write can write",
        run: |cx| Box::pin(other_direction(cx)),
    },
    Case {
        name: "a_full_connection_does_not_stop_another",
        rule: "backpressure applies to one connection, not to others of the same listener",
        run: |cx| Box::pin(other_connection(cx)),
    },
    Case {
        name: "a_cancelled_write_all_reports_the_bytes_sent",
        rule: "the peer reads exactly as many bytes as the error of a cancelled write_all reports",
        run: |cx| Box::pin(cut_write_all(cx)),
    },
    Case {
        name: "a_unix_writer_waits_until_its_peer_reads",
        rule: "a write that exceeds the buffers waits until the peer has read some of it",
        run: |cx| Box::pin(unix_writer_waits(cx)),
    },
];

pub(crate) const SHORT: &[Case] = &[
    Case {
        name: "a_read_takes_at_most_the_buffer",
        rule: "bytes that do not fit into the buffer stay for the next read",
        run: |cx| Box::pin(small_buffer(cx)),
    },
    Case {
        name: "a_read_does_not_wait_for_a_full_buffer",
        rule: "a read returns the bytes that have arrived, at least one",
        run: |cx| Box::pin(large_buffer(cx)),
    },
    Case {
        name: "a_read_after_a_short_read_gets_later_bytes",
        rule: "a short read is not the end of the bytes",
        run: |cx| Box::pin(after_a_short_read(cx)),
    },
    Case {
        name: "a_write_returns_the_bytes_sent",
        rule: "the peer reads exactly as many bytes as the writes returned",
        run: |cx| Box::pin(short_writes(cx)),
    },
    Case {
        name: "an_exact_read_reports_an_early_end",
        rule: "read_exact is UnexpectedEof if the peer ends before",
        run: |cx| Box::pin(exact_read(cx)),
    },
    Case {
        name: "an_end_behind_a_short_read_is_seen",
        rule: "the end that came with the last bytes is read after them",
        run: |cx| Box::pin(end_behind_short(cx)),
    },
    Case {
        name: "several_buffers_are_filled_in_order",
        rule: "read_vectored fills the first buffer before the second",
        run: |cx| Box::pin(read_several(cx)),
    },
    Case {
        name: "several_buffers_are_written_in_order",
        rule: "write_vectored sends the first buffer before the second",
        run: |cx| Box::pin(write_several(cx)),
    },
    Case {
        name: "empty_buffers_among_several_are_passed_over",
        rule: "an empty slice neither ends nor delays a vectored operation",
        run: |cx| Box::pin(empty_among_several(cx)),
    },
    Case {
        name: "a_peek_leaves_the_bytes",
        rule: "a peek, and another, and then a read get the same bytes",
        run: |cx| Box::pin(peek_leaves(cx)),
    },
    Case {
        name: "a_peek_waits_for_bytes",
        rule: "a peek returns when bytes have arrived, and not before",
        run: |cx| Box::pin(peek_waits(cx)),
    },
    Case {
        name: "an_empty_read_takes_nothing",
        rule: "a read into an empty buffer is 0, and the bytes stay",
        run: |cx| Box::pin(read_nothing(cx)),
    },
    Case {
        name: "no_bytes_are_moved_at_once",
        rule: "an operation on no bytes returns 0 at once, even if nothing has arrived",
        run: |cx| Box::pin(no_bytes(cx)),
    },
    Case {
        name: "more_buffers_than_a_system_takes_are_moved_in_parts",
        rule: "of very many buffers some are used, and the rest can be used afterwards",
        run: |cx| Box::pin(many_buffers(cx)),
    },
    Case {
        name: "an_empty_write_sends_nothing",
        rule: "a write of no bytes is 0, and the peer sees neither bytes nor an end",
        run: |cx| Box::pin(write_nothing(cx)),
    },
    Case {
        name: "an_empty_peek_does_not_wait",
        rule: "a peek into no buffer is 0 at once, as a read is; for datagrams it waits for one",
        run: |cx| Box::pin(empty_peek(cx)),
    },
    Case {
        name: "a_write_takes_no_more_buffers_than_a_system_does",
        rule: "of several thousand buffers it uses the first ones, at least 16, and not all",
        run: |cx| Box::pin(too_many_buffers(cx)),
    },
];

async fn writer_waits(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    let is_done = Arc::new(AtomicBool::new(false));
    let done = is_done.clone();
    cx.scope(async |s| {
        let writer = s.spawn(async move |cx: Cx| {
            client.write_all(&cx, &pattern(MORE_THAN_FITS)).await?;
            done.store(true, SeqCst);
            Ok::<_, io::Error>(())
        });
        arrived(cx, &server, 1).await?;
        cx.sleep(SOON).await?;
        assert!(!is_done.load(SeqCst), "all of it fits");
        let mut got = Vec::new();
        server.read_to_end(cx, &mut got).await?;
        assert!(got == pattern(MORE_THAN_FITS));
        assert!(writer.await.is_ok());
        io::Result::Ok(())
    })
    .await
}

async fn full_takes_nothing(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    let mut filled = fill(cx, &mut client).await?;
    for _ in 0..3 {
        match cx.timeout(SOON, async |cx| client.write(cx, b"more").await).await {
            // The system had room after all.
            Ok(count) => filled += count,
            ended => timed_out(ended),
        }
    }
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got.len(), filled);
    Ok(())
}

async fn goes_on_after_a_read(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    let filled = fill(cx, &mut client).await?;
    cx.scope(async |s| {
        let writer = s.spawn(async move |cx: Cx| {
            client.write_all(&cx, b"and on").await?;
            Ok::<_, io::Error>(client)
        });
        let mut got = vec![0; filled];
        server.read_exact(cx, &mut got).await?;
        let mut rest = [0; 6];
        server.read_exact(cx, &mut rest).await?;
        assert_eq!(&rest, b"and on");
        assert!(writer.await.is_ok());
        io::Result::Ok(())
    })
    .await
}

async fn other_direction(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    fill(cx, &mut client).await?;
    server.write_all(cx, b"still open").await?;
    let mut got = [0; 10];
    client.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"still open");
    Ok(())
}

async fn other_connection(cx: &Cx) -> io::Result<()> {
    let (mut full, _unread) = narrow_tcp(cx).await?;
    let (mut client, mut server) = tcp(cx).await?;
    fill(cx, &mut full).await?;
    client.write_all(cx, b"not full").await?;
    let mut got = [0; 8];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"not full");
    Ok(())
}

async fn cut_write_all(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    let bytes = pattern(MORE_THAN_FITS);
    let mut written = 0;
    let cut = cx.timeout(SOON, async |cx| {
        let ended = client.write_all(cx, &bytes).await;
        written = ended.as_ref().err().map_or(bytes.len(), |error| error.written);
        ended.map_err(io::Error::from)
    });
    timed_out(cut.await);
    assert!(written < bytes.len());
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got.len(), written);
    assert!(got == bytes[..written]);
    Ok(())
}

async fn unix_writer_waits(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_writer_waits");
    let (mut client, mut server) = unix(cx, &name).await?;
    let is_done = Arc::new(AtomicBool::new(false));
    let done = is_done.clone();
    let all = 8 * MORE_THAN_FITS;
    cx.scope(async |s| {
        let writer = s.spawn(async move |cx: Cx| {
            client.write_all(&cx, &pattern(all)).await?;
            done.store(true, SeqCst);
            Ok::<_, io::Error>(())
        });
        cx.sleep(SOON).await?;
        assert!(!is_done.load(SeqCst), "all of it fits");
        let mut got = Vec::new();
        server.read_to_end(cx, &mut got).await?;
        assert!(got == pattern(all));
        assert!(writer.await.is_ok());
        io::Result::Ok(())
    })
    .await
}

async fn small_buffer(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"abcdef").await?;
    arrived(cx, &server, 6).await?;
    let mut small = [0; 4];
    assert_eq!(server.read(cx, &mut small).await?, 4);
    assert_eq!(&small, b"abcd");
    assert_eq!(server.read(cx, &mut small).await?, 2);
    assert_eq!(&small[..2], b"ef");
    Ok(())
}

async fn large_buffer(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"abc").await?;
    let mut large = [0; 100];
    let count = server.read(cx, &mut large).await?;
    assert!((1..=3).contains(&count), "{count}");
    assert_eq!(large[..count], b"abc"[..count]);
    Ok(())
}

async fn after_a_short_read(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let mut buffer = [0; 100];
    for round in 0..4_u8 {
        client.write_all(cx, &[round; 3]).await?;
        arrived(cx, &server, 3).await?;
        assert_eq!(server.read(cx, &mut buffer).await?, 3);
        assert_eq!(buffer[..3], [round; 3]);
    }
    Ok(())
}

async fn short_writes(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    let written = fill(cx, &mut client).await?;
    assert!(written > 0);
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got.len(), written);
    Ok(())
}

async fn exact_read(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"abc").await?;
    drop(client);
    assert_eq!(failed(server.read_exact(cx, &mut [0; 4]).await), ErrorKind::UnexpectedEof);
    Ok(())
}

async fn end_behind_short(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"last").await?;
    drop(client);
    arrived(cx, &server, 4).await?;
    let mut buffer = [0; 64];
    assert_eq!(server.read(cx, &mut buffer).await?, 4);
    assert_eq!(server.read(cx, &mut buffer).await?, 0);
    Ok(())
}

async fn read_several(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"abcdef").await?;
    arrived(cx, &server, 6).await?;
    let mut two = [0; 2];
    let mut ten = [0; 10];
    let mut buffers = [IoSliceMut::new(&mut two), IoSliceMut::new(&mut ten)];
    assert_eq!(server.read_vectored(cx, &mut buffers).await?, 6);
    assert_eq!((&two, &ten[..4]), (b"ab", &b"cdef"[..]));
    Ok(())
}

async fn write_several(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let buffers = [IoSlice::new(b"ab"), IoSlice::new(b"cdef"), IoSlice::new(b"g")];
    let count = client.write_vectored(cx, &buffers).await?;
    assert!((1..=7).contains(&count), "{count}");
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got, b"abcdefg"[..count]);
    Ok(())
}

async fn empty_among_several(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let buffers = [IoSlice::new(b""), IoSlice::new(b"abcd"), IoSlice::new(b"")];
    let count = client.write_vectored(cx, &buffers).await?;
    client.write_all(cx, &b"abcd"[count..]).await?;
    arrived(cx, &server, 4).await?;
    let mut none = [];
    let mut three = [0; 3];
    let mut one = [0; 1];
    let mut buffers =
        [IoSliceMut::new(&mut none), IoSliceMut::new(&mut three), IoSliceMut::new(&mut one)];
    assert_eq!(server.read_vectored(cx, &mut buffers).await?, 4);
    assert_eq!((&three, &one), (b"abc", b"d"));
    Ok(())
}

async fn peek_leaves(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"abc").await?;
    arrived(cx, &server, 3).await?;
    let mut buffer = [0; 8];
    for _ in 0..2 {
        assert_eq!(server.peek(cx, &mut buffer).await?, 3);
        assert_eq!(&buffer[..3], b"abc");
    }
    assert_eq!(server.peek(cx, &mut buffer[..2]).await?, 2);
    assert_eq!(server.read(cx, &mut buffer).await?, 3);
    assert_eq!(&buffer[..3], b"abc");
    Ok(())
}

async fn peek_waits(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    timed_out(cx.timeout(SOON, async |cx| server.peek(cx, &mut [0; 4]).await).await);
    client.write_all(cx, b"x").await?;
    let mut buffer = [0; 4];
    assert_eq!(server.peek(cx, &mut buffer).await?, 1);
    assert_eq!(&buffer[..1], b"x");
    Ok(())
}

async fn read_nothing(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"abc").await?;
    arrived(cx, &server, 3).await?;
    assert_eq!(server.read(cx, &mut []).await?, 0);
    let mut got = [0; 3];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"abc");
    Ok(())
}

async fn no_bytes(cx: &Cx) -> io::Result<()> {
    let (mut client, _server) = tcp(cx).await?;
    // A read of no bytes must not change the result that no data has arrived.
    timed_out(cx.timeout(SOON, async |cx| client.read(cx, &mut [0; 1]).await).await);
    assert_eq!(client.read(cx, &mut []).await?, 0);
    assert_eq!(client.read_vectored(cx, &mut [IoSliceMut::new(&mut [])]).await?, 0);
    assert_eq!(client.write(cx, &[]).await?, 0);
    assert_eq!(client.write_vectored(cx, &[]).await?, 0);
    Ok(())
}

async fn many_buffers(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let sent = pattern(1500);
    let slices: Vec<IoSlice<'_>> = sent.chunks(1).map(IoSlice::new).collect();
    let mut written = 0;
    while written < sent.len() {
        written += client.write_vectored(cx, &slices[written..]).await?;
    }
    arrived(cx, &server, sent.len()).await?;
    let mut got = Vec::new();
    while got.len() < sent.len() {
        let mut bytes = vec![0; sent.len() - got.len()];
        let mut slices: Vec<IoSliceMut<'_>> = bytes.chunks_mut(1).map(IoSliceMut::new).collect();
        let count = server.read_vectored(cx, &mut slices).await?;
        got.extend_from_slice(&bytes[..count]);
    }
    assert_eq!(got, sent);
    Ok(())
}

async fn write_nothing(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    assert_eq!(client.write(cx, &[]).await?, 0);
    timed_out(cx.timeout(SOON, async |cx| server.read(cx, &mut [0; 4]).await).await);
    client.write_all(cx, b"x").await?;
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 1);
    Ok(())
}

async fn empty_peek(cx: &Cx) -> io::Result<()> {
    let (client, _server) = tcp(cx).await?;
    assert_eq!(client.peek(cx, &mut []).await?, 0);
    let (one, other) = UnixStream::pair(cx)?;
    assert_eq!(one.peek(cx, &mut []).await?, 0);
    drop(other);
    let (one, other) = udp(cx).await?;
    timed_out(cx.timeout(SOON, async |cx| one.peek(cx, &mut []).await).await);
    other.send_to(cx, b"there", one.local_addr()?).await?;
    assert_eq!(one.peek(cx, &mut []).await?, 0);
    assert_eq!(one.recv(cx, &mut [0; 8]).await?, 5);
    Ok(())
}

async fn too_many_buffers(cx: &Cx) -> io::Result<()> {
    let (mut one, mut other) = UnixStream::pair(cx)?;
    let bytes = pattern(3000);
    let buffers: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
    let count = one.write_vectored(cx, &buffers).await?;
    assert!((16..3000).contains(&count), "{count}");
    let mut come = vec![0; count];
    other.read_exact(cx, &mut come).await?;
    assert_eq!(come, bytes[..count]);
    Ok(())
}
