//! Addresses, connects and accepts.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};

use asx::io;
use asx::net::{SocketBuilder, TcpListener, TcpStream, UdpSocket};
use asx::prelude::*;

use crate::Case;
use crate::help::{HERE, SOON, failed, tcp, timed_out};

pub(crate) const ADDRESSES: &[Case] = &[
    Case {
        name: "port_zero_is_a_free_port",
        rule: "two listeners at port 0 have two ports, neither of them 0",
        run: |cx| Box::pin(port_zero(cx)),
    },
    Case {
        name: "each_end_knows_both_addresses",
        rule: "the local address of one end is the peer address of the other, also in accept",
        run: |cx| Box::pin(both_addresses(cx)),
    },
    Case {
        name: "ipv6_works_like_ipv4",
        rule: "a connection over [::1] has IPv6 addresses at both ends",
        run: |cx| Box::pin(version_six(cx)),
    },
    Case {
        name: "the_unspecified_address_is_each_address",
        rule: "a listener at 0.0.0.0 is reached at 127.0.0.1, the address of its end",
        run: |cx| Box::pin(any_address(cx)),
    },
    Case {
        name: "an_address_is_bound_once",
        rule: "a second listener at an address is AddrInUse",
        run: |cx| Box::pin(bound_once(cx)),
    },
    Case {
        name: "the_unspecified_address_takes_the_port_of_all",
        rule: "a listener at 127.0.0.1 keeps another from 0.0.0.0 at that port: AddrInUse",
        run: |cx| Box::pin(any_address_in_use(cx)),
    },
    Case {
        name: "an_address_is_free_after_the_close",
        rule: "a listener can be bound where another one was",
        run: |cx| Box::pin(free_after_close(cx)),
    },
    Case {
        name: "an_address_with_connections_is_free_after_the_close",
        rule: "a listener that may reuse its address can be bound while connections are there",
        run: |cx| Box::pin(free_with_connections(cx)),
    },
    Case {
        name: "a_foreign_address_cannot_be_bound",
        rule: "a listener at an address of another host is AddrNotAvailable",
        run: |cx| Box::pin(foreign_address(cx)),
    },
    Case {
        name: "tcp_and_udp_have_separate_ports",
        rule: "TCP and UDP can be bound to the same port",
        run: |cx| Box::pin(own_ports(cx)),
    },
    Case {
        name: "bind_uses_the_first_available_address",
        rule: "of several addresses to bind, one in use is passed over",
        run: |cx| Box::pin(first_that_binds(cx)),
    },
    Case {
        name: "a_client_can_choose_its_address",
        rule: "a connection from a chosen address and port has that peer address",
        run: |cx| Box::pin(chosen_local(cx)),
    },
    Case {
        name: "an_invalid_address_is_refused",
        rule: "a text without a port, or with an invalid one, is InvalidInput",
        run: |cx| Box::pin(no_address(cx)),
    },
];

pub(crate) const CONNECT: &[Case] = &[
    Case {
        name: "a_connect_without_a_listener_is_refused",
        rule: "a connect to a port without a listener is ConnectionRefused",
        run: |cx| Box::pin(nobody_there(cx)),
    },
    Case {
        name: "a_closed_listener_refuses",
        rule: "a connect to a listener that was dropped is ConnectionRefused",
        run: |cx| Box::pin(closed_listener(cx)),
    },
    Case {
        name: "a_port_of_another_address_is_not_reached",
        rule: "a listener at 127.0.0.1 is not reached at [::1]: ConnectionRefused",
        run: |cx| Box::pin(other_family(cx)),
    },
    Case {
        name: "connect_uses_the_first_address_that_answers",
        rule: "of several addresses to connect to, one that refuses is passed over",
        run: |cx| Box::pin(first_that_answers(cx)),
    },
    Case {
        name: "a_connect_does_not_wait_for_the_accept",
        rule: "a connection exists before it is accepted, and bytes written then arrive",
        run: |cx| Box::pin(before_accept(cx)),
    },
    Case {
        name: "connections_are_accepted_in_order",
        rule: "connections are accepted in the order of their connects",
        run: |cx| Box::pin(accept_order(cx)),
    },
    Case {
        name: "an_accept_waits_for_a_connection",
        rule: "an accept returns when a client connects, and not before",
        run: |cx| Box::pin(accept_waits(cx)),
    },
    Case {
        name: "each_connection_is_accepted_once",
        rule: "two tasks that accept share the connections, each of which is accepted once",
        run: |cx| Box::pin(two_acceptors(cx)),
    },
    Case {
        name: "a_listener_is_open_while_a_handle_is",
        rule: "a clone continues to accept after the other is dropped",
        run: |cx| Box::pin(listener_clone(cx)),
    },
    Case {
        name: "connections_outlive_their_listener",
        rule: "an accepted connection stays open after its listener was dropped",
        run: |cx| Box::pin(outlive_listener(cx)),
    },
    Case {
        name: "a_socket_can_connect_to_itself",
        rule: "without a listener, a connect to the own port connects the socket to itself",
        run: |cx| Box::pin(meets_itself(cx)),
    },
];

