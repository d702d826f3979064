//! Several things at once in one task: joins, races and groups.
//!
//! What is combined may borrow, and runs concurrently, not in parallel. Each part is a [`Part`]: a
//! future in a cancel scope of its own, whose panics are caught. When one part decides for all (an
//! error, a winner, a panic), the others are asked to stop and polled to their ends before the
//! combinator is done: nothing is dropped half-way. A part that had not begun never begins.
//!
//! * [`join`], [`race`], [`race_ok`]: a fixed number, over [`tuple`], or with the [`macros`] over a
//!   [`list`]; all live parts are polled on each wake.
//! * [`all`], [`group`]: any number, over [`children`]; only those that were woken are polled.
//! * [`retry`], [`hedge`]: one thing several times.

mod all;
mod children;
mod drive;
mod group;
mod hedge;
mod join;
mod list;
mod macros;
mod part;
mod race;
mod race_ok;
mod retry;
mod tuple;

use std::task::Context;

use asx_kernel::cancel::Kind;

use asx_task::Cx;
use asx_task::combinator::cancel_now;
use asx_task::operation::{begins, ends};
use asx_task::{Cancelled, Panic};

pub use all::{join_all, race_all, race_ok_all, try_join_all};
pub use group::{BoxFuture, Child, Group, NextChild, group};
pub use hedge::hedge;
pub use join::{join, join3, join4, try_join, try_join3, try_join4};
pub use race::{race, race3, race4};
pub use race_ok::race_ok;
pub use retry::{Backoff, retry, retry_if};

/// What the macros expand to.
pub mod expansion {
    pub use super::list::{Cons, List, Nil, cons, made};
    pub use super::macros::{Joined, Raced, TryJoined, join, race, race_ok, try_join};
}

use part::Part;

/// When the end of one part is the end of the others.
pub trait Rule<T> {
    /// Why they are asked to stop.
    const KIND: Kind = Kind::FailFast;

    /// Whether this end decides.
    fn stops(output: &T) -> bool;
}

/// All parts go to their ends.
pub struct Never;

impl<T> Rule<T> for Never {
    fn stops(_: &T) -> bool {
        false
    }
}

/// The first error decides.
pub struct OnErr;

impl<T, E> Rule<Result<T, E>> for OnErr {
    fn stops(output: &Result<T, E>) -> bool {
        output.is_err()
    }
}

/// The first to end decides.
pub struct Always;

impl<T> Rule<T> for Always {
    const KIND: Kind = Kind::RaceLost;

    fn stops(_: &T) -> bool {
        true
    }
}

/// The first success decides.
pub struct OnOk;

impl<T, E> Rule<Result<T, E>> for OnOk {
    const KIND: Kind = Kind::RaceLost;

    fn stops(output: &Result<T, E>) -> bool {
        output.is_ok()
    }
}

/// What has been decided among the parts.
pub struct Decision<'a> {
    cx: &'a Cx,
    begun: bool,
    /// The part whose output decided.
    first: Option<usize>,
    panic: Option<Panic>,
}

impl<'a> Decision<'a> {
    fn new(cx: &'a Cx) -> Decision<'a> {
        Decision { cx, begun: false, first: None, panic: None }
    }

    /// Whether the parts may be polled; see [`begins`].
    fn begins(&mut self, context: &Context<'_>) -> bool {
        begins(context, &mut self.begun)
    }

    fn is_open(&self) -> bool {
        self.first.is_none() && self.panic.is_none()
    }

    /// Takes in how a part ended: whether this decides.
    fn hear<T, R: Rule<T>>(&mut self, part: usize, end: Result<&T, Panic>) -> bool {
        let open = self.is_open();
        match end {
            Ok(output) if open && R::stops(output) => self.first = Some(part),
            Ok(_) => {}
            Err(panic) => drop(self.panic.get_or_insert(panic)),
        }
        open && !self.is_open()
    }

    /// A cancel that begins here and now.
    fn cancel(&self, kind: Kind) -> Cancelled {
        cancel_now(self.cx, kind)
    }

    /// All parts have ended: the one that decided. A panic goes on here.
    fn settle(&mut self) -> Option<usize> {
        ends();
        match self.panic.take() {
            Some(panic) => panic.resume(),
            None => self.first,
        }
    }
}
