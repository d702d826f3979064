//! Lookups with resolvers that block, fail, panic or answer immediately.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;

use asx_native::Runtime;
use asx_runtime::join;
use futures_lite::future::poll_once;

use super::*;
use crate::io;

fn key(host: &str) -> Key {
    Key { net: 0, host: host.into(), port: 80 }
}

/// A pool that no other test uses.
fn pool() -> &'static Mutex<Pool> {
    Box::leak(Box::default())
}

/// A resolver that does not answer until it is released.
struct DeadResolver {
    begun: (mpsc::Sender<()>, mpsc::Receiver<()>),
    released: Arc<(Mutex<bool>, std::sync::Condvar)>,
}

impl DeadResolver {
    fn new() -> DeadResolver {
        DeadResolver { begun: mpsc::channel(), released: Arc::default() }
    }

    fn job(&self) -> Job {
        let begin = self.begun.0.clone();
        let released = self.released.clone();
        Box::new(move || {
            begin.send(()).ok();
            let (released, changed) = &*released;
            let wait = changed.wait_while(lock(released), |released| !*released);
            drop(wait.unwrap());
            Ok(Vec::new())
        })
    }

    /// Blocks until this number of further lookups has begun.
    fn wait_for(&self, lookups: usize) {
        (0..lookups).for_each(|_| self.begun.1.recv().unwrap());
    }

    fn release(&self) {
        *lock(&self.released.0) = true;
        self.released.1.notify_all();
    }

    /// Starts lookups of different names, and drops them when `begin` of them have begun. The
    /// queued ones are dropped first, so that no other one begins.
    async fn abandon(&self, pool: &'static Mutex<Pool>, cx: &Cx, lookups: usize, begin: usize) {
        let start = |number| Lookup::new(pool, cx, key(&format!("dead {number}")), self.job());
        // The names must differ from those that linger already.
        let first = stats_of(pool).abandoned as usize;
        let mut all: Vec<_> = (first..first + lookups).map(start).collect();
        for lookup in &mut all {
            assert!(poll_once(lookup).await.is_none());
        }
        self.wait_for(begin);
        while all.pop().is_some() {}
    }
}

impl Drop for DeadResolver {
    fn drop(&mut self) {
        self.release();
    }
}

fn address() -> SocketAddr {
    "192.0.2.1:80".parse().unwrap()
}

fn answer() -> Job {
    Box::new(|| Ok(vec![address()]))
}

fn too_many(error: &io::Error) -> Option<TooManyLookups> {
    let io::Error::Io(error) = error else { return None };
    error.get_ref()?.downcast_ref::<TooManyLookups>().copied()
}

fn on_runtime<T: Future<Output = ()>>(test: impl FnOnce(Cx) -> T) {
    Runtime::builder().workers(1).build().unwrap().block_on(test);
}

#[test]
fn lookup_of_a_dead_resolver_holds_no_scope_or_runtime_open() {
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        let ended: io::Result<Vec<SocketAddr>> = cx
            .scope(async |s| {
                let mut lookup = Lookup::new(pool, &cx, key("dead"), dead.job());
                assert!(poll_once(&mut lookup).await.is_none());
                dead.wait_for(1);
                s.cancel("enough");
                lookup.await
            })
            .await;
        assert!(ended.unwrap_err().is_cancelled());
    });
    let LookupStats { running, lingering, abandoned, .. } = stats_of(pool);
    assert_eq!((running, lingering, abandoned), (1, 1, 1));
}

#[test]
fn abandoned_lookups_leave_threads_for_new_lookups() {
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        dead.abandon(pool, &cx, 300, MAX_THREADS).await;
        let stats = stats_of(pool);
        assert_eq!((stats.queued, stats.lingering), (0, MAX_THREADS));
        let lookup = Lookup::new(pool, &cx, key("alive"), answer());
        assert_eq!(lookup.await.unwrap(), [address()]);
    });
}

#[test]
fn lookup_after_a_burst_of_cancels_completes() {
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        for round in 0..4 {
            let name = |number| key(&format!("round {round}, {number}"));
            let start = |number| Lookup::new(pool, &cx, name(number), dead.job());
            // Dropped in the order of the queue, so that queued lookups start meanwhile.
            drop((0..300).map(start).collect::<Vec<_>>());
            let LookupStats { running, queued, lingering, .. } = stats_of(pool);
            assert!(queued == 0 && running <= MAX_THREADS_IN_ALL, "{lingering} of {running}");
            match Lookup::new(pool, &cx, key("alive"), answer()).await {
                Ok(addresses) => assert_eq!(addresses, [address()]),
                Err(error) => assert!(too_many(&error).is_some(), "{error}"),
            }
        }
        dead.release();
        while stats_of(pool).running > 0 {
            cx.yield_now().await;
        }
        let LookupStats { lingering, abandoned, .. } = stats_of(pool);
        assert!(lingering == 0 && abandoned <= MAX_THREADS_IN_ALL as u64);
    });
}

