//! Polls on stacks of their own, so that one can be left in the middle while others run.
//!
//! A poll runs until it is over or [`leave`]s its stack; later somebody returns to it. All of that
//! happens on one thread: a fiber is a stack, not a thread. Stacks are kept for the polls that
//! follow.
//!
//! A single poll is [`start`]ed, and [`go_on`] returns to it. Where many follow each other, whoever
//! chooses them is on a fiber, too: it [walks](Walk) from one poll to the next without a change of
//! stacks, until a poll is left or one is to go on that was. Only then it returns to who has had it
//! [`walk`], who goes on with another fiber.
//!
//! Where there are no such stacks (WebAssembly, Miri) a poll runs on the caller's and cannot be
//! left.
//!
//! # Rules
//! 1. [`RUNNING`] is set by [`Stack::run`] to a handle that lives as long as the body of the fiber,
//!    and only while a poll runs on its stack: [`leave`] takes it away before the stack is left and
//!    sets it again when it is returned to.
//! 2. A walker outlives every visit to a fiber on which it walks. [`walk`] borrows it while it is
//!    there. A poll that was left is known to its walker only: whoever returns to it is the walker
//!    again, in another [`walk`] or by [`go_on`], which it calls by itself.
//! 3. A stack lives until [`forget`] frees it, or a panic that comes out of it. It is in the list
//!    of those without work, or it is entered, or there is one [`Fiber`] for it, which is neither
//!    copied nor used on another thread: who keeps one keeps it for this thread
//!    ([`Own`](crate::thread_bound::Own)).

/// Where polls run that follow each other.
pub(crate) trait Walk {
    /// Polls one task after another on this stack. It returns where another fiber is to go on, or
    /// none; and after a poll that it has not begun by this walk, or not on a fiber.
    fn walk_here(&self, stack: Stack<'_>);
}

#[cfg(any(target_family = "wasm", miri))]
mod imp {
    use std::marker::PhantomData;

    use asx_runtime::Begun;

    use super::Walk;

    /// Whether polls can be left here.
    pub(crate) const EXISTS: bool = false;

    /// The caller's.
    #[derive(Clone, Copy)]
    pub(crate) struct Stack<'a>(PhantomData<&'a ()>);

    impl Stack<'_> {
        pub(crate) fn is_fiber(self) -> bool {
            false
        }

