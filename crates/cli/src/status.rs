//! `asx status`: what a registry code means.

use asx_conformance::parse::suggest;
use asx_kernel::status::Status;
use std::io::{self, Write};
use std::process::ExitCode;

pub(crate) fn status(wanted: Option<&str>, out: &mut impl Write) -> io::Result<ExitCode> {
    let Some(wanted) = wanted else {
        for status in Status::ALL {
            writeln!(out, "{:>4}  {:<28} {}", status.number(), status.name(), status.text())?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let found = match wanted.parse() {
        Ok(number) => Status::from_number(number),
        Err(_) => Status::from_name(&wanted.to_ascii_uppercase()),
    };
    match found {
        Some(status) => {
            writeln!(out, "{} ({}), {}", status.name(), status.number(), status.family())?;
            writeln!(out, "{}", status.text())?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            complain!("asx: there is no status `{wanted}`");
            let near = near(wanted);
            if near.is_empty() {
                complain!("`asx status` lists them all");
            } else {
                complain!("did you mean: {}", near.join(", "));
            }
            Ok(ExitCode::from(2))
        }
    }
}

/// Names close to what was asked for: by letters, by a shared part, or by number.
fn near(wanted: &str) -> Vec<String> {
    let upper = wanted.to_ascii_uppercase();
    if let Ok(number) = wanted.parse::<i32>() {
        let family = Status::ALL.iter().filter(|s| s.number() / 100 == number / 100);
        return family.map(|s| format!("{} ({})", s.name(), s.number())).collect();
    }
    let close = suggest::nearest(&upper, Status::ALL.iter().map(|s| s.name()));
    let parts = Status::ALL.iter().map(|s| s.name()).filter(|name| {
        upper.len() >= 3 && name.contains(&upper)
            || upper
                .split('_')
                .any(|part| part.len() >= 4 && name.split('_').any(|own| own == part))
    });
    let mut names: Vec<String> = close.into_iter().chain(parts).map(str::to_owned).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}