#[test]
fn lookup_fails_when_abandoned_lookups_occupy_all_threads() {
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        for round in 1..=MAX_THREADS_IN_ALL / MAX_THREADS {
            dead.abandon(pool, &cx, 100, MAX_THREADS).await;
            assert_eq!(stats_of(pool).lingering, round * MAX_THREADS);
        }
        for _ in 0..3 {
            let unused: Job = Box::new(|| unreachable!("no thread is left to run it"));
            let error = Lookup::new(pool, &cx, key("refused"), unused).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ResourceBusy);
            let expected = TooManyLookups { lingering: MAX_THREADS_IN_ALL };
            assert_eq!(too_many(&error), Some(expected), "{error}");
        }
        let LookupStats { running, queued, .. } = stats_of(pool);
        assert_eq!((running, queued), (MAX_THREADS_IN_ALL, 0));
        // A task can still join a lingering lookup.
        let mut joined = Lookup::new(pool, &cx, key("dead 0"), answer());
        assert!(poll_once(&mut joined).await.is_none());
        assert_eq!(stats_of(pool).lingering, MAX_THREADS_IN_ALL - 1);
        dead.release();
        assert_eq!(joined.await.unwrap(), []);
        while stats_of(pool).running > 0 {
            cx.yield_now().await;
        }
        assert_eq!(stats_of(pool).lingering, 0);
        let lookup = Lookup::new(pool, &cx, key("alive"), answer());
        assert_eq!(lookup.await.unwrap(), [address()]);
    });
}

#[test]
fn queued_lookups_fail_when_the_last_thread_is_abandoned() {
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        for _ in 1..MAX_THREADS_IN_ALL / MAX_THREADS {
            dead.abandon(pool, &cx, MAX_THREADS, MAX_THREADS).await;
        }
        let start = |number| Lookup::new(pool, &cx, key(&format!("live {number}")), dead.job());
        let live: Vec<_> = (0..MAX_THREADS).map(start).collect();
        dead.wait_for(MAX_THREADS);
        let mut queued = Lookup::new(pool, &cx, key("queued"), answer());
        assert!(poll_once(&mut queued).await.is_none());
        assert_eq!(stats_of(pool).queued, 1);
        let (_, ended) = join(&cx, async |_| drop(live), |_| queued).await;
        let error = ended.unwrap_err();
        assert!(too_many(&error).is_some(), "{error}");
    });
}

#[test]
fn queued_lookup_gets_a_thread_when_the_last_live_lookup_is_abandoned() {
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        let start = |number| Lookup::new(pool, &cx, key(&format!("dead {number}")), dead.job());
        let mut live: Vec<_> = (0..MAX_THREADS).map(start).collect();
        dead.wait_for(MAX_THREADS);
        let mut queued = Lookup::new(pool, &cx, key("queued"), answer());
        assert!(poll_once(&mut queued).await.is_none());
        assert_eq!(stats_of(pool).queued, 1);
        let last = live.pop();
        drop(live);
        assert_eq!(stats_of(pool).queued, 1, "one thread is left for the queue");
        drop(last);
        assert_eq!(queued.await.unwrap(), [address()]);
    });
}

#[test]
fn threads_above_the_limit_end_when_lingering_lookups_return() {
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        dead.abandon(pool, &cx, MAX_THREADS, MAX_THREADS).await;
        let live = DeadResolver::new();
        let start = |number| Lookup::new(pool, &cx, key(&format!("live {number}")), live.job());
        let mut lookups: Vec<_> = (0..3 * MAX_THREADS).map(start).collect();
        live.wait_for(MAX_THREADS);
        dead.release();
        while stats_of(pool).lingering > 0 {
            cx.yield_now().await;
        }
        while stats_of(pool).running > MAX_THREADS {
            cx.yield_now().await;
        }
        assert_eq!(stats_of(pool).queued, 2 * MAX_THREADS);
        live.release();
        for lookup in &mut lookups {
            assert_eq!(lookup.await.unwrap(), []);
        }
    });
}

