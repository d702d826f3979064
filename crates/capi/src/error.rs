//! What went wrong last: which function, which argument, and why.
//!
//! Every function's arguments are looked at in lines of `export!`; each line is about the arguments
//! it names, which is read from its text while it is compiled. So a refusal knows its argument
//! without anybody keeping a list, and what is written for it is written when a call fails: one
//! that goes well touches nothing of this.
//!
//! ```text
//!  check -- Bad (status, why, field) --> look: + argument --> Fault --> enter --> LastError
//!  body  -- Status ------------------> blame: a stale handle, or what `Core::blamed` says
//! ```

use crate::abi::AsxStatus;
use crate::status::asx_status_str;
use crate::words::{self, Packed};
use asx_kernel::status::Status;
use core::cell::Cell;
use core::ffi::{CStr, c_char};
use core::ptr::null;

/// The last call that failed, and the cause.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AsxErrorInfo {
    /// Set by the caller: sizeof(asx_error_info).
    pub struct_size: u32,
    /// The status that the call returned.
    pub status: AsxStatus,
    /// The function that was called.
    pub function: *const c_char,
    /// The argument that was refused, by its name in this header; NULL if it was none.
    pub argument: *const c_char,
    /// Of an argument that is a struct the field that was refused; NULL if it was none.
    pub field: *const c_char,
    /// A sentence for people.
    pub text: *const c_char,
    /// The place of the argument, from 1; 0 if it was none.
    pub position: u32,
    /// Zero.
    pub reserved: u32,
    /// How many calls have failed so far.
    pub count: u64,
}

/// A function and its arguments, as the header has them: words with a NUL behind each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signature(pub(crate) &'static str);

impl Signature {
    /// What is kept of it in this build.
    pub(crate) const fn kept(self) -> Signature {
        if cfg!(feature = "names") { self } else { Signature("asx\0") }
    }

    /// The name of the function.
    pub(crate) fn name(self) -> &'static CStr {
        words::nth_of(self.0.as_bytes(), 0).unwrap_or(c"asx")
    }

    /// The position of the one argument beside the runtime; 0 if there are more.
    pub(crate) fn only_argument(self) -> u8 {
        let words = self.0.bytes().filter(|byte| *byte == 0).count();
        if words == 3 { 2 } else { 0 }
    }

    /// What a check has found of an argument.
    #[cold]
    pub(crate) fn fault(self, argument: &str, bad: Bad) -> Fault {
        Fault::at(self.position(argument), bad)
    }

    /// The place of an argument, from 1; 0 for none.
    fn position(self, argument: &str) -> u8 {
        let nth = |at: u8| words::nth_of(self.0.as_bytes(), at.into());
        let known = (1..).map_while(|at| Some((at, nth(at)?)));
        let mut found = known.filter(|(_, word)| word.to_bytes() == argument.as_bytes());
        found.next().map_or(0, |(at, _)| at)
    }
}

/// The signature of a function.
macro_rules! signature {
    ($name:ident($($arg:ident),*)) => {
        $crate::error::Signature(concat!(stringify!($name), "\0", $(stringify!($arg), "\0"),*))
    };
}

macro_rules! texts {
    ($(#[$doc:meta])* enum $name:ident, $all:ident: $($variant:ident = $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum $name {
            $(#[doc = $text] $variant,)*
        }

        const $all: &[&str] = &[$($text,)*];
    };
}

texts! {
    /// What is wrong with an argument.
    enum Why, WHYS:
    Unsaid = "nothing",
    Range = "It is outside of its range.",
    Null = "It is NULL.",
    Misaligned = "It is not aligned as its type must be.",
    Size = "Its struct_size is none there ever was, or there is something behind what is known.",
    Handle = "It is no handle of this type.",
    State = "Its handle has a state that the thing has not been in.",
    Mask = "Its handle has a state mask that is not one state of its type.",
    Foreign = "It belongs to another runtime.",
    Itself = "It is the task itself: the wait would never end.",
    Text = "It is not UTF-8, or has no end within 4096 bytes.",
    Overflow = "It is more than memory can have.",
    Clock = "ASX_NOW needs a clock hook.",
}

texts! {
    /// Which part of a struct is meant.
    enum Field, FIELDS:
    Whole = "nothing",
    StructSize = "struct_size",
    Profile = "profile",
    Flags = "flags",
    MaxRegions = "max_regions",
    MaxSteps = "max_steps",
    PoolBytes = "pool_bytes",
    PoolMemory = "pool_memory",
    TieBreak = "tie_break",
    TraceFull = "trace_full",
    Entropy = "entropy",
    Policy = "policy",
    Priority = "priority",
    Reserved = "reserved",
    Mode = "mode",
    Poll = "poll",
    Phase = "phase",
    Kind = "kind",
    Task = "task",
    Region = "region",
    Limits = "max_tasks",
}

static WHY_TEXTS: Packed<{ words::size(WHYS) }> = Packed::new(WHYS);
static FIELD_NAMES: Packed<{ words::size(FIELDS) }> = Packed::new(FIELDS);

/// What a check has found: nothing yet says which argument it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) status: Status,
    pub(crate) why: Why,
    pub(crate) field: Field,
    /// Of two arguments that a check is about, the second.
    pub(crate) second: bool,
}

