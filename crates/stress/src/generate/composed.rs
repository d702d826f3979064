//! Composed operations, and operations on streams, guards and timers.

use super::{EACH, Generator};
use crate::program::{
    AttemptHow, ClosedOf, CrewOp, Fate, FetchHow, ForeignFuture, HandleDoes, ListenHow, LockKind,
    Op, PartsHow, PostHow, ResetHow, SelectHow, SetHow, StreamHow, WatchHow, Where,
};

impl Generator {
    /// Chooses an element with the stream for composed operations.
    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.mix.below(among.len())]
    }

    fn up_to(&mut self, most: usize) -> u64 {
        match self.mix.below(4) {
            0 => 0,
            _ => self.mix.below(most) as u64,
        }
    }

    pub(super) fn compose(&mut self, depth: usize) -> Op {
        match self.mix.below(50) {
            0..8 => self.post(),
            8..16 => self.fetch(),
            16..18 => Op::Crew(CrewOp {
                producers: self.mix.below(3) + 1,
                consumers: self.mix.below(3) + 1,
                capacity: self.of(&[None, Some(1), Some(2), Some(4)]),
                messages: self.mix.below(8) + 1,
                batches: self.of(&[true, false]),
            }),
            18..22 => self.stream(),
            22 => {
                let nth = self.mix.below(EACH);
                Op::Closed(self.of(&[
                    ClosedOf::Unbounded,
                    ClosedOf::Tracked,
                    ClosedOf::Publisher,
                    ClosedOf::Reply,
                    ClosedOf::Shared(nth),
                ]))
            }
            23..26 => {
                let foreign_future = self.foreign_future();
                Op::Abandon(foreign_future, self.inner(depth))
            }
            26..30 => self.select_of(depth),
            30..32 => self.attempts(depth),
            32..35 => {
                let how = self.of(&[
                    PartsHow::RaceOk,
                    PartsHow::RaceOkAll,
                    PartsHow::JoinMacro,
                    PartsHow::TryJoinMacro,
                    PartsHow::RaceMacro,
                    PartsHow::RaceOkMacro,
                ]);
                Op::Parts(how, self.bodies(depth))
            }
            35 => Op::Value(Box::new(self.child(depth))),
            36 | 37 => {
                let how = self.of(&[ResetHow::Sleep, ResetHow::Interval, ResetHow::Ticks]);
                Op::Reset(how, self.up_to(400), self.mix.below(4) + 1)
            }
            38 | 39 => Op::Delays(self.mix.below(6) + 1, self.fate()),
            40..43 => {
                let kind = self.of(&[
                    LockKind::Mutex,
                    LockKind::OwnedMutex,
                    LockKind::Read,
                    LockKind::OwnedRead,
                    LockKind::Write,
                    LockKind::OwnedWrite,
                ]);
                let place = self.of(&[Where::Here, Where::Here, Where::Thread]);
                Op::Parted(kind, place, self.inner(depth))
            }
            43 => match self.mix.below(4) {
                0 => Op::Shut,
                _ => Op::Permits(self.of(&[true, false]), self.inner(depth)),
            },
            44 => Op::Enabled(self.of(&[true, false])),
            45 => self.ask_runtime(),
            46 => match self.mix.below(5) {
                0 => Op::Listen(ListenHow::Resubscribe),
                1 => Op::Listen(ListenHow::SkipLagged),
                2 => Op::Set(SetHow::IfModified(true)),
                3 => Op::Set(SetHow::IfModified(false)),
                _ => Op::Watch(WatchHow::Marks),
            },
            _ => {
                let op = self.left_half_way();
                Op::HalfOf(Box::new(op), self.mix.below(3) + 1, self.fate())
            }
        }
    }

    fn stream(&mut self) -> Op {
        let how = match self.mix.below(8) {
            0 | 1 => StreamHow::Messages,
            2 => StreamHow::Shared,
            3 => StreamHow::Throttled(self.up_to(200)),
            4 => StreamHow::Map(self.mix.below(3) + 1),
            5 => StreamHow::Heard,
            6 => StreamHow::Snapshots,
            _ => StreamHow::Ticks(self.up_to(200)),
        };
        Op::Stream(how, self.mix.below(6) + 1, self.fate())
    }

    fn select_of(&mut self, depth: usize) -> Op {
        let foreign_future = self.foreign_future();
        let nth = self.mix.below(EACH);
        let how = self.of(&[
            SelectHow::Assumed(foreign_future),
            SelectHow::Abandoned(foreign_future),
            SelectHow::Resumed,
            SelectHow::Random(nth),
            SelectHow::Refutable(nth),
        ]);
        Op::SelectOf(how, self.up_to(500), self.inner(depth))
    }

    fn attempts(&mut self, depth: usize) -> Op {
        let time = self.up_to(300);
        let how =
            self.of(&[AttemptHow::Retry(time), AttemptHow::RetryIf(time), AttemptHow::Hedge(time)]);
        let most = self.mix.below(4) as u32;
        let succeeds = self.mix.below(4) as u32;
        // Most attempts fail deliberately.
        let body = match self.mix.below(4) {
            0 => self.inner(depth),
            _ => vec![Op::Yield],
        };
        Op::Attempts(how, most, succeeds, body)
    }

    fn fate(&mut self) -> Fate {
        let fates = [Fate::Drop, Fate::Drop, Fate::Bag, Fate::ToThread, Fate::Finish, Fate::Forget];
        match self.of(&fates) {
            Fate::Forget if !self.forgets => Fate::Drop,
            fate => fate,
        }
    }

    fn post(&mut self) -> Op {
        let slots = self.mix.below(3) + 1;
        let used = self.mix.below(slots + 1);
        let how = self.of(&[
            PostHow::Send,
            PostHow::Send,
            PostHow::Try,
            PostHow::Try,
            PostHow::Reserve,
            PostHow::Owned,
            PostHow::Abort,
            PostHow::NextPermit,
            PostHow::Many(slots, used),
            PostHow::TryMany(slots, used),
            PostHow::Evict,
            PostHow::Sink,
            PostHow::OwnedSink,
            PostHow::Weak,
        ]);
        Op::Post(self.mix.below(EACH), how)
    }

    fn fetch(&mut self) -> Op {
        let many = self.mix.below(5);
        let how = match self.mix.below(24) {
            0 => self.of(&[FetchHow::Drain, FetchHow::CloseAndTake]),
            1 => FetchHow::DropOne,
            2 => FetchHow::Renew,
            3 => FetchHow::Look,
            4..8 => FetchHow::Try,
            8..13 => FetchHow::Many(many),
            13..16 => FetchHow::Stream(many),
            _ => FetchHow::Recv,
        };
        Op::Fetch(self.mix.below(EACH), how)
    }

    fn foreign_future(&mut self) -> ForeignFuture {
        let polls = self.mix.below(4);
        let foreign = [
            ForeignFuture::Never,
            ForeignFuture::Polls(polls),
            ForeignFuture::Thread,
            ForeignFuture::Body,
        ];
        self.of(&foreign)
    }

    fn ask_runtime(&mut self) -> Op {
        if self.stops && self.mix.below(3) == 0 {
            let soft = self.of(&[0, 100, 2_000]);
            let hard = self.of(&[0, 100, 2_000, 20_000]);
            return Op::Runtime(HandleDoes::Stop(soft, hard));
        }
        Op::Runtime(self.of(&[HandleDoes::Dump, HandleDoes::Metrics, HandleDoes::Health]))
    }

    /// Returns an operation that waits and contains no others.
    fn left_half_way(&mut self) -> Op {
        match self.mix.below(10) {
            0..3 => self.post(),
            3..6 => self.fetch(),
            6 => {
                let foreign_future = match self.foreign_future() {
                    ForeignFuture::Body => ForeignFuture::Never,
                    other => other,
                };
                Op::Abandon(foreign_future, Vec::new())
            }
            7 => Op::Enabled(self.of(&[true, false])),
            8 => Op::Delays(self.mix.below(4) + 1, Fate::Drop),
            _ => {
                let kind = self.of(&[LockKind::Mutex, LockKind::OwnedRead, LockKind::OwnedWrite]);
                Op::Parted(kind, Where::Here, vec![Op::Yield])
            }
        }
    }
}
