//! The runtime as its page sees it: what the event loop calls, and what people ask.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use asx_kernel::lanes::{Certificate, Lane, SchedulerConfig, Suggestion};
use asx_kernel::pump::{
    Capabilities, Capability, Denied, HostCall, PumpConfig, PumpState, StaleTimer, Trapped,
};
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::Time;
use asx_runtime::{
    Core, Dump, Grace, Host, QuiescenceError, Recorded, Region, Settings, TimeDenied,
};

use crate::adapter::Adapter;
use crate::calls::HostCalls;
use crate::error::WebError;
use crate::log::HostEvent;
use crate::watch::Watches;

/// How a [`Runtime`] is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long a drain may go on, and what the platform has. With `clock_check_every` at 1 the
    /// timers too are looked at before every step.
    pub pump: PumpConfig,
    /// How long cancels may go, and how equals are ordered. There is one worker.
    pub scheduler: SchedulerConfig,
    /// What tasks are bound by, and whether events are recorded.
    pub settings: Settings,
    /// What random numbers come from; `None`: from the page, if it granted that.
    pub seed: Option<u64>,
    /// How many host events are kept; 0: only errors are.
    pub host_events: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            pump: PumpConfig { clock_check_every: 32, ..PumpConfig::default() },
            scheduler: SchedulerConfig::default(),
            settings: Settings::default(),
            seed: None,
            host_events: 0,
        }
    }
}

/// A runtime in a page or worker. A cheap clone; it belongs to one thread.
///
/// ```
/// use asx_web::{Config, page::Page};
/// use std::{cell::Cell, rc::Rc};
///
/// let (page, runtime) = Page::open(Config::default());
/// let seen = Rc::new(Cell::new(0));
/// let inside = seen.clone();
/// let program = runtime.start(async move |cx| {
///     cx.yield_now().await;
///     inside.set(7);
/// })?;
/// page.run(&runtime);
/// assert!(program.is_over() && seen.get() == 7);
/// # Ok::<(), asx_web::WebError>(())
/// ```
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Rc<Inner>,
}

/// A callback for drains that cannot hand off.
type WhenStalled = Rc<dyn Fn(Denied)>;

pub(crate) struct Inner {
    pub(crate) adapter: Arc<Adapter>,
    pub(crate) core: Arc<Core>,
    pub(crate) root: Arc<Region>,
    pub(crate) watches: RefCell<Watches>,
    pub(crate) when_stalled: RefCell<Option<WhenStalled>>,
    /// The clock and the timers are looked at before every step.
    pub(crate) every_step: bool,
}

/// What a direct call of the pump came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pumped {
    /// A drain was due and ran.
    Drained,
    /// A drain is on the stack: the call is noted, and made good when it ends.
    Deferred,
    /// Nothing was to be done.
    NotScheduled,
}

/// What the pump is about, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PumpInfo {
    /// What it is doing.
    pub state: PumpState,
    /// The host turn.
    pub turn: u64,
    /// The last drain.
    pub batch: u64,
    /// The host call on its way.
    pub outstanding: Option<HostCall>,
    /// Whether a wake came since the running drain last went to the lanes.
    pub pending: bool,
    /// Whether a host call is owed because it was denied.
    pub stalled: bool,
    /// Pump calls that came inside a drain.
    pub deferred: u64,
    /// Rings for timers that were over.
    pub stale_timers: u64,
}

impl Runtime {
    /// A runtime over what a page grants.
    pub fn new(config: Config, granted: Capabilities, calls: Arc<dyn HostCalls>) -> Runtime {
        let scheduler = SchedulerConfig { workers: 1, ..config.scheduler };
        let config = Config { scheduler, ..config };
        let adapter = Arc::new(Adapter::new(&config, granted, calls));
        let core = Core::new(adapter.clone(), config.settings);
        core.deny_time(time_denied(granted));
        let root = core.root();
        let watches = RefCell::default();
        let when_stalled = RefCell::default();
        let every_step = config.pump.clock_check_every <= 1;
        Runtime { inner: Rc::new(Inner { adapter, core, root, watches, when_stalled, every_step }) }
    }

