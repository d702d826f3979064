//! Datagrams over UDP and unix sockets.

use std::io::ErrorKind;

use asx::io;
use asx::net::{UdpSocket, UnixDatagram, UnixListener, UnixStream};
use asx::prelude::*;

use crate::Case;
use crate::help::{HERE, Name, SOON, failed, timed_out, udp};

pub(crate) const UDP: &[Case] = &[
    Case {
        name: "datagrams_keep_their_boundaries",
        rule: "each receive gets one datagram, whole, in the order of a quiet network",
        run: |cx| Box::pin(bounds(cx)),
    },
    Case {
        name: "recv_from_returns_the_sender",
        rule: "recv_from returns the address of the sender",
        run: |cx| Box::pin(comes_from(cx)),
    },
    Case {
        name: "a_datagram_is_truncated_to_the_buffer",
        rule: "a receive into a small buffer fills it, and the next one gets the next datagram",
        run: |cx| Box::pin(does_not_fit(cx)),
    },
    Case {
        name: "an_empty_datagram_is_received",
        rule: "a datagram of no bytes is received as 0, between its neighbours",
        run: |cx| Box::pin(empty(cx)),
    },
    Case {
        name: "a_connected_socket_receives_from_its_peer_only",
        rule: "datagrams of other senders are not received",
        run: |cx| Box::pin(peer_alone(cx)),
    },
    Case {
        name: "a_connected_socket_sends_to_its_peer",
        rule: "send goes to the peer, and peer_addr is its address",
        run: |cx| Box::pin(sends_to_peer(cx)),
    },
    Case {
        name: "a_socket_without_a_peer_has_no_peer_address",
        rule: "peer_addr of a socket that is not connected is NotConnected",
        run: |cx| Box::pin(without_peer(cx)),
    },
    Case {
        name: "a_socket_can_have_another_peer",
        rule: "after a second connect it receives from the second peer only",
        run: |cx| Box::pin(another_peer(cx)),
    },
    Case {
        name: "an_unused_port_is_reported_to_a_connected_socket",
        rule: "after a send to an unused port, a receive is ConnectionRefused",
        run: |cx| Box::pin(nobody_at_port(cx)),
    },
    Case {
        name: "an_unused_port_is_not_reported_without_connect",
        rule: "send_to an unused port succeeds, and so does the next one",
        run: |cx| Box::pin(lost_silently(cx)),
    },
    Case {
        name: "a_peek_leaves_the_datagram",
        rule: "a peek and a receive get the same datagram",
        run: |cx| Box::pin(peek(cx)),
    },
    Case {
        name: "a_port_is_bound_once",
        rule: "a second socket at an address is AddrInUse, and it is free after the close",
        run: |cx| Box::pin(bound_once(cx)),
    },
    Case {
        name: "a_socket_can_send_to_itself",
        rule: "a datagram to the own address is received",
        run: |cx| Box::pin(to_itself(cx)),
    },
    Case {
        name: "each_datagram_is_received_once",
        rule: "two tasks that receive from one socket share the datagrams",
        run: |cx| Box::pin(two_receivers(cx)),
    },
    Case {
        name: "a_socket_is_open_while_a_handle_is",
        rule: "a clone continues to receive after the other is dropped",
        run: |cx| Box::pin(clone_receives(cx)),
    },
    Case {
        name: "nothing_is_sent_to_port_0",
        rule: "send_to port 0 is InvalidInput; a connect to port 0 sets no peer",
        run: |cx| Box::pin(port_0(cx)),
    },
    Case {
        name: "a_send_error_precedes_a_pending_error",
        rule: "a datagram that is too long is an error; the next receive returns the refusal",
        run: |cx| Box::pin(too_long_before_refused(cx)),
    },
    Case {
        name: "a_broadcast_needs_the_option",
        rule: "send_to the broadcast address is PermissionDenied where broadcast is not set",
        run: |cx| Box::pin(to_all(cx)),
    },
];

