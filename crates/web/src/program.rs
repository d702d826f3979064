//! Programs: a body in a region of its own, and who waits for its end.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use asx_kernel::budget::Budget;
use asx_kernel::status::{Coded, Status};
use asx_runtime::hosted::HostRegion;
use asx_runtime::{Cx, Grace, Policy, Scope, Task, TaskError, Why};

use crate::error::WebError;
use crate::runtime::{Inner, Runtime};

/// How a program has ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// With this value.
    Value(T),
    /// It gave none: it was ended by force, or panicked.
    Stopped(TaskError<Infallible>),
    /// The runtime is dead.
    Lost(WebError),
}

/// How a program is to be started.
///
/// ```
/// use asx_web::Start;
/// use std::time::Duration;
///
/// let limit = Some(Duration::from_secs(2));
/// let how = Start { name: "load".into(), within: limit, ..Start::default() };
/// assert_eq!(how.priority, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// What its task is called.
    pub name: Arc<str>,
    /// The priority of its task in its lane: higher goes first.
    pub priority: Option<u8>,
    /// In what time its task should be done: it runs in the timed lane, and is cancelled
    /// (`Deadline`) when the time is over.
    pub within: Option<Duration>,
}

impl Default for Start {
    fn default() -> Start {
        Start { name: "main".into(), priority: None, within: None }
    }
}

/// A program that runs.
///
/// Dropping it changes nothing: the program goes on.
pub struct Program<T> {
    scope: Scope<Infallible>,
    region: HostRegion,
    shared: Rc<RefCell<Shared<T>>>,
}

struct Shared<T> {
    value: Option<T>,
    ended: Option<Ended<T>>,
    is_over: bool,
    then: Option<Box<dyn FnOnce(Ended<T>)>>,
    finally: Option<Box<dyn FnOnce()>>,
}

impl<T> Shared<T> {
    /// It is over: whoever wanted to know is told, else it is kept.
    fn end(shared: &Rc<RefCell<Shared<T>>>, ended: Ended<T>) {
        let (then, finally) = {
            let mut shared = shared.borrow_mut();
            shared.is_over = true;
            (shared.then.take(), shared.finally.take())
        };
        match then {
            Some(then) => then(ended),
            None => shared.borrow_mut().ended = Some(ended),
        }
        finally.into_iter().for_each(|finally| finally());
    }
}

impl Runtime {
    /// Starts a program. It begins with the next microtask, and owns what it starts: it is over
    /// when all of that is.
    ///
    /// # Errors
    /// After a [`shutdown`](Runtime::shutdown), and if the runtime is dead.
    pub fn start<F, B, T>(&self, body: F) -> Result<Program<T>, WebError>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T> + 'static,
        T: 'static,
    {
        self.start_as(&Start::default(), body)
    }

    /// Starts a program with a name, a priority or a deadline of its own.
    ///
    /// # Errors
    /// As [`start`](Runtime::start).
    pub fn start_as<F, B, T>(&self, how: &Start, body: F) -> Result<Program<T>, WebError>
    where
        F: FnOnce(Cx) -> B,
        B: Future<Output = T> + 'static,
        T: 'static,
    {
        if let Some(trapped) = self.trapped() {
            return Err(WebError::Trapped(trapped));
        }
        let root = HostRegion::of(self.inner.root.clone());
        let opened = root.open_scope::<Infallible>(Policy::CollectAll, Budget::INFINITE);
        let (region, scope) = opened.map_err(WebError::Refused)?;
        let shared = Shared { value: None, ended: None, is_over: false, then: None, finally: None };
        let shared = Rc::new(RefCell::new(shared));
        let slot = shared.clone();
        let mut builder = scope.task(how.name.clone());
        if let Some(priority) = how.priority {
            builder = builder.priority(priority);
        }
        if let Some(limit) = how.within {
            builder = builder.within(limit);
        }
        let task = builder.try_spawn_local(move |cx| {
            let body = body(cx);
            async move {
                let value = body.await;
                slot.borrow_mut().value = Some(value);
                Ok(())
            }
        });
        let task = task.map_err(|refused| WebError::Refused(refused.status()))?;
        self.watch_program(region.clone(), task, shared.clone());
        Ok(Program { scope, region, shared })
    }

