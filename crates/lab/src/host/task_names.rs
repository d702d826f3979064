//! Who is who: tasks by where they were spawned.
//!
//! A task is known by whom it was spawned, and as which of those that one spawned: its path. That
//! is the same in every run, unlike its number, by which everything about it is found. A finalizer
//! is begun by whichever task of its region ends last; it is known by the region.

use asx_kernel::rng::mix64;
use asx_runtime::Runnable;
use asx_runtime::footprint::TaskRecord;

use super::State;
use super::affinity::ANY;
use crate::explore::TaskPath;
use crate::fiber::Fiber;

/// The root task of every program.
const ROOT: TaskPath = TaskPath(0x9E37_79B9_7F4A_7C15);

/// What is known of a task.
#[derive(Default)]
pub(super) struct Known {
    /// Zero: not seen yet.
    pub(super) path: u64,
    /// Attributes that last from one of its steps to the next.
    pub(super) record: TaskRecord,
    /// Who spawned it.
    pub(super) parent: u32,
    /// As which of the parent's children, from 1.
    pub(super) nth: u32,
    /// Tasks it has spawned.
    pub(super) children: u32,
    /// Random numbers it has drawn.
    pub(super) draws: u32,
    /// How often it was polled, in runs with disturbances.
    pub(super) steps: u32,
    /// How often since it was asked to stop, without seeing it.
    pub(super) unheeding: u32,
    /// The thread on which it is; 0 if it may be on any.
    pub(super) thread: u32,
    /// It stays there.
    pub(super) is_local: bool,
    /// If it is among those that can run.
    pub(super) entry: Option<Runnable>,
    /// The fiber on which its poll was left; it then can run, too.
    pub(super) fiber: Option<Fiber>,
}

/// Who had a number last, in this run or one before.
#[derive(Default)]
pub(super) struct Born {
    /// The path of who spawned it.
    from: u64,
    path: u64,
    /// As which of those; from 1.
    nth: u32,
}

impl Known {
    /// The last poll that it has seen, by the task and how many it had.
    pub(super) fn place(&self) -> (u64, u64) {
        (self.path, u64::from(self.steps))
    }
}

/// Places for numbers, for each task.
const SPARE: usize = 8;

/// Where the number of a task is looked for, among so many places: a power of two.
#[inline]
fn place(path: TaskPath, numbers: &[u32]) -> usize {
    (path.0 >> 32) as usize & (numbers.len() - 1)
}

impl State {
    #[inline]
    pub(super) fn known(&mut self, id: u64) -> &mut Known {
        let at = id as usize;
        if at >= self.tasks.len() {
            self.make_room(at);
        }
        &mut self.tasks[at]
    }

    #[cold]
    fn make_room(&mut self, at: usize) {
        self.tasks.resize_with(at + 1, Known::default);
    }

    /// The number of a task that was met.
    pub(super) fn number(&mut self, path: TaskPath) -> usize {
        let first = self.number_to_try(path);
        match self.tasks.get(first) {
            Some(known) if known.path == path.0 => first,
            _ => self.search(path),
        }
    }

    /// The number that it has unless another has its place.
    #[inline]
    pub(super) fn number_to_try(&self, path: TaskPath) -> usize {
        self.numbers[place(path, &self.numbers)] as usize
    }

    /// The same of one whose place another has: the next place is its own from then on, unless
    /// somebody has that too.
    #[cold]
    pub(super) fn search(&mut self, path: TaskPath) -> usize {
        let beside = place(path, &self.numbers) ^ 1;
        let is_it = |known: &Known| known.path == path.0;
        let second = self.numbers[beside] as usize;
        if self.tasks.get(second).is_some_and(is_it) {
            return second;
        }
        let found = self.tasks.iter().position(is_it).unwrap_or(0);
        self.numbers[beside] = found as u32;
        found
    }

    /// Notes the number of a task.
    fn note_number(&mut self, path: TaskPath, id: u64) {
        // Few share a place if there are many more of them.
        if self.numbers.len() < self.tasks.len() * SPARE {
            self.make_places();
        }
        let at = place(path, &self.numbers);
        self.numbers[at] = id as u32;
    }

    #[cold]
    fn make_places(&mut self) {
        // Who was noted before is noted again.
        self.born.clear();
        self.numbers = vec![0; (self.tasks.len() * SPARE * 2).next_power_of_two()];
        for (id, known) in (0..).zip(&self.tasks) {
            let at = place(TaskPath(known.path), &self.numbers);
            self.numbers[at] = id;
        }
    }

