//! tokio's server: a task for each connection.

use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::{BLOCKED, BUFFER, Reading, SETTLE, Serve};

pub(super) struct Tokio<const WORKERS: usize>;

impl<const WORKERS: usize> Tokio<WORKERS> {
    fn runtime() -> Runtime {
        let mut builder =
            if WORKERS == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        builder.worker_threads(WORKERS).enable_all().build().expect("a runtime")
    }
}

async fn serve(listener: TcpListener) -> ! {
    listener.set_nonblocking(true).expect("a listener that does not block");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        tokio::spawn(echo(stream));
    }
}

async fn echo(mut stream: TcpStream) {
    let mut buffer = [0; BUFFER];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

impl<const WORKERS: usize> Serve for Tokio<WORKERS> {
    fn echo(listener: TcpListener) -> ! {
        // In a task, as the others: `block_on` is no worker.
        Self::runtime().block_on(async {
            tokio::spawn(serve(listener)).await.expect("no panic");
        });
        unreachable!("a server does not end")
    }

    fn echo_beside_a_block(listener: TcpListener) -> ! {
        Self::runtime().block_on(async {
            let server = tokio::spawn(serve(listener));
            tokio::spawn(async {
                loop {
                    std::thread::sleep(BLOCKED);
                    tokio::time::sleep(Duration::from_secs(1) - BLOCKED).await;
                }
            });
            server.await.expect("no panic");
        });
        unreachable!("a server does not end")
    }

    fn cancel_reads(tasks: u32) -> f64 {
        Self::runtime().block_on(async move {
            let measured = tokio::spawn(async move {
                let mut children = JoinSet::new();
                let mut ends = Vec::new();
                let mut sockets = Vec::new();
                let reading = Reading::default();
                for _ in 0..tasks {
                    let (near, far) = UnixStream::pair().expect("a pair of sockets");
                    ends.push(far);
                    near.set_nonblocking(true).expect("a socket that does not block");
                    let near = tokio::net::UnixStream::from_std(near).expect("a socket");
                    let near = Arc::new(near);
                    sockets.push(near.clone());
                    let reading = reading.clone();
                    children.spawn(async move {
                        reading.hit();
                        near.readable().await?;
                        near.try_read(&mut [0; 8]).map(drop)
                    });
                }
                while reading.count() < tasks {
                    tokio::task::yield_now().await;
                }
                for _ in 0..SETTLE {
                    tokio::task::yield_now().await;
                }
                let clock = Instant::now();
                children.abort_all();
                while let Some(end) = children.join_next().await {
                    assert!(end.is_err_and(|end| end.is_cancelled()));
                }
                clock.elapsed().as_nanos() as f64 / f64::from(tasks)
            });
            measured.await.expect("no panic")
        })
    }
}
