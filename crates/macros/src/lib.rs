//! The attribute macros of asx. Use them through the `asx` crate.
//!
//! This crate has no examples. They would depend on `asx`, and Cargo would build all of asx a
//! second time, for the host that runs the compiler.

use proc_macro::TokenStream;

mod entry;
mod lab_settings;
mod main_fn;
mod settings;
mod test_fn;

/// Implements `asx::main`, which is documented and tested in the crate `asx`.
#[proc_macro_attribute]
pub fn main(settings: TokenStream, function: TokenStream) -> TokenStream {
    main_fn::expand(settings.into(), function.into()).into()
}

/// Implements `asx::test`, which is documented and tested in the crate `asx`.
#[proc_macro_attribute]
pub fn test(settings: TokenStream, function: TokenStream) -> TokenStream {
    test_fn::expand(settings.into(), function.into()).into()
}

/// Reports that `#[asx::test]` needs the feature `lab`.
#[doc(hidden)]
#[proc_macro_attribute]
pub fn test_without_lab(_: TokenStream, function: TokenStream) -> TokenStream {
    test_fn::expand_without_lab(function.into()).into()
}
