//! The timers of a runtime: the kernel's wheel behind a short lock.

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(not(target_family = "wasm"))]
use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};

use asx_journal::Stamp;
use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::status::{Coded, Status};
use asx_kernel::time::{Time, nanos};
use asx_kernel::wheel::{Expired, RegisterError, TimerHandle, Wheel, WheelConfig};

use crate::core::timer_token::TimerToken;
use crate::core::{Core, Host};
use crate::raw::contain_panic;
use crate::spinlock::SpinLock;

/// Timers fired under one lock.
const BATCH: usize = 256;

/// Timers are taken.
const OPEN: u8 = 0;
/// The runtime is gone.
const CLOSED: u8 = 1;
/// The host denies the clock: no timer is taken.
const NO_CLOCK: u8 = 2;
/// The host denies its timer: no task may wait for a time.
const NO_TIMER: u8 = 3;

/// The capability that the host denies to tasks that wait for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeDenied {
    /// The clock: no timer can be armed, and those of regions are cancelled.
    Clock,
    /// The host timer: no task may wait for a time. Timers of regions stay.
    Timer,
}

/// More than a wheel ever has timers.
const GENERATIONS: u64 = 1 << 48;

/// Timers that each carry a `T`.
pub(crate) struct Timers<T> {
    start: Time,
    config: WheelConfig,
    /// `max_timer_duration` in nanoseconds.
    longest: u64,
    /// Made with the first timer: it is large.
    wheel: SpinLock<Option<Box<Wheel<T>>>>,
    /// Whether there is a wheel: most programs have no timers, and are asked about them often.
    made: AtomicBool,
    /// Which timers are refused ([`CLOSED`], [`NO_CLOCK`], [`NO_TIMER`]); set under the lock.
    refusal: AtomicU8,
    /// How many wheels were taken out: those of one are not mistaken for those of the next.
    wheels: AtomicU64,
    /// No later than the earliest deadline; `u64::MAX` without timers.
    next: AtomicU64,
    pub(crate) stamp: Stamp,
}

#[cfg(not(target_family = "wasm"))]
impl Timers<TimerToken> {
    /// When the next timer of each task is due.
    pub(crate) fn by_task(&self) -> HashMap<u64, Time> {
        let mut next = HashMap::new();
        self.with_wheel(|wheel| {
            for (due, token) in wheel.into_iter().flat_map(Wheel::iter) {
                let (task, _) = token.owner();
                if let Some(task) = task.checked_sub(1) {
                    let known = next.entry(task).or_insert(due);
                    *known = due.min(*known);
                }
            }
        });
        next
    }
}

impl<T> Timers<T> {
    pub(crate) fn new(now: Time, config: WheelConfig) -> Timers<T> {
        let made = AtomicBool::new(false);
        let next = AtomicU64::new(u64::MAX);
        let longest = nanos(config.max_timer_duration);
        Timers {
            start: now,
            config,
            longest,
            wheel: SpinLock::new(None),
            made,
            refusal: AtomicU8::new(OPEN),
            wheels: AtomicU64::new(0),
            next,
            stamp: Stamp::default(),
        }
    }

    #[inline(never)]
    fn wheel(&self, now: Time) -> Box<Wheel<T>> {
        self.made.store(true, Release);
        let mut config = self.config.clone();
        let before = self.wheels.load(Relaxed).wrapping_mul(GENERATIONS);
        config.first_generation = config.first_generation.wrapping_add(before);
        Box::new(Wheel::new(config, now))
    }

    /// Goes back to the first time, with no timer.
    #[cfg(feature = "lab")]
    pub(crate) fn restart(&self) {
        if !self.is_made() {
            return;
        }
        let mut wheel = self.wheel.lock();
        let mut old = None;
        if wheel.as_ref().is_some_and(|wheel| !wheel.is_empty() || wheel.now() != self.start) {
            old = wheel.take();
            self.made.store(false, Release);
        }
        self.next.store(u64::MAX, Relaxed);
        // What its timers carry is dropped outside the lock.
        drop(wheel);
        drop(old);
    }

    /// Whether there ever was a timer: without the lock, which who has none need not wait for.
    #[inline]
    fn is_made(&self) -> bool {
        self.made.load(Acquire)
    }

