//! The network of the lab: programs of `asx-net`, on sockets that are simulated.

mod cancels;
mod classes;
mod faults;
#[cfg(unix)]
mod signals;
mod tcp;

use std::time::Duration;

use asx_lab::{Grain, How, Report, check};
use asx_net::{Cx, TcpListener, TcpStream, io};

/// All of it is to be run, however busy the machine is.
const LONG: Duration = Duration::from_secs(300);

/// Two ends of a TCP connection: who has connected, and who has accepted.
async fn pair(cx: &Cx) -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(cx, "127.0.0.1:0").await?;
    let client = TcpStream::connect(cx, listener.local_addr()?).await?;
    let (server, from) = listener.accept(cx).await?;
    assert_eq!(from, client.local_addr()?);
    Ok((client, server))
}

/// A program passes, in whichever order.
fn passes<B: Future<Output = io::Result<()>>>(program: impl Fn(Cx) -> B) -> Report {
    let report = check(program).runs(200).run();
    assert!(report.failure.is_none(), "{report}");
    report
}

/// The same, and all of its orders were run: how many classes there are.
fn classes<B: Future<Output = io::Result<()>>>(program: impl Fn(Cx) -> B) -> u64 {
    let check = check(program).how(How::Dpor).grain(Grain::Poll).transparent();
    let report = check.runs(10_000).time(LONG).run();
    assert!(report.failure.is_none(), "{report}");
    report.proof.unwrap_or_else(|| panic!("{report}")).classes
}
