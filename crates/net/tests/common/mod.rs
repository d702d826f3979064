//! Helpers of the socket tests. All connections are on the loopback interface.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::future::Future;
use std::time::Duration;

use asx_native::Runtime;
use asx_net::{Cx, TcpListener, TcpStream, io};
use asx_runtime::Cancelled;

/// Runs a test with one worker and with two. A test that hangs fails after two minutes.
pub(crate) fn on_each<T>(test: impl Fn(Cx) -> T)
where
    T: Future<Output = io::Result<()>>,
{
    for workers in [1, 2] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let ended = runtime.block_on(async |cx: Cx| {
            cx.timeout(Duration::from_secs(120), |cx: &Cx| test(cx.clone())).await
        });
        if let Err(error) = ended {
            panic!("with {workers} workers: {error}");
        }
    }
}

/// Returns the two ends of a TCP connection: the client and the server.
pub(crate) async fn pair(cx: &Cx) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
    let client = TcpStream::connect(cx, listener.local_addr()?).await?;
    let (server, from) = listener.accept(cx).await?;
    assert_eq!(from, client.local_addr()?);
    Ok((client, server))
}

/// Returns the cancellation of an operation.
pub(crate) fn cancelled<T: std::fmt::Debug>(ended: io::Result<T>) -> Cancelled {
    match ended {
        Err(io::Error::Cancelled(cancelled)) => cancelled,
        other => panic!("not cancelled: {other:?}"),
    }
}

/// A temporary directory for the sockets of one test. Dropping it removes the directory.
pub(crate) struct Directory(std::path::PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("asx-net-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        let path = self.0.join(name);
        let _ = std::fs::remove_file(&path);
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
