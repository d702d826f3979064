//! Halves of streams, and their owners.

use std::io::ErrorKind;

use asx::io::{self, Read as _};
use asx::net::{TcpStream, UnixStream};
use asx::prelude::*;

use crate::Case;
use crate::help::{MORE_THAN_FITS, Name, failed, narrow_tcp, pattern, tcp, unix};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "borrowed_halves_are_used_at_the_same_time",
        rule: "one half reads while the other writes more than the buffers hold",
        run: |cx| Box::pin(borrowed(cx)),
    },
    Case {
        name: "owned_halves_are_used_by_two_tasks",
        rule: "a task that reads and a task that writes share a connection",
        run: |cx| Box::pin(owned(cx)),
    },
    Case {
        name: "a_write_half_that_is_dropped_ends_its_direction",
        rule: "the peer reads the end, and the read half continues to read",
        run: |cx| Box::pin(write_half_dropped(cx)),
    },
    Case {
        name: "a_read_half_that_is_dropped_ends_nothing",
        rule: "the write half continues to write, and the peer reads no end",
        run: |cx| Box::pin(read_half_dropped(cx)),
    },
    Case {
        name: "a_connection_is_closed_with_its_last_half",
        rule: "after both halves are dropped the peer's writes fail",
        run: |cx| Box::pin(both_halves_dropped(cx)),
    },
    Case {
        name: "a_write_half_that_is_shut_down_takes_no_more",
        rule: "a write after the shutdown of the half is BrokenPipe",
        run: |cx| Box::pin(half_shut_down(cx)),
    },
    Case {
        name: "halves_can_be_reunited",
        rule: "a reunited stream reads and writes, and the peer has seen no end",
        run: |cx| Box::pin(reunited(cx)),
    },
    Case {
        name: "halves_of_two_streams_are_not_reunited",
        rule: "they are returned, and both connections are unchanged",
        run: |cx| Box::pin(not_reunited(cx)),
    },
    Case {
        name: "a_wait_in_one_half_survives_the_drop_of_the_other",
        rule: "a read half that waits gets the answer after the write half was dropped",
        run: |cx| Box::pin(waits_in_one_half(cx)),
    },
    Case {
        name: "halves_of_unix_streams_work_alike",
        rule: "a dropped write half is an end for the peer, and the read half continues to read",
        run: |cx| Box::pin(unix_halves(cx)),
    },
];

async fn borrowed(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = narrow_tcp(cx).await?;
    cx.scope(async |s| {
        s.spawn(async move |cx: Cx| {
            let (mut reader, mut writer) = server.split();
            io::copy(&cx, &mut reader, &mut writer).await?;
            Ok(())
        });
        let sent = pattern(MORE_THAN_FITS);
        let (mut reader, mut writer) = client.split();
        let write = async |cx: &Cx| {
            writer.write_all(cx, &sent).await?;
            writer.shutdown()
        };
        let mut got = Vec::new();
        let read = async |cx: &Cx| reader.read_to_end(cx, &mut got).await;
        try_join(cx, write, read).await?;
        assert!(got == sent, "{} bytes of {}", got.len(), sent.len());
        io::Result::Ok(())
    })
    .await
}

async fn owned(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (mut reader, mut writer) = client.into_split();
    cx.scope(async |s| {
        let read = s.spawn(async move |cx: Cx| {
            let mut got = Vec::new();
            reader.read_to_end(&cx, &mut got).await?;
            Ok(got)
        });
        s.spawn(async move |cx: Cx| Ok(writer.write_all(&cx, b"question").await?));
        let mut question = Vec::new();
        server.read_to_end(cx, &mut question).await?;
        assert_eq!(question, b"question");
        server.write_all(cx, b"answer").await?;
        drop(server);
        assert_eq!(read.await.ok().as_deref(), Some(&b"answer"[..]));
        io::Result::Ok(())
    })
    .await
}

async fn write_half_dropped(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (mut reader, writer) = client.into_split();
    drop(writer);
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    server.write_all(cx, b"on").await?;
    let mut got = [0; 2];
    reader.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"on");
    Ok(())
}

async fn read_half_dropped(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (reader, mut writer) = client.into_split();
    drop(reader);
    for _ in 0..3 {
        writer.write_all(cx, b"on").await?;
        let mut got = [0; 2];
        server.read_exact(cx, &mut got).await?;
        assert_eq!(&got, b"on");
    }
    Ok(())
}

async fn both_halves_dropped(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (reader, writer) = client.into_split();
    drop(writer);
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    server.write_all(cx, b"taken while it is open").await?;
    drop(reader);
    // The error depends on whether the bytes had arrived; that there is one does not.
    let error = loop {
        match server.write(cx, b"more").await {
            Ok(_) => cx.sleep(crate::help::SOON).await?,
            error => break failed(error),
        }
    };
    let known = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
    assert!(known.contains(&error), "{error:?}");
    Ok(())
}

async fn half_shut_down(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (_reader, mut writer) = client.into_split();
    writer.shutdown()?;
    assert_eq!(failed(writer.write(cx, b"more").await), ErrorKind::BrokenPipe);
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    Ok(())
}

async fn reunited(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (reader, writer) = client.into_split();
    let mut client = TcpStream::reunite(reader, writer).expect("halves of one stream");
    client.write_all(cx, b"ping").await?;
    let mut got = [0; 4];
    server.read_exact(cx, &mut got).await?;
    server.write_all(cx, b"pong").await?;
    client.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"pong");
    Ok(())
}

async fn not_reunited(cx: &Cx) -> io::Result<()> {
    let (one, mut one_end) = tcp(cx).await?;
    let (other, mut other_end) = tcp(cx).await?;
    let (one_reader, one_writer) = one.into_split();
    let (other_reader, other_writer) = other.into_split();
    let error = TcpStream::reunite(one_reader, other_writer).expect_err("two streams");
    let mut one = TcpStream::reunite(error.read, one_writer).expect("one stream");
    let mut other = TcpStream::reunite(other_reader, error.write).expect("one stream");
    one.write_all(cx, b"one").await?;
    other.write_all(cx, b"two").await?;
    let mut got = [0; 3];
    one_end.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"one");
    other_end.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"two");
    Ok(())
}

async fn waits_in_one_half(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = tcp(cx).await?;
    let (mut reader, writer) = client.into_split();
    let (here, mut waits) = channel::bounded(1);
    cx.scope(async |s| {
        let read = s.spawn(async move |cx: Cx| {
            here.send(&cx, ()).await.ok();
            let mut got = [0; 6];
            reader.read_exact(&cx, &mut got).await?;
            Ok(got)
        });
        waits.recv(cx).await.ok();
        drop(writer);
        assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
        server.write_all(cx, b"answer").await?;
        assert_eq!(read.await.ok().as_ref(), Some(b"answer"));
        io::Result::Ok(())
    })
    .await
}

async fn unix_halves(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_halves");
    let (client, mut server) = unix(cx, &name).await?;
    let (reader, writer) = client.into_split();
    let client = UnixStream::reunite(reader, writer).expect("halves of one stream");
    let (mut reader, writer) = client.into_split();
    drop(writer);
    assert_eq!(server.read(cx, &mut [0; 4]).await?, 0);
    server.write_all(cx, b"on").await?;
    let mut got = [0; 2];
    reader.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"on");
    Ok(())
}
