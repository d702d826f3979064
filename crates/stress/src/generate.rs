//! Generation of programs from seeds: the same seed gives the same program.

mod composed;

use asx_kernel::rng::DetRng;

use crate::program::{
    AcquireHow, Child, ChildKind, End, Family, Fate, Half, Handle, Journal, ListenHow, LockHow,
    Many, OnceHow, Op, Program, RecvHow, ReplyBy, Resolve, Root, RwHow, ScopeHow, ScopeOp, SendHow,
    SetHow, Shutdown, ThreadDoes, TrackedHow, Use, WatchHow, Where,
};
use crate::settings::RuntimeSettings;

/// The number of objects of each kind in a program.
pub(crate) const EACH: usize = 2;
/// The maximal nesting depth of operations.
const DEPTH: usize = 5;

/// Generates the program of a seed. Without `callback_panics` no callback panics.
pub(crate) fn program(seed: u64, callback_panics: bool) -> Program {
    let mut all = Generator {
        rng: DetRng::new(seed, 0),
        net: DetRng::new(seed, 2),
        sockets: 0,
        mix: DetRng::new(seed, 3),
        composed: 0,
        stops: false,
        left: 0,
        forgets: false,
    };
    all.sockets = all.pick_net(&[0, 0, 20, 60]);
    all.composed = [0, 15, 35, 60][all.mix.below(4)];
    all.stops = all.mix.below(12) == 0;
    let workers = all.pick(&[1, 1, 2, 2, 2, 3, 4, 8]);
    all.forgets = all.chance(40);
    let callback_panics = all.chance(30) && callback_panics;
    let roots = all.pick(&[1, 1, 1, 2, 3]);
    let mut root = || {
        all.left = all.pick(&[6, 20, 60, 150]);
        let mut body: Vec<_> = (0..all.below(6)).map(|_| all.crowd()).collect();
        body.extend(all.body(0, 12));
        Root { collect: all.chance(50), reaped: all.pick(&[300, 1_000, 3_000, 10_000]), body }
    };
    let roots = (0..roots).map(|_| root()).collect();
    let shutdown = all.chance(25).then(|| Shutdown {
        after: all.micros(5_000),
        soft: all.pick(&[0, 100, 2_000]),
        hard: all.pick(&[0, 100, 2_000, 20_000]),
        waits: all.chance(70),
    });
    Program {
        seed,
        workers,
        journal: all.pick(&[
            Journal::Off,
            Journal::Off,
            Journal::Off,
            Journal::Ring,
            Journal::Whole,
        ]),
        operations: all.pick(&[None, Some(1), Some(3), Some(128), Some(128)]),
        cleanup_polls: all.pick(&[None, None, None, Some(1), Some(1000)]),
        cancel_streak: all.pick(&[1, 16, 16]),
        settings: RuntimeSettings::of(seed, callback_panics),
        capacity: all.pick(&[1, 1, 2, 4]),
        forgets: all.forgets,
        callback_panics,
        roots,
        shutdown,
        threads_first: all.chance(50),
        bag_first: all.chance(50),
    }
}

struct Generator {
    rng: DetRng,
    /// A separate stream for sockets, so that a program without sockets does not depend on it.
    net: DetRng,
    /// The percentage of operations on sockets.
    sockets: usize,
    /// A separate stream for composed operations.
    mix: DetRng,
    /// The percentage of composed operations.
    composed: usize,
    /// Whether tasks may stop the runtime.
    stops: bool,
    /// The number of operations that may still be added.
    left: usize,
    forgets: bool,
}

