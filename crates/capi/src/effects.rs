//! What is done after a call, when nothing is borrowed: drop callbacks, reports, lines.
//!
//! Everything here calls the program. While it does the runtime is busy and calls into it answer
//! REENTRANT: a program that wants more than to note something does it later.
//!
//! The unsafe code follows rule 3 of `guard`: the core is taken for one effect at a time and is
//! free while the program runs. Callbacks get the pointers that were given together with them.

use crate::abi::{ASX_WATCHDOG_FORCED, AsxBody, AsxRuntime, AsxTaskId, AsxTransfer};
use crate::config::{ASX_LOG_INFO, ASX_LOG_WARN, AsxGhost, Hooks, Line};
use crate::guard::{Cut, Runtime};
use crate::state::Core;
use core::ffi::{CStr, c_char};
use core::fmt::{self, Write as _};
use core::mem::MaybeUninit;

enum Effect {
    Watchdog(AsxTaskId, i32),
    Drop(AsxBody),
    Ghost(AsxGhost),
    Line(Line),
}

impl Core {
    fn next_effect(&mut self) -> Option<Effect> {
        if let Some((task, stage)) = self.watched.pop_front() {
            return Some(Effect::Watchdog(task, stage));
        }
        if let Some(body) = self.dropped.pop_front() {
            return Some(Effect::Drop(body));
        }
        if let Some(ghost) = self.ghosts.take_report() {
            return Some(Effect::Ghost(ghost));
        }
        if let Some(line) = self.lines.pop_front() {
            return Some(Effect::Line(line));
        }
        // Last: drop callbacks may use the memory of their region.
        if self.reclaim() { self.ghosts.take_report().map(Effect::Ghost) } else { None }
    }
}

/// Does everything that is due. By who has gone inside, with the core free.
pub(crate) fn perform(rt: &Runtime) {
    // SAFETY: rule 3: the core is free here. What an effect holds is dropped inside.
    while let Some(effect) = unsafe { rt.with(Core::next_effect) } {
        rt.keep_out(|| do_one(rt, &effect));
    }
}

fn do_one(rt: &Runtime, effect: &Effect) {
    match effect {
        Effect::Drop(AsxBody { drop: Some(drop), ctx, .. }) => {
            // SAFETY: given together by the program; this is the one call.
            unsafe { drop(*ctx) }
        }
        Effect::Watchdog(task, stage) => {
            if let Some(hook) = rt.hooks.watchdog {
                let own = core::ptr::from_ref(rt).cast_mut().cast::<AsxRuntime>();
                // SAFETY: given together by the program.
                unsafe { hook(rt.hooks.hook, own, *task, *stage) }
            }
        }
        Effect::Ghost(ghost) => {
            if let Some(hook) = rt.hooks.ghost {
                // SAFETY: given together by the program; the report lives through the call.
                unsafe { hook(rt.hooks.hook, ghost) }
            }
        }
        Effect::Line(Line::Watchdog(task, stage)) => {
            let what = match *stage {
                ASX_WATCHDOG_FORCED => "did not stop in time and is ended by force",
                _ => "was not kicked in time",
            };
            log(rt, ASX_LOG_WARN, format_args!("watchdog: {task} {what}"));
        }
        Effect::Line(Line::Leaked(region, obligation, place)) if cfg!(feature = "dump") => {
            let place = Place(*place);
            let text = format_args!(
                "obligation {obligation} of region {region} was not committed or aborted{place}"
            );
            log(rt, ASX_LOG_WARN, text);
        }
        Effect::Line(Line::CutOff(cut)) => {
            log(rt, ASX_LOG_WARN, format_args!("destroyed: {cut} cleanup entries were cut off"));
        }
        Effect::Line(Line::Transfer(AsxTransfer { epoch, from, to, .. })) => {
            log(rt, ASX_LOG_INFO, format_args!("transfer {epoch}: from thread {from} to {to}"));
        }
        Effect::Drop(_) | Effect::Line(Line::Leaked(..)) => {}
    }
}

/// Where a call was made, as the program said: `, reserved at FILE:LINE`.
struct Place(Option<(*const c_char, u32)>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((file, line)) = self.0.filter(|(file, _)| !file.is_null()) else { return Ok(()) };
        // SAFETY: a text that lives as long as the runtime, if an obligation was reserved under it.
        let file = unsafe { CStr::from_ptr(file) };
        write!(f, ", reserved at {}:{line}", file.to_str().unwrap_or("?"))
    }
}

/// Hands a line over, cut to a buffer, with a NUL behind it.
pub(crate) fn log(rt: &Runtime, level: i32, text: fmt::Arguments<'_>) {
    tell(&rt.hooks, level, text);
}

/// The same where there is no runtime yet.
pub(crate) fn tell(hooks: &Hooks, level: i32, text: fmt::Arguments<'_>) {
    let Some(hook) = hooks.log.filter(|_| cfg!(feature = "dump")) else { return };
    let mut line = [MaybeUninit::new(0_u8); 256];
    let room = line.len() - 1;
    let mut cut = Cut::new(line.get_mut(..room).unwrap_or_default());
    // What has no room is cut off.
    let _ = cut.write_fmt(text);
    let size = cut.written();
    // SAFETY: given together by the program; the text lives through the call.
    unsafe { hook(hooks.hook, level, line.as_ptr().cast::<c_char>(), size) }
}