    /// What is known of a new task: where it was spawned, by whom and as which of those that one
    /// spawned. Its number is noted.
    #[inline(always)]
    pub(super) fn meet(&mut self, entry: &Runnable) -> Known {
        if let Some(region) = entry.finalizes() {
            return self.meet_finalizer(entry, region);
        }
        let parent = self.current;
        let spawner = self.known(parent);
        spawner.children += 1;
        let nth = spawner.children;
        let from = spawner.path;
        // Most are who had this number in the last run, and are noted already.
        let path = match self.born.get(entry.id() as usize) {
            Some(born) if (born.from, born.nth) == (from, nth) => born.path,
            _ => self.name(entry.id(), from, nth),
        };
        if let Some(name) = entry.name() {
            self.list.note_name(path, &name);
            self.names.push((entry.id(), name));
        }
        let is_local = entry.pin().is_some();
        let thread = if is_local { self.thread_of_local(parent) } else { ANY };
        Known { path, parent: parent as u32, nth, thread, is_local, ..Known::default() }
    }

    /// The same of a finalizer of a region.
    #[cold]
    fn meet_finalizer(&mut self, entry: &Runnable, region: u64) -> Known {
        let parent = self.current;
        let from = self.known(parent).path;
        let at = match self.finalizers.iter().position(|(known, _)| *known == region) {
            Some(at) => at,
            None => {
                self.finalizers.push((region, 0));
                self.finalizers.len() - 1
            }
        };
        self.finalizers[at].1 += 1;
        let nth = self.finalizers[at].1;
        let id = entry.id();
        let path = mix64(region.rotate_left(17) ^ mix64(nth.into())) | 1;
        self.note_number(TaskPath(path), id);
        // Whoever has this number in another run is noted anew.
        if let Some(born) = self.born.get_mut(id as usize) {
            *born = Born::default();
        }
        self.list.note(id, path, from, nth);
        let is_local = entry.pin().is_some();
        let thread = if is_local { self.thread_of_local(parent) } else { ANY };
        Known { path, parent: parent as u32, nth, thread, is_local, ..Known::default() }
    }

    /// The path of a task that has had another number so far, which is noted.
    #[cold]
    fn name(&mut self, id: u64, from: u64, nth: u32) -> u64 {
        let path = match (from, nth) {
            // Of nobody's, the first.
            (0, 1) => ROOT.0,
            _ => mix64(!from ^ mix64(nth.into())) | 1,
        };
        self.note_number(TaskPath(path), id);
        self.list.note(id, path, from, nth);
        let at = id as usize;
        if at >= self.born.len() {
            self.born.resize_with(at + 1, Born::default);
        }
        self.born[at] = Born { from, path, nth };
        path
    }

    /// The name of an object: of what belongs to a task, by the task's path.
    #[inline]
    pub(super) fn object(&self, object: u64) -> u64 {
        let id = (object >> 2) as usize;
        let part = object & 3;
        match self.tasks.get(id) {
            Some(known) if id > 0 && part > 0 => match part {
                1 => known.path,
                3 => TaskPath(known.path).turn(),
                _ => mix64(known.path ^ part),
            },
            _ => object,
        }
    }

    /// What a task is called, for people: `main/2`, and if it has a name, `feed (main/2)`.
    pub(crate) fn called(&self, id: u64) -> String {
        let path = self.spawned(id);
        match self.names.iter().find(|(named, _)| *named == id) {
            Some((_, name)) => format!("{name} ({path})"),
            None => path,
        }
    }

    fn spawned(&self, id: u64) -> String {
        let mut steps = Vec::new();
        let mut at = self.tasks.get(id as usize);
        while let Some(known) = at.filter(|known| known.path != 0 && known.path != ROOT.0) {
            steps.push(known.nth.to_string());
            if known.parent == 0 {
                steps.push("runtime".into());
                break;
            }
            at = self.tasks.get(known.parent as usize);
        }
        if steps.last().is_none_or(|step| step != "runtime") {
            steps.push("main".into());
        }
        steps.reverse();
        steps.join("/")
    }

    /// The numbers of the tasks of this run, and their paths.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = (u64, TaskPath)> {
        let tasks = (0..).zip(&self.tasks).filter(|(_, known)| known.path != 0);
        tasks.map(|(id, known)| (id, TaskPath(known.path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many of which share a place, alone, by twos and by threes; and in the run after, in which
    /// what was noted is of others.
    #[test]
    fn a_task_is_found_whoever_has_its_place() {
        let mut state = State::default();
        for run in 0..3 {
            state.tasks.clear();
            state.tasks.push(Known::default());
            let path = |id: u64| TaskPath((((id + run) % 24 / 3) << 32) | ((id + run) << 8) | 1);
            for id in 1..60 {
                state.tasks.push(Known { path: path(id).0, ..Known::default() });
                state.note_number(path(id), id);
            }
            for id in (1..60).chain([7, 8, 7, 9, 8]) {
                assert_eq!(state.number(path(id)), id as usize, "run {run}");
            }
        }
    }
}
