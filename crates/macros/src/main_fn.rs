//! `#[asx::main]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ItemFn, Result};

use crate::entry::Entry;
use crate::settings::Settings;

pub(crate) fn expand(settings: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let settings = Settings::parse(settings)?;
    let entry = Entry::new(syn::parse2::<ItemFn>(function)?, "#[asx::main]")?;
    let ItemFn { attrs, vis, sig, block, .. } = &entry.function;
    let (name, output) = (&sig.ident, entry.output());
    let (builder, closure) = (settings.builder(), entry.closure());
    Ok(quote! {
        #(#attrs)*
        #vis fn #name() #output {
            #sig #block
            match #builder.build() {
                ::std::result::Result::Ok(runtime) => runtime.block_on(#closure),
                ::std::result::Result::Err(error) => ::std::panic!("no runtime: {error}"),
            }
        }
    })
}
