//! Name resolution.
//!
//! Numeric addresses and the names of this machine (`localhost`) are resolved in the task. Other
//! names go through `getaddrinfo`, which blocks its thread until the resolver answers or gives up.
//! A scope waits for its blocking jobs, so a lookup is not one of those: a dead resolver must not
//! hold a scope open. Lookups run on threads of this module, and no scope or runtime waits for
//! them.
//! Tasks that look up the same name at the same time share one lookup.
//!
//! # Limits
//! A lookup cannot be interrupted. One that loses its last waiting task is removed if it is still
//! queued; if it is running it is *abandoned* and *lingers* until the resolver returns.
//!
//! * At most [`MAX_THREADS`] threads run lookups that a task waits for; further ones are queued.
//! * A lingering lookup does not count against that limit. New lookups start other threads, up to
//!   [`MAX_THREADS_IN_ALL`] including lingering ones.
//! * A queue is always served by a thread that does not linger. If only that one is left, more are
//!   started after it has received an answer: when many lookups are cancelled at once, those behind
//!   them in the queue would otherwise start just before they are cancelled themselves.
//! * When all threads linger, lookups fail with [`TooManyLookups`] instead of waiting behind a
//!   resolver that does not answer.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
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

/// Addresses, or a name to look up; returned by [`ToSocketAddrs::target`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Addresses, tried in order.
    Addresses(Vec<SocketAddr>),
    /// The name of a host.
    Name {
        /// The name.
        host: String,
        /// The port.
        port: u16,
    },
}

/// An argument of functions that bind or connect: one or more addresses, or a name and a port.
///
/// ```
/// use asx::net::{Target, ToSocketAddrs};
///
/// let known = "127.0.0.1:80".target()?;
/// assert_eq!(known, Target::Addresses(vec!["127.0.0.1:80".parse().unwrap()]));
/// let named = ("example.org", 443).target()?;
/// assert_eq!(named, Target::Name { host: "example.org".into(), port: 443 });
/// assert!("example.org".target().is_err(), "the port is missing");
/// # Ok::<_, std::io::Error>(())
/// ```
pub trait ToSocketAddrs {
    /// Returns the addresses, or the name to look up.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) if the port is missing or invalid.
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
        if let Ok(address) = host.parse::<IpAddr>() {
            return (address, port).target();
        }
        match scoped_address(host, port) {
            Some(address) => address.target(),
            None => Ok(Target::Name { host: host.into(), port }),
        }
    }
}

