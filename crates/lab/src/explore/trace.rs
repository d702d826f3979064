//! The steps of the run so far, and which of them came before which.
//!
//! Two steps are *dependent* if they touch a common object and at least one of them writes it. Each
//! step writes its own task, so that the steps of one task are dependent. *Happens-before* is the
//! order of dependent steps, closed under transitivity: a bit set for each step. Runs that are
//! linear forms of the same happens-before relation are one class (a Mazurkiewicz trace).
//!
//! The trace is a stack: [`Trace::truncate`] goes back to a shared prefix, so that a run costs only
//! what it does not share with the run before it. Nothing is allocated once the longest run was
//! seen.
//!
//! The *hash of a class* does not depend on the linear form, nor on where polls begin and end. Each
//! task has one that covers its picks and its uses of objects so far, each with those that it
//! depends on there; the class is the sum over all tasks. Uses that no program can tell the order
//! of are left out: [neutral](Access::is_neutral) ones, such as who is the last of several to end.

use super::index::Roster;
use super::{Access, TaskPath};
use asx_kernel::rng::{GOLDEN, mix64};

/// Folds one more choice into the hash of a step's choices; never 0.
pub(super) fn pick_hash(hash: u64, value: u32) -> u64 {
    mix64(hash.rotate_left(9) ^ u64::from(value) ^ GOLDEN) | 1
}

/// A hash of a footprint as it was given.
fn check(footprint: &[Access]) -> u64 {
    footprint.iter().fold(0, |hash: u64, access| {
        (hash.rotate_left(5) ^ access.object ^ u64::from(access.write)).wrapping_mul(GOLDEN)
    })
}

/// The objects of a step as bit sets, folded to 128 bits: what is disjoint here is independent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Print {
    touched: [u64; 2],
    written: [u64; 2],
}

impl Print {
    /// Dependent on every step.
    pub(super) const ALL: Print = Print { touched: [u64::MAX; 2], written: [u64::MAX; 2] };

    /// Whether steps with these footprints may be swapped for certain.
    pub(super) fn is_independent(self, other: Print) -> bool {
        let clash = |written: [u64; 2], touched: [u64; 2]| {
            (written[0] & touched[0]) | (written[1] & touched[1])
        };
        clash(self.written, other.touched) | clash(other.written, self.touched) == 0
    }

    pub(super) fn union(self, other: Print) -> Print {
        let both = |one: [u64; 2], two: [u64; 2]| [one[0] | two[0], one[1] | two[1]];
        let touched = both(self.touched, other.touched);
        Print { touched, written: both(self.written, other.written) }
    }

    /// The footprint folded by the objects' names.
    pub(super) fn folded(footprint: &[Access]) -> Print {
        let mut print = Print::default();
        for access in footprint {
            print.add((mix64(access.object) >> 57) as u32, access.write);
        }
        print
    }

    #[inline]
    fn add(&mut self, object: u32, write: bool) {
        let word = (object / 64 % 2) as usize;
        let bit = 1 << (object % 64);
        self.touched[word] |= bit;
        self.written[word] |= if write { bit } else { 0 };
    }
}

/// A step that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The task's number.
    pub(super) task: u32,
    /// Whether a choice was made inside the step.
    pub(super) has_picks: bool,
    pub(super) print: Print,
    /// What was the hash of the task before it.
    hash_before: u64,
    /// A hash of what it touched, in the order given.
    check: u64,
    /// The sum of the hashes of all tasks after this step.
    class: u64,
    /// Where its objects, and its races, begin.
    touched: u32,
    races: u32,
}

/// A step, and a task whose own step depends on it with nothing between them: it could have come
/// first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Race {
    pub(super) step: u32,
    pub(super) task: u32,
    /// That step; none if the first one has kept the task from taking it.
    later: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Touch {
    step: u32,
    write: bool,
    /// It was read, or read as well.
    read: bool,
    /// The hash of the task after that; 0 if the use is no part of the class.
    hash: u64,
}

impl Touch {
    fn new(step: u32, access: Access, hash: u64) -> Touch {
        let Access { write, is_neutral, .. } = access;
        Touch { step, write, read: !write, hash: if is_neutral { 0 } else { hash } }
    }

    /// What it adds to the hash of a write that comes after it.
    fn share(&self) -> u64 {
        if self.hash == 0 { 0 } else { mix64(self.hash) }
    }
}