    /// Adds a timer.
    #[inline]
    pub(crate) fn register(
        &self,
        host: &dyn Host,
        deadline: Time,
        token: T,
    ) -> Result<TimerHandle, Status> {
        self.register_with(host, deadline, |wheel| wheel.register(deadline, token))
    }

    /// Adds a timer as `add` does, under the lock.
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn register_with(
        &self,
        host: &dyn Host,
        deadline: Time,
        add: impl FnOnce(&mut Wheel<T>) -> Result<TimerHandle, RegisterError<T>>,
    ) -> Result<TimerHandle, Status> {
        // Read outside the lock.
        let begin = (!self.is_made()).then(|| host.now());
        let (added, earliest) = {
            let mut wheel = self.wheel.lock();
            match self.refusal.load(Relaxed) {
                OPEN | NO_TIMER => {}
                NO_CLOCK => return Err(Status::CapabilityDenied),
                _ => return Err(Status::RegionClosed),
            }
            let wheel = wheel.get_or_insert_with(|| self.wheel(begin.unwrap_or(self.start)));
            if deadline.as_nanos().saturating_sub(wheel.now().as_nanos()) > self.longest {
                // The wheel measures distances from its own time, which may be earlier than now.
                wheel.advance(host.now());
            }
            let added = add(wheel);
            let earliest = added.is_ok() && deadline.as_nanos() < self.next.load(Relaxed);
            if earliest {
                self.next.store(deadline.as_nanos(), Relaxed);
            }
            (added, earliest)
        };
        // A token that was refused is dropped here, outside the lock.
        let handle = added.map_err(|error| {
            let status = error.status();
            contain_panic::contain(|| drop(error));
            status
        })?;
        if earliest {
            host.timer_moved(deadline);
        }
        Ok(handle)
    }

    /// Looks at what a timer carries, if it is still armed. No user code in `look`: it runs under
    /// the lock.
    pub(crate) fn look<R>(&self, handle: TimerHandle, look: impl FnOnce(&T) -> R) -> Option<R> {
        let wheel = self.wheel.lock();
        wheel.as_ref()?.get(handle).map(|(_, token)| look(token))
    }

    /// Takes a timer out, if it is still armed.
    pub(crate) fn cancel(&self, handle: TimerHandle) -> Option<T> {
        self.cancel_with(handle, |_| ())
    }

    /// Takes a timer out, if it is still armed. `look` at it runs under the lock.
    fn cancel_with(&self, handle: TimerHandle, look: impl FnOnce(&T)) -> Option<T> {
        self.wheel.lock().as_mut()?.cancel(handle).inspect(look)
    }

    /// Whether no timer is taken, so that one that is gone need not have fired.
    #[inline]
    pub(crate) fn is_refusing(&self) -> bool {
        self.refusal.load(Relaxed) != OPEN
    }

    /// Takes all timers out, and never takes another.
    #[cfg(not(any(loom, target_family = "wasm")))]
    pub(crate) fn close(&self) -> Vec<Expired<T>> {
        self.take_all(CLOSED)
    }

    /// Takes all timers out. From now on others are taken, or refused like this.
    fn take_all(&self, refusal: u8) -> Vec<Expired<T>> {
        let wheel = {
            let mut wheel = self.wheel.lock();
            self.refusal.store(refusal, Relaxed);
            self.next.store(u64::MAX, Relaxed);
            self.wheels.fetch_add(1, Relaxed);
            self.made.store(false, Release);
            wheel.take()
        };
        let mut all = Vec::new();
        if let Some(mut wheel) = wheel {
            wheel.collect(Time::MAX, usize::MAX, &mut all);
        }
        all
    }

    /// Takes out the timers that `is_over` accepts, and sets which are refused from now on.
    fn take_if(&self, refusal: u8, is_over: impl FnMut(&T) -> bool) -> Vec<Expired<T>> {
        let mut wheel = self.wheel.lock();
        self.refusal.store(refusal, Relaxed);
        let Some(wheel) = wheel.as_mut() else { return Vec::new() };
        let taken = wheel.cancel_if(is_over);
        self.next.store(wheel.next_deadline().map_or(u64::MAX, Time::as_nanos), Relaxed);
        taken
    }

