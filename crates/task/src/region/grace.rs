//! When patience is over: the steps from a word to force.

use std::sync::{Arc, Weak};
use std::time::Duration;

use asx_kernel::cancel::Kind;
use asx_kernel::journal::EventKind;
use asx_kernel::region::RegionState;
use asx_kernel::time::Time;
use asx_kernel::wheel::TimerHandle;

use crate::core::Core;
use crate::core::alarm::{Alarm, Ring};
use crate::core::timer_token::TimerToken;
use crate::prim::atomic::Ordering;
use crate::raw::audit::Owner;
use crate::raw::{Activity, FREE, Header, Runnable, Seized, TaskRef, Woken};
use crate::region::poll;
use crate::region::{Cleaning, Region};
use crate::wait::Wait;

/// How long each step of a gentle stop may take.
///
/// ```
/// use asx::Grace;
/// use std::time::Duration;
/// let grace = Grace::from(Duration::from_secs(5));
/// assert_eq!(grace.soft, grace.hard);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// From being told ([`Cx::stopping`](crate::Cx::stopping)) to being cancelled.
    pub soft: Duration,
    /// From being cancelled to being ended by force. So long a task may clean up, with as many
    /// polls as it needs.
    pub hard: Duration,
}

impl From<Duration> for Grace {
    fn from(each: Duration) -> Self {
        Grace { soft: each, hard: each }
    }
}

/// From the end of a grace to the first look at what was spared, or was being polled. Each further
/// look waits twice as long as the last, up to [`SPARING_ROUNDS`]: in a deep tree much goes on in
/// between by itself.
const FORCE_AGAIN: Duration = Duration::from_millis(10);

/// In how many looks tasks are spared that wait for what is inside. Then they are ended too, so
/// that none can go on for ever by always waiting for something new.
const SPARING_ROUNDS: u32 = 6;

/// The alarms of one region.
///
/// An alarm may ring before the one who armed it has come back with its handle, and may ring while
/// it is being cancelled. So each has a number, noted here before it is armed: it counts only as
/// long as the number is found here. Whoever takes the number off, the alarm itself or the one who
/// replaces it, decides.
#[derive(Default)]
pub(crate) struct Graces {
    pending: Vec<Pending>,
    /// How many alarms there were.
    count: u64,
    /// How many looks there were since the time was over, and when it was.
    round: u32,
    over: Time,
    /// Who cleans up, since when; see `region::overdue`.
    pub(crate) cleaning: Cleaning,
}

struct Pending {
    number: u64,
    /// When what still lives is ended by force, if that is what it is for: one of them at most.
    force: Option<Time>,
    /// As soon as it is known.
    alarm: Option<TimerHandle>,
}

impl Graces {
    /// Whether there is none, and nothing to be remembered of one.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.round == 0 && self.cleaning.is_empty()
    }

    /// The region has closed: nothing of it happens any more.
    pub(crate) fn cancel(self, core: &Core) -> Vec<TimerToken> {
        let mut gone = Vec::new();
        for Pending { alarm, .. } in self.pending {
            gone.extend(alarm.and_then(|alarm| core.alarms.cancel(alarm)));
        }
        gone
    }

    /// Notes an alarm that is to be armed: its number.
    fn add(&mut self, force: Option<Time>) -> u64 {
        self.count += 1;
        self.pending.push(Pending { number: self.count, force, alarm: None });
        self.count
    }

    /// The alarm with this number, if it still counts.
    fn find(&mut self, number: u64) -> Option<&mut Pending> {
        self.pending.iter_mut().find(|pending| pending.number == number)
    }

    /// When what still lives is ended by force, if that was said.
    pub(crate) fn force(&self) -> Option<Time> {
        self.pending.iter().find_map(|pending| pending.force)
    }

    /// Takes an alarm off: whether it still counted.
    fn take(&mut self, number: u64) -> bool {
        let before = self.pending.len();
        self.pending.retain(|pending| pending.number != number);
        self.pending.len() < before
    }
}

/// An alarm of a region's grace.
struct GraceAlarm {
    region: Weak<Region>,
    number: u64,
    step: Step,
}

