//! How connections end: half-close, close, reset.

use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Duration;

use asx::io::{self, Read as _};
use asx::net::{TcpListener, TcpStream};
use asx::prelude::*;

use crate::Case;
use crate::help::{HERE, Name, arrived, failed, fill, narrow_tcp, pattern, tcp, unix};

pub(crate) const HALF_CLOSE: &[Case] = &[
    Case {
        name: "an_ended_direction_is_an_end_for_the_peer",
        rule: "after the last bytes the peer reads 0",
        run: |cx| Box::pin(ended_direction(cx)),
    },
    Case {
        name: "an_end_stays_an_end",
        rule: "every read after the end is 0",
        run: |cx| Box::pin(end_stays(cx)),
    },
    Case {
        name: "reads_work_after_the_own_end",
        rule: "the direction from the peer is open after a shutdown of the other one",
        run: |cx| Box::pin(can_still_read(cx)),
    },
    Case {
        name: "writes_work_after_the_end_of_the_peer",
        rule: "the end of one direction does not end the other, at either end",
        run: |cx| Box::pin(can_still_write(cx)),
    },
    Case {
        name: "both_ends_can_end",
        rule: "two half-closes are a close without an error",
        run: |cx| Box::pin(both_end(cx)),
    },
    Case {
        name: "an_ended_direction_takes_no_more",
        rule: "a write after the own shutdown is BrokenPipe",
        run: |cx| Box::pin(ended_takes_no_more(cx)),
    },
    Case {
        name: "a_second_shutdown_is_no_error",
        rule: "a second shutdown of the same direction returns the same as the first",
        run: |cx| Box::pin(end_twice(cx)),
    },
    Case {
        name: "a_read_after_shutdown_of_reading_is_the_end",
        rule: "a read after the own shutdown of reading is 0",
        run: |cx| Box::pin(shut_read(cx)),
    },
    Case {
        name: "both_directions_end_at_once",
        rule: "after a shutdown of both, reads are 0 at both ends, and writes BrokenPipe",
        run: |cx| Box::pin(shut_both(cx)),
    },
    Case {
        name: "an_end_wakes_a_waiting_read",
        rule: "a read that waits returns 0 when the peer ends",
        run: |cx| Box::pin(end_wakes(cx)),
    },
    Case {
        name: "unix_streams_can_be_half_closed",
        rule: "a shutdown of one direction of a unix stream leaves the other open",
        run: |cx| Box::pin(unix_half_close(cx)),
    },
];

pub(crate) const RESET: &[Case] = &[
    Case {
        name: "a_close_without_unread_bytes_is_no_error",
        rule: "a close by a peer that has read everything is read as 0",
        run: |cx| Box::pin(clean_close(cx)),
    },
    Case {
        name: "a_close_with_unread_bytes_resets",
        rule: "a close with unread bytes is ConnectionReset for the peer",
        run: |cx| Box::pin(close_with_unread(cx)),
    },
    Case {
        name: "a_close_without_linger_resets",
        rule: "a close with a linger of zero is ConnectionReset for the peer",
        run: |cx| Box::pin(linger_zero(cx)),
    },
    Case {
        name: "a_reset_wakes_a_waiting_read",
        rule: "a read that waits returns ConnectionReset when the peer resets",
        run: |cx| Box::pin(reset_wakes_reader(cx)),
    },
    Case {
        name: "a_reset_wakes_a_waiting_write",
        rule: "a write that waits returns ConnectionReset when the peer resets",
        run: |cx| Box::pin(reset_wakes_writer(cx)),
    },
    Case {
        name: "a_reset_is_reported_once",
        rule: "after ConnectionReset a read is 0 and a write BrokenPipe",
        run: |cx| Box::pin(told_once(cx)),
    },
    Case {
        name: "take_error_returns_a_reset",
        rule: "take_error returns the reset, once",
        run: |cx| Box::pin(asked_for(cx)),
    },
    Case {
        name: "bytes_before_a_reset_can_be_read",
        rule: "bytes that had arrived are read before the reset",
        run: |cx| Box::pin(before_a_reset(cx)),
    },
    Case {
        name: "writes_to_a_closed_peer_fail_in_the_end",
        rule: "the first write after the peer's close may succeed; a later one is BrokenPipe",
        run: |cx| Box::pin(write_to_closed(cx)),
    },
    Case {
        name: "a_connection_reset_before_accept_is_accepted",
        rule: "it is accepted, and its first read returns the error",
        run: |cx| Box::pin(reset_before_accept(cx)),
    },
    Case {
        name: "a_connection_closed_before_accept_is_accepted",
        rule: "it is accepted, with the bytes written and the end",
        run: |cx| Box::pin(closed_before_accept(cx)),
    },
    Case {
        name: "a_closing_listener_resets_pending_connections",
        rule: "a connection that was not accepted is ConnectionReset when its listener closes",
        run: |cx| Box::pin(listener_closes(cx)),
    },
    Case {
        name: "a_unix_stream_that_closes_with_unread_bytes_resets",
        rule: "a close with unread bytes is ConnectionReset for the peer",
        run: |cx| Box::pin(unix_close_with_unread(cx)),
    },
    Case {
        name: "a_write_to_a_closed_unix_stream_is_refused",
        rule: "a write after the peer's close is BrokenPipe, the first one too",
        run: |cx| Box::pin(unix_write_to_closed(cx)),
    },
    Case {
        name: "bytes_after_a_full_shutdown_reset",
        rule: "bytes for an end that has shut down both directions are a reset at both ends",
        run: |cx| Box::pin(after_shut_both(cx)),
    },
    Case {
        name: "a_reset_does_not_wait_for_room",
        rule: "a write returns the reset before earlier bytes were read, which can still be read",
        run: |cx| Box::pin(reset_without_room(cx)),
    },
];

