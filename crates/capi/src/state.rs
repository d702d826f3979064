//! What a runtime has beside its mailbox: the world, the messages' bytes, watchdogs, counters.
//!
//! The world is the kernel's; what is added here decides nothing about who runs when. A watchdog
//! that runs out asks the world to cancel its task, as any caller could.

use crate::abi::{
    ASX_NONE, ASX_WATCHDOG_CANCELLED, ASX_WATCHDOG_FORCED, AsxBody, AsxTaskId, AsxTransfer,
};
use crate::config::{ASX_FLAG_GHOSTS, ASX_FLAG_POOL, AsxRuntimeConfig, Line, size};
use crate::error::{Bad, Fault, Signature, Why};
use crate::ghost::{Borrows, Ghosts, Places};
use crate::holdings::Storage;
use crate::store::{Message, Stores};
use alloc::collections::{TryReserveError, VecDeque};
use asx_kernel::arena::{Arena, Key};
use asx_kernel::cancel::{Kind, Phase, Witness};
use asx_kernel::choose::Seeded;
use asx_kernel::ids::TaskId;
use asx_kernel::rng::DetRng;
use asx_kernel::sorted::{Map, Set};
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::world::{Answer, Ask, Offer, TaskError, World};
use core::time::Duration;

/// A body, as the world has it: where it is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body(Key);

/// A body that is kept, and the task it is of once that is known.
struct Kept {
    body: AsxBody,
    task: Option<TaskId>,
    role: Role,
}

/// What a body is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Task,
    /// It is none yet, but will be when its region finalizes.
    Finalizer,
    Cleanup,
}

/// The world of a runtime.
pub(crate) type Kernel = World<Body, Message>;

/// The runtime's own part.
pub(crate) struct Core {
    pub(crate) world: Kernel,
    /// Every body the world has, so that none is forgotten at the end.
    bodies: Arena<Kept>,
    /// How many of them have each role.
    roles: [usize; 3],
    /// How many finalizers and cleanup entries there may be.
    most: [usize; 3],
    /// Things that can be added before memory is looked at again.
    pub(crate) adds: usize,
    /// Small calls until memory is looked at again.
    pub(crate) credit: u8,
    /// Events that may come before memory is looked at again.
    pub(crate) events_ahead: usize,
    pub(crate) choose: Seeded,
    pub(crate) random: DetRng,
    pub(crate) stores: Stores,
    pub(crate) storage: Storage,
    /// Memory of Closed regions may be kept for a while: there is no pool.
    pub(crate) keeps_storage: bool,
    pub(crate) ghosts: Ghosts,
    /// Where obligations were reserved, as far as the program has said.
    pub(crate) places: Places,
    pub(crate) borrows: Borrows,
    /// The task being polled, and the error it has set.
    pub(crate) current: Option<TaskId>,
    /// What of it is polled.
    pub(crate) current_body: Option<Body>,
    pub(crate) error: Option<TaskError>,
    /// A step is under way.
    pub(crate) stepping: bool,
    /// The call under way may let go of bodies or messages.
    pub(crate) releases: bool,
    /// A shutdown was asked for.
    pub(crate) shut: bool,
    /// An INTERNAL was answered: nothing may be called.
    pub(crate) broken: bool,
    /// The argument that the call under way, which fails, has found wrong late.
    pub(crate) blamed: Option<(&'static str, Why)>,
    /// The last time the runtime has changed hands.
    pub(crate) transfer: AsxTransfer,
    /// Those that were not released.
    pub(crate) witnesses: Arena<Witness>,
    /// How many there may be: one for each phase of as many tasks as may live.
    pub(crate) most_witnesses: u64,
    /// Tasks whose slot is freed when they are over.
    pub(crate) auto_release: Set<TaskId>,
    watchdogs: Watchdogs,
    /// Lines for the log hook.
    pub(crate) lines: VecDeque<Line>,
    /// Bodies whose drop callback is due.
    pub(crate) dropped: VecDeque<AsxBody>,
    pub(crate) polls: u64,
    pub(crate) overruns: u64,
    pub(crate) external_wakes: u64,
    pub(crate) max_steps: u64,
    pub(crate) default_watchdog: u64,
    pub(crate) default_grace: u64,
    /// Somebody listens to watchdogs.
    watches: bool,
    /// What is to be told of them.
    pub(crate) watched: VecDeque<(AsxTaskId, i32)>,
    logs: bool,
}

impl Core {
    pub(crate) fn new(config: &AsxRuntimeConfig) -> Answer<Core> {
        Ok(Core {
            world: World::new(config.kernel()?),
            bodies: Arena::new(),
            roles: [0; 3],
            most: [usize::MAX, size(config.max_finalizers), size(config.max_cleanups)],
            adds: 0,
            credit: 0,
            events_ahead: 0,
            choose: Seeded::new(config.seed, 1),
            random: DetRng::new(config.seed, u64::MAX - 1),
            stores: Stores::default(),
            storage: Storage::default(),
            keeps_storage: config.flags & ASX_FLAG_POOL == 0,
            ghosts: Ghosts::new(config.flags & ASX_FLAG_GHOSTS != 0, config.ghost.is_some()),
            places: Places::default(),
            borrows: Borrows::new(size(config.max_borrows)),
            current: None,
            current_body: None,
            error: None,
            stepping: false,
            releases: true,
            shut: false,
            broken: false,
            blamed: None,
            transfer: AsxTransfer::NONE,
            witnesses: Arena::new(),
            most_witnesses: config.max_tasks.saturating_mul(Phase::ALL.len() as u64),
            auto_release: Set::new(),
            watchdogs: Watchdogs::default(),
            lines: VecDeque::new(),
            dropped: VecDeque::new(),
            polls: 0,
            overruns: 0,
            external_wakes: 0,
            max_steps: config.max_steps,
            default_watchdog: config.watchdog_ns,
            default_grace: config.watchdog_grace_ns,
            watches: config.watchdog.is_some(),
            watched: VecDeque::new(),
            logs: config.log.is_some(),
        })
    }