/// What a check answers.
pub(crate) type Checked<T = ()> = Result<T, Bad>;

impl From<Status> for Bad {
    fn from(status: Status) -> Bad {
        Bad { status, why: Why::Unsaid, field: Field::Whole, second: false }
    }
}

impl From<Bad> for Status {
    fn from(bad: Bad) -> Status {
        bad.status
    }
}

impl Bad {
    /// INVALID_ARGUMENT, because of this.
    pub(crate) const fn new(why: Why) -> Bad {
        Bad { status: Status::InvalidArgument, why, field: Field::Whole, second: false }
    }

    /// The same of a field.
    pub(crate) const fn field(field: Field) -> Bad {
        Bad { field, ..Bad::new(Why::Range) }
    }
}

/// INVALID_ARGUMENT because of this, unless it holds.
#[inline(always)]
pub(crate) fn check(holds: bool, why: Why) -> Checked {
    if holds { Ok(()) } else { Err(Bad::new(why)) }
}

/// INVALID_ARGUMENT because of this field, unless it holds.
#[inline(always)]
pub(crate) fn field(holds: bool, field: Field) -> Checked {
    if holds { Ok(()) } else { Err(Bad::field(field)) }
}

/// A refusal with all that is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) status: Status,
    why: Why,
    field: Field,
    /// From 1; 0 for none.
    position: u8,
}

impl From<Status> for Fault {
    fn from(status: Status) -> Fault {
        Fault { status, why: Why::Unsaid, field: Field::Whole, position: 0 }
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Status {
        fault.status
    }
}

/// Which arguments a check is about, by their positions.
#[derive(Clone, Copy)]
pub(crate) struct Named {
    first: u8,
    second: u8,
}

impl Named {
    /// Those whose names a check has in it, in their order. One that names none does not compile.
    pub(crate) const fn in_check(check: &str, signature: Signature) -> Named {
        let text = check.as_bytes();
        let mut first = 0;
        let mut second = 0;
        let mut at = 0;
        while at < text.len() {
            let end = end_of_word(text, at);
            if end == at {
                at += 1;
                continue;
            }
            if is_variable(text, at, end) {
                let position = position_of(signature.0.as_bytes(), text, at, end);
                if first == 0 {
                    first = position;
                } else if second == 0 && position != first {
                    second = position;
                }
            }
            at = end;
        }
        assert!(first != 0, "the check names no argument");
        Named { first, second: if second == 0 { first } else { second } }
    }

