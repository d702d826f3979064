//! Bytes arrive in order, and a stream has no boundaries.

use asx::io::{self, Read as _};
use asx::net::TcpStream;
use asx::prelude::*;

use crate::Case;
use crate::help::{Name, narrow_tcp, pattern, tcp, unix};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "bytes_come_in_the_order_they_were_written",
        rule: "bytes are read as written, in that order",
        run: |cx| Box::pin(bytes_come_in_order(cx)),
    },
    Case {
        name: "a_stream_has_no_boundaries",
        rule: "a read may return the bytes of several writes, or a part of those of one",
        run: |cx| Box::pin(no_boundaries(cx)),
    },
    Case {
        name: "one_byte_at_a_time_is_a_stream_too",
        rule: "many writes of one byte arrive as that many bytes",
        run: |cx| Box::pin(one_byte_at_a_time(cx)),
    },
    Case {
        name: "a_large_write_arrives_whole",
        rule: "data larger than all buffers arrives whole while the peer reads",
        run: |cx| Box::pin(large_write(cx)),
    },
    Case {
        name: "the_directions_are_independent",
        rule: "both ends write and read at the same time, and neither waits for the other",
        run: |cx| Box::pin(directions(cx)),
    },
    Case {
        name: "connections_do_not_mix",
        rule: "two connections to one listener carry their own bytes",
        run: |cx| Box::pin(connections(cx)),
    },
    Case {
        name: "requests_and_answers_alternate",
        rule: "each answer belongs to the request before it, in every round",
        run: |cx| Box::pin(rounds(cx)),
    },
    Case {
        name: "bytes_written_before_a_close_arrive",
        rule: "a close is seen after all bytes written before it",
        run: |cx| Box::pin(written_before_close(cx)),
    },
    Case {
        name: "bytes_of_a_unix_stream_come_in_order",
        rule: "bytes are read from a unix stream as written, in that order",
        run: |cx| Box::pin(unix_order(cx)),
    },
];

async fn bytes_come_in_order(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    for chunk in pattern(60).chunks(6) {
        client.write_all(cx, chunk).await?;
    }
    let mut got = [0; 60];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(got[..], pattern(60));
    Ok(())
}

async fn no_boundaries(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"ab").await?;
    client.write_all(cx, b"cd").await?;
    let mut three = [0; 3];
    server.read_exact(cx, &mut three).await?;
    assert_eq!(&three, b"abc");
    let mut one = [0; 1];
    server.read_exact(cx, &mut one).await?;
    assert_eq!(&one, b"d");
    Ok(())
}

async fn one_byte_at_a_time(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    for byte in 0..40_u8 {
        assert_eq!(client.write(cx, &[byte]).await?, 1);
    }
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got, (0..40).collect::<Vec<u8>>());
    Ok(())
}

async fn large_write(cx: &Cx) -> io::Result<()> {
    let (client, mut server) = narrow_tcp(cx).await?;
    let sent = pattern(crate::help::MORE_THAN_FITS);
    let expected = sent.clone();
    cx.scope(async |s| {
        let writer = s.spawn(async move |cx: Cx| write_and_close(&cx, client, &sent).await);
        let mut got = Vec::new();
        server.read_to_end(cx, &mut got).await?;
        assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
        assert!(writer.await.is_ok());
        Ok(())
    })
    .await
}

async fn write_and_close(cx: &Cx, mut stream: TcpStream, bytes: &[u8]) -> io::Result<()> {
    Ok(stream.write_all(cx, bytes).await?)
}

async fn directions(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    let there = async |cx: &Cx| {
        client.write_all(cx, b"from the client").await?;
        let mut got = [0; 15];
        client.read_exact(cx, &mut got).await?;
        assert_eq!(&got, b"from the server");
        io::Result::Ok(())
    };
    let back = async |cx: &Cx| {
        server.write_all(cx, b"from the server").await?;
        let mut got = [0; 15];
        server.read_exact(cx, &mut got).await?;
        assert_eq!(&got, b"from the client");
        io::Result::Ok(())
    };
    try_join(cx, there, back).await?;
    Ok(())
}

async fn connections(cx: &Cx) -> io::Result<()> {
    let (mut first, mut first_end) = tcp(cx).await?;
    let (mut second, mut second_end) = tcp(cx).await?;
    second.write_all(cx, b"second").await?;
    first.write_all(cx, b"first!").await?;
    let mut got = [0; 6];
    first_end.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"first!");
    second_end.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"second");
    Ok(())
}

async fn rounds(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    cx.scope(async |s| {
        s.spawn(async move |cx: Cx| {
            let mut request = [0];
            while server.read(&cx, &mut request).await? == 1 {
                server.write_all(&cx, &[request[0] + 100]).await?;
            }
            Ok(())
        });
        for round in 0..8 {
            client.write_all(cx, &[round]).await?;
            let mut answer = [0];
            client.read_exact(cx, &mut answer).await?;
            assert_eq!(answer, [round + 100]);
        }
        drop(client);
        io::Result::Ok(())
    })
    .await
}

async fn written_before_close(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"the last ").await?;
    client.write_all(cx, b"words").await?;
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got, b"the last words");
    Ok(())
}

async fn unix_order(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_order");
    let (mut client, mut server) = unix(cx, &name).await?;
    for chunk in pattern(60).chunks(7) {
        client.write_all(cx, chunk).await?;
    }
    drop(client);
    let mut got = Vec::new();
    server.read_to_end(cx, &mut got).await?;
    assert_eq!(got, pattern(60));
    Ok(())
}
