//! The end of a run: soft stop, shutdown, grace, quiescence, and a dump of what still lives.

use super::*;

/// Deeper levels of a dump are not indented further.
const DEEPEST_INDENT: usize = 64;

impl<P, V> World<P, V> {
    /// Tells tasks that await it that the run is about to stop. Nothing is cancelled.
    pub fn soft_stop(&mut self) {
        if self.stopping {
            return;
        }
        self.stopping = true;
        self.note(Subject::default(), EventKind::SoftStop {});
        self.happened(Watched::Stop, Severity::Ok);
    }

    /// Soft stop now; after `soft` the root closes with Shutdown; after `force_after` more, what
    /// still lives is completed by force.
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
            // Of several the shortest counts.
            if record.force.is_some_and(|earlier| earlier < key) {
                return;
            }
            if let Some(later) = record.force.replace(key) {
                self.graces.remove(&later);
            }
        }
        self.graces.insert(key, (region, grace));
    }

    /// Completes by force whatever lives in the region and below it. Finalizers start only then:
    /// they get the same grace again, and so do cleanup stacks of what was ended. True: the grace
    /// has no length, and something must be polled before it may end once more.
    pub(super) fn force_region(&mut self, region: RegionId, again: Duration) -> bool {
        if let Ok(record) = self.region_mut(region) {
            record.force = None;
        }
        let mut tasks = self.tasks_below(region);
        tasks.retain(|task| !self.outlasts_grace(*task, again));
        if !tasks.is_empty() {
            self.note_region(region, EventKind::GraceExpired {});
        }
        for task in tasks {
            self.end_by_grace(task);
        }
        self.schedule_grace(again, region, Grace::Force(again));
        let goes_on = |task| self.outlasts_grace(task, again);
        again.is_zero() && self.tasks_below(region).into_iter().any(goes_on)
    }

    /// Ends one task by force, as the end of a grace of its region's would: where the host wants
    /// that its cleanup stack runs first, a second call cuts that off too. One that is over stays
    /// as it is.
    pub fn force_task(&mut self, task: TaskId) -> Answer {
        self.task_ref(task)?;
        self.end_by_grace(task);
        Ok(())
    }

    /// The live tasks of a region and below, parents first, in creation order.
    fn tasks_below(&self, region: RegionId) -> Vec<TaskId> {
        let mut found = Vec::new();
        let mut regions = alloc::vec![region];
        while let Some(region) = regions.pop() {
            let Ok(record) = self.region_ref(region) else { continue };
            found.extend(record.tasks.iter().copied());
            regions.extend(record.children.iter().rev().copied());
        }
        found
    }

    /// Quiescent, or everything that stands in the way.
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

    /// The tree of what still lives, for people.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        let mut regions = alloc::vec![(self.root, 0)];
        while let Some((region, depth)) = regions.pop() {
            let Ok(record) = self.region_ref(region) else { continue };
            let state = record.word.state();
            let depth = DEEPEST_INDENT.min(depth);
            let _ = write!(text, "{:depth$}{region} {}", "", state.name());
            if let Some(reason) = &record.reason {
                let _ = write!(text, " [{reason}]");
            }
            if record.word.outstanding() > 0 {
                let _ = write!(text, " obligations={}", record.word.outstanding());
            }
            text.push('\n');
            for task in record.tasks.iter() {
                self.dump_task(&mut text, *task, depth + 2);
            }
            let children = record.children.iter().rev();
            regions.extend(children.map(|child| (*child, depth + 2)));
            debug_assert!(state != RegionState::Closed || record.tasks.is_empty());
        }
        text
    }

    fn dump_task(&self, text: &mut String, task: TaskId, depth: usize) {
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
                Wait::Watch(Watched::Stop, _) => write!(text, " waits for the soft stop"),
            };
        }
        if let Some((_, first)) = record.timers.first_key_value()
            && let Some((deadline, _)) = self.wheel.get(*first)
        {
            let _ = write!(text, " sleeps until {deadline}");
        }
        text.push('\n');
    }
}