    /// The beginning of a call.
    #[inline(always)]
    pub(crate) fn admit(&mut self, call: Signature) -> Answer {
        if self.broken {
            return Err(Status::Internal);
        }
        self.ghosts.call = call;
        self.releases = true;
        Ok(())
    }

    /// This call lets go of nothing: there is nothing to collect after it.
    #[inline(always)]
    pub(crate) fn keeps_all(&mut self) -> &mut Core {
        self.releases = false;
        self
    }

    /// The end of a call: collects what must be done now that the core is free; whether there is
    /// something.
    #[inline(always)]
    pub(crate) fn settle(&mut self, answer: &Answer) -> bool {
        // Of a call that was let in, lets go of nothing and has told nothing, nothing is left.
        let quiet = answer.is_ok() & !self.releases & !self.ghosts.is_placed();
        if quiet { self.has_effects() } else { self.settle_all(answer) }
    }

    #[inline(never)]
    fn settle_all(&mut self, answer: &Answer) -> bool {
        self.broken |= *answer == Err(Status::Internal);
        self.ghosts.end_call();
        if self.releases {
            self.collect();
        }
        self.has_effects()
    }

    #[inline(always)]
    fn has_effects(&self) -> bool {
        let due = self.storage.is_due(self.world.reclaims());
        let told = self.ghosts.reports() | self.lines.len() | self.watched.len();
        self.dropped.len() | told != 0 || due
    }

    /// The end of a poll, or of a run: as the end of a call that went well.
    #[inline(always)]
    pub(crate) fn settle_poll(&mut self) -> bool {
        self.ghosts.end_call();
        self.collect();
        self.has_effects()
    }

    /// Takes over what the world has let go of.
    #[inline(always)]
    pub(crate) fn collect(&mut self) {
        if self.world.has_let_go() {
            self.let_go();
        }
    }

    #[inline(never)]
    fn let_go(&mut self) {
        while let Some(queue) = self.world.pop_dropped() {
            queue.into_iter().for_each(|message| self.stores.free(message));
        }
        while cfg!(feature = "dump")
            && let Some((region, obligation)) = self.world.next_leaked()
        {
            let place = self.places.take(obligation);
            self.tell(Line::Leaked(region, obligation.ordinal(), place));
        }
        while let Some(unused) = self.world.next_released() {
            // What was completed by force was not noticed after a poll.
            if let Some(task) = self.drop_body(unused) {
                self.after_poll(task);
            }
        }
    }

    /// How many bodies have a role.
    pub(crate) fn count(&self, role: Role) -> usize {
        let [tasks, finalizers, cleanups] = self.roles;
        match role {
            Role::Task => tasks,
            Role::Finalizer => finalizers,
            Role::Cleanup => cleanups,
        }
    }

    /// How many bodies there are.
    pub(crate) fn bodies(&self) -> usize {
        self.bodies.len()
    }

    /// Whether the limit of a role is reached.
    pub(crate) fn is_full(&self, role: Role) -> bool {
        self.most.get(role as usize).is_some_and(|most| self.count(role) >= *most)
    }

    /// Makes room for so many bodies more, and for all of them to be let go of at once.
    pub(crate) fn reserve_bodies(&mut self, more: usize) -> Result<(), TryReserveError> {
        self.bodies.try_reserve(more)?;
        let all = self.bodies.len() + more;
        self.dropped.try_reserve(all.saturating_sub(self.dropped.len()))
    }

