//! The step: the one place where the program's tasks are polled.
//!
//! ```text
//!  begin (core borrowed)          poll (core free)        finish (core borrowed)    effects
//!  mailbox -> watchdogs -> next -> callback(cx, ctx)  ->  polled -> settle      ->  drops, hooks
//! ```
//! The callback may call everything but the step itself and the runtime's end. The unsafe code
//! follows rule 3 of `guard`: between begin and finish nothing of the core is borrowed.

use crate::abi::{
    ASX_NONE, ASX_NOW, ASX_POLL_CANCELLED, ASX_POLL_ERROR, ASX_POLL_PENDING, ASX_POLL_READY,
    AsxBody, AsxCx, AsxProgress, AsxRuntime, AsxTaskId,
};
use crate::config::Line;
use crate::effects;
use crate::error::{Checked, Fault, Signature, Why, check};
use crate::ghost::ASX_GHOST_BORROW_ACROSS_POLL;
use crate::guard::{Look, Runtime, caught};
use crate::mailbox::Mailbox;
use crate::state::{Body, Core};
use asx_kernel::cancel::Kind;
use asx_kernel::ids::TaskId;
use asx_kernel::lanes::Lane;
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::world::{Answer, Ask, PollEnd, Step, TaskError};
use core::time::Duration;

/// How far a run may go.
#[derive(Clone, Copy)]
struct Bound {
    polls: u64,
    /// Whether timers have a bound too.
    timers: bool,
}

/// How far a run has come.
#[derive(Clone, Copy)]
struct Run {
    polls: u64,
    last: Option<(TaskId, Lane)>,
    idle: bool,
}

/// Whom to poll, and with what.
#[derive(Clone, Copy)]
struct Turn {
    task: TaskId,
    handle: AsxTaskId,
    lane: Lane,
    kept: Body,
    body: AsxBody,
}

/// What a run does next.
enum Next {
    Poll(Turn),
    /// Nothing; and when something happens by itself, as far as the kernel knows.
    Wait(Option<Time>),
}

/// Polls up to `most` tasks at `now`. `whole`: reaching the profile's bound is an error.
pub(crate) fn drive(
    rt: &Runtime,
    signature: Signature,
    now: u64,
    most: u64,
    whole: bool,
    progress: Checked<Look<AsxProgress>>,
) -> Answer {
    let enter = || {
        let progress = progress.map_err(|bad| signature.fault("progress", bad))?;
        // An argument like any other: looked at before the thread is.
        check(now != ASX_NOW || rt.hooks.clock.now.is_some(), Why::Clock)
            .map_err(|bad| signature.fault("now", bad))?;
        rt.check_thread()?;
        rt.occupy()?;
        let idle = caught(|| inside(rt, signature, now, most, progress));
        if idle == Err(Status::Internal) {
            // SAFETY: rule 3: whatever was broken, nothing is borrowed any more.
            unsafe { rt.with(|core| core.broken = true) }
        }
        rt.vacate();
        match idle? {
            false if whole => Err(Fault::from(Status::ResourceExhausted)),
            _ => Ok(()),
        }
    };
    enter().map_err(|fault| {
        rt.turned_away(signature, fault);
        fault.status
    })
}

/// The same by who has gone inside: whether nothing can run any more.
fn inside(
    rt: &Runtime,
    call: Signature,
    now: u64,
    most: u64,
    progress: Look<AsxProgress>,
) -> Answer<bool> {
    let now = instant(rt, call, now)?;
    // SAFETY: rule 3: no call is under way but perhaps a callback's, which waits for this one.
    let bound = unsafe { rt.with(|core| core.begin_run(call, rt, now, most))? };
    let run = run(rt, bound);
    // SAFETY: rule 3: the last callback has returned.
    let (answer, effects) =
        unsafe { rt.with(|core| (core.end_run(run, progress), core.settle_poll())) };
    if effects {
        effects::perform(rt);
    }
    answer.map(|()| run.idle)
}

/// The time a caller gave, or the clock's, which may call nothing meanwhile.
fn instant(rt: &Runtime, call: Signature, now: u64) -> Answer<Time> {
    let clock = match rt.hooks.clock.now {
        Some(clock) if now == ASX_NOW => clock,
        _ => return Ok(Time::from_nanos(now)),
    };
    // SAFETY: rule 3 for the core; the hook was given together with its pointer.
    let told = unsafe {
        rt.with(|core| core.may_run(call))?;
        rt.keep_out(|| clock(rt.hooks.clock.state))
    };
    // The end of time would fire everything, and nothing could come after it.
    if told == ASX_NONE { Err(Status::CapabilityDenied) } else { Ok(Time::from_nanos(told)) }
}

