//! Protocols on streams: copies, lines, frames, servers.

use std::io::ErrorKind;

use asx::io::{self, BufReader, BufWriter, FrameError, FrameReader, FrameWriter, Read as _};
use asx::io::{Write as _, copy, copy_bidirectional};
use asx::net::{TcpListener, TcpStream, serve};
use asx::prelude::*;

use crate::Case;
use crate::help::{HERE, MORE_THAN_FITS, failed, narrow_tcp, pattern, tcp};

pub(crate) const STREAMS: &[Case] = &[
    Case {
        name: "a_copy_ends_with_its_source",
        rule: "copy returns the number of bytes until the end, and all of them arrive",
        run: |cx| Box::pin(copies(cx)),
    },
    Case {
        name: "a_copy_of_more_than_fits_arrives",
        rule: "copy waits while the peer does not read, and continues",
        run: |cx| Box::pin(large_copy(cx)),
    },
    Case {
        name: "a_proxy_passes_both_directions_and_their_ends",
        rule: "copy_bidirectional ends when both have ended, and forwards each end to the other",
        run: |cx| Box::pin(proxy(cx)),
    },
    Case {
        name: "a_proxy_ends_with_an_error_of_either",
        rule: "a reset of one connection ends copy_bidirectional",
        run: |cx| Box::pin(broken_proxy(cx)),
    },
    Case {
        name: "lines_are_separated_by_line_ends",
        rule: "both kinds of line ends are removed, and a last line needs none",
        run: |cx| Box::pin(lines(cx)),
    },
    Case {
        name: "a_line_that_is_too_long_is_an_error",
        rule: "a line beyond the limit is InvalidData",
        run: |cx| Box::pin(long_line(cx)),
    },
    Case {
        name: "a_line_that_is_not_utf8_is_an_error",
        rule: "a line that is not UTF-8 is InvalidData, and the next one is read",
        run: |cx| Box::pin(no_text(cx)),
    },
    Case {
        name: "buffered_bytes_are_sent_by_the_flush",
        rule: "the peer reads nothing of a buffered write before the flush",
        run: |cx| Box::pin(buffered(cx)),
    },
    Case {
        name: "frames_arrive_as_they_were_sent",
        rule: "each frame is read whole, empty and large ones too, and then the end",
        run: |cx| Box::pin(frames(cx)),
    },
    Case {
        name: "an_incomplete_frame_is_an_error",
        rule: "an end inside of a frame is UnexpectedEof, and then the reader is poisoned",
        run: |cx| Box::pin(half_frame(cx)),
    },
    Case {
        name: "a_frame_that_is_too_long_is_an_error",
        rule: "a frame longer than allowed is TooLong at both ends",
        run: |cx| Box::pin(long_frame(cx)),
    },
];

pub(crate) const SERVERS: &[Case] = &[
    Case {
        name: "a_server_answers_each_client",
        rule: "each connection has a handler, and all are counted",
        run: |cx| Box::pin(each_client(cx)),
    },
    Case {
        name: "a_stopped_server_closes_idle_connections",
        rule: "idle clients read the end, the listener refuses, and the server ends",
        run: |cx| Box::pin(stop_idle(cx)),
    },
    Case {
        name: "a_stopped_server_answers_requests_in_flight",
        rule: "a request that was read is answered after the stop",
        run: |cx| Box::pin(stop_busy(cx)),
    },
    Case {
        name: "a_cancelled_server_cancels_its_handlers",
        rule: "handlers that wait are cancelled, and their clients read the end",
        run: |cx| Box::pin(cancelled_server(cx)),
    },
    Case {
        name: "a_failing_handler_affects_only_its_connection",
        rule: "its error is counted, and the server continues",
        run: |cx| Box::pin(failing_handler(cx)),
    },
];

async fn copies(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"all of it").await?;
    drop(client);
    let mut got = Vec::new();
    assert_eq!(copy(cx, &mut server, &mut got).await?, 9);
    assert_eq!(got, b"all of it");
    Ok(())
}

async fn large_copy(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = narrow_tcp(cx).await?;
    let sent = pattern(MORE_THAN_FITS);
    let expected = sent.clone();
    cx.scope(async |s| {
        let writer = s.spawn(async move |cx: Cx| {
            let mut client = client;
            copy(&cx, &mut &sent[..], &mut client).await
        });
        let mut got = Vec::new();
        server.read_to_end(cx, &mut got).await?;
        assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
        assert_eq!(writer.await.ok(), Some(expected.len() as u64));
        io::Result::Ok(())
    })
    .await
}

