//! The arguments of calls, looked at: pointers, texts, places for results, small structs.
//!
//! The unsafe code follows rule 2 of `guard`. Structs that lead with their size are in `structs`.

use crate::abi::{AsxBody, AsxBudget, AsxStatus, AsxWhen};
use crate::error::{Bad, Checked, Field, Why, check, field};
use asx_kernel::status::Status;
use asx_kernel::time::Time;
use asx_kernel::world::{Answer, SleepUntil};
use core::ffi::{c_char, c_void};
use core::fmt;
use core::mem::{MaybeUninit, size_of};
use core::time::Duration;

/// The number of an answer.
#[inline(always)]
pub(crate) fn number(answer: Answer) -> AsxStatus {
    answer.err().unwrap_or(Status::Ok).number()
}

/// INVALID_ARGUMENT unless it holds.
#[inline(always)]
pub(crate) fn ensure(holds: bool) -> Checked {
    check(holds, Why::Range)
}

/// INVALID_ARGUMENT for a pointer that is misaligned, or NULL.
#[inline(always)]
pub(crate) fn is_there<T>(pointer: *const T) -> Checked {
    check(!pointer.is_null(), Why::Null)?;
    check(pointer.is_aligned(), Why::Misaligned)
}

/// INVALID_ARGUMENT for the first of two things that must differ, if they do not.
#[inline(always)]
pub(crate) fn other_than<T: PartialEq>(one: &T, other: &T) -> Checked {
    check(one != other, Why::Itself)
}

/// A struct that must be there.
///
/// # Safety
/// Rule 2.
#[inline(always)]
pub(crate) unsafe fn read<T: Copy>(from: *const T) -> Checked<T> {
    is_there(from)?;
    // SAFETY: rule 2.
    Ok(unsafe { from.read() })
}

/// CAPABILITY_DENIED unless this build has it.
#[inline(always)]
pub(crate) fn has(feature: bool) -> Answer {
    if feature { Ok(()) } else { Err(Status::CapabilityDenied) }
}

/// A place for a result.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A place that must be there.
    ///
    /// # Safety
    /// Rule 2, for as long as the value is used.
    pub(crate) unsafe fn new(pointer: *mut T) -> Checked<Out<T>> {
        is_there(pointer)?;
        Ok(Out(pointer))
    }

    /// A place that may be NULL.
    ///
    /// # Safety
    /// Rule 2, for as long as the value is used.
    pub(crate) unsafe fn maybe(pointer: *mut T) -> Checked<Out<T>> {
        check(pointer.is_aligned() || pointer.is_null(), Why::Misaligned)?;
        Ok(Out(pointer))
    }

    pub(crate) fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: rule 2, promised at `new`.
            unsafe { self.0.write(value) }
        }
    }
}

/// The longest text that is taken from a caller.
pub(crate) const LONGEST_TEXT: usize = 4096;

/// A text: UTF-8 up to its NUL, NULL for none.
///
/// # Safety
/// Rule 2: readable up to a NUL, or for [`LONGEST_TEXT`] bytes.
pub(crate) unsafe fn text<'a>(from: *const c_char) -> Checked<Option<&'a str>> {
    if from.is_null() {
        return Ok(None);
    }
    let from = from.cast::<u8>();
    // SAFETY: rule 2: no further than the NUL.
    let end = (0..LONGEST_TEXT).find(|at| unsafe { from.add(*at).read() } == 0);
    let end = end.ok_or(Bad::new(Why::Text))?;
    // SAFETY: rule 2: all of these were read.
    let bytes = unsafe { core::slice::from_raw_parts(from, end) };
    core::str::from_utf8(bytes).map(Some).map_err(|_| Bad::new(Why::Text))
}

/// Bytes to read.
///
/// # Safety
/// Rule 2: `size` bytes are readable.
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(from: *const c_void, size: usize) -> Checked<&'a [u8]> {
    if size == 0 {
        return Ok(&[]);
    }
    check(!from.is_null(), Why::Null)?;
    // SAFETY: rule 2.
    Ok(unsafe { core::slice::from_raw_parts(from.cast(), size) })
}

