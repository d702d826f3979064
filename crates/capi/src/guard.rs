//! The boundary: pointers, handles and threads are looked at here, before anything else is.
//!
//! `export!` declares a function of the library. Its `let` lines look at the arguments, each at
//! those it names, which is what asx_last_error says of a refusal (`error`); then the thread is
//! looked at; then the rest runs with the runtime's core. The order of refusals is thus:
//! arguments and the type of handles, affinity, and whatever the kernel finds (staleness, states,
//! limits). Staleness comes after affinity because looking it up from a wrong thread would be the
//! very race that affinity forbids.
//!
//! An `at once` line names a function that tries a short path first and gets the full call as its
//! last argument. Either the short path does everything, or it changes nothing and makes the full
//! call. It allocates nothing, calls nothing of the program and refuses nothing.
//!
//! A function whose first argument is a context, a sender, a receiver or a permit finds its runtime
//! in there; a context among the other arguments must be of the same runtime (`on`).
//!
//! Rules of the unsafe code, here and where `export!` is used:
//! 1. A runtime pointer is NULL, or came from asx_runtime_create and is not yet destroyed: what
//!    every function asks of its caller. NULL and misaligned ones are refused.
//! 2. A data pointer is NULL, or good for as many bytes as the function says. NULL where it is not
//!    allowed and misaligned ones are refused.
//! 3. The core is borrowed by one call at a time: only the owner's thread gets it (`Entry::core`,
//!    or `Runtime::glance` for what is done at once), and only while the runtime is not `busy`;
//!    the borrow ends with the call's closure. The one thing of the program that runs meanwhile is
//!    its allocator, whose calls find the runtime busy. The fields beside the core are atomics, are
//!    touched by the owner's thread only, or never change.

use crate::abi::{AsxRuntime, AsxStatus};
use crate::config::{AsxRuntimeConfig, Hooks};
use crate::effects;
use crate::error::{Checked, Fault, LastError, Named, Signature};
use crate::mailbox::Mailbox;
use crate::memory::Reserve;
use crate::state::Core;
use crate::sync::{AtomicU32, Ordering};
use crate::transfer::Owner;
use asx_kernel::ids::TaskId;
use asx_kernel::status::Status;
use asx_kernel::world::Answer;
use core::cell::{Cell, UnsafeCell};

pub(crate) use crate::arguments::{
    Cut, Out, bytes, ensure, events, has, maybe, number, other_than, put_text, read, room, text,
};
pub(crate) use crate::handles::on;
pub(crate) use crate::structs::{Look, options, prefix};
pub(crate) use crate::sync::os_thread;

/// Declares functions of the library: see the module's text. The first argument is the runtime, or
/// something that names it: `sender: *const AsxChannelSender as rt`.
macro_rules! export {
    ($(
        $(#[$doc:meta])*
        fn $name:ident(
            $own:ident $(: $own_type:ty as $rt:ident)? $(, $arg:ident: $type:ty)* $(,)?
        ) {
            $(let $pattern:pat = $check:expr;)*
            $(at once: $at_once:path;)?
            |$core:ident| $body:expr
        }
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The parameters are as stated above; `rt` is NULL or a living runtime.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $own: own_type!($($own_type)?), $($arg: $type),*
        ) -> $crate::AsxStatus {
            const SIGNATURE: $crate::error::Signature = signature!($name($own $(, $arg)*));
            at_once!([$($at_once)?] ($own: own_type!($($own_type)?) $(, $arg: $type)*) {
            // SAFETY: rules 1 and 2 of `guard`: what the caller promises.
            unsafe {
                use $crate::handles::NamesRuntime as _;
                $(let $rt = $own.runtime(); let _ = $rt;)?
                let own_rt = $own.runtime();
                $crate::guard::enter(own_rt, SIGNATURE.kept(), |entry| {
                    #[allow(unused_imports, reason = "not every function has other arguments")]
                    use $crate::handles::Claims as _;
                    let later = $crate::handles::is_later(&$own.raw())
                        $(| $crate::handles::Argument($arg).is_later())*;
                    let claims = || [
                        $own.raw(),
                        $($crate::handles::Argument($arg).raw()),*
                    ];
                    let stale = |core: &$crate::state::Core| {
                        // A build without names does not say which argument it was.
                        if !cfg!(feature = "names") {
                            return 0;
                        }
                        let at = 1_u8;
                        let found = u8::from($own.is_stale(core));
                        $(
                            let at = at + 1;
                            let stale = found == 0
                                && $crate::handles::Argument($arg).is_stale(core);
                            let found = if stale { at } else { found };
                        )*
                        _ = at;
                        found
                    };
                    $(let $pattern = {
                        const NAMED: $crate::error::Named = $crate::error::Named::in_check(
                            stringify!($check),
                            SIGNATURE,
                        );
                        $crate::guard::look(NAMED, || Ok($check))?
                    };)*
                    let $core = entry.core()?;
                    if later {
                        $core.check_claims(&claims())?;
                    }
                    let answer = $crate::guard::body(|| $body);
                    answer.map_err(|status| entry.blame($core, status, stale))
                })
            }
            })
        }
    )*};
}

