//! The arguments of `#[asx::main]`, and parsing shared with `#[asx::test]`.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitInt, LitStr, Result, Token};

/// The range that the runtime accepts.
const WORKERS: RangeInclusive<usize> = 1..=1024;

/// The settings of the runtime.
#[derive(Default)]
pub(crate) struct Settings {
    workers: Option<usize>,
    name: Option<LitStr>,
}

enum Setting {
    Workers(usize),
    Name(LitStr),
}

impl Settings {
    pub(crate) fn parse(tokens: TokenStream) -> Result<Settings> {
        let list = Punctuated::<(Ident, Setting), Token![,]>::parse_terminated_with;
        let mut settings = Settings::default();
        let parse = |input: ParseStream<'_>| list(input, parse_setting);
        for (key, setting) in Parser::parse2(parse, tokens)? {
            let twice = match setting {
                Setting::Workers(workers) => settings.workers.replace(workers).is_some(),
                Setting::Name(name) => settings.name.replace(name).is_some(),
            };
            if twice {
                return Err(Error::new(key.span(), "this setting is given twice"));
            }
        }
        Ok(settings)
    }

    /// Returns an expression for the builder of the runtime.
    pub(crate) fn builder(&self) -> TokenStream {
        let workers = self.workers.iter().map(|workers| quote!(.workers(#workers)));
        let name = self.name.iter().map(|name| quote!(.name(#name)));
        quote!(::asx::Runtime::builder() #(#workers)* #(#name)*)
    }
}

fn parse_setting(input: ParseStream<'_>) -> Result<(Ident, Setting)> {
    let key: Ident = input.parse()?;
    let setting = match key.to_string().as_str() {
        "current_thread" => Setting::Workers(1),
        "workers" => Setting::Workers(parse_workers(value(&key, "4", input)?)?),
        "name" => Setting::Name(value(&key, "\"shop\"", input)?),
        _ => {
            let known = "`workers = 4`, `current_thread` and `name = \"shop\"`";
            return Err(Error::new(
                key.span(),
                format!("unknown setting; expected one of {known}"),
            ));
        }
    };
    Ok((key, setting))
}

/// Parses `= value` after a key.
pub(crate) fn value<T: Parse>(key: &Ident, example: &str, input: ParseStream<'_>) -> Result<T> {
    let hint = || format!("expected `{key} = {example}`");
    if !input.peek(Token![=]) {
        return Err(Error::new(key.span(), hint()));
    }
    input.parse::<Token![=]>()?;
    input.parse().map_err(|error| Error::new(error.span(), hint()))
}

pub(crate) fn parse_workers(literal: LitInt) -> Result<usize> {
    let workers = literal.base10_parse().ok().filter(|workers| WORKERS.contains(workers));
    let least = WORKERS.start();
    let most = WORKERS.end();
    workers.ok_or_else(|| Error::new(literal.span(), format!("expected {least} to {most} workers")))
}