    /// Makes room for what is to be told of all watchdogs, and of so many more: each may cancel
    /// and end by force at the same instant.
    pub(crate) fn reserve_watchdogs(&mut self, more: usize) -> Result<(), TryReserveError> {
        let told = if self.watches { 2 * (self.watchdogs.all.len() + more) } else { 0 };
        self.watched.try_reserve(told.saturating_sub(self.watched.len()))
    }

    /// A body has taken a role, or left it.
    fn counts(&mut self, role: Role, change: isize) {
        if let Some(count) = self.roles.get_mut(role as usize) {
            *count = count.saturating_add_signed(change);
        }
    }

    /// Gives a body to the world, with `offer`; a refused one is forgotten, and stays the caller's.
    pub(crate) fn offer<T>(
        &mut self,
        body: AsxBody,
        role: Role,
        offer: impl FnOnce(&mut Kernel, Body) -> Offer<Body, T>,
    ) -> Answer<T> {
        let kept = Kept { body, task: None, role };
        let key = self.bodies.insert(kept).map_err(|_| Status::ResourceExhausted)?;
        match offer(&mut self.world, Body(key)) {
            Ok(taken) => {
                self.counts(role, 1);
                Ok(taken)
            }
            Err((status, Body(key))) => {
                self.bodies.remove(key);
                Err(status)
            }
        }
    }

    /// What a body is, and the task it is of, if known.
    pub(crate) fn body(&self, body: Body) -> Option<(AsxBody, Option<TaskId>)> {
        self.bodies.get(body.0).map(|kept| (kept.body, kept.task))
    }

    /// The world has taken a body for a task, which may be woken from outside from now on.
    pub(crate) fn belongs(&mut self, body: Body, task: TaskId) {
        let Some(kept) = self.bodies.get_mut(body.0) else { return };
        kept.task = Some(task);
        if kept.role == Role::Finalizer {
            kept.role = Role::Task;
            self.counts(Role::Finalizer, -1);
            self.counts(Role::Task, 1);
        }
    }

    /// A body is not needed any more: its drop callback is due. The task it is of, if known.
    pub(crate) fn drop_body(&mut self, body: Body) -> Option<TaskId> {
        let Kept { body, task, role } = self.bodies.remove(body.0)?;
        self.counts(role, -1);
        self.dropped.push_back(body);
        task
    }

    /// Has a line told to whoever listens, if there is memory for it.
    pub(crate) fn tell(&mut self, line: Line) {
        if cfg!(feature = "dump") && self.logs && self.lines.try_reserve(1).is_ok() {
            self.lines.push_back(line);
        }
    }

    /// None is needed any more.
    pub(crate) fn drop_bodies(&mut self) {
        for at in 0..self.bodies.slots() as u32 {
            let _ = self.bodies.key_at(at).and_then(|key| self.drop_body(Body(key)));
        }
    }

    /// Arms or replaces a task's watchdog; `None` takes it away. One that has run out goes its way.
    pub(crate) fn watch(&mut self, task: TaskId, span: Option<u64>, grace: u64) {
        if self.watchdogs.get(task).is_some_and(|watch| watch.stage != Stage::Awake) {
            return;
        }
        let now = self.world.now();
        let watch = |span| Watch { span, grace, due: after(now, span), stage: Stage::Awake };
        self.watchdogs.set(task, span.map(watch));
    }

    /// The task shows that it is alive.
    pub(crate) fn kick(&mut self, task: TaskId) {
        if let Some(watch) = self.watchdogs.get(task) {
            self.watch(task, Some(watch.span), watch.grace);
        }
    }

    /// Cancels the tasks whose watchdog has run out, in order of time, then of creation, and ends
    /// by force those whose grace is over. When the cancel queue is full the rest stay due.
    #[inline(always)]
    pub(crate) fn expire_watchdogs(&mut self) {
        if !self.watchdogs.due.is_empty() {
            self.expire_due();
        }
    }

    #[inline(never)]
    fn expire_due(&mut self) {
        while let Some((task, watch)) = self.watchdogs.due(self.world.now()) {
            let next = match watch.stage {
                _ if self.is_over(task) => None,
                Stage::Awake => match self.cancel_watched(task) {
                    Err(Status::ResourceExhausted) => return,
                    Err(_) => None,
                    Ok(()) => (watch.grace != ASX_NONE).then_some((Stage::Cancelled, watch.grace)),
                },
                Stage::Cancelled => {
                    self.force_watched(task);
                    // What cleans up without a time of its own has to be polled first.
                    Some((Stage::Forced, watch.grace.max(1)))
                }
                Stage::Forced => {
                    let _ = self.world.force_task(task);
                    None
                }
            };
            let next = next.filter(|_| !self.is_over(task));
            let due = |span| after(self.world.now(), span);
            let watch = next.map(|(stage, span)| Watch { stage, due: due(span), ..watch });
            self.watchdogs.set(task, watch);
        }
    }

