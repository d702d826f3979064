//! Programs with one planted bug of the network each, and the same without it.
//!
//! Each is one function of a `const BUG: bool`. The bug must be found by the default settings with
//! everything that may go wrong, within five seconds, and its witness must fail again; the fixed
//! program must pass with the same settings.
//!
//! `cargo test -p asx-lab --test net_bugs -- --nocapture | grep '^|'` prints the table.

mod connections;
mod datagrams;
mod services;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use asx_lab::{Check, Faults, Judged, Kind};
use asx_net::{Cx, TcpListener, TcpStream, io};

/// Where servers are.
const AT: &str = "127.0.0.1:80";

/// How long somebody waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program, what its bug is found as, and whether that takes a fault of the network; and
/// `exact_time` if it is right only where no machine is slow.
macro_rules! planted {
    ($($test:ident: $kind:ident $how:ident $($time:ident)?;)*) => {
        $(
            #[test]
            fn $test() {
                let bug = asx_lab::check(super::$test::<true>) $(.$time())?;
                let fixed = asx_lab::check(super::$test::<false>) $(.$time())?;
                let kind = asx_lab::Kind::$kind;
                crate::judge(stringify!($test), bug, fixed, kind, crate::How::$how);
            }
        )*
    };
}
use planted;

/// What it takes to find a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// An order of deliveries.
    Order,
    /// A fault.
    Fault,
}

fn judge<F, G, B, C>(name: &str, bug: Check<F>, fixed: Check<G>, kind: Kind, how: How)
where
    F: Fn(Cx) -> B,
    G: Fn(Cx) -> C,
    B: Future<Output: Judged>,
    C: Future<Output: Judged>,
{
    let bug = bug.name(name).network(Faults::all());
    let start = Instant::now();
    let report = bug.run();
    let took = start.elapsed();
    let found = report.failure.as_ref().unwrap_or_else(|| panic!("{name}: {report}"));
    let faults = found.words.iter().filter(|words| !words.starts_with("at step")).count();
    let millis = took.as_millis();
    let runs = report.runs;
    println!("| {name} | {} | {runs} | {} | {millis} |", kind.name(), found.words.len());
    assert_eq!(found.failure.finding.kind, kind, "{name}: {report}");
    assert_eq!(faults > 0, how == How::Fault, "{name}: {report}");
    assert!(took < Duration::from_secs(5), "{name} took {took:?}");
    let again = bug.replay(&found.token).expect("a token").failure.expect("it fails again");
    assert_eq!(again.failure, found.failure, "{name}");
    assert_eq!(again.words, found.words, "{name}");
    // All of it is to be run, however busy the machine is.
    let fixed = fixed.time(Duration::from_secs(60));
    let report = fixed.name(name).network(Faults::all()).run();
    assert!(report.failure.is_none(), "{name}, fixed: {report}");
    let (tried, all) = report.network.expect("faults were asked for");
    assert_eq!(tried, all, "{name}, fixed: {report}");
}

/// What several tasks of a program have in common.
type Shared<T> = Arc<Mutex<T>>;

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap()
}

async fn connect(cx: &Cx) -> io::Result<TcpStream> {
    cx.timeout(PATIENCE, async |cx| TcpStream::connect(cx, AT).await).await
}

/// Takes a connection, whatever goes wrong with it; nothing if none comes any more.
async fn accept(cx: &Cx, listener: &TcpListener) -> Option<TcpStream> {
    loop {
        match listener.accept(cx).await {
            Ok((stream, _)) => return Some(stream),
            Err(io::Error::Io(_)) => cx.sleep(Duration::from_millis(1)).await.ok()?,
            Err(io::Error::Cancelled(_)) => return None,
        }
    }
}

/// Fills a buffer, within a time.
async fn read_exact(cx: &Cx, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<()> {
    cx.timeout(PATIENCE, async |cx| stream.read_exact(cx, buffer).await).await
}

async fn write_all(cx: &Cx, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    cx.timeout(PATIENCE, async |cx| Ok(stream.write_all(cx, bytes).await?)).await
}