    /// What a check has found, with the argument it was about.
    #[cold]
    pub(crate) fn fault(self, bad: Bad) -> Fault {
        let Bad { status, why, field, second } = bad;
        Fault { status, why, field, position: if second { self.second } else { self.first } }
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

const fn end_of_word(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && is_word(text[at]) {
        at += 1;
    }
    at
}

/// Whether a word is neither a part of a path, nor a method or a field, nor what is called.
const fn is_variable(text: &[u8], start: usize, end: usize) -> bool {
    let mut before = start;
    while before > 0 && text[before - 1] == b' ' {
        before -= 1;
    }
    let mut after = end;
    while after < text.len() && text[after] == b' ' {
        after += 1;
    }
    let named = before > 0 && matches!(text[before - 1], b':' | b'.');
    let called = after < text.len() && matches!(text[after], b'(' | b':');
    !named && !called
}

/// The position of a word among those of a signature; 0 for none.
const fn position_of(names: &[u8], text: &[u8], start: usize, end: usize) -> u8 {
    let mut name = 0;
    let mut position = 0;
    while name < names.len() {
        let name_end = end_of_word(names, name);
        let mut same = 0;
        while same < end - start
            && name + same < name_end
            && names[name + same] == text[start + same]
        {
            same += 1;
        }
        if same == end - start && name + same == name_end {
            return position;
        }
        (name, position) = (name_end + 1, position + 1);
    }
    0
}

/// The last failure of a runtime. The owner's thread alone has it.
#[derive(Default)]
pub(crate) struct LastError(Cell<(Option<(Signature, Fault)>, u64)>);

impl LastError {
    /// Keeps a failure. Answers that are no failures (ASX_E_WOULD_BLOCK and its kin) are not kept.
    pub(crate) fn keep(&self, signature: Signature, fault: Fault) {
        if fault.status >= Status::InvalidArgument {
            let (_, count) = self.0.get();
            self.0.set((Some((signature, fault)), count + 1));
        }
    }

    pub(crate) fn info(&self) -> Option<AsxErrorInfo> {
        let (last, count) = self.0.get();
        let (signature, fault) = last?;
        Some(AsxErrorInfo { count, ..fault.info(signature) })
    }
}

impl Fault {
    /// As a caller sees it.
    pub(crate) fn info(&self, signature: Signature) -> AsxErrorInfo {
        let name = |text: Option<&'static CStr>| text.map_or(null(), CStr::as_ptr);
        let argument = words::nth_of(signature.0.as_bytes(), self.position.into());
        let argument = argument.filter(|_| self.position > 0);
        let said = WHY_TEXTS.nth(self.why as usize).filter(|_| self.why != Why::Unsaid);
        let field = FIELD_NAMES.nth(self.field as usize).filter(|_| self.field != Field::Whole);
        AsxErrorInfo {
            struct_size: 0,
            status: self.status.number(),
            function: signature.name().as_ptr(),
            argument: name(argument),
            field: name(field),
            text: said.map_or_else(|| asx_status_str(self.status.number()), CStr::as_ptr),
            position: self.position.into(),
            reserved: 0,
            count: 1,
        }
    }

    /// The same, of the argument at this position.
    pub(crate) fn of_argument(self, position: u8) -> Fault {
        Fault { position, ..self }
    }

    /// A refusal of an argument.
    pub(crate) fn at(position: u8, bad: Bad) -> Fault {
        Named { first: position, second: position }.fault(bad)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SIGNATURE: Signature = signature!(asx_text(rt, text, room, options));

    fn named(check: &str) -> (u8, u8) {
        let Named { first, second } = Named::in_check(check, SIGNATURE);
        (first, second)
    }

    #[test]
    fn a_check_is_about_the_arguments_it_names() {
        assert_eq!(named("guard::room(text.cast::<u8>(), room)?"), (2, 3));
        assert_eq!(named("guard :: room(text . cast :: < u8 > (), room) ?"), (2, 3));
        assert_eq!(named("guard::options(options, NO_OPTIONS)?"), (4, 4));
        assert_eq!(named("room(text, 1)?"), (2, 2));
        assert_eq!(named("given.text(room)?"), (3, 3));
    }

    #[test]
    #[should_panic(expected = "names no argument")]
    fn a_check_of_nothing_is_refused() {
        named("task_options(&given)?");
    }

    #[test]
    fn why_and_field_have_their_texts() {
        let fault = Fault::at(2, Bad::field(Field::Phase));
        let info = fault.info(signature!(asx_now(rt, out)));
        // SAFETY: rule 2 of `guard`, the other way round: the library's own texts end with a NUL.
        let text = |from| unsafe { CStr::from_ptr(from) }.to_str().unwrap();
        assert_eq!(
            [info.function, info.argument, info.field, info.text].map(text),
            ["asx_now", "out", "phase", "It is outside of its range."]
        );
        let plain = Fault::from(Status::Reentrant).info(signature!(asx_now(rt, out)));
        assert!(plain.argument.is_null() && plain.field.is_null());
        assert_eq!(text(plain.text), Status::Reentrant.text());
    }
}
