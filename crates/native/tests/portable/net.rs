//! Sockets at the host interface, on real workers: sleep in the reactor, and wakeups.

#![cfg(unix)]

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Poll, ready};
use std::time::Duration;

use asx_native::Runtime;
use asx_runtime::net::{Address, Direction, Socket, SocketSetup, WaitSlot};
use asx_runtime::{Activity, Cancelled, Cx, Operation, Scope};

#[derive(Debug)]
#[allow(dead_code, reason = "shown when a test fails")]
enum Error {
    Cancelled(Cancelled),
    Io(io::Error),
}

impl From<Cancelled> for Error {
    fn from(cancelled: Cancelled) -> Self {
        Error::Cancelled(cancelled)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

/// Retries until the operation does not block, as the interface prescribes.
async fn io<T>(
    cx: &Cx,
    socket: &dyn Socket,
    direction: Direction,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Result<T, Error> {
    let mut slot = WaitSlot::default();
    let done = Operation::run(cx, |context| {
        loop {
            let seen = match ready!(socket.poll_ready(direction, &mut slot, context.waker())) {
                Ok(seen) => seen,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    socket.clear_ready(direction, seen);
                }
                done => return Poll::Ready(done),
            }
        }
    })
    .await;
    socket.leave(direction, &mut slot);
    Ok(done??)
}

async fn read(cx: &Cx, socket: &dyn Socket, buffer: &mut [u8]) -> Result<usize, Error> {
    io(cx, socket, Direction::Read, || socket.read(buffer)).await
}

async fn write(cx: &Cx, socket: &dyn Socket, mut bytes: &[u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        let count = io(cx, socket, Direction::Write, || socket.write(bytes)).await?;
        bytes = &bytes[count..];
    }
    Ok(())
}

async fn connect(cx: &Cx, to: SocketAddr) -> Result<Arc<dyn Socket>, Error> {
    let net = cx.net().expect("a network");
    let socket = net.connect(&to.into(), &SocketSetup::default())?;
    io(cx, &*socket, Direction::Write, || match socket.take_error()? {
        Some(error) => Err(error),
        // The initial readiness does not mean that the socket is connected.
        None if socket.peer_address().is_err() => Err(io::ErrorKind::WouldBlock.into()),
        None => Ok(()),
    })
    .await?;
    Ok(socket)
}

fn listen(cx: &Cx) -> (Arc<dyn Socket>, SocketAddr) {
    let any = Address::Inet("127.0.0.1:0".parse().unwrap());
    let listener = cx.net().unwrap().listen(&any, &SocketSetup::default()).unwrap();
    let at = listener.local_address().unwrap().inet().unwrap();
    (listener, at)
}

async fn echo(cx: Cx, socket: Arc<dyn Socket>) -> Result<(), Error> {
    let mut buffer = [0; 256];
    loop {
        let count = read(&cx, &*socket, &mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        write(&cx, &*socket, &buffer[..count]).await?;
    }
}

async fn serve(cx: Cx, s: Scope<Error>, listener: Arc<dyn Socket>) -> Result<(), Error> {
    loop {
        let accepted = io(&cx, &*listener, Direction::Read, || listener.accept()).await;
        let (socket, _) = accepted?;
        s.spawn(move |cx| echo(cx, socket));
    }
}

fn on_each(test: impl Fn(&Runtime)) {
    for workers in [1, 2, 4] {
        test(&Runtime::builder().workers(workers).build().unwrap());
    }
}

#[test]
fn many_connections_echo_their_data() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (listener, at) = listen(&cx);
            cx.scope(async |s: Scope<Error>| {
                let inner = s.clone();
                let server = s.spawn(move |cx| serve(cx, inner, listener));
                let clients: Vec<_> = (0..20_u8)
                    .map(|n| {
                        s.spawn(async move |cx: Cx| {
                            let socket = connect(&cx, at).await?;
                            for round in 0..200_u8 {
                                let sent = [n, round, n ^ round];
                                write(&cx, &*socket, &sent).await?;
                                let mut came = Vec::new();
                                while came.len() < sent.len() {
                                    let mut buffer = [0; 3];
                                    let count = read(&cx, &*socket, &mut buffer).await?;
                                    came.extend_from_slice(&buffer[..count]);
                                }
                                assert_eq!(came, sent);
                            }
                            Ok(())
                        })
                    })
                    .collect();
                for client in clients {
                    client.await.unwrap();
                }
                server.cancel("enough");
                Ok(())
            })
            .await
            .unwrap();
        });
    });
}

