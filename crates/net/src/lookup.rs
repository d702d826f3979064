//! From names to addresses.
//!
//! `getaddrinfo` blocks its thread for as long as the resolver likes. A blocking job of a scope is
//! waited for, so a lookup is none: a dead resolver must not hold a scope open. It runs on one of a
//! few threads of this module, which no scope and no runtime waits for; the task waits for its
//! answer as for anything else, and can be cancelled. A lookup that nobody waits for any more is
//! *abandoned* and counted ([`lookup_stats`]). Two tasks that ask for the same name at the same
//! time share one.
//!
//! Addresses that are written as numbers need no lookup, and take no thread.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::io::{Error as IoError, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::thread;

use asx_runtime::net::Net;
use asx_runtime::operation::guard;
use asx_runtime::{CancelSafe, Cx, Operation};

use crate::io::Result;

/// What has to be known to find a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Addresses, to be tried in order.
    Addresses(Vec<SocketAddr>),
    /// A host by its name.
    Name {
        /// The name.
        host: String,
        /// The port.
        port: u16,
    },
}

/// What can be bound or connected to: an address, several of them, or a name and a port.
pub trait ToSocketAddrs {
    /// What is to be looked up, if anything.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput): it names no port.
    fn target(&self) -> std::io::Result<Target>;
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {
    fn target(&self) -> std::io::Result<Target> {
        (**self).target()
    }
}

impl ToSocketAddrs for SocketAddr {
    fn target(&self) -> std::io::Result<Target> {
        Ok(Target::Addresses(vec![*self]))
    }
}

impl ToSocketAddrs for SocketAddrV4 {
    fn target(&self) -> std::io::Result<Target> {
        SocketAddr::from(*self).target()
    }
}

impl ToSocketAddrs for SocketAddrV6 {
    fn target(&self) -> std::io::Result<Target> {
        SocketAddr::from(*self).target()
    }
}

impl ToSocketAddrs for (IpAddr, u16) {
    fn target(&self) -> std::io::Result<Target> {
        SocketAddr::from(*self).target()
    }
}

impl ToSocketAddrs for (Ipv4Addr, u16) {
    fn target(&self) -> std::io::Result<Target> {
        SocketAddr::from(*self).target()
    }
}

impl ToSocketAddrs for (Ipv6Addr, u16) {
    fn target(&self) -> std::io::Result<Target> {
        SocketAddr::from(*self).target()
    }
}

impl ToSocketAddrs for [SocketAddr] {
    fn target(&self) -> std::io::Result<Target> {
        Ok(Target::Addresses(self.to_vec()))
    }
}

impl<const N: usize> ToSocketAddrs for [SocketAddr; N] {
    fn target(&self) -> std::io::Result<Target> {
        self[..].target()
    }
}

impl ToSocketAddrs for Vec<SocketAddr> {
    fn target(&self) -> std::io::Result<Target> {
        self[..].target()
    }
}

impl ToSocketAddrs for (&str, u16) {
    fn target(&self) -> std::io::Result<Target> {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(address) => (address, port).target(),
            Err(_) => Ok(Target::Name { host: host.into(), port }),
        }
    }
}

impl ToSocketAddrs for (String, u16) {
    fn target(&self) -> std::io::Result<Target> {
        (self.0.as_str(), self.1).target()
    }
}

/// `host:port`, `1.2.3.4:port` or `[::1]:port`.
impl ToSocketAddrs for str {
    fn target(&self) -> std::io::Result<Target> {
        if let Ok(address) = self.parse::<SocketAddr>() {
            return address.target();
        }
        let parts = self.rsplit_once(':');
        let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        let wrong = || {
            let shown: String = self.chars().take(80).collect();
            let why = format!("{shown:?} is not of the form `host:port`, with a port up to 65535");
            IoError::new(ErrorKind::InvalidInput, why)
        };
        parts.ok_or_else(wrong)?.target()
    }
}

impl ToSocketAddrs for String {
    fn target(&self) -> std::io::Result<Target> {
        self.as_str().target()
    }
}

/// The addresses of a host, as the system knows them: `lookup_host(&cx, "example.org:443")`.
///
/// A cancel ends the wait at once, whatever the resolver does.
pub async fn lookup_host(cx: &Cx, name: impl ToSocketAddrs) -> Result<Vec<SocketAddr>> {
    let target = name.target()?;
    resolve(cx, target).await
}