    /// The page calls back what [`HostCalls::call`] asked for: the only way drains begin by
    /// themselves.
    ///
    /// # Errors
    /// A token that was never given out. One that is merely old says nothing: another call has
    /// done its work.
    pub fn called(&self, token: u32) -> Result<(), WebError> {
        let mut state = self.inner.adapter.lock();
        if let Some(trapped) = state.pump.trapped() {
            return Err(WebError::Trapped(trapped));
        }
        if state.pump.state() == PumpState::Running {
            // The event loop calls nobody while a drain is on the stack: that drain is no more.
            drop(state);
            return Err(WebError::Trapped(self.trap("a drain did not come back")));
        }
        if token == 0 || token > state.issued {
            let forged = WebError::Forged { token };
            let detail = vec![("token", token.to_string())];
            state.tell("scheduler_forged_message", Some(forged.status()), detail);
            return Err(forged);
        }
        let is_last = token == state.kick;
        if token == state.turn_end {
            state.turn_end = 0;
            let _ = state.pump.end_turn();
        }
        drop(state);
        if is_last {
            self.inner.enter();
        }
        Ok(())
    }

    /// The page calls back that the host timer rang.
    ///
    /// # Errors
    /// A token that is not the last one's, a capability that was taken away, a dead runtime.
    pub fn rang(&self, token: u32) -> Result<(), WebError> {
        let adapter = &self.inner.adapter;
        let last = adapter.lock().timer;
        if token == 0 || token > last {
            let forged = WebError::Forged { token };
            let detail = vec![("token", token.to_string())];
            adapter.lock().tell("scheduler_forged_timer", Some(forged.status()), detail);
            return Err(forged);
        }
        if token != last || adapter.lock().armed.is_none() {
            let _ = adapter.lock().pump.host_turn().map_err(WebError::Trapped)?;
            adapter.stale_ring(StaleTimer { id: token.into(), generation: token.into() });
            return Err(WebError::StaleTimer { token });
        }
        adapter.lock().armed = None;
        self.host_timer()
    }

    /// The host timer rings, whichever it was: it wakes the pump if something is due, and polls
    /// nothing.
    pub fn host_timer(&self) -> Result<(), WebError> {
        let Inner { adapter, core, .. } = &*self.inner;
        adapter.require(Capability::Timer, "host timer").map_err(WebError::Denied)?;
        adapter.lock().pump.host_turn().map_err(WebError::Trapped)?;
        let now = adapter.now();
        // Exactly: a timer that was cancelled wakes nobody.
        match core.next_wake() {
            Some(next) if next <= now => adapter.wake(),
            next => adapter.arm(next),
        }
        Ok(())
    }

    /// A host timer rings for a timer that is over: a host turn, and a word about it.
    pub fn late_ring(&self, stale: StaleTimer) -> Result<(), WebError> {
        self.inner.adapter.lock().pump.host_turn().map_err(WebError::Trapped)?;
        self.inner.adapter.stale_ring(stale);
        Ok(())
    }

    /// The page begins a macrotask of its own.
    pub fn page_turn(&self) -> Result<u64, WebError> {
        self.inner.adapter.lock().pump.host_turn().map_err(WebError::Trapped)
    }

    /// Reports that the page's current macrotask is over, so the next drain has a fresh allowance.
    /// A page need not call this: the runtime asks for [a call](HostCalls::watch_turn) that reports
    /// the same.
    ///
    /// # Errors
    /// A dead runtime.
    pub fn end_turn(&self) -> Result<(), WebError> {
        self.inner.adapter.lock().pump.end_turn().map_err(WebError::Trapped)
    }

    /// Calls the pump directly: runs the drain that is due, if one is. From inside a task it is
    /// only noted.
    pub fn pump(&self) -> Result<Pumped, WebError> {
        let begun = {
            let mut state = self.inner.adapter.lock();
            match state.pump.state() {
                PumpState::Running => {
                    state.defer();
                    return Ok(Pumped::Deferred);
                }
                PumpState::Idle => match state.pump.trapped() {
                    Some(trapped) => return Err(WebError::Trapped(trapped)),
                    None => false,
                },
                PumpState::Scheduled => true,
            }
        };
        if !begun {
            return Ok(Pumped::NotScheduled);
        }
        self.inner.enter();
        Ok(Pumped::Drained)
    }