/// The type of a function's first argument.
macro_rules! own_type {
    () => { *mut $crate::AsxRuntime };
    ($type:ty) => { $type };
}

/// The full call, or a short path that is tried before it. The full call is then a separate
/// function, so that the short path has a small frame.
macro_rules! at_once {
    ([] ($($args:tt)*) $in_full:block) => {
        $in_full
    };
    ([$at_once:path] ($($arg:ident: $type:ty),*) $in_full:block) => {{
        #[cfg_attr(feature = "inline", inline(never))]
        unsafe fn in_full($($arg: $type),*) -> $crate::AsxStatus $in_full
        // SAFETY: what the caller promises is passed on.
        unsafe {
            // A short path takes room and saves time.
            match cfg!(feature = "inline") {
                true => $at_once($($arg,)* in_full),
                false => in_full($($arg),*),
            }
        }
    }};
}

/// What an [`AsxRuntime`] points to.
pub(crate) struct Runtime {
    /// Who created it, or was given it.
    pub(crate) owner: Owner,
    pub(crate) hooks: Hooks,
    pub(crate) mailbox: Mailbox,
    /// Calls from wrong threads that were not reported yet.
    pub(crate) strays: AtomicU32,
    pub(crate) reserve: Reserve,
    /// The owner's.
    pub(crate) last_error: LastError,
    /// The core is borrowed, or a hook or a drop callback runs: nothing may be called. The owner's.
    busy: Cell<bool>,
    /// Of those the core is free: a hook or a drop callback runs. The owner's.
    hooked: Cell<bool>,
    /// A call was left while it had the core, which is not to be used again. The owner's.
    lost: Cell<bool>,
    core: UnsafeCell<Core>,
}

impl Runtime {
    pub(crate) fn new(
        config: &AsxRuntimeConfig,
        owner: u64,
        reserve: Reserve,
        mailbox: Mailbox,
        core: Core,
    ) -> Runtime {
        Runtime {
            owner: Owner::new(owner),
            hooks: Hooks::of(config),
            mailbox,
            strays: AtomicU32::new(0),
            reserve,
            last_error: LastError::default(),
            busy: Cell::new(false),
            hooked: Cell::new(false),
            lost: Cell::new(false),
            core: UnsafeCell::new(core),
        }
    }

    /// The runtime behind a pointer.
    ///
    /// # Safety
    /// Rule 1.
    #[inline(always)]
    pub(crate) unsafe fn of<'a>(rt: *const AsxRuntime) -> Answer<&'a Runtime> {
        let rt = rt.cast::<Runtime>();
        ensure(rt.is_aligned())?;
        // SAFETY: rule 1.
        unsafe { rt.as_ref() }.ok_or(Status::InvalidArgument)
    }

    /// The core for what a call may do at once, without going inside: it allocates nothing, lets go
    /// of nothing and calls nobody. Nothing if the caller may not have it, if the program says who
    /// calls, or if the caller has said from where.
    ///
    /// # Safety
    /// Rule 1; and by rule 3 the borrow ends before anything else is called.
    #[inline(always)]
    pub(crate) unsafe fn glance<'a>(rt: *const AsxRuntime) -> Option<&'a mut Core> {
        // SAFETY: rule 1.
        let rt = unsafe { Runtime::of(rt) }.ok()?;
        // A hook of the program's would be a call.
        let plain = rt.hooks.thread.is_none() && rt.owner.is(os_thread() as u64);
        if !plain || rt.busy.get() {
            return None;
        }
        // SAFETY: rule 3: this is the owner's thread, and nobody is inside.
        let core = unsafe { &mut *rt.core.get() };
        (!core.broken && !core.ghosts.is_placed()).then_some(core)
    }

