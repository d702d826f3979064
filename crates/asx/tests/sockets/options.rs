//! Options that are read back, and name lookups.

use std::io::ErrorKind;
use std::time::Duration;

use asx::io;
use asx::net::{SocketBuilder, TcpListener, TcpStream, lookup_host};
use asx::prelude::*;

use crate::Case;
use crate::help::{HERE, failed, tcp, udp};

pub(crate) const OPTIONS: &[Case] = &[
    Case {
        name: "nodelay_is_read_back",
        rule: "it is the last value set",
        run: |cx| Box::pin(nodelay(cx)),
    },
    Case {
        name: "ttl_is_read_back",
        rule: "it is the value set, for listeners, streams and datagrams",
        run: |cx| Box::pin(ttl(cx)),
    },
    Case {
        name: "linger_is_read_back",
        rule: "it is the value set, and none at first",
        run: |cx| Box::pin(linger(cx)),
    },
    Case {
        name: "keepalive_is_read_back",
        rule: "it is the value set, and off at first",
        run: |cx| Box::pin(keepalive(cx)),
    },
    Case {
        name: "buffers_have_at_least_the_size_set",
        rule: "a size that was set is returned, or a larger one",
        run: |cx| Box::pin(buffers(cx)),
    },
    Case {
        name: "broadcast_is_read_back",
        rule: "it is the value set, and off at first",
        run: |cx| Box::pin(broadcast(cx)),
    },
    Case {
        name: "a_setting_out_of_range_is_refused",
        rule: "it is InvalidInput, before and after the socket is created, and changes nothing",
        run: |cx| Box::pin(out_of_range(cx)),
    },
    Case {
        name: "options_of_a_builder_apply_to_the_socket",
        rule: "settings of the builder are those of the socket",
        run: |cx| Box::pin(builder(cx)),
    },
    Case {
        name: "linger_is_in_whole_seconds",
        rule: "it is rounded up: a short one is not the reset that zero is",
        run: |cx| Box::pin(short_linger(cx)),
    },
    Case {
        name: "a_setting_of_another_protocol_is_refused",
        rule: "nodelay of a UDP socket and only_v6 of an IPv4 socket are errors",
        run: |cx| Box::pin(of_another_protocol(cx)),
    },
];

pub(crate) const LOOKUP: &[Case] = &[
    Case {
        name: "localhost_is_this_host",
        rule: "localhost and *.localhost are the loopback addresses, IPv4 first",
        run: |cx| Box::pin(localhost(cx)),
    },
    Case {
        name: "numbers_need_no_lookup",
        rule: "a numeric address, with or without a scope id, is itself",
        run: |cx| Box::pin(numbers(cx)),
    },
    Case {
        name: "names_can_be_bound_and_connected_to",
        rule: "a listener at localhost is reached at localhost",
        run: |cx| Box::pin(names(cx)),
    },
    Case {
        name: "an_empty_list_of_addresses_is_an_error",
        rule: "an empty list of addresses is NotFound",
        run: |cx| Box::pin(none(cx)),
    },
    Case {
        name: "an_invalid_host_name_is_refused",
        rule: "an empty name, and one with a zero byte, are InvalidInput",
        run: |cx| Box::pin(no_names(cx)),
    },
];

async fn nodelay(cx: &Cx) -> io::Result<()> {
    let (client, _server) = tcp(cx).await?;
    for on in [true, false, true] {
        client.set_nodelay(on)?;
        assert_eq!(client.nodelay()?, on);
    }
    Ok(())
}

async fn ttl(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let (client, _server) = tcp(cx).await?;
    let (socket, _other) = udp(cx).await?;
    listener.set_ttl(7)?;
    client.set_ttl(8)?;
    socket.set_ttl(9)?;
    assert_eq!((listener.ttl()?, client.ttl()?, socket.ttl()?), (7, 8, 9));
    Ok(())
}

async fn linger(cx: &Cx) -> io::Result<()> {
    let (client, _server) = tcp(cx).await?;
    assert_eq!(client.linger()?, None);
    for time in [Some(Duration::from_secs(3)), Some(Duration::ZERO), None] {
        client.set_linger(time)?;
        assert_eq!(client.linger()?, time);
    }
    Ok(())
}

async fn keepalive(cx: &Cx) -> io::Result<()> {
    let (client, _server) = tcp(cx).await?;
    assert!(!client.keepalive()?);
    client.set_keepalive(true)?;
    assert!(client.keepalive()?);
    Ok(())
}

async fn buffers(cx: &Cx) -> io::Result<()> {
    let (client, _server) = tcp(cx).await?;
    client.set_recv_buffer(20_000)?;
    client.set_send_buffer(30_000)?;
    assert!(client.recv_buffer()? >= 20_000);
    assert!(client.send_buffer()? >= 30_000);
    Ok(())
}