    /// Brings the wheel up to a time.
    pub(crate) fn advance(&self, now: Time) {
        if let Some(wheel) = self.wheel.lock().as_mut() {
            wheel.advance(now);
        }
    }

    /// Looks at the wheel, if there is one.
    pub(crate) fn with_wheel<R>(&self, look: impl FnOnce(Option<&Wheel<T>>) -> R) -> R {
        if !self.is_made() {
            return look(None);
        }
        look(self.wheel.lock().as_deref())
    }

    /// How many timers are armed.
    pub(crate) fn len(&self) -> usize {
        self.with_wheel(|wheel| wheel.map_or(0, Wheel::len))
    }

    pub(crate) fn next(&self) -> Option<Time> {
        Some(self.next.load(Relaxed)).filter(|next| *next != u64::MAX).map(Time::from_nanos)
    }

    /// Hands out those whose time has come; the next deadline.
    pub(crate) fn fire(&self, now: Time, each: impl FnMut(Expired<T>)) -> Option<Time> {
        self.fire_with(now, (BATCH, usize::MAX), |_| (), each)
    }

    /// Hands out those whose time has come, at most `most` in all and `batch` of them under one
    /// lock, where each is looked at first; the next deadline.
    fn fire_with(
        &self,
        now: Time,
        (batch, mut most): (usize, usize),
        look: impl Fn(&Expired<T>),
        mut each: impl FnMut(Expired<T>),
    ) -> Option<Time> {
        let next = self.next()?;
        // With coalescing a timer may be due before its time.
        if next > now && self.config.coalesce.is_none() {
            return Some(next);
        }
        let mut due = Vec::with_capacity(batch);
        loop {
            let batch = batch.min(most);
            let (count, next) = {
                let mut wheel = self.wheel.lock();
                let wheel = wheel.as_mut()?;
                let count = wheel.collect(now, batch, &mut due);
                due.iter().for_each(&look);
                let next = wheel.next_deadline();
                self.next.store(next.map_or(u64::MAX, Time::as_nanos), Relaxed);
                (count, next)
            };
            due.drain(..).for_each(&mut each);
            most -= count;
            if count < batch || most == 0 {
                return next;
            }
        }
    }
}

/// Timers of tasks and regions, which are on the record.
impl Core {
    /// Arms a timer.
    pub(crate) fn arm(&self, deadline: Time, armed: TimerToken) -> Result<TimerHandle, Status> {
        let host = &*self.host;
        if self.timers.refusal.load(Relaxed) == NO_TIMER && !armed.is_of_region() {
            contain_panic::contain(|| drop(armed));
            self.refused_timer(Status::CapabilityDenied);
            return Err(Status::CapabilityDenied);
        }
        if !self.counts_timers() {
            let added = self.timers.register(host, deadline, armed);
            return added.inspect_err(|status| self.refused_timer(*status));
        }
        let _counted = self.room_for_timer()?;
        let at = deadline.as_nanos();
        let added = self.timers.register_with(host, deadline, |wheel| {
            let owner = armed.owner();
            let handle = wheel.register(deadline, armed)?;
            self.note_timer(owner, handle, EventKind::TimerArmed { deadline: at });
            Ok(handle)
        });
        added.inspect_err(|status| self.refused_timer(*status))
    }

    #[cold]
    fn refused_timer(&self, status: Status) {
        if status == Status::ResourceExhausted {
            let what = "timers";
            self.note(Subject::default(), EventKind::ResourceExhausted { what });
        }
        if status == Status::CapabilityDenied {
            self.host.deny_wait("a task's timer");
        }
    }

    /// Takes a timer out: whether it was still armed.
    pub(crate) fn cancel_timer(&self, handle: TimerHandle) -> bool {
        let armed = self.disarm(handle);
        armed.map(|armed| armed.discard(self)).is_some()
    }

    pub(crate) fn disarm(&self, handle: TimerHandle) -> Option<TimerToken> {
        if !self.recording() {
            return self.timers.cancel(handle);
        }
        let disarmed = self.timers.cancel_with(handle, |armed| {
            self.note_timer(armed.owner(), handle, EventKind::TimerCancelled {});
        });
        if disarmed.is_none() {
            // It fired before whatever this one is over with.
            self.see(&self.timers.stamp);
        }
        disarmed
    }

