//! Small abstract programs: tasks that are lists of operations, run one step at a time under a
//! strategy.
#![allow(dead_code, unused_imports, reason = "each test uses its part")]

mod generate;
pub(crate) mod known;

pub(crate) use generate::generate;

use asx_kernel::rng::mix64;
use asx_lab::explore::{Access, Point, Strategy, TaskPath, Verdict};

/// The failure of a run in which a task waits for ever.
pub(crate) const DEADLOCK: u64 = 9999;

/// What a task does. A step goes on until `Yield`, until the task must wait, or until its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Yield,
    /// As `Yield`, and lets others go first.
    Pass,
    /// Loads a variable into the task's register.
    Read(usize),
    /// Stores a constant.
    Write(usize, i64),
    /// Stores the register plus a constant.
    Store(usize, i64),
    /// Adds the register to a variable.
    AddTo(usize),
    /// Reads one variable and, if it has the value, writes another.
    Branch {
        test: usize,
        value: i64,
        then: usize,
    },
    /// Touches the variable whose number is the register's value.
    Indirect,
    Lock(usize),
    Unlock(usize),
    /// Waits for a notification that comes later.
    Wait(usize),
    /// Wakes all who wait.
    Notify(usize),
    /// As `Wait`, unless the variable has the value; looking and waiting are one step.
    WaitUnless(usize, usize, i64),
    Spawn(usize),
    /// Ends another task, whatever it is doing.
    Kill(usize),
    /// Puts a choice into the register.
    Choose(Point, usize),
    /// Ends this task if the register has the value.
    ExitIf(i64),
    /// Fails if the variable has the value.
    FailIf(usize, i64, u64),
    /// Moves the variable from one value to the next, or spoils it for good.
    Advance(usize, i64),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub(crate) tasks: Vec<Vec<Op>>,
    /// How many of the tasks run from the start; the others are spawned.
    pub(crate) first: usize,
    /// Whether a choice that is added to variable 0 is made before each step.
    pub(crate) is_stirred: bool,
    /// How many objects of its own each step touches besides.
    pub(crate) own_objects: u64,
    /// Whether a failure stops the run at once.
    pub(crate) stops: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Unborn,
    Ready,
    Waiting,
    Ended,
}

const OBJECTS: usize = 16;

/// A program in the middle of a run.
pub(crate) struct Machine<'p> {
    program: &'p Program,
    at: Vec<usize>,
    status: Vec<Status>,
    woken: Vec<bool>,
    register: Vec<i64>,
    values: [i64; OBJECTS],
    owner: [Option<usize>; OBJECTS],
    waiters: [Vec<usize>; OBJECTS],
    footprint: Vec<Access>,
    enabled: Vec<TaskPath>,
    /// The same tasks by number, and the paths of all tasks.
    ready: Vec<usize>,
    paths: Vec<TaskPath>,
    failure: Option<u64>,
    /// The tasks of the steps taken.
    pub(crate) order: Vec<usize>,
    pub(crate) max_steps: usize,
}

pub(crate) fn path(task: usize) -> TaskPath {
    TaskPath(mix64(task as u64 + 1))
}

pub(crate) fn task_of(path: TaskPath) -> usize {
    (0..64).find(|task| self::path(*task) == path).expect("a task of the program")
}

fn object(number: usize) -> u64 {
    mix64(number as u64 + 1000)
}

