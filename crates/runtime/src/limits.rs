//! How many of each thing there may be at once. Without limits nothing is counted.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use asx_kernel::journal::{EventKind, Subject};
use asx_kernel::lanes::Lane;
use asx_kernel::status::Status;
pub use asx_kernel::world::Limits;

use crate::core::Core;

/// The limits and what is used of them.
pub(crate) struct Quota {
    limits: Limits,
    tasks: AtomicUsize,
    regions: AtomicUsize,
    obligations: AtomicUsize,
    channels: AtomicUsize,
}

impl Quota {
    pub(crate) fn new(limits: Limits) -> Quota {
        let none = || AtomicUsize::new(0);
        Quota { limits, tasks: none(), regions: none(), obligations: none(), channels: none() }
    }
}

impl Core {
    /// Refuses, on the record, when `used` has reached `limit`.
    pub(crate) fn room(&self, what: &'static str, used: usize, limit: usize) -> Result<(), Status> {
        if used < limit {
            return Ok(());
        }
        self.note(Subject::default(), EventKind::ResourceExhausted { what });
        Err(Status::ResourceExhausted)
    }

    /// Counts one more, unless there are as many as there may be.
    fn take(&self, what: &'static str, used: &AtomicUsize, limit: usize) -> Result<(), Status> {
        let more = |count| (count < limit).then_some(count + 1);
        match used.fetch_update(Relaxed, Relaxed, more) {
            Ok(_) => Ok(()),
            Err(count) => self.room(what, count, limit),
        }
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
        self.room_on_record()
    }

    /// Admits a task that will wait in this lane.
    #[inline]
    pub(crate) fn room_for_task(&self, lane: Lane) -> Result<(), Status> {
        let Some(quota) = &self.quota else { return self.room_on_record() };
        self.room_for_more(lane)?;
        self.take("tasks", &quota.tasks, quota.limits.tasks)
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

    /// Counts a task that no limit refuses.
    pub(crate) fn task_added(&self) {
        if let Some(quota) = &self.quota {
            quota.tasks.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn task_done(&self) {
        if let Some(quota) = &self.quota {
            quota.tasks.fetch_sub(1, Relaxed);
        }
    }

    #[inline]
    pub(crate) fn room_for_region(&self) -> Result<(), Status> {
        if let Some(quota) = &self.quota {
            self.room("regions", quota.regions.load(Relaxed), quota.limits.regions)?;
            self.room_on_record()?;
            return self.take("regions", &quota.regions, quota.limits.regions);
        }
        self.room_on_record()
    }

    pub(crate) fn region_done(&self) {
        if let Some(quota) = &self.quota {
            quota.regions.fetch_sub(1, Relaxed);
        }
    }

    pub(crate) fn room_for_obligation(&self) -> Result<(), Status> {
        if let Some(quota) = &self.quota {
            self.take("obligations", &quota.obligations, quota.limits.obligations)?;
        }
        self.room_on_record()
    }

    pub(crate) fn obligation_done(&self) {
        if let Some(quota) = &self.quota {
            quota.obligations.fetch_sub(1, Relaxed);
        }
    }

    pub(crate) fn room_for_channel(&self) -> Result<(), Status> {
        if let Some(quota) = &self.quota {
            self.take("channels", &quota.channels, quota.limits.channels)?;
        }
        self.room_on_record()
    }

    pub(crate) fn channel_done(&self) {
        if let Some(quota) = &self.quota {
            quota.channels.fetch_sub(1, Relaxed);
        }
    }
}