pub(crate) const UNIX: &[Case] = &[
    Case {
        name: "unix_datagrams_keep_their_boundaries",
        rule: "each receive gets one datagram, whole and in order",
        run: |cx| Box::pin(unix_bounds(cx)),
    },
    Case {
        name: "unix_recv_from_returns_the_sender",
        rule: "recv_from returns the name of the sender, or none",
        run: |cx| Box::pin(unix_comes_from(cx)),
    },
    Case {
        name: "a_unix_datagram_is_truncated_to_the_buffer",
        rule: "a receive into a small buffer fills it, and the next one gets the next datagram",
        run: |cx| Box::pin(unix_does_not_fit(cx)),
    },
    Case {
        name: "a_unix_datagram_to_a_missing_name_is_refused",
        rule: "send_to a missing name is NotFound",
        run: |cx| Box::pin(unix_nowhere(cx)),
    },
    Case {
        name: "a_connected_unix_datagram_goes_to_its_peer",
        rule: "send after connect arrives at the name",
        run: |cx| Box::pin(unix_connected(cx)),
    },
    Case {
        name: "a_pair_of_unix_datagrams_is_connected",
        rule: "a datagram from one of a pair is received by the other, both ways",
        run: |cx| Box::pin(unix_pair(cx)),
    },
    Case {
        name: "an_empty_receive_takes_an_empty_unix_datagram",
        rule: "a receive into no buffer waits for a datagram and takes one",
        run: |cx| Box::pin(unix_empty(cx)),
    },
    Case {
        name: "a_unix_datagram_to_a_closed_peer_is_refused",
        rule: "send to a name whose socket was dropped is ConnectionRefused",
        run: |cx| Box::pin(unix_closed_peer(cx)),
    },
    Case {
        name: "a_unix_socket_with_a_peer_refuses_others",
        rule: "a socket that is not the peer may not send or connect to it: PermissionDenied",
        run: |cx| Box::pin(unix_others(cx)),
    },
    Case {
        name: "a_closed_unix_peer_is_reported_once",
        rule: "the first send to it is ConnectionRefused, then there is no peer",
        run: |cx| Box::pin(unix_gone_once(cx)),
    },
    Case {
        name: "a_unix_socket_with_a_new_peer_loses_unread_datagrams",
        rule: "the datagrams are lost, and the old peer gets ConnectionReset",
        run: |cx| Box::pin(unix_other_peer(cx)),
    },
    Case {
        name: "a_unix_datagram_longer_than_the_send_buffer_is_refused",
        rule: "it is an error of the system, and nothing arrives",
        run: |cx| Box::pin(unix_too_long(cx)),
    },
    Case {
        name: "a_unix_name_belongs_to_one_kind_of_socket",
        rule: "a datagram to a listener and a connect to a datagram socket fail",
        run: |cx| Box::pin(unix_kinds(cx)),
    },
];

async fn bounds(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    for text in [&b"first"[..], b"2", b"the third"] {
        assert_eq!(other.send_to(cx, text, one.local_addr()?).await?, text.len());
    }
    let mut buffer = [0; 16];
    for text in [&b"first"[..], b"2", b"the third"] {
        let count = one.recv(cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], text);
    }
    Ok(())
}

async fn comes_from(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    let third = UdpSocket::bind(cx, HERE).await?;
    other.send_to(cx, b"other", one.local_addr()?).await?;
    let mut buffer = [0; 8];
    assert_eq!(one.recv_from(cx, &mut buffer).await?, (5, other.local_addr()?));
    third.send_to(cx, b"third", one.local_addr()?).await?;
    assert_eq!(one.recv_from(cx, &mut buffer).await?, (5, third.local_addr()?));
    Ok(())
}

async fn does_not_fit(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    other.send_to(cx, b"too long", one.local_addr()?).await?;
    other.send_to(cx, b"next", one.local_addr()?).await?;
    let mut small = [0; 3];
    assert_eq!(one.recv_from(cx, &mut small).await?.0, 3);
    assert_eq!(&small, b"too");
    let mut buffer = [0; 8];
    let count = one.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"next");
    Ok(())
}

async fn empty(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    for text in [&b"a"[..], b"", b"b"] {
        assert_eq!(other.send_to(cx, text, one.local_addr()?).await?, text.len());
    }
    let mut buffer = [0; 4];
    for count in [1, 0, 1] {
        assert_eq!(one.recv(cx, &mut buffer).await?, count);
    }
    Ok(())
}

async fn peer_alone(cx: &Cx) -> io::Result<()> {
    let (one, peer) = udp(cx).await?;
    let stranger = UdpSocket::bind(cx, HERE).await?;
    one.connect(cx, peer.local_addr()?).await?;
    stranger.send_to(cx, b"stranger", one.local_addr()?).await?;
    peer.send_to(cx, b"peer", one.local_addr()?).await?;
    let mut buffer = [0; 16];
    let count = one.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"peer");
    timed_out(cx.timeout(SOON, async |cx| one.recv(cx, &mut buffer).await).await);
    Ok(())
}

