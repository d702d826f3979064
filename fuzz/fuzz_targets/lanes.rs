//! The run queues compared with a plain list, and the scheduler's fairness bound.
#![no_main]

use asx_fuzz::Ops;
use asx_kernel::arena::Key;
use asx_kernel::choose::{Choose, Point};
use asx_kernel::ids::TaskId;
use asx_kernel::lanes::{
    EntryId, Lane, Lanes, Place, Priority, Scheduler, SchedulerConfig, Source, Suggestion, Ticket,
    TieBreak,
};
use asx_kernel::time::Time;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut ops = Ops::new(bytes);
    if ops.flag() { queues(&mut ops) } else { scheduler(&mut ops) }
});

fn place(ops: &mut Ops<'_>) -> Place {
    match ops.below(3) {
        0 => Place::cancel(Priority(ops.byte())),
        1 => Place::timed(Time::from_nanos(ops.number())),
        _ => Place::ready(Priority(ops.byte())),
    }
}

/// Returns the rank of an entry in its lane: smaller is earlier.
fn rank(place: Place) -> u64 {
    let by_priority = u64::from(u8::MAX - place.priority().0);
    place.deadline().map_or(by_priority, Time::as_nanos)
}

fn queues(ops: &mut Ops<'_>) {
    let mut lanes: Lanes<u32> = Lanes::new();
    let mut model: Vec<(EntryId, Place, u32, bool)> = Vec::new();
    let mut stale: Vec<EntryId> = Vec::new();
    let mut number = 0;
    while !ops.is_done() {
        number += 1;
        let lane = Lane::ALL[ops.below(3)];
        match ops.below(5) {
            0 | 1 => {
                let (place, pinned) = (place(ops), ops.flag());
                model.push((lanes.push(place, number, pinned), place, number, pinned));
            }
            2 => {
                let first = model.iter().filter(|entry| entry.1.lane() == lane);
                let first = first.min_by_key(|entry| (rank(entry.1), entry.2)).copied();
                let found = lanes.iter(lane).next().map(|(_, _, token)| *token);
                assert_eq!(found, first.map(|entry| entry.2));
                assert_eq!(lanes.pop(lane), first.map(|entry| (entry.1, entry.2)));
                model.retain(|entry| Some(entry.2) != first.map(|first| first.2));
                stale.extend(first.map(|entry| entry.0));
            }
            3 => {
                let open = model.iter().filter(|entry| !entry.3);
                let first = open
                    .min_by_key(|entry| (entry.1.lane() as u8, rank(entry.1), entry.2))
                    .copied();
                let stolen = Lane::ALL.into_iter().find_map(|lane| lanes.steal_from(lane));
                assert_eq!(stolen, first.map(|entry| (entry.1, entry.2)));
                model.retain(|entry| Some(entry.2) != first.map(|first| first.2));
            }
            _ => {
                if let Some(&(id, _, token, _)) = ops.pick(&model) {
                    assert_eq!(lanes.remove(id), Some(token));
                    model.retain(|entry| entry.2 != token);
                    stale.push(id);
                }
                if let Some(id) = ops.pick(&stale) {
                    assert_eq!(lanes.remove(*id), None);
                }
            }
        }
        assert_eq!(lanes.total(), model.len());
        assert_eq!(lanes.check(), Ok(()));
    }
}

struct Raw<'a, 'b>(&'a mut Ops<'b>);

impl Choose for Raw<'_, '_> {
    fn choose(&mut self, _: Point, count: usize) -> usize {
        self.0.below(count)
    }
}

fn scheduler(ops: &mut Ops<'_>) {
    let tie_break = if ops.flag() { TieBreak::Seeded } else { TieBreak::Fifo };
    let cancel_streak_limit = ops.below(5) as u32;
    let config = SchedulerConfig { workers: 1 + ops.below(3), tie_break, cancel_streak_limit };
    let mut scheduler: Scheduler<TaskId> = Scheduler::new(config);
    let mut live: Vec<(Ticket, TaskId)> = Vec::new();
    let mut generation = 0;
    while !ops.is_done() {
        let worker = ops.below(4);
        match ops.below(4) {
            0 | 1 => {
                generation += 1;
                let task = TaskId(Key { generation, index: 0 });
                let source = if ops.flag() { Source::Global } else { Source::Local(worker) };
                let (place, pinned) = (place(ops), ops.flag());
                live.push((scheduler.enqueue(source, place, task, pinned), task));
            }
            2 => {
                if let Some(&(ticket, task)) = ops.pick(&live) {
                    assert_eq!(scheduler.remove(ticket), Some(task));
                    live.retain(|entry| entry.1 != task);
                    assert_eq!(scheduler.remove(ticket), None);
                }
            }
            _ => {
                let suggestion = [
                    Suggestion::NoPreference,
                    Suggestion::MeetDeadlines,
                    Suggestion::DrainObligations,
                    Suggestion::DrainRegions,
                ][ops.below(4)];
                let could = scheduler.can_run(worker);
                let decision = scheduler.next(worker, suggestion, &mut Raw(ops));
                assert_eq!(decision.is_some(), could);
                if let Some(decision) = decision {
                    live.retain(|entry| entry.1 != decision.token);
                    assert!(
                        decision.fallback
                            || decision.lane != Lane::Cancel
                            || decision.streak < decision.limit
                    );
                }
            }
        }
        assert_eq!(scheduler.total(), live.len());
        assert_eq!(scheduler.check(), Ok(()));
    }
}
