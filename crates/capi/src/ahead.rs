//! Memory looked after before anything is changed.
//!
//! A call that adds something begins with `prepare`: the tables get room for it, and as many bytes
//! as everything that lives may still need on its way to the end, this call included, are set aside
//! in the runtime's pool. What is not to be had refuses the call, and nothing has changed. So no
//! call meets an allocation in its middle that can fail, whatever the allocator answers.
//!
//! Calls that end things do not look: what they need is at hand since what they end was added.

use crate::abi::AsxRuntime;
use crate::config::{AsxRuntimeConfig, size};
use crate::guard::Runtime;
use crate::pool::{Aside, CREDIT, SMALL_CALLS};
use crate::state::{Core, Role};
use asx_kernel::ids::{ChannelId, RegionId, TaskId};
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::mem::size_of;

/// Things of each kind for which room is made at once.
const ADDS: usize = 8;
/// What a text needs beside its bytes.
const TEXT: usize = 32;

/// What the creation of a runtime needs before it can prepare anything: the runtime itself, the
/// scheduler's buckets and the root.
pub(crate) const CREATION: Aside =
    Aside { bytes: size_of::<Runtime>() * 5 / 4 + 24 * 1024, piece: size_of::<Runtime>() };

/// The part of it that is still needed when the runtime's own memory is allocated.
pub(crate) const CREATED: Aside = Aside { bytes: 24 * 1024, piece: 1024 };

/// Events of a journal whose memory is reserved when the runtime is made, and how many for a longer
/// one.
const SHORT_JOURNAL: usize = 4096;
const SOME_EVENTS: usize = 64;

impl Core {
    /// Reserves the memory that a new runtime has from the beginning: mailbox, journal, reports,
    /// and the tables of a strict pool.
    pub(crate) fn make_ready(&mut self, config: &AsxRuntimeConfig, rt: &Runtime) -> Answer {
        let refused = |_| Status::ResourceExhausted;
        // Room for as many tasks as there can be, if that is not too many.
        let slots = u32::try_from(config.max_tasks).unwrap_or(64).clamp(1, 1 << 20) as usize;
        rt.reserve.strictly(|| rt.mailbox.try_reserve(slots)).map_err(refused)?;
        // A journal that is not too long has its memory now; others grow.
        let events = size(config.max_trace);
        let events = if events <= SHORT_JOURNAL { events } else { SOME_EVENTS };
        let journal = self.world.journal_mut();
        rt.reserve.strictly(|| journal.try_reserve(events)).map_err(refused)?;
        rt.reserve.strictly(|| self.ghosts.try_reserve()).map_err(refused)?;
        if config.is_strict() {
            self.reserve_limits(config, rt)?;
        }
        self.make_room(rt, 0, 0)
    }

    /// Gives every table the size of its limit, so that none grows by doubling, which would leave
    /// its old memory in pieces. For strict pools, all of whose limits are finite.
    fn reserve_limits(&mut self, config: &AsxRuntimeConfig, rt: &Runtime) -> Answer {
        let most = [config.max_tasks, config.max_regions, config.max_channels, config.max_timers];
        let most = size(most.into_iter().fold(0, u64::max));
        let finalizers = size(config.max_finalizers);
        let bodies = config.max_tasks.saturating_add(config.max_cleanups);
        let bodies = size(bodies).saturating_add(finalizers);
        let made = rt.reserve.strictly(|| {
            self.world.prepare(most, finalizers, bodies)?;
            self.reserve_bodies(bodies)
        });
        made.map_err(|_| Status::ResourceExhausted)
    }

    /// Makes room for one thing more of each kind, and for a text of so many bytes.
    ///
    /// # Safety
    /// Rule 1 of `guard`, and on the owner's thread.
    #[inline]
    pub(crate) unsafe fn prepare(&mut self, rt: *const AsxRuntime, text: usize) -> Answer {
        if text == 0 && self.adds > 0 {
            self.adds -= 1;
            return Ok(());
        }
        // SAFETY: rule 1.
        self.make_room(unsafe { Runtime::of(rt)? }, text, self.stores.promised())
    }

    /// The same for who has the runtime: for some more if that can be had, so that not every call
    /// has to look. What is promised to channels is left to them.
    #[inline(never)]
    pub(crate) fn make_room(&mut self, rt: &Runtime, text: usize, promised: usize) -> Answer {
        let some = self.make_room_for(ADDS, rt, text, promised);
        some.or_else(|_| self.make_room_for(1, rt, text, promised))
    }

    fn make_room_for(&mut self, more: usize, rt: &Runtime, text: usize, promised: usize) -> Answer {
        rt.reserve.strictly(|| self.grow(more, rt))?;
        let bytes = self.world.headroom(more, self.count(Role::Finalizer));
        let bytes = bytes.saturating_add(SMALL_CALLS).saturating_add(text).saturating_add(TEXT);
        let piece = self.world.largest_piece(more).max(text.saturating_add(TEXT));
        // Pieces are larger than what is asked for, by a quarter at most.
        let aside = Aside { bytes: bytes.saturating_add(bytes / 4), piece };
        rt.reserve.check(aside, promised)?;
        self.world.keep_to_headroom(more);
        self.credit = CREDIT;
        self.adds = more - 1;
        // More than things that live there are only after the next such call.
        self.events_ahead = self.world.events_ahead();
        Ok(())
    }