    /// A poll was killed: nothing runs here any more, and whoever waits is told why.
    pub fn trap(&self, site: &'static str) -> Trapped {
        let trapped = {
            let mut state = self.inner.adapter.lock();
            let first = state.pump.trapped().is_none();
            let trapped = state.pump.trap(site);
            if first {
                let detail = vec![("diagnosis", trapped.to_string())];
                state.tell("scheduler_trapped", Some(Status::Internal), detail);
            }
            trapped
        };
        self.inner.give_up_watches(trapped);
        trapped
    }

    /// The diagnosis, if the runtime is dead.
    pub fn trapped(&self) -> Option<Trapped> {
        self.inner.adapter.lock().pump.trapped()
    }

    /// Grants a facility. What was owed for want of it is done now.
    pub fn grant(&self, capability: Capability) {
        let Inner { adapter, core, .. } = &*self.inner;
        adapter.grant(capability);
        self.inner.deny_time();
        if matches!(capability, Capability::Timer | Capability::Clock) {
            adapter.arm(core.next_timer());
        }
    }

    /// Takes a facility away: from now on it is denied. Without the clock or the timer, tasks that
    /// wait for a time fail with `CAPABILITY_DENIED`, those that wait already too.
    pub fn revoke(&self, capability: Capability) {
        self.inner.adapter.revoke(capability);
        self.inner.deny_time();
    }

    /// Whether a facility is granted; a refusal goes on the record with who wanted it.
    pub fn require(&self, capability: Capability, site: &'static str) -> Result<(), Denied> {
        self.inner.adapter.require(capability, site)
    }

    /// Tells that somebody tried to start a second runtime.
    pub fn started_twice(&self) -> WebError {
        let error = WebError::AlreadyStarted;
        let mut state = self.inner.adapter.lock();
        state.tell("scheduler_started_twice", Some(error.status()), Vec::new());
        error
    }

    /// Changes how long drains go on from the next one; false inside a drain.
    pub fn configure(&self, pump: PumpConfig) -> bool {
        let mut state = self.inner.adapter.lock();
        let changes = state.pump.state() != PumpState::Running;
        if changes {
            state.pump.configure(pump);
        }
        changes
    }

    /// How long drains go on.
    pub fn pump_config(&self) -> PumpConfig {
        *self.inner.adapter.lock().pump.config()
    }

    /// Has the scheduler advised so from now on.
    pub fn suggest(&self, suggestion: Suggestion) {
        self.inner.adapter.lock().suggest(suggestion);
    }

    /// Stops everything, for good: in time, then by force.
    pub fn shutdown(&self, grace: Grace) {
        self.inner.root.shutdown(grace);
    }

    /// Has `then` called once everything is over, after a [`shutdown`](Runtime::shutdown). It is
    /// not called if the runtime dies.
    pub fn when_closed(&self, then: impl FnOnce() + 'static) {
        let root = self.inner.root.clone();
        let mut then = Some(then);
        let closed = poll_fn(move |cx| {
            if !root.poll_closed(cx.waker()) {
                return Poll::Pending;
            }
            then.take().into_iter().for_each(|then| then());
            Poll::Ready(())
        });
        self.inner.watch(closed, |_| ());
    }

    /// Calls `then` whenever a drain ends with work left and the host call that it needs is denied.
    /// Runnable tasks wait until it is granted. Replaces the function of an earlier call.
    pub fn when_stalled(&self, then: impl Fn(Denied) + 'static) {
        let before = self.inner.when_stalled.borrow_mut().replace(Rc::new(then));
        // Not in the borrow: it is the caller's.
        drop(before);
    }

    /// Why nothing runs although something is runnable, if a host call is denied that is needed.
    pub fn stalled(&self) -> Option<Denied> {
        self.inner.adapter.lock().pump.stalled_by()
    }

    /// What lives, where, and what it waits for.
    pub fn dump(&self) -> Dump {
        Dump::of(&self.inner.root)
    }

    /// Checks whether nothing is alive: no task, no reserved obligation, no region that is not
    /// closed, no armed timer, and no channel of a scope with messages or permits. Until a
    /// [`shutdown`](Runtime::shutdown) is complete the root region is open.
    ///
    /// # Errors
    /// The failures in the order of the check, and everything that is alive.
    pub fn quiescence(&self) -> Result<(), QuiescenceError> {
        self.inner.root.quiescence()
    }