/// The addresses to try, of which there is at least one.
pub(crate) async fn resolve(cx: &Cx, target: Target) -> Result<Vec<SocketAddr>> {
    cx.checkpoint()?;
    let addresses = match target {
        Target::Addresses(addresses) => addresses,
        Target::Name { host, .. } if host.is_empty() || host.contains('\0') => {
            let text = "the name of a host is empty, or has a zero byte";
            return Err(IoError::new(ErrorKind::InvalidInput, text).into());
        }
        Target::Name { host, port } => match network(cx)?.try_lookup(&host, port) {
            Some(answer) => answer?,
            None => {
                let key = Key::new(cx, host, port)?;
                Lookup::new(cx, key.clone(), key.job(cx.clone()))?.await?
            }
        },
    };
    if addresses.is_empty() {
        return Err(IoError::new(ErrorKind::NotFound, "no addresses").into());
    }
    Ok(addresses)
}

/// The network of the host.
pub(crate) fn network(cx: &Cx) -> std::io::Result<&dyn Net> {
    let none = || IoError::new(ErrorKind::Unsupported, "this host has no network");
    cx.net().ok_or_else(none)
}

/// What lookups of this process have come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupStats {
    /// Threads that ask a resolver now.
    pub running: usize,
    /// Lookups that wait for a thread.
    pub queued: usize,
    /// Lookups that had begun when the last task that waited for them gave up, since the process
    /// began. Each kept, or keeps, its thread until the resolver has answered.
    pub abandoned: u64,
}

/// What lookups of this process have come to.
pub fn lookup_stats() -> LookupStats {
    let pool = lock(&POOL);
    let LookupStats { running, abandoned, .. } = pool.stats;
    LookupStats { running, queued: pool.queue.len(), abandoned }
}

/// Threads that may ask at the same time: the resolver is not asked for more than that at once.
const MAX_THREADS: usize = 16;

static POOL: LazyLock<Mutex<Pool>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Pool {
    /// Those that have a thread or wait for one, by name.
    flights: HashMap<Key, Flight>,
    /// Those that wait for a thread.
    queue: VecDeque<Key>,
    next_waiter: u64,
    stats: LookupStats,
}

/// A lookup: of which host's network, which name.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The address of the network, which lives as long as a context does that leads to it.
    net: usize,
    host: String,
    port: u16,
}

impl Key {
    fn new(cx: &Cx, host: String, port: u16) -> std::io::Result<Key> {
        Ok(Key { net: address_of(network(cx)?), host, port })
    }

    /// Asks the network of the context.
    fn job(self, cx: Cx) -> Job {
        Box::new(move || network(&cx)?.lookup(&self.host, self.port))
    }
}

/// What blocks.
type Job = Box<dyn FnOnce() -> std::io::Result<Vec<SocketAddr>> + Send>;

fn address_of(net: &dyn Net) -> usize {
    std::ptr::from_ref(net).addr()
}

/// One lookup, and who waits for it.
struct Flight {
    /// There until it begins.
    job: Option<Job>,
    waiters: Vec<(u64, Waker)>,
    /// How many wait, also those that have not been polled.
    waiting: usize,
    answer: Arc<Mutex<Option<Answer>>>,
}

/// What the resolver said. `std::io::Error` is no clone, and several may wait.
type Answer = std::result::Result<Vec<SocketAddr>, (ErrorKind, String)>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the answer to a lookup.
struct Lookup<'a> {
    operation: Operation<'a>,
    key: Key,
    id: u64,
    answer: Arc<Mutex<Option<Answer>>>,
    done: bool,
}

