//! Streams of unix sockets: names and pairs.

use std::io::ErrorKind;
use std::net::Shutdown;

use asx::io::{self, Read as _};
use asx::net::{SocketBuilder, UnixDatagram, UnixListener, UnixStream};
use asx::prelude::*;

use crate::Case;
use crate::help::{Name, SOON, failed, timed_out, unix};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a_name_connects_two_streams",
        rule: "a listener at a name is reached at it, and both directions work",
        run: |cx| Box::pin(name_connects(cx)),
    },
    Case {
        name: "a_missing_name_is_not_found",
        rule: "a connect to a missing name is NotFound",
        run: |cx| Box::pin(missing(cx)),
    },
    Case {
        name: "a_name_is_bound_once",
        rule: "a second listener at a name is AddrInUse",
        run: |cx| Box::pin(bound_once(cx)),
    },
    Case {
        name: "a_name_outlives_its_listener",
        rule: "it is in use after the close, and a connect to it is ConnectionRefused",
        run: |cx| Box::pin(outlives(cx)),
    },
    Case {
        name: "names_are_addresses",
        rule: "the listener's name is its local address and the client's peer; the client has none",
        run: |cx| Box::pin(names_are_addresses(cx)),
    },
    Case {
        name: "a_name_that_would_be_truncated_is_refused",
        rule: "an empty name, and one with a zero byte inside, are InvalidInput",
        run: |cx| Box::pin(cut_short(cx)),
    },
    Case {
        name: "a_pair_is_connected",
        rule: "bytes and the end from one of a pair are read by the other, both ways",
        run: |cx| Box::pin(pair(cx)),
    },
    Case {
        name: "unix_connections_are_accepted_in_order",
        rule: "connections are accepted in the order of their connects",
        run: |cx| Box::pin(accept_order(cx)),
    },
    Case {
        name: "a_unix_accept_that_times_out_has_taken_nothing",
        rule: "a connection that arrives after the timeout of an accept is accepted",
        run: |cx| Box::pin(timed_accept(cx)),
    },
    Case {
        name: "a_unix_stream_keeps_its_peer_address",
        rule: "after the peer's close its name is still known, and a shutdown is no error",
        run: |cx| Box::pin(peer_for_good(cx)),
    },
    Case {
        name: "a_unix_reset_is_reported_to_reads",
        rule: "after a close with unread bytes a write is BrokenPipe, a read the reset, then 0",
        run: |cx| Box::pin(reset_left_to_reads(cx)),
    },
    Case {
        name: "a_full_unix_stream_that_was_ended_takes_no_more",
        rule: "a write after the own shutdown is BrokenPipe, even without room",
        run: |cx| Box::pin(full_and_ended(cx)),
    },
    Case {
        name: "a_wait_for_room_ends_when_both_directions_are_shut_down",
        rule: "a wait for room ends when the peer shuts down both directions, not reading alone",
        run: |cx| Box::pin(refused_without_room(cx)),
    },
    Case {
        name: "an_abstract_name_is_unused_after_its_socket",
        rule: "an abstract name is unused after the close: ConnectionRefused",
        run: |cx| Box::pin(abstract_name(cx)),
    },
    Case {
        name: "datagrams_reach_abstract_names",
        rule: "abstract names can be sent and connected to, and answers reach the sender",
        run: |cx| Box::pin(abstract_datagrams(cx)),
    },
    Case {
        name: "a_unix_socket_has_no_internet_options",
        rule: "nodelay and ttl are EOPNOTSUPP, an internet address is InvalidInput",
        run: |cx| Box::pin(settings_of_others(cx)),
    },
    Case {
        name: "a_unix_reset_follows_all_bytes",
        rule: "all bytes written are read before the reset, any number of them",
        run: |cx| Box::pin(all_before_a_reset(cx)),
    },
    Case {
        name: "a_name_that_is_too_long_is_refused",
        rule: "a name of more than 107 bytes is InvalidInput, to bind and to connect",
        run: |cx| Box::pin(too_long(cx)),
    },
];

async fn name_connects(cx: &Cx) -> io::Result<()> {
    let name = Name::new("name_connects");
    let (mut client, mut server) = unix(cx, &name).await?;
    client.write_all(cx, b"ping").await?;
    let mut got = [0; 4];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"ping");
    server.write_all(cx, b"pong").await?;
    client.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"pong");
    Ok(())
}

async fn missing(cx: &Cx) -> io::Result<()> {
    let name = Name::new("missing");
    assert_eq!(failed(UnixStream::connect(cx, &name).await), ErrorKind::NotFound);
    Ok(())
}

