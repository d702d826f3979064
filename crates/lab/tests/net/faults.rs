//! What goes wrong in the network, and what programs make of it.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use asx_lab::{Faults, Found, Grain, How, Kind, Report, check};
use asx_net::{Cx, TcpListener, TcpStream, UdpSocket, io, lookup_host};
use asx_runtime::Scope;
use asx_runtime::time::DurationExt as _;
use asx_trace::Record;

use super::pair;

fn failure(report: Report) -> Found {
    let text = report.to_string();
    report.failure.unwrap_or_else(|| panic!("{text}"))
}

/// What a program fails with, told and run again.
fn found<B: Future<Output = io::Result<()>>>(
    faults: Faults,
    program: impl Fn(Cx) -> B + Copy,
) -> Found {
    let without = check(program).exact_time().runs(100).run();
    assert!(without.failure.is_none(), "{without}");
    let check = check(program).exact_time().network(faults);
    let found = failure(check.run());
    let again = failure(check.replay(&found.token).expect("a token"));
    assert_eq!(again.failure, found.failure);
    assert_eq!(again.words, found.words);
    found
}

/// A program passes with whatever goes wrong, and everything was tried.
fn survives<B: Future<Output = io::Result<()>>>(
    faults: Faults,
    program: impl Fn(Cx) -> B,
) -> Report {
    let report = check(program).exact_time().network(faults).runs(200).run();
    assert!(report.failure.is_none(), "{report}");
    let (tried, all) = report.network.expect("faults were asked for");
    assert!(tried == all && all > 0, "{report}");
    report
}

/// Takes what comes first for everything.
async fn reads_once(cx: Cx) -> io::Result<()> {
    let (mut client, mut server) = pair(&cx).await?;
    client.write_all(&cx, b"hello").await?;
    let mut buffer = [0; 5];
    let count = server.read(&cx, &mut buffer).await?;
    assert_eq!(&buffer[..count], b"hello");
    Ok(())
}

async fn reads_all(cx: Cx) -> io::Result<()> {
    let (mut client, mut server) = pair(&cx).await?;
    client.write_all(&cx, b"hello").await?;
    let mut buffer = [0; 5];
    server.read_exact(&cx, &mut buffer).await?;
    assert_eq!(&buffer, b"hello");
    Ok(())
}

#[test]
fn a_segment_comes_in_pieces() {
    let chunks = Faults::none().chunks(4);
    let found = found(chunks, reads_once);
    assert_eq!(found.failure.finding.kind, Kind::Panic);
    let [words] = &found.words[..] else { panic!("{found}") };
    assert!(
        words.starts_with("1 of 5 bytes came first of the 1st segment from 127.0.0.1:"),
        "{words}"
    );
    survives(chunks, reads_all);
}

/// Segments may come in pieces wherever there is a network.
#[test]
fn pieces_are_no_excuse_for_an_error() {
    let program = async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        match server.read(&cx, &mut [0; 5]).await? {
            5 => Ok(()),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    };
    let found = found(Faults::none().chunks(1), program);
    assert_eq!(found.failure.finding.kind, Kind::Error);
}

#[test]
fn a_connection_is_reset() {
    let program = async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        match server.read(&cx, &mut [0; 5]).await {
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound),
            Ok(count) => assert_eq!(count, 5),
        }
        Ok(())
    };
    let found = found(Faults::none().resets(1), program);
    assert!(found.failure.finding.message.contains("ConnectionReset"), "{found}");
    let [words] = &found.words[..] else { panic!("{found}") };
    assert!(words.starts_with("the 1st segment from 127.0.0.1:"), "{words}");
    assert!(words.ends_with("was lost; the connection was reset"), "{words}");
    // Both ends see it, once; then what was there is over.
    survives(Faults::none().resets(1), async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        if let Err(error) = server.read(&cx, &mut [0; 5]).await {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            assert_eq!(server.read(&cx, &mut [0; 5]).await?, 0);
            let error = client.write(&cx, b"more").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            let error = client.write(&cx, b"more").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            assert!(client.peer_addr().is_err());
        }
        Ok(())
    });
}