/// Parses an IPv6 address with a numeric scope id: `fe80::1%2`.
fn scoped_address(host: &str, port: u16) -> Option<SocketAddrV6> {
    let (address, scope) = host.split_once('%')?;
    let is_number = scope.bytes().all(|byte| byte.is_ascii_digit());
    let scope = is_number.then(|| scope.parse().ok())??;
    Some(SocketAddrV6::new(address.parse().ok()?, port, 0, scope))
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

/// Returns the addresses of a host: `lookup_host(&cx, "example.org:443")`.
///
/// Numeric addresses and the names `localhost` and `*.localhost` (RFC 6761) are resolved without
/// the system's resolver; the latter are `127.0.0.1` and `::1`, in this order. Other names are
/// looked up on a thread of this crate. A cancel ends the wait at once; the lookup itself cannot be
/// interrupted and keeps its thread until the resolver returns ([`lookup_stats`]).
///
/// # Errors
/// Fails with [`InvalidInput`](ErrorKind::InvalidInput) if the name is not of the form `host:port`,
/// with the resolver's error, or with [`TooManyLookups`] if no thread is left because the resolver
/// did not answer earlier lookups.
///
/// # Cancel safety
/// Dropping the future abandons the lookup; it can be started again.
pub async fn lookup_host(cx: &Cx, name: impl ToSocketAddrs) -> Result<Vec<SocketAddr>> {
    let target = name.target()?;
    resolve(cx, target).await
}

/// Returns the addresses of a target, at least one.
pub(crate) async fn resolve(cx: &Cx, target: Target) -> Result<Vec<SocketAddr>> {
    cx.checkpoint()?;
    let addresses = match target {
        Target::Addresses(addresses) => addresses,
        Target::Name { host, .. } if host.is_empty() || host.contains('\0') => {
            let shown: String = host.chars().take(80).collect();
            let text = format!("{shown:?} is not a host name: it is empty or has a zero byte");
            return Err(IoError::new(ErrorKind::InvalidInput, text).into());
        }
        Target::Name { host, port } => match network(cx)?.try_lookup(&host, port) {
            Some(answer) => answer?,
            None => {
                let key = Key::new(cx, host, port)?;
                Lookup::new(&POOL, cx, key.clone(), key.job(cx.clone())).await?
            }
        },
    };
    if addresses.is_empty() {
        return Err(IoError::new(ErrorKind::NotFound, "the lookup returned no addresses").into());
    }
    Ok(addresses)
}

/// Returns the network of the host.
pub(crate) fn network(cx: &Cx) -> std::io::Result<&dyn Net> {
    let none = || IoError::new(ErrorKind::Unsupported, "the host of this runtime has no network");
    cx.net().ok_or_else(none)
}

/// The lookups of this process that needed a thread; see [`lookup_stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LookupStats {
    /// Threads that run a lookup now, including lingering ones.
    pub running: usize,
    /// Lookups that wait for a thread.
    pub queued: usize,
    /// Running lookups that no task waits for any more. Each keeps its thread until the resolver
    /// returns.
    pub lingering: usize,
    /// Running lookups that lost their last waiting task, since the process began.
    pub abandoned: u64,
}

/// Returns the counts of the lookups of this process.
pub fn lookup_stats() -> LookupStats {
    stats_of(&POOL)
}

fn stats_of(pool: &Mutex<Pool>) -> LookupStats {
    let pool = lock(pool);
    LookupStats { queued: pool.queue.len(), ..pool.stats }
}

/// The error of a lookup that has no thread to run on: all threads run abandoned lookups, which the
/// resolver has not answered yet.
///
/// It is the inner error of an [`io::Error`](std::io::Error) of kind
/// [`ResourceBusy`](ErrorKind::ResourceBusy). The lookup can be retried later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooManyLookups {
    /// The number of lookups that linger.
    pub lingering: usize,
}

impl fmt::Display for TooManyLookups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooManyLookups { lingering } = self;
        write!(
            f,
            "the resolver has not answered {lingering} abandoned lookups, which occupy all \
             resolver threads; retry later, or check the resolver's configuration"
        )
    }
}

impl std::error::Error for TooManyLookups {}

/// Threads that run lookups which a task waits for, at most.
const MAX_THREADS: usize = 16;
/// Threads at most, including those that run a lingering lookup.
const MAX_THREADS_IN_ALL: usize = 64;

static POOL: LazyLock<Mutex<Pool>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Pool {
    /// The lookups that are running or queued, by name.
    flights: HashMap<Key, Flight>,
    /// The queued lookups, by the number of their flight.
    queue: BTreeMap<u64, Key>,
    next_waiter: u64,
    /// `queued` is not kept up to date here: it is the length of the queue.
    stats: LookupStats,
}

impl Pool {
    /// Threads that run a lookup which a task waits for, or take the next one from the queue.
    fn live(&self) -> usize {
        self.stats.running - self.stats.lingering
    }