async fn port_zero(cx: &Cx) -> io::Result<()> {
    let one = TcpListener::bind(cx, HERE).await?.local_addr()?;
    let first = TcpListener::bind(cx, HERE).await?;
    let second = TcpListener::bind(cx, HERE).await?;
    assert_ne!(one.port(), 0);
    assert_ne!(first.local_addr()?.port(), second.local_addr()?.port());
    Ok(())
}

async fn both_addresses(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let client = TcpStream::connect(cx, at).await?;
    let (server, from) = listener.accept(cx).await?;
    assert_eq!(client.peer_addr()?, at);
    assert_eq!(server.local_addr()?, at);
    assert_eq!((server.peer_addr()?, from), (client.local_addr()?, client.local_addr()?));
    assert_ne!(client.local_addr()?, at);
    Ok(())
}

async fn version_six(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, "[::1]:0").await?;
    let mut client = TcpStream::connect(cx, listener.local_addr()?).await?;
    let (mut server, from) = listener.accept(cx).await?;
    assert_eq!(from.ip(), IpAddr::V6(Ipv6Addr::LOCALHOST));
    assert!(client.local_addr()?.is_ipv6() && server.local_addr()?.is_ipv6());
    client.write_all(cx, b"six").await?;
    let mut got = [0; 3];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"six");
    Ok(())
}

async fn any_address(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, "0.0.0.0:0").await?;
    assert_eq!(listener.local_addr()?.ip(), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr()?.port()));
    let client = TcpStream::connect(cx, at).await?;
    let (server, from) = listener.accept(cx).await?;
    assert_eq!((server.local_addr()?, from), (at, client.local_addr()?));
    Ok(())
}

async fn bound_once(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let second = TcpListener::bind(cx, listener.local_addr()?).await;
    assert_eq!(failed(second), ErrorKind::AddrInUse);
    Ok(())
}

async fn any_address_in_use(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, listener.local_addr()?.port()));
    assert_eq!(failed(TcpListener::bind(cx, any).await), ErrorKind::AddrInUse);
    Ok(())
}

async fn free_after_close(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    drop(listener);
    let listener = TcpListener::bind(cx, at).await?;
    assert_eq!(listener.local_addr()?, at);
    Ok(())
}

async fn free_with_connections(cx: &Cx) -> io::Result<()> {
    let reuse = SocketBuilder::new().reuse_address(true);
    let listener = reuse.listen(cx, HERE).await?;
    let at = listener.local_addr()?;
    let client = TcpStream::connect(cx, at).await?;
    let (_server, _) = listener.accept(cx).await?;
    drop(listener);
    let listener = reuse.listen(cx, at).await?;
    let second = TcpStream::connect(cx, at).await?;
    let (_, from) = listener.accept(cx).await?;
    assert_eq!(from, second.local_addr()?);
    assert_ne!(from, client.local_addr()?);
    Ok(())
}

async fn foreign_address(cx: &Cx) -> io::Result<()> {
    // An address reserved for documentation, which no host has.
    let bound = TcpListener::bind(cx, "192.0.2.1:0").await;
    assert_eq!(failed(bound), ErrorKind::AddrNotAvailable);
    Ok(())
}

async fn own_ports(cx: &Cx) -> io::Result<()> {
    // Another process may have that port: then another one is tried.
    for _ in 0..20 {
        let listener = TcpListener::bind(cx, HERE).await?;
        match UdpSocket::bind(cx, listener.local_addr()?).await {
            Ok(socket) => {
                assert_eq!(socket.local_addr()?, listener.local_addr()?);
                return Ok(());
            }
            error => assert_eq!(failed(error), ErrorKind::AddrInUse),
        }
    }
    panic!("no port is free for both");
}

async fn first_that_binds(cx: &Cx) -> io::Result<()> {
    let taken = TcpListener::bind(cx, HERE).await?;
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let second = TcpListener::bind(cx, [taken.local_addr()?, free]).await?;
    assert_ne!(second.local_addr()?, taken.local_addr()?);
    assert_ne!(second.local_addr()?.port(), 0);
    Ok(())
}

async fn chosen_local(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let free = TcpListener::bind(cx, HERE).await?;
    let from = free.local_addr()?;
    drop(free);
    let client = TcpStream::builder().local(from).connect(cx, listener.local_addr()?).await?;
    assert_eq!(client.local_addr()?, from);
    assert_eq!(listener.accept(cx).await?.1, from);
    Ok(())
}