#[test]
fn local_names_and_numeric_addresses_need_no_thread() {
    let dead = DeadResolver::new();
    on_runtime(async |cx| {
        for _ in 0..MAX_THREADS_IN_ALL / MAX_THREADS {
            dead.abandon(&POOL, &cx, MAX_THREADS, MAX_THREADS).await;
        }
        for name in ["localhost:7", "a.localhost:7", "127.0.0.1:7", "::1:7", "[fe80::1%3]:7"] {
            assert_eq!(lookup_host(&cx, name).await.unwrap()[0].port(), 7, "{name}");
        }
        for host in ["localhost", "LOCALHOST.", "192.0.2.1", "2001:db8::1", "fe80::1%3"] {
            assert_eq!(lookup_host(&cx, (host, 7)).await.unwrap()[0].port(), 7, "{host}");
        }
        let error = lookup_host(&cx, "name.invalid:7").await.unwrap_err();
        assert!(too_many(&error).is_some(), "{error}");
    });
}

#[test]
fn lookups_of_the_same_name_share_one_resolver_call() {
    let asked = Arc::new(AtomicUsize::new(0));
    let (release, held) = mpsc::channel::<()>();
    let pool = pool();
    let counts = asked.clone();
    let job: Job = Box::new(move || {
        counts.fetch_add(1, SeqCst);
        held.recv().unwrap();
        Ok(vec![address()])
    });
    let counts = asked.clone();
    let other: Job = Box::new(move || {
        counts.fetch_add(1, SeqCst);
        Ok(Vec::new())
    });
    on_runtime(async |cx| {
        let first = Lookup::new(pool, &cx, key("shared"), job);
        let second = Lookup::new(pool, &cx, key("shared"), other);
        release.send(()).unwrap();
        let (first, second) = join(&cx, |_| first, |_| second).await;
        assert_eq!((first.unwrap(), second.unwrap()), (vec![address()], vec![address()]));
    });
    assert_eq!(asked.load(SeqCst), 1);
}

#[test]
fn lookup_returns_an_error_when_the_resolver_fails_or_panics() {
    on_runtime(async |cx| {
        let pool = pool();
        let job: Job = Box::new(|| Err(ErrorKind::NotFound.into()));
        let error = Lookup::new(pool, &cx, key("unknown"), job).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let job: Job = Box::new(|| std::panic::resume_unwind(Box::new("broken")));
        let error = Lookup::new(pool, &cx, key("broken"), job).await.unwrap_err();
        assert_eq!(error.to_string(), "the resolver panicked");
    });
}

#[test]
fn numeric_addresses_parse_and_other_hosts_are_names() {
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

#[test]
fn only_a_numeric_scope_id_is_part_of_an_address() {
    let scoped = "[fe80::1%7]:80".parse::<SocketAddr>().unwrap().target().unwrap();
    assert_eq!(("fe80::1%7", 80).target().unwrap(), scoped);
    assert_eq!("fe80::1%7:80".target().unwrap(), scoped);
    for host in ["fe80::1%", "fe80::1%eth0", "fe80::1%+7", "fe80::1%4294967296", "host%7", "%7"] {
        let named = Target::Name { host: host.into(), port: 80 };
        assert_eq!((host, 80).target().unwrap(), named);
    }
}

#[test]
fn only_localhost_and_names_below_it_are_local() {
    use asx_runtime::net::localhost;
    for host in ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.Localhost."] {
        let expected = ["127.0.0.1:7", "[::1]:7"].map(|address| address.parse().unwrap());
        assert_eq!(localhost(host, 7).as_deref(), Some(&expected[..]), "{host}");
    }
    for host in ["", ".", "localhos", "notlocalhost", ".localhost", "localhost..", "localhost.org"]
    {
        assert_eq!(localhost(host, 7), None, "{host}");
    }
    // Bytes, not characters, are counted from the end.
    assert_eq!(localhost("\u{fc}\u{fc}ocalhost", 7), None);
}

/// Models a program that is stopped while the resolver does not answer.
#[test]
fn cancels_of_many_lookups_empty_the_queue() {
    const LOOKUPS: usize = 2_000;
    let dead = DeadResolver::new();
    let pool = pool();
    on_runtime(async |cx| {
        let own = |number| key(&format!("name {number}"));
        let start = |number| Lookup::new(pool, &cx, own(number), dead.job());
        let queued: Vec<_> = (0..LOOKUPS).map(start).collect();
        let shared = |_| Lookup::new(pool, &cx, own(0), dead.job());
        let mut shared: Vec<_> = (0..LOOKUPS).map(shared).collect();
        for lookup in &mut shared {
            assert!(poll_once(lookup).await.is_none());
        }
        assert!(stats_of(pool).queued >= LOOKUPS - MAX_THREADS);
        queued.into_iter().rev().for_each(drop);
        shared.into_iter().rev().for_each(drop);
        assert_eq!(stats_of(pool).queued, 0);
    });
}