impl<'a> Lookup<'a> {
    /// Begins a lookup, or joins one that is on its way.
    #[track_caller]
    fn new(cx: &'a Cx, key: Key, job: Job) -> std::io::Result<Lookup<'a>> {
        let operation = Operation::new(cx);
        let mut pool = lock(&POOL);
        let pool = &mut *pool;
        let id = pool.next_waiter;
        pool.next_waiter += 1;
        if let Some(flight) = pool.flights.get_mut(&key) {
            flight.waiting += 1;
            let answer = flight.answer.clone();
            return Ok(Lookup { operation, key, id, answer, done: false });
        }
        if pool.stats.running < MAX_THREADS {
            match thread::Builder::new().name("asx-lookup".into()).spawn(serve) {
                Ok(_) => pool.stats.running += 1,
                // Those that run go on with what is queued.
                Err(error) if pool.stats.running == 0 => return Err(error),
                Err(_) => {}
            }
        }
        let answer = Arc::default();
        let flight =
            Flight { job: Some(job), waiters: Vec::new(), waiting: 1, answer: Arc::clone(&answer) };
        pool.flights.insert(key.clone(), flight);
        pool.queue.push_back(key.clone());
        Ok(Lookup { operation, key, id, answer, done: false })
    }

    /// The flight this waits for, if it is still on its way.
    fn flight<'p>(&self, pool: &'p mut Pool) -> Option<&'p mut Flight> {
        let flight = pool.flights.get_mut(&self.key)?;
        Arc::ptr_eq(&flight.answer, &self.answer).then_some(flight)
    }
}

impl Future for Lookup<'_> {
    type Output = Result<Vec<SocketAddr>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.operation.poll_proceed(context))?;
        // To clone a waker may be somebody's code, and is not done under the lock.
        let mut waker = Some(context.waker().clone());
        let mut pool = lock(&POOL);
        let answer = lock(&self.answer).clone();
        if let Some(answer) = answer {
            drop(pool);
            guard::drop_waker(waker);
            self.done = true;
            let error = |(kind, text)| IoError::new(kind, text).into();
            return Poll::Ready(answer.map_err(error));
        }
        let id = self.id;
        if let Some(flight) = self.flight(&mut pool) {
            match flight.waiters.iter_mut().find(|(other, _)| *other == id) {
                Some((_, old)) => waker = waker.map(|new| std::mem::replace(old, new)),
                None => flight.waiters.extend(waker.take().map(|waker| (id, waker))),
            }
        }
        // A waker may run code of its own when it is dropped.
        drop(pool);
        guard::drop_waker(waker);
        self.operation.pending(context)
    }
}

impl Drop for Lookup<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut pool = lock(&POOL);
        let id = self.id;
        let Some(flight) = self.flight(&mut pool) else { return };
        let own = flight.waiters.iter().position(|(other, _)| *other == id);
        let waker = own.map(|at| flight.waiters.swap_remove(at));
        flight.waiting -= 1;
        let is_last = flight.waiting == 0;
        let begun = flight.job.is_none();
        let mut unused = None;
        if is_last && begun {
            pool.stats.abandoned += 1;
        } else if is_last {
            pool.queue.retain(|key| *key != self.key);
            unused = pool.flights.remove(&self.key);
        }
        drop(pool);
        guard::drop_waker(waker.map(|(_, waker)| waker));
        drop(unused);
    }
}

/// A lookup that is dropped gives up waiting; it can be asked for again.
impl CancelSafe for Lookup<'_> {}

