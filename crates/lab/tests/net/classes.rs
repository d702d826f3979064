//! Reduction against full search: the same classes of runs, with sockets in them.

use asx_lab::{Grain, How, Kind, check};
use asx_net::{Cx, TcpListener, TcpStream, UdpSocket, io};
use asx_runtime::Scope;
use asx_runtime::time::DurationExt as _;

use super::{LONG, pair};

/// All classes are seen by both, and no order of the full search has another.
///
/// What is on its way when a program ends is dropped, and commutes with that end: a reduction does
/// not try to deliver it before, which makes no difference to the program, and the full search
/// does. So time moves on at the end, for which all deliveries are made.
fn compare<B: Future<Output = io::Result<()>>>(name: &str, program: impl Fn(Cx) -> B) {
    for is_transparent in [false, true] {
        compare_as(name, is_transparent, &program);
    }
}

fn compare_as<B: Future<Output = io::Result<()>>>(
    name: &str,
    is_transparent: bool,
    program: impl Fn(Cx) -> B,
) {
    let [full, reduced] = [How::Dfs, How::Dpor].map(|how| {
        let drained = async |cx: Cx| {
            program(cx.clone()).await?;
            cx.sleep(1.secs()).await?;
            Ok::<_, io::Error>(())
        };
        let mut check = check(drained).how(how).grain(Grain::Poll).runs(100_000).time(LONG);
        if is_transparent {
            check = check.transparent();
        }
        check.run()
    });
    for report in [&full, &reduced] {
        assert!(report.failure.is_none(), "{name}: {report}");
    }
    println!("{name}, transparent {is_transparent}: {full} | {reduced}");
    assert!(full.proof.is_some(), "{name}: {full}");
    assert_eq!(reduced.proof, full.proof, "{name}, transparent {is_transparent}");
    assert!(reduced.runs <= full.runs, "{name}: {full}, {reduced}");
}

#[test]
fn deliveries_race_with_whom_they_are_for() {
    compare("two pipes", async |cx: Cx| {
        let (mut one, mut other) = pair(&cx).await?;
        let (mut third, mut fourth) = pair(&cx).await?;
        one.write_all(&cx, b"a").await?;
        third.write_all(&cx, b"b").await?;
        other.read(&cx, &mut [0; 1]).await?;
        fourth.read(&cx, &mut [0; 1]).await?;
        Ok(())
    });
    compare("both ways, and an end", async |cx: Cx| {
        let (mut one, mut other) = pair(&cx).await?;
        one.write_all(&cx, b"a").await?;
        other.write_all(&cx, b"b").await?;
        drop(other);
        one.read(&cx, &mut [0; 1]).await?;
        one.read(&cx, &mut [0; 1]).await?;
        Ok(())
    });
    compare("a reset", async |cx: Cx| {
        let (mut one, other) = pair(&cx).await?;
        one.write_all(&cx, b"a").await?;
        cx.yield_now().await;
        drop(other);
        let _ = one.read(&cx, &mut [0; 1]).await;
        let _ = one.write(&cx, b"b").await;
        Ok(())
    });
}

#[test]
fn connections_race_for_a_listener() {
    // Its full search takes many runs.
    compare_as("two clients", false, async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
        cx.scope(async |s: Scope<io::Error>| {
            for _ in 0..2 {
                s.spawn(async |cx: Cx| {
                    TcpStream::connect(&cx, "127.0.0.1:80").await?;
                    Ok(())
                });
            }
            listener.accept(&cx).await?;
            Ok(())
        })
        .await
    });
    compare("a listener that closes", async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
        cx.scope(async |s: Scope<io::Error>| {
            s.spawn(async |cx: Cx| {
                if let Ok(mut stream) = TcpStream::connect(&cx, "127.0.0.1:80").await {
                    let _ = stream.read(&cx, &mut [0; 1]).await;
                }
                Ok(())
            });
            cx.yield_now().await;
            drop(listener);
            Ok(())
        })
        .await
    });
}

#[test]
fn time_waits_for_deliveries() {
    compare("a timeout", async |cx: Cx| {
        let (mut one, mut other) = pair(&cx).await?;
        let (mut third, _fourth) = pair(&cx).await?;
        one.write_all(&cx, b"a").await?;
        third.write_all(&cx, b"b").await?;
        let mut buffer = [0; 2];
        for _ in 0..2 {
            let _ = cx.timeout(1.secs(), async |cx| other.read(cx, &mut buffer).await).await;
        }
        Ok(())
    });
    compare("a sleeper", async |cx: Cx| {
        let (mut one, mut other) = pair(&cx).await?;
        cx.scope(async |s: Scope<io::Error>| {
            s.spawn(async move |cx: Cx| {
                cx.sleep(1.millis()).await?;
                one.write_all(&cx, b"a").await?;
                Ok(())
            });
            other.read(&cx, &mut [0; 1]).await?;
            Ok(())
        })
        .await
    });
}

#[test]
fn datagrams_race_for_a_socket() {
    compare("two senders", async |cx: Cx| {
        let receiver = UdpSocket::bind(&cx, "127.0.0.1:53").await?;
        let mut senders = Vec::new();
        for number in 0..2 {
            let sender = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
            sender.send_to(&cx, &[number], receiver.local_addr()?).await?;
            senders.push(sender);
        }
        for _ in 0..2 {
            receiver.recv(&cx, &mut [0; 1]).await?;
        }
        Ok(())
    });
}

/// Between two closes of one poll another task can run.
#[test]
fn closes_in_one_poll_are_told_apart() {
    let program = async |cx: Cx| {
        let first = TcpListener::bind(&cx, "127.0.0.1:1001").await?;
        let second = TcpListener::bind(&cx, "127.0.0.1:1002").await?;
        cx.scope(async |s: Scope<io::Error>| {
            s.spawn(async move |_: Cx| {
                drop(first);
                drop(second);
                Ok(())
            });
            s.spawn(async move |cx: Cx| {
                if TcpListener::bind(&cx, "127.0.0.1:1001").await.is_ok() {
                    TcpListener::bind(&cx, "127.0.0.1:1002").await?;
                }
                Ok(())
            });
            Ok(())
        })
        .await
    };
    let report = check(program).run();
    let found = report.failure.unwrap_or_else(|| panic!("the second port was never in use"));
    assert_eq!(found.failure.finding.kind, Kind::Error, "{found}");
}

/// Two tasks drop the owned halves of a stream: the last one closes the connection.
#[test]
fn the_last_of_two_halves_to_be_dropped_closes_the_connection() {
    let program = async |cx: Cx| {
        let (client, mut server) = pair(&cx).await?;
        let (mut read, mut write) = client.into_split();
        cx.scope(async |s: Scope<io::Error>| {
            let reads = s.spawn(async move |cx: Cx| read.read(&cx, &mut [0; 4]).await);
            let writes = s.spawn(async move |cx: Cx| write.write(&cx, b"x").await);
            let served = s.spawn(async move |cx: Cx| {
                let first = server.read(&cx, &mut [0; 4]).await?;
                Ok((first, server.read(&cx, &mut [0; 4]).await?))
            });
            let [reads, writes] = [reads.await, writes.await].map(|it| it.ok());
            assert_eq!((reads, writes, served.await.ok()), (Some(0), Some(1), Some((1, 0))));
            Ok(())
        })
        .await
    };
    let check = check(program).transparent().how(How::Dpor).grain(Grain::Operation);
    let report = check.runs(5000).time(LONG).run();
    assert!(report.failure.is_none() && report.proof.is_some(), "{report}");
}