    /// Refuses calls from other threads, and counts them.
    #[inline(always)]
    pub(crate) fn check_thread(&self) -> Answer {
        if self.owner.is(caller(&self.hooks)) { Ok(()) } else { self.strayed() }
    }

    #[cold]
    fn strayed(&self) -> Answer {
        self.strays.fetch_add(1, Ordering::Relaxed);
        Err(Status::AffinityViolation)
    }

    /// Goes inside: other calls are refused, and memory is the runtime's. Refused itself if it
    /// comes from inside of what may call nothing. On the owner's thread.
    #[inline(always)]
    pub(crate) fn occupy(&self) -> Answer {
        if self.busy.replace(true) {
            return Err(Status::Reentrant);
        }
        self.reserve.enter();
        Ok(())
    }

    /// Goes out again. By who has gone inside.
    #[inline(always)]
    pub(crate) fn vacate(&self) {
        self.reserve.leave();
        self.busy.set(false);
    }

    /// Runs something of the program's that may call the runtime. By who has gone inside.
    #[inline(always)]
    pub(crate) fn let_in<R>(&self, run: impl FnOnce() -> R) -> R {
        self.vacate();
        let result = run();
        self.busy.set(true);
        self.reserve.enter();
        result
    }

    /// Runs something of the program's that may not. By who has gone inside.
    pub(crate) fn keep_out<R>(&self, run: impl FnOnce() -> R) -> R {
        self.reserve.leave();
        self.hooked.set(true);
        let result = run();
        self.hooked.set(false);
        self.reserve.enter();
        result
    }

    /// Whatever ran was left and will not return: whether it had the core, which is lost then.
    pub(crate) fn reclaim(&self) -> bool {
        let busy = self.busy.replace(false);
        let lost = busy && !self.hooked.get();
        self.lost.set(self.lost.get() | lost);
        lost
    }

    /// Whether that was a hook or a drop callback. Asked once.
    pub(crate) fn take_hooked(&self) -> bool {
        self.hooked.replace(false)
    }

    /// Whether the core is not to be used again.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get()
    }

    /// A call was refused before it came to the core: it is over all the same.
    #[cold]
    pub(crate) fn turned_away(&self, signature: Signature, fault: Fault) {
        if self.failed(signature, fault) && self.occupy().is_ok() {
            // SAFETY: rule 3: inside.
            unsafe { self.with(|core| core.ghosts.end_call()) }
            self.vacate();
        }
    }

    /// A call has failed: before it came to the core, or inside.
    #[cold]
    #[inline(never)]
    fn refused(&self, signature: Signature, fault: Fault, inside: bool) -> AsxStatus {
        match inside {
            true => self.last_error.keep(signature, fault),
            false => self.turned_away(signature, fault),
        }
        fault.status.number()
    }

    /// Keeps a failure, if the caller is the owner: whether it is.
    pub(crate) fn failed(&self, signature: Signature, fault: Fault) -> bool {
        let stray = fault.status == Status::AffinityViolation;
        let owned = !stray && self.owner.is(caller(&self.hooks));
        if owned {
            self.last_error.keep(signature, fault);
        }
        owned
    }

    /// Runs something with the core, which is not borrowed now.
    ///
    /// # Safety
    /// Rule 3: by who has gone inside, outside any other use.
    #[inline(always)]
    pub(crate) unsafe fn with<R>(&self, f: impl FnOnce(&mut Core) -> R) -> R {
        // SAFETY: rule 3.
        f(unsafe { &mut *self.core.get() })
    }
}

/// A call under way.
pub(crate) struct Entry<'a> {
    rt: &'a Runtime,
    signature: Signature,
    inside: Cell<bool>,
}

