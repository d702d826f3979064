//! The state that the tasks and threads of a program share.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use asx::channel::broadcast::{Publisher, Subscriber};
use asx::channel::oneshot::{Answer, Reply};
use asx::channel::session::TrackedSender;
use asx::channel::unbounded::{UnboundedSender, unbounded};
use asx::channel::watch::{Setter, Watcher, watch};
use asx::channel::{OwnedPermit, Receiver, Sender, bounded, broadcast, session};
use asx::net::{TcpStream, UnixStream};
use asx::time::Time;
use asx::{Cancelled, Cx, Runtime, Scope, Task, sync};

use crate::connection::{Connection, ListenAddrs};
use crate::generate::EACH;
use crate::ledger::{Ledger, Value};
use crate::lock_monitor::LockMonitor;
use crate::pool::Pool;
use crate::program::{KINDS, Op, Program};

/// The reason why a task of a program ends early.
pub(crate) enum Fail {
    Cancelled,
    Failed(#[allow(dead_code, reason = "dropped with it")] Value),
}

impl From<Cancelled> for Fail {
    fn from(_: Cancelled) -> Self {
        Fail::Cancelled
    }
}

/// A future that is not yet owned by a task.
pub(crate) type DetachedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A leftover in the bag, which any task or thread may take.
pub(crate) enum Leftover {
    Task(Task<Value, Fail>),
    Future(DetachedFuture),
    Reply(Reply<Value>),
    Permit(OwnedPermit<Value>),
    Scope(Scope<Fail>),
    Cx(Cx),
    Tcp(Connection<TcpStream>),
    Unix(Connection<UnixStream>),
}

/// The number of permits of the semaphore.
pub(crate) const PERMITS: usize = 2;
/// The maximal number of threads that a program starts.
const THREADS: usize = 16;

pub(crate) struct World {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) workers: usize,
    /// Whether the runtime may refuse requests.
    pub(crate) refuses: bool,
    /// Weak, because objects owned by threads must not keep the runtime's memory alive.
    pub(crate) runtime: Weak<Runtime>,
    pub(crate) senders: [Sender<Value>; EACH],
    pub(crate) receivers: [Slot<Inbox>; EACH],
    pub(crate) unbounded: UnboundedSender<Value>,
    pub(crate) unbounded_rx: Slot<Inbox>,
    pub(crate) tracked: TrackedSender<Value>,
    pub(crate) tracked_rx: Slot<Inbox>,
    pub(crate) publisher: Publisher<Value>,
    pub(crate) subscriber: Slot<Subscriber<Value>>,
    pub(crate) setter: Setter<Value>,
    pub(crate) watcher: Slot<Watcher<Value>>,
    pub(crate) mutex: Arc<sync::Mutex<Value>>,
    pub(crate) rwlock: Arc<sync::RwLock<Value>>,
    pub(crate) semaphore: Arc<sync::Semaphore>,
    pub(crate) notify: Arc<sync::Notify>,
    pub(crate) barrier: sync::Barrier,
    pub(crate) once: sync::OnceCell<Value>,
    /// Monitors of the locks.
    pub(crate) mutex_monitor: LockMonitor,
    pub(crate) rwlock_monitor: LockMonitor,
    /// Channels with several receivers: one bounded, one unbounded.
    pub(crate) pools: [Pool; EACH],
    /// Whether values may be forgotten.
    pub(crate) forgets: bool,
    /// How early timers may fire, because nearly due timers are coalesced.
    early: Duration,
    /// Whether a task has stopped the runtime.
    pub(crate) stopped: AtomicBool,
    /// The addresses of listeners.
    pub(crate) listen_addrs: ListenAddrs,
    bag: Mutex<VecDeque<Leftover>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    started: AtomicUsize,
    coins: AtomicU64,
}

/// The number of runs of each kind of operation, in the order of [`KINDS`].
pub(crate) static REACHED: [AtomicU64; KINDS.len()] = [const { AtomicU64::new(0) }; KINDS.len()];

