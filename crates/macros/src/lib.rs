//! The attributes of asx: use them through the `asx` crate.
//!
//! The crate has no examples: their dependency on `asx` would build all of asx a second time, for
//! the machine that runs the compiler.

use proc_macro::TokenStream;

mod entry;
mod lab_settings;
mod main_fn;
mod settings;
mod test_fn;

/// `asx::main`, which has the documentation and its tested examples.
#[proc_macro_attribute]
pub fn main(settings: TokenStream, function: TokenStream) -> TokenStream {
    main_fn::expand(settings.into(), function.into()).into()
}

/// `asx::test`, which has the documentation and its tested examples.
#[proc_macro_attribute]
pub fn test(settings: TokenStream, function: TokenStream) -> TokenStream {
    test_fn::expand(settings.into(), function.into()).into()
}

/// Says that `#[asx::test]` needs a feature.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn test_without_lab(_: TokenStream, function: TokenStream) -> TokenStream {
    test_fn::expand_without_lab(function.into()).into()
}
