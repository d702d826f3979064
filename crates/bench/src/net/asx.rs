//! asx's server: a task for each connection.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use asx_native::Runtime;
use asx_runtime::net::{Direction, Socket, WaitSlot};
use asx_runtime::{Cancelled, Cx, Operation, Scope};

use super::{BLOCKED, BUFFER, Reading, SETTLE, Serve};

pub(super) struct Asx<const WORKERS: usize>;

#[derive(Debug)]
enum Error {
    Cancelled,
    Io,
}

impl From<Cancelled> for Error {
    fn from(_: Cancelled) -> Self {
        Error::Cancelled
    }
}

impl From<io::Error> for Error {
    fn from(_: io::Error) -> Self {
        Error::Io
    }
}

async fn read(cx: &Cx, socket: &dyn Socket, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut slot = WaitSlot::default();
    let done = Operation::run(cx, |context| {
        loop {
            let seen = match ready!(socket.poll_ready(Direction::Read, &mut slot, context.waker()))
            {
                Ok(seen) => seen,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match socket.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.clear_ready(Direction::Read, seen);
                }
                Ok(count) if count > 0 && count < buffer.len() => {
                    socket.clear_ready(Direction::Read, seen);
                    return Poll::Ready(Ok(count));
                }
                done => return Poll::Ready(done),
            }
        }
    })
    .await;
    Ok(done??)
}

async fn write(cx: &Cx, socket: &dyn Socket, bytes: &[u8]) -> Result<usize, Error> {
    let mut slot = WaitSlot::default();
    let done = Operation::run(cx, |context| {
        loop {
            let seen = match ready!(socket.poll_ready(Direction::Write, &mut slot, context.waker()))
            {
                Ok(seen) => seen,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match socket.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.clear_ready(Direction::Write, seen);
                }
                done => return Poll::Ready(done),
            }
        }
    })
    .await;
    Ok(done??)
}

async fn accept(cx: &Cx, socket: &dyn Socket) -> Result<Arc<dyn Socket>, Error> {
    let mut slot = WaitSlot::default();
    let done = Operation::run(cx, |context| {
        loop {
            let seen = match ready!(socket.poll_ready(Direction::Read, &mut slot, context.waker()))
            {
                Ok(seen) => seen,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match socket.accept() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.clear_ready(Direction::Read, seen);
                }
                done => return Poll::Ready(done),
            }
        }
    })
    .await;
    Ok(done??.0)
}

async fn serve(cx: Cx, s: Scope<Error>, listener: TcpListener) -> Result<(), Error> {
    let listener = cx.net().expect("a network").adopt(listener.into())?;
    loop {
        let stream = accept(&cx, &*listener).await?;
        drop(s.spawn(move |cx| echo(cx, stream)));
    }
}

async fn echo(cx: Cx, stream: Arc<dyn Socket>) -> Result<(), Error> {
    let mut buffer = [0; BUFFER];
    while let Ok(count @ 1..) = read(&cx, &*stream, &mut buffer).await {
        if write(&cx, &*stream, &buffer[..count]).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn run<const WORKERS: usize, T: Send + 'static, B>(
    body: impl FnOnce(Cx, Scope<Error>) -> B + Send + 'static,
) -> T
where
    B: Future<Output = Result<T, Error>> + Send + 'static,
{
    let runtime = Runtime::builder().workers(WORKERS).build().expect("a runtime");
    let done = runtime.block_on(async |cx: Cx| {
        cx.scope(async |s: Scope<Error>| {
            let inner = s.clone();
            let task = s.spawn(move |cx| body(cx, inner));
            task.await.map_err(|_| Error::Cancelled)
        })
        .await
    });
    done.expect("no error")
}

impl<const WORKERS: usize> Serve for Asx<WORKERS> {
    fn echo(listener: TcpListener) -> ! {
        run::<WORKERS, (), _>(move |cx, s| serve(cx, s, listener));
        unreachable!("a server does not end")
    }

    fn echo_beside_a_block(listener: TcpListener) -> ! {
        run::<WORKERS, (), _>(move |cx, s| {
            drop(s.spawn::<_, _, ()>(async |cx: Cx| {
                loop {
                    std::thread::sleep(BLOCKED);
                    cx.sleep(Duration::from_secs(1) - BLOCKED).await?;
                }
            }));
            serve(cx, s, listener)
        });
        unreachable!("a server does not end")
    }

    fn cancel_reads(tasks: u32) -> f64 {
        run::<WORKERS, f64, _>(move |cx, _| async move {
            let mut ends = Vec::new();
            let mut sockets = Vec::new();
            let reading = Reading::default();
            let mut clock = Instant::now();
            cx.scope(async |s: Scope<Error>| {
                for _ in 0..tasks {
                    let (near, far) = UnixStream::pair()?;
                    ends.push(far);
                    let near = cx.net().expect("a network").adopt(near.into())?;
                    sockets.push(near.clone());
                    let reading = reading.clone();
                    drop(s.spawn(async move |cx: Cx| {
                        reading.hit();
                        read(&cx, &*near, &mut [0; 8]).await.map(drop)
                    }));
                }
                while reading.count() < tasks {
                    cx.yield_now().await;
                }
                for _ in 0..SETTLE {
                    cx.yield_now().await;
                }
                clock = Instant::now();
                s.cancel("done with");
                Ok::<(), Error>(())
            })
            .await
            .ok();
            Ok(clock.elapsed().as_nanos() as f64 / f64::from(tasks))
        })
    }
}
