//! The host `c`: scenarios through the functions of the C library.
//!
//! Everything goes through the exported `asx_*` functions, as a C program would call them; nothing
//! of the world behind them is touched. A scripted task is a context pointer and a poll callback.
//! What the callback shares with the script is behind a lock that is not held while the library
//! runs.
//!
//! ```text
//!  op -> interpreter -> asx_* ; asx_step -> poll callback -> BodyRunner -> interpreter -> asx_* ..
//! ```

mod api;
mod events;
mod queries;
mod support;
mod tape;

pub use tape::function;

use crate::api::{Caller, HostApi as _, Polled, Scripted};
use crate::body::{BodyEnd, BodyRunner, TaskOps};
use crate::book::Book;
use crate::host::{Failure, Host, Record, Reply};
use crate::interpreter;
use crate::scenario::{Op, Scenario, ScriptStep, Settings};
use asx_capi::config::{
    ASX_FLAG_POOL, ASX_FLAG_STRICT, ASX_PROFILE_AUTOMOTIVE, ASX_PROFILE_CORE, ASX_PROFILE_EMBEDDED,
    ASX_PROFILE_HFT, ASX_TIE_FIFO, ASX_TIE_SEEDED, ASX_TIE_TASK_KEY, ASX_TRACE_OVERWRITE,
    ASX_TRACE_REFUSE, AsxRuntimeConfig,
};
use asx_capi::*;
use asx_kernel::journal::WhenFull;
use asx_kernel::lanes::TieBreak;
use asx_kernel::status::Status;
use asx_kernel::time::nanos;
use asx_kernel::wheel::TimerHandle;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::task::Poll;
use std::ffi::CString;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// Calls a function of the library; its status as a result.
macro_rules! ask {
    ($module:ident::$function:ident($($arg:expr),* $(,)?)) => {{
        // SAFETY: the runtime lives as long as its `Shared`; the pointers are to values that live
        // through the call, and bodies are boxed scripts that `drop_script` frees.
        let number = unsafe { asx_capi::$module::$function($($arg),*) };
        crate::c::answer(number)
    }};
}
use ask;

/// The same, and notes it for the recording, if there is one: arguments are then looked at again
/// after the call, and must be the same.
macro_rules! call {
    ($module:ident::$function:ident($($arg:expr),* $(,)?)) => {{
        let answer = crate::c::ask!($module::$function($($arg),*));
        let number = answer.err().unwrap_or(asx_kernel::status::Status::Ok).number();
        if crate::c::tape::records() {
            let shown = [$(crate::c::tape::Show::show(&$arg)),*].join(", ");
            crate::c::tape::note(number, stringify!($function), &shown);
        }
        answer
    }};
}
use call;

/// A status as a result.
fn answer(number: AsxStatus) -> Result<(), Status> {
    match Status::from_number(number).unwrap_or(Status::Internal) {
        Status::Ok => Ok(()),
        status => Err(status),
    }
}

/// The C library.
pub struct C {
    shared: Option<Rc<Shared>>,
    name: &'static str,
    profile: i32,
}

impl C {
    /// The profiles, by the name of the host that runs each.
    pub const PROFILES: [(&'static str, i32); 4] = [
        ("c", ASX_PROFILE_CORE),
        ("c-embedded", ASX_PROFILE_EMBEDDED),
        ("c-hft", ASX_PROFILE_HFT),
        ("c-automotive", ASX_PROFILE_AUTOMOTIVE),
    ];

    /// The host of that name, with nothing in it.
    pub fn named(name: &str) -> Option<C> {
        let (name, profile) = C::PROFILES.into_iter().find(|(host, _)| *host == name)?;
        Some(C { shared: None, name, profile })
    }

    /// The host of the profile without limits.
    pub fn new() -> C {
        C::default()
    }

    /// Destroys the runtime, and with it the scripts, which know their `Shared`.
    fn end(&mut self) {
        if let Some(shared) = self.shared.take() {
            let _ = ask!(runtime::asx_runtime_destroy(shared.rt));
        }
    }
}

/// The name of a profile in the header.
fn profile_name(profile: i32) -> &'static str {
    match profile {
        ASX_PROFILE_EMBEDDED => "embedded",
        ASX_PROFILE_HFT => "hft",
        ASX_PROFILE_AUTOMOTIVE => "automotive",
        _ => "core",
    }
}

impl Default for C {
    fn default() -> C {
        let [(name, profile), ..] = C::PROFILES;
        C { shared: None, name, profile }
    }
}