async fn ended_direction(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"last").await?;
    client.shutdown(Shutdown::Write)?;
    let mut got = [0; 4];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"last");
    assert_eq!(server.read(cx, &mut got).await?, 0);
    Ok(())
}

async fn end_stays(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    client.shutdown(Shutdown::Write)?;
    for _ in 0..5 {
        assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
        assert_eq!(server.peek(cx, &mut [0; 4]).await?, 0);
    }
    Ok(())
}

async fn can_still_read(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.shutdown(Shutdown::Write)?;
    server.write_all(cx, b"answer").await?;
    let mut got = [0; 6];
    client.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"answer");
    Ok(())
}

async fn can_still_write(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"question").await?;
    client.shutdown(Shutdown::Write)?;
    let mut question = Vec::new();
    server.read_to_end(cx, &mut question).await?;
    assert_eq!(question, b"question");
    server.write_all(cx, b"answer").await?;
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(cx, &mut answer).await?;
    assert_eq!(answer, b"answer");
    Ok(())
}

async fn both_end(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.shutdown(Shutdown::Write)?;
    server.shutdown(Shutdown::Write)?;
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    Ok(())
}

async fn ended_takes_no_more(cx: &Cx) -> io::Result<()> {
    let (mut client, _server) = tcp(cx).await?;
    client.shutdown(Shutdown::Write)?;
    assert_eq!(failed(client.write(cx, b"more").await), ErrorKind::BrokenPipe);
    Ok(())
}

async fn end_twice(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    client.shutdown(Shutdown::Write)?;
    client.shutdown(Shutdown::Write)?;
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    Ok(())
}

async fn shut_read(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.shutdown(Shutdown::Read)?;
    assert_eq!(client.peek(cx, &mut [0; 4]).await?, 0);
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    // The other direction is open.
    client.write_all(cx, b"open").await?;
    let mut got = [0; 4];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"open");
    Ok(())
}

async fn shut_both(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.shutdown(Shutdown::Both)?;
    assert_eq!(client.peek(cx, &mut [0; 4]).await?, 0);
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    assert_eq!(failed(client.write(cx, b"more").await), ErrorKind::BrokenPipe);
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    Ok(())
}

async fn end_wakes(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (here, mut waits) = channel::bounded(1);
    cx.scope(async |s| {
        let reader = s.spawn(async move |cx: Cx| {
            here.send(&cx, ()).await.ok();
            server.read(&cx, &mut [0; 4]).await
        });
        waits.recv(cx).await.ok();
        client.shutdown(Shutdown::Write)?;
        assert_eq!(reader.await.ok(), Some(0));
        Ok(())
    })
    .await
}

async fn unix_half_close(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_half_close");
    let (mut client, mut server) = unix(cx, &name).await?;
    client.write_all(cx, b"question").await?;
    client.shutdown(Shutdown::Write)?;
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got, b"question");
    assert_eq!(failed(client.write(cx, b"more").await), ErrorKind::BrokenPipe);
    server.write_all(cx, b"answer").await?;
    let mut answer = [0; 6];
    client.read_exact(cx, &mut answer).await?;
    assert_eq!(&answer, b"answer");
    Ok(())
}

async fn clean_close(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"all of it").await?;
    let mut got = [0; 9];
    server.read_exact(cx, &mut got).await?;
    drop(server);
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    Ok(())
}

