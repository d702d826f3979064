//! Semaphores and locks: a number of permits and a queue.

use std::task::Poll;

use asx_kernel::rng::DetRng;
use asx_task::Cx;

use super::super::Probe;
use super::{Waiter, pick, runs};
use crate::sync::slot::FULL;
use crate::sync::{AcquireError, Mutex, RwLock, Semaphore, SemaphorePermit};

/// What is tested, seen as permits.
trait Subject {
    type Guard<'a>
    where
        Self: 'a;
    /// What claims may want.
    const WANTS: &'static [usize];
    fn claim<'a>(&'a self, cx: &'a Cx, wants: usize) -> Claimed<'a, Self::Guard<'a>>;
    fn try_claim(&self, wants: usize) -> Option<Self::Guard<'_>>;
    /// Free permits, where they can be seen.
    fn free(&self) -> Option<usize> {
        None
    }
    /// Whether the subject can do it at all.
    fn add(&self, _count: usize) -> bool {
        false
    }
    fn close(&self) -> bool {
        false
    }
}

type Claimed<'a, G> = Probe<'a, Result<G, AcquireError>>;

impl Subject for Semaphore {
    type Guard<'a> = SemaphorePermit<'a>;
    const WANTS: &'static [usize] = &[0, 1, 1, 1, 2, 3];

    fn claim<'a>(&'a self, cx: &'a Cx, wants: usize) -> Claimed<'a, Self::Guard<'a>> {
        Probe::new(self.acquire_many(cx, wants))
    }

    fn try_claim(&self, wants: usize) -> Option<Self::Guard<'_>> {
        self.try_acquire_many(wants).ok()
    }

    fn free(&self) -> Option<usize> {
        Some(self.available_permits())
    }

    fn add(&self, count: usize) -> bool {
        self.add_permits(count);
        true
    }

    fn close(&self) -> bool {
        Semaphore::close(self);
        true
    }
}

/// A guard of any lock; holding it is all that counts.
type Any<'a> = Box<dyn Guard + 'a>;
trait Guard {}
impl<G> Guard for G {}

impl Subject for Mutex<()> {
    type Guard<'a> = Any<'a>;
    const WANTS: &'static [usize] = &[FULL];

