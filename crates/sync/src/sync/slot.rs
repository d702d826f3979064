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
//! 5. A [`MappedSole`] and a [`MappedPart`] keep the permits of the guard they were made of. They
//!    point to what the user's closure made of a reference to the value, for any lifetime that this
//!    reference could have: so that is there for as long as the value is, and nobody else reaches
//!    it before the permits are given back. What a sole one points to keeps its exact type, as with
//!    `&mut`.
//! 6. A shared `Mutex` lets threads have the value in turns (`T: Send`), a shared `RwLock` also at
//!    the same time (`T: Sync`). A shared guard shares the value: guards say so by a phantom `T`.
//!
//! The following are tests of forbidden behaviour FB-201 (mutation of what is shared).
//!
//! A mapped guard can't be made to outlive what a lock holds, nor to put in something that lives
//! shorter:
//!
//! ```compile_fail,E0597
//! use asx::sync::{MappedMutexGuard, Mutex, MutexGuard};
//! let names: Mutex<(&'static str, u8)> = Mutex::new(("static", 0));
//! let guard = MutexGuard::map(names.try_lock().unwrap(), |pair| &mut pair.0);
//! {
//!     let short = String::from("short");
//!     let mut guard: MappedMutexGuard<'_, &str> = guard;
//!     *guard = &short;
//! }
//! println!("{}", names.try_lock().unwrap().0);
//! ```
//!
//! ```compile_fail,E0521
//! use asx::sync::{Mutex, MutexGuard};
//! let mut leaked = None;
//! let mutex = Mutex::new(0);
//! let _guard = MutexGuard::map(mutex.try_lock().unwrap(), |value| {
//!     leaked = Some(&mut *value);
//!     value
//! });
//! ```
//!
//! ```compile_fail,E0277
//! use asx::sync::{Mutex, MutexGuard};
//! fn share<T: Sync>(_: T) {}
//! let mutex = Mutex::new((std::cell::Cell::new(0), 0));
//! share(MutexGuard::map(mutex.try_lock().unwrap(), |pair| &mut pair.0));
//! ```
//!
//! So neither a lock nor a guard lets a `Cell` be used by two threads at once:
//!
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: T) {}
//! share(asx::sync::Mutex::new(std::cell::Cell::new(0)).try_lock().unwrap());
//! ```
//!
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: T) {}
//! share(asx::sync::RwLock::new(std::cell::Cell::new(0)));
//! ```
//!
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: T) {}
//! share(asx::sync::Mutex::new(std::rc::Rc::new(0)));
//! ```

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::claim::{HasPool, Held, RegionRef};
use super::pool::Pool;
use super::{Mutex, RwLock};

pub(super) use super::pool::FULL;

pub(super) struct Slot<T: ?Sized> {
    pool: Pool,
    value: UnsafeCell<T>,
}

