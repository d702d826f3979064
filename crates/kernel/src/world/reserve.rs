//! What a host needs that may run out of memory: every growth told before it happens.
//!
//! [`prepare`](World::prepare) makes room in the tables, and in the lists that are used on the way
//! and are bounded by what lives, so that what comes next finds it there; it can fail, and has
//! changed nothing then. What is left are nodes of trees, links of reasons and the wheel's slots,
//! none of which can be asked for in a way that could be refused: [`headroom`](World::headroom)
//! says how many bytes of those may be needed, by whatever one operation adds and by all that lives
//! on its way to the end, until something is added again.

use super::*;
use core::mem::size_of;

/// Nodes and lists that one operation may add: a node per level of every tree it touches.
const ONE_CALL: usize = 8 * 1024;
/// A task on its way: nodes of the trees it goes through, its error.
const TASK: usize = 256;
/// A region: the same, and trees that begin.
const REGION: usize = 1024;
/// An obligation, a permit or a channel on its way.
const SMALL: usize = 32;
/// A reference to a timer: in the lists of the slots it comes through, each of which may have
/// doubled on the way.
const TIMER: usize = 128;
/// Obligations and permits for which room is made at once.
const FEW: usize = 16;
/// The largest node of a tree is not larger.
const LARGEST: usize = 1024;
/// What an `Arc` adds.
const COUNTS: usize = 2 * size_of::<usize>();
/// Events a thing may lead to on its way.
const EVENTS: usize = 12;

/// How much there is of what lives.
#[derive(Clone, Copy, Debug)]
pub struct Living {
    /// Tasks, and finalizers that will be some.
    pub tasks: usize,
    /// Regions.
    pub regions: usize,
    /// Obligations, permits and channels.
    pub small: usize,
    /// References to timers, of which there are up to [`refs_of`](crate::wheel::refs_of).
    pub timers: usize,
}

impl Living {
    /// Links of causes that are made when everything is cancelled.
    fn links(&self, chain: ChainLimits) -> usize {
        // A reason has one link more than that above it, until the chain is cut: then all are new.
        let shared = self.regions.min(chain.depth);
        (self.regions - shared).saturating_mul(chain.depth).saturating_add(shared)
    }

    /// Bytes it may ask for on its way to the end, tables and lists apart.
    pub fn headroom(&self, chain: ChainLimits) -> usize {
        let links = self.links(chain);
        let weights = [
            (self.tasks, TASK),
            (self.regions, REGION),
            (links, size_of::<Reason>() + COUNTS),
            (self.small, SMALL),
            (self.timers, TIMER),
        ];
        let weigh = |sum: usize, (count, weight): (usize, usize)| {
            sum.saturating_add(count.saturating_mul(weight))
        };
        // The links of one chain are also put into a list.
        let list = chain.depth.min(self.regions).saturating_mul(size_of::<Reason>());
        weights.into_iter().fold(ONE_CALL.saturating_add(list), weigh)
    }
}

impl<P, V> World<P, V> {
    /// Makes room in every table for one thing more of each kind, for a few obligations and
    /// permits, and for tasks that this many finalizers may become; and for all that lives to be
    /// cancelled, fire and be let go of at once, which are so many payloads.
    pub fn prepare(&mut self, finalizers: usize, payloads: usize) -> Result<(), TryReserveError> {
        fn room<T>(list: &mut Vec<T>, most: usize) -> Result<(), TryReserveError> {
            list.try_reserve(most.saturating_sub(list.len()))
        }
        let tasks = finalizers.saturating_add(1);
        let all = self.usage.tasks.saturating_add(tasks);
        room(&mut self.doomed, all)?;
        room(&mut self.due, self.wheel.len() + 1)?;
        // Whoever cancels, and each region told by the one above.
        room(&mut self.cancels, self.usage.regions + 2)?;
        room(&mut self.dropped, self.usage.channels + 1)?;
        self.released.try_reserve(payloads.saturating_sub(self.released.len()))?;
        self.tasks.try_reserve(tasks)?;
        self.regions.try_reserve(1)?;
        self.obligations.try_reserve(FEW)?;
        self.channels.try_reserve(1)?;
        self.permits.try_reserve(FEW)?;
        self.scheduler.try_reserve(all)?;
        self.wheel.try_reserve()
    }

