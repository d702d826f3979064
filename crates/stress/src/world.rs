//! What the tasks and threads of a program share.

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

use crate::books::{Books, Value};
use crate::connection::{Conn, Places};
use crate::generate::EACH;
use crate::pool::Pool;
use crate::program::{KINDS, Op, Program};
use crate::turns::Turns;

/// Why a task of a program ends early.
pub(crate) enum Fail {
    Cancelled,
    Failed(#[allow(dead_code, reason = "dropped with it")] Value),
}

impl From<Cancelled> for Fail {
    fn from(_: Cancelled) -> Self {
        Fail::Cancelled
    }
}

/// A future that belongs to nobody yet.
pub(crate) type Loose = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is left lying about for whoever finds it.
pub(crate) enum Thing {
    Task(Task<Value, Fail>),
    Future(Loose),
    Reply(Reply<Value>),
    Permit(OwnedPermit<Value>),
    Scope(Scope<Fail>),
    Cx(Cx),
    Tcp(Conn<TcpStream>),
    Unix(Conn<UnixStream>),
}

/// How many permits the semaphore has.
pub(crate) const PERMITS: usize = 2;
/// How many threads a program starts at most.
const THREADS: usize = 16;

pub(crate) struct World {
    pub(crate) books: Arc<Books>,
    pub(crate) workers: usize,
    /// Whether the runtime may refuse what is asked for.
    pub(crate) refuses: bool,
    /// Weak: what threads hold must not keep the runtime's memory.
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
    /// Who is inside the locks.
    pub(crate) mutex_turns: Turns,
    pub(crate) rwlock_turns: Turns,
    /// Channels with several receivers: one with a bound, one without.
    pub(crate) pools: [Pool; EACH],
    /// Whether things may be forgotten.
    pub(crate) forgets: bool,
    /// By how much timers may be early, as those that are nearly due fire together.
    early: Duration,
    /// Whether a task has stopped the runtime.
    pub(crate) stopped: AtomicBool,
    /// Where connections are taken.
    pub(crate) places: Places,
    bag: Mutex<VecDeque<Thing>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    started: AtomicUsize,
    coins: AtomicU64,
}

/// How often each kind of operation was run, in the order of [`KINDS`].
pub(crate) static REACHED: [AtomicU64; KINDS.len()] = [const { AtomicU64::new(0) }; KINDS.len()];

impl World {
    pub(crate) fn new(program: &Program, runtime: &Arc<Runtime>, books: &Arc<Books>) -> Arc<World> {
        let inbox = |receiver| Slot::new(Inbox { receiver, books: books.clone() });
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
        let (setter, watcher) = watch(books.value());
        Arc::new(World {
            books: books.clone(),
            workers: program.workers,
            refuses: program.rules.refuse(),
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
            mutex: Arc::new(sync::Mutex::new(books.value())),
            rwlock: Arc::new(sync::RwLock::new(books.value())),
            semaphore: Arc::new(sync::Semaphore::new(PERMITS)),
            notify: Arc::new(sync::Notify::new()),
            barrier: sync::Barrier::new(2),
            once: sync::OnceCell::new(),
            mutex_turns: Turns::new(books),
            rwlock_turns: Turns::new(books),
            pools: [Pool::new(Some(program.capacity), books), Pool::new(None, books)],
            forgets: program.forgets,
            early: Duration::from_micros(program.rules.coalesce.unwrap_or(0)),
            stopped: AtomicBool::new(false),
            places: Places::default(),
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

    /// A choice that is not part of the program.
    pub(crate) fn coin(&self, sides: u64) -> u64 {
        asx_kernel::rng::mix64(self.coins.fetch_add(1, Relaxed)) % sides
    }

    pub(crate) fn put(&self, thing: Thing) {
        lock(&self.bag).push_back(thing);
    }

    /// Something out of the bag: the oldest, or the newest.
    pub(crate) fn find(&self) -> Option<Thing> {
        let newest = self.coin(2) == 0;
        let mut bag = lock(&self.bag);
        if newest { bag.pop_back() } else { bag.pop_front() }
    }

    /// Empties the bag; what panics on the way is as meant.
    pub(crate) fn empty_bag(&self) {
        while let Some(thing) = self.find() {
            quietly(|| drop(thing));
        }
    }

    /// Runs `does` on a thread of its own, unless there are enough of them: then here.
    pub(crate) fn thread(self: &Arc<Self>, does: impl FnOnce(&Arc<World>) + Send + 'static) {
        let world = self.clone();
        if self.started.fetch_add(1, Relaxed) >= THREADS {
            return quietly(|| does(&world));
        }
        let thread = std::thread::spawn(move || {
            quietly(|| does(&world));
            quietly(|| drop(world));
        });
        lock(&self.threads).push(thread);
    }

    /// Runs `does` on a thread of its own.
    pub(crate) fn thread_for_sure(&self, does: impl FnOnce() + Send + 'static) {
        lock(&self.threads).push(std::thread::spawn(move || quietly(does)));
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

    /// Whether what waited until `due` has not ended too early.
    pub(crate) fn in_time(&self, cx: &Cx, due: Time) -> bool {
        cx.now() + self.early >= due
    }

    /// Whether all that was lent has been given back, once nothing runs any more: what was
    /// forgotten is not, and what a destructor that panics may leak is not either.
    pub(crate) fn given_back(&self, bombs: bool) {
        if self.forgets || bombs {
            return;
        }
        let permits = self.semaphore.available_permits();
        self.books.expect(permits == PERMITS, "permits of the semaphore are missing");
        self.books.expect(self.mutex.try_lock().is_ok(), "the mutex is locked for ever");
        self.books.expect(self.rwlock.try_write().is_ok(), "the lock is locked for ever");
        for sender in &self.senders {
            let all =
                sender.is_closed() || sender.capacity() + sender.len() == sender.max_capacity();
            self.books.expect(all, "slots of a channel are missing");
        }
        for pool in &self.pools {
            self.books.expect(pool.has_all_slots(), "slots of a channel are missing");
        }
    }

    /// Counts a message that is on its way, or drops one that came back.
    pub(crate) fn sent<E>(&self, sent: Result<(), E>) {
        if sent.is_ok() {
            self.books.sent.fetch_add(1, Relaxed);
        }
        drop(sent);
    }

    /// Counts and drops a message that arrived.
    pub(crate) fn received(&self, value: Value) {
        self.books.received.fetch_add(1, Relaxed);
        value.look();
    }
}

/// Runs something whose panic is as meant, and the drop of its payload too.
pub(crate) fn quietly(does: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(does)) else { return };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload whose drop panics with another one ends here.
        std::mem::forget(payload);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Something that one uses at a time, and gives back.
pub(crate) struct Slot<T>(Mutex<Option<T>>);

impl<T> Slot<T> {
    fn new(value: T) -> Slot<T> {
        Slot(Mutex::new(Some(value)))
    }

    /// Puts something in; what was there is dropped outside the lock.
    pub(crate) fn replace(&self, value: T) {
        let old = lock(&self.0).replace(value);
        drop(old);
    }
}

/// What was taken out of a slot; dropped, it goes back.
pub(crate) struct Lent<T: 'static> {
    world: Arc<World>,
    of: fn(&World, usize) -> &Slot<T>,
    nth: usize,
    value: Option<T>,
}

impl<T> Lent<T> {
    pub(crate) fn take(
        world: &Arc<World>,
        nth: usize,
        of: fn(&World, usize) -> &Slot<T>,
    ) -> Option<Lent<T>> {
        let value = Some(lock(&of(world, nth).0).take()?);
        Some(Lent { world: world.clone(), of, nth, value })
    }

    pub(crate) fn get(&mut self) -> &mut T {
        self.value.as_mut().expect("taken out once")
    }

    /// Keeps it for good.
    pub(crate) fn keep(mut self) -> Option<T> {
        self.value.take()
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            (self.of)(&self.world, self.nth).replace(value);
        }
    }
}

/// A receiver that accounts for what is left in its channel, however it goes.
pub(crate) struct Inbox {
    pub(crate) receiver: Receiver<Value>,
    pub(crate) books: Arc<Books>,
}

impl Inbox {
    pub(crate) fn close(&mut self) {
        let left = self.receiver.close_and_take();
        self.books.reported.fetch_add(left.len(), Relaxed);
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.close();
    }
}

/// The same for a reply.
pub(crate) struct Expected {
    pub(crate) answer: Answer<Value>,
    pub(crate) books: Arc<Books>,
}

impl Drop for Expected {
    fn drop(&mut self) {
        let left = self.answer.close();
        self.books.reported.fetch_add(left.iter().len(), Relaxed);
    }
}

/// Messages that were taken several at a time.
pub(crate) struct Taken<'a> {
    pub(crate) values: Vec<Value>,
    pub(crate) books: &'a Books,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.books.received.fetch_add(self.values.len(), Relaxed);
    }
}