async fn bound_once(cx: &Cx) -> io::Result<()> {
    let name = Name::new("bound_once");
    let _listener = UnixListener::bind(cx, &name)?;
    let second = UnixListener::bind(cx, &name).map_err(io::Error::from);
    assert_eq!(failed(second), ErrorKind::AddrInUse);
    Ok(())
}

async fn outlives(cx: &Cx) -> io::Result<()> {
    let name = Name::new("outlives");
    drop(UnixListener::bind(cx, &name)?);
    let second = UnixListener::bind(cx, &name).map_err(io::Error::from);
    assert_eq!(failed(second), ErrorKind::AddrInUse);
    assert_eq!(failed(UnixStream::connect(cx, &name).await), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn names_are_addresses(cx: &Cx) -> io::Result<()> {
    let name = Name::new("names_are_addresses");
    let listener = UnixListener::bind(cx, &name)?;
    let client = UnixStream::connect(cx, &name).await?;
    let (server, from) = listener.accept(cx).await?;
    let path = Some(name.as_ref());
    assert_eq!(listener.local_addr()?.path(), path);
    assert_eq!(client.peer_addr()?.path(), path);
    assert_eq!(server.local_addr()?.path(), path);
    assert_eq!((client.local_addr()?.path(), from.path()), (None, None));
    Ok(())
}

async fn cut_short(cx: &Cx) -> io::Result<()> {
    for name in ["", "/tmp/\0hidden"] {
        let bound = UnixListener::bind(cx, name).map_err(io::Error::from);
        assert_eq!(failed(bound), ErrorKind::InvalidInput, "{name:?}");
        let bound = UnixDatagram::bind(cx, name).map_err(io::Error::from);
        assert_eq!(failed(bound), ErrorKind::InvalidInput, "{name:?}");
        let connected = UnixStream::connect(cx, name).await;
        assert_eq!(failed(connected), ErrorKind::InvalidInput, "{name:?}");
    }
    Ok(())
}

async fn pair(cx: &Cx) -> io::Result<()> {
    let (mut one, mut other) = UnixStream::pair(cx)?;
    one.write_all(cx, b"there").await?;
    let mut got = [0; 5];
    other.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"there");
    other.write_all(cx, b"back").await?;
    drop(other);
    let mut back = Vec::new();
    one.read_to_end(cx, &mut back).await?;
    assert_eq!(back, b"back");
    Ok(())
}

async fn accept_order(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_accept_order");
    let listener = UnixListener::bind(cx, &name)?;
    let mut clients = Vec::new();
    for number in 0..3_u8 {
        let mut client = UnixStream::connect(cx, &name).await?;
        client.write_all(cx, &[number]).await?;
        clients.push(client);
    }
    for number in 0..3_u8 {
        let (mut server, _) = listener.accept(cx).await?;
        let mut got = [0];
        server.read_exact(cx, &mut got).await?;
        assert_eq!(got, [number]);
    }
    Ok(())
}

async fn timed_accept(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_timed_accept");
    let listener = UnixListener::bind(cx, &name)?;
    timed_out(cx.timeout(SOON, async |cx| listener.accept(cx).await.map(drop)).await);
    let _client = UnixStream::connect(cx, &name).await?;
    listener.accept(cx).await?;
    Ok(())
}

async fn peer_for_good(cx: &Cx) -> io::Result<()> {
    let name = Name::new("peer_for_good");
    let (mut client, server) = unix(cx, &name).await?;
    client.write_all(cx, b"unread").await?;
    drop(server);
    assert_eq!(client.peer_addr()?.path(), Some(name.as_ref()));
    client.shutdown(Shutdown::Both)?;
    client.shutdown(Shutdown::Write)?;
    Ok(())
}

async fn reset_left_to_reads(cx: &Cx) -> io::Result<()> {
    for ends_first in [false, true] {
        let (mut one, other) = UnixStream::pair(cx)?;
        one.write_all(cx, b"unread").await?;
        if ends_first {
            other.shutdown(Shutdown::Write)?;
        }
        drop(other);
        assert_eq!(failed(one.write(cx, b"more").await), ErrorKind::BrokenPipe);
        assert_eq!(failed(one.read(cx, &mut [0; 4]).await), ErrorKind::ConnectionReset);
        assert_eq!(one.read(cx, &mut [0; 4]).await?, 0);
    }
    Ok(())
}

/// Writes until there is no room.
async fn fill_up(cx: &Cx, stream: &mut UnixStream) -> io::Result<()> {
    let chunk = [7; 4096];
    loop {
        match cx.timeout(SOON, async |cx| stream.write(cx, &chunk).await).await {
            Ok(_) => {}
            Err(io::Error::Cancelled(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

async fn full_and_ended(cx: &Cx) -> io::Result<()> {
    let (mut one, _other) = UnixStream::pair(cx)?;
    fill_up(cx, &mut one).await?;
    one.shutdown(Shutdown::Write)?;
    assert_eq!(failed(one.write(cx, b"more").await), ErrorKind::BrokenPipe);
    Ok(())
}

async fn refused_without_room(cx: &Cx) -> io::Result<()> {
    let (mut one, other) = UnixStream::pair(cx)?;
    fill_up(cx, &mut one).await?;
    other.shutdown(Shutdown::Read)?;
    timed_out(cx.timeout(SOON, async |cx| one.write(cx, b"more").await).await);
    other.shutdown(Shutdown::Write)?;
    assert_eq!(failed(one.write(cx, b"more").await), ErrorKind::BrokenPipe);
    Ok(())
}

async fn abstract_name(cx: &Cx) -> io::Result<()> {
    let name = format!("\0asx-sockets-{}-abstract_name", std::process::id());
    for _ in 0..2 {
        let listener = UnixListener::bind(cx, &name)?;
        assert_eq!(listener.local_addr()?.path(), Some(name.as_ref()));
        let again = UnixListener::bind(cx, &name).map_err(io::Error::from);
        assert_eq!(failed(again), ErrorKind::AddrInUse);
        let client = UnixStream::connect(cx, &name).await?;
        assert_eq!(client.peer_addr()?.path(), Some(name.as_ref()));
        listener.accept(cx).await?;
    }
    assert_eq!(failed(UnixStream::connect(cx, &name).await), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn abstract_datagrams(cx: &Cx) -> io::Result<()> {
    let names = ["one", "other"]
        .map(|name| format!("\0asx-sockets-{}-abstract_datagrams-{name}", std::process::id()));
    let one = UnixDatagram::bind(cx, &names[0])?;
    let other = UnixDatagram::bind(cx, &names[1])?;
    one.send_to(cx, b"ping", &names[1]).await?;
    let mut buffer = [0; 8];
    let (count, from) = other.recv_from(cx, &mut buffer).await?;
    assert_eq!((&buffer[..count], from.path()), (&b"ping"[..], Some(names[0].as_ref())));
    // The answer is sent to the sender of the question.
    other.connect(from.path().expect("a name"))?;
    other.send(cx, b"pong").await?;
    let (count, from) = one.recv_from(cx, &mut buffer).await?;
    assert_eq!((&buffer[..count], from.path()), (&b"pong"[..], Some(names[1].as_ref())));
    Ok(())
}

async fn settings_of_others(cx: &Cx) -> io::Result<()> {
    let name = format!("\0asx-sockets-{}-settings_of_others", std::process::id());
    let _listener = UnixListener::bind(cx, &name)?;
    const EOPNOTSUPP: i32 = 95;
    for builder in [SocketBuilder::new().nodelay(true), SocketBuilder::new().ttl(9)] {
        let refused = builder.connect_unix(cx, &name).await.map(drop).expect_err("refused");
        assert_eq!(std::io::Error::from(refused).raw_os_error(), Some(EOPNOTSUPP));
    }
    let elsewhere = SocketBuilder::new().local(([127, 0, 0, 1], 0).into());
    assert_eq!(failed(elsewhere.connect_unix(cx, &name).await), ErrorKind::InvalidInput);
    Ok(())
}

async fn all_before_a_reset(cx: &Cx) -> io::Result<()> {
    let (mut one, mut other) = UnixStream::pair(cx)?;
    other.write_all(cx, b"unread").await?;
    let mut sent = 0;
    while let Ok(count) = cx.timeout(SOON, async |cx| one.write(cx, &[7; 4096]).await).await {
        sent += count;
    }
    drop(one);
    let mut received = 0;
    let end = loop {
        match other.read(cx, &mut [0; 4096]).await {
            Ok(0) => break None,
            Ok(count) => received += count,
            Err(error) => break Some(failed::<()>(Err(error))),
        }
    };
    assert_eq!((received, end), (sent, Some(ErrorKind::ConnectionReset)));
    Ok(())
}

async fn too_long(cx: &Cx) -> io::Result<()> {
    let name = format!("/{}", "x".repeat(107));
    let bound = UnixListener::bind(cx, &name).map_err(io::Error::from);
    assert_eq!(failed(bound), ErrorKind::InvalidInput);
    assert_eq!(failed(UnixStream::connect(cx, &name).await), ErrorKind::InvalidInput);
    let socket = UnixDatagram::unbound(cx)?;
    assert_eq!(failed(socket.send_to(cx, b"x", &name).await), ErrorKind::InvalidInput);
    Ok(())
}
