//! Large numbers of sockets, and sockets that are opened and closed continuously.

#![cfg(unix)]

mod common;

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

use asx_net::{Cx, TcpListener, TcpStream, UnixStream, io};
use common::{on_each, pair};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Several tasks reuse descriptors and reactor entries. Each socket observes only its own bytes and
/// ends.
#[test]
fn reused_descriptors_receive_only_their_own_events() {
    on_each(async |cx| {
        cx.scope(async |s| {
            for task in 0..8_u8 {
                s.spawn(async move |cx: Cx| {
                    for round in 0..200_u8 {
                        let (mut near, mut far) = UnixStream::pair(&cx)?;
                        let mut buffer = [0; 2];
                        // The reader waits before the write.
                        let (read, written) = asx_runtime::join(
                            &cx,
                            async |cx| near.read_exact(cx, &mut buffer).await,
                            async |cx| {
                                cx.yield_now().await;
                                far.write_all(cx, &[task, round]).await
                            },
                        )
                        .await;
                        read?;
                        written?;
                        assert_eq!(buffer, [task, round]);
                        drop(far);
                        assert_eq!(near.read(&cx, &mut buffer).await?, 0);
                    }
                    io::Result::Ok(())
                });
            }
            Ok(())
        })
        .await
    });
}

/// Events arrive while their socket is dropped and its reactor entry is reused. The new socket must
/// not observe them: after a false end of the stream it would read forever.
#[test]
fn socket_dropped_during_events_does_not_affect_its_successor() {
    on_each(async |cx| {
        let (mut near, mut far) = pair(&cx).await?;
        for round in 0..300_u16 {
            let (doomed, peer) = std::os::unix::net::UnixStream::pair()?;
            let doomed = UnixStream::from_std(&cx, doomed)?;
            let peer = std::thread::spawn(move || {
                let _ = (&peer).write_all(b"too late");
                drop(peer);
            });
            if round % 2 == 0 {
                cx.yield_now().await;
            }
            drop(doomed);
            // It reuses the entry, and has nothing to read until the peer has written.
            let (mut next, mut next_peer) = UnixStream::pair(&cx)?;
            let mut buffer = [0; 2];
            let (read, written) = asx_runtime::join(
                &cx,
                async |cx| next.read_exact(cx, &mut buffer).await,
                async |cx| {
                    // Another connection works in the meantime.
                    far.write_all(cx, &round.to_be_bytes()).await?;
                    let mut word = [0; 2];
                    near.read_exact(cx, &mut word).await?;
                    assert_eq!(word, round.to_be_bytes());
                    next_peer.write_all(cx, &word).await?;
                    io::Result::Ok(())
                },
            )
            .await;
            read?;
            written?;
            assert_eq!(buffer, round.to_be_bytes());
            peer.join().unwrap();
        }
        Ok(())
    });
}

/// A task blocks its worker until the other worker has served a thousand connections.
#[test]
fn thousand_connections_are_served_beside_a_task_that_blocks() {
    const CONNECTIONS: u32 = 1000;
    let runtime = asx_native::Runtime::builder().workers(2).build().unwrap();
    let served = runtime.block_on(async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        cx.scope(async |s| {
            let blocked = Arc::new(AtomicBool::new(true));
            let unblock = blocked.clone();
            let clients = std::thread::spawn(move || {
                let connect = |_| std::net::TcpStream::connect(address).unwrap();
                let mut clients: Vec<_> = (0..CONNECTIONS).map(connect).collect();
                for round in 0..3_u8 {
                    clients.iter_mut().for_each(|client| client.write_all(&[round]).unwrap());
                    for client in &mut clients {
                        let mut buffer = [0];
                        client.read_exact(&mut buffer).unwrap();
                        assert_eq!(buffer, [round]);
                    }
                }
                unblock.store(false, SeqCst);
            });
            s.spawn(async move |_cx: Cx| {
                while blocked.load(SeqCst) {
                    std::thread::yield_now();
                }
                Ok(())
            });
            for _ in 0..CONNECTIONS {
                let (stream, _) = listener.accept(&cx).await?;
                s.spawn(move |cx| echo(cx, stream));
            }
            let ended = s.spawn_blocking(move || Ok(clients.join().is_ok()));
            assert_eq!(ended.await.ok(), Some(true));
            io::Result::Ok(())
        })
        .await
    });
    served.unwrap();
}

async fn echo(cx: Cx, mut stream: TcpStream) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    io::copy(&cx, &mut reader, &mut writer).await.map(drop)
}

/// The environment variable with the server address, set in the process of the clients.
const CLIENTS: &str = "ASX_NET_MANY_CLIENTS";
const MANY: usize = 10_000;

#[test]
fn ten_thousand_connections_are_served() {
    let limit = getrlimit(Resource::Nofile);
    let room = limit.maximum.unwrap_or(u64::MAX).min(MANY as u64 + 200);
    setrlimit(Resource::Nofile, Rlimit { current: Some(room), ..limit }).unwrap();
    let count = MANY.min(room as usize - 200);
    if let Ok(server) = std::env::var(CLIENTS) {
        return clients(&server, count);
    }
    let runtime = asx_native::Runtime::builder().workers(2).build().unwrap();
    let served = runtime.block_on(async |cx: Cx| {
        let listener = TcpListener::builder().backlog(4096).listen(&cx, "127.0.0.1:0").await?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["ten_thousand_connections_are_served", "--exact", "--nocapture"])
            .env(CLIENTS, listener.local_addr()?.to_string())
            .stdout(Stdio::null())
            .spawn()?;
        cx.scope(async |s| {
            for _ in 0..count {
                let (stream, _) = listener.accept(&cx).await?;
                s.spawn(move |cx| echo(cx, stream));
            }
            io::Result::Ok(())
        })
        .await?;
        assert!(child.wait()?.success());
        io::Result::Ok(())
    });
    served.unwrap();
}

/// Opens all connections at once and exchanges a different word on each of them, twice.
fn clients(server: &str, count: usize) {
    let mut clients: Vec<_> =
        (0..count).map(|_| std::net::TcpStream::connect(server).unwrap()).collect();
    for round in 0..2 {
        for (nth, client) in clients.iter_mut().enumerate() {
            client.write_all(&((nth + round) as u64).to_be_bytes()).unwrap();
        }
        for (nth, client) in clients.iter_mut().enumerate() {
            let mut word = [0; 8];
            client.read_exact(&mut word).unwrap();
            assert_eq!(u64::from_be_bytes(word), (nth + round) as u64);
        }
    }
}
