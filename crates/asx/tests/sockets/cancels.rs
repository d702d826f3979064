//! The effects of cancels on sockets.

use std::io::ErrorKind;
use std::time::Duration;

use asx::io::{self, FrameError, FrameReader, FrameWriter, Read as _};
use asx::net::{TcpListener, TcpStream, UdpSocket};
use asx::prelude::*;

use crate::Case;
use crate::help::{
    HERE, MORE_THAN_FITS, Name, SOON, arrived, cancelled, narrow_tcp, pattern, tcp, timed_out, udp,
    unix,
};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a_read_that_times_out_has_taken_nothing",
        rule: "bytes that arrive after the timeout of a read are read whole",
        run: |cx| Box::pin(timed_read(cx)),
    },
    Case {
        name: "an_accept_that_times_out_has_taken_nothing",
        rule: "a connection that arrives after the timeout of an accept is accepted",
        run: |cx| Box::pin(timed_accept(cx)),
    },
    Case {
        name: "a_receive_that_times_out_has_taken_nothing",
        rule: "a datagram that arrives after the timeout of a receive is received",
        run: |cx| Box::pin(timed_receive(cx)),
    },
    Case {
        name: "a_unix_read_that_times_out_has_taken_nothing",
        rule: "bytes that arrive after the timeout of a read are read whole",
        run: |cx| Box::pin(timed_unix_read(cx)),
    },
    Case {
        name: "a_cancelled_task_takes_no_data",
        rule: "bytes, datagrams and connections that are there when it is cancelled stay there",
        run: |cx| Box::pin(nothing_that_has_come(cx)),
    },
    Case {
        name: "a_cancelled_task_sends_nothing",
        rule: "write and send_to of a cancelled task send nothing, and write_all reports that",
        run: |cx| Box::pin(gives_nothing(cx)),
    },
    Case {
        name: "a_cancelled_task_creates_no_sockets",
        rule: "bind and connect of a cancelled task are cancelled and have no effect",
        run: |cx| Box::pin(makes_no_sockets(cx)),
    },
    Case {
        name: "a_cancel_wakes_a_waiting_read",
        rule: "a read that waits ends with the cancel of its task",
        run: |cx| Box::pin(wakes_reader(cx)),
    },
    Case {
        name: "a_cancel_wakes_a_waiting_accept",
        rule: "an accept that waits ends with the cancel of its task",
        run: |cx| Box::pin(wakes_acceptor(cx)),
    },
    Case {
        name: "a_cancel_wakes_a_waiting_write",
        rule: "a write that waits ends with the cancel of its task, and has sent nothing",
        run: |cx| Box::pin(wakes_writer(cx)),
    },
    Case {
        name: "a_read_that_loses_a_select_has_taken_nothing",
        rule: "a read that is dropped while it waits leaves later bytes to the next one",
        run: |cx| Box::pin(loses_select(cx)),
    },
    Case {
        name: "a_race_cancels_the_slower_connection",
        rule: "of two reads that race, the cancelled one has taken nothing",
        run: |cx| Box::pin(loses_race(cx)),
    },
    Case {
        name: "a_connection_is_usable_after_a_timeout",
        rule: "a timeout ends the wait, not the connection, every time",
        run: |cx| Box::pin(of_use_after(cx)),
    },
    Case {
        name: "a_line_of_a_cancelled_read_is_read_later",
        rule: "a cancelled read of a line keeps the part that has arrived",
        run: |cx| Box::pin(cut_line(cx)),
    },
    Case {
        name: "a_frame_of_a_cancelled_read_is_read_later",
        rule: "a cancelled read of a frame keeps the part that has arrived",
        run: |cx| Box::pin(cut_frame(cx)),
    },
    Case {
        name: "a_flush_cancelled_in_a_frame_poisons",
        rule: "after a flush that ended inside of a frame nothing is sent, and the peer sees that",
        run: |cx| Box::pin(poisoned(cx)),
    },
    Case {
        name: "a_flush_that_did_not_begin_can_be_repeated",
        rule: "a flush of a cancelled task has sent nothing, and the next one sends it",
        run: |cx| Box::pin(not_begun(cx)),
    },
    Case {
        name: "a_cancelled_task_closes_its_connection",
        rule: "if a task is cancelled in a read, its peer reads the end",
        run: |cx| Box::pin(closes(cx)),
    },
];

async fn timed_read(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let mut buffer = [0; 8];
    for _ in 0..3 {
        timed_out(cx.timeout(SOON, async |cx| server.read(cx, &mut buffer).await).await);
    }
    client.write_all(cx, b"kept").await?;
    let mut got = [0; 4];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"kept");
    Ok(())
}

async fn timed_accept(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    timed_out(cx.timeout(SOON, async |cx| listener.accept(cx).await.map(drop)).await);
    let client = TcpStream::connect(cx, listener.local_addr()?).await?;
    assert_eq!(listener.accept(cx).await?.1, client.local_addr()?);
    Ok(())
}

