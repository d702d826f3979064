//! The invariants that hold after every step.

use super::*;

/// A violated invariant, with the object that violates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantViolation {
    /// The id of the invariant.
    pub id: &'static str,
    /// The finding.
    pub what: String,
}

errors! {
    InvariantViolation {
        InvariantViolation { id, what } => Status::Internal, "{id}: {what}";
    }
}

/// The result of a check.
type Checked = Result<(), InvariantViolation>;

/// Returns the violation unless the condition holds.
macro_rules! hold {
    ($id:literal, $holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(InvariantViolation { id: $id, what: format!($($text)+) });
        }
    };
}

fn law(id: &'static str, checked: Result<(), &'static str>) -> Checked {
    checked.map_err(|what| InvariantViolation { id, what: what.into() })
}

impl<P, V> World<P, V> {
    /// Checks every invariant that is visible in the state.
    pub fn check(&self) -> Result<(), InvariantViolation> {
        law("INV-TM-09", self.wheel.check())?;
        law("INV-SC-02", self.scheduler.check())?;
        for (_, record) in self.channels.iter() {
            law("INV-CH-01", record.law.check())?;
            let permits = record.permits.len();
            let slots = record.law.reserved() - record.law.granted();
            hold!(
                "INV-OB-01",
                permits == slots,
                "{permits} live permits for {slots} reserved slots"
            );
        }
        for (key, record) in self.regions.iter() {
            self.check_region(RegionId(key), record)?;
        }
        for (key, record) in self.tasks.iter() {
            self.check_task(TaskId(key), record)?;
        }
        self.check_usage()
    }

    fn check_region(&self, region: RegionId, record: &RegionRecord<P>) -> Checked {
        let word = &record.word;
        let counts = (
            word.live_tasks() as usize == record.tasks.len(),
            word.open_children() as usize == record.children.len(),
            word.outstanding() as usize == record.obligations.len(),
            word.finalizers() as usize == record.finalizers.len(),
        );
        let right = counts == (true, true, true, true);
        let miscounted = "tasks, children, obligations or finalizers";
        hold!("INV-RG-01", right, "{region} miscounts {miscounted}: {counts:?}");
        let state = word.state();
        let lives = word.live_tasks() + word.open_children() > 0;
        let open = |id: &ChannelId| {
            self.channel_ref(*id).is_ok_and(|c| c.law.state() != ChannelState::FullyClosed)
        };
        let held = record.channels.iter().any(open);
        let armed = !record.timers.is_empty() || word.outstanding() > 0 || record.storage > 0;
        let empty = state != RegionState::Closed || !(lives || held || armed);
        hold!("INV-RG-01", empty, "{region} is Closed with something alive in it");
        let settled = state != RegionState::Closing || self.delivering;
        hold!("INV-RG-02", settled, "{region} is left in Closing");
        for child in record.children.iter() {
            let own = self.region_ref(*child).is_ok_and(|c| c.parent == Some(region));
            hold!("INV-TK-01", own, "{child} has another parent");
        }
        Ok(())
    }

    fn check_task(&self, task: TaskId, record: &TaskRecord<P>) -> Checked {
        let state = record.life.state();
        let outcome = &record.outcome;
        let completed = state == TaskState::Completed;
        let owned = self.region_ref(record.region).is_ok_and(|r| r.tasks.contains(&task));
        hold!("INV-TK-01", owned != completed, "{task} and its region disagree");
        let ended = completed == outcome.is_some();
        hold!("INV-TK-01", ended, "{task} is {} with outcome {outcome:?}", state.name());
        let idle = record.queued.is_none() && record.timers.is_empty() && record.waits.is_empty();
        let over = !completed || (idle && record.stack.is_empty());
        hold!("INV-TK-01", over, "{task} is over and still queued, waiting or holding");
        let once = !(record.polling && record.queued.is_some());
        hold!("INV-TK-01", once, "{task} is queued while it is polled");
        for timer in record.timers.values() {
            let owner = self.wheel.get(*timer).map(|(_, token)| token.owner);
            let own = owner == Some(TimerOwner::Task(task));
            hold!("INV-TM-09", own, "{task} lists a timer that is not its own");
        }
        let held = record.stack.iter().all(|entry| match entry {
            Entry::Permit(permit) => self.permits.get(permit.0).is_some(),
            Entry::Payload(_) => true,
        });
        hold!("INV-OB-01", held, "{task} holds a permit that is gone");
        Ok(())
    }