impl<'p> Machine<'p> {
    pub(crate) fn new(program: &'p Program) -> Machine<'p> {
        let count = program.tasks.len();
        Machine {
            program,
            at: vec![0; count],
            status: vec![Status::Unborn; count],
            woken: vec![false; count],
            register: vec![0; count],
            values: [0; OBJECTS],
            owner: [None; OBJECTS],
            waiters: Default::default(),
            footprint: Vec::new(),
            enabled: Vec::new(),
            ready: Vec::new(),
            paths: (0..count).map(path).collect(),
            failure: None,
            order: Vec::new(),
            max_steps: usize::MAX,
        }
    }

    /// One whole run. The strategy's `begin` was called.
    pub(crate) fn run<S: Strategy + ?Sized>(&mut self, strategy: &mut S) -> Verdict {
        self.reset();
        self.find_enabled();
        let mut verdict = Verdict::Passed;
        while !self.enabled.is_empty() {
            if self.order.len() == self.max_steps {
                verdict = Verdict::Cut;
                break;
            }
            if self.program.is_stirred {
                self.values[0] += strategy.pick(Point::Tie, 2) as i64;
            }
            let picked = strategy.pick_task(&self.enabled);
            let task = self.ready[picked];
            self.step(task, strategy);
            strategy.stepped(self.paths[task], &self.footprint);
            self.order.push(task);
            self.find_enabled();
            if self.failure.is_some() && self.program.stops {
                break;
            }
        }
        match self.failure {
            Some(failure) if self.program.stops => verdict = Verdict::Stopped(failure),
            Some(failure) => verdict = Verdict::Failed(failure),
            None if self.enabled.is_empty() && self.status.contains(&Status::Waiting) => {
                verdict = Verdict::Failed(DEADLOCK);
            }
            None => {}
        }
        strategy.end(verdict);
        verdict
    }

    fn reset(&mut self) {
        self.at.fill(0);
        self.status.fill(Status::Unborn);
        self.status[..self.program.first].fill(Status::Ready);
        self.woken.fill(false);
        self.register.fill(0);
        self.values.fill(0);
        self.owner.fill(None);
        self.waiters.iter_mut().for_each(Vec::clear);
        self.failure = None;
        self.order.clear();
    }

    fn find_enabled(&mut self) {
        self.ready.clear();
        let ready = |task: &usize| self.status[*task] == Status::Ready;
        self.ready.extend((0..self.status.len()).filter(ready));
        self.enabled.clear();
        self.enabled.extend(self.ready.iter().map(|task| self.paths[*task]));
    }

    fn step<S: Strategy + ?Sized>(&mut self, task: usize, strategy: &mut S) {
        self.footprint.clear();
        self.footprint.push(Access::write(self.paths[task].0));
        let own = (task * 1_000 + self.at[task]) as u64 * 1_000;
        let objects = 0..self.program.own_objects;
        self.footprint.extend(objects.map(|object| Access::write(mix64(own + object + 5_000))));
        while let Some(op) = self.program.tasks[task].get(self.at[task]).copied() {
            if !self.act(task, op, strategy) {
                return;
            }
            self.at[task] += 1;
            if matches!(op, Op::Pass) {
                strategy.yielded();
            }
            if matches!(op, Op::Yield | Op::Pass) || self.status[task] == Status::Ended {
                break;
            }
        }
        if self.at[task] >= self.program.tasks[task].len() {
            self.status[task] = Status::Ended;
        }
    }

    /// Does one operation; `false` if the task must wait.
    fn act<S: Strategy + ?Sized>(&mut self, task: usize, op: Op, strategy: &mut S) -> bool {
        match op {
            Op::Yield | Op::Pass => {}
            Op::Read(from) => self.register[task] = self.read(from),
            Op::Write(to, value) => self.write(to, value),
            Op::Store(to, plus) => self.write(to, self.register[task] + plus),
            Op::AddTo(to) => {
                if self.register[task] != 0 {
                    self.write(to, self.values[to] + self.register[task]);
                }
            }
            Op::Branch { test, value, then } => {
                if self.read(test) == value {
                    self.write(then, value + 1);
                }
            }
            Op::Indirect => {
                let to = self.register[task].unsigned_abs() as usize % 4;
                self.write(to, 1);
            }
            Op::Lock(lock) => {
                self.touch(lock);
                if self.owner[lock].is_some() {
                    return self.wait(task, lock);
                }
                self.owner[lock] = Some(task);
            }
            Op::Unlock(lock) => {
                self.touch(lock);
                if self.owner[lock] == Some(task) {
                    self.owner[lock] = None;
                    self.wake(lock, 1);
                }
            }
            Op::Wait(event) => {
                self.touch(event);
                if !std::mem::take(&mut self.woken[task]) {
                    return self.wait(task, event);
                }
            }
            Op::WaitUnless(event, variable, value) => {
                self.touch(event);
                if self.read(variable) != value {
                    return self.wait(task, event);
                }
            }
            Op::Notify(event) => {
                self.touch(event);
                self.wake(event, usize::MAX);
            }
            Op::Spawn(other) => self.set_status(other, Status::Unborn, Status::Ready),
            Op::Kill(other) => {
                for on in 0..OBJECTS {
                    if self.waiters[on].contains(&other) {
                        self.touch(on);
                        self.waiters[on].retain(|task| *task != other);
                    }
                }
                self.set_status(other, self.status[other], Status::Ended);
            }
            Op::Choose(point, count) => {
                self.register[task] = strategy.pick(point, count) as i64;
            }
            Op::ExitIf(value) => {
                if self.register[task] == value {
                    self.status[task] = Status::Ended;
                }
            }
            Op::FailIf(variable, value, failure) => {
                if self.read(variable) == value {
                    self.failure = self.failure.max(Some(failure));
                }
            }
            Op::Advance(variable, from) => {
                let is_right = self.read(variable) == from;
                self.write(variable, if is_right { from + 1 } else { -1 });
            }
        }
        true
    }

    fn read(&mut self, from: usize) -> i64 {
        self.footprint.push(Access::read(object(from)));
        self.values[from]
    }

    fn write(&mut self, to: usize, value: i64) {
        self.touch(to);
        self.values[to] = value;
    }

    fn touch(&mut self, what: usize) {
        self.footprint.push(Access::write(object(what)));
    }

    fn wait(&mut self, task: usize, on: usize) -> bool {
        self.status[task] = Status::Waiting;
        self.waiters[on].push(task);
        false
    }

    fn wake(&mut self, on: usize, count: usize) {
        let count = count.min(self.waiters[on].len());
        for index in 0..count {
            let task = self.waiters[on][index];
            self.woken[task] = true;
            self.set_status(task, Status::Waiting, Status::Ready);
        }
        self.waiters[on].drain(..count);
    }

    fn set_status(&mut self, task: usize, from: Status, to: Status) {
        self.footprint.push(Access::write(self.paths[task].0));
        if self.status[task] == from {
            self.status[task] = to;
        }
    }
}
