//! Steps as so many workers take them: by the scheduler's law, with its choices open.
//!
//! Without this any runnable task may be next. With it the strategy is asked which worker goes on,
//! and where a thief begins to look; what that worker runs is the law's to say: lanes, streaks of
//! cancels, its own work before that of others. So a run here is one that threads can have, and
//! there are fewer of them.

use asx_kernel::choose::{Choose, Point as LawPoint};
use asx_kernel::lanes::{Decision, SchedulerConfig, Source, TieBreak};
use asx_runtime::{Dispatch, Runnable};

use super::State;
use crate::explore::{Point, TaskPath};
use crate::workers::{Entry, Lanes};

/// The strategy as the law's oracle.
struct ByStrategy<'a>(&'a mut State);

impl Choose for ByStrategy<'_> {
    fn choose(&mut self, point: LawPoint, count: usize) -> usize {
        let point = match point {
            LawPoint::Worker => Point::Worker,
            LawPoint::ReadyTie(_) => Point::Tie,
            LawPoint::StealStart(_) => Point::Steal,
        };
        self.0.pick(point, count)
    }
}

impl State {
    /// Sets up lanes for this many workers, none for 0: what was left in the old ones.
    pub(super) fn set_workers(&mut self, workers: usize, tie_break: TieBreak) -> Vec<Runnable> {
        if workers == 0 && self.lanes.is_none() {
            return Vec::new();
        }
        let config = SchedulerConfig { workers, tie_break, ..SchedulerConfig::default() };
        let lanes = (workers > 0).then(|| Lanes::new(config));
        std::mem::replace(&mut self.lanes, lanes).map_or_else(Vec::new, Lanes::into_entries)
    }

    /// A task can run: whose work it is if the law decides. The entry comes back if it does not.
    pub(super) fn enqueue_by_law(&mut self, entry: Runnable, global: bool) -> Option<Runnable> {
        let Some(lanes) = &mut self.lanes else { return Some(entry) };
        let worker = lanes.worker.filter(|_| !global);
        lanes.push(entry, worker.map_or(Source::Global, Source::Local));
        None
    }

    /// The next entry by law, on a worker of the strategy's choice.
    pub(super) fn take_by_law(&mut self, ask: bool) -> Option<(Runnable, TaskPath, Dispatch)> {
        self.asks = ask;
        let mut lanes = self.lanes.take()?;
        let decision = lanes.next(&mut ByStrategy(self));
        self.lanes = Some(lanes);
        let Decision { worker, lane, streak, limit, fallback, token: Entry(entry), .. } = decision?;
        let path = TaskPath(self.known(entry.id()).path);
        if ask && let Some(strategy) = &mut self.strategy {
            strategy.pick_task(&[path]);
            match self.plan.trail {
                true => self.log.push_task(&[path], 0),
                false => self.picks.push(0),
            }
        }
        let worker = u16::try_from(worker).unwrap_or(u16::MAX);
        Some((entry, path, Dispatch::new(worker, lane, streak, limit).fallback(fallback)))
    }
}
