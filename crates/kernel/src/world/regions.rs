//! Regions: opening, ending, closing, and cancelling their contents.

use super::*;

impl<P, V> World<P, V> {
    /// Opens a child region.
    pub fn open_region(&mut self, parent: RegionId, options: RegionOptions) -> Answer<RegionId> {
        self.admit_child(parent)?;
        self.room("regions", self.usage.regions, self.config.limits.regions)?;
        self.room_for(OBJECT_BYTES)?;
        let record = self.region_mut(parent)?;
        let budget = record.options.budget.meet(options.budget);
        let order = record.take_order();
        let record = RegionRecord::new(Some(parent), order, RegionOptions { budget, ..options });
        let key = self.regions.insert(record).map_err(|_| Status::ResourceExhausted)?;
        let region = RegionId(key);
        let record = self.region_mut(parent)?;
        record.children.insert(region);
        record.word.child_added();
        self.usage.regions += 1;
        self.note_region(region, EventKind::RegionOpened { parent: Some(parent.ordinal()) });
        Ok(region)
    }

    /// The body of the scope has ended: the region closes when nothing lives inside. Not a cancel.
    pub fn end_region(&mut self, region: RegionId) -> Answer {
        self.region_mut(region)?.word.end();
        cascade::settle(self, region);
        Ok(())
    }

    /// Closes the region with a reason and cancels its contents. Returns true the first time. Later
    /// calls strengthen the reason and propagate it. After `force_after`, remaining tasks are
    /// aborted.
    pub fn close_region(
        &mut self,
        region: RegionId,
        ask: Ask,
        force_after: Option<Duration>,
    ) -> Answer<bool> {
        let record = self.region_ref(region)?;
        let first = record.word.state() == RegionState::Open;
        if record.word.state() == RegionState::Closed {
            return Ok(false);
        }
        let reason = self.reason_for(region, ask);
        let cleanup = reason.kind.cleanup();
        self.cancel_region(region, reason, cleanup);
        if let Some(after) = force_after {
            self.schedule_grace(after, region, Grace::Force(after));
        }
        Ok(first)
    }

    /// Opens or closes the region's admission gate.
    pub fn set_admission(&mut self, region: RegionId, open: bool) -> Answer {
        self.region_mut(region)?.gate_open = open;
        Ok(())
    }

    /// Registers a finalizer, which runs after everything else in the region, in LIFO order.
    pub fn defer(&mut self, region: RegionId, payload: P) -> Offer<P> {
        let (payload, record) = with(payload, self.admit(region, Operation::Defer))?;
        record.finalizers.push(payload);
        record.word.finalizer_added();
        Ok(())
    }

    /// Spawns a finalizer task into a region that is finalizing.
    pub fn spawn_finalizer(&mut self, region: RegionId, payload: P) -> Offer<P, TaskId> {
        let (payload, record) = with(payload, self.admit(region, Operation::SpawnFinalizer))?;
        record.word.task_added();
        self.insert_finalizer(region, payload)
    }

    /// Allocates bytes of the region's storage, which are released when the region closes.
    pub fn use_storage(&mut self, region: RegionId, bytes: usize) -> Answer {
        self.admit(region, Operation::UseStorage)?;
        self.room_for(bytes)?;
        let record = self.region_mut(region)?;
        record.storage = record.storage.saturating_add(bytes);
        self.usage.storage_bytes = self.usage.storage_bytes.saturating_add(bytes);
        Ok(())
    }

    /// Frees a Closed region's slot, and everything kept below it. Its handles are stale from then
    /// on. The root cannot be released.
    pub fn release_region(&mut self, region: RegionId) -> Answer {
        let record = self.regions.get(region.0).ok_or(Status::StaleHandle)?;
        let (Some(parent), RegionState::Closed) = (record.parent, record.word.state()) else {
            return Err(Status::InvalidTransition);
        };
        if let Some(parent) = self.regions.get_mut(parent.0) {
            parent.closed_children.remove(&region);
        }
        self.free_region(region);
        Ok(())
    }