/// What happens when it rings.
#[derive(Clone, Copy)]
enum Step {
    /// What was told to stop is cancelled, and forced after so long. `stated`: that is a time that
    /// tasks may count on.
    Cancel { kind: Kind, force: Option<Duration>, stated: bool },
    /// What still lives is ended by force. What begins only afterwards may take so long.
    Force(Duration),
    /// Cleanup that takes too long is ended.
    #[cfg(not(target_family = "wasm"))]
    Look,
}

impl Ring for GraceAlarm {
    /// Whether it ends tasks by force, or checks whether their cleanup takes too long.
    #[cfg(feature = "lab")]
    fn enforces(&self) -> bool {
        !matches!(self.step, Step::Cancel { .. })
    }

    fn ring(self: Box<Self>) {
        let Some(region) = self.region.upgrade() else { return };
        if !region.lock().graces.take(self.number) {
            return;
        }
        match self.step {
            Step::Cancel { kind, force, stated } => {
                // Before anybody sees the cancel.
                region.patient.fetch_or(stated, Ordering::AcqRel);
                region.close_as(kind);
                if let Some(after) = force {
                    region.force_after(after);
                }
            }
            Step::Force(again) => region.force(again),
            #[cfg(not(target_family = "wasm"))]
            Step::Look => region.end_overdue(),
        }
    }
}

impl Region {
    /// Stops what is inside in three steps: it is told, after `soft` it is cancelled, and after
    /// `hard` more what still lives is ended by force. Until then cleanup may take as many polls as
    /// it likes.
    pub(crate) fn stop_within(self: &Arc<Self>, soft: Duration, hard: Duration, kind: Kind) {
        self.stop();
        self.cancel_after(soft, Step::Cancel { kind, force: Some(hard), stated: true });
    }

    /// The same for good, without force unless asked; without patience it is cancelled at once.
    pub(crate) fn shutdown_after(self: &Arc<Self>, soft: Duration, force: Option<Duration>) {
        self.stop();
        if !soft.is_zero() {
            let kind = Kind::Shutdown;
            let stated = false;
            return self.cancel_after(soft, Step::Cancel { kind, force, stated });
        }
        self.close_as(Kind::Shutdown);
        if let Some(after) = force {
            self.force_after(after);
        }
    }

    /// Ends by force whatever lives in the regions inside, which are closed; this one stays open.
    #[cfg(feature = "lab")]
    pub fn abandon(&self) {
        let children = self.lock().children();
        for child in children {
            child.shutdown_after(Duration::ZERO, Some(Duration::ZERO));
        }
    }

    /// Asks the task with this number to stop, if it lives in here or below.
    #[cfg(feature = "lab")]
    pub fn cancel_number(&self, number: u64) -> bool {
        self.with_number(number, &|region, task| {
            let reason = Arc::new(region.reason(Kind::User));
            region.cancel_task(task, &reason, Kind::User.cleanup())
        })
    }

    /// Whether the task with this number lives in here or below, and waits.
    #[cfg(feature = "lab")]
    pub fn waits_number(&self, number: u64) -> bool {
        self.with_number(number, &|_, task| {
            let word = task.word.load();
            word.activity() == crate::Activity::Waiting && !word.is_completed()
        })
    }

    /// Wakes the task with this number, for no reason, if it lives in here or below.
    #[cfg(feature = "lab")]
    pub fn wake_number(&self, number: u64) -> bool {
        self.with_number(number, &|_, task| {
            task.lend_waker().wake_by_ref();
            true
        })
    }

    #[cfg(feature = "lab")]
    fn with_number(&self, number: u64, act: &dyn Fn(&Region, &TaskRef) -> bool) -> bool {
        let mut found = false;
        let mut answer = false;
        self.each_inside(&mut |region| {
            let mut task = None;
            let mut children = Vec::new();
            if !found {
                let inner = region.lock();
                inner.each_task(|each| {
                    // SAFETY: the region keeps its tasks alive, and its lock is held.
                    let each = unsafe { TaskRef::borrowed(each, Owner::Call) };
                    task = task.take().or((each.id() == number).then_some(each));
                });
                children = inner.children();
            }
            if let Some(task) = task {
                (found, answer) = (true, act(region, &task));
                children.clear();
            }
            children
        });
        answer
    }

