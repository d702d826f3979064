//! The ops that touch the world, a row each.

use super::keys::Keys;
use super::ops::{Place, Spec, spec};
use super::results::Ty;
use super::words;
use crate::pattern::Named;
use crate::scenario::{BrowserOp, Name, Op, When};
use Named::{Channel, Definition, Obligation, Permit, Region, Task, Timer};
use Place::{Body, Both, Steps};
use asx_kernel::cancel::Kind;
use core::time::Duration;

/// How many members a group may have.
const MAX_GROUP: u64 = 1000;

pub(super) const REGIONS: &[Spec] = &[
    spec("open", Both, open, &[]),
    spec("end", Both, |k| Some(Op::End { region: k.name(Region, "region")? }), &[]),
    spec("close", Both, close, &[("first", Ty::Flag)]),
    spec("gate", Both, gate, &[]),
    spec(
        "defer",
        Both,
        |k| finalizer(k).map(|(region, task, name)| Op::Defer { region, task, name }),
        &[],
    ),
    spec(
        "finalizer",
        Both,
        |k| finalizer(k).map(|(region, task, name)| Op::Finalizer { region, task, name }),
        &[],
    ),
    spec("storage", Both, storage, &[]),
    spec("release", Both, |k| Some(Op::Release { region: k.name(Region, "region")? }), &[]),
];

/// What a look at the cancel can tell.
const SEEN: &[(&str, Ty)] =
    &[("value", Ty::Flag), ("kind", Ty::Kind), ("message", Ty::Text), ("polls_left", Ty::Number)];

pub(super) const TASKS: &[Spec] = &[
    spec("spawn", Both, spawn, &[]),
    spec("spawn_failed", Both, spawn_failed, &[]),
    spec("cancel", Both, cancel, &[("first", Ty::Flag)]),
    spec("wake", Both, |k| Some(Op::Wake { task: k.name(Task, "task")? }), &[]),
    spec("checkpoint", Body, |_| Some(Op::Checkpoint), SEEN),
    spec("is_cancelled", Body, |_| Some(Op::IsCancelled), SEEN),
    spec("yield", Body, |_| Some(Op::Work { polls: 1 }), &[]),
    spec("park", Body, |_| Some(Op::Park), &[]),
    spec("work", Body, |k| Some(Op::Work { polls: k.req("polls", words::number)? }), &[]),
    spec("spend", Body, |k| Some(Op::Spend { cost: k.req("cost", words::number)? }), &[]),
    spec("sleep", Body, |k| Some(Op::Sleep { when: k.when()? }), &[]),
    spec("join", Body, |k| Some(Op::Join { task: k.name(Task, "task")? }), OUTCOME),
    spec("closed", Body, |k| Some(Op::ClosedWait { region: k.name(Region, "region")? }), OUTCOME),
    spec("stopping", Body, |_| Some(Op::Stopping), &[]),
    spec("shield", Body, |k| Some(Op::Shield { body: k.body("body")? }), &[]),
    spec("cleanup", Body, |k| Some(Op::Cleanup { body: k.body("body")? }), &[]),
    spec("repeat", Both, repeat, &[]),
    spec("done", Body, |_| Some(Op::Done), &[]),
    spec("fail", Body, |k| Some(Op::Fail { message: message(k, "failed") }), &[]),
    spec("panic", Body, |k| Some(Op::Panic { message: message(k, "panic") }), &[]),
];

const OUTCOME: &[(&str, Ty)] = &[("outcome", Ty::Severity)];
const PROOF: &[(&str, Ty)] = &[("proof", Ty::Words(&["Committed", "Aborted"]))];

pub(super) const THINGS: &[Spec] = &[
    spec("oblige", Both, oblige, &[]),
    spec(
        "commit",
        Both,
        |k| Some(Op::Commit { obligation: k.name(Obligation, "obligation")? }),
        &[],
    ),
    spec("abort", Both, abort, PROOF),
    spec("channel", Both, channel, &[]),
    spec(
        "reserve",
        Body,
        |k| reserve(k).map(|(channel, permit, tracked)| Op::Reserve { channel, permit, tracked }),
        &[],
    ),
    spec(
        "try_reserve",
        Both,
        |k| {
            reserve(k).map(|(channel, permit, tracked)| Op::TryReserve { channel, permit, tracked })
        },
        &[],
    ),
    spec("send", Both, send, PROOF),
    spec(
        "drop",
        Both,
        |k| Some(Op::DropPermit { permit: k.name(Permit, "permit")? }),
        &[("panics", Ty::Flag)],
    ),
    spec(
        "try_send",
        Both,
        |k| Some(Op::TrySend { channel: k.name(Channel, "channel")?, value: k.message()? }),
        &[],
    ),
    spec(
        "evict",
        Both,
        |k| Some(Op::Evict { channel: k.name(Channel, "channel")?, value: k.message()? }),
        &[("evicted", Ty::Int)],
    ),
    spec(
        "recv",
        Body,
        |k| Some(Op::Recv { channel: k.name(Channel, "channel")? }),
        &[("value", Ty::Int)],
    ),
    spec(
        "try_recv",
        Both,
        |k| Some(Op::TryRecv { channel: k.name(Channel, "channel")? }),
        &[("value", Ty::Int)],
    ),
    spec(
        "clone_sender",
        Both,
        |k| Some(Op::CloneSender { channel: k.name(Channel, "channel")? }),
        &[],
    ),
    spec(
        "drop_sender",
        Both,
        |k| Some(Op::DropSender { channel: k.name(Channel, "channel")? }),
        &[],
    ),
    spec(
        "drop_receiver",
        Both,
        |k| Some(Op::DropReceiver { channel: k.name(Channel, "channel")? }),
        &[],
    ),
    spec("arm", Both, arm, &[]),
    spec("disarm", Both, disarm, &[("cancelled", Ty::Flag)]),
    spec("update", Both, update, &[]),
];

