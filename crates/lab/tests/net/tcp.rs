//! Connections.

use std::io::ErrorKind;

use asx_net::{Cx, TcpListener, TcpStream, io};
use asx_runtime::Scope;

use super::{classes, pair, passes};

#[test]
fn what_is_written_is_read() {
    passes(async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        let mut buffer = [0; 5];
        server.read_exact(&cx, &mut buffer).await?;
        assert_eq!(&buffer, b"hello");
        server.write_all(&cx, b"and back").await?;
        drop(server);
        let mut buffer = [0; 20];
        assert_eq!(client.read(&cx, &mut buffer).await?, 8);
        assert_eq!(client.read(&cx, &mut buffer).await?, 0);
        Ok(())
    });
}

#[test]
fn a_server_and_a_client_meet() {
    let report = passes(async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:8080").await?;
        cx.scope(async |s: Scope<io::Error>| {
            s.spawn(async move |cx: Cx| {
                let (mut stream, _) = listener.accept(&cx).await?;
                let mut buffer = [0; 4];
                stream.read_exact(&cx, &mut buffer).await?;
                stream.write_all(&cx, &buffer).await?;
                Ok(())
            });
            let mut stream = TcpStream::connect(&cx, "127.0.0.1:8080").await?;
            stream.write_all(&cx, b"ping").await?;
            let mut buffer = [0; 4];
            stream.read_exact(&cx, &mut buffer).await?;
            assert_eq!(&buffer, b"ping");
            Ok(())
        })
        .await
    });
    println!("{report}");
}

#[test]
fn nobody_listens() {
    passes(async |cx: Cx| {
        let error = TcpStream::connect(&cx, "127.0.0.1:9").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        Ok(())
    });
}

/// The lab has no descriptors of the operating system, and takes none.
#[cfg(unix)]
#[test]
fn descriptors_are_refused() {
    passes(async |cx: Cx| {
        let (client, _server) = pair(&cx).await?;
        assert!(client.fd().is_none());
        assert_eq!(client.into_std().map(drop).unwrap_err().kind(), ErrorKind::Unsupported);
        let (one, _other) = std::os::unix::net::UnixStream::pair()?;
        let adopted = asx_net::UnixStream::from_std(&cx, one);
        assert_eq!(adopted.map(drop).unwrap_err().kind(), ErrorKind::Unsupported);
        let (mut one, mut other) = asx_net::UnixStream::pair(&cx)?;
        one.write_all(&cx, b"direct").await?;
        assert_eq!(other.read(&cx, &mut [0; 8]).await?, 6);
        Ok(())
    });
}

/// Tasks with a connection each, of which both ends are theirs: in whichever order the deliveries
/// of different connections come, it is the same. What is left is the order in which tasks of a
/// scope end, which is as much without any network.
#[test]
fn independent_connections_add_no_class() {
    let program = async |cx: Cx, count: usize, is_connected: bool| {
        cx.scope(async |s: Scope<io::Error>| {
            for _ in 0..count {
                s.spawn(async move |cx: Cx| {
                    if !is_connected {
                        cx.yield_now().await;
                        return Ok(());
                    }
                    let (mut client, mut server) = pair(&cx).await?;
                    client.write_all(&cx, b"x").await?;
                    assert_eq!(server.read(&cx, &mut [0; 4]).await?, 1);
                    server.write_all(&cx, b"yz").await?;
                    assert_eq!(client.read(&cx, &mut [0; 4]).await?, 2);
                    Ok(())
                });
            }
            Ok(())
        })
        .await
    };
    for count in 1..=4 {
        let [without, with] = [false, true]
            .map(|is_connected| classes(async |cx: Cx| program(cx, count, is_connected).await));
        println!("{count} tasks: {without} classes, with connections {with}");
        assert_eq!(with, without, "{count} connections");
    }
}