#[test]
fn a_connection_is_refused_once() {
    let program = async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
        let connected = TcpStream::connect(&cx, "127.0.0.1:80").await;
        assert!(connected.is_ok(), "no connection");
        listener.accept(&cx).await.map(drop)
    };
    let found = found(Faults::none().refusals(1), program);
    let [words] = &found.words[..] else { panic!("{found}") };
    assert!(words.ends_with("to 127.0.0.1:80 was refused"), "{words}");
    survives(Faults::none().refusals(1), async |cx: Cx| {
        let _listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
        if let Err(error) = TcpStream::connect(&cx, "127.0.0.1:80").await {
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            TcpStream::connect(&cx, "127.0.0.1:80").await?;
        }
        Ok(())
    });
}

/// Who waits for a peer that is gone without a word waits for ever, unless it has a timeout.
#[test]
fn a_connection_goes_dead() {
    let found = found(Faults::none().half_opens(1), reads_all);
    assert_eq!(found.failure.finding.kind, Kind::Deadlock);
    let text = found.to_string();
    assert!(text.contains("waits for bytes from 127.0.0.1:"), "{text}");
    assert!(text.contains("the connection went dead, and nobody was told"), "{text}");
    survives(Faults::none().half_opens(1), async |cx: Cx| {
        let start = cx.now();
        let connected = pair(&cx).await;
        let (mut client, mut server) = match connected {
            Ok(pair) => pair,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::TimedOut);
                assert_eq!(cx.now() - start, 127.secs());
                return Ok(());
            }
        };
        client.write_all(&cx, b"hello").await?;
        let mut buffer = [0; 5];
        let read = cx.timeout(5.secs(), async |cx| server.read(cx, &mut buffer).await).await;
        if read.is_err() {
            assert_eq!(cx.now() - start, 5.secs());
            let error = client.read(&cx, &mut [0; 5]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert_eq!(cx.now() - start, 900.secs());
        }
        Ok(())
    });
}

#[test]
fn a_segment_comes_late() {
    let program = async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        let mut buffer = [0; 5];
        let read = cx.timeout(100.millis(), async |cx| server.read(cx, &mut buffer).await).await;
        assert_eq!(read.ok(), Some(5), "a timeout");
        Ok(())
    };
    let found = found(Faults::none().delays(1), program);
    let [words] = &found.words[..] else { panic!("{found}") };
    assert!(words.ends_with("came 1s late"), "{words}");
    // What is late comes.
    survives(Faults::none().delays(2), reads_all);
}

#[test]
fn nothing_gets_through_one_way_for_a_while() {
    let both_ways = async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        cx.scope(async |s: Scope<io::Error>| {
            s.spawn(async move |cx: Cx| {
                let mut buffer = [0; 2];
                server.read_exact(&cx, &mut buffer).await?;
                server.write_all(&cx, &buffer).await?;
                Ok(())
            });
            let start = cx.now();
            client.write_all(&cx, b"hi").await?;
            let mut buffer = [0; 2];
            client.read_exact(&cx, &mut buffer).await?;
            let took = cx.now() - start;
            assert!([0.secs(), 1.secs(), 60.secs()].contains(&took), "{took:?}");
            assert!(took < 60.secs(), "it took a minute");
            Ok(())
        })
        .await
    };
    let found = found(Faults::none().partitions(1), both_ways);
    let [words] = &found.words[..] else { panic!("{found}") };
    assert!(words.starts_with("for 60s nothing got "), "{words}");
    survives(Faults::none().partitions(1), reads_all);
}

#[test]
fn there_is_no_descriptor_to_spare() {
    let program = async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
        let _client = TcpStream::connect(&cx, "127.0.0.1:80").await?;
        let accepted = listener.accept(&cx).await;
        assert!(accepted.is_ok(), "the server ends");
        Ok(())
    };
    let found = found(Faults::none().accept_errors(1), program);
    let words = "no descriptor to spare for a connection to 127.0.0.1:80 in poll 2 of `main`";
    assert_eq!(found.words, [words]);
    survives(Faults::none().accept_errors(1), async |cx: Cx| {
        let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
        let _client = TcpStream::connect(&cx, "127.0.0.1:80").await?;
        if let Err(io::Error::Io(error)) = listener.accept(&cx).await {
            let failure = asx_net::AcceptFailure::of(&error);
            assert_eq!(failure, asx_net::AcceptFailure::Exhausted);
            listener.accept(&cx).await?;
        }
        Ok(())
    });
}