const STEPPED: &[(&str, Ty)] = &[("steps", Ty::Number)];

pub(super) const RUNNING: &[Spec] = &[
    spec("advance", Both, |k| Some(Op::Advance { when: k.when()? }), &[]),
    spec("fire", Steps, |_| Some(Op::Fire), &[("fired", Ty::Number)]),
    spec("run", Steps, |k| Some(Op::Run { max_steps: max_steps(k) }), STEPPED),
    spec("step", Steps, step, &[("task", Ty::Text), ("lane", Ty::Lane), ("idle", Ty::Flag)]),
    spec(
        "run_for",
        Steps,
        |k| Some(Op::RunFor { when: k.when()?, max_steps: max_steps(k) }),
        STEPPED,
    ),
    spec("suggest", Steps, |k| Some(Op::Suggest { mode: k.req("mode", words::suggestion)? }), &[]),
    spec("soft_stop", Steps, |_| Some(Op::SoftStop), &[]),
    spec("shutdown", Steps, shutdown, &[]),
    spec("quiescent", Steps, |_| Some(Op::Quiescent), &[("all", Ty::Statuses)]),
    spec("microtasks", Steps, |_| Some(Op::Browser(BrowserOp::Microtasks)), &[("ran", Ty::Number)]),
    spec("turn", Steps, turn, STEPPED),
    spec("pump", Both, |_| Some(Op::Browser(BrowserOp::Pump)), &[("answer", Ty::Words(ANSWERS))]),
    spec("host_timer", Steps, host_timer, &[]),
    spec("suspend", Steps, suspend, &[]),
    spec("grant", Steps, |k| capability(k, |capability| BrowserOp::Grant { capability }), &[]),
    spec("revoke", Steps, |k| capability(k, |capability| BrowserOp::Revoke { capability }), &[]),
    spec(
        "require",
        Both,
        |k| capability(k, |capability| BrowserOp::Require { capability }),
        &[("provenance", Ty::Text)],
    ),
];

const ANSWERS: &[&str] = &["begin", "deferred", "not_scheduled"];

fn open(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let policy = k.opt("policy", |v| words::pick(v, &["collect_all", "fail_fast"], |word| word));
    Some(Op::Open {
        name: k.makes(Region, "as")?,
        region: k.name_opt(Region, "in"),
        budget: k.budget(),
        max_children: k.opt("max_children", words::size),
        fail_fast: policy == Some("fail_fast"),
    })
}

fn close(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let (kind, message, force_after) =
        (kind(k), k.opt("message", words::text), k.span("force_after"));
    Some(Op::Close { region: k.name(Region, "region")?, kind, message, force_after })
}

fn kind(k: &mut Keys<'_, '_, '_>) -> Kind {
    k.opt("kind", words::kind).unwrap_or(Kind::User)
}

fn message(k: &mut Keys<'_, '_, '_>, default: &str) -> String {
    k.opt("message", words::text).unwrap_or_else(|| default.to_owned())
}

fn gate(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let open = k.req("open", words::flag);
    Some(Op::Gate { region: k.name(Region, "region")?, open: open? })
}

fn finalizer(k: &mut Keys<'_, '_, '_>) -> Option<(Name, Name, Name)> {
    let region = k.name(Region, "region");
    let task = k.name(Definition, "task")?;
    let name = k.makes_or(Task, "as", Some(&task))?;
    Some((region?, task, name))
}

fn storage(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let bytes = k.opt("bytes", words::size).unwrap_or(1);
    Some(Op::Storage { region: k.name(Region, "region")?, bytes })
}

fn spawn(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let region = k.name_opt(Region, "in");
    let (pinned, budget) = (k.flag("pinned"), k.budget());
    let task = k.name(Definition, "task")?;
    let name = grouped(k, Task, "as", Some(&task))?;
    Some(Op::Spawn { task, name, region, index: 0, pinned, budget })
}