        pub(crate) fn run(self, begun: Begun) {
            begun.run();
        }
    }

    /// There is none.
    pub(crate) enum Fiber {}

    pub(crate) struct AtPoints;

    pub(crate) fn at_points() -> AtPoints {
        AtPoints
    }

    pub(crate) fn start(begun: Begun) -> Option<Fiber> {
        begun.run();
        None
    }

    pub(crate) fn go_on(fiber: Fiber) -> Option<Fiber> {
        match fiber {}
    }

    pub(crate) fn walk(_: Option<Fiber>, walker: &(impl Walk + 'static)) -> Option<Fiber> {
        walker.walk_here(Stack(PhantomData));
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
    use std::mem::{self, ManuallyDrop};
    use std::ptr::{self, NonNull};

    use asx_runtime::{Begun, pausing};
    use corosensei::stack::DefaultStack;
    use corosensei::{Coroutine, CoroutineResult, Yielder};

    use super::Walk;

    /// Whether polls can be left here.
    pub(crate) const EXISTS: bool = true;

    /// As much as threads of tests have; what is not used takes no memory.
    const STACK: usize = 2 << 20;

    /// So many polls can be left at once; the others run through.
    const MOST: usize = 4096;

    /// Why a stack was left.
    #[derive(Clone, Copy, PartialEq)]
    enum Why {
        /// Its work is over, and it can have another.
        Over,
        /// It is to go on later.
        Left,
    }

    /// What a fiber does.
    enum Work {
        /// One poll.
        Poll(Begun),
        /// As many as somebody wants.
        Walk(*const dyn Walk),
        /// It goes on with what it did.
        Same,
        /// It ends.
        End,
    }

    type Handle = Yielder<Work, Why>;

    type Body = Coroutine<Work, Why, ()>;

    /// A fiber on which a poll was left, or that has no work. One that is dropped is left for ever.
    pub(crate) struct Fiber(NonNull<Body>);

    // SAFETY: rule 3.
    unsafe impl Send for Fiber {}

    thread_local! {
        /// The handle of the fiber on which a poll runs; null if none does.
        static RUNNING: Cell<*const Handle> = const { Cell::new(ptr::null()) };
        /// How many fibers there are.
        static COUNT: Cell<usize> = const { Cell::new(0) };
        /// Those without work. Without a destructor: [`forget`] ends them.
        static IDLE: RefCell<ManuallyDrop<Vec<Fiber>>> =
            const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    }

    /// Where polls run: on a fiber, or on the caller's stack if there is none.
    #[derive(Clone, Copy)]
    pub(crate) struct Stack<'a>(Option<&'a Handle>);

    impl Stack<'_> {
        pub(crate) fn is_fiber(self) -> bool {
            self.0.is_some()
        }

        /// Runs a poll here.
        #[inline]
        pub(crate) fn run(self, begun: Begun) {
            let handle = self.0.map_or(ptr::null(), ptr::from_ref);
            let _running = Running(RUNNING.replace(handle));
            begun.run();
        }
    }

    /// What was running is again when this is dropped, by a panic too.
    struct Running(*const Handle);

    impl Drop for Running {
        #[inline]
        fn drop(&mut self) {
            RUNNING.set(self.0);
        }
    }

    /// Polls of this thread can be left at points, until this is dropped, by a panic too.
    pub(crate) struct AtPoints {
        _outer: Running,
        points: bool,
    }

    impl Drop for AtPoints {
        fn drop(&mut self) {
            pausing::set_points(self.points);
        }
    }

    /// For who is about to enter fibers. Whatever was running waits for it.
    pub(crate) fn at_points() -> AtPoints {
        let outer = Running(RUNNING.replace(ptr::null()));
        AtPoints { _outer: outer, points: pausing::set_points(true) }
    }

    /// Runs a poll on a stack of its own: nothing if it is over, its fiber if it was left.
    pub(crate) fn start(begun: Begun) -> Option<Fiber> {
        let _points = at_points();
        let Some(fiber) = idle() else {
            begun.run();
            return None;
        };
        fiber.enter(Work::Poll(begun))
    }

    /// Returns to a poll that was left; the same.
    pub(crate) fn go_on(fiber: Fiber) -> Option<Fiber> {
        let _points = at_points();
        fiber.enter(Work::Same)
    }

    /// Returns to the poll that was left on this fiber, or else has the walker begin on one that
    /// has no work: nothing if the walker has returned, the fiber if a poll was left. To be called
    /// with [`at_points`].
    #[inline]
    pub(crate) fn walk(fiber: Option<Fiber>, walker: &(impl Walk + 'static)) -> Option<Fiber> {
        if let Some(fiber) = fiber {
            return fiber.enter(Work::Same);
        }
        let Some(fiber) = idle() else {
            walker.walk_here(Stack(None));
            return None;
        };
        fiber.enter(Work::Walk(ptr::from_ref(walker)))
    }

    /// Leaves the stack of the poll that runs here, until somebody goes on with it. Where no fiber
    /// runs it does nothing.
    pub(crate) fn leave() {
        let running = RUNNING.replace(ptr::null());
        // SAFETY: rule 1.
        if let Some(handle) = unsafe { running.as_ref() } {
            let left = pausing::leave_poll();
            handle.suspend(Why::Left);
            // SAFETY: it is this poll that was left, and whoever goes on with it is in none.
            unsafe { pausing::return_to_poll(left) };
            RUNNING.set(running);
        }
    }

    /// Whether the poll that runs here can leave its stack though it is not at a point; and whether
    /// others have: else nobody else here holds what it waits for.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(crate) fn can_wait() -> bool {
        let others = || COUNT.get() - IDLE.with_borrow(|idle| idle.len()) > 1;
        is_running() && !std::thread::panicking() && others()
    }

    /// Whether the caller is on the stack of a fiber, in a poll.
    #[inline]
    pub(crate) fn is_running() -> bool {
        !RUNNING.get().is_null()
    }

    /// One without work, if there can be any more.
    #[inline]
    fn idle() -> Option<Fiber> {
        IDLE.with_borrow_mut(|idle| idle.pop()).or_else(new)
    }

    #[cold]
    fn new() -> Option<Fiber> {
        if COUNT.get() >= MOST {
            return None;
        }
        let stack = DefaultStack::new(STACK).ok()?;
        COUNT.set(COUNT.get() + 1);
        Some(Fiber(NonNull::from(Box::leak(Box::new(Coroutine::with_stack(stack, body))))))
    }

    /// What is on the stack of a fiber, below everything else.
    fn body(handle: &Handle, mut work: Work) {
        let stack = Stack(Some(handle));
        loop {
            match work {
                Work::Poll(begun) => stack.run(begun),
                // SAFETY: rule 2.
                Work::Walk(walker) => unsafe { &*walker }.walk_here(stack),
                Work::Same => {}
                Work::End => return,
            }
            work = handle.suspend(Why::Over);
        }
    }

    impl Fiber {
        /// Goes there, until it is left: nothing if its work is over.
        #[inline]
        fn enter(self, work: Work) -> Option<Fiber> {
            let freed = FreedByPanic(self.0);
            // SAFETY: rule 3.
            let rest = unsafe { &mut *self.0.as_ptr() }.resume(work);
            mem::forget(freed);
            if matches!(rest, CoroutineResult::Yield(Why::Left)) {
                return Some(self);
            }
            IDLE.with_borrow_mut(|idle| idle.push(self));
            None
        }
    }

    /// A stack that is of no use to anybody after a panic came out of it.
    struct FreedByPanic(NonNull<Body>);

    impl Drop for FreedByPanic {
        fn drop(&mut self) {
            COUNT.set(COUNT.get() - 1);
            // SAFETY: rule 3: it is entered, and so nobody else has it.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }

    /// Gives back the stacks of this thread, if no poll is left on one of them.
    pub(crate) fn forget() {
        let is_idle = |idle: &Vec<Fiber>| idle.len() == COUNT.get();
        let fibers = IDLE.with_borrow_mut(|idle| match is_idle(idle) {
            true => mem::take(&mut **idle),
            false => Vec::new(),
        });
        if !fibers.is_empty() {
            COUNT.set(0);
        }
        for Fiber(body) in fibers {
            // SAFETY: rule 3: they were in the list.
            let mut body = unsafe { Box::from_raw(body.as_ptr()) };
            // Nothing to do: it returns.
            body.resume(Work::End);
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub(crate) use imp::can_wait;
pub(crate) use imp::{
    EXISTS, Fiber, Stack, at_points, forget, go_on, is_running, leave, start, walk,
};
