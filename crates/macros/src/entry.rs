//! The common part of the attributes for functions.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, Result, ReturnType, Signature, Type};

/// An async function with at most one parameter, the context.
pub(crate) struct Entry {
    pub(crate) function: ItemFn,
    argument: Argument,
}

enum Argument {
    None,
    Borrowed(Span),
    Owned(Span),
}

impl Entry {
    /// Checks the function. `attribute` is used in messages, for example `#[asx::main]`.
    pub(crate) fn new(function: ItemFn, attribute: &str) -> Result<Entry> {
        let signature = &function.sig;
        if signature.asyncness.is_none() {
            let what = format!("`{attribute}` is for an `async fn`: add `async`");
            return Err(Error::new_spanned(signature.fn_token, what));
        }
        if !signature.generics.params.is_empty() {
            let what = format!("a function under `{attribute}` has no generic parameters");
            return Err(Error::new_spanned(&signature.generics, what));
        }
        let argument = argument(signature, attribute)?;
        Ok(Entry { function, argument })
    }

    /// Returns an async closure that takes an owned context and calls the function.
    pub(crate) fn closure(&self) -> TokenStream {
        self.closure_with(TokenStream::new())
    }

    /// Like [`closure`](Entry::closure), but passes the function's result to `through`.
    pub(crate) fn closure_with(&self, through: TokenStream) -> TokenStream {
        let name = &self.function.sig.ident;
        let (parameter, argument) = match self.argument {
            Argument::None => (quote!(_), quote!()),
            // Report type errors at the parameter of the user's function.
            Argument::Borrowed(span) => (quote!(cx), quote_spanned!(span=> &cx)),
            Argument::Owned(span) => (quote!(cx), quote_spanned!(span=> cx)),
        };
        let value = quote!(#name(#argument).await);
        let value = if through.is_empty() { value } else { quote!(#through(#value)) };
        quote!(async |#parameter: ::asx::Cx| #value)
    }

    pub(crate) fn output(&self) -> &ReturnType {
        &self.function.sig.output
    }
}

fn argument(signature: &Signature, attribute: &str) -> Result<Argument> {
    let mut inputs = signature.inputs.iter();
    let argument = match inputs.next() {
        None => Argument::None,
        Some(FnArg::Typed(typed)) => match &*typed.ty {
            Type::Reference(_) => Argument::Borrowed(typed.ty.span()),
            _ => Argument::Owned(typed.ty.span()),
        },
        Some(receiver) => {
            return Err(Error::new_spanned(receiver, "a method is not supported: remove `self`"));
        }
    };
    match inputs.next() {
        None => Ok(argument),
        Some(more) => {
            let what = format!("a function under `{attribute}` takes only the context, `cx: &Cx`");
            Err(Error::new_spanned(more, what))
        }
    }
}
