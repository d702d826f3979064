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