/// A name the op makes, or those of a group.
fn grouped(
    k: &mut Keys<'_, '_, '_>,
    kind: Named,
    key: &'static str,
    default: Option<&str>,
) -> Option<Name> {
    k.count = k.opt("count", |v| words::within(v, 1, MAX_GROUP));
    let Some(count) = k.count else {
        return match default {
            Some(_) => k.makes_or(kind, key, default),
            None => k.makes(kind, key),
        };
    };
    let name: Name = match (k.opt(key, words::text), default) {
        (Some(name), _) => name.into(),
        (None, Some(default)) => default.into(),
        (None, None) => {
            k.missing(key);
            return None;
        }
    };
    if !k.is_name(&name, key) {
        return None;
    }
    let members: Vec<Name> = (1..=count).map(|i| format!("{name}{i}").into()).collect();
    for member in &members {
        k.made(kind, member.clone(), key);
    }
    k.reading.groups.insert(name.clone(), members);
    Some(name)
}

fn spawn_failed(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let (region, status) = (k.name_opt(Region, "in"), k.opt("status", words::status));
    let message = message(k, "failed");
    Some(Op::SpawnFailed { name: k.makes(Task, "as")?, region, message, status })
}

fn cancel(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let (kind, message) = (kind(k), k.opt("message", words::text));
    Some(Op::Cancel { task: k.name(Task, "task")?, kind, message })
}

fn repeat(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let times = k.req("times", |v| words::within(v, 0, 100_000));
    Some(Op::Repeat { body: k.body("body")?, times: times? })
}

fn oblige(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let region = k.name_opt(Region, "in");
    Some(Op::Oblige { obligation: k.makes(Obligation, "obligation")?, region })
}

fn abort(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    if k.has("obligation") && !k.has("permit") {
        return Some(Op::Abort { obligation: k.name(Obligation, "obligation")? });
    }
    Some(Op::AbortPermit { permit: k.name(Permit, "permit")? })
}

fn channel(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let capacity = k.opt("capacity", words::size).unwrap_or(1);
    let region = k.name_opt(Region, "in");
    Some(Op::Channel { name: k.makes(Channel, "as")?, capacity, region })
}

fn reserve(k: &mut Keys<'_, '_, '_>) -> Option<(Name, Name, bool)> {
    let tracked = k.flag("tracked");
    let permit = k.makes_or(Permit, "permit", Some("permit"))?;
    Some((k.name(Channel, "channel")?, permit, tracked))
}

fn send(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let value = k.message();
    if k.in_body && k.has("channel") && !k.has("permit") {
        let (channel, permit, tracked) = reserve(k)?;
        k.before = Some(Op::Reserve { channel, permit: permit.clone(), tracked });
        return Some(Op::Send { permit, value: value? });
    }
    Some(Op::Send { permit: k.name(Permit, "permit")?, value: value? })
}

fn arm(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let (region, wakes) = (k.name_opt(Region, "in"), k.name_opt(Task, "wakes"));
    let when = k.when();
    Some(Op::Arm { timer: grouped(k, Timer, "timer", None)?, when: when?, region, wakes })
}

fn disarm(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let (id, generation) = (k.opt("id", words::number), k.opt("generation", words::number));
    Some(Op::Disarm { timer: k.name(Timer, "timer")?, id, generation })
}

fn update(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let (region, wakes) = (k.name_opt(Region, "in"), k.name_opt(Task, "wakes"));
    let when = k.when();
    let timer = k.name(Timer, "timer")?;
    let name = k.makes_or(Timer, "as", Some(timer.rsplit('.').next().unwrap_or(&timer)))?;
    Some(Op::Update { timer, name, when: when?, region, wakes })
}

fn max_steps(k: &mut Keys<'_, '_, '_>) -> u64 {
    k.opt("max_steps", words::number).unwrap_or(100_000)
}

fn step(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let count = k.opt("count", |v| words::within(v, 1, 1_000_000)).unwrap_or(1);
    Some(Op::StepOn { count, worker: k.opt("worker", words::size) })
}

fn shutdown(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let soft = k.span("soft").unwrap_or(Duration::ZERO);
    Some(Op::Shutdown { soft, force_after: k.span("force_after") })
}

fn turn(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    let count = k.opt("count", |v| words::within(v, 1, 1_000_000)).unwrap_or(1);
    Some(Op::Browser(BrowserOp::Turn { count }))
}

fn host_timer(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    Some(Op::Browser(BrowserOp::HostTimer { timer: k.name_opt(Timer, "timer") }))
}

fn suspend(k: &mut Keys<'_, '_, '_>) -> Option<Op> {
    match k.when()? {
        When::After(span) => Some(Op::Browser(BrowserOp::Suspend { span })),
        When::At(_) => {
            k.reading.error(k.line, "for", "op \"suspend\" takes a duration, not an instant");
            None
        }
    }
}

fn capability(
    k: &mut Keys<'_, '_, '_>,
    op: fn(asx_kernel::pump::Capability) -> BrowserOp,
) -> Option<Op> {
    Some(Op::Browser(op(k.req("capability", words::capability)?)))
}
