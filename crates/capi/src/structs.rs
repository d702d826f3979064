//! Structs that lead with their size: a caller of an older or a newer header has another one.
//!
//! The unsafe code follows rule 2 of `guard`.

use crate::arguments::is_there;
use crate::error::{Bad, Checked, Field, Why, check};
use asx_kernel::world::Answer;
use core::mem::{MaybeUninit, align_of, size_of};

/// A place for a struct that begins with its struct_size.
pub(crate) struct Look<T>(*mut T, usize);

impl<T> Look<T> {
    /// A place that must be there.
    ///
    /// # Safety
    /// Rule 2: `struct_size` is readable, and as many bytes are writable.
    pub(crate) unsafe fn new(pointer: *mut T) -> Checked<Look<T>> {
        check(!pointer.is_null(), Why::Null)?;
        // SAFETY: the caller's promise.
        unsafe { Look::maybe(pointer) }
    }

    /// A place that may be NULL.
    ///
    /// # Safety
    /// As [`new`](Look::new), if not NULL.
    pub(crate) unsafe fn maybe(pointer: *mut T) -> Checked<Look<T>> {
        if pointer.is_null() {
            return Ok(Look(pointer, 0));
        }
        check(pointer.is_aligned(), Why::Misaligned)?;
        // SAFETY: rule 2; every such struct leads with a u32.
        let size = unsafe { pointer.cast::<u32>().read() } as usize;
        is_size((8..=4096).contains(&size) && size.is_multiple_of(align_of::<T>()))?;
        Ok(Look(pointer, size))
    }

    /// Whether somebody wants to know.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.0.is_null()
    }

    /// Writes as much of the value as the caller has room for; the rest of the room is zero.
    pub(crate) fn set(self, value: T) -> Answer {
        if self.0.is_null() {
            return Ok(());
        }
        // SAFETY: rule 2, promised at `new`.
        unsafe { write_prefix(self.0, self.1, &value)? };
        // SAFETY: as above; the size stays what the caller said.
        unsafe { self.0.cast::<u32>().write(self.1 as u32) };
        Ok(())
    }
}

/// INVALID_ARGUMENT because of what leads a struct, unless it holds.
fn is_size(holds: bool) -> Checked {
    let bad = Bad { field: Field::StructSize, ..Bad::new(Why::Size) };
    if holds { Ok(()) } else { Err(bad) }
}

/// Writes the first `size` bytes of a value, or all of it and zeros behind.
///
/// # Safety
/// Rule 2: `size` bytes are writable, if not NULL.
pub(crate) unsafe fn write_prefix<T>(to: *mut T, size: usize, value: &T) -> Checked {
    is_there(to)?;
    let own = size_of::<T>();
    let from = core::ptr::from_ref(value).cast::<u8>();
    // SAFETY: `size` bytes are writable; no more than `own` of the value are read.
    unsafe {
        core::ptr::copy_nonoverlapping(from, to.cast::<u8>(), size.min(own));
        to.cast::<u8>().add(size.min(own)).write_bytes(0, size.saturating_sub(own));
    }
    Ok(())
}

/// The part of a struct that a caller has given.
pub(crate) struct Prefix {
    from: *const u8,
    size: usize,
}

/// Looks at a struct that begins with its struct_size: at least `least` bytes; what is behind our
/// own struct must be zero.
///
/// # Safety
/// Rule 2: as many bytes are readable as the first field says.
pub(crate) unsafe fn prefix<T>(from: *const T, least: usize, most: usize) -> Checked<Prefix> {
    is_there(from)?;
    // SAFETY: rule 2; every such struct leads with a u32.
    let size = unsafe { from.cast::<u32>().read() } as usize;
    // A struct's size is a multiple of its alignment: other sizes would cut a field in two.
    is_size((least..=most).contains(&size) && size.is_multiple_of(align_of::<T>()))?;
    let from = from.cast::<u8>();
    let unknown = size_of::<T>().min(size)..size;
    for at in unknown {
        // SAFETY: rule 2: `at` is less than `size`.
        is_size(unsafe { from.add(at).read() } == 0)?;
    }
    Ok(Prefix { from, size })
}

impl Prefix {
    /// The second field of a configuration.
    pub(crate) fn profile(&self) -> Checked<i32> {
        is_size(self.size >= 8)?;
        // SAFETY: rule 2: the first eight bytes were given.
        Ok(unsafe { self.from.add(4).cast::<i32>().read_unaligned() })
    }

    /// The given fields in place of the defaults'.
    pub(crate) fn over<T: Copy>(&self, defaults: T) -> T {
        let mut value = MaybeUninit::new(defaults);
        let to = value.as_mut_ptr().cast::<u8>();
        // SAFETY: rule 2 for the source; `value` has its own size. All such structs are plain
        // integers and pointers, for which every pattern of bits is a value.
        unsafe {
            core::ptr::copy_nonoverlapping(self.from, to, self.size.min(size_of::<T>()));
            value.assume_init()
        }
    }
}

/// Options, or the defaults for NULL.
///
/// # Safety
/// Rule 2.
pub(crate) unsafe fn options<T: Copy>(from: *const T, defaults: T) -> Checked<T> {
    if from.is_null() {
        return Ok(defaults);
    }
    // SAFETY: rule 2.
    Ok(unsafe { prefix(from, 8, 4096)? }.over(defaults))
}