    fn cancel_after(self: &Arc<Self>, soft: Duration, step: Step) {
        self.arm_step(self.core.host.now() + soft, step);
    }

    /// Has cleanup looked at that may take too long by then.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn look_at(self: &Arc<Self>, when: Time) {
        self.arm_step(when, Step::Look);
    }

    fn arm_step(self: &Arc<Self>, when: Time, step: Step) {
        let number = {
            let mut inner = self.lock();
            if inner.word.state() == RegionState::Closed {
                return;
            }
            inner.graces.add(None)
        };
        self.arm_grace(when, number, step);
    }

    /// Has what still lives after a while ended by force; of several whiles the shortest counts.
    pub(crate) fn force_after(self: &Arc<Self>, after: Duration) {
        self.force_in(after, after);
    }

    fn force_in(self: &Arc<Self>, after: Duration, again: Duration) {
        let when = self.core.host.now() + after;
        let (number, later) = {
            let mut inner = self.lock();
            if inner.word.state() == RegionState::Closed {
                return;
            }
            let graces = &mut inner.graces;
            let mut later = None;
            if let Some(at) = graces.pending.iter().position(|pending| pending.force.is_some()) {
                if graces.pending[at].force <= Some(when) {
                    return;
                }
                later = graces.pending.swap_remove(at).alarm;
            }
            (graces.add(Some(when)), later)
        };
        drop(later.and_then(|alarm| self.core.alarms.cancel(alarm)));
        self.arm_grace(when, number, Step::Force(again));
    }

    /// Arms the alarm of this number, which is noted already.
    fn arm_grace(self: &Arc<Self>, when: Time, number: u64, step: Step) {
        let alarm = GraceAlarm { region: Arc::downgrade(self), number, step };
        let alarm = TimerToken::alarm(Alarm::Call(Box::new(alarm)));
        let Ok(alarm) = self.core.alarms.register(&*self.core.host, when, alarm) else { return };
        let mut inner = self.lock();
        // If it is gone it has rung by now, was replaced, or the region has closed.
        let counts = inner.graces.find(number).map(|pending| pending.alarm = Some(alarm)).is_some();
        drop(inner);
        if !counts {
            drop(self.core.alarms.cancel(alarm));
        }
    }

    /// Ends by force what still lives in a closing region. Whoever only waits for what is inside is
    /// spared for a moment: it gets the chance to end by itself. What begins only then (finalizers)
    /// has the same patience again.
    fn force(self: &Arc<Self>, again: Duration) {
        let now = self.core.host.now();
        if self.has_tasks() {
            let inner = self.lock();
            if inner.word.state() != RegionState::Closed {
                self.note(EventKind::GraceExpired {});
            }
        }
        let (round, all) = {
            let graces = &mut self.lock().graces;
            // Between looks at what was left, finalizers that have begun since are let alone.
            let all = graces.round == 0 || graces.over + again <= now;
            if all {
                graces.over = now;
            }
            (graces.round, all)
        };
        let rest = self.force_inside(all, round < SPARING_ROUNDS);
        self.lock().graces.round = if rest { round.saturating_add(1) } else { 0 };
        let wait = FORCE_AGAIN * (1 << round.min(SPARING_ROUNDS));
        self.force_in(if rest { wait } else { again }, again);
    }

    fn has_tasks(&self) -> bool {
        let mut any = false;
        self.each_inside(&mut |region| {
            if any {
                return Vec::new();
            }
            let inner = region.lock();
            any = inner.word.live_tasks() > 0;
            if any { Vec::new() } else { inner.children() }
        });
        any
    }

    /// Ends what is in here and below, own tasks first; whether anybody was spared, or is to end
    /// with its next poll. `finalizers`: these too. `spare`: not those who wait for what is inside.
    pub(crate) fn force_inside(&self, finalizers: bool, spare: bool) -> bool {
        let mut rest = false;
        self.each_inside(&mut |region| {
            let mut tasks = Vec::new();
            let children: Vec<_> = {
                let inner = region.lock();
                if inner.word.state() != RegionState::Open {
                    // SAFETY: the region keeps its tasks alive, and its lock is held.
                    let own = |task| unsafe { TaskRef::borrowed(task, Owner::Call) };
                    inner.each_task(|task| tasks.push(own(task)));
                }
                inner.children()
            };
            tasks.retain(|task| finalizers || !task.is_finalizer());
            let all = tasks.len();
            tasks.retain(|task| !spare || children.is_empty() || !waits_for_inside(task));
            let ended = tasks.iter().filter(|task| region.end_late(task, !spare)).count();
            rest |= ended < all;
            children
        });
        rest
    }

    /// Ends a task whose time is over; tells of it the first time, and of a poll that has not
    /// returned for `long`.
    fn end_late(&self, task: &TaskRef, long: bool) -> bool {
        let word = task.word.load();
        if !word.is_forced() && !word.is_completed() {
            task.span.grace_expired(task.attrs.as_ref().and_then(|attrs| attrs.name.as_deref()));
        }
        let ended = self.force_task(task);
        if long && !ended && task.word.load().activity() == Activity::Running {
            self.core.report_stuck(task);
        }
        ended
    }

    /// Ends a task now, if nobody polls it and it may be dropped here; else its next poll does.
    pub(crate) fn force_task(&self, task: &TaskRef) -> bool {
        let host = &*self.core.host;
        let here = task.pin == FREE || host.here() == Some(task.pin);
        if here && let Some(seized) = task.word.seize() {
            if seized == Seized::Queued && host.unschedule(task.id()).is_none() {
                host.dead_entries(task.lane(), 1);
            }
            poll::force(task);
            return true;
        }
        if task.word.force() == Woken::Enqueue {
            // SAFETY: `force` has counted a reference for it.
            host.schedule(unsafe { Runnable::new(task.as_ptr()) });
        }
        task.word.load().is_completed()
    }
}