impl Host for C {
    fn name(&self) -> &'static str {
        self.name
    }

    fn can_run(&self, scenario: &Scenario) -> Result<(), String> {
        support::can_run(scenario)
    }

    fn hindrance(&self, _scenario: &Scenario, step: &ScriptStep) -> Option<&'static str> {
        support::hindrance(step)
    }

    fn profile(&self) -> Option<&'static str> {
        Some(profile_name(self.profile))
    }

    fn start(&mut self, scenario: &Arc<Scenario>, seed: u64) {
        self.end();
        self.shared = Shared::start(scenario, seed, self.profile).ok();
    }

    fn apply(&mut self, op: &Op) -> Reply {
        let Some(shared) = &mut self.shared else { return Status::Internal.into() };
        interpreter::apply(shared, op)
    }

    fn take_failures(&mut self) -> Vec<Failure> {
        let shared = self.shared.as_ref();
        shared.map(|shared| core::mem::take(&mut shared.book().failures)).unwrap_or_default()
    }

    fn check(&self) -> Result<(), String> {
        self.shared.as_ref().map_or(Ok(()), |shared| shared.check())
    }

    fn record(&self) -> Record {
        self.shared.as_ref().map(interpreter::record).unwrap_or_default()
    }
}

/// What a task is to this host: what its context pointer points to.
struct Script {
    shared: Rc<Shared>,
    own: Scripted,
    /// The sleep it is in.
    sleep: Option<TimerHandle>,
}

/// A runtime with names.
struct Shared {
    scenario: Arc<Scenario>,
    seed: u64,
    rt: *mut AsxRuntime,
    book: Mutex<Book<Rc<Shared>>>,
}

impl Drop for C {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn start(scenario: &Arc<Scenario>, seed: u64, profile: i32) -> Result<Rc<Shared>, Status> {
        let config = config(&scenario.config, seed, profile)?;
        tape::configured(&config);
        let mut rt = null_mut();
        ask!(runtime::asx_runtime_create(&config, &mut rt))?;
        let scenario = Arc::clone(scenario);
        let shared = Rc::new(Shared { scenario, seed, rt, book: Mutex::default() });
        let root = shared.root()?;
        shared.book().bind_region("root", root);
        Ok(shared)
    }

    /// A body for the library: a boxed script.
    fn body(self: &Rc<Self>, own: Scripted) -> AsxBody {
        let script = Box::new(Script { shared: Rc::clone(self), own, sleep: None });
        let ctx = Box::into_raw(script).cast::<c_void>();
        AsxBody { poll: Some(poll_script), ctx, drop: Some(drop_script) }
    }

    fn check(&self) -> Result<(), String> {
        let mut text = vec![0_u8; 4096];
        let room = text.len();
        let mut size = 0;
        let text_at = text.as_mut_ptr().cast();
        ask!(runtime::asx_verify(self.rt, text_at, room, &mut size)).map_err(|status| {
            let told = String::from_utf8_lossy(&text[..size.min(room - 1)]);
            format!("{}: {told}", status.name())
        })
    }
}

/// The poll callback of every script.
unsafe extern "C" fn poll_script(cx: *mut AsxCx, ctx: *mut c_void) -> i32 {
    // SAFETY: the library's, and good until this returns.
    let AsxCx { rt, task } = unsafe { *cx };
    // SAFETY: `ctx` is a boxed script, and the library polls it once at a time.
    let Script { shared, own, sleep } = unsafe { &mut *ctx.cast::<Script>() };
    let mut shared = Rc::clone(shared);
    let Scripted { name, index, runner } = own;
    tape::poll_begins();
    let known = shared.book().knows_task(task.generation);
    if !known {
        shared.book().bind_task(name, task);
    }
    let end = runner.poll(&mut InTask { shared: &mut shared, task, name, index: *index, sleep });
    let fails = |status: Option<Status>, message: &str| {
        let message = CString::new(message).unwrap_or_default();
        let status = status.map_or(-1, Status::number);
        let _ = call!(task::asx_task_set_error(rt, task, status, message.as_ptr()));
    };
    let answer = match end {
        BodyEnd::Pending => ASX_POLL_PENDING,
        BodyEnd::Done => ASX_POLL_READY,
        BodyEnd::Cancelled => ASX_POLL_CANCELLED,
        BodyEnd::Panicked(message) => {
            fails(None, &message);
            ASX_POLL_PANICKED
        }
        BodyEnd::Failed { status, message } => {
            fails(status, &message);
            ASX_POLL_ERROR
        }
    };
    tape::poll_ends(answer);
    answer
}

