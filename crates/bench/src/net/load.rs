//! The clients: each sends a message, waits for it to come back, and sends the next.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::MESSAGE;

/// How much a server is asked.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) connections: usize,
    /// Messages that come back, over all connections.
    pub(super) trips: u32,
}

/// What a trip has cost: nanoseconds of the server's processors, and of time.
pub(super) struct Trips {
    pub(super) server_cpu: f64,
    pub(super) wall: f64,
}

/// Clients on one thread.
pub(super) struct Clients {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    /// Connections that have nothing to do.
    idle: VecDeque<usize>,
}

struct Connection {
    stream: TcpStream,
    /// Bytes of the message that have come back.
    back: usize,
    sent: Instant,
}

impl Clients {
    pub(super) fn connect(server: SocketAddr, count: usize) -> Clients {
        let poll = Poll::new().expect("a poll of the system");
        let connections: Vec<Connection> = (0..count)
            .map(|number| {
                let stream = std::net::TcpStream::connect(server).expect("a connection");
                stream.set_nonblocking(true).expect("a socket that does not block");
                stream.set_nodelay(true).expect("a socket without delay");
                let mut stream = TcpStream::from_std(stream);
                let registered =
                    poll.registry().register(&mut stream, Token(number), Interest::READABLE);
                registered.expect("a registered socket");
                Connection { stream, back: 0, sent: Instant::now() }
            })
            .collect();
        let idle = (0..count).collect();
        Clients { poll, events: Events::with_capacity(1024), connections, idle }
    }

    /// Makes so many trips, with all connections at work: nanoseconds in all.
    pub(super) fn run(&mut self, trips: u32) -> f64 {
        let start = Instant::now();
        let mut to_send = trips;
        let mut to_come = trips;
        while to_come > 0 {
            while to_send > 0
                && let Some(number) = self.idle.pop_front()
            {
                self.send(number);
                to_send -= 1;
            }
            to_come -= self.receive(None, |_| ());
        }
        start.elapsed().as_nanos() as f64
    }

    /// One trip of each connection.
    pub(super) fn run_each(&mut self) {
        self.run(self.connections.len() as u32);
    }

    /// So many trips, spread evenly over a time: how long each took.
    pub(super) fn paced(&mut self, trips: u32, over: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut times = Vec::new();
        let mut sent = 0;
        while times.len() < trips as usize {
            let due = start.elapsed().as_secs_f64() / over.as_secs_f64() * f64::from(trips);
            while sent < trips
                && f64::from(sent) <= due
                && let Some(number) = self.idle.pop_front()
            {
                self.send(number);
                sent += 1;
            }
            self.receive(Some(Duration::from_millis(1)), |time| times.push(time));
        }
        times
    }

    fn send(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.sent = Instant::now();
        // A message fits: none is on its way.
        connection.stream.write_all(&[7; MESSAGE]).expect("room for a message");
    }

    /// Takes what has come: how many messages are back.
    fn receive(&mut self, timeout: Option<Duration>, mut done: impl FnMut(Duration)) -> u32 {
        let Clients { poll, events, connections, idle } = self;
        if let Err(error) = poll.poll(events, timeout) {
            assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
            return 0;
        }
        let mut back = 0;
        for event in &*events {
            let number = event.token().0;
            let connection = &mut connections[number];
            let mut buffer = [0; MESSAGE];
            loop {
                let left = MESSAGE - connection.back;
                match connection.stream.read(&mut buffer[..left]) {
                    Ok(0) => panic!("the server has closed a connection"),
                    Ok(count) => connection.back += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("a read failed: {error}"),
                }
                if connection.back == MESSAGE {
                    connection.back = 0;
                    back += 1;
                    done(connection.sent.elapsed());
                    idle.push_back(number);
                    break;
                }
            }
        }
        back
    }
}

/// Connects, has one message come back and closes, again and again. A reset, so that no port
/// lingers.
pub(super) fn connect_and_close(server: SocketAddr, times: u32) {
    for _ in 0..times {
        let mut stream = std::net::TcpStream::connect(server).expect("a connection");
        let socket = socket2::SockRef::from(&stream);
        socket.set_linger(Some(Duration::ZERO)).expect("a socket that resets");
        stream.write_all(&[7; MESSAGE]).expect("a message");
        stream.read_exact(&mut [0; MESSAGE]).expect("the message back");
    }
}
