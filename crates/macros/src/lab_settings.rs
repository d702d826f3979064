//! The arguments of `#[asx::test]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Ident, LitInt, LitStr, Result, Token};

use crate::settings::{parse_workers, value};

const KNOWN: &str = "`seeds = 1000`, `total = 10000`, `seed = 7`, `strategy = \"mixed\"`, \
                     `steps = 10000`, `time = \"2s\"`, `min_time = \"1s\"`, \
                     `cancel = \"every await\"`, `faults`, `late_clocks`, \
                     `disturbances = 2`, `exact_time`, `network`, `virtual_workers = 2`, \
                     `transparent`, `native`, `workers = 4` and `lab`";

const STRATEGIES: &str = "expected one of \"mixed\", \"random\", \"uniform\", \"pos\", \"pct(3)\", \
                          \"guided\", \"dfs\", \"dpor\" and \"bounded\"";

/// The settings of a test.
#[derive(Default)]
pub(crate) struct LabSettings {
    /// Method calls on the lab's check.
    calls: Vec<TokenStream>,
    /// Whether the test runs in the lab in addition to threads.
    lab: bool,
    native: bool,
    workers: Option<usize>,
}

enum Setting {
    Call(TokenStream),
    Lab,
    Native,
    Workers(usize),
}

impl LabSettings {
    pub(crate) fn parse(tokens: TokenStream) -> Result<LabSettings> {
        let list = Punctuated::<(Ident, Setting), Token![,]>::parse_terminated_with;
        let mut settings = LabSettings::default();
        let mut keys: Vec<Ident> = Vec::new();
        let mut for_lab = None;
        let parse = |input: ParseStream<'_>| list(input, parse_setting);
        for (key, setting) in Parser::parse2(parse, tokens)? {
            if keys.iter().any(|before| is_same(before, &key)) {
                return Err(Error::new(key.span(), "this setting is given twice"));
            }
            match setting {
                Setting::Call(call) => {
                    settings.calls.push(call);
                    for_lab.get_or_insert_with(|| key.clone());
                }
                Setting::Lab => settings.lab = true,
                Setting::Native => settings.native = true,
                Setting::Workers(workers) => {
                    (settings.native, settings.workers) = (true, Some(workers));
                }
            }
            keys.push(key);
        }
        match for_lab {
            Some(key) if settings.native && !settings.lab => {
                let what =
                    format!("`{key}` is a setting of the lab: add `lab` to run the test there too");
                Err(Error::new(key.span(), what))
            }
            _ => Ok(settings),
        }
    }

