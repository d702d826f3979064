//! Expansion of `#[asx::test]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Result, ReturnType};

use crate::entry::Entry;
use crate::lab_settings::LabSettings;

const ATTRIBUTE: &str = "#[asx::test]";

pub(crate) fn expand(settings: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = syn::parse2(function).and_then(|function| try_expand(settings, function));
    expanded.unwrap_or_else(Error::into_compile_error)
}

pub(crate) fn expand_without_lab(function: TokenStream) -> TokenStream {
    let span = match syn::parse2::<ItemFn>(function) {
        Ok(function) => function.sig.ident.span(),
        Err(_) => Span::call_site(),
    };
    let what = "`#[asx::test]` needs the feature `lab`: in Cargo.toml, write \
                `asx = { version = \"..\", features = [\"lab\"] }` under `[dev-dependencies]`";
    Error::new(span, what).into_compile_error()
}

fn try_expand(settings: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let settings = LabSettings::parse(settings)?;
    if let Some(test) = function.attrs.iter().find(|attribute| attribute.path().is_ident("test")) {
        return Err(Error::new_spanned(test, "remove `#[test]`: `#[asx::test]` adds it"));
    }
    let entry = Entry::new(function, ATTRIBUTE)?;
    let ItemFn { attrs, vis, sig, block, .. } = &entry.function;
    let name = &sig.ident;
    // Report errors about the returned value at its type.
    let span = match entry.output() {
        ReturnType::Type(_, ty) => ty.span(),
        ReturnType::Default => Span::call_site(),
    };
    let closure = entry.closure_with(quote_spanned!(span=> ::asx::lab::__test::judged));
    let lab = settings.lab().map(|calls| {
        quote! {
            ::asx::lab::check(#closure)
                .name(::asx::lab::__test::name(::core::concat!(
                    ::core::module_path!(), "::", ::core::stringify!(#name)
                )))
                #calls
                .assert();
        }
    });
    let native = settings.native().map(|builder| {
        quote! {
            if !::asx::lab::__test::is_replay() {
                match #builder.build() {
                    ::core::result::Result::Ok(runtime) => {
                        ::asx::lab::__test::passed(runtime.block_on(#closure));
                    }
                    ::core::result::Result::Err(error) => ::core::panic!("no runtime: {error}"),
                }
            }
        }
    });
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attrs)*
        #vis fn #name() {
            #sig #block
            #lab
            #native
        }
    })
}