/// Whether a task waits for a scope or another task. What it waited for last says nothing while it
/// is being polled, as that was in an earlier poll, nor if its last poll did not look at it.
pub(crate) fn waits_for_inside(task: &Header) -> bool {
    let waits = matches!(task.wait(), Some((Wait::Scope | Wait::Join, _)));
    let waits = waits && !task.is_wait_stale();
    waits && task.word.load().activity() != Activity::Running
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use std::future::pending;
    use std::marker::PhantomData;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::{Mutex, OnceLock};

    use super::*;
    use crate::core::{Host, Settings};
    use crate::spawn::{Plan, make};
    use crate::{Cancelled, Scope};

    /// Rings what is due as soon as it is armed, before the one who armed it goes on.
    #[derive(Default)]
    pub(crate) struct Eager {
        now: AtomicU64,
        core: OnceLock<Weak<Core>>,
        entries: Mutex<Vec<Runnable>>,
    }

    impl Eager {
        pub(crate) fn new() -> (Arc<Eager>, Arc<Core>) {
            let host = Arc::new(Eager::default());
            let core = Core::new(host.clone(), Settings::default());
            let _ = host.core.set(Arc::downgrade(&core));
            (host, core)
        }

        pub(crate) fn pass(&self, time: Duration) {
            self.now.fetch_add(time.as_nanos() as u64, Relaxed);
            self.ring();
            loop {
                let Some(entry) = self.entries.lock().unwrap().pop() else { return };
                entry.run();
            }
        }

        fn ring(&self) {
            let core = self.core.get().and_then(Weak::upgrade);
            core.inspect(|core| _ = core.fire_timers(self.now()));
        }
    }

    // SAFETY: it has no worker, and what it runs is not pinned.
    unsafe impl Host for Eager {
        fn schedule(&self, entry: Runnable) {
            self.entries.lock().unwrap().push(entry);
        }

        fn now(&self) -> Time {
            Time::from_nanos(self.now.load(Relaxed))
        }

        fn timer_moved(&self, deadline: Time) {
            if deadline <= self.now() {
                self.ring();
            }
        }

        fn here(&self) -> Option<u16> {
            None
        }

        fn run_blocking(&self, entry: Runnable) -> Result<(), Runnable> {
            Err(entry)
        }
    }

    /// The alarm that rings inside the call that arms it arms another one: that one stays armed.
    #[test]
    fn an_alarm_that_rings_while_it_is_armed_does_not_cost_a_later_one() {
        let (host, core) = Eager::new();
        let root = core.root();
        let scope: Scope<Cancelled> = Scope::over(root.clone(), PhantomData);
        scope.defer(|_| pending::<()>()).unwrap();
        let own = root.clone();
        let body = move |_| async move {
            // The task is being polled, so that it can be ended only later.
            own.stop_within(Duration::ZERO, Duration::ZERO, Kind::User);
            assert_eq!(own.core.alarms.len(), 1, "another look at what is left");
            pending::<Result<(), Cancelled>>().await
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&root, Plan::default(), body) };
        assert!(entry.unwrap().unwrap().run());
        for _ in 0..10 {
            host.pass(Duration::from_millis(10));
        }
        assert!(task.is_finished());
        assert!(root.outcome().is_some(), "the finalizer ends by force, too");
        assert_eq!(core.alarms.len(), 0);
    }

    /// Of two graces the shorter counts, in whichever order they come, and none is left behind.
    #[test]
    fn of_several_graces_the_shortest_counts() {
        let ms = Duration::from_millis;
        for graces in [[5, 500, 50], [500, 50, 5], [50, 5, 500]] {
            let (host, core) = Eager::new();
            let root = core.root();
            let body = |_| pending::<Result<(), Cancelled>>();
            // SAFETY: Send and 'static.
            let (entry, task) = unsafe { make(&root, Plan::default(), body) };
            assert!(entry.unwrap().unwrap().run());
            for hard in graces {
                root.stop_within(Duration::ZERO, ms(hard), Kind::User);
            }
            host.pass(ms(4));
            assert!(!task.is_finished());
            host.pass(ms(1));
            assert!(task.is_finished() && root.outcome().is_some());
            assert_eq!(core.alarms.len(), 0);
        }
    }

    /// What begins only when the time is over has as much again, also if something else has to be
    /// looked at more often.
    #[test]
    fn a_finalizer_has_the_grace_anew_while_others_are_waited_for() {
        let (host, core) = Eager::new();
        let root = core.root();
        let budget = asx_kernel::budget::Budget::INFINITE;
        let open = || root.open_child(crate::Policy::CollectAll, budget, None).unwrap();
        let busy = open();
        let quick = open();
        let scope: Scope<Cancelled> = Scope::over(quick.clone(), PhantomData);
        let host2 = host.clone();
        let finalizer_lives = quick.clone();
        scope.defer(|_| pending::<()>()).unwrap();
        // SAFETY: Send and 'static.
        let deaf = unsafe { make(&quick, Plan::default(), |_| pending::<Result<(), Cancelled>>()) };
        assert!(deaf.0.unwrap().unwrap().run());
        let top = root.clone();
        let body = move |_| async move {
            top.stop_within(Duration::ZERO, Duration::from_secs(1), Kind::User);
            // It does not return from its poll for some time.
            for _ in 0..150 {
                host2.now.fetch_add(10_000_000, Relaxed);
                host2.ring();
            }
            assert!(finalizer_lives.outcome().is_none(), "half a second after it began");
            Ok::<(), Cancelled>(())
        };
        // SAFETY: Send and 'static.
        let (entry, task) = unsafe { make(&busy, Plan::default(), body) };
        assert!(entry.unwrap().unwrap().run());
        assert!(task.is_finished() && busy.outcome().is_some());
        host.pass(Duration::from_secs(1));
        host.pass(Duration::from_secs(1));
        assert!(root.outcome().is_some());
        assert_eq!(core.alarms.len(), 0);
    }
}
