//! Servers: a task for each connection, failed accepts, and orderly shutdown.

use crate::common;

use std::collections::VecDeque;
use std::io::{Error as IoError, ErrorKind};
use std::sync::Mutex;

use asx_kernel::cancel::Kind;
use asx_net::io::Read as _;
use asx_net::{Cx, Listener, ServeEvent, ServeReport, Server, TcpListener, TcpStream, io, serve};
use asx_runtime::{TaskError, channel, select};
use common::on_each;

/// Echoes until the client ends, or until a stop request while the connection is idle.
async fn echo(cx: Cx, mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 64];
    loop {
        let count = select! {
            count = stream.read(&cx, &mut buffer) => count?,
            stopping = cx.stopping() => return Ok(stopping?),
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

#[test]
fn stopped_server_closes_idle_connections_and_the_listener() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let report = cx
            .scope(async |s| {
                let server = s.spawn(async move |cx: Cx| {
                    serve(&cx, listener, |cx, stream, _peer| echo(cx, stream)).await
                });
                let mut clients = Vec::new();
                for _ in 0..3 {
                    let mut client = TcpStream::connect(&cx, address).await?;
                    round_trip(&cx, &mut client).await?;
                    clients.push(client);
                }
                s.stop();
                for mut client in clients {
                    assert_eq!(client.read(&cx, &mut [0; 4]).await?, 0);
                }
                Ok::<_, io::Error>(server.await.unwrap())
            })
            .await?;
        assert_eq!((report.accepted, report.completed, report.failed), (3, 3, 0));
        let refused = TcpStream::connect(&cx, address).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        Ok(())
    });
}

#[test]
fn request_in_flight_is_answered_after_the_stop() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (busy, mut is_busy) = channel::bounded(1);
        let report = cx
            .scope(async |s| {
                let server = s.spawn(async move |cx: Cx| {
                    let answer = move |cx: Cx, mut stream: TcpStream, _| {
                        let busy = busy.clone();
                        async move {
                            let mut request = [0; 4];
                            stream.read_exact(&cx, &mut request).await?;
                            busy.send(&cx, ()).await.ok();
                            cx.stopping().await?;
                            // A stop request does not cancel: the handler can still answer.
                            Ok(stream.write_all(&cx, b"done").await?)
                        }
                    };
                    serve(&cx, listener, answer).await
                });
                let mut client = TcpStream::connect(&cx, address).await?;
                client.write_all(&cx, b"work").await?;
                is_busy.recv(&cx).await.ok();
                s.stop();
                let mut answer = Vec::new();
                client.read_to_end(&cx, &mut answer).await?;
                assert_eq!(answer, b"done");
                Ok::<_, io::Error>(server.await.unwrap())
            })
            .await?;
        assert_eq!((report.accepted, report.completed), (1, 1));
        Ok(())
    });
}

#[test]
fn cancelled_server_cancels_its_handlers_and_waits_for_them() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (ended, mut ends) = channel::bounded(4);
        cx.scope(async |s| {
            let server = s.spawn(async move |cx: Cx| {
                let handler = move |cx: Cx, mut stream: TcpStream, _| {
                    let ended = ended.clone();
                    async move {
                        stream.write_all(&cx, b"ping").await?;
                        let read = stream.read(&cx, &mut [0; 4]).await;
                        ended.try_send(read.as_ref().is_err_and(io::Error::is_cancelled)).ok();
                        read.map(drop)
                    }
                };
                serve(&cx, listener, handler).await
            });
            let mut client = TcpStream::connect(&cx, address).await?;
            client.read_exact(&cx, &mut [0; 4]).await?;
            server.cancel("enough");
            assert!(matches!(server.await, Err(TaskError::Cancelled(_) | TaskError::Err(_))));
            // The handler ended before its server.
            assert_eq!(ends.try_recv(), Ok(true));
            Ok(())
        })
        .await
    });
}

#[test]
fn error_of_a_handler_does_not_end_the_server() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let report = cx
            .scope(async |s| {
                let server = s.spawn(async move |cx: Cx| {
                    let handler = |cx: Cx, mut stream: TcpStream, _| async move {
                        let mut first = [0; 1];
                        stream.read_exact(&cx, &mut first).await?;
                        match &first {
                            b"e" => Err(ErrorKind::InvalidData.into()),
                            b"p" => std::panic::resume_unwind(Box::new("planned")),
                            _ => Ok(()),
                        }
                    };
                    serve(&cx, listener, handler).await
                });
                for kind in [b"e", b"p", b"o"] {
                    let mut client = TcpStream::connect(&cx, address).await?;
                    client.write_all(&cx, kind).await?;
                    // The handler has ended and closed its end.
                    assert_eq!(client.read(&cx, &mut [0; 4]).await?, 0);
                }
                s.stop();
                Ok::<_, io::Error>(server.await.unwrap())
            })
            .await?;
        let ServeReport { accepted, completed, failed, aborted, .. } = report;
        assert_eq!((accepted, completed, failed, aborted), (3, 1, 1, 1));
        Ok(())
    });
}

