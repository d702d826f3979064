//! asx's server: a task for each connection.

use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use asx_native::Runtime;
use asx_net::io::Error;
use asx_net::{AsyncFd, TcpStream};
use asx_runtime::{Cx, Scope};

use super::{BLOCKED, BUFFER, Reading, SETTLE, Serve};

pub(super) struct Asx<const WORKERS: usize>;

async fn serve(cx: Cx, s: Scope<Error>, listener: TcpListener) -> Result<(), Error> {
    let listener = asx_net::TcpListener::from_std(&cx, listener)?;
    loop {
        let (stream, _) = listener.accept(&cx).await?;
        s.spawn(move |cx| echo(cx, stream));
    }
}

async fn echo(cx: Cx, mut stream: TcpStream) -> Result<(), Error> {
    let mut buffer = [0; BUFFER];
    while let Ok(count @ 1..) = stream.read(&cx, &mut buffer).await {
        if stream.write_all(&cx, &buffer[..count]).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Runs `body` in a task: the thread in `block_on` is no worker.
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
            Ok::<_, Error>(task.await.expect("no error"))
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
            s.spawn::<_, _, ()>(async |cx: Cx| {
                loop {
                    std::thread::sleep(BLOCKED);
                    cx.sleep(Duration::from_secs(1) - BLOCKED).await?;
                }
            });
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
            let cancelled = cx
                .scope(async |s: Scope<Error>| {
                    for _ in 0..tasks {
                        let (near, far) = UnixStream::pair()?;
                        near.set_nonblocking(true)?;
                        ends.push(far);
                        let near = Arc::new(AsyncFd::new(&cx, near)?);
                        sockets.push(near.clone());
                        let reading = reading.clone();
                        s.spawn(async move |cx: Cx| {
                            reading.hit();
                            let ready = near.readable(&cx).await?;
                            ready.clear_ready();
                            near.readable(&cx).await.map(drop)
                        });
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
                .await;
            drop(cancelled);
            Ok(clock.elapsed().as_nanos() as f64 / f64::from(tasks))
        })
    }
}