    fn cancel_watched(&mut self, task: TaskId) -> Answer {
        let ask = Ask { kind: Kind::Timeout, message: Some("watchdog".into()) };
        self.world.cancel_task(task, ask)?;
        self.watchdogs.expired += 1;
        self.tell_watchdog(task, ASX_WATCHDOG_CANCELLED);
        Ok(())
    }

    fn force_watched(&mut self, task: TaskId) {
        self.tell_watchdog(task, ASX_WATCHDOG_FORCED);
        self.watchdogs.forced += 1;
        let _ = self.world.force_task(task);
    }

    fn tell_watchdog(&mut self, task: TaskId, stage: i32) {
        if self.watches {
            // Room was made when the watchdog was.
            self.watched.push_back((self.task_handle(task), stage));
        }
        self.tell(Line::Watchdog(task, stage));
    }

    /// Tasks cancelled by their watchdog so far.
    pub(crate) fn watchdogs_expired(&self) -> u64 {
        self.watchdogs.expired
    }

    /// Tasks ended by force by their watchdog so far.
    pub(crate) fn watchdogs_forced(&self) -> u64 {
        self.watchdogs.forced
    }

    /// The next instant at which something happens by itself.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.deadline_with(self.world.next_wake())
    }

    /// The same, the kernel's part being known.
    #[inline]
    pub(crate) fn deadline_with(&self, kernels: Option<Time>) -> Option<Time> {
        match (kernels, self.watchdogs.next()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The poll of a task is over: its slot may go.
    pub(crate) fn after_poll(&mut self, task: TaskId) {
        if !self.is_over(task) {
            return;
        }
        self.watchdogs.set(task, None);
        if self.auto_release.remove(&task) {
            let _ = self.world.release_task(task);
        }
    }

    /// Whether a task has completed, or is gone.
    fn is_over(&self, task: TaskId) -> bool {
        let completed = TaskState::Completed.mask();
        self.world.task_handle(task).map_or(true, |handle| handle.allows(completed))
    }

    /// The handle of the task being polled.
    pub(crate) fn current_handle(&self) -> AsxTaskId {
        self.current.map_or(AsxTaskId::NONE, |task| self.task_handle(task))
    }
}

/// How far a watchdog has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The task must be kicked until then.
    Awake,
    /// It was cancelled, and must be over until then.
    Cancelled,
    /// It was ended by force, and its cleanup stack must be done until then.
    Forced,
}

/// A task's watchdog.
#[derive(Clone, Copy, Debug)]
struct Watch {
    span: u64,
    grace: u64,
    due: Time,
    stage: Stage,
}

fn after(now: Time, span: u64) -> Time {
    now + Duration::from_nanos(span)
}

/// Who must be kicked, or be over, until when.
#[derive(Default)]
struct Watchdogs {
    due: Set<(Time, TaskId)>,
    all: Map<TaskId, Watch>,
    expired: u64,
    forced: u64,
}

impl Watchdogs {
    fn set(&mut self, task: TaskId, watch: Option<Watch>) {
        if let Some(Watch { due, .. }) = self.all.remove(&task) {
            self.due.remove(&(due, task));
        }
        if let Some(watch) = watch {
            self.all.insert(task, watch);
            self.due.insert((watch.due, task));
        }
    }

    fn get(&self, task: TaskId) -> Option<Watch> {
        self.all.get(&task).copied()
    }

    #[inline]
    fn next(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The first whose time is up.
    fn due(&self, now: Time) -> Option<(TaskId, Watch)> {
        let (due, task) = *self.due.first()?;
        if due <= now { self.get(task).map(|watch| (task, watch)) } else { None }
    }
}

impl Core {
    /// Whose fault it is that a call has failed which had good arguments as far as one could see:
    /// a stale handle's, whose place is known, or that of an argument it has named itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn blame(&mut self, status: Status, signature: Signature, stale: u8) -> Fault {
        let said = self.blamed.take();
        let fault = Fault::from(status);
        match (status, said) {
            (Status::InvalidArgument | Status::ResourceExhausted, Some((name, why))) => {
                signature.fault(name, Bad { status, ..Bad::new(why) })
            }
            (Status::InvalidArgument, None) => fault.of_argument(signature.only_argument()),
            (Status::StaleHandle, _) => {
                fault.of_argument(if stale > 0 { stale } else { signature.only_argument() })
            }
            _ => fault,
        }
    }
}