/// Elements to read.
///
/// # Safety
/// Rule 2: `count` elements are readable, of which every pattern of bits is a value.
pub(crate) unsafe fn events<'a, T>(from: *const T, count: usize) -> Checked<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|size| isize::try_from(size).is_ok());
    is_count(fits)?;
    is_there(from)?;
    // SAFETY: rule 2.
    Ok(unsafe { core::slice::from_raw_parts(from, count) })
}

/// Elements to write; NULL is as good as none.
///
/// # Safety
/// Rule 2: `count` elements are writable.
#[inline(always)]
pub(crate) unsafe fn room<'a, T>(to: *mut T, count: usize) -> Checked<&'a mut [MaybeUninit<T>]> {
    if count == 0 {
        return Ok(&mut []);
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|size| isize::try_from(size).is_ok());
    is_count(fits)?;
    is_there(to)?;
    // SAFETY: rule 2.
    Ok(unsafe { core::slice::from_raw_parts_mut(to.cast(), count) })
}

/// INVALID_ARGUMENT because of how many there are, the second argument, unless it holds.
#[inline(always)]
fn is_count(holds: bool) -> Checked {
    let bad = Bad { second: true, ..Bad::new(Why::Overflow) };
    if holds { Ok(()) } else { Err(bad) }
}

/// Takes a text as far as it fits, and counts all of it: nothing is allocated for one that is made
/// on the way.
pub(crate) struct Cut<'a> {
    to: &'a mut [MaybeUninit<u8>],
    size: usize,
}

impl<'a> Cut<'a> {
    pub(crate) fn new(to: &'a mut [MaybeUninit<u8>]) -> Cut<'a> {
        Cut { to, size: 0 }
    }

    /// How many bytes were taken.
    pub(crate) fn written(&self) -> usize {
        self.size.min(self.to.len())
    }
}

impl fmt::Write for Cut<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let rest = self.to.get_mut(self.size..).unwrap_or_default();
        rest.iter_mut().zip(text.bytes()).for_each(|(to, from)| _ = to.write(from));
        self.size += text.len();
        Ok(())
    }
}

/// Writes a text with a NUL behind it, as far as it fits, and answers its length.
///
/// The answer is FULL if it was cut.
pub(crate) fn put_text(
    to: &mut [MaybeUninit<u8>],
    text: fmt::Arguments<'_>,
    size: Out<usize>,
) -> Answer {
    let room = to.len().saturating_sub(1);
    let (head, tail) = to.split_at_mut_checked(room).ok_or(Status::Internal)?;
    let mut cut = Cut::new(head);
    // It takes everything.
    let _ = fmt::Write::write_fmt(&mut cut, text);
    let written = cut.written();
    let whole = cut.size;
    let fits = whole <= room && !tail.is_empty();
    let end = if written < room { head.get_mut(written) } else { tail.first_mut() };
    if let Some(end) = end {
        end.write(0);
    }
    size.set(whole);
    if fits { Ok(()) } else { Err(Status::Full) }
}

impl AsxBody {
    /// The body, if it can be polled.
    pub(crate) fn checked(self) -> Checked<AsxBody> {
        field(self.poll.is_some(), Field::Poll)?;
        Ok(self)
    }
}

impl AsxWhen {
    /// The kernel's way to say it.
    pub(crate) fn checked(self) -> Checked<SleepUntil> {
        field(self.reserved == 0, Field::Reserved)?;
        match self.mode {
            crate::abi::ASX_WHEN_AFTER => Ok(SleepUntil::After(Duration::from_nanos(self.ns))),
            crate::abi::ASX_WHEN_AT => Ok(SleepUntil::At(Time::from_nanos(self.ns))),
            _ => Err(Bad::field(Field::Mode)),
        }
    }
}

impl AsxBudget {
    /// No limits.
    pub(crate) const INFINITE: AsxBudget = AsxBudget {
        deadline: crate::abi::ASX_NONE,
        poll_quota: crate::abi::ASX_NONE,
        cost_quota: crate::abi::ASX_NONE,
    };
}

/// A handle of a thing that may be absent: NULL for none.
///
/// # Safety
/// Rule 2.
pub(crate) unsafe fn maybe<T: Copy, I>(
    from: *const T,
    id: impl FnOnce(T) -> Checked<I>,
) -> Checked<Option<I>> {
    if from.is_null() {
        return Ok(None);
    }
    check(from.is_aligned(), Why::Misaligned)?;
    // SAFETY: rule 2.
    id(unsafe { from.read() }).map(Some)
}
