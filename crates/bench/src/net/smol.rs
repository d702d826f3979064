//! smol's server: async-io on async-executor, a task for each connection.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_executor::Executor;
use async_io::{Async, Timer, block_on};
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};

use super::{BLOCKED, BUFFER, Reading, SETTLE, Serve};

pub(super) struct Smol<const THREADS: usize>;

impl<const THREADS: usize> Smol<THREADS> {
    /// Runs `body` on the executor's threads.
    fn run<T: Send + 'static>(
        body: impl Future<Output = T> + Send + 'static,
        executor: &'static Executor<'static>,
    ) -> T {
        for _ in 1..THREADS {
            std::thread::spawn(|| block_on(executor.run(future::pending::<()>())));
        }
        let task = executor.spawn(body);
        block_on(executor.run(task))
    }
}

fn executor() -> &'static Executor<'static> {
    Box::leak(Box::new(Executor::new()))
}

async fn serve(listener: TcpListener, executor: &'static Executor<'static>) {
    let listener = Async::new(listener).expect("a listener");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        executor.spawn(echo(stream)).detach();
    }
}

async fn echo(mut stream: Async<TcpStream>) {
    let mut buffer = [0; BUFFER];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

impl<const THREADS: usize> Serve for Smol<THREADS> {
    fn echo(listener: TcpListener) -> ! {
        let executor = executor();
        Self::run(serve(listener, executor), executor);
        unreachable!("a server does not end")
    }

    fn echo_beside_a_block(listener: TcpListener) -> ! {
        let executor = executor();
        let block = async {
            loop {
                std::thread::sleep(BLOCKED);
                Timer::after(Duration::from_secs(1) - BLOCKED).await;
            }
        };
        let both = async move {
            executor.spawn(block).detach();
            serve(listener, executor).await;
        };
        Self::run(both, executor);
        unreachable!("a server does not end")
    }

    fn cancel_reads(tasks: u32) -> f64 {
        let executor = executor();
        let body = async move {
            let mut ends = Vec::new();
            let mut sockets = Vec::new();
            let reading = Reading::default();
            let mut children = Vec::new();
            for _ in 0..tasks {
                let (near, far) = UnixStream::pair().expect("a pair of sockets");
                ends.push(far);
                let near = Arc::new(Async::new(near).expect("a socket"));
                sockets.push(near.clone());
                let reading = reading.clone();
                let read = async move {
                    reading.hit();
                    near.readable().await
                };
                children.push(executor.spawn(read));
            }
            while reading.count() < tasks {
                future::yield_now().await;
            }
            for _ in 0..SETTLE {
                future::yield_now().await;
            }
            let clock = Instant::now();
            for child in children {
                assert!(child.cancel().await.is_none());
            }
            clock.elapsed().as_nanos() as f64 / f64::from(tasks)
        };
        Self::run(body, executor)
    }
}