async fn no_address(cx: &Cx) -> io::Result<()> {
    for text in ["127.0.0.1", "127.0.0.1:port", "localhost", ""] {
        let bound = TcpListener::bind(cx, text).await;
        assert_eq!(failed(bound), ErrorKind::InvalidInput, "{text}");
        let connected = TcpStream::connect(cx, text).await;
        assert_eq!(failed(connected), ErrorKind::InvalidInput, "{text}");
    }
    Ok(())
}

async fn nobody_there(cx: &Cx) -> io::Result<()> {
    // The port of a client is in use, but no socket listens on it.
    let (client, _server) = tcp(cx).await?;
    let connected = TcpStream::connect(cx, client.local_addr()?).await;
    assert_eq!(failed(connected), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn closed_listener(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let client = TcpStream::connect(cx, at).await?;
    let (server, _) = listener.accept(cx).await?;
    drop(listener);
    assert_eq!(failed(TcpStream::connect(cx, at).await), ErrorKind::ConnectionRefused);
    drop((client, server));
    Ok(())
}

async fn other_family(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let other = SocketAddr::from((Ipv6Addr::LOCALHOST, listener.local_addr()?.port()));
    assert_eq!(failed(TcpStream::connect(cx, other).await), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn first_that_answers(cx: &Cx) -> io::Result<()> {
    let (nobody, _server) = tcp(cx).await?;
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let client = TcpStream::connect(cx, [nobody.local_addr()?, at]).await?;
    assert_eq!(client.peer_addr()?, at);
    assert_eq!(listener.accept(cx).await?.1, client.local_addr()?);
    Ok(())
}

async fn before_accept(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let mut client = TcpStream::connect(cx, listener.local_addr()?).await?;
    client.write_all(cx, b"early").await?;
    let (mut server, _) = listener.accept(cx).await?;
    let mut got = [0; 5];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"early");
    Ok(())
}

async fn accept_order(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(TcpStream::connect(cx, listener.local_addr()?).await?);
    }
    for client in &clients {
        let (_, from) = listener.accept(cx).await?;
        assert_eq!(from, client.local_addr()?);
    }
    Ok(())
}

async fn accept_waits(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    timed_out(cx.timeout(SOON, async |cx| listener.accept(cx).await.map(drop)).await);
    cx.scope(async |s| {
        let acceptor = s.spawn(async move |cx: Cx| Ok(listener.accept(&cx).await?.1));
        let client = TcpStream::connect(cx, at).await?;
        assert_eq!(acceptor.await.ok(), Some(client.local_addr()?));
        io::Result::Ok(())
    })
    .await
}

async fn two_acceptors(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    cx.scope(async |s| {
        let acceptors = [listener.clone(), listener].map(|listener| {
            s.spawn(async move |cx: Cx| {
                let (_, first) = listener.accept(&cx).await?;
                let (_, second) = listener.accept(&cx).await?;
                Ok::<_, io::Error>([first, second])
            })
        });
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(TcpStream::connect(cx, at).await?);
        }
        let mut accepted = Vec::new();
        for acceptor in acceptors {
            accepted.extend(acceptor.await.expect("two connections"));
        }
        accepted.sort_unstable();
        let mut made = Vec::new();
        for client in &clients {
            made.push(client.local_addr()?);
        }
        made.sort_unstable();
        assert_eq!(accepted, made);
        io::Result::Ok(())
    })
    .await
}

async fn listener_clone(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, HERE).await?;
    let at = listener.local_addr()?;
    let clone = listener.clone();
    let (here, mut waits) = channel::bounded(1);
    cx.scope(async |s| {
        let acceptor = s.spawn(async move |cx: Cx| {
            here.send(&cx, ()).await.ok();
            Ok(clone.accept(&cx).await?.1)
        });
        waits.recv(cx).await.ok();
        drop(listener);
        let client = TcpStream::connect(cx, at).await?;
        assert_eq!(acceptor.await.ok(), Some(client.local_addr()?));
        io::Result::Ok(())
    })
    .await
}

async fn outlive_listener(cx: &Cx) -> io::Result<()> {
    let (mut client, mut server) = tcp(cx).await?;
    client.write_all(cx, b"still here").await?;
    let mut got = [0; 10];
    server.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"still here");
    Ok(())
}

async fn meets_itself(cx: &Cx) -> io::Result<()> {
    let mut alone = loop {
        let at = TcpListener::bind(cx, HERE).await?.local_addr()?;
        match TcpStream::builder().local(at).connect(cx, at).await {
            Ok(alone) => break alone,
            // Another process has been given the port meanwhile.
            Err(error) => assert_eq!(failed::<()>(Err(error)), ErrorKind::AddrInUse),
        }
    };
    assert_eq!(alone.local_addr()?, alone.peer_addr()?);
    alone.write_all(cx, b"hello").await?;
    let mut got = [0; 5];
    alone.read_exact(cx, &mut got).await?;
    assert_eq!(&got, b"hello");
    alone.shutdown(Shutdown::Write)?;
    assert_eq!(alone.read(cx, &mut got).await?, 0);
    Ok(())
}
