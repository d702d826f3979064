//! All or nobody.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use asx_task::footprint;
use asx_task::operation::{Registration, Wait, guard};
use asx_task::{Cancelled, Cx};

use super::line::{Left, Line, Look, Place, Wakes};
use crate::prim::{Shared, lock};

/// Lets tasks through in groups of a fixed size: each waits until all of its group have arrived.
/// Then the next group forms.
///
/// ```
/// use asx::{Cancelled, Cx, sync::Barrier};
///
/// async fn step(cx: &Cx, all: &Barrier) -> Result<(), Cancelled> {
///     if all.wait(cx).await?.is_leader() {
///         println!("everybody is here");
///     }
///     Ok(())
/// }
/// ```
pub struct Barrier {
    size: usize,
    arrived: Shared<Line<(), ()>>,
}

impl Barrier {
    const_fn! {
        /// A barrier for groups of `size`; 0 is the same as 1.
        #[track_caller]
        pub fn new(size: usize) -> Barrier {
            Barrier { size, arrived: Shared::made_at(Location::caller(), Line::new()) }
        }
    }

    /// Arrives and waits for the others. The last to arrive is the leader.
    ///
    /// A wait that is dropped or cancelled before the group is complete takes its arrival back.
    /// One that is dropped or cancelled after that has passed without knowing, and would arrive for
    /// the next group if it waited again: that is why it is not
    /// [`CancelSafe`](asx_task::CancelSafe).
    #[track_caller]
    pub fn wait<'a, 'c>(&'a self, cx: &'c Cx) -> BarrierWait<'a, 'c> {
        let at = Location::caller();
        let registration = Registration::NONE;
        BarrierWait { barrier: self, cx, place: None, registration, at }
    }

    fn arrive(&self, task: &mut Context<'_>, place: &mut Option<Place>) -> Option<BarrierPass> {
        let mut wakes = Wakes::default();
        let waker = task.waker().clone();
        let mut line = lock(&self.arrived);
        if line.len() + 1 < self.size {
            *place = Some(line.join(waker, ()));
            return None;
        }
        while let Some(waker) = line.call(()) {
            wakes.push(waker);
        }
        drop(line);
        guard::drop_waker(Some(waker));
        Some(BarrierPass { leader: true })
    }

    fn look(&self, task: &mut Context<'_>, place: &mut Option<Place>) -> Option<BarrierPass> {
        let mut fresh = None;
        let pass = loop {
            let look = lock(&self.arrived).look(place, task.waker(), &mut fresh);
            match look {
                Look::Called(()) => break Some(BarrierPass { leader: false }),
                Look::Waiting => break None,
                Look::Stranger => fresh = Some(task.waker().clone()),
            }
        };
        guard::drop_waker(fresh);
        pass
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("size", &self.size).finish_non_exhaustive()
    }
}

/// The wait of [`Barrier::wait`].
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct BarrierWait<'a, 'c> {
    barrier: &'a Barrier,
    cx: &'c Cx,
    place: Option<Place>,
    registration: Registration,
    at: &'static Location<'static>,
}

impl Future for BarrierWait<'_, '_> {
    type Output = Result<BarrierPass, Cancelled>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let _after = footprint::after_operation();
        let this = self.get_mut();
        if let Err(cancelled) = ready!(this.cx.poll_proceed(task, &mut this.registration)) {
            this.withdraw();
            return Poll::Ready(Err(cancelled));
        }
        let pass = match this.place {
            None => this.barrier.arrive(task, &mut this.place),
            Some(_) => this.barrier.look(task, &mut this.place),
        };
        match pass {
            Some(pass) => Poll::Ready(Ok(pass)),
            None => {
                this.cx.waits(Wait::Signal, this.at, task.waker(), &mut this.registration);
                Poll::Pending
            }
        }
    }
}

impl BarrierWait<'_, '_> {
    fn withdraw(&mut self) {
        if let Some(place) = self.place.take() {
            let left = lock(&self.barrier.arrived).leave(place);
            if let Left::Waiting(waker) = left {
                drop(waker);
            }
        }
    }
}

impl Drop for BarrierWait<'_, '_> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// A group is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierPass {
    leader: bool,
}

impl BarrierPass {
    /// Whether this task was the last to arrive: exactly one of each group was.
    pub fn is_leader(&self) -> bool {
        self.leader
    }
}