async fn timed_receive(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    let mut buffer = [0; 8];
    timed_out(cx.timeout(SOON, async |cx| one.recv_from(cx, &mut buffer).await).await);
    other.send_to(cx, b"kept", one.local_addr()?).await?;
    let (count, from) = one.recv_from(cx, &mut buffer).await?;
    assert_eq!((&buffer[..count], from), (&b"kept"[..], other.local_addr()?));
    Ok(())
}

async fn timed_unix_read(cx: &Cx) -> io::Result<()> {
    let name = Name::new("timed_unix_read");
    let (mut client, mut server) = unix(cx, &name).await?;
    timed_out(cx.timeout(SOON, async |cx| server.read(cx, &mut [0; 8]).await).await);
    client.write_all(cx, b"kept").await?;
    let mut got = [0; 4];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"kept");
    Ok(())
}

async fn nothing_that_has_come(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let waiting = TcpStream::connect(cx, listener.local_addr()?).await?;
    let (mut client, mut server) = tcp(cx).await?;
    let (one, other) = udp(cx).await?;
    client.write_all(cx, b"bytes").await?;
    arrived(cx, &server, 5).await?;
    other.send_to(cx, b"datagram", one.local_addr()?).await?;
    one.peek(cx, &mut [0; 8]).await?;
    let ended: io::Result<()> = cx
        .scope(async |s| {
            s.cancel("now");
            let mut buffer = [0; 16];
            cancelled(server.read(cx, &mut buffer).await);
            cancelled(server.peek(cx, &mut buffer).await);
            cancelled(one.recv_from(cx, &mut buffer).await);
            cancelled(one.recv(cx, &mut buffer).await);
            cancelled(listener.accept(cx).await.map(drop));
            // Cancels do not reach into a shield: all data is still there.
            cx.shield(async |cx| {
                let count = server.read(cx, &mut buffer).await?;
                assert_eq!(&buffer[..count], b"bytes");
                let (count, _) = one.recv_from(cx, &mut buffer).await?;
                assert_eq!(&buffer[..count], b"datagram");
                assert_eq!(listener.accept(cx).await?.1, waiting.local_addr()?);
                io::Result::Ok(())
            })
            .await
        })
        .await;
    ended
}

async fn gives_nothing(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let (one, other) = udp(cx).await?;
    let to = one.local_addr()?;
    let ended: io::Result<()> = cx
        .scope(async |s| {
            s.cancel("now");
            cancelled(client.write(cx, b"not sent").await);
            cancelled(other.send_to(cx, b"not sent", to).await);
            let error = client.write_all(cx, b"not sent").await.expect_err("it is cancelled");
            assert_eq!(error.written, 0);
            assert!(error.error.is_cancelled());
            Ok(())
        })
        .await;
    ended?;
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got, b"");
    timed_out(cx.timeout(SOON, async |cx| one.recv(cx, &mut [0; 8]).await).await);
    Ok(())
}

async fn makes_no_sockets(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let ended: io::Result<()> = cx
        .scope(async |s| {
            s.cancel("now");
            cancelled(TcpStream::connect(cx, at).await);
            cancelled(TcpListener::bind(cx, HERE).await);
            cancelled(UdpSocket::bind(cx, HERE).await);
            Ok(())
        })
        .await;
    ended?;
    timed_out(cx.timeout(SOON, async |cx| listener.accept(cx).await.map(drop)).await);
    Ok(())
}

async fn wakes_reader(cx: &Cx) -> io::Result<()> {
    let (_client, mut server) = tcp(cx).await?;
    let (here, mut waits) = channel::bounded(1);
    cx.scope(async |s| {
        let reader = s.spawn(async move |cx: Cx| {
            here.send(&cx, ()).await.ok();
            server.read(&cx, &mut [0; 8]).await
        });
        waits.recv(cx).await.ok();
        reader.cancel("enough");
        assert!(matches!(reader.await, Err(TaskError::Cancelled(_))));
        io::Result::Ok(())
    })
    .await
}

async fn wakes_acceptor(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let clone = listener.clone();
    let (here, mut waits) = channel::bounded(1);
    cx.scope(async |s| {
        let acceptor = s.spawn(async move |cx: Cx| {
            here.send(&cx, ()).await.ok();
            clone.accept(&cx).await.map(drop)
        });
        waits.recv(cx).await.ok();
        acceptor.cancel("enough");
        assert!(matches!(acceptor.await, Err(TaskError::Cancelled(_))));
        // The next accept works as before.
        let client = TcpStream::connect(cx, listener.local_addr()?).await?;
        assert_eq!(listener.accept(cx).await?.1, client.local_addr()?);
        io::Result::Ok(())
    })
    .await
}

async fn wakes_writer(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    let filled = crate::help::fill(cx, &mut client).await?;
    let (here, mut waits) = channel::bounded(1);
    let (done, mut written) = channel::bounded(1);
    cx.scope(async |s| {
        let writer = s.spawn(async move |cx: Cx| {
            here.send(&cx, ()).await.ok();
            let ended = client.write_all(&cx, &pattern(MORE_THAN_FITS)).await;
            let error = ended.expect_err("it does not fit");
            done.try_send(error.written).ok();
            Err::<(), _>(error.error)
        });
        waits.recv(cx).await.ok();
        writer.cancel("enough");
        assert!(matches!(writer.await, Err(TaskError::Cancelled(_))));
        io::Result::Ok(())
    })
    .await?;
    let written = written.recv(cx).await.expect("the writer has reported");
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got.len(), filled + written);
    Ok(())
}