async fn sends_to_peer(cx: &Cx) -> io::Result<()> {
    let (one, peer) = udp(cx).await?;
    one.connect(cx, peer.local_addr()?).await?;
    assert_eq!(one.peer_addr()?, peer.local_addr()?);
    assert_eq!(one.send(cx, b"there").await?, 5);
    let mut buffer = [0; 8];
    assert_eq!(peer.recv_from(cx, &mut buffer).await?, (5, one.local_addr()?));
    Ok(())
}

async fn without_peer(cx: &Cx) -> io::Result<()> {
    let one = UdpSocket::bind(cx, HERE).await?;
    assert_eq!(
        one.peer_addr().map_err(io::Error::from).map_err(|error| error.kind()),
        Err(ErrorKind::NotConnected)
    );
    Ok(())
}

async fn another_peer(cx: &Cx) -> io::Result<()> {
    let (one, first) = udp(cx).await?;
    let second = UdpSocket::bind(cx, HERE).await?;
    one.connect(cx, first.local_addr()?).await?;
    one.connect(cx, second.local_addr()?).await?;
    assert_eq!(one.peer_addr()?, second.local_addr()?);
    first.send_to(cx, b"first", one.local_addr()?).await?;
    second.send_to(cx, b"second", one.local_addr()?).await?;
    let mut buffer = [0; 8];
    let count = one.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"second");
    Ok(())
}

async fn nobody_at_port(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    one.connect(cx, other.local_addr()?).await?;
    drop(other);
    assert_eq!(one.send(cx, b"lost").await?, 4);
    assert_eq!(failed(one.recv(cx, &mut [0; 8]).await), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn lost_silently(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    let nobody = other.local_addr()?;
    drop(other);
    for _ in 0..2 {
        assert_eq!(one.send_to(cx, b"lost", nobody).await?, 4);
    }
    timed_out(cx.timeout(SOON, async |cx| one.recv(cx, &mut [0; 8]).await).await);
    Ok(())
}

async fn peek(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    other.send_to(cx, b"datagram", one.local_addr()?).await?;
    let mut buffer = [0; 16];
    assert_eq!(one.peek(cx, &mut buffer[..4]).await?, 4);
    assert_eq!(one.peek(cx, &mut buffer).await?, 8);
    let count = one.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"datagram");
    Ok(())
}

async fn bound_once(cx: &Cx) -> io::Result<()> {
    let one = UdpSocket::bind(cx, HERE).await?;
    let at = one.local_addr()?;
    assert_eq!(failed(UdpSocket::bind(cx, at).await), ErrorKind::AddrInUse);
    drop(one);
    assert_eq!(UdpSocket::bind(cx, at).await?.local_addr()?, at);
    Ok(())
}

async fn to_itself(cx: &Cx) -> io::Result<()> {
    let one = UdpSocket::bind(cx, HERE).await?;
    one.send_to(cx, b"me", one.local_addr()?).await?;
    let mut buffer = [0; 4];
    assert_eq!(one.recv_from(cx, &mut buffer).await?, (2, one.local_addr()?));
    Ok(())
}

async fn two_receivers(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    let to = one.local_addr()?;
    cx.scope(async |s| {
        let receivers = [one.clone(), one].map(|socket| {
            s.spawn(async move |cx: Cx| {
                let mut got = [0; 2];
                socket.recv(&cx, &mut got[..1]).await?;
                socket.recv(&cx, &mut got[1..]).await?;
                Ok::<_, io::Error>(got)
            })
        });
        for byte in 0..4 {
            other.send_to(cx, &[byte], to).await?;
        }
        let mut got = Vec::new();
        for receiver in receivers {
            got.extend(receiver.await.expect("two datagrams"));
        }
        got.sort_unstable();
        assert_eq!(got, [0, 1, 2, 3]);
        io::Result::Ok(())
    })
    .await
}

async fn clone_receives(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    let clone = one.clone();
    drop(one);
    other.send_to(cx, b"on", clone.local_addr()?).await?;
    assert_eq!(clone.recv(cx, &mut [0; 4]).await?, 2);
    Ok(())
}

async fn unix_bounds(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_bounds");
    let one = UnixDatagram::bind(cx, &name)?;
    let other = UnixDatagram::unbound(cx)?;
    for text in [&b"first"[..], b"", b"third"] {
        assert_eq!(other.send_to(cx, text, &name).await?, text.len());
    }
    let mut buffer = [0; 16];
    for text in [&b"first"[..], b"", b"third"] {
        let count = one.recv(cx, &mut buffer).await?;
        assert_eq!(&buffer[..count], text);
    }
    Ok(())
}

async fn unix_comes_from(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_comes_from_one");
    let other_name = Name::new("unix_comes_from_other");
    let one = UnixDatagram::bind(cx, &name)?;
    let other = UnixDatagram::bind(cx, &other_name)?;
    let nameless = UnixDatagram::unbound(cx)?;
    other.send_to(cx, b"other", &name).await?;
    nameless.send_to(cx, b"none", &name).await?;
    let (count, from) = one.recv_from(cx, &mut [0; 8]).await?;
    assert_eq!((count, from.path()), (5, Some(other_name.as_ref())));
    let (count, from) = one.recv_from(cx, &mut [0; 8]).await?;
    assert_eq!((count, from.path()), (4, None));
    Ok(())
}

async fn unix_does_not_fit(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_does_not_fit");
    let one = UnixDatagram::bind(cx, &name)?;
    let other = UnixDatagram::unbound(cx)?;
    other.send_to(cx, b"too long", &name).await?;
    other.send_to(cx, b"next", &name).await?;
    let mut small = [0; 3];
    assert_eq!(one.recv(cx, &mut small).await?, 3);
    assert_eq!(&small, b"too");
    let mut buffer = [0; 8];
    let count = one.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"next");
    Ok(())
}