    /// Starts a thread if a lookup is queued and fewer than `enough` threads serve the queue. If no
    /// thread is left that will serve it, all queued lookups fail: the caller drops the returned
    /// value when it has released the lock.
    #[must_use = "to be dropped outside of the lock"]
    fn serve_queue(&mut self, at: &'static Mutex<Pool>, enough: usize) -> Vec<Flight> {
        if self.queue.is_empty() || self.live() >= enough {
            return Vec::new();
        }
        let failure = if self.stats.running < MAX_THREADS_IN_ALL {
            match thread::Builder::new().name("asx-lookup".into()).spawn(move || serve(at)) {
                Ok(_) => {
                    self.stats.running += 1;
                    return Vec::new();
                }
                Err(error) => {
                    let text = format!("cannot start a resolver thread: {error}");
                    Failure::Resolver(error.kind(), text)
                }
            }
        } else {
            Failure::TooMany(TooManyLookups { lingering: self.stats.lingering })
        };
        if self.live() > 0 { Vec::new() } else { self.fail_queue(&failure) }
    }

    fn fail_queue(&mut self, failure: &Failure) -> Vec<Flight> {
        let keys = std::mem::take(&mut self.queue);
        let flights: Vec<_> = keys.values().filter_map(|key| self.flights.remove(key)).collect();
        for flight in &flights {
            *lock(&flight.answer) = Some(Err(failure.clone()));
        }
        flights
    }
}

/// The key of a lookup: the network of the host, the name and the port.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The address of the network, which outlives every context that refers to it.
    net: usize,
    host: String,
    port: u16,
}

impl Key {
    fn new(cx: &Cx, host: String, port: u16) -> std::io::Result<Key> {
        Ok(Key { net: address_of(network(cx)?), host, port })
    }

    /// Creates the blocking call to the network of the context.
    fn job(self, cx: Cx) -> Job {
        Box::new(move || network(&cx)?.lookup(&self.host, self.port))
    }
}

/// A blocking call of the resolver.
type Job = Box<dyn FnOnce() -> std::io::Result<Vec<SocketAddr>> + Send>;

fn address_of(net: &dyn Net) -> usize {
    std::ptr::from_ref(net).addr()
}

/// One lookup, and the tasks that wait for it. They are woken when it is dropped.
struct Flight {
    /// The number of the first task that waited for it.
    number: u64,
    /// `None` once a thread runs it.
    job: Option<Job>,
    /// The wakers of the waiting tasks, by the id of their wait.
    waiters: BTreeMap<u64, Waker>,
    /// The number of tasks that wait, including those that have not been polled.
    waiting: usize,
    answer: Arc<Mutex<Option<Answer>>>,
}

impl Flight {
    /// Whether it is running and no task waits for it.
    fn lingers(&self) -> bool {
        self.job.is_none() && self.waiting == 0
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        std::mem::take(&mut self.waiters).into_values().for_each(guard::wake);
    }
}

/// The answer of the resolver.
type Answer = std::result::Result<Vec<SocketAddr>, Failure>;

/// An error that is returned to several tasks: [`std::io::Error`] is not `Clone`.
#[derive(Clone, Debug)]
enum Failure {
    Resolver(ErrorKind, String),
    TooMany(TooManyLookups),
}

impl Failure {
    fn of(error: &IoError) -> Failure {
        Failure::Resolver(error.kind(), error.to_string())
    }
}

impl From<Failure> for IoError {
    fn from(failure: Failure) -> IoError {
        match failure {
            Failure::Resolver(kind, text) => IoError::new(kind, text),
            Failure::TooMany(error) => IoError::new(ErrorKind::ResourceBusy, error),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A wait for the answer to a lookup.
struct Lookup<'a> {
    pool: &'static Mutex<Pool>,
    operation: Operation<'a>,
    key: Key,
    id: u64,
    answer: Arc<Mutex<Option<Answer>>>,
    done: bool,
}

impl<'a> Lookup<'a> {
    /// Starts a lookup, or joins one that is queued or running.
    #[track_caller]
    fn new(pool: &'static Mutex<Pool>, cx: &'a Cx, key: Key, job: Job) -> Lookup<'a> {
        let operation = Operation::new(cx);
        let mut guard = lock(pool);
        let Pool { flights, queue, next_waiter, stats } = &mut *guard;
        let id = *next_waiter;
        *next_waiter += 1;
        if let Some(flight) = flights.get_mut(&key) {
            if flight.lingers() {
                stats.lingering -= 1;
            }
            flight.waiting += 1;
            let answer = flight.answer.clone();
            return Lookup { pool, operation, key, id, answer, done: false };
        }
        let answer = Arc::default();
        let flight = Flight {
            number: id,
            job: Some(job),
            waiters: BTreeMap::new(),
            waiting: 1,
            answer: Arc::clone(&answer),
        };
        flights.insert(key.clone(), flight);
        queue.insert(id, key.clone());
        let failed = guard.serve_queue(pool, MAX_THREADS);
        drop(guard);
        drop(failed);
        Lookup { pool, operation, key, id, answer, done: false }
    }

    /// The flight this waits for, unless it has been answered.
    fn flight<'p>(&self, pool: &'p mut Pool) -> Option<&'p mut Flight> {
        let flight = pool.flights.get_mut(&self.key)?;
        Arc::ptr_eq(&flight.answer, &self.answer).then_some(flight)
    }
}