async fn loses_select(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let (one, other) = udp(cx).await?;
    let mut bytes = [0; 8];
    let mut datagram = [0; 8];
    for round in 0..3_u8 {
        other.send_to(cx, &[round], one.local_addr()?).await?;
        let count = select! {
            _ = server.read(cx, &mut bytes) => unreachable!("nobody has written"),
            count = one.recv(cx, &mut datagram) => count?,
        };
        assert_eq!(datagram[..count], [round]);
    }
    client.write_all(cx, b"kept").await?;
    let mut got = [0; 4];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"kept");
    Ok(())
}

async fn loses_race(cx: &Cx) -> io::Result<()> {
    let (mut fast, mut fast_end) = tcp(cx).await?;
    let (mut slow, mut slow_end) = tcp(cx).await?;
    fast.write_all(cx, b"fast").await?;
    let mut first = [0; 1];
    let mut other = [0; 4];
    let won = race(
        cx,
        async |cx| fast_end.read(cx, &mut first).await,
        async |cx| slow_end.read(cx, &mut other).await,
    );
    assert_eq!(won.await?, 1);
    slow.write_all(cx, b"slow").await?;
    slow_end.read_exact(cx, &mut other).await?;
    assert_eq!((&first, &other), (b"f", b"slow"));
    Ok(())
}

async fn of_use_after(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    for round in 0..3_u8 {
        timed_out(cx.timeout(SOON, async |cx| server.read(cx, &mut [0; 1]).await).await);
        client.write_all(cx, &[round]).await?;
        let mut got = [0];
        let within =
            cx.timeout(Duration::from_secs(20), async |cx| server.read(cx, &mut got).await);
        assert_eq!(within.await?, 1);
        assert_eq!(got, [round]);
    }
    Ok(())
}

async fn cut_line(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    let mut lines = io::BufReader::new(server).lines();
    client.write_all(cx, b"one ").await?;
    timed_out(cx.timeout(SOON, async |cx| lines.next(cx).await).await);
    client.write_all(cx, b"line\n").await?;
    assert_eq!(lines.next(cx).await?.as_deref(), Some("one line"));
    Ok(())
}

async fn cut_frame(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    let mut frames = FrameReader::new(server);
    client.write_all(cx, &[0, 0, 0, 4, b'w', b'h']).await?;
    let cut = cx.timeout(SOON, async |cx| frames.read(cx).await.map_err(io::Error::from));
    timed_out(cut.await);
    client.write_all(cx, b"le").await?;
    let frame = frames.read(cx).await.map_err(io::Error::from)?;
    assert_eq!(frame.as_deref(), Some(&b"whle"[..]));
    Ok(())
}

async fn poisoned(cx: &Cx) -> io::Result<()> {
    let (client, server) = narrow_tcp(cx).await?;
    let mut frames = FrameWriter::new(client);
    frames.reserve(cx).await.map_err(io::Error::from)?.send(&pattern(MORE_THAN_FITS))?;
    let cut = cx.timeout(SOON, async |cx| frames.flush(cx).await.map_err(io::Error::from));
    timed_out(cut.await);
    assert!(frames.is_poisoned());
    assert!(matches!(frames.flush(cx).await, Err(FrameError::Poisoned)));
    assert!(matches!(frames.reserve(cx).await.map(drop), Err(FrameError::Poisoned)));
    // Its direction is ended: the peer sees that the frame is incomplete.
    let mut got = FrameReader::new(server);
    match got.read(cx).await {
        Err(FrameError::Io(error)) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof),
        other => panic!("{other:?}"),
    }
    drop(frames);
    Ok(())
}

async fn not_begun(cx: &Cx) -> io::Result<()> {
    let (client, server) = tcp(cx).await?;
    let mut frames = FrameWriter::new(client);
    frames.reserve(cx).await.map_err(io::Error::from)?.send(b"whole")?;
    let ended: io::Result<()> = cx
        .scope(async |s| {
            s.cancel("now");
            assert!(frames.flush(cx).await.is_err_and(|error| error.is_cancelled()));
            Ok(())
        })
        .await;
    ended?;
    assert!(!frames.is_poisoned());
    frames.shutdown(cx).await.map_err(io::Error::from)?;
    let mut got = FrameReader::new(server);
    let frame = got.read(cx).await.map_err(io::Error::from)?;
    assert_eq!(frame.as_deref(), Some(&b"whole"[..]));
    assert_eq!(got.read(cx).await.map_err(io::Error::from)?, None);
    Ok(())
}

async fn closes(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    cx.scope(async |s| {
        let reader = s.spawn(async move |cx: Cx| {
            let mut server = server;
            server.read(&cx, &mut [0; 8]).await
        });
        reader.cancel("enough");
        assert_eq!(client.read(cx, &mut [0; 8]).await?, 0);
        drop(reader);
        io::Result::Ok(())
    })
    .await
}