    fn watch_program<T: 'static>(
        &self,
        region: HostRegion,
        task: Task<(), Infallible>,
        shared: Rc<RefCell<Shared<T>>>,
    ) {
        let watched = region.clone();
        let lost = shared.clone();
        let over = async move {
            let outcome = task.await;
            watched.end();
            poll_fn(|cx| match watched.poll_closed(cx.waker()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
            let value = shared.borrow_mut().value.take();
            let ended = match (value, outcome) {
                // A program that was asked to stop still has its say.
                (Some(value), _) => Ended::Value(value),
                (None, Err(stop)) => Ended::Stopped(stop),
                (None, Ok(())) => Ended::Lost(WebError::Refused(Status::Internal)),
            };
            Shared::end(&shared, ended);
        };
        let dead = move |trapped| Shared::end(&lost, Ended::Lost(WebError::Trapped(trapped)));
        self.inner.watch(over, dead);
    }
}

impl<T> Program<T> {
    /// Whether everything in it has ended.
    pub fn is_over(&self) -> bool {
        self.shared.borrow().is_over
    }

    /// How it has ended, once.
    pub fn ended(&self) -> Option<Ended<T>> {
        self.shared.borrow_mut().ended.take()
    }

    /// Has `then` called with how it ends, when it does.
    pub fn on_end(&self, then: impl FnOnce(Ended<T>) + 'static) {
        let ended = self.ended();
        match ended {
            Some(ended) => then(ended),
            None => {
                // Who asked before is dropped outside the borrow.
                let old = self.shared.borrow_mut().then.replace(Box::new(then));
                drop(old);
            }
        }
    }

    /// Has `finally` called when it is over, after whoever [asked](Program::on_end).
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn finally(&self, finally: impl FnOnce() + 'static) {
        self.shared.borrow_mut().finally = Some(Box::new(finally));
    }

    /// Asks everything in it to stop.
    pub fn cancel(&self, why: impl Into<Why>) {
        self.scope.cancel(why);
    }

    /// The region it runs in.
    pub fn region(&self) -> u64 {
        self.region.id()
    }
}

impl<T> fmt::Debug for Program<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Program(r{}, over: {})", self.region(), self.is_over())
    }
}

impl Inner {
    /// Reports what is alive after a shutdown, if anything is.
    #[cfg(not(target_family = "wasm"))]
    fn report_alive(&self) {
        if self.root.is_closed() {
            return;
        }
        if let Err(alive) = self.root.quiescence() {
            self.core.report_not_quiescent(&alive);
        }
    }

    /// Reports that something is alive after a shutdown. The list would link the code of dumps into
    /// every page.
    #[cfg(target_family = "wasm")]
    fn report_alive(&self) {
        if !self.root.is_closed() {
            let line = "asx: the runtime was dropped and is not quiescent: tasks still run";
            asx_runtime::Host::report(&*self.adapter, line);
        }
    }
}

impl Drop for Inner {
    /// Nobody is left to call back: what lives is ended, by force if need be, and that is said.
    fn drop(&mut self) {
        if self.adapter.lock().pump.trapped().is_some() {
            // Nothing here can be trusted: it stays as it is.
            let watches = std::mem::take(&mut *self.watches.borrow_mut());
            return std::mem::forget(watches);
        }
        self.root.shutdown(Grace { soft: Duration::ZERO, hard: Duration::ZERO });
        let root = HostRegion::of(self.root.clone());
        let mut at = self.core.now();
        for _ in 0..ROUNDS {
            self.core.fire_timers(at);
            while self.step().is_some() {}
            self.tell_watches();
            if root.outcome().is_some() {
                break;
            }
            at = at + Duration::from_millis(20);
        }
        self.report_alive();
        // An alarm that is still armed, such as the one that looks after cleanup, holds its region,
        // which holds the runtime, which holds the alarm. An entry that was left behind holds its
        // task in the same way.
        self.core.close_timers();
        let dead = {
            let mut state = self.adapter.lock();
            state.set_dead_aside();
            state.scheduler.take_dead()
        };
        // Not under the lock: it may free a task, and with it what is the user's.
        drop(dead);
    }
}

/// How often a runtime that is dropped is told to come to an end.
const ROUNDS: usize = 1000;