/// Ends whatever lives, without a grace: cleanup stacks and finalizers run as far as they can. By
/// who has gone inside, and is not inside of a poll.
pub(crate) fn wind_down(rt: &Runtime) {
    // SAFETY: rule 3: no callback runs now.
    let Some(bound) = (unsafe { rt.with(Core::begin_end) }) else { return };
    run(rt, bound);
    // SAFETY: rule 3: the last callback has returned.
    unsafe { rt.with(Core::ended) }
}

fn run(rt: &Runtime, bound: Bound) -> Run {
    let mut run = Run { polls: 0, last: None, idle: false };
    while run.polls < bound.polls {
        // SAFETY: rule 3: no callback runs now.
        let next = unsafe { rt.with(|core| core.begin_poll(rt)) };
        let turn = match next {
            Next::Poll(turn) => turn,
            Next::Wait(until) => {
                // SAFETY: rule 3: no callback runs now.
                let idle = || unsafe { rt.with(|core| core.is_idle(&rt.mailbox, until)) };
                run.idle = !bound.timers || idle();
                return run;
            }
        };
        let end = rt.let_in(|| poll(rt, turn.handle, turn.body));
        // SAFETY: rule 3: the callback has returned.
        let effects = unsafe { rt.with(|core| core.end_poll(turn.task, turn.kept, end)) };
        if effects {
            effects::perform(rt);
        }
        run.polls += 1;
        run.last = Some((turn.task, turn.lane));
    }
    // SAFETY: rule 3: no callback runs now.
    run.idle = unsafe { rt.with(|core| core.is_idle(&rt.mailbox, core.world.next_wake())) };
    run
}

fn poll(rt: &Runtime, task: AsxTaskId, body: AsxBody) -> i32 {
    let rt = core::ptr::from_ref(rt).cast_mut().cast::<AsxRuntime>();
    let mut cx = AsxCx { rt, task };
    match body.poll {
        // SAFETY: given together by the program; nothing of the core is borrowed (rule 3). The
        // context lives until the callback returns.
        Some(poll) => unsafe { poll(&raw mut cx, body.ctx) },
        None => ASX_POLL_READY,
    }
}

impl Core {
    /// Refuses a run inside a run.
    fn may_run(&mut self, call: Signature) -> Answer {
        self.admit(call)?;
        if self.stepping || self.current.is_some() { Err(Status::Reentrant) } else { Ok(()) }
    }

    /// Begins a run of at most so many polls: how many, given the profile.
    fn begin_run(&mut self, call: Signature, rt: &Runtime, now: Time, most: u64) -> Answer<Bound> {
        self.may_run(call)?;
        self.stepping = true;
        self.note_strays(rt);
        self.refill(rt);
        // The kernel looks at its timers before each poll anyway.
        if now > self.world.now() {
            self.world.set_now(now);
        }
        self.world.allow_timers(usize::try_from(self.max_steps).unwrap_or(usize::MAX));
        Ok(Bound { polls: most.min(self.max_steps), timers: self.max_steps != ASX_NONE })
    }

    /// The root closes and nothing has any time left: how many polls that may take. Nothing if
    /// nobody has to be polled, or nobody can.
    fn begin_end(&mut self) -> Option<Bound> {
        let most = self.bodies() as u64;
        // What is outstanding is leaked by the close, and reported.
        let owes = self.world.outstanding() > 0;
        if self.broken || (most == 0 && !owes) {
            return None;
        }
        self.stepping = true;
        let root = self.world.root();
        let shutdown = Kind::Shutdown;
        self.world.close_region(root, Ask::new(shutdown), Some(Duration::ZERO)).ok()?;
        // What a finalizer still makes is not counted: it may have no end.
        Some(Bound { polls: most.saturating_mul(shutdown.cleanup().polls), timers: false })
    }

    /// Nothing is polled any more: whoever listens is told what was not.
    fn ended(&mut self) {
        self.stepping = false;
        self.collect();
        let cut = self.world.cleanups_cut() + self.bodies() as u64;
        if cut > 0 {
            self.tell(Line::CutOff(cut));
        }
    }