/// The hash of a task after a use, which comes after the write and the reads that it depends on.
#[inline]
fn touch_hash(hash: u64, access: Access, writer: u64, readers: u64) -> u64 {
    if access.is_neutral {
        return hash;
    }
    let word = access.object.wrapping_add(u64::from(access.write).wrapping_mul(GOLDEN));
    let used = mix64(mix64(word) ^ writer.rotate_left(7) ^ readers.rotate_left(31));
    mix64(hash.rotate_left(9) ^ used) | 1
}

#[derive(Debug)]
pub(super) struct Trace {
    /// The numbers of tasks and of other objects.
    pub(super) names: Roster,
    pub(super) steps: Vec<Step>,
    races: Vec<Race>,
    /// The objects of all steps, one after another.
    touched: Vec<u32>,
    /// Who touched each object, in order.
    touches: Vec<Vec<Touch>>,
    /// The hashes of tasks, by number.
    hashes: Vec<u64>,
    /// For each step the set of those before it, `width` words each.
    before: Vec<u64>,
    width: usize,
    /// Scratch: what the new step directly depends on, and could come before; what it comes after
    /// in any case; and what is before those.
    direct: Vec<u32>,
    awaited: Vec<u32>,
    past: Vec<u64>,
}

impl Trace {
    pub(super) fn new() -> Trace {
        Trace {
            names: Roster::default(),
            // Enough for most runs.
            steps: Vec::with_capacity(32),
            races: Vec::with_capacity(32),
            touched: Vec::with_capacity(256),
            touches: Vec::with_capacity(32),
            hashes: Vec::with_capacity(32),
            before: Vec::with_capacity(32),
            width: 1,
            direct: Vec::with_capacity(32),
            awaited: Vec::new(),
            past: vec![0],
        }
    }

    /// How many words a set of steps takes.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The steps that come before a step.
    pub(super) fn before(&self, step: u32) -> &[u64] {
        &self.before[step as usize * self.width..][..self.width]
    }

    /// Whether a step comes before another.
    pub(super) fn is_before(&self, earlier: u32, later: u32) -> bool {
        self.before(later)[earlier as usize / 64] >> (earlier % 64) & 1 == 1
    }

    /// Whether a step that was taken is this one.
    pub(super) fn is_step(&self, number: usize, task: TaskPath, footprint: &[Access]) -> bool {
        let is_same = |step: &Step| {
            self.names.index.name(step.task) == task.0 && step.check == check(footprint)
        };
        self.steps.get(number).is_some_and(is_same)
    }

    /// The races of the run, by number.
    pub(super) fn race(&self, at: usize) -> Option<Race> {
        self.races.get(at).copied()
    }

    /// The last step kept a task from taking the step it was about to take.
    pub(super) fn disables(&mut self, task: u32) {
        let step = self.steps.len() as u32 - 1;
        self.races.push(Race { step, task, later: None });
    }

    /// Whether the task of a race can take its step without the first one; `could_run` says
    /// whether the task could run before that.
    pub(super) fn is_possible(&mut self, race: Race, could_run: bool) -> bool {
        let turn = self.names.index.of(TaskPath(self.names.index.name(race.task)).turn());
        if let Some(later) = race.later
            && self.touch_of(turn, later).is_some_and(|touch| touch.write)
            && self.touch_of(turn, race.step).is_some_and(|touch| touch.read)
        {
            return self.is_woken_without(turn, race.step, later);
        }
        could_run || !self.touch_of(race.task, race.step).is_some_and(|touch| touch.write)
    }

    /// Whether somebody else wakes the task, of whose turn this is, for the poll that begins with
    /// the step `later`, than the step `waker`.
    fn is_woken_without(&self, turn: u32, waker: u32, later: u32) -> bool {
        let touches = &self.touches[turn as usize];
        let before = touches.iter().rev().skip_while(|touch| touch.step >= later);
        for touch in before {
            let is_other = touch.step != waker && !self.is_before(waker, touch.step);
            if touch.read && is_other {
                return true;
            }
            if touch.write {
                break;
            }
        }
        false
    }

    /// What a step did to an object.
    fn touch_of(&self, object: u32, step: u32) -> Option<Touch> {
        let touches = self.touches.get(object as usize)?;
        let found = touches.binary_search_by_key(&step, |touch| touch.step);
        found.ok().map(|at| touches[at])
    }