/// Numbers that were sent, in the order in which they come.
async fn numbers(cx: &Cx, count: u8) -> io::Result<Vec<u8>> {
    let receiver = UdpSocket::bind(cx, "127.0.0.1:53").await?;
    let sender = UdpSocket::bind(cx, "127.0.0.1:0").await?;
    for number in 0..count {
        sender.send_to(cx, &[number], receiver.local_addr()?).await?;
    }
    let mut come = Vec::new();
    let mut buffer = [0];
    while let Ok((1, _)) =
        cx.timeout(10.secs(), async |cx| receiver.recv_from(cx, &mut buffer).await).await
    {
        come.push(buffer[0]);
    }
    Ok(come)
}

#[test]
fn datagrams_are_lost_come_twice_and_out_of_order() {
    let come = async |cx: Cx| {
        assert_eq!(numbers(&cx, 3).await?, [0, 1, 2]);
        Ok(())
    };
    let words = |faults| {
        let mut found = found(faults, come);
        assert_eq!(found.words.len(), 1, "{found}");
        let from = found.words[0].find("from ").unwrap_or(0);
        let to = found.words[0].find("to 127.0.0.1:53").unwrap_or(0);
        found.words[0].replace_range(from..to, "");
        found.words.remove(0)
    };
    assert_eq!(words(Faults::none().drops(1)), "the 1st datagram to 127.0.0.1:53 was lost");
    assert_eq!(words(Faults::none().duplicates(1)), "the 1st datagram to 127.0.0.1:53 came twice");
    let reordered = words(Faults::none().reorders(1));
    assert_eq!(reordered, "the 1st datagram to 127.0.0.1:53 came after the 2nd");
    static RUNS: AtomicU32 = AtomicU32::new(0);
    survives(Faults::none().drops(1).duplicates(1).reorders(1), async |cx: Cx| {
        let come = numbers(&cx, 2).await?;
        let all = [&[0, 1][..], &[1], &[0], &[0, 1, 0], &[0, 1, 1], &[1, 0], &[1, 1], &[0, 0]];
        assert!(all.contains(&&come[..]) || come.len() <= 3, "{come:?}");
        RUNS.fetch_add(u32::from(come != [0, 1]), Relaxed);
        Ok(())
    });
    assert!(RUNS.load(Relaxed) > 5);
}

#[test]
fn a_name_is_not_found_for_the_time_being() {
    let program = async |cx: Cx| {
        let addresses = lookup_host(&cx, "db:5432").await;
        assert!(addresses.is_ok(), "no address");
        Ok::<_, io::Error>(())
    };
    let check = check(program).host("db", [10, 0, 0, 7]).network(Faults::none().lookup_failures(1));
    let found = failure(check.run());
    assert_eq!(found.words, ["a failed lookup of `db` in poll 1 of `main`"]);
}

/// The trace of the run, and the page that is made of it, have it too.
#[test]
fn what_went_wrong_is_on_the_page() {
    let found = found(Faults::none().resets(1), async |cx: Cx| {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        let read = server.read(&cx, &mut [0; 5]).await;
        assert!(read.is_ok(), "no hello");
        Ok(())
    });
    let trace = found.trace.as_ref().expect("a trace");
    let marks = trace.records.iter().filter_map(|record| match record {
        Record::Mark(mark) => Some((mark.severity.as_str(), mark.text.as_str())),
        _ => None,
    });
    let marks: Vec<_> = marks.collect();
    assert_eq!(marks[0], ("network", found.words[0].as_str()), "{marks:?}");
    assert_eq!(marks[1].0, "failure", "{marks:?}");
    let folder = std::env::temp_dir().join(format!("asx-lab-net-{}", std::process::id()));
    let files = asx_lab::report::write(&found, &folder).expect("files");
    let page = files.iter().find(|path| path.extension().is_some_and(|it| it == "html"));
    let page = std::fs::read_to_string(page.expect("a page")).expect("a page");
    assert!(page.contains("was lost; the connection was reset"), "no words on the page");
    std::fs::remove_dir_all(folder).expect("it is there");
}

/// Of all that went wrong in a run only what matters is left.
#[test]
fn faults_that_do_not_matter_are_left_out() {
    let program = async |cx: Cx| {
        let mut sum = 0;
        for _ in 0..3 {
            let (mut client, mut server) = pair(&cx).await?;
            client.write_all(&cx, b"abcdef").await?;
            client.shutdown(std::net::Shutdown::Write)?;
            let mut count = 0;
            let mut reads = 0;
            loop {
                match server.read(&cx, &mut [0; 10]).await? {
                    0 => break,
                    some => (count, reads) = (count + some, reads + 1),
                }
            }
            assert_eq!(count, 6);
            sum += reads;
        }
        assert!(sum < 5, "two segments in pieces");
        Ok::<_, io::Error>(())
    };
    let program = check(program).how(How::Random).grain(Grain::Poll);
    let report = program.network(Faults::all().half_opens(0)).run();
    let found = failure(report);
    assert_eq!(found.words.len(), 2, "{found}");
    assert!(found.words.iter().all(|words| words.contains("bytes came first")), "{found}");
}

