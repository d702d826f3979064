//! Steps of the network: what it has to deliver, among the tasks that can run.

use std::borrow::Cow;

use asx_kernel::time::Time;
use asx_runtime::Host;
use asx_runtime::footprint::{self, TaskRecord};

use super::{LabHost, Made, State};
use crate::explore::{Point, TaskPath};
use crate::net::Driver;

impl Driver for LabHost {
    fn enable(&self, carrier: TaskPath) {
        // A socket that another thread drops delivers nothing.
        let Some(mut state) = self.state.here() else { return };
        match state.lanes.is_some() {
            true => state.carriers.push(carrier),
            false => state.enabled.push(carrier),
        }
    }

    fn disable(&self, carrier: TaskPath) {
        let Some(mut state) = self.state.here() else { return };
        state.carriers.retain(|other| *other != carrier);
        state.enabled.retain(|other| *other != carrier);
        state.old = 0;
    }

    fn pick(&self, place: (u64, u64), count: usize) -> usize {
        let Some(mut state) = self.state.here() else { return 0 };
        // Alone, there are as many as the settings of the network say.
        let is_alone = !state.plan.cancels && !state.plan.faults;
        if !is_alone && state.faults.count >= state.plan.disturbances {
            return 0;
        }
        let picked = state.pick(Point::Network, count);
        // After a first fault the program is another one: its places are not those to cover.
        if state.asks && state.faults.count == 0 {
            state.faults.network.seen(place, false, count - 1, picked);
        }
        picked
    }

    fn made(&self, fault: String, shows: bool) {
        let Some(mut state) = self.state.here() else { return };
        state.faults.made.push(Made { text: Cow::Owned(fault), point: Point::Network });
        state.faults.count += 1;
        state.is_disturbed |= shows;
    }

    fn time(&self) -> Time {
        self.now()
    }

    fn current_task(&self) -> u64 {
        self.state.here().map_or(0, |state| state.current)
    }
}

impl LabHost {
    /// A step of a carrier that was chosen, of which somebody wants to know if `ask`.
    #[cold]
    pub(super) fn deliver(&self, carrier: TaskPath, ask: bool) {
        let notes = {
            let mut state = self.state();
            state.current = 0;
            ask && state.is_of_interest()
        };
        footprint::begin(carrier.0, TaskRecord::default(), notes);
        self.net.deliver(carrier);
        let mut state = self.state();
        state.look_at_footprint(carrier, notes);
        if ask {
            state.tell(carrier);
        }
    }
}

impl State {
    /// The carrier that goes on now if the law chooses among tasks: none if a worker is to go.
    /// `is_idle`: no worker can.
    pub(super) fn take_carrier(&mut self, ask: bool, is_idle: bool) -> Option<TaskPath> {
        if self.carriers.is_empty() {
            return None;
        }
        self.asks = ask;
        let workers = usize::from(!is_idle);
        let count = self.carriers.len() + workers;
        let picked = if count > 1 { self.pick(Point::Worker, count) } else { 0 };
        let carrier = self.carriers.remove(picked.checked_sub(workers)?);
        if ask {
            if let Some(strategy) = &mut self.strategy {
                strategy.pick_task(&[carrier]);
            }
            match self.plan.trail {
                true => self.log.push_task(&[carrier], 0),
                false => self.picks.push(0),
            }
        }
        Some(carrier)
    }
}
