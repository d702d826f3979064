//! The calls of an operation to its socket, step by step.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::sync::Mutex;
use std::task::Waker;

use asx_native::Runtime;
use asx_runtime::net::{OptionName, ReadyEvent, SocketOption};
use futures_lite::future::poll_once;

use super::*;

/// A socket that returns scripted results and logs its calls.
#[derive(Debug, Default)]
struct Scripted {
    /// The readiness that the next polls return.
    ready: Mutex<VecDeque<bool>>,
    reads: Mutex<VecDeque<io::Result<usize>>>,
    log: Mutex<Vec<String>>,
}

impl Scripted {
    fn note(&self, call: impl Into<String>) {
        self.log.lock().unwrap().push(call.into());
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

fn unused<T>() -> io::Result<T> {
    Err(ErrorKind::Unsupported.into())
}

impl Socket for Scripted {
    fn poll_ready(
        &self,
        _: Direction,
        slot: &mut WaitSlot,
        _: &Waker,
    ) -> Poll<io::Result<ReadyEvent>> {
        if self.ready.lock().unwrap().pop_front().unwrap_or(false) {
            self.note("ready");
            return Poll::Ready(Ok(ReadyEvent(7)));
        }
        self.note("waits");
        slot.0 = 1;
        Poll::Pending
    }

    fn clear_ready(&self, _: Direction, seen: ReadyEvent) {
        self.note(format!("clear {}", seen.0));
    }

    fn clear_after_short(&self, _: Direction, seen: ReadyEvent) {
        self.note(format!("short {}", seen.0));
    }

    fn leave(&self, _: Direction, slot: &mut WaitSlot) {
        self.note("leave");
        slot.0 = 0;
    }

    fn read(&self, _: &mut [u8]) -> io::Result<usize> {
        self.note("read");
        self.reads.lock().unwrap().pop_front().unwrap_or_else(|| Err(ErrorKind::WouldBlock.into()))
    }

    fn peek(&self, _: &mut [u8]) -> io::Result<usize> {
        unused()
    }

    fn write(&self, _: &[u8]) -> io::Result<usize> {
        unused()
    }

    fn accept(&self) -> io::Result<(Arc<dyn Socket>, Address)> {
        unused()
    }

    fn recv_from(&self, _: &mut [u8]) -> io::Result<(usize, Address)> {
        unused()
    }

    fn send_to(&self, _: &[u8], _: &Address) -> io::Result<usize> {
        unused()
    }

    fn connect_to(&self, _: &Address) -> io::Result<()> {
        unused()
    }

    fn shutdown(&self, _: Shutdown) -> io::Result<()> {
        unused()
    }

    fn local_address(&self) -> io::Result<Address> {
        unused()
    }

    fn peer_address(&self) -> io::Result<Address> {
        unused()
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        unused()
    }

    fn set_option(&self, _: SocketOption) -> io::Result<()> {
        unused()
    }

    fn option(&self, _: OptionName) -> io::Result<SocketOption> {
        unused()
    }
}

/// Polls a read of eight bytes `polls` times, then drops it. Returns its last result and the log of
/// the socket.
fn run(
    transport: Transport,
    ready: &[bool],
    reads: Vec<io::Result<usize>>,
    polls: usize,
) -> (Option<Result<usize>>, Vec<String>) {
    let scripted = Arc::new(Scripted {
        ready: Mutex::new(ready.iter().copied().collect()),
        reads: Mutex::new(reads.into()),
        log: Mutex::default(),
    });
    let socket: Arc<dyn Socket> = scripted.clone();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let answer = runtime.block_on(async |cx: Cx| {
        let mut buffer = [0; 8];
        let mut read = SocketOp::new(&cx, &socket, ReadInto { buffer: &mut buffer, transport });
        let mut answer = None;
        for _ in 0..polls {
            answer = poll_once(&mut read).await;
        }
        answer
    });
    (answer, scripted.log())
}

#[cfg(unix)]
#[test]
fn short_read_of_tcp_is_reported_to_the_socket() {
    let (answer, log) = run(Transport::Tcp, &[true], vec![Ok(3)], 1);
    assert_eq!(answer.unwrap().unwrap(), 3);
    assert_eq!(log, ["ready", "read", "short 7"]);
}

#[test]
fn full_read_end_of_stream_and_short_datagram_keep_readiness() {
    for (transport, count) in [(Transport::Tcp, 8), (Transport::Tcp, 0), (Transport::Datagrams, 3)]
    {
        let (answer, log) = run(transport, &[true], vec![Ok(count)], 1);
        assert_eq!(answer.unwrap().unwrap(), count);
        assert_eq!(log, ["ready", "read"], "{transport:?} {count}");
    }
}

#[test]
fn attempt_that_would_block_waits_and_interrupted_attempt_is_repeated() {
    let reads = vec![Err(ErrorKind::WouldBlock.into()), Err(ErrorKind::Interrupted.into()), Ok(8)];
    let (answer, log) = run(Transport::Tcp, &[true, false, true, true], reads, 2);
    assert_eq!(answer.unwrap().unwrap(), 8);
    let expected = ["ready", "read", "clear 7", "waits", "ready", "read", "ready", "read", "leave"];
    assert_eq!(log, expected);
}

#[test]
fn operation_dropped_while_it_waits_leaves_the_socket_without_an_attempt() {
    let (answer, log) = run(Transport::Tcp, &[false], vec![Ok(8)], 1);
    assert!(answer.is_none());
    assert_eq!(log, ["waits", "leave"]);
}

#[test]
fn other_errors_of_an_attempt_are_returned() {
    let (answer, log) =
        run(Transport::Datagrams, &[true], vec![Err(ErrorKind::BrokenPipe.into())], 1);
    assert_eq!(answer.unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(log, ["ready", "read"]);
}

#[test]
fn cancelled_operation_does_not_use_its_socket() {
    let scripted = Arc::new(Scripted::default());
    let socket: Arc<dyn Socket> = scripted.clone();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async |cx: Cx| {
        let ended: Result<()> = cx
            .scope(async |s| {
                s.cancel("now");
                let mut buffer = [0; 8];
                let attempt = ReadInto { buffer: &mut buffer, transport: Transport::Datagrams };
                let read = SocketOp::new(&cx, &socket, attempt).await;
                assert!(read.unwrap_err().is_cancelled());
                Ok(())
            })
            .await;
        ended.unwrap();
    });
    assert!(scripted.log().is_empty());
}

#[test]
fn count_is_short_only_if_the_system_could_have_moved_more() {
    let tcp = |moved, asked| Transport::Tcp.attempted(moved, asked).is_short;
    assert!(tcp(7, 8) && !tcp(8, 8) && !tcp(0, 8));
    assert!(!tcp(MOST_BYTES, usize::MAX) && tcp(MOST_BYTES - 1, usize::MAX));
    assert!(Transport::Tcp.attempted_all(7, 8, MOST_BUFFERS).is_short);
    assert!(!Transport::Tcp.attempted_all(7, 8, MOST_BUFFERS + 1).is_short);
    for other in [Transport::UnixStream, Transport::Datagrams] {
        assert!(!other.attempted(7, 8).is_short);
    }
}

/// A closed socket stays ready after its readiness was cleared.
#[test]
fn closed_socket_that_would_block_fails_instead_of_spinning() {
    let (answer, log) = run(Transport::Tcp, &[true; 1000], Vec::new(), 1);
    let error: io::Error = answer.expect("the read completes").unwrap_err().into();
    assert_eq!(error.kind(), ErrorKind::NotConnected);
    assert_eq!(log.iter().filter(|line| *line == "read").count(), 17, "{log:?}");
}

/// Two readers of a socket may both be woken for bytes that only one of them reads.
#[test]
fn readiness_that_is_gone_after_a_clear_makes_the_read_wait() {
    let (answer, log) = run(Transport::Tcp, &[true, true, false], Vec::new(), 1);
    assert!(answer.is_none());
    assert_eq!(log, ["ready", "read", "clear 7", "ready", "read", "clear 7", "waits", "leave"]);
}