// SAFETY: rules 4 and 6: one holder at a time, since a mutex only ever makes `Sole`s.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// SAFETY: rules 4 and 6.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> Slot<T> {
    #[track_caller]
    pub(super) fn new(value: T) -> Slot<T> {
        Slot { pool: Pool::new(FULL, FULL), value: UnsafeCell::new(value) }
    }

    const_fn! {
        #[track_caller]
        pub(super) fn const_new(value: T) -> Slot<T> {
            Slot { pool: Pool::const_new(FULL, FULL), value: UnsafeCell::new(value) }
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

impl<H: RegionRef<Target: HasSlot>> Sole<H> {
    /// A part of the value, which `of` leads to, if it does.
    pub(super) fn filter_map<U: ?Sized>(
        mut self,
        of: impl FnOnce(&mut <H::Target as HasSlot>::Value) -> Option<&mut U>,
    ) -> Result<MappedSole<H, U>, Self> {
        match of(&mut self).map(std::ptr::from_mut) {
            Some(part) => Ok(MappedSole { held: self.held, part }),
            None => Err(self),
        }
    }
}

/// A part of the value, for one.
pub(super) struct MappedSole<H: RegionRef, U: ?Sized> {
    held: Held<H>,
    /// Not a reference: it is not valid any more while the permits are given back.
    part: *mut U,
}

// SAFETY: rules 4 and 5: the part is used by one at a time, as if it were sent there, and what else
// is sent is the home.
unsafe impl<H: RegionRef + Send, U: ?Sized + Send> Send for MappedSole<H, U> {}
// SAFETY: rule 5: a shared guard shares the part.
unsafe impl<H: RegionRef + Sync, U: ?Sized + Sync> Sync for MappedSole<H, U> {}

impl<H: RegionRef, U: ?Sized> MappedSole<H, U> {
    /// A part of the part.
    pub(super) fn filter_map<V: ?Sized>(
        mut self,
        of: impl FnOnce(&mut U) -> Option<&mut V>,
    ) -> Result<MappedSole<H, V>, Self> {
        match of(&mut self).map(std::ptr::from_mut) {
            Some(part) => Ok(MappedSole { held: self.held, part }),
            None => Err(self),
        }
    }

    /// The same, by another way to the pool.
    pub(super) fn rehome<G: RegionRef>(self, to: impl FnOnce(&H) -> G) -> MappedSole<G, U> {
        MappedSole { held: self.held.rehome(to), part: self.part }
    }
}

impl<H: RegionRef, U: ?Sized> Deref for MappedSole<H, U> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: rules 2, 3 and 5: nobody else holds a permit, and the reference borrows this
        // guard.
        unsafe { &*self.part }
    }
}

impl<H: RegionRef, U: ?Sized> DerefMut for MappedSole<H, U> {
    fn deref_mut(&mut self) -> &mut U {
        // SAFETY: rules 2, 3 and 5: nobody else holds a permit, and the reference borrows this
        // guard mutably.
        unsafe { &mut *self.part }
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

impl<H: RegionRef<Target: HasSlot>> Part<H> {
    /// A part of the value, which `of` leads to, if it does.
    pub(super) fn filter_map<U: ?Sized>(
        self,
        of: impl FnOnce(&<H::Target as HasSlot>::Value) -> Option<&U>,
    ) -> Result<MappedPart<H, U>, Self> {
        match of(&self).map(std::ptr::from_ref) {
            Some(part) => Ok(MappedPart { held: self.held, part }),
            None => Err(self),
        }
    }
}

/// A part of the value, for one of several.
pub(super) struct MappedPart<H: RegionRef, U: ?Sized> {
    held: Held<H>,
    /// Not a reference: it is not valid any more while the permits are given back.
    part: *const U,
}

// SAFETY: rules 4 and 5: others may read the part meanwhile, so that it is shared; what else is
// sent is the home.
unsafe impl<H: RegionRef + Send, U: ?Sized + Sync> Send for MappedPart<H, U> {}
// SAFETY: rule 5: a shared guard shares the part.
unsafe impl<H: RegionRef + Sync, U: ?Sized + Sync> Sync for MappedPart<H, U> {}

impl<H: RegionRef, U: ?Sized> MappedPart<H, U> {
    /// A part of the part.
    pub(super) fn filter_map<V: ?Sized>(
        self,
        of: impl FnOnce(&U) -> Option<&V>,
    ) -> Result<MappedPart<H, V>, Self> {
        match of(&self).map(std::ptr::from_ref) {
            Some(part) => Ok(MappedPart { held: self.held, part }),
            None => Err(self),
        }
    }

    /// The same, by another way to the pool.
    pub(super) fn rehome<G: RegionRef>(self, to: impl FnOnce(&H) -> G) -> MappedPart<G, U> {
        MappedPart { held: self.held.rehome(to), part: self.part }
    }
}

impl<H: RegionRef, U: ?Sized> Deref for MappedPart<H, U> {
    type Target = U;

    fn deref(&self) -> &U {
        // SAFETY: rules 2, 3 and 5: nobody holds all permits, and the reference borrows this guard.
        unsafe { &*self.part }
    }
}