    /// Returns the result that an explicit transition of the region would have. Nothing changes.
    pub fn try_region(&self, region: RegionId, to: RegionState) -> Answer {
        self.region_ref(region)?.word.check(to)
    }

    /// Delivers a cancel to a region and everything inside, parents before children.
    pub(super) fn cancel_region(&mut self, region: RegionId, reason: Reason, cleanup: Cleanup) {
        self.cancels.push((region, reason, cleanup));
        self.deliver_cancels();
    }

    /// Works off the list of regions to cancel. A list, not a recursion, so that deep trees need no
    /// deep stack. A nested call leaves its regions to the outer one.
    fn deliver_cancels(&mut self) {
        if self.delivering {
            return;
        }
        self.delivering = true;
        while let Some((region, reason, cleanup)) = self.cancels.pop() {
            self.deliver_cancel(region, reason, cleanup);
        }
        self.delivering = false;
    }

    fn deliver_cancel(&mut self, region: RegionId, reason: Reason, cleanup: Cleanup) {
        let Ok(record) = self.region_mut(region) else { return };
        if record.word.state() == RegionState::Closed {
            return;
        }
        let kind = reason.kind;
        (record.cleanup, record.reason) = match record.reason.take() {
            Some(old) => {
                let both = old.combine(record.cleanup, &reason, cleanup);
                (both.cleanup, Some(if both.stronger { reason } else { old }))
            }
            None => (cleanup, Some(reason)),
        };
        let first = record.word.close();
        let state = record.word.state();
        self.note_region(region, EventKind::RegionCancelled { kind, strengthened: !first });
        if first {
            self.moved(region, RegionState::Open, RegionState::Closing);
            cascade::settle(self, region);
        } else if matches!(state, RegionState::Closing | RegionState::Draining) {
            self.tell_children(region);
        }
    }

    /// Propagates the region's reason: own tasks first, then child regions, in creation order.
    pub(super) fn tell_children(&mut self, region: RegionId) {
        let limits = self.config.chain;
        let Ok(record) = self.region_ref(region) else { return };
        let Some(cause) = record.reason.clone() else { return };
        let cleanup = record.cleanup.passed_on();
        let reason = Reason::new(Kind::ParentCancelled, region, self.now);
        let reason = reason.caused_within(cause, limits, &mut self.links_left);
        self.cancel_tasks(region, &reason, cleanup);
        if let Some(record) = self.regions.get(region.0) {
            // The list is worked off from its end, so the last child is pushed first.
            let children = record.children.iter().rev();
            self.cancels.extend(children.map(|child| (*child, reason.clone(), cleanup)));
        }
        self.deliver_cancels();
    }

    /// Cancels each task of a region. Tasks are neither created nor ended meanwhile.
    pub(super) fn cancel_tasks(&mut self, region: RegionId, reason: &Reason, cleanup: Cleanup) {
        let mut next = self.task_of(region, Unbounded);
        while let Some(task) = next {
            self.request_cancel(task, reason.clone(), cleanup);
            next = self.task_of(region, Excluded(task));
        }
    }

    /// Returns the first live task of a region, or the first one after another.
    fn task_of(&self, region: RegionId, after: Bound<TaskId>) -> Option<TaskId> {
        self.regions.get(region.0)?.tasks.range((after, Unbounded)).next().copied()
    }

    /// Returns the region after `at` in a traversal of all regions below `top`, parents first, in
    /// creation order.
    pub(super) fn below(&self, top: RegionId, at: RegionId) -> Option<RegionId> {
        if let Some(child) = self.regions.get(at.0)?.children.first() {
            return Some(*child);
        }
        let mut at = at;
        while at != top {
            let parent = self.regions.get(at.0)?.parent?;
            let siblings = &self.regions.get(parent.0)?.children;
            if let Some(sibling) = siblings.range((Excluded(at), Unbounded)).next() {
                return Some(*sibling);
            }
            at = parent;
        }
        None
    }
}