    fn claim<'a>(&'a self, cx: &'a Cx, _: usize) -> Claimed<'a, Any<'a>> {
        Probe::new(async { Ok(Box::new(self.lock(cx).await?) as Any<'a>) })
    }

    fn try_claim(&self, _: usize) -> Option<Any<'_>> {
        self.try_lock().ok().map(|guard| Box::new(guard) as Any<'_>)
    }
}

impl Subject for RwLock<()> {
    type Guard<'a> = Any<'a>;
    const WANTS: &'static [usize] = &[1, 1, FULL];

    fn claim<'a>(&'a self, cx: &'a Cx, wants: usize) -> Claimed<'a, Any<'a>> {
        match wants {
            1 => Probe::new(async { Ok(Box::new(self.read(cx).await?) as Any<'a>) }),
            _ => Probe::new(async { Ok(Box::new(self.write(cx).await?) as Any<'a>) }),
        }
    }

    fn try_claim(&self, wants: usize) -> Option<Any<'_>> {
        match wants {
            1 => self.try_read().ok().map(|guard| Box::new(guard) as Any<'_>),
            _ => self.try_write().ok().map(|guard| Box::new(guard) as Any<'_>),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Call {
    None,
    Granted,
    Closed,
}

/// A waiter, what it wants and what it was called with.
type Claimant<'a, S> = Waiter<'a, Result<<S as Subject>::Guard<'a>, AcquireError>, (usize, Call)>;

struct Run<'a, S: Subject> {
    subject: &'a S,
    free: usize,
    closed: bool,
    /// In order of arrival; the called ones among them are no longer in the line.
    waiters: Vec<Claimant<'a, S>>,
    held: Vec<(S::Guard<'a>, usize)>,
}

impl<'a, S: Subject> Run<'a, S> {
    fn is_idle(&self) -> bool {
        self.waiters.iter().all(|waiter| waiter.state.1 != Call::None)
    }

    /// The model: what is free goes to the first in line until one wants more.
    fn settle(&mut self) {
        for Waiter { state: (wants, call), .. } in &mut self.waiters {
            if *call == Call::None {
                if *wants > self.free {
                    return;
                }
                self.free -= *wants;
                *call = Call::Granted;
            }
        }
    }

    fn arrive(&mut self, cx: &'a Cx, cancel: &'a dyn Fn(), wants: usize) {
        let mut probe = self.subject.claim(cx, wants);
        let has_room = self.is_idle() && wants <= self.free;
        match probe.poll() {
            _ if self.closed => {}
            Poll::Ready(guard) => {
                assert!(has_room, "it overtook");
                self.free -= wants;
                self.held.push((guard.unwrap(), wants));
            }
            Poll::Pending => {
                assert!(!has_room, "it waits without need");
                self.waiters.push(Waiter { probe, cancel, state: (wants, Call::None) });
            }
        }
    }

    fn poll(&mut self, index: usize, moves: bool) {
        let Waiter { probe, state: (wants, call), .. } = &mut self.waiters[index];
        match call {
            Call::None => {
                if moves {
                    probe.moves();
                }
                probe.waits();
            }
            Call::Granted => {
                self.held.push((probe.ready().unwrap(), *wants));
                self.waiters.remove(index);
            }
            Call::Closed => {
                assert_eq!(probe.ready().err(), Some(AcquireError::Closed));
                self.waiters.remove(index);
            }
        }
    }

    fn leave(&mut self, index: usize, cancels: bool) {
        let Waiter { mut probe, cancel, state: (wants, call) } = self.waiters.remove(index);
        if cancels {
            cancel();
            assert!(matches!(probe.ready(), Err(AcquireError::Cancelled(_))));
        }
        drop(probe);
        if call == Call::Granted {
            self.free += wants;
        }
        self.settle();
    }

    fn release(&mut self, index: usize) {
        let (guard, wants) = self.held.swap_remove(index);
        drop(guard);
        self.free += wants;
        self.settle();
    }

    fn try_claim(&mut self, wants: usize) {
        let has_room = !self.closed && self.is_idle() && wants <= self.free;
        let guard = self.subject.try_claim(wants);
        assert_eq!(guard.is_some(), has_room);
        if let Some(guard) = guard {
            self.free -= wants;
            self.held.push((guard, wants));
        }
    }

    fn step(&mut self, rng: &mut DetRng, cx: &'a Cx, cancel: &'a dyn Fn()) {
        let wants = S::WANTS[rng.below(S::WANTS.len())];
        let waiter = pick(rng, self.waiters.len());
        match (rng.below(24), waiter) {
            (0..=7, _) => self.arrive(cx, cancel, wants),
            (8..=12, Some(index)) => self.poll(index, rng.below(2) == 0),
            (13..=15, Some(index)) => self.leave(index, rng.below(2) == 0),
            (16..=20, _) => {
                if let Some(index) = pick(rng, self.held.len()) {
                    self.release(index);
                }
            }
            (21, _) => self.try_claim(wants),
            (22, _) if self.free < 3 && self.subject.add(1) => {
                self.free += 1;
                self.settle();
            }
            (23, _) if rng.below(8) == 0 && self.subject.close() => {
                self.closed = true;
                for Waiter { state: (_, call), .. } in &mut self.waiters {
                    if *call == Call::None {
                        *call = Call::Closed;
                    }
                }
            }
            _ => {}
        }
        self.check();
    }

    fn check(&self) {
        for Waiter { probe, state: (wants, call), .. } in &self.waiters {
            let called = usize::from(*call != Call::None);
            assert_eq!(probe.wakes(), called, "{call:?} {wants}");
        }
        if let Some(free) = self.subject.free() {
            assert_eq!(free, self.free);
        }
    }

    /// Releases all there is, and polls only who was woken.
    fn drain(&mut self) {
        self.subject.add(3);
        self.held.clear();
        while !self.waiters.is_empty() {
            let woken = self.waiters.iter().position(|waiter| waiter.probe.wakes() > 0);
            let mut waiter = self.waiters.remove(woken.expect("a wakeup was lost"));
            drop(waiter.probe.ready());
        }
    }
}

fn run<S: Subject>(make: impl Fn() -> (S, usize)) {
    runs(|mut rng, contexts| {
        let (subject, free) = make();
        let waiters = Vec::new();
        let held = Vec::new();
        let mut run = Run { subject: &subject, free, closed: false, waiters, held };
        for (cx, cancel) in contexts {
            run.step(&mut rng, cx, cancel);
        }
        run.drain();
    });
}

#[test]
fn semaphores_serve_like_the_model() {
    run(|| (Semaphore::new(2), 2));
}

#[test]
fn mutexes_serve_like_the_model() {
    run(|| (Mutex::new(()), FULL));
}

#[test]
fn rwlocks_serve_like_the_model() {
    run(|| (RwLock::new(()), FULL));
}
