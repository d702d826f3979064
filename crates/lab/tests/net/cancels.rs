//! Cancels, timeouts and the ends of runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use asx_lab::{Faults, Grain, How, Kind, check};
use asx_net::io::BufReader;
use asx_net::{Cx, TcpListener, TcpStream, UdpSocket, io};
use asx_runtime::Scope;
use asx_runtime::time::DurationExt as _;

use super::pair;

/// A client that asks twice, and a server: what a cancel leaves is an end or an error for the
/// other, never half of an answer taken for a whole one.
async fn ask(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
    cx.scope(async |s: Scope<io::Error>| {
        s.task("server").spawn(async move |cx: Cx| {
            let (stream, _) = listener.accept(&cx).await?;
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            while stream.read_line(&cx, &mut line).await? > 0 {
                let answer = format!("{} {}\n", line.trim().len(), line.trim());
                stream.get_mut().write_all(&cx, answer.as_bytes()).await?;
                line.clear();
            }
            Ok(())
        });
        let mut stream = TcpStream::connect(&cx, "127.0.0.1:80").await?;
        for word in ["one", "three"] {
            stream.write_all(&cx, format!("{word}\n").as_bytes()).await?;
            let expected = format!("{} {word}\n", word.len());
            let mut answer = vec![0; expected.len()];
            stream.read_exact(&cx, &mut answer).await?;
            assert_eq!(answer, expected.as_bytes());
        }
        Ok(())
    })
    .await
}

#[test]
fn a_cancel_at_every_await_leaves_nothing_behind() {
    let report = check(ask).cancel_at_every_await().time(10.secs()).run();
    assert!(report.failure.is_none(), "{report}");
    let (tried, all) = report.cancels.expect("cancels were asked for");
    // Connect, accept, two reads at each end, and the ends of the tasks: before and after each,
    // once and twice.
    assert!(tried == all && all >= 30, "{report}");
}

/// All disturbances that there are, one kind after the other.
#[test]
fn cancels_faults_and_the_network_go_together() {
    let program = check(ask).network(Faults::all().half_opens(0)).faults();
    let report = program.cancel_at_every_await().runs(50).time(12.secs()).run();
    assert!(report.failure.is_none(), "{report}");
    assert!([report.cancels, report.faults, report.network].iter().all(Option::is_some));
}

/// Bytes that were there before a cancelled read are there after it.
#[test]
fn a_cancelled_read_has_taken_nothing() {
    let program = async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        cx.scope(async |s: Scope<io::Error>| {
            let reader = s.spawn(async move |cx: Cx| {
                let mut buffer = [0; 8];
                let first = server.read(&cx, &mut buffer).await;
                let count = match first {
                    Ok(count) => count,
                    Err(_) => cx.shield(async |cx| server.read(cx, &mut buffer).await).await?,
                };
                assert_eq!(&buffer[..count], b"whole");
                Ok(())
            });
            client.write_all(&cx, b"whole").await?;
            cx.sleep(1.secs()).await?;
            drop(reader);
            Ok(())
        })
        .await
    };
    // Between two operations of the first poll of the scope, nobody would write any more.
    let program = check(program).grain(Grain::Poll);
    let report = program.cancel_at_every_await().time(5.secs()).run();
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn a_timeout_is_of_virtual_time() {
    let program = async |cx: Cx| {
        let (_client, mut server) = pair(&cx).await?;
        let start = cx.now();
        let mut buffer = [0; 8];
        let read = cx.timeout(3600.secs(), async |cx| server.read(cx, &mut buffer).await).await;
        assert!(matches!(read, Err(io::Error::Cancelled(_))), "{read:?}");
        assert_eq!(cx.now() - start, 3600.secs());
        Ok::<_, io::Error>(())
    };
    let report = check(program).runs(50).exact_time().run();
    assert!(report.failure.is_none(), "{report}");
}

/// Bytes that nobody reads, a socket that was forgotten, a connection that nobody accepts: the run
/// is over when its tasks are.
#[test]
fn what_is_not_delivered_keeps_no_run_alive() {
    let program = async |cx: Cx| {
        let (mut client, server) = pair(&cx).await?;
        client.write_all(&cx, &[7; 10_000]).await?;
        std::mem::forget(server);
        let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
        let _late = TcpStream::connect(&cx, listener.local_addr()?).await?;
        let udp = UdpSocket::bind(&cx, "127.0.0.1:0").await?;
        udp.send_to(&cx, b"lost", "127.0.0.1:9".parse().unwrap()).await?;
        Ok::<_, io::Error>(())
    };
    for faults in [Faults::none(), Faults::all()] {
        let report = check(program).network(faults).runs(100).run();
        assert!(report.failure.is_none(), "{report}");
    }
}

#[test]
fn who_waits_at_a_socket_is_named_with_it() {
    let program = async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
        let udp = UdpSocket::bind(&cx, "127.0.0.1:53").await?;
        cx.scope(async |s: Scope<io::Error>| {
            s.task("server").spawn(async move |cx: Cx| {
                let (mut stream, _) = listener.accept(&cx).await?;
                stream.read(&cx, &mut [0; 4]).await?;
                listener.accept(&cx).await?;
                Ok(())
            });
            s.task("names").spawn(async move |cx: Cx| {
                udp.recv(&cx, &mut [0; 4]).await?;
                Ok(())
            });
            let mut client = TcpStream::connect(&cx, "127.0.0.1:80").await?;
            client.read(&cx, &mut [0; 4]).await?;
            Ok(())
        })
        .await
    };
    let report = check(program).how(How::Random).run();
    let found = report.failure.expect("a deadlock");
    assert_eq!(found.failure.finding.kind, Kind::Deadlock);
    let text = found.to_string();
    assert!(text.contains("`main` (Running) waits for bytes from 127.0.0.1:80 at "), "{text}");
    assert!(text.contains("`server (main/1)` (Running) waits for bytes from 127.0.0.1:"), "{text}");
    assert!(
        text.contains("`names (main/2)` (Running) waits for a datagram to 127.0.0.1:53"),
        "{text}"
    );
}

/// The same seed, the same run: every event, whatever goes wrong.
#[test]
fn the_same_seed_is_the_same_run() {
    let program = check(ask).network(Faults::all());
    let digests: Vec<_> = (0..20).map(|seed| program.record(seed).digest()).collect();
    let again: Vec<_> = (0..20).map(|seed| program.record(seed).digest()).collect();
    assert_eq!(digests, again);
    let others = digests.iter().filter(|digest| **digest != digests[0]).count();
    assert!(others > 0, "{digests:?}");
}

/// Sockets of a run that is over are of no use to the next one, and do it no harm.
#[test]
fn a_socket_that_outlives_its_run_is_dead() {
    let kept: Arc<std::sync::Mutex<Vec<UdpSocket>>> = Arc::default();
    let runs = AtomicU32::new(0);
    let program = async |cx: Cx| {
        let old = kept.lock().unwrap().pop();
        let socket = UdpSocket::bind(&cx, "127.0.0.1:53").await?;
        if let Some(old) = old {
            assert!(old.local_addr().is_err());
            runs.fetch_add(1, Relaxed);
        }
        kept.lock().unwrap().push(socket);
        Ok::<_, io::Error>(())
    };
    let report = check(program).runs(20).run();
    assert!(report.failure.is_none(), "{report}");
    assert!(runs.load(Relaxed) > 0);
    kept.lock().unwrap().clear();
}
