//! A value behind a pool of permits: all unsafe code of the locks.
//!
//! A [`Slot`] has [`FULL`] permits. Whoever holds all of them may change the value ([`Sole`]);
//! whoever holds one may read it ([`Part`]). A mutex is a slot of which everybody takes all.
//!
//! # Safety rules
//!
//! 1. The value is reached only through `Sole`, `Part`, `&mut Slot` and `Slot`.
//! 2. A slot's pool starts with `FULL` permits and never gets more. A [`Held`] is made only from
//!    permits that were taken out of its home's pool, and its home never leads elsewhere. So while
//!    a held `FULL` exists there is no other `Held` of that slot with a permit.
//! 3. A `Sole` keeps its `FULL` permits and a `Part` its one as long as it exists; a reference to
//!    the value borrows the guard, and a mutable one borrows it mutably.
//! 4. Taking and giving permits synchronise: what one holder did to the value happens before what
//!    the next one does.
//! 5. A shared `Mutex` lets threads have the value in turns (`T: Send`), a shared `RwLock` also at
//!    the same time (`T: Sync`). A shared guard shares the value: guards say so by a phantom `T`.
//!
//! So neither a lock nor a guard lets a `Cell` be used by two threads at once:
//!
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: T) {}
//! share(asx_sync::sync::Mutex::new(std::cell::Cell::new(0)).try_lock().unwrap());
//! ```
//!
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: T) {}
//! share(asx_sync::sync::RwLock::new(std::cell::Cell::new(0)));
//! ```
//!
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: T) {}
//! share(asx_sync::sync::Mutex::new(std::rc::Rc::new(0)));
//! ```

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::claim::{HasPool, Held, RegionRef};
use super::pool::Pool;
use super::{Mutex, RwLock};

/// All permits of a slot: as many can read at once.
pub(super) const FULL: usize = (u32::MAX >> 3) as usize;

pub(super) struct Slot<T: ?Sized> {
    pool: Pool,
    value: UnsafeCell<T>,
}

// SAFETY: rules 4 and 5: one holder at a time, since a mutex only ever makes `Sole`s.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: rules 4 and 5.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> Slot<T> {
    const_fn! {
        #[track_caller]
        pub(super) fn new(value: T) -> Slot<T> {
            Slot { pool: Pool::new(FULL, FULL), value: UnsafeCell::new(value) }
        }
    }

    pub(super) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Slot<T> {
    pub(super) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

/// What has a slot.
pub(super) trait HasSlot {
    type Value: ?Sized;
    fn slot(&self) -> &Slot<Self::Value>;
}

impl<L: HasSlot + ?Sized> HasPool for L {
    fn pool(&self) -> &Pool {
        &self.slot().pool
    }
}

/// The value, for one.
pub(super) struct Sole<H: RegionRef<Target: HasSlot>> {
    held: Held<H>,
    value: PhantomData<<H::Target as HasSlot>::Value>,
}

impl<H: RegionRef<Target: HasSlot>> Sole<H> {
    pub(super) fn new(held: Held<H>) -> Self {
        assert_eq!(held.permits(), FULL);
        Sole { held, value: PhantomData }
    }

    /// Lets other readers in, but no writer before them.
    pub(super) fn downgrade(self) -> Part<H> {
        let mut held = self.held;
        held.keep(1);
        Part::new(held)
    }
}

impl<H: RegionRef<Target: HasSlot>> Deref for Sole<H> {
    type Target = <H::Target as HasSlot>::Value;

    fn deref(&self) -> &Self::Target {
        // SAFETY: rules 2 and 3: nobody else holds a permit, and the reference borrows this guard.
        unsafe { &*self.held.home().slot().value.get() }
    }
}

impl<H: RegionRef<Target: HasSlot>> DerefMut for Sole<H> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: rules 2 and 3: nobody else holds a permit, and the reference borrows this guard
        // mutably.
        unsafe { &mut *self.held.home().slot().value.get() }
    }
}

/// The value, for one of several.
pub(super) struct Part<H: RegionRef<Target: HasSlot>> {
    held: Held<H>,
    value: PhantomData<<H::Target as HasSlot>::Value>,
}

impl<H: RegionRef<Target: HasSlot>> Part<H> {
    pub(super) fn new(held: Held<H>) -> Self {
        assert_eq!(held.permits(), 1);
        Part { held, value: PhantomData }
    }
}

impl<H: RegionRef<Target: HasSlot>> Deref for Part<H> {
    type Target = <H::Target as HasSlot>::Value;

    fn deref(&self) -> &Self::Target {
        // SAFETY: rules 2 and 3: nobody holds all permits, and the reference borrows this guard.
        unsafe { &*self.held.home().slot().value.get() }
    }
}