    /// What was recorded, if anything is.
    pub fn recorded(&self) -> Option<Recorded> {
        self.inner.core.recorded()
    }

    /// How many events were recorded.
    pub fn events(&self) -> u64 {
        self.inner.core.events()
    }

    /// The host events after number `seq`, as far as they are kept.
    pub fn host_events(&self, seq: u64) -> Vec<HostEvent> {
        self.inner.adapter.lock().log.after(seq)
    }

    /// What the pump is about.
    pub fn pump_info(&self) -> PumpInfo {
        self.inner.adapter.lock().info()
    }

    /// How many entries wait in a lane.
    pub fn queued(&self, lane: Lane) -> usize {
        self.inner.adapter.lock().queued(lane)
    }

    /// The dispatches so far, counted.
    pub fn certificate(&self) -> Certificate {
        self.inner.adapter.lock().certificate()
    }

    /// The time, if the clock is granted; else the last one that was read.
    pub fn now(&self) -> Time {
        self.inner.adapter.now()
    }

    /// What its tasks share.
    pub fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// Its root region.
    pub fn root(&self) -> &Arc<Region> {
        &self.inner.root
    }

    /// What may be asked from anywhere.
    pub fn handle(&self) -> Handle {
        Handle(self.inner.adapter.clone())
    }

    /// Fires what is due and polls one task, outside any drain: for who steps by hand. `None`:
    /// nothing is runnable now.
    pub fn step(&self) -> Option<(u64, Lane)> {
        let Inner { adapter, core, .. } = &*self.inner;
        loop {
            core.fire_timers(adapter.now());
            match self.inner.step() {
                Some((task, lane, true)) => return Some((task, lane)),
                Some((_, _, false)) => {}
                None => {
                    adapter.lock().parked();
                    return None;
                }
            }
        }
    }

    /// The invariants that can be seen from here.
    pub fn check(&self) -> Result<(), &'static str> {
        let state = self.inner.adapter.lock();
        state.pump.check()?;
        state.scheduler.check()
    }
}

impl Inner {
    /// Makes waits for a time fail or succeed, depending on the granted capabilities.
    fn deny_time(&self) {
        let granted = self.adapter.lock().pump.capabilities();
        self.core.deny_time(time_denied(granted));
    }
}

/// The missing capability that keeps tasks from waiting for a time.
fn time_denied(granted: Capabilities) -> Option<TimeDenied> {
    if !granted.has(Capability::Clock) {
        return Some(TimeDenied::Clock);
    }
    (!granted.has(Capability::Timer)).then_some(TimeDenied::Timer)
}

/// A runtime as anybody may ask it, tasks too.
#[derive(Clone)]
pub struct Handle(Arc<Adapter>);

impl Handle {
    /// What the pump is about.
    pub fn pump_info(&self) -> PumpInfo {
        self.0.lock().info()
    }

    /// How many entries wait in a lane.
    pub fn queued(&self, lane: Lane) -> usize {
        self.0.lock().queued(lane)
    }

    /// Whether a facility is granted; a refusal goes on the record with who wanted it.
    pub fn require(&self, capability: Capability, site: &'static str) -> Result<(), Denied> {
        self.0.require(capability, site)
    }

    /// The granted capabilities.
    pub fn granted(&self) -> Capabilities {
        self.0.lock().pump.capabilities()
    }

    /// Ends the running drain after the current step, so that page code which the step queued runs
    /// before the next one. Call it where a task settles a promise or calls a function that does:
    /// the time that the page's reactions take then counts towards the allowance of the host turn,
    /// and one drain cannot release more of them than fit. The drain resumes in a microtask.
    pub fn yield_to_page(&self) {
        self.0.lock().pump.yield_to_page();
    }

    /// A pump call from inside a drain, which is noted: whether there is one.
    pub fn defer(&self) -> bool {
        let mut state = self.0.lock();
        let is_running = state.pump.state() == PumpState::Running;
        if is_running {
            state.defer();
        }
        is_running
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({:?})", self.pump_info().state)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("pump", &self.pump_info()).finish_non_exhaustive()
    }
}
