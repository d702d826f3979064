//! Ops a task may have to wait for, as futures of the runtime.

use super::World;
use super::channels::Held;
use crate::api::{Came, Done, Wait};
use crate::scenario::When;
use asx_kernel::status::{Coded as _, Status};
use asx_runtime::Cx;
use asx_runtime::channel::RecvError;
use asx_runtime::probe::{ChannelProbe, RegionProbe};
use core::future::{Future, poll_fn};
use core::pin::Pin;
use std::sync::Arc;

/// What a wait of this host brings.
type Waited = Done<Came<Arc<World>>>;

/// A wait under way.
pub(super) type Pending = Pin<Box<dyn Future<Output = Waited> + Send>>;

impl World {
    /// The future of an op; in a shield nothing is seen.
    pub(super) fn begin(
        self: &Arc<Self>,
        wait: Wait<Arc<World>>,
        cx: &Cx,
        shielded: bool,
    ) -> Done<Pending> {
        let world = Arc::clone(self);
        let cx = cx.clone();
        Ok(match wait {
            Wait::Checkpoint => Box::pin(async move {
                match look(&cx, shielded).await {
                    true => Err(Status::Cancelled),
                    false => Ok(Came::Nothing),
                }
            }),
            Wait::IsCancelled => {
                Box::pin(async move { Ok(Came::Cancelled(look(&cx, shielded).await)) })
            }
            Wait::Sleep(when) => Box::pin(async move {
                let slept = hide(&cx, shielded, async |cx| sleep(cx, when).await).await;
                if let (Some(gate), Err(Status::CapabilityDenied)) = (&world.gate, &slept) {
                    gate.deny_wait();
                }
                slept
            }),
            Wait::Join(task) => {
                let join = async move |cx: &Cx| world.join(cx, task).await;
                Box::pin(async move { hide(&cx, shielded, join).await })
            }
            Wait::Closed(region) => {
                let region = self.region(region)?;
                let closed = async move |cx: &Cx| closed(cx, region).await;
                Box::pin(async move { hide(&cx, shielded, closed).await })
            }
            Wait::Stopping => {
                let stopping = async |cx: &Cx| match cx.stopping().await {
                    Ok(()) => Ok(Came::Nothing),
                    Err(_) => Err(Status::Cancelled),
                };
                Box::pin(async move { hide(&cx, shielded, stopping).await })
            }
            Wait::Reserve { channel, tracked } => {
                let channel = self.channel_by_id(channel)?;
                let reserve = async move |cx: &Cx| world.reserve(cx, &channel, tracked).await;
                Box::pin(async move { hide(&cx, shielded, reserve).await })
            }
            Wait::Recv(channel) => {
                let channel = self.channel_by_id(channel)?;
                let recv = async move |cx: &Cx| match channel.recv(cx).await {
                    Ok(value) => Ok(Came::Value(value)),
                    Err(RecvError::Disconnected) => Err(Status::Disconnected),
                    Err(RecvError::Cancelled(_)) => Err(Status::Cancelled),
                };
                Box::pin(async move { hide(&cx, shielded, recv).await })
            }
        })
    }

    async fn reserve(&self, cx: &Cx, channel: &ChannelProbe<i64>, tracked: bool) -> Waited {
        let held = match tracked {
            true => Held::Tracked(channel.reserve_tracked(cx).await.map_err(|e| e.status())?),
            false => Held::Plain(channel.reserve(cx).await.map_err(|e| e.status())?),
        };
        Ok(Came::Permit(self.hold(held)))
    }
}

/// Looks at the cancel.
async fn look(cx: &Cx, shielded: bool) -> bool {
    hide(cx, shielded, async |cx: &Cx| cx.is_cancelled()).await
}

/// Runs `f`, in a shield if asked to.
async fn hide<T>(cx: &Cx, shielded: bool, f: impl AsyncFnOnce(&Cx) -> T) -> T {
    match shielded {
        true => cx.shield(|cx| f(cx)).await,
        false => f(cx).await,
    }
}

async fn sleep(cx: &Cx, when: When) -> Waited {
    let slept = match when {
        When::After(span) => cx.try_sleep(cx.now() + span),
        When::At(time) => cx.try_sleep(time),
    };
    match slept?.await {
        Ok(()) => Ok(Came::Nothing),
        Err(_) => Err(Status::Cancelled),
    }
}

/// Waits for a region to close, and leaves the line when dropped.
struct Closing {
    cx: Cx,
    region: RegionProbe,
    place: Option<u64>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.region.forget_close(self.place);
    }
}

async fn closed(cx: &Cx, region: RegionProbe) -> Waited {
    let mut closing = Closing { cx: cx.clone(), region, place: None };
    let outcome = poll_fn(move |context| {
        let Closing { cx, region, place } = &mut closing;
        region.poll_close(cx, place, context)
    });
    outcome.await.map(Came::Outcome)
}