async fn proxy(cx: &Cx) -> io::Result<()> {
    let (mut client, mut near) = tcp(cx).await?;
    let (mut far, mut server) = tcp(cx).await?;
    cx.scope(async |s| {
        let proxy = s.spawn(async move |cx: Cx| copy_bidirectional(&cx, &mut near, &mut far).await);
        client.write_all(cx, b"question").await?;
        client.shutdown(std::net::Shutdown::Write)?;
        let mut question = Vec::new();
        server.read_to_end(cx, &mut question).await?;
        assert_eq!(question, b"question");
        server.write_all(cx, b"answer").await?;
        server.shutdown(std::net::Shutdown::Write)?;
        let mut answer = Vec::new();
        client.read_to_end(cx, &mut answer).await?;
        assert_eq!(answer, b"answer");
        assert_eq!(proxy.await.ok(), Some((8, 6)));
        io::Result::Ok(())
    })
    .await
}

async fn broken_proxy(cx: &Cx) -> io::Result<()> {
    let (client, mut near) = tcp(cx).await?;
    let (mut far, mut server) = tcp(cx).await?;
    let ended: io::Result<()> = cx
        .scope(async |s| {
            let proxy = s.spawn(async move |cx: Cx| {
                Ok(failed(copy_bidirectional(&cx, &mut near, &mut far).await))
            });
            client.set_linger(Some(std::time::Duration::ZERO))?;
            drop(client);
            assert_eq!(proxy.await.ok(), Some(ErrorKind::ConnectionReset));
            Ok(())
        })
        .await;
    ended?;
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    Ok(())
}

async fn lines(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    client.write_all(cx, b"one\ntwo\r\n\nlast").await?;
    drop(client);
    let mut lines = BufReader::new(server).lines();
    for line in ["one", "two", "", "last"] {
        assert_eq!(lines.next(cx).await?.as_deref(), Some(line));
    }
    assert_eq!(lines.next(cx).await?, None);
    Ok(())
}

async fn long_line(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    client.write_all(cx, &[b'x'; 100]).await?;
    let mut lines = BufReader::with_capacity(16, server).max_section(32).lines();
    assert_eq!(failed(lines.next(cx).await), ErrorKind::InvalidData);
    Ok(())
}

async fn no_text(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    client.write_all(cx, b"\xff\xfe\ntext\n").await?;
    let mut lines = BufReader::new(server).lines();
    assert_eq!(failed(lines.next(cx).await), ErrorKind::InvalidData);
    assert_eq!(lines.next(cx).await?.as_deref(), Some("text"));
    Ok(())
}

async fn buffered(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let mut writer = BufWriter::new(client);
    writer.write_all(cx, b"buffered").await?;
    let early = cx.timeout(crate::help::SOON, async |cx| server.read(cx, &mut [0; 8]).await);
    crate::help::timed_out(early.await);
    writer.flush(cx).await?;
    let mut got = [0; 8];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"buffered");
    Ok(())
}

async fn frames(cx: &Cx) -> io::Result<()> {
    let (client, server) = tcp(cx).await?;
    let large = pattern(20_000);
    let sent = [b"one".to_vec(), Vec::new(), large];
    let expected = sent.clone();
    cx.scope(async |s| {
        s.spawn(async move |cx: Cx| {
            let mut writer = FrameWriter::new(client);
            for frame in &sent {
                writer.reserve(&cx).await?.send(frame)?;
            }
            Ok(writer.shutdown(&cx).await?)
        });
        let mut reader = FrameReader::new(server);
        for frame in &expected {
            let got = reader.read(cx).await?;
            assert!(got.as_ref() == Some(frame), "a frame of {} bytes", frame.len());
        }
        assert_eq!(reader.read(cx).await?, None);
        io::Result::Ok(())
    })
    .await
}

async fn half_frame(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    client.write_all(cx, &[0, 0, 0, 9, b'h', b'a', b'l', b'f']).await?;
    drop(client);
    let mut reader = FrameReader::new(server);
    match reader.read(cx).await {
        Err(FrameError::Io(error)) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof),
        other => panic!("{other:?}"),
    }
    assert!(matches!(reader.read(cx).await, Err(FrameError::Poisoned)));
    Ok(())
}

async fn long_frame(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    let (_, writer) = client.split();
    let mut writer = FrameWriter::new(writer).max_frame(8);
    let refused = writer.reserve(cx).await?.send(&[0; 9]);
    assert!(matches!(refused, Err(FrameError::TooLong { length: 9, max: 8 })));
    drop(writer);
    client.write_all(cx, &[0, 0, 0, 9]).await?;
    let mut reader = FrameReader::new(server).max_frame(8);
    let read = reader.read(cx).await;
    assert!(matches!(read, Err(FrameError::TooLong { length: 9, max: 8 })));
    Ok(())
}