#[cfg(unix)]
use libc::{EBADF, ECONNABORTED, EMFILE, ENFILE};

/// The error numbers of Windows. It has none for `ENFILE`; `WSAENOBUFS` replaces it.
#[cfg(windows)]
const EBADF: i32 = 10_009;
#[cfg(windows)]
const ECONNABORTED: i32 = 10_053;
#[cfg(windows)]
const EMFILE: i32 = 10_024;
#[cfg(windows)]
const ENFILE: i32 = 10_055;

/// A listener that returns scripted results, then waits until it is cancelled.
struct Scripted(Mutex<VecDeque<Result<u32, i32>>>);

impl Listener for Scripted {
    type Stream = u32;
    type Peer = ();

    async fn accept(&self, cx: &Cx) -> io::Result<(u32, ())> {
        cx.checkpoint()?;
        let next = self.0.lock().unwrap().pop_front();
        match next {
            Some(Ok(number)) => Ok((number, ())),
            Some(Err(number)) => Err(IoError::from_raw_os_error(number).into()),
            None => Err(cx.cancelled().await.into()),
        }
    }
}

#[test]
fn exhaustion_is_reported_once_per_streak_and_the_server_continues() {
    on_each(async |cx| {
        let script = [
            Ok(1),
            Err(EMFILE),
            Err(EMFILE),
            Err(ENFILE),
            Ok(2),
            Err(ECONNABORTED),
            Ok(3),
            Err(EMFILE),
            Ok(4),
        ];
        let listener = Scripted(Mutex::new(script.into()));
        let (served, mut numbers) = channel::bounded(8);
        let (report_event, mut events_seen) = channel::bounded(8);
        let report = cx
            .scope(async |s| {
                let server = s.spawn(async move |cx: Cx| {
                    let server = Server::new(listener).on_event(move |event| {
                        let text = match event {
                            ServeEvent::Exhausted(error) => format!("{:?}", error.raw_os_error()),
                            ServeEvent::Recovered { failures } => format!("after {failures}"),
                            other => format!("{other:?}"),
                        };
                        report_event.try_send(text).unwrap();
                    });
                    let handler = move |cx: Cx, number: u32, ()| {
                        let served = served.clone();
                        async move {
                            served.send(&cx, number).await.ok();
                            Ok(())
                        }
                    };
                    server.serve(&cx, handler).await
                });
                let mut got = Vec::new();
                for _ in 0..4 {
                    got.push(numbers.recv(&cx).await.unwrap());
                }
                got.sort_unstable();
                assert_eq!(got, [1, 2, 3, 4]);
                s.stop();
                Ok::<_, io::Error>(server.await.unwrap())
            })
            .await?;
        assert_eq!((report.accepted, report.completed), (4, 4));
        assert_eq!((report.accept_errors, report.exhaustions), (5, 2));
        let mut events = Vec::new();
        while let Ok(event) = events_seen.try_recv() {
            events.push(event);
        }
        let emfile = format!("{:?}", Some(EMFILE));
        assert_eq!(events, [&emfile, "after 3", &emfile, "after 1"]);
        Ok(())
    });
}

#[test]
fn fatal_accept_error_ends_the_server() {
    on_each(async |cx| {
        let listener = Scripted(Mutex::new([Ok(1), Err(EBADF)].into()));
        let ended = serve(&cx, listener, |_, _, ()| async { Ok(()) }).await;
        let io::Error::Io(error) = ended.unwrap_err() else { panic!("not cancelled") };
        assert_eq!(error.raw_os_error(), Some(EBADF));
        Ok(())
    });
}

#[test]
fn exhausted_server_observes_a_stop_request() {
    on_each(async |cx| {
        let script: VecDeque<_> = std::iter::repeat_n(Err(EMFILE), 1000).collect();
        let (report_event, mut events_seen) = channel::bounded(1);
        cx.scope(async |s| {
            let server = s.spawn(async move |cx: Cx| {
                let server = Server::new(Scripted(Mutex::new(script)));
                let server = server.on_event(move |_| report_event.try_send(()).unwrap());
                server.serve(&cx, |_, _, ()| async { Ok(()) }).await
            });
            events_seen.recv(&cx).await.unwrap();
            s.stop();
            let report = server.await.unwrap();
            assert_eq!((report.accepted, report.exhaustions), (0, 1));
            assert!((1..1000).contains(&report.accept_errors));
            Ok::<_, io::Error>(())
        })
        .await
    });
}

#[test]
fn server_in_a_timeout_ends_with_the_timeout() {
    on_each(async |cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let limit = std::time::Duration::from_millis(1);
        let ended =
            cx.timeout(limit, |cx| serve(cx, listener, |cx, stream, _| echo(cx, stream))).await;
        assert_eq!(common::cancelled(ended).kind(), Kind::Timeout);
        Ok(())
    });
}