    /// Slots there are for tasks.
    pub fn task_slots(&self) -> usize {
        self.tasks.slots()
    }

    /// Slots there are for channels.
    pub fn channel_slots(&self) -> usize {
        self.channels.slots()
    }

    /// Whether a message can be sent to the channel without an allocation.
    #[inline]
    pub fn is_prepared(&self, channel: ChannelId) -> bool {
        self.channels.get(channel.0).is_none_or(|record| record.law.is_prepared())
    }

    /// Whether the task can begin a wait, and take a permit, without an allocation of its own.
    #[inline]
    pub fn can_wait(&self, task: TaskId) -> bool {
        let room = |record: &TaskRecord<P>| {
            record.waits.len() < record.waits.capacity()
                && record.stack.len() + 1 < record.stack.capacity()
        };
        self.tasks.get(task.0).is_none_or(room)
    }

    /// Whether a permit of the channel can be had or waited for without an allocation in there.
    #[inline]
    pub fn can_reserve(&self, channel: ChannelId) -> bool {
        self.channels.get(channel.0).is_none_or(|record| record.law.has_room_in_line())
    }

    /// Makes room for one wait, cleanup entry and permit more of a task, if it is there.
    pub fn prepare_task(&mut self, task: TaskId) -> Result<(), TryReserveError> {
        let Some(record) = self.tasks.get_mut(task.0) else { return Ok(()) };
        record.waits.try_reserve(1)?;
        // One more for an entry that is put back.
        record.stack.try_reserve(2)
    }

    /// What registering a finalizer would answer, limits apart.
    pub fn may_defer(&mut self, region: RegionId) -> Answer {
        self.admit(region, Operation::Defer).map(drop)
    }

    /// Makes room for one finalizer more of a region, if it is there.
    pub fn prepare_defer(&mut self, region: RegionId) -> Result<(), TryReserveError> {
        match self.regions.get_mut(region.0) {
            Some(record) => record.finalizers.try_reserve(1),
            None => Ok(()),
        }
    }

    /// Makes room in a channel for a message or a permit more, and for a sender more in its line.
    pub fn prepare_channel(&mut self, channel: ChannelId) -> Result<(), TryReserveError> {
        match self.channels.get_mut(channel.0) {
            Some(record) => record.law.try_reserve_room(),
            None => Ok(()),
        }
    }

    /// Bytes of the largest piece of that: a slot's list of all timers, which has doubled.
    pub fn largest_piece(&self) -> usize {
        let list = self.config.chain.depth.min(self.usage.regions) * size_of::<Reason>();
        self.wheel.refs().saturating_mul(16).max(list).max(LARGEST)
    }

    /// Bytes that may be asked for beside the tables: see the module's text.
    pub fn headroom(&self, finalizers: usize) -> usize {
        self.living(finalizers).headroom(self.config.chain)
    }

    /// There are as many bytes: from now on no more is asked for. Chains of causes are cut rather.
    pub fn keep_to_headroom(&mut self) {
        self.links_left = self.living(0).links(self.config.chain);
    }

    /// Whether chains of causes might be cut that need not be, were there room.
    #[inline]
    pub fn lacks_headroom(&self) -> bool {
        self.links_left < self.living(0).links(self.config.chain)
    }

    fn living(&self, finalizers: usize) -> Living {
        Living {
            tasks: self.usage.tasks.saturating_add(finalizers),
            // One may be about to be opened.
            regions: self.usage.regions + 1,
            small: self.usage.obligations + self.permits.len() + self.usage.channels,
            timers: self.wheel.refs(),
        }
    }

    /// Events that may come before a host can make room for more.
    pub fn events_ahead(&self) -> usize {
        let things = [
            self.usage.tasks,
            self.usage.regions,
            self.usage.obligations,
            self.permits.len(),
            self.usage.channels,
            self.wheel.len(),
        ];
        let all = things.into_iter().fold(4_usize, usize::saturating_add);
        all.saturating_mul(EVENTS)
    }
}
