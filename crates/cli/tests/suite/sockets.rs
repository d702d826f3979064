//! Programs with sockets leave traces in which one reads what was done with them: on threads and
//! in the lab.

use crate::folder;

use std::process::Command;

use asx::io;
use asx::journal::Recorded;
use asx::net::{TcpListener, TcpStream};
use asx::prelude::*;
use asx_trace::{Class, Codec, End, Header, Label, Record, Writer};
use folder::Folder;

/// A client that is refused, one that is answered, and a server that gives up a wait.
async fn talk(cx: &Cx) -> io::Result<()> {
    let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
    let at = listener.local_addr()?;
    let taken = TcpListener::bind(cx, at).await;
    assert!(taken.is_err());
    let mut client = TcpStream::connect(cx, at).await?;
    let (mut server, _) = listener.accept(cx).await?;
    let nobody = TcpStream::connect(cx, client.local_addr()?).await;
    assert!(nobody.is_err());
    let waited = cx.timeout(1.millis(), async |cx| server.read(cx, &mut [0; 8]).await).await;
    assert!(waited.is_err());
    client.write_all(cx, b"hello").await?;
    let mut got = [0; 5];
    server.read_exact(cx, &mut got).await?;
    client.shutdown(std::net::Shutdown::Write)?;
    assert_eq!(server.read(cx, &mut got).await?, 0);
    Ok(())
}

fn asx(arguments: &[&str]) -> (String, bool) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_asx")).args(arguments).output().expect("asx runs");
    let mut said = String::from_utf8(output.stdout).expect("text");
    said.push_str(&String::from_utf8(output.stderr).expect("text"));
    (said, output.status.success())
}

fn path(folder: &Folder, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

fn write(folder: &Folder, name: &str, header: &Header, records: &[Record]) -> String {
    let mut writer = Writer::new(Vec::new(), Codec::Binary, header).expect("a writer");
    records.iter().for_each(|record| writer.write(record).expect("written"));
    let path = path(folder, name);
    std::fs::write(&path, writer.finish().expect("finished")).expect("a file");
    path
}

/// The lines of `asx trace show` that tell of sockets, without their numbers and times, and with
/// the ports by their names: `S` is the server's, `C` the client's.
fn lines(trace: &str) -> Vec<String> {
    let (said, well) = asx(&["trace", "show", trace]);
    assert!(well, "{said}");
    let is_of_sockets = |line: &&str| line.contains(" io_") || line.contains(" socket_");
    let found: Vec<&str> = said.lines().filter(is_of_sockets).collect();
    let port = |line: &str| line.rsplit("127.0.0.1:").next().expect("a port").to_owned();
    let server = port(found[0]);
    let client = found.iter().find(|line| line.contains("is connected"));
    let client = client.expect("a connect").split("127.0.0.1:").nth(1).expect("a port");
    let client = client.split(' ').next().expect("a port").to_owned();
    let plain = |line: &str| {
        let line = line.split_once(": ").expect("words").1;
        line.replace(&format!("127.0.0.1:{server}"), "S")
            .replace(&format!("127.0.0.1:{client}"), "C")
    };
    found.into_iter().map(plain).collect()
}

/// What is told of the program on either host, in this order.
const TOLD: [&str; 14] = [
    "opens listener S",
    "listen fails at S: addr_in_use",
    "is connected: C -> S",
    "accepts S -> C from listener S",
    "connect fails at ",
    "waits to read from S -> C",
    "no longer waits to read from S -> C",
    "writes 5 bytes to C -> S",
    " from S -> C",
    "writes no more to C -> S",
    "reads 0 bytes from S -> C",
    "closes ",
    "closes ",
    "closes ",
];

fn tells_all(trace: &str) {
    let lines = lines(trace);
    let mut rest = lines.iter();
    for told in TOLD {
        let mut found = rest.by_ref().filter(|line| line.contains(told));
        assert!(found.next().is_some(), "`{told}` is not told, or not in its place: {lines:#?}");
    }
    let (said, well) = asx(&["trace", "verify", "--strict", trace]);
    assert!(well && said.contains("lawful"), "{said}");
}

fn draws_all(folder: &Folder, trace: &str) {
    let page = path(folder, "page.html");
    let (said, well) = asx(&["trace", "report", "--html", &page, trace]);
    assert!(well, "{said}");
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("\"io_done\"") && page.contains("listener 127.0.0.1:"));
    let viewer = path(folder, "viewer.json");
    let (said, well) = asx(&["trace", "export", "--perfetto", &viewer, trace]);
    assert!(well, "{said}");
    let viewer = std::fs::read_to_string(viewer).expect("a file");
    assert!(viewer.contains("writes 5 bytes to 127.0.0.1:") && viewer.contains("\"sockets\""));
}

#[test]
fn what_threads_do_with_sockets_is_in_the_trace() {
    let folder = Folder::new("sockets_native");
    for workers in [1, 2] {
        let runtime = asx::Runtime::builder().workers(workers).whole_journal(10_000).build();
        let runtime = runtime.expect("a runtime");
        let program = runtime.block_on(async |cx: Cx| talk(&cx).await);
        program.expect("it runs");
        let recorded = runtime.journal().expect("it records");
        let label = |(number, text): &(u64, String)| {
            let text = text.clone();
            Record::from(Label { class: Class::Socket, number: *number, text })
        };
        let mut records: Vec<Record> = recorded.sockets.iter().map(label).collect();
        records.extend(recorded.events.iter().map(|event| Record::from(*event)));
        let Recorded { recorded, lost, digest, .. } = recorded;
        records.push(End { recorded, lost, digest, choices: 0 }.into());
        // The thread in `block_on` counts as one.
        let header = Header { workers: workers as u64 + 1, ..Header::new("talk", "native") };
        let trace = write(&folder, "native.asxt", &header, &records);
        tells_all(&trace);
        draws_all(&folder, &trace);
    }
}

#[test]
fn what_the_lab_does_with_sockets_is_in_the_trace() {
    let folder = Folder::new("sockets_lab");
    let program = asx_lab::check(async |cx: Cx| talk(&cx).await).name("talk");
    for seed in 0..20 {
        let trace = program.record(seed);
        assert_eq!(trace, program.record(seed), "a run is the same with the same seed");
        let path = write(&folder, "lab.asxt", &trace.header, &trace.records);
        tells_all(&path);
        draws_all(&folder, &path);
    }
}