async fn unix_nowhere(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_nowhere");
    let one = UnixDatagram::unbound(cx)?;
    assert_eq!(failed(one.send_to(cx, b"lost", &name).await), ErrorKind::NotFound);
    Ok(())
}

async fn unix_connected(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_connected");
    let one = UnixDatagram::bind(cx, &name)?;
    let other = UnixDatagram::unbound(cx)?;
    other.connect(&name)?;
    assert_eq!(other.send(cx, b"there").await?, 5);
    let mut buffer = [0; 8];
    let count = one.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"there");
    Ok(())
}

async fn unix_pair(cx: &Cx) -> io::Result<()> {
    let (one, other) = UnixDatagram::pair(cx)?;
    let mut buffer = [0; 8];
    one.send(cx, b"there").await?;
    let count = other.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"there");
    other.send(cx, b"back").await?;
    let count = one.recv(cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"back");
    Ok(())
}

async fn unix_empty(cx: &Cx) -> io::Result<()> {
    let (one, other) = UnixDatagram::pair(cx)?;
    assert_eq!(one.send(cx, &[]).await?, 0);
    assert_eq!(one.send(cx, b"next").await?, 4);
    assert_eq!(other.recv(cx, &mut []).await?, 0);
    let mut next = [0; 8];
    assert_eq!(other.recv(cx, &mut next).await?, 4);
    Ok(())
}