async fn close_with_unread(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    client.write_all(cx, b"nobody reads this").await?;
    arrived(cx, &server, 17).await?;
    drop(server);
    assert_eq!(failed(client.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
    Ok(())
}

async fn linger_zero(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    server.set_linger(Some(Duration::ZERO))?;
    drop(server);
    assert_eq!(failed(client.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
    Ok(())
}

async fn reset_wakes_reader(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (here, mut waits) = channel::bounded(1);
    cx.scope(async |s| {
        let reader = s.spawn(async move |cx: Cx| {
            here.send(&cx, ()).await.ok();
            Ok(failed(server.read(&cx, &mut [0; 4]).await))
        });
        waits.recv(cx).await.ok();
        client.set_linger(Some(Duration::ZERO))?;
        drop(client);
        assert_eq!(reader.await.ok(), Some(ErrorKind::ConnectionReset));
        io::Result::Ok(())
    })
    .await
}

async fn reset_wakes_writer(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = narrow_tcp(cx).await?;
    let (here, mut waits) = channel::bounded(1);
    cx.scope(async |s| {
        let writer = s.spawn(async move |cx: Cx| {
            crate::help::fill(&cx, &mut client).await?;
            here.send(&cx, ()).await.ok();
            let chunk = pattern(crate::help::MORE_THAN_FITS);
            Ok(failed(client.write_all(&cx, &chunk).await.map_err(io::Error::from)))
        });
        waits.recv(cx).await.ok();
        server.set_linger(Some(Duration::ZERO))?;
        drop(server);
        assert_eq!(writer.await.ok(), Some(ErrorKind::ConnectionReset));
        io::Result::Ok(())
    })
    .await
}

async fn told_once(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    server.set_linger(Some(Duration::ZERO))?;
    drop(server);
    assert_eq!(failed(client.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    assert_eq!(failed(client.write(cx, b"more").await), ErrorKind::BrokenPipe);
    Ok(())
}

async fn asked_for(cx: &Cx) -> io::Result<()> {
    let (client, server) = tcp(cx).await?;
    assert!(client.take_error()?.is_none());
    server.set_linger(Some(Duration::ZERO))?;
    drop(server);
    let error = loop {
        match client.take_error()? {
            Some(error) => break error,
            None => cx.sleep(Duration::from_millis(1)).await?,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(client.take_error()?.is_none());
    Ok(())
}

async fn before_a_reset(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    server.write_all(cx, b"last").await?;
    arrived(cx, &client, 4).await?;
    server.set_linger(Some(Duration::ZERO))?;
    drop(server);
    let mut got = [0; 4];
    client.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"last");
    assert_eq!(failed(client.read(cx, &mut got).await), ErrorKind::ConnectionReset);
    Ok(())
}

async fn write_to_closed(cx: &Cx) -> io::Result<()> {
    let (mut client, server) = tcp(cx).await?;
    drop(server);
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    let error = loop {
        match client.write(cx, b"is anybody there?").await {
            Ok(_) => cx.sleep(Duration::from_millis(1)).await?,
            error => break failed(error),
        }
    };
    assert_eq!(error, ErrorKind::BrokenPipe);
    Ok(())
}

async fn reset_before_accept(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let client = TcpStream::connect(cx, listener.local_addr()?).await?;
    let address = client.local_addr()?;
    client.set_linger(Some(Duration::ZERO))?;
    drop(client);
    let (mut server, from) = listener.accept(cx).await?;
    assert_eq!(from, address);
    assert_eq!(failed(server.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
    Ok(())
}

async fn closed_before_accept(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let mut client = TcpStream::connect(cx, listener.local_addr()?).await?;
    client.write_all(cx, b"gone").await?;
    drop(client);
    let (mut server, _) = listener.accept(cx).await?;
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got, b"gone");
    Ok(())
}

async fn listener_closes(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let mut client = TcpStream::connect(cx, listener.local_addr()?).await?;
    drop(listener);
    assert_eq!(failed(client.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
    Ok(())
}

async fn unix_close_with_unread(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_close_with_unread");
    let (mut client, mut server) = unix(cx, &name).await?;
    client.write_all(cx, b"half of this is read").await?;
    let mut half = [0; 10];
    server.read_exact(cx, &mut half).await?;
    drop(server);
    assert_eq!(failed(client.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
    Ok(())
}

async fn unix_write_to_closed(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_write_to_closed");
    let (mut client, server) = unix(cx, &name).await?;
    drop(server);
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    assert_eq!(failed(client.write(cx, b"more").await), ErrorKind::BrokenPipe);
    Ok(())
}

async fn after_shut_both(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    server.shutdown(Shutdown::Both)?;
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    assert_eq!(client.read(cx, &mut [0; 4]).await?, 0);
    let error = loop {
        match client.write(cx, b"not wanted").await {
            Ok(_) => cx.sleep(Duration::from_millis(1)).await?,
            error => break failed(error),
        }
    };
    assert_eq!(error, ErrorKind::BrokenPipe);
    assert_eq!(failed(server.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
    let ended = client.shutdown(Shutdown::Write).map_err(io::Error::from);
    assert_eq!(failed(ended), ErrorKind::NotConnected);
    Ok(())
}

async fn reset_without_room(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    let filled = fill(cx, &mut server).await?;
    client.write_all(cx, b"unread").await?;
    arrived(cx, &server, 6).await?;
    drop(server);
    let error = loop {
        match client.write(cx, b"x").await {
            Ok(_) => cx.sleep(Duration::from_millis(1)).await?,
            error => break failed(error),
        }
    };
    assert_eq!(error, ErrorKind::ConnectionReset);
    let mut come = Vec::new();
    client.read_to_end(cx, &mut come).await?;
    assert!(!come.is_empty() && come.len() <= filled, "{} of {filled}", come.len());
    Ok(())
}
