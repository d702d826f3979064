//! A recording of the calls a scenario makes, and the C program that makes them again.
//!
//! Runs are deterministic, so handles are too: the program calls with the very numbers that the
//! recorded run used, wants the same statuses, and in the end the same digest. Which calls a poll
//! makes, and what it answers, is known by the poll's number.

use crate::c::C;
use crate::host::Host;
use crate::run::run_once;
use crate::scenario::Scenario;
use asx_capi::config::AsxRuntimeConfig;
use asx_capi::{
    AsxBody, AsxChannelId, AsxChannelReceiver, AsxChannelSender, AsxCx, AsxObligationId,
    AsxProgress, AsxRegionId, AsxRegionOptions, AsxRuntime, AsxSendPermit, AsxTaskId,
    AsxTaskOptions, AsxTimerHandle, AsxWhen,
};
use core::ffi::{CStr, c_char, c_void};
use core::fmt::Write as _;
use std::cell::RefCell;
use std::sync::Arc;

thread_local! {
    /// The recording under way on this thread, if any.
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Tape {
    config: Vec<String>,
    calls: Vec<String>,
    /// The calls of each poll, then what it answered.
    polls: Vec<(Vec<String>, i32)>,
    polling: bool,
}

/// Whether somebody records.
pub(super) fn records() -> bool {
    TAPE.with_borrow(Option::is_some)
}

/// Notes a call and what it answered.
pub(super) fn note(status: i32, function: &str, args: &str) {
    TAPE.with_borrow_mut(|tape| {
        let Some(tape) = tape else { return };
        let line = format!("WANT({status}, {function}({args}));");
        match tape.polls.last_mut() {
            Some((calls, _)) if tape.polling => calls.push(line),
            _ => tape.calls.push(line),
        }
    });
}

/// A poll begins.
pub(super) fn poll_begins() {
    TAPE.with_borrow_mut(|tape| {
        if let Some(tape) = tape {
            tape.polls.push((Vec::new(), 0));
            tape.polling = true;
        }
    });
}

/// A poll has answered.
pub(super) fn poll_ends(answer: i32) {
    TAPE.with_borrow_mut(|tape| {
        if let Some(tape) = tape {
            tape.polling = false;
            if let Some((_, end)) = tape.polls.last_mut() {
                *end = answer;
            }
        }
    });
}

/// The configuration of the run.
pub(super) fn configured(config: &AsxRuntimeConfig) {
    macro_rules! fields {
        ($($field:ident),* $(,)?) => {
            vec![$(format!("config.{} = {}u;", stringify!($field), config.$field)),*]
        };
    }
    let lines = fields!(
        seed,
        max_tasks,
        max_regions,
        max_obligations,
        max_channels,
        max_timers,
        max_ready,
        max_timed,
        max_cancel,
        max_memory,
        max_trace,
        trace_full,
        tie_break,
        cancel_streak_limit,
        max_wheel_ns,
        max_timer_ns,
        coalesce_ns,
        coalesce_group,
        first_timer_id,
        first_timer_generation,
        chain_depth,
        chain_bytes,
    );
    TAPE.with_borrow_mut(|tape| {
        if let Some(tape) = tape {
            tape.config = lines;
        }
    });
}

/// An argument as C writes it.
pub(super) trait Show {
    fn show(&self) -> String;
}

macro_rules! numbers {
    ($($type:ty => $suffix:literal),*) => {$(
        impl Show for $type {
            fn show(&self) -> String {
                format!("{self}{}", $suffix)
            }
        }
    )*};
}

numbers!(i32 => "", u32 => "u", u64 => "u", usize => "u");

macro_rules! handles {
    ($($type:ident $name:literal $first:ident),*) => {$(
        impl Show for $type {
            fn show(&self) -> String {
                format!("(asx_{}){{ {}u, {}u }}", $name, self.$first, self.generation)
            }
        }

        impl Show for &mut $type {
            fn show(&self) -> String {
                format!("&out_{}", $name)
            }
        }

        impl Show for *const $type {
            fn show(&self) -> String {
                // SAFETY: NULL, or a handle that lives through the call that is noted.
                let handle = unsafe { self.as_ref() };
                handle.map_or("NULL".to_owned(), |handle| format!("&{}", handle.show()))
            }
        }
    )*};
}

handles!(
    AsxRegionId "region_id" bits, AsxTaskId "task_id" bits, AsxObligationId "obligation_id" bits,
    AsxTimerHandle "timer_handle" id
);

/// A handle that is shown with the runtime of the program: what is in there before the call, which
/// a call that fills it in does not need.
macro_rules! with_runtime {
    ($($type:ident $name:literal $own:ident => $handle:expr;)*) => {$(
        impl Show for &mut $type {
            fn show(&self) -> String {
                let $own = &**self;
                format!("&(asx_{}){{ rt, {} }}", $name, $handle)
            }
        }
    )*};
}

with_runtime! {
    AsxCx "cx" cx => cx.task.show();
    AsxChannelSender "channel_sender" own => channel(own.channel);
    AsxChannelReceiver "channel_receiver" own => channel(own.channel);
    AsxSendPermit "send_permit" own => format!("{}u, {}u", own.bits, own.generation);
}

fn channel(channel: AsxChannelId) -> String {
    format!("{{ {}u, {}u }}", channel.bits, channel.generation)
}

macro_rules! fixed {
    ($($type:ty => $text:literal),* $(,)?) => {$(
        impl Show for $type {
            fn show(&self) -> String {
                $text.to_owned()
            }
        }
    )*};
}

fixed! {
    *mut AsxRuntime => "rt",
    AsxBody => "body",
    &mut i32 => "&out_int",
    &mut u64 => "&out_number",
    &mut AsxProgress => "NULL",
    *mut c_void => "out_bytes",
}

impl Show for AsxWhen {
    fn show(&self) -> String {
        format!("(asx_when){{ {}u, {}, 0 }}", self.ns, self.mode)
    }
}

impl Show for *const c_char {
    fn show(&self) -> String {
        if self.is_null() {
            return "NULL".to_owned();
        }
        // SAFETY: a text that lives through the call that is noted.
        let text = unsafe { CStr::from_ptr(*self) };
        let mut out = String::from("\"");
        for byte in text.to_bytes() {
            let _ = write!(out, "\\{byte:03o}");
        }
        out + "\""
    }
}

impl Show for *const c_void {
    fn show(&self) -> String {
        // SAFETY: every message of this host is eight bytes.
        let value = unsafe { self.cast::<i64>().read() };
        // The least number has no literal of its own.
        format!("&(int64_t){{ (int64_t){}u }}", value as u64)
    }
}

impl Show for &AsxRegionOptions {
    fn show(&self) -> String {
        let budget = self.budget;
        let most = self.max_children;
        format!(
            "&(asx_region_options){{ sizeof(asx_region_options), {}, {most}u, \
             {{ {}u, {}u, {}u }}, {}u, 0 }}",
            self.policy, budget.deadline, budget.poll_quota, budget.cost_quota, self.priority
        )
    }
}

impl Show for &AsxTaskOptions {
    fn show(&self) -> String {
        let budget = self.budget;
        format!(
            "&(asx_task_options){{ sizeof(asx_task_options), {}u, {{ {}u, {}u, {}u }}, ASX_NONE, \
             0, 0, ASX_NONE }}",
            self.priority, budget.deadline, budget.poll_quota, budget.cost_quota
        )
    }
}

/// A C function of this name that runs a scenario under a seed; nothing if the host cannot.
pub fn function(scenario: &Arc<Scenario>, seed: u64, name: &str) -> Option<String> {
    let mut host = C::new();
    host.can_run(scenario).ok()?;
    TAPE.with_borrow_mut(|tape| *tape = Some(Tape::default()));
    let (_, record) = run_once(&mut host, scenario, seed);
    let tape = TAPE.with_borrow_mut(Option::take)?;
    let id = &scenario.id;
    let digest = record.digest;
    let lines = |lines: &[String], indent: &str| -> String {
        lines.iter().map(|line| format!("{indent}{line}\n")).collect()
    };
    let mut polls = String::new();
    for (at, (calls, end)) in tape.polls.iter().enumerate() {
        let calls = lines(calls, "        ");
        let _ = writeln!(polls, "    case {at}:\n{calls}        return {end};");
    }
    let config = lines(&tape.config, "    ");
    let calls = lines(&tape.calls, "    ");
    Some(format!(
        "/* {id} */
static int32_t {name}_poll(asx_cx *cx, void *ctx)
{{
    asx_body body = asx_poll_with({name}_poll, ctx);
    asx_runtime *rt = cx->rt;
    (void)rt;
    (void)body;
    switch ((*(unsigned *)ctx)++) {{
{polls}    default:
        return ASX_POLL_PANICKED;
    }}
}}

static void {name}(void)
{{
    unsigned polls = 0;
    asx_runtime_config config = config_of(ASX_PROFILE_CORE);
    asx_body body = asx_poll_with({name}_poll, &polls);
    asx_runtime *rt;
    (void)body;
{config}    rt = runtime_of(&config);
{calls}    SAME(\"{id}\", digest(rt), 0x{digest:016x}u);
    OK(asx_runtime_destroy(rt));
}}
"
    ))
}
