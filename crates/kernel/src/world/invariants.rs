//! What must hold after every step, as code.

use super::*;

/// A broken invariant: which one, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantViolation {
    /// The invariant's id.
    pub id: &'static str,
    /// What was found.
    pub what: String,
}

impl fmt::Display for InvariantViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.what)
    }
}

impl core::error::Error for InvariantViolation {}

fn hold(
    ok: bool,
    id: &'static str,
    what: impl FnOnce() -> String,
) -> Result<(), InvariantViolation> {
    if ok { Ok(()) } else { Err(InvariantViolation { id, what: what() }) }
}

fn law(id: &'static str, checked: Result<(), &'static str>) -> Result<(), InvariantViolation> {
    checked.map_err(|what| InvariantViolation { id, what: what.into() })
}

impl<P, V> World<P, V> {
    /// Checks every invariant that a state can show.
    pub fn check(&self) -> Result<(), InvariantViolation> {
        law("INV-TM-09", self.wheel.check())?;
        law("INV-SC-02", self.scheduler.check())?;
        for (_, record) in self.channels.iter() {
            law("INV-CH-01", record.law.check())?;
            let permits = record.permits.len();
            hold(permits == record.law.reserved(), "INV-OB-01", || {
                format!("{permits} live permits for {} reserved slots", record.law.reserved())
            })?;
        }
        for (key, _) in self.regions.iter() {
            self.check_region(RegionId(key))?;
        }
        for (key, _) in self.tasks.iter() {
            self.check_task(TaskId(key))?;
        }
        self.check_usage()
    }

    fn check_region(&self, region: RegionId) -> Result<(), InvariantViolation> {
        let Ok(record) = self.region_ref(region) else { return Ok(()) };
        let word = &record.word;
        let counts = (
            word.live_tasks() as usize == record.tasks.len(),
            word.open_children() as usize == record.children.len(),
            word.outstanding() as usize == record.obligations.len(),
            word.finalizers() as usize == record.finalizers.len(),
        );
        hold(counts == (true, true, true, true), "INV-RG-01", || {
            format!("{region} miscounts tasks, children, obligations or finalizers: {counts:?}")
        })?;
        let state = word.state();
        let lives = word.live_tasks() + word.open_children() > 0;
        let held = record.channels.iter().any(|c| {
            self.channels.get(c.0).is_some_and(|c| c.law.state() != ChannelState::FullyClosed)
        });
        let armed = !record.timers.is_empty() || word.outstanding() > 0 || record.storage > 0;
        hold(state != RegionState::Closed || !(lives || held || armed), "INV-RG-01", || {
            format!("{region} is Closed with something alive in it")
        })?;
        let settled = !matches!(state, RegionState::Closing) || self.delivering;
        hold(settled, "INV-RG-02", || format!("{region} is left in Closing"))?;
        for child in &record.children {
            let parent = self.region_ref(*child).ok().and_then(|c| c.parent);
            hold(parent == Some(region), "INV-TK-01", || format!("{child} has another parent"))?;
        }
        Ok(())
    }

    fn check_task(&self, task: TaskId) -> Result<(), InvariantViolation> {
        let Ok(record) = self.task_ref(task) else { return Ok(()) };
        let completed = record.life.state() == TaskState::Completed;
        let owned = self.region_ref(record.region).is_ok_and(|r| r.tasks.contains(&task));
        hold(owned != completed, "INV-TK-01", || format!("{task} and its region disagree"))?;
        hold(completed == record.outcome.is_some(), "INV-TK-01", || {
            format!("{task} is {} with outcome {:?}", record.life.state().name(), record.outcome)
        })?;
        let idle = record.queued.is_none() && record.timers.is_empty() && record.waits.is_empty();
        hold(!completed || (idle && record.stack.is_empty()), "INV-TK-01", || {
            format!("{task} is over and still queued, waiting or holding")
        })?;
        hold(!(record.polling && record.queued.is_some()), "INV-TK-01", || {
            format!("{task} is queued while it is polled")
        })?;
        for timer in record.timers.values() {
            let owner = self.wheel.get(*timer).map(|(_, token)| token.owner);
            hold(owner == Some(TimerOwner::Task(task)), "INV-TM-09", || {
                format!("{task} lists a timer that is not its own")
            })?;
        }
        let permits = record.stack.iter().filter(|entry| match entry {
            Entry::Permit(permit) => self.permits.get(permit.0).is_none(),
            Entry::Payload(_) => false,
        });
        hold(permits.count() == 0, "INV-OB-01", || format!("{task} holds a permit that is gone"))
    }

    fn check_usage(&self) -> Result<(), InvariantViolation> {
        let queued = self.tasks.iter().filter(|(_, record)| record.queued.is_some()).count();
        hold(queued == self.scheduler.total(), "INV-TK-01", || {
            format!("{queued} tasks are queued, {} entries exist", self.scheduler.total())
        })?;
        let live = self.tasks.iter().filter(|(_, r)| r.outcome.is_none()).count();
        let open = self.regions.iter().filter(|(_, r)| r.word.state() != RegionState::Closed);
        let usage = (live == self.usage.tasks, open.count() == self.usage.regions);
        hold(usage == (true, true), "INV-RG-01", || format!("usage miscounts: {usage:?}"))?;
        let effective = |worker| self.scheduler.certificate(worker).effective_exceedances;
        let kept = (0..self.scheduler.workers()).all(|worker| effective(worker) == 0);
        hold(kept, "INV-SC-04", || "cancel work went on past its limit".into())?;
        let sources = (0..self.scheduler.workers()).map(Source::Local).chain([Source::Global]);
        for source in sources {
            for lane in [Lane::Cancel, Lane::Timed, Lane::Ready] {
                for (_, _, task) in self.scheduler.lanes(source).iter(lane) {
                    let lives = self.task_ref(*task).is_ok_and(|r| r.queued.is_some());
                    hold(lives, "INV-TK-01", || format!("{task} has an entry too many"))?;
                }
            }
        }
        Ok(())
    }
}
