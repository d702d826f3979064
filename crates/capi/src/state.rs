//! What a runtime has beside its mailbox: the world, the messages' bytes, watchdogs, counters.
//!
//! The world is the kernel's; what is added here decides nothing about who runs when. A watchdog
//! that runs out asks the world to cancel its task, as any caller could.

use crate::abi::{AsxBody, AsxTask, AsxTransfer};
use crate::config::{ASX_FLAG_GHOSTS, AsxConfig, Line, size};
use crate::ghost::{Borrows, Ghosts};
use crate::store::Stores;
use alloc::collections::{BTreeMap, BTreeSet, TryReserveError, VecDeque};
use asx_kernel::arena::{Arena, Key};
use asx_kernel::cancel::{Kind, Phase, Witness};
use asx_kernel::choose::Seeded;
use asx_kernel::ids::TaskId;
use asx_kernel::rng::DetRng;
use asx_kernel::status::Status;
use asx_kernel::task::TaskState;
use asx_kernel::time::Time;
use asx_kernel::world::{Answer, Ask, Offer, TaskError, World};
use core::ffi::CStr;
use core::time::Duration;

/// A message: where its bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    /// The slot of its channel.
    pub(crate) channel: u32,
    /// Its slot among the channel's bytes.
    pub(crate) slot: u32,
}

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
    pub(crate) ghosts: Ghosts,
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
    /// The last time the runtime has changed hands.
    pub(crate) transfer: AsxTransfer,
    /// Those that were not released.
    pub(crate) witnesses: Arena<Witness>,
    /// How many there may be: one for each phase of as many tasks as may live.
    pub(crate) most_witnesses: u64,
    /// Tasks whose slot is freed when they are over.
    pub(crate) auto_release: BTreeSet<TaskId>,
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
    logs: bool,
}

impl Core {
    pub(crate) fn new(config: &AsxConfig) -> Answer<Core> {
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
            ghosts: Ghosts::new(config.flags & ASX_FLAG_GHOSTS != 0, config.ghost.is_some()),
            borrows: Borrows::new(size(config.max_borrows)),
            current: None,
            current_body: None,
            error: None,
            stepping: false,
            releases: true,
            shut: false,
            broken: false,
            transfer: AsxTransfer::NONE,
            witnesses: Arena::new(),
            most_witnesses: config.max_tasks.saturating_mul(Phase::ALL.len() as u64),
            auto_release: BTreeSet::new(),
            watchdogs: Watchdogs::default(),
            lines: VecDeque::new(),
            dropped: VecDeque::new(),
            polls: 0,
            overruns: 0,
            external_wakes: 0,
            max_steps: config.max_steps,
            default_watchdog: config.watchdog_ns,
            logs: config.log.is_some(),
        })
    }

    /// The beginning of a call.
    #[inline(always)]
    pub(crate) fn admit(&mut self, call: &'static CStr) -> Answer {
        if self.broken {
            return Err(Status::Internal);
        }
        self.ghosts.call = call;
        self.releases = true;
        Ok(())
    }

    /// This call lets go of nothing: there is nothing to collect after it.
    #[inline]
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
        self.dropped.len() | self.ghosts.reports() | self.lines.len() != 0
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
        let messages = self.world.pop_dropped();
        let body = self.world.next_released();
        if messages.is_some() | body.is_some() {
            self.let_go(messages, body);
        }
    }

    #[inline(never)]
    fn let_go(&mut self, mut messages: Option<VecDeque<Message>>, mut body: Option<Body>) {
        while let Some(queue) = messages {
            queue.into_iter().for_each(|message| self.stores.free(message));
            messages = self.world.pop_dropped();
        }
        while let Some(unused) = body {
            // What was completed by force was not noticed after a poll.
            if let Some(task) = self.drop_body(unused) {
                self.after_poll(task);
            }
            body = self.world.next_released();
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
        if self.logs && self.lines.try_reserve(1).is_ok() {
            self.lines.push_back(line);
        }
    }

    /// None is needed any more.
    pub(crate) fn drop_bodies(&mut self) {
        for at in 0..self.bodies.slots() as u32 {
            let _ = self.bodies.key_at(at).and_then(|key| self.drop_body(Body(key)));
        }
    }

    /// Arms or replaces a task's watchdog; `None` takes it away.
    pub(crate) fn watch(&mut self, task: TaskId, span: Option<u64>) {
        self.watchdogs.set(task, span, self.world.now());
    }

    /// The task shows that it is alive.
    pub(crate) fn kick(&mut self, task: TaskId) {
        if let Some(span) = self.watchdogs.span(task) {
            self.watchdogs.set(task, Some(span), self.world.now());
        }
    }

    /// Cancels the tasks whose watchdog has run out, in order of time, then of creation. When the
    /// cancel queue is full the rest stay due.
    #[inline(always)]
    pub(crate) fn expire_watchdogs(&mut self) {
        if !self.watchdogs.due.is_empty() {
            self.expire_due();
        }
    }

    #[inline(never)]
    fn expire_due(&mut self) {
        while let Some(task) = self.watchdogs.due(self.world.now()) {
            if !self.is_over(task) {
                let ask = Ask { kind: Kind::Timeout, message: Some("watchdog".into()) };
                match self.world.cancel_task(task, ask) {
                    Ok(_) => {
                        self.watchdogs.expired += 1;
                        if self.logs {
                            self.lines.push_back(Line::Watchdog(task));
                        }
                    }
                    Err(Status::ResourceExhausted) => return,
                    Err(_) => {}
                }
            }
            self.watch(task, None);
        }
    }

    /// Tasks cancelled by their watchdog so far.
    pub(crate) fn watchdogs_expired(&self) -> u64 {
        self.watchdogs.expired
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
        self.watchdogs.set(task, None, Time::ZERO);
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
    pub(crate) fn current_handle(&self) -> AsxTask {
        self.current.map_or(AsxTask::NONE, |task| self.task_handle(task))
    }
}

/// Who must be kicked until when.
#[derive(Default)]
struct Watchdogs {
    due: BTreeSet<(Time, TaskId)>,
    spans: BTreeMap<TaskId, (u64, Time)>,
    expired: u64,
}

impl Watchdogs {
    fn set(&mut self, task: TaskId, span: Option<u64>, now: Time) {
        if let Some((_, due)) = self.spans.remove(&task) {
            self.due.remove(&(due, task));
        }
        if let Some(span) = span {
            let due = now + Duration::from_nanos(span);
            self.spans.insert(task, (span, due));
            self.due.insert((due, task));
        }
    }

    fn span(&self, task: TaskId) -> Option<u64> {
        self.spans.get(&task).map(|(span, _)| *span)
    }

    #[inline]
    fn next(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The first whose time is up.
    fn due(&self, now: Time) -> Option<TaskId> {
        let (due, task) = *self.due.first()?;
        (due <= now).then_some(task)
    }
}