impl<'a> Entry<'a> {
    /// The core, if the caller may have it. Once per call.
    #[allow(clippy::mut_from_ref, reason = "rule 3; handed out once")]
    #[cfg_attr(feature = "inline", inline(always))]
    #[cfg_attr(not(feature = "inline"), inline(never))]
    pub(crate) fn core(&self) -> Answer<&'a mut Core> {
        self.rt.check_thread()?;
        self.rt.occupy()?;
        self.inside.set(true);
        // SAFETY: rule 3: this is the owner's thread, and it has just gone inside.
        let core = unsafe { &mut *self.rt.core.get() };
        core.admit(self.signature)?;
        Ok(core)
    }

    /// The end of the call: its answer as a number.
    ///
    /// # Safety
    /// Rule 3: the core is not borrowed any more.
    #[cfg_attr(feature = "inline", inline(always))]
    #[cfg_attr(not(feature = "inline"), inline(never))]
    unsafe fn leave(&self, result: Result<(), Fault>) -> AsxStatus {
        if self.inside.get() {
            // SAFETY: rule 3: what the caller promises.
            let core = unsafe { &mut *self.rt.core.get() };
            let effects = core.settle(&result.map_err(Status::from));
            core.feed_journal(self.rt);
            if effects {
                effects::perform(self.rt);
            }
            self.rt.vacate();
        }
        match result {
            Ok(()) => Status::Ok.number(),
            Err(fault) => self.rt.refused(self.signature, fault, self.inside.get()),
        }
    }

    /// Whose fault it is that the call has failed after all.
    #[cold]
    pub(crate) fn blame(
        &self,
        core: &mut Core,
        status: Status,
        stale: impl FnOnce(&Core) -> u8,
    ) -> Fault {
        let stale = if status == Status::StaleHandle { stale(core) } else { 0 };
        core.blame(status, self.signature, stale)
    }
}

/// Looks at arguments: a refusal is about those that are named.
#[inline(always)]
pub(crate) fn look<T>(named: Named, check: impl FnOnce() -> Checked<T>) -> Result<T, Fault> {
    check().map_err(|bad| named.fault(bad))
}

/// Runs what a call does once its arguments are good.
#[inline(always)]
pub(crate) fn body(run: impl FnOnce() -> Answer) -> Answer {
    run()
}

/// Runs a call: the core is free again, and effects are done, before it answers.
///
/// # Safety
/// Rules 1 and 2, the latter for what `body` does with pointers.
#[inline(always)]
pub(crate) unsafe fn enter<'a>(
    rt: *mut AsxRuntime,
    signature: Signature,
    body: impl FnOnce(&Entry<'a>) -> Result<(), Fault>,
) -> AsxStatus {
    // SAFETY: rule 1.
    let Ok(rt) = (unsafe { Runtime::of(rt) }) else {
        return number(Err(Status::InvalidArgument));
    };
    let entry = Entry { rt, signature, inside: Cell::new(false) };
    let result = caught(|| body(&entry));
    // SAFETY: rule 3: the closure is over, and with it the borrow.
    unsafe { entry.leave(result) }
}

/// The answer of a call that has looked at everything itself: a failure is kept, if the caller is
/// the owner.
///
/// # Safety
/// Rule 1, if it is a failure.
pub(crate) unsafe fn answered(
    rt: *mut AsxRuntime,
    signature: Signature,
    answer: Result<(), Fault>,
) -> AsxStatus {
    if let Err(fault) = answer {
        // SAFETY: the caller's promise.
        let rt = unsafe { Runtime::of(rt) };
        let _ = rt.map(|rt| rt.failed(signature, fault));
    }
    number(answer.map_err(Status::from))
}

/// Catches panics where there is unwinding: a law was broken inside asx.
#[cfg(any(feature = "std", test))]
#[inline(always)]
pub(crate) fn caught<T, E: From<Status>>(body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    caught.unwrap_or_else(|_| Err(Status::Internal.into()))
}

/// Without unwinding a panic ends the process: there is nothing to catch.
#[cfg(not(any(feature = "std", test)))]
#[inline(always)]
pub(crate) fn caught<T, E: From<Status>>(body: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    body()
}

/// The runtime of a call that has its core.
///
/// # Safety
/// Rule 1, and on the owner's thread.
#[inline(always)]
pub(crate) unsafe fn runtime<'a>(rt: *const AsxRuntime) -> Answer<&'a Runtime> {
    // SAFETY: rule 1.
    unsafe { Runtime::of(rt) }
}

/// Lets a task be woken from outside.
///
/// # Safety
/// Rule 1, and on the owner's thread.
pub(crate) unsafe fn publish(rt: *const AsxRuntime, task: TaskId) -> Answer {
    // SAFETY: rule 1.
    unsafe { Runtime::of(rt)? }.mailbox.publish(task.0);
    Ok(())
}

/// Who calls.
#[inline(always)]
pub(crate) fn caller(hooks: &Hooks) -> u64 {
    match hooks.thread {
        // SAFETY: rule 2: the hook and its pointer were given together.
        Some(thread) => unsafe { thread(hooks.hook) },
        None => os_thread() as u64,
    }
}