impl World {
    pub(crate) fn new(
        program: &Program,
        runtime: &Arc<Runtime>,
        ledger: &Arc<Ledger>,
    ) -> Arc<World> {
        let inbox = |receiver| Slot::new(Inbox { receiver, ledger: ledger.clone() });
        let channels = std::array::from_fn::<_, EACH, _>(|_| bounded(program.capacity));
        let mut senders = Vec::new();
        let mut receivers = Vec::new();
        for (sender, receiver) in channels {
            senders.push(sender);
            receivers.push(inbox(receiver));
        }
        let mut senders = senders.into_iter();
        let mut receivers = receivers.into_iter();
        let (unbounded, unbounded_rx) = unbounded();
        let (tracked, tracked_rx) = session::bounded(program.capacity);
        let (publisher, subscriber) = broadcast(program.capacity);
        let (setter, watcher) = watch(ledger.value());
        Arc::new(World {
            ledger: ledger.clone(),
            workers: program.workers,
            refuses: program.settings.may_refuse(),
            runtime: Arc::downgrade(runtime),
            senders: std::array::from_fn(|_| senders.next().expect("one each")),
            receivers: std::array::from_fn(|_| receivers.next().expect("one each")),
            unbounded,
            unbounded_rx: inbox(unbounded_rx),
            tracked,
            tracked_rx: inbox(tracked_rx),
            publisher,
            subscriber: Slot::new(subscriber),
            setter,
            watcher: Slot::new(watcher),
            mutex: Arc::new(sync::Mutex::new(ledger.value())),
            rwlock: Arc::new(sync::RwLock::new(ledger.value())),
            semaphore: Arc::new(sync::Semaphore::new(PERMITS)),
            notify: Arc::new(sync::Notify::new()),
            barrier: sync::Barrier::new(2),
            once: sync::OnceCell::new(),
            mutex_monitor: LockMonitor::new(ledger),
            rwlock_monitor: LockMonitor::new(ledger),
            pools: [Pool::new(Some(program.capacity), ledger), Pool::new(None, ledger)],
            forgets: program.forgets,
            early: Duration::from_micros(program.settings.coalesce.unwrap_or(0)),
            stopped: AtomicBool::new(false),
            listen_addrs: ListenAddrs::default(),
            bag: Mutex::default(),
            threads: Mutex::default(),
            started: AtomicUsize::new(0),
            coins: AtomicU64::new(program.seed),
        })
    }

    pub(crate) fn reach(&self, op: &Op) {
        let at = KINDS.iter().position(|kind| *kind == op.kind());
        REACHED[at.unwrap_or_default()].fetch_add(1, Relaxed);
    }

    /// Makes a choice that is not part of the program.
    pub(crate) fn coin(&self, sides: u64) -> u64 {
        asx_kernel::rng::mix64(self.coins.fetch_add(1, Relaxed)) % sides
    }

    pub(crate) fn put(&self, leftover: Leftover) {
        lock(&self.bag).push_back(leftover);
    }

    /// Takes a leftover out of the bag: the oldest, or the newest.
    pub(crate) fn find(&self) -> Option<Leftover> {
        let newest = self.coin(2) == 0;
        let mut bag = lock(&self.bag);
        if newest { bag.pop_back() } else { bag.pop_front() }
    }

    /// Empties the bag. Panics in the process belong to the program.
    pub(crate) fn empty_bag(&self) {
        while let Some(leftover) = self.find() {
            contain_panic(|| drop(leftover));
        }
    }

    /// Runs `does` on a new thread, or on this one if there are too many.
    pub(crate) fn thread(self: &Arc<Self>, does: impl FnOnce(&Arc<World>) + Send + 'static) {
        let world = self.clone();
        if self.started.fetch_add(1, Relaxed) >= THREADS {
            return contain_panic(|| does(&world));
        }
        let thread = std::thread::spawn(move || {
            contain_panic(|| does(&world));
            contain_panic(|| drop(world));
        });
        lock(&self.threads).push(thread);
    }

    /// Runs `does` on a new thread.
    pub(crate) fn spawn_thread(&self, does: impl FnOnce() + Send + 'static) {
        lock(&self.threads).push(std::thread::spawn(move || contain_panic(does)));
    }

