//! A server in a process of its own, and what it costs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::{Kind, SERVE, Start};

/// A server that runs until this is dropped.
pub(super) struct Server {
    process: Child,
    /// Its end tells the server to go.
    input: Option<ChildStdin>,
    address: SocketAddr,
}

impl Server {
    pub(super) fn start(peer: &str, kind: Kind) -> Server {
        Server::start_under(&[], peer, kind)
    }

    /// Starts the server with another program and its arguments in front of the command.
    pub(super) fn start_under(runner: &[String], peer: &str, kind: Kind) -> Server {
        let program = std::env::current_exe().expect("the path of this program");
        let mut command = match runner {
            [] => Command::new(program),
            [runner, args @ ..] => {
                let mut command = Command::new(runner);
                command.args(args).arg(program);
                command
            }
        };
        command.args([SERVE, peer, kind.name()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("this program starts again");
        let input = process.stdin.take();
        let output = process.stdout.take().expect("its output is piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line of text");
        let address = line.trim().parse().expect("the address of the server");
        Server { process, input, address }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Nanoseconds of processor time so far, of all its threads.
    pub(super) fn cpu(&self) -> f64 {
        let threads = format!("/proc/{}/task", self.process.id());
        let threads = std::fs::read_dir(threads).expect("the threads of the server");
        let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<f64>().ok()
        };
        threads.filter_map(of_thread).sum()
    }

    /// Bytes of memory that are its own.
    pub(super) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.expect("the status of the server");
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = anonymous.and_then(|text| text.trim().strip_suffix(" kB"));
        kilobytes.and_then(|text| text.parse::<u64>().ok()).expect("a number") * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        self.process.wait().expect("the server ends");
    }
}

/// Serves until the input ends.
pub(super) fn serve(start: Start) -> Option<()> {
    // Room for bursts of connections: one that is refused tries again after a second.
    let listener = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).ok()?;
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).ok()?;
    listener.listen(4096).ok()?;
    let listener = TcpListener::from(listener);
    let mut output = std::io::stdout();
    writeln!(output, "{}", listener.local_addr().ok()?).ok()?;
    output.flush().ok()?;
    std::thread::spawn(move || start(listener));
    std::io::stdin().read_to_end(&mut Vec::new()).ok()?;
    std::process::exit(0)
}
