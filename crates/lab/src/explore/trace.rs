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
//! The *hash of a class* does not depend on the linear form: a step's hash covers its task, its
//! picks, and for each object the hashes of the steps it depends on there; the class is the sum.

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
    hash: u64,
    /// A hash of what it touched, in the order given.
    check: u64,
    /// The sum of the hashes up to this step.
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
}

#[derive(Clone, Copy, Debug)]
struct Touch {
    step: u32,
    write: bool,
}

/// The hash of a use, after the write and the reads that it depends on.
#[inline]
fn touch_hash(access: Access, writer: u64, readers: u64) -> u64 {
    let word = access.object.wrapping_add(u64::from(access.write).wrapping_mul(GOLDEN));
    mix64(mix64(word) ^ writer.rotate_left(7) ^ readers.rotate_left(31))
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
    /// For each step the set of those before it, `width` words each.
    before: Vec<u64>,
    width: usize,
    /// Scratch: what the new step directly depends on, and what is before those.
    direct: Vec<u32>,
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
            before: Vec::with_capacity(32),
            width: 1,
            direct: Vec::with_capacity(32),
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
        self.races.push(Race { step, task });
    }

    /// Whether a step wrote the object that is a task.
    pub(super) fn writes_task(&self, step: u32, task: u32) -> bool {
        let Some(touches) = self.touches.get(task as usize) else { return false };
        let found = touches.binary_search_by_key(&step, |touch| touch.step);
        found.is_ok_and(|at| touches[at].write)
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
        self.steps.truncate(len);
    }

    /// Adds a step; `picks` is a hash of the choices made in it, 0 if there were none, and `extra`
    /// an object that it touched besides.
    pub(super) fn push(
        &mut self,
        task: TaskPath,
        picks: u64,
        footprint: &[Access],
        extra: Option<Access>,
    ) {
        let number = self.steps.len() as u32;
        if number as usize >= self.width * 64 {
            self.widen();
        }
        let touched = self.touched.len() as u32;
        let races = self.races.len() as u32;
        let mut print = Print::default();
        let mut hash = mix64(task.0 ^ picks.rotate_left(17));
        self.direct.clear();
        if let Some(access) = extra {
            let object = self.names.index.of(access.object);
            self.touch(number, object, access, &mut print);
        }
        for access in footprint.iter().copied().filter(|it| it.object != task.0) {
            let object = self.names.index.of(access.object);
            hash = hash.wrapping_add(self.touch(number, object, access, &mut print));
        }
        let own = Access::write(task.0);
        let task = self.names.index.of(task.0);
        hash = hash.wrapping_add(self.touch(number, task, own, &mut print));
        let class = self.class().wrapping_add(mix64(hash));
        let has_picks = picks != 0;
        let check = check(footprint);
        self.steps.push(Step { task, has_picks, print, hash, check, class, touched, races });
        self.order(number);
    }

    /// The last step ended the run before its time: it is dependent on every other.
    pub(super) fn stop(&mut self) {
        let Some(last) = self.steps.len().checked_sub(1) else { return };
        let number = last as u32;
        self.direct.clear();
        self.direct.extend(0..number);
        self.races.truncate(self.steps[last].races as usize);
        self.before.truncate(last * self.width);
        self.order(number);
        let before = last.checked_sub(1).map_or(0, |last| self.steps[last].class);
        let step = &mut self.steps[last];
        step.print = Print::ALL;
        step.hash = mix64(step.hash ^ before.wrapping_add(GOLDEN));
        step.class = before.wrapping_add(mix64(step.hash));
    }

    /// Notes one object of a new step and what the step thereby depends on; gives its hash.
    #[inline]
    fn touch(&mut self, step: u32, object: u32, access: Access, print: &mut Print) -> u64 {
        let Some(touches) = self.touches.get_mut(object as usize) else {
            self.touches.resize_with(object as usize + 1, || Vec::with_capacity(16));
            return self.touch_again(step, object, access, print);
        };
        let writer = match touches.last().copied() {
            None => 0,
            // Nearly always somebody else's write, on which this depends and nothing before it.
            Some(last) if last.write && last.step != step => {
                if self.direct.last() != Some(&last.step) {
                    self.direct.push(last.step);
                }
                self.steps[last.step as usize].hash
            }
            Some(_) => return self.touch_again(step, object, access, print),
        };
        print.add(object, access.write);
        touches.push(Touch { step, write: access.write });
        self.touched.push(object);
        touch_hash(access, writer, 0)
    }

    /// The same, whoever touched it before.
    #[inline(never)]
    fn touch_again(&mut self, step: u32, object: u32, access: Access, print: &mut Print) -> u64 {
        let touches = &mut self.touches[object as usize];
        let mut known = false;
        let mut wrote = false;
        if let Some(last) = touches.last_mut().filter(|last| last.step == step) {
            (known, wrote) = (true, last.write);
            last.write |= access.write;
        }
        if known && (wrote || !access.write) {
            return 0;
        }
        print.add(object, access.write);
        let mut writer = 0;
        let mut readers = 0u64;
        for touch in touches.iter().rev().skip(usize::from(known)) {
            let hash = self.steps[touch.step as usize].hash;
            if touch.write {
                self.direct.push(touch.step);
                writer = hash;
                break;
            }
            if access.write {
                self.direct.push(touch.step);
                readers = readers.wrapping_add(mix64(hash));
            }
        }
        if !known {
            touches.push(Touch { step, write: access.write });
            self.touched.push(object);
        }
        touch_hash(access, writer, readers)
    }

    /// Works out what is before a new step and which steps it races with, from what it directly
    /// depends on.
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
                self.races.push(Race { step: earlier, task });
            }
        }
    }

    /// The same while a set of steps is one word.
    fn order_few(&mut self, number: u32) {
        let task = self.steps[number as usize].task;
        let mut past = self.direct.iter().fold(0, |past, step| past | self.before[*step as usize]);
        for earlier in self.direct.iter().copied() {
            let bit = 1 << (earlier % 64);
            if past & bit == 0 && self.steps[earlier as usize].task != task {
                self.races.push(Race { step: earlier, task });
            }
            past |= bit;
        }
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