    /// Returns the method calls on the check, if the test runs in the lab.
    pub(crate) fn lab(&self) -> Option<TokenStream> {
        let calls = &self.calls;
        (self.lab || !self.native).then(|| quote!(#(#calls)*))
    }

    /// Returns the builder of the runtime, if the test runs on threads.
    pub(crate) fn native(&self) -> Option<TokenStream> {
        let workers = self.workers.iter().map(|workers| quote!(.workers(#workers)));
        // The lab treats an unobserved cancel as a failure, so threads do too.
        let builder = quote!(::asx::Runtime::builder() #(#workers)* .deny_unheeded_cancels());
        self.native.then_some(builder)
    }
}

fn parse_setting(input: ParseStream<'_>) -> Result<(Ident, Setting)> {
    let key: Ident = input.parse()?;
    let setting = match key.to_string().as_str() {
        "lab" => Setting::Lab,
        "native" => Setting::Native,
        "workers" => Setting::Workers(parse_workers(value(&key, "4", input)?)?),
        _ => Setting::Call(parse_call(&key, input)?),
    };
    if input.is_empty() || input.peek(Token![,]) {
        return Ok((key, setting));
    }
    Err(input.error(format!("unexpected token after `{key}`; is a comma missing?")))
}

/// Parses a setting of the check.
fn parse_call(key: &Ident, input: ParseStream<'_>) -> Result<TokenStream> {
    Ok(match key.to_string().as_str() {
        "seeds" | "runs" => {
            let runs = at_least_one(value(key, "1000", input)?)?;
            quote!(.runs(#runs))
        }
        "total" => {
            let runs = at_least_one(value(key, "10000", input)?)?;
            quote!(.total(#runs))
        }
        "seed" => {
            let literal: LitInt = value(key, "7", input)?;
            let seed = literal.base10_parse::<u64>();
            let seed =
                seed.map_err(|_| Error::new(literal.span(), "expected a number below 2^64"))?;
            quote!(.seed(#seed))
        }
        "strategy" => {
            let how = strategy(&value(key, "\"mixed\"", input)?)?;
            quote!(.how(::asx::lab::How::#how))
        }
        "steps" => {
            let steps = at_least_one(value(key, "10000", input)?)?;
            quote!(.steps(#steps))
        }
        "time" => {
            let millis = millis(&value(key, "\"2s\"", input)?, 1)?;
            quote!(.time(::core::time::Duration::from_millis(#millis)))
        }
        "min_time" => {
            let millis = millis(&value(key, "\"1s\"", input)?, 0)?;
            quote!(.min_time(::core::time::Duration::from_millis(#millis)))
        }
        "cancel" => {
            every_await(&value(key, "\"every await\"", input)?)?;
            quote!(.cancel_at_every_await())
        }
        "faults" => quote!(.faults()),
        "late_clocks" => quote!(.late_clocks()),
        "disturbances" => {
            let times = at_least_one(value(key, "2", input)?)?;
            quote!(.disturbances(#times as usize))
        }
        "exact_time" => quote!(.exact_time()),
        "network" => quote!(.network(::asx::lab::Faults::all())),
        "virtual_workers" => {
            let workers = parse_workers(value(key, "2", input)?)?;
            quote!(.workers(#workers))
        }
        "transparent" => quote!(.transparent()),
        _ => {
            return Err(Error::new(
                key.span(),
                format!("unknown setting; expected one of {KNOWN}"),
            ));
        }
    })
}

fn is_same(one: &Ident, other: &Ident) -> bool {
    let name = |key: &Ident| if key == "runs" { String::from("seeds") } else { key.to_string() };
    name(one) == name(other)
}

fn at_least_one(literal: LitInt) -> Result<u64> {
    let number = literal.base10_parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Error::new(literal.span(), "expected a number of at least 1"))
}

/// A variant of the lab's `How`.
fn strategy(literal: &LitStr) -> Result<TokenStream> {
    let text = literal.value();
    let depth = text.strip_prefix("pct(").and_then(|rest| rest.strip_suffix(')'));
    let depth = depth.and_then(|depth| depth.trim().parse::<usize>().ok());
    if let Some(depth) = depth.filter(|depth| *depth > 0) {
        return Ok(quote!(Pct(#depth)));
    }
    Ok(match text.as_str() {
        "mixed" => quote!(Mixed),
        "random" => quote!(Random),
        "uniform" => quote!(Uniform),
        "pos" => quote!(Pos),
        "guided" => quote!(Guided),
        "dfs" => quote!(Dfs),
        "dpor" => quote!(Dpor),
        "bounded" => quote!(Bounded),
        _ => return Err(Error::new(literal.span(), STRATEGIES)),
    })
}

/// Parses a duration such as `2s`. Returns its milliseconds, which must be at least `least`.
fn millis(literal: &LitStr, least: u64) -> Result<u64> {
    let text = literal.value();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim_start() {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        _ => None,
    };
    let millis = number.parse::<u64>().ok().zip(unit).and_then(|(n, unit)| n.checked_mul(unit));
    let what =
        format!("expected a duration of at least {least}ms, such as \"500ms\", \"2s\" or \"1m\"");
    millis.filter(|millis| *millis >= least).ok_or_else(|| Error::new(literal.span(), what))
}

fn every_await(literal: &LitStr) -> Result<()> {
    match literal.value().as_str() {
        "every await" => Ok(()),
        _ => Err(Error::new(literal.span(), "expected \"every await\"")),
    }
}