/// The peers are threads: between any two steps all workers may be asleep, in the reactor or not.
#[test]
fn an_event_wakes_a_worker_inside_or_outside_the_reactor() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (listener, at) = listen(&cx);
            let peer = std::thread::spawn(move || {
                let mut stream = std::net::TcpStream::connect(at).unwrap();
                let mut buffer = [0];
                for n in 0..100 {
                    if n % 10 == 0 {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    stream.write_all(&[n]).unwrap();
                    stream.read_exact(&mut buffer).unwrap();
                    assert_eq!(buffer, [n]);
                }
            });
            cx.scope(async |s: Scope<Error>| {
                let (socket, _) =
                    io(&cx, &*listener, Direction::Read, || listener.accept()).await?;
                s.spawn(move |cx| echo(cx, socket)).await.unwrap();
                Ok(())
            })
            .await
            .unwrap();
            peer.join().unwrap();
        });
    });
}

/// A task that blocks its worker does not keep other tasks from reading.
#[test]
fn one_blocked_worker_does_not_stop_the_sockets() {
    let rt = Runtime::builder().workers(2).build().unwrap();
    rt.block_on(async |cx: Cx| {
        let (listener, at) = listen(&cx);
        let blocked = Arc::new(AtomicBool::new(true));
        let unblock = blocked.clone();
        cx.scope(async |s: Scope<Error>| {
            let server = s.spawn(async move |cx: Cx| {
                let (socket, _) =
                    io(&cx, &*listener, Direction::Read, || listener.accept()).await?;
                echo(cx, socket).await
            });
            let busy = blocked.clone();
            let hog = s.spawn(async move |_cx: Cx| {
                // Until the echo has returned: never, if that needs this worker.
                while busy.load(SeqCst) {
                    std::thread::yield_now();
                }
                Ok(())
            });
            let client = std::thread::spawn(move || {
                let mut stream = std::net::TcpStream::connect(at).unwrap();
                for n in 0..20 {
                    let mut buffer = [0];
                    stream.write_all(&[n]).unwrap();
                    stream.read_exact(&mut buffer).unwrap();
                    assert_eq!(buffer, [n]);
                }
                unblock.store(false, SeqCst);
            });
            hog.await.unwrap();
            client.join().unwrap();
            server.await.unwrap();
            Ok(())
        })
        .await
        .unwrap();
    });
}

/// Returns the number of wakeups of workers.
fn wakeups(rt: &Runtime) -> u64 {
    let metrics = rt.metrics();
    metrics.workers.iter().map(|worker| worker.parks + worker.watches + worker.ticks).sum()
}

/// Waits until no worker has woken for ten times the interval of its checks.
fn wait_until_quiet(rt: &Runtime) {
    for _ in 0..100 {
        let before = wakeups(rt);
        std::thread::sleep(Duration::from_millis(200));
        if wakeups(rt) == before {
            return;
        }
    }
    panic!("the idle workers keep waking: {:?}", rt.metrics());
}

/// When a worker then wakes for a task that blocks it, another worker sees the next event.
#[test]
fn an_idle_runtime_with_sockets_has_no_wakeups() {
    let rt = Runtime::builder().workers(4).build().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let rt = &rt;
    std::thread::scope(|threads| {
        let quiet = threads.spawn(move || {
            let at: SocketAddr = told.recv().unwrap();
            let mut hogged = std::net::TcpStream::connect(at).unwrap();
            let mut echoed = std::net::TcpStream::connect(at).unwrap();
            let mut buffer = [0];
            for _ in 0..3 {
                wait_until_quiet(rt);
                hogged.write_all(&[1]).unwrap();
                hogged.read_exact(&mut buffer).unwrap();
                // Its worker is blocked from now on.
                for n in 0..20 {
                    echoed.write_all(&[n]).unwrap();
                    echoed.read_exact(&mut buffer).unwrap();
                    assert_eq!(buffer, [n]);
                }
                hogged.write_all(&[2]).unwrap();
            }
        });
        rt.block_on(async |cx: Cx| {
            let (listener, at) = listen(&cx);
            tell.send(at).unwrap();
            cx.scope(async |s: Scope<Error>| {
                let accept = || listener.accept();
                let (hogged, _) = io(&cx, &*listener, Direction::Read, accept).await?;
                let (echoed, _) = io(&cx, &*listener, Direction::Read, accept).await?;
                s.spawn(async move |cx: Cx| {
                    let mut buffer = [0];
                    while read(&cx, &*hogged, &mut buffer).await? == 1 {
                        write(&cx, &*hogged, &buffer).await?;
                        // Until the other connection has been served.
                        while hogged.peek(&mut buffer).is_err() {
                            std::thread::yield_now();
                        }
                        read(&cx, &*hogged, &mut buffer).await?;
                    }
                    Ok(())
                });
                s.spawn(move |cx| echo(cx, echoed)).await.unwrap();
                Ok(())
            })
            .await
            .unwrap();
        });
        quiet.join().unwrap();
    });
}

