//! Expansion of `#[asx::main]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, Result};

use crate::entry::Entry;
use crate::settings::Settings;

pub(crate) fn expand(settings: TokenStream, function: TokenStream) -> TokenStream {
    let function: ItemFn = match syn::parse2(function) {
        Ok(function) => function,
        Err(error) => return error.into_compile_error(),
    };
    let name = function.sig.ident.clone();
    try_expand(settings, function).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        // Define the function anyway, so that its absence is not a second error.
        quote!(#error fn #name() {})
    })
}

fn try_expand(settings: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let settings = Settings::parse(settings)?;
    let entry = Entry::new(function, "#[asx::main]")?;
    let ItemFn { attrs, vis, sig, block, .. } = &entry.function;
    let name = &sig.ident;
    let output = entry.output();
    let builder = settings.builder();
    let closure = entry.closure();
    Ok(quote! {
        #(#attrs)*
        #vis fn #name() #output {
            #sig #block
            match #builder.build() {
                ::std::result::Result::Ok(runtime) => runtime.run_main(#closure),
                ::std::result::Result::Err(error) => ::std::panic!("no runtime: {error}"),
            }
        }
    })
}