/// The same faults with workers that go by the law, at the grain of operations, and by every
/// strategy.
#[test]
fn every_strategy_knows_faults() {
    let ways = [How::Mixed, How::Random, How::Uniform, How::Pos, How::Pct(3), How::Dfs, How::Dpor];
    for how in ways {
        let report = check(reads_once).how(how).network(Faults::all()).run();
        assert!(report.failure.is_some(), "{how}: {report}");
    }
    for workers in [1, 2] {
        let check = check(reads_once).workers(workers).network(Faults::none().chunks(1));
        let found = failure(check.run());
        let again = failure(check.replay(&found.token).expect("a token"));
        assert_eq!(again.failure, found.failure);
        let check = asx_lab::check(reads_all).workers(workers).network(Faults::none().chunks(1));
        let report = check.run();
        assert!(report.failure.is_none(), "{report}");
    }
}

/// The lines that a failing program has about its sockets.
fn socket_lines(report: Report) -> Vec<String> {
    let found = failure(report);
    assert_eq!(found.failure.finding.kind, Kind::Error, "{found}");
    found.failure.finding.detail.lines().map(str::to_owned).collect()
}

#[test]
fn an_error_of_a_closed_connection_names_the_socket_and_the_side_that_closed() {
    let program = async |cx: Cx| {
        cx.scope(async |s: Scope<io::Error>| {
            let listener = TcpListener::bind(&cx, "127.0.0.1:80").await?;
            s.task("server").spawn(async move |cx: Cx| {
                drop(listener.accept(&cx).await?);
                Ok(())
            });
            let mut client = TcpStream::connect(&cx, "127.0.0.1:80").await?;
            client.read_exact(&cx, &mut [0; 5]).await?;
            Ok(())
        })
        .await
    };
    let lines = socket_lines(check(program).run());
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.starts_with("`main`: read at crates/lab/tests/net/faults.rs:"), "{line}");
    let result = " (`client.read_exact`) reached the end of the stream on socket 127.0.0.1:";
    assert!(line.contains(result), "{line}");
    let cause = ", peer 127.0.0.1:80: the peer closed the connection, in `server (main/1)`";
    assert!(line.ends_with(cause), "{line}");
}

#[test]
fn an_error_after_a_shutdown_names_this_side() {
    let program = async |cx: Cx| -> io::Result<()> {
        let (mut client, _server) = pair(&cx).await?;
        client.shutdown(std::net::Shutdown::Write)?;
        client.write_all(&cx, b"more").await?;
        Ok(())
    };
    let lines = socket_lines(check(program).run());
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.contains(" failed with BrokenPipe on socket 127.0.0.1:"), "{line}");
    assert!(line.ends_with(": this side closed the connection, in `main`"), "{line}");
}

#[test]
fn an_error_without_a_listener_names_the_peer() {
    let program = async |cx: Cx| TcpStream::connect(&cx, "127.0.0.1:81").await.map(drop);
    let lines = socket_lines(check(program).run());
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(line.starts_with("`main`: connect failed with ConnectionRefused on socket "), "{line}");
    assert!(line.ends_with(", peer 127.0.0.1:81: nothing listens there"), "{line}");
}

#[test]
fn an_error_of_a_fault_names_the_network() {
    let program = async |cx: Cx| -> io::Result<()> {
        let (mut client, mut server) = pair(&cx).await?;
        client.write_all(&cx, b"hello").await?;
        // A fault excuses an error, and no panic
        server.read_exact(&cx, &mut [0; 5]).await.expect("all five bytes");
        Ok(())
    };
    let found = failure(check(program).network(Faults::none().resets(1)).run());
    let detail = &found.failure.finding.detail;
    assert!(detail.contains(" (`server.read_exact`) failed with ConnectionReset on"), "{found}");
    assert!(detail.contains(": a fault of the network broke the connection\n"), "{found}");
}
