//! Memory reservation for hosts that may run out of memory: every growth is announced.
//!
//! [`prepare`](World::prepare) allocates room in the tables, and in the work lists that are bounded
//! by the number of live objects, so that later operations need not allocate there. It can fail,
//! and then changes nothing. The remaining allocations cannot be made fallible: nodes of trees,
//! links of reasons and the wheel's slots. [`headroom`](World::headroom) returns an upper bound of
//! their bytes, for one further operation and for all live objects until their end.

use super::*;
use core::mem::size_of;

/// Nodes and lists that one operation may allocate: a node per level of every tree it changes.
const ONE_CALL: usize = 8 * 1024;
/// A task until its end: its nodes in trees, including those of a watchdog, or its part of vectors
/// that double; and its error.
const TASK: usize = 288;
/// A region: the same, and the first nodes of its trees.
const REGION: usize = 1024;
/// An obligation, a permit or a channel until its end.
const SMALL: usize = 32;
/// A reference to a timer in the lists of the wheel's slots that it passes through, each of which
/// may double.
const TIMER: usize = 128;
/// The number of obligations and permits for which room is reserved.
const FEW: usize = 16;
/// An upper bound of the size of a tree node.
const LARGEST: usize = 1024;
/// The entry of a task, region or timer in a sorted vector that has doubled. Trees have nodes
/// instead.
const ENTRY: usize = if cfg!(feature = "trees") { 0 } else { 2 * 64 };
/// The overhead of an `Arc`.
const COUNTS: usize = 2 * size_of::<usize>();
/// The maximal number of events of an object until its end.
const EVENTS: usize = 12;

/// Numbers of live objects.
#[derive(Clone, Copy, Debug)]
pub struct Living {
    /// Tasks, including registered finalizers.
    pub tasks: usize,
    /// Regions.
    pub regions: usize,
    /// Obligations, permits and channels.
    pub small: usize,
    /// References to timers, up to [`refs_of`](crate::wheel::refs_of) for each timer.
    pub timers: usize,
}

impl Living {
    /// Returns the number of links of causes that are created when everything is cancelled.
    fn links(&self, chain: ChainLimits) -> usize {
        // A reason has one link more than that above it. Once the chain is cut, all its links are
        // new.
        let shared = self.regions.min(chain.depth.saturating_sub(1));
        (self.regions - shared).saturating_mul(chain.depth).saturating_add(shared)
    }

    /// Returns the bytes that they may allocate until their end, without tables and lists.
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
        // The links of one chain are also collected in a list.
        let list = chain.depth.min(self.regions).saturating_mul(size_of::<Reason>());
        weights.into_iter().fold(ONE_CALL.saturating_add(list), weigh)
    }
}

impl<P, V> World<P, V> {
    /// Reserves room in every table for `more` objects of each kind, a few obligations and permits,
    /// and the tasks of `finalizers` finalizers. Also reserves room for cancelling, firing and
    /// releasing all live objects at once, with up to `payloads` payloads.
    pub fn prepare(
        &mut self,
        more: usize,
        finalizers: usize,
        payloads: usize,
    ) -> Result<(), TryReserveError> {
        fn room<T>(list: &mut Vec<T>, most: usize) -> Result<(), TryReserveError> {
            list.try_reserve(most.saturating_sub(list.len()))
        }
        let limits = self.config.limits;
        let tasks =
            finalizers.saturating_add(more.min(limits.tasks.saturating_sub(self.usage.tasks)));
        let regions = more.min(limits.regions.saturating_sub(self.usage.regions));
        let channels = more.min(limits.channels.saturating_sub(self.usage.channels));
        let all = self.usage.tasks.saturating_add(tasks);
        room(&mut self.doomed, all)?;
        let timers = self.wheel.len().saturating_add(more).min(self.config.wheel.limit);
        room(&mut self.due, timers)?;
        // The caller's cancel, and one for each region that its parent cancels.
        room(&mut self.cancels, self.usage.regions + regions + 1)?;
        room(&mut self.dropped, self.usage.channels + channels)?;
        if self.config.tell_leaks {
            let few = FEW + self.permits.len();
            room(&mut self.leaked, self.usage.obligations + few)?;
        }
        self.released.try_reserve(payloads.saturating_sub(self.released.len()))?;
        self.tasks.try_reserve(tasks)?;
        self.regions.try_reserve(regions)?;
        self.obligations.try_reserve(FEW)?;
        self.channels.try_reserve(channels)?;
        self.permits.try_reserve(FEW)?;
        self.scheduler.try_reserve(all)?;
        self.wheel.try_reserve(more)
    }

