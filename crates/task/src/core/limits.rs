//! How many of each thing there may be at once. Without limits nothing is counted.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::status::Status;
pub use asx_kernel::world::Limits;
use asx_kernel::world::{OBJECT_BYTES, SMALL_BYTES};

use crate::core::Core;
use crate::raw::Header;

/// The limits and what is used of them.
pub(crate) struct Quota {
    limits: Limits,
    tasks: AtomicUsize,
    regions: AtomicUsize,
    obligations: AtomicUsize,
    channels: AtomicUsize,
    /// The memory estimate of all of these. Armed timers are in the wheel's count.
    memory: AtomicUsize,
    /// Admitted cancels with entries that are not queued yet.
    cancels: AtomicUsize,
}

impl Quota {
    pub(crate) fn new(limits: Limits) -> Quota {
        let none = || AtomicUsize::new(0);
        Quota {
            limits,
            tasks: none(),
            regions: none(),
            obligations: none(),
            channels: none(),
            memory: none(),
            cancels: none(),
        }
    }

    fn add(&self, used: &AtomicUsize, bytes: usize) {
        used.fetch_add(1, Relaxed);
        self.memory.fetch_add(bytes, Relaxed);
    }

    fn remove(&self, used: &AtomicUsize, bytes: usize) {
        used.fetch_sub(1, Relaxed);
        self.memory.fetch_sub(bytes, Relaxed);
    }
}

/// A part of a count, which is given back when this is dropped.
#[must_use = "dropped, it gives the count back"]
pub(crate) struct Counted<'a>(&'a AtomicUsize, usize);

impl Counted<'_> {
    /// What was counted exists now, and gives its count back when it ends.
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        // Who finds a timer not in this count finds it in the wheel.
        self.0.fetch_sub(self.1, Release);
    }
}

impl Core {
    /// Refuses, on the record, when `used` has reached `limit`.
    pub(crate) fn room(&self, what: &'static str, used: usize, limit: usize) -> Result<(), Status> {
        if used < limit { Ok(()) } else { Err(self.exhausted(what)) }
    }

    #[cold]
    fn exhausted(&self, what: &'static str) -> Status {
        self.note(Subject::default(), EventKind::ResourceExhausted { what });
        Status::ResourceExhausted
    }

    /// Counts one more that weighs so many bytes, unless there are as many as there may be, the
    /// record is full, or too little memory is left. What is refused is counted nowhere.
    fn take(
        &self,
        what: &'static str,
        used: &AtomicUsize,
        limit: usize,
        bytes: usize,
    ) -> Result<(), Status> {
        let more = |count| (count < limit).then_some(count + 1);
        let one = match used.fetch_update(Relaxed, Relaxed, more) {
            Ok(_) => Counted(used, 1),
            Err(_) => return Err(self.exhausted(what)),
        };
        self.room_on_record()?;
        if let Some(memory) = self.take_memory(bytes)? {
            memory.keep();
        }
        one.keep();
        Ok(())
    }

