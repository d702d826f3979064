//! Retries, and combinators with counted parts.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use asx::{Backoff, Cx, hedge, join, race, race_ok, race_ok_all, retry, retry_if, try_join};

use super::{Env, micros, run};
use crate::program::{AttemptHow, Child, Op, PartsHow};
use crate::world::Fail;

/// The number of parts that have begun, succeeded and failed.
#[derive(Default)]
struct Tally {
    begun: AtomicUsize,
    succeeded: AtomicUsize,
    failed: AtomicUsize,
}

impl Tally {
    fn counted(&self) -> (usize, usize, usize) {
        (self.begun.load(Relaxed), self.succeeded.load(Relaxed), self.failed.load(Relaxed))
    }
}

impl Env {
    /// Runs a body as a part of a combinator.
    async fn part(&self, tally: &Tally, body: &[Op], succeeds: bool) -> Result<(), Fail> {
        tally.begun.fetch_add(1, Relaxed);
        let ended = match run(self, body).await {
            Ok(()) if !succeeds => Err(Fail::Failed(self.world.ledger.returned())),
            ended => ended,
        };
        let counts = if ended.is_ok() { &tally.succeeded } else { &tally.failed };
        counts.fetch_add(1, Relaxed);
        ended
    }

    /// Checks that no part is unfinished when the whole has ended.
    fn all_ended(&self, tally: &Tally) {
        let (begun, succeeded, failed) = tally.counted();
        let ledger = &self.world.ledger;
        ledger.expect(begun == succeeded + failed, "a part was dropped without being awaited");
    }

    pub(super) async fn attempts(
        &self,
        how: AttemptHow,
        most: u32,
        succeeds: u32,
        body: &[Op],
    ) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let tally = Tally::default();
        let mut nth = 0;
        let mut attempt = |_: &_| {
            nth += 1;
            self.part(&tally, body, nth == succeeds)
        };
        let (limit, ended) = match how {
            AttemptHow::Retry(wait) => {
                let backoff = Backoff::new(micros(wait)).attempts(most).longest(micros(500));
                (most.max(1), retry(cx, backoff, attempt).await)
            }
            AttemptHow::RetryIf(wait) => {
                let backoff = Backoff::new(micros(wait)).attempts(most).jitter(false).factor(1);
                let again = |fail: &Fail| matches!(fail, Fail::Failed(_));
                (most.max(1), retry_if(cx, backoff, attempt, again).await)
            }
            AttemptHow::Hedge(after) => (2, hedge(cx, micros(after), &mut attempt).await),
        };
        self.all_ended(&tally);
        let (begun, succeeded, _) = tally.counted();
        world.ledger.expect(begun <= limit as usize, "there were too many attempts");
        world
            .ledger
            .expect(ended.is_ok() == (succeeded > 0), "the result does not match the attempts");
        drop(ended);
        Ok(cx.checkpoint()?)
    }

    pub(super) async fn parts(&self, how: PartsHow, bodies: &[Vec<Op>]) -> Result<(), Fail> {
        let Env { world, cx, .. } = self;
        let tally = Tally::default();
        let tally = &tally;
        let empty = Vec::new();
        let [a, b, c] = std::array::from_fn(|nth| bodies.get(nth).unwrap_or(&empty));
        let succeeds = std::array::from_fn::<_, 3, _>(|_| world.coin(3) > 0);
        let part = |body, nth: usize| self.part(tally, body, succeeds[nth]);
        let ended = match how {
            PartsHow::RaceOk => race_ok(cx, |_| part(a, 0), |_| part(b, 1)).await,
            PartsHow::RaceOkAll => {
                let parts = [a, b, c].into_iter().enumerate();
                let parts = parts.map(|(nth, body)| move |_: &Cx| part(body, nth));
                match race_ok_all(cx, parts).await {
                    Ok(()) => Ok(()),
                    Err(errors) => {
                        drop(errors);
                        Err(Fail::Cancelled)
                    }
                }
            }
            PartsHow::JoinMacro => {
                let all = join!(cx, |_| part(a, 0), |_| part(b, 1), |_| part(c, 2));
                drop(all.await);
                world.ledger.expect(tally.counted().0 == 3, "a part was never run");
                Ok(())
            }
            PartsHow::TryJoinMacro => {
                let all = try_join!(cx, |_| part(a, 0), |_| part(b, 1), |_| part(c, 2));
                all.await.map(drop)
            }
            PartsHow::RaceMacro => race!(cx, |_| part(a, 0), |_| part(b, 1), |_| part(c, 2)).await,
            PartsHow::RaceOkMacro => {
                race_ok!(cx, |_| part(a, 0), |_| part(b, 1), |_| part(c, 2)).await
            }
        };
        self.all_ended(tally);
        let (_, succeeded, failed) = tally.counted();
        let as_counted = match how {
            PartsHow::RaceOk | PartsHow::RaceOkAll | PartsHow::RaceOkMacro => {
                ended.is_ok() == (succeeded > 0)
            }
            PartsHow::TryJoinMacro => ended.is_ok() == (failed == 0),
            PartsHow::JoinMacro => true,
            PartsHow::RaceMacro => {
                if ended.is_ok() {
                    succeeded > 0
                } else {
                    failed > 0
                }
            }
        };
        world.ledger.expect(as_counted, "the result does not match the parts");
        drop(ended);
        Ok(cx.checkpoint()?)
    }

    /// Takes the value of a task; a panic of the task propagates.
    pub(super) async fn value_of(&self, child: &Child) -> Result<(), Fail> {
        if let Some(task) = self.child(child) {
            task.value().await?.check();
        }
        Ok(())
    }
}