    /// Returns the number of slots for tasks.
    pub fn task_slots(&self) -> usize {
        self.tasks.slots()
    }

    /// Returns the number of slots for channels.
    pub fn channel_slots(&self) -> usize {
        self.channels.slots()
    }

    /// Whether a message can be sent to the channel without an allocation.
    #[inline]
    pub fn is_prepared(&self, channel: ChannelId) -> bool {
        self.channels.get(channel.0).is_none_or(|record| record.law.is_prepared())
    }

    /// Whether the task can begin a wait and take a permit without an allocation in its record.
    #[inline]
    pub fn can_wait(&self, task: TaskId) -> bool {
        let room = |record: &TaskRecord<P>| {
            record.waits.len() < record.waits.capacity()
                && record.stack.len() + 1 < record.stack.capacity()
        };
        self.tasks.get(task.0).is_none_or(room)
    }

    /// Whether a permit of the channel can be reserved or awaited without an allocation in the
    /// channel.
    #[inline]
    pub fn can_reserve(&self, channel: ChannelId) -> bool {
        self.channels.get(channel.0).is_none_or(|record| record.law.has_room_in_line())
    }

    /// Reserves room for one more wait, cleanup entry and permit of a task, if the task exists.
    pub fn prepare_task(&mut self, task: TaskId) -> Result<(), TryReserveError> {
        let Some(record) = self.tasks.get_mut(task.0) else { return Ok(()) };
        record.waits.try_reserve(1)?;
        // One more for an entry that is put back.
        record.stack.try_reserve(2)
    }

    /// Returns the result that registering a finalizer would have, without memory limits.
    pub fn may_defer(&mut self, region: RegionId) -> Answer {
        self.admit(region, Operation::Defer).map(drop)
    }

    /// Reserves room for one more finalizer of a region, if the region exists.
    pub fn prepare_defer(&mut self, region: RegionId) -> Result<(), TryReserveError> {
        match self.regions.get_mut(region.0) {
            Some(record) => record.finalizers.try_reserve(1),
            None => Ok(()),
        }
    }

    /// Reserves room in a channel for one more message or permit, and one more sender in line.
    pub fn prepare_channel(&mut self, channel: ChannelId) -> Result<(), TryReserveError> {
        match self.channels.get_mut(channel.0) {
            Some(record) => record.law.try_reserve_room(),
            None => Ok(()),
        }
    }

    /// Returns the bytes of the largest single allocation in the headroom, with `more` objects of
    /// each kind: a slot's list of all timers or, without trees, a doubled vector of all objects of
    /// one kind.
    pub fn largest_piece(&self, more: usize) -> usize {
        let Living { tasks, regions, small, timers } = self.living(more);
        let list = self.config.chain.depth.min(self.usage.regions) * size_of::<Reason>();
        let vector = tasks.max(regions).max(small).max(timers).saturating_mul(ENTRY);
        self.wheel.refs().saturating_mul(16).max(list).max(vector).max(LARGEST)
    }

    /// Returns the bytes that may be allocated beside the tables, with `more` objects of each kind
    /// and the tasks of `finalizers` finalizers. See the module's text.
    pub fn headroom(&self, more: usize, finalizers: usize) -> usize {
        let mut living = self.living(more);
        living.tasks = living.tasks.saturating_add(finalizers);
        living.headroom(self.config.chain)
    }

    /// Declares that the headroom is available and final: from now on chains of causes are cut
    /// rather than exceed it.
    pub fn keep_to_headroom(&mut self, more: usize) {
        self.links_left = self.living(more).links(self.config.chain);
    }

    /// Whether chains of causes may be cut for lack of headroom.
    #[inline]
    pub fn lacks_headroom(&self) -> bool {
        self.links_left < self.living(0).links(self.config.chain)
    }

    /// Returns the numbers of live objects plus `more` of each kind, as far as the limits admit
    /// them.
    fn living(&self, more: usize) -> Living {
        let Usage { tasks, regions, obligations, channels, .. } = self.usage;
        let limits = self.config.limits;
        Living {
            tasks: tasks.saturating_add(more).min(limits.tasks.max(tasks)),
            regions: regions.saturating_add(more).min(limits.regions),
            small: obligations.saturating_add(more).min(limits.obligations)
                + channels.saturating_add(more).min(limits.channels)
                + self.permits.len().saturating_add(more),
            timers: self.wheel.refs().saturating_add(more),
        }
    }