impl Future for Lookup<'_> {
    type Output = Result<Vec<SocketAddr>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.operation.poll_proceed(context))?;
        // Cloning a waker may run user code, which must not run under the lock.
        let mut waker = Some(context.waker().clone());
        let mut pool = lock(self.pool);
        let answer = lock(&self.answer).clone();
        if let Some(answer) = answer {
            drop(pool);
            guard::drop_waker(waker);
            self.done = true;
            return Poll::Ready(answer.map_err(|failure| IoError::from(failure).into()));
        }
        let id = self.id;
        if let Some(flight) = self.flight(&mut pool) {
            waker = waker.and_then(|waker| flight.waiters.insert(id, waker));
        }
        // Dropping a waker may run user code too.
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
        let mut pool = lock(self.pool);
        let id = self.id;
        let Some(flight) = self.flight(&mut pool) else { return };
        let waker = flight.waiters.remove(&id);
        flight.waiting -= 1;
        let (number, is_last) = (flight.number, flight.waiting == 0);
        let mut unused = None;
        let mut failed = Vec::new();
        if flight.lingers() {
            pool.stats.abandoned += 1;
            pool.stats.lingering += 1;
            failed = pool.serve_queue(self.pool, 1);
        } else if is_last {
            pool.queue.remove(&number);
            unused = pool.flights.remove(&self.key);
        }
        drop(pool);
        guard::drop_waker(waker);
        drop((unused, failed));
    }
}

/// A lookup that is dropped gives up waiting; it can be started again.
impl CancelSafe for Lookup<'_> {}

/// The main function of a thread: runs lookups until none is queued, or enough other threads do.
fn serve(at: &'static Mutex<Pool>) {
    let mut pool = lock(at);
    loop {
        // A lookup that lingered may have had its place taken by another thread.
        let is_spare = pool.live() > MAX_THREADS;
        let next = if is_spare { None } else { pool.queue.pop_first() };
        let Some((_, key)) = next else {
            pool.stats.running -= 1;
            return;
        };
        let Some(job) = pool.flights.get_mut(&key).and_then(|flight| flight.job.take()) else {
            continue;
        };
        drop(pool);

        // A panic of the host's resolver must not end the thread.
        let answer = catch_unwind(AssertUnwindSafe(job));
        let answer = answer.unwrap_or_else(|_| Err(IoError::other("the resolver panicked")));
        let answer = answer.map_err(|error| Failure::of(&error));

        pool = lock(at);
        let flight = pool.flights.remove(&key);
        if let Some(flight) = &flight {
            // Under the lock of the pool: a task that sees no answer finds the flight.
            *lock(&flight.answer) = Some(answer);
            if flight.lingers() {
                pool.stats.lingering -= 1;
            }
        }
        // The resolver answers, so more threads may serve the queue. This thread is live, so
        // `serve_queue` does not fail the queue.
        let failed = pool.serve_queue(at, MAX_THREADS);
        drop(pool);
        drop((flight, failed));
        pool = lock(at);
    }
}

#[cfg(test)]
mod tests;
