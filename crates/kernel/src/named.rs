//! Tables written once: enums whose values have names, errors with code and text, getters.

/// An enum of plain values with `ALL`, `name`, `mask` and `from_name`. A value is named as it is
/// declared unless another name is given with `=>`.
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident {
            $($(#[$doc:meta])* $variant:ident $(= $number:literal)? $(=> $name:literal)?),* $(,)?
        }
    ) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        $(#[$attribute])*
        pub enum $type {
            $($(#[$doc])* $variant $(= $number)?,)*
        }

        impl $type {
            /// All values, as declared.
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// The name shown in journals, files and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => named_enum!(@name $variant $($name)?),)* }
            }

            /// The bit that stands for the value in a mask.
            pub const fn mask(self) -> u16 {
                1 << self as u16
            }

            /// The value with exactly this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
    (@name $variant:ident) => { stringify!($variant) };
    (@name $variant:ident $name:literal) => { $name };
}

/// Makes each type an error: one row for each of its patterns, with the registry code and, where
/// it says more than the registry's sentence, the text.
macro_rules! errors {
    ($($type:ident$(<$param:ident>)? {
        $($case:pat => $status:expr $(, $text:literal $(, $arg:expr)*)?;)*
    })*) => {$(
        impl$(<$param>)? $crate::status::Coded for $type$(<$param>)? {
            #[allow(unused_variables, reason = "some are there for the text only")]
            fn status(&self) -> $crate::status::Status {
                match self { $($case => $status,)* }
            }
        }

        impl$(<$param>)? core::fmt::Display for $type$(<$param>)? {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $($case => errors!(@text f, $status $(, $text $(, $arg)*)?),)*
                }
            }
        }

        impl$(<$param>)? core::error::Error for $type$(<$param>)? {}
    )*};
    (@text $f:ident, $status:expr) => { $f.write_str($status.text()) };
    (@text $f:ident, $status:expr, $($text:tt)+) => { write!($f, $($text)+) };
}

/// Methods of one expression that only look, for structures that have many of them.
macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident(&$self:ident) -> $type:ty = $value:expr;)*) => {
        $($(#[$doc])* pub fn $name(&$self) -> $type { $value })*
    };
}

/// An error that hands back what was refused: its cases, each with its registry code. Its debug
/// form leaves the value out, so that it is an error whatever the value is.
macro_rules! refusals {
    ($(#[$attribute:meta])* pub enum $type:ident {
        $($(#[$doc:meta])* $case:ident => $status:expr,)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum $type<T> {
            $($(#[$doc])* $case(T),)*
        }

        impl<T> $type<T> {
            /// What was refused.
            pub fn into_inner(self) -> T {
                match self { $($type::$case(value))|* => value }
            }
        }

        impl<T> core::fmt::Debug for $type<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let case = match self { $($type::$case(_) => stringify!($case),)* };
                write!(f, "{case}(..)")
            }
        }

        errors! { $type<T> { $($type::$case(_) => $status;)* } }
    };
}

/// A structure of settings, the default beside each.
macro_rules! settings {
    ($(#[$attribute:meta])* pub struct $type:ident {
        $($(#[$doc:meta])* $field:ident: $of:ty = $default:expr,)*
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $type {
            $($(#[$doc])* pub $field: $of,)*
        }

        impl Default for $type {
            fn default() -> Self {
                $type { $($field: $default,)* }
            }
        }
    };
}

/// Answers with what is wrong unless the condition holds.
pub(crate) fn ensure<E>(holds: bool, otherwise: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(otherwise) }
}