    /// Returns the number of events that may be recorded before a host can make room for more.
    pub fn events_ahead(&self) -> usize {
        let things = [
            self.usage.tasks,
            self.usage.regions,
            self.usage.obligations,
            self.permits.len(),
            self.usage.channels,
            self.wheel.len(),
        ];
        let all = things.into_iter().fold(8_usize, usize::saturating_add);
        all.saturating_mul(EVENTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = World<u8, u8>;

    /// Returns a world with a chain of nested regions, and a task in the innermost one.
    fn deep(regions: usize) -> (Plain, TaskId) {
        let mut world = Plain::new(Config::default());
        let mut region = world.root();
        for _ in 0..regions {
            region = world.open_region(region, RegionOptions::default()).unwrap();
        }
        let task = world.spawn(region, TaskOptions::default(), 0).unwrap();
        (world, task)
    }

    fn chain(world: &Plain, task: TaskId) -> (usize, bool) {
        let reason = world.task(task).unwrap().witness.unwrap().reason;
        (reason.chain().count(), reason.chain().any(|link| link.truncated))
    }

    #[test]
    fn causes_are_cut_when_no_more_links_are_reserved() {
        for regions in [3, 20] {
            let (mut world, task) = deep(regions);
            assert!(!world.lacks_headroom());
            world.keep_to_headroom(0);
            assert!(!world.lacks_headroom());
            let root = world.root();
            world.close_region(root, Ask::new(Kind::User), None).unwrap();
            assert_eq!(chain(&world, task), ((regions + 2).min(16), regions > 14));
            // All reserved links are used up.
            assert!(world.links_left == 0 && world.lacks_headroom());
            world.close_region(root, Ask::new(Kind::Shutdown), None).unwrap();
            let child = *world.region_ref(root).unwrap().children.first().unwrap();
            let reason = world.region(child).unwrap().reason.unwrap();
            assert_eq!(
                reason.chain().count(),
                2,
                "equally strong as the existing reason, which stays"
            );
            world.keep_to_headroom(0);
            assert!(!world.lacks_headroom());
        }
    }

    #[test]
    fn headroom_grows_with_live_and_expected_objects_up_to_the_limits() {
        let (world, _) = deep(3);
        let none = world.headroom(0, 0);
        let one = world.headroom(1, 0);
        let two = world.headroom(1, 1);
        assert!(none > ONE_CALL && none < one && one < two);
        let limits =
            Limits { tasks: 1, regions: 4, obligations: 0, channels: 0, ..world.config.limits };
        let config = Config { limits, ..world.config.clone() };
        let limited = World { config, ..world };
        let small = limited.headroom(9, 0) - limited.headroom(0, 0);
        assert_eq!(small, 9 * (SMALL + TIMER));
        let most = Living { tasks: usize::MAX, regions: usize::MAX, small: 0, timers: 0 };
        assert_eq!(most.headroom(ChainLimits::default()), usize::MAX);
    }

    #[test]
    fn prepared_operations_do_not_allocate() {
        let mut world = Plain::new(Config::default());
        world.prepare(4, 2, 9).unwrap();
        let room = |world: &Plain| {
            (world.doomed.capacity(), world.due.capacity(), world.cancels.capacity())
        };
        let before = room(&world);
        assert!(before.0 >= 6 && before.1 >= 4 && before.2 >= 6);
        assert!(world.released.capacity() >= 9 && world.dropped.capacity() >= 4);
        world.prepare(4, 2, 9).unwrap();
        assert_eq!(room(&world), before);
        assert!(world.prepare(usize::MAX / 64, 0, 0).is_err());
        let task = world.spawn(world.root(), TaskOptions::default(), 0).unwrap();
        assert!(!world.can_wait(task));
        world.prepare_task(task).unwrap();
        assert!(world.can_wait(task));
        let channel = world.channel(None, 2).unwrap();
        assert!(!world.is_prepared(channel) && !world.can_reserve(channel));
        world.prepare_channel(channel).unwrap();
        assert!(world.is_prepared(channel) && world.can_reserve(channel));
        assert_eq!(world.may_defer(world.root()), Ok(()));
        assert_eq!((world.task_slots(), world.channel_slots()), (1, 1));
    }
}