    /// Arms a timer in place of another, which stays if that fails.
    pub(crate) fn rearm(
        &self,
        old: TimerHandle,
        deadline: Time,
        armed: TimerToken,
    ) -> Result<TimerHandle, Status> {
        let host = &*self.host;
        let mut before = None;
        let updated = self.timers.register_with(host, deadline, |wheel| {
            let owner = armed.owner();
            let (handle, replaced) = wheel.update(old, deadline, armed)?;
            let deadline = deadline.as_nanos();
            self.note_timer(owner, handle, EventKind::TimerArmed { deadline });
            if let Some(armed) = &replaced {
                self.note_timer(armed.owner(), old, EventKind::TimerCancelled {});
            }
            before = replaced;
            Ok(handle)
        });
        if let Some(before) = before {
            before.discard(self);
        }
        updated.inspect_err(|status| self.refused_timer(*status))
    }

    /// Nobody looks at the timers any more: wakes all who wait for one, with contexts of tasks that
    /// have ended. `close`: for good.
    pub fn abandon_timers(&self, close: bool) {
        self.take_timers(if close { CLOSED } else { OPEN });
    }

    /// Removes every timer and every alarm of the runtime itself, and refuses others from now on:
    /// the runtime is gone, and each of them holds an object that holds it.
    pub fn close_timers(&self) {
        self.abandon_timers(true);
        for Expired { token, .. } in self.alarms.take_all(CLOSED) {
            token.discard(self);
        }
    }

    /// The host's clock or timer is denied, or both are granted again (`None`). Without them no
    /// task can wait for a time: sleeps and timeouts, those under way too, end with
    /// [`Status::CapabilityDenied`]. The runtime's own alarms (deadlines of tasks, grace periods)
    /// wait for the grant.
    pub fn deny_time(&self, denied: Option<TimeDenied>) {
        match denied {
            Some(TimeDenied::Clock) => self.take_timers(NO_CLOCK),
            Some(TimeDenied::Timer) => {
                let waits = |token: &TimerToken| !token.is_of_region();
                self.end_waits(self.timers.take_if(NO_TIMER, waits));
            }
            None => {
                // A runtime that is gone takes none, whatever is granted.
                for denied in [NO_CLOCK, NO_TIMER] {
                    let refusal = &self.timers.refusal;
                    let _ = refusal.compare_exchange(denied, OPEN, Relaxed, Relaxed);
                }
            }
        }
    }

    /// Which facility is denied to tasks that wait for a time, if one is.
    pub(crate) fn time_denied(&self) -> Option<TimeDenied> {
        match self.timers.refusal.load(Relaxed) {
            NO_CLOCK => Some(TimeDenied::Clock),
            NO_TIMER => Some(TimeDenied::Timer),
            _ => None,
        }
    }

    fn take_timers(&self, refusal: u8) {
        self.end_waits(self.timers.take_all(refusal));
    }

    /// Wakes the owners of removed timers.
    fn end_waits(&self, taken: Vec<Expired<TimerToken>>) {
        for Expired { handle, token, .. } in taken {
            self.note_timer(token.owner(), handle, EventKind::TimerCancelled {});
            token.fire(self, handle);
        }
    }

    /// Wakes those whose timers are due, at most so many: how many timers there were.
    pub(crate) fn fire(&self, now: Time, most: usize) -> usize {
        let mut fired = 0;
        let fire = |Expired { handle, token, .. }: Expired<TimerToken>| {
            fired += 1;
            token.fire(self, handle);
        };
        if self.recording() {
            // One by one, so that what each wakes comes before the next on the record.
            self.timers.fire_with(now, (1, most), |expired| self.note_fired(expired), fire);
        } else {
            self.timers.fire_with(now, (BATCH, most), |_| (), fire);
        }
        fired
    }

    #[cold]
    fn note_fired(&self, Expired { handle, deadline, token }: &Expired<TimerToken>) {
        let deadline = deadline.as_nanos();
        self.note_timer(token.owner(), *handle, EventKind::TimerFired { deadline });
    }
}