impl Generator {
    fn below(&mut self, count: usize) -> usize {
        self.rng.below(count)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    fn micros(&mut self, most: usize) -> u64 {
        match self.below(4) {
            0 => 0,
            _ => self.below(most) as u64,
        }
    }

    /// Returns an optional time.
    fn time(&mut self) -> Option<u64> {
        self.chance(30).then(|| self.micros(1_000))
    }

    fn nth(&mut self) -> usize {
        self.below(EACH)
    }

    fn place(&mut self) -> Where {
        self.pick(&[Where::Here, Where::Here, Where::Thread])
    }

    /// Returns up to `most` operations.
    fn body(&mut self, depth: usize, most: usize) -> Vec<Op> {
        let count = self.below(most) + 1;
        let mut body = Vec::new();
        for _ in 0..count {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            body.push(self.op(depth));
        }
        body
    }

    fn inner(&mut self, depth: usize) -> Vec<Op> {
        if depth >= DEPTH { vec![self.short()] } else { self.body(depth + 1, 4) }
    }

    fn bodies(&mut self, depth: usize) -> Vec<Vec<Op>> {
        (0..self.below(4) + 1).map(|_| self.inner(depth)).collect()
    }

    fn many(&mut self) -> Many {
        self.pick(&[Many::Few, Many::All])
    }

    /// Returns operations that end by themselves, for code that no cancel reaches.
    fn shorts(&mut self) -> Vec<Op> {
        (0..self.below(4)).map(|_| self.short()).collect()
    }

    /// Returns an operation that ends by itself.
    fn short(&mut self) -> Op {
        match self.below(10) {
            0 => Op::Sleep(self.micros(500)),
            1 => Op::Checkpoint,
            2 => Op::Send(self.nth(), SendHow::Try),
            3 => Op::Recv(self.nth(), RecvHow::Try),
            4 => Op::Notify(self.chance(50)),
            5 => Op::Set(SetHow::Replace),
            6 => Op::Publish,
            7 => Op::SendUnbounded,
            8 => Op::Look,
            _ => Op::Yield,
        }
    }

    /// Returns a task that is started early, so that many tasks run.
    fn crowd(&mut self) -> Op {
        let child = self.child(1);
        let handle = match child.handle {
            Handle::Await | Handle::CancelThenAwait => Handle::Bag,
            other => other,
        };
        Op::Spawn(Box::new(Child { handle, ..child }))
    }

    /// Returns an operation. Most of those that wait for another task get a time limit.
    fn op(&mut self, depth: usize) -> Op {
        match self.any(depth) {
            op @ (Op::Send(..)
            | Op::Recv(..)
            | Op::RecvUnbounded(_)
            | Op::Tracked(_)
            | Op::RecvTracked
            | Op::Listen(_)
            | Op::Watch(_)
            | Op::Set(SetHow::Closed)
            | Op::Lock(..)
            | Op::Read(..)
            | Op::Write(..)
            | Op::Acquire(..)
            | Op::Notified
            | Op::Barrier
            | Op::Post(..)
            | Op::Fetch(..)
            | Op::Stream(..)
            | Op::Closed(_)
            | Op::Abandon(..)
            | Op::Parted(..)
            | Op::Permits(..)
            | Op::Enabled(_))
                if self.chance(65) =>
            {
                Op::Timeout(self.micros(500), vec![op])
            }
            op => op,
        }
    }

    fn any(&mut self, depth: usize) -> Op {
        if self.sockets > 0 && self.net.below(100) < self.sockets {
            return self.socket();
        }
        if self.composed > 0 && self.mix.below(100) < self.composed {
            return self.compose(depth);
        }
        match self.below(100) {
            0..4 => Op::Yield,
            4..7 => Op::Sleep(self.micros(2_000)),
            7..12 => self.short(),
            12..36 => self.structure(depth),
            36..58 => self.channel(depth),
            58..72 => self.lock(depth),
            72..82 => self.half(),
            82..86 => Op::FromBag,
            86..90 => Op::SeparateWaker(self.chance(50), self.inner(depth)),
            90..94 => Op::Thread(self.place(), self.thread()),
            94..97 => self.request(),
            97 => match self.below(5) {
                0 => match self.chance(50) {
                    true => Op::SleepUntilPast,
                    false => Op::TrySleep(self.micros(300)),
                },
                1 => Op::Look,
                2 => Op::Consume,
                3 => Op::Dump,
                _ => Op::Ticks(self.micros(300) + 1, self.below(3) + 1),
            },
            98 => match self.below(3) {
                0 => Op::Fail,
                _ => Op::NestedBlockOn,
            },
            _ => Op::Panic,
        }
    }

    /// Returns an operation on scopes, tasks or combinators.
    fn structure(&mut self, depth: usize) -> Op {
        match self.below(24) {
            0..5 => Op::Scope(Box::new(ScopeOp {
                how: match self.below(6) {
                    0 => ScopeHow::Plain,
                    1 | 2 => ScopeHow::Try,
                    3 => ScopeHow::Collect,
                    4 => ScopeHow::CleanupPolls(self.pick(&[1, 5, 1000])),
                    _ => ScopeHow::Within(self.micros(3_000)),
                },
                finalizers: self.below(3),
                body: self.inner(depth),
            })),
            5..14 => Op::Spawn(Box::new(self.child(depth))),
            14 => match self.chance(70) {
                true => Op::Timeout(self.micros(2_000), self.inner(depth)),
                false => Op::Deadline(self.micros(2_000), self.inner(depth)),
            },
            15 => Op::Race(self.many(), self.bodies(depth)),
            16 => Op::Join(self.many(), self.bodies(depth)),
            17 => Op::TryJoin(self.many(), self.bodies(depth)),
            18 => Op::Group(self.bodies(depth)),
            19 => Op::Shield(self.time(), self.shorts()),
            20 => Op::WithLocal(self.nth(), self.inner(depth)),
            21 => Op::Supervise(self.below(3) as u32, self.inner(depth)),
            22 => Op::Start(self.chance(70), self.inner(depth)),
            _ => match self.below(3) {
                0 => Op::CxJob(self.micros(300)),
                1 => Op::Defer(self.shorts()),
                _ => Op::Select(self.micros(500), self.nth()),
            },
        }
    }

    fn child(&mut self, depth: usize) -> Child {
        let kind = match self.below(16) {
            0..4 => ChildKind::Plain,
            4 | 5 => ChildKind::NoCx,
            6 => ChildKind::Local,
            7 => ChildKind::Pinned(self.below(8)),
            8 => match self.chance(50) {
                true => ChildKind::Blocking(self.micros(300)),
                false => ChildKind::Waiting,
            },
            9 => ChildKind::Priority(self.below(256) as u8),
            10 => ChildKind::Within(self.micros(3_000)),
            11 => ChildKind::Polls(self.below(20) as u64),
            12 => ChildKind::Cost(self.below(3) as u64),
            13 => ChildKind::By(self.micros(20_000)),
            14 => ChildKind::Try,
            _ => ChildKind::TryBlocking,
        };
        let handles = [
            Handle::Drop,
            Handle::Drop,
            Handle::Await,
            Handle::Await,
            Handle::Cancel,
            Handle::CancelThenAwait,
            Handle::Outcome,
            Handle::Bag,
            Handle::ToThread,
            Handle::Forget,
        ];
        let handle = match self.pick(&handles) {
            Handle::Forget if !self.forgets => Handle::Drop,
            handle => handle,
        };
        let end = match self.below(20) {
            0 => End::Panic,
            1 => End::Error,
            _ => End::Value,
        };
        Child { kind, body: self.inner(depth), end, handle }
    }

    fn channel(&mut self, depth: usize) -> Op {
        let sends = [
            SendHow::Send,
            SendHow::Send,
            SendHow::ReserveSend,
            SendHow::ReserveAbort,
            SendHow::ReserveDrop,
            SendHow::Owned(self.place()),
            SendHow::Try,
            SendHow::TryReserve,
            SendHow::Evict,
            SendHow::Sink,
            SendHow::Several,
            SendHow::Closed,
        ];
        let recvs = [
            RecvHow::Recv,
            RecvHow::Recv,
            RecvHow::Recv,
            RecvHow::Next,
            RecvHow::Try,
            RecvHow::Many,
            RecvHow::Many,
            RecvHow::Stream,
        ];
        match self.below(24) {
            0..5 => Op::Send(self.nth(), self.pick(&sends)),
            5..10 => match self.below(12) {
                0 => Op::Recv(self.nth(), RecvHow::Close),
                1 => Op::Recv(self.nth(), RecvHow::DropIt),
                2 => Op::Recv(self.nth(), RecvHow::Refuse),
                _ => Op::Recv(self.nth(), self.pick(&recvs)),
            },
            10 => Op::SendUnbounded,
            11 => Op::RecvUnbounded(self.chance(10)),
            12 => match self.below(8) {
                // Leaves a permit unresolved, which panics.
                0 => Op::Tracked(TrackedHow::Leak),
                1 => Op::Tracked(TrackedHow::Abort),
                2 => Op::Tracked(TrackedHow::Try),
                _ => Op::Tracked(TrackedHow::Send),
            },
            13 => Op::RecvTracked,
            14..18 => {
                let by = [ReplyBy::Task, ReplyBy::Thread, ReplyBy::Thread, ReplyBy::Bag];
                match self.below(8) {
                    0 => Op::Ask(ReplyBy::Nobody, self.micros(300)),
                    _ => Op::Ask(self.pick(&by), self.micros(1_000)),
                }
            }
            18 => Op::Publish,
            19 => Op::Listen(self.pick(&[ListenHow::Recv, ListenHow::Try, ListenHow::Subscribe])),
            20 => {
                let how = [SetHow::Send, SetHow::Replace, SetHow::Modify, SetHow::Closed];
                Op::Set(self.pick(&how))
            }
            21 => {
                let waits = [WatchHow::Changed, WatchHow::WaitFor];
                let looks = [WatchHow::Borrow, WatchHow::Subscribe];
                Op::Watch(if self.chance(50) { self.pick(&waits) } else { self.pick(&looks) })
            }
            22 => Op::RegionChannel(self.below(3) + 1),
            _ => Op::Timeout(self.micros(1_000), self.inner(depth)),
        }
    }

    fn lock(&mut self, depth: usize) -> Op {
        match self.below(12) {
            0..3 => {
                let how = self.pick(&[
                    LockHow::Lock,
                    LockHow::Lock,
                    LockHow::Owned,
                    LockHow::Try,
                    LockHow::TryOwned,
                ]);
                Op::Lock(self.place(), how, self.inner(depth))
            }
            3 => Op::Read(self.rw(), self.inner(depth)),
            4 => Op::Write(self.rw(), self.chance(50), self.inner(depth)),
            5..7 => {
                let how = [
                    AcquireHow::Plain,
                    AcquireHow::Owned,
                    AcquireHow::One,
                    AcquireHow::Try,
                    AcquireHow::TryOwned,
                    AcquireHow::Replace,
                ];
                Op::Acquire(self.below(3) + 1, self.pick(&how), self.inner(depth))
            }
            7 | 8 => Op::Notify(self.chance(50)),
            9 => Op::Notified,
            10 => Op::Barrier,
            _ => match self.chance(50) {
                true => {
                    let fails = self.chance(50);
                    Op::Once(self.pick(&[OnceHow::Set, OnceHow::Init, OnceHow::TryInit(fails)]))
                }
                false => {
                    Op::Obligation(self.pick(&[Resolve::Commit, Resolve::Abort, Resolve::Leave]))
                }
            },
        }
    }

    fn rw(&mut self) -> RwHow {
        self.pick(&[RwHow::Wait, RwHow::Wait, RwHow::Owned, RwHow::Try, RwHow::TryOwned])
    }

    fn half(&mut self) -> Op {
        let half = match self.below(12) {
            0 => Half::Sleep,
            1 | 2 => Half::Send(self.nth()),
            3 | 4 => Half::Recv(self.nth()),
            5 => Half::Lock,
            6 => Half::Acquire,
            7 => Half::Notified,
            8 => Half::Barrier,
            9 => self.pick(&[Half::Listen, Half::Changed]),
            10 => Half::Join,
            _ => Half::Cancelled,
        };
        let fates = [Fate::Drop, Fate::Bag, Fate::Bag, Fate::ToThread, Fate::Finish, Fate::Forget];
        let fate = match self.pick(&fates) {
            Fate::Forget if !self.forgets => Fate::Drop,
            fate => fate,
        };
        Op::HalfPoll(half, self.below(3) + 1, fate)
    }

    fn thread(&mut self) -> ThreadDoes {
        match self.below(10) {
            0 => ThreadDoes::CancelScope,
            1 => ThreadDoes::StopScope,
            2 => ThreadDoes::Notify,
            3 | 4 => ThreadDoes::Send(self.nth()),
            5 => ThreadDoes::Publish,
            6 => ThreadDoes::Set,
            7 => ThreadDoes::Spawn,
            _ => ThreadDoes::FromBag,
        }
    }

    /// Chooses an element with the stream for sockets.
    fn pick_net<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.net.below(among.len())]
    }

    /// Returns an operation on sockets. Most waits in it end by themselves.
    fn socket(&mut self) -> Op {
        let family = self.pick_net(&[Family::Inet, Family::Unix]);
        match self.net.below(20) {
            0..3 => Op::Serve(family, self.net.below(3) + 1, self.uses()),
            3..7 => Op::Dial(family, self.uses()),
            7..14 => Op::Connection(family, self.uses(), self.uses()),
            14 | 15 => Op::Frames(family, self.net.below(20) + 1),
            16 | 17 => Op::Datagrams(family, self.net.below(4) + 1),
            _ => Op::Descriptor(family, self.uses()),
        }
    }

    fn uses(&mut self) -> Vec<Use> {
        (0..self.net.below(6) + 1).map(|_| self.bounded_use()).collect()
    }

    fn bounded_use(&mut self) -> Use {
        let used = self.one_use();
        let waits = matches!(
            used,
            Use::Read(_)
                | Use::ReadVectored(_)
                | Use::Write(_)
                | Use::WriteVectored(_)
                | Use::WriteAll(_)
                | Use::Split(_)
                | Use::Halves { .. }
                | Use::Bound(_)
        );
        match waits && self.net.below(100) < 70 {
            true => Use::Within(self.net.below(500) as u64, Box::new(used)),
            false => used,
        }
    }

    fn one_use(&mut self) -> Use {
        use std::net::Shutdown as End;
        // Sometimes more than fits into a socket's buffers.
        let bytes = self.pick_net(&[1, 7, 64, 64, 1000, 20_000, 1 << 20]);
        let place = self.pick_net(&[Where::Here, Where::Here, Where::Thread]);
        match self.net.below(30) {
            0..6 => Use::Read(bytes.min(20_000)),
            6 => Use::ReadVectored(bytes.min(20_000)),
            7..11 => Use::Write(bytes),
            11 => Use::WriteVectored(bytes),
            12 | 13 => Use::WriteAll(bytes),
            14 | 15 => {
                Use::Shutdown(self.pick_net(&[End::Read, End::Write, End::Write, End::Both]))
            }
            16 | 17 => Use::Split(bytes),
            18 | 19 => Use::Halves {
                reads: self.pick_net(&[true, false]),
                elsewhere: place,
                bytes,
                reunites: self.pick_net(&[true, false]),
            },
            20 => Use::Reset,
            21 => Use::Look,
            22 => Use::Bound(bytes),
            23 => Use::Std,
            24 | 25 => {
                let fates =
                    [Fate::Drop, Fate::Bag, Fate::Bag, Fate::ToThread, Fate::Finish, Fate::Forget];
                let fate = match self.pick_net(&fates) {
                    Fate::Forget if !self.forgets => Fate::Drop,
                    fate => fate,
                };
                Use::Half(self.net.below(3) + 1, fate)
            }
            26 | 27 => Use::Yield,
            28 => match self.pick_net(&[true, false]) {
                true => Use::Bag,
                false => Use::ToThread,
            },
            _ => Use::Drop,
        }
    }

    fn request(&mut self) -> Op {
        match self.below(7) {
            0 | 1 => Op::CancelScope(self.place(), self.time()),
            2 => Op::StopScope,
            3 => Op::StopWithin(self.micros(500), self.micros(2_000)),
            4 => Op::Stopping(self.micros(500)),
            _ => Op::Cancelled(self.micros(500)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::program::KINDS;

    /// Collects the kinds of all operations of a body, including nested ones.
    fn kinds(body: &[Op], into: &mut BTreeSet<&'static str>) {
        for op in body {
            into.insert(op.kind());
            match op {
                Op::Timeout(_, body)
                | Op::Shield(_, body)
                | Op::WithLocal(_, body)
                | Op::Supervise(_, body)
                | Op::Start(_, body)
                | Op::Defer(body)
                | Op::Lock(_, _, body)
                | Op::Read(_, body)
                | Op::Write(_, _, body)
                | Op::Deadline(_, body)
                | Op::Acquire(_, _, body)
                | Op::Abandon(_, body)
                | Op::SelectOf(_, _, body)
                | Op::Attempts(_, _, _, body)
                | Op::Parted(_, _, body)
                | Op::Permits(_, body)
                | Op::SeparateWaker(_, body) => kinds(body, into),
                Op::HalfOf(op, ..) => kinds(std::slice::from_ref(op), into),
                Op::Race(_, bodies)
                | Op::Join(_, bodies)
                | Op::TryJoin(_, bodies)
                | Op::Parts(_, bodies)
                | Op::Group(bodies) => bodies.iter().for_each(|body| kinds(body, into)),
                Op::Scope(scope) => kinds(&scope.body, into),
                Op::Spawn(child) | Op::Value(child) => kinds(&child.body, into),
                _ => {}
            }
        }
    }

    #[test]
    fn a_seed_is_a_program() {
        for seed in 0..200 {
            assert_eq!(program(seed, true), program(seed, true));
        }
        assert_ne!(program(1, true).roots, program(2, true).roots);
    }

    #[test]
    fn every_kind_of_operation_is_generated() {
        let mut found = BTreeSet::new();
        for seed in 0..400 {
            let program = program(seed, true);
            program.roots.iter().for_each(|root| kinds(&root.body, &mut found));
        }
        let all = KINDS.into_iter().collect::<BTreeSet<_>>();
        let missing: Vec<_> = all.difference(&found).collect();
        assert!(missing.is_empty(), "never generated: {missing:?}");
        assert_eq!(all, found, "KINDS has all of them");
    }

    #[test]
    fn without_bombs_no_callback_panics() {
        assert!((0..300).any(|seed| program(seed, true).callback_panics));
        assert!((0..300).all(|seed| !program(seed, false).callback_panics));
    }
}