#[test]
fn a_cancelled_read_takes_nothing() {
    on_each(|rt| {
        rt.block_on(async |cx: Cx| {
            let (listener, at) = listen(&cx);
            let mut peer = std::net::TcpStream::connect(at).unwrap();
            let (socket, _) =
                io(&cx, &*listener, Direction::Read, || listener.accept()).await.unwrap();
            let waited: Result<(), Error> = cx
                .timeout(Duration::from_millis(5), async |cx| {
                    read(cx, &*socket, &mut [0; 8]).await.map(drop)
                })
                .await;
            assert!(matches!(waited, Err(Error::Cancelled(_))), "{waited:?}");
            peer.write_all(b"later").unwrap();
            let mut buffer = [0; 8];
            let count = read(&cx, &*socket, &mut buffer).await.unwrap();
            assert_eq!(&buffer[..count], b"later");
        });
    });
}

/// Sockets are not polled after the runtime was dropped: waits on other threads fail.
#[test]
fn a_socket_wait_fails_when_the_runtime_is_dropped() {
    let rt = Runtime::builder().workers(2).build().unwrap();
    let (listener, _) = rt.block_on(async |cx: Cx| listen(&cx));
    let mut slot = WaitSlot::default();
    let mut poll = || listener.poll_ready(Direction::Read, &mut slot, std::task::Waker::noop());
    let Poll::Ready(Ok(seen)) = poll() else { panic!("not ready after registration") };
    listener.clear_ready(Direction::Read, seen);
    assert!(poll().is_pending());
    drop(rt);
    assert!(matches!(poll(), Poll::Ready(Err(_))));
}

/// Dumps name the peer and the direction.
#[test]
fn a_dump_names_the_socket_of_a_waiting_task() {
    on_each(|rt| {
        let handle = rt.handle();
        rt.block_on(async |cx: Cx| {
            let (listener, at) = listen(&cx);
            let peer = std::net::TcpStream::connect(at).unwrap();
            let from = peer.local_addr().unwrap();
            cx.scope(async |s: Scope<Error>| {
                let (socket, _) =
                    io(&cx, &*listener, Direction::Read, || listener.accept()).await?;
                let reads = s.task("reads").spawn(move |cx| echo(cx, socket));
                let accepts = s.task("accepts").spawn(async move |cx: Cx| {
                    io(&cx, &*listener, Direction::Read, || listener.accept()).await.map(drop)
                });
                let name = format!("asx-native-dump-{}", std::process::id());
                let named = Address::Unix(Some(format!("\0{name}").into()));
                let unix = cx.net().unwrap().listen(&named, &SocketSetup::default())?;
                let meets = s.task("meets").spawn(async move |cx: Cx| {
                    io(&cx, &*unix, Direction::Read, || unix.accept()).await.map(drop)
                });
                let (own, _other) = std::os::unix::net::UnixStream::pair()?;
                let number = own.as_raw_fd();
                let watch = cx.net().unwrap().watch(own.as_fd())?;
                let watches = s.task("watches").spawn(async move |cx: Cx| {
                    let nothing = || Err::<(), _>(std::io::ErrorKind::WouldBlock.into());
                    io(&cx, &*watch, Direction::Read, nothing).await
                });
                let waits = |name: &str| {
                    let dump = handle.dump();
                    let mut tasks = dump.regions.iter().flat_map(|region| &region.tasks);
                    let task = tasks.find(|task| task.name.as_deref() == Some(name))?;
                    // It registers before it waits.
                    let waits = task.activity == Activity::Waiting;
                    Some((task.socket.clone().filter(|_| waits)?, task.to_string(), dump.to_json()))
                };
                let wanted = [
                    ("reads", format!("bytes from {from}")),
                    ("accepts", format!("a connection to {at}")),
                    ("meets", format!("a connection to @{name}")),
                    ("watches", format!("descriptor {number} to be readable")),
                ];
                for (name, wanted) in wanted {
                    let (socket, text, json) = loop {
                        match waits(name) {
                            Some(found) => break found,
                            None => cx.yield_now().await,
                        }
                    };
                    assert_eq!(socket, wanted);
                    let key = format!("\"socket\":\"{wanted}\"");
                    assert!(json.contains(&key), "{json}");
                    assert!(text.contains(&format!("waits for {wanted} at ")), "{text}");
                }
                reads.cancel("enough");
                accepts.cancel("enough");
                meets.cancel("enough");
                watches.cancel("enough");
                Ok(())
            })
            .await
            .unwrap();
            drop(peer);
        });
    });
}
