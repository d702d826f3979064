//! The end of a run: soft stop, shutdown, grace periods, quiescence, and a dump of live objects.

use super::*;

/// The maximal indentation of a dump.
const DEEPEST_INDENT: usize = 64;

impl<P, V> World<P, V> {
    /// Notifies tasks that await it that the run is about to stop. Cancels nothing.
    pub fn soft_stop(&mut self) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        self.note(Subject::default(), EventKind::SoftStop {});
        self.happened(Watched::NoValue, Severity::Ok);
    }

    /// Begins the soft stop now. After `soft`, closes the root with Shutdown. After a further
    /// `force_after`, aborts the remaining tasks.
    pub fn shutdown(&mut self, soft: Duration, force_after: Option<Duration>) -> Answer {
        self.soft_stop();
        if soft.is_zero() {
            self.close_region(self.root, Ask::new(Kind::Shutdown), force_after)?;
        } else {
            self.schedule_grace(soft, self.root, Grace::Close(force_after));
        }
        Ok(())
    }

    pub(super) fn schedule_grace(&mut self, after: Duration, region: RegionId, grace: Grace) {
        self.asked += 1;
        let key = (self.now + after, self.asked);
        let Some(record) = self.regions.get_mut(region.0) else { return };
        if record.word.state() == RegionState::Closed {
            return;
        }
        if let Grace::Force(_) = grace {
            // The earliest of several grace periods applies.
            if record.force.is_some_and(|earlier| earlier < key) {
                return;
            }
            if let Some(later) = record.force.replace(key) {
                self.graces.remove(&later);
            }
        }
        self.graces.insert(key, (region, grace));
    }

    /// Aborts the live tasks in the region and below it. Finalizers start only then: they get the
    /// same grace period again, and so do the cleanup stacks of aborted tasks. Returns true if the
    /// grace period has no length and a poll is needed before it may expire again.
    pub(super) fn force_region(&mut self, region: RegionId, again: Duration) -> bool {
        if let Ok(record) = self.region_mut(region) {
            record.force = None;
        }
        let mut tasks = take(&mut self.doomed);
        self.split_below(region, again, &mut tasks);
        if !tasks.is_empty() {
            self.note_region(region, EventKind::GraceExpired {});
        }
        for task in tasks.drain(..) {
            self.end_by_grace(task);
        }
        self.schedule_grace(again, region, Grace::Force(again));
        let goes_on = again.is_zero() && self.split_below(region, again, &mut tasks);
        tasks.clear();
        self.doomed = tasks;
        goes_on
    }

    /// Aborts one task, like the end of a grace period of its region. If the configuration lets its
    /// cleanup stack run first, a second call aborts that too. A completed task does not change.
    pub fn force_task(&mut self, task: TaskId) -> Answer {
        self.task_ref(task)?;
        self.end_by_grace(task);
        Ok(())
    }

    /// Collects the live tasks of a region and below that do not outlast a grace period: parents
    /// first, in creation order. Returns whether there are others.
    fn split_below(&self, region: RegionId, again: Duration, ends: &mut Vec<TaskId>) -> bool {
        let mut others = false;
        let mut next = Some(region);
        while let Some(at) = next {
            next = self.below(region, at);
            let Ok(record) = self.region_ref(at) else { continue };
            for task in record.tasks.iter() {
                match self.outlasts_grace(*task, again) {
                    true => others = true,
                    false => ends.push(*task),
                }
            }
        }
        others
    }

    /// Succeeds if the world is quiescent, and otherwise returns all objects that prevent it.
    pub fn quiescent(&self) -> Result<(), NotQuiescent> {
        let holds = |law: &Channel<V, TaskId>| law.len() + law.reserved() > 0;
        Census {
            tasks: self.usage.tasks,
            obligations: self.usage.obligations,
            regions: self.usage.regions,
            timers: self.wheel.len(),
            channels: self.channels.iter().filter(|(_, record)| holds(&record.law)).count(),
        }
        .check()
    }

    /// Returns the tree of live objects, for people.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        self.dump_into(&mut text);
        text
    }

    /// Writes the tree of live objects, as far as `text` accepts it.
    pub fn dump_into(&self, text: &mut impl Write) {
        let mut next = Some(self.root);
        while let Some(region) = next {
            next = self.below(self.root, region);
            let Ok(record) = self.region_ref(region) else { continue };
            let above = core::iter::successors(record.parent, |at| self.regions.get(at.0)?.parent);
            let state = record.word.state();
            let depth = 2 * above.take(DEEPEST_INDENT / 2).count();
            let _ = write!(text, "{:depth$}{region} {}", "", state.name());
            if let Some(reason) = &record.reason {
                let _ = write!(text, " [{reason}]");
            }
            if record.word.outstanding() > 0 {
                let _ = write!(text, " obligations={}", record.word.outstanding());
            }
            let _ = text.write_char('\n');
            for task in record.tasks.iter() {
                self.dump_task(text, *task, depth + 2);
            }
            debug_assert!(state != RegionState::Closed || record.tasks.is_empty());
        }
    }

    fn dump_task(&self, text: &mut impl Write, task: TaskId, depth: usize) {
        let Ok(record) = self.task_ref(task) else { return };
        let state = record.life.state();
        let _ = write!(text, "{:depth$}{task} {} polls={}", "", state.name(), record.polls);
        if state == TaskState::CancelRequested {
            let _ = write!(text, " unseen for {} polls", record.polls_since_request);
        }
        if let Some(outcome) = &record.ended {
            let _ = write!(text, " cleaning up after {}", outcome.severity().name());
        }
        for wait in &record.waits {
            let _ = match wait {
                Wait::Send(channel, _) => write!(text, " waits to send on {channel}"),
                Wait::Recv(channel) => write!(text, " waits to receive on {channel}"),
                Wait::Seen(..) => Ok(()),
                Wait::Watch(Watched::Task(target), _) => write!(text, " waits for {target}"),
                Wait::Watch(Watched::Region(region), _) => {
                    write!(text, " waits for {region} to close")
                }
                Wait::Watch(Watched::NoValue, _) => write!(text, " waits for the soft stop"),
            };
        }
        if let Some((_, first)) = record.timers.first_key_value()
            && let Some((deadline, _)) = self.wheel.get(*first)
        {
            let _ = write!(text, " sleeps until {deadline}");
        }
        let _ = text.write_char('\n');
    }
}
