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

/// Where polls run that follow each other.
pub(crate) trait Walk {
    /// Polls one task after another on this stack. It returns where another fiber is to go on, or
    /// none; and after a poll that it has not begun by this walk, or not on a fiber.
    fn walk_here(&self, stack: Stack<'_>);
}

/// What became of a walk.
pub(crate) enum Rest {
    /// The walker has returned.
    Over,
    /// A poll was left on this fiber.
    Left(u32),
}

#[cfg(any(target_family = "wasm", miri))]
mod imp {
    use std::marker::PhantomData;

    use asx_runtime::Begun;

    use super::{Rest, Walk};

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

    pub(crate) struct AtPoints;

    pub(crate) fn at_points() -> AtPoints {
        AtPoints
    }

    pub(crate) fn start(begun: Begun) -> Option<u32> {
        begun.run();
        None
    }

    pub(crate) fn go_on(_: u32) -> Option<u32> {
        None
    }

    pub(crate) fn walk(_: Option<u32>, walker: &(impl Walk + 'static)) -> Rest {
        walker.walk_here(Stack(PhantomData));
        Rest::Over
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

    use super::{Rest, Walk};

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

    type Fiber = Coroutine<Work, Why, ()>;

    /// All fibers of a thread, by number, if they do not run; and which of them have no work.
    struct Fibers {
        all: Vec<Option<Box<Fiber>>>,
        idle: Vec<u32>,
    }

    thread_local! {
        /// The handle of the fiber on which a poll runs; null if none does.
        static RUNNING: Cell<*const Handle> = const { Cell::new(ptr::null()) };
        /// Without a destructor: [`forget`] ends those without work.
        static FIBERS: RefCell<ManuallyDrop<Fibers>> =
            const { RefCell::new(ManuallyDrop::new(Fibers { all: Vec::new(), idle: Vec::new() })) };
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

    /// Runs a poll on a stack of its own: nothing if it is over, the number of its fiber if it was
    /// left.
    pub(crate) fn start(begun: Begun) -> Option<u32> {
        let _points = at_points();
        let Some(number) = idle().or_else(new) else {
            begun.run();
            return None;
        };
        left(enter(number, Work::Poll(begun)))
    }

    /// Returns to a poll that was left; the same.
    pub(crate) fn go_on(number: u32) -> Option<u32> {
        let _points = at_points();
        left(enter(number, Work::Same))
    }

    /// Returns to the poll that was left on this fiber, or else has the walker begin on one that
    /// has no work. To be called with [`at_points`].
    pub(crate) fn walk(number: Option<u32>, walker: &(impl Walk + 'static)) -> Rest {
        if let Some(number) = number {
            return enter(number, Work::Same);
        }
        let Some(number) = idle().or_else(new) else {
            walker.walk_here(Stack(None));
            return Rest::Over;
        };
        enter(number, Work::Walk(ptr::from_ref(walker)))
    }

    fn left(rest: Rest) -> Option<u32> {
        match rest {
            Rest::Over => None,
            Rest::Left(number) => Some(number),
        }
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
        let others = || FIBERS.with_borrow(|it| it.all.len() - it.idle.len() > 1);
        is_running() && !std::thread::panicking() && others()
    }

    /// Whether the caller is on the stack of a fiber, in a poll.
    #[inline]
    pub(crate) fn is_running() -> bool {
        !RUNNING.get().is_null()
    }

    #[inline]
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
        let fiber = Box::new(Coroutine::with_stack(stack, body));
        FIBERS.with_borrow_mut(|fibers| fibers.all.push(Some(fiber)));
        u32::try_from(number).ok()
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

    /// Goes to a fiber, until it is left.
    #[inline]
    fn enter(number: u32, work: Work) -> Rest {
        let at = number as usize;
        let fiber = FIBERS.with_borrow_mut(|fibers| fibers.all[at].take());
        let Some(mut fiber) = fiber else { return Rest::Over };
        let is_left = matches!(fiber.resume(work), CoroutineResult::Yield(Why::Left));
        FIBERS.with_borrow_mut(|fibers| {
            fibers.all[at] = Some(fiber);
            if is_left {
                return Rest::Left(number);
            }
            fibers.idle.push(number);
            Rest::Over
        })
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
            // Nothing to do: its body returns.
            fiber.resume(Work::End);
        }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
pub(crate) use imp::can_wait;
pub(crate) use imp::{EXISTS, Stack, at_points, forget, go_on, is_running, leave, start, walk};
