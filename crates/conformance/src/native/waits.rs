//! Ops a task may have to wait for, as futures of the runtime.

use super::World;
use super::channels::Held;
use super::script::{Own, Wait};
use crate::host::Reply;
use crate::scenario::{Name, Op, When};
use crate::value::Value;
use asx_kernel::status::Status;
use asx_runtime::Cx;
use asx_runtime::channel::{RecvError, SendError};
use asx_runtime::probe::{ChannelProbe, RegionProbe, TaskProbe};
use core::future::poll_fn;
use std::sync::Arc;

impl World {
    /// The future of an op, if the op is a checked one; in a shield nothing is seen.
    pub(super) fn wait_for(
        self: &Arc<Self>,
        op: &Op,
        cx: &Cx,
        own: &Own,
        shielded: bool,
    ) -> Option<Wait> {
        let (world, cx, name) = (self.clone(), cx.clone(), own.name.clone());
        let wait: Wait = match op {
            Op::Checkpoint => Box::pin(async move {
                let reply = match look(&cx, shielded).await {
                    true => Reply::status(Status::Cancelled),
                    false => Reply::ok(),
                };
                seen(&cx, reply)
            }),
            Op::IsCancelled => Box::pin(async move {
                let value = look(&cx, shielded).await;
                seen(&cx, Reply::ok().with("value", value))
            }),
            Op::Sleep { when } => {
                let when = *when;
                Box::pin(async move { hide(&cx, shielded, async |cx| sleep(cx, when).await).await })
            }
            Op::Join { task } => {
                let task = task.clone();
                let join = async move |cx: &Cx| world.join(cx, &task).await;
                Box::pin(async move { hide(&cx, shielded, join).await })
            }
            Op::ClosedWait { region } => {
                let region = match self.region(region) {
                    Ok(region) => region,
                    Err(status) => return Some(Box::pin(async move { status.into() })),
                };
                let closed = async move |cx: &Cx| closed(cx, region).await;
                Box::pin(async move { hide(&cx, shielded, closed).await })
            }
            Op::Stopping => {
                let stopping = async |cx: &Cx| match cx.stopping().await {
                    Ok(()) => Reply::ok(),
                    Err(_) => Status::Cancelled.into(),
                };
                Box::pin(async move { hide(&cx, shielded, stopping).await })
            }
            Op::Reserve { channel, permit, tracked } => {
                let channel = match self.channel(channel) {
                    Ok(channel) => channel,
                    Err(status) => return Some(Box::pin(async move { status.into() })),
                };
                let (permit, tracked) = (permit.clone(), *tracked);
                let reserve =
                    async move |cx: &Cx| world.reserve(cx, &channel, &name, &permit, tracked).await;
                Box::pin(async move { hide(&cx, shielded, reserve).await })
            }
            Op::Recv { channel } => {
                let channel = match self.channel(channel) {
                    Ok(channel) => channel,
                    Err(status) => return Some(Box::pin(async move { status.into() })),
                };
                let recv = async move |cx: &Cx| match channel.recv(cx).await {
                    Ok(value) => Reply::ok().with("value", value),
                    Err(RecvError::Disconnected) => Status::Disconnected.into(),
                    Err(RecvError::Cancelled(_)) => Status::Cancelled.into(),
                };
                Box::pin(async move { hide(&cx, shielded, recv).await })
            }
            _ => return None,
        };
        Some(wait)
    }

    async fn reserve(
        &self,
        cx: &Cx,
        channel: &ChannelProbe<i64>,
        task: &Name,
        name: &Name,
        tracked: bool,
    ) -> Reply {
        let held = match tracked {
            true => channel.reserve_tracked(cx).await.map(Held::Tracked),
            false => channel.reserve(cx).await.map(Held::Plain),
        };
        match held {
            Ok(held) => {
                self.bind_permit(Some(task), name, held);
                Reply::ok()
            }
            Err(SendError::Cancelled(..)) => Status::Cancelled.into(),
            Err(_) => Status::Disconnected.into(),
        }
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

async fn sleep(cx: &Cx, when: When) -> Reply {
    let slept = match when {
        When::After(span) => cx.try_sleep(cx.now() + span),
        When::At(time) => cx.try_sleep(time),
    };
    match slept {
        Ok(sleep) => match sleep.await {
            Ok(()) => Reply::ok(),
            Err(_) => Status::Cancelled.into(),
        },
        Err(refused) => Status::from(refused).into(),
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

async fn closed(cx: &Cx, region: RegionProbe) -> Reply {
    let mut closing = Closing { cx: cx.clone(), region, place: None };
    let outcome = poll_fn(move |context| {
        let Closing { cx, region, place } = &mut closing;
        region.poll_close(cx, place, context)
    });
    match outcome.await {
        Ok(severity) => Reply::ok().with("outcome", severity.name()),
        Err(refused) => refused.into(),
    }
}

/// Adds what the task can tell about its cancel.
fn seen(cx: &Cx, reply: Reply) -> Reply {
    let probe = TaskProbe::of(cx);
    let reason = probe.reason();
    reply
        .with("kind", Value::maybe(reason.as_ref().map(|reason| reason.kind.name())))
        .with("message", Value::maybe(reason.as_ref().and_then(|reason| reason.message.as_deref())))
        .with("polls_left", Value::maybe(probe.cleanup().map(|cleanup| cleanup.polls)))
}