    /// Counts so many bytes of the memory estimate, unless too little is left. `None` without
    /// limits.
    fn take_memory(&self, bytes: usize) -> Result<Option<Counted<'_>>, Status> {
        let Some(quota) = &self.quota else { return Ok(None) };
        let limit = quota.limits.memory;
        let sum = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
        let Ok(before) = quota.memory.fetch_update(AcqRel, Acquire, sum) else {
            return Err(self.exhausted("memory"));
        };
        let counted = Counted(&quota.memory, bytes);
        if limit < Limits::default().memory {
            // Counted first, so that of two who look at the same time one at least sees the other.
            let timers = self.timers.len().saturating_mul(SMALL_BYTES);
            self.room("memory", (before + bytes).saturating_add(timers), limit + 1)?;
        }
        Ok(Some(counted))
    }

    /// Whether a timer has room; what is answered is kept until the timer is in the wheel.
    #[cold]
    pub(crate) fn room_for_timer(&self) -> Result<Option<Counted<'_>>, Status> {
        self.room_on_record()?;
        self.take_memory(SMALL_BYTES)
    }

    /// Whether the record or the memory estimate may refuse a timer.
    #[inline]
    pub(crate) fn counts_timers(&self) -> bool {
        self.recording() || self.quota.is_some()
    }

    /// Whether new work is refused because the record is full.
    #[inline]
    pub(crate) fn room_on_record(&self) -> Result<(), Status> {
        if self.is_refusing() { Err(Status::ResourceExhausted) } else { Ok(()) }
    }

    /// Whether a task that will wait in this lane has room.
    pub(crate) fn room_for_more(&self, lane: Lane) -> Result<(), Status> {
        if let Some(quota) = &self.quota {
            self.room("tasks", quota.tasks.load(Relaxed), quota.limits.tasks)?;
            self.room_in(lane)?;
        }
        self.room_on_record()?;
        self.take_memory(OBJECT_BYTES).map(drop)
    }

    /// Admits a task that will wait in this lane.
    #[inline]
    pub(crate) fn room_for_task(&self, lane: Lane) -> Result<(), Status> {
        let Some(quota) = &self.quota else { return self.room_on_record() };
        self.room("tasks", quota.tasks.load(Relaxed), quota.limits.tasks)?;
        self.room_in(lane)?;
        self.take("tasks", &quota.tasks, quota.limits.tasks, OBJECT_BYTES)
    }

    /// Refuses when a lane has reached its limit.
    pub(crate) fn room_in(&self, lane: Lane) -> Result<(), Status> {
        let Some(quota) = &self.quota else { return Ok(()) };
        let (what, limit) = match lane {
            Lane::Cancel => ("cancel_queue", quota.limits.cancel_queue),
            Lane::Timed => ("timed_queue", quota.limits.timed_queue),
            Lane::Ready => ("ready_queue", quota.limits.ready_queue),
        };
        if limit == usize::MAX {
            return Ok(());
        }
        self.room(what, self.host.queued(lane), limit)
    }

    /// Admits a cancel of one task, which may add an entry to the cancel lane. The guard reserves
    /// the place until the entry is queued.
    ///
    /// Cancels that the runtime itself needs are not admitted, they always go in: see decision 081.
    pub(crate) fn room_to_cancel(&self, task: &Header) -> Result<Option<Counted<'_>>, Status> {
        let Some(quota) = &self.quota else { return Ok(None) };
        let limit = quota.limits.cancel_queue;
        if limit == usize::MAX || !task.is_requeued_by_cancel() {
            return Ok(None);
        }
        // Counted before the queue is read: of two concurrent cancels at least one sees the other,
        // so that they do not exceed the limit together.
        let before = quota.cancels.fetch_add(1, AcqRel);
        let reserved = Counted(&quota.cancels, 1);
        let queued = self.host.queued(Lane::Cancel).saturating_add(before);
        self.room("cancel_queue", queued, limit)?;
        Ok(Some(reserved))
    }

    /// Counts a task that no limit refuses.
    pub(crate) fn task_added(&self) {
        if let Some(quota) = &self.quota {
            quota.add(&quota.tasks, OBJECT_BYTES);
        }
    }

    pub(crate) fn task_done(&self) {
        if let Some(quota) = &self.quota {
            quota.remove(&quota.tasks, OBJECT_BYTES);
        }
    }

    #[inline]
    pub(crate) fn room_for_region(&self) -> Result<(), Status> {
        let Some(quota) = &self.quota else { return self.room_on_record() };
        self.take("regions", &quota.regions, quota.limits.regions, OBJECT_BYTES)
    }

    /// Counts a region that no limit refuses.
    pub(crate) fn region_added(&self) {
        if let Some(quota) = &self.quota {
            quota.add(&quota.regions, OBJECT_BYTES);
        }
    }

    pub(crate) fn region_done(&self) {
        if let Some(quota) = &self.quota {
            quota.remove(&quota.regions, OBJECT_BYTES);
        }
    }

    pub(crate) fn room_for_obligation(&self) -> Result<(), Status> {
        let Some(quota) = &self.quota else { return self.room_on_record() };
        self.take("obligations", &quota.obligations, quota.limits.obligations, SMALL_BYTES)
    }

    pub(crate) fn obligation_done(&self) {
        if let Some(quota) = &self.quota {
            quota.remove(&quota.obligations, SMALL_BYTES);
        }
    }

    /// Admits a channel of this capacity: what it weighs in the memory estimate.
    pub(crate) fn room_for_channel(&self, capacity: usize) -> Result<usize, Status> {
        let bytes = capacity.saturating_mul(SMALL_BYTES).saturating_add(OBJECT_BYTES);
        match &self.quota {
            Some(quota) => self.take("channels", &quota.channels, quota.limits.channels, bytes)?,
            None => self.room_on_record()?,
        }
        Ok(bytes)
    }

    pub(crate) fn channel_done(&self, bytes: usize) {
        if let Some(quota) = &self.quota {
            quota.remove(&quota.channels, bytes);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use asx_kernel::budget::Budget;
    use asx_kernel::journal::WhenFull;
    use asx_kernel::time::Time;

    use super::*;
    use crate::Runnable;
    use crate::channel_record::ChannelRecord;
    use crate::core::Settings;
    use crate::core::timer_token::{TimerOwner, TimerToken};
    use crate::region::{Policy, Region};
    use crate::test_util::Timeless;
    use asx_journal::Recording;

    /// A host without workers, where no time passes.
    struct Nowhere;

    impl Timeless for Nowhere {
        fn put(&self, _: Runnable) {}
    }

    fn core(limits: Limits, journal: usize) -> Arc<Core> {
        let journal = (journal > 0).then(|| Recording::new(journal, WhenFull::Refuse));
        let settings = Settings { journal, limits: Some(limits), ..Settings::default() };
        Core::new(Arc::new(Nowhere), settings)
    }

    /// Tasks, regions, obligations, channels, bytes.
    fn counts(core: &Core) -> [usize; 5] {
        let quota = core.quota.as_ref().unwrap();
        let Quota { tasks, regions, obligations, channels, memory, .. } = quota;
        [tasks, regions, obligations, channels, memory].map(|count| count.load(Relaxed))
    }

    /// One of each that may be refused.
    fn one_of_each(core: &Arc<Core>, root: &Arc<Region>) -> [Result<(), Status>; 5] {
        let armed = TimerToken::boxed(TimerOwner::Region(root.clone()), None);
        [
            core.room_for_task(Lane::Ready),
            root.open_child(Policy::CollectAll, Budget::INFINITE, None).map(drop),
            root.oblige().map(drop),
            ChannelRecord::new(Some(root), root, 4).map(drop),
            core.arm(Time::from_millis(1), armed).map(drop),
        ]
    }

    #[test]
    fn what_a_full_record_refuses_is_not_counted() {
        let limits = Limits { memory: 1 << 20, ..Limits::default() };
        let core = core(limits, 3);
        let root = core.root();
        for _ in 0..3 {
            core.note(Subject::default(), EventKind::SoftStop {});
        }
        let before = counts(&core);
        assert_eq!(before, [0, 1, 0, 0, 256]);
        for _ in 0..3 {
            let refused = Err(Status::ResourceExhausted);
            assert_eq!(one_of_each(&core, &root), [refused; 5]);
        }
        assert_eq!((counts(&core), core.timers.len()), (before, 0));
    }

    #[test]
    fn what_the_memory_estimate_refuses_is_not_counted() {
        // The root, and too little for anything else.
        let core = core(Limits { memory: 256 + 63, ..Limits::default() }, 0);
        let root = core.root();
        let before = counts(&core);
        for _ in 0..3 {
            let refused = Err(Status::ResourceExhausted);
            assert_eq!(one_of_each(&core, &root), [refused; 5]);
        }
        assert_eq!((counts(&core), core.timers.len()), (before, 0));
    }

    #[test]
    #[cfg_attr(asx_no_reuse, ignore = "leaves tasks that nobody ends, which are leaks")]
    fn the_memory_estimate_is_the_model_s_and_timers_count_while_they_are_armed() {
        let core = core(Limits { memory: 256 + 64 + 512, ..Limits::default() }, 0);
        let root = core.root();
        let arm = |wait| {
            let armed = TimerToken::boxed(TimerOwner::Region(root.clone()), None);
            core.arm(Time::ZERO + Duration::from_millis(wait), armed)
        };
        let timer = arm(1).unwrap();
        assert_eq!(core.room_for_channel(4), Ok(512));
        assert_eq!(arm(2), Err(Status::ResourceExhausted));
        assert_eq!(root.oblige(), Err(Status::ResourceExhausted));
        assert!(core.cancel_timer(timer));
        let obligation = root.oblige().unwrap();
        assert_eq!(arm(2), Err(Status::ResourceExhausted));
        core.channel_done(512);
        root.resolve(obligation, asx_kernel::session::Resolution::Abort).unwrap();
        assert_eq!(counts(&core), [0, 1, 0, 0, 256]);
        // As many timers as fit.
        let timers = (0..20).filter(|wait| arm(*wait).is_ok()).count();
        assert_eq!(timers, (64 + 512) / 64);
    }

    #[test]
    #[cfg_attr(asx_no_reuse, ignore = "leaves tasks that nobody ends, which are leaks")]
    fn threads_that_take_the_last_of_the_memory_never_take_more() {
        for _ in 0..200 {
            let core = core(Limits { memory: 256 + 64, ..Limits::default() }, 0);
            let root = core.root();
            std::thread::scope(|s| {
                s.spawn(|| root.oblige());
                let armed = TimerToken::boxed(TimerOwner::Region(root.clone()), None);
                let _ = core.arm(Time::from_millis(1), armed);
            });
            let [.., memory] = counts(&core);
            assert!(memory + core.timers.len() * 64 <= 256 + 64);
        }
    }

    #[test]
    fn a_root_is_counted_whatever_the_limit() {
        let core = core(Limits { regions: 1, ..Limits::default() }, 0);
        let roots = [core.root(), core.root()];
        assert_eq!(counts(&core)[1], 2);
        for root in &roots {
            root.end();
        }
        assert_eq!(counts(&core)[1], 0);
        let root = core.root();
        assert_eq!(counts(&core)[1], 1);
        drop(root);
    }
}