    fn check_usage(&self) -> Checked {
        let queued = self.tasks.iter().filter(|(_, record)| record.queued.is_some()).count();
        let entries = self.scheduler.total();
        hold!("INV-TK-01", queued == entries, "{queued} tasks are queued, {entries} entries exist");
        let live = self.tasks.iter().filter(|(_, r)| r.outcome.is_none()).count();
        let open = self.regions.iter().filter(|(_, r)| r.word.state() != RegionState::Closed);
        let usage = (live == self.usage.tasks, open.count() == self.usage.regions);
        hold!("INV-RG-01", usage == (true, true), "usage miscounts: {usage:?}");
        let workers = 0..self.scheduler.workers();
        let effective = |worker| self.scheduler.certificate(worker).effective_exceedances;
        let kept = workers.clone().all(|worker| effective(worker) == 0);
        hold!("INV-SC-04", kept, "cancel work went on past its limit");
        for source in workers.map(Source::Local).chain([Source::Global]) {
            let lanes = self.scheduler.lanes(source);
            for (_, _, task) in Lane::ALL.into_iter().flat_map(|lane| lanes.iter(lane)) {
                let lives = self.task_ref(*task).is_ok_and(|r| r.queued.is_some());
                hold!("INV-TK-01", lives, "{task} has an entry too many");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Key = Key { generation: 9, index: 9 };

    /// Returns a sound world with a region that contains some of everything.
    fn sound() -> (World<(), ()>, RegionId, TaskId, ChannelId) {
        let mut world = World::new(Config::default());
        let region = world.open_region(world.root(), RegionOptions::default()).unwrap();
        let task = world.spawn(region, TaskOptions::default(), ()).unwrap();
        let channel = world.channel(Some(region), 2).unwrap();
        world.try_reserve(Some(task), channel, true).unwrap();
        world.defer(region, ()).unwrap();
        world.sleep(task, SleepUntil::After(Duration::from_millis(1))).unwrap();
        assert_eq!(world.check(), Ok(()));
        (world, region, task, channel)
    }

    /// Returns the violation that `check` finds after the region, its task and its channel were
    /// changed.
    fn broken(
        tamper: impl FnOnce(&mut RegionRecord<()>, &mut TaskRecord<()>, &mut ChannelRecord<()>),
    ) -> String {
        let (mut world, region, task, channel) = sound();
        let channel = world.channels.get_mut(channel.0).unwrap();
        let task = world.tasks.get_mut(task.0).unwrap();
        tamper(world.regions.get_mut(region.0).unwrap(), task, channel);
        format!("{}", world.check().unwrap_err())
    }

    #[test]
    fn wrong_counts_are_reported() {
        let counts = |counts| {
            format!(
                "INV-RG-01: r2 miscounts tasks, children, obligations or finalizers: {counts:?}"
            )
        };
        let task = broken(|region, _, _| region.word.task_added());
        assert_eq!(task, counts((false, true, true, true)));
        let child = broken(|region, _, _| region.word.child_added());
        assert_eq!(child, counts((true, false, true, true)));
        let obligation = broken(|region, _, _| region.word.obligation_added());
        assert_eq!(obligation, counts((true, true, false, true)));
        let finalizer = broken(|region, _, _| region.word.finalizer_added());
        assert_eq!(finalizer, counts((true, true, true, false)));
        let (mut world, ..) = sound();
        world.usage.tasks += 1;
        let usage = "INV-RG-01: usage miscounts: (false, true)";
        assert_eq!(format!("{}", world.check().unwrap_err()), usage);
        world.usage.tasks -= 1;
        world.usage.regions += 1;
        let usage = "INV-RG-01: usage miscounts: (true, false)";
        assert_eq!(format!("{}", world.check().unwrap_err()), usage);
    }

    #[test]
    fn a_region_left_in_closing_is_reported() {
        let text = broken(|region, _, _| assert!(region.word.close()));
        assert_eq!(text, "INV-RG-02: r2 is left in Closing");
    }

    #[test]
    fn a_closed_region_contains_nothing() {
        let found = |tamper: fn(&mut World<(), ()>, RegionId)| {
            let mut world: World<(), ()> = World::new(Config::default());
            let region = world.open_region(world.root(), RegionOptions::default()).unwrap();
            world.channel(Some(region), 1).unwrap();
            world.end_region(region).unwrap();
            assert_eq!(world.check(), Ok(()));
            tamper(&mut world, region);
            format!("{}", world.check().unwrap_err())
        };
        let alive = "INV-RG-01: r2 is Closed with something alive in it";
        let timer = TimerHandle { id: 1, generation: 1 };
        type Tamper = fn(&mut World<(), ()>, RegionId);
        let storage: Tamper = |world, region| world.region_mut(region).unwrap().storage = 1;
        assert_eq!(found(storage), alive);
        let open_channel: Tamper = |world, region| {
            let channel = world.channel(None, 1).unwrap();
            world.region_mut(region).unwrap().channels.insert(channel);
        };
        assert_eq!(found(open_channel), alive);
        let child: Tamper = |world, region| {
            let root = world.root();
            let record = world.region_mut(region).unwrap();
            record.word.child_added();
            record.children.insert(root);
        };
        assert_eq!(found(child), alive);
        let task: Tamper = |world, region| {
            let record = world.region_mut(region).unwrap();
            record.word.task_added();
            record.tasks.insert(TaskId(NOWHERE));
        };
        assert_eq!(found(task), alive);
        let obligation: Tamper = |world, region| {
            let record = world.region_mut(region).unwrap();
            record.word.obligation_added();
            record.obligations.insert(ObligationId(NOWHERE));
        };
        assert_eq!(found(obligation), alive);
        let (mut world, region, ..) = sound();
        world.close_region(region, Ask::new(Kind::User), Some(Duration::ZERO)).unwrap();
        world.expire();
        world.expire();
        world.region_mut(region).unwrap().timers.insert(1, timer);
        assert_eq!(format!("{}", world.check().unwrap_err()), alive);
    }

    #[test]
    fn parents_and_children_agree() {
        let (mut world, region, ..) = sound();
        world.region_mut(region).unwrap().parent = None;
        let text = format!("{}", world.check().unwrap_err());
        assert_eq!(text, "INV-TK-01: r2 has another parent");
        let other = TaskId(Key { generation: 5, index: 5 });
        let text = broken(|region, _, _| {
            region.tasks.clear();
            region.tasks.insert(other);
        });
        assert_eq!(text, "INV-TK-01: t1 and its region disagree");
        let text = broken(|_, task, _| task.outcome = Some(Ok(())));
        assert_eq!(text, "INV-TK-01: t1 is Created with outcome Some(Ok(()))");
        let text = broken(|_, task, _| task.polling = true);
        assert_eq!(text, "INV-TK-01: t1 is queued while it is polled");
        let text = broken(|_, task, _| task.queued = None);
        assert_eq!(text, "INV-TK-01: 0 tasks are queued, 1 entries exist");
        let text = broken(|_, task, _| {
            task.timers.insert(8, TimerHandle { id: 8, generation: 8 });
        });
        assert_eq!(text, "INV-TM-09: t1 lists a timer that is not its own");
        let text = broken(|_, task, _| task.stack.push(Entry::Permit(PermitId(NOWHERE))));
        assert_eq!(text, "INV-OB-01: t1 holds a permit that is gone");
        let text = broken(|_, _, channel| channel.permits.clear());
        assert_eq!(text, "INV-OB-01: 0 live permits for 1 reserved slots");
    }

    #[test]
    fn a_completed_task_has_no_resources() {
        let over = |tamper: fn(&mut TaskRecord<()>)| {
            let (mut world, _, task, _) = sound();
            world.force_complete(task);
            assert_eq!(world.check(), Ok(()));
            tamper(world.tasks.get_mut(task.0).unwrap());
            format!("{}", world.check().unwrap_err())
        };
        let text = "INV-TK-01: t1 is over and still queued, waiting or holding";
        assert_eq!(over(|task| task.stack.push(Entry::Payload(()))), text);
        assert_eq!(over(|task| task.waits.push(Wait::Recv(ChannelId(NOWHERE)))), text);
        let timer = |task: &mut TaskRecord<()>| {
            task.timers.insert(8, TimerHandle { id: 8, generation: 8 });
        };
        assert_eq!(over(timer), text);
        let (mut world, _, task, _) = sound();
        let queued = world.tasks.get(task.0).unwrap().queued;
        world.force_complete(task);
        world.tasks.get_mut(task.0).unwrap().queued = queued;
        assert_eq!(format!("{}", world.check().unwrap_err()), text);
    }

    #[test]
    fn entries_belong_to_live_tasks() {
        let (mut world, _, task, _) = sound();
        let other = world.spawn(world.root(), TaskOptions::default(), ()).unwrap();
        let place = Place::ready(Priority::DEFAULT);
        let stray = world.scheduler.enqueue(Source::Global, place, TaskId(NOWHERE), false);
        let (ticket, _) = world.tasks.get_mut(other.0).unwrap().queued.unwrap();
        world.scheduler.remove(ticket);
        assert!(world.task_ref(task).unwrap().queued.is_some() && stray != ticket);
        let text = format!("{}", world.check().unwrap_err());
        assert_eq!(text, "INV-TK-01: t9 has an entry too many");
    }
}