    fn end_run(&mut self, run: Run, progress: Look<AsxProgress>) -> Answer {
        self.stepping = false;
        if !run.idle {
            self.overruns += 1;
        }
        if !progress.is_wanted() {
            return Ok(());
        }
        progress.set(AsxProgress {
            struct_size: 0,
            idle: i32::from(run.idle),
            polls: run.polls,
            next_deadline: self.next_deadline().map_or(ASX_NONE, Time::as_nanos),
            last_task: run.last.map_or(AsxTaskId::NONE, |(task, _)| self.task_handle(task)),
            last_lane: run.last.map_or(-1, |(_, lane)| lane as i32),
            reserved: 0,
        })
    }

    /// Whom to poll next. Part of the loop that asks, so that the answer is not written and read
    /// again.
    #[cfg_attr(feature = "inline", inline(always))]
    fn begin_poll(&mut self, rt: &Runtime) -> Next {
        self.feed_journal(rt);
        let mailbox = &rt.mailbox;
        self.before_step(mailbox);
        let now = self.world.now();
        match self.world.next_alone(now, &mut self.choose) {
            Ok(Step::Poll { task, lane, .. }) => match self.turn(mailbox, task, lane) {
                Some(turn) => Next::Poll(turn),
                None => Next::Wait(self.world.next_wake()),
            },
            Ok(Step::Idle { until }) => Next::Wait(until),
            Err(_) => Next::Wait(self.world.next_wake()),
        }
    }

    #[cfg_attr(feature = "inline", inline(always))]
    fn turn(&mut self, mailbox: &Mailbox, task: TaskId, lane: Lane) -> Option<Turn> {
        let kept = self.world.take_payload(task)?;
        let (body, known) = self.body(kept)?;
        // Of a known task the world outside was told when it was made.
        if known != Some(task) {
            self.belongs(kept, task);
            mailbox.publish(task.0);
        }
        (self.current, self.current_body) = (Some(task), Some(kept));
        self.error = None;
        self.polls += 1;
        Some(Turn { task, handle: self.task_handle(task), lane, kept, body })
    }

    /// Outside wakes and watchdogs, before the kernel decides.
    fn before_step(&mut self, mailbox: &Mailbox) {
        if mailbox.is_pending() {
            let world = &mut self.world;
            let delivered = &mut self.external_wakes;
            mailbox.drain(|task| {
                let answer = world.wake(TaskId(task));
                *delivered += u64::from(answer.is_ok());
                answer != Err(Status::ResourceExhausted)
            });
        }
        self.expire_watchdogs();
    }

    /// The callback has answered; whether effects are due.
    #[inline]
    pub(crate) fn end_poll(&mut self, task: TaskId, body: Body, end: i32) -> bool {
        match end {
            ASX_POLL_PENDING => self.polled(task, body, PollEnd::Pending),
            end => self.end_part(task, body, end),
        }
    }

    /// It has answered that it is over.
    #[inline(never)]
    fn end_part(&mut self, task: TaskId, body: Body, end: i32) -> bool {
        let end = match end {
            ASX_POLL_READY => PollEnd::Ready,
            ASX_POLL_CANCELLED => PollEnd::Cancelled,
            ASX_POLL_ERROR => PollEnd::Failed(
                self.error
                    .take()
                    .unwrap_or_else(|| TaskError { status: None, message: "failed".into() }),
            ),
            _ => PollEnd::Panicked(self.error.take().map_or("panicked".into(), |e| e.message)),
        };
        self.polled(task, body, end)
    }

    #[cfg_attr(feature = "inline", inline(always))]
    fn polled(&mut self, task: TaskId, body: Body, end: PollEnd) -> bool {
        let left = self.borrows.poll_ended();
        for _ in 0..left {
            let handle = self.task_handle(task);
            let task = self.current_handle();
            let word = (handle.bits, handle.generation);
            self.ghosts.note(ASX_GHOST_BORROW_ACROSS_POLL, 0, word, task);
        }
        (self.current, self.current_body) = (None, None);
        let pending = end == PollEnd::Pending;
        match self.world.polled(task, body, end) {
            Ok(unused) => {
                let _ = unused.and_then(|unused| self.drop_body(unused));
            }
            Err(_) => self.broken = true,
        }
        if !pending {
            self.after_poll(task);
        }
        self.settle_poll()
    }

    /// Whether nothing can run now, the kernel's next wake being known.
    fn is_idle(&mut self, mailbox: &Mailbox, until: Option<Time>) -> bool {
        let due = self.deadline_with(until).is_some_and(|next| next <= self.world.now());
        !mailbox.is_pending() && !due && self.world.scheduler().total() == 0
    }
}
