//! What is done after a call, when nothing is borrowed: drop callbacks, reports, lines.
//!
//! Everything here calls the program. While it does the runtime is busy and calls into it answer
//! REENTRANT: a program that wants more than to note something does it later.
//!
//! The unsafe code follows rule 3 of `guard`: the core is taken for one effect at a time and is
//! free while the program runs. Callbacks get the pointers that were given together with them.

use crate::abi::{AsxBody, AsxTask};
use crate::config::{AsxGhost, Line};
use crate::guard::AsxRuntime;
use crate::state::Core;
use core::ffi::c_char;

enum Effect {
    Watchdog(AsxTask, i32),
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
pub(crate) fn perform(rt: &AsxRuntime) {
    // SAFETY: rule 3: the core is free here. What an effect holds is dropped inside.
    while let Some(effect) = unsafe { rt.with(Core::next_effect) } {
        rt.keep_out(|| do_one(rt, &effect));
    }
}

fn do_one(rt: &AsxRuntime, effect: &Effect) {
    match effect {
        Effect::Drop(AsxBody { drop: Some(drop), ctx, .. }) => {
            // SAFETY: given together by the program; this is the one call.
            unsafe { drop(*ctx) }
        }
        Effect::Watchdog(task, stage) => {
            if let Some(hook) = rt.hooks.watchdog {
                let own = core::ptr::from_ref(rt).cast_mut();
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
        Effect::Line((level, text)) => log(rt, *level, text.as_bytes()),
        Effect::Drop(_) => {}
    }
}

/// Hands a line over, cut to a buffer, with a NUL behind it.
fn log(rt: &AsxRuntime, level: i32, text: &[u8]) {
    let Some(hook) = rt.hooks.log else { return };
    let mut line = [0_u8; 256];
    let size = text.len().min(line.len() - 1);
    for (to, from) in line.iter_mut().zip(text.iter().take(size)) {
        *to = *from;
    }
    // SAFETY: given together by the program; the text lives through the call.
    unsafe { hook(rt.hooks.hook, level, line.as_ptr().cast::<c_char>(), size) }
}