/// What a thread does: lookups, until none is queued.
fn serve() {
    loop {
        let mut pool = lock(&POOL);
        let Some(key) = pool.queue.pop_front() else {
            pool.stats.running -= 1;
            return;
        };
        let Some(job) = pool.flights.get_mut(&key).and_then(|flight| flight.job.take()) else {
            continue;
        };
        drop(pool);

        // Code of a host's, and what it captured: its panic does not end the thread.
        let answer = catch_unwind(AssertUnwindSafe(job));
        let answer = answer.unwrap_or_else(|_| Err(IoError::other("the lookup panicked")));
        let answer = answer.map_err(|error| (error.kind(), error.to_string()));

        let mut pool = lock(&POOL);
        let flight = pool.flights.remove(&key);
        if let Some(flight) = &flight {
            // Under the lock of the pool: who sees no answer finds the flight to wait for.
            *lock(&flight.answer) = Some(answer);
        }
        drop(pool);
        if let Some(Flight { waiters, .. }) = flight {
            for (_, waker) in waiters {
                guard::wake(waker);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;
    use std::time::Duration;

    use asx_native::Runtime;
    use asx_runtime::join;

    use super::*;
    use crate::io;

    fn key(host: &str) -> Key {
        Key { net: 0, host: host.into(), port: 80 }
    }

    #[test]
    fn a_dead_resolver_holds_no_scope_and_no_runtime_open() {
        let (release, held) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let before = lookup_stats().abandoned;
        runtime.block_on(async |cx: Cx| {
            let ended: io::Result<Vec<SocketAddr>> = cx
                .scope(async |s| {
                    let job: Job = Box::new(move || {
                        begin.send(()).unwrap();
                        held.recv().unwrap();
                        Ok(Vec::new())
                    });
                    let mut lookup = Lookup::new(&cx, key("dead"), job)?;
                    // It waits, and the resolver was asked, when the cancel comes.
                    assert!(futures_lite::future::poll_once(&mut lookup).await.is_none());
                    begun.recv().unwrap();
                    s.cancel("enough");
                    lookup.await
                })
                .await;
            assert!(ended.unwrap_err().is_cancelled());
        });
        drop(runtime);
        assert_eq!(lookup_stats().abandoned, before + 1);
        release.send(()).unwrap();
    }

    #[test]
    fn tasks_that_ask_for_the_same_name_share_one_lookup() {
        let asked = Arc::new(AtomicUsize::new(0));
        let (release, held) = mpsc::channel::<()>();
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let counts = asked.clone();
        let job: Job = Box::new(move || {
            counts.fetch_add(1, SeqCst);
            held.recv().unwrap();
            Ok(vec![address])
        });
        let counts = asked.clone();
        let other: Job = Box::new(move || {
            counts.fetch_add(1, SeqCst);
            Ok(Vec::new())
        });
        runtime.block_on(async |cx: Cx| {
            let first = Lookup::new(&cx, key("shared"), job).unwrap();
            let second = Lookup::new(&cx, key("shared"), other).unwrap();
            release.send(()).unwrap();
            let (first, second) = join(&cx, |_| first, |_| second).await;
            assert_eq!((first.unwrap(), second.unwrap()), (vec![address], vec![address]));
        });
        assert_eq!(asked.load(SeqCst), 1);
    }

    #[test]
    fn a_lookup_that_fails_or_panics_says_so() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.block_on(async |cx: Cx| {
            let job: Job = Box::new(|| Err(ErrorKind::NotFound.into()));
            let error = Lookup::new(&cx, key("nobody"), job).unwrap().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let job: Job = Box::new(|| std::panic::resume_unwind(Box::new("broken")));
            let error = Lookup::new(&cx, key("broken"), job).unwrap().await.unwrap_err();
            assert_eq!(error.to_string(), "the lookup panicked");
        });
    }

    #[test]
    fn more_lookups_than_threads_wait_for_one_and_leave_the_queue_when_they_are_dropped() {
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let runtime = Runtime::builder().workers(1).build().unwrap();
        runtime.block_on(async |cx: Cx| {
            let hold = |number: usize| {
                let held = held.clone();
                let job: Job = Box::new(move || {
                    lock(&held).recv_timeout(Duration::from_secs(60)).unwrap();
                    Ok(Vec::new())
                });
                Lookup::new(&cx, key(&format!("held {number}")), job).unwrap()
            };
            let lookups: Vec<_> = (0..2 * MAX_THREADS).map(hold).collect();
            let unused: Job = Box::new(|| unreachable!("it was dropped in the queue"));
            drop(Lookup::new(&cx, key("dropped"), unused).unwrap());
            assert!(lookup_stats().running <= MAX_THREADS);
            for _ in &lookups {
                release.send(()).unwrap();
            }
            for lookup in lookups {
                lookup.await.unwrap();
            }
        });
    }

    #[test]
    fn numbers_are_addresses_and_the_rest_are_names() {
        let address: SocketAddr = "127.0.0.1:80".parse().unwrap();
        let known = Target::Addresses(vec![address]);
        assert_eq!("127.0.0.1:80".target().unwrap(), known);
        assert_eq!(("127.0.0.1", 80).target().unwrap(), known);
        assert_eq!((Ipv4Addr::LOCALHOST, 80).target().unwrap(), known);
        assert_eq!([address].target().unwrap(), known);
        let named = Target::Name { host: "host".into(), port: 80 };
        assert_eq!("host:80".target().unwrap(), named);
        assert_eq!((String::from("host"), 80).target().unwrap(), named);
        assert_eq!("[::1]:80".target().unwrap(), (Ipv6Addr::LOCALHOST, 80).target().unwrap());
        for wrong in ["host", "host:", "host:99999", ""] {
            assert_eq!(wrong.target().unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
        }
    }
}
