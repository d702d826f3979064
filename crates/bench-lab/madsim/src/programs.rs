//! The programs: tasks of madsim with tokio's locks and channels.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::task::Poll;

use madsim::net::{TcpListener, TcpStream};
use madsim::runtime::Handle;
use madsim::task::{JoinHandle, spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Mutex, Notify, mpsc};

/// Turns of the needle.
const TURNS: u32 = 12;
/// Tasks of the crowd.
const TASKS: u32 = 50;
/// Steps of each.
const STEPS: u32 = 20;

/// Clients of the program that has a network, and requests of each.
const CLIENTS: u32 = 2;
const REQUESTS: u64 = 5;
/// Where its server is.
const SERVER: &str = "10.0.0.1:80";

type Body = Pin<Box<dyn Future<Output = ()>>>;

/// A program by name, with its bug or without.
pub(crate) fn body(program: &str, buggy: bool) -> Option<Body> {
    Some(match program {
        "lost_wakeup" => Box::pin(lost_wakeup(buggy)),
        "ab_ba" => Box::pin(ab_ba(buggy)),
        "lossy_select" => Box::pin(lossy_select(buggy)),
        "check_then_act" => Box::pin(check_then_act(buggy)),
        "needle" => Box::pin(needle(buggy)),
        "crowd" => Box::pin(crowd()),
        "requests" => Box::pin(requests()),
        _ => return None,
    })
}

/// Lets others go first.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

async fn all(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}

async fn lost_wakeup(buggy: bool) {
    let ready = Arc::new((Notify::new(), AtomicBool::new(false)));
    let waiter = |_| {
        let ready = ready.clone();
        spawn(async move {
            let early = ready.0.notified();
            if !ready.1.load(Relaxed) {
                yield_now().await;
                if buggy { ready.0.notified().await } else { early.await }
            }
        })
    };
    let mut tasks: Vec<_> = (0..2).map(waiter).collect();
    tasks.push(spawn(async move {
        ready.1.store(true, Relaxed);
        ready.0.notify_waiters();
    }));
    all(tasks).await
}

async fn ab_ba(buggy: bool) {
    let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
    let task = |task| {
        let locks = locks.clone();
        let (first, second) = if buggy && task == 2 { (1, 0) } else { (0, 1) };
        spawn(async move {
            let mut one = locks[first].lock().await;
            yield_now().await;
            let mut two = locks[second].lock().await;
            *one += 1;
            *two += 1;
        })
    };
    all((0..3).map(task).collect()).await
}

async fn lossy_select(buggy: bool) {
    let ((tx, rx), (tick, ticks)) = (mpsc::channel(2), mpsc::channel(1));
    let producer = spawn(async move {
        for number in 1..=2 {
            let _ = tx.send(number).await;
        }
    });
    let ticker = spawn(async move {
        let _ = tick.send(()).await;
    });
    let consumer = spawn(consume(buggy, rx, ticks));
    assert_eq!(consumer.await.unwrap(), 3, "a message was lost");
    all(vec![producer, ticker]).await
}

/// Takes messages and ticks, whichever comes; with the bug it drops the one half-way for the other.
async fn consume(buggy: bool, mut rx: mpsc::Receiver<u32>, mut ticks: mpsc::Receiver<()>) -> u32 {
    let (mut sum, mut ticking) = (0, true);
    loop {
        let mut work = Box::pin(async {
            let number = rx.recv().await;
            if buggy {
                yield_now().await;
            }
            number
        });
        let mut tick = Box::pin(ticks.recv());
        let taken = poll_fn(|context| {
            if let Poll::Ready(number) = work.as_mut().poll(context) {
                return Poll::Ready(Some(number));
            }
            if ticking && let Poll::Ready(got) = tick.as_mut().poll(context) {
                ticking = got.is_some();
                return Poll::Ready(None);
            }
            Poll::Pending
        })
        .await;
        match taken {
            Some(Some(number)) => {
                if !buggy {
                    yield_now().await;
                }
                sum += number;
            }
            Some(None) => return sum,
            None => {}
        }
    }
}

async fn check_then_act(buggy: bool) {
    let count = Arc::new(AtomicU32::new(0));
    let task = |_| {
        let count = count.clone();
        spawn(async move {
            if buggy {
                let before = count.load(Relaxed);
                yield_now().await;
                count.store(before + 1, Relaxed);
            } else {
                yield_now().await;
                count.fetch_add(1, Relaxed);
            }
        })
    };
    all((0..3).map(task).collect()).await;
    assert_eq!(count.load(Relaxed), 3, "an increment was lost");
}

async fn needle(buggy: bool) {
    let turn = Arc::new(AtomicU32::new(0));
    let task = |task| {
        let turn = turn.clone();
        spawn(async move {
            for mine in (task..TURNS).step_by(2) {
                if turn.compare_exchange(mine, mine + 1, Relaxed, Relaxed).is_err() {
                    break;
                }
                yield_now().await;
            }
        })
    };
    all((0..2).map(task).collect()).await;
    assert!(!buggy || turn.load(Relaxed) < TURNS, "the needle");
}

async fn crowd() {
    let count = Arc::new(AtomicU32::new(0));
    let task = |_| {
        let count = count.clone();
        spawn(async move {
            for _ in 0..STEPS {
                count.fetch_add(1, Relaxed);
                yield_now().await;
            }
        })
    };
    all((0..TASKS).map(task).collect()).await;
    assert_eq!(count.load(Relaxed), TASKS * STEPS);
}

/// Clients send a server requests, and get answers: each on a machine of its own.
async fn requests() {
    let node = |last: u32| {
        let ip = std::net::Ipv4Addr::from(0x0A00_0001 + last);
        Handle::current().create_node().ip(ip.into()).build()
    };
    let (tell, mut told) = mpsc::channel(1);
    let server = node(0);
    server.spawn(async move {
        let listener = TcpListener::bind(SERVER).await.unwrap();
        tell.send(()).await.unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            spawn(serve(stream));
        }
    });
    told.recv().await;
    let clients: Vec<_> = (0..CLIENTS).map(|client| node(client + 1).spawn(ask(client))).collect();
    for client in clients {
        client.await.unwrap();
    }
}

async fn ask(client: u32) {
    let mut stream = TcpStream::connect(SERVER).await.unwrap();
    for number in 0..REQUESTS {
        let request = u64::from(client) << 32 | number;
        stream.write_all(&request.to_be_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(u64::from_be_bytes(answer), request + 1);
    }
}

async fn serve(mut stream: TcpStream) {
    for _ in 0..REQUESTS {
        let mut request = [0; 8];
        stream.read_exact(&mut request).await.unwrap();
        let answer = u64::from_be_bytes(request) + 1;
        stream.write_all(&answer.to_be_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
}