/// The drop callback of every script.
unsafe extern "C" fn drop_script(ctx: *mut c_void) {
    // SAFETY: made by `Box::into_raw` in `Shared::body`; the library calls this once.
    drop(unsafe { Box::from_raw(ctx.cast::<Script>()) });
}

/// A poll under way: the body's view of the host.
struct InTask<'a> {
    shared: &'a mut Rc<Shared>,
    task: AsxTaskId,
    name: &'a str,
    index: i64,
    sleep: &'a mut Option<TimerHandle>,
}

impl TaskOps for InTask<'_> {
    fn poll_op(&mut self, step: &ScriptStep) -> Poll<Reply> {
        let current = Polled { task: self.task, sleep: self.sleep };
        let caller = Caller { name: self.name, index: self.index, current };
        interpreter::perform(self.shared, &step.op, caller)
    }

    fn wake_self(&mut self) {
        let _ = call!(task::asx_task_wake(self.shared.rt, self.task));
    }

    fn observe(&mut self) {
        let mut cx = AsxCx { rt: self.shared.rt, task: self.task };
        let _ = call!(cx::asx_checkpoint(&mut cx));
    }

    fn shield(&mut self, on: bool) {
        let _ = match on {
            true => call!(task::asx_task_shield(self.shared.rt, self.task)),
            false => call!(task::asx_task_unshield(self.shared.rt, self.task)),
        };
    }

    fn push_cleanup(&mut self, entry: BodyRunner) -> Status {
        let own = Scripted { name: self.name.into(), index: self.index, runner: entry };
        let body = self.shared.body(own);
        let pushed = call!(task::asx_task_push_cleanup(self.shared.rt, self.task, body));
        api::given(body, pushed).err().unwrap_or(Status::Ok)
    }

    fn report(&mut self, failure: Failure) {
        self.shared.book().report(self.name, failure);
    }
}

/// Bytes of a pool in which every scenario has room: what its limits do not bound is not counted.
const POOL: u64 = 64 << 20;

/// What the scenario says, over what the profile says. Limits are the scenario's alone: by those a
/// profile may differ.
fn config(config: &Settings, seed: u64, profile: i32) -> Result<AsxRuntimeConfig, Status> {
    let limit = |limit: Option<usize>| limit.map_or(ASX_NONE, |limit| limit as u64);
    let limits = &config.limits;
    let own = AsxRuntimeConfig::of_profile(profile)?;
    let timers = &config.timers;
    let coalesce = timers.coalesce();
    Ok(AsxRuntimeConfig {
        seed,
        max_tasks: limit(limits.tasks),
        max_regions: limit(limits.regions),
        max_obligations: limit(limits.obligations),
        max_channels: limit(limits.channels),
        max_timers: limit(timers.limit),
        max_ready: limit(limits.ready_queue),
        max_timed: limit(limits.timed_queue),
        max_cancel: limit(limits.cancel_queue),
        max_memory: limit(limits.memory),
        max_trace: config.journal_capacity as u64,
        trace_full: match config.when_full.0 {
            WhenFull::Overwrite => ASX_TRACE_OVERWRITE,
            WhenFull::Refuse => ASX_TRACE_REFUSE,
        },
        tie_break: match config.tie_break.0 {
            TieBreak::Fifo => ASX_TIE_FIFO,
            TieBreak::Seeded => ASX_TIE_SEEDED,
            TieBreak::TaskKey => ASX_TIE_TASK_KEY,
        },
        cancel_streak_limit: config.cancel_streak_limit,
        max_wheel_ns: timers.max_wheel_duration.map_or(own.max_wheel_ns, nanos),
        max_timer_ns: timers.max_timer_duration.map_or(own.max_timer_ns, nanos),
        coalesce_ns: coalesce.as_ref().map_or(0, |together| nanos(together.window)),
        coalesce_group: coalesce.map_or(0, |together| together.min_group_size as u64),
        first_timer_id: timers.first_id.unwrap_or(own.first_timer_id),
        first_timer_generation: timers.first_generation.unwrap_or(own.first_timer_generation),
        chain_depth: u32::try_from(config.chain_depth).unwrap_or(u32::MAX),
        chain_bytes: u32::try_from(config.chain_bytes).unwrap_or(u32::MAX),
        watchdog_ns: ASX_NONE,
        pool_bytes: if own.flags & ASX_FLAG_POOL == 0 { 0 } else { POOL },
        max_finalizers: ASX_NONE,
        max_cleanups: ASX_NONE,
        max_borrows: ASX_NONE,
        // A strict pool must have limits.
        flags: own.flags & !ASX_FLAG_STRICT,
        ..own
    })
}