    /// Waits for all threads.
    pub(crate) fn join_threads(&self) {
        loop {
            let threads = std::mem::take(&mut *lock(&self.threads));
            if threads.is_empty() {
                return;
            }
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }

    /// Whether a wait until `due` has not ended too early.
    pub(crate) fn in_time(&self, cx: &Cx, due: Time) -> bool {
        cx.now() + self.early >= due
    }

    /// Checks that all slots and permits were released, once nothing is running. Skipped if values
    /// were forgotten, or if a panicking destructor may leak.
    pub(crate) fn check_returned(&self, callback_panics: bool) {
        if self.forgets || callback_panics {
            return;
        }
        let permits = self.semaphore.available_permits();
        self.ledger.expect(permits == PERMITS, "permits of the semaphore are missing");
        self.ledger.expect(self.mutex.try_lock().is_ok(), "the mutex is locked permanently");
        self.ledger.expect(self.rwlock.try_write().is_ok(), "the rwlock is locked permanently");
        for sender in &self.senders {
            let all =
                sender.is_closed() || sender.capacity() + sender.len() == sender.max_capacity();
            self.ledger.expect(all, "slots of a channel are missing");
        }
        for pool in &self.pools {
            self.ledger.expect(pool.has_all_slots(), "slots of a channel are missing");
        }
    }

    /// Counts a message that was sent, or drops one that was returned.
    pub(crate) fn sent<E>(&self, sent: Result<(), E>) {
        if sent.is_ok() {
            self.ledger.sent.fetch_add(1, Relaxed);
        }
        drop(sent);
    }

    /// Counts and drops a received message.
    pub(crate) fn received(&self, value: Value) {
        self.ledger.received.fetch_add(1, Relaxed);
        value.check();
    }
}

/// Runs a function and contains its panic, including a panic of the payload's destructor.
pub(crate) fn contain_panic(does: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(does)) else { return };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Forget a payload that results from the drop of another payload.
        std::mem::forget(payload);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A value that is used by one task at a time.
pub(crate) struct Slot<T>(Mutex<Option<T>>);

impl<T> Slot<T> {
    fn new(value: T) -> Slot<T> {
        Slot(Mutex::new(Some(value)))
    }

    /// Stores a value. The previous one is dropped outside the lock.
    pub(crate) fn replace(&self, value: T) {
        let old = lock(&self.0).replace(value);
        drop(old);
    }
}

/// A value taken out of a slot; its drop puts it back.
pub(crate) struct SlotGuard<T: 'static> {
    world: Arc<World>,
    of: fn(&World, usize) -> &Slot<T>,
    nth: usize,
    value: Option<T>,
}

impl<T> SlotGuard<T> {
    pub(crate) fn take(
        world: &Arc<World>,
        nth: usize,
        of: fn(&World, usize) -> &Slot<T>,
    ) -> Option<SlotGuard<T>> {
        let value = Some(lock(&of(world, nth).0).take()?);
        Some(SlotGuard { world: world.clone(), of, nth, value })
    }

    pub(crate) fn get(&mut self) -> &mut T {
        self.value.as_mut().expect("the value is present until the guard is consumed")
    }

    /// Keeps the value instead of putting it back.
    pub(crate) fn keep(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<T> Drop for SlotGuard<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            (self.of)(&self.world, self.nth).replace(value);
        }
    }
}

/// A receiver that accounts for the messages left in its channel.
pub(crate) struct Inbox {
    pub(crate) receiver: Receiver<Value>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Inbox {
    pub(crate) fn close(&mut self) {
        let left = self.receiver.close_and_take();
        self.ledger.reported.fetch_add(left.len(), Relaxed);
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.close();
    }
}

/// The receiver of a reply that accounts for an unread reply.
pub(crate) struct PendingReply {
    pub(crate) answer: Answer<Value>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        let left = self.answer.close();
        self.ledger.reported.fetch_add(left.iter().len(), Relaxed);
    }
}

/// Messages that were received together.
pub(crate) struct Taken<'a> {
    pub(crate) values: Vec<Value>,
    pub(crate) ledger: &'a Ledger,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.ledger.received.fetch_add(self.values.len(), Relaxed);
    }
}