async fn unix_closed_peer(cx: &Cx) -> io::Result<()> {
    let name = Name::new("unix_closed_peer");
    let one = UnixDatagram::bind(cx, &name)?;
    let other = UnixDatagram::unbound(cx)?;
    drop(one);
    let sent = other.send_to(cx, b"lost", &name).await;
    assert_eq!(failed(sent), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn port_0(cx: &Cx) -> io::Result<()> {
    let (one, _other) = udp(cx).await?;
    let nobody = "127.0.0.1:0".parse().expect("an address");
    assert_eq!(failed(one.send_to(cx, b"lost", nobody).await), ErrorKind::InvalidInput);
    one.connect(cx, nobody).await?;
    let peer = one.peer_addr().map_err(io::Error::from);
    assert_eq!(failed(peer), ErrorKind::NotConnected);
    Ok(())
}

async fn too_long_before_refused(cx: &Cx) -> io::Result<()> {
    let (one, other) = udp(cx).await?;
    one.connect(cx, other.local_addr()?).await?;
    drop(other);
    one.send(cx, b"lost").await?;
    cx.sleep(SOON).await?;
    let long = vec![0; 70_000];
    assert_ne!(failed(one.send(cx, &long).await), ErrorKind::ConnectionRefused);
    assert_eq!(failed(one.recv(cx, &mut [0; 8]).await), ErrorKind::ConnectionRefused);
    Ok(())
}

async fn to_all(cx: &Cx) -> io::Result<()> {
    let socket = UdpSocket::bind(cx, "0.0.0.0:0").await?;
    let all = "255.255.255.255:9".parse().expect("an address");
    assert_eq!(failed(socket.send_to(cx, b"all", all).await), ErrorKind::PermissionDenied);
    Ok(())
}

async fn unix_others(cx: &Cx) -> io::Result<()> {
    let names = ["unix_others_1", "unix_others_2"].map(Name::new);
    let one = UnixDatagram::bind(cx, &names[0])?;
    let other = UnixDatagram::bind(cx, &names[1])?;
    one.connect(&names[1])?;
    let third = UnixDatagram::unbound(cx)?;
    assert_eq!(failed(third.send_to(cx, b"x", &names[0]).await), ErrorKind::PermissionDenied);
    let bound = third.connect(&names[0]).map_err(io::Error::from);
    assert_eq!(failed(bound), ErrorKind::PermissionDenied);
    assert_eq!(other.send_to(cx, b"mine", &names[0]).await?, 4);
    assert_eq!(one.recv(cx, &mut [0; 8]).await?, 4);
    Ok(())
}

async fn unix_gone_once(cx: &Cx) -> io::Result<()> {
    let (one, other) = UnixDatagram::pair(cx)?;
    drop(other);
    assert_eq!(failed(one.send(cx, b"lost").await), ErrorKind::ConnectionRefused);
    assert_eq!(failed(one.send(cx, b"lost").await), ErrorKind::NotConnected);
    // A socket that was connected to another peer fails in the same way.
    let names = ["unix_gone_once_1", "unix_gone_once_2"].map(Name::new);
    let gone = UnixDatagram::bind(cx, &names[0])?;
    let _third = UnixDatagram::bind(cx, &names[1])?;
    one.connect(&names[0])?;
    gone.connect(&names[1])?;
    assert_eq!(failed(one.send(cx, b"no").await), ErrorKind::PermissionDenied);
    drop(gone);
    assert_eq!(failed(one.send(cx, b"lost").await), ErrorKind::ConnectionRefused);
    assert_eq!(failed(one.send(cx, b"lost").await), ErrorKind::NotConnected);
    Ok(())
}

async fn unix_other_peer(cx: &Cx) -> io::Result<()> {
    let names = ["unix_other_peer_1", "unix_other_peer_2", "unix_other_peer_3"].map(Name::new);
    let one = UnixDatagram::bind(cx, &names[0])?;
    let old = UnixDatagram::bind(cx, &names[1])?;
    let _new = UnixDatagram::bind(cx, &names[2])?;
    one.connect(&names[1])?;
    old.connect(&names[0])?;
    old.send(cx, b"unread").await?;
    one.connect(&names[2])?;
    timed_out(cx.timeout(SOON, async |cx| one.recv(cx, &mut [0; 8]).await).await);
    assert_eq!(failed(old.recv(cx, &mut [0; 8]).await), ErrorKind::ConnectionReset);
    assert_eq!(failed(old.send(cx, b"more").await), ErrorKind::PermissionDenied);
    Ok(())
}

async fn unix_too_long(cx: &Cx) -> io::Result<()> {
    let (one, other) = UnixDatagram::pair(cx)?;
    let sent = one.send(cx, &vec![0; 10_000_000]).await;
    assert_ne!(failed(sent), ErrorKind::WouldBlock);
    one.send(cx, b"short").await?;
    assert_eq!(other.recv(cx, &mut [0; 8]).await?, 5);
    Ok(())
}

async fn unix_kinds(cx: &Cx) -> io::Result<()> {
    let names = ["unix_kinds_1", "unix_kinds_2"].map(Name::new);
    let socket = UnixDatagram::bind(cx, &names[0])?;
    let _listener = UnixListener::bind(cx, &names[1])?;
    for kind in [
        failed(UnixStream::connect(cx, &names[0]).await),
        failed(socket.send_to(cx, b"x", &names[1]).await),
        failed(socket.connect(&names[1]).map_err(io::Error::from)),
    ] {
        assert!(![ErrorKind::ConnectionRefused, ErrorKind::InvalidInput].contains(&kind));
    }
    Ok(())
}
