//! Macros: enums with names, errors with codes and messages, getters, settings.

/// Declares an enum of plain values with `ALL`, `name`, `mask` and `from_name`. The name of a value
/// is its identifier, unless another name is given with `=>`.
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
            /// All values, in declaration order.
            pub const ALL: [Self; [$(Self::$variant),*].len()] = [$(Self::$variant),*];

            /// The name in journals, files and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => named_enum!(@name $variant $($name)?),)* }
            }

            /// The bit of the value in a mask.
            pub const fn mask(self) -> u16 {
                1 << self as u16
            }

            /// Returns the value with exactly this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
    (@name $variant:ident) => { stringify!($variant) };
    (@name $variant:ident $name:literal) => { $name };
}

/// Implements errors: one row for each pattern, with the registry code and, where it is more
/// specific than the registry's sentence, the message.
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

/// Declares getters of one expression each.
macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident(&$self:ident) -> $type:ty = $value:expr;)*) => {
        $($(#[$doc])* pub fn $name(&$self) -> $type { $value })*
    };
}

/// Declares an error that returns the refused value: its cases, each with its registry code. The
/// debug form omits the value, so that the type is an error for any value.
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
            /// Returns the refused value.
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

/// Declares a structure of settings with their default values.
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

/// Returns the error `otherwise` unless the condition holds.
pub(crate) fn ensure<E>(holds: bool, otherwise: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(otherwise) }
}
