//! Polls on stacks of their own, so that one can be left in the middle while others run.
//!
//! A [`start`]ed poll runs until it is over or [`leave`]s its stack; [`go_on`] returns to it. All
//! of that happens on one thread: a fiber is a stack, not a thread. Stacks are kept for the polls
//! that follow.
//!
//! Where there are no such stacks (WebAssembly, Miri) a poll runs on the caller's and cannot be
//! left.
//!
//! # Rule
//! 1. [`RUNNING`] is set by the body of a fiber to a handle that lives as long as the body, and
//!    only while that runs on its stack: [`resume`](imp::resume) puts back what was there before
//!    when the body leaves the stack, and sets it again when it returns.

#[cfg(any(target_family = "wasm", miri))]
mod imp {
    use asx_runtime::Begun;

    /// Whether polls can be left here.
    pub(crate) const EXISTS: bool = false;

    pub(crate) fn start(begun: Begun) -> Option<u32> {
        begun.run();
        None
    }

    pub(crate) fn go_on(_: u32) -> Option<u32> {
        None
    }

    pub(crate) fn leave() {}

    pub(crate) fn is_running() -> bool {
        false
    }

    pub(crate) fn forget() {}
}

#[cfg(not(any(target_family = "wasm", miri)))]
mod imp {
    use std::cell::{Cell, RefCell};
    use std::mem::ManuallyDrop;
    use std::ptr;

    use asx_runtime::{Begun, pausing};
    use corosensei::stack::DefaultStack;
    use corosensei::{Coroutine, CoroutineResult, Yielder};

    /// Whether polls can be left here.
    pub(crate) const EXISTS: bool = true;

    /// As much as threads of tests have; what is not used takes no memory.
    const STACK: usize = 2 << 20;

    /// So many polls can be left at once; the others run through.
    const MOST: usize = 4096;

    /// Why a poll has left its stack.
    enum Rest {
        /// It is over, and the stack can have another.
        Over,
        /// It is to go on later.
        Left,
    }

    type Handle = Yielder<Option<Begun>, Rest>;

    struct Fiber {
        coroutine: Coroutine<Option<Begun>, Rest, ()>,
        /// Its handle while it does not run; null before it ran first.
        handle: *const Handle,
    }

    /// All fibers of a thread, by number, if they do not run; and which of them have no poll.
    struct Fibers {
        all: Vec<Option<Fiber>>,
        idle: Vec<u32>,
    }

    thread_local! {
        /// The handle of the fiber that runs; null if none does.
        static RUNNING: Cell<*const Handle> = const { Cell::new(ptr::null()) };
        /// Without a destructor: [`forget`] ends those without a poll.
        static FIBERS: RefCell<ManuallyDrop<Fibers>> =
            const { RefCell::new(ManuallyDrop::new(Fibers { all: Vec::new(), idle: Vec::new() })) };
    }

    /// A fiber runs. What was before is again when this is dropped, by a panic too: the handle of a
    /// fiber that a panic has ended is of no use to anybody.
    struct Entered {
        outer: *const Handle,
        points: bool,
    }

    impl Entered {
        fn new(handle: *const Handle) -> Entered {
            let outer = RUNNING.replace(handle);
            Entered { outer, points: pausing::set_points(true) }
        }
    }

    impl Drop for Entered {
        fn drop(&mut self) {
            RUNNING.set(self.outer);
            pausing::set_points(self.points);
        }
    }

    /// Runs a poll on a stack of its own: nothing if it is over, the number of its fiber if it was
    /// left.
    pub(crate) fn start(begun: Begun) -> Option<u32> {
        let Some(number) = idle().or_else(new) else {
            begun.run();
            return None;
        };
        resume(number, Some(begun))
    }

    /// Returns to a poll that was left; the same.
    pub(crate) fn go_on(number: u32) -> Option<u32> {
        resume(number, None)
    }

    /// Leaves the stack of the poll that runs here, until somebody [goes on](go_on) with it. Where
    /// no fiber runs it does nothing.
    pub(crate) fn leave() {
        // SAFETY: rule 1.
        if let Some(handle) = unsafe { RUNNING.get().as_ref() } {
            let left = pausing::leave_poll();
            handle.suspend(Rest::Left);
            // SAFETY: it is this poll that was left, and whoever goes on with it is in none.
            unsafe { pausing::return_to_poll(left) };
        }
    }

    /// Whether the poll that runs here can leave its stack though it is not at a point; and whether
    /// others have: else nobody else here holds what it waits for.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(crate) fn can_wait() -> bool {
        let others = || FIBERS.with_borrow(|it| it.all.len() - it.idle.len() > 1);
        is_running() && !std::thread::panicking() && others()
    }

    /// Whether the caller is on the stack of a fiber.
    pub(crate) fn is_running() -> bool {
        !RUNNING.get().is_null()
    }

    fn idle() -> Option<u32> {
        FIBERS.with_borrow_mut(|fibers| fibers.idle.pop())
    }

    #[cold]
    fn new() -> Option<u32> {
        let number = FIBERS.with_borrow(|fibers| fibers.all.len());
        if number >= MOST {
            return None;
        }
        let stack = DefaultStack::new(STACK).ok()?;
        let coroutine = Coroutine::with_stack(stack, |handle: &Handle, mut work| {
            RUNNING.set(handle);
            while let Some(begun) = work {
                Begun::run(begun);
                work = handle.suspend(Rest::Over);
            }
        });
        let fiber = Fiber { coroutine, handle: ptr::null() };
        FIBERS.with_borrow_mut(|fibers| fibers.all.push(Some(fiber)));
        u32::try_from(number).ok()
    }

    fn resume(number: u32, work: Option<Begun>) -> Option<u32> {
        let at = number as usize;
        let mut fiber = FIBERS.with_borrow_mut(|fibers| fibers.all[at].take())?;
        let entered = Entered::new(fiber.handle);
        let rest = fiber.coroutine.resume(work);
        fiber.handle = RUNNING.get();
        drop(entered);
        let is_left = matches!(rest, CoroutineResult::Yield(Rest::Left));
        FIBERS.with_borrow_mut(|fibers| {
            fibers.all[at] = Some(fiber);
            if !is_left {
                fibers.idle.push(number);
            }
        });
        is_left.then_some(number)
    }

    /// Gives back the stacks of this thread, if no poll is left on one of them.
    pub(crate) fn forget() {
        let fibers = FIBERS.with_borrow_mut(|fibers| {
            let is_idle = fibers.idle.len() == fibers.all.len();
            let list = if is_idle { std::mem::take(&mut fibers.all) } else { Vec::new() };
            if is_idle {
                fibers.idle.clear();
            }
            list
        });
        for mut fiber in fibers.into_iter().flatten() {
            let _entered = Entered::new(fiber.handle);
            // Nothing to do: its body returns.
            fiber.coroutine.resume(None);
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub(crate) use imp::can_wait;
pub(crate) use imp::{EXISTS, forget, go_on, is_running, leave, start};