async fn broadcast(cx: &Cx) -> io::Result<()> {
    let (socket, _other) = udp(cx).await?;
    assert!(!socket.broadcast()?);
    socket.set_broadcast(true)?;
    assert!(socket.broadcast()?);
    Ok(())
}

async fn out_of_range(cx: &Cx) -> io::Result<()> {
    let large = i32::MAX as usize + 1;
    for builder in [
        SocketBuilder::new().ttl(0),
        SocketBuilder::new().ttl(256),
        SocketBuilder::new().linger(Some(Duration::MAX)),
        SocketBuilder::new().recv_buffer(large),
        SocketBuilder::new().send_buffer(large),
    ] {
        assert_eq!(failed(builder.listen(cx, HERE).await), ErrorKind::InvalidInput);
    }
    let (client, _server) = tcp(cx).await?;
    let ttl = client.ttl()?;
    assert_eq!(failed(client.set_ttl(0).map_err(io::Error::from)), ErrorKind::InvalidInput);
    assert_eq!(client.ttl()?, ttl);
    Ok(())
}

async fn builder(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let settings = SocketBuilder::new().nodelay(true).keepalive(true).ttl(5);
    let client = settings.connect(cx, listener.local_addr()?).await?;
    assert_eq!((client.nodelay()?, client.keepalive()?, client.ttl()?), (true, true, 5));
    let socket = SocketBuilder::new().broadcast(true).ttl(6).bind_udp(cx, HERE).await?;
    assert_eq!((socket.broadcast()?, socket.ttl()?), (true, 6));
    Ok(())
}

async fn localhost(cx: &Cx) -> io::Result<()> {
    let addresses = ["127.0.0.1:80", "[::1]:80"].map(|text| text.parse().expect("an address"));
    for host in ["localhost", "LocalHost", "localhost.", "a.localhost", "a.b.LOCALHOST."] {
        assert_eq!(lookup_host(cx, (host, 80)).await?, addresses, "{host}");
    }
    assert_eq!(lookup_host(cx, "localhost:80").await?, addresses);
    Ok(())
}

async fn numbers(cx: &Cx) -> io::Result<()> {
    let four = lookup_host(cx, "127.0.0.9:7").await?;
    assert_eq!(four, ["127.0.0.9:7".parse().expect("an address")]);
    let six = lookup_host(cx, ("::1", 7)).await?;
    assert_eq!(six, ["[::1]:7".parse().expect("an address")]);
    let scoped = ["[fe80::1%3]:7".parse().expect("an address")];
    assert_eq!(lookup_host(cx, ("fe80::1%3", 7)).await?, scoped);
    assert_eq!(lookup_host(cx, "[fe80::1%3]:7").await?, scoped);
    Ok(())
}

async fn names(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, "localhost:0").await?;
    let port = listener.local_addr()?.port();
    let client = TcpStream::connect(cx, ("localhost", port)).await?;
    assert_eq!(client.peer_addr()?, listener.local_addr()?);
    assert_eq!(listener.accept(cx).await?.1, client.local_addr()?);
    Ok(())
}

async fn none(cx: &Cx) -> io::Result<()> {
    let none: Vec<std::net::SocketAddr> = Vec::new();
    assert_eq!(failed(TcpStream::connect(cx, none.clone()).await), ErrorKind::NotFound);
    assert_eq!(failed(TcpListener::bind(cx, none).await), ErrorKind::NotFound);
    Ok(())
}

async fn short_linger(cx: &Cx) -> io::Result<()> {
    let (client, _server) = tcp(cx).await?;
    for (time, whole) in [(1, 1), (999, 1), (1000, 1), (1001, 2)] {
        client.set_linger(Some(Duration::from_millis(time)))?;
        assert_eq!(client.linger()?, Some(Duration::from_secs(whole)));
    }
    client.set_linger(None)?;
    Ok(())
}

async fn of_another_protocol(cx: &Cx) -> io::Result<()> {
    let builder = SocketBuilder::new().nodelay(true);
    assert_ne!(failed(builder.bind_udp(cx, HERE).await), ErrorKind::AddrInUse);
    let builder = SocketBuilder::new().only_v6(true);
    assert_ne!(failed(builder.listen(cx, HERE).await), ErrorKind::AddrInUse);
    Ok(())
}

async fn no_names(cx: &Cx) -> io::Result<()> {
    for host in ["", "local\0host"] {
        assert_eq!(failed(lookup_host(cx, (host, 80)).await), ErrorKind::InvalidInput);
    }
    Ok(())
}