/// Echoes until the client ends, or until the server is stopped while it waits for more.
async fn echo(cx: Cx, mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 64];
    loop {
        let count = select! {
            count = stream.read(&cx, &mut buffer) => count?,
            told = cx.stopping() => return Ok(told?),
        };
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&cx, &buffer[..count]).await?;
    }
}

async fn round_trip(cx: &Cx, client: &mut TcpStream) -> io::Result<()> {
    client.write_all(cx, b"ping").await?;
    let mut answer = [0; 4];
    client.read_exact(cx, &mut answer).await?;
    assert_eq!(&answer, b"ping");
    Ok(())
}

async fn each_client(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let report = cx
        .scope(async |s| {
            let server = s.spawn(async move |cx: Cx| {
                serve(&cx, listener, |cx, stream, _peer| echo(cx, stream)).await
            });
            for _ in 0..3 {
                let mut client = TcpStream::connect(cx, at).await?;
                round_trip(cx, &mut client).await?;
            }
            s.stop();
            io::Result::Ok(server.await.expect("a report"))
        })
        .await?;
    assert_eq!((report.accepted, report.completed, report.failed), (3, 3, 0));
    Ok(())
}

async fn stop_idle(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let report = cx
        .scope(async |s| {
            let server = s.spawn(async move |cx: Cx| {
                serve(&cx, listener, |cx, stream, _peer| echo(cx, stream)).await
            });
            let mut client = TcpStream::connect(cx, at).await?;
            round_trip(cx, &mut client).await?;
            s.stop();
            assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
            io::Result::Ok(server.await.expect("a report"))
        })
        .await?;
    assert_eq!((report.accepted, report.completed), (1, 1));
    assert_eq!(failed(TcpStream::connect(cx, at).await), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn stop_busy(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let (busy, mut is_busy) = channel::bounded(1);
    cx.scope(async |s| {
        let server = s.spawn(async move |cx: Cx| {
            let answer = move |cx: Cx, mut stream: TcpStream, _| {
                let busy = busy.clone();
                async move {
                    stream.read_exact(&cx, &mut [0; 4]).await?;
                    busy.send(&cx, ()).await.ok();
                    cx.stopping().await?;
                    // Notified, but not cancelled: there is time to answer.
                    Ok(stream.write_all(&cx, b"done").await?)
                }
            };
            serve(&cx, listener, answer).await
        });
        let mut client = TcpStream::connect(cx, at).await?;
        client.write_all(cx, b"work").await?;
        is_busy.recv(cx).await.ok();
        s.stop();
        let mut answer = Vec::new();
        client.read_to_end(cx, &mut answer).await?;
        assert_eq!(answer, b"done");
        let report = server.await.expect("a report");
        assert_eq!((report.accepted, report.completed), (1, 1));
        io::Result::Ok(())
    })
    .await
}

async fn cancelled_server(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    cx.scope(async |s| {
        let server = s.spawn(async move |cx: Cx| {
            serve(&cx, listener, |cx, stream, _peer| echo(cx, stream)).await
        });
        let mut client = TcpStream::connect(cx, at).await?;
        round_trip(cx, &mut client).await?;
        server.cancel("enough");
        assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
        assert!(matches!(server.await, Err(TaskError::Cancelled(_))));
        io::Result::Ok(())
    })
    .await
}

async fn failing_handler(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    cx.scope(async |s| {
        let server = s.spawn(async move |cx: Cx| {
            let answer = async |cx: Cx, mut stream: TcpStream| {
                let mut request = [0];
                stream.read_exact(&cx, &mut request).await?;
                if request == *b"x" {
                    return Err(ErrorKind::InvalidData.into());
                }
                Ok(stream.write_all(&cx, &request).await?)
            };
            serve(&cx, listener, move |cx, stream, _peer| answer(cx, stream)).await
        });
        for (request, count) in [(b"x", 0), (b"a", 1)] {
            let mut client = TcpStream::connect(cx, at).await?;
            client.write_all(cx, request).await?;
            assert_eq!(client.read(cx, &mut [0; 4]).await?, count);
        }
        s.stop();
        let report = server.await.expect("a report");
        assert_eq!((report.accepted, report.completed, report.failed), (2, 1, 1));
        io::Result::Ok(())
    })
    .await
}
