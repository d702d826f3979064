//! The implementation of [`RegionStore`] by the world.

use super::*;

impl<P, V> RegionStore for World<P, V> {
    type Region = RegionId;

    fn with_word<R>(&mut self, region: RegionId, f: impl FnOnce(&mut RegionWord) -> R) -> R {
        let mut none = RegionWord::default();
        f(self.regions.get_mut(region.0).map_or(&mut none, |record| &mut record.word))
    }

    fn moved(&mut self, region: RegionId, from: RegionState, to: RegionState) {
        self.note_region(region, EventKind::RegionMoved { from, to });
    }

    fn cancel_children(&mut self, region: RegionId) {
        self.tell_children(region);
    }

    fn start_finalizer(&mut self, region: RegionId) {
        let payload = self.region_mut(region).ok().and_then(|record| record.finalizers.pop());
        if let Some(payload) = payload
            && let Err((_, payload)) = self.insert_finalizer(region, payload)
        {
            self.released.push_back(payload);
        }
    }

    fn cancel_timers(&mut self, region: RegionId) {
        while let Ok(record) = self.region_mut(region)
            && let Some((_, timer)) = record.timers.pop_first()
        {
            self.drop_timer(timer);
        }
    }

    fn release_channels(&mut self, region: RegionId) {
        let mut after = Unbounded;
        while let Ok(record) = self.region_ref(region)
            && let Some(&channel) = record.channels.range((after, Unbounded)).next()
        {
            while let Some(record) = self.channels.get_mut(channel.0)
                && let Some(permit) = record.permits.pop_first()
            {
                let _ = self.abort(permit);
            }
            self.close_channel(channel);
            after = Excluded(channel);
        }
    }

    fn account_leaks(&mut self, region: RegionId) {
        let Ok(record) = self.region_mut(region) else { return };
        let outstanding = take(&mut record.obligations);
        for id in outstanding.iter() {
            self.resolved(region, *id, ObligationState::Leaked);
        }
        let count = outstanding.len() as u64;
        self.note_region(region, EventKind::UnresolvedObligations { count });
    }

    fn closed(&mut self, region: RegionId) -> Option<RegionId> {
        let keep = self.config.keep_ended;
        let record = self.regions.get_mut(region.0)?;
        let outcome = record.fold.severity();
        let children = take(&mut record.closed_children);
        let parent = record.parent;
        let order = record.order;
        let fold = record.fold.clone();
        let storage = take(&mut record.storage);
        self.usage.storage_bytes -= storage;
        self.reclaims += u64::from(storage > 0);
        self.usage.regions -= 1;
        self.note_region(region, EventKind::RegionOutcome { outcome });
        if keep {
            children.iter().for_each(|child| self.retire_region(*child));
            self.regions.get_mut(region.0)?.closed_children = children;
        } else {
            children.into_iter().for_each(|child| self.free_region(child));
        }
        self.happened(Watched::Region(region), outcome);
        self.graces.retain(|_, (of, _)| *of != region);
        let record = self.regions.get_mut(parent?.0)?;
        record.children.remove(&region);
        record.closed_children.insert(region);
        if let Some(outcome) = fold.outcome() {
            record.fold.add(order, outcome.clone());
        }
        parent
    }
}

impl<P, V> World<P, V> {
    #[inline(always)]
    pub(super) fn region_ref(&self, region: RegionId) -> Answer<&RegionRecord<P>> {
        self.known_region(region).ok_or(Status::StaleHandle)
    }

    #[inline(always)]
    pub(super) fn region_mut(&mut self, region: RegionId) -> Answer<&mut RegionRecord<P>> {
        self.known_region_mut(region).ok_or(Status::StaleHandle)
    }

    fn known_region(&self, region: RegionId) -> Option<&RegionRecord<P>> {
        self.regions.get(region.0).filter(|record| !record.retired)
    }

    fn known_region_mut(&mut self, region: RegionId) -> Option<&mut RegionRecord<P>> {
        self.regions.get_mut(region.0).filter(|record| !record.retired)
    }

    /// Returns the region, if its state and gate admit the operation.
    pub(super) fn admit(
        &mut self,
        region: RegionId,
        operation: Operation,
    ) -> Answer<&mut RegionRecord<P>> {
        let record = self.region_mut(region)?;
        record.word.state().admit(operation)?;
        let shut = operation == Operation::Create && !record.gate_open;
        ensure(!shut, Status::AdmissionClosed)?;
        Ok(record)
    }

    /// Admits a task or child region, which counts towards the region's limit of children.
    pub(super) fn admit_child(&mut self, region: RegionId) -> Answer {
        let record = self.admit(region, Operation::Create)?;
        let children = record.tasks.len() + record.children.len();
        let limit = record.options.max_children.unwrap_or(usize::MAX);
        self.room("children", children, limit)
    }

    /// Creates the task of a finalizer, which its region already counts. No limit refuses it.
    pub(super) fn insert_finalizer(&mut self, region: RegionId, payload: P) -> Offer<P, TaskId> {
        let (payload, record) = with(payload, self.region_mut(region))?;
        let allowance = record.cleanup;
        let order = record.take_order();
        let budget = Budget {
            poll_quota: allowance.polls,
            priority: Priority(allowance.priority),
            ..Budget::INFINITE
        };
        let record = TaskRecord::new(region, order, budget);
        let finalizer = TaskRecord { finalizer: true, payload: Some(payload), ..record };
        let task = self.insert_task(finalizer);
        self.enqueue(task, Source::Global);
        Ok(task)
    }

    /// Frees a closed region's slot and those of its contents, bottom up and without recursion, so
    /// that deep trees need no deep stack.
    pub(super) fn free_region(&mut self, region: RegionId) {
        let mut at = region;
        while let Some(record) = self.regions.get_mut(at.0) {
            if let Some(child) = record.closed_children.pop_first() {
                at = child;
                continue;
            }
            let parent = record.parent;
            self.free_one(at);
            match parent {
                Some(parent) if at != region => at = parent,
                _ => return,
            }
        }
    }

    fn free_one(&mut self, region: RegionId) {
        let Some(record) = self.regions.remove(region.0) else { return };
        for task in record.ended_tasks {
            self.tasks.remove(task.0);
        }
        for channel in record.channels {
            self.channels.remove(channel.0);
        }
    }

    /// Retires a region when its parent has closed: its handle and those of its tasks become stale,
    /// but their slots are kept. Allocates nothing.
    fn retire_region(&mut self, region: RegionId) {
        let Some(record) = self.regions.get_mut(region.0) else { return };
        record.retired = true;
        for channel in take(&mut record.channels) {
            self.channels.remove(channel.0);
        }
        for task in record.ended_tasks.iter() {
            if let Some(task) = self.tasks.get_mut(task.0) {
                task.retired = true;
            }
        }
    }
}
