//! A process without free descriptors; a child process of the test.

#![cfg(unix)]

mod common;

use std::fs::File;
use std::process::Command;
use std::sync::{Arc, Mutex};

use asx_net::{Cx, ServeEvent, Server, TcpListener, TcpStream, io};
use asx_runtime::channel;
use common::on_each;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The environment variable of the child process.
const CHILD: &str = "ASX_NET_FEW_DESCRIPTORS";

#[test]
fn server_recovers_after_descriptors_ran_out() {
    if std::env::var_os(CHILD).is_some() {
        let limit = Rlimit { current: Some(128), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, limit).unwrap();
        on_each(exhausts);
        return;
    }
    let test = "server_recovers_after_descriptors_ran_out";
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{output}\n{}", String::from_utf8_lossy(&child.stderr));
    assert!(output.contains("1 passed"), "{output}");
}

async fn exhausts(cx: Cx) -> io::Result<()> {
    let listener = TcpListener::bind(&cx, "127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (report_event, mut events) = channel::bounded(8);
    cx.scope(async |s| {
        let server = s.spawn(async move |cx: Cx| {
            let server = Server::new(listener).on_event(move |event| {
                report_event.try_send(matches!(event, ServeEvent::Exhausted(_))).unwrap();
            });
            let echo = |cx: Cx, mut stream: TcpStream, _| async move {
                let (mut reader, mut writer) = stream.split();
                io::copy(&cx, &mut reader, &mut writer).await.map(drop)
            };
            server.serve(&cx, echo).await
        });
        // Takes all descriptors except one for the client. The server has none left to accept it.
        let fillers = Arc::new(Mutex::new(Vec::new()));
        while let Ok(file) = File::open("/dev/null") {
            fillers.lock().unwrap().push(file);
        }
        drop(fillers.lock().unwrap().pop());
        let mut client = TcpStream::connect(&cx, address).await?;
        assert!(events.recv(&cx).await.unwrap(), "exhausted");
        // Another connect fails with the error of the operating system.
        let refused = TcpStream::connect(&cx, address).await.unwrap_err();
        let io::Error::Io(refused) = refused else { panic!("{refused}") };
        assert_eq!(refused.raw_os_error(), Some(libc::EMFILE));

        fillers.lock().unwrap().clear();
        assert!(!events.recv(&cx).await.unwrap(), "recovered");
        client.write_all(&cx, b"still here").await?;
        let mut answer = [0; 10];
        client.read_exact(&cx, &mut answer).await?;
        assert_eq!(&answer, b"still here");
        drop(client);
        s.stop();
        let report = server.await.unwrap();
        assert_eq!((report.accepted, report.completed, report.exhaustions), (1, 1, 1));
        Ok(())
    })
    .await
}
