//! Notifications: one stored flag and a queue.

use asx_kernel::rng::DetRng;
use asx_task::{Cancelled, Cx};

use super::super::Probe;
use super::{Waiter, pick, runs};
use crate::sync::Notify;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Call {
    /// Made but never polled, and no call to all since.
    UninitTask,
    /// Never polled, but there was a call to all.
    Late,
    Waiting,
    One,
    All,
}

struct Run<'a> {
    notify: &'a Notify,
    stored: bool,
    /// Those that wait are in order of their first poll.
    waiters: Vec<Waiter<'a, Result<(), Cancelled>, Call>>,
}

impl<'a> Run<'a> {
    fn notify_one(&mut self) {
        self.notify.notify_one();
        self.pass_one();
    }

    /// The model: the first in line has it, or it is stored.
    fn pass_one(&mut self) {
        match self.waiters.iter_mut().find(|waiter| waiter.state == Call::Waiting) {
            Some(waiter) => waiter.state = Call::One,
            None => self.stored = true,
        }
    }

    fn notify_waiters(&mut self) {
        self.notify.notify_waiters();
        for waiter in &mut self.waiters {
            waiter.state = match waiter.state {
                Call::UninitTask => Call::Late,
                Call::Waiting => Call::All,
                other => other,
            };
        }
    }

    fn poll(&mut self, index: usize, moves: bool) {
        let mut waiter = self.waiters.remove(index);
        match waiter.state {
            Call::Late | Call::One | Call::All => waiter.probe.ready().unwrap(),
            Call::UninitTask if self.stored => {
                waiter.probe.ready().unwrap();
                self.stored = false;
            }
            Call::UninitTask => {
                waiter.probe.waits();
                waiter.state = Call::Waiting;
                self.waiters.push(waiter);
            }
            Call::Waiting => {
                if moves {
                    waiter.probe.moves();
                }
                waiter.probe.waits();
                self.waiters.insert(index, waiter);
            }
        }
    }

    fn leave(&mut self, index: usize, cancels: bool) {
        let Waiter { mut probe, cancel, state } = self.waiters.remove(index);
        if cancels {
            cancel();
            assert!(probe.ready().is_err());
        }
        drop(probe);
        if state == Call::One {
            self.pass_one();
        }
    }

    fn step(&mut self, rng: &mut DetRng, cx: &'a Cx, cancel: &'a dyn Fn()) {
        match (rng.below(20), pick(rng, self.waiters.len())) {
            (0..=5, _) => {
                let probe = Probe::new(self.notify.notified(cx));
                self.waiters.push(Waiter { probe, cancel, state: Call::UninitTask });
            }
            (6..=11, Some(index)) => self.poll(index, rng.below(2) == 0),
            (12..=14, Some(index)) => self.leave(index, rng.below(2) == 0),
            (15..=18, _) => self.notify_one(),
            (19, _) => self.notify_waiters(),
            _ => {}
        }
        for Waiter { probe, state, .. } in &self.waiters {
            let called = usize::from(matches!(state, Call::One | Call::All));
            assert_eq!(probe.wakes(), called, "{state:?}");
        }
    }
}

#[test]
fn notifications_go_where_the_model_says() {
    runs(|mut rng, contexts| {
        let notify = Notify::new();
        let mut run = Run { notify: &notify, stored: false, waiters: Vec::new() };
        for (cx, cancel) in contexts {
            run.step(&mut rng, cx, cancel);
        }
    });
}