    /// The hash of the class of the run so far.
    pub(super) fn class(&self) -> u64 {
        self.steps.last().map_or(0, |step| step.class)
    }

    /// Forgets all steps but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        let Some(first) = self.steps.get(len).copied() else { return };
        for object in self.touched.drain(first.touched as usize..).rev() {
            self.touches[object as usize].pop();
        }
        self.races.truncate(first.races as usize);
        self.before.truncate(len * self.width);
        for step in self.steps.drain(len..).rev() {
            self.hashes[step.task as usize] = step.hash_before;
        }
    }

    /// Adds a step; `picks` is a hash of the choices made in it, 0 if there were none, and `extra`
    /// an object that it touched besides. `yielded`: the task has let others go first.
    pub(super) fn push(
        &mut self,
        task: TaskPath,
        picks: u64,
        footprint: &[Access],
        extra: Option<Access>,
        yielded: bool,
    ) {
        let number = self.steps.len() as u32;
        if number as usize >= self.width * 64 {
            self.widen();
        }
        let touched = self.touched.len() as u32;
        let races = self.races.len() as u32;
        let mut print = Print::default();
        let own = Access::write(task.0);
        let path = task.0;
        let task = self.names.index.of(path);
        let hash_before = self.hash_of(task);
        let mut hash = if hash_before == 0 { mix64(path) | 1 } else { hash_before };
        if picks != 0 || yielded {
            hash = mix64(hash ^ picks.rotate_left(17) ^ u64::from(yielded)) | 1;
        }
        self.direct.clear();
        self.awaited.clear();
        if let Some(access) = extra {
            let object = self.names.index.of(access.object);
            self.touch(number, object, access.neutral(), hash, &mut print);
        }
        // A write of the task by another one since its last step has changed what it does next.
        // Reads have not: the clock, which every step reads, is a task.
        let is_changed = |touch: &Touch| self.steps[touch.step as usize].task != task;
        let touches = self.touches.get(task as usize).map_or(&[][..], |touches| touches);
        let changed = touches.iter().rev().find(|touch| touch.write);
        if let Some(touch) = changed.filter(|touch| is_changed(touch)) {
            hash = mix64(hash.rotate_left(9) ^ touch.hash) | 1;
        }
        for access in footprint.iter().copied().filter(|it| it.object != path) {
            let object = self.names.index.of(access.object);
            hash = self.touch(number, object, access, hash, &mut print);
        }
        self.touch(number, task, own.neutral(), hash, &mut print);
        // Who writes the task next, to have it stop, comes after all that it did.
        if let Some(touch) = self.touches[task as usize].last_mut() {
            touch.hash = hash;
        }
        self.hashes[task as usize] = hash;
        let share = |hash| if hash == 0 { 0 } else { mix64(hash) };
        let class = self.class().wrapping_sub(share(hash_before)).wrapping_add(share(hash));
        let has_picks = picks != 0;
        let check = check(footprint);
        let step = Step { task, has_picks, print, hash_before, check, class, touched, races };
        self.steps.push(step);
        self.order(number);
    }

    /// The hash of a task; 0 if it has taken no step.
    fn hash_of(&mut self, task: u32) -> u64 {
        if self.hashes.len() <= task as usize {
            self.hashes.resize(task as usize + 1, 0);
        }
        self.hashes[task as usize]
    }

    /// The last step ended the run before its time: it is dependent on every other.
    pub(super) fn stop(&mut self) {
        let Some(last) = self.steps.len().checked_sub(1) else { return };
        let number = last as u32;
        self.direct.clear();
        self.awaited.clear();
        self.direct.extend(0..number);
        self.races.truncate(self.steps[last].races as usize);
        self.before.truncate(last * self.width);
        self.order(number);
        let step = &mut self.steps[last];
        step.print = Print::ALL;
        step.class = mix64(step.class ^ GOLDEN);
    }

    /// Notes one object of a new step and what the step thereby depends on. `hash` is that of the
    /// task so far; gives what it is after that.
    #[inline]
    fn touch(
        &mut self,
        step: u32,
        object: u32,
        access: Access,
        hash: u64,
        print: &mut Print,
    ) -> u64 {
        let Some(touches) = self.touches.get_mut(object as usize) else {
            self.touches.resize_with(object as usize + 1, || Vec::with_capacity(16));
            return self.touch_again(step, object, access, hash, print);
        };
        let writer = match touches.last().copied() {
            None => 0,
            // Nearly always somebody else's write, on which this depends and nothing before it.
            Some(last) if last.write && last.step != step => {
                if self.direct.last() != Some(&last.step) {
                    self.direct.push(last.step);
                }
                last.hash
            }
            Some(_) => return self.touch_again(step, object, access, hash, print),
        };
        print.add(object, access.write);
        let hash = touch_hash(hash, access, writer, 0);
        touches.push(Touch::new(step, access, hash));
        self.touched.push(object);
        hash
    }

    /// The same, whoever touched it before.
    #[inline(never)]
    fn touch_again(
        &mut self,
        step: u32,
        object: u32,
        access: Access,
        hash: u64,
        print: &mut Print,
    ) -> u64 {
        let touches = &mut self.touches[object as usize];
        let mut known = false;
        let mut wrote = false;
        if let Some(last) = touches.last_mut().filter(|last| last.step == step) {
            (known, wrote) = (true, last.write);
            last.write |= access.write;
            last.read |= !access.write;
        }
        if known && (wrote || !access.write) {
            return hash;
        }
        print.add(object, access.write);
        let mut writer = 0;
        let mut readers = 0u64;
        for touch in touches.iter().rev().skip(usize::from(known)) {
            if touch.write {
                self.direct.push(touch.step);
                writer = touch.hash;
                break;
            }
            if access.write {
                let into = if access.completes { &mut self.awaited } else { &mut self.direct };
                into.push(touch.step);
                readers = readers.wrapping_add(touch.share());
            }
        }
        let hash = touch_hash(hash, access, writer, readers);
        match touches.last_mut().filter(|_| known) {
            Some(_) if access.is_neutral => {}
            Some(last) => last.hash = hash,
            None => {
                touches.push(Touch::new(step, access, hash));
                self.touched.push(object);
            }
        }
        hash
    }

    /// Computes the steps before a new one and the steps it races with, from its direct
    /// dependencies.
    ///
    /// A dependency that is only awaited hides no race: had the step come before the awaited ones,
    /// it would not have been the last, and would not depend on them.
    fn order(&mut self, number: u32) {
        if self.width == 1 {
            return self.order_few(number);
        }
        let start = number as usize * self.width;
        self.past.fill(0);
        for step in &self.direct {
            let before = &self.before[*step as usize * self.width..][..self.width];
            self.past.iter_mut().zip(before).for_each(|(past, before)| *past |= before);
        }
        self.before.extend_from_slice(&self.past);
        let task = self.steps[number as usize].task;
        for earlier in self.direct.iter().copied() {
            let word = earlier as usize / 64;
            let bit = 1 << (earlier % 64);
            let is_new = self.before[start + word] & bit == 0;
            self.before[start + word] |= bit;
            if is_new && self.steps[earlier as usize].task != task {
                self.races.push(Race { step: earlier, task, later: Some(number) });
            }
        }
        for earlier in self.awaited.iter().copied() {
            let (known, new) = self.before.split_at_mut(start);
            let before = &known[earlier as usize * self.width..][..self.width];
            new.iter_mut().zip(before).for_each(|(new, before)| *new |= before);
            new[earlier as usize / 64] |= 1 << (earlier % 64);
        }
    }

    /// The same while a set of steps is one word.
    fn order_few(&mut self, number: u32) {
        let task = self.steps[number as usize].task;
        let direct = self.direct.iter();
        let mut past = direct.fold(0, |past, step| past | self.before[*step as usize]);
        for earlier in self.direct.iter().copied() {
            let bit = 1 << (earlier % 64);
            if past & bit == 0 && self.steps[earlier as usize].task != task {
                self.races.push(Race { step: earlier, task, later: Some(number) });
            }
            past |= bit;
        }
        let awaited = self.awaited.iter();
        past = awaited.fold(past, |past, earlier| {
            past | self.before[*earlier as usize] | 1 << (earlier % 64)
        });
        self.before.push(past);
    }

    /// Doubles the room for steps in each set.
    fn widen(&mut self) {
        let old = self.width;
        let new = self.width * 2;
        let mut wide = vec![0; self.steps.len() * new];
        for (from, to) in self.before.chunks(old).zip(wide.chunks_mut(new)) {
            to[..old].copy_from_slice(from);
        }
        (self.before, self.width) = (wide, new);
        self.past = vec![0; new];
    }
}