    /// Makes room before much may be cancelled, if it can be had; else causes are cut.
    #[inline]
    pub(crate) fn refill(&mut self, rt: &Runtime) {
        if self.world.lacks_headroom() {
            let _ = self.make_room(rt, 0, self.stores.promised());
        }
    }

    /// Gives every table room for so many things more.
    fn grow(&mut self, more: usize, rt: &Runtime) -> Answer {
        let finalizers = self.count(Role::Finalizer);
        let slots = self.world.task_slots().saturating_add(finalizers).saturating_add(more);
        let refused = |_| Status::ResourceExhausted;
        self.world.prepare(more, finalizers, self.bodies() + more).map_err(refused)?;
        self.reserve_bodies(more).map_err(refused)?;
        self.reserve_watchdogs(more).map_err(refused)?;
        rt.mailbox.try_reserve(slots).map_err(refused)
    }

    /// Makes room for a wait of a task, which needs little: all memory is looked at now and then.
    ///
    /// # Safety
    /// Rule 1 of `guard`, and on the owner's thread.
    #[inline]
    pub(crate) unsafe fn prepare_wait(&mut self, rt: *const AsxRuntime, task: TaskId) -> Answer {
        if self.world.can_wait(task) && self.credit > 0 {
            self.credit -= 1;
            return Ok(());
        }
        // SAFETY: rule 1.
        let rt = unsafe { Runtime::of(rt)? };
        self.make_room(rt, 0, 0)?;
        self.credit -= 1;
        self.prepare_task(rt, task)
    }

    /// The same for a receive, which adds nothing but the wait itself.
    ///
    /// # Safety
    /// Rule 1 of `guard`, and on the owner's thread.
    #[inline]
    pub(crate) unsafe fn prepare_recv(&mut self, rt: *const AsxRuntime, task: TaskId) -> Answer {
        if self.world.can_wait(task) {
            return Ok(());
        }
        // SAFETY: rule 1.
        self.prepare_task(unsafe { Runtime::of(rt)? }, task)
    }

    /// Makes room for one wait and one cleanup entry more of a task.
    pub(crate) fn prepare_task(&mut self, rt: &Runtime, task: TaskId) -> Answer {
        let grown = rt.reserve.strictly(|| self.world.prepare_task(task));
        grown.map_err(|_| Status::ResourceExhausted)
    }

    /// Makes room for one finalizer more of a region.
    pub(crate) fn prepare_defer(&mut self, rt: &Runtime, region: RegionId) -> Answer {
        let grown = rt.reserve.strictly(|| self.world.prepare_defer(region));
        grown.map_err(|_| Status::ResourceExhausted)
    }

    /// Makes room for a message in a channel.
    ///
    /// # Safety
    /// Rule 1 of `guard`, and on the owner's thread.
    #[inline]
    pub(crate) unsafe fn prepare_send(
        &mut self,
        rt: *const AsxRuntime,
        channel: ChannelId,
    ) -> Answer {
        if self.world.is_prepared(channel) {
            return Ok(());
        }
        // SAFETY: rule 1.
        self.prepare_channel(unsafe { Runtime::of(rt)? }, channel)
    }

    /// Makes room for a message, a permit and a waiting sender more in a channel.
    #[inline(never)]
    pub(crate) fn prepare_channel(&mut self, rt: &Runtime, channel: ChannelId) -> Answer {
        let grown = rt.reserve.strictly(|| self.world.prepare_channel(channel));
        grown.map_err(|_| Status::ResourceExhausted)
    }

    /// Makes room for a permit, held by a task or by nobody.
    ///
    /// # Safety
    /// Rule 1 of `guard`, and on the owner's thread.
    pub(crate) unsafe fn prepare_permit(
        &mut self,
        rt: *const AsxRuntime,
        channel: ChannelId,
        holder: Option<TaskId>,
    ) -> Answer {
        let ready = holder.is_none_or(|task| self.world.can_wait(task));
        if self.credit > 0 && ready && self.world.can_reserve(channel) {
            self.credit -= 1;
            return Ok(());
        }
        // SAFETY: rule 1.
        let rt = unsafe { Runtime::of(rt)? };
        // What it needs was promised when the channel was made.
        self.make_room(rt, 0, 0)?;
        self.credit -= 1;
        self.prepare_channel(rt, channel)?;
        holder.map_or(Ok(()), |task| self.prepare_task(rt, task))
    }

    /// Lets the journal grow, if it wants to and memory can be had; else it overwrites sooner.
    #[inline]
    pub(crate) fn feed_journal(&mut self, rt: &Runtime) {
        // What was left in the middle of a change is not to be touched.
        if self.world.journal().room() < self.events_ahead && !self.broken {
            // What finds no room is visible as lost.
            let events = self.events_ahead;
            let journal = self.world.journal_mut();
            let _ = rt.reserve.strictly(|| journal.try_reserve(events));
        }
    }
}
